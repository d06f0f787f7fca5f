"""`hiding`: plans that take less time where devices do several things at the same time.

The solver minimizes the sum of all times. A plan whose messages are hidden behind its computation
may take less time with a larger sum. So the problem is solved once more on a machine where messages
take another time: less if computing takes most of the time, since more messages could be hidden
then, and more if they take most of it. Of both plans, the one that takes less time with overlap is
the result.
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

_TIMES = 3.0  # as fast, or as slow, as messages are


def hiding(
    traced: Traced, strategies: Strategies, best: Plan, found: Solution, clock: Clock
) -> Plan:
    """Return a plan that takes less time with overlap than the best one, or that one.

    found: the solution of the best plan, whose bound is that of all. clock: ends the search.
    """
    machine = traced.device.machine
    if not machine.overlap:
        return best
    computed = sum(each.compute for each in best.simulation.equations)
    times = _TIMES if 2 * computed > best.time else 1 / _TIMES
    device = traced.device.with_machine(machine.with_faster_links(times))
    other = Strategies(
        strategies.graph,
        replace(strategies.units, device=device),
        strategies.given,
        strategies.targets,
        strategies.names,
        strategies.most,
        clock.check,
        capacity=strategies.capacity,
        more=strategies.more,
    )
    try:
        solution = solved(other, clock, None, LIMITS.gap)
    except (Expired, Unsolved):
        return best
    if solution is None or solution.choices == found.choices:
        return best
    own = replace(found, choices=solution.choices, how=f"{found.how}, with overlap")
    made = made_for(traced, strategies, own, clock)
    fits = strategies.capacity is None or made.peak_bytes <= strategies.capacity
    return made if fits and made.overlapped < best.overlapped else best
