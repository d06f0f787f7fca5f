"""`starts`: assignments from which a search among all choices begins.

Each is the best one of a smaller problem. In one, all units of the mesh divide a node together; in
others, units are added one by one, and what the earlier ones divide is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.plan.choice import Choice
from gridlayout.ops.plan.division import Division
from gridlayout.ops.plan.variables import Variables
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.restricted import restricted

Masks = list[NDArray[np.bool_]]


def starts(variables: Variables, problem: Problem) -> list[Mapping[int, int]]:
    """Return some assignments of a problem, by variable; at least one.

    Most assume that the latencies which joined collectives share are paid anyway: otherwise none
    would join a collective that no other one has yet.
    """
    own = [fetch for fetch in problem.fetches if fetch.source < len(variables.variables)]
    whole, model = Model.of(problem), Model.of(replace(problem, fetches=tuple(own)))
    count = len(variables.units.axes)
    together = _kept(variables, lambda choice: _is_together(choice, count))
    found = [restricted(model, together)]
    if len(own) < len(problem.fetches):
        found.append(restricted(whole, together))
    if count > 1:
        order = range(count)
        found += [_one_by_one(variables, model, order), _one_by_one(variables, model, order[::-1])]
    first = {v: int(np.argmin(own)) for v, own in whole.costs.items()}
    return [start for start in found if start is not None] or [first]


def _kept(variables: Variables, keeps: Callable[[Choice], bool]) -> Masks:
    """Return masks of the choices of nodes that a function keeps; of operands all are kept."""
    return [
        np.ones(len(variable.choices), bool)
        if variable.is_operand or variable.choices == [None]
        else np.array([keeps(choice) for choice in variable.choices])
        for variable in variables.variables
    ]


def _divisions(choice: Choice) -> Iterator[Division]:
    yield from (need for need in choice.ins if need is not None)
    yield choice.made
    yield choice.out
    yield (choice.summed,)


def _is_together(choice: Choice, count: int) -> bool:
    """Return whether all units divide one dim of each value, or none does."""
    return all(len(units) in (0, count) for division in _divisions(choice) for units in division)


def _one_by_one(variables: Variables, model: Model, order: Sequence[int]) -> dict[int, int] | None:
    """Return the assignment where units are added in this order, each to the best one before."""
    parts = [[_by_unit(choice) for choice in variable.choices] for variable in variables.variables]
    found: dict[int, int] | None = None
    for k, unit in enumerate(order):
        later, masks = set(order[k + 1 :]), []
        for v, own in enumerate(parts):
            before = {} if found is None else own[found[v]]
            masks.append(np.array([_adds(part, before, unit, later) for part in own]))
        made = restricted(model, masks)
        if made is None:
            return found
        found = made
    return found


def _by_unit(choice: Any) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return for each unit the dims that it divides, with the numbers of their values."""
    found: dict[int, list[tuple[int, int]]] = {}
    for n, division in enumerate(_divisions(choice) if isinstance(choice, Choice) else ()):
        for d, units in enumerate(division):
            for u in units:
                found.setdefault(u, []).append((n, d))
    return {u: tuple(dims) for u, dims in found.items()}


def _adds(part: Mapping[int, Any], before: Mapping[int, Any], unit: int, later: set[int]) -> bool:
    """Return whether a choice differs from an earlier one in one unit, and uses no later ones."""
    if not later.isdisjoint(part):
        return False
    return all(part.get(u) == before.get(u) for u in {*part, *before} if u != unit)
