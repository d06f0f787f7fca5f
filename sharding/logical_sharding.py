"""Converts the sharding of a logical `jax.Array` to a placement on a device grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from jax.sharding import Sharding
from numpy.typing import NDArray

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
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
    found = [_axes(numbers[..., k], device.fine.axis_names) for k in range(len(shape))]
    axes = [each for each in found if each is not None]
    if len(axes) < len(found) or [device.count(each) for each in axes] != list(grid):
        return None
    return device.placed(grid, axes)


def _axes(numbers: NDArray[np.int64], names: Sequence[Any]) -> tuple[str, ...] | None:
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
