"""`starts`: assignments from which a search among all choices begins.

Each is the best one of a smaller problem. In one, all units of the mesh divide a node together; in
others, units are added one by one, and what the earlier ones divide is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.variables import Variables
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.restricted import restricted

Part = dict[int, tuple[tuple[int, int], ...]]


def starts(variables: Variables, problem: Problem) -> list[dict[int, int]]:
    """Return some assignments of a problem, by variable; at least one.

    They assume that the latencies which joined collectives share are paid anyway: otherwise none
    would join a collective that no other one has yet.
    """
    own = [fetch for fetch in problem.fetches if fetch.source < len(variables.variables)]
    model = Model.of(replace(problem, fetches=tuple(own)))
    units = range(len(variables.units.axes))
    parts = _parts(variables)
    found = [restricted(model.among([_mask(some, _is_together, units) for some in parts]))]
    if len(units) > 1:
        found += _one_by_one(parts, model, units) + _one_by_one(parts, model, units[::-1])
        found.append(restricted(model.among([])))  # among all choices, where the graph is narrow
    first = {v: int(np.argmin(own)) for v, own in model.costs.items()}
    return [start for start in found if start is not None] or [first]


def _parts(variables: Variables) -> list[list[Part]]:
    """Return what each choice of each variable divides, by unit; of operands nothing."""
    known: dict[int, Part] = {}  # equal nodes share their choices
    found = []
    for variable in variables.variables:
        is_node = not variable.is_operand and variable.choices != [None]
        if is_node:
            for choice in variable.choices:
                if id(choice) not in known:
                    known[id(choice)] = _by_unit(choice)
        found.append([known[id(x)] if is_node else {} for x in variable.choices])
    return found


def _by_unit(choice: Choice) -> Part:
    """Return for each unit the dims that it divides, with the numbers of their values."""
    found: dict[int, list[tuple[int, int]]] = {}
    ins = (((),) if need is None else need for need in choice.ins)
    for n, division in enumerate((*ins, choice.made, choice.out, (choice.summed,))):
        for d, units in enumerate(division):
            for u in units:
                found.setdefault(u, []).append((n, d))
    return {u: tuple(dims) for u, dims in found.items()}


def _mask(
    parts: Sequence[Part], keeps: Callable[[Part, Sequence[int]], bool], units: Sequence[int]
) -> NDArray[np.bool_]:
    return np.array([keeps(part, units) for part in parts])


def _is_together(part: Part, units: Sequence[int]) -> bool:
    """Return whether all units divide the same dims, or none divides any."""
    return not part or (len(part) == len(units) and len({*part.values()}) == 1)


def _one_by_one(
    parts: Sequence[Sequence[Part]], model: Model, order: Sequence[int]
) -> list[dict[int, int]]:
    """Return assignments where units are added in this order, each to the best one before."""
    found: list[dict[int, int]] = []
    for k, unit in enumerate(order):
        later, masks = set(order[k + 1 :]), []
        for v, own in enumerate(parts):
            before = own[found[-1][v]] if found else {}
            masks.append(np.array([_adds(part, before, unit, later) for part in own]))
        made = restricted(model.among(masks))
        if made is None:
            break
        found.append(made)
    return found


def _adds(part: Part, before: Part, unit: int, later: set[int]) -> bool:
    """Return whether a choice differs from an earlier one in one unit, and uses no later ones."""
    if not later.isdisjoint(part):
        return False
    if len(part) - (unit in part) != len(before) - (unit in before):
        return False
    return all(part.get(u) == dims for u, dims in before.items() if u != unit)
