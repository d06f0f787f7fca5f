"""Indices of `GridArray`s outside of `jax.jit`: integers are operands, and masks are known.

So one compiled program serves all integers, and all starts of slices of one size. What a mask
selects has a shape of its own, as in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.logical_jaxpr import is_traced
from gridlayout.ops.user.lifted import Lifted, is_int, is_operand, lifted, with_static
from gridlayout.sharding.limits import LIMITS

_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Access:
    """What a call does with the elements at an index: `fn(x, index, *values)`.

    updates: whether it returns the array with other elements there, or the elements. overwrites:
    whether what is there before does not matter.
    """

    fn: Callable[..., Any]
    updates: bool = False
    overwrites: bool = False


def at_index(access: Access, x: Any, index: Any, *values: Any) -> Any:
    """Return `access.fn(x, index, *values)` on the grid."""
    fn = access.fn
    if isinstance(x, jax.core.Tracer) or is_traced():
        return lifted(fn)(x, index, *values)  # a program of its own anyway: it gets a slice
    items = index if isinstance(index, tuple) else (index,)
    masks = {k: np.asarray(item) for k, item in enumerate(items) if _is_mask(item)}
    if not masks:
        if isinstance(x, GridArray) and (windows := _windows(x, items, access.updates)):
            return _call(_through_windows, access, x, windows, *values)
        return _call(fn, x, tuple(map(_as_operand, items)), *values)
    rest = tuple(None if k in masks else _as_operand(item) for k, item in enumerate(items))

    def masked(x: Any, rest: Any, *values: Any) -> Any:
        given = tuple(masks.get(k, item) for k, item in enumerate(rest))
        return fn(x, given, *values)

    return Lifted(masked)(x, rest, *values)


def item(x: Any, index: Any) -> Any:
    """Return `x[index]` on the grid."""
    return at_index(_ITEM, x, index)


def _item(x: Any, index: Any) -> Any:
    return x[index]


_ITEM = Access(_item)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Window:
    """A slice of an index: what it spans of a dim from a start, and its step in that.

    span, step: static. start: the lowest position of the span, which is an operand.
    """

    start: Any
    span: int = field(metadata={"static": True})
    step: int = field(metadata={"static": True})

    @property
    def inside(self) -> slice:
        """The slice of the span that selects the elements."""
        return slice(None, None, self.step)


def _through_windows(access: Access, x: Any, items: Sequence[Any], *values: Any) -> Any:
    """Return what an access does with the elements at an index, of which some items are windows."""
    starts, spans, inside = [0] * x.ndim, list(x.shape), list(items)
    for k, d in enumerate(_dims(items)):
        if isinstance(items[k], _Window):
            starts[d], spans[d], inside[k] = items[k].start, items[k].span, items[k].inside
    is_all = all(isinstance(each, slice) and each.step in (None, 1, -1) for each in inside)
    if access.overwrites and is_all:
        part = jnp.zeros(spans, x.dtype)
    else:
        part = lax.dynamic_slice(x, starts, spans)
    found = access.fn(part, tuple(inside), *values)
    return lax.dynamic_update_slice(x, found, starts) if access.updates else found


def _dims(items: Sequence[Any]) -> Iterator[int]:
    """Yield the dim that each item of an index without `...` is of; of `None`, the next one."""
    d = 0
    for each in items:
        yield d
        d += each is not None


def _windows(x: GridArray, items: Sequence[Any], updates: bool) -> tuple[Any, ...] | None:
    """Return an index with windows for its slices of parts of dims; None for one that has none.

    What a window selects is gathered by all devices that keep a part of it, wherever it starts. So
    large slices remain slices.
    """
    if not isinstance(x.layout, GridLayout) or not all(map(_is_of_a_dim, items)):
        return None
    count = sum(each is not None and each is not ... for each in items)
    at = [k for k, each in enumerate(items) if each is ...]
    if len(at) > 1 or count > x.ndim:
        return None
    full, first = list(items), at[0] if at else len(items)
    full[first : first + 1] = [slice(None)] * (x.ndim - count)
    made, spans = [], list(x.shape)
    for each, d in zip(full, _dims(full), strict=True):
        made.append(_window(each, x.shape[d]) if isinstance(each, slice) else _as_operand(each))
        if isinstance(made[-1], _Window):
            spans[d] = made[-1].span
    is_small = dtypes.nbytes(tuple(spans), x.dtype) <= LIMITS.small_array_bytes
    return tuple(made) if is_small and spans != list(x.shape) and 0 not in spans else None


def _window(each: slice, n: int) -> _Window | slice:
    """Return a slice of a dim as a window, if it leaves some of the dim out at an end."""
    along = range(*each.indices(n))
    if not along or along == range(n):
        return each
    low, high = min(along[0], along[-1]), max(along[0], along[-1])
    span = high - low + 1
    is_part = span < n and low <= _INT32.max
    return _Window(np.int32(low), span, along.step if len(along) > 1 else 1) if is_part else each


def _is_of_a_dim(each: Any) -> bool:
    """Whether an item of an index is `...`, None, integers, or a slice with known bounds."""
    if isinstance(each, slice):
        return all(x is None or is_int(x) for x in (each.start, each.stop, each.step))
    return each is ... or each is None or is_int(each) or _is_integers(each)


def _is_integers(each: Any) -> bool:
    return isinstance(each, (GridArray, jax.Array, np.ndarray, np.integer)) and bool(
        jnp.issubdtype(each.dtype, jnp.integer)
    )


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    """Call a lifted function, of which Python's integers are operands too."""
    leaves, structure = jax.tree.flatten((args, {}))
    which = [is_operand(leaf) or is_int(leaf) for leaf in leaves]
    return with_static(fn, leaves, structure, which)


def _as_operand(item: Any) -> Any:
    """Return an integer of an index as one that is an operand; other items as they are."""
    return np.int32(item) if is_int(item) and _INT32.min <= item <= _INT32.max else item


def _is_mask(item: Any) -> bool:
    """Whether an item of an index is an array of bools, whose values are known."""
    if not isinstance(item, (GridArray, jax.Array, np.ndarray)) or item.dtype != np.bool_:
        return False
    return not isinstance(item, jax.core.Tracer) and item.ndim > 0
