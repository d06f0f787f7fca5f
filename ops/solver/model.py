"""`Model`: a problem in the form that methods work on; reductions make it smaller in place.

It holds the remaining part of a problem: the choices of each variable, their costs, a *table* of
costs for each pair of linked variables, and a `Shared` for each fetch of which several consumers
may read the same form. A fetch with one consumer is a table. The cost of an assignment of the model
is that of the problem, less the sum of `constants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf

import numpy as np

from gridlayout.ops.solver.problem import ROUNDING, Fetch, Problem
from gridlayout.ops.solver.terms import Eliminated, Infeasible, Limit, Parts, Shared, no_step


@dataclass(eq=False)
class Model:
    """The remaining part of a problem; arrays of a variable cover its remaining choices.

    choices: for each variable, the problem's numbers of its remaining choices, ascending.
    tables: `tables[v][w]` is [choice of v, choice of w], and the transpose of `tables[w][v]`.
    """

    choices: dict[int, np.ndarray]
    costs: dict[int, np.ndarray]
    tables: dict[int, dict[int, np.ndarray]]
    shared: list[Shared] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    eliminated: list[Eliminated] = field(default_factory=list)
    shared_of: dict[int, list[Shared]] = field(default_factory=dict)
    limits_of: dict[int, list[Limit]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, each_step: Callable[[], None] = no_step) -> Model:
        """Return the model of a whole problem.

        Infeasible if a variable has no choices, or the limit of a row is negative.
        """
        count = range(len(problem.costs))
        made = cls(
            {v: np.arange(len(problem.costs[v])) for v in count},
            dict(enumerate(problem.costs)),
            {v: {} for v in count},
        )
        if any(len(own) == 0 for own in problem.costs):
            raise Infeasible
        for fetch in problem.fetches:
            each_step()
            made.add_fetch(fetch)
        for row in problem.rows:
            if row.limit < 0:
                raise Infeasible
            pairs = {pair: usage for pair, usage in row.pairs.items() if usage.any()}
            usages = {v: usage for v, usage in row.usages.items() if usage.any()}
            for v in (v for pair in pairs for v in pair):
                usages.setdefault(v, np.zeros(len(problem.costs[v])))
            if row.limit < inf and usages:
                made.limits.append(Limit(row.limit, usages, ROUNDING * row.limit, pairs))
        made.index()
        return made

    def index(self) -> None:
        """Record which fetches and limits each variable is in."""
        self.shared_of = {v: [] for v in self.choices}
        self.limits_of = {v: [] for v in self.choices}
        for shared in self.shared:
            for v in shared.scope:
                self.shared_of[v].append(shared)
        for limit in self.limits:
            for v in limit.usages:
                self.limits_of[v].append(limit)

    def add_table(self, v: int, w: int, table: np.ndarray) -> None:
        """Add costs of the pairs of choices of two variables."""
        if w in self.tables[v]:
            table = self.tables[v][w] + table
        elif not np.count_nonzero(table):
            return
        self.tables[v][w] = np.ascontiguousarray(table)
        self.tables[w][v] = np.ascontiguousarray(table.T)

    def add_fetch(self, fetch: Fetch) -> None:
        """Add the costs of a fetch."""
        if (rest := self._add(fetch.source, fetch.parts)) is not None:
            self.shared.append(Shared(rest.source, rest.prices, dict(rest.reads)))

    def simplified(self, shared: Shared) -> Shared | None:
        """Return the part of a fetch that several consumers share, and add the rest.

        None where nothing is left.
        """
        return self._add(shared.source, Parts.of(shared))

    def _add(self, v: int, parts: Parts) -> Shared | None:
        for costs in parts.costs:
            self.costs[v] = self.costs[v] + costs
        for consumer, table in parts.tables.items():
            self.add_table(consumer, v, table)
        return parts.rest

    def keep(self, v: int, kept: np.ndarray) -> None:
        """Keep only some choices of a variable; kept: a mask or indices."""
        if kept.dtype == bool and kept.all():
            return
        self.choices[v] = self.choices[v][kept]
        if not len(self.choices[v]):
            raise Infeasible
        self.costs[v] = self.costs[v][kept]
        for w, table in self.tables[v].items():
            self.tables[v][w] = table[kept]
            self.tables[w][v] = self.tables[w][v][:, kept]
        for shared in self.shared_of[v]:
            if v == shared.source:
                shared.prices = shared.prices[kept]
            else:
                shared.reads[v] = shared.reads[v][kept]
        sliced: dict[int, np.ndarray] = {}  # limits use the same arrays
        for limit in self.limits_of[v]:
            usage = limit.usages[v]
            if id(usage) not in sliced:
                sliced[id(usage)] = usage[kept]
            limit.usages[v] = sliced[id(usage)]
            for pair, both in limit.pairs.items():
                if v in pair:
                    if id(both) not in sliced:
                        sliced[id(both)] = both[kept] if v == pair[0] else both[:, kept]
                    limit.pairs[pair] = sliced[id(both)]

    def among(self, kept: Sequence[np.ndarray]) -> Model:
        """Return the model without limits, and with only the choices in masks.

        kept: a mask of the choices of each of the first variables. One that keeps none is ignored.
        """
        made = self.part(self.choices, limited=False)
        for v, mask in zip(self.choices, kept, strict=False):
            if mask.any():
                made.keep(v, mask)
        return made

    def without_fetches_from(self, v: int) -> Model:
        """Return the model without limits, and without what others fetch from a variable."""
        made = self.part(self.choices, limited=False)
        made.shared = [shared for shared in made.shared if shared.source != v]
        for w in made.tables[v]:
            del made.tables[w][v]
        made.tables[v] = {}
        made.index()
        return made

    def remove(self, v: int) -> None:
        """Take out a variable that no fetch or limit mentions any more."""
        for w in self.tables.pop(v):
            del self.tables[w][v]
        del self.choices[v], self.costs[v], self.shared_of[v], self.limits_of[v]

    def part(
        self, variables: Iterable[int], limited: bool = True, shared: int | None = None
    ) -> Model:
        """Return the model of variables without links to others.

        limited: with their limits. shared: without fetches that more variables than this share.
        """
        own = sorted(variables)
        members = set(own)
        made = Model(
            {v: self.choices[v] for v in own},
            {v: self.costs[v] for v in own},
            {v: dict(self.tables[v]) for v in own},
            [
                Shared(s.source, s.prices, dict(s.reads))
                for s in self.shared
                if s.source in members and (shared is None or len(s.scope) <= shared)
            ],
            [
                Limit(each.limit, dict(each.usages), each.slack, dict(each.pairs))
                for each in self.limits
                if limited and not members.isdisjoint(each.usages)
            ],
        )
        made.index()
        return made

    @property
    def ceiling(self) -> float:
        """A number greater than the cost of any possible assignment."""
        arrays = [*self.costs.values()]
        arrays += [t for v, ts in self.tables.items() for w, t in ts.items() if v < w]
        terms = [float(each[np.isfinite(each)].max(initial=0)) for each in arrays]
        for shared in self.shared:
            prices = np.where(np.isfinite(shared.prices), shared.prices, 0)
            terms.append(float(prices.max(0, initial=0).sum()))
        return 2 * fsum(terms) or 1.0

    def links(self, v: int) -> list[int]:
        """Return the variables that a table or a fetch links to `v`, ascending."""
        found = set(self.tables[v])
        for shared in self.shared_of[v]:
            found.update(shared.scope)
        return sorted(found - {v})

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs linked by a table, or as source and consumer of a fetch; ascending."""
        found = {(v, w) for v, near in self.tables.items() for w in near if v < w}
        for shared in self.shared:
            found |= {(min(shared.source, r), max(shared.source, r)) for r in shared.reads}
        return sorted(found)

    def table(self, v: int, w: int) -> np.ndarray:
        """Return the table of a pair, zeros if there is none."""
        found = self.tables[v].get(w)
        return np.zeros((len(self.costs[v]), len(self.costs[w]))) if found is None else found

    def components(self) -> list[list[int]]:
        """Return the sets of variables that tables, fetches and limits connect."""
        found, seen = [], set[int]()
        for first in self.choices:
            if first in seen:
                continue
            seen.add(first)
            reached = [first]
            for v in reached:
                others = self.links(v)
                for limit in self.limits_of[v]:
                    others += list(limit.usages)
                for w in others:
                    if w not in seen:
                        seen.add(w)
                        reached.append(w)
            found.append(sorted(reached))
        return found

    def cost(self, state: Mapping[int, int]) -> float:
        """Return the cost, without constants, of an assignment of indices of remaining choices."""
        terms = [float(own[state[v]]) for v, own in self.costs.items()]
        for v, tables in self.tables.items():
            terms += [float(table[state[v], state[w]]) for w, table in tables.items() if v < w]
        for shared in self.shared:
            read = np.any([read[state[r]] for r, read in shared.reads.items()], axis=0)
            terms += shared.prices[state[shared.source], read].tolist()
        return fsum(terms)

    def is_within(self, state: Mapping[int, int]) -> bool:
        """Return whether the limits hold."""
        return all(fsum(limit.used(state)) <= limit.limit + limit.slack for limit in self.limits)

    def recovered(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """Return the problem's numbers of all choices, those of eliminated variables included."""
        found = dict(chosen)
        for each in reversed(self.eliminated):
            found[each.variable] = each.best(found)
        return found

    def chosen(self, state: Mapping[int, int]) -> dict[int, int]:
        """Return the problem's numbers of the choices of an assignment of indices."""
        return {v: int(self.choices[v][c]) for v, c in state.items()}

    def state(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """Return the indices of choices; for a dropped choice, the index of the least own cost."""
        found = {}
        for v, known in self.choices.items():
            at = int(np.searchsorted(known, chosen[v]))
            is_left = at < len(known) and known[at] == chosen[v]
            found[v] = at if is_left else int(np.argmin(self.costs[v]))
        return found
