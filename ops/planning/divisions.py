"""How a plan may divide arguments and results."""

from __future__ import annotations

from itertools import product

from gridlayout.arguments import Shape
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.decisions.factors import fits


def divisions(units: Units, shape: Shape) -> list[Division]:
    """Return the divisions of an argument or a result, the undivided one first.

    They are by whole axes of the mesh. Parts of an axis divide a dim only where the device grid
    would choose them: all combinations would be too many to search. Grids of cores have rows and
    columns, so theirs are all as the device grid places them.
    """
    if shape not in units.listed:
        units.listed[shape] = _listed(units, shape)
    return units.listed[shape]


def _listed(units: Units, shape: Shape) -> list[Division]:
    rank = len(shape)
    if 0 in shape or not rank:
        return [((),) * rank]
    of = units.machine.mesh_axis_of
    found = []
    for given in product((None, *range(rank)), repeat=len(units.axes)):
        division = tuple(tuple(u for u, d in enumerate(given) if d == dim) for dim in range(rank))
        pairs = zip(shape, division, strict=True)
        if not all(fits(n, units.count(own), units.idle) for n, own in pairs if own):
            continue
        dims: dict[str, set[int | None]] = {}  # of each mesh axis
        for d, axes in zip(given, units.axes, strict=True):
            for axis in axes:
                dims.setdefault(of(axis), set()).add(d)
        is_whole = not units.machine.has_cores and all(len(own) == 1 for own in dims.values())
        if is_whole or units.is_by_rule(shape, division):
            found.append(division)
    return found
