"""`Placement`: which axes of a mesh divide which dim of a virtual core grid, and the default one.

A mesh's axes are taken in their prime factors (`MeshAxes`), so that a grid of three dims can use a
mesh of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, prod
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec
from numpy.typing import NDArray

from gridlayout.affine.map import AffineExpr, constant

Shape = tuple[int, ...]
Axes = tuple[str, ...]


@dataclass(frozen=True)
class MeshAxes:
    """The axes of a mesh in their prime factors, the major first.

    names, sizes: of the factors; whole: the mesh axis that each is a factor of.

    >>> MeshAxes.of(("x", "y"), (2, 4))
    MeshAxes(names=('x', 'y0', 'y1'), sizes=(2, 2, 2), whole=('x', 'y', 'y'))
    """

    names: Axes
    sizes: Shape
    whole: Axes

    @staticmethod
    def of(names: Axes, sizes: Shape) -> MeshAxes:
        """The factors of axes with these names and sizes."""
        factors = [
            (f"{name}{i}" if len(primes) > 1 else name, prime, name)
            for name, size in zip(names, sizes, strict=True)
            for primes in [_primes(size)]
            for i, prime in enumerate(primes)
        ]
        return MeshAxes(*(tuple(column) for column in zip(*factors, strict=True)))

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The devices along each factor."""
        return dict(zip(self.names, self.sizes, strict=True))

    @cached_property
    def strides(self) -> dict[str, int]:
        """How many devices further, counted row-major, the next one along each factor is."""
        return {name: prod(self.sizes[k + 1 :]) for k, name in enumerate(self.names)}

    def count(self, axes: Axes) -> int:
        """Devices along some of them."""
        return prod(self.size_of[axis] for axis in axes)

    def number(self, axes: Axes, digits: Mapping[str, AffineExpr]) -> AffineExpr:
        """The place of a device along axes, the major first, of its places along each."""
        found = constant(0)
        for axis in axes:
            found = found * self.size_of[axis] + digits.get(axis, constant(0))
        return found

    @cached_property
    def factors(self) -> dict[str, Axes]:
        """The factors of each axis of the mesh."""
        found: dict[str, Axes] = {}
        for name, whole in zip(self.names, self.whole, strict=True):
            found[whole] = (*found.get(whole, ()), name)
        return found

    def coordinates(self, digits: Mapping[str, AffineExpr]) -> list[AffineExpr]:
        """The place of a device along each axis of the mesh."""
        return [self.number(axes, digits) for axes in self.factors.values()]

    def placement(
        self, grid: Shape, axes: Sequence[Axes], per_device: Shape | None = None
    ) -> Placement:
        """The placement of a grid that these axes divide, `per_device` cores of each dim."""
        along = [self.count(found) for found in axes]
        if per_device is None:
            per_device = tuple(-(-g // a) for g, a in zip(grid, along, strict=True))
        slots = tuple(p * a for p, a in zip(per_device, along, strict=True))
        return Placement(grid, tuple(axes), slots, per_device)


@dataclass(frozen=True)
class Placement:
    """A virtual grid on a mesh: the mesh axes of each grid dim, and its slots (cores, rounded up).

    A device holds `per_device` cores of each grid dim, consecutive ones. The axes are those of
    `DeviceGrid.fine`.
    """

    grid: Shape
    axes: tuple[tuple[str, ...], ...]
    slots: Shape
    per_device: Shape

    def behind(self, count: int) -> Placement:
        """The same cores on the same devices, of a grid with `count` dims of one core in front."""
        ones = (1,) * count
        return Placement(
            (*ones, *self.grid),
            (*((),) * count, *self.axes),
            (*ones, *self.slots),
            (*ones, *self.per_device),
        )

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of the grid dims; the dims inside a core are not split."""
        rank = max((k + 1 for k, axes in enumerate(self.axes) if axes), default=0)
        return PartitionSpec(*(axes or None for axes in self.axes[:rank]))


@lru_cache(maxsize=4096)
def default_placement(axes: MeshAxes, grid: Shape) -> Placement:
    """The placement of a grid by `DeviceGrid.placement`'s rule.

    >>> default_placement(MeshAxes.of(("x", "y"), (2, 4)), (3, 2)).axes
    (('y0', 'y1'), ('x',))
    """
    # Only grid dims with more than one core can use an axis, and only axes with several devices.
    wide = [k for k, g in enumerate(grid) if g > 1]
    # Equal factors of one mesh axis are alike: what counts is how many of them each dim gets.
    alike: dict[tuple[str, int], list[str]] = {}
    for name, whole, size in zip(axes.names, axes.whole, axes.sizes, strict=True):
        if size > 1:
            alike.setdefault((whole, size), []).append(name)
    groups = tuple((*key, len(group)) for key, group in alike.items())
    while prod(comb(n + len(wide), n) for *_, n in groups) > 1 << 16:
        # The dims with the most cores are enough.
        wide.remove(min(wide, key=lambda k: (grid[k], -k)))
    outer = sum(k < len(grid) - 2 for k in wide)
    chosen = _best(tuple(grid[k] for k in wide), outer, groups)
    placed: list[Axes] = [()] * len(grid)
    for group, row in zip(alike.values(), chosen, strict=True):
        rest = list(group)
        for k, count in zip(wide, row, strict=False):
            placed[k] += tuple(rest[:count])
            rest = rest[count:]
    order = {name: i for i, name in enumerate(axes.names)}
    return axes.placement(grid, [tuple(sorted(found, key=order.__getitem__)) for found in placed])


@lru_cache(maxsize=256)
def _compositions(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to deal `n` equal factors to `parts`, the first ones most first."""
    if parts == 1:
        return np.array([[n]], np.int64)
    rows = [np.insert(_compositions(n - k, parts - 1), 0, k, axis=1) for k in range(n, -1, -1)]
    return np.concatenate(rows)


# Equal prime factors of a mesh axis: the axis, the factor, how many there are.
_Group = tuple[str, int, int]


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
def _deals(dims: int, groups: tuple[_Group, ...]) -> _Deals:
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


def _best(cores: Shape, outer: int, groups: tuple[_Group, ...]) -> list[NDArray[np.int64]]:
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


def _primes(size: int) -> list[int]:
    primes, factor = [], 2
    while size > 1:
        while size % factor == 0:
            primes.append(factor)
            size //= factor
        factor += 1
    return primes or [1]
