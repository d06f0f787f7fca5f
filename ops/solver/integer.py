"""`integer_program`: the best assignment of a model by SciPy's mixed-integer solver, HiGHS.

A binary unknown for each choice of a variable. For each pair of linked variables unknowns for the
pairs of their choices, whose sums over either are the unknowns of the other (the local polytope, as
in Schlesinger's relaxation); rows of a table that are equal share theirs. For each form of a shared
fetch and each choice of its source an unknown that is at least that of each reader that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from gridlayout.ops.solver.model import Model, Shared

PENALTY = 1e6  # what the best known cost, or the largest cost there is, is scaled to


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
    """Unknowns with costs, and rows of a sparse matrix with their bounds."""

    costs: list[np.ndarray] = field(default_factory=list)
    count: int = 0
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


def program(model: Model) -> tuple[Program, dict[int, np.ndarray]]:
    """The program of a model, and the unknowns of each variable's choices."""
    made = Program()
    x = {v: made.unknowns(own) for v, own in model.costs.items()}
    for unknowns in x.values():
        made.add([(np.zeros(1, int), unknowns, 1.0)], 1.0, 1.0)
    pairs = {(v, w): model.tables[v][w] for v in model.tables for w in model.tables[v] if v < w}
    joint: dict[tuple[int, int], list[Shared]] = {}
    for shared in model.shared:
        for reader in shared.reads:
            joint.setdefault((shared.source, reader), []).append(shared)
            pairs.pop((min(shared.source, reader), max(shared.source, reader)), None)
    for (v, w), table in pairs.items():
        _couple(made, x[v], x[w], table)
    prices = {id(shared): made.unknowns(shared.prices) for shared in model.shared}
    for (v, w), fetches in joint.items():
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
    rows, columns = np.indices(both.shape)
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
