"""Relayout of an array to another device grid, which may share devices with the array's own.

JAX runs a program over one mesh, so this is not one program. If both device grids divide the array
into equal parts, devices send these parts as they are. Otherwise the data goes through the host,
one part of the result at a time.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_has_data, check_no_stack
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import Held, stored
from gridlayout.ops.array.relayout import check_relayout, relayout
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.agreement import joint_call, layout_lines

_WHAT = "gl.relayout to another device grid"


def relayout_to(x: GridArray, layout: Layout, device: DeviceGrid) -> GridArray:
    """`gl.relayout` of one array to a layout on a device grid."""
    if device == x.device:
        return relayout(x, layout)
    check_move(x, layout, device)
    if isinstance(x.storage, jax.core.Tracer):
        raise LayoutError(
            f"{_WHAT}: JAX traces {x!r}, and a program runs on one mesh; call it outside of "
            "jax.jit, jax.grad and gl.on_grid"
        )
    union = _union(x.device, device)
    is_equal = _is_equal(layout, x.device, device)
    with joint_call("gl.relayout", union, x) as call:
        # Compared each time: a process without a part of the result does not wait for it.
        call.agree(
            (x.layout, layout, x.device, device),
            lambda: [
                f"from {x.device.words} to {device.words}",
                *layout_lines(("array", x.layout), ("to", layout)),
            ],
            every_time=True,
        )
        if is_equal:
            return call.ran(_equal_parts(x, layout, device, union))
    if len(union.processes) > 1:
        raise LayoutError(
            f"{_WHAT}: between processes, parts are sent as they are, but the parts of {layout!r} "
            f"on {x.device.words} differ from those on {device.words}: use two parts of one mesh "
            "with the same shape, or call gl.put with the full array in every process"
        )
    held = Held(in_device_memory(x.storage, x.layout, x.device), x.layout, x.device)
    return placed(stored(held.read, layout, device), layout, device)


def _equal_parts(x: GridArray, layout: Layout, device: DeviceGrid, union: DeviceGrid) -> GridArray:
    """Return the array on a device grid whose devices hold the same parts as its own."""
    storage = in_device_memory(relayout(x, layout).storage, layout, x.device)
    sharding = device.partitioned(layout)
    if len(union.processes) == 1:
        storage = jax.device_put(storage, sharding)
    else:
        storage = _sent(storage, union, sharding)
    return placed(in_layout_memory(storage, layout, device), layout, device)


def check_move(x: GridArray, layout: Layout, device: DeviceGrid) -> None:
    """Raise `LayoutError` unless the array can be relaid out to a layout on a device grid."""
    check_relayout(x.layout, layout)
    check_no_stack(x)
    check_has_data(x, _WHAT)
    layout.check_invertible()
    device.check_has_devices(_WHAT)


def _union(first: DeviceGrid, second: DeviceGrid) -> DeviceGrid:
    """Return a device grid of the devices of both, those of the first one first."""
    every = dict.fromkeys([*first.fine.devices.flat, *second.fine.devices.flat])
    return DeviceGrid(Mesh(np.array(list(every)), ("devices",)))


def _is_equal(layout: Layout, first: DeviceGrid, second: DeviceGrid) -> bool:
    """Whether the devices of both have equal parts of an array, in the same order."""
    if first.size != second.size or first.storage_shape(layout) != second.storage_shape(layout):
        return False
    return _boxes(layout, first) == _boxes(layout, second)


def _boxes(layout: Layout, device: DeviceGrid) -> list[Any]:
    """Each device's part of the storage, in the devices' order."""
    shape = device.storage_shape(layout)
    found: Any = device.partitioned(layout).devices_indices_map(shape)
    return [found[each] for each in device.fine.devices.flat]


def _sent(storage: jax.Array, union: DeviceGrid, sharding: NamedSharding) -> jax.Array:
    """Return a storage in another sharding; each device sends its part to one device."""
    every, shape = list(union.mesh.devices.flat), storage.shape
    part = storage.sharding.shard_shape(shape)
    before: Any = storage.sharding
    froms, tos = (list(x.mesh.devices.flat) for x in (before, sharding))
    pairs = [(every.index(a), every.index(b)) for a, b in zip(froms, tos, strict=True)]
    own = {shard.device: shard.data for shard in storage.addressable_shards}
    here = [each for each in every if each.process_index == jax.process_index()]
    parts = [
        own[each][None]
        if each in own
        else jax.device_put(jnp.zeros((1, *part), storage.dtype), each)
        for each in here
    ]
    rows = NamedSharding(union.mesh, PartitionSpec("devices"))
    whole = jax.make_array_from_single_device_arrays(
        (len(every), *part), rows, parts, dtype=storage.dtype
    )
    moved = _permuted(whole, union.mesh, tuple(pairs)) if here else whole
    back = {shard.device: shard.data for shard in moved.addressable_shards}
    return jax.make_array_from_single_device_arrays(
        shape,
        sharding,
        [back[each].reshape(part) for each in tos if each in back],
        dtype=storage.dtype,
    )


@jitted(1, 2)
def _permuted(whole: jax.Array, mesh: Mesh, pairs: tuple[tuple[int, int], ...]) -> jax.Array:
    def moved(part: jax.Array, fill: Any) -> jax.Array:
        return lax.ppermute(part, "devices", pairs)

    spec = PartitionSpec("devices")
    run = lambda part: packing.bitwise(moved, part, jnp.zeros((), part.dtype))  # noqa: E731
    return shard_mapped(run, mesh, spec, spec)(whole)
