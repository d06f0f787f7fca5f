"""Conversion from and to sharded logical `jax.Array`s: by a relayout, or without a copy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding, SingleDeviceSharding

from gridlayout.arguments import Shape, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.intervals import Box
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.in_parts import Held, box_of, is_host_memory, shards_of, stored
from gridlayout.ops.array.staged import run_staged, staged_pieces
from gridlayout.ops.array.storage import padded
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.logical_sharding import logical_layout, placement_of
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.sharding.processes.elements import digest_of


def laid_out(array: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array | None:
    """Return the storage of a logical array: its shards as they are, packed by the host, or moved.

    None if the host can't read the array, and its sharding is not on this device grid or the array
    is not in the devices' memory.
    """
    before = placement_of(array.sharding, array.shape, device)
    if before is not None and device.memory_kind(layout) is None:
        old, after = _layout(array, before), device.placement(layout)
        move = find_move(old, layout, device, before, after)
        if move is None or (move.is_view and not move.collectives and layout.oob is None):
            return _as_storage(array, layout, device, after)
    if is_host_memory(array, device):
        return stored(shards_of(array).read, layout, device)
    if before is None or not _in_device_memory(array):
        return None
    old, after = _layout(array, before), device.placement(layout)
    if (pieces := staged_pieces(old, layout, device, before, after)) is not None:
        found = run_staged(_as_storage(array, old, device, before), layout, pieces)
        return found if layout.oob is None else padded(found, layout, device)
    return _packed(_rewrapped(array, device, before), layout, device, before)


def check_sharding(sharding: Any, shape: tuple[int, ...]) -> None:
    """Raise `LayoutError` unless a logical `jax.Array` of the shape can have the sharding."""
    if not isinstance(sharding, Sharding):
        raise LayoutError(
            f"sharding {shown(sharding)} must be a jax.sharding.NamedSharding, or None: every "
            "device then gets the full array"
        )
    if isinstance(sharding, NamedSharding) and not sharding.mesh.devices.size:
        raise LayoutError(f"sharding {sharding} has no devices: give one of a jax.sharding.Mesh")
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        raise LayoutError(
            f"sharding {sharding} can't divide the shape {shape}: JAX's arrays have equal shards, "
            f"so each dim has to be a multiple of its devices; gl.relayout takes any grid ({error})"
        ) from None


def sharding_text(sharding: Sharding, shape: tuple[int, ...]) -> str:
    """Return a text of a sharding, the same in every process: its shards, and their devices."""
    index: Any = sharding.devices_indices_map(shape)
    boxes = [(each.id, box_of(own or (), shape)) for each, own in index.items()]
    digest = digest_of(repr(sorted(boxes)).encode()).hex()
    return f"shards of {sharding.shard_shape(shape)} on {len(boxes)} devices, {digest}"


def logical_as(
    storage: jax.Array, layout: Layout, device: DeviceGrid, sharding: Sharding
) -> jax.Array | None:
    """Return the logical array with a sharding.

    None if the storage is traced, or if the host can't read it and the sharding is not on this
    device grid.
    """
    if isinstance(storage, jax.core.Tracer):
        return None
    if is_host_memory(storage, device):
        return _read(Held(storage, layout, device), sharding)
    after = placement_of(sharding, layout.shape, device)
    if after is None:
        return None
    new = logical_layout(layout.shape, layout.dtype, after.grid)
    before = device.placement(layout)
    if (pieces := staged_pieces(layout, new, device, before, after)) is not None:
        found = run_staged(storage, new, pieces)
        return _reshaped(found, layout.shape, sharding, new.local_shape)
    found = _unpacked(storage, layout, device, after)
    return jax.make_array_from_single_device_arrays(
        layout.shape, sharding, [shard.data for shard in found.addressable_shards]
    )


def _read(held: Held, sharding: Sharding) -> jax.Array:
    """Return the array of each device's box, each read once from what this process holds."""
    shape, known = held.layout.shape, dict[Box, Any]()
    placed = []
    for each, index in sharding.addressable_devices_indices_map(shape).items():
        box = box_of(index or (), shape)
        if box not in known:
            known[box] = held.read(box)
        kind = sharding.memory_kind
        placed.append(jax.device_put(known[box], SingleDeviceSharding(each, memory_kind=kind)))
    return jax.make_array_from_single_device_arrays(shape, sharding, placed)


def _layout(array: Any, before: Placement) -> Layout:
    return logical_layout(array.shape, array.dtype, before.grid)


def _in_device_memory(array: jax.Array) -> bool:
    return array.sharding.memory_kind in (None, "device", "unpinned_host")


def _rewrapped(array: jax.Array, device: DeviceGrid, before: Placement) -> jax.Array:
    """Return the same shards as an array on `device.fine`."""
    sharding = NamedSharding(device.fine, before.spec)
    own = [shard.data for shard in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, sharding, own, dtype=array.dtype)


def _reshaped(array: jax.Array, shape: Shape, sharding: Sharding, part: Shape) -> jax.Array:
    """Return the shards reshaped to `part`; on CPU devices without a copy."""
    parts = []
    for shard in array.addressable_shards:
        if shard.device.platform == "cpu":
            parts.append(jax.device_put(np.asarray(shard.data).reshape(part), shard.device))
        else:
            parts.append(shard.data.reshape(part))
    return jax.make_array_from_single_device_arrays(shape, sharding, parts, dtype=array.dtype)


def _as_storage(
    array: jax.Array, layout: Layout, device: DeviceGrid, place: Placement
) -> jax.Array:
    """Return a logical array's shards as the storage of a layout with the same shards."""
    sharding = NamedSharding(device.fine, place.spec)
    part = (*place.per_device, *layout.local_shape)
    return _reshaped(array, (*place.slots, *layout.local_shape), sharding, part)


@jitted(1, 2, 3)
def _packed(array: jax.Array, layout: Layout, device: DeviceGrid, before: Placement) -> jax.Array:
    old, after = _layout(array, before), device.placement(layout)
    move = find_move(old, layout, device, before, after)
    shape = (*before.per_device, *old.local_shape)

    def moved(part: jax.Array) -> jax.Array:
        x = LazyView.of(part).reshape(*shape)
        if move is not None:
            x = move.run(x)
        return x.reshape(*after.per_device, *layout.local_shape).materialize()

    return shard_mapped(moved, device.fine, before.spec, after.spec)(array)


@jitted(1, 2, 3)
def _unpacked(
    storage: jax.Array, layout: Layout, device: DeviceGrid, after: Placement
) -> jax.Array:
    before = device.placement(layout)
    new = logical_layout(layout.shape, layout.dtype, after.grid)
    move = find_move(layout, new, device, before, after)

    def moved(part: jax.Array) -> jax.Array:
        x = LazyView.of(part)
        return (x if move is None else move.run(x)).reshape(*new.local_shape).materialize()

    return shard_mapped(moved, device.fine, before.spec, after.spec)(storage)
