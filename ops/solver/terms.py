"""The terms of a `Model`: fetches with several consumers, limits, and eliminated variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf

import numpy as np


class Infeasible(Exception):
    """No assignment is feasible."""


class Expired(Exception):
    """The time of a search has run out."""


def no_step() -> None:
    """Do nothing: the default `each_step`, which never raises."""


@dataclass(eq=False)
class Shared:
    """A fetch of which several consumers may read the same form.

    prices: [choice of the source, form].
    reads: for each consumer, [choice, form]: whether the choice reads the form.
    """

    source: int
    prices: np.ndarray
    reads: dict[int, np.ndarray]

    @property
    def scope(self) -> tuple[int, ...]:
        """Its variables, the source first."""
        return self.source, *self.reads


@dataclass(frozen=True, eq=False)
class Parts:
    """A fetch in its parts.

    costs: of the source, added one by one: forms that a consumer reads with every choice. tables:
    [choice of a consumer, choice of the source]: forms that only this consumer may read. rest: the
    part that several consumers share; None where nothing is left.
    """

    costs: tuple[np.ndarray, ...]
    tables: dict[int, np.ndarray]
    rest: Shared | None

    @classmethod
    def of(cls, shared: Shared, costs: tuple[np.ndarray, ...] = ()) -> Parts:
        """Return the parts of a fetch, with `costs` before its own."""
        # Arrays are small here: `any` of one takes as long as all that is done with it.
        prices, count = shared.prices, shared.prices.shape[1]
        left, readers = np.logical_or.reduce(prices), np.zeros(count, int)
        always, may = np.zeros(count, bool), dict[int, np.ndarray]()
        for r, read in shared.reads.items():
            choices = np.add.reduce(read, axis=0, dtype=int)
            always |= choices == len(read)
            may[r] = choices > 0
            readers += may[r]
        if np.count_nonzero(always):
            costs = (*costs, prices[:, always].sum(1))
            left &= ~always
        tables = {}
        for r, read in shared.reads.items():
            alone = left & may[r] & (readers == 1)
            if np.count_nonzero(alone):
                tables[r] = paid(read[:, alone], prices[:, alone])
        left &= readers > 1
        if not np.count_nonzero(left):
            return cls(costs, tables, None)
        several = (r for r, own in may.items() if np.count_nonzero(own & left))
        reads = {r: shared.reads[r][:, left] for r in several}
        return cls(costs, tables, Shared(shared.source, prices[:, left], reads))


@dataclass(eq=False)
class Limit:
    """A row of a problem; reductions subtract each variable's least usage from both sides.

    usages: of each variable, also of those that are only in pairs. slack: a bound on the rounding
    errors in its sums. pairs: usages of pairs of choices, as in a row.
    """

    limit: float
    usages: dict[int, np.ndarray]
    slack: float
    pairs: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def used(self, state: Mapping[int, int]) -> list[float]:
        """Return the usages of an assignment."""
        return used(self.usages, self.pairs, state)

    def towards(self, v: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the other variable of each pair with `v`, and [own choice, other's choice]."""
        for (a, b), usage in self.pairs.items():
            if v == a:
                yield b, usage
            elif v == b:
                yield a, usage.T

    def most(self) -> float:
        """Return a bound of what all use together."""
        arrays = (*self.usages.values(), *self.pairs.values())
        return fsum([float(usage.max()) for usage in arrays])


@dataclass(frozen=True, eq=False)
class Eliminated:
    """A variable whose best choice follows from the choices of its neighbours.

    neighbours: variables, their choices, and the table [own choices, their choices].
    """

    variable: int
    choices: np.ndarray
    costs: np.ndarray
    neighbours: tuple[tuple[int, np.ndarray, np.ndarray], ...]

    def best(self, choices: Mapping[int, int]) -> int:
        """Return its first best choice, given the choices of its neighbours."""
        costs = self.costs
        for other, known, table in self.neighbours:
            costs = costs + table[:, np.searchsorted(known, choices[other])]
        return int(self.choices[np.argmin(costs)])


def used(
    usages: Mapping[int, np.ndarray],
    pairs: Mapping[tuple[int, int], np.ndarray],
    state: Mapping[int, int] | Sequence[int],
) -> list[float]:
    """Return the usages of an assignment: of single variables, then of pairs."""
    found = [float(usage[state[v]]) for v, usage in usages.items()]
    return found + [float(both[state[v], state[w]]) for (v, w), both in pairs.items()]


def paid(reads: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return [choice of a consumer, choice of the source]: the prices of all forms that are read.

    >>> paid(np.array([[True, False], [True, True]]), np.array([[1, inf], [2, 3]]))
    array([[ 1.,  2.],
           [inf,  5.]])
    """
    is_finite, reads = np.isfinite(prices), reads.astype(float)
    if np.count_nonzero(is_finite) == prices.size:
        return reads @ prices.T
    found = reads @ np.where(is_finite, prices, 0.0).T
    found[reads @ (~is_finite).T.astype(float) > 0] = inf
    return found
