"""`quick`: assignments of a model that are made greedily, one variable after another.

They are for a search that ends before it has any assignment. They may be infeasible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Shared
from gridlayout.ops.solver.usage import Usage


def quick(model: Model) -> Iterator[dict[int, int]]:
    """Yield the assignment of cheapest choices in order, then that of choices with least usage."""
    yield _greedy(model, {})
    if model.limits:
        usage = Usage(model)
        shares = {
            v: np.sum([used * np.sum(1 / usage.scale[rows]) for rows, used in groups], axis=0)
            for v, groups in usage.groups.items()
        }
        yield _greedy(model, shares)


def _greedy(model: Model, shares: Mapping[int, np.ndarray]) -> dict[int, int]:
    """Return for each variable the possible choice of least share; among equals, the cheapest."""
    state: dict[int, int] = {}
    for v, own in model.costs.items():
        costs = own.copy()
        for w, table in model.tables[v].items():
            if w in state:
                costs += table[:, state[w]]
        for shared in model.shared_of[v]:
            costs += _fetched(shared, v, state)
        possible = np.isfinite(costs)
        share = shares.get(v, np.zeros(len(costs)))
        state[v] = int(np.lexsort((costs, share, ~possible))[0])
    return state


def _fetched(shared: Shared, v: int, state: Mapping[int, int]) -> np.ndarray:
    """Return what each choice of `v` adds to a shared fetch, given the choices in `state`."""
    reads = [read[state[r]] for r, read in shared.reads.items() if r in state]
    known = np.any(reads, axis=0) if reads else np.zeros(shared.prices.shape[1], bool)
    if v == shared.source:
        return shared.prices[:, known].sum(1)
    if shared.source not in state:
        return np.zeros(len(shared.reads[v]))
    prices = np.where(known, 0.0, shared.prices[state[shared.source]])
    return np.where(shared.reads[v], prices, 0.0).sum(1)
