"""`integer_program`: the best assignment of a model by HiGHS, SciPy's mixed-integer solver.

Each choice of a variable is a binary unknown. Each pair of linked variables has unknowns for the
pairs of their choices; summed over one variable, they give the unknowns of the other one (the local
polytope, as in Schlesinger's relaxation). Equal rows of a table share their unknowns. A shared
fetch has an unknown for each choice of its source and each form. For each consumer, it is at least
the sum of the pairs of this choice with choices that read the form. Pairs of choices that use a
limit together have unknowns in the same way.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum, inf
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Infeasible, Shared, no_step

SCALED = 1e4  # what the best known cost is scaled to, or the largest cost if none is known
GAP = 1e-9  # the relative gap at which HiGHS ends
LATE = 0.25  # least seconds that HiGHS is waited for after its time limit
_AT_EXIT = 10.0  # seconds that the end of the process waits for a HiGHS that still runs
ATTEMPTS = 20  # to exclude an assignment that exceeds a limit within HiGHS's tolerance


def program_size(model: Model) -> int:
    """Return about how many unknowns the program has."""
    entries = sum(t.size for v, ts in model.tables.items() for w, t in ts.items() if v < w)
    for shared in model.shared:
        entries += shared.prices.size
        for read in shared.reads.values():
            entries += len(shared.prices) * len(np.unique(read, axis=0))
    entries += sum(both.size for limit in model.limits for both in limit.pairs.values())
    return entries + sum(map(len, model.costs.values()))


@dataclass(eq=False)
class LinearProgram:
    """Unknowns with costs, the first ones binary, and rows of a sparse matrix with bounds."""

    costs: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    binary: int = 0
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    lower: list[np.ndarray] = field(default_factory=list)
    upper: list[np.ndarray] = field(default_factory=list)
    rows: int = 0

    def unknowns(self, costs: np.ndarray) -> np.ndarray:
        """Return the numbers of new unknowns, in the shape of their costs."""
        self.costs.append(costs.ravel())
        first = self.count
        self.count += costs.size
        return np.arange(first, self.count).reshape(costs.shape)

    def add(
        self, terms: list[tuple[np.ndarray, np.ndarray, float]], lower: float, upper: float
    ) -> None:
        """Add rows; each term gives the rows and unknowns of entries, and their common value."""
        rows = 1 + max(int(row.max()) for row, _, _ in terms)
        for row, unknown, value in terms:
            row, unknown = np.broadcast_arrays(row, unknown)
            values = np.full(row.size, value)
            self.entries.append((row.ravel() + self.rows, unknown.ravel(), values))
        self.lower.append(np.full(rows, lower))
        self.upper.append(np.full(rows, upper))
        self.rows += rows

    def weighted(self, unknowns: np.ndarray, weights: np.ndarray, upper: float) -> None:
        """Add one row: a weighted sum that is at most `upper`."""
        self.entries.append((np.full(unknowns.size, self.rows), unknowns, weights))
        self.lower.append(np.full(1, -inf))
        self.upper.append(np.full(1, upper))
        self.rows += 1


def program(
    model: Model, each_step: Callable[[], None] = no_step
) -> tuple[LinearProgram, dict[int, np.ndarray]]:
    """Return the program of a model, and the unknowns of each variable's choices."""
    made = LinearProgram()
    x = {v: made.unknowns(own) for v, own in model.costs.items()}
    made.binary = made.count
    for unknowns in x.values():
        made.add([(np.zeros(1, int), unknowns, 1.0)], 1.0, 1.0)
    pairs = {(v, w): model.tables[v][w] for v in model.tables for w in model.tables[v] if v < w}
    joint: dict[tuple[int, int], list[Shared]] = {}
    for shared in model.shared:
        for consumer in shared.reads:
            joint.setdefault((shared.source, consumer), []).append(shared)
            pairs.pop((min(shared.source, consumer), max(shared.source, consumer)), None)
    for (v, w), table in pairs.items():
        each_step()
        _couple(made, x[v], x[w], table)
    prices = {id(shared): made.unknowns(shared.prices) for shared in model.shared}
    for (v, w), fetches in joint.items():
        each_step()
        if (w, v) in joint and w < v:
            table = np.zeros((len(x[v]), len(x[w])))  # its costs are in that of (w, v)
        else:
            table = model.tables[v].get(w, np.zeros((len(x[v]), len(x[w]))))
        patterns = np.concatenate([each.reads[w] for each in fetches], axis=1)
        both, which_w = _couple(made, x[v], x[w], table, patterns)
        for each in fetches:
            _pay(made, both, which_w, each.reads[w], prices[id(each)])
    known: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
    for limit in model.limits:
        each_step()
        terms = [(x[v], usage) for v, usage in limit.usages.items()]
        for (v, w), usage in limit.pairs.items():
            if (key := (v, w, id(usage))) not in known:
                known[key] = _used_together(made, x[v], x[w], usage)
            terms.append(known[key])
        unknowns, weights = (np.concatenate(part) for part in zip(*terms, strict=True))
        largest = float(weights.max())
        used = weights > 0
        made.weighted(unknowns[used], weights[used] / largest, limit.limit / largest)
    return made, x


def _couple(
    made: LinearProgram,
    x: np.ndarray,
    y: np.ndarray,
    table: np.ndarray,
    patterns: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the unknowns of pairs [class of x, class of y], and the class of each y.

    Equal rows of the table are one class, and so are equal columns. With patterns, each row is a
    class of its own, and columns of one class have equal patterns too.
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


def _used_together(
    made: LinearProgram, x: np.ndarray, y: np.ndarray, usage: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the unknowns of pairs of choices that use a limit together, and what they use."""
    (which_x, first_x), (which_y, first_y) = _classes(usage), _classes(usage.T)
    few = usage[np.ix_(first_x, first_y)]
    both = made.unknowns(np.zeros(few.shape))
    rows, columns = (np.asarray(each) for each in np.indices(both.shape))
    made.add([(rows, both, 1.0), (which_x, x, -1.0)], 0.0, 0.0)
    made.add([(columns, both, 1.0), (which_y, y, -1.0)], 0.0, 0.0)
    return both.ravel(), few.ravel()


def _classes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return which.ravel(), first


def _pay(
    made: LinearProgram, both: np.ndarray, which: np.ndarray, read: np.ndarray, prices: np.ndarray
) -> None:
    """Add rows: each unknown of `prices` [source choice, form] is at least its pairs' sum."""
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
    """Return the best assignment found and a lower bound; raise Infeasible where there is none.

    most: the highest cost of interest; inf where none is known. Where no assignment costs so
    little, the bound is `most`. nodes: the most nodes that are searched. waiting: called now and
    then while HiGHS runs in a thread. gap: the gap between cost and bound, as a fraction of the
    cost, at which the search ends. each_step: called while the program is built. late: seconds, at
    least `LATE`, that HiGHS may exceed the deadline by, because it looks at the clock only between
    its steps.
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
    made: LinearProgram,
    most: float,
    times: tuple[float, float],
    nodes: int | None,
    waiting: Callable[[], None],
    gap: float,
) -> tuple[bool, np.ndarray | None, float]:
    """Return whether HiGHS proves that there is no solution, its unknowns or None, and its bound.

    times: the seconds that it may take, and by how many it may exceed them. The bound is 0 where
    nothing is known.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
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
    # All unknowns are bounded, so "infeasible or unbounded" means infeasible.
    is_infeasible = result.status == 2 or "infeasible or unbounded" in result.message.lower()
    return is_infeasible, result.x, float(bound) / scale if known else 0.0


def _waited(call: Callable[[], Any], waiting: Callable[[], None], until: float) -> Any:
    """Run a call in a thread, so interrupts are seen; return its result, or None after `until`.

    The thread then continues alone, up to its own time limit. The end of the process waits for it:
    the process would abort, because HiGHS has threads of its own.
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
    try:
        while thread.is_alive():
            if (left := until - monotonic()) <= 0:
                return None
            thread.join(min(0.2, left))
            waiting()
    finally:
        if thread.is_alive():
            atexit.register(thread.join, _AT_EXIT)
    if errors:
        raise errors[0]
    return results[0]


def _exclude(
    made: LinearProgram, model: Model, x: dict[int, np.ndarray], state: dict[int, int]
) -> None:
    """Add rows that exclude, for each exceeded limit, all assignments with no less usage."""
    for limit in model.limits:
        if fsum(limit.used(state)) <= limit.limit + limit.slack:
            continue
        same = {v: x[v][[state[v]]] for pair in limit.pairs for v in pair}
        more = {
            v: x[v][usage >= usage[state[v]]]
            for v, usage in limit.usages.items()
            if usage[state[v]] > 0
        }
        unknowns = [*{**more, **same}.values()]
        every = np.concatenate(unknowns)
        made.weighted(every, np.ones(len(every)), len(unknowns) - 1.0)
