"""The units of a problem: groups of mesh axes that divide a dim together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.sharding.device_grid import DeviceGrid


def unit_axes(
    device: DeviceGrid,
    groups: Sequence[set[str]],
    specs: Iterable[Spec],
    extents: Iterable[int] = (),
) -> tuple[Axes, ...]:
    """Return groups of mesh axes, divided so that every dim of these placements has whole ones.

    They are in mesh order, but for those that the first placement with both has in another one.
    extents: of dims that can be divided only evenly, as in `Units.of`.
    """
    names = _names(device)
    dims = [axes for spec in specs if isinstance(spec, Sharded) for axes in spec.placement.axes]
    for axes in dims:
        parts = [(*_runs(names, group, axes), group - set(axes)) for group in groups]
        groups = [part for some in parts for part in some if part]
    for extent in set(extents):
        groups = [part for group in groups for part in _parted(device, names, group, extent)]
    units = [tuple(name for name in names if name in group) for group in groups]
    return _ordered(sorted(units, key=lambda axes: names.index(axes[0])), dims)


def _ordered(units: list[Axes], dims: Sequence[Axes]) -> tuple[Axes, ...]:
    """Return units in the order in which dims have them."""
    before: set[tuple[Axes, Axes]] = set()
    for axes in dims:
        own = sorted((unit for unit in units if unit[0] in axes), key=lambda u: axes.index(u[0]))
        for pair in pairwise(own):
            if pair[::-1] not in before:
                before.add(pair)
    for _ in units:
        for k in range(len(units) - 1):
            if (units[k + 1], units[k]) in before:
                units[k : k + 2] = units[k + 1], units[k]
    return tuple(units)


def _names(device: DeviceGrid) -> list[str]:
    """Return the prime factors of the mesh's axes, in order."""
    return [name for name in device.fine.axis_names if device.fine.shape[name] > 1]


def by_links(device: DeviceGrid) -> list[set[str]]:
    """Return the prime factors of the mesh's axes, grouped by the kind of their links.

    device: a device grid. Each group is a set of names of `device.fine`.
    """
    found: dict[Any, set[str]] = {}
    for name in _names(device):
        found.setdefault(device.machine.topology.kind(name), set()).add(name)
    return list(found.values())


def _runs(names: Sequence[str], group: set[str], axes: Axes) -> list[set[str]]:
    """Return those of a unit's axes that divide a dim, apart where it has them in another order."""
    order = [name for name in names if name in group and name in axes]
    found: list[set[str]] = []
    for k, name in enumerate(own := [name for name in axes if name in group]):
        follows = k > 0 and order.index(name) == order.index(own[k - 1]) + 1
        if follows:
            found[-1].add(name)
        else:
            found.append({name})
    return found


def _parted(
    device: DeviceGrid, names: Sequence[str], group: set[str], extent: int
) -> list[set[str]]:
    """Return a unit's axes split in two, where only the first ones divide an extent evenly."""
    axes = [name for name in names if name in group]
    count = len(axes)
    while count and extent % device.count(tuple(axes[:count])):
        count -= 1
    parts = [set(axes[:count]), set(axes[count:])]
    return [part for part in parts if part] if count else [group]
