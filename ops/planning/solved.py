"""`solved`: the best choices found in time, with exact prices of their moves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

from gridlayout.ops.choose.mixtures import mixtures
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import made_plan
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.solve import Solution, solve
from gridlayout.sharding.limits import LIMITS

_QUICK = 0.02  # the share of all time in which a problem is solved again
_MIXTURES = 0.3  # the share of the remaining time to find assignments to begin with
_SAME = 1e-9  # the share by which costs differ because sums are rounded


def solved(
    strategies: Strategies, clock: Clock, progress: Any, gap: float = 0.0
) -> Solution | None:
    """Return the best choices found in time; None where nothing fits.

    The prices of moves are estimates at first. Where the exact ones of the moves in a solution
    differ, the problem is solved again with these, if that is quick. gap: as in `solve`.
    `progress` is not called after an interrupt, because it may be what was interrupted.
    """
    if strategies.graph.is_large:
        gap = LIMITS.gap
    problem, begun = problem_of(strategies, clock), monotonic()
    given: list[list[int]] = []
    priced = dict[tuple[int, ...], float]()
    while True:
        shown = None if clock.interrupted else progress
        found = solve(
            *(problem, clock.left, given, shown),
            gap=gap,
            on_interrupt=clock.interrupt,
            more=partial(_mixed, strategies, problem, clock),
        )
        if found is None:
            return None
        if monotonic() - begun > _QUICK * clock.seconds or len(priced) == LIMITS.solved_again:
            return clock.through(partial(_refined, strategies, found, priced))
        choices = found.choices
        is_exact = clock.through(partial(strategies.refined, choices)) is None
        problem, given = strategies.problem, [[*choices]]
        priced[choices] = problem.cost(choices)
        if is_exact or priced[choices] <= found.bound * (1 + gap + _SAME):
            return _best(found, priced)


def _mixed(strategies: Strategies, problem: Problem, clock: Clock) -> list[list[int]]:
    return mixtures(strategies, problem, clock.part(_MIXTURES).check)


def _refined(
    strategies: Strategies, found: Solution, priced: dict[tuple[int, ...], float]
) -> Solution:
    """Return the best solution after a descent with exact prices of its moves.

    priced: others, with their seconds.
    """
    choices, seconds = strategies.with_exact_moves(found.choices)
    if strategies.problem.excess(choices) > 0:
        choices, seconds = found.choices, strategies.problem.cost(found.choices)
    return _best(found, priced | {choices: seconds})


def _best(found: Solution, priced: dict[tuple[int, ...], float]) -> Solution:
    best = min(priced, key=priced.__getitem__)
    cost = priced[best]
    return replace(found, choices=best, cost=cost, bound=min(found.bound, cost))


def problem_of(strategies: Strategies, clock: Clock) -> Problem:
    """Return the problem of strategies, made while the clock runs."""
    return clock.through(lambda: strategies.problem)


def made_for(
    traced: Traced, strategies: Strategies, found: Solution, clock: Clock, rounds: int = 1
) -> Plan:
    """Return the plan of a solution; rounds: the most rounds of its products."""
    return clock.through(lambda: made_plan(traced, strategies, found, clock, rounds))
