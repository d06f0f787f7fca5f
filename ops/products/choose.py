"""Which way to do a product: the cheapest one on the machine.

Every algorithm is tried on every grid that the devices fit, operands and result brought to their
places included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isqrt, prod
from typing import Any

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.moves.relayout import LocalMove, find_move, nothing_moves
from gridlayout.ops.products.algorithms import Axes, Dims, Matrices, Plan, plans
from gridlayout.ops.products.schedules import sends
from gridlayout.sharding.choice import Offer, cheapest
from gridlayout.sharding.collectives import Collective, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.pieces import find_pieces
from gridlayout.sharding.placement import Placement

Grid = tuple[int, int, int]
_NEEDS = {
    "cannon": "as many devices along the result's rows as along its columns",
    "k_split": "devices along the result's rows or its columns only, or devices that hold copies",
    "2.5d": "devices along rows, columns and K: three axes of the mesh, or prime factors of them",
    "3d": "devices along rows, columns and K: three axes of the mesh, or prime factors of them",
}


@lru_cache(maxsize=4096)
def choose(
    matrices: Matrices,
    device: DeviceGrid,
    wanted: Layout,
    gathered: tuple[int, float],
    name: str | None,
) -> Plan | None:
    """The plan of a named algorithm, or the cheapest one; None for `gathered`.

    wanted: the layout that the result goes to. gathered: the multiplications of a device, and
    seconds of what is sent, if K is gathered. `LayoutError` where the devices do not lie as a named
    algorithm needs it.
    """
    if name == "gathered" or device.size == 1 or matrices.dtype == np.bool_:
        return None
    if name is None:
        return _best(matrices, device, wanted, gathered)
    grids = dict.fromkeys([matrices.grid, _grid_of(wanted, matrices)])
    found = [plan for grid in grids for plan in plans(name, replace(matrices, grid=grid), device)]
    if not found:
        _, rows, columns = device.placement(matrices.grid).axes
        raise LayoutError(
            f"algorithm {name!r} needs {_NEEDS[name]}; here {_devices(device, rows)} divide the "
            f"rows and {_devices(device, columns)} the columns of {matrices.dtype.name}"
            f"{list(matrices.shape)}, of {device.size}; 'gathered' always works"
        )

    # Where it costs the same, the factor that is larger when gathered is the left one.
    def cost(plan: Plan) -> tuple[float, int]:
        sent = price(device, sends(plan)[0].found)
        return sent + relayout_seconds(plan, wanted, (0, 0, 0)), -plan.matrices.left.layout.size

    return min(found, key=cost)


# Of algorithms that always multiply and receive as much, the first: SUMMA is as the ring, Cannon's
# has a skew besides. What they hold at a time is not what is chosen by.
_TRIED = ("ring", "k_split", "2.5d", "3d")


def _best(
    matrices: Matrices,
    device: DeviceGrid,
    wanted: Layout,
    gathered: tuple[int, float],
) -> Plan | None:
    """The cheapest plan of all; None where `gathered` is as cheap.

    What is quick to know comes first: a plan that costs too much by its kernel and by the bytes
    that devices lack at least is dropped. So do the grids of the operands and of the result: what
    is found on them bounds what is worth costing on others.
    """
    machine = device.machine

    def seconds(work: int) -> float:
        return machine.seconds(flops=2 * work)

    best: Plan | None = None
    least = seconds(gathered[0]) + gathered[1]

    def offers(grids: Iterable[Grid]) -> list[Offer[Plan | None]]:
        found = []
        for grid in grids:
            there = replace(matrices, grid=grid)
            for plan in (plan for name in _TRIED for plan in plans(name, there, device)):
                kernel = seconds(plan.work)
                if kernel < least:
                    kernel += price(device, sends(plan)[0].found)
                    if kernel < least:
                        found.append(_offer(plan, kernel, wanted))
        return sorted(found, key=lambda each: each.bound)

    own = dict.fromkeys((matrices.grid, _grid_of(wanted, matrices)))
    others = [grid for grid in dict.fromkeys(_grids(matrices, device)) if grid not in own]
    for grids, most in ((own, inf), (others, LIMITS.plans)):
        best, least = cheapest(offers(grids), best, least, most)
    return best


def _offer(plan: Plan, kernel: float, wanted: Layout) -> Offer[Plan | None]:
    """A plan whose kernel takes so many seconds, relayouts of operands and result included."""
    lacks, device = lacking(plan, wanted), plan.device
    bound = kernel + device.machine.bytes_seconds(sum(lacks) / device.size)
    return Offer(
        plan, lambda least: kernel + relayout_seconds(plan, wanted, lacks, least - kernel), bound
    )


def price(device: DeviceGrid, collectives: Sequence[Collective]) -> float:
    """Seconds of collectives; where only bytes count, of what a device receives on average."""
    if not device.machine.bytes_decide:
        return device.machine.seconds(collectives)
    return device.machine.bytes_seconds(total_bytes(collectives) / device.size)


def move_price(move: LocalMove | None, device: DeviceGrid) -> float:
    """The same of a move."""
    return 0.0 if move is None else price(device, move.collectives)


@dataclass(frozen=True)
class _Held:
    """What a device holds of a matrix, or of a batch of them: no more than `sizes` of each role.

    elements: no more than these of all roles, padding included. copies: devices with an element.
    """

    sizes: tuple[int, int, int]
    elements: int
    copies: int


def lacking(plan: Plan, wanted: Layout) -> tuple[int, int, int]:
    """Bytes that all devices receive at least before and after the kernel.

    Of its result for the layout that is wanted, and of both operands for the kernel.
    """
    m, size = plan.matrices, plan.device.size
    (batch, rows, *k), (_, *other_k, columns) = plan.parts
    placed = plan.placed
    inside = plan.count(placed.axes[0])
    down, across = plan.count(placed.axes[1]), plan.count(plan.columns)
    made = tuple(n * shard for n, shard in zip(placed.per_device, m.shards, strict=True))
    needs = (
        (m.left, (batch, rows, prod(k)), inside * down * plan.count(plan.left_k)),
        (m.right, (batch, columns, prod(other_k)), inside * across * plan.count(plan.right_k)),
    )
    found = []
    for x, sizes, parts in needs:
        held = _held(x.layout, plan.device, (x.batch, x.free, x.contract))
        need = _Held(sizes, prod(sizes), size // parts)
        found.append(_lacking(x.layout, held, need, size))
    after = 0
    if m.shape:
        parts = prod(plan.count(axes) for axes in placed.axes)
        need = _held(wanted, plan.device, (m.batch, m.rows, m.columns))
        after = _lacking(wanted, _Held(made, prod(made), size // parts), need, size)  # type: ignore[arg-type]
    return after, found[0], found[1]


def _lacking(layout: Layout, held: _Held, need: _Held, size: int) -> int:
    alike = prod(min(pair) for pair in zip(held.sizes, need.sizes, strict=True))
    alike = min(alike, held.elements, need.elements)
    return max(layout.size * need.copies - alike * size, 0) * layout.dtype.itemsize


@lru_cache(maxsize=4096)
def _held(layout: Layout, device: DeviceGrid, roles: tuple[Dims, Dims, Dims]) -> _Held:
    placed = device.placement(layout.core_shape)
    elements = prod(placed.per_device) * prod(layout.local_shape)
    copies = device.size // prod(device.count(axes) for axes in placed.axes)
    sizes = [prod(layout.shape[d] for d in dims) for dims in roles]
    if (own := layout.grouped) is not None:
        parts = [1, 1, 1]
        for k, group in enumerate(own.groups):
            mine = [i for i, dims in enumerate(roles) if set(group) & set(dims)]
            part = placed.per_device[k] * own.shard_shape[k]
            for i in mine:  # of dims joined with those of another role any number may be here
                parts[i] *= part if len(mine) == 1 else sizes[i]
        sizes = [min(pair) for pair in zip(sizes, parts, strict=True)]
    return _Held((sizes[0], sizes[1], sizes[2]), elements, copies)


def _grids(matrices: Matrices, device: DeviceGrid) -> Iterator[Grid]:
    """Cores of batch, rows and columns that fill the devices."""
    batch = matrices.grid[0]
    left = device.size // batch if device.size % batch == 0 else 1
    for rows in _divisors(left):
        for columns in (left // rows, 1):
            if rows <= matrices.extents[1] and columns <= matrices.extents[2]:
                yield batch, rows, columns


def _divisors(n: int) -> list[int]:
    small = [k for k in range(1, isqrt(n) + 1) if n % k == 0]
    return sorted({*small, *(n // k for k in small)})


def relayout_seconds(
    plan: Plan, wanted: Layout, lacks: tuple[int, int, int], least: float = inf
) -> float:
    """Seconds to bring both operands to a plan's places, and the result to its own.

    lacks: bytes that all devices receive for each of these at least. Not priced to the end where
    all take `least`.
    """
    device = plan.device

    def at_least(nbytes: int) -> float:
        return device.machine.bytes_seconds(nbytes / device.size)

    total, bounded = sum(map(at_least, lacks)), []
    for lack, move in zip(lacks, _moves(plan, wanted), strict=True):
        if total >= least:
            return total
        bound = at_least(lack if move is None else max(lack, _has_to_move(*move)))
        total += bound - at_least(lack)
        bounded.append((bound, move))
    for bound, move in bounded:
        if move is not None and total < least:
            total += move_price(find_move(*move), device) - bound
    return total


def _moves(plan: Plan, wanted: Layout) -> Iterator[tuple[Any, ...] | None]:
    """The moves of the result, if it has a layout, and of both operands."""
    m, device = plan.matrices, plan.device
    if m.shape:
        made = plan.result()
        yield made, wanted, device, device.placement(made.grid), device.placement(wanted.core_shape)
    else:
        yield None
    for x, entry in ((m.left, plan.left), (m.right, plan.right)):
        layout, after = entry()
        yield x.layout, layout, device, device.placement(x.layout.core_shape), after


def _has_to_move(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> int:
    """Bytes that any move receives at least: of elements that a device wants and has not."""
    if before == after and nothing_moves(old, new):
        return 0
    pieces = find_pieces(old.with_oob(None), new.with_oob(None), device, before, after)
    return 0 if pieces is None else pieces.moved


def _grid_of(layout: Layout, matrices: Matrices) -> tuple[int, int, int]:
    """The cores of batch, rows and columns in a layout of the result, if it keeps these apart."""
    if (own := layout.grouped) is None:
        return matrices.grid
    cores = [1, 1, 1]
    for group, count in zip(own.groups, own.grid, strict=True):
        roles = [
            i
            for i, dims in enumerate((matrices.batch, matrices.rows, matrices.columns))
            if set(group) & set(dims)
        ]
        if len(roles) > 1:
            return matrices.grid
        if roles:
            cores[roles[0]] *= count
    return cores[0], cores[1], cores[2]


def _devices(device: DeviceGrid, axes: Axes) -> str:
    return str(device.count(axes))
