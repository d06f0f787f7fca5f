"""`Shares`: the best assignment of a model whose fetches many variables share.

Such fetches make exact elimination too large. It is small where each of their readers pays a share
of each price, whatever the others read: a cost, or a table with the source. As all shares of a
price are 1 together, an assignment costs no more than in the model, so that the best one's cost is
a lower bound. Then those pay that read in it, and the next bound is higher where some did not
(Lagrangian decomposition, Guignard and Kim 1987). An assignment that costs as little as a bound is
the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import inf

import numpy as np

from gridlayout.ops.solver.classes import Terms
from gridlayout.ops.solver.elimination import Exact
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import no_step

LARGE = 200_000, 4_000_000  # entries of one table, and of all tables, of an elimination
SMALL = 20_000, 400_000
# The most variables of a fetch that is not split, in the order tried; if that is not enough, of
# one that is not left out.
WHOLE = (8, 6, 4, 3, 0)
LEFT = (6, 3, 2)
ROUNDS = 8  # of changing the shares
CLOSE = 1e-9  # fraction of the cost that a bound may be lower


class Shares:
    """Assignments of a model without its limits.

    entries: the most of one table, and of all tables, of an elimination. found: the best assignment
    that was found, by the problem's numbers of choices; None where no elimination is small.
    is_best: whether none of the model costs less.
    """

    def __init__(self, model: Model, entries: tuple[int, int] = LARGE) -> None:
        self.model, self.entries = model, entries
        self.found: dict[int, int] | None = None
        self.is_best = False
        self._search()

    def _search(self) -> None:
        """Find assignments by the first elimination that is small."""
        for split in self._splits():
            shares = {k: self._even(k) for k in split}
            terms = self._alone.with_fetches(self.model, shares, self.entries[0])
            if terms is None:
                continue
            if (exact := Exact.of(self.model, no_step, *self.entries, terms)) is not None:
                return self._improve(exact, shares)
        for most in LEFT:
            rest = self.model.part(self.model.choices, limited=False, shared=most)
            if (exact := Exact.of(rest, no_step, *self.entries)) is not None:
                self.found = rest.chosen(exact.best()[0])
                return None
        return None

    def _splits(self) -> Iterator[list[int]]:
        """Yield the numbers of the fetches to split, from none to all of them."""
        readers = [len(shared.scope) for shared in self.model.shared]
        ways = [[k for k, n in enumerate(readers) if n > most] for most in (inf, *WHOLE)]
        for k, split in enumerate(ways):
            if not k or split != ways[k - 1]:
                yield split

    @cached_property
    def _alone(self) -> Terms:
        return Terms.without_fetches(self.model)

    def _even(self, k: int) -> dict[int, np.ndarray]:
        """Return equal shares of the readers that may read a form, for each form of a fetch."""
        may = {r: read.any(0) for r, read in self.model.shared[k].reads.items()}
        count = np.maximum(np.sum([*may.values()], axis=0), 1)
        return {r: own / count for r, own in may.items()}

    def _improve(self, exact: Exact, shares: dict[int, dict[int, np.ndarray]]) -> None:
        """Find the best assignments by shares that are changed until one is the best of all."""
        least = inf
        for _ in range(ROUNDS if shares else 1):
            state, bound = exact.best()
            cost = self.model.cost(state) if shares else bound
            if self.found is None or cost < least:
                least, self.found = cost, self.model.chosen(state)
            self.is_best = bound >= least * (1 - CLOSE)
            if self.is_best:
                break
            for k, own in shares.items():
                self._take_turns(k, own, state)

    def _take_turns(self, k: int, shares: dict[int, np.ndarray], state: dict[int, int]) -> None:
        """Let those pay for a form that read it; a form that nobody reads keeps its shares."""
        reads = {r: read[state[r]] for r, read in self.model.shared[k].reads.items()}
        count = np.sum([*reads.values()], axis=0)
        for r, own in reads.items():
            shares[r] = np.where(count > 0, own / np.maximum(count, 1), shares[r])
