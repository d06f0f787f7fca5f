"""Views read from a device's block and the border that it receives (`exchanges/borders.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.ops.moves.joined import FEW, is_on_cpus, joined
from gridlayout.sharding.collectives import all_gather, own_row, permute, slice_at
from gridlayout.sharding.exchanges.borders import OUTSIDE, UNREAD, Border, Segment, Slab

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
    # XLA for CPUs does not vectorise kernels that cut it out.
    is_stored = segment in border.cut_out and is_on_cpus()
    return lax.optimization_barrier(found) if is_stored else found


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


@dataclass(frozen=True)
class _Run:
    """`count` positions of the buffer, `step` apart, from each device's start on."""

    count: int
    step: int
    starts: Array

    @property
    def width(self) -> int:
        """The positions from the first to the last."""
        return (self.count - 1) * abs(self.step) + 1

    @property
    def firsts(self) -> Array:
        """The least position on each device."""
        return self.starts - (self.width - 1) * (self.step < 0)

    def outside(self, length: int) -> tuple[int, int]:
        """Return how far it reaches before and after a buffer, on any device."""
        return max(-int(self.firsts.min()), 0), max(int(self.firsts.max()) + self.width - length, 0)

    def taken(self, x: jax.Array, low: int, border: Border, dim: int) -> jax.Array:
        """Return the positions along `dim` of the buffer, which has `low` more before it."""
        firsts, width, step = self.firsts + low, self.width, abs(self.step)
        if self.step > 1 and (firsts == firsts[0]).all():
            return lax.slice_in_dim(x, int(firsts[0]), int(firsts[0]) + width, step, dim)
        x = _slice(x, firsts, width, border, dim)
        x = lax.rev(x, (dim,)) if self.step < 0 else x
        return x if step == 1 else lax.slice_in_dim(x, 0, width, step, dim)


def cut(
    x: jax.Array,
    borders: Mapping[int, Border],
    number: int,
    fill: Any = None,
    more: Mapping[int, int] | None = None,
) -> tuple[jax.Array, dict[int, Any]]:
    """Return a view's positions of the buffers along dims, and masks of those in the array.

    borders: of dims. number: of the view in the borders. fill: what is outside of the array, and
    what `receive` put in place of slabs that a device does not get. more: for dims, how many
    positions of any value follow; None for none, and a result that is stored if it is joined. A
    mask is of rank 1; a dim has none if what is outside is `fill` already, or if nothing is.

    XLA on CPUs finds elements one by one where it pads what it cut from padded arrays. So the
    buffers are padded once.
    """
    stored, more, masks = more is None, more or {}, dict[int, Any]()
    runs, pads = dict[int, list[_Run]](), [(0, more.get(d, 0), 0) for d in range(x.ndim)]
    for dim, border in borders.items():
        offsets, after = border.offsets[number], more.get(dim, 0)
        some = runs[dim] = _runs(offsets, after)
        is_filled = len(some) == 1 and fill is not None and _is_filled(border, offsets, some[0])
        if (offsets == OUTSIDE).any() and not is_filled:
            masks[dim] = _own(_longer(offsets, after) != OUTSIDE, border)
        reach = [run.outside(x.shape[dim]) for run in some] or [(0, 0)]
        low, high = (max(ends) for ends in zip(*reach, strict=True))
        pads[dim] = low, high, 0

    def taken(x: jax.Array, dim: int) -> jax.Array:
        border, some = borders[dim], runs[dim]
        if some:
            return joined([run.taken(x, pads[dim][0], border, dim) for run in some], dim, stored)
        at = np.maximum(_longer(border.offsets[number], more.get(dim, 0)), 0)
        return jnp.take(x, _own(at.astype(np.int32), border), dim, mode="clip")

    inside = [dim for dim in borders if not any(pads[dim])]
    for dim in inside:
        x = taken(x, dim)
    if any(map(any, pads)):
        x = lax.pad(x, jnp.asarray(0 if fill is None else fill, x.dtype), pads)
    for dim in sorted(borders.keys() - set(inside)):
        x = taken(x, dim)
    return x, masks


def is_in_one_kernel(border: Border, number: int) -> bool:
    """Whether `cut` makes a view's positions of the buffer in the kernel that reads them."""
    return 0 < len(_runs(border.offsets[number], 0)) <= FEW


def _longer(offsets: Array, more: int) -> Array:
    return np.pad(offsets, ((0, 0), (0, more)), constant_values=UNREAD)


def _runs(offsets: Array, more: int) -> list[_Run]:
    """Return positions, and `more` that follow, as runs; none if they are too many."""
    step, starts = _progression(offsets)
    if step:
        return [_Run(offsets.shape[1] + more, step, starts)]
    found = []
    for a, b in _segments(offsets):
        step, starts = _progression(offsets[:, a:b])
        if not step:
            return []
        found.append(_Run(b - a + (more if b == offsets.shape[1] else 0), step, starts))
    return found


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


def _is_filled(border: Border, offsets: Array, run: _Run) -> bool:
    """Whether all positions outside of the array are outside of the buffer, or not received.

    run: of the offsets.
    """
    at = run.starts[:, None] + run.step * np.arange(offsets.shape[1])
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
