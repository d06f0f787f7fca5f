"""Moves of tensors to other layouts: what each device does with its part.

A replicated array has a layout too: one core, on every device. So laying out an array and
replicating it are moves like any other. There are six ways to move:

* along a route (`gridlayout.layouts.route`): the exchange of the two layouts gives the collectives,
  with a permute between mesh axes or without;
* through the logical array, where there is no route: gather, unpack, pack, and keep the own part;
* in pieces, where the other ways receive more than has to move: the boxes that an old and a new
  part have in common are sent one by one;
* by borders, where blocks of the same dims are on the same devices and only their size differs;
* by blocks near the old and the new ones that begin at the same positions;
* between the same parts without tiles, which devices untile and tile.

The machine chooses between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax.numpy as jnp

from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.key import Key
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import host_fill, moves
from gridlayout.layouts.route import find_route
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.exchanged import exchanged, own_cores, sends_of
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.local_move import LocalMove, as_bits, move_of
from gridlayout.ops.moves.pieces import run_pieces
from gridlayout.ops.moves.reblocked import by_borders, in_aligned_blocks, without_tiles
from gridlayout.ops.moves.sends import Phases, run_alone
from gridlayout.ops.moves.workspace import Chain, of_chain
from gridlayout.ops.moves.workspaces import (
    exchanged_workspace,
    gathered_dims,
    gathered_workspace,
    pieces_workspace,
)
from gridlayout.sharding.choice import fastest_of
from gridlayout.sharding.collectives import Collective, Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.exchange import Exchange, local_bytes
from gridlayout.sharding.exchanges.find_exchange import find_exchange
from gridlayout.sharding.exchanges.pieces import Pieces, find_pieces
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement


@cached
def replicated_layout(shape: tuple[int, ...], dtype: Any) -> GridLayout:
    """Return the layout of a replicated array: one core, untiled."""
    return GridLayout(shape, dtype, (1,) * len(shape), collapse=[])


def replicated_placement(rank: int) -> Placement:
    """Return the placement of a replicated array: its one core is on every device."""
    ones = (1,) * rank
    return Placement(ones, ((),) * rank, ones, ones)


def nothing_moves(old: Layout, new: Layout) -> bool:
    """Return whether both layouts put every element at the same physical index."""
    if old.same_physical(new):
        return True
    route = find_route(old, new) if old.core_rank == new.core_rank else None
    return route is not None and route.is_identity


def find_move(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    before: Placement,
    after: Placement,
) -> LocalMove | None:
    """Return the cheapest move between two placed layouts; None where nothing moves.

    Padding that the move writes gets `new.oob`, or 0 where that is undef.
    """
    if before == after and nothing_moves(old, new):
        return None
    ways = _ways(old.with_oob(None), new, device, before, after)
    return ways[0] if len(ways) == 1 else _cheapest(ways, device)


def offered_moves(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> tuple[LocalMove, ...]:
    """Return all moves that are offered: on whole mesh axes, through a replica, and in pieces."""
    return _ways(old.with_oob(None), new, device, before, after)


def _cheapest(ways: Sequence[LocalMove], device: DeviceGrid) -> LocalMove:
    """Return the fastest move; of about equally fast ones, one that receives fewer bytes.

    Where bytes decide, it is the one with the fewest collectives among those that receive little
    more than has to move.
    """
    if not device.machine.bytes_decide:
        seconds = [way.seconds(device.machine) for way in ways]
        received = [total_bytes(way.collectives) / device.size for way in ways]
        return ways[fastest_of(seconds, received, device.machine.similar)]
    moved = [way.pieces.slack * way.pieces.moved for way in ways if way.pieces is not None]
    most = min(moved) if moved else LIMITS.slack * min(total_bytes(w.collectives) for w in ways)
    good = [way for way in ways if way.pieces or total_bytes(way.collectives) <= most]
    return min(good, key=lambda way: (len(way.collectives), total_bytes(way.collectives)))


def sent_between(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> tuple[Collective, ...]:
    """Return the collectives of the cheapest move between two placed layouts."""
    move = find_move(old, new, device, before, after)
    return () if move is None else move.collectives


def moved_bytes(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    before: Placement | None = None,
    after: Placement | None = None,
) -> int:
    """Return the bytes that a move receives, over all devices; placements default to the grid's."""
    before = before or device.placements.inner(old)
    after = after or device.placements.inner(new)
    return total_bytes(sent_between(old, new, device, before, after))


@cached(size=10 << 10)
def _ways(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> tuple[LocalMove, ...]:
    by_axes = _by_mesh_axes(old, new, device, before, after)
    in_rows = list[LocalMove]()
    if by_axes.collectives or by_axes.reads_by_device:
        in_rows = without_tiles(old, new, device, before, after, _ways)
    if not by_axes.collectives:
        return ((in_rows or [by_axes])[0],)
    found = [by_axes]
    if len(by_axes.collectives) > 1:
        exchange = find_exchange(old, new.with_oob(None), device, after, before, permuted=True)
        if exchange is not None:
            key = Key("permuted", old, new, device, before, after)
            found.append(_along(key, exchange, old, new, device, before, after))
    if len(by_axes.collectives) > 1 and device.machine.has_latency:
        exchange = find_exchange(old, new.with_oob(None), device, after, before, at_once=True)
        if exchange is not None:
            key = Key("at once", old, new, device, before, after)
            once = _along(key, exchange, old, new, device, before, after)
            # Else it gathers idle slots too, which one gather after another drops in between.
            if total_bytes(once.collectives) <= total_bytes(by_axes.collectives):
                found.append(once)
        found += _replicated_between(old, new, device, before, after)
    if in_rows:
        return *found, *in_rows
    pieces = find_pieces(old, new.with_oob(None), device, before, after)
    if pieces is None or _is_enough(by_axes, pieces) or pieces.schedule is None:
        return tuple(found)
    by_blocks = [
        by_borders(old, new, device, before, after),
        in_aligned_blocks(old, new, device, before, after, find_move),
    ]
    found += [move for move in by_blocks if move is not None]
    workspace = partial(pieces_workspace, pieces, local_bytes(old, before))
    key = Key("in pieces", old, new, device, before, after)
    move = move_of(key, pieces.collectives, partial(run_pieces, pieces), new, workspace)
    return *found, replace(move, pieces=pieces)


def _replicated_between(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> list[LocalMove]:
    """Return the move by one all_gather of everything, from which each device keeps its part.

    An empty list where gathering takes several collectives or has no phases.
    """
    whole, on_all = replicated_layout(old.shape, old.dtype), replicated_placement(old.ndim)
    if after == on_all:
        return []
    found = find_move(old, whole, device, before, on_all)
    if found is None or len(found.collectives) > 1:
        return []
    first, last = _with_shape(found, old.shape), lay_out(new, device, after)
    if (phases := first.phases) is None:
        return []

    def both(x: LazyView) -> Phases:
        return last.run((yield from phases(x)))

    key = Key("replicated between", old, new, device, before, after)
    run = lambda x: last.run(first.run(x))  # noqa: E731
    return [replace(first, key=key, run=run, phases=both, exchange=None)]


def _with_shape(move: LocalMove, shape: tuple[int, ...]) -> LocalMove:
    """Return a move whose result is reshaped."""
    run, phases = move.run, move.phases

    def reshaped(x: LazyView) -> Phases:
        assert phases is not None
        return (yield from phases(x)).reshape(*shape)

    after = None if phases is None else reshaped
    return replace(move, run=lambda x: run(x).reshape(*shape), phases=after)


def _is_enough(by_axes: LocalMove, pieces: Pieces) -> bool:
    """Return whether a move in pieces cannot be better; asked before pieces are scheduled."""
    received = total_bytes(by_axes.collectives)
    return received <= pieces.moved * (pieces.slack if len(by_axes.collectives) == 1 else 1)


@cached(size=5 << 10)
def _by_mesh_axes(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> LocalMove:
    """Return the move on whole mesh axes: along the route, or through the logical array."""
    key = Key("by mesh axes", old, new, device, before, after)
    if 0 in old.shape:
        shape, fill = (*after.per_device, *new.local_shape), host_fill(new)
        return LocalMove(key, (), lambda x: LazyView.of(jnp.full(shape, fill, x.array.dtype)))
    exchange = find_exchange(old, new.with_oob(None), device, after, before)
    if exchange is not None:
        return _along(key, exchange, old, new, device, before, after)
    new.check_invertible()
    run = partial(_through_logical, old, new.with_oob(None), before, after)
    workspace = partial(gathered_workspace, old, before)
    return move_of(key, _gathering(before, device, local_bytes(old, before)), run, new, workspace)


def _along(
    key: Key,
    exchange: Exchange,
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    before: Placement,
    after: Placement,
) -> LocalMove:
    """Return the move that runs an exchange."""
    sizes = local_bytes(old, before), local_bytes(new, after)
    collectives = exchange.collectives(*sizes, before, device)
    phases = partial(exchanged, exchange, before, after)
    move = move_of(
        *(key, collectives, lambda x, fill: run_alone(phases(x, fill)), new),
        partial(exchanged_workspace, exchange, old, new, before, after),
        exchange,
    )
    if not collectives or exchange.is_permuted or new.dtype.name in packing.AS_BITS:
        return move
    fill, keeps = host_fill(new), new.oob is None
    sent = lambda x: phases(x if keeps else x.exact, fill)  # noqa: E731
    return replace(move, phases=sent, sends=sends_of(exchange, before))


@cached(size=8 << 10)
def replicate(old: Layout, device: DeviceGrid, before: Placement) -> LocalMove:
    """Return the move of a device's part to the logical array, which every device then has."""
    key = Key("replicate", old, device, before)
    if old.shape and 0 not in old.shape:
        new = replicated_layout(old.shape, old.dtype)
        if find_exchange(old, new, device, replicated_placement(old.ndim), before) is not None:
            # Every device needs all of it, and machines are best at all_gathers.
            # Gathering all dims at once would hold it twice.
            move = _by_mesh_axes(
                old.with_oob(None), new, device, before, replicated_placement(old.ndim)
            )
            return replace(_with_shape(move, old.shape), key=key)
    collectives = _gathering(before, device, local_bytes(old, before))
    run = partial(_logical, old, before)
    return LocalMove(
        key,
        tuple(collectives),
        lambda x: as_bits(run, x, jnp.zeros((), x.array.dtype)),
        cache(partial(gathered_workspace, old, before)),
    )


@cached(size=9 << 10)
def lay_out(new: Layout, device: DeviceGrid, after: Placement) -> LocalMove:
    """Return the move of a replicated logical array to each device's part; nothing is sent.

    Padding gets `new.oob`, or 0 where that is undef.
    """
    key, fill = Key("lay out", new, device, after), host_fill(new)
    new.check_invertible()
    if new.shape and 0 not in new.shape:
        old = replicated_layout(new.shape, new.dtype)
        if (
            find_exchange(old, new.with_oob(None), device, after, replicated_placement(new.ndim))
            is not None
        ):
            move = _by_mesh_axes(old, new, device, replicated_placement(new.ndim), after)
            ones = (1,) * new.ndim
            return replace(move, key=key, run=lambda x: move.run(x.reshape(*ones, *new.shape)))
    run = partial(_packed, new, after)
    seen = of_chain(Chain(0).view())
    return LocalMove(key, (), lambda x: as_bits(run, x.exact, fill), lambda: seen)


def _gathering(before: Placement, device: DeviceGrid, nbytes: int) -> list[Collective]:
    made = Collectives(device)
    for k in gathered_dims(before):
        made.all_gather(before.axes[k], nbytes, k)
        nbytes = -(-nbytes * before.grid[k] // before.per_device[k])
    return made.found


def _through_logical(
    old: Layout, new: Layout, before: Placement, after: Placement, x: LazyView, fill: Any
) -> LazyView:
    return _packed(new, after, _logical(old, before, x, jnp.zeros((), x.array.dtype)), fill)


def _logical(old: Layout, before: Placement, x: LazyView, zero: Any) -> LazyView:
    for k in gathered_dims(before):
        x = x.all_gather(before.axes[k], k).first(before.grid[k], k)
    return packing.undo_moves(x, zero, old)


def _packed(new: Layout, after: Placement, x: LazyView, fill: Any) -> LazyView:
    x = packing.run_moves(x, moves(new), fill)
    for k in range(len(after.axes)):
        x = own_cores(x, k, after, fill)
    return x
