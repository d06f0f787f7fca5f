"""`Box`: a group of devices as strides and extents, whatever their number.

Devices are numbered row-major in a mesh. Those along some of its axes are a box, and so are the
first ones of `iota(n)` reshaped and transposed, as HLO writes groups: [2,4]<=[4,2]T(1,0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from gridlayout.arguments import MAX_ELEMENTS, Shape

Mesh = tuple[tuple[str, int], ...]  # the names and sizes of the axes
Run = tuple[int, int]  # stride and extent


class Box(NamedTuple):
    """The devices `first + i * stride + ...`, with 0 <= i < extent for each run (stride, extent).

    Runs are sorted by stride and are as few as possible, so the boxes of equal sets are equal.
    """

    first: int
    runs: tuple[Run, ...]


def box_of(devices: Sequence[int]) -> Box | None:
    """Return the box that consists of the devices; None if there is none.

    >>> box_of((0, 1, 4, 5)), box_of((7, 3)), box_of((0, 1, 3))
    (Box(first=0, runs=((1, 2), (4, 2))), Box(first=3, runs=((4, 2),)), None)
    """
    rest, end = sorted(devices), 1
    first, runs = rest[0], []
    while len(rest) > 1:
        stride, low = rest[1] - rest[0], rest[0]
        extent = next((k for k, device in enumerate(rest) if device != low + k * stride), len(rest))
        heads = rest[::extent]
        again = [head + k * stride for head in heads for k in range(extent)]
        if stride < end or again != rest:
            return None
        runs.append((stride, extent))
        rest, end = heads, stride * extent
    return Box(first, tuple(runs))


def first_of_iota(dims: Shape, order: Shape, count: int) -> Box | None:
    """Return the first `count` devices of iota(prod(dims)), reshaped to `dims` and transposed.

    order: the permutation of the dims; ignored if it is none. None if the devices are no box, or
    there are fewer than `count`.

    >>> first_of_iota((2, 4), (1, 0), 2), first_of_iota((30000, 7), (1, 0), 30000)
    (Box(first=0, runs=((4, 2),)), Box(first=0, runs=((7, 30000),)))
    """
    if count < 1 or not 0 < prod(dims) <= MAX_ELEMENTS:
        return None
    order = order if sorted(order) == list(range(len(dims))) else tuple(range(len(dims)))
    strides = [1, *accumulate(reversed(dims[1:]), mul)][::-1]
    runs, rest = [], count
    for stride, extent in _joined((strides[d], dims[d]) for d in reversed(order)):
        part = min(extent, rest)
        if rest % part:
            return None
        runs.append((stride, part))
        rest //= part
    return Box(0, tuple(_joined(sorted(runs)))) if rest == 1 else None


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, joined where one goes on where the one before it ends."""
    found: list[Run] = []
    for stride, extent in runs:
        if extent == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0], found[-1][1] * extent)
        else:
            found.append((stride, extent))
    return found


class MeshAxes:
    """The axes of a mesh, found by their strides.

    >>> axes = MeshAxes((("x", 2), ("y", 4)))
    >>> axes.along(box_of((0, 4))), axes.along(box_of(range(8))), axes.along(box_of((0, 2)))
    (('x',), ('x', 'y'), ())
    >>> axes.between(1, 3), axes.between(1, 4)
    ('y', '')
    """

    def __init__(self, mesh: Sequence[tuple[str, int]]) -> None:
        inner = [(name, size) for name, size in reversed(mesh) if size > 1]
        self.names = [name for name, _ in inner]
        self.ends = [1, *accumulate((size for _, size in inner), mul)]
        self.at = {end: k for k, end in enumerate(self.ends)}

    def along(self, box: Box) -> tuple[str, ...]:
        """Return the axes, the major one first, whose devices are the box; () if none are."""
        chosen: list[str] = []
        for stride, extent in box.runs:
            low, high = self.at.get(stride), self.at.get(stride * extent)
            if low is None or high is None or box.first % (stride * extent) // stride:
                return ()
            chosen += self.names[low:high]
        return tuple(reversed(chosen))

    def between(self, one: int, other: int) -> str:
        """Return the only axis along which two devices differ; empty if they differ along more."""
        total = self.ends[-1]
        one, other = one % total, other % total
        for name, end in zip(self.names, self.ends[1:], strict=True):
            if (one - other) % end:
                return name if one // end == other // end else ""
        return ""
