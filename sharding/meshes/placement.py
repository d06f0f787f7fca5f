"""`Placement`: which mesh axes divide each dim of a virtual core grid, and how many cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jax.sharding import PartitionSpec

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError, PlacementError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes, MeshAxes, as_entries, by_rule


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
class Placement:
    """A virtual grid on a mesh.

    axes: for each grid dim, the mesh axes of `DeviceGrid.fine` that divide it. slots: the grid
    rounded up so that these axes divide it. per_device: consecutive cores per device along each
    dim.
    """

    grid: Shape
    axes: tuple[Axes, ...]
    slots: Shape
    per_device: Shape

    @classmethod
    def of(
        cls, mesh: MeshAxes, grid: Shape, axes: Sequence[Axes], per_device: Shape | None = None
    ) -> Placement:
        """Return the placement of a grid whose dims are divided by these axes.

        per_device: by default as few cores as possible.
        """
        counts = list(map(mesh.count, axes))
        if per_device is None:
            per_device = tuple(-(-g // n) for g, n in zip(grid, counts, strict=True))
        slots = tuple(p * n for p, n in zip(per_device, counts, strict=True))
        return cls(grid, tuple(axes), slots, per_device)

    @classmethod
    def by_rule(cls, mesh: MeshAxes, grid: Shape) -> Placement:
        """Return the placement of a grid by the rule of `DeviceGrid.placement`."""
        return cls.of(mesh, grid, by_rule(mesh, grid))

    @classmethod
    def stated(cls, mesh: MeshAxes, layout: Layout) -> Placement:
        """Return the placement of a layout that names mesh axes.

        Raises `PlacementError` for axes that the mesh does not have, or of more devices than a dim
        of the grid has cores.
        """
        grid, named = layout.core_shape, layout.mesh_axes
        assert named is not None
        try:
            axes = list(map(mesh.in_factors, named))
            mesh.in_factors(tuple(name for names in named for name in names))
        except LayoutError as error:
            raise PlacementError(f"mesh_axes {as_entries(named)} of {layout!r}: {error}") from None
        for cores, names, own in zip(grid, named, axes, strict=True):
            if cores < mesh.count(own):
                raise PlacementError(
                    f"mesh_axes {as_entries(named)} of {layout!r}: {cores} cores along a dim can't "
                    f"be divided by {mesh.count(own)} devices along {', '.join(names)}: give the "
                    "grid as many cores, or name fewer axes"
                )
        return cls.of(mesh, grid, axes)

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
