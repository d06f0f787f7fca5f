"""`best_plan`: the best plan that is found before a time limit, or an interrupt."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from gridlayout.ops.choose.starts import starts
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.priced import default_plan, made_plan
from gridlayout.ops.planning.spaces import NoRoom, Spaces, room_in_l1
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.solve import Solution, Unsolved, solve
from gridlayout.ops.solver.terms import Expired, no_step
from gridlayout.sharding.limits import LIMITS

_MOST_PLANS = 40  # that are made on devices, with all that is known of what programs hold
_MOST_TRIES = 12  # of less and less L1, because gaps between values need some
_WITH_LESS = range(5, 12)  # the tries after which there is less room
_LESS_ROOM = 0.93  # times as much as before
_MOST = 0.4  # the share of the remaining time for one try
_LESS = tuple(2**k for k in range(20, 13, -1))  # bytes of L1 that are tried, if it is larger
_WORSE = 1.1  # once choices take so many times the best plan's time, no less room is tried
_SOON, _TIMES = 2.0, 4  # seconds to try less room: at least, and per second spent before
_QUICK = 0.02  # the share of all time in which a problem is solved again
_SAME = 1e-9  # the share by which costs differ because sums are rounded
_FIRST = 2 / 3  # the share of the time for divisions into at most as many parts as elements


def best_plan(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """Return the best plan found in time; None if no plan fits the memory.

    Raises Unsolved if no plan that fits is known in the end. Raises KeyboardInterrupt at a second
    interrupt, or at a first one if no plan is known by then.
    """
    search = _on_cores if traced.device.machine.has_cores else _on_devices
    clock = Clock(seconds)
    try:
        return clock.through(lambda: search(traced, trips, clock, progress))
    except Unsolved as error:
        if clock.interrupted:
            raise KeyboardInterrupt from error
        raise Unsolved(
            f"no plan that fits the memory was found in {seconds:g} seconds: give more, seconds=, "
            "or plan for more devices, or for devices with more memory"
        ) from error


# -- devices ---------------------------------------------------------------------------------------


def _on_devices(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan | None:
    """Return a plan that fits a device's memory.

    It never takes longer than the default plan, which is the result if no other is found.
    """
    known = clock.through(lambda: _Known.of(traced, trips))
    clock.start()
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

    Arrays that are laid out keep their layouts unless the gain exceeds the figures' accuracy.
    """

    plan: Plan | None
    seconds: float = inf

    @staticmethod
    def of(traced: Traced, trips: int | None) -> _Known:
        """Return the faster default: with arguments as `gl.put` lays them out, or as they are."""
        machine, known = traced.device.machine, []
        for keeps in (True, False) if any(leaf.is_laid_out for leaf in traced.leaves) else (False,):
            plan = default_plan(traced, trips, keeps)
            if machine.device_capacity is None or plan.peak_bytes <= machine.device_capacity:
                stays = LIMITS.relayout_gain if keeps and machine.figures else 0.0
                known.append(_Known(plan, plan.time * (1 - stays)))
        return min(known, key=lambda each: each.seconds, default=_Known(None))

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
        share = _MOST if _problem(strategies, clock).rows else 1.0
        try:
            solution = _solved(strategies, clock.part(share), progress, LIMITS.gap if k else 0.0)
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
        made = _made(traced, strategies, replace(solution, bound=first.bound), clock)
        if room is None or made.peak_bytes <= room:
            return known.with_bound(first.bound) if known.seconds < made.time else made
        held = zip(made.simulation.held_in, (n for _, n in made.simulation.held), strict=False)
        is_new = free.limited(room).room.learn(solution.choices, held)
        if k in _WITH_LESS:  # what is learned of some choices may be true of others too
            part *= _LESS_ROOM
        if not clock.left or not (is_new or part < 1):
            break
    if known.plan is not None and first is not None:
        return known.with_bound(first.bound)
    if not clock.left:
        raise Unsolved("no plan fits so far")
    return None


def _solved(
    strategies: Strategies, clock: Clock, progress: Any, gap: float = 0.0
) -> Solution | None:
    """Return the best choices found in time; None where nothing fits.

    The prices of moves are estimates at first. Where the exact ones of the moves in a solution
    differ, the problem is solved again with these, if that is quick. gap: as in `solve`.
    `progress` is not called after an interrupt, because it may be what was interrupted.
    """
    if len(strategies.graph.nodes) > LIMITS.separate_equations:
        gap = LIMITS.gap
    problem, begun = _problem(strategies, clock), monotonic()
    known = [] if problem.rows else clock.through(lambda: starts(strategies, Model.of(problem)))
    given = [[start[v] for v in range(len(problem.costs))] for start in known]
    priced = dict[tuple[int, ...], float]()
    while True:
        shown = None if clock.interrupted else progress
        found = solve(problem, clock.left, given, shown, gap=gap, on_interrupt=clock.interrupt)
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


def _problem(strategies: Strategies, clock: Clock) -> Problem:
    return clock.through(lambda: strategies.problem)


def _made(traced: Traced, strategies: Strategies, found: Solution, clock: Clock) -> Plan:
    return clock.through(lambda: made_plan(traced, strategies, found, clock))


# -- cores -----------------------------------------------------------------------------------------


def _on_cores(traced: Traced, trips: int | None, clock: Clock, progress: Any) -> Plan:
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
    bound = _problem(more, clock).least if other is None else other.bound
    best = found if other is None or found.time <= other.time else other
    return replace(best, bound=min(found.bound, bound))


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
    far = frozenset[int]()
    if traced.space == "dram":
        outs = (v for v in free.graph.outs if v is not None and free.graph.shapes[v])
        far = frozenset(v for v in outs if v >= len(traced.specs))
        free = free.limited(None, far)
    room, every = room_in_l1(traced.device.machine), _every(free)
    operands = free.limited(room, far, uncounted=every)
    first = _solved(operands, clock.part(1 / 3), progress, LIMITS.memory_gap)
    if first is None:  # the error says which operands do not fit
        first = _solved(free, clock.part(1 / 3), progress)
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
            spaces = _spaces(self.free, self.first, self.clock)
            more = far | {v for v in spaces.dram if v >= len(self.traced.specs)}
            if more != far:
                self.search(self.room, more, self.clock)
                return more
        return far

    def go_on(self, far: frozenset[int]) -> None:
        """Build a plan if there is none yet; while the best is above the bound, try less room.

        The sizes in `_LESS` do not depend on the room there is, so that more room is not slower.
        """
        every = _every(self.free)
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
            solution = _solved(strategies, clock, self.progress, LIMITS.memory_gap)
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
            self.made.append(_made(self.traced, strategies, found, self.clock))
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


def _every(free: Strategies) -> frozenset[int]:
    """Return the values that nodes produce."""
    return frozenset(v for node in free.graph.nodes for v in node.outs)


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
