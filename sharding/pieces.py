"""`Pieces`: what each device sends each other one when a layout changes, box by box.

Devices hold boxes of the tensor before and need others after; what two of them have in common is a
piece. Pieces go in *slots*: of each device one piece at most that it sends and one that it gets, in
a buffer as large as the largest. A slot is sent by a permute, or several by one all_to_all. Nothing
else is sent: no padding of layouts, nothing that a device has already. What slots add by unequal
pieces is kept below a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.layouts.blocks import Blocks, find_blocks
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.collectives import Axes, Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.overlaps import Overlaps, find_overlaps
from gridlayout.sharding.placement import Placement
from gridlayout.sharding.rounds import Messages
from gridlayout.sharding.windows import Window, find_windows

Ints = NDArray[np.int64]
Shape = tuple[int, ...]
Tables = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class Slot:
    """A box that every device cuts out and sends, and where it puts the one that it gets.

    rows: the pieces, at most one from each device and one to each; size: of the box.
    """

    rows: Overlaps
    size: Shape
    devices: int

    @property
    def receivers(self) -> int:
        """How many devices get a piece from another."""
        return int((self.rows.source != self.rows.target).sum())

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(from, to), by the device's number; to itself where that leaves no device out."""
        return sorted(zip(self.rows.source.tolist(), self.rows.target.tolist(), strict=True))

    @cached_property
    def tables(self) -> Tables:
        """A row a device: the box's first corner in the sender's array, that in the receiver's, and
        how much of what a device gets is wanted, 0 where it gets nothing.
        """
        rows, shape = self.rows, (self.devices, len(self.size))
        # Devices that take no part do as the others where these do alike: XLA then cuts at a known
        # place, and masks along few dims.
        same = [np.where((x == x[0]).all(axis=0), x[0], 0) for x in (rows.sent, rows.put)]
        none = np.array(self.size)
        none[int((rows.sizes != none).any(axis=0).argmax())] = 0
        sent, put, counts = (np.broadcast_to(x, shape).copy() for x in (*same, none))
        sent[rows.source], put[rows.target], counts[rows.target] = rows.sent, rows.put, rows.sizes
        return sent, put, counts


@dataclass(frozen=True, eq=False)
class Deal:
    """An all_to_all along `axes`, of a box for each of `count` devices there.

    senders, receivers: of each piece, the device's place along the axes.
    """

    axes: Axes
    rows: Overlaps
    senders: Ints
    receivers: Ints
    size: Shape
    count: int
    devices: int

    @cached_property
    def tables(self) -> Tables:
        """By device and place: the first corner of what goes there, where what comes from there is
        put, and how much of it is wanted.
        """
        shape = (self.devices, self.count, len(self.size))
        sent, put, counts = (np.zeros(shape, np.int64) for _ in range(3))
        sent[self.rows.source, self.receivers] = self.rows.sent
        put[self.rows.target, self.senders] = self.rows.put
        counts[self.rows.target, self.senders] = self.rows.sizes
        return sent, put, counts


@dataclass(frozen=True, eq=False)
class Schedule:
    """In what pieces go: `stays` on their device, each slot by a permute, or all in a deal."""

    stays: tuple[Slot, ...]
    slots: tuple[Slot, ...]
    deal: Deal | None = None

    @cached_property
    def sizes(self) -> list[Shape]:
        """Of each piece of a device: what stays, the slots, the places of a deal."""
        found = [slot.size for slot in (*self.stays, *self.slots)]
        return found if self.deal is None else [*found, *[self.deal.size] * self.deal.count]

    @cached_property
    def tables(self) -> Tables:
        """As the slots' and the deal's, by device and piece."""
        every = [[x[:, None] for x in slot.tables] for slot in (*self.stays, *self.slots)]
        every += [] if self.deal is None else [[*self.deal.tables]]
        sent, put, counts = (np.concatenate(some, axis=1) for some in zip(*every, strict=True))
        return sent, put, counts

    @cached_property
    def starts(self) -> tuple[Shape, Ints]:
        """Dims along which pieces are cut, and where each begins there: a row a device."""
        sent = self.tables[0]
        along = tuple(np.flatnonzero(sent.any(axis=(0, 1))).tolist())
        return along, sent[:, :, along].reshape(len(sent), -1)


@dataclass(frozen=True, eq=False)
class Side:
    """One layout: its blocks, where it is placed, and the windows of its devices."""

    blocks: Blocks
    placement: Placement
    windows: tuple[Window, ...]
    atoms: Shape

    @property
    def is_even(self) -> bool:
        """Whether all devices have equal parts, without padding but for that of tiles."""
        flat = self.blocks.flat
        return (
            self.placement.slots == self.placement.grid and prod(flat.physical_shape) == flat.size
        )

    @property
    def extents(self) -> Shape:
        """The shape of a device's array, a dim an atom."""
        found = {k: n for w in self.windows for k, n in zip(w.atoms, w.extents, strict=True)}
        return tuple(found[k] for k in self.atoms)


@dataclass(frozen=True, eq=False)
class Pieces:
    """How a device goes from its part of one layout to that of another. rows: all pieces."""

    source: Side
    target: Side
    rows: Overlaps
    device: DeviceGrid
    itemsize: float

    @cached_property
    def moving(self) -> Overlaps:
        """The pieces that change device."""
        return self.rows.at(self.rows.source != self.rows.target)

    @cached_property
    def moved(self) -> int:
        """Bytes of these, over all devices: what has to move."""
        return int(self.moving.volume * self.itemsize)

    @property
    def slack(self) -> float:
        """How many times as many bytes may be received, for the sake of fewer collectives."""
        return 1.0 if self.source.is_even and self.target.is_even else LIMITS.slack

    @cached_property
    def schedule(self) -> Schedule | None:
        """In what the pieces are sent; None where that takes too many rounds."""
        degree = self.moving.degree
        kept = self._kept()
        if not degree:
            return Schedule(kept, ())
        if degree > LIMITS.few_rounds and (deal := self._deal()) is not None:
            return Schedule(kept, (), deal)
        if degree > LIMITS.rounds:
            return None
        rows, every = self.moving, self.rows
        if (every.sizes == every.sizes[0]).all() and every.degree == degree:
            # What stays goes along, in rounds in which its device would be idle: no round then has
            # to mind what was there.
            rows, kept = every, ()
        limit = max(self.slack * self.moving.volume, rows.volume)
        rounds = Messages(rows.source, rows.target, rows.sizes).in_rounds(limit)
        slots = tuple(self._slot(rows.at(own)) for own in rounds)
        return Schedule(kept, slots) if len(slots) <= LIMITS.rounds else None

    @cached_property
    def order(self) -> Ints | None:
        """A row a device: of each block of the new part, the number of the piece that fills it.

        Numbers go over what stays, the slots, and the places of a deal; the one after them is of
        blocks that nothing fills. None where pieces differ in size, don't lie in blocks or fill
        few, and where they are so large that a kernel for each takes less than copying all twice.
        """
        schedule, extents = self.schedule, np.array(self.target.extents)
        if schedule is None or len({*schedule.sizes}) != 1:
            return None
        if sum(map(self._bytes, schedule.sizes)) > LIMITS.gathered_bytes:
            return None
        size, (_, put, wanted) = np.array(schedule.sizes[0]), schedule.tables
        whole, blocks = (wanted == size).all(axis=2), extents // size
        in_part = ~whole & (wanted > 0).all(axis=2)
        if (extents % size).any() or in_part.any() or (put % size)[whole].any():
            return None
        if blocks.prod() > LIMITS.blocks * len(schedule.sizes):
            return None
        device, piece = np.nonzero(whole)
        found = np.full((self.device.size, int(blocks.prod())), len(schedule.sizes))
        found[device, np.ravel_multi_index(tuple((put // size)[whole].T), blocks)] = piece
        return found

    @property
    def collectives(self) -> list[Collective]:
        """What a device does with the others."""
        made, schedule = Collectives(self.device), self.schedule
        assert schedule is not None
        if (deal := schedule.deal) is not None:
            return made.all_to_all(deal.axes, deal.count * self._bytes(deal.size)).found
        for slot in schedule.slots:
            axes = self._along(slot.rows)[0]
            made.pieces(axes, self._bytes(slot.size), slot.receivers)
        return made.found

    def _along(self, rows: Overlaps) -> tuple[Axes, list[Ints]]:
        """The mesh axes along which senders and receivers differ; all places of both."""
        sizes = tuple(self.device.fine.shape.values())
        ends = [np.stack(np.unravel_index(x, sizes)) for x in (rows.source, rows.target)]
        along = (ends[0] != ends[1]).any(axis=1)
        return tuple(n for n, x in zip(self.device.fine.axis_names, along, strict=True) if x), ends

    def _bytes(self, size: Shape) -> int:
        return int(prod(size) * self.itemsize)

    def _slot(self, rows: Overlaps) -> Slot:
        return Slot(rows, tuple(rows.sizes.max(axis=0).tolist()), self.device.size)

    def _kept(self) -> tuple[Slot, ...]:
        """What stays: the first piece of every device, the second ones, ..."""
        rows = self.rows.at(self.rows.source == self.rows.target)
        rows = rows.at(np.argsort(rows.source, kind="stable"))
        _, starts = np.unique(rows.source, return_index=True)
        lengths = np.diff([*starts.tolist(), len(rows.source)])
        nth = np.arange(len(rows.source)) - np.repeat(starts, lengths)
        return tuple(self._slot(rows.at(nth == k)) for k in range(max(lengths, default=0)))

    def _deal(self) -> Deal | None:
        """All pieces in one all_to_all, where they are as many and as alike as that needs."""
        rows, shape = self.moving, self.device.fine.shape
        axes, ends = self._along(rows)
        count, size = self.device.count(axes), tuple(rows.sizes.max(axis=0).tolist())
        # A device's piece for itself goes along.
        pairs = self.rows.source * self.device.size + self.rows.target
        total = self.device.size * (count - 1) * prod(size)
        if total > self.slack * rows.volume or len(np.unique(pairs)) < len(pairs):
            return None
        inner = tuple(shape[axis] for axis in axes)
        pairs_along = [tuple(end[k] for k, n in enumerate(shape) if n in axes) for end in ends]
        senders, receivers = (np.ravel_multi_index(end, inner) for end in pairs_along)
        return Deal(axes, rows, senders, receivers, size, count, self.device.size)


@lru_cache(maxsize=4096)
def find_pieces(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> Pieces | None:
    """The pieces of a change of layout; None where they are no boxes, or too many.

    >>> from gridlayout import GridLayout
    >>> from jax.sharding import AbstractMesh
    >>> device = DeviceGrid(AbstractMesh((4,), ("x",)))
    >>> a, b = GridLayout((12,), grid=(4,)), GridLayout((12,), grid=(3,))
    >>> places = [device.placement(x.core_shape) for x in (a, b)]
    >>> for slot in find_pieces(a, b, device, *places).schedule.slots:
    ...     print(slot.pairs, slot.size)
    [(2, 1), (3, 2)] (3,)
    [(1, 0)] (1,)
    """
    if device.size > (LIMITS.devices_in_few if before == after else LIMITS.devices):
        return None
    a, b = find_blocks(old), find_blocks(new)
    if a is None or b is None:
        return None
    sides = (a, b)
    windows = find_windows(sides, (before, after))
    if windows is None:
        return None
    order = tuple(k for window in windows[1] for k in window.atoms)
    found = find_overlaps(windows, order, device, LIMITS.devices_in_few)
    if found is None:
        return None
    source, target = (
        Side(side, placement, tuple(mine), order)
        for side, placement, mine in zip(sides, (before, after), windows, strict=True)
    )
    pieces = Pieces(source, target, found, device, dtypes.bits(old.dtype) / 8)
    many = device.size > LIMITS.devices or len(found.source) > LIMITS.pieces
    return None if many and pieces.moving.degree > LIMITS.few_rounds else pieces
