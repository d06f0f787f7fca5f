"""`Placement`: which mesh axes divide each dim of a virtual core grid.

Mesh axes are split into their prime factors (`MeshAxes`), so that a grid of three dims can use a
mesh of two axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from jax.sharding import PartitionSpec

from gridlayout.affine.map import AffineExpr, constant
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.folding import assign_factors, primes
from gridlayout.sharding.collectives import Axes


def parts_in_words(names: Iterable[str], mesh: Mapping[str, int]) -> list[str]:
    """Return explanations of the names of factors of mesh axes, one line per mesh axis.

    names: names of mesh axes or of their factors, as tables of collectives print them. mesh: the
    number of devices along each mesh axis.

    >>> parts_in_words(["x", "y0"], {"x": 2, "y": 4})
    ['y0, y1: the mesh axis y of 4 devices in its prime factors, 2 x 2, the major first']
    """
    met = set(names) - set(mesh)
    if not met:
        return []
    axes = MeshAxes.of(tuple(mesh), tuple(mesh.values()))
    return [
        f"{', '.join(factors)}: the mesh axis {axis} of {mesh[axis]} devices in its prime "
        f"factors, {' x '.join(str(axes.size_of[name]) for name in factors)}, the major first"
        for axis, factors in axes.factors.items()
        if len(factors) > 1 and met & set(factors)
    ]


@dataclass(frozen=True)
class MeshAxes:
    """The prime factors of the axes of a mesh, the major first.

    names, sizes: of the factors. mesh_axis: for each factor, the name of its mesh axis.

    >>> MeshAxes.of(("x", "y"), (2, 4))
    MeshAxes(names=('x', 'y0', 'y1'), sizes=(2, 2, 2), mesh_axis=('x', 'y', 'y'))
    """

    names: Axes
    sizes: Shape
    mesh_axis: Axes

    @staticmethod
    def of(names: Axes, sizes: Shape) -> MeshAxes:
        """Return the factors of mesh axes with these names and sizes.

        A factor never has the name of another axis or factor. Raises `LayoutError` if two axes have
        one name.

        >>> MeshAxes.of(("x", "x0"), (4, 2)).names
        ('x_0', 'x_1', 'x0')
        """
        factors: list[tuple[str, int, str]] = []
        used = set(names)
        if len(used) < len(names):
            raise LayoutError(
                f"two axes of the mesh have one name: {', '.join(names)}; give each its own"
            )
        for name, size in zip(names, sizes, strict=True):
            own, stem = primes(size), name
            while len(own) > 1 and any(f"{stem}{i}" in used for i in range(len(own))):
                stem += "_"
            made = [f"{stem}{i}" for i in range(len(own))] if len(own) > 1 else [name]
            used.update(made)
            factors += [(each, prime, name) for each, prime in zip(made, own, strict=True)]
        return MeshAxes(*(tuple(column) for column in zip(*factors, strict=True)))

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The number of devices along each factor."""
        return dict(zip(self.names, self.sizes, strict=True))

    @cached_property
    def strides(self) -> dict[str, int]:
        """The row-major stride of each factor, in devices."""
        return {name: prod(self.sizes[k + 1 :]) for k, name in enumerate(self.names)}

    def count(self, axes: Axes) -> int:
        """Return the number of devices along some factors."""
        return prod(self.size_of[axis] for axis in axes)

    def number(self, axes: Axes, digits: Mapping[str, AffineExpr]) -> AffineExpr:
        """Return a device's index along several factors, from its index along each.

        axes: the major first. digits: the index along each factor; 0 for those that are missing.
        """
        found = constant(0)
        for axis in axes:
            found = found * self.size_of[axis] + digits.get(axis, constant(0))
        return found

    @cached_property
    def factors(self) -> dict[str, Axes]:
        """The factors of each mesh axis."""
        found: dict[str, Axes] = {}
        for name, axis in zip(self.names, self.mesh_axis, strict=True):
            found[axis] = (*found.get(axis, ()), name)
        return found

    def short_names(self, axes: Axes) -> Axes:
        """Return the names of some factors; if all of a mesh axis are given, the name of that axis.

        Factors and axes of one device are omitted.
        """
        found: list[str] = []
        for whole, factors in self.factors.items():
            given = tuple(axis for axis in factors if axis in axes)
            groups = [(whole, given)] if given == factors else [(a, (a,)) for a in given]
            found += [name for name, group in groups if self.count(group) > 1]
        return tuple(found)

    def coordinates(self, digits: Mapping[str, AffineExpr]) -> list[AffineExpr]:
        """Return a device's coordinate along each mesh axis."""
        return [self.number(axes, digits) for axes in self.factors.values()]

    def placement(
        self, grid: Shape, axes: Sequence[Axes], per_device: Shape | None = None
    ) -> Placement:
        """Return the placement of a grid whose dims are divided by these axes.

        per_device: cores per device along each dim; by default as few as possible.
        """
        along = [self.count(found) for found in axes]
        if per_device is None:
            per_device = tuple(-(-g // a) for g, a in zip(grid, along, strict=True))
        slots = tuple(p * a for p, a in zip(per_device, along, strict=True))
        return Placement(grid, tuple(axes), slots, per_device)


@dataclass(frozen=True)
class Placement:
    """A virtual grid on a mesh.

    axes: for each grid dim, the mesh axes of `DeviceGrid.fine` that divide it. slots: the grid
    rounded up so that these axes divide it. per_device: consecutive cores per device along each
    dim.
    """

    grid: Shape
    axes: tuple[tuple[str, ...], ...]
    slots: Shape
    per_device: Shape

    def with_leading_dims(self, count: int) -> Placement:
        """Return the placement of the same grid with `count` dims of one core in front."""
        ones = (1,) * count
        return Placement(
            (*ones, *self.grid),
            (*((),) * count, *self.axes),
            (*ones, *self.slots),
            (*ones, *self.per_device),
        )

    @cached_property
    def spec(self) -> PartitionSpec:
        """The `PartitionSpec` of the grid dims; the dims inside a core are not divided."""
        rank = max((k + 1 for k, axes in enumerate(self.axes) if axes), default=0)
        return PartitionSpec(*(axes or None for axes in self.axes[:rank]))


@cached
def default_placement(axes: MeshAxes, grid: Shape) -> Placement:
    """Return the placement of a grid by the rule of `DeviceGrid.placement`.

    >>> default_placement(MeshAxes.of(("x", "y"), (2, 4)), (3, 2)).axes
    (('y0', 'y1'), ('x',))
    """
    # Equal factors of one mesh axis are interchangeable: only their number per dim matters.
    equal: dict[tuple[str, int], list[str]] = {}
    for name, axis, size in zip(axes.names, axes.mesh_axis, axes.sizes, strict=True):
        if size > 1:
            equal.setdefault((axis, size), []).append(name)
    groups = tuple((*key, len(group)) for key, group in equal.items())
    placed: list[Axes] = [()] * len(grid)
    for group, row in zip(equal.values(), assign_factors(grid, groups), strict=True):
        rest = list(group)
        for k, count in enumerate(row):
            placed[k] += tuple(rest[:count])
            rest = rest[count:]
    order = {name: i for i, name in enumerate(axes.names)}
    return axes.placement(grid, [tuple(sorted(found, key=order.__getitem__)) for found in placed])
