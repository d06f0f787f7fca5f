"""The terms of a `Model`: fetches with several readers, limits, variables that went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


class Infeasible(Exception):
    """No assignment is possible."""


class Expired(Exception):
    """The time of a search is over."""


def no_step() -> None:
    """What is called at each step of a method that nothing is to end."""


@dataclass(eq=False)
class Shared:
    """A fetch of which several readers may read the same form.

    prices: of each choice of the source, each form.
    reads: of each reader, for each of its choices, whether it reads each form.
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
    """A row: of its variables, usages above the least that they have.

    slack: a bound on the errors of rounding in its sums.
    """

    limit: float
    usages: dict[int, np.ndarray]
    slack: float


@dataclass(frozen=True, eq=False)
class Eliminated:
    """A variable whose best choice follows from those of its neighbours.

    neighbours: variables, their choices, and the table [own choices, their choices].
    """

    variable: int
    choices: np.ndarray
    costs: np.ndarray
    neighbours: tuple[tuple[int, np.ndarray, np.ndarray], ...]

    def best(self, choices: Mapping[int, int]) -> int:
        """Its first best choice, given those of its neighbours."""
        costs = self.costs
        for other, known, table in self.neighbours:
            costs = costs + table[:, np.searchsorted(known, choices[other])]
        return int(self.choices[np.argmin(costs)])
