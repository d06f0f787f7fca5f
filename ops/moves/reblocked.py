"""Moves in several steps, and moves between layouts that divide the same dims by other blocks.

Along each dim, a device's new block is its old one without some positions at its ends, and with
some of its neighbours': it receives these as the border of its block (`exchanges/borders.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_form import as_grid, untiled
from gridlayout.key import Key
from gridlayout.layouts.layout import Layout
from gridlayout.ops.moves.bordered import cut, receive
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.local_move import LocalMove, move_of
from gridlayout.ops.moves.sends import Phases
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.sharding.collectives import Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.borders import UNREAD, Border
from gridlayout.sharding.exchanges.exchange import local_bytes
from gridlayout.sharding.exchanges.find_exchange import find_exchange
from gridlayout.sharding.exchanges.slabs import cheapest
from gridlayout.sharding.meshes.placement import Placement

# The longest dim whose positions are listed.
_MOST = 1 << 19


def by_borders(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> LocalMove | None:
    """Return the move between blocks that are near each other; None if they are not."""
    a, b = as_grid(old), as_grid(new)
    if a is None or b is None or a.tile or b.tile or not a.groups or a.groups != b.groups:
        return None
    if a.linear != b.linear or before != after or {*before.per_device} != {1}:
        return None
    if new.oob is not None or a.row_multiple > 1 or b.row_multiple > 1:
        return None
    block, made = list(a.shard_shape), Collectives(device)
    received: list[tuple[int, Border]] = []  # along which dim
    held: list[int] = []  # bytes of the slabs
    for k, (n, m) in enumerate(zip(a.shard_shape, b.shard_shape, strict=True)):
        if n == m:
            continue
        if (extent := a.collapsed_shape[k]) > _MOST:
            return None
        reads = np.arange(before.slots[k])[:, None] * m + np.arange(m)
        reads = np.where(reads < extent, reads, UNREAD)
        width = dtypes.nbytes(prod(block) // n, a.dtype)
        is_inner = prod(block[:k]) > 1
        border = cheapest(
            device.machine, device, before.axes[k], n, extent, [reads], width, is_inner
        )
        border.collectives(made, width)
        received.append((k, border))
        held += [border.sent * width, border.received * width]
        block[k] = m
    if not received:
        return None

    def run(x: LazyView, fill: Any) -> LazyView:
        part = x.materialize().reshape(a.shard_shape)
        for k, border in received:
            part, _ = cut(receive(part, border, k), {k: border}, 0)
        return LazyView.of(part.reshape(*(1 for _ in block), *new.local_shape))

    key = Key("by borders", old, new, device, before, after)
    space = Workspace((), tuple(held), is_view=True)
    return replace(move_of(key, made.found, run, new, lambda: space), how="borders")


def in_aligned_blocks(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    before: Placement,
    after: Placement,
    between: Callable[..., LocalMove | None],
) -> LocalMove | None:
    """Return the move by blocks that begin at the same positions; None if no route is between them.

    Borders are received before it and after it. between: returns the cheapest move between them.
    """
    if (near := _aligned(old, new, before, after)) is None:
        return None
    if find_exchange(near[0], near[1].with_oob(None), device, after, before) is None:
        return None
    ends = [(old, near[0], before), (near[1], new, after)]
    steps: list[LocalMove | None] = [
        by_borders(a, b, device, place, place) if a != b else None for a, b, place in ends
    ]
    if any(step is None for step, (a, b, _) in zip(steps, ends, strict=True) if a != b):
        return None
    middle = between(*near, device, before, after)
    if steps[0] is not None and middle is not None and device.platform == "cpu":
        middle = _stored(middle)
    steps.insert(1, middle)
    key = Key("in aligned blocks", old, new, device, before, after)
    return replace(_one_after_another(key, list(filter(None, steps))), how="aligned")


def without_tiles(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    before: Placement,
    after: Placement,
    offered: Callable[..., Sequence[LocalMove]],
) -> list[LocalMove]:
    """Return the moves of parts that devices untile first, and tile last; none without tiles.

    offered: returns all moves between two layouts.
    """
    rows = untiled(old), untiled(new)
    ends = (old, rows[0], before), (rows[1], new, after)
    if rows == (old, new) or not all(a == b or _is_local(a, b, device, at) for a, b, at in ends):
        return []
    first, last = (
        None if a == b else offered(a.with_oob(None), b, device, at, at)[0] for a, b, at in ends
    )
    some = [local_bytes(old, before)] * (first is not None)
    some += [local_bytes(new, after)] * (last is not None)
    found = []
    for inner in offered(rows[0].with_oob(None), rows[1], device, before, after):
        is_stored = last is not None and inner.reads_by_device and device.platform == "cpu"
        steps = first, _stored(inner) if is_stored else inner, last
        key = Key("without tiles", inner.key, old, new)
        made = _one_after_another(key, [step for step in steps if step is not None])
        found.append(replace(made, how=inner.how, pieces=inner.pieces, reordered=sum(some)))
    return found


def _is_local(old: Layout, new: Layout, device: DeviceGrid, at: Placement) -> bool:
    way = find_exchange(old, new.with_oob(None), device, at, at)
    return way is not None and not (way.gathers or way.transfers or way.final or way.slices)


def _stored(move: LocalMove) -> LocalMove:
    """Return a move whose result is stored before it is read.

    XLA on CPUs finds an element at a time where it tiles a part of which each device reads other
    positions.
    """
    run, inner = move.run, move.phases

    def stored(x: LazyView) -> LazyView:
        return LazyView.of(lax.optimization_barrier(x.materialize()))

    def phases(x: LazyView) -> Phases:
        assert inner is not None
        return stored((yield from inner(x)))

    own = None if inner is None else phases
    return replace(move, run=lambda x: stored(run(x)), phases=own)


def _one_after_another(key: Key, steps: Sequence[LocalMove]) -> LocalMove:
    """Return several moves as one."""
    sent = tuple(each for step in steps for each in step.collectives)
    senders = [step for step in steps if step.collectives]
    middle = senders[0] if len(senders) == 1 else None

    def run(x: LazyView) -> LazyView:
        for step in steps:
            x = step.run(x)
        return x

    def phases(x: LazyView) -> Phases:
        for step in steps:
            inner = step.phases if step is middle else None
            x = step.run(x) if inner is None else (yield from inner(x))
        return x

    found = LocalMove(key, sent, run, cache(partial(_most_held, steps)))
    if middle is None or middle.phases is None:
        return found
    return replace(found, phases=phases, sends=middle.sends)


def _most_held(steps: Sequence[LocalMove]) -> Workspace:
    """Return the workspace of the step that holds most.

    What it leaves in a buffer is not yet the result if other steps follow.
    """
    spaces = [step.workspace() for step in steps]
    most = max(spaces, key=lambda space: space.most)
    return most if most is spaces[-1] or not most.most else replace(most, is_view=True)


def _aligned(
    old: Layout, new: Layout, before: Placement, after: Placement
) -> tuple[Layout, Layout] | None:
    """Return layouts near an old and a new one whose blocks begin at the same positions, or None.

    Along a dim that one of them divides by more devices, the blocks of the other one become as long
    as so many blocks of the first.
    """
    a, b = as_grid(old), as_grid(new)
    if a is None or b is None or a.tile or b.tile or not a.groups or not b.groups:
        return None
    if {*before.per_device, *after.per_device} != {1}:
        return None
    shards = list(a.shard_shape), list(b.shard_shape)
    there = {row: j for j, row in enumerate(b.linear.results)}
    for k, row in enumerate(a.linear.results):
        if (j := there.get(row)) is None:
            continue
        n, m = before.slots[k], after.slots[j]
        if before.grid[k] < n or after.grid[j] < m:
            continue
        if 1 < n < m and m % n == 0:
            shards[0][k] = shards[1][j] * (m // n)
        elif 1 < m < n and n % m == 0:
            shards[1][j] = shards[0][k] * (n // m)
    pair = tuple(
        own.replace(shard_shape=shard) if (*shard,) != own.shard_shape else own
        for own, shard in zip((a, b), shards, strict=True)
    )
    return None if pair == (a, b) else (pair[0], pair[1])
