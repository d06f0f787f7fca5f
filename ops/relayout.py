"""`relayout`: the same logical tensor in another layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops.exchange import Transfer, find_exchange
from gridlayout.ops.grid_array import GridArray, pack_and_place
from gridlayout.ops.seen import Seen
from gridlayout.route import find_route
from gridlayout.sharding.device_grid import DeviceGrid, Placement


def relayout(x: GridArray, layout: Layout) -> GridArray:
    """`x` in another layout of the same logical shape and dtype, on the same devices.

    Nothing moves when both put every element at the same physical index. Asking for a known `oob`
    writes it to the padding. `LayoutError` for another shape or dtype.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put([1, 2, 3], GridLayout((3,), "int32", grid=(3,)), DeviceGrid((1,)))
    >>> relayout(x, GridLayout((3,), "int32", grid=(1,))).physical.tolist()
    [[1, 2, 3]]
    """
    if not isinstance(x, GridArray):
        raise LayoutError(f"relayout takes a GridArray, not {type(x).__name__}; gl.put makes one")
    check_relayout(x.layout, layout)
    with x.device.active():
        return GridArray(_relayout(x.storage, x.layout, layout, x.device), layout, x.device)


def check_relayout(old: Layout, new: Layout) -> None:
    """`LayoutError` unless both are layouts of one logical shape and dtype."""
    for layout in (old, new):
        if not isinstance(layout, Layout):
            raise LayoutError(f"relayout to {type(layout).__name__}: give a gl.Layout")
    if new.shape != old.shape or new.dtype != old.dtype:
        raise LayoutError(
            f"relayout keeps shape and dtype: {old!r} can't become {new!r}; "
            "gl.numpy.reshape or astype changes those"
        )


@partial(jax.jit, static_argnums=(1, 2, 3))
def _relayout(storage: jax.Array, old: Layout, new: Layout, device: DeviceGrid) -> jax.Array:
    return move(GridArray(storage, old, device), new).storage


def move(
    x: GridArray, layout: Layout, change: Callable[[jax.Array], jax.Array] | None = None
) -> GridArray:
    """`x` in another layout, inside a traced program; `change` reshapes or slices it on the way.

    Nothing moves where the physical layout is the same. Else the route between the two runs on each
    device, which first gathers what does not stay on it; without a route, or with a change, the
    logical array is unpacked and packed.
    """
    old, device = x.layout, x.device
    route = None if change or x.storage.ndim != len(old.physical_shape) else find_route(old, layout)
    if route is None and (change or not nothing_moves(old, layout)):
        layout.check_invertible()
        logical = x.to_logical()
        return lay_out(change(logical) if change else logical, layout, device)
    storage = x.storage
    if route is not None and not nothing_moves(old, layout):
        storage = _routed(old, layout.with_oob(None), device, storage, packing.fill_value(layout))
    if layout.oob is None or repr(layout.oob) == repr(old.oob):
        return GridArray(storage, layout, device)
    return GridArray(storage, layout.with_oob(None), device).with_oob(layout.oob)


def nothing_moves(old: Layout, new: Layout) -> bool:
    """Whether both put every element at the same physical index, whatever describes it."""
    if old.same_physical(new):
        return True
    route = find_route(old, new) if old.core_rank == new.core_rank else None
    return route is not None and route.is_nothing


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _routed(
    old: Layout, new: Layout, device: DeviceGrid, storage: jax.Array, fill: jax.Array
) -> jax.Array:
    """The storage of `new` from that of `old`, along their route."""
    return exchanged(old, new, device, device.placement(new.core_shape), storage, fill)


@_routed.defjvp
def _(old: Layout, new: Layout, device: DeviceGrid, primals: Any, tangents: Any) -> Any:
    # The same movement of the logical array, which JAX differentiates in either mode.
    tangent = GridArray(tangents[0], old, device).to_logical()
    return _routed(old, new, device, *primals), lay_out(tangent, new, device).storage


def exchanged(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    after: Placement,
    storage: jax.Array,
    fill: jax.Array,
) -> jax.Array:
    """The storage of `new`, placed as `after` says, from that of `old`; they have a route."""
    before = device.placement(old.core_shape)
    exchange = exchanger(old, new, device, before, after)
    moved = jax.shard_map(
        lambda x, fill: exchange(Seen.of(x), fill).now(),
        mesh=device.fine,
        in_specs=(before.spec, PartitionSpec()),
        out_specs=after.spec,
        check_vma=False,
    )
    return packing.bitwise(moved, storage, fill)


def exchanger(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> Callable[[Seen, Any], Seen]:
    """What each device does to go from its part of `old` to that of `new`, inside `shard_map`.

    A function of the part and of what goes where the way pads. The layouts have a route.
    """
    exchange = find_exchange(old, new, device, after, before)
    assert exchange is not None

    def kernel(x: Seen, fill: Any) -> Seen:
        for k in exchange.gathers:
            part = lax.all_gather(x.now(), before.axes[k], axis=k, tiled=True)
            x = Seen.of(part).first(before.grid[k], k)  # without the idle slots
        x = packing.run_moves(x, exchange.first, fill)
        for transfer in exchange.transfers:
            x = Seen.of(_transferred(x.now(), transfer))
        x = packing.run_moves(x, exchange.last, fill)
        for k in exchange.slices:
            part = _grown(x.now(), k, after.slots[k], fill)
            start = lax.axis_index(after.axes[k]) * after.per_device[k]
            x = Seen.of(lax.dynamic_slice_in_dim(part, start, after.per_device[k], axis=k))
        return x

    return kernel


def _transferred(x: jax.Array, transfer: Transfer) -> jax.Array:
    axes, source, target = transfer.axes, transfer.source, transfer.target
    if source is None:
        assert target is not None
        return lax.dynamic_slice_in_dim(x, lax.axis_index(axes), 1, axis=target)
    if target is None:
        return lax.all_gather(x, axes, axis=source, tiled=True)
    return lax.all_to_all(x, axes, target, source, tiled=True)


def _grown(x: jax.Array, k: int, extent: int, fill: jax.Array) -> jax.Array:
    grow = [(0, extent - n if d == k else 0, 0) for d, n in enumerate(x.shape)]
    return lax.pad(x, fill, grow)


def lay_out(logical: jax.Array, layout: Layout, device: DeviceGrid) -> GridArray:
    """A logical array in a layout, inside a traced program."""
    return GridArray(pack_and_place(logical, layout, device), layout, device)
