"""`eliminate`: the best assignment of a model without its limits, by dynamic programming.

Variables are eliminated one by one. The costs that mention a variable are added up to a table over
it and its neighbours, and the table's minimum over the variable replaces them (bucket elimination,
Dechter 1999). The variable with the smallest such table is the next one. This is for models of
small width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from math import fsum, prod

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Shared, no_step

Scope = tuple[int, ...]
Factor = tuple[Scope, np.ndarray]

LARGEST = 2_000_000  # entries of one table
MOST = 50_000_000  # entries of all tables
DIMS = 30  # of one table


def elimination_order(
    model: Model,
    each_step: Callable[[], None] = no_step,
    largest: int = LARGEST,
    most: int = MOST,
) -> list[int] | None:
    """Return the order in which to eliminate the variables; None where tables are too large.

    largest: the most entries of one table. most: the most entries of all tables.
    """
    counts = {v: len(own) for v, own in model.costs.items()}
    near = {v: set(model.links(v)) for v in counts}
    for shared in model.shared:
        if prod(counts[v] for v in shared.scope) > largest:
            return None
        for v in shared.scope:
            near[v].update(shared.scope)
            near[v].discard(v)

    def entries(v: int) -> int:
        size = counts[v] if len(near[v]) < DIMS else largest + 1
        for w in near[v]:
            size *= counts[w]
            if size > largest:
                break
        return size

    known = {v: entries(v) for v in counts}
    heap = [(size, v) for v, size in known.items()]
    heapify(heap)
    found, total = [], 0
    while heap:
        each_step()
        size, v = heappop(heap)
        if v not in near or size != known[v]:
            continue
        total += size
        if size > largest or total > most:
            return None
        found.append(v)
        others = near.pop(v)
        for w in others:
            near[w] |= others
            near[w] -= {v, w}
        for w in sorted(others):
            known[w] = entries(w)
            heappush(heap, (known[w], w))
    return found


def eliminated(
    model: Model,
    each_step: Callable[[], None] = no_step,
    largest: int = LARGEST,
    most: int = MOST,
) -> dict[int, int] | None:
    """Return an assignment of least cost, ignoring the limits; None where tables are too large."""
    ordered = elimination_order(model, each_step, largest, most)
    return None if ordered is None else eliminate(model, ordered, each_step)[0]


def eliminate(
    model: Model, ordered: list[int], each_step: Callable[[], None] = no_step
) -> tuple[dict[int, int], float]:
    """Return an assignment of least cost, ignoring the limits, and its cost; inf if impossible."""
    place = {v: at for at, v in enumerate(ordered)}
    buckets: dict[int, list[Factor]] = {v: [((v,), own)] for v, own in model.costs.items()}

    def put(factor: Factor) -> None:
        buckets[min(factor[0], key=place.__getitem__)].append(factor)

    for v, tables in model.tables.items():
        for w, table in tables.items():
            if v < w:
                put(((v, w), table))
    for shared in model.shared:
        put((shared.scope, dense(shared)))
    constants: list[float] = []
    for v in ordered:
        each_step()
        scope, table = _joined(buckets[v], v)
        if scope:
            put((scope, table.min(-1)))
        else:
            constants.append(float(table.min()))
    state: dict[int, int] = {}
    for v in reversed(ordered):
        state[v] = int(np.argmin(sum(_given(factor, v, state) for factor in buckets[v])))
    return state, fsum(constants)


def _joined(factors: list[Factor], v: int) -> tuple[Scope, np.ndarray]:
    """Return the sum of factors: a table over their other variables, ascending, and `v` last."""
    scope = tuple(sorted({w for own, _ in factors for w in own} - {v}))
    total: np.ndarray | None = None
    for own, table in sorted(factors, key=lambda factor: len(factor[0])):
        wide = _spread(own, table, (*scope, v))
        total = wide if total is None else total + wide
    assert total is not None
    counts = {w: n for own, table in factors for w, n in zip(own, table.shape, strict=True)}
    return scope, np.broadcast_to(total, [counts[w] for w in (*scope, v)])


def _spread(own: Scope, table: np.ndarray, scope: Scope) -> np.ndarray:
    """Return a table transposed and reshaped so that it broadcasts over the variables `scope`."""
    placed = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
    counts = dict(zip(own, table.shape, strict=True))
    return table.transpose(placed).reshape([counts.get(w, 1) for w in scope])


def _given(factor: Factor, v: int, state: Mapping[int, int]) -> np.ndarray:
    """Return a factor over the choices of `v`, with the other variables' choices given."""
    own, table = factor
    return table[tuple(slice(None) if w == v else state[w] for w in own)]


def dense(shared: Shared) -> np.ndarray:
    """Return the cost of a shared fetch as a table over its source and its consumers."""
    counts = [len(shared.prices), *map(len, shared.reads.values())]
    total = np.zeros(counts)
    for form in range(shared.prices.shape[1]):
        read = np.zeros([1] * len(counts), bool)
        for at, each in enumerate(shared.reads.values(), 1):
            read = read | each[:, form].reshape([-1 if k == at else 1 for k in range(len(counts))])
        price = shared.prices[:, form].reshape(-1, *[1] * len(shared.reads))
        total += np.where(read, price, 0)
    return total
