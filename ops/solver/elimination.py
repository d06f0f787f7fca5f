"""`eliminate`: the best assignment of a model without its limits, by dynamic programming.

Variables are eliminated one by one. The costs that mention a variable are added up to a table over
it and its neighbours, and the table's minimum over the variable replaces them (bucket elimination,
Dechter 1999). The variable with the smallest such table is the next one. This is for models of
small width. Where tables tell only classes of a variable's choices apart (`classes.py`), its best
choice of each class remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import fsum, prod
from types import MappingProxyType

import numpy as np

from gridlayout.ops.solver.classes import Scope, Terms, joint
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import no_step

Factor = tuple[Scope, np.ndarray]

LARGEST = 6_000_000  # entries of one table
MOST = 150_000_000  # entries of all tables
DIMS = 30  # of one table


@dataclass(eq=False)
class Exact:
    """A model without its limits, with an order in which all tables are small enough."""

    model: Model
    terms: Terms
    ordered: list[int]
    each_step: Callable[[], None] = no_step

    @classmethod
    def of(
        cls,
        model: Model,
        each_step: Callable[[], None] = no_step,
        largest: int = LARGEST,
        most: int = MOST,
        terms: Terms | None = None,
    ) -> Exact | None:
        """Return it, or None where tables are too large.

        largest: the most entries of one table. most: the most entries of all tables. terms: to use
        instead of those of the model.
        """
        terms = Terms.from_model(model) if terms is None else terms
        ordered = elimination_order(terms, each_step, largest, most)
        return None if ordered is None else cls(model, terms, ordered, each_step)

    def best(
        self, charges: Mapping[int, np.ndarray] = MappingProxyType({})
    ) -> tuple[dict[int, int], float]:
        """Return an assignment of least cost, and its cost; inf if impossible.

        charges: what choices of variables cost in addition.
        """
        state, cost = eliminate(self.terms, self.ordered, self.each_step, charges)
        return {v: state.get(v, 0) for v in self.model.costs}, cost


def eliminated(
    model: Model,
    each_step: Callable[[], None] = no_step,
    largest: int = LARGEST,
    most: int = MOST,
) -> tuple[dict[int, int], float] | None:
    """Return `Exact.best` of a model; None where tables are too large. Arguments as `Exact.of`."""
    found = Exact.of(model, each_step, largest, most)
    return None if found is None else found.best()


def elimination_order(
    terms: Terms,
    each_step: Callable[[], None] = no_step,
    largest: int = LARGEST,
    most: int = MOST,
) -> list[int] | None:
    """Return the order in which to eliminate the variables; None where tables are too large.

    largest, most: as for `Exact.of`. Classes that come before their variable become its choices.
    """
    if any(terms.size(scope, largest) > largest for scope in terms.scopes):
        return None
    near, classes = _neighbours(terms)

    def entries(v: int) -> int:
        if len(near[v]) >= DIMS:
            return largest + 1
        if (owner := terms.of.get(v)) in near:
            return terms.size({owner, *near[v]}, largest)
        read = terms.size({v, *near[v]}, largest)
        return max(read, terms.size(near[v] | classes[v], largest)) if classes[v] else read

    known = {v: entries(v) for v in terms.counts}
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
        others, owner = near.pop(v), terms.of.get(v)
        if owner in near:
            classes[owner].discard(v)
            others = others | {owner}
        else:
            others = others | classes[v]
        for w in others:
            near[w] |= others
            near[w] -= {v, w, *classes[w]}
        for w in sorted(others):
            if (size := entries(w)) != known[w]:
                known[w] = size
                heappush(heap, (size, w))
    return found


def _neighbours(terms: Terms) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return for each variable those in one table with it, and its variables of classes."""
    near: dict[int, set[int]] = {v: set() for v in terms.counts}
    classes: dict[int, set[int]] = {v: set() for v in terms.counts}
    for scope in terms.scopes:
        for v in scope:
            near[v].update(scope)
    for u, v in terms.of.items():
        classes[v].add(u)
    for v in terms.counts:
        near[v] -= {v, *classes[v]}
    return near, classes


def eliminate(
    terms: Terms,
    ordered: Sequence[int],
    each_step: Callable[[], None] = no_step,
    charges: Mapping[int, np.ndarray] = MappingProxyType({}),
) -> tuple[dict[int, int], float]:
    """Return the best values of all variables with several, and their cost; inf if impossible."""
    found = _Elimination(terms, ordered)
    for v, own in charges.items():
        found.put((v,) if v in terms.counts else (), own)
    return found.run(each_step)


class _Elimination:
    """The tables over the variables that are left, by that which is eliminated first."""

    def __init__(self, terms: Terms, ordered: Sequence[int]) -> None:
        self.terms, self.ordered = terms, ordered
        # Of a variable's dim in tables: the last dim is that of the one that is eliminated first.
        self.place = {v: -at for at, v in enumerate(ordered)}
        self.buckets: dict[int, list[Factor]] = {v: [] for v in ordered}
        self.constants: list[float] = []
        self.left = set(ordered)
        self.classes: dict[int, list[int]] = {v: [] for v in ordered}
        for u, v in terms.of.items():
            self.classes[v].append(u)

    def run(self, each_step: Callable[[], None]) -> tuple[dict[int, int], float]:
        for scope, made in zip(self.terms.scopes, self.terms.tables, strict=True):
            self.put(scope, made())
        for v in self.ordered:
            each_step()
            owner = self.terms.of.get(v)
            if owner in self.left:
                for scope, table in self.buckets[v]:
                    self.put(*self._owned(scope, table, v, owner))
                self.classes[owner].remove(v)
            else:
                self._eliminate(v)
            self.left.remove(v)
        return self._best(), fsum(self.constants)

    def _eliminate(self, v: int) -> None:
        own = self.classes[v]
        factors = []
        for factor in self.buckets[v]:
            for u in own:
                if u in factor[0]:
                    factor = self._ordered(self._owned(*factor, u, v))
            factors.append(factor)
        scope, table = self._joined(factors, v)
        if not own:
            self.put(scope[:-1], np.minimum.reduce(table, axis=-1))
            return
        which, counts = {u: self.terms.which[u] for u in own}, self.terms.counts
        at = joint(which, counts)
        order = np.argsort(at, kind="stable")
        present, starts = np.unique(at[order], return_index=True)
        shape = [counts[u] for u in own]
        made = np.full((*table.shape[:-1], prod(shape)), np.inf)
        made[..., present] = np.minimum.reduceat(table[..., order], starts, axis=-1)
        self.put((*scope[:-1], *own), made.reshape(*table.shape[:-1], *shape))

    def put(self, scope: Scope, table: np.ndarray) -> None:
        """Add a table over some variables."""
        for u in scope:
            if (owner := self.terms.of.get(u)) in self.left and owner in scope:
                self.put(*self._owned(scope, table, u, owner))
                return
        if not scope:
            self.constants.append(float(table.item()))
            return
        factor = self._ordered((scope, table))
        self.buckets[factor[0][-1]].append(factor)

    def _owned(self, scope: Scope, table: np.ndarray, u: int, v: int) -> Factor:
        """Return a table over the choices of `v` instead of their classes `u`."""
        which, at = self.terms.which[u], scope.index(u)
        if v not in scope:
            return (*scope[:at], v, *scope[at + 1 :]), table.take(which, at)
        rest = tuple(w for w in scope if w not in (u, v))
        both = np.moveaxis(table, (scope.index(v), at), (0, 1))
        return (v, *rest), both[np.arange(len(which)), which]

    def _joined(self, factors: list[Factor], v: int) -> Factor:
        """Return the sum of ordered factors over the variables of any of them, `v` the last."""
        scope = tuple(
            sorted({v, *(w for own, _ in factors for w in own)}, key=self.place.__getitem__)
        )
        total: np.ndarray | None = None
        for own, table in sorted(factors, key=lambda factor: len(factor[0])):
            if len(own) < len(scope):  # it broadcasts over the others
                at = iter(table.shape)
                table = table.reshape([next(at) if w in own else 1 for w in scope])
            total = table if total is None else total + table
        shape = tuple(self.terms.counts[w] for w in scope)
        if total is None:
            return scope, np.zeros(shape)
        return scope, total if total.shape == shape else np.broadcast_to(total, shape)

    def _ordered(self, factor: Factor) -> Factor:
        """Return a table with its dims in order."""
        scope, table = factor
        places = [self.place[v] for v in scope]
        if places == sorted(places):
            return factor
        order = sorted(range(len(scope)), key=places.__getitem__)
        return tuple(scope[k] for k in order), table.transpose(order)

    def _best(self) -> dict[int, int]:
        """Return the best values, found in the reverse order."""
        state: dict[int, int] = {}
        for v in reversed(self.ordered):
            if (owner := self.terms.of.get(v)) in state:
                assert owner is not None
                state[v] = int(self.terms.which[v][state[owner]])
                continue
            total = np.zeros(self.terms.counts[v])
            for u in self.classes[v]:
                total = np.where(self.terms.which[u] == state[u], total, np.inf)
            for scope, table in self.buckets[v]:
                total = total + table[tuple(slice(None) if w == v else state[w] for w in scope)]
            state[v] = int(total.argmin())
        return state
