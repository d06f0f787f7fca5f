"""`improve`: a better assignment of a model by solving parts of it while the rest stays as it is.

A part is many variables that links join to trees, or a ball of few: a variable and those next to
it, or a stretch of the problem's order, whose variables share limits. It is reduced, and what is
left of it solved by elimination or by an integer program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import fsum
from time import monotonic

from gridlayout.ops.solver.elimination import eliminate, order
from gridlayout.ops.solver.integer import integer_program
from gridlayout.ops.solver.model import Infeasible, Model
from gridlayout.ops.solver.presolve import reduce

SMALLEST, LARGEST = 2_000, 64_000  # unknowns of a ball or a stretch
FEWEST = 8  # variables of the smallest ones, about
FORESTS = 8
NODES = 20  # of the search of an integer program


def improve(
    model: Model,
    state: dict[int, int],
    deadline: float,
    better: Callable[[dict[int, int]], bool],
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Solve parts, larger ones where the smaller save nothing more, until the deadline.

    better: takes an assignment, whose numbers are indices; whether it is better than those before.
    """
    weights = {
        v: len(own) + sum(t.size for t in model.tables[v].values()) // 2
        for v, own in model.choices.items()
    }
    whole = sum(weights.values())
    target = max(SMALLEST, FEWEST * whole // max(len(weights), 1))
    turn = 0
    while target <= LARGEST:
        saved = False
        for free in parts(model, weights, target, turn):
            if monotonic() >= deadline:
                return
            waiting()
            found = _solved(model, free, state, deadline, waiting)
            if found is not None and better(found):
                state, saved = found, True
        turn += 1
        if not saved:
            if target > whole:
                return
            target *= 2


def parts(
    model: Model, weights: dict[int, int], target: int, turn: int
) -> Iterator[set[int]]:
    """Sets of variables: forests, balls, and where there are limits stretches of the order.

    Balls and stretches have so much weight, which is unknowns. turn: counts the calls, for others.
    """
    every = list(model.choices)
    for k in range(FORESTS):
        at = (k * len(every) // FORESTS + turn) % len(every)
        turned = every[at:] + every[:at]
        yield _forest(model, turned if k % 2 == 0 else turned[::-1])
    left = dict.fromkeys(every)
    while left:
        ball = _ball(model, next(iter(left)), weights, target)
        for v in ball:
            left.pop(v, None)
        yield set(ball)
    first = 0
    while model.limits and first < len(every):
        last, total = first, 0
        while last < len(every) and total < target:
            total += weights[every[last]]
            last += 1
        yield set(every[first:last])
        first = len(every) if last == len(every) else max(first + 1, (first + last) // 2)


def _forest(model: Model, ordered: list[int]) -> set[int]:
    """Variables without limits that links join to trees; as many as come first in an order."""
    root: dict[int, int] = {}

    def top(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for v in ordered:
        if model.limits_of[v]:
            continue
        tops = [top(w) for w in model.links(v) if w in root]
        if len(set(tops)) == len(tops):
            root[v] = v
            for each in tops:
                root[each] = v
    return set(root)


def _ball(model: Model, first: int, weights: dict[int, int], target: int) -> list[int]:
    """A variable and those nearest to it by links, up to a sum of weights."""
    found, seen, total = [first], {first}, 0
    for at, v in enumerate(found):
        total += weights[v]
        if total >= target:
            return found[: at + 1]
        for w in model.links(v):
            if w not in seen:
                seen.add(w)
                found.append(w)
    return found


def _solved(
    model: Model,
    free: set[int],
    state: dict[int, int],
    deadline: float,
    waiting: Callable[[], None],
) -> dict[int, int] | None:
    """The assignment with the best choices of some variables; None where nothing is saved."""
    made = model.around(free, state)
    most = made.cost(made.state(model.chosen(state)))
    try:
        reduce(made)
        most -= fsum(made.constants)
        if not made.limits and (ordered := order(made)) is not None:
            found, _ = eliminate(made, ordered)
        else:
            best, _ = integer_program(made, max(most, 0.0), deadline, NODES, waiting)
            if best is None:
                return None
            found = best
    except Infeasible:  # by rounding only
        return None
    chosen = made.recovered(made.chosen(found))
    return {**state, **model.state({**model.chosen(state), **chosen})}
