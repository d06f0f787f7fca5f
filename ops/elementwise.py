"""Elementwise primitives: on storage, each core by itself, padding computed along as a fact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import frexp, inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout import dtypes
from gridlayout.ops import values as v
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.masking import has_padding
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.values import Context, Spread

ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil
    clamp clz complex conj convert_element_type copy cos cosh digamma div eq eq_to erf erf_inv
    erfc exp exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag integer_pow is_finite le
    le_to lgamma log log1p log2 logistic lt lt_to max min mul mulhi name ne neg nextafter not
    one_minus_square or polygamma polynomial population_count pow real reduce_precision
    regularized_incomplete_beta rem round rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor zeta
    """.split()  # noqa: SIM905
)


def elementwise(ctx: Context, eqn: Any, *values: Any) -> tuple[str, Any]:
    """The primitive on storage; the result lies as the first operand of the result's shape."""
    aval = eqn.outvars[0].aval
    if aval.ndim == 0:
        return RULE, _bind(eqn, [v.plain(ctx, value) for value in values])
    if (spread := _over_sources(ctx, eqn, values)) is not None:
        return VIEW, spread
    values = tuple(_grown(ctx, value, aval.shape) for value in values)
    layout = next((x.layout for x in values if isinstance(x, GridArray)), None)
    if layout is None:
        like = next(value for value in values if v.layout_of(value) is not None)
        layout = ctx.choose(aval.shape, aval.dtype, like)
    operands = [v.operand(ctx, value, layout) for value in values]
    shape = ctx.device.storage_shape(layout)
    avals = [atom.aval for atom in eqn.invars]
    arrays = [_full(a, shape, aval) for (a, _), aval in zip(operands, avals, strict=True)]
    out = _bind(eqn, arrays)
    facts, kinds = [f for _, f in operands], [a.dtype for a in arrays]
    oob = known(eqn, facts, kinds, partial(has_padding, layout, ctx.device))
    return RULE, GridArray(out, layout.with_dtype(aval.dtype, oob), ctx.device)


def barrier(ctx: Context, eqn: Any, *values: Any) -> tuple[str, Any]:
    """`lax.optimization_barrier`: each value as it lies, and what is known of it."""
    values = tuple(v.settled(ctx, values))
    grid = [isinstance(x, GridArray) for x in values]
    bare = [x.storage if yes else x for x, yes in zip(values, grid, strict=True)]
    outs = zip(eqn.primitive.bind(*bare), values, grid, strict=True)
    return RULE, [GridArray(a, x.layout, x.device) if yes else a for a, x, yes in outs]


def key(ctx: Context, eqn: Any, *values: Any) -> tuple[str, Any]:
    """Random keys, which every device has, made of arrays on the grid."""
    return RULE, _bind(eqn, [v.plain(ctx, value) for value in values])


def _bind(eqn: Any, arrays: Sequence[Any]) -> Any:
    out = eqn.primitive.bind(*arrays, **eqn.params)
    return out[0] if eqn.primitive.multiple_results else out


def _grown(ctx: Context, value: Any, shape: tuple[int, ...]) -> Any:
    """The value broadcast where it has extents of 1; scalars stay scalars."""
    if np.ndim(value) == 0 or tuple(value.shape) == tuple(shape):
        return value
    return v.broadcast(ctx, value, tuple(shape), range(len(shape)))


def _full(array: Any, shape: tuple[int, ...], aval: Any) -> Any:
    """The array in the shape; a number stays one where the primitive takes it beside arrays."""
    if aval.ndim == 0:
        return array if isinstance(array, jax.Array) else np.asarray(array, aval.dtype)
    return array if array.shape == shape else jnp.broadcast_to(array, shape)


def _over_sources(ctx: Context, eqn: Any, values: Sequence[Any]) -> Any:
    """A spread result, when all operands are scalars or spread alike: work on the small sources."""
    wide = [x for x in values if np.ndim(x) > 0]
    spread = [x for x in wide if isinstance(x, Spread) and x.source.ndim > 0]
    if not spread or any(not isinstance(x, Spread) for x in wide):
        return None
    first = spread[0]
    if any((s.dims, s.shape) != (first.dims, first.shape) for s in spread):
        return None
    small = _Small(eqn, tuple(first.source.shape))
    shape = tuple(eqn.outvars[0].aval.shape)
    sources = [_source(x, small.shape) for x in values]
    if first.shape != shape or all(v.layout_of(s) is None for s in sources):
        return None
    home = next((s.home for s in spread if s.home is not None), None)
    if home is not None:
        home = home.with_dtype(eqn.outvars[0].aval.dtype)
    return Spread(elementwise(ctx, small, *sources)[1], first.dims, first.shape, home)


def _source(value: Any, shape: tuple[int, ...]) -> Any:
    """What a value spreads; a number is spread to `shape`."""
    if not isinstance(value, Spread):
        return value
    return value.source if value.source.ndim else Spread(value.source, (), shape)


class _Small:
    """An elementwise equation seen with another shape."""

    def __init__(self, eqn: Any, shape: tuple[int, ...]) -> None:
        self.primitive, self.params, self.shape = eqn.primitive, eqn.params, shape
        aval = jax.ShapeDtypeStruct(shape, eqn.outvars[0].aval.dtype)
        self.invars, self.outvars = eqn.invars, [_Var(aval)]


class _Var:
    def __init__(self, aval: Any) -> None:
        self.aval = aval


def known(
    eqn: Any, facts: Sequence[Any], kinds: Sequence[Any], padded: Callable[[], bool]
) -> dtypes.Scalar | None:
    """The primitive of what is known of its operands' padding; None if it needs more.

    Where nothing is padded, no program is compiled to know more than the host does.
    """
    name = eqn.primitive.name
    if name == "select_n" and facts[0] is not None and int(facts[0]) in range(len(facts) - 1):
        return facts[1 + int(facts[0])]
    if any(f is None for f in facts):
        return None
    if name == "integer_pow" and eqn.params["y"] > 0 and repr(facts[0]) in ("0.0", "1.0", "0", "1"):
        return facts[0]
    params = tuple(sorted(eqn.params.items()))
    key = (eqn.primitive, params, tuple(map(repr, facts)), tuple(map(str, kinds)))
    try:
        return _known(key, tuple(facts), padded())
    except TypeError:  # a parameter that can't be hashed
        return None


@lru_cache(maxsize=4096)
def _known(key: Any, facts: Any, padded: bool) -> dtypes.Scalar | None:
    # The key spells facts out: 1, 1.0 and True are equal, and so are 0.0 and -0.0.
    primitive, params, _, kinds = key
    args = [np.asarray(f).astype(jnp.dtype(kind)) for f, kind in zip(facts, kinds, strict=True)]
    if (out := on_host(primitive.name, args)) is not None:
        pass
    elif (point := EXACT.get((primitive.name, *map(str, facts)))) is not None:
        return dtypes.oob_value(point, args[0].dtype)
    elif padded:
        with jax.ensure_compile_time_eval():
            out = primitive.bind(*map(jnp.asarray, args), **dict(params))
            out = out[0] if primitive.multiple_results else out
    else:
        return None
    value = np.asarray(out).item()
    return dtypes.NAN if value != value else value


def on_host(name: str, args: Sequence[Any]) -> Any:
    """The primitive of numbers, NumPy scalars or 0-d arrays, where NumPy makes the same bits."""
    if (fn := _ON_HOST.get(name)) is None:
        return None
    with np.errstate(all="ignore"):
        return fn(*args)


def _quotient(a: Any, b: Any) -> Any:
    """Of 0, or by a power of two; other divisions are rounded as the backend does it."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return None
    if abs(frexp(float(b))[0]) != 0.5 and (a or not 0 < abs(float(b)) < inf):
        return None
    out = np.divide(a, b)
    return out if not a or abs(out) >= jnp.finfo(a.dtype).tiny else None


# What NumPy computes to the same bit, without compiling a program for one number.
_ON_HOST: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply},
    **{"neg": np.negative, "max": np.maximum, "min": np.minimum, "copy": np.positive},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal, "stop_gradient": np.positive, "div": _quotient},
    **{"not": np.invert, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
}
# Points where functions of real numbers are exact on every backend: by name and argument.
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
}
