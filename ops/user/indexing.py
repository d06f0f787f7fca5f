"""Indices of `GridArray`s outside of `jax.jit`: integers are operands, and masks are known.

So one compiled program serves all integers. What a mask selects has a shape of its own, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.logical_jaxpr import is_traced
from gridlayout.ops.user.lifted import Lifted, is_operand, lifted, with_static

_INT32 = np.iinfo(np.int32)


def at_index(fn: Callable[..., Any], x: Any, index: Any, *values: Any) -> Any:
    """Return `fn(x, index, *values)` on the grid, for a `fn` that indexes `x`."""
    if isinstance(x, jax.core.Tracer) or is_traced():
        return lifted(fn)(x, index, *values)  # a program of its own anyway: it gets a slice
    items = index if isinstance(index, tuple) else (index,)
    masks = {k: np.asarray(item) for k, item in enumerate(items) if _is_mask(item)}
    rest = tuple(None if k in masks else _as_operand(item) for k, item in enumerate(items))
    if not masks:
        return _call(fn, x, rest, *values)

    def masked(x: Any, rest: Any, *values: Any) -> Any:
        given = tuple(masks.get(k, item) for k, item in enumerate(rest))
        return fn(x, given, *values)

    return Lifted(masked)(x, rest, *values)


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    """Call a lifted function, of which Python's integers are operands too."""
    leaves, structure = jax.tree.flatten((args, {}))
    return with_static(fn, leaves, structure, lambda leaf: is_operand(leaf) or _is_int(leaf))


def _as_operand(item: Any) -> Any:
    """Return an integer of an index as one that is an operand; other items as they are."""
    return np.int32(item) if _is_int(item) and _INT32.min <= item <= _INT32.max else item


def _is_int(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _is_mask(item: Any) -> bool:
    """Whether an item of an index is an array of bools, whose values are known."""
    if not isinstance(item, (GridArray, jax.Array, np.ndarray)) or item.dtype != np.bool_:
        return False
    return not isinstance(item, jax.core.Tracer) and item.ndim > 0
