"""Constant folding of elementwise primitives, used to track the value of padding.

A folded value must hold on every backend. So a result is known only if it is exact in its type or
correctly rounded by IEEE 754, and if no intermediate number is subnormal: backends may flush those
to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import frexp, inf
from typing import Any

import jax.numpy as jnp
import numpy as np

from gridlayout import dtypes
from gridlayout.ops.decisions.op import Op


def known(op: Op, facts: Sequence[Any]) -> dtypes.Scalar | None:
    """Return the result of the primitive on known operands; None if unknown or not exact.

    facts: the known number of each operand, or None.
    """
    name = op.name
    if name == "select_n" and facts[0] is not None and int(facts[0]) in range(len(facts) - 1):
        return facts[1 + int(facts[0])]
    if any(fact is None for fact in facts):
        return None
    numbers = [number(fact, aval.dtype) for fact, aval in zip(facts, op.ins, strict=True)]
    if (out := on_host(op, numbers)) is None:
        return None
    value = out.item()
    return dtypes.NAN if value != value else value


def number(value: Any, dtype: Any) -> Any:
    """Return a number as a NumPy scalar of a dtype."""
    found = np.asarray(value)
    if found.dtype != dtype and found.dtype.isbuiltin == 2:  # a type of ml_dtypes has few casts
        found = np.asarray(found.item())
    with np.errstate(all="ignore"):
        return found.astype(dtype)[()]


def on_host(op: Op, numbers: Sequence[Any]) -> Any:
    """Return the result on numbers, a NumPy scalar, if all backends agree on it; else None."""
    if not all(map(_is_plain, numbers)):
        return None
    dtype = op.out.dtype
    if op.name == "integer_pow" and op.params["y"] > 0 and str(numbers[0]) in _UNCHANGED:
        return numbers[0]
    if (point := EXACT.get((op.name, *(str(x.item()) for x in numbers)))) is not None:
        return number(point, dtype)
    if op.name == "convert_element_type":
        return _converted(numbers[0], dtype)
    if (fn := _ON_HOST.get(op.name)) is None:
        return None
    try:
        with np.errstate(all="ignore"):
            out = fn(*numbers)
    except TypeError:  # NumPy does not compute this in types of its extensions, such as int4
        return None
    if out is None or not _is_plain(out):
        return None
    if _is_narrow(dtype):  # a backend may keep more bits than the type has
        with np.errstate(all="ignore"):
            wide = fn(*(x.astype(np.float64) for x in numbers))
        if wide is None or not (wide == out or (wide != wide and out != out)):
            return None
    return number(out, dtype)


def _is_plain(x: Any) -> bool:
    """Whether all backends represent the number the same: it is real and not subnormal, or zero."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return not jnp.issubdtype(x.dtype, jnp.complexfloating) or x == 0
    return not 0 < abs(float(x)) < float(jnp.finfo(x.dtype).tiny)


def _is_narrow(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating)) and dtype.itemsize < 4


def _converted(x: Any, dtype: Any) -> Any:
    """Return the number in another type if that represents it exactly, else None."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating) or (x != x):
        return number(x, dtype) if dtype == x.dtype else None
    if abs(float(x)) == inf and not jnp.issubdtype(dtype, jnp.inexact):
        return None
    out = number(x, dtype)
    if dtype == np.bool_:
        return out
    return out if _is_plain(out) and out.item() == x.item() else None


def _quotient(a: Any, b: Any) -> Any:
    """Return `a / b` if `a` is 0 or `b` a power of two; backends may round others differently."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return None
    if not a and not b:
        return number(np.nan, a.dtype)
    if abs(frexp(float(b))[0]) != 0.5 and (a or not 0 < abs(float(b)) < inf):
        return None
    return np.divide(a, b)


def _root(a: Any) -> Any:
    """Return the square root of a perfect square, else None."""
    if a < 0 or not np.isfinite(a):
        return None
    out = np.sqrt(a)
    return out if out * out == a else None


def _copy(a: Any) -> Any:
    return a


def _of_reals(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn` for real numbers only: backends order and multiply complex ones differently."""

    def real(*numbers: Any) -> Any:
        if any(jnp.issubdtype(x.dtype, jnp.complexfloating) for x in numbers):
            return None
        return fn(*numbers)

    return real


def _least(a: Any, b: Any) -> Any:
    return None if a != a or b != b or (a == b == 0) else np.minimum(a, b)


def _most(a: Any, b: Any) -> Any:
    return None if a != a or b != b or (a == b == 0) else np.maximum(a, b)


def _either(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn`, a minimum or maximum, extended to two equal operands such as 0.0 and 0.0."""

    def extreme(a: Any, b: Any) -> Any:
        if str(a) == str(b):
            return a
        return fn(a, b)

    return extreme


# Primitives whose NumPy function gives the result of every backend.
_ON_HOST: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": _of_reals(np.multiply)},
    **{"neg": np.negative, "copy": _copy, "stop_gradient": _copy, "name": _copy},
    "max": _of_reals(_either(_most)),
    "min": _of_reals(_either(_least)),
    **{"eq": np.equal, "ne": np.not_equal},
    **{name: _of_reals(fn) for name, fn in (("lt", np.less), ("le", np.less_equal))},
    **{name: _of_reals(fn) for name, fn in (("gt", np.greater), ("ge", np.greater_equal))},
    **{"div": _of_reals(_quotient), "sqrt": _of_reals(_root)},
    **{"not": np.invert, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    **{"is_finite": _of_reals(np.isfinite), "real": np.real, "imag": np.imag},
}
_UNCHANGED = ("0.0", "1.0", "0", "1")
# Arguments at which functions of real numbers are exact on every backend: (name, argument).
EXACT: dict[tuple[str, ...], float] = {
    **{
        (name, "0.0"): 0.0
        for name in (
            *("sin", "tan", "asin", "atan", "sinh", "asinh", "tanh", "atanh", "erf"),
            *("expm1", "log1p", "sqrt", "cbrt", "square", "abs", "floor", "ceil", "sign"),
        )
    },
    **dict.fromkeys(((name, "0.0") for name in ("exp", "exp2", "cos", "cosh")), 1.0),
    **dict.fromkeys(((name, "1.0") for name in ("sqrt", "rsqrt", "square", "abs", "sign")), 1.0),
    **{("log", "1.0"): 0.0, ("logistic", "0.0"): 0.5, ("exp", "-inf"): 0.0},
    ("log", "0.0"): -inf,
}


def exact_points(name: str) -> tuple[tuple[float, float], ...]:
    """Return the arguments at which a function of real numbers is exact, each with its result.

    >>> exact_points("exp")
    ((0.0, 1.0), (-inf, 0.0))
    """
    return tuple((float(key[1]), to) for key, to in EXACT.items() if key[0] == name)
