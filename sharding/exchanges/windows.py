"""`Window`: the interval of a block that a device holds, in coordinates common to two layouts.

Two layouts may join logical dims differently. An *atom* is a run of logical dims that both layouts
join in the same way; one index per atom identifies an element. A device holds an interval of a
block's positions, which is a few boxes of atoms. A window describes where these boxes are in the
device's buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from gridlayout.arguments import Ints, Shape
from gridlayout.layouts.blocks import Block, Blocks
from gridlayout.layouts.intervals import Box, boxes_between
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement

# The origins and boxes of an atom of extent 1.
ONE: Any = (((0,),), ((((0, 1),),),))


@dataclass(frozen=True)
class Atom:
    """Logical dims that both layouts join in the same way, the major first, and their size."""

    dims: Shape
    extent: int


@dataclass(frozen=True)
class Window:
    """The interval of a block on each device.

    atoms: the numbers of the atoms, the major first. axes: the mesh axes that divide the block;
    `shifts`, `origins` and `boxes` have one entry per device along them. length: positions per
    device. is_flipped: whether the buffer is first reversed. shifts: the positions by which it is
    then moved up, so that it begins with a whole row. extents, step: the buffer's shape is then
    (*extents, step), whose dims except the last are the atoms. origins: the atoms' indices of the
    first position. boxes: the boxes of atoms whose elements the device holds.
    """

    atoms: Shape
    axes: tuple[str, ...]
    length: int
    is_flipped: bool
    shifts: Shape
    extents: Shape
    step: int
    origins: tuple[Shape, ...]
    boxes: tuple[tuple[Box, ...], ...]

    @property
    def width(self) -> int:
        """The number of positions after the interval is extended to whole rows."""
        return prod(self.extents) * self.step

    @cached_property
    def table(self) -> tuple[Ints, Ints]:
        """The device's index of each box, and the bounds: an array (boxes, atoms, 2) of first index
        and end.
        """
        found = [(v, box) for v, some in enumerate(self.boxes) for box in some]
        ends = np.array([box for _, box in found], np.int64).reshape(-1, len(self.atoms), 2)
        kept = (ends[..., 0] < ends[..., 1]).all(axis=1)
        return np.array([v for v, _ in found], np.int64)[kept], ends[kept]

    @property
    def is_wide(self) -> bool:
        """Whether the interval is extended to whole rows."""
        return self.width != self.length or any(self.shifts)


def find_atoms(a: Blocks, b: Blocks) -> list[Atom]:
    """Return the atoms of two layouts of one logical shape.

    >>> from gridlayout import GridLayout
    >>> from gridlayout.layouts.blocks import find_blocks
    >>> layouts = [GridLayout((4, 6, 8), linear="(d0, d1, d2) -> (d0 * 6 + d1, d2)", grid=(2, 1))]
    >>> layouts += [GridLayout((4, 6, 8), grid=(2,), collapse=[(0, 3)])]
    >>> find_atoms(*map(find_blocks, layouts))
    [Atom(dims=(0, 1), extent=24), Atom(dims=(2,), extent=8)]
    """
    shape, after, other = a.layout.shape, _followers(a), _followers(b)
    same = {d: e for d, e in after.items() if other.get(d) == e}
    atoms = []
    for d in sorted({d for d, n in enumerate(shape) if n > 1} - set(same.values())):
        dims = [d]
        while dims[-1] in same:
            dims.append(same[dims[-1]])
        atoms.append(Atom(tuple(dims), prod(shape[d] for d in dims)))
    return atoms


def _followers(blocks: Blocks) -> dict[int, int]:
    """Return, for each dim, the dim that a block joins directly below it, without a gap."""
    return {
        d: e
        for block in blocks.blocks
        for (d, high), (e, low) in pairwise(block.terms)
        if high == low * blocks.layout.shape[e]
    }


def find_windows(
    both: Sequence[Blocks], placements: Sequence[Placement]
) -> tuple[list[Window], list[Window]] | None:
    """Return the windows of two layouts' blocks; None if an interval can't be extended to rows.

    A block of one position adds an atom of extent 1 to both layouts.
    """
    atoms = find_atoms(*both)
    found: tuple[list[Window], list[Window]] = ([], [])
    units: tuple[list[Window], list[Window]] = ([], [])
    for n, (blocks, placement) in enumerate(zip(both, placements, strict=True)):
        for block in blocks.blocks:
            stride = dict(block.terms)
            names = [k for k, atom in enumerate(atoms) if atom.dims and atom.dims[-1] in stride]
            terms = [(k, stride[atoms[k].dims[-1]], atoms[k].extent) for k in names]
            if not terms:
                terms = [(len(atoms), 1, 1)]
                units[1 - n].append(Window((len(atoms),), (), 1, False, (0,), (1,), 1, *ONE))
                atoms.append(Atom((), 1))
            made = _window(block, sorted(terms, key=lambda t: -abs(t[1])), placement)
            if made is None:
                return None
            found[n].append(made)
    return found[0] + units[0], found[1] + units[1]


def _window(
    block: Block, terms: Sequence[tuple[int, int, int]], placement: Placement
) -> Window | None:
    """Return the window of one block. terms: (atom, stride, extent), the largest strides first."""
    axes: tuple[str, ...] = ()
    count = cores = 1
    if block.core is not None:
        axes, cores = placement.axes[block.core], placement.per_device[block.core]
        count = placement.slots[block.core] // cores
    length = block.size * cores
    names = tuple(k for k, _, _ in terms)
    strides, extents = [s for _, s, _ in terms], [n for _, _, n in terms]
    starts = [v * length - block.offset for v in range(count)]
    if len(terms) == 1 and abs(strides[0]) == 1:
        is_flipped = strides[0] < 0
        if is_flipped:
            starts = [1 - start - length for start in starts]
        spans = [(max(low, 0), min(low + length, extents[0])) for low in starts]
        boxes = tuple((((low, high),),) if low < high else () for low, high in spans)
        origins = tuple((low,) for low in starts)
        whole = (names, axes, length, is_flipped, (0,) * count, (length,), 1)
        return Window(*whole, origins, boxes)
    nested = all(high % low == 0 for high, low in pairwise(strides))
    if min(strides) < 0 or not nested:
        return None
    return _rows(_Joined(strides, extents, starts, length), names, axes)


@dataclass(frozen=True)
class _Joined:
    """Joined atoms: a position is the sum of stride * index over the atoms.

    Each device has `length` positions from its start.
    """

    strides: Sequence[int]
    extents: Sequence[int]
    starts: Sequence[int]
    length: int

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The positions of each device, clipped to the range from first to last element."""
        top = 1 + sum(s * (n - 1) for s, n in zip(self.strides, self.extents, strict=True))
        return [(max(low, 0), min(low + self.length, top)) for low in self.starts]

    def level(self) -> int:
        """Return the first atom of which a device has more than one index."""
        busy = [(low, high - 1) for low, high in self.spans if low < high]
        level = 0
        while level + 1 < len(self.strides) and all(
            low // self.strides[level] == high // self.strides[level] for low, high in busy
        ):
            level += 1
        return level


def _rows(joined: _Joined, names: Shape, axes: tuple[str, ...]) -> Window | None:
    """Return the window of joined atoms, the buffer extended to whole rows of one of them."""
    level, strides = joined.level(), joined.strides
    row, above = strides[level], strides[level - 1] if level else 0
    shifts, origins = [], []
    for start, (low, high) in zip(joined.starts, joined.spans, strict=True):
        base = low // above * above if level and low < high else 0
        first = (start - base) // row if low < high else 0
        shifts.append((start - base) - first * row if low < high else 0)
        prefix, rest = [], base
        for stride in strides[:level]:
            prefix.append(rest // stride)
            rest %= stride
        origins.append((*prefix, first, *(0,) * (len(strides) - level - 1)))
    count = max(-(-(shift + joined.length) // row) for shift in shifts)
    inner = [high // low for high, low in zip(strides[level:], strides[level + 1 :], strict=False)]
    extents = (*(1,) * level, count, *inner)
    if prod(extents) * strides[-1] > LIMITS.growth * joined.length:
        return None
    boxes = tuple(
        tuple(boxes_between(low, high, strides, joined.extents)) for low, high in joined.spans
    )
    whole = (names, axes, joined.length, False, tuple(shifts), extents, strides[-1])
    return Window(*whole, tuple(origins), boxes)
