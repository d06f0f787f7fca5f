"""`hiding`: plans that take less time where devices do several things at the same time.

The solver minimizes the sum of all times. Where links work beside the rest, a plan may take less
time with a larger sum, in two ways. Its products run in rounds, whose messages run beside
multiplications (`products/rounds.py`). And it sends more, but hides it: the problem is solved once
more on a machine where messages take little time. The plan that takes the least time with overlap
is the result.
"""

from __future__ import annotations

from dataclasses import replace

from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.solved import made_for, solved
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.solve import Solution, Unsolved
from gridlayout.ops.solver.terms import Expired
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.chips import LINKS

_FASTER = 10.0  # times as fast as messages are
_MOST_ROUNDS = 8


def hiding(
    traced: Traced, strategies: Strategies, best: Plan, found: Solution, clock: Clock
) -> Plan:
    """Return a plan that takes less time with overlap than the best one, or that one.

    found: the solution of the best plan, whose bound is that of all. clock: ends the search.
    """
    if LINKS not in traced.device.machine.overlap or not traced.overlap or not clock.left:
        return best
    solutions, bound = [found], best.bound
    other = _solved_again(traced, strategies, clock)
    if other is not None and other.choices != found.choices:
        solutions.append(replace(found, choices=other.choices))
    for each in solutions:
        if each is not found and not clock.left:
            break
        how = f"{found.how}, with overlap"
        made = made_for(traced, strategies, replace(each, how=how), clock, _MOST_ROUNDS)
        fits = strategies.capacity is None or made.peak_bytes <= strategies.capacity
        if fits and made.overlapped < best.overlapped:
            best = replace(made, bound=bound)
    return best


def _solved_again(traced: Traced, strategies: Strategies, clock: Clock) -> Solution | None:
    """Return the best choices where messages are faster; None if none are known in time."""
    machine = traced.device.machine.with_faster_links(_FASTER)
    units = replace(strategies.units, device=traced.device.with_machine(machine))
    try:
        other = Strategies(
            *(strategies.graph, units, strategies.given, strategies.targets, strategies.names),
            *(strategies.most, clock.check),
            capacity=strategies.capacity,
            more=strategies.more,
        )
        return solved(other, clock, None, LIMITS.gap)
    except (Expired, Unsolved):
        return None
