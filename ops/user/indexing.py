"""Indices of `GridArray`s outside of `jax.jit`: integers are operands, and masks are known.

So one compiled program serves all integers, and all starts of slices of one size. What a mask
selects has a shape of its own, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.logical_jaxpr import is_traced
from gridlayout.ops.user.lifted import Lifted, is_operand, lifted, with_static
from gridlayout.sharding.limits import LIMITS

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Window:
    """A slice of an index with a size that is static, and a start that is an operand."""

    start: Any
    size: int = field(metadata={"static": True})


def item(x: Any, index: Any) -> Any:
    """Return `x[index]` on the grid."""
    if isinstance(x, GridArray) and not is_traced() and (windows := _windows(x, index)):
        return _call(_sliced, x, windows)
    return at_index(_item, x, index)


def _item(x: Any, index: Any) -> Any:
    return x[index]


def _sliced(x: Any, items: tuple[Any, ...]) -> Any:
    """Return the elements at an index of windows, integers and slices, one of each dim."""
    starts = [each.start if isinstance(each, _Window) else 0 for each in items]
    pairs = zip(items, x.shape, strict=True)
    x = lax.dynamic_slice(x, starts, [w.size if isinstance(w, _Window) else n for w, n in pairs])
    return x[tuple(slice(None) if isinstance(each, _Window) else each for each in items)]


def _windows(x: GridArray, index: Any) -> tuple[Any, ...] | None:
    """Return an index with windows for its short slices; None for one that has none.

    What a window selects is gathered by all devices that keep a part of it, wherever it starts. So
    slices of more than half of a dim, of which devices have most already, and large ones remain
    slices.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    if not isinstance(x.layout, GridLayout) or x.layout.tile or not all(map(_is_of_a_dim, items)):
        return None
    if items.count(...) > 1 or len(items) - items.count(...) > x.ndim:
        return None
    at = items.index(...) if ... in items else len(items)
    items[at : at + 1] = [slice(None)] * (x.ndim - len(items) + items.count(...))
    made = [_window(each, n) for each, n in zip(items, x.shape, strict=True)]
    some = [each for each in made if isinstance(each, _Window)]
    sizes = [w.size if isinstance(w, _Window) else n for w, n in zip(made, x.shape, strict=True)]
    if not some or dtypes.nbytes(tuple(sizes), x.dtype) > LIMITS.small_array_bytes:
        return None
    return tuple(made) if prod(sizes) else None


def _window(each: Any, n: int) -> Any:
    """Return the item of a dim as a window, if it is a short slice; else as an operand."""
    if not isinstance(each, slice) or each.step not in (None, 1):
        return _as_operand(each)
    start, stop, _ = each.indices(n)
    size = stop - start
    return _Window(np.int32(start), size) if 0 < size <= n // 2 and start <= _INT32.max else each


def _is_of_a_dim(each: Any) -> bool:
    """Whether an item of an index is an integer, or a slice with known bounds, or `...`."""
    if isinstance(each, slice):
        return all(x is None or _is_int(x) for x in (each.start, each.stop, each.step))
    return each is ... or _is_int(each)


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
