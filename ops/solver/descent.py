"""`Descent`: improves assignments of a model by changing one variable, or two linked ones, at once.

Exceeding a limit has a price, which grows until the limits hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.shares import Shares
from gridlayout.ops.solver.terms import Expired, Shared, no_step
from gridlayout.ops.solver.usage import Usage

LEAST = 1e-13  # fraction of the ceiling that a change has to save: less may be rounding
MOST_PAIRED = 6  # variables of a fetch of which each two are changed at once
PAIRED = 2  # of the assignments found by single changes, from how many pairs are changed
ROUNDS = 40  # of raising the prices of exceeded limits


def descended(
    problem: Problem,
    starts: Callable[[Model], Iterable[Mapping[int, int]]],
    each_step: Callable[[], None] = no_step,
) -> tuple[int, ...]:
    """Return the best assignment where shares prove it, otherwise a good one; without a clock.

    starts: called with the model in the second case, for assignments to begin with; others are made
    by shares. Single variables are changed from each of them. So they are from the best mixes of
    the results. From the best of all of these, `PAIRED`, pairs are changed too. each_step: is
    called now and then, and ends it by raising.
    """
    model = Model.of(problem, each_step)
    shares = Shares(model)
    if not model.limits and shares.is_best and shares.found is not None:
        return _numbers(shares.found)
    descent, found = Descent(model, each_step), dict[tuple[int, ...], float]()
    begun = set[tuple[int, ...]]()

    def add(state: Mapping[int, int] | None) -> None:
        if state is not None and (start := _numbers(state)) not in begun:
            made = _numbers(descent.run(state, pairs=False))
            begun.update((start, made))
            found.setdefault(made, problem.cost(made))

    for begin in (*starts(model), shares.found):
        add(begin)
    if len(found) > 1:
        kept = [np.zeros(len(own), bool) for own in problem.costs]
        for each in found:
            for v, choice in enumerate(each):
                kept[v][choice] = True
        add(Shares(model.among(kept)).found)
    best = sorted(found, key=lambda each: (found[each], each))[:PAIRED]
    ends = [_numbers(descent.run(dict(enumerate(each)))) for each in best]
    return min(ends, key=lambda each: (problem.cost(each), each))


def improved(
    problem: Problem,
    choices: Sequence[int],
    before: Problem,
    each_step: Callable[[], None] = no_step,
) -> tuple[int, ...]:
    """Return the assignment that a descent reaches from one that was found for another problem.

    before: that problem, which differs in some costs and prices alone. each_step: raises Expired to
    end the descent with what it has reached.
    """
    pairs = enumerate(zip(before.costs, problem.costs, strict=True))
    changed = {v for v, (old, new) in pairs if not np.array_equal(old, new)}
    for fetch in {*before.fetches} ^ {*problem.fetches}:
        changed.update((fetch.source, *(v for v, _ in fetch.consumers)))
    descent = Descent(Model.of(problem), each_step)
    try:
        return _numbers(descent.run(dict(enumerate(choices)), changed=changed))
    except Expired:
        reached = _numbers(descent.state)
        return reached if problem.excess(reached) <= 0 else tuple(choices)


def _numbers(state: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(state[v] for v in range(len(state)))


class Descent:
    """An assignment of a model that changes in place, with sums that are updated with it."""

    def __init__(self, model: Model, each_step: Callable[[], None] = no_step) -> None:
        self.model, self.each_step = model, each_step
        self.ceiling = model.ceiling
        self.least = LEAST * self.ceiling
        self.own = {v: np.minimum(own, self.ceiling) for v, own in model.costs.items()}
        self.tables = {
            v: {w: np.minimum(table, self.ceiling) for w, table in near.items()}
            for v, near in model.tables.items()
        }
        self.prices = {id(s): np.minimum(s.prices, self.ceiling) for s in model.shared}
        self.reads = {
            id(s): {r: read.astype(float) for r, read in s.reads.items()} for s in model.shared
        }
        self.links = {v: model.links(v) for v in model.choices}
        self.pairs = _pairs(model)
        self.usage = Usage(model)
        self.weights = np.zeros(len(self.usage.limits))
        self.counts: dict[int, np.ndarray] = {}
        self.state: dict[int, int] = {}

    def begin(self, state: Mapping[int, int]) -> None:
        """Start from an assignment."""
        self.state = dict(state)
        self.used = self.usage.used(state)
        for shared in self.model.shared:
            reads = [read[state[r]] for r, read in self.reads[id(shared)].items()]
            self.counts[id(shared)] = np.sum(reads, axis=0)

    def set(self, v: int, choice: int) -> None:
        """Change the choice of one variable."""
        before, self.state[v] = self.state[v], choice
        for shared in self.model.shared_of[v]:
            if v != shared.source:
                read = self.reads[id(shared)][v]
                self.counts[id(shared)] += read[choice] - read[before]
        for rows, usage in self.usage.groups.get(v, ()):
            self.used[rows] += usage[choice] - usage[before]
        for row, w, both in self.usage.pairs.get(v, ()):
            self.used[row] += both[choice, self.state[w]] - both[before, self.state[w]]

    def conditional(self, v: int) -> np.ndarray:
        """Return the cost of each choice of a variable, over all terms that depend on it."""
        total = self.own[v].copy()
        for w in self.tables[v]:
            total += self.tables[w][v][self.state[w]]
        for shared in self.model.shared_of[v]:
            total += self._fetched(shared, v)
        if v in self.usage.pairs:
            return total + self._over(v)
        for rows, usage in self.usage.groups.get(v, ()):
            rest = self.used[rows] - usage[self.state[v]] - self.usage.allowed[rows]
            over = np.maximum(rest[:, None] + usage, 0)
            total += self.weights[rows] @ over
        return total

    def _over(self, v: int) -> np.ndarray:
        """Return the price of what each choice of a variable in pairs exceeds limits by."""
        used = np.zeros((len(self.usage.limits), len(self.own[v])))
        for rows, usage in self.usage.groups[v]:
            used[rows] += usage
        for row, w, both in self.usage.pairs[v]:
            used[row] += both[:, self.state[w]]
        rest = self.used - used[:, self.state[v]] - self.usage.allowed
        return self.weights @ np.maximum(rest[:, None] + used, 0)

    def _fetched(self, shared: Shared, v: int) -> np.ndarray:
        prices, counts = self.prices[id(shared)], self.counts[id(shared)]
        if v == shared.source:
            return prices @ np.minimum(counts, 1.0)
        read = self.reads[id(shared)][v]
        is_new = counts == read[self.state[v]]
        return read @ (prices[self.state[shared.source]] * is_new)

    def improve(self, variables: Iterable[int]) -> None:
        """Change single variables, `variables` first, until no such change saves anything."""
        queue = deque(variables)
        waiting = set(queue)
        while queue:
            self.each_step()
            v = queue.popleft()
            waiting.discard(v)
            costs = self.conditional(v)
            best, now = int(costs.argmin()), self.state[v]
            if costs[best] < costs[now] - self.least:
                self.set(v, best)
                for w in self.links[v]:
                    if w not in waiting:
                        waiting.add(w)
                        queue.append(w)

    def improve_pairs(self, changed: Set[int]) -> None:
        """Change pairs of linked variables, first those with `changed`, while that saves costs."""
        while changed:
            now, changed = changed, set()
            for v, near in self.pairs.items():
                for w in near:
                    if (v in now or w in now) and self._improve_pair(v, w):
                        touched = {v, w, *self.links[v], *self.links[w]}
                        self.improve(sorted(touched))
                        changed |= touched

    def _improve_pair(self, v: int, w: int) -> bool:
        """Change two variables at once if that saves anything; return whether it does."""
        self.each_step()
        found = self._best_apart(v, w) if self._is_apart(v, w) else self._best_of_each(v, w)
        if found is None:
            return False
        self.set(v, found[0])
        self.set(w, found[1])
        return True

    def _is_apart(self, v: int, w: int) -> bool:
        """Return whether a table is the only link of two variables."""
        if v in self.usage.groups and w in self.usage.groups:
            return False
        return not any(w in shared.scope for shared in self.model.shared_of[v])

    def _best_apart(self, v: int, w: int) -> tuple[int, int] | None:
        table, (c, d) = self.tables[v][w], (self.state[v], self.state[w])
        costs = (self.conditional(v) - table[:, d])[:, None] + self.conditional(w) - table[c]
        costs += table
        best = int(costs.argmin())
        if costs.flat[best] >= costs[c, d] - self.least:
            return None
        return best // table.shape[1], best % table.shape[1]

    def _best_of_each(self, v: int, w: int) -> tuple[int, int] | None:
        """Try each choice of `v` with the best one of `w` for it; return the best pair or None.

        It skips choices of `v` whose extra cost is at least the present cost of `w`. It may miss
        savings in a form that both read, or in a limit that both use.
        """
        c, d = self.state[v], self.state[w]
        costs, other = self.conditional(v), self.conditional(w)
        more = costs - costs[c]
        link = self.tables[v][w][:, d] if w in self.tables[v] else np.zeros(len(more))
        best, least = None, -self.least
        for choice in np.flatnonzero(more - (link - link[c]) < other[d]).tolist():
            if choice == c:
                continue
            self.set(v, choice)
            others = self.conditional(w)
            found = int(others.argmin())
            if (change := float(more[choice] + others[found] - others[d])) < least:
                best, least = (choice, found), change
        self.set(v, c)
        return best

    def run(
        self, state: Mapping[int, int], pairs: bool = True, changed: Collection[int] | None = None
    ) -> dict[int, int]:
        """Return an assignment reached from `state`; it may exceed limits if no other was found.

        changed: the variables whose costs differ from those under which no change saved anything;
        None for all.
        """
        self.begin(state)
        self.weights[:] = 0
        first = self.state if changed is None else sorted(changed)
        self.improve(first)
        if not self._meet_limits():
            self.begin(self._least_used())
        if self.model.limits:
            self.weights[:] = 10 * self.ceiling / self.usage.scale
            self.improve(self.state)
        if pairs:
            self.improve_pairs({*first})
        return dict(self.state)

    def mend(self, state: Mapping[int, int]) -> dict[int, int]:
        """Return an assignment reached from `state` by changes that exceed no limit any further."""
        self.begin(state)
        self.weights[:] = 10 * self.ceiling / self.usage.scale
        over = self.used > self.usage.allowed
        groups = self.usage.groups
        self.improve([v for v in groups if any(over[rows].any() for rows, _ in groups[v])])
        return dict(self.state)

    def _meet_limits(self) -> bool:
        """Raise the prices of exceeded limits until all hold; return whether they do."""
        first = max(min(self.model.cost(self.state), self.ceiling), 1e-9 * self.ceiling) / 100
        for _ in range(ROUNDS):
            over = self.used > self.usage.allowed
            if not over.any():
                return True
            weights = np.maximum(2 * self.weights, first / self.usage.scale)
            self.weights[over] = weights[over]
            groups = self.usage.groups
            self.improve([v for v in groups if any(over[rows].any() for rows, _ in groups[v])])
        return not (self.used > self.usage.allowed).any()

    def _least_used(self) -> dict[int, int]:
        """Return the state with the choice of least usage for each variable with limits."""
        state = dict(self.state)
        for v, groups in self.usage.groups.items():
            shares = sum((usage * np.sum(1 / self.usage.scale[rows]) for rows, usage in groups))
            state[v] = int(np.argmin(shares))
        return state


def _pairs(model: Model) -> dict[int, list[int]]:
    """Return the linked pairs of variables with several choices: for each, those after it.

    Of a fetch that many variables share, its source is paired with each of the others.
    """
    found: dict[int, set[int]] = {v: set(near) for v, near in model.tables.items()}
    for shared in model.shared:
        few = shared.scope if len(shared.scope) <= MOST_PAIRED else shared.scope[:1]
        for v in few:
            found[v].update(shared.scope)
    several = {v for v, own in model.costs.items() if len(own) > 1}
    for v, near in list(found.items()):
        for w in near:
            found[w].add(v)
    return {v: sorted(w for w in found[v] & several if w > v) for v in sorted(several)}
