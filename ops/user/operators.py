"""The operators and methods of `GridArray`: those of `jax.numpy`, lifted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import give
from gridlayout.ops.interpret.on_grid import on_grid
from gridlayout.ops.user.indexing import item
from gridlayout.ops.user.lifted import lifted
from gridlayout.ops.user.updates import At

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
# NumPy's names of these operators.
_OPERATORS = {
    getattr(np, fn.__name__).__name__ for fn in (*_BINARY.values(), *_COMPARISON.values())
}
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": jnp.negative,
    "pos": jnp.positive,
    "abs": jnp.abs,
    "invert": jnp.invert,
}
_METHODS = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "clip"),
    *("compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten"),
    *("max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "reshape", "round"),
    *("searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose"),
    *("var", "view"),
)


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


def _of_host(name: str) -> Callable[..., Any]:
    def method(self: GridArray, *args: Any) -> Any:
        return getattr(np.asarray(self), name)(*args)

    method.__name__ = name
    method.__doc__ = f"`numpy.ndarray.{name}` of the elements, on the host."
    return method


def _attribute(name: str) -> property:
    def get(x: Any) -> Any:
        return getattr(x, name)

    get.__name__ = name
    return property(lambda self: lifted(get)(self), doc=f"`jax.Array.{name}` on the grid.")


def _array_ufunc(self: GridArray, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
    """Run operators with a NumPy array on the left; refuse other functions of NumPy."""
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


def _set_item(self: GridArray, index: Any, value: Any) -> None:
    """Refuse to change an array in place, as JAX's arrays do."""
    raise TypeError(
        f"{self!r} is immutable, as arrays of JAX are: instead of x[index] = y, write "
        "x = x.at[index].set(y)"
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
for _name in ("item", "tolist"):
    setattr(GridArray, _name, _of_host(_name))
for _name in ("T", "mT", "real", "imag"):
    _set(_name, _attribute(_name))
_set("at", property(At, doc="`x.at[index].set(values)` and the other updates of `jnp.ndarray.at`."))
_set("__getitem__", item)
setattr(GridArray, "__setitem__", _set_item)  # noqa: B010
_set("__iter__", lambda self: (self[i] for i in range(len(self))))
for _name in ("len", "bool", "int", "float", "complex", "index"):
    give(f"__{_name}__", getattr(GridArray, f"__{_name}__"))
setattr(GridArray, "__array_ufunc__", _array_ufunc)  # noqa: B010
setattr(GridArray, "__hash__", None)  # noqa: B010  # == is elementwise, as for jax.Array
