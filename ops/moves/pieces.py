"""Pieces at work: what one device of a `shard_map` does to send, get and put its pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import index_of, once, permute, slice_at
from gridlayout.sharding.pieces import Deal, Pieces, Side, Slot
from gridlayout.sharding.windows import Window

Shape = tuple[int, ...]
Ints = NDArray[np.int64]
# XLA before JAX 0.12 makes one slice of a slice that it cuts out of another, and forgets that the
# inner one was moved into bounds: dynamic_slice(dynamic_slice(arange(9), [8], [2]), [0], [1]) is 8.
_FORGETS_BOUNDS = jax.__version_info__ < (0, 12)


# Of tables that have a row a device, by their bytes: this device's row.
_known: ContextVar[dict[bytes, Any] | None] = ContextVar("gridlayout_known", default=None)


@contextmanager
def looked_up_once(every: Sequence[Pieces]) -> Iterator[None]:
    """Inside, what the tables of several moves say of this device is looked up once, here, for all.

    To be entered directly in a `shard_map`, as `once` is.
    """
    if len(every) < 2:
        yield
        return
    sizes = every[0].device.fine.shape
    with once(sizes):
        tables = {k: table for pieces in every for k, table in _tables(pieces).items()}
        token = _known.set(_looked_up(tables, tuple(sizes)))
        try:
            yield
        finally:
            _known.reset(token)


def _tables(pieces: Pieces) -> dict[bytes, Ints]:
    """What a device looks up, where not all devices find the same."""
    if (schedule := pieces.schedule) is None:
        return {}
    if pieces.order is not None:
        every = [schedule.starts[1], pieces.order]
    else:
        slots = (*schedule.stays, *schedule.slots)
        every = [column[:, None] for slot in slots for table in slot.tables for column in table.T]
    return {table.tobytes(): table for table in every if (table != table[0]).any()}


def _looked_up(tables: dict[bytes, Ints], names: tuple[str, ...]) -> dict[bytes, Any]:
    """This device's row of each table, as a column; unsigned, so that none is asked for its sign.

    Of a table with one column the number.
    """
    if not tables:
        return {}
    joined = np.concatenate([*tables.values()], axis=1).astype(np.uint32)
    row = lax.reshape(slice_at(joined, index_of(names), 1, 0), (joined.shape[1], 1))
    parts = lax.split(row, [table.shape[1] for table in tables.values()])
    return {
        key: lax.squeeze(part, (0, 1)) if len(part) == 1 else part
        for key, part in zip(tables, parts, strict=True)
    }


def run_pieces(pieces: Pieces, x: LazyView, fill: Any) -> LazyView:
    """A device's part of the new layout, of its part of the old one; `fill` where nothing is."""
    return _Run(pieces, fill).run(x)


class _Run:
    def __init__(self, pieces: Pieces, fill: Any) -> None:
        assert pieces.schedule is not None
        self.pieces, self.schedule, self.fill = pieces, pieces.schedule, fill
        self.names = tuple(pieces.device.fine.axis_names)
        self.known = _known.get() or {}
        tables = _tables(pieces)
        if not tables.keys() <= self.known.keys():  # as in a loop's body
            self.known = _looked_up(tables, self.names)

    def run(self, x: LazyView) -> LazyView:
        """The new part."""
        held = self._spread(x)
        if _FORGETS_BOUNDS:
            held = lax.optimization_barrier(held)
        if (order := self.pieces.order) is None:
            return self._gathered(LazyView.of(self._one_by_one(held)))
        return self._gathered(self._at_once(held, order))

    # -- from a device's part to an array of atoms, and back ---------------------------------------

    def _spread(self, x: LazyView) -> jax.Array:
        """The part without its tiles, a dim an atom, in the target's order."""
        side = self.pieces.source
        x = packing.run_moves(x, side.blocks.moves_in(side.placement.per_device), self.fill)
        x = x.transpose(_joined_order(side)).reshape(*(w.length for w in side.windows))
        for k, window in enumerate(side.windows):
            x = self._aligned(x, k, window)
        names = [atom for window in side.windows for atom in window.atoms]
        x = x.reshape(*(n for window in side.windows for n in window.extents))
        return x.transpose([names.index(atom) for atom in side.atoms]).materialize()

    def _aligned(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Dim `k`, an interval of positions, as whole rows of atoms, joined."""
        if window.is_flipped:
            x = LazyView.of(lax.rev(x.materialize(), [k]))
        if window.is_wide:
            part = x.materialize()
            shape = (*part.shape[:k], window.width, *part.shape[k + 1 :])
            start = self._shift(k, window, part.ndim)
            wide = jnp.full(shape, self.fill, part.dtype)
            x = LazyView.of(lax.dynamic_update_slice(wide, part, start))
        if window.step > 1:
            shape = (*x.shape[:k], window.width // window.step, window.step, *x.shape[k + 1 :])
            part = lax.index_in_dim(x.reshape(*shape).materialize(), 0, k + 1, keepdims=False)
            x = LazyView.of(part)
        return x

    def _gathered(self, x: LazyView) -> LazyView:
        """The target's part of an array of atoms."""
        side = self.pieces.target
        x = x.reshape(*(prod(window.extents) for window in side.windows))
        for k, window in enumerate(side.windows):
            x = self._interval(x, k, window)
        per_device = side.placement.per_device
        shape = (*per_device, *side.blocks.flat.local_shape)
        order = _joined_order(side)
        x = x.reshape(*(shape[d] for d in order))
        x = x.transpose([order.index(d) for d in range(len(order))])
        return packing.run_moves(x, side.blocks.moves_out(per_device), self.fill)

    def _interval(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Dim `k` of whole rows of atoms as an interval of positions."""
        if window.step > 1:
            part = x.reshape(*x.shape[: k + 1], 1, *x.shape[k + 1 :]).materialize()
            grow = [(0, window.step - 1 if d == k + 1 else 0, 0) for d in range(part.ndim)]
            count = part.shape[k] * window.step
            x = LazyView.of(lax.pad(part, jnp.asarray(self.fill, part.dtype), grow))
            x = x.reshape(*part.shape[:k], count, *part.shape[k + 2 :])
        if x.shape[k] != window.length or any(window.shifts):
            part = x.materialize()
            size = (*part.shape[:k], window.length, *part.shape[k + 1 :])
            x = LazyView.of(lax.dynamic_slice(part, self._shift(k, window, part.ndim), size))
        if window.is_flipped:
            x = LazyView.of(lax.rev(x.materialize(), [k]))
        return x

    def _shift(self, k: int, window: Window, rank: int) -> list[Any]:
        """Where this device's interval begins along dim `k` of the rows."""
        start: list[Any] = [np.uint32(0)] * rank
        if any(window.shifts):
            shifts = jnp.asarray(window.shifts, jnp.uint32)
            start[k] = _at(shifts, index_of(window.axes))
        return start

    # -- pieces, all at once -----------------------------------------------------------------------

    def _at_once(self, held: jax.Array, order: Ints) -> LazyView:
        """The array of atoms, of pieces that are cut by one gather and put by another."""
        schedule, size = self.schedule, self.schedule.sizes[0]
        parts, stays = self._cut_at_once(held, size), len(schedule.stays)
        for k, slot in enumerate(schedule.slots, stays):
            parts[k] = permute(parts[k], self.names, slot.pairs)
        if (deal := schedule.deal) is not None:
            sent = lax.concatenate(parts[stays:], 0)
            parts[stays:] = [lax.all_to_all(sent, deal.axes, 0, 0, tiled=True)]
        if order.max() == len(schedule.sizes):
            parts.append(lax.full((1, *size), self.fill, held.dtype))
        x = lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]
        if (place := self.known.get(order.tobytes())) is not None:
            at = lax.reshape(place, (order.shape[1], 1))
            x = _gather(x, at, (0,), (1, *size), (0,))
        elif order[0].tolist() != list(range(len(x))):
            x = lax.concatenate([lax.slice_in_dim(x, k, k + 1) for k in order[0].tolist()], 0)
        blocks = [n // m for n, m in zip(self.pieces.target.extents, size, strict=True)]
        both = [d for k in range(len(size)) for d in (k, len(size) + k)]
        view = LazyView.of(x).reshape(*blocks, *size).transpose(both)
        return view.reshape(*self.pieces.target.extents)

    def _cut_at_once(self, held: jax.Array, size: Shape) -> list[jax.Array]:
        """All pieces that this device keeps or sends, each (1, *size)."""
        sent, (along, starts) = self.schedule.tables[0], self.schedule.starts
        if (place := self.known.get(starts.tobytes())) is None:
            every = list(map(tuple, sent[0].tolist()))
            found = {at: lax.expand_dims(_cut(held, at, size), (0,)) for at in {*every}}
            return [found[at] for at in every]
        count = len(self.schedule.sizes)
        cut = _gather(held, lax.reshape(place, (count, len(along))), along, size)
        return list(lax.split(cut, (1,) * count))

    # -- pieces, one by one ------------------------------------------------------------------------

    def _one_by_one(self, held: jax.Array) -> jax.Array:
        """The array of atoms, each piece written where it belongs."""
        schedule, extents = self.schedule, self.pieces.target.extents
        before, after = reaches(self.pieces)
        held, out = self._grown(held, before), lax.full(after, self.fill, held.dtype)
        for slot in schedule.stays:
            out = self._put(out, self._cut(held, slot), slot)
        for slot in schedule.slots:
            out = self._put(out, permute(self._cut(held, slot), self.names, slot.pairs), slot)
        if schedule.deal is not None:
            out = self._dealt(out, held, schedule.deal)
        # XLA would see the last update in the result's shape, and copy the array for it.
        return _cut(lax.optimization_barrier(out), (0,) * out.ndim, extents)

    def _grown(self, held: jax.Array, shape: Shape) -> jax.Array:
        """The array with so much more at its ends that no box reaches beyond."""
        grow = [(0, n - m, 0) for n, m in zip(shape, held.shape, strict=True)]
        fill = jnp.asarray(self.fill, held.dtype)
        return held if shape == held.shape else lax.pad(held, fill, grow)

    def _row(self, table: Ints) -> jax.Array:
        """This device's row."""
        return _at(table.astype(np.uint32), index_of(self.names))

    def _start(self, table: Ints) -> list[Any]:
        """This device's row of a slot's table; numbers where they are the same for all."""
        return [
            int(column[0]) if (column == column[0]).all() else self.known[column.tobytes()]
            for column in table.T
        ]

    def _cut(self, held: jax.Array, slot: Slot) -> jax.Array:
        return _cut(held, self._start(slot.tables[0]), slot.size)

    def _put(self, out: jax.Array, piece: jax.Array, slot: Slot) -> jax.Array:
        _, put, counts = slot.tables
        whole = (counts == np.array(slot.size)).all()
        return _put(out, piece, self._start(put), None if whole else self._start(counts))

    def _dealt(self, out: jax.Array, held: jax.Array, deal: Deal) -> jax.Array:
        """Every piece to the device at its place, all at once."""
        sent, put, counts = map(self._row, deal.tables)
        pieces = lax.map(lambda start: _cut(held, list(start), deal.size), sent)
        pieces = lax.all_to_all(pieces, deal.axes, 0, 0, tiled=True)

        def step(out: jax.Array, each: Any) -> tuple[jax.Array, None]:
            piece, start, count = each
            return _put(out, piece, list(start), list(count)), None

        return lax.scan(step, out, (pieces, put, counts))[0]


def _gather(
    x: jax.Array, starts: jax.Array, along: Shape, size: Shape, dropped: Shape = ()
) -> jax.Array:
    """Boxes of the array, one after another, that begin there along these dims.

    dropped: dims that the boxes, one long there, then lack.
    """
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim + 1 - len(dropped))), dropped, along)
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(x, starts, numbers, size, mode=mode)


def _at(table: Any, place: Any) -> jax.Array:
    return lax.squeeze(slice_at(table, place, 1, 0), [0])


def _cut(held: jax.Array, start: Sequence[Any], size: Shape) -> jax.Array:
    if all(isinstance(n, int) for n in start):
        if held.shape == size:
            return held
        return lax.slice(held, start, [a + n for a, n in zip(start, size, strict=True)])
    return lax.dynamic_slice(held, _unsigned(start), size)


def _put(
    out: jax.Array, piece: jax.Array, start: Sequence[Any], counts: Sequence[Any] | None
) -> jax.Array:
    """The piece at its place; only so much of it along each dim as is counted."""
    start = _unsigned(start)
    if counts is not None:
        old = lax.dynamic_slice(out, start, piece.shape)
        wanted: Any = True
        for d, count in enumerate(counts):
            if not (isinstance(count, int) and count == piece.shape[d]):
                wanted &= lax.broadcasted_iota(jnp.uint32, piece.shape, d) < count
        piece = jnp.where(wanted, piece, old)
    return lax.dynamic_update_slice(out, piece, start)


def _unsigned(start: Sequence[Any]) -> list[Any]:
    return [np.uint32(n) if isinstance(n, int) else n for n in start]


def reaches(pieces: Pieces) -> tuple[Shape, Shape]:
    """The arrays of atoms of the old and of the new part, grown so that no box ends beyond them."""
    schedule = pieces.schedule
    assert schedule is not None
    boxes = [(s.tables, s.size) for s in (*schedule.stays, *schedule.slots)]
    boxes += [] if schedule.deal is None else [(schedule.deal.tables, schedule.deal.size)]
    before, after = (
        _reach(side.extents, [(tables[k], size) for tables, size in boxes])
        for k, side in enumerate((pieces.source, pieces.target))
    )
    return before, after


def _reach(extents: Shape, boxes: Sequence[tuple[Ints, Shape]]) -> Shape:
    """The extents that an array must have for boxes of these sizes to begin at these corners."""
    ends = [corners.reshape(-1, len(size)).max(axis=0) + size for corners, size in boxes]
    return tuple(np.max([extents, *ends], axis=0).tolist())


def _joined_order(side: Side) -> list[int]:
    """The dims of a part of the untiled layout, each block's cores before its positions."""
    rank = side.blocks.flat.core_rank
    order: list[int] = []
    for k, block in enumerate(side.blocks.blocks):
        order += [rank + k] if block.core is None else [block.core, rank + k]
    return order
