"""`Search`: runs each method on the parts of a problem that it can solve, until a deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import fsum, inf
from time import monotonic

import numpy as np

from gridlayout.ops.solver.descent import Descent
from gridlayout.ops.solver.elimination import Exact
from gridlayout.ops.solver.integer import integer_program, program_size
from gridlayout.ops.solver.messages import Relaxation
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.multipliers import Multipliers
from gridlayout.ops.solver.neighbourhoods import improve
from gridlayout.ops.solver.part import ELIMINATION, TOLERANCE, Part
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.quick import quick
from gridlayout.ops.solver.terms import Expired, Infeasible

Progress = Callable[[float, float, float], None]

METHODS = ELIMINATION, INTEGER, LOCAL = ELIMINATION, "integer program", "local search"
MOST_SHARED = 3  # variables that share a fetch, where not all fetches can be eliminated
LARGEST_PROGRAM = 150_000  # unknowns of the largest integer program
LARGEST_LAST_PROGRAM = 500_000  # the same after a local search that ends before the deadline
MOST_SWEEPS = 1000  # of messages, forward and backward
LEAST_CLOSED = 1e-3  # fraction of the gap; messages end when STALL_SWEEPS sweeps close less
STALL_SWEEPS = 60
LEAST_CLOSER, CLOSER_SWEEPS = 0.05, 15  # the same once the gap is allowed, and a smaller one wanted
MOST_CHARGES = 40  # times that the multipliers of limits change
CHARGES_SHARE = 0.4  # of the remaining time, for that
MESSAGES_SHARE = 0.4  # of the remaining time, for messages
PROGRAM_SHARE = 0.6  # of the remaining time, for an integer program before a local search
SWEEPS_PER_DESCENT = 8  # sweeps between descents from a sweep's assignment
REPORT_SECONDS = 0.25  # seconds between reports of progress


class Search:
    """The state of one call of `solve`: the best assignment and the bound so far."""

    def __init__(
        self,
        problem: Problem,
        deadline: float,
        methods: tuple[str, ...],
        progress: Progress | None,
        gap: float = 0.0,
        more: Callable[[], Sequence[Sequence[int]]] = tuple,
        close: float = inf,
    ) -> None:
        self.gap, self.more = max(gap, TOLERANCE), cache(more)
        self.close = max(min(close, self.gap), TOLERANCE)
        self.problem, self.deadline, self.methods = problem, deadline, methods
        self.progress, self.began = progress, monotonic()
        self.reported_at, self.reported = -inf, (inf, 0.0)
        self.choices: tuple[int, ...] | None = None
        self.others: tuple[tuple[int, ...], ...] = ()  # the best ones before it
        self.cost, self.floor = inf, 0.0
        self.starts: list[tuple[int, ...]] = []
        self.model: Model | None = None
        self.parts: list[Part] = []

    @property
    def bound(self) -> float:
        """A proven lower bound of the cost of every feasible assignment."""
        if self.model is None:
            return min(self.problem.least, self.cost)
        found = fsum([*self.model.constants, *(part.bound for part in self.parts)])
        found = max(found, self.floor)
        return self.cost if self.cost <= found * (1 + TOLERANCE) else found

    @property
    def how(self) -> str:
        """The weakest method that was used; a part that none has solved was only searched."""
        hows = [x.how if x.is_solved or x.how != ELIMINATION else LOCAL for x in self.parts]
        start = LOCAL if self.model is None else ELIMINATION
        return max(hows, key=METHODS.index, default=start)

    def start(self, choices: Sequence[int]) -> None:
        """Add an assignment that the caller knows."""
        found = self.problem.checked(choices)
        self.starts.append(found)
        self._offer(found)

    def _offer(self, choices: tuple[int, ...]) -> None:
        if self.problem.excess(choices) > 0:
            return
        if (cost := self.problem.cost(choices)) < self.cost:
            self.others += () if self.choices is None else (self.choices,)
            self.choices, self.cost = choices, cost

    def _join(self) -> None:
        """Combine the parts' choices to an assignment, once all parts have some."""
        if self.model is not None and all(part.chosen is not None for part in self.parts):
            chosen = {v: c for part in self.parts for v, c in (part.chosen or {}).items()}
            found = self.model.recovered(chosen)
            self._offer(tuple(found[v] for v in range(len(self.problem.costs))))

    def report(self, improved: bool = True) -> None:
        """Combine the parts' choices if they improved, and report the progress to the caller."""
        if improved:
            self._join()
        now, known = monotonic(), (self.cost, self.bound)
        if self.progress is None or self.cost == inf or known == self.reported:
            return
        if now >= self.reported_at + REPORT_SECONDS:
            self.reported_at, self.reported = now, known
            self.progress(*known, now - self.began)

    def in_time(self) -> None:
        """Raise Expired after the deadline."""
        if monotonic() >= self.deadline:
            raise Expired

    def complete(self) -> None:
        """Combine the parts' choices without further search; `quick` fills in missing ones.

        The caller's further assignments are asked for if they were not yet, and beside them stand
        the quick ones where there are no parts yet. There may still be no assignment afterwards, if
        all are infeasible.
        """
        for start in self.more():
            self.start(start)
        if self.model is None:
            for state in quick(Model.of(self.problem)):
                self._offer(tuple(state[v] for v in range(len(self.problem.costs))))
            return
        for part in self.parts if self.choices is None else ():
            if part.chosen is None:
                part.how = LOCAL
                for state in quick(part.model):
                    part.offer(part.model.chosen(state))
        self._join()

    def run(self) -> None:
        """Reduce the problem, split it, and solve each part; raise Expired after the deadline."""
        model = Model.of(self.problem, self.in_time)
        self.model, self.parts = model, [Part(model, gap=self.gap)]
        (whole,) = self.parts
        is_narrow = ELIMINATION in self.methods and self._eliminate_as_it_is(whole)
        self.report()
        if whole.is_solved:
            return
        reduced = model.part(model.choices)
        reduce(reduced, self.in_time)
        self.parts = [Part(reduced.part(own), gap=self.gap) for own in reduced.components()]
        self.model, self.floor = reduced, whole.bound
        for part in self.parts:
            if is_narrow:
                part.starts += [*whole.starts, *([] if whole.chosen is None else [whole.chosen])]
            elif ELIMINATION in self.methods:
                self._eliminate(part)
        self.report()
        left = [part for part in self.parts if not part.is_solved]
        left.sort(key=lambda part: program_size(part.model))
        known = [*reduced.constants, *(part.bound for part in self.parts if part.is_solved)]
        for part in left:
            part.spare = self.gap * max(fsum(known), 0.0) / len(left)
        for start in self.more() if left else ():
            self.start(start)
        for part in left:
            self._descend(part)
        self.report()
        for part in left:
            if not part.is_solved:
                self._solve(part)
            self.report()

    def _solve(self, part: Part) -> None:
        """Try messages if a gap is allowed, then the integer program, then the local search."""
        is_small = program_size(part.model) <= LARGEST_PROGRAM
        passed = None
        if self.gap > TOLERANCE and LOCAL in self.methods and part.chosen is not None:
            passed = self._bound(part)  # often reaches the gap quickly
            if part.is_solved:
                return
        if INTEGER in self.methods and is_small:
            share = PROGRAM_SHARE if LOCAL in self.methods else 1.0
            self._program(part, part.model, share)
        if LOCAL in self.methods and not part.is_solved:
            part.how = LOCAL
            self._search(part, *(passed or self._bound(part)))
        if INTEGER in self.methods and part.chosen is None and not is_small:
            self._program(part, part.model, 1.0)

    def _eliminate_as_it_is(self, part: Part) -> bool:
        """Solve a part by elimination, with prices for its limits; return whether it is narrow."""
        free = part.model.part(part.model.choices, limited=False)
        if (exact := self._without_limits(part, free)) is None:
            return False
        is_linked = any(part.model.tables.values()) or part.model.shared
        if part.model.limits and is_linked:  # otherwise reductions leave little
            self._charge(part, exact)
        return True

    def _eliminate(self, part: Part) -> None:
        """Solve a part of a reduced model by elimination, or find a bound, and a start."""
        if self._eliminate_as_it_is(part):
            return
        free = part.model
        if free.limits:
            free = free.part(free.choices, limited=False)
            reduce(free, self.in_time)
            if self._without_limits(part, free) is not None:
                return
        # Without the fetches that most variables share, it is a bound, and a start.
        fewer = free.part(free.choices, limited=False, shared=MOST_SHARED)
        reduce(fewer, self.in_time)
        self._without_limits(part, fewer, free)

    def _without_limits(self, part: Part, free: Model, outer: Model | None = None) -> Exact | None:
        """Offer the best choices of a part's model without limits; None if tables are too large.

        outer: the reduced model of which it leaves out fetches.
        """
        if (exact := Exact.of(free, self.in_time)) is None:
            return None
        state, bound = exact.best()
        bound = fsum([bound, *free.constants, *([] if outer is None else outer.constants)])
        if bound == inf:
            raise Infeasible
        chosen = free.recovered(free.chosen(state))
        if outer is not None:
            chosen = outer.recovered(chosen)
        part.starts.append(chosen)
        part.offer(chosen)
        part.raise_bound(bound)
        return exact

    def _charge(self, part: Part, exact: Exact) -> None:
        """Raise the bound by charging for usages of limits; begin descents from what is best then.

        exact: the part's model without limits.
        """
        multipliers, descent = Multipliers(part.model), Descent(part.model, self.in_time)
        until = monotonic() + CHARGES_SHARE * (self.deadline - monotonic())
        state, bound = part.model.state(part.starts[-1]), part.bound
        for _ in range(MOST_CHARGES):
            if part.offer(part.model.chosen(descent.run(state, pairs=False))):
                self.report()
            if part.is_solved or monotonic() > until:
                return
            most = part.cost if part.cost < inf else 2 * bound
            multipliers.update(state, bound, most - bound)
            state, cost = exact.best(multipliers.charges(multipliers.now))
            bound = fsum([cost, *(-paid for paid in multipliers.paid)])
            part.raise_bound(bound)
            self.report(False)

    def _program(self, part: Part, model: Model, share: float) -> None:
        """Solve a model of the part by an integer program, in a share of the remaining time.

        The model may lack choices that are only in assignments worse than the best one known.
        """
        base = fsum(model.constants)
        until = monotonic() + share * (self.deadline - monotonic())
        most = max(part.cost - base, 0.0)
        spare = part.spare / most if 0 < most < inf else 0.0
        gap = (self.gap + spare) / (1 + self.gap)  # of the cost, instead of the bound
        state, bound = integer_program(
            *(model, most, until),
            waiting=partial(self.report, False),
            gap=gap,
            each_step=self.in_time,
            late=(self.deadline - until) / 2,
        )
        is_better = state is not None and part.offer(model.recovered(model.chosen(state)))
        part.raise_bound(fsum([bound, base]))
        if is_better or part.is_solved:
            part.how = INTEGER

    def _descend(self, part: Part) -> None:
        """Make first assignments: from the caller's, and from each variable's least cost."""
        part.how = LOCAL
        descent = Descent(part.model, self.in_time)
        known = [*part.starts, *(dict(enumerate(start)) for start in self.starts)]
        firsts = [part.model.state(start) for start in known]
        firsts.append({v: int(np.argmin(own)) for v, own in part.model.costs.items()})
        for first in firsts:
            try:
                part.offer(part.model.chosen(descent.run(first)))
            except Expired:
                part.offer(part.model.chosen(descent.state))
                raise

    def _search(self, part: Part, relaxation: Relaxation, possible: dict[int, np.ndarray]) -> None:
        """Improve the assignment of a part until the deadline, after messages were passed."""

        def narrow() -> None:
            for v, kept in relaxation.possible(*relaxation.bound(), part.cost).items():
                possible[v] &= kept

        if part.is_solved or part.chosen is None:
            return
        narrow()
        if INTEGER in self.methods and program_size(part.model) > LARGEST_PROGRAM:
            self._program_narrowed(part, possible, LARGEST_PROGRAM, PROGRAM_SHARE)
        if part.is_solved:
            return
        model = part.model.part(part.model.choices)
        for v, kept in possible.items():
            model.keep(v, kept)

        def better(state: dict[int, int]) -> bool:
            is_better = part.offer(model.chosen(state))
            self.report(is_better)
            return is_better

        charges = relaxation.multipliers.charges(relaxation.multipliers.best[1])
        charges = {v: charged[possible[v]] for v, charged in charges.items()}
        state = model.state(part.chosen)
        waiting = partial(self.report, False)
        improve(model, state, charges, self.deadline, better, waiting, self.in_time)
        if monotonic() >= self.deadline or part.is_solved:
            return
        narrow()
        if INTEGER in self.methods:
            self._program_narrowed(part, possible, LARGEST_LAST_PROGRAM, 1.0)

    def _program_narrowed(
        self, part: Part, possible: dict[int, np.ndarray], unknowns: int, share: float
    ) -> None:
        """Run an integer program over the choices that may still improve, if it is small enough."""
        model = part.model.part(part.model.choices)
        for v, kept in possible.items():
            model.keep(v, kept)
        try:
            reduce(model, self.in_time)
        except Infeasible:  # nothing is better than the assignment that is known
            part.raise_bound(part.cost)
        else:
            if program_size(model) <= unknowns:
                self._program(part, model, share)

    def _bound(self, part: Part) -> tuple[Relaxation, dict[int, np.ndarray]]:
        """Pass messages; return which choices of the part may be in a better assignment."""
        relaxation = Relaxation(part.model, part.cost, self.in_time)
        descent = Descent(part.model, self.in_time)
        until = monotonic() + MESSAGES_SHARE * (self.deadline - monotonic())
        kept = {v: np.ones(len(own), bool) for v, own in part.model.costs.items()}
        bounds: list[float] = []
        for k in range(MOST_SWEEPS):
            relaxation.sweep(True)
            state = relaxation.sweep(False)
            relaxation.share()
            bound, more = relaxation.bound()
            part.raise_bound(bound)
            if k % SWEEPS_PER_DESCENT == 0 and part.offer(
                part.model.chosen(descent.run(state, pairs=False))
            ):
                self.report()
            for v, each in relaxation.possible(bound, more, part.cost).items():
                kept[v] &= each
            self.report(False)
            bounds.append(part.bound)
            if monotonic() > until or self._is_closed(part, bounds, relaxation.ceiling):
                break
            most = min(part.cost, relaxation.ceiling)
            relaxation.update_multipliers(state, bound, most - bound)
        return relaxation, kept

    def _is_closed(self, part: Part, bounds: Sequence[float], ceiling: float) -> bool:
        """Return whether more messages are not worth their time; bounds: after each sweep."""
        if part.is_within(self.close):
            return True
        rough = STALL_SWEEPS, LEAST_CLOSED
        sweeps, least = (CLOSER_SWEEPS, LEAST_CLOSER) if part.is_solved else rough
        left = min(part.cost, ceiling) - bounds[-1]
        return len(bounds) > sweeps and bounds[-1] - bounds[-sweeps] <= least * left
