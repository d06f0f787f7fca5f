"""`along_forests`: improves an assignment by solving many variables at once, in forests.

With the other variables fixed, the links between a forest's variables form trees, which reductions
and elimination solve exactly. Limits are ignored there, but their usage is charged; if a limit
does not hold afterwards, a descent repairs the assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import fsum
from time import monotonic

import numpy as np

from gridlayout.ops.solver.descent import Descent
from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.terms import Infeasible, Limit, Shared, no_step

FORESTS = 4  # per call, each from a different order


def along_forests(
    model: Model,
    state: dict[int, int],
    charges: Mapping[int, np.ndarray],
    deadline: float,
    better: Callable[[dict[int, int]], bool],
    each_step: Callable[[], None] = no_step,
) -> dict[int, int]:
    """Solve a few forests; return the last assignment that `better` accepted, or else `state`.

    charges: for variables with limits, the cost of each choice's usage. better: takes an assignment
    and returns whether it is better than all before. each_step: called now and then.
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
    """Return the assignment with the best choices of a forest.

    None if none is feasible, or elimination would need too large tables.
    """
    made = around(model, free, state)
    made.limits = []
    made.index()
    for v in free & charges.keys():
        made.costs[v] = made.costs[v] + charges[v]
    try:
        reduce(made, each_step)
    except Infeasible:  # then the given state is infeasible too
        return None
    if (found := eliminated(made, each_step)) is None:
        return None
    chosen = made.recovered(made.chosen(found[0]))
    return {**state, **model.state({**model.chosen(state), **chosen})}


def forest(model: Model, ordered: list[int]) -> set[int]:
    """Return variables whose links form trees, added greedily in the given order."""
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
    """Return a model of the variables `free`, with all others fixed to their choices in `state`.

    Neighbours of the free variables keep that one choice. No variables are eliminated in it, and
    costs that are not linked to free variables are left out.
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
        if not inside.isdisjoint(limit.usages):
            made.limits.append(_within(limit, inside, state))
    made.index()
    return made


def _within(limit: Limit, inside: set[int], state: Mapping[int, int]) -> Limit:
    """Return what a limit leaves for the variables inside, with all others fixed."""
    used = [-float(u[state[v]]) for v, u in limit.usages.items() if v not in inside]
    usages = {v: u for v, u in limit.usages.items() if v in inside}
    pairs = {}
    for (v, w), both in limit.pairs.items():
        if v in inside and w in inside:
            pairs[v, w] = both
        elif v in inside:
            usages[v] = usages[v] + both[:, state[w]]
        elif w in inside:
            usages[w] = usages[w] + both[state[v]]
        else:
            used.append(-float(both[state[v], state[w]]))
    left = max(fsum([limit.limit, *used]), 0.0)  # negative only by rounding
    return Limit(left, usages, limit.slack, pairs)
