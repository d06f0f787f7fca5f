"""How a virtual core grid is folded onto a mesh of devices, or of the cores of a chip.

The axes of the mesh are taken in their prime factors, each of which goes to one dim of the grid or
to none. `gl.DeviceGrid` places arrays so, and `per_device` says how many cores of a grid fall on
one device: more than one on a core of a chip is more than it is asked to hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape

# Equal prime factors of a mesh axis: the axis, the factor, how many there are.
Group = tuple[str, int, int]


@lru_cache(maxsize=4096)
def per_device(grid: Shape, mesh: Shape) -> Shape:
    """Along each dim of a grid, how many cores of it one device of a mesh has, at most.

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
    """Of each group of factors, how many go to each dim of a grid.

    So that the fewest cores are on one device, then the most devices have some.

    >>> assign_factors((3, 2), (("x", 2, 1), ("y", 2, 2)))
    [(0, 1), (2, 0)]
    """
    # Only grid dims with more than one core can use an axis, and only axes with several devices.
    wide = [k for k, g in enumerate(grid) if g > 1]
    while prod(comb(n + len(wide), n) for *_, n in groups) > 1 << 16:
        # The dims with the most cores are enough.
        wide.remove(min(wide, key=lambda k: (grid[k], -k)))
    outer = sum(k < len(grid) - 2 for k in wide)
    found = []
    for row in _best(tuple(grid[k] for k in wide), outer, groups):
        of = dict(zip(wide, row.tolist(), strict=False))
        found.append(tuple(of.get(k, 0) for k in range(len(grid))))
    return found


@lru_cache(maxsize=256)
def _compositions(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to deal `n` equal factors to `parts`, the first ones most first."""
    if parts == 1:
        return np.array([[n]], np.int64)
    rows = [np.insert(_compositions(n - k, parts - 1), 0, k, axis=1) for k in range(n, -1, -1)]
    return np.concatenate(rows)


@dataclass(frozen=True)
class _Deals:
    """Every way to deal groups of factors to grid dims, one a row.

    dealt: of each group, how many factors each dim gets, and nobody. along: the devices along each
    dim. used: along all of them. split: mesh axes that several dims share.
    """

    dealt: tuple[NDArray[np.int64], ...]
    along: NDArray[np.int64]
    used: NDArray[np.int64]
    split: NDArray[np.int64]


@lru_cache(maxsize=8)
def _deals(dims: int, groups: tuple[Group, ...]) -> _Deals:
    # Rows come with most for the first dims first, and so do ties: the order of the grid dims.
    ways = [_compositions(n, dims + 1) for *_, n in groups]
    picks = np.indices(tuple(map(len, ways))).reshape(len(ways), prod(map(len, ways)))
    dealt = tuple(way[pick] for way, pick in zip(ways, picks, strict=True))
    along = np.ones((picks.shape[1], dims), np.int64)
    split = np.zeros(picks.shape[1], np.int64)
    shares: dict[str, Any] = {}
    for (whole, size, _), row in zip(groups, dealt, strict=True):
        along *= np.power(size, row[:, :-1])
        shares[whole] = shares.get(whole, 0) + (row > 0)
    for share in shares.values():
        split += (share > 0).sum(axis=1) > 1
    return _Deals(dealt, along, along.prod(axis=1), split)


def _best(cores: Shape, outer: int, groups: tuple[Group, ...]) -> list[NDArray[np.int64]]:
    """Of each group of factors, how many each dim with so many cores gets, and nobody.

    outer: how many of the dims come before rows and columns.
    """
    deals, wanted = _deals(len(cores), groups), np.array(cores, np.int64)
    local = -(-wanted // deals.along)
    most = local.prod(axis=1)
    rows = np.flatnonzero(most == most.min())
    local, used = local[rows], deals.used[rows]
    busy = (-(-wanted // local)).prod(axis=1)
    first = local[:, :outer].T
    keys = (-busy, used - busy, *first, deals.split[rows], used, local.sum(axis=1))
    best = rows[np.lexsort(keys[::-1])[0]]
    return [row[best] for row in deals.dealt]


def primes(size: int) -> list[int]:
    """The prime factors of an axis, ascending; 1 of an axis of one device.

    >>> primes(12), primes(1)
    ([2, 2, 3], [1])
    """
    found, factor = [], 2
    while size > 1:
        while size % factor == 0:
            found.append(factor)
            size //= factor
        factor += 1
    return found or [1]
