"""The borders that devices receive for the positions that they read, and the cheapest of them.

A border is received in slabs (`borders.py`): by distance, or in the fewest permutes; some of them
in one all-gather; or as whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.choice import fastest_of
from gridlayout.sharding.collectives import Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.borders import UNREAD, Array, Border, Segment, Slab
from gridlayout.sharding.exchanges.rounds import Messages, most_at_one
from gridlayout.sharding.machines.machine import Machine

# The most slabs of which a part is shared.
_FEW = 8
# The most segments of a buffer.
_SEGMENTS = 8
# The most that rounds of pieces of different widths send, as a factor.
_SLACK = 1.25


def cheapest(
    machine: Machine,
    device: DeviceGrid,
    axes: Axes,
    block: int,
    extent: int,
    reads: Sequence[Array],
    width: int,
    is_inner: bool = False,
    is_filled: bool = False,
) -> Border:
    """Return the border that is received in the least time.

    width: bytes per position. is_inner: whether the dim is behind others. is_filled: as for
    `in_slabs`.
    """
    n = device.count(axes)
    if n == 1:
        return Border.local(axes, 1, block, block, reads)
    ways = in_slabs(axes, n, block, extent, reads, is_filled)
    ways = [way.sharing(count) for way in ways for count in _counts(len(way.slabs))]
    whole = gathered(axes, n, block, reads)
    ways = [replace(way, is_inner=is_inner) for way in (*ways, *([whole] if whole else ()))]
    sent = [way.collectives(Collectives(device), width).found for way in ways]
    seconds = [
        machine.price(each, device.size) + machine.work_seconds(nbytes=way.copied * width)
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
    return Border(axes, n, block, n * width, tuple(offsets), gathered=ends)


@dataclass(frozen=True)
class _Piece:
    """The places `first` to `last` that a device reads of a block, from `start` in it on.

    hop: how many blocks it is after the device's own, around the array if that is nearer.
    """

    sender: int
    receiver: int
    first: int
    last: int
    start: int
    hop: int

    @property
    def width(self) -> int:
        return self.last - self.first + 1


def in_slabs(
    axes: Axes,
    n: int,
    block: int,
    extent: int,
    reads: Sequence[Array],
    is_filled: bool = False,
) -> list[Border]:
    """Return the borders that are received in slabs: by distance, and in the fewest permutes.

    Places are relative to the devices' own blocks, or else to what they read first. Those are left
    out in which blocks of views do not fit slabs. reads: for each view, of each of the `n` devices
    the positions that it reads in order. is_filled: whether the buffer has no padding of blocks, so
    that it may be filled there: for kernels with which XLA fuses nothing that views set.
    """
    starts = np.arange(n)[:, None] * block
    at = [_unwrapped(p, starts, block, extent) for p in reads]
    _join_turns(starts, block, extent, reads, at)
    firsts = np.array([[_first(p, u)] for p, u in zip(reads[0], at[0], strict=True)])
    found: list[Border | None] = []
    for origin in (np.zeros_like(firsts), firsts):
        places = [u - origin for u in at]
        pieces = _pieces(starts + origin, block, extent, reads, places)
        pieces = pieces if is_filled else _with_padding(pieces, block, extent)
        own, sent = (
            [x for x in pieces if (x.sender == x.receiver) is yes] for yes in (True, False)
        )
        if not sent:
            return [Border.local(axes, n, block, block, _offsets(reads, at))]
        here, there = _by_hop(own), _by_hop(sent)
        fewer = _in_rounds(sent, len(there))
        for groups in (there, *([] if fewer is None else [fewer])):
            found.append(_joined(axes, n, block, here, groups, reads, places))
        if (firsts == firsts[0]).all():
            break
    return [border for border in found if border is not None]


def _offsets(reads: Sequence[Array], places: Sequence[Array]) -> list[Array]:
    return [np.where(p >= 0, u, p) for p, u in zip(reads, places, strict=True)]


def _first(reads: Array, at: Array) -> int:
    """Return the place of a device's first position, as if it were in the array."""
    (inside,) = np.nonzero(reads >= 0)
    return int(at[inside[0]] - inside[0]) if len(inside) else 0


def _with_padding(pieces: Sequence[_Piece], block: int, extent: int) -> list[_Piece]:
    """Return all pieces, those of own blocks as long as the longest where padding follows.

    One slice then cuts them on every device.
    """
    longest = max((x.last for x in pieces if x.sender == x.receiver), default=0)
    found = list[_Piece]()
    for x in pieces:
        end = x.start + x.width
        if x.sender == x.receiver and x.sender * block + end >= extent:
            after = (y.first for y in pieces if y.receiver == x.receiver and y.first > x.last)
            last = min(x.last + block - end, longest, *(first - 1 for first in after))
            x = replace(x, last=max(x.last, last))
        found.append(x)
    return found


def _by_hop(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    hops = sorted({piece.hop for piece in pieces}, key=abs)
    return [[piece for piece in pieces if piece.hop == hop] for hop in hops]


def _join_turns(
    starts: Array, block: int, extent: int, reads: Sequence[Array], at: Sequence[Array]
) -> None:
    """Change the places of what a device reads of one block both ways around the array.

    If both parts are adjacent in the block, all places are on the side of the larger one.
    """
    turns = [(p - starts - u) // extent for p, u in zip(reads, at, strict=True)]
    inside = [p >= 0 for p in reads]
    if len({*np.concatenate([t[i] for t, i in zip(turns, inside, strict=True)]).tolist()}) < 2:
        return
    for d in range(len(starts)):
        ends: dict[int, dict[int, tuple[int, int]]] = {}
        for p, t, i in zip(reads, turns, inside, strict=True):
            keys = np.unique(np.stack([p[d][i[d]] // block, t[d][i[d]]]), axis=1).T
            for sender, turn in keys.tolist():
                mine = p[d][i[d] & (p[d] // block == sender) & (t[d] == turn)]
                some = ends.setdefault(sender, {})
                a, b = some.get(turn, (int(mine.min()), int(mine.max())))
                some[turn] = min(a, int(mine.min())), max(b, int(mine.max()))
        for sender, some in ends.items():
            order = sorted(some.values())
            if len(some) < 2 or any(b + 1 < a for (_, b), (a, _) in pairwise(order)):
                continue
            best = max(some, key=lambda turn: (some[turn][1] - some[turn][0], -turn))
            for p, u, i in zip(reads, at, inside, strict=True):
                mine = i[d] & (p[d] // block == sender)
                u[d][mine] = p[d][mine] - starts[d] - best * extent


def _pieces(
    origin: Array, block: int, extent: int, reads: Sequence[Array], places: Sequence[Array]
) -> list[_Piece]:
    """Return what devices read of each block, by distance. origin: of each device's places."""
    n, found = len(origin), dict[tuple[int, int], _Piece]()
    numbers = np.arange(n)[:, None]
    for p, u in zip(reads, places, strict=True):
        hops = p // block - numbers - n * ((p - origin - u) // extent)
        for d in range(n):
            for hop in np.unique(hops[d][p[d] >= 0]).tolist():
                mine = (p[d] >= 0) & (hops[d] == hop)
                a, b = int(u[d][mine].min()), int(u[d][mine].max())
                start = int(p[d][mine].min()) % block
                if (known := found.get((hop, d))) is not None:
                    a, b, start = min(known.first, a), max(known.last, b), min(known.start, start)
                found[hop, d] = _Piece((d + hop) % n, d, a, b, start, hop)
    return [found[key] for key in sorted(found, key=lambda key: (abs(key[0]), key))]


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
    own: Sequence[Sequence[_Piece]],
    groups: Sequence[Sequence[_Piece]],
    reads: Sequence[Array],
    at: Sequence[Array],
) -> Border | None:
    """Return the buffer of a slab for each group of pieces. at: the places of the reads.

    None if a slab is written over what a device reads of another one.
    """
    slabs = [_slab(n, block, group) for group in (*own, *groups)]
    mine, sent = tuple(slabs[: len(own)]), tuple(slabs[len(own) :])
    cuts = _cuts((*own, *groups))
    if len(cuts) <= _SEGMENTS:
        segments = tuple(_segment(n, *ends, (*own, *groups), slabs) for ends in cuts)
        firsts = np.array([first for first, _ in cuts])
        shift = np.cumsum([0, *(each.width for each in segments)])[:-1] - firsts
        to = [u + shift[np.searchsorted(firsts, u, "right") - 1] for u in at]
        length = sum(each.width for each in segments)
        offsets = tuple(_offsets(reads, to))
        return Border(axes, n, block, length, offsets, mine, sent, segments=segments)
    ends = [(int(s.places[d]), int(s.places[d]) + s.width) for s in slabs for _, d in s.pairs]
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    mine, sent = (tuple(replace(s, places=s.places - low) for s in x) for x in (mine, sent))
    offsets = tuple(_offsets(reads, [u - low for u in at]))
    made = Border(axes, n, block, high - low, offsets, mine, sent)
    return made if _has_all(made, reads) else None


def _cuts(groups: Sequence[Sequence[_Piece]]) -> list[tuple[int, int]]:
    """Return the longest ranges of places that each device reads of one piece, or not at all."""
    pieces = [piece for group in groups for piece in group]
    ends = sorted({end for x in pieces for end in (x.first, x.last + 1)})
    return [
        (a, b) for a, b in pairwise(ends) if any(x.first <= a and b <= x.last + 1 for x in pieces)
    ]


def _segment(
    n: int, first: int, end: int, groups: Sequence[Sequence[_Piece]], slabs: Sequence[Slab]
) -> Segment:
    """Return the segment of the places from `first` on, before `end`."""
    found = []
    for group, slab in zip(groups, slabs, strict=True):
        mine = [x.receiver for x in group if x.first <= first and end <= x.last + 1]
        if mine:
            devices = np.zeros(n, bool)
            devices[mine] = True
            starts = np.where(devices, first - slab.places, first - slab.places[mine[0]])
            found.append((slab, devices, starts))
    return Segment(end - first, tuple(found))


def _slab(n: int, block: int, pieces: Sequence[_Piece]) -> Slab:
    """Return the slab of pieces that are received at once, each as wide as the widest.

    Those before a block end where they are read, those after it begin there, if that is in the
    sender's block.
    """
    width = max(piece.width for piece in pieces)
    starts, places = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for each in pieces:
        more = width - each.width if each.hop < 0 else 0
        start = min(max(each.start - more, 0), block - width)
        starts[each.sender], places[each.receiver] = start, each.first + start - each.start
    pairs = sorted((each.sender, each.receiver) for each in pieces)
    return Slab(width, tuple(pairs), starts, places)


def _has_all(border: Border, reads: Sequence[Array]) -> bool:
    """Whether each device finds in its buffer what it reads, whichever slab it writes last.

    What is of its own block is written first.
    """
    n, block = border.n, border.block
    rows = np.arange(n)[:, None]
    needed = np.full((n, border.length), UNREAD)
    for p, at in zip(reads, border.offsets, strict=True):
        needed[np.broadcast_to(rows, p.shape)[p >= 0], at[p >= 0]] = p[p >= 0]
    held = np.full((n, border.length), UNREAD)
    for slab in (*border.own, *border.slabs):
        for sender, d in slab.pairs:
            first, place = sender * block + slab.starts[sender], slab.places[d]
            here = slice(place, place + slab.width)
            held[d, here] = first + np.arange(slab.width)
            wrong = (held[d, here] != needed[d, here]) & (needed[d, here] >= 0)
            if sender != d and wrong.any():
                return False
    return bool(((held == needed) | (needed < 0)).all())


def _unwrapped(p: Array, start: Array, block: int, extent: int) -> Array:
    """Return positions relative to each device's block, around the array where that is nearer."""
    ways = np.stack([p - start, p - start - extent, p - start + extent])
    far = np.maximum(np.maximum(-ways, ways - block + 1), 0)
    return np.take_along_axis(ways, far.argmin(0)[None], 0)[0]
