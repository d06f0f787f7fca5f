"""`on_devices`: the search for a plan of devices, each with one memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from operator import attrgetter
from typing import Any

from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.hiding import hiding
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import default_plan
from gridlayout.ops.planning.solved import made_for, problem_of, solved
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.solve import Solution, Unsolved
from gridlayout.ops.solver.terms import Expired, no_step
from gridlayout.sharding.limits import LIMITS

_PRICING = 0.5  # the time to price a plan that was chosen, as a share of that of the default plan
_MOST_PLANS = 40  # that are made, with all that is known of what programs hold
_BY_SHARE = 4  # the tries of a large program with the share of the room that is counted
_WITH_LESS = range(5, 12)  # the tries after which there is less room
_LESS_ROOM = 0.93  # times as much as before
_MOST = 0.4  # the share of the remaining time for one try


def on_devices(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan | None:
    """Return a plan that fits a device's memory.

    It never takes longer than the default plan, which is the result if no other is found.
    """
    known = clock.through(lambda: _Known.of(traced, trips))
    clock.keep(_PRICING * clock.spent)
    try:
        found = _divided(traced, trips, known, clock, progress)
    except (Expired, Unsolved):
        if known.plan is None:
            raise
        return known.plan
    return known.plan if found is None else found


@dataclass(frozen=True)
class _Known:
    """The default plan, None if it does not fit, and the seconds that another plan has to beat.

    overlapped: those that a plan has to beat which is compared by its time with overlap.

    Arrays that are laid out keep their layouts unless the gain exceeds the figures' accuracy.
    """

    plan: Plan | None
    seconds: float = inf
    overlapped: float = inf

    @staticmethod
    def of(traced: Traced, trips: int | None) -> _Known:
        """Return the faster default: with arguments as `gl.put` lays them out, or as they are."""
        machine, known = traced.device.machine, []
        for keeps in (True, False) if any(leaf.is_laid_out for leaf in traced.leaves) else (False,):
            plan = default_plan(traced, trips, keeps)
            if machine.device_capacity is None or plan.peak_bytes <= machine.device_capacity:
                stays = LIMITS.relayout_gain if keeps and machine.figures else 0.0
                known.append(_Known(plan, plan.time * (1 - stays), plan.overlapped * (1 - stays)))
        own = attrgetter("overlapped" if traced.overlap else "seconds")
        return min(known, key=own, default=_Known(None))

    def beats(self, made: Plan, overlap: bool) -> bool:
        """Return whether a plan takes longer; overlap: by the time with overlap."""
        return self.overlapped < made.overlapped if overlap else self.seconds < made.time

    def with_bound(self, bound: float) -> Plan:
        """Return the plan with a proven lower bound of the time of all plans."""
        assert self.plan is not None
        return replace(self.plan, bound=min(bound, self.plan.time))


def _divided(
    traced: Traced, trips: int | None, known: _Known, clock: Clock, progress: Any
) -> Plan | None:
    """Return the plan of the best solution that fits, or the default where that is as good.

    What every program holds limits the first choices, so their bound is that of all plans. A
    program that does not fit tells what else it holds, and others are chosen.
    """
    room = traced.device.machine.device_capacity
    # If the default does not fit, only a complete problem can tell whether anything does.
    each_step = no_step if known.plan is None else clock.check
    free = clock.through(lambda: traced.strategies(trips, each_step=each_step))
    first: Solution | None = None
    part = 1.0  # of the room
    for k in range(_MOST_PLANS):
        strategies = free.limited(room if room is None else int(room * part))
        # Where memory is scarce there may be more tries, which need some of the time.
        share = _MOST if problem_of(strategies, clock).rows else 1.0
        try:
            solution = solved(strategies, clock.part(share), progress, LIMITS.gap if k else 0.0)
        except (Expired, Unsolved):
            if first is None:
                raise
            break
        first = first or solution
        if first is None:
            return None
        if solution is None and part < 1:
            part = 1.0
            continue
        if solution is None or (known.seconds <= solution.cost and first is not solution):
            break
        if not clock.left and known.seconds <= solution.cost:
            break
        made = made_for(traced, strategies, replace(solution, bound=first.bound), clock)
        if room is None or made.peak_bytes <= room:
            made = hiding(traced, strategies, made, replace(solution, bound=first.bound), clock)
            return known.with_bound(first.bound) if known.beats(made, traced.overlap) else made
        known_room = free.limited(room).room
        if free.graph.is_large and k < _BY_SHARE and clock.left:
            # Other choices have values of these kinds too.
            part, is_new = max(known_room.held(solution.choices)) / made.peak_bytes, True
            continue
        held = zip(made.simulation.held_in, (n for _, n in made.simulation.held), strict=False)
        is_new = known_room.learn(solution.choices, held)
        if k in _WITH_LESS:  # what is learned of some choices may be true of others too
            part *= _LESS_ROOM
        if not clock.left or not (is_new or part < 1):
            break
    if known.plan is not None and first is not None:
        return known.with_bound(first.bound)
    if not clock.left:
        raise Unsolved("no plan fits so far")
    return None
