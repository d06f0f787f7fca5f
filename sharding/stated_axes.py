"""The mesh axes along each dim that a sharding of JAX states inside a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.logical_sharding import axes_in_order

# For each dim, the axes of `device.fine` that divide it, the major first; None where any may.
StatedAxes = tuple[Axes | None, ...]


def stated_axes(sharding: Any, rank: int, device: DeviceGrid) -> StatedAxes | None:
    """Return the axes that a `NamedSharding` states for the dims of an array.

    None where it states nothing: where all dims are unconstrained, where all names are of no mesh
    (`logical_jaxpr` adds such axes to the mesh that a function sees), and for other shardings than
    `NamedSharding`. `LayoutError` for a mesh of other devices, for names that the mesh of the
    device grid does not have, and for partial sums.

    >>> from jax.sharding import AbstractMesh, AxisType
    >>> mesh = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    >>> spec = PartitionSpec("y", PartitionSpec.UNCONSTRAINED)
    >>> stated_axes(NamedSharding(mesh, spec), 3, DeviceGrid(mesh))
    (('y0', 'y1'), None, ())
    """
    if not isinstance(sharding, NamedSharding) or not rank:
        return None
    spec, mesh = sharding.spec, sharding.mesh
    if getattr(spec, "unreduced", None):
        raise LayoutError(f"{spec} is of partial sums, and a layout holds the elements themselves")
    entries = [_names(entry) for entry in (*spec, *(None for _ in range(rank - len(spec))))]
    used = [name for names in entries if names is not None for name in names]
    sizes = {str(name): int(size) for name, size in mesh.shape.items()}
    if all(names is None for names in entries) or _is_of_no_mesh(used, sizes, device):
        return None
    if isinstance(mesh, Mesh) and not device.is_abstract:
        return tuple(
            None if each is None else _by_devices(each, sharding, device) for each in entries
        )
    for name in used:
        if sizes[name] != device.sizes.get(name):
            raise LayoutError(
                f"{spec} is of a mesh with axes {sizes}, and {device!r} has other ones: make the "
                "device grid from that mesh, gl.DeviceGrid(mesh)"
            )
    return tuple(None if each is None else _by_name(each, device) for each in entries)


def _names(entry: Any) -> Axes | None:
    if entry is PartitionSpec.UNCONSTRAINED:
        return None
    return (
        ()
        if entry is None
        else (str(entry),)
        if not isinstance(entry, tuple)
        else tuple(map(str, entry))
    )


def _is_of_no_mesh(used: Sequence[str], sizes: dict[str, int], device: DeviceGrid) -> bool:
    return bool(used) and all(name not in device.sizes and sizes[name] == 1 for name in used)


def _by_name(names: Axes, device: DeviceGrid) -> Axes:
    axes = (axis for name in names for axis in device.fine_axes(name))
    return tuple(axis for axis in axes if device.fine.shape[axis] > 1)


def _by_devices(names: Axes, sharding: NamedSharding, device: DeviceGrid) -> Axes:
    """Return the axes along which the devices have the numbers that they have along `names`."""
    mesh: Any = sharding.mesh
    if set(mesh.devices.flat) != set(device.fine.devices.flat):
        raise LayoutError(
            f"{sharding} is of other devices than {device.words}: state it on the mesh of the "
            "device grid, or compute on its devices, gl.on_grid(fn, mesh)"
        )
    if not names:
        return ()
    at = [mesh.axis_names.index(name) for name in names]
    sizes = tuple(mesh.devices.shape[k] for k in at)
    places = np.indices(mesh.devices.shape)[at].reshape(len(at), -1)
    along = np.ravel_multi_index(tuple(places), sizes)
    number = dict(zip(mesh.devices.flat, along.tolist(), strict=True))
    numbers = np.array([number[each] for each in device.fine.devices.flat], np.int64)
    found = axes_in_order(numbers.reshape(device.fine.devices.shape), device.fine.axis_names)
    if found is None:
        raise LayoutError(
            f"{sharding} divides a dim in an order of devices that no axes of {device.words} "
            "have: make the device grid from that mesh, gl.DeviceGrid(mesh)"
        )
    return found
