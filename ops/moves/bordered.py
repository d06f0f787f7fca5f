"""Views read from a device's block and the border that it receives (`exchanges/borders.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.ops.moves.joined import joined
from gridlayout.sharding.collectives import all_gather, own_row, permute, slice_at
from gridlayout.sharding.exchanges.borders import OUTSIDE, Border, Segment, Slab

Array = NDArray[np.int64]
# The most slices that are joined to cut a view; else XLA's gather reads it.
_PIECES = 4


def receive(x: jax.Array, border: Border, dim: int, fill: Any = 0) -> jax.Array:
    """Return the buffer along `dim` that views are read from, for a device's block `x`.

    fill: what is there in place of slabs that a device does not receive.
    """
    if border.is_local:
        return x
    if border.gathered is not None:
        return all_gather(lax.slice_in_dim(x, *border.gathered, axis=dim), border.axes, dim)
    sent = [_slice(x, slab.starts, slab.width, border, dim) for slab in border.every_slab]
    found = zip(border.every_slab, _exchanged(sent, border, dim), strict=True)
    got = {id(slab): part for slab, part in found}
    if not border.segments:
        return _written(x, got, border, dim, fill)
    some = [_segment(x, got, segment, border, dim, fill) for segment in border.segments]
    return lax.concatenate(some, dim) if len(some) > 1 else some[0]


def fill_outside(x: jax.Array, mask: Any, dim: int, fill: Any) -> jax.Array:
    """Return an array with `fill` where the mask of its positions along `dim` is false."""
    inside = lax.broadcast_in_dim(jnp.asarray(mask), x.shape, (dim,))
    return lax.select(inside, x, lax.full(x.shape, fill, x.dtype))


def _exchanged(sent: list[jax.Array], border: Border, dim: int) -> list[jax.Array]:
    """Return the slabs that a device receives for those that it sends."""
    apart = len(border.slabs)
    pairs = [slab.pairs for slab in border.slabs]
    found = [permute(part, border.axes, way) for part, way in zip(sent, pairs, strict=False)]
    if not border.shared:
        return found
    some, first = sent[apart:], 0
    joined = lax.concatenate(some, dim) if len(some) > 1 else some[0]
    every = all_gather(joined, border.axes, dim)
    for slab in border.shared:
        senders = np.zeros(border.n, np.int64)
        for sender, receiver in slab.pairs:
            senders[receiver] = sender
        found.append(_slice(every, senders * border.sent_to_all + first, slab.width, border, dim))
        first += slab.width
    return found


def _segment(
    x: jax.Array,
    got: Mapping[int, jax.Array],
    segment: Segment,
    border: Border,
    dim: int,
    fill: Any,
) -> jax.Array:
    """Return a segment of the buffer: on each device, a part of one of the slabs."""
    found = None if segment.devices.all() else _filled(x, segment.width, dim, fill)
    for slab, devices, starts in segment.slabs:
        part = got.get(id(slab))
        at = starts if part is not None else starts + _at_receivers(slab)
        part = _slice(x if part is None else part, at, segment.width, border, dim)
        found = part if found is None else lax.select_n(_own(devices, border), found, part)
    assert found is not None
    return found


def _at_receivers(slab: Slab) -> Array:
    """Return the starts of a slab of the devices' own blocks; of others, the first one's."""
    mine = [d for d, _ in slab.pairs]
    found = np.full(len(slab.starts), slab.starts[mine[0]])
    found[mine] = slab.starts[mine]
    return found


def _filled(like: jax.Array, count: int, dim: int, fill: Any) -> jax.Array:
    shape = tuple(count if d == dim else n for d, n in enumerate(like.shape))
    return lax.full(shape, fill, like.dtype)


def _written(
    x: jax.Array, got: Mapping[int, jax.Array], border: Border, dim: int, fill: Any
) -> jax.Array:
    """Return the buffer, to which slabs are written one after another.

    What a device did not receive goes beyond the end.
    """
    slabs = *border.own, *border.every_slab
    found = _filled(x, border.length + max(slab.width for slab in slabs), dim, fill)
    for slab in slabs:
        part = got.get(id(slab))
        if part is None:
            part = _slice(x, _at_receivers(slab), slab.width, border, dim)
        at = np.full(border.n, border.length, np.int32)
        receivers = [d for _, d in slab.pairs]
        at[receivers] = slab.places[receivers]
        start = [_own(at, border) if d == dim else np.int32(0) for d in range(found.ndim)]
        found = lax.dynamic_update_slice(found, part, start, allow_negative_indices=False)
    return lax.slice_in_dim(found, 0, border.length, axis=dim)


def _own(table: NDArray[Any], border: Border) -> Any:
    """Return this device's entry of a table, one of NumPy's where all are equal."""
    if (table == table[0]).all():
        return table[0]
    return own_row(table, border.axes)


def _slice(x: jax.Array, starts: Array, width: int, border: Border, dim: int) -> jax.Array:
    """Return `width` positions from each device's start; devices' starts may be equal."""
    start = _own(starts.astype(np.int32), border)
    return slice_at(x, start if isinstance(start, jax.Array) else int(start), width, dim)


def cut(
    x: jax.Array, border: Border, number: int, dim: int, fill: Any = None
) -> tuple[jax.Array, Any]:
    """Return a view's positions along `dim` of the buffer, and a mask of those in the array.

    number: of the view in the border. fill: what is outside of the array, and what `receive` put in
    place of slabs that a device does not get. The mask is of rank 1; None if what is outside is
    `fill` already, or if nothing is.
    """
    offsets, mask = border.offsets[number], None
    step, starts = _progression(offsets)
    is_filled = step and fill is not None and _is_filled(border, offsets, step, starts)
    if (offsets == OUTSIDE).any() and not is_filled:
        mask = _own(offsets != OUTSIDE, border)
    if step:
        return _cut_run(x, border, offsets.shape[1], step, starts, dim, fill), mask
    some = []
    for a, b in _segments(offsets):
        step, starts = _progression(offsets[:, a:b])
        if not step:
            at = _own(np.maximum(offsets, 0).astype(np.int32), border)
            return jnp.take(x, at, dim, mode="clip"), mask
        some.append(_cut_run(x, border, b - a, step, starts, dim, fill))
    return joined(some, dim), mask


def _cut_run(
    x: jax.Array, border: Border, count: int, step: int, starts: Array, dim: int, fill: Any
) -> jax.Array:
    """Return `count` positions of the buffer, `step` apart, from the device's start on."""
    width = (count - 1) * abs(step) + 1
    firsts = starts if step > 0 else starts - (width - 1)
    low, high = max(-int(firsts.min()), 0), max(int(firsts.max()) + width - x.shape[dim], 0)
    if low or high:
        some = [(low, high, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
        x = lax.pad(x, jnp.asarray(0 if fill is None else fill, x.dtype), some)
    firsts = firsts + low
    if step > 1 and (firsts == firsts[0]).all():
        return lax.slice_in_dim(x, int(firsts[0]), int(firsts[0]) + width, step, dim)
    x = _slice(x, firsts, width, border, dim)
    x = lax.rev(x, (dim,)) if step < 0 else x
    return x if abs(step) == 1 else lax.slice_in_dim(x, 0, width, abs(step), dim)


def _segments(offsets: Array) -> list[tuple[int, int]]:
    """Return a division of positions in which each device's offsets have one step.

    All positions are one segment if there would be more than `_PIECES`.
    """
    count, found, start = offsets.shape[1], list[tuple[int, int]](), 0
    steps = np.diff(offsets, axis=1)
    while start < count:
        if len(found) == _PIECES:
            return [(0, count)]
        (changes,) = np.nonzero((steps[:, start:] != steps[:, start : start + 1]).any(0))
        end = start + 1 + int(changes[0]) if len(changes) else count
        end = start + 1 if end == start + 2 and end < count else end
        found.append((start, end))
        start = end
    return found


def _is_filled(border: Border, offsets: Array, step: int, starts: Array) -> bool:
    """Whether all positions outside of the array are outside of the buffer, or not received.

    step, starts: the `_progression` of the offsets.
    """
    at = starts[:, None] + step * np.arange(offsets.shape[1])
    inside = (at >= 0) & (at < border.length)
    there = np.take_along_axis(border.held, np.clip(at, 0, border.length - 1), 1) & inside
    return not (there & (offsets == OUTSIDE)).any()


def _progression(offsets: Array) -> tuple[int, Array]:
    """Return the step of offsets that are an arithmetic progression on each device, and the first.

    The step is 0 if they are not. Offsets outside of the array, and those that nothing is read
    from, may have any value.
    """
    n, count = offsets.shape
    inside = offsets >= 0
    places, step = np.arange(count), 0
    for d in range(n):
        (some,) = np.nonzero(inside[d])
        if len(some) > 1:
            step, rest = divmod(
                int(offsets[d, some[1]] - offsets[d, some[0]]), int(some[1] - some[0])
            )
            if rest:
                return 0, offsets[:, 0]
            break
    step = step or 1
    starts = np.zeros(n, np.int64)
    for d in range(n):
        (some,) = np.nonzero(inside[d])
        if len(some):
            starts[d] = offsets[d, some[0]] - step * some[0]
            if (offsets[d, some] != starts[d] + step * places[some]).any():
                return 0, starts
    idle = ~inside.any(1)
    if not idle.all():
        starts[idle] = starts[~idle][0]
    return step, starts
