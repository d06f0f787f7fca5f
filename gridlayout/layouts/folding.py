"""Folding of a virtual core grid onto a mesh of devices, or onto the cores of a chip.

Each mesh axis is decomposed into its prime factors, and each factor is assigned to one grid dim or
to none. `gl.DeviceGrid` places arrays in this way. `per_device` counts the virtual cores per
device; on a chip, where every core is a device, a layout may have only one per core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape
from gridlayout.caching import array_bytes, cached

# Equal prime factors of a mesh axis: the axis, the factor, and how often it occurs.
Group = tuple[str, int, int]


@cached
def per_device(grid: Shape, mesh: Shape) -> Shape:
    """The largest number of virtual cores on one device of a mesh, along each grid dim.

    >>> per_device((1, 64), (8, 8)), per_device((5, 12), (8, 8)), per_device((33, 3), (10, 11))
    ((1, 1), (2, 1), (1, 2))
    """
    counts = [Counter(prime for prime in primes(size) if prime > 1) for size in mesh]
    groups = tuple((f"{k}", *each) for k, found in enumerate(counts) for each in found.items())
    along = [1] * len(grid)
    for (_, prime, _), row in zip(groups, assign_factors(grid, groups), strict=True):
        along = [n * prime**count for n, count in zip(along, row, strict=True)]
    return tuple(-(-cores // n) for cores, n in zip(grid, along, strict=True))


def assign_factors(grid: Sequence[int], groups: tuple[Group, ...]) -> list[Shape]:
    """For each group of factors, how many are assigned to each grid dim.

    The assignment minimizes the cores per device, then maximizes the number of busy devices.

    >>> assign_factors((3, 2), (("x", 2, 1), ("y", 2, 2)))
    [(0, 1), (2, 0)]
    """
    # Only grid dims with more than one core can use a factor.
    wide = [k for k, g in enumerate(grid) if g > 1]
    while prod(comb(n + len(wide), n) for *_, n in groups) > 1 << 16:
        # Too many assignments to enumerate: leave out the dim with the fewest cores.
        wide.remove(min(wide, key=lambda k: (grid[k], -k)))
    outer = sum(k < len(grid) - 2 for k in wide)
    found = []
    for row in _best(tuple(grid[k] for k in wide), outer, groups):
        of = dict(zip(wide, row.tolist(), strict=False))
        found.append(tuple(of.get(k, 0) for k in range(len(grid))))
    return found


@cached(size=array_bytes)
def _compositions(n: int, parts: int) -> NDArray[np.int64]:
    """All ways to distribute `n` equal factors over `parts`, in descending order."""
    if parts == 1:
        return np.array([[n]], np.int64)
    rows = [np.insert(_compositions(n - k, parts - 1), 0, k, axis=1) for k in range(n, -1, -1)]
    return np.concatenate(rows)


@dataclass(frozen=True)
class _Assignments:
    """All ways to assign groups of factors to grid dims, one per row.

    assigned: for each group, the number of factors that each dim gets; the last column counts the
    unused ones. along: the devices along each dim. used: the devices along all dims together.
    split: the number of mesh axes that several dims share.
    """

    assigned: tuple[NDArray[np.int64], ...]
    along: NDArray[np.int64]
    used: NDArray[np.int64]
    split: NDArray[np.int64]


@cached(entries=8)
def _assignments(dims: int, groups: tuple[Group, ...]) -> _Assignments:
    # Rows that give more factors to the first dims come first, so these win ties.
    ways = [_compositions(n, dims + 1) for *_, n in groups]
    picks = np.indices(tuple(map(len, ways))).reshape(len(ways), prod(map(len, ways)))
    assigned = tuple(way[pick] for way, pick in zip(ways, picks, strict=True))
    along = np.ones((picks.shape[1], dims), np.int64)
    split = np.zeros(picks.shape[1], np.int64)
    shares: dict[str, Any] = {}
    for (axis, size, _), row in zip(groups, assigned, strict=True):
        along *= np.power(size, row[:, :-1])
        shares[axis] = shares.get(axis, 0) + (row > 0)
    for share in shares.values():
        split += (share > 0).sum(axis=1) > 1
    return _Assignments(assigned, along, along.prod(axis=1), split)


def _best(cores: Shape, outer: int, groups: tuple[Group, ...]) -> list[NDArray[np.int64]]:
    """For each group of factors, how many each dim gets, then how many are unused.

    cores: the cores along each dim. outer: how many dims precede the last two, rows and columns.
    """
    assignments, sizes = _assignments(len(cores), groups), np.array(cores, np.int64)
    local = -(-sizes // assignments.along)
    most = local.prod(axis=1)
    rows = np.flatnonzero(most == most.min())
    local, used = local[rows], assignments.used[rows]
    busy = (-(-sizes // local)).prod(axis=1)
    first = local[:, :outer].T
    keys = (-busy, used - busy, *first, assignments.split[rows], used, local.sum(axis=1))
    best = rows[np.lexsort(keys[::-1])[0]]
    return [row[best] for row in assignments.assigned]


def primes(size: int) -> list[int]:
    """The prime factors of an axis size, ascending; [1] for size 1.

    >>> primes(12), primes(1)
    ([2, 2, 3], [1])
    """
    found, factor = [], 2
    while factor * factor <= size:
        while size % factor == 0:
            found.append(factor)
            size //= factor
        factor += 1
    return [*found, size] if size > 1 else found or [1]
