"""`best_plan`: the best plan that is found before a clock, or an interrupt, ends the search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import fsum, inf
from typing import Any

from gridlayout.ops.plan.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import default_plan, made_plan
from gridlayout.ops.planning.spaces import Spaces, room_in_l1
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.solve import Solution, Unsolved, solve
from gridlayout.ops.solver.terms import Expired, no_step
from gridlayout.sharding.limits import LIMITS

_MOST_TRIES = 12  # with less room for what copies take
_MOST = 0.8  # of the time that is left, for each of these
_FIRST = 2 / 3  # of the time, for cores that all have something of each value


def best_plan(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """The best plan that is found before the time, or an interrupt, ends it; None if none has room.

    Raises Unsolved where no plan that has room is known by then, KeyboardInterrupt at a second
    interrupt, or where no plan is known at the first.
    """
    search = _on_cores if traced.device.machine.has_cores else _on_devices
    clock = Clock(seconds)
    try:
        return clock.through(lambda: search(traced, trips, clock, progress))
    except Unsolved as error:
        if clock.interrupted:
            raise KeyboardInterrupt from error
        raise Unsolved(
            f"no plan that has room in memory was found in {seconds:g} seconds: give more of them, "
            "seconds=, or plan for more devices, or for ones with more memory"
        ) from error


# -- devices ---------------------------------------------------------------------------------------


def _on_devices(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan | None:
    """A plan that a device's memory has room for, copies on the way to readers included.

    Never one that takes longer than the default, which is also what is known if nothing is found.
    """
    room = traced.device.machine.device_capacity
    default: Plan | None = clock.through(lambda: default_plan(traced, trips))
    if default is not None and room is not None and default.peak_bytes > room:
        default = None
    clock.start()
    try:
        found = _divided(traced, trips, default, clock, progress)
    except (Expired, Unsolved):
        if default is None:
            raise
        return default
    return default if found is None else found


def _divided(
    traced: Traced, trips: int | None, default: Plan | None, clock: Clock, progress: Any
) -> Plan | None:
    """The plan of the best solution that has room, or the default where that is as good."""
    capacity = room = traced.device.machine.device_capacity
    # If the default has no room, only the problem tells of anything that has.
    each_step = no_step if default is None else clock.check
    free = clock.through(lambda: traced.strategies(trips, each_step=each_step))
    for k in range(_MOST_TRIES):
        strategies = free.limited(capacity, copies=k > 0)
        # Where memory is scarce there may be more to try, which is soon done.
        share = _MOST if _problem(strategies, clock).rows else 1.0
        solution = _solved(strategies, clock.part(share), progress)
        if solution is None:
            return None
        if default is not None and not clock.left and default.time <= solution.cost:
            return replace(default, bound=min(solution.bound, default.time))
        made = _made(traced, strategies, solution, clock)
        if default is not None and (default.time < made.time or (k and not clock.left)):
            return replace(default, bound=min(made.bound, default.time))
        if room is None or capacity is None or made.peak_bytes <= room:
            return made
        if k:
            used = capacity + max(strategies.problem.excess(solution.choices), -capacity)
            less = int(capacity * room / made.peak_bytes)
            capacity = min(less, int(used) - 1) if strategies.problem.rows else less
    if not clock.left:
        raise Unsolved("no plan has room so far")
    return None


def _solved(strategies: Strategies, clock: Clock, progress: Any) -> Solution | None:
    """The best choices that are found in time; None where nothing has room.

    After an interrupt `progress` is not called, as that may be where it came from.
    """
    gap = LIMITS.gap if len(strategies.graph.nodes) > LIMITS.alike else 0.0
    problem = _problem(strategies, clock)
    told = None if clock.interrupted else progress
    return solve(problem, clock.left, progress=told, gap=gap, on_interrupt=clock.interrupt)


def _problem(strategies: Strategies, clock: Clock) -> Problem:
    return clock.through(lambda: strategies.problem)


def _made(traced: Traced, strategies: Strategies, found: Solution, clock: Clock) -> Plan:
    return clock.through(lambda: made_plan(traced, strategies, found, clock))


# -- cores -----------------------------------------------------------------------------------------


def _on_cores(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan | None:
    """The best plan of cores that all have something of each value, and of such that may have none.

    The second have fewer tiles on one core, but relayouts of what is so divided can cost more than
    their bytes tell: both are made, and priced.
    """
    free = clock.through(lambda: traced.strategies(trips))
    more = clock.through(lambda: traced.strategies(trips, idle=True))
    has_more = more.units.idle and _choices(more) != _choices(free)
    found = _in_spaces(traced, free, clock.part(_FIRST if has_more else 1.0), progress)
    if found is None or not has_more:
        return found
    other = None
    if clock.left:
        with suppress(Unsolved):
            other = _in_spaces(traced, more, clock, progress)
            if other is None:
                return found
    bound = _least(more, clock) if other is None else other.bound
    best = found if other is None or found.time <= other.time else other
    return replace(best, bound=min(found.bound, bound))


def _choices(strategies: Strategies) -> int:
    return sum(len(variable.choices) for variable in strategies.variables)


def _least(strategies: Strategies, clock: Clock) -> float:
    """A bound of what is divided in these ways that is known without a search."""
    return fsum([float(own.min(initial=inf)) for own in _problem(strategies, clock).costs])


def _in_spaces(traced: Traced, free: Strategies, clock: Clock, progress: Any) -> Plan | None:
    """The best plan whose values have room in L1, or are read from DRAM.

    Without a limit to L1 no plan takes less: the bound. Where all but arguments are to be in L1,
    the solver says which arguments are not; else values go to DRAM that a plan has no room for.
    """
    room = room_in_l1(traced.device.machine)
    far = frozenset[int]()
    if traced.space == "dram":
        outs = (v for v in free.graph.outs if v is not None and free.graph.shapes[v])
        far = frozenset(v for v in outs if v >= len(traced.specs))
        free = free.limited(None, far)
    first = _solved(free, clock.part(1 / 3), progress)
    assert first is not None
    limited = free.limited(room, far, each_step=clock.check)
    try:
        if _problem(limited, clock).excess(first.choices) <= 0:
            return _made(traced, limited, first, clock)
        found = _with_less(traced, free, far, first, clock, progress)
    except (Expired, Unsolved):
        found = [(free, _spilled(traced, free, first, clock))]
    made = [_made(traced, x, replace(each, bound=first.bound), clock) for x, each in found]
    return min(made, key=lambda each: each.time, default=None)


def _with_less(
    traced: Traced,
    free: Strategies,
    far: frozenset[int],
    first: Solution,
    clock: Clock,
    progress: Any,
) -> list[tuple[Strategies, Solution]]:
    """The best choices where L1 has no room for the first solution; far: values in DRAM.

    Raises Expired or Unsolved where the time was over before there were any.
    """
    room = room_in_l1(traced.device.machine)

    def less() -> Strategies | None:
        """What is left to choose where the values are in DRAM for which those have no room."""
        spaces = _spaces(free, first, clock)
        made = {v for v in spaces.dram if v >= len(traced.specs)}
        if far.issuperset(made):
            return None
        return free.limited(room, far | made, each_step=clock.check)

    ways: list[tuple[Callable[[], Strategies | None], float]]
    ways = [(lambda: free.limited(room, far, each_step=clock.check), 1 / 2), (less, 1.0)]
    found: list[tuple[Strategies, Solution]] = []
    late: Exception | None = None
    for way, share in ways:
        try:
            strategies = way()
            solution = strategies and _solved(strategies, clock.part(share), progress)
        except (Expired, Unsolved) as error:
            late = error
            continue
        if isinstance(strategies, Strategies) and isinstance(solution, Solution):
            found.append((strategies, solution))
    if late is not None and not found:
        raise late
    return found if clock.left else sorted(found, key=lambda each: each[1].cost)[:1]


def _spaces(free: Strategies, found: Solution, clock: Clock) -> Spaces:
    """Where values are that are divided so, arguments too where they may be."""
    places, choices = free.places(found.choices), free.choices(found.choices)
    return clock.through(lambda: Spaces.of(free, places, choices, fixed=False, clock=clock))


def _spilled(traced: Traced, free: Strategies, found: Solution, clock: Clock) -> Solution:
    """The same choices, with those arguments in DRAM for which L1 has no room."""
    spaces = _spaces(free, found, clock)
    choices = list(found.choices)
    for v in sorted(v for v in spaces.dram if v < len(traced.specs)):
        at = free.operand(v)
        places = free.variables[at].choices
        wanted = free.units.among_chips(places[choices[at]].division)
        far = [k for k, place in enumerate(places) if place.in_dram]
        choices[at] = next((k for k in far if places[k].division == wanted), choices[at])
    return replace(found, choices=tuple(choices))
