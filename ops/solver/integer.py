"""`integer_program`: the best assignment of a model by SciPy's mixed-integer solver, HiGHS.

A binary unknown for each choice of a variable. For each pair of linked variables unknowns for the
pairs of their choices, whose sums over either are the unknowns of the other (the local polytope, as
in Schlesinger's relaxation); rows of a table that are equal share theirs. For each form of a shared
fetch and each choice of its source an unknown that is at least that of each reader that reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Infeasible, Shared, no_step

SCALED = 1e4  # what the best known cost, else the largest cost, becomes in the program
GAP = 1e-9  # at which HiGHS ends
LATE = 0.25  # seconds after its time at which HiGHS is waited for no longer, at least
ATTEMPTS = 20  # to exclude an assignment that exceeds a limit within HiGHS's tolerance


def size(model: Model) -> int:
    """How many unknowns the program has, about."""
    entries = sum(t.size for v, ts in model.tables.items() for w, t in ts.items() if v < w)
    for shared in model.shared:
        entries += shared.prices.size
        for read in shared.reads.values():
            entries += len(shared.prices) * len(np.unique(read, axis=0))
    return entries + sum(map(len, model.costs.values()))


@dataclass(eq=False)
class Program:
    """Unknowns with costs, the first of them binary, and rows of a sparse matrix with bounds."""

    costs: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    binary: int = 0
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    lower: list[np.ndarray] = field(default_factory=list)
    upper: list[np.ndarray] = field(default_factory=list)
    rows: int = 0

    def unknowns(self, costs: np.ndarray) -> np.ndarray:
        """The numbers of new unknowns, in the shape of their costs."""
        self.costs.append(costs.ravel())
        first = self.count
        self.count += costs.size
        return np.arange(first, self.count).reshape(costs.shape)

    def add(
        self, terms: list[tuple[np.ndarray, np.ndarray, float]], lower: float, upper: float
    ) -> None:
        """Rows: each term gives the row and the unknown of entries, and their common value."""
        rows = 1 + max(int(row.max()) for row, _, _ in terms)
        for row, unknown, value in terms:
            row, unknown = np.broadcast_arrays(row, unknown)
            values = np.full(row.size, value)
            self.entries.append((row.ravel() + self.rows, unknown.ravel(), values))
        self.lower.append(np.full(rows, lower))
        self.upper.append(np.full(rows, upper))
        self.rows += rows

    def weighted(self, unknowns: np.ndarray, weights: np.ndarray, upper: float) -> None:
        """One row: a weighted sum that is at most `upper`."""
        self.entries.append((np.full(unknowns.size, self.rows), unknowns, weights))
        self.lower.append(np.full(1, -inf))
        self.upper.append(np.full(1, upper))
        self.rows += 1


def program(
    model: Model, each_step: Callable[[], None] = no_step
) -> tuple[Program, dict[int, np.ndarray]]:
    """The program of a model, and the unknowns of each variable's choices."""
    made = Program()
    x = {v: made.unknowns(own) for v, own in model.costs.items()}
    made.binary = made.count
    for unknowns in x.values():
        made.add([(np.zeros(1, int), unknowns, 1.0)], 1.0, 1.0)
    pairs = {(v, w): model.tables[v][w] for v in model.tables for w in model.tables[v] if v < w}
    joint: dict[tuple[int, int], list[Shared]] = {}
    for shared in model.shared:
        for reader in shared.reads:
            joint.setdefault((shared.source, reader), []).append(shared)
            pairs.pop((min(shared.source, reader), max(shared.source, reader)), None)
    for (v, w), table in pairs.items():
        each_step()
        _couple(made, x[v], x[w], table)
    prices = {id(shared): made.unknowns(shared.prices) for shared in model.shared}
    for (v, w), fetches in joint.items():
        each_step()
        if (w, v) in joint and w < v:
            table = np.zeros((len(x[v]), len(x[w])))  # is in that of (w, v)
        else:
            table = model.tables[v].get(w, np.zeros((len(x[v]), len(x[w]))))
        patterns = np.concatenate([each.reads[w] for each in fetches], axis=1)
        both, which_w = _couple(made, x[v], x[w], table, patterns)
        for each in fetches:
            _pay(made, both, which_w, each.reads[w], prices[id(each)])
    for limit in model.limits:
        largest = max(float(usage.max()) for usage in limit.usages.values())
        unknowns = np.concatenate([x[v] for v in limit.usages])
        weights = np.concatenate(list(limit.usages.values()))
        used = weights > 0
        made.weighted(unknowns[used], weights[used] / largest, limit.limit / largest)
    return made, x


def _couple(
    made: Program,
    x: np.ndarray,
    y: np.ndarray,
    table: np.ndarray,
    patterns: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns of pairs [class of x, class of y], and the class of each y.

    Rows of the table that are equal are one class; with patterns only columns are, and only where
    the patterns are equal too.
    """
    if patterns is None:
        which_x, first_x = _classes(table)
        which_y, first_y = _classes(table.T)
    else:
        which_x = first_x = np.arange(len(x))
        which_y, first_y = _classes(np.concatenate([table.T, patterns], axis=1))
    both = made.unknowns(table[np.ix_(first_x, first_y)])
    rows, columns = (np.asarray(each) for each in np.indices(both.shape))
    made.add([(rows, both, 1.0), (which_x, x, -1.0)], 0.0, 0.0)
    made.add([(columns, both, 1.0), (which_y, y, -1.0)], 0.0, 0.0)
    return both, which_y


def _classes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return which.ravel(), first


def _pay(
    made: Program, both: np.ndarray, which: np.ndarray, read: np.ndarray, prices: np.ndarray
) -> None:
    """An unknown [source choice, form] of prices is at least the pairs that read the form."""
    pattern = np.zeros((both.shape[1], read.shape[1]), bool)
    pattern[which] = read
    for form in np.flatnonzero(read.any(0)):
        rows = np.arange(both.shape[0])
        reading = both[:, pattern[:, form]]
        row = np.broadcast_to(rows[:, None], reading.shape)
        made.add([(rows, prices[:, form], 1.0), (row, reading, -1.0)], 0.0, inf)


def integer_program(
    model: Model,
    most: float,
    deadline: float,
    nodes: int | None = None,
    waiting: Callable[[], None] = no_step,
    gap: float = 0.0,
    each_step: Callable[[], None] = no_step,
    late: float = 0.0,
) -> tuple[dict[int, int] | None, float]:
    """The best assignment found, and a bound on all; raises Infeasible where there is none.

    most: only what costs no more is looked for; inf where nothing is known. Where nothing is found
    that costs so little, the bound is `most`. nodes: of the search, at most. waiting: called now
    and then while HiGHS, in a thread, runs. gap: of the cost, between it and the bound, at which
    the search ends. each_step: called while the program is made. late: seconds after the deadline
    that HiGHS, which looks at the clock between its steps only, may still take.
    """
    if not model.choices:
        return {}, 0.0
    made, x = program(model, each_step)
    best, bound = None, 0.0
    for _ in range(ATTEMPTS):
        left = deadline - monotonic()
        if left <= 0:
            break
        is_infeasible, found, bound = _run(made, most, (left, max(late, LATE)), nodes, waiting, gap)
        if is_infeasible:
            if most == inf:
                raise Infeasible
            return None, most
        if found is None:
            break
        state = {v: int(np.argmax(found[unknowns])) for v, unknowns in x.items()}
        if model.is_within(state):
            best = state
            break
        _exclude(made, model, x, state)
    return best, bound


def _run(
    made: Program,
    most: float,
    times: tuple[float, float],
    nodes: int | None,
    waiting: Callable[[], None],
    gap: float,
) -> tuple[bool, np.ndarray | None, float]:
    """Whether HiGHS proves that there is no solution; else its unknowns and bound.

    times: seconds that it may take, and how much later it may end. Else nothing is known.
    """
    from scipy.optimize import (
        Bounds,
        LinearConstraint,
        milp,
    )
    from scipy.sparse import coo_array

    costs = np.concatenate(made.costs)
    possible = np.isfinite(costs) & (costs <= most * (1 + GAP))
    costs = np.where(possible, costs, 0.0)
    scale = SCALED / (most if 0 < most < inf else max(float(costs.max()), 1e-300))
    rows, columns, values = (np.concatenate(part) for part in zip(*made.entries, strict=True))
    matrix = coo_array((values, (rows, columns)), shape=(made.rows, made.count)).tocsr()
    integrality = np.zeros(made.count)
    integrality[: made.binary] = 1
    options: dict[str, Any] = {"mip_rel_gap": max(GAP, gap)}
    if times[0] < inf:
        options["time_limit"] = times[0]
    if nodes is not None:
        options["node_limit"] = nodes
    arguments: dict[str, Any] = {
        "integrality": integrality,
        "bounds": Bounds(0, possible.astype(float)),
        "constraints": LinearConstraint(
            matrix, np.concatenate(made.lower), np.concatenate(made.upper)
        ),
        "options": options,
    }
    until = monotonic() + sum(times)
    result = _waited(lambda: milp(costs * scale, **arguments), waiting, until)
    if result is None:
        return False, None, 0.0
    bound = result.mip_dual_bound
    known = bound is not None and np.isfinite(bound)
    # All unknowns have bounds, so that the second is the first.
    is_infeasible = result.status == 2 or "infeasible or unbounded" in result.message.lower()
    return is_infeasible, result.x, float(bound) / scale if known else 0.0


def _waited(call: Callable[[], Any], waiting: Callable[[], None], until: float) -> Any:
    """The result of a call in a thread, so that an interrupt is heard meanwhile; None if too late.

    The thread goes on by itself after that, up to the limit that it has.
    """
    results: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        if (left := until - monotonic()) <= 0:
            return None
        thread.join(min(0.2, left))
        waiting()
    if errors:
        raise errors[0]
    return results[0]


def _exclude(made: Program, model: Model, x: dict[int, np.ndarray], state: dict[int, int]) -> None:
    """Rows that exclude, for each limit that is exceeded, all assignments that use no less."""
    for limit in model.limits:
        used = {v: usage[state[v]] for v, usage in limit.usages.items() if usage[state[v]] > 0}
        if sum(used.values()) > limit.limit + limit.slack:
            unknowns = [x[v][limit.usages[v] >= least] for v, least in used.items()]
            every = np.concatenate(unknowns)
            made.weighted(every, np.ones(len(every)), len(used) - 1.0)
