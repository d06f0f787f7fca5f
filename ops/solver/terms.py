"""The terms of a `Model`: fetches with several consumers, limits, and eliminated variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

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
