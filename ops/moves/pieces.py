"""Running a move in pieces: what one device in a `shard_map` cuts, sends, receives and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.arguments import Ints, Shape
from gridlayout.ops.moves.ends import FORGETS_BOUNDS, Ends, cut_box, put_box, reach
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import all_to_all
from gridlayout.sharding.collectives import once, own_row, permute
from gridlayout.sharding.exchanges.pieces import AllToAll, Pieces, Round

# This device's rows of tables that have one row per device, by the bytes of the table.
_known: ContextVar[dict[bytes, Any] | None] = ContextVar("gridlayout_known", default=None)


@contextmanager
def shared_lookups(every: Sequence[Pieces]) -> Iterator[None]:
    """Context in which the tables of several moves are looked up once, for all of them.

    Enter it directly in a `shard_map`, as for `once`.
    """
    if len(every) < 2:
        yield
        return
    sizes = every[0].device.fine.shape
    with once(sizes):
        tables = {k: table for pieces in every for k, table in _tables(pieces).items()}
        token = _known.set(_lookups(tables, tuple(sizes)))
        try:
            yield
        finally:
            _known.reset(token)


def _tables(pieces: Pieces) -> dict[bytes, Ints]:
    """Return the tables whose rows differ between devices, by their bytes."""
    if (schedule := pieces.schedule) is None:
        return {}
    if pieces.order is not None:
        every = [schedule.starts[1], pieces.order]
    else:
        rounds = (*schedule.stays, *schedule.rounds)
        every = [column[:, None] for each in rounds for table in each.tables for column in table.T]
    return {table.tobytes(): table for table in every if (table != table[0]).any()}


def _lookups(tables: dict[bytes, Ints], names: tuple[str, ...]) -> dict[bytes, Any]:
    """Return this device's row of each table as an unsigned column, by the bytes of the table.

    A table with one column gives a scalar. Unsigned, so that XLA adds no test for negatives.
    """
    if not tables:
        return {}
    joined = np.concatenate([*tables.values()], axis=1).astype(np.uint32)
    row = lax.reshape(own_row(joined, names), (joined.shape[1], 1))
    parts = lax.split(row, [table.shape[1] for table in tables.values()])
    return {
        key: lax.squeeze(part, (0, 1)) if len(part) == 1 else part
        for key, part in zip(tables, parts, strict=True)
    }


def run_pieces(pieces: Pieces, x: LazyView, fill: Any) -> LazyView:
    """Return a device's part of the new layout from its part of the old one.

    fill: the value of positions that no piece covers.
    """
    return _Run(pieces, fill).run(x)


class _Run(Ends):
    def __init__(self, pieces: Pieces, fill: Any) -> None:
        super().__init__(pieces, fill)
        assert pieces.schedule is not None
        self.schedule = pieces.schedule
        self.names = tuple(pieces.device.fine.axis_names)
        self.known = _known.get() or {}
        tables = _tables(pieces)
        if not tables.keys() <= self.known.keys():  # as in the body of a loop
            self.known = _lookups(tables, self.names)

    def run(self, x: LazyView) -> LazyView:
        """Return the new part."""
        held = self.to_atoms(x)
        if FORGETS_BOUNDS:
            held = lax.optimization_barrier(held)
        if (order := self.pieces.order) is None:
            return self.from_atoms(LazyView.of(self._one_by_one(held)))
        return self.from_atoms(self._at_once(held, order))

    # -- pieces, all at once -----------------------------------------------------------------------

    def _at_once(self, held: jax.Array, order: Ints) -> LazyView:
        """Return the array of atoms: one gather cuts the pieces, another one places them."""
        schedule, size = self.schedule, self.schedule.sizes[0]
        parts, stays = self._cut_at_once(held, size), len(schedule.stays)
        for k, each in enumerate(schedule.rounds, stays):
            parts[k] = permute(parts[k], self.names, each.pairs)
        if schedule.all_to_all is not None:
            sent = lax.concatenate(parts[stays:], 0)
            parts[stays:] = [lax.all_to_all(sent, schedule.all_to_all.axes, 0, 0, tiled=True)]
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
        """Return all pieces that this device keeps or sends, each of shape (1, *size)."""
        sent, (along, starts) = self.schedule.tables[0], self.schedule.starts
        if (place := self.known.get(starts.tobytes())) is None:
            every = list(map(tuple, sent[0].tolist()))
            found = {at: lax.expand_dims(cut_box(held, at, size), (0,)) for at in {*every}}
            return [found[at] for at in every]
        count = len(self.schedule.sizes)
        cut = _gather(held, lax.reshape(place, (count, len(along))), along, size)
        return list(lax.split(cut, (1,) * count))

    # -- pieces, one by one ------------------------------------------------------------------------

    def _one_by_one(self, held: jax.Array) -> jax.Array:
        """Return the array of atoms, with each piece written at its place."""
        schedule, extents = self.schedule, self.pieces.target.extents
        before, after = reaches(self.pieces)
        held, out = self.grown(held, before), lax.full(after, self.fill, held.dtype)
        for each in schedule.stays:
            out = self._put(out, self._cut(held, each), each)
        for each in schedule.rounds:
            out = self._put(out, permute(self._cut(held, each), self.names, each.pairs), each)
        if schedule.all_to_all is not None:
            out = self._put_all(out, held, schedule.all_to_all)
        # Without the barrier, XLA gives the last update the result's shape, and copies the array.
        return cut_box(lax.optimization_barrier(out), (0,) * out.ndim, extents)

    def _row(self, table: Ints) -> jax.Array:
        """Return this device's row of a table."""
        return own_row(table.astype(np.uint32), self.names)

    def _start(self, table: Ints) -> list[Any]:
        """Return this device's row of a round's table; integers where all devices have the same."""
        return [
            int(column[0]) if (column == column[0]).all() else self.known[column.tobytes()]
            for column in table.T
        ]

    def _cut(self, held: jax.Array, each: Round) -> jax.Array:
        return cut_box(held, self._start(each.tables[0]), each.size)

    def _put(self, out: jax.Array, piece: jax.Array, each: Round) -> jax.Array:
        _, put, counts = each.tables
        whole = (counts == np.array(each.size)).all()
        return put_box(out, piece, self._start(put), None if whole else self._start(counts))

    def _put_all(self, out: jax.Array, held: jax.Array, every: AllToAll) -> jax.Array:
        """Return `out` with the pieces that one all_to_all receives from all devices."""
        sent, put, counts = map(self._row, every.tables)
        pieces = lax.map(lambda start: cut_box(held, list(start), every.size), sent)
        pieces = all_to_all(pieces, every.axes)

        def step(out: jax.Array, each: Any) -> tuple[jax.Array, None]:
            piece, start, count = each
            return put_box(out, piece, list(start), list(count)), None

        return lax.scan(step, out, (pieces, put, counts))[0]


def _gather(
    x: jax.Array, starts: jax.Array, along: Shape, size: Shape, dropped: Shape = ()
) -> jax.Array:
    """Return boxes of the array, stacked along a new dim 0, that begin at `starts`.

    along: the dims that `starts` has numbers for. dropped: dims of extent 1 that boxes leave out.
    """
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim + 1 - len(dropped))), dropped, along)
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(x, starts, numbers, size, mode=mode)


def reaches(pieces: Pieces) -> tuple[Shape, Shape]:
    """Return the extents of both arrays of atoms, old and new, grown so that every box fits."""
    schedule = pieces.schedule
    assert schedule is not None
    boxes = [(each.tables, each.size) for each in (*schedule.stays, *schedule.rounds)]
    if (every := schedule.all_to_all) is not None:
        boxes.append((every.tables, every.size))
    before, after = (
        reach(side.extents, [(tables[k], size) for tables, size in boxes])
        for k, side in enumerate((pieces.source, pieces.target))
    )
    return before, after
