"""`solve`: the best assignment of a problem that is found in time, and how good it can be at most.

The problem is reduced and split into parts that nothing links; each goes to the first method that
is able to take it: exact elimination, an integer program, a local search with a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

from gridlayout.errors import LayoutError
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.search import METHODS, Progress, Search
from gridlayout.ops.solver.terms import Expired, Infeasible, no_step


class Unsolved(LayoutError):
    """Time ran out, or an interrupt came, before any feasible assignment was found."""


@dataclass(frozen=True)
class Solution:
    """A feasible assignment, its cost, and a proven lower bound of the cost of each one.

    how: the method that found it, or proved that nothing is better; of several parts the weakest.
    """

    choices: tuple[int, ...]
    cost: float
    bound: float
    how: str

    @property
    def gap(self) -> float:
        """By how much of the bound the cost may be above the least one, at most."""
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
) -> Solution | None:
    """The best feasible assignment that is found, or None if it is proven that there is none.

    starts: assignments to begin a local search with; the result is never worse than a feasible one.
    progress: called with the cost, the bound and the seconds so far as these improve.
    methods: which of `METHODS` may be used, after the reductions and a first descent. gap: by how
    much of the bound a cost may be above it for the search to end. on_interrupt: called when an
    interrupt ends it.

    The result is the same in every process, unless a method's share of the time runs out. Of
    assignments that cost the same the one that is found need not be the first in lexicographic
    order. The time, or an interrupt, ends the search with what is known; where that is nothing,
    choices are made one by one without a search; raises Unsolved if these are not feasible. A
    second interrupt is raised.

    >>> solve(Problem(([1, 0], [0, 2])))
    Solution(choices=(1, 0), cost=0.0, bound=0.0, how='exact elimination')
    """
    if unknown := set(methods) - set(METHODS):
        raise LayoutError(f"methods {sorted(unknown)} are not known; there are {list(METHODS)}")
    search = Search(problem, monotonic() + seconds, tuple(methods), progress, gap)
    for start in starts:
        search.start(start)
    try:
        _run(search, on_interrupt)
    except Infeasible:
        if search.choices is None:  # else a start is possible within rounding only
            return None
    if search.choices is None:
        raise Unsolved(
            f"no feasible assignment was found in {monotonic() - search.began:.3g} of {seconds:g} "
            "seconds; give more time or a start"
        )
    return Solution(search.choices, search.cost, search.bound, search.how)


def _run(search: Search, on_interrupt: Callable[[], None]) -> None:
    """Search until the end, until the time is over or an interrupt."""
    try:
        search.run()
    except Expired:
        search.complete()
    except KeyboardInterrupt:
        on_interrupt()
        search.complete()
