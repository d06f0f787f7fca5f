"""`exchanged`: an exchange as a move of one device's part, inside of `shard_map`."""

from __future__ import annotations

from math import prod
from typing import Any

from jax import lax

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.joined import is_on_cpus
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import Phases, Send
from gridlayout.sharding.collectives import ALL_GATHER, ALL_TO_ALL, index_of, permute, slice_at
from gridlayout.sharding.exchanges.exchange import Exchange, Transfer
from gridlayout.sharding.meshes.placement import Placement


def exchanged(
    exchange: Exchange, before: Placement, after: Placement, x: LazyView, fill: Any
) -> Phases:
    """Run an exchange on a device's part. before, after: the placements of the two grids."""
    for k in exchange.gathers:
        axes, size = before.axes[k], before.slots[k] // before.per_device[k]
        x = yield Send(ALL_GATHER, axes, size, x, k)
        x = x.first(before.grid[k], k)  # without the idle slots
    x = packing.run_moves(x, exchange.first, fill)
    is_padded = prod(exchange.digit_shape) > prod(exchange.gathered_shape)
    for transfer in exchange.transfers:
        x = yield from _transferred(x, transfer)
        if transfer.is_slice and is_padded and is_on_cpus():  # else XLA stores all that is padded
            x = LazyView.of(lax.optimization_barrier(x.materialize()))
    x = packing.run_moves(x, exchange.last, fill)
    if exchange.final is not None:
        x = yield from _transferred(x, exchange.final)
    for k in exchange.slices:
        x = own_cores(x, k, after, fill)
    return x


def sends_of(exchange: Exchange, before: Placement) -> tuple[Axes, ...]:
    """Return the mesh axes of each collective of `exchanged`."""
    transfers = [*exchange.transfers, *filter(None, [exchange.final])]
    gathers = (before.axes[k] for k in exchange.gathers)
    return (*gathers, *(each.axes for each in transfers if not each.is_slice))


def _transferred(x: LazyView, transfer: Transfer) -> Phases:
    axes, source, target = transfer.axes, transfer.source, transfer.target
    if transfer.pairs:
        return LazyView.of(permute(x.materialize(), axes, transfer.pairs))
    if source is None:
        assert target is not None
        return LazyView.of(slice_at(x.materialize(), index_of(axes), 1, target))
    if transfer.parts:
        return (yield from _gathered_at_once(x, transfer))
    if target is None:
        return (yield Send(ALL_GATHER, axes, transfer.size, x, source))
    return (yield Send(ALL_TO_ALL, axes, transfer.size, x, source, target))


def _gathered_at_once(x: LazyView, transfer: Transfer) -> Phases:
    shape, sizes = x.shape, tuple(n for _, n in transfer.parts)
    x = yield Send(ALL_GATHER, transfer.axes, transfer.size, x.reshape(1, *shape), 0)
    x = x.reshape(*sizes, *shape)
    order: list[int] = []
    for d in range(len(shape)):  # the positions of devices along each dim, before its own
        order += [i for i, (dim, _) in enumerate(transfer.parts) if dim == d]
        order.append(len(sizes) + d)
    return x.transpose(order).reshape(*transfer.of(shape))


def own_cores(x: LazyView, k: int, placement: Placement, fill: Any) -> LazyView:
    """Return this device's cores of grid dim `k`, from a part that has all of them."""
    part = x.materialize()
    if (missing := placement.slots[k] - part.shape[k]) > 0:
        grow = [(0, missing if d == k else 0, 0) for d in range(part.ndim)]
        part = lax.pad(part, fill, grow)
    if placement.axes[k]:
        count = placement.per_device[k]
        part = slice_at(part, index_of(placement.axes[k]) * count, count, k)
    return LazyView.of(part)
