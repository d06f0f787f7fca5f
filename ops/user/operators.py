"""Lifting `jax.numpy` and `jax.nn`; the operators and methods of `GridArray` made by it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import give
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid


class Lifted:
    """A library function on the grid: arrays and floats are operands, the rest is static.

    So `axis=-1`, dtypes and shapes stay what they are, as under `jax.jit(static_argnames=...)`.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        functools.update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<{getattr(self.fn, '__name__', self.fn)} on the grid>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result on the grid."""
        return self._bound(args, kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """What a call does, primitive by primitive; see `gl.on_grid`."""
        return self._bound(args, kwargs, report=True)

    def _bound(self, args: Any, kwargs: Any, report: bool = False) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        fixed = tuple((i, _Fixed(leaf)) for i, leaf in enumerate(leaves) if not _is_operand(leaf))
        operands = [leaf for leaf in leaves if _is_operand(leaf)]
        grid = _with_static(self.fn, structure, fixed)
        return grid.report(*operands) if report else grid(*operands)


class _Fixed:
    """A static argument; 1 and True differ, and so do 1 and 1.0."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Fixed)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


def _is_operand(leaf: Any) -> bool:
    return isinstance(leaf, (GridArray, jax.Array, float, complex)) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    )


@functools.lru_cache(maxsize=512)
def _with_static(fn: Any, structure: Any, fixed: Any) -> OnGrid:
    def call(*operands: Any) -> Any:
        leaves = list(operands)
        for i, leaf in fixed:
            leaves.insert(i, leaf.value)
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return fn(*args, **kwargs)

    call.__name__ = getattr(fn, "__name__", "call")
    return on_grid(call)


@functools.lru_cache(maxsize=4096)
def lifted(fn: Callable[..., Any]) -> Lifted:
    """The one lifted form of a function."""
    return Lifted(fn)


def lifted_attribute(module: Any, name: str) -> Any:
    """`module.name`, lifted if it is a function; types and constants as they are."""
    value = getattr(module, name)
    return (
        lifted(value)
        if callable(value)
        and not isinstance(value, type)
        and not (hasattr(value, "dtype") and not isinstance(value, jnp.ufunc))
        else value
    )


# -- operators -----------------------------------------------------------------------------------

_BINARY: dict[str, Callable[..., Any]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "truediv": jnp.true_divide,
    "floordiv": jnp.floor_divide,
    "mod": jnp.remainder,
    "matmul": jnp.matmul,
    "and": jnp.bitwise_and,
    "or": jnp.bitwise_or,
    "xor": jnp.bitwise_xor,
    "lshift": jnp.left_shift,
    "rshift": jnp.right_shift,
    "pow": jnp.power,
    "divmod": jnp.divmod,
}
_COMPARISON: dict[str, Callable[..., Any]] = {
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
}
# NumPy's names of the same.
_OPERATORS = {
    getattr(np, fn.__name__).__name__ for fn in (*_BINARY.values(), *_COMPARISON.values())
}
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": jnp.negative,
    "pos": jnp.positive,
    "abs": jnp.abs,
    "invert": jnp.invert,
}
_METHODS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "astype",
    "clip",
    "conj",
    "cumprod",
    "cumsum",
    "dot",
    "flatten",
    "max",
    "mean",
    "min",
    "prod",
    "ravel",
    "repeat",
    "reshape",
    "round",
    "sort",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "trace",
    "transpose",
    "var",
]


def _is_value(x: Any) -> bool:
    return isinstance(x, (GridArray, jax.Array, bool, int, float, complex)) or hasattr(x, "dtype")


def _binary(fn: Callable[..., Any], swap: bool) -> Callable[[GridArray, Any], Any]:
    of_two = on_grid(fn).__call__

    def operator(self: GridArray, other: Any) -> Any:
        if type(other) is GridArray and not swap:
            return of_two(self, other)
        if not _is_value(other):
            return NotImplemented
        return lifted(fn)(other, self) if swap else lifted(fn)(self, other)

    return operator


def _unary(fn: Callable[..., Any]) -> Callable[[GridArray], Any]:
    def operator(self: GridArray) -> Any:
        return lifted(fn)(self)

    return operator


def _method(name: str) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    call.__name__ = name

    def method(self: GridArray, *args: Any, **kwargs: Any) -> Any:
        return lifted(call)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`jax.Array.{name}` on the grid."
    return method


def _getitem(x: Any, index: Any) -> Any:
    return x[index]


def _attribute(name: str) -> property:
    def get(x: Any) -> Any:
        return getattr(x, name)

    get.__name__ = name
    return property(lambda self: lifted(get)(self), doc=f"`jax.Array.{name}` on the grid.")


def _array_ufunc(self: GridArray, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
    """NumPy on the left of an operator hands over to the grid; its other functions are refused."""
    name = ufunc.__name__
    if method == "__call__" and not named and name in _OPERATORS:
        return lifted(getattr(jnp, name))(*inputs)
    called = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
    place = " into a NumPy array" if "out" in named else ""
    instead = f"gl.numpy.{name}" if hasattr(jnp, name) else "gl.numpy"
    raise LayoutError(
        f"{called}{place} does not take {self!r}: {instead} computes on the grid, and so does "
        "gl.on_grid(fn) of a whole function; np.asarray(x) is a NumPy array"
    )


def _set(name: str, attribute: Any) -> None:
    """An attribute of GridArrays, and of JAX's tracers of them."""
    setattr(GridArray, name, attribute)
    give(name, attribute)


for _name, _fn in {**_BINARY, **_COMPARISON}.items():
    _set(f"__{_name}__", _binary(_fn, swap=False))
for _name, _fn in _BINARY.items():
    _set(f"__r{_name}__", _binary(_fn, swap=True))
for _name, _fn in _UNARY.items():
    _set(f"__{_name}__", _unary(_fn))
for _name in _METHODS:
    _set(_name, _method(_name))
for _name in ("T", "mT", "real", "imag"):
    _set(_name, _attribute(_name))
_set("__getitem__", lambda self, index: lifted(_getitem)(self, index))
_set("__iter__", lambda self: (self[i] for i in range(len(self))))
for _name in ("len", "bool", "int", "float", "complex", "index"):
    give(f"__{_name}__", getattr(GridArray, f"__{_name}__"))
setattr(GridArray, "__array_ufunc__", _array_ufunc)  # noqa: B010
setattr(GridArray, "__hash__", None)  # noqa: B010  # == is elementwise, as for jax.Array
