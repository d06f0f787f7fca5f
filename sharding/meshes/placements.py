"""`Placements`: the placements of virtual core grids on one mesh, and the maps of their cores."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.map import AffineExpr, AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import PlacementError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes, MeshAxes, by_rule
from gridlayout.sharding.meshes.core_map import StatedMap
from gridlayout.sharding.meshes.placement import Placement


class Placements:
    """The placements of virtual core grids on one mesh, each computed once.

    axes: the prime factors of the mesh axes. stated: the map that the user states; it places the
    grids that it maps into the mesh, and the rule of `gl.DeviceGrid.placement` all others.
    """

    def __init__(self, axes: MeshAxes, stated: StatedMap | None) -> None:
        self.axes, self.stated = axes, stated
        self._found: dict[Shape, Placement] = {}
        self._refused: set[Shape] = set()
        self._by_map: dict[Shape, Placement | None] = {}  # None: the map does not place the grid
        self._by_axes: dict[tuple[Shape, tuple[Axes, ...]], Placement] = {}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The mesh indices of the devices, in the order that placements use."""
        stated = None if self.stated is None else self.stated.order
        return stated or tuple(range(prod(self.axes.sizes)))

    def known(self, grid: object) -> Placement | None:
        """Return the placement of a grid if it was computed before; None for any other object."""
        if type(grid) is tuple and set(map(type, grid)) <= {int}:
            return self._found.get(grid)
        return None

    def of(self, grid: Shape) -> Placement:
        """Return the placement of a grid."""
        if grid not in self._found:
            self._found[grid] = self._by_stated_map(grid) or Placement.by_rule(self.axes, grid)
        return self._found[grid]

    def of_layout(self, layout: Layout) -> Placement:
        """Return the placement of a layout's grid: by the mesh axes that it names, if any."""
        grid, named = layout.core_shape, layout.mesh_axes
        if named is None:
            return self._found.get(grid) or self.of(grid)
        if (grid, named) not in self._by_axes:
            self._by_axes[grid, named] = Placement.stated(self.axes, layout)
        return self._by_axes[grid, named]

    def named(self, placement: Placement) -> tuple[Axes, ...] | None:
        """Return the names of the mesh axes that divide each dim of a grid.

        None where they need no names: where a layout that names none is placed there.
        """
        if self.has(placement.grid) and self.of(placement.grid) == placement:
            return None
        return tuple(map(self.axes.in_mesh_axes, placement.axes))

    def normalized(self, layout: Layout) -> Layout:
        """Return a layout that names mesh axes only where that changes its placement.

        So layouts of one placement are equal. Axes of one device are left out.

        >>> from gridlayout.layouts.mesh_axes import MeshAxes
        >>> placements = Placements(MeshAxes.of(("x", "y"), (2, 2)), None)
        >>> [placements.normalized(GridLayout((4,), grid=(2,), mesh_axes=(axis,))) for axis in "xy"]
        [GridLayout((4,), 'float32', grid=(2,)),
         GridLayout((4,), 'float32', grid=(2,), mesh_axes=('y',))]
        """
        if not isinstance(layout, GridLayout) or layout.mesh_axes is None:
            return layout
        return layout.on_mesh_axes(self.named(self.of_layout(layout)))

    def like(self, layout: Layout, other: Layout) -> Layout:
        """Return a layout on axes chosen by the rule, with those that `other` names before others.

        So axes of equal size are chosen as in `other`. If they explain its placement: else, and if
        it names none, the layout as it is.

        >>> from gridlayout.layouts.mesh_axes import MeshAxes
        >>> placements = Placements(MeshAxes.of(("x", "y"), (2, 2)), None)
        >>> other = GridLayout((4, 6), grid=(2, 2), mesh_axes=("y", "x"))
        >>> placements.like(GridLayout((24,), grid=(4,)), other)
        GridLayout((24,), 'float32', grid=(4,), mesh_axes=(('y', 'x'),))
        """
        return layout if other.mesh_axes is None else self.near(layout, self.of_layout(other))

    def near(self, layout: Layout, there: Placement) -> Layout:
        """Return a layout on axes chosen by the rule, with those of a placement before others.

        The layout as it is if the rule explains the placement in no order of axes, or as they are.
        """
        if not isinstance(layout, GridLayout) or layout.mesh_axes or self.named(there) is None:
            return layout
        first = self.axes.first([axis for axes in there.axes for axis in axes])
        if by_rule(first, there.grid) != there.axes:
            return layout
        placement = Placement.of(self.axes, layout.grid, by_rule(first, layout.grid))
        return layout.on_mesh_axes(self.named(placement))

    def has(self, grid: Shape) -> bool:
        """Return whether a grid has a placement; False only where the stated map prevents it.

        The library proposes no other grids for values that users get.
        """
        if self.stated is None or grid in self._found:
            return True
        if grid not in self._refused:
            try:
                self.of(grid)
            except PlacementError:
                self._refused.add(grid)
        return grid not in self._refused

    def inner(self, grid: Shape | Layout) -> Placement:
        """Return the placement of a grid that the library itself chooses inside an operation.

        That is `of`, or the rule's where the stated map gives the grid none.
        """
        if isinstance(grid, Layout):
            if grid.mesh_axes is not None:
                return self.of_layout(grid)
            grid = grid.core_shape
        return self.of(grid) if self.has(grid) else Placement.by_rule(self.axes, grid)

    def _by_stated_map(self, grid: Shape) -> Placement | None:
        if self.stated is not None and grid not in self._by_map:
            self._by_map[grid] = self.stated.placement(grid)
        return self._by_map.get(grid)

    def core_map(self, placement: Placement) -> AffineMap:
        """Return the map: virtual core -> (coordinates in the mesh ..., core in the device ...)."""
        if self.stated is not None and self._by_stated_map(placement.grid) == placement:
            return self.stated.map
        digits: dict[str, AffineExpr] = {}
        inside = []
        for k, axes in enumerate(placement.axes):
            cores = max(placement.per_device[k], 1)
            index = dim(k) // cores
            for axis in reversed(axes):
                size = self.axes.size_of[axis]
                digits[axis] = index % size if axis != axes[0] else index
                index = index // size
            inside.append(dim(k) % cores)
        rank = len(placement.grid)
        if self.stated is None:
            coordinates = self.axes.coordinates(digits)
        else:
            coordinates = self.stated.coordinates(rank, digits)
        return AffineMap(rank, (*coordinates, *inside)).simplify(placement.grid)

    def first_cores(self, placement: Placement) -> NDArray[np.int64]:
        """Return the first core of each device, in the shape (devices, grid dims).

        The devices are in the row-major order of the mesh. The first core may be an idle slot.
        """
        count = prod(self.axes.sizes)
        places = np.unravel_index(np.arange(count), self.axes.sizes)
        at = dict(zip(self.axes.names, places, strict=True))
        found = np.zeros((count, len(placement.grid)), np.int64)
        for k, axes in enumerate(placement.axes):
            if axes:
                sizes = tuple(map(self.axes.size_of.__getitem__, axes))
                part = np.ravel_multi_index(tuple(at[axis] for axis in axes), sizes)
                found[list(self.order), k] = part * placement.per_device[k]
        return found
