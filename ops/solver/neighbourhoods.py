"""`improve`: improves an assignment by solving parts of a model while the rest stays fixed.

A part is a ball (a variable and those nearest to it) or a stretch of consecutive variables, which
may share limits. The part is reduced, and then solved by elimination or by an integer program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import fsum
from time import monotonic

import numpy as np

from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.forests import along_forests, around
from gridlayout.ops.solver.integer import integer_program
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.terms import Infeasible, no_step

SMALLEST, LARGEST = 2_000, 128_000  # unknowns of a ball or a stretch
FEWEST = 16  # approximate number of variables of the smallest parts
CLOSE = 1e-7  # relative distance at which a cost counts as equal to its bound
NODES, MOST_NODES = 20, 2_000  # of an integer program's search, at first and at most


def improve(
    model: Model,
    state: dict[int, int],
    charges: Mapping[int, np.ndarray],
    deadline: float,
    better: Callable[[dict[int, int]], bool],
    waiting: Callable[[], None] = no_step,
    each_step: Callable[[], None] = no_step,
) -> None:
    """Solve forests, then parts, and larger parts once the smaller ones save nothing more.

    It ends when nothing is saved any more, or at the deadline. charges: the cost of each choice's
    usage of limits, for forests. better: takes an assignment of indices and returns whether it is
    better than all before. waiting: called now and then; each_step: called more often.
    """
    weights = {
        v: len(own) + sum(t.size for t in model.tables[v].values()) // 2
        for v, own in model.choices.items()
    }
    whole = sum(weights.values())
    fewest = min(max(SMALLEST, FEWEST * whole // max(len(weights), 1)), LARGEST)
    target, nodes, saved, was_cut = fewest, NODES, True, False
    while nodes <= MOST_NODES:
        if saved:  # true at first
            state = along_forests(model, state, charges, deadline, better, each_step)
        saved = False
        for free in parts(model, weights, target):
            if monotonic() >= deadline:
                return
            waiting()
            found, is_best = _solved(model, free, state, deadline, nodes, waiting, each_step)
            was_cut |= not is_best
            if found is not None and better(found):
                state, saved = found, True
        if not saved and target <= min(LARGEST, whole):
            target *= 2
        elif not saved:
            if not was_cut:
                return
            target, nodes, was_cut = fewest, 4 * nodes, False


def parts(model: Model, weights: dict[int, int], target: int) -> Iterator[set[int]]:
    """Yield balls of variables of about weight `target`, and stretches if there are limits."""
    every = list(model.choices)
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


def _ball(model: Model, first: int, weights: dict[int, int], target: int) -> list[int]:
    """Return a variable and those nearest to it by links, up to a sum of weights."""
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
    nodes: int,
    waiting: Callable[[], None],
    each_step: Callable[[], None],
) -> tuple[dict[int, int] | None, bool]:
    """Return the assignment with the best choices found for `free`, and whether these are optimal.

    None where nothing is saved.
    """
    made = around(model, free, state)
    most = made.cost(made.state(model.chosen(state)))
    is_best = True
    try:
        reduce(made, each_step)
        exact = None if made.limits else eliminated(made, each_step)
        if exact is not None:
            found = exact[0]
        else:
            most = max(most - fsum(made.constants), 0.0)
            best, bound = integer_program(made, most, deadline, nodes, waiting, each_step=each_step)
            is_best = bound >= most * (1 - CLOSE)
            if best is None:
                return None, is_best
            is_best = is_best or bound >= made.cost(best) * (1 - CLOSE)
            found = best
    except Infeasible:  # only by rounding
        return None, True
    chosen = made.recovered(made.chosen(found))
    after = {**state, **model.state({**model.chosen(state), **chosen})}
    return (after if after != state else None), is_best
