"""`solve`: finds the best assignment of a problem within a time limit, and a lower bound.

The problem is reduced and split into independent parts. Each part is solved by the first method
that can handle it: exact elimination, an integer program, or a local search with a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from gridlayout.errors import LayoutError
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.search import METHODS, Progress, Search
from gridlayout.ops.solver.terms import Expired, Infeasible, no_step


class Unsolved(LayoutError):
    """The time ran out, or an interrupt came, before any feasible assignment was found."""


@dataclass(frozen=True)
class Solution:
    """A feasible assignment, its cost, and a proven lower bound of the cost of any assignment.

    how: the method that found it or proved that it is optimal; with several parts, the weakest one.
    others: the best feasible assignments that were known before it, the last one best.
    """

    choices: tuple[int, ...]
    cost: float
    bound: float
    how: str
    others: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def gap(self) -> float:
        """The most by which the cost exceeds the least cost, as a fraction of the bound."""
        if self.cost <= self.bound:
            return 0.0
        return self.cost / self.bound - 1 if self.bound > 0 else inf


def solve(
    problem: Problem,
    seconds: float = 60.0,
    starts: Sequence[Sequence[int]] = (),
    progress: Progress | None = None,
    methods: Sequence[str] = METHODS,
    gap: float = 0.0,
    on_interrupt: Callable[[], None] = no_step,
    more: Callable[[], Sequence[Sequence[int]]] = tuple,
    close: float = inf,
) -> Solution | None:
    """Return the best feasible assignment found, or None if it is proven that there is none.

    starts: assignments from which a local search begins; the result is never worse than a feasible
    one of them.
    progress: called with the cost, the bound and the elapsed seconds when one of the first two
    improved, at most every 0.25 seconds.
    methods: which of `METHODS` may be used after the reductions and a first descent. gap: the
    search ends when the cost exceeds the bound by at most this fraction of the bound. on_interrupt:
    called when an interrupt ends the search. more: called for further starts where elimination does
    not solve the problem; also after the time, so it is to know when that ends. close: a smaller
    gap, at which messages end; they go on as long as their bound rises well.

    The result is the same in every process, unless a method's share of the time runs out. Among
    assignments of equal cost, it need not be the first in lexicographic order. A timeout or an
    interrupt ends the search with the best assignment so far. If there is none, choices are made
    one by one without a search; Unsolved is raised if these are not feasible. A second interrupt is
    raised.

    >>> solve(Problem(([1, 0], [0, 2])))
    Solution(choices=(1, 0), cost=0.0, bound=0.0, how='exact elimination')
    """
    if unknown := set(methods) - set(METHODS):
        raise LayoutError(f"methods {sorted(unknown)} are not known; there are {list(METHODS)}")
    search = Search(problem, monotonic() + seconds, tuple(methods), progress, gap, more, close)
    for start in starts:
        search.start(start)
    try:
        _run(search, on_interrupt)
    except Infeasible:
        if search.choices is None:  # a start may still be feasible, within rounding
            return None
    if search.choices is None:
        raise Unsolved(
            f"no feasible assignment was found in {monotonic() - search.began:.3g} of {seconds:g} "
            "seconds; give more time or a start"
        )
    return Solution(search.choices, search.cost, search.bound, search.how, search.others)


def _run(search: Search, on_interrupt: Callable[[], None]) -> None:
    """Search until the end, a timeout or an interrupt."""
    try:
        search.run()
    except Expired:
        search.complete()
    except KeyboardInterrupt:
        on_interrupt()
        search.complete()
