"""Library functions lifted to the grid.

Arrays, floats and complex numbers are operands; the rest is static.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.caching import cached
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid


class Lifted:
    """A library function on the grid.

    Arrays, floats and complex numbers are operands; the rest is static. So `axis=-1`, dtypes and
    shapes stay what they are, as under `jax.jit(static_argnames=...)`.
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
        fixed = tuple((i, _Fixed(leaf)) for i, leaf in enumerate(leaves) if not _is_operand(leaf))
        operands = [leaf for leaf in leaves if _is_operand(leaf)]
        grid = _with_static(self.fn, structure, fixed)
        return grid.report(*operands) if report else grid(*operands)


class _Fixed:
    """A static argument; 1 differs from True and from 1.0."""

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


@cached
def _with_static(fn: Any, structure: Any, fixed: Any) -> OnGrid:
    def call(*operands: Any) -> Any:
        leaves = list(operands)
        for i, leaf in fixed:
            leaves.insert(i, leaf.value)
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return fn(*args, **kwargs)

    call.__name__ = getattr(fn, "__name__", "call")
    return on_grid(call)


@cached
def lifted(fn: Callable[..., Any]) -> Lifted:
    """Return the lifted form of a function, one object per function."""
    return Lifted(fn)


def lifted_attribute(module: Any, name: str) -> Any:
    """Return `module.name`: lifted if it is a function; types, constants and submodules as is."""
    value = getattr(module, name)
    return (
        lifted(value)
        if callable(value)
        and not isinstance(value, type)
        and not (hasattr(value, "dtype") and not isinstance(value, jnp.ufunc))
        else value
    )
