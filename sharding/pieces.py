"""`Pieces`: what each device sends each other one when a layout changes, box by box.

Devices hold boxes of the tensor before and need others after; what two of them have in common is a
piece. Pieces go in *slots*: of each device one piece at most that it sends and one that it gets, in
a buffer as large as the largest. A slot is sent by a permute, or several by one all_to_all. Nothing
else is sent: no padding of layouts, nothing that a device has already. What slots add by unequal
pieces is kept below a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.layouts.blocks import Blocks, find_blocks
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.collectives import Axes, Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid, Placement
from gridlayout.sharding.overlaps import Overlaps, find_overlaps
from gridlayout.sharding.rounds import Messages
from gridlayout.sharding.windows import Window, find_windows

Ints = NDArray[np.int64]
Shape = tuple[int, ...]
# For more devices, pieces or rounds than these, pieces are not looked for: the lists grow with the
# square of the devices, and a program of so many rounds takes long to compile.
MOST_DEVICES, MOST_PIECES, MOST_ROUNDS = 256, 1 << 14, 128
# Slots may hold so many times the bytes of the pieces in them, to be fewer; where all devices have
# equal parts, pieces are alike and nothing is added.
SLACK = 1.25


@dataclass(frozen=True, eq=False)
class Slot:
    """A box that every device cuts out and sends, and where it puts the one that it gets.

    pairs: (from, to), by the device's number, to itself where that leaves no device out. size: of
    the box. sent, put: its first corner in the sender's and in the receiver's array, a row a device;
    counts: how much of what a device gets is wanted, 0 where it gets nothing.
    """

    pairs: tuple[tuple[int, int], ...]
    size: Shape
    sent: Ints
    put: Ints
    counts: Ints


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
    """How a device goes from its part of one layout to that of another.

    stays: what a device keeps; slots: what is sent, each by a permute, or where `axes` are given
    all by one all_to_all along these: then slot `k` is for, and from, the device `k` there. moved:
    bytes of the pieces; slack: how many times as many a way without pieces may receive and be kept.
    """

    source: Side
    target: Side
    stays: tuple[Slot, ...]
    slots: tuple[Slot, ...]
    axes: Axes | None
    itemsize: float
    moved: int
    slack: float

    def collectives(self, device: DeviceGrid) -> list[Collective]:
        """What a device does with the others."""
        made = Collectives(device)
        every = tuple(device.fine.axis_names)
        if self.axes is not None:
            return made.all_to_all(self.axes, len(self.slots) * self._bytes(self.slots[0])).found
        for slot in self.slots:
            made.permute(every, self._bytes(slot), sum(a != b for a, b in slot.pairs))
        return made.found

    def _bytes(self, slot: Slot) -> int:
        return int(prod(slot.size) * self.itemsize)


@lru_cache(maxsize=4096)
def find_pieces(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> Pieces | None:
    """The pieces that change device between two layouts; None where they are no boxes, or too many.

    >>> from gridlayout import GridLayout
    >>> from jax.sharding import AbstractMesh
    >>> device = DeviceGrid(AbstractMesh((4,), ("x",)))
    >>> a, b = GridLayout((12,), grid=(4,)), GridLayout((12,), grid=(3,))
    >>> places = [device.placement(x.core_shape) for x in (a, b)]
    >>> for slot in find_pieces(a, b, device, *places).slots:
    ...     print(slot.pairs, slot.size)
    ((1, 0), (2, 1), (3, 2)) (3,)
    """
    if device.size > MOST_DEVICES:
        return None
    blocks = [find_blocks(layout) for layout in (old, new)]
    if blocks[0] is None or blocks[1] is None:
        return None
    sides: Any = (blocks[0], blocks[1])
    windows = find_windows(sides, (before, after))
    if windows is None:
        return None
    order = tuple(k for window in windows[1] for k in window.atoms)
    found = find_overlaps(windows, order, device, MOST_PIECES)
    if found is None:
        return None
    source, target = (
        Side(side, placement, tuple(mine), order)
        for side, placement, mine in zip(sides, (before, after), windows, strict=True)
    )
    return _Packer(source, target, found, device, dtypes.bits(old.dtype) / 8).pieces()


class _Packer:
    """Puts pieces into slots."""

    def __init__(
        self, source: Side, target: Side, rows: Overlaps, device: DeviceGrid, itemsize: float
    ) -> None:
        self.source, self.target, self.device, self.itemsize = source, target, device, itemsize
        stay = rows.source == rows.target
        self.all_rows, self.stays, self.rows = rows, rows.at(stay), rows.at(~stay)
        self.moved = int(self.rows.sizes.prod(axis=1).sum())
        self.slack = 1.0 if source.is_even and target.is_even else SLACK

    def pieces(self) -> Pieces | None:
        axes, slots = None, self._rounds()
        if slots is None or len(slots) > 2:
            dealt = self._dealt()
            axes, slots = dealt or (None, slots)
        if slots is None:
            return None
        each = (self.source, self.target, self._kept(), tuple(slots), axes, self.itemsize)
        return Pieces(*each, int(self.moved * self.itemsize), self.slack)

    def _slot(self, rows: Overlaps) -> Slot:
        """At most one piece from each device, and one to each."""
        size = rows.sizes.max(axis=0)
        shape = (self.device.size, len(size))
        # Devices that take no part do as the others where these do alike: XLA then cuts at a known
        # place, and masks along few dims.
        same = [np.where((x == x[0]).all(axis=0), x[0], 0) for x in (rows.sent, rows.put)]
        varies = (rows.sizes != size).any(axis=0)
        none = size.copy()
        none[int(varies.argmax())] = 0
        tables = [np.broadcast_to(x, shape).copy() for x in (*same, none)]
        ends = (rows.source, rows.target, rows.target)
        for table, at, own in zip(tables, ends, (rows.sent, rows.put, rows.sizes), strict=True):
            table[at] = own
        pairs = sorted(zip(rows.source.tolist(), rows.target.tolist(), strict=True))
        return Slot(tuple(pairs), tuple(size.tolist()), *tables)

    def _kept(self) -> tuple[Slot, ...]:
        """What stays: the first piece of every device, the second ones, ..."""
        order = np.argsort(self.stays.source, kind="stable")
        rows = self.stays.at(order)
        _, starts = np.unique(rows.source, return_index=True)
        lengths = np.diff([*starts.tolist(), len(rows.source)])
        nth = np.arange(len(rows.source)) - np.repeat(starts, lengths)
        return tuple(self._slot(rows.at(nth == k)) for k in range(max(lengths, default=0)))

    def _rounds(self) -> list[Slot] | None:
        """Each slot by a permute; None if there are too many."""
        rows = self.rows
        if not len(rows.source):
            return []
        if rows.degree > MOST_ROUNDS:
            return None
        every = self.all_rows
        if (every.sizes == every.sizes[0]).all() and every.degree == rows.degree:
            # What stays goes along, in rounds in which its device would be idle: no round then has
            # to mind what was there.
            rows, self.stays = every, self.stays.at(slice(0))
        messages = Messages(rows.source, rows.target, rows.sizes)
        rounds = messages.in_rounds(max(self.slack * self.moved, messages.volume))
        return None if len(rounds) > MOST_ROUNDS else [self._slot(rows.at(own)) for own in rounds]

    def _dealt(self) -> tuple[Axes, list[Slot]] | None:
        """All pieces as one all_to_all, where they are as many and as alike as that needs."""
        rows, sizes = self.rows, tuple(self.device.fine.shape.values())
        ends = [np.stack(np.unravel_index(x, sizes)) for x in (rows.source, rows.target)]
        along = [bool((a != b).any()) for a, b in zip(*ends, strict=True)]
        axes = tuple(n for n, x in zip(self.device.fine.axis_names, along, strict=True) if x)
        count = self.device.count(axes)
        total = self.device.size * (count - 1) * int(rows.sizes.max(axis=0).prod())
        pairs = rows.source * self.device.size + rows.target
        if total > self.slack * self.moved or len(np.unique(pairs)) < len(pairs):
            return None
        inner = [n for n, x in zip(sizes, along, strict=True) if x]
        places = [
            np.ravel_multi_index(tuple(x for x, a in zip(end, along, strict=True) if a), inner)
            for end in ends
        ]
        return axes, self._deal(rows, places[0], places[1], count)

    def _deal(self, rows: Overlaps, senders: Ints, receivers: Ints, count: int) -> list[Slot]:
        """Slot `k`: what a device sends to the one at place `k`, and what it gets from there."""
        size = tuple(rows.sizes.max(axis=0).tolist())
        shape = (count, self.device.size, len(size))
        sent, put, counts = (np.zeros(shape, np.int64) for _ in range(3))
        sent[receivers, rows.source] = rows.sent
        put[senders, rows.target] = rows.put
        counts[senders, rows.target] = rows.sizes
        return [Slot((), size, *tables) for tables in zip(sent, put, counts, strict=True)]
