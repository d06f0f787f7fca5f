"""Library functions lifted to the grid.

Arrays, floats and complex numbers are operands, and integers where a function computes with them;
the rest is static.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.caching import cached
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.logical_jaxpr import is_traced
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
from gridlayout.ops.interpret.static import Static, bare
from gridlayout.ops.trees.arrays import put
from gridlayout.ops.trees.leaves import is_grid


class Lifted:
    """A library function on the grid.

    Arrays, floats and complex numbers are operands; the rest is static. So `axis=-1`, dtypes and
    shapes stay what they are, as under `jax.jit(static_argnames=...)`. Of elementwise functions,
    integers are operands too, so that one program serves all.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        functools.update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<{getattr(self.fn, '__name__', self.fn)} on the grid>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on the grid."""
        return self._bound(args, kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """Return the report of a call, primitive by primitive; see `gl.on_grid`."""
        return self._bound(args, kwargs, report=True)

    def _bound(self, args: Any, kwargs: Any, report: bool = False) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        if not report and getattr(self.fn, "__name__", "") in _OF_TYPES:
            return _of_types(self.fn, leaves, structure)
        if not report and _is_of_data(self.fn, args, kwargs, leaves):
            return _of_data(self.fn, leaves, structure)
        return with_static(self.fn, leaves, structure, _which(self.fn, args, leaves), report)


class _Fixed(Static):
    """A static argument, also one that can't be hashed, such as a slice on Python 3.11."""

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


def is_operand(leaf: Any) -> bool:
    """Return whether a leaf is an operand of any function, which Python's integers are not."""
    return isinstance(leaf, (GridArray, jax.Array, float, complex)) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    )


def is_int(leaf: Any) -> bool:
    """Return whether an argument's leaf is an integer of Python."""
    return isinstance(leaf, int) and not isinstance(leaf, bool)


def _which(fn: Any, args: Any, leaves: Sequence[Any]) -> list[bool]:
    """Return which leaves of a call are operands.

    JAX's traces are made once: integers in them remain known, and with them what padding holds.
    """
    name, values = getattr(fn, "__name__", ""), 0
    if not is_traced():
        if name == "power":  # an integer exponent states which products there are
            values = len(jax.tree.leaves(args[:1]))
        elif name in ("clip", "where") or isinstance(getattr(np, name, None), np.ufunc):
            values = len(jax.tree.leaves(args))
    return [is_operand(x) or (k < values and is_int(x)) for k, x in enumerate(leaves)]


def with_static(
    fn: Any, leaves: Sequence[Any], structure: Any, which: Sequence[bool], report: bool = False
) -> Any:
    """Return the result or the report of a call on the grid.

    which: the leaves that are operands; the others are static.
    """
    pairs = enumerate(zip(leaves, which, strict=True))
    fixed = tuple((i, _Fixed(leaf)) for i, (leaf, yes) in pairs if not yes)
    operands = [leaf for leaf, yes in zip(leaves, which, strict=True) if yes]
    grid = _with_static(fn, structure, fixed)
    if report:
        return grid.report(*operands)
    found = grid(*operands)
    return found if isinstance(found, (GridArray, jax.Array)) else jax.tree.map(bare, found)


# Functions of `jax.numpy` whose results have a shape that depends on the data, unless a keyword
# states it: `size=`, or the one that is named here; and those that print the data.
_OF_DATA = {
    **dict.fromkeys(("argwhere", "array_repr", "array_str", "compress", "extract"), "size"),
    **dict.fromkeys(("flatnonzero", "intersect1d", "nonzero", "setdiff1d", "setxor1d"), "size"),
    **dict.fromkeys(("trim_zeros", "union1d", "unique", "unique_all", "unique_counts"), "size"),
    **dict.fromkeys(("unique_inverse", "unique_values"), "size"),
    **{"bincount": "length", "roots": "strip_zeros"},
}

# Functions whose results are no arrays: they depend on shapes and element types alone.
_OF_TYPES = {
    *("broadcast_shapes", "can_cast", "einsum_path", "get_printoptions", "iscomplexobj", "isdtype"),
    *("isrealobj", "isscalar", "issubdtype", "iterable", "ndim", "printoptions", "promote_types"),
    *("result_type", "set_printoptions", "shape", "size"),
}


def _is_of_data(fn: Any, args: Any, kwargs: Any, leaves: Sequence[Any]) -> bool:
    """Whether the shape of a call's result depends on data, which is known outside of JAX's traces.

    As in JAX, it can't be called inside of them.
    """
    name = getattr(fn, "__name__", "")
    if name == "where":
        if len(args) > 1 or not {"x", "y"}.isdisjoint(kwargs):
            return False
    elif name not in _OF_DATA:
        return False
    traced = is_traced() or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    stated = kwargs.get(_OF_DATA.get(name, "size"))
    return stated is None and not traced and any(map(is_grid, leaves))


def _of_types(fn: Any, leaves: Sequence[Any], structure: Any) -> Any:
    """Return the result of a function that reads no data, such as `shape`."""
    grids = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves if is_grid(leaf)]
    found = []

    def asked(*abstract: Any) -> None:
        ready = iter(abstract)
        held = [next(ready) if is_grid(leaf) else leaf for leaf in leaves]
        args, kwargs = jax.tree.unflatten(structure, held)
        found.append(fn(*args, **kwargs))

    jax.eval_shape(asked, *grids)
    return found[0]


def _of_data(fn: Any, leaves: Sequence[Any], structure: Any) -> Any:
    """Return the result of a call on logical arrays, laid out as `gl.put` does."""
    device = next(leaf.device for leaf in leaves if is_grid(leaf))
    logical = [leaf.to_logical() if is_grid(leaf) else leaf for leaf in leaves]
    args, kwargs = jax.tree.unflatten(structure, logical)
    return put(fn(*args, **kwargs), device)


@cached
def _with_static(fn: Any, structure: Any, fixed: Any) -> OnGrid:
    def call(*operands: Any) -> Any:
        leaves = list(operands)
        for i, leaf in fixed:
            leaves.insert(i, leaf.value)
        args, kwargs = jax.tree.unflatten(structure, leaves)
        # What is no array for JAX, such as the `lower` of `cho_factor`, is none here.
        return jax.tree.map(lambda x: Static(x) if type(x) is bool else x, fn(*args, **kwargs))

    call.__name__ = getattr(fn, "__name__", "call")
    return on_grid(call)


@cached
def lifted(fn: Callable[..., Any]) -> Lifted:
    """Return the lifted form of a function, one object per function."""
    return Lifted(fn)


class Submodule(ModuleType):
    """A submodule of a lifted library, such as `gl.numpy.linalg`; its functions are lifted."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__.replace("jax.", "gridlayout.", 1), module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lifted_attribute(self._module, name)

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __reduce__(self) -> tuple[Any, ...]:
        return submodule, (self._module.__name__,)


@cached
def submodule(name: str) -> Submodule:
    """Return the lifted form of a module of JAX, one object per module."""
    return Submodule(import_module(name))


# They take no arrays: they make functions that draw random numbers.
_AS_IS = ("jax.nn.initializers",)


def lifted_attribute(module: Any, name: str) -> Any:
    """Return `module.name`: functions and submodules lifted, types and constants as they are."""
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return value if value.__name__ in _AS_IS else submodule(value.__name__)
    return (
        lifted(value)
        if callable(value)
        and not isinstance(value, type)
        and not (hasattr(value, "dtype") and not isinstance(value, jnp.ufunc))
        else value
    )
