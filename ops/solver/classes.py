"""`Terms`: the costs of a model as tables, over variables or over *classes* of their choices.

A table often tells only few kinds of a variable's choices apart: which form of a value they read,
or how they divide their result. Choices of which it has equal rows are one class, and the table is
over the classes, which count as a variable that follows from the first one. Elimination then needs
tables over classes where it would need larger ones over all choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf, prod
from types import MappingProxyType

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Shared, paid

Scope = tuple[int, ...]

SEVERAL = 32  # variables with fewer choices have no classes
ENTRIES = 2_000_000  # of the arrays that a fetch is made a table with
IMPOSSIBLE = 1e200  # stands for infinite prices while they are multiplied


@dataclass(eq=False)
class Terms:
    """The tables of a model's costs.

    counts: of the values of each variable that has several, classes among them. of: the variable of
    which each variable of classes has the classes; which: the class of each of its choices.
    scopes: the variables of each table; tables: make them.
    """

    counts: dict[int, int]
    of: dict[int, int] = field(default_factory=dict)
    which: dict[int, np.ndarray] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)
    tables: list[Callable[[], np.ndarray]] = field(default_factory=list)
    _known: dict[tuple[int, bytes], int] = field(default_factory=dict)
    # Arrays of the model and the classes of their rows, by the arrays' identity.
    _rows: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)
    _next: int = 0

    @classmethod
    def from_model(cls, model: Model) -> Terms:
        """Return the terms of a model without its limits."""
        made = cls.without_fetches(model).with_fetches(model)
        assert made is not None
        return made

    @classmethod
    def without_fetches(cls, model: Model) -> Terms:
        """Return the terms of a model that are over one or two variables."""
        made = cls({v: len(own) for v, own in model.costs.items() if len(own) > 1})
        made._next = max(model.costs, default=0) + 1
        for v, own in model.costs.items():
            made._append((v,), partial(np.asarray, own))
        for v, tables in model.tables.items():
            for w, table in tables.items():
                if v < w:
                    made._add_table(v, w, table)
        return made

    def with_fetches(
        self,
        model: Model,
        shares: Mapping[int, Mapping[int, np.ndarray]] = MappingProxyType({}),
        largest: float = inf,
    ) -> Terms | None:
        """Return these terms and those of the model's shared fetches.

        shares: for fetches that are split, by their numbers: which share of the price of each form
        each reader pays, whatever the others read. largest: the most entries of a table; None where
        one has more.
        """
        made = Terms(
            *({**self.counts}, {**self.of}, {**self.which}, [*self.scopes], [*self.tables]),
            *({**self._known}, self._rows, self._next),
        )
        for k, shared in enumerate(model.shared):
            if k in shares:
                made._add_split(shared, shares[k])
                continue
            made._add_fetch(shared)
            if made.size(made.scopes[-1], largest) > largest:
                return None
        return made

    def size(self, variables: Iterable[int], most: float) -> int:
        """Return the entries of a table over variables, or a number above `most` if it has more.

        Classes of a variable that is among them take no dimension.
        """
        found, every = 1, set(variables)
        for v in every:
            if self.of.get(v) not in every:
                found *= self.counts[v]
                if found > most:
                    break
        return found

    def _add_table(self, v: int, w: int, table: np.ndarray) -> None:
        (first, rows), (second, columns) = self._classes(v, table), self._classes(w, table.T)
        table = table if rows is None else table[rows]
        table = table if columns is None else table[:, columns]
        self._append((first, second), lambda: table)

    def _add_fetch(self, shared: Shared) -> None:
        source, kinds = self._classes(shared.source, shared.prices, is_kept=True)
        prices = shared.prices if kinds is None else shared.prices[kinds]
        scope, reads = [source], {}
        for reader, read in shared.reads.items():
            own, forms = self._classes(reader, read, is_kept=True)
            scope.append(own)
            reads[own] = read if forms is None else read[forms]
        self._append(scope, cache(lambda: dense(Shared(source, prices, reads))))

    def _add_split(self, shared: Shared, shares: Mapping[int, np.ndarray]) -> None:
        """Add a table of the source and each reader, of what it pays by its present share."""
        source, kinds = self._classes(shared.source, shared.prices, is_kept=True)
        prices = shared.prices if kinds is None else shared.prices[kinds]
        for reader, read in shared.reads.items():
            own, forms = self._classes(reader, read, is_kept=True)
            reads = read if forms is None else read[forms]
            self._append((own, source), partial(_paid_share, reads, prices, shares, reader))

    def _classes(
        self, v: int, rows: np.ndarray, is_kept: bool = False
    ) -> tuple[int, np.ndarray | None]:
        """Return the variable of the classes of equal rows, and a choice of each class.

        It is `v` itself, and None, where there are not much fewer classes than choices. is_kept:
        whether the model has this array, so that its classes may be asked for again.
        """
        if len(rows) < SEVERAL:
            return v, None
        if is_kept and id(rows) in self._rows:
            _, first, which = self._rows[id(rows)]
        else:
            first, which = equal_rows(rows)
        if is_kept:
            self._rows[id(rows)] = rows, first, which
        if 2 * len(first) > len(rows):
            return v, None
        key = v, which.tobytes()
        if key not in self._known:
            self._known[key] = self._next
            if len(first) > 1:
                self.counts[self._next] = len(first)
                self.of[self._next], self.which[self._next] = v, which
            self._next += 1
        return self._known[key], first

    def _append(self, scope: Sequence[int], table: Callable[[], np.ndarray]) -> None:
        """Add a table over some variables, of which those with one value take no dimension."""
        several = tuple(v for v in scope if v in self.counts)
        shape = [self.counts[v] for v in several]
        self.scopes.append(several)
        self.tables.append(lambda: table().reshape(shape))


def _paid_share(
    reads: np.ndarray, prices: np.ndarray, shares: Mapping[int, np.ndarray], reader: int
) -> np.ndarray:
    """Return what each choice of a reader pays for its present share, by choice of the source."""
    is_finite = np.isfinite(prices)
    return paid(reads, np.where(is_finite, np.where(is_finite, prices, 0) * shares[reader], inf))


def equal_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each class of equal rows, and the class of each row.

    >>> equal_rows(np.array([[1, 2], [3, 4], [1, 2]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    classes: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(rows), int)
    for k, row in enumerate(np.ascontiguousarray(rows)):
        which[k] = at = classes.setdefault(row.tobytes(), len(classes))
        if at == len(first):
            first.append(k)
    return np.array(first, int), which


def joint(which: Mapping[int, np.ndarray], counts: Mapping[int, int]) -> np.ndarray:
    """Return the joint class of each choice, as an index of a table over several kinds of classes.

    >>> joint({5: np.array([0, 1, 1]), 6: np.array([0, 0, 2])}, {5: 2, 6: 3})
    array([0, 3, 5])
    """
    return np.ravel_multi_index(tuple(which.values()), tuple(counts[u] for u in which))


def dense(shared: Shared) -> np.ndarray:
    """Return the cost of a shared fetch as a table over its source and its consumers."""
    reads = shared.reads.values()
    counts, forms = [len(read) for read in reads], shared.prices.shape[1]
    finite = np.minimum(shared.prices, IMPOSSIBLE)
    total = np.zeros((len(finite), *counts))
    step = max(1, ENTRIES // max(prod(counts), 1))
    for some in (slice(at, at + step) for at in range(0, forms, step)):
        read = np.zeros((1, finite[:, some].shape[1]), bool)
        for each in reads:
            read = (read[:, None] | each[None, :, some]).reshape(-1, read.shape[1])
        total += (finite[:, some] @ read.T).reshape(total.shape)
    total[total >= IMPOSSIBLE] = np.inf
    return total
