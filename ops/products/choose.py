"""Which way to do a product: the cheapest one by the cost model.

Every algorithm is tried on every grid that the devices fit, operands and result brought to their
places included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import inf, prod

import numpy as np

from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.moves.relayout import moved_bytes
from gridlayout.ops.products.algorithms import ALGORITHMS, Axes, Matrices, Plan, plans
from gridlayout.ops.products.schedules import sends
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.cost import CostModel
from gridlayout.sharding.device_grid import DeviceGrid

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
    gathered: tuple[int, int],
    model: CostModel,
    name: str | None,
) -> Plan | None:
    """The plan of a named algorithm, or the cheapest one; None for `gathered`.

    wanted: the layout that the result goes to. gathered: the multiplications of a device, and the
    bytes that all receive, if K is gathered. `LayoutError` where the devices do not lie as a named
    algorithm needs it.
    """
    if name == "gathered" or device.size == 1 or matrices.dtype == np.bool_:
        return None
    if name is None:
        return _best(matrices, device, wanted, gathered, model)
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
        sent = total_bytes(sends(plan)[0].found)
        return received(plan, wanted, sent), -plan.matrices.left.layout.size

    return min(found, key=cost)


# Plans on grids that neither operands nor result have: how many of them are costed to the end.
_MOST = 16


def _best(
    matrices: Matrices,
    device: DeviceGrid,
    wanted: Layout,
    gathered: tuple[int, int],
    model: CostModel,
) -> Plan | None:
    """The cheapest plan of all; None where `gathered` is as cheap.

    What is quick to know comes first: a plan that costs too much by its kernel and by what parts
    grow is dropped.
    """

    def seconds(work: int, received: float) -> float:
        return received / device.size / model.bandwidth + 2 * work / model.flops

    least = seconds(*gathered)
    candidates = []
    own = (matrices.grid, _grid_of(wanted, matrices))
    for grid in dict.fromkeys([*own, *_grids(matrices, device)]):
        for name in ALGORITHMS[1:]:
            for plan in plans(name, replace(matrices, grid=grid), device):
                if seconds(plan.work, 0) < least:
                    sent = total_bytes(sends(plan)[0].found)
                    bound = seconds(plan.work, sent + _grown(plan))
                    if bound < least:
                        candidates.append((bound, grid not in own, sent, plan))
    best, others = None, 0
    for bound, is_other, sent, plan in sorted(candidates, key=lambda each: each[:2]):
        if bound >= least:
            break
        others += is_other
        if is_other and others > _MOST:
            continue
        room = (least - seconds(plan.work, 0)) * device.size * model.bandwidth
        if (cost := seconds(plan.work, received(plan, wanted, sent, room))) < least:
            best, least = plan, cost
    return best


def _grown(plan: Plan) -> int:
    """Bytes that devices receive at least, to hold larger parts of the operands than they have."""
    total = 0
    for x, part in zip((plan.matrices.left, plan.matrices.right), plan.parts, strict=True):
        placed, itemsize = plan.device.placement(x.layout.core_shape), x.layout.dtype.itemsize
        held = prod(placed.per_device) * prod(x.layout.local_shape)
        total += max(prod(part) - held, 0) * itemsize * plan.device.size
    return total


def _grids(matrices: Matrices, device: DeviceGrid) -> Iterator[Grid]:
    """Cores of batch, rows and columns that fill the devices."""
    batch = matrices.grid[0]
    left = device.size // batch if device.size % batch == 0 else 1
    for rows in _divisors(left):
        for columns in (left // rows, 1):
            if rows <= matrices.extents[1] and columns <= matrices.extents[2]:
                yield batch, rows, columns


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def received(plan: Plan, wanted: Layout, sent: int, least: float = inf) -> float:
    """Bytes that all devices receive: `sent` in the kernel, for the result, and for both operands.

    Not counted to the end where they are `least` already.
    """
    total = sent
    if plan.matrices.shape and total < least:
        total += moved_bytes(plan.result(), wanted, plan.device)
    for x, entry in ((plan.matrices.left, plan.left), (plan.matrices.right, plan.right)):
        if total < least:
            layout, after = entry()
            total += moved_bytes(x.layout, layout, plan.device, None, after)
    return total


def _grid_of(layout: Layout, matrices: Matrices) -> tuple[int, int, int]:
    """The cores of batch, rows and columns in a layout of the result, if it keeps these apart."""
    if not isinstance(layout, GridLayout) or layout.groups is None:
        return matrices.grid
    cores = [1, 1, 1]
    for group, count in zip(layout.groups, layout.grid, strict=True):
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
    return str(prod(device.fine.shape[axis] for axis in axes))
