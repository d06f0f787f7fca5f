"""`Problem`: one choice for each variable, what the choices cost, and the memory that they use.

The cost of an assignment is a sum: each variable's own cost of its choice, and for each `Fetch` the
prices of the forms that its readers' choices name, given the choice of its source. An edge between
two variables is a fetch with one reader that reads a form of its own for every choice. Each `Row`
limits a sum of usages, such as the memory of all values that are live at one time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf

import numpy as np

from gridlayout.errors import LayoutError

ROUNDING = 1e-12  # of a limit: by so little it may be exceeded, as sums are rounded


@dataclass(frozen=True, eq=False)
class Fetch:
    """A value that one variable makes and others read; each distinct form is paid for once.

    source: the variable that makes it.
    prices: of each choice of the source, each form, at least 0; inf where it is impossible.
    readers: variables, and the form that each of their choices reads, -1 where it reads none.
    """

    source: int
    prices: np.ndarray
    readers: tuple[tuple[int, np.ndarray], ...]

    def __post_init__(self) -> None:
        prices = _numbers(self.prices, f"the prices of a fetch from variable {self.source}")
        object.__setattr__(self, "prices", prices)
        readers = tuple((int(v), np.asarray(forms)) for v, forms in self.readers)
        object.__setattr__(self, "readers", readers)
        if prices.ndim != 2:
            raise LayoutError(
                f"the prices of a fetch from variable {self.source} have {prices.ndim} dims; "
                "give a price for each choice of the source and each form"
            )
        for reader, forms in readers:
            if forms.ndim != 1 or not np.issubdtype(forms.dtype, np.integer):
                raise LayoutError(
                    f"variable {reader} reads forms {forms!r} of variable {self.source}; "
                    "give one integer for each of its choices"
                )
            if ((forms < -1) | (forms >= prices.shape[1])).any():
                raise LayoutError(
                    f"variable {reader} reads forms {forms.tolist()} of variable {self.source}; "
                    f"they are to be from -1, which is none, to {prices.shape[1] - 1}"
                )


@dataclass(frozen=True, eq=False)
class Row:
    """A limit: the sum of the usages of the variables' choices is at most `limit`.

    usages: of variables, for each of their choices: finite, at least 0, in the unit of the limit.
    """

    limit: float
    usages: Mapping[int, np.ndarray]

    def __post_init__(self) -> None:
        if self.limit != self.limit:
            raise LayoutError("the limit of a row is NaN; give a number")
        usages = {int(v): np.asarray(usage, np.float64) for v, usage in self.usages.items()}
        object.__setattr__(self, "usages", usages)
        every = np.concatenate([np.zeros(1), *map(np.ravel, usages.values())])
        if not ((every >= 0) & (every < inf)).all():
            for v, usage in usages.items():
                _numbers(usage, f"the usages of variable {v}")
                if not np.isfinite(usage).all():
                    raise LayoutError(f"the usages of variable {v} are not all finite")


@dataclass(frozen=True, eq=False)
class Problem:
    """Variables with costs of their choices, what they fetch from one another, limits on usage.

    costs: of each variable, for each of its choices: at least 0; inf where it is impossible.

    >>> edge = Fetch(0, [[0, 5], [5, 0]], ((1, np.arange(2)),))
    >>> problem = Problem(([0, 1], [3, 0]), (edge,), (Row(7, {0: [4, 4], 1: [3, 4]}),))
    >>> problem.cost((1, 1)), problem.excess((1, 1)), problem.excess((1, 0))
    (1.0, 1.0, 0.0)
    """

    costs: tuple[np.ndarray, ...]
    fetches: tuple[Fetch, ...] = ()
    rows: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        costs = tuple(_numbers(c, f"the costs of variable {v}") for v, c in enumerate(self.costs))
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "fetches", tuple(self.fetches))
        object.__setattr__(self, "rows", tuple(self.rows))
        for v, own in enumerate(costs):
            if own.ndim != 1:
                raise LayoutError(f"the costs of variable {v} have {own.ndim} dims; give a vector")
        for fetch in self.fetches:
            self._check(fetch.source, len(fetch.prices), "prices of a fetch")
            for reader, forms in fetch.readers:
                self._check(reader, len(forms), "forms of a fetch")
        for row in self.rows:
            for v, usage in row.usages.items():
                if usage.ndim != 1:
                    raise LayoutError(f"the usages of variable {v} have {usage.ndim} dims")
                self._check(v, len(usage), "usages of a row")

    @cached_property
    def least(self) -> float:
        """What every assignment costs at least: each variable's least, as no price is below 0."""
        return fsum([float(own.min(initial=inf)) for own in self.costs])

    def _check(self, variable: int, count: int, what: str) -> None:
        if not 0 <= variable < len(self.costs):
            raise LayoutError(
                f"variable {variable} of the {what} is not there; "
                f"the costs are of variables 0 to {len(self.costs) - 1}"
            )
        if count != len(self.costs[variable]):
            raise LayoutError(
                f"the {what} are for {count} choices of variable {variable}, "
                f"which has {len(self.costs[variable])}"
            )

    def checked(self, choices: Sequence[int]) -> tuple[int, ...]:
        """An assignment that has a choice for each variable, else an error."""
        found = tuple(int(c) for c in choices)
        if len(found) != len(self.costs):
            raise LayoutError(f"{len(found)} choices for {len(self.costs)} variables")
        for v, c in enumerate(found):
            if not 0 <= c < len(self.costs[v]):
                raise LayoutError(
                    f"choice {c} of variable {v}, which has {len(self.costs[v])} choices"
                )
        return found

    def cost(self, choices: Sequence[int]) -> float:
        """What an assignment costs; inf where it is impossible."""
        found = self.checked(choices)
        terms = [float(own[c]) for own, c in zip(self.costs, found, strict=True)]
        for fetch in self.fetches:
            forms = {int(forms[found[reader]]) for reader, forms in fetch.readers}
            prices = fetch.prices[found[fetch.source]]
            terms += [float(prices[form]) for form in forms if form >= 0]
        return fsum(terms)

    def costs_with(self, choices: Sequence[int], variable: int) -> np.ndarray:
        """What an assignment costs with each choice of one variable in the place of its own.

        >>> edge = Fetch(0, [[0, 5], [5, 0]], ((1, np.arange(2)),))
        >>> Problem(([0, 1], [3, 0]), (edge,)).costs_with((0, 1), 0)
        array([5., 1.])
        """
        found = list(self.checked(choices))
        near = self._near[variable]

        def local() -> float:
            terms = [float(self.costs[variable][found[variable]])]
            for fetch in near:
                forms = {int(forms[found[reader]]) for reader, forms in fetch.readers}
                terms += [float(fetch.prices[found[fetch.source]][f]) for f in forms if f >= 0]
            return fsum(terms) if inf not in terms else inf

        rest = self.cost(found) - local()
        made = []
        for k in range(len(self.costs[variable])):
            found[variable] = k
            made.append(rest + local())
        return np.array(made)

    @cached_property
    def _near(self) -> list[list[Fetch]]:
        """The fetches that each variable makes or reads."""
        near: list[list[Fetch]] = [[] for _ in self.costs]
        for fetch in self.fetches:
            for v in {fetch.source, *(reader for reader, _ in fetch.readers)}:
                near[v].append(fetch)
        return near

    def excess(self, choices: Sequence[int]) -> float:
        """The most by which a row is exceeded; at most 0 where all hold, up to rounding."""
        found = self.checked(choices)
        most = -inf
        for row in self.rows:
            over = fsum([float(usage[found[v]]) for v, usage in row.usages.items()]) - row.limit
            most = max(most, min(over, 0.0) if over <= ROUNDING * row.limit else over)
        return most


def _numbers(values: object, what: str) -> np.ndarray:
    found = np.asarray(values, np.float64)
    if not (found >= 0).all():
        wrong = "NaN" if np.isnan(found).any() else str(found.min())
        raise LayoutError(f"{what} include {wrong}; give numbers of at least 0")
    return found
