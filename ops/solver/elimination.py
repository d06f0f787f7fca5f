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
IMPOSSIBLE = 1e200  # stands for infinite prices while they are multiplied


def elimination_order(
    model: Model,
    each_step: Callable[[], None] = no_step,
    largest: int = LARGEST,
    most: int = MOST,
    whole: int | None = None,
) -> list[int] | None:
    """Return the order in which to eliminate the variables; None where tables are too large.

    Variables with only one choice are left out. largest: the most entries of one table. most: the
    most entries of all tables. whole: fetches that more variables share are taken as tables of the
    source with each reader.
    """
    counts = {v: len(own) for v, own in model.costs.items() if len(own) > 1}
    near = _neighbours(model, counts, largest, whole)
    if near is None:
        return None

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
            if (size := entries(w)) != known[w]:
                known[w] = size
                heappush(heap, (size, w))
    return found


def _neighbours(
    model: Model, counts: Mapping[int, int], largest: int, whole: int | None
) -> dict[int, set[int]] | None:
    """Return the variables in one table with each; None where a fetch is too large.

    counts: of the choices of variables with several. largest, whole: as in `elimination_order`.
    """
    near = {v: {w for w in model.tables[v] if w in counts} for v in counts}
    for shared in model.shared:
        scope = [v for v in shared.scope if v in counts]
        is_split = whole is not None and len(shared.scope) > whole
        if not is_split and prod([counts[v] for v in scope]) > largest:
            return None
        for v in scope:
            if not is_split or v == shared.source:
                near[v].update(scope)
            elif shared.source in counts:
                near[v].add(shared.source)
            near[v].discard(v)
    return near


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
    """Return an assignment of least cost, ignoring the limits, and its cost; inf if impossible.

    ordered: the variables with several choices.
    """
    # Of a variable's dim in tables: the last dim is that of the variable that is eliminated first.
    place = {v: -at for at, v in enumerate(ordered)}
    buckets: dict[int, list[Factor]] = {v: [] for v in ordered}
    constants: list[float] = []

    def put(scope: Scope, table: np.ndarray) -> None:
        """Add a table over variables, of which the last one is eliminated first."""
        if scope:
            buckets[scope[-1]].append((scope, table))
        else:
            constants.append(float(table))

    for v, own in model.costs.items():
        put(*_over_several((v,), own, place))
    for v, tables in model.tables.items():
        for w, table in tables.items():
            if v < w:
                put(*_over_several((v, w), table, place))
    for shared in model.shared:
        put(*_over_several(shared.scope, dense(shared), place))
    for v in ordered:
        each_step()
        scope, table = _joined(buckets[v], place)
        put(scope[:-1], table.min(-1))
    state = dict.fromkeys(model.costs, 0)
    for v in reversed(ordered):
        given = (table[tuple([state[w] for w in scope[:-1]])] for scope, table in buckets[v])
        state[v] = int(sum(given, np.zeros(1)).argmin())
    return state, fsum(constants)


def _over_several(scope: Scope, table: np.ndarray, place: Mapping[int, int]) -> Factor:
    """Return a table over its variables with several choices, in the order of their places."""
    if len(scope) == 2 and table.shape[0] > 1 < table.shape[1]:  # most tables are over two
        v, w = scope
        return (scope, table) if place[v] < place[w] else ((w, v), table.T)
    several = [k for k, v in enumerate(scope) if v in place]
    order = sorted(several, key=lambda k: place[scope[k]])
    rest = table.reshape([table.shape[k] for k in several])
    return tuple(scope[k] for k in order), rest.transpose([several.index(k) for k in order])


def _joined(factors: list[Factor], place: Mapping[int, int]) -> Factor:
    """Return the sum of factors, over the variables of any of them."""
    if len(factors) == 1:
        return factors[0]
    scope = tuple(sorted({w for own, _ in factors for w in own}, key=place.__getitem__))
    total: np.ndarray | None = None
    for own, table in sorted(factors, key=lambda factor: len(factor[0])):
        if len(own) < len(scope):  # it broadcasts over the others
            at = iter(table.shape)
            table = table.reshape([next(at) if w in own else 1 for w in scope])
        total = table if total is None else total + table
    assert total is not None
    return scope, total


def dense(shared: Shared) -> np.ndarray:
    """Return the cost of a shared fetch as a table over its source and its consumers."""
    reads = shared.reads.values()
    counts, forms = [len(read) for read in reads], shared.prices.shape[1]
    finite = np.minimum(shared.prices, IMPOSSIBLE)
    total = np.zeros((len(finite), *counts))
    step = max(1, LARGEST // max(prod(counts), 1))
    for some in (slice(at, at + step) for at in range(0, forms, step)):
        read = np.zeros((1, finite[:, some].shape[1]), bool)
        for each in reads:
            read = (read[:, None] | each[None, :, some]).reshape(-1, read.shape[1])
        total += (finite[:, some] @ read.T).reshape(total.shape)
    total[total >= IMPOSSIBLE] = np.inf
    return total
