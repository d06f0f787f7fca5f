"""`along_forests`: a better assignment of a model by solving many variables at once, in trees.

Where the other variables stay as they are, the links of a forest's variables join them to trees,
which the reductions solve. Limits are left out there, but what is used of them is charged; where
they do not hold after that, a descent mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import fsum
from time import monotonic

import numpy as np

from gridlayout.ops.solver.descent import Descent
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.terms import Infeasible, Limit, Shared, no_step

FORESTS = 4  # of one call, which have different orders


def along_forests(
    model: Model,
    state: dict[int, int],
    charges: Mapping[int, np.ndarray],
    deadline: float,
    better: Callable[[dict[int, int]], bool],
    each_step: Callable[[], None] = no_step,
) -> dict[int, int]:
    """The assignment after a few forests.

    charges: what the choices of variables pay for what they use of the limits. better: takes an
    assignment; whether it is better than those before. each_step: called now and then.
    """
    descent, every = Descent(model, each_step), list(model.choices)
    for turn in range(FORESTS):
        if monotonic() >= deadline:
            break
        at = turn * len(every) // FORESTS
        turned = every[at:] + every[:at]
        free = forest(model, turned[:: -1 if turn % 2 else 1])
        found = _solved(model, free, state, charges, each_step)
        if found is not None and model.limits:
            found = descent.mend(found)
        if found is not None and found != state and better(found):
            state = found
    return state


def _solved(
    model: Model,
    free: set[int],
    state: dict[int, int],
    charges: Mapping[int, np.ndarray],
    each_step: Callable[[], None],
) -> dict[int, int] | None:
    """The assignment with the best choices of a forest; None where that is not solved."""
    made = around(model, free, state)
    made.limits = []
    made.index()
    for v in free & charges.keys():
        made.costs[v] = made.costs[v] + charges[v]
    try:
        reduce(made, each_step)
    except Infeasible:  # where the state is not possible either
        return None
    left = made.chosen({v: int(np.argmin(own)) for v, own in made.costs.items()})
    chosen = made.recovered(left)
    return {**state, **model.state({**model.chosen(state), **chosen})}


def forest(model: Model, ordered: list[int]) -> set[int]:
    """Variables that links join to trees, of those of an order each that can still be added."""
    root: dict[int, int] = {}

    def top(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for v in ordered:
        tops = [top(w) for w in model.links(v) if w in root]
        if len(set(tops)) == len(tops):
            root[v] = v
            for each in tops:
                root[each] = v
    return set(root)


def around(model: Model, free: Iterable[int], state: Mapping[int, int]) -> Model:
    """A model of some variables, where all others choose as in an assignment.

    Neighbours of the free variables have the one choice. It has no variables eliminated, and
    the cost of what is not linked to the free variables is left out.
    """
    inside = set(free)
    fixed = {w for v in inside for w in model.links(v)} - inside
    shared = [s for s in model.shared if not inside.isdisjoint(s.scope)]
    fixed.update(v for each in shared for v in each.scope if v not in inside)
    own = sorted(inside | fixed)
    at = {v: slice(None) if v in inside else slice(state[v], state[v] + 1) for v in own}
    made = Model(
        {v: model.choices[v][at[v]] for v in own},
        {v: model.costs[v] if v in inside else np.zeros(1) for v in own},
        {v: {} for v in own},
        [
            Shared(s.source, s.prices[at[s.source]], {r: m[at[r]] for r, m in s.reads.items()})
            for s in shared
        ],
    )
    for v in own:
        for w, table in model.tables[v].items():
            if v in inside or w in inside:
                made.tables[v][w] = table[at[v], at[w]]
    for limit in model.limits:
        used = [-float(u[state[v]]) for v, u in limit.usages.items() if v not in inside]
        if len(used) < len(limit.usages):
            usages = {v: u for v, u in limit.usages.items() if v in inside}
            left = max(fsum([limit.limit, *used]), 0.0)  # it is below by rounding only
            made.limits.append(Limit(left, usages, limit.slack))
    made.index()
    return made
