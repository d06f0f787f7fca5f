"""The grid that divides a tensor as a `PartitionSpec` of JAX does. No JAX is needed to read one."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from gridlayout.arguments import Shape, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.mesh_axes import Axes, MeshAxes, as_mesh_axes, by_rule

# The memory space of JAX's memory kinds of the host.
_SPACES = {"pinned_host": "system"}


def stated(sharding: Any) -> tuple[Any, dict[str, int], str]:
    """Return the spec of a `NamedSharding`, the sizes of its mesh, and its memory space."""
    spec, mesh = getattr(sharding, "spec", None), getattr(sharding, "mesh", None)
    if spec is None or mesh is None or not isinstance(getattr(mesh, "shape", None), Mapping):
        raise LayoutError(
            f"sharding {shown(sharding)} must be a jax.sharding.NamedSharding, which says which "
            "axes of a mesh divide which dim: NamedSharding(mesh, PartitionSpec(...))"
        )
    sizes = {str(name): int(size) for name, size in mesh.shape.items()}
    return spec, sizes, _SPACES.get(getattr(sharding, "memory_kind", None) or "", "l1")


def grid_of(shape: Shape, spec: Any, sizes: Mapping[str, int]) -> Shape:
    """Return the number of parts along each dim; at least one number.

    sizes: the devices along each mesh axis. `LayoutError` for a spec with more entries than dims,
    unknown axes, an axis that is named twice, and dims that are left open.

    >>> grid_of((53, 63, 5), (("x", "y"), None), {"x": 2, "y": 4})
    (8, 1, 1)
    """
    entries = tuple(spec)
    if len(entries) > len(shape):
        raise LayoutError(
            f"{spec} has {len(entries)} entries, but shape {shape} has {len(shape)} dims: give at "
            "most one entry per dim"
        )
    if getattr(spec, "unreduced", None):
        raise LayoutError(f"{spec} is of partial sums, and a layout holds the elements themselves")
    used: list[str] = []
    grid = []
    for entry in entries:
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        if not isinstance(axes, tuple):
            raise LayoutError(f"{spec} leaves a dim open: give an axis of the mesh, or None")
        for axis in axes:
            if axis not in sizes:
                raise LayoutError(
                    f"{spec} names axis {axis!r}, but the mesh has {', '.join(sizes) or 'no axes'}"
                )
            if axis in used:
                raise LayoutError(f"{spec} names axis {axis!r} twice: an axis divides one dim")
            used.append(axis)
        grid.append(prod(sizes[axis] for axis in axes))
    return (*grid, *(1,) * (len(shape) - len(grid))) or (1,)


def named_axes(grid: Shape, spec: Any, sizes: Mapping[str, int]) -> tuple[Axes, ...] | None:
    """Return the mesh axes that divide each dim of a grid by a spec that `grid_of` has checked.

    None where they are those that `DeviceGrid.placement` chooses.

    >>> [named_axes((2, 1), (axis,), {"x": 2, "y": 2}) for axis in "xy"]
    [None, (('y',), ())]
    """
    entries = [() if x is None else (x,) if isinstance(x, str) else x for x in spec]
    named = as_mesh_axes(entries, len(grid))
    mesh = MeshAxes.of(tuple(sizes), tuple(sizes.values()))
    axes = tuple(map(mesh.in_factors, named))
    return None if axes == by_rule(mesh, grid) else tuple(map(mesh.in_mesh_axes, axes))
