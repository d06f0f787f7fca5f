"""`Pieces`: a relayout in which devices send each other boxes of the tensor.

Devices hold boxes of the tensor before and need others after. A *piece* is the intersection of two
of these boxes. Pieces are sent in *rounds*. In a round each device sends at most one piece and
receives at most one, in a buffer of the largest piece's size. A round is one permute; all pieces
together may be one all_to_all. Nothing else is sent: no padding of layouts, no data that a device
already has. Unequal pieces in one round waste at most a quarter of the bytes that have to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Ints, Shape
from gridlayout.caching import cached
from gridlayout.layouts.blocks import Blocks, find_blocks
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.collectives import Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.overlaps import Overlaps, find_overlaps
from gridlayout.sharding.exchanges.windows import Window, find_windows
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement

Tables = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class Round:
    """Pieces that are sent at once: at most one from each device and one to each.

    every: all pieces; `numbers` are those of this round. size: the shape of the buffer. devices:
    the number of all devices.
    """

    every: Overlaps
    numbers: Ints
    size: Shape
    devices: int

    @property
    def rows(self) -> Overlaps:
        """The pieces. Many rounds are cached, so each makes this table when asked."""
        return self.every.at(self.numbers)

    @property
    def receivers(self) -> int:
        """The number of devices that receive a piece from another."""
        return int((self.rows.source != self.rows.target).sum())

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs (from, to) of device numbers, including pieces that a device keeps."""
        return sorted(zip(self.rows.source.tolist(), self.rows.target.tolist(), strict=True))

    @cached_property
    def tables(self) -> Tables:
        """Arrays of one row per device: the box's first corner in the device's array as sender, the
        one as receiver, and the valid extents of what it receives (0 if it receives nothing).
        """
        rows, shape = self.rows, (self.devices, len(self.size))
        # Where all participating devices have one value, the others get it too: XLA then slices at
        # a constant position and masks along few dims.
        same = [np.where((x == x[0]).all(axis=0), x[0], 0) for x in (rows.sent, rows.put)]
        none = np.array(self.size)
        none[int((rows.sizes != none).any(axis=0).argmax())] = 0
        sent, put, counts = (np.broadcast_to(x, shape).copy() for x in (*same, none))
        sent[rows.source], put[rows.target], counts[rows.target] = rows.sent, rows.put, rows.sizes
        return sent, put, counts


@dataclass(frozen=True, eq=False)
class AllToAll:
    """An all_to_all along `axes`, with one box for each of the `count` devices there.

    rows: the pieces. senders, receivers: for each piece, the device's index along the axes. size:
    the shape of a box. devices: the number of all devices.
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
        """Arrays by device and index along the axes: the first corner of the box sent there, the
        first corner of the box received from there, and the valid extents of the latter.
        """
        shape = (self.devices, self.count, len(self.size))
        sent, put, counts = (np.zeros(shape, np.int64) for _ in range(3))
        sent[self.rows.source, self.receivers] = self.rows.sent
        put[self.rows.target, self.senders] = self.rows.put
        counts[self.rows.target, self.senders] = self.rows.sizes
        return sent, put, counts


@dataclass(frozen=True, eq=False)
class Schedule:
    """How pieces are sent.

    stays: rounds of pieces that keep their device, so that nothing is sent. rounds: one permute
    each. all_to_all: one all_to_all of all pieces, instead of rounds.
    """

    stays: tuple[Round, ...]
    rounds: tuple[Round, ...]
    all_to_all: AllToAll | None = None

    @cached_property
    def sizes(self) -> list[Shape]:
        """The shapes of a device's pieces: `stays`, then `rounds`, then of `all_to_all`."""
        found = [each.size for each in (*self.stays, *self.rounds)]
        every = self.all_to_all
        return found if every is None else [*found, *[every.size] * every.count]

    @cached_property
    def tables(self) -> Tables:
        """The tables of rounds and all_to_all, concatenated: by device and piece."""
        every = [[x[:, None] for x in each.tables] for each in (*self.stays, *self.rounds)]
        every += [] if self.all_to_all is None else [[*self.all_to_all.tables]]
        sent, put, counts = (np.concatenate(some, axis=1) for some in zip(*every, strict=True))
        return sent, put, counts

    @cached_property
    def starts(self) -> tuple[Shape, Ints]:
        """The dims along which pieces are sliced, and their starts there, one row per device."""
        sent = self.tables[0]
        along = tuple(np.flatnonzero(sent.any(axis=(0, 1))).tolist())
        return along, sent[:, :, along].reshape(len(sent), -1)


@dataclass(frozen=True, eq=False)
class PlacedBlocks:
    """The blocks of one layout, their placement, and the windows of the devices.

    atoms: the order of the atoms.
    """

    blocks: Blocks
    placement: Placement
    windows: tuple[Window, ...]
    atoms: Shape

    @property
    def is_even(self) -> bool:
        """Whether all devices have equal parts without padding, except the padding of tiles."""
        flat = self.blocks.flat
        return (
            self.placement.slots == self.placement.grid and prod(flat.physical_shape) == flat.size
        )

    @property
    def extents(self) -> Shape:
        """The shape of a device's array, one dim per atom."""
        found = {k: n for w in self.windows for k, n in zip(w.atoms, w.extents, strict=True)}
        return tuple(found[k] for k in self.atoms)


@dataclass(frozen=True, eq=False)
class Pieces:
    """A relayout in pieces. rows: all pieces. dtype: of the elements."""

    source: PlacedBlocks
    target: PlacedBlocks
    rows: Overlaps
    device: DeviceGrid
    dtype: np.dtype[Any]

    @cached_property
    def moving(self) -> Overlaps:
        """The pieces that change device."""
        return self.rows.at(self.rows.source != self.rows.target)

    @cached_property
    def moved(self) -> int:
        """Bytes of the moving pieces, summed over all devices: the least that must be sent."""
        return self.nbytes(int(self.moving.volume))

    @property
    def slack(self) -> float:
        """How many times `moved` may be received, if that takes fewer collectives."""
        return 1.0 if self.source.is_even and self.target.is_even else LIMITS.slack

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule of the pieces; None if it takes too many rounds."""
        degree = self.moving.degree
        stays = self._stationary()
        if not degree:
            return Schedule(stays, ())
        if degree > LIMITS.few_rounds and (found := self._all_to_all()) is not None:
            return Schedule(stays, (), found)
        if degree > LIMITS.rounds:
            return None
        rows, every = self.moving, self.rows
        if (every.sizes == every.sizes[0]).all() and every.degree == degree:
            # Stationary pieces are part of rounds in which their device would be idle, so that no
            # round has to preserve existing elements.
            rows, stays = every, ()
        limit = max(self.slack * self.moving.volume, rows.volume)
        rounds = tuple(self._round(rows, own) for own in rows.in_rounds(limit))
        return Schedule(stays, rounds) if len(rounds) <= LIMITS.rounds else None

    @cached_property
    def order(self) -> Ints | None:
        """For each device (row) and block of its new part, the number of the piece that fills it.

        Pieces are numbered as in `Schedule.sizes`; the next number marks blocks that no piece
        fills. None if pieces differ in size, are not aligned to blocks, or fill few blocks, and if
        they are so large that one kernel per piece is faster than copying all of them twice.
        """
        schedule, extents = self.schedule, np.array(self.target.extents)
        if schedule is None or len({*schedule.sizes}) != 1:
            return None
        if sum(map(self.nbytes, schedule.sizes)) > LIMITS.gathered_bytes:
            return None
        size, (_, put, valid) = np.array(schedule.sizes[0]), schedule.tables
        whole, blocks = (valid == size).all(axis=2), extents // size
        in_part = ~whole & (valid > 0).all(axis=2)
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
        """The collectives of the schedule.

        Pieces are cut out of a part and put into one, which copies them if they are not all of it.
        """
        made, schedule = Collectives(self.device), self.schedule
        assert schedule is not None
        if (sent := schedule.all_to_all) is not None:
            return made.all_to_all(sent.axes, sent.count * self.nbytes(sent.size), (1, 1)).found
        extents, count = self.target.extents, max(len(schedule.rounds), 1)
        for each in schedule.rounds:
            axes, nbytes = self._along(each.rows)[0], self.nbytes(each.size)
            copied = 0 if each.size == self.source.extents else nbytes
            copied += 0 if each.size == extents else -(-self.nbytes(extents) // count)
            made.pieces(axes, nbytes, each.receivers, copied)
        return made.found

    def _along(self, rows: Overlaps) -> tuple[Axes, list[Ints]]:
        """Return the mesh axes along which senders and receivers differ, and both's coordinates."""
        sizes = tuple(self.device.fine.shape.values())
        ends = [np.stack(np.unravel_index(x, sizes)) for x in (rows.source, rows.target)]
        along = (ends[0] != ends[1]).any(axis=1)
        return tuple(n for n, x in zip(self.device.fine.axis_names, along, strict=True) if x), ends

    def nbytes(self, size: int | Shape) -> int:
        """Return the bytes of a piece or buffer. size: its number of elements, or its shape."""
        return dtypes.nbytes(size, self.dtype)

    def _round(self, every: Overlaps, own: Ints) -> Round:
        size = every.sizes[own].max(axis=0)
        return Round(every, own, tuple(size.tolist()), self.device.size)

    def _stationary(self) -> tuple[Round, ...]:
        """Return the pieces that keep their device; round k has the k-th piece of each device."""
        rows = self.rows.at(self.rows.source == self.rows.target)
        rows = rows.at(np.argsort(rows.source, kind="stable"))
        _, starts = np.unique(rows.source, return_index=True)
        lengths = np.diff([*starts.tolist(), len(rows.source)])
        nth = np.arange(len(rows.source)) - np.repeat(starts, lengths)
        count = max(lengths, default=0)
        return tuple(self._round(rows, np.flatnonzero(nth == k)) for k in range(count))

    def _all_to_all(self) -> AllToAll | None:
        """Return one all_to_all of all pieces; None if its boxes would send too many bytes."""
        rows, shape = self.moving, self.device.fine.shape
        axes, ends = self._along(rows)
        count, size = self.device.count(axes), tuple(rows.sizes.max(axis=0).tolist())
        # The box of a device for itself is counted too.
        pairs = self.rows.source * self.device.size + self.rows.target
        total = self.device.size * (count - 1) * prod(size)
        if total > self.slack * rows.volume or len(np.unique(pairs)) < len(pairs):
            return None
        inner = tuple(shape[axis] for axis in axes)
        pairs_along = [tuple(end[k] for k, n in enumerate(shape) if n in axes) for end in ends]
        senders, receivers = (np.ravel_multi_index(end, inner) for end in pairs_along)
        return AllToAll(axes, rows, senders, receivers, size, count, self.device.size)


@cached(size=7 << 10)
def find_pieces(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> Pieces | None:
    """Return the pieces of a relayout; None if they are no boxes, or too many.

    >>> from gridlayout import GridLayout
    >>> from jax.sharding import AbstractMesh
    >>> device = DeviceGrid(AbstractMesh((4,), ("x",)))
    >>> a, b = GridLayout((12,), grid=(4,)), GridLayout((12,), grid=(3,))
    >>> places = [device.placement(x) for x in (a, b)]
    >>> for each in find_pieces(a, b, device, *places).schedule.rounds:
    ...     print(each.pairs, each.size)
    [(2, 1), (3, 2)] (3,)
    [(1, 0)] (1,)
    """
    if device.size > (LIMITS.devices_in_few if before == after else LIMITS.devices):
        return None
    a, b = find_blocks(old), find_blocks(new)
    if a is None or b is None:
        return None
    both = (a, b)
    windows = find_windows(both, (before, after))
    if windows is None:
        return None
    order = tuple(k for window in windows[1] for k in window.atoms)
    found = find_overlaps(windows, order, device, LIMITS.devices_in_few)
    if found is None:
        return None
    source, target = (
        PlacedBlocks(blocks, placement, tuple(own), order)
        for blocks, placement, own in zip(both, (before, after), windows, strict=True)
    )
    pieces = Pieces(source, target, found, device, old.dtype)
    many = device.size > LIMITS.devices or len(found.source) > LIMITS.pieces
    return None if many and pieces.moving.degree > LIMITS.few_rounds else pieces
