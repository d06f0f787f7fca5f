"""`Overlaps`: the intersections of the boxes that devices hold with those that they need.

Windows that share no atoms are independent, so intersections are computed per group of windows and
combined as a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from gridlayout.affine.search import components
from gridlayout.arguments import Ints, Shape
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.rounds import Messages, most_at_one
from gridlayout.sharding.exchanges.windows import Window

_MOST_PAIRS = 1 << 24  # most pairs of boxes that are compared
_BLOCK = 1 << 18  # of which so many at once


@dataclass(frozen=True, eq=False)
class Overlaps(Messages):
    """Boxes that devices send each other.

    sent, put: a box's first corner in the array of the sending and of the receiving device, by
    atom. Its extents too are by atom.
    """

    sent: Ints
    put: Ints

    def at(self, which: Any) -> Overlaps:
        """Return a selection of the rows."""
        fields = (self.source, self.target, self.sizes, self.sent, self.put)
        return Overlaps(*(field[which] for field in fields))

    @property
    def degree(self) -> int:
        """The most boxes that one device sends or receives."""
        return most_at_one(self.source, self.target) if len(self.source) else 0


def find_overlaps(
    windows: tuple[Sequence[Window], Sequence[Window]],
    order: Shape,
    device: DeviceGrid,
    most: int,
) -> Overlaps | None:
    """Return the overlaps of two layouts' windows; None if there are more than `most`.

    order: the order of the atoms.
    """
    return _Finder(windows, order, device, most).overlaps()


@dataclass(frozen=True)
class _Table:
    """Boxes, stored as columns.

    numbers: for each window (layout, index), the device's index along its mesh axes. low, high: for
    each atom, the first index and the end.
    """

    numbers: dict[tuple[int, int], Ints]
    low: dict[int, Ints]
    high: dict[int, Ints]
    count: int

    def at(self, rows: Any) -> _Table:
        """Return a selection of the rows."""
        return _Table(
            {key: column[rows] for key, column in self.numbers.items()},
            {atom: column[rows] for atom, column in self.low.items()},
            {atom: column[rows] for atom, column in self.high.items()},
            len(rows),
        )

    @property
    def nonempty(self) -> _Table:
        """The boxes that hold something."""
        holds = np.ones(self.count, np.bool_)
        for atom, low in self.low.items():
            holds &= low < self.high[atom]
        return self if holds.all() else self.at(np.flatnonzero(holds))

    def intersect(self, other: _Table, most: int) -> _Table | None:
        """Return the nonempty intersections of all boxes with all boxes of another table.

        None if there are more than `most`, or if too many pairs would have to be compared.
        """
        both = sorted(self.low.keys() & other.low.keys())
        if (pairs := self._meeting(other, both)) is None:
            return None
        kept: list[tuple[Ints, Ints]] = []
        for rows, others in pairs:
            meets = np.ones(len(rows), np.bool_)
            for atom in both:
                begin = np.maximum(self.low[atom][rows], other.low[atom][others])
                meets &= begin < np.minimum(self.high[atom][rows], other.high[atom][others])
            kept.append((rows[meets], others[meets]))
            if sum(len(some) for some, _ in kept) > most:
                return None
        rows, others = (np.concatenate(some) for some in zip(*kept, strict=True))
        a, b = self.at(rows), other.at(others)
        low = {atom: np.maximum(a.low[atom], b.low[atom]) for atom in both}
        high = {atom: np.minimum(a.high[atom], b.high[atom]) for atom in both}
        return _Table(a.numbers | b.numbers, a.low | b.low | low, a.high | b.high | high, a.count)

    def _meeting(self, other: _Table, atoms: Sequence[int]) -> Iterator[tuple[Ints, Ints]] | None:
        """Return the pairs of boxes, as row numbers, that intersect along one of the atoms.

        Of the atoms along which the other table's boxes can be sorted, the one with the fewest
        pairs is used. They come in blocks. None if there are too many pairs.
        """
        least, count = self.count * other.count, other.count
        order, first = np.arange(count), np.zeros(self.count, np.int64)
        counts = np.full(self.count, count)
        for atom in atoms:
            sort = np.argsort(other.low[atom], kind="stable")
            low, high = other.low[atom][sort], other.high[atom][sort]
            if (np.diff(high) < 0).any():
                continue
            begin = np.searchsorted(high, self.low[atom], "right")
            meeting = np.maximum(np.searchsorted(low, self.high[atom], "left") - begin, 0)
            if meeting.sum() < least:
                least, order, first, counts = int(meeting.sum()), sort, begin, meeting
        return None if least > _MOST_PAIRS else _blocks(order, first, counts)


def _blocks(order: Ints, first: Ints, counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield pairs of row numbers, sorted, in blocks of about `_BLOCK` pairs; at least one block.

    Each row meets `counts` of the rows that `order` lists, from `first` on.
    """
    ends = np.cumsum(counts)
    at = 0
    while at < max(len(counts), 1):
        before = ends[at - 1] if at else 0
        end = max(int(np.searchsorted(ends, before + _BLOCK, "right")), at + 1)
        own = counts[at:end]
        inside = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
        mine = np.repeat(np.arange(at, at + len(own)), own)
        others = order[np.repeat(first[at:end], own) + inside]
        rows = np.lexsort((others, mine))
        yield mine[rows], others[rows]
        at = end


class _Finder:
    """Computes the overlaps of two layouts, by pair of devices."""

    def __init__(
        self,
        windows: tuple[Sequence[Window], Sequence[Window]],
        order: Shape,
        device: DeviceGrid,
        most: int,
    ) -> None:
        self.windows, self.order, self.most = windows, order, most
        self.names = tuple(device.fine.axis_names)
        self.sizes = tuple(device.fine.shape.values())

    def overlaps(self) -> Overlaps | None:
        """Return all overlaps; None if there are too many."""
        joined = _Table({}, {}, {}, 1)
        every = [(side, k) for side, found in enumerate(self.windows) for k in range(len(found))]
        for _, places in components(frozenset(self.windows[s][k].atoms) for s, k in every):
            found = self._shared([every[place] for place in places])
            if found is None or joined.count * found.count > self.most:
                return None
            both = joined.intersect(found, self.most)
            assert both is not None  # at most `most` pairs
            joined = both
        return self._on_devices(joined.numbers, joined.low, joined.high, joined.count)

    def _shared(self, members: Sequence[tuple[int, int]]) -> _Table | None:
        """Return the overlaps of windows that share atoms; None if there are too many."""
        found = _Table({}, {}, {}, 1)
        for side, k in members:
            window = self.windows[side][k]
            numbers, boxes = window.table
            low: dict[int, Ints] = dict(zip(window.atoms, boxes[..., 0].T, strict=True))
            high: dict[int, Ints] = dict(zip(window.atoms, boxes[..., 1].T, strict=True))
            own = _Table({(side, k): numbers}, low, high, len(boxes)).nonempty
            # All windows cover the array, so that later ones only divide what is found.
            both = found.intersect(own, self.most)
            if both is None:
                return None
            found = both
        return found

    def _on_devices(
        self,
        numbers: dict[tuple[int, int], Ints],
        low: dict[int, Ints],
        high: dict[int, Ints],
        count: int,
    ) -> Overlaps | None:
        """Return the overlaps for every copy; each device receives from the nearest holder."""
        (before, free), (after, copied) = (self._coordinates(numbers, k, count) for k in (0, 1))
        ranges = [range(n) if k in copied else (0,) for k, n in enumerate(self.sizes)]
        copies = np.array(list(product(*ranges)), np.int64)
        if count * len(copies) > self.most:
            return None
        target = (after[:, None, :] + copies[None]).reshape(-1, len(self.sizes))
        source = np.repeat(before, len(copies), axis=0)
        source[:, list(free)] = target[:, list(free)]
        corner, sizes = (
            np.repeat(np.stack([found[k] for k in self.order], axis=1), len(copies), axis=0)
            for found in (low, {k: high[k] - low[k] for k in self.order})
        )
        origins = [self._origins(numbers, k, count, len(copies)) for k in (0, 1)]
        devices = [np.ravel_multi_index(tuple(x.T), self.sizes) for x in (source, target)]
        return Overlaps(devices[0], devices[1], sizes, corner - origins[0], corner - origins[1])

    def _coordinates(
        self, numbers: dict[tuple[int, int], Ints], side: int, count: int
    ) -> tuple[Ints, set[int]]:
        """Return device coordinates along the mesh axes, and the axes that hold copies."""
        found = np.zeros((count, len(self.sizes)), np.int64)
        free = set(range(len(self.sizes)))
        for k, window in enumerate(self.windows[side]):
            index = numbers[side, k]
            for axis in reversed(window.axes):
                at = self.names.index(axis)
                free.discard(at)
                found[:, at] = index % self.sizes[at]
                index = index // self.sizes[at]
        return found, free

    def _origins(
        self, numbers: dict[tuple[int, int], Ints], side: int, count: int, copies: int
    ) -> Ints:
        """Return, for each overlap, the index of the first element of its device's array."""
        found = np.zeros((count, len(self.order)), np.int64)
        for k, window in enumerate(self.windows[side]):
            at = [self.order.index(atom) for atom in window.atoms]
            found[:, at] = np.array(window.origins, np.int64)[numbers[side, k]]
        return np.repeat(found, copies, axis=0)
