"""`Placement`: which axes of a mesh divide which dim of a virtual core grid, and the default one.

A mesh's axes are taken in their prime factors (`MeshAxes`), so that a grid of three dims can use a
mesh of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from jax.sharding import PartitionSpec

from gridlayout.affine.map import AffineExpr, constant
from gridlayout.arguments import Shape
from gridlayout.layouts.folding import assign_factors, primes

Axes = tuple[str, ...]


def parts_in_words(names: Iterable[str], mesh: Mapping[str, int]) -> list[str]:
    """What names of parts of mesh axes mean, a line an axis; whole axes need no words.

    names: such as tables of collectives print. mesh: the devices along each axis of the mesh.

    >>> parts_in_words(["x", "y0"], {"x": 2, "y": 4})
    ['y0, y1: the mesh axis y of 4 devices in its prime factors, 2 x 2, the major first']
    """
    met = set(names) - set(mesh)
    if not met:
        return []
    axes = MeshAxes.of(tuple(mesh), tuple(mesh.values()))
    return [
        f"{', '.join(factors)}: the mesh axis {whole} of {mesh[whole]} devices in its prime "
        f"factors, {' x '.join(str(axes.size_of[name]) for name in factors)}, the major first"
        for whole, factors in axes.factors.items()
        if len(factors) > 1 and met & set(factors)
    ]


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
            (f"{name}{i}" if len(own) > 1 else name, prime, name)
            for name, size in zip(names, sizes, strict=True)
            for own in [primes(size)]
            for i, prime in enumerate(own)
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
    # Equal factors of one mesh axis are alike: what counts is how many of them each dim gets.
    alike: dict[tuple[str, int], list[str]] = {}
    for name, whole, size in zip(axes.names, axes.whole, axes.sizes, strict=True):
        if size > 1:
            alike.setdefault((whole, size), []).append(name)
    groups = tuple((*key, len(group)) for key, group in alike.items())
    placed: list[Axes] = [()] * len(grid)
    for group, row in zip(alike.values(), assign_factors(grid, groups), strict=True):
        rest = list(group)
        for k, count in enumerate(row):
            placed[k] += tuple(rest[:count])
            rest = rest[count:]
    order = {name: i for i, name in enumerate(axes.names)}
    return axes.placement(grid, [tuple(sorted(found, key=order.__getitem__)) for found in placed])
