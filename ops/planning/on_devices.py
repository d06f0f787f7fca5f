"""`on_devices`: the search for a plan of devices, each with one memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from operator import attrgetter
from typing import Any

from gridlayout.ops.choose.learned import by_equation, missing
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.graph.node import Path
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.hiding import hiding
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import default_plan
from gridlayout.ops.planning.solved import made_for, problem_of, solved
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.solve import Solution, Unsolved
from gridlayout.ops.solver.terms import Expired
from gridlayout.sharding.limits import LIMITS

_PRICING = 0.75  # the time to price a plan that was chosen, as a share of that of the default plan
_DEFAULT = 0.4  # the share of all time for the default plan
_MOST_PLANS = 40  # that are made, with all that is known of what programs hold
_BY_SHARE = 4  # the tries of a large program with the share of the room that is counted
_WITH_LESS = range(5, 12)  # the tries after which there is less room
_LESS_ROOM = 0.93  # times as much as before
_LESS_ROOMS = 6  # with less memory than the plans that fit, in which faster ones are looked for
_KNOWN = 4  # solutions from which searches for others begin, the last ones
_QUICK = 0.25  # the share of all time in which choices are searched again with what a plan takes
_FREE = 0.25  # the share of the remaining time for choices without limits
_MOST = 0.4  # the share of the remaining time for one try


def on_devices(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan | None:
    """Return a plan that fits a device's memory.

    It never takes longer than the default plan, unless the time is too short to make that.
    """
    part = clock.part(_DEFAULT)
    known = clock.through(lambda: _Known.of(traced, trips, part.check))
    if not known.is_cut:
        clock.keep(_PRICING * clock.spent)
    try:
        found = _divided(traced, trips, known, clock, progress)
    except Unsolved:
        if known.plan is None:
            raise
        return known.plan
    if known.is_cut and found is not None and clock.left:
        known = clock.through(lambda: _Known.of(traced, trips, clock.check))
        return known.with_bound(found.bound) if known.beats(found, traced.overlap) else found
    return known.plan if found is None else found


@dataclass(frozen=True)
class _Known:
    """The default plan, None if it does not fit, and the seconds that another plan has to beat.

    overlapped: those that a plan has to beat which is compared by its time with overlap. is_cut:
    whether there was no time to make it.

    Arrays that are laid out keep their layouts unless the gain exceeds the figures' accuracy.
    """

    plan: Plan | None
    seconds: float = inf
    overlapped: float = inf
    is_cut: bool = False

    @staticmethod
    def of(traced: Traced, trips: int | None, each_step: Callable[[], None]) -> _Known:
        """Return the faster default: with arguments as `gl.put` lays them out, or as they are.

        each_step: raises Expired where the time is too short for it.
        """
        try:
            return _Known._of(traced, trips, each_step)
        except Expired:
            return _Known(None, is_cut=True)

    @staticmethod
    def _of(traced: Traced, trips: int | None, each_step: Callable[[], None]) -> _Known:
        machine, known = traced.device.machine, []
        for keeps in (True, False) if any(leaf.is_laid_out for leaf in traced.leaves) else (False,):
            plan = default_plan(traced, trips, keeps, each_step)
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
    """Return the best plan that fits, or the default where that is as good.

    What every program holds limits the first choices, so their bound is that of all plans. A
    program that does not fit tells what else it holds, one that takes longer than its choices were
    priced tells what it takes, and others are chosen. The fastest program that fits is the result.
    """
    # The problem is made in any case: it has the plans that are known without a search.
    free = clock.through(lambda: traced.strategies(trips))
    room = traced.device.machine.device_capacity
    tries = _Tries(traced, free, known.seconds, clock, progress, room)
    limited = tries.limited()
    if known.is_cut:
        tries.begin(limited)
    if tries.best is None or clock.left:
        choices = tries.without_limits(limited)
        tries.began = clock.spent
        if choices is not None:
            tries.go_on(choices)
        tries.with_less_room()
    if tries.best is not None:
        strategies, solution, made = tries.best
        if tries.first is not None:
            made = replace(made, bound=min(tries.first.bound, made.time))
        made = hiding(traced, strategies, made, solution, clock)
        return known.with_bound(made.bound) if known.beats(made, traced.overlap) else made
    if tries.first is None:
        return None
    if known.plan is not None:
        return known.with_bound(tries.first.bound)
    if tries.is_cut or not clock.left:
        raise Unsolved("no plan fits so far")
    return None


@dataclass
class _Tries:
    """Plans made in turn, each of the best choices by what earlier programs took and held.

    most: the seconds of the default plan. room: bytes of a device. first: the first solution, whose
    bound is that of all. best: the fastest plan that fits, with its solution, and the choices of
    which that is one. part: of the room, that choices may take. over: the last solution whose
    program does not fit. least: the fewest bytes that a program holds which fits. bound: that of
    choices without limits. began: seconds spent before others are searched. is_cut: whether the
    time ended a search.
    """

    traced: Traced
    free: Strategies
    most: float
    clock: Clock
    progress: Any
    room: int | None
    first: Solution | None = None
    best: tuple[Strategies, Solution, Plan] | None = None
    part: float = 1.0
    over: tuple[Solution, Plan] | None = None
    least: float = inf
    bound: float = 0.0
    began: float = 0.0
    is_cut: bool = False
    known: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        """Whether no choices are searched again that are known to fit."""
        return self.clock.spent - self.began > _QUICK * self.clock.seconds

    def limited(self) -> Strategies:
        """Return the choices with what is known of programs."""
        return self.free.limited(None if self.room is None else int(self.part * self.room))

    def begin(self, strategies: Strategies) -> None:
        """Make the best plan that needs no search, and keep as much time as its price takes."""
        with suppress(Unsolved):
            found = solved(strategies, self.clock.part(0.0), None)
            if found is None:
                return
            before = self.clock.spent
            made = made_for(self.traced, strategies, found, self.clock)
            self.clock.keep(self.clock.spent - before)
            if self.room is None or made.peak_bytes <= self.room:
                self.least, self.best = made.peak_bytes, (strategies, found, made)

    def without_limits(self, limited: Strategies) -> Strategies | None:
        """Make the plan of the best choices without limits; return the choices to go on with.

        If it fits, no choices are better: these are gone on with where the program takes longer
        than they are priced, and none otherwise. If it does not, those with limits are.
        """
        if not problem_of(limited, self.clock).rows:
            return limited
        free = self.free.limited(None)
        with suppress(Unsolved):
            found = solved(free, self.clock.part(_FREE), self.progress)
            if found is None:
                return limited
            self.bound = found.bound
            self.known.append(found.choices)
            if limited.problem.excess(found.choices) > 0:
                return limited
            made = made_for(self.traced, free, found, self.clock)
            if self.room is not None and made.peak_bytes <= self.room:
                self.first, self.least, self.best = found, made.peak_bytes, (free, found, made)
                return free if not self.is_late and _learned(free, found, made) else None
        return limited

    def go_on(self, strategies: Strategies | None = None) -> None:
        """Make programs until none is faster by what is known, or the time ends.

        strategies: the first choices; by default all, with what is known.
        """
        strategies, fitting = strategies or self.limited(), 0
        for k in range(_MOST_PLANS):
            assert strategies is not None
            solution = self.solution(strategies, k)
            if solution is None and self.part < 1:
                self.part = 1.0
                if self.over is not None and not self.learn(*self.over):
                    return
                self.over = None
                strategies = self.limited()
                continue
            if solution is None or self.first is None or self.is_enough(solution):
                return
            found = replace(solution, bound=self.first.bound)
            made = made_for(self.traced, strategies, found, self.clock)
            if self.room is not None and made.peak_bytes > self.room:
                strategies = self.with_less(k, solution, made)
            else:
                self.least = min(made.peak_bytes, self.least)
                if self.best is None or made.time < self.best[2].time:
                    self.best = strategies, found, made
                fitting += 1
                is_last = self.is_late or fitting > LIMITS.priced_again
                if is_last or not _learned(strategies, solution, made):
                    return
            if strategies is None:
                return

    def with_less_room(self) -> None:
        """While the best plan is above the bound, make plans that hold less than all that fit.

        Prices are known better where others were chosen, so that these may be faster. Nothing is
        tried where a device has room for two of the best plan: there memory limits no choice.
        """
        if self.room is None or 2 * self.least < self.room:
            return
        for _ in range(_LESS_ROOMS):
            if self.best is None or self.free.graph.is_large or self.is_late:
                return
            if self.best[2].gap <= LIMITS.memory_gap or self.least == self.room:
                return
            self.room, self.part = int(self.least) - 1, 1.0
            before = self.least
            self.go_on()
            if self.least == before:  # no other program that fits
                return

    def solution(self, strategies: Strategies, k: int) -> Solution | None:
        """Return the best choices; None where there are none, or no more time."""
        # Where memory is scarce there may be more tries, which need some of the time.
        share = _MOST if problem_of(strategies, self.clock).rows else 1.0
        gap = LIMITS.gap if k and self.is_late else 0.0
        try:
            found = solved(
                *(strategies, self.clock.part(share), self.progress, gap), self.known[-_KNOWN:]
            )
        except Unsolved:
            if self.first is None and self.best is None:
                raise
            self.part, self.is_cut = 1.0, True
            return None
        if found is not None:
            self.known.append(found.choices)
        if found is not None and self.first is None:
            found = replace(found, bound=max(found.bound, min(self.bound, found.cost)))
            self.first = found
        return found

    def is_enough(self, solution: Solution) -> bool:
        """Return whether a solution is no faster than the plans that are known."""
        if self.best is not None and self.best[2].time <= solution.cost * (1 + LIMITS.accuracy):
            return True
        is_more = self.first is not solution or not self.clock.left
        return self.most <= solution.cost and is_more

    def with_less(self, k: int, solution: Solution, made: Plan) -> Strategies | None:
        """Return the choices with what a program holds that does not fit; None if that is known."""
        if self.free.graph.is_large and k < _BY_SHARE and self.clock.left:
            # Other choices have values of these kinds too.
            known = self.free.limited(self.room).room
            self.part = max(known.held(solution.choices)) / made.peak_bytes
            self.over = solution, made
            return self.limited()
        is_new = self.learn(solution, made)
        if k in _WITH_LESS:  # what is learned of some choices may be true of others too
            self.part *= _LESS_ROOM
        return self.limited() if self.clock.left and (is_new or self.part < 1) else None

    def learn(self, solution: Solution, made: Plan) -> bool:
        """Count what a program holds that does not fit; return whether anything is new."""
        known = self.free.limited(self.room).room
        held = zip(made.simulation.held_in, (n for _, n in made.simulation.held), strict=False)
        return known.learn(solution.choices, held)


def _learned(strategies: Strategies, solution: Solution, made: Plan) -> bool:
    """Count what the program of a solution takes beyond its exact price; return whether it does."""
    if made.time <= solution.cost * (1 + LIMITS.accuracy):
        return False
    seconds: dict[Path, float] = {}
    for path, each in zip(made.simulation.paths, made.simulation.equations, strict=True):
        seconds[path] = seconds.get(path, 0.0) + each.seconds
    more = missing(solution.choices, strategies.problem, by_equation(strategies, seconds))
    if more:
        strategies.count(more)
    return bool(more)
