"""`Relaxation`: a lower bound of the cost of a model, by messages between its variables.

Messages move costs between tables and variables so that the sum of all their least entries, which
is the bound, grows: sequential tree-reweighted message passing (Kolmogorov 2006). The prices of a
shared fetch are divided among its consumers, and what one consumer does not need is divided among
all. Limits have multipliers (`multipliers.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum, inf

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.multipliers import Multipliers
from gridlayout.ops.solver.terms import Shared, no_step

SURE = 1e-9  # a choice is dropped if the bound with it exceeds the best cost by this fraction


@dataclass(eq=False)
class DividedFetch:
    """A shared fetch, and the part of its prices that each consumer pays."""

    shared: Shared
    prices: np.ndarray
    parts: dict[int, np.ndarray] = field(default_factory=dict)
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.counts = np.sum([read.any(0) for read in self.shared.reads.values()], axis=0)
        even = self.prices / self.counts
        self.parts = {r: even * read.any(0) for r, read in self.shared.reads.items()}


class Relaxation:
    """Messages of a model; costs above a ceiling count as the ceiling.

    each_step: is called now and then, and ends the passing of messages by raising.
    """

    def __init__(self, model: Model, most: float, each_step: Callable[[], None] = no_step) -> None:
        self.model, self.most, self.each_step = model, most, each_step
        self.ceiling = 2 * most or 1.0 if most < inf else model.ceiling
        self.multipliers = Multipliers(model)
        self.order = list(model.choices)
        self.place = {v: at for at, v in enumerate(self.order)}
        self.fixed = {v: np.minimum(own, self.ceiling) for v, own in model.costs.items()}
        self.own = dict(self.fixed)
        self.tables: dict[int, dict[int, np.ndarray]] = {v: {} for v in self.order}
        for v, w in model.pairs():
            each_step()
            table = np.minimum(model.table(v, w), self.ceiling)
            self.tables[v][w], self.tables[w][v] = table, table.T.copy()
        self.parted = [DividedFetch(s, np.minimum(s.prices, self.ceiling)) for s in model.shared]
        self.messages = {
            v: {w: np.zeros(len(self.own[v])) for w in ts} for v, ts in self.tables.items()
        }
        for each in self.parted:
            for consumer, part in each.parts.items():
                self._add_part(each, consumer, part)
        self.later = [self._later(True), self._later(False)]

    def _later(self, forward: bool) -> dict[int, tuple[list[int], float]]:
        """Return for each variable the neighbours after it, and the share of its costs for each."""
        found = {}
        for v, near in self.tables.items():
            after = [w for w in near if (self.place[w] > self.place[v]) == forward]
            found[v] = after, 1 / max(len(after), len(near) - len(after), 1)
        return found

    def _add_part(self, each: DividedFetch, consumer: int, part: np.ndarray) -> None:
        self.each_step()
        source, read = each.shared.source, each.shared.reads[consumer]
        added = part @ read.T
        self.tables[source][consumer] += added
        self.tables[consumer][source] += added.T

    def sweep(self, forward: bool) -> dict[int, int]:
        """Pass messages forward or backward in the order; return an assignment made on the way."""
        state: dict[int, int] = {}
        messages, later = self.messages, self.later[0 if forward else 1]
        for v in self.order if forward else reversed(self.order):
            self.each_step()
            into = messages[v]
            total = self.own[v].copy()
            choice = self.own[v].copy()
            for w, table in self.tables[v].items():
                made = (table - messages[w][v]).min(1)
                into[w] = made
                total += made
                choice += table[:, state[w]] if w in state else made
            state[v] = int(choice.argmin())
            total -= total.min()
            after, share = later[v]
            total *= share
            for w in after:
                into[w] = into[w] - total
        return state

    def share(self) -> None:
        """Divide the prices of shared fetches anew.

        Each consumer gives what it can without lowering the least entry of its table. What is given
        is divided equally among the consumers that may read the form.
        """
        for each in self.parted:
            source = each.shared.source
            for consumer, read in each.shared.reads.items():
                self.each_step()
                rest = self._rest(source, consumer)
                rest -= rest.min()
                width = max(int(read.sum(1).max()), 1)
                spare = np.where(read, rest[:, :, None], inf).min(1)
                given = np.minimum(spare / width, each.parts[consumer])
                each.parts[consumer] = each.parts[consumer] - given
                self._add_part(each, consumer, -given)
            pool = np.maximum(each.prices - sum(each.parts.values()), 0) / each.counts
            for consumer, read in each.shared.reads.items():
                got = pool * read.any(0)
                each.parts[consumer] = each.parts[consumer] + got
                self._add_part(each, consumer, got)

    def _rest(self, v: int, w: int) -> np.ndarray:
        table = self.tables[v][w] - self.messages[v][w][:, None]
        return table - self.messages[w][v]

    def update_multipliers(self, state: dict[int, int], bound: float, gap: float) -> None:
        """Move the multipliers after a sweep that made an assignment; as `Multipliers.update`."""
        if not len(self.multipliers.now):
            return
        self.multipliers.update(state, bound, gap)
        for v, charged in self.multipliers.charges(self.multipliers.now).items():
            self.own[v] = self.fixed[v] + charged

    def bound(self) -> tuple[float, dict[int, np.ndarray]]:
        """Return the bound, and for each choice by how much it raises the bound if chosen."""
        terms, more = [], {}
        for v, into in self.messages.items():
            total = self.own[v] + sum(into.values())
            terms.append(float(total.min()))
            more[v] = total - terms[-1]
        for v, near in self.tables.items():
            self.each_step()
            for w in near:
                if v < w:
                    rest = self._rest(v, w)
                    least = float(rest.min())
                    terms.append(least)
                    more[v] += rest.min(1) - least
                    more[w] += rest.min(0) - least
        return fsum([*terms, *(-paid for paid in self.multipliers.paid)]), more

    def possible(
        self, bound: float, more: dict[int, np.ndarray], most: float
    ) -> dict[int, np.ndarray]:
        """Return for each variable which choices may be in an assignment of cost `most` or less."""
        allowed = most * (1 + SURE) - bound
        return {v: each <= allowed for v, each in more.items()}
