"""`Problem`: variables with several choices each, what a choice costs, and the memory it uses.

An assignment makes one choice for each variable. Its cost is the sum of the choices' costs and, for
each `Fetch`, of the prices of the forms that its consumers read, given the source's choice. A
*form* is what a consumer needs a value as, such as one of its shardings. An edge between two
variables is a fetch with one consumer that reads a different form for every choice. Each `Row`
limits a sum of usages, such as the memory of all values that are live at one time: those of choices
of single variables, and of pairs of variables, such as a copy of a value in another form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, inf
from typing import Any

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.solver.terms import Parts, Shared, used

ROUNDING = 1e-12  # fraction of a limit by which it may be exceeded, because sums are rounded


@dataclass(frozen=True, eq=False)
class Fetch:
    """A value that one variable makes and others read; each distinct form is paid for once.

    source: the variable that makes it.
    prices: [choice of the source, form], at least 0; inf where it is impossible.
    consumers: variables, and the form that each of their choices reads; -1 where it reads none.
    """

    source: int
    prices: np.ndarray
    consumers: tuple[tuple[int, np.ndarray], ...]

    def __post_init__(self) -> None:
        prices = _numbers(self.prices, f"the prices of a fetch from variable {self.source}")
        object.__setattr__(self, "prices", prices)
        consumers = tuple((int(v), np.asarray(forms)) for v, forms in self.consumers)
        object.__setattr__(self, "consumers", consumers)
        if prices.ndim != 2:
            raise LayoutError(
                f"the prices of a fetch from variable {self.source} have {prices.ndim} dims; "
                "give a price for each choice of the source and each form"
            )
        for consumer, forms in consumers:
            if forms.ndim != 1 or forms.dtype.kind not in "iu":
                raise LayoutError(
                    f"variable {consumer} reads forms {forms!r} of variable {self.source}; "
                    "give one integer for each of its choices"
                )
            if ((forms < -1) | (forms >= prices.shape[1])).any():
                raise LayoutError(
                    f"variable {consumer} reads forms {forms.tolist()} of variable {self.source}; "
                    f"they have to be from -1, which is none, to {prices.shape[1] - 1}"
                )

    @cached_property
    def reads(self) -> dict[int, np.ndarray]:
        """For each consumer, [choice, form]: whether the choice reads the form."""
        numbers, found = np.arange(self.prices.shape[1]), dict[int, np.ndarray]()
        for consumer, forms in self.consumers:
            read = forms[:, None] == numbers
            found[consumer] = found[consumer] | read if consumer in found else read
        return found

    @cached_property
    def parts(self) -> Parts:
        """Its parts for models, which do not change them; what the source itself reads is costs."""
        reads, prices = dict(self.reads), self.prices
        if (own := reads.pop(self.source, None)) is None:
            return Parts.of(Shared(self.source, prices, reads))
        rest = Shared(self.source, np.where(own, 0, prices), reads)
        return Parts.of(rest, (np.where(own, prices, 0).sum(1),))

    def with_prices(self, prices: np.ndarray) -> Fetch:
        """Return the fetch with other prices, of as many choices and forms."""
        made = object.__new__(Fetch)
        vars(made).update(vars(self), prices=prices)
        vars(made).pop("parts", None)
        return made


@dataclass(frozen=True, eq=False)
class Row:
    """A limit: the sum of the usages of the variables' choices is at most `limit`.

    usages: for each variable in the row, the usage of each of its choices: finite, at least 0, in
    the unit of the limit. pairs: for pairs of different variables, that of each pair of choices in
    addition.
    """

    limit: float
    usages: Mapping[int, np.ndarray]
    pairs: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.limit != self.limit:
            raise LayoutError("the limit of a row is NaN; give a number")
        usages = {int(v): np.asarray(usage, np.float64) for v, usage in self.usages.items()}
        pairs = {(int(v), int(w)): np.asarray(x, np.float64) for (v, w), x in self.pairs.items()}
        object.__setattr__(self, "usages", usages)
        object.__setattr__(self, "pairs", pairs)
        arrays: dict[Any, np.ndarray] = {**usages, **pairs}
        every = np.concatenate([np.zeros(1), *map(np.ravel, arrays.values())])
        if not ((every >= 0) & (every < inf)).all():
            for v, usage in arrays.items():
                _numbers(usage, f"the usages of variable {v}")
                if not np.isfinite(usage).all():
                    raise LayoutError(f"the usages of variable {v} are not all finite")

    def used(self, choices: Sequence[int]) -> list[float]:
        """Return the usages of an assignment."""
        return used(self.usages, self.pairs, choices)


@dataclass(frozen=True, eq=False)
class Problem:
    """Variables with the costs of their choices, fetches between variables, and limits on usage.

    costs: for each variable, the cost of each of its choices: at least 0; inf where impossible.

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
            for consumer, forms in fetch.consumers:
                self._check(consumer, len(forms), "forms of a fetch")
        for row in self.rows:
            for v, usage in row.usages.items():
                if usage.ndim != 1:
                    raise LayoutError(f"the usages of variable {v} have {usage.ndim} dims")
                self._check(v, len(usage), "usages of a row")
            for pair, usage in row.pairs.items():
                if usage.ndim != 2 or pair[0] == pair[1]:
                    raise LayoutError(
                        f"the usages of the pair {pair} need two variables and two dims"
                    )
                for v, count in zip(pair, usage.shape, strict=True):
                    self._check(v, count, "usages of a row")

    def with_terms(self, costs: Iterable[np.ndarray], fetches: Iterable[Fetch]) -> Problem:
        """Return the problem with other costs and fetches, which are not checked."""
        made = object.__new__(Problem)
        vars(made).update(costs=tuple(costs), fetches=tuple(fetches), rows=self.rows)
        return made

    @cached_property
    def least(self) -> float:
        """A lower bound of the cost of every assignment: the sum of each variable's least cost."""
        return fsum([float(own.min(initial=inf)) for own in self.costs])

    def _check(self, variable: int, count: int, what: str) -> None:
        if not 0 <= variable < len(self.costs):
            raise LayoutError(
                f"there is no variable {variable}, which the {what} name; "
                f"the costs are of variables 0 to {len(self.costs) - 1}"
            )
        if count != len(self.costs[variable]):
            raise LayoutError(
                f"the {what} are for {count} choices of variable {variable}, "
                f"which has {len(self.costs[variable])}"
            )

    def checked(self, choices: Sequence[int]) -> tuple[int, ...]:
        """Return the choices as ints; `LayoutError` unless there is one for each variable."""
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
        """Return the cost of an assignment; inf where it is impossible."""
        return self._sum(self.checked(choices), range(len(self.costs)), self.fetches)

    def _sum(
        self, found: Sequence[int], variables: Iterable[int], fetches: Iterable[Fetch]
    ) -> float:
        """Return the sum of some variables' costs and some fetches' prices in an assignment."""
        terms = [float(self.costs[v][found[v]]) for v in variables]
        for fetch in fetches:
            terms += _prices(fetch, found)
        return fsum(terms)

    def costs_with(self, choices: Sequence[int], variable: int) -> np.ndarray:
        """Return the costs of an assignment with each choice of `variable` in turn.

        >>> edge = Fetch(0, [[0, 5], [5, 0]], ((1, np.arange(2)),))
        >>> Problem(([0, 1], [3, 0]), (edge,)).costs_with((0, 1), 0)
        array([5., 1.])
        """
        found = list(self.checked(choices))
        near = self._near[variable]
        costs, prices = self._paid(tuple(found))
        linked = {*near}
        terms = [cost for v, cost in enumerate(costs) if v != variable]
        for fetch, paid in zip(self.fetches, prices, strict=True):
            terms += () if fetch in linked else paid
        rest, made = fsum(terms), []
        for k in range(len(self.costs[variable])):
            found[variable] = k
            made.append(rest + self._sum(found, [variable], near))
        return np.array(made)

    def _paid(self, found: tuple[int, ...]) -> tuple[list[float], list[list[float]]]:
        """Return the cost of each variable, and the prices of each fetch, in an assignment."""
        if found not in self._last:
            self._last.clear()
            costs = [float(own[choice]) for own, choice in zip(self.costs, found, strict=True)]
            self._last[found] = costs, [_prices(fetch, found) for fetch in self.fetches]
        return self._last[found]

    @cached_property
    def _last(self) -> dict[tuple[int, ...], tuple[list[float], list[list[float]]]]:
        """What is paid in the last assignment that was asked for."""
        return {}

    @cached_property
    def _near(self) -> list[list[Fetch]]:
        """The fetches that each variable is the source or a consumer of."""
        near: list[list[Fetch]] = [[] for _ in self.costs]
        for fetch in self.fetches:
            for v in {fetch.source, *(consumer for consumer, _ in fetch.consumers)}:
                near[v].append(fetch)
        return near

    def excess(self, choices: Sequence[int]) -> float:
        """Return the most by which a row is exceeded; at most 0 where all hold, up to rounding."""
        found = self.checked(choices)
        most = -inf
        for row in self.rows:
            over = fsum(row.used(found)) - row.limit
            most = max(most, min(over, 0.0) if over <= ROUNDING * row.limit else over)
        return most


def _prices(fetch: Fetch, found: Sequence[int]) -> list[float]:
    """Return the prices of the forms that consumers read in an assignment."""
    forms = {int(forms[found[consumer]]) for consumer, forms in fetch.consumers}
    prices = fetch.prices[found[fetch.source]]
    return [float(prices[form]) for form in forms if form >= 0]


def _numbers(values: object, what: str) -> np.ndarray:
    found = np.asarray(values, np.float64)
    if not (found >= 0).all():
        wrong = "NaN" if np.isnan(found).any() else str(found.min())
        raise LayoutError(f"{what} include {wrong}; give numbers of at least 0")
    return found
