"""The storage of a `GridArray`: conversion from and to the logical array.

All functions can be traced. A storage may have leading batch dims that its layout does not include.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import moves
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.padding import fill_padding
from gridlayout.ops.moves.relayout import replicate
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid


def pack_and_place(x: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array:
    """Return the storage of a logical array, inside a traced program."""

    def moved(x: jax.Array, fill: jax.Array) -> jax.Array:
        # Replicate first, because XLA's sharding propagation gets some producers wrong (an interior
        # pad) and warns about others. It is done here, where x may be the bits of floats: slices of
        # the floats themselves would lose NaN payloads.
        x = lax.with_sharding_constraint(x, device.replicated)
        return place(
            packing.run_moves(LazyView.of(x), moves(layout), fill).materialize(),
            layout,
            device,
            fill,
        )

    return packing.bitwise(moved, x, packing.fill_value(layout))


def place(physical: jax.Array, layout: Layout, device: DeviceGrid, fill: Any = 0) -> jax.Array:
    """Return a physical array as storage: with idle slots, on the devices that hold its cores.

    Inside jit this constrains the sharding; `fill` is written to the idle slots.
    """
    batch = physical.ndim - len(layout.physical_shape)
    storage_shape = device.storage_shape(layout)
    grow = [n - p for n, p in zip(storage_shape, layout.physical_shape, strict=True)]
    if any(grow):
        fill = jnp.asarray(fill, physical.dtype)
        physical = lax.pad(physical, fill, [(0, 0, 0)] * batch + [(0, n, 0) for n in grow])
    return lax.with_sharding_constraint(physical, device.partitioned(layout, batch))


@jitted(1, 2)
def without_idle(storage: jax.Array, shape: tuple[int, ...], device: DeviceGrid) -> jax.Array:
    """Return the physical array of a storage with idle slots, replicated."""

    def moved(storage: jax.Array, _: jax.Array) -> jax.Array:
        # Its cores no longer divide by the mesh, so it is replicated.
        storage = lax.with_sharding_constraint(storage, device.replicated)
        return storage[(..., *map(slice, shape))]

    return packing.bitwise(moved, storage, jnp.zeros((), storage.dtype))


@jitted(1, 2)
def to_logical(storage: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array:
    """Return the logical array of a storage in the devices' memory, replicated."""
    return (
        _replicated(layout, device, storage)
        if storage.size
        else _by_gather(layout, device, storage)
    )


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _replicated(layout: Layout, device: DeviceGrid, storage: jax.Array) -> jax.Array:
    """Return the logical array, replicated."""
    batch = storage.ndim - len(layout.physical_shape)
    move = replicate(layout, device, device.placement(layout))
    run = batched(lambda part: move.run(LazyView.of(part)).materialize(), batch)
    spec = device.partitioned(layout, batch).spec
    return shard_mapped(run, device.fine, spec, PartitionSpec())(storage)


@_replicated.defjvp
def _(layout: Layout, device: DeviceGrid, primals: Any, tangents: Any) -> Any:
    # The same gather by XLA, which JAX differentiates in both modes.
    return _replicated(layout, device, *primals), _by_gather(layout, device, *tangents)


def _by_gather(layout: Layout, device: DeviceGrid, storage: jax.Array) -> jax.Array:
    def moved(storage: jax.Array, fill: jax.Array) -> jax.Array:
        # Gather first: XLA would otherwise compute the unpacking of shards as masked sums, and
        # -0.0 + 0.0 is 0.0.
        storage = lax.with_sharding_constraint(storage, device.replicated)
        physical = storage[(..., *(slice(n) for n in layout.physical_shape))]
        logical = packing.undo_moves(LazyView.of(physical), fill, layout).materialize()
        return lax.with_sharding_constraint(logical, device.replicated)

    return packing.bitwise(moved, storage, jnp.zeros((), layout.dtype))


def padded(storage: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array:
    """Return a storage in the devices' memory with its padding set to the layout's `oob`."""
    return _padded(storage, layout, device, packing.fill_value(layout))


@jitted(1, 2)
def _padded(storage: jax.Array, layout: Layout, device: DeviceGrid, fill: Any) -> jax.Array:
    placement = device.placement(layout)
    batch = storage.ndim - len(layout.physical_shape)
    spec = device.partitioned(layout, batch).spec

    def padded(x: jax.Array, fill: jax.Array) -> jax.Array:
        return batched(lambda part: fill_padding(part, layout, placement, fill), batch)(x)

    return shard_mapped(padded, device.fine, (spec, PartitionSpec()), spec)(storage, fill)


def batched(fn: Callable[[jax.Array], jax.Array], batch: int) -> Callable[[jax.Array], jax.Array]:
    """Return `fn` for arrays with `batch` more leading dims."""
    for _ in range(batch):
        fn = jax.vmap(fn)
    return fn


class StorageSharding(NamedSharding):
    """The sharding of a storage; it raises for arrays of other shapes.

    JAX would otherwise give it to new arrays of the logical shape, as in `jnp.zeros_like`.
    """

    _shape: tuple[int, ...]
    _owner: str

    @classmethod
    def of(cls, sharding: NamedSharding, shape: tuple[int, ...], owner: str) -> StorageSharding:
        """Return the sharding of a storage of this shape; owner: its `GridArray`, for errors."""
        made = cls(sharding.mesh, sharding.spec, memory_kind=sharding.memory_kind)
        made._shape, made._owner = shape, owner
        return made

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a shard; `LayoutError` for another shape than the storage's."""
        if tuple(global_shape) != self._shape:
            raise LayoutError(
                f"the sharding of the storage of {self._owner} is for shape {self._shape}, not for "
                f"an array of shape {tuple(global_shape)}: gl.zeros_like(x) makes a GridArray like "
                "another, gl.on_grid(fn) runs a function that makes arrays like its arguments, as "
                "gl.on_grid(optimizer.init)(params), and x.draw() shows where its elements are"
            )
        return super().shard_shape(global_shape)
