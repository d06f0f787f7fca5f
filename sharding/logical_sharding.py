"""Converts the sharding of a logical `jax.Array` to a placement on a device grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding
from numpy.typing import DTypeLike, NDArray

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.intervals import Box
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.layouts.parts import Part
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement


def placement_of(sharding: Sharding, shape: Shape, device: DeviceGrid) -> Placement | None:
    """Return the placement of a logical array's shards on the axes of `device.fine`.

    None if the sharding uses other devices, if its order of shards along a dim is that of no mesh
    axes, and for arrays without dims or elements.

    >>> import jax
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> device = DeviceGrid((1,))
    >>> placement_of(NamedSharding(device.mesh, PartitionSpec("x")), (4, 6), device).per_device
    (1, 1)
    """
    fine = device.fine.devices
    if not shape or 0 in shape or sharding.device_set != set(fine.flat):
        return None
    size = sharding.shard_shape(shape)
    index = sharding.devices_indices_map(shape)
    starts = [[s.indices(n)[0] // m for s, n, m in zip(index[d], shape, size, strict=True)]
              for d in fine.flat]  # fmt: skip
    grid = tuple(n // m for n, m in zip(shape, size, strict=True))
    numbers = np.array(starts, np.int64).reshape(*fine.shape, len(shape))
    found = [axes_in_order(numbers[..., k], device.fine.axis_names) for k in range(len(shape))]
    axes = [each for each in found if each is not None]
    if len(axes) < len(found) or [device.count(each) for each in axes] != list(grid):
        return None
    return device.placed(grid, axes)


def layout_of_spec(
    shape: Shape, dtype: DTypeLike, sharding: PartitionSpec | Sharding, device: DeviceGrid
) -> GridLayout:
    """Return the layout of an array by a sharding, or by a spec on the mesh of a device grid.

    `LayoutError` for a sharding of another mesh.

    >>> device = DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    >>> layout_of_spec((53, 63), "float32", PartitionSpec("y"), device)
    GridLayout((53, 63), 'float32', grid=(4, 1))
    """
    if isinstance(sharding, PartitionSpec):
        return GridLayout.of(shape, _Spec(sharding, device.mesh), dtype)
    own, given = device.mesh, getattr(sharding, "mesh", None)
    if isinstance(given, Mesh) and device.is_abstract:
        given = given.abstract_mesh
    if given is not None and (given.shape != own.shape or _devices(given) != _devices(own)):
        raise LayoutError(
            f"{sharding} is of another mesh than {device.words}: give shardings of one mesh"
        )
    return GridLayout.of(shape, sharding, dtype)


class _Spec(NamedTuple):
    """A spec on a mesh, with the attributes of a `NamedSharding`, unchecked."""

    spec: PartitionSpec
    mesh: Any


def _devices(mesh: Mesh | AbstractMesh) -> list[Any]:
    return list(mesh.devices.flat) if isinstance(mesh, Mesh) else []


def named_sharding(layout: Layout, device: DeviceGrid) -> NamedSharding:
    """Return the sharding by which JAX divides the logical array as a layout does on these devices.

    It is `layout.named_sharding(device)`. `LayoutError` where there is none: parts of JAX's arrays
    are boxes of one size, in the order of mesh axes.
    """
    parts = _parts(layout, device)
    size = tuple(high - low for low, high in parts[0])
    for k, part in enumerate(parts):
        if tuple(high - low for low, high in part) != size:
            raise LayoutError(
                f"{layout!r} has no NamedSharding on {device!r}: device {k} holds {_dims(part)} "
                f"elements and device 0 {_dims(parts[0])}, and parts of a NamedSharding are equal. "
                "Choose a grid that divides the shape, or pass arrays on as GridArrays"
            )
    starts = [[low // max(n, 1) for (low, _), n in zip(part, size, strict=True)] for part in parts]
    numbers = np.array(starts, np.int64).reshape(len(parts), len(size))
    for mesh, order in ((device.mesh, slice(None)), (device.fine, list(device.placements.order))):
        sizes = tuple(mesh.shape.values())
        found = [axes_in_order(each.reshape(sizes), mesh.axis_names) for each in numbers[order].T]
        axes = [each for each in found if each is not None]
        if len(axes) == len(found):
            entries = [each[0] if len(each) == 1 else each or None for each in axes]
            while entries and entries[-1] is None:
                entries.pop()
            kind = device.memory_kind(layout)
            sharding = NamedSharding(mesh, PartitionSpec(*entries))
            return sharding if kind is None else sharding.with_memory_kind(kind)
    raise LayoutError(
        f"{layout!r} has no NamedSharding on {device!r}: its parts are in an order of no mesh "
        "axes. Use a device grid without core_map"
    )


def _parts(layout: Layout, device: DeviceGrid) -> list[Box]:
    """Return the box of logical elements that each device holds, in the order of the mesh."""
    check_layout(layout)
    count = device.placement(layout).per_device
    found: dict[tuple[int, ...], Box] = {}
    firsts = list(map(tuple, device.first_cores(layout).tolist()))
    for k, first in enumerate(firsts):
        if first not in found:
            part = Part(layout, first, count)
            boxes = part.boxes if layout.data_bytes else (((0, 0),) * layout.ndim,)
            if len(boxes) != 1 or not part.is_exact:
                boxes_held = f"{len(boxes) or 'no'} boxes of" if part.is_exact else "no box of"
                raise LayoutError(
                    f"{layout!r} has no NamedSharding on {device!r}: device {k} holds {boxes_held} "
                    "elements, and a NamedSharding gives each device one box. Choose a grid that "
                    "divides each dim by itself, and has no more cores than elements"
                )
            found[first] = boxes[0]
    return [found[first] for first in firsts]


def _dims(box: Box) -> str:
    return "x".join(str(high - low) for low, high in box)


def axes_in_order(numbers: NDArray[np.int64], names: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the axes, the major first, along which the devices have these numbers; None if none.

    numbers: one per device, in the shape of the mesh.
    """
    strides: dict[int, int] = {}
    for k in range(numbers.ndim):
        step = int(np.moveaxis(numbers, k, 0).reshape(numbers.shape[k], -1)[-1, 0])
        stride, rest = divmod(step, max(numbers.shape[k] - 1, 1))
        if rest or stride < 0:
            return None
        if stride:
            strides[k] = stride
    order = sorted(strides, key=lambda k: -strides[k])
    counted = np.zeros(numbers.shape, np.int64)
    for k in order:
        at = [-1 if d == k else 1 for d in range(numbers.ndim)]
        counted += np.arange(numbers.shape[k]).reshape(at) * strides[k]
    nested = all(strides[a] == strides[b] * numbers.shape[b] for a, b in pairwise(order))
    if not nested or (order and strides[order[-1]] != 1) or (counted != numbers).any():
        return None
    return tuple(str(names[k]) for k in order)


def logical_layout(shape: Shape, dtype: Any, grid: Shape) -> GridLayout:
    """Return the untiled layout of a logical array in equal shards, one core per shard."""
    assert prod(shape)
    return GridLayout(shape, dtype, grid, collapse=[])
