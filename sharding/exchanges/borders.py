"""Borders: what devices receive of a divided dim to read views of it, such as those of a stencil.

A device that computes a block of a view reads a range of the array's positions, which may begin
before its own block, end after it, or be in the blocks of other devices. The positions of other
devices arrive in slabs, one permute for all devices whose neighbours are as far away; or, where
latency is what counts, by one all-gather of all slabs; or by an all-gather of the blocks. Positions
that wrap around, as in a roll, come from the neighbour on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.collectives import Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine

Array = NDArray[np.int64]
# Positions that are outside of the array, and those that nothing is read from. Both are negative.
OUTSIDE, UNREAD = -1, -2
# A gather of all slabs has to be so much faster than permutes, which send fewer bytes.
_MORE = 1.2


@dataclass(frozen=True, eq=False)
class Slab:
    """`width` positions that some devices receive in one permute.

    pairs: (from, to). starts: for each sender, the first position in its block. places: for each
    receiver, where they go in the buffer.
    """

    width: int
    pairs: tuple[tuple[int, int], ...]
    starts: Array
    places: Array


@dataclass(frozen=True, eq=False)
class Border:
    """The buffer of one dim that a device reads views from, and how it is filled.

    axes: the mesh axes of the `n` devices that divide the dim in blocks of `block`. length: of the
    buffer. own: the positions of the device's own block that are in it, from `at` on. offsets: for
    each view, of each device and each of its positions the place in the buffer; or OUTSIDE, UNREAD.
    gathered: the positions of each block that an all-gather sends; None for slabs. at_once: whether
    all slabs of all devices are gathered; else each one is a permute.
    """

    axes: Axes
    n: int
    block: int
    length: int
    own: tuple[int, int]
    at: int
    slabs: tuple[Slab, ...]
    offsets: tuple[Array, ...]
    gathered: tuple[int, int] | None = None
    at_once: bool = False

    @classmethod
    def local(cls, axes: Axes, n: int, block: int, length: int, offsets: Sequence[Array]) -> Border:
        """Return the buffer that a device has without receiving anything."""
        return cls(axes, n, block, length, (0, length), 0, (), tuple(offsets))

    @property
    def is_local(self) -> bool:
        """Whether nothing is received."""
        return not self.slabs and self.gathered is None

    @property
    def received(self) -> int:
        """The positions that are written, besides the device's own block."""
        if self.gathered is not None:
            return self.length
        return self.sent * (self.n if self.at_once else 1)

    @property
    def sent(self) -> int:
        """The positions of all slabs."""
        return sum(slab.width for slab in self.slabs)

    def collectives(self, made: Collectives, width: int) -> Collectives:
        """Add what the devices send to `made`. width: bytes per position."""
        if self.gathered is not None:
            first, last = self.gathered
            return made.all_gather(self.axes, (last - first) * width)
        if self.at_once:
            return made.all_gather(self.axes, self.sent * width)
        for slab in self.slabs:
            made.permute(self.axes, slab.width * width, len(slab.pairs))
        return made


def seconds_of_borders(
    machine: Machine, device: DeviceGrid, axes: Axes, widths: Sequence[int]
) -> float:
    """Return the seconds to receive borders of so many bytes from neighbours along mesh axes."""
    apart, together = Collectives(device), Collectives(device)
    for nbytes in widths:
        apart.permute(axes, nbytes, device.count(axes))
    together.all_gather(axes, sum(widths))
    return min(machine.seconds(apart.found), machine.seconds(together.found))


def cheapest(
    machine: Machine,
    device: DeviceGrid,
    axes: Axes,
    block: int,
    extent: int,
    reads: Sequence[Array],
    width: int,
) -> Border:
    """Return the border that is received in the least time. width: bytes per position."""
    n = device.count(axes)
    if n == 1:
        return Border.local(axes, 1, block, block, reads)
    slabs = in_slabs(axes, n, block, extent, reads)
    ways = [slabs, slabs and replace(slabs, at_once=bool(slabs.slabs))]
    ways.append(gathered(axes, n, block, reads))

    def seconds(way: Border) -> float:
        sent = machine.price(way.collectives(Collectives(device), width).found, device.size)
        found = sent + machine.work_seconds(nbytes=way.received * width)
        return found * (_MORE if way.at_once else 1)

    return min((way for way in ways if way is not None), key=seconds)


def gathered(axes: Axes, n: int, block: int, reads: Sequence[Array]) -> Border | None:
    """Return the border in which every device gets what any device reads of every block.

    None if nothing is read.
    """
    inside = np.concatenate([each[each >= 0] for each in reads])
    if not len(inside):
        return None
    first, last = (inside % block).min(), (inside % block).max() + 1
    if len({*(inside // block)}) > 1:
        first, last = 0, block  # blocks follow each other in the buffer
    width = int(last - first)
    offsets = [np.where(p >= 0, p // block * width + p % block - first, p) for p in reads]
    ends = (int(first), int(last))
    return Border(axes, n, block, n * width, (0, 0), 0, (), tuple(offsets), ends)


def in_slabs(axes: Axes, n: int, block: int, extent: int, reads: Sequence[Array]) -> Border | None:
    """Return the border that is received in slabs; None if blocks of views do not fit slabs.

    reads: for each view, of each of the `n` devices the positions that it reads in order.
    """
    first_of = np.arange(n)[:, None] * block
    at = [_unwrapped(p, first_of, block, extent) for p in reads]
    first, last = block, -1
    read: dict[int, dict[int, tuple[int, int, int]]] = {}  # hop -> receiver -> first, last, turns
    for p, u in zip(reads, at, strict=True):
        turns = (p - first_of - u) // extent
        hops = p // block - np.arange(n)[:, None] - n * turns
        for d in range(n):
            for hop in np.unique(hops[d][p[d] >= 0]).tolist():
                mine = (p[d] >= 0) & (hops[d] == hop)
                a, b = int(u[d][mine].min()), int(u[d][mine].max())
                if not hop:
                    first, last = min(first, a), max(last, b)
                    continue
                own = read.setdefault(hop, {})
                before = own.get(d, (a, b, 0))
                own[d] = min(before[0], a), max(before[1], b), int(turns[d][mine][0])
    slabs = []
    for hop in sorted(read, key=abs):
        width = max(b - a + 1 for a, b, _ in read[hop].values())
        starts, places, pairs = np.zeros(n, np.int64), np.zeros(n, np.int64), []
        for d, (a, b, turn) in read[hop].items():
            # Those before a block end where they are read, those after it begin there.
            place, sender = b + 1 - width if hop < 0 else a, (d + hop) % n
            start = place + (d - sender) * block + turn * extent
            if start < 0 or start + width > block:
                return None
            pairs.append((sender, d))
            starts[sender], places[d] = start, place
        slabs.append(Slab(width, tuple(sorted(pairs)), starts, places))
    ends = [(int(s.places[d]), int(s.places[d]) + s.width) for s in slabs for _, d in s.pairs]
    if not slabs:
        first, last = 0, block - 1  # the block as it is
    if last >= first:
        ends.append((first, last + 1))
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    offsets = [np.where(p >= 0, u - low, p) for p, u in zip(reads, at, strict=True)]
    slabs = [Slab(s.width, s.pairs, s.starts, s.places - low) for s in slabs]
    kept, place = ((first, last + 1), first - low) if last >= first else ((0, 0), 0)
    return Border(axes, n, block, high - low, kept, place, tuple(slabs), tuple(offsets))


def _unwrapped(p: Array, start: Array, block: int, extent: int) -> Array:
    """Return positions relative to each device's block, around the array where that is nearer."""
    ways = np.stack([p - start, p - start - extent, p - start + extent])
    far = np.maximum(np.maximum(-ways, ways - block + 1), 0)
    return np.take_along_axis(ways, far.argmin(0)[None], 0)[0]
