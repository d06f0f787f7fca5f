"""The choice of how to compute a product: the cheapest way on the machine.

Every algorithm is considered on every grid that fits the devices. Costs include the relayouts of
operands and result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf, isqrt, prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.moves.relayout import nothing_moves, sent_between
from gridlayout.ops.products.algorithms import Dims, Matrices, Plan, plans
from gridlayout.ops.products.schedules import sends
from gridlayout.sharding.choice import Offer, cheapest
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.pieces import find_pieces
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement

Grid = tuple[int, int, int]
_NEEDS = {
    "cannon": "as many devices along the result's rows as along its columns",
    "k_split": "devices along the result's rows or its columns only, or devices that hold copies",
    "2.5d": "devices along rows, columns and K: three axes of the mesh, or prime factors of them",
    "3d": "devices along rows, columns and K: three axes of the mesh, or prime factors of them",
}


@cached
def choose(
    matrices: Matrices,
    device: DeviceGrid,
    target: Layout,
    gathered: tuple[int, float],
    name: str | None,
) -> Plan | None:
    """Return the plan of a named algorithm, or the cheapest plan; None for `gathered`.

    target: the result's layout. gathered: for `gathered`, the multiplications of a device and the
    seconds of its collectives. `LayoutError` where a named algorithm does not fit the devices.
    """
    if name == "gathered" or device.size == 1 or matrices.dtype == np.bool_:
        return None
    if name is None:
        return _best(matrices, device, target, gathered)
    grids = dict.fromkeys([matrices.grid, _grid_of(target, matrices)])
    found = [plan for grid in grids for plan in plans(name, replace(matrices, grid=grid), device)]
    if not found:
        _, rows, columns = device.placements.inner(matrices.grid).axes
        raise LayoutError(
            f"algorithm {name!r} needs {_NEEDS[name]}; here {_devices(device, rows)} divide the "
            f"rows and {_devices(device, columns)} the columns of {matrices.dtype.name}"
            f"{list(matrices.shape)}, of {device.size}; 'gathered' always works"
        )

    # At equal cost, the operand that is larger when gathered is the left one.
    def cost(plan: Plan) -> tuple[float, int]:
        sent = device.machine.price(sends(plan)[0].found, device.size)
        return sent + relayout_seconds(plan, target, (0, 0, 0)), -plan.matrices.left.layout.size

    return min(found, key=cost)


# The algorithms that are tried. SUMMA always multiplies and receives as much as the ring, and
# Cannon's adds a skew; what they hold at a time does not count in the choice.
_TRIED = ("ring", "k_split", "2.5d", "3d")


def _best(
    matrices: Matrices,
    device: DeviceGrid,
    target: Layout,
    gathered: tuple[int, float],
) -> Plan | None:
    """Return the cheapest plan; None where `gathered` is as cheap.

    Cheap bounds come first: a plan is dropped if its kernel and the least bytes that devices have
    to receive cost too much already. The grids of the operands and of the result are tried first,
    and the best plan on them bounds the search on all others.
    """
    machine = device.machine

    def seconds(work: int) -> float:
        return machine.seconds(flops=2 * work, dtype=matrices.dtype)

    best: Plan | None = None
    least = seconds(gathered[0]) + gathered[1]

    def offers(grids: Iterable[Grid]) -> list[Offer[Plan | None]]:
        found = []
        for grid in grids:
            there = replace(matrices, grid=grid)
            for plan in (plan for name in _TRIED for plan in plans(name, there, device)):
                kernel = seconds(plan.work)
                if kernel < least:
                    kernel += device.machine.price(sends(plan)[0].found, device.size)
                    if kernel < least:
                        found.append(_offer(plan, kernel, target))
        return sorted(found, key=lambda each: each.bound)

    own = dict.fromkeys((matrices.grid, _grid_of(target, matrices)))
    others = [grid for grid in dict.fromkeys(_grids(matrices, device)) if grid not in own]
    for grids, most in ((own, inf), (others, LIMITS.plans_without_gain)):
        best, least = cheapest(offers(grids), best, least, most)
    return best


def _offer(plan: Plan, kernel: float, target: Layout) -> Offer[Plan | None]:
    """Return the offer of a plan: `kernel` seconds, plus the relayouts of operands and result."""
    missing, device = missing_bytes(plan, target), plan.device
    bound = kernel + sum(device.machine.any_seconds(nbytes / device.size) for nbytes in missing)
    return Offer(
        plan, lambda least: kernel + relayout_seconds(plan, target, missing, least - kernel), bound
    )


@dataclass(frozen=True)
class _Holding:
    """An upper bound of the part of a matrix, or of a batch of them, that a device holds.

    sizes: the most positions of each role. elements: the most elements over all roles, padding
    included. copies: the number of devices that hold any one element.
    """

    sizes: tuple[int, int, int]
    elements: int
    copies: int


def missing_bytes(plan: Plan, target: Layout) -> tuple[int, int, int]:
    """Return lower bounds of the bytes that all devices receive around the kernel.

    The first is for relaying out the result to `target`, the others are for the two operands.
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
        need = _Holding(sizes, prod(sizes), size // parts)
        found.append(_missing_bytes(x.layout, held, need, size))
    after = 0
    if m.shape:
        parts = prod(plan.count(axes) for axes in placed.axes)
        need = _held(target, plan.device, (m.batch, m.rows, m.columns))
        after = _missing_bytes(target, _Holding(made, prod(made), size // parts), need, size)  # type: ignore[arg-type]
    return after, found[0], found[1]


def _missing_bytes(layout: Layout, held: _Holding, need: _Holding, size: int) -> int:
    common = prod(min(pair) for pair in zip(held.sizes, need.sizes, strict=True))
    common = min(common, held.elements, need.elements)
    return dtypes.nbytes(max(layout.size * need.copies - common * size, 0), layout.dtype)


@cached
def _held(layout: Layout, device: DeviceGrid, roles: tuple[Dims, Dims, Dims]) -> _Holding:
    placed = device.placements.inner(layout)
    elements = prod(placed.per_device) * prod(layout.local_shape)
    copies = device.size // prod(device.count(axes) for axes in placed.axes)
    sizes = [prod(layout.shape[d] for d in dims) for dims in roles]
    if (own := grouped(layout)) is not None:
        parts = [1, 1, 1]
        for k, group in enumerate(own.groups):
            mine = [i for i, dims in enumerate(roles) if set(group) & set(dims)]
            part = placed.per_device[k] * own.shard_shape[k]
            for i in mine:  # a dim joined with those of another role may have any positions here
                parts[i] *= part if len(mine) == 1 else sizes[i]
        sizes = [min(pair) for pair in zip(sizes, parts, strict=True)]
    return _Holding((sizes[0], sizes[1], sizes[2]), elements, copies)


def _grids(matrices: Matrices, device: DeviceGrid) -> Iterator[Grid]:
    """Yield the grids of batch, rows and columns that fill the devices."""
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
    plan: Plan, target: Layout, missing: tuple[int, int, int], least: float = inf
) -> float:
    """Return the seconds to relay out both operands for a plan, and its result to `target`.

    missing: lower bounds of the bytes received for the result and for each operand. Pricing stops
    early where the total reaches `least`.
    """
    device = plan.device

    def at_least(nbytes: int) -> float:
        return device.machine.any_seconds(nbytes / device.size)

    total, bounded = sum(map(at_least, missing)), []
    for nbytes, move in zip(missing, _moves(plan, target), strict=True):
        if total >= least:
            return total
        bound = at_least(nbytes if move is None else max(nbytes, _has_to_move(*move)))
        total += bound - at_least(nbytes)
        bounded.append((bound, move))
    for bound, move in bounded:
        if move is not None and total < least:
            total += device.machine.price(sent_between(*move), device.size) - bound
    return total


def _moves(plan: Plan, target: Layout) -> Iterator[tuple[Any, ...] | None]:
    """Yield the moves of the result (None for a scalar) and of both operands."""
    m, device = plan.matrices, plan.device
    if m.shape:
        made = plan.result()
        places = [device.placements.inner(x) for x in (made, target)]
        yield made, target, device, *places
    else:
        yield None
    for x, operand in ((m.left, plan.left), (m.right, plan.right)):
        layout, after = operand()
        yield x.layout, layout, device, device.placements.inner(x.layout), after


def _has_to_move(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> int:
    """Return the least bytes that any move receives: elements that a device needs and lacks."""
    if before == after and nothing_moves(old, new):
        return 0
    pieces = find_pieces(old.with_oob(None), new.with_oob(None), device, before, after)
    return 0 if pieces is None else pieces.moved


def _grid_of(layout: Layout, matrices: Matrices) -> tuple[int, int, int]:
    """Return the cores of batch, rows and columns in a layout of the result.

    These are the cores of `matrices` where the layout joins dims of different roles.
    """
    if (own := grouped(layout)) is None:
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
