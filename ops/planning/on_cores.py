"""`on_cores`: the search for a plan of cores, whose values are in L1 or in the DRAM behind them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.solved import made_for, problem_of, solved
from gridlayout.ops.planning.spaces import NoRoom, Spaces, room_in_l1
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.solve import Solution, Unsolved
from gridlayout.ops.solver.terms import Expired
from gridlayout.sharding.limits import LIMITS

_MOST_TRIES = 12  # of less and less L1, because gaps between values need some
_LESS = tuple(2**k for k in range(20, 13, -1))  # bytes of L1 that are tried, if it is larger
_WORSE = 1.1  # once choices take so many times the best plan's time, no less room is tried
_SOON, _TIMES = 2.0, 4  # seconds to try less room: at least, and per second spent before
_STORING = 1 / 4  # the share of the time to find which values of a program are in DRAM
_FIRST = 2 / 3  # the share of the time for divisions into at most as many parts as elements


def on_cores(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan:
    """Return the best plan of two searches, one of which allows more parts of a dim than elements.

    With idle cores, one core may have fewer tiles. But relayouts of such divisions can cost more
    than their bytes suggest, so the plans of both searches are built and priced.
    """
    free = clock.through(lambda: traced.strategies(trips))
    more = clock.through(lambda: traced.strategies(trips, idle=True))
    has_more = more.units.idle and _choices(more) != _choices(free)
    found = _in_spaces(traced, free, clock.part(_FIRST if has_more else 1.0), progress)
    if not has_more:
        return found
    other = None
    if clock.left:
        try:
            other = _in_spaces(traced, more, clock.part(1.0), progress)
        except NoRoom:
            return found
        except Unsolved:
            pass
    # For divisions with idle cores, a bound is known without a search.
    bound = problem_of(more, clock).least if other is None else other.bound
    best = found if other is None or found.time <= other.time else other
    return replace(best, bound=min(found.bound, bound))


def _larger(strategies: Strategies, room: int) -> frozenset[int]:
    """Return the values that nodes make and that do not fit L1, however they are divided."""
    graph, found = strategies.graph, set[int]()
    for v in graph.makers:
        source = strategies.source(v)
        if source is not None and (v not in graph.free or v in graph.outs):
            least = min(strategies.ways.held(v, x) for x in {*strategies.held(*source)})
            found |= {v} if least > room else set()
    return frozenset(found)


def _choices(strategies: Strategies) -> int:
    return sum(len(variable.choices) for variable in strategies.variables)


def _in_spaces(traced: Traced, free: Strategies, clock: Clock, progress: Any) -> Plan:
    """Return the best plan whose values fit L1, or are read from DRAM.

    The best choices for which the operands in L1 fit give the bound: all other values may be in
    DRAM. If more has to be in DRAM, there are two ways: the values that do not fit are placed
    there, or the solver finds other divisions, and operands to place in DRAM. While the best plan
    is above the bound, plans that hold less are tried too: they may be faster, because the solver's
    estimates of relayouts differ a little from the plan's.

    Raises NoRoom where no plan fits, and Unsolved where none that fits is known in time.
    """
    room, every = room_in_l1(traced.device.machine), frozenset(free.graph.makers)
    far = _larger(free, room)
    if traced.space == "dram":
        outs = (v for v in free.graph.outs if v is not None and free.graph.shapes[v])
        far |= {v for v in outs if v >= len(traced.specs)}
    if far:
        free = free.limited(None, far)
    operands = free.limited(room, far, uncounted=every)
    first = solved(operands, clock.part(1 / 3), progress, LIMITS.memory_gap)
    if first is None:  # the error says which operands do not fit
        first = solved(free, clock.part(1 / 3), progress)
        assert first is not None
    tries = _Tries(traced, free, first, clock, progress)
    tries.add(free, first)
    in_dram = far | {k for k, place in enumerate(free.places(first.choices)) if place.in_dram}
    if clock.left and not (tries.made and tries.made[0].simulation.dram <= in_dram):
        far = tries.with_less(far)
    tries.go_on(far)
    if tries.best is None and tries.is_late:
        tries.at_once()
    return tries.result


@dataclass
class _Tries:
    """The plans of cores that were built while there was time, and the errors of others.

    first: the best choices for which operands fit L1. is_late: whether the time ended a search.
    """

    traced: Traced
    free: Strategies
    first: Solution
    clock: Clock
    progress: Any
    is_late: bool = False
    made: list[Plan] = field(default_factory=list)
    refused: list[NoRoom] = field(default_factory=list)

    @property
    def best(self) -> Plan | None:
        """The fastest plan, the first among equals."""
        return min(self.made, key=lambda each: each.time, default=None)

    @property
    def result(self) -> Plan:
        """The best plan; raises the error that says why there is none."""
        if self.best is not None:
            return self.best
        if self.refused and not self.is_late:
            raise self.refused[0]
        raise Unsolved("no plan fits so far")

    @property
    def room(self) -> int:
        """The bytes of L1 for values."""
        return room_in_l1(self.traced.device.machine)

    def with_less(self, far: frozenset[int]) -> frozenset[int]:
        """Build plans where L1 is too small for the first one; return the values in DRAM then."""
        self.search(self.room, far, self.clock.part(1 / 2))
        with suppress(NoRoom):
            spaces = _spaces(self.free, self.first, self.clock.part(_STORING))
            more = far | {v for v in spaces.dram if v >= len(self.traced.specs)}
            if more != far:
                self.search(self.room, more, self.clock)
                return more
        return far

    def go_on(self, far: frozenset[int]) -> None:
        """Build a plan if there is none yet; while the best is above the bound, try less room.

        The sizes in `_LESS` do not depend on the room there is, so that more room is not slower.
        """
        every = frozenset(self.free.graph.makers)
        for k in range(_MOST_TRIES):
            if self.best is not None:
                break
            # Gaps between values may waste as much.
            self.search(int(0.9**k * self.room), every, self.clock)
        spent, peaks = self.clock.seconds - self.clock.left, {x.peak_bytes - 1 for x in self.made}
        clock = Clock(min(max(_TIMES * spent, _SOON), self.clock.left), self.clock.root)
        for less in sorted({*peaks, *_LESS}, reverse=True):
            best = self.best
            if (
                best is None
                or best.time <= self.first.bound * (1 + LIMITS.memory_gap)
                or not clock.left
            ):
                break
            # Even less room gives nothing better.
            if 0 < less < self.room and self.search(less, far, clock) > _WORSE * best.time:
                break

    def search(self, room: int, far: frozenset[int], clock: Clock) -> float:
        """Build the plan of the best choices found in time; return the solver's seconds for them.

        room: bytes of L1. far: values in DRAM. Returns inf where there are no choices.
        """
        strategies = self.free.limited(room, far, each_step=clock.check)
        try:
            clock.check()
            solution = solved(strategies, clock, self.progress, LIMITS.memory_gap)
        except (Expired, Unsolved):
            self.is_late = True
            return inf
        if solution is None:
            return inf
        if self.clock.left or self.best is None or solution.cost < self.best.time:
            self.add(strategies, solution)
        return solution.cost

    def add(self, strategies: Strategies, solution: Solution) -> None:
        """Build the plan of some choices, unless L1 is too small for it."""
        found = replace(solution, bound=self.first.bound)
        try:
            clock = self.clock.part(_STORING)
            self.made.append(made_for(self.traced, strategies, found, clock))
        except NoRoom as error:
            self.refused.append(error)

    def at_once(self) -> None:
        """Build the plan of the first choices with arguments in DRAM: as few as needed, or all.

        All are needed where results that are relaid out take the room.
        """
        operands = frozenset(range(len(self.traced.specs)))
        with suppress(NoRoom):
            far = _spaces(self.free, self.first, self.clock).dram & operands
            self.add(self.free, _spilled(self.free, self.first, far))
        if self.best is None:
            self.add(self.free, _spilled(self.free, self.first, operands))


def _spaces(free: Strategies, found: Solution, clock: Clock) -> Spaces:
    """Return where values in these divisions are placed; arguments may move to DRAM if allowed."""
    places, choices = free.places(found.choices), free.choices(found.choices)
    return clock.through(lambda: Spaces.of(free, places, choices, fixed=False, clock=clock))


def _spilled(free: Strategies, found: Solution, operands: frozenset[int]) -> Solution:
    """Return the same choices, with the given arguments in DRAM where that is allowed."""
    choices = list(found.choices)
    for v in sorted(operands):
        at = free.operand(v)
        places = free.variables[at].choices
        division = free.units.among_chips(places[choices[at]].division)
        far = [k for k, place in enumerate(places) if place.in_dram]
        choices[at] = next((k for k in far if places[k].division == division), choices[at])
    return replace(found, choices=tuple(choices))
