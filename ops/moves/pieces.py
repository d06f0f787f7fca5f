"""Pieces at work: what one device of a `shard_map` does to send, get and put its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import index_of, permute
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.pieces import Pieces, Side, Slot
from gridlayout.sharding.windows import Window

Shape = tuple[int, ...]
Ints = NDArray[np.int64]


def run_pieces(pieces: Pieces, device: DeviceGrid, x: LazyView, fill: Any) -> LazyView:
    """A device's part of the new layout, of its part of the old one; `fill` where nothing is."""
    return _Run(pieces, device, fill).run(x)


class _Run:
    def __init__(self, pieces: Pieces, device: DeviceGrid, fill: Any) -> None:
        self.pieces, self.device, self.fill = pieces, device, fill
        self.names = tuple(device.fine.axis_names)
        # This device's row of one table: of each column of the slots' tables that is not the same
        # for all.
        self.columns: dict[bytes, int] = {}
        found: list[Ints] = []
        slots = (*pieces.stays, *(pieces.slots if pieces.axes is None else ()))
        for column in (c for s in slots for t in (s.sent, s.put, s.counts) for c in t.T):
            if (column != column[0]).any() and column.tobytes() not in self.columns:
                self.columns[column.tobytes()] = len(found)
                found.append(column)
        self.here = index_of(self.names)
        self.row = self._row(np.stack(found, axis=1)) if found else None

    def run(self, x: LazyView) -> LazyView:
        slots = (*self.pieces.stays, *self.pieces.slots)
        held = self._grown(self._spread(x), slots)
        extents = self.pieces.target.extents
        reach = [_reach(slot.put, slot.size) for slot in slots]
        shape = tuple(np.max([extents, *reach], axis=0).tolist())
        out = jnp.full(shape, self.fill, held.dtype)
        for slot in self.pieces.stays:
            out = self._put(out, self._cut(held, slot), slot)
        if self.pieces.axes is not None:
            out = self._dealt(out, held, self.pieces.axes)
        else:
            for slot in self.pieces.slots:
                piece = permute(self._cut(held, slot), self.names, slot.pairs)
                out = self._put(out, piece, slot)
        # XLA would see the last update in the result's shape, and copy the array for it.
        out = lax.optimization_barrier(out)
        return self._gathered(lax.slice(out, (0,) * out.ndim, extents))

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
        count = prod(window.extents) * window.step
        if count != window.length or any(window.shifts):
            part = x.materialize()
            shape = (*part.shape[:k], count, *part.shape[k + 1 :])
            start = self._shift(k, window, part.ndim)
            wide = jnp.full(shape, self.fill, part.dtype)
            x = LazyView.of(lax.dynamic_update_slice(wide, part, start))
        if window.step > 1:
            shape = (*x.shape[:k], count // window.step, window.step, *x.shape[k + 1 :])
            part = lax.index_in_dim(x.reshape(*shape).materialize(), 0, k + 1, keepdims=False)
            x = LazyView.of(part)
        return x

    def _gathered(self, out: jax.Array) -> LazyView:
        """The target's part of an array of atoms."""
        side = self.pieces.target
        x = LazyView.of(out).reshape(*(prod(window.extents) for window in side.windows))
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
            start[k] = lax.dynamic_index_in_dim(shifts, index_of(window.axes), 0, False)
        return start

    # -- pieces --------------------------------------------------------------------------------

    def _grown(self, held: jax.Array, slots: Sequence[Slot]) -> jax.Array:
        """The array with so much more at its ends that no box reaches beyond."""
        if not slots:
            return held
        reach = np.max([held.shape, *(_reach(slot.sent, slot.size) for slot in slots)], axis=0)
        grow = [(0, int(n) - m, 0) for n, m in zip(reach, held.shape, strict=True)]
        return lax.pad(held, jnp.asarray(self.fill, held.dtype), grow)

    def _row(self, table: Ints) -> jax.Array:
        """This device's row; unsigned, or every use would first ask whether it is negative."""
        return lax.dynamic_index_in_dim(jnp.asarray(table, jnp.uint32), self.here, 0, False)

    def _start(self, table: Ints) -> list[Any]:
        """This device's row of a slot's table; numbers where they are the same for all."""
        return [
            int(column[0])
            if (column == column[0]).all()
            else self.row[self.columns[column.tobytes()]]  # type: ignore[index]
            for column in table.T
        ]

    def _cut(self, held: jax.Array, slot: Slot) -> jax.Array:
        return _cut(held, self._start(slot.sent), slot.size)

    def _put(self, out: jax.Array, piece: jax.Array, slot: Slot) -> jax.Array:
        wanted = slot.counts == np.array(slot.size)
        counts = None if wanted.all() else self._start(slot.counts)
        return _put(out, piece, self._start(slot.put), counts)

    def _dealt(self, out: jax.Array, held: jax.Array, axes: tuple[str, ...]) -> jax.Array:
        """Every slot's piece to the device at that place, all at once."""
        slots, size = self.pieces.slots, self.pieces.slots[0].size
        sent, put, counts = (
            self._row(np.stack([getattr(slot, name) for slot in slots], axis=1))
            for name in ("sent", "put", "counts")
        )
        pieces = lax.map(lambda start: _cut(held, list(start), size), sent)
        pieces = lax.all_to_all(pieces, axes, 0, 0, tiled=True)

        def step(out: jax.Array, each: Any) -> tuple[jax.Array, None]:
            piece, start, count = each
            return _put(out, piece, list(start), list(count)), None

        return lax.scan(step, out, (pieces, put, counts))[0]


def _cut(held: jax.Array, start: Sequence[Any], size: Shape) -> jax.Array:
    if all(isinstance(n, int) for n in start):
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


def _reach(starts: Ints, size: Shape) -> Ints:
    return starts.max(axis=0) + np.array(size)


def _joined_order(side: Side) -> list[int]:
    """The dims of a part of the untiled layout, each block's cores before its positions."""
    rank = side.blocks.flat.core_rank
    order: list[int] = []
    for k, block in enumerate(side.blocks.blocks):
        order += [rank + k] if block.core is None else [block.core, rank + k]
    return order
