"""Borders: what devices receive of a divided dim to read views of it, such as those of a stencil.

A device that computes a block of a view reads a range of the array's positions, which may begin
before its own block, end after it, or be in the blocks of other devices. The positions of other
devices arrive in slabs, each by one permute, for all devices whose neighbours are as far away, or
for any that send and receive one at most; or, where latency is what counts, narrow ones by one
all-gather of all of them; or by an all-gather of the blocks. Positions that wrap around, as in a
roll, come from the neighbour on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.choice import fastest_of
from gridlayout.sharding.collectives import Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.rounds import Messages, most_at_one
from gridlayout.sharding.machines.machine import Machine

Array = NDArray[np.int64]
# Positions that are outside of the array, and those that nothing is read from. Both are negative.
OUTSIDE, UNREAD = -1, -2
# The most slabs of which a part is shared.
_FEW = 8
# The most that rounds of pieces of different widths send, as a factor.
_SLACK = 1.25


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
    gathered: the positions of each block that an all-gather sends; None for slabs. slabs: those
    that are a permute each. shared: those that one all-gather sends to all devices. is_inner:
    whether the dim is behind others, so that a gather along it copies.
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
    shared: tuple[Slab, ...] = ()
    is_inner: bool = False

    @classmethod
    def local(cls, axes: Axes, n: int, block: int, length: int, offsets: Sequence[Array]) -> Border:
        """Return the buffer that a device has without receiving anything."""
        return cls(axes, n, block, length, (0, length), 0, (), tuple(offsets))

    @property
    def every_slab(self) -> tuple[Slab, ...]:
        """All slabs, those of permutes first."""
        return (*self.slabs, *self.shared)

    @property
    def is_local(self) -> bool:
        """Whether nothing is received."""
        return not self.every_slab and self.gathered is None

    @property
    def received(self) -> int:
        """The positions that are written, besides the device's own block."""
        if self.gathered is not None:
            return self.length
        return sum(slab.width for slab in self.slabs) + self.n * self.sent_to_all

    @property
    def sent(self) -> int:
        """The positions of all slabs."""
        return sum(slab.width for slab in self.every_slab)

    @property
    def sent_to_all(self) -> int:
        """The positions of shared slabs."""
        return sum(slab.width for slab in self.shared)

    def sharing(self, count: int) -> Border:
        """Return the same border with the `count` narrowest slabs shared."""
        order = sorted(self.every_slab, key=lambda slab: -slab.width)
        first = len(order) - count
        return replace(self, slabs=tuple(order[:first]), shared=tuple(order[first:]))

    def collectives(self, made: Collectives, width: int) -> Collectives:
        """Add what the devices send to `made`. width: bytes per position."""
        if self.gathered is not None:
            first, last = self.gathered
            return made.all_gather(self.axes, (last - first) * width, int(self.is_inner))
        for slab in self.slabs:
            made.permute(self.axes, slab.width * width, len(slab.pairs))
        return made.all_gather(self.axes, self.sent_to_all * width, int(self.is_inner))


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
    is_inner: bool = False,
) -> Border:
    """Return the border that is received in the least time.

    width: bytes per position. is_inner: whether the dim is behind others.
    """
    n = device.count(axes)
    if n == 1:
        return Border.local(axes, 1, block, block, reads)
    ways = in_slabs(axes, n, block, extent, reads)
    ways = [way.sharing(count) for way in ways for count in _counts(len(way.slabs))]
    whole = gathered(axes, n, block, reads)
    ways = [replace(way, is_inner=is_inner) for way in (*ways, *([whole] if whole else ()))]
    sent = [way.collectives(Collectives(device), width).found for way in ways]
    seconds = [
        machine.price(each, device.size) + machine.work_seconds(nbytes=way.received * width)
        for each, way in zip(sent, ways, strict=True)
    ]
    received = [total_bytes(each) / device.size for each in sent]
    return ways[fastest_of(seconds, received, machine.similar)]


def _counts(slabs: int) -> Sequence[int]:
    """Return how many of some slabs may be shared."""
    return range(slabs + 1) if slabs <= _FEW else (0, slabs)


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


@dataclass(frozen=True)
class _Piece:
    """The positions `first` to `last`, as `_unwrapped`, that a device reads of another's block.

    turn: how often the array is passed on the way.
    """

    sender: int
    receiver: int
    first: int
    last: int
    hop: int
    turn: int

    @property
    def width(self) -> int:
        return self.last - self.first + 1


def in_slabs(axes: Axes, n: int, block: int, extent: int, reads: Sequence[Array]) -> list[Border]:
    """Return the borders that are received in slabs: by distance, and in the fewest permutes.

    Those are left out in which blocks of views do not fit slabs. reads: for each view, of each of
    the `n` devices the positions that it reads in order.
    """
    first_of = np.arange(n)[:, None] * block
    at = [_unwrapped(p, first_of, block, extent) for p in reads]
    first, last = block, -1
    read: dict[tuple[int, int], _Piece] = {}
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
                known = read.get((hop, d))
                if known is not None:
                    a, b = min(known.first, a), max(known.last, b)
                turn = known.turn if known is not None else int(turns[d][mine][0])
                read[hop, d] = _Piece((d + hop) % n, d, a, b, hop, turn)
    pieces = [read[key] for key in sorted(read, key=lambda key: (abs(key[0]), key))]
    distances = sorted({piece.hop for piece in pieces}, key=abs)
    groups = [[[piece for piece in pieces if piece.hop == hop] for hop in distances]]
    if (fewer := _in_rounds(pieces, len(distances))) is not None:
        groups.append(fewer)
    own = (first, last + 1) if last >= first else (0, 0)
    own = own if pieces else (0, block)  # the block as it is
    made = [_joined(axes, n, block, extent, own, some, reads, at) for some in groups]
    return [border for border in made if border is not None]


def _in_rounds(pieces: Sequence[_Piece], most: int) -> list[list[_Piece]] | None:
    """Return the pieces in fewer than `most` rounds, of one piece from and to a device; or None."""
    if not pieces:
        return None
    ends = [(piece.sender, piece.receiver, piece.width) for piece in pieces]
    source, target, widths = np.array(ends).T
    if most_at_one(source, target) >= most:
        return None
    rows = Messages(source, target, widths[:, None]).in_rounds(_SLACK * int(widths.sum()))
    if len(rows) >= most:
        return None
    return [[pieces[k] for k in own.tolist()] for own in rows]


def _joined(
    axes: Axes,
    n: int,
    block: int,
    extent: int,
    own: tuple[int, int],
    groups: Sequence[Sequence[_Piece]],
    reads: Sequence[Array],
    at: Sequence[Array],
) -> Border | None:
    """Return the buffer of a device's own positions and a slab for each group of pieces.

    None if a slab overwrites what another one has. at: the reads, `_unwrapped`.
    """
    slabs = [_slab(n, block, extent, group) for group in groups]
    ends = [(int(s.places[d]), int(s.places[d]) + s.width) for s in slabs for _, d in s.pairs]
    ends += [own] if own[0] < own[1] else []
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    offsets = [np.where(p >= 0, u - low, p) for p, u in zip(reads, at, strict=True)]
    slabs = [Slab(s.width, s.pairs, s.starts, s.places - low) for s in slabs]
    start = own[0] - low if own[0] < own[1] else 0
    made = Border(axes, n, block, high - low, own, start, tuple(slabs), tuple(offsets))
    return made if _has_all(made, reads) else None


def _slab(n: int, block: int, extent: int, pieces: Sequence[_Piece]) -> Slab:
    """Return the slab of pieces that are received at once, each as wide as the widest.

    Those before a block end where they are read, those after it begin there, if that is in the
    sender's block.
    """
    width = max(piece.width for piece in pieces)
    starts, places = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for each in pieces:
        place = each.last + 1 - width if each.hop < 0 else each.first
        start = place + (each.receiver - each.sender) * block + each.turn * extent
        inside = min(max(start, 0), block - width)
        starts[each.sender], places[each.receiver] = inside, place + inside - start
    pairs = sorted((each.sender, each.receiver) for each in pieces)
    return Slab(width, tuple(pairs), starts, places)


def _has_all(border: Border, reads: Sequence[Array]) -> bool:
    """Whether each device finds in its buffer what it reads, whichever slab it writes last."""
    n, block, (start, stop) = border.n, border.block, border.own
    rows = np.arange(n)[:, None]
    needed = np.full((n, border.length), UNREAD)
    for p, at in zip(reads, border.offsets, strict=True):
        needed[np.broadcast_to(rows, p.shape)[p >= 0], at[p >= 0]] = p[p >= 0]
    held = np.full((n, border.length), UNREAD)
    held[:, border.at : border.at + stop - start] = rows * block + np.arange(start, stop)
    for slab in border.slabs:
        for sender, d in slab.pairs:
            first, place = sender * block + slab.starts[sender], slab.places[d]
            part = first + np.arange(slab.width)
            held[d, place : place + slab.width] = part
            mine = needed[d, place : place + slab.width]
            if ((mine != part) & (mine >= 0)).any():
                return False
    return bool(((held == needed) | (needed < 0)).all())


def _unwrapped(p: Array, start: Array, block: int, extent: int) -> Array:
    """Return positions relative to each device's block, around the array where that is nearer."""
    ways = np.stack([p - start, p - start - extent, p - start + extent])
    far = np.maximum(np.maximum(-ways, ways - block + 1), 0)
    return np.take_along_axis(ways, far.argmin(0)[None], 0)[0]
