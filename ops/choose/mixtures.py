"""`mixtures`, `starts`: assignments in which each unit of the mesh divides one kind of dims.

Experts divide large models like that: some units along the batch, others along heads and hidden
units, or along the sequence or the experts. Here kinds follow from the graph. Dims that operations
have as one factor are one class. Classes of which no operation has two, such as heads and hidden
units, are one kind, as one unit can divide all of them. Where an operation or an operand can't be
divided along the kind of a unit, as weights along the batch, it may divide any dim. A unit may also
divide nothing, which is best where messages take longer than what they save. So data
parallelism, with weights whole or divided (ZeRO, Rajbhandari et al. 2020, section 5), and tensor
parallelism, with the rest divided along the sequence (Megatron-LM, Korthikanti et al. 2022, section
4.2), are in the mixtures of one kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.variables import Place, Variables
from gridlayout.ops.decisions.factors import Factors
from gridlayout.ops.graph.node import Node
from gridlayout.ops.solver.descent import Descent
from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.problem import Problem
from gridlayout.ops.solver.quick import quick
from gridlayout.ops.solver.shares import SMALL, Shares
from gridlayout.ops.solver.terms import Expired, Infeasible, no_step

KINDS, MIXED = 6, 4  # of most time: that all units divide, and that are mixed by two
STARTS = 2  # kinds that `starts` mixes
BEST = 6  # that are kept
PRICES = 0.25, 1.0, 4.0, 16.0  # of all memory, as shares of the time without limits
NOTHING = 0
Dim = tuple[int, int]  # of a value
Order = tuple[int, ...]  # the kinds that a unit divides, the first that is possible


def starts(variables: Variables, model: Model) -> list[dict[int, int]]:
    """Return some assignments of the model of a problem, by variable; at least one.

    A search among all choices begins from them. They assume that the latencies which joined
    collectives share are paid anyway: otherwise none would join a collective that no other one has
    yet.
    """
    free = model.without_fetches_from(len(variables.variables))
    parts, units = _parts(variables), len(variables.units.axes)

    def solved(*orders: Order) -> dict[int, int] | None:
        return Shares(free.among([_mask(own, orders) for own in parts]), SMALL).found

    found = {kind: solved(*[(kind,)] * units) for kind in (NOTHING, *_numbers(parts))}
    made = {kind: each for kind, each in found.items() if each is not None}
    few = sorted(made, key=lambda kind: (free.cost(made[kind]), kind))[:STARTS]
    mixed = (
        solved(*[(first,)] * count, *[(second,)] * (units - count))
        for first, second in permutations(few, 2)
        for count in range(1, units)
    )
    first = {v: int(np.argmin(own)) for v, own in model.costs.items()}
    return [*made.values(), *(each for each in mixed if each is not None)] or [first]


def mixtures(
    variables: Variables, problem: Problem, each_step: Callable[[], None] = no_step
) -> list[list[int]]:
    """Return the best assignments of mixtures, those that fit first; none if there are no kinds.

    each_step: called now and then; if it raises Expired, the result is what is known. That is at
    least two mixtures: nothing divided, and the first kind, with less memory where it does not fit.
    """
    found: dict[tuple[int, ...], tuple[bool, float]] = {}

    def step() -> None:
        fits = min(found.values(), default=(True, inf)) < (False, inf)
        if len(found) > 1 + len(PRICES) or (len(found) > 1 and fits):
            each_step()

    with suppress(Expired):
        for made in _made(variables, problem, step):
            found[made] = problem.excess(made) > 0, problem.cost(made)
    return [[*each] for each in sorted(found, key=lambda each: (*found[each], each))[:BEST]]


def _made(
    variables: Variables, problem: Problem, each_step: Callable[[], None]
) -> Iterator[tuple[int, ...]]:
    """Yield assignments: nothing divided, each kind with each other one behind it, two kinds."""
    free = Model.of(problem, each_step).without_fetches_from(len(variables.variables))
    parts, memory, units = _parts(variables), _shares(problem), len(variables.units.axes)
    kinds = _numbers(parts)

    def solved(orders: Sequence[Order]) -> Iterator[tuple[int, ...]]:
        masks = [_mask(own, orders) for own in parts]
        cost = 0.0
        for price in (0.0, *(PRICES if memory else ())):
            made = _best(free.among(masks), memory, price * cost, each_step)
            if made is None:
                return
            state = tuple(made.get(v, 0) for v in range(len(problem.costs)))
            yield state
            cost = cost or problem.cost(state)
            if problem.excess(state) <= 0 or cost == inf:
                break

    def seconds(state: tuple[int, ...]) -> tuple[bool, float]:
        return problem.excess(state) > 0, problem.cost(state)

    best: dict[int, tuple[tuple[bool, float], Order]] = {}
    for state in islice(solved([(NOTHING,)] * units), 1):
        yield state
        best[NOTHING] = seconds(state), (NOTHING,)
    for first in kinds:
        for order in ((first,), *((first, other) for other in (NOTHING, *kinds) if other != first)):
            each_step()
            states = [*solved([order] * units)]
            yield from states
            for known in ((seconds(state), order) for state in states):
                best[first] = min(best.get(first, known), known)
    few = sorted(sorted(best, key=best.__getitem__)[:MIXED])
    for first, second in permutations(few, 2):
        for count in range(1, units):
            each_step()
            yield from solved([best[first][1]] * count + [best[second][1]] * (units - count))


def _best(
    model: Model,
    memory: dict[int, NDArray[np.float64]],
    price: float,
    each_step: Callable[[], None],
) -> dict[int, int] | None:
    """Return good choices of a model without limits, where all memory has a price; or None.

    None where no choices are possible together.
    """
    for v, own in memory.items() if price else ():
        model.costs[v] = model.costs[v] + price * own[model.choices[v]]
    try:
        reduce(model, each_step)
    except Infeasible:
        return None
    exact = eliminated(model, each_step, *SMALL)
    state = Descent(model, each_step).run(next(quick(model))) if exact is None else exact[0]
    return model.recovered(model.chosen(state))


def _mask(own: NDArray[np.int64], orders: Sequence[Order]) -> NDArray[np.bool_]:
    """Return which choices divide each unit along the first kind of its order that is possible."""
    mask = np.ones(len(own), bool)
    for u, order in enumerate(orders):
        along = (mask & (own[:, u] == kind) for kind in order)
        mask = next((each for each in along if each.any()), mask)
    return mask


def _numbers(parts: Sequence[NDArray[np.int64]]) -> list[int]:
    """Return the kinds that choices divide, those of the most time first."""
    return sorted({*np.concatenate([own.ravel() for own in parts]).tolist()} - {NOTHING})[:KINDS]


def _shares(problem: Problem) -> dict[int, NDArray[np.float64]]:
    """Return the share of all memory that choices use, of the row where that is the most."""
    found: dict[int, NDArray[np.float64]] = {}
    for row in problem.rows:
        for v, usage in row.usages.items():
            own = usage / max(row.limit, 1.0)
            found[v] = np.maximum(found[v], own) if v in found else own
    return found


# -- kinds of dims ---------------------------------------------------------------------------------


def _parts(variables: Variables) -> list[NDArray[np.int64]]:
    """Return the kind that each choice of each variable divides, [choice, unit]; 0 is nothing.

    Dims of no kind are one more kind. A sum that is scattered counts as it is computed.
    """
    kinds, graph = _kinds(variables), variables.graph
    other, known = KINDS + 1, dict[Any, NDArray[np.int64]]()
    found = []
    for variable in variables.variables:
        first = variable.members[0]
        node = None if variable.is_operand else graph.nodes[first]
        values = [first] if node is None else [*node.ins, *node.outs[:1]]
        own = [
            [] if v is None else [kinds.get((v, d), other) for d in range(len(graph.shapes[v]))]
            for v in values
        ]
        key = repr(own), *map(id, variable.choices)  # equal nodes share their choices
        if key not in known:
            known[key] = made = np.zeros((len(variable.choices), len(variables.units.axes)), int)
            for k, choice in enumerate(variable.choices):
                for needs, numbers in zip(_divisions(choice), own, strict=False):
                    for units, number in zip(needs or (), numbers, strict=False):
                        made[k, list(units)] = number
        found.append(known[key])
    return found


def _divisions(choice: Any) -> Sequence[Division | None]:
    """Return how a choice divides operands and the result of a node, or an operand."""
    if choice is None:
        return ()
    return [choice.division] if isinstance(choice, Place) else [*choice.ins, choice.made]


def _kinds(variables: Variables) -> dict[Dim, int]:
    """Return the kind of each dim, from 1; kind 1 takes the most time."""
    graph, classes = variables.graph, _Classes()
    for node, factors in _divided(variables):
        for dims in _dims(node, factors).values():
            for each in dims[1:]:
                classes.join(dims[0], each)
    times: dict[Dim, float] = defaultdict(float)
    apart: dict[Dim, set[Dim]] = defaultdict(set)
    for n, node in enumerate(graph.nodes):
        if node.factors is None:
            continue
        own = {classes.of(dims[0]) for dims in _dims(node, node.factors).values()}
        seconds = variables.variables[variables.variable(n)].seconds.max(initial=0.0)
        for each in own:
            times[each] += seconds
            apart[each] |= own - {each}
    kinds: list[list[Dim]] = []
    for each in sorted(times, key=lambda x: (-times[x], x)):
        free = (kind for kind in kinds if apart[each].isdisjoint(kind))
        if (kind := next(free, None)) is None:
            kinds.append(kind := [])
        kind.append(each)
    kinds.sort(key=lambda kind: -sum(times[each] for each in kind))
    numbers = {each: k for k, kind in enumerate(kinds[:KINDS], 1) for each in kind}
    return {dim: numbers[at] for dim in classes.every() if (at := classes.of(dim)) in numbers}


def _divided(variables: Variables) -> Iterator[tuple[Node, Factors]]:
    for node in variables.graph.nodes:
        if node.factors is not None:
            yield node, node.factors


def _dims(node: Node, factors: Factors) -> dict[int, list[Dim]]:
    """Return the dims of a node's operands and results that have each factor it can divide."""
    found: dict[int, list[Dim]] = {}
    values = zip((*node.ins, *node.outs), (*factors.ins, *factors.outs), strict=True)
    for v, dims in values:
        for d, f in enumerate(dims):
            if v is not None and f in factors.divisible:
                found.setdefault(f, []).append((v, d))
    return found


class _Classes:
    """Sets of dims that are joined; each is named by one of its dims."""

    def __init__(self) -> None:
        self._up: dict[Dim, Dim] = {}

    def of(self, dim: Dim) -> Dim:
        """Return the name of a dim's set."""
        while (up := self._up.setdefault(dim, dim)) != dim:
            self._up[dim] = self._up[up]
            dim = self._up[dim]
        return dim

    def join(self, a: Dim, b: Dim) -> None:
        """Join the sets of two dims; the first dim of both names it."""
        first, second = sorted((self.of(a), self.of(b)))
        self._up[second] = first

    def every(self) -> list[Dim]:
        """Return all dims."""
        return [*self._up]
