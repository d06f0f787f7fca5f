"""`Overlaps`: the intersections of the boxes that devices hold with those that they need.

Windows that share no atoms are independent, so intersections are computed per group of windows and
combined as a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from gridlayout.affine.search import components
from gridlayout.arguments import Ints, Shape
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.rounds import Messages, most_at_one
from gridlayout.sharding.exchanges.windows import Window

_MOST_PAIRS = 1 << 24  # most pairs of boxes that are compared at once


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

    def intersect(self, other: _Table) -> _Table | None:
        """Return the nonempty intersections of all boxes with all boxes of another table.

        None if too many pairs would have to be compared.
        """
        both = sorted(self.low.keys() & other.low.keys())
        if (rows := self._meeting(other, both)) is None:
            return None
        a, b = self.at(rows[0]), other.at(rows[1])
        low = {atom: np.maximum(a.low[atom], b.low[atom]) for atom in both}
        high = {atom: np.minimum(a.high[atom], b.high[atom]) for atom in both}
        found = _Table(a.numbers | b.numbers, a.low | b.low | low, a.high | b.high | high, a.count)
        meets = np.ones(a.count, np.bool_)
        for atom in both:
            meets &= low[atom] < high[atom]
        return found if meets.all() else found.at(np.flatnonzero(meets))

    def _meeting(self, other: _Table, atoms: Sequence[int]) -> tuple[Ints, Ints] | None:
        """Return the pairs of boxes, as row numbers, that intersect along one of the atoms.

        Of the atoms along which the other table's boxes can be sorted, the one with the fewest
        pairs is used. None if there are too many pairs.
        """
        least, found = self.count * other.count, None
        for atom in atoms:
            order = np.argsort(other.low[atom], kind="stable")
            low, high = other.low[atom][order], other.high[atom][order]
            if (np.diff(high) < 0).any():
                continue
            first = np.searchsorted(high, self.low[atom], "right")
            counts = np.maximum(np.searchsorted(low, self.high[atom], "left") - first, 0)
            if counts.sum() < least:
                least, found = int(counts.sum()), (order, first, counts)
        if least > _MOST_PAIRS:
            return None
        if found is None:
            return np.divmod(np.arange(least), max(other.count, 1))
        order, first, counts = found
        inside = np.arange(least) - np.repeat(np.cumsum(counts) - counts, counts)
        mine = np.repeat(np.arange(self.count), counts)
        others = order[np.repeat(first, counts) + inside]
        rows = np.lexsort((others, mine))
        return mine[rows], others[rows]


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
            both = joined.intersect(found)
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
            both = found.intersect(_Table({(side, k): numbers}, low, high, len(boxes)))
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
