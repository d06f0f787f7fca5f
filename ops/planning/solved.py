"""`solved`: the best choices found in time, with exact prices of their moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from gridlayout.ops.choose.learned import by_variable, missing
from gridlayout.ops.choose.mixtures import mixtures
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import made_plan
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.descent import improved
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.solve import Solution, solve
from gridlayout.sharding.limits import LIMITS

_QUICK = 0.2  # the share of all time in which a problem is solved again
_MIXTURES = 0.3  # the share of the remaining time to find assignments to begin with
_OTHERS = 3  # of the assignments that were found before the best one, which are priced too
_SAME = 1e-9  # the share by which costs differ because sums are rounded


def solved(
    strategies: Strategies,
    clock: Clock,
    progress: Any,
    gap: float = 0.0,
    known: Sequence[Sequence[int]] = (),
) -> Solution | None:
    """Return the best choices found in time; None where nothing fits.

    The prices of moves are estimates at first, and all collectives that may be joined are. Each
    solution is priced exactly, and the best one is kept. While it takes longer than the problem
    states, the problem is solved again with what is missing, if that is quick. gap: as in `solve`.
    known: choices for the variables from which searches begin too.
    `progress` is not called after an interrupt, because it may be what was interrupted.
    """
    if strategies.graph.is_large:
        gap = LIMITS.gap
    begun = monotonic()
    first: Solution | None = None
    count = len(strategies.variables)
    given = [[*each[:count]] for each in known]
    priced = dict[tuple[int, ...], float]()
    for _ in range(LIMITS.solved_again):
        problem = problem_of(strategies, clock)
        shown = None if clock.interrupted else progress
        rest = [0] * (len(problem.costs) - count)  # of joined collectives
        given = [[*each[:count], *rest] for each in given]
        found = solve(
            *(problem, clock.left, given, shown),
            gap=gap,
            close=LIMITS.close,
            on_interrupt=clock.interrupt,
            more=partial(_mixed, strategies, problem, clock),
        )
        if found is None:
            break
        first = first or found
        more = clock.through(partial(_priced, strategies, found, problem, priced, clock))
        best = min(priced, key=priced.__getitem__)
        given = [[*best]]
        is_late = not clock.left or monotonic() - begun > _QUICK * clock.seconds
        if is_late or not more or priced[best] <= found.cost * (1 + gap + _SAME):
            break
        clock.through(partial(strategies.count, more))
    if first is None:
        return None
    strategies.refined(best)
    cost = priced[best]
    return replace(first, choices=best, cost=cost, bound=min(first.bound, cost))


def _priced(
    strategies: Strategies,
    found: Solution,
    problem: Problem,
    priced: dict[tuple[int, ...], float],
    clock: Clock,
) -> dict[tuple[int, int], float]:
    """Price a solution exactly, and what a descent with exact prices reaches from it.

    priced: seconds of choices, to which these are added. clock: ends the descents. Returns the
    seconds that some choices take and the problem does not state.
    """
    others = () if strategies.graph.is_large else found.others[-_OTHERS:]

    def price(choices: tuple[int, ...], seconds: float) -> None:
        # What was counted for single choices since may be too much for these.
        priced[choices] = min(priced.get(choices, inf), seconds)

    for each in others:  # by exact prices, one of them may be the best
        strategies.refined(each)
        price(each, strategies.problem.cost(each))
    strategies.refined(found.choices)
    exact = strategies.problem
    price(found.choices, exact.cost(found.choices))
    taken = by_variable(found.choices, exact)
    more = missing(found.choices, problem, dict(enumerate(taken)))
    near = improved(exact, found.choices, problem, clock.check)
    choices, seconds = strategies.with_exact_moves(near, clock.check)
    if strategies.problem.excess(choices) <= 0:
        price(choices, seconds)
    return more


def _mixed(strategies: Strategies, problem: Problem, clock: Clock) -> list[list[int]]:
    return mixtures(strategies, problem, clock.part(_MIXTURES).check)


def problem_of(strategies: Strategies, clock: Clock) -> Problem:
    """Return the problem of strategies, made while the clock runs."""
    return clock.through(lambda: strategies.problem)


def made_for(
    traced: Traced, strategies: Strategies, found: Solution, clock: Clock, rounds: int = 1
) -> Plan:
    """Return the plan of a solution; rounds: the most rounds of its products."""
    return clock.through(lambda: made_plan(traced, strategies, found, clock, rounds))
