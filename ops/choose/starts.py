"""`starts`: assignments from which a search among all choices begins.

Each is the best one of a smaller problem. In one, all units of the mesh divide a node together; in
others, units are added one by one, and what the earlier ones divide is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.variables import Variables
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.shares import SMALL, Shares


def starts(variables: Variables, model: Model) -> list[dict[int, int]]:
    """Return some assignments of the model of a problem, by variable; at least one.

    They assume that the latencies which joined collectives share are paid anyway: otherwise none
    would join a collective that no other one has yet.
    """
    model = model.without_fetches_from(len(variables.variables))
    parts = _parts(variables)
    units = range(len(variables.units.axes))
    together = model.among([(own == own[:, :1]).all(1) for own in parts])
    found = [Shares(together, SMALL).found]
    if len(units) > 1:
        found += _one_by_one(parts, model, units) + _one_by_one(parts, model, units[::-1])
    first = {v: int(np.argmin(own)) for v, own in model.costs.items()}
    return [start for start in found if start is not None] or [first]


def _parts(variables: Variables) -> list[NDArray[np.int64]]:
    """Return what each choice of each variable divides, [choice, unit], as numbers; 0 is nothing.

    Operands count as if nothing divided them.
    """
    numbers: dict[Any, int] = {(): 0}
    known: dict[int, list[int]] = {}  # equal nodes share their choices
    units = range(len(variables.units.axes))
    found = []
    for variable in variables.variables:
        rows = []
        for choice in variable.choices:
            if variable.is_operand or choice is None:
                rows.append([0] * len(units))
                continue
            if id(choice) not in known:
                dims = _by_unit(choice)
                known[id(choice)] = [
                    numbers.setdefault(tuple(dims.get(u, ())), len(numbers)) for u in units
                ]
            rows.append(known[id(choice)])
        found.append(np.array(rows))
    return found


def _by_unit(choice: Choice) -> dict[int, list[tuple[int, int]]]:
    """Return for each unit the dims that it divides, with the numbers of their values."""
    found: dict[int, list[tuple[int, int]]] = {}
    for n, need in enumerate((*choice.ins, choice.made, choice.out, (choice.summed,))):
        for d, units in enumerate(need or ()):
            for u in units:
                found.setdefault(u, []).append((n, d))
    return found


def _one_by_one(
    parts: Sequence[NDArray[np.int64]], model: Model, order: Sequence[int]
) -> list[dict[int, int]]:
    """Return assignments where units are added in this order, each to the best one before."""
    found: list[dict[int, int]] = []
    before = [np.zeros_like(own[0]) for own in parts]
    for unit in order:
        others = [u for u in order if u != unit]
        pairs = zip(parts, before, strict=True)
        masks = [(own[:, others] == now[others]).all(1) for own, now in pairs]
        made = Shares(model.among(masks), SMALL).found
        if made is None:
            break
        found.append(made)
        before = [own[made[v]] for v, own in enumerate(parts)]
    return found
