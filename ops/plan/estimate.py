"""Estimates of a program's time, where units of the mesh divide classes of dims.

A node runs in the division of its result, in that of its classes, or in that of an operand,
whichever takes the least time. Equal layers of a stack are estimated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

from gridlayout.ops.plan.classes import Along, Assignment, Classes
from gridlayout.ops.plan.division import Division, Sent, Units, scattered_dim
from gridlayout.ops.plan.factors import Dims, Factors
from gridlayout.ops.plan.graph import SLOW, Graph, Node
from gridlayout.ops.programs.passes import computing
from gridlayout.ops.rules.reductions import NEUTRAL
from gridlayout.sharding.limits import LIMITS

Held = tuple[Division | None, ...]  # the divisions in which devices hold a value


@dataclass(frozen=True)
class Choice:
    """How a node runs: the division of each operand and of its result, and partial sums.

    made: the division of the result before partial sums are reduced. summed: the units that have
    partial results. scattered: whether each device keeps its part of the sum, in division `out`;
    otherwise all have it. joined: whether the sum is joined with all other such sums.
    """

    ins: tuple[Division | None, ...]
    made: Division
    out: Division
    summed: tuple[int, ...] = ()
    scattered: bool = False
    joined: bool = False


@dataclass(eq=False)
class Estimate:
    """Seconds of a whole program, its number of collectives, and the choice of each known node."""

    seconds: float = 0.0
    count: int = 0
    choices: dict[Any, Choice] = field(default_factory=dict)


@dataclass(frozen=True)
class _Way:
    """The costs of one division of a node's factors that do not depend on the assignment.

    seconds: of computation. local: bytes of the result on a device, before a sum.
    """

    ins: tuple[Division | None, ...]
    made: Division
    summed: tuple[int, ...]
    local: int
    seconds: float


@dataclass(eq=False)
class _State:
    """The state of an estimate half-way through a program.

    held: the divisions of each value. seen: moves and sums that others can join. sums: the number
    of sums, one after another, that each value depends on.
    """

    held: list[Held]
    sums: list[int]
    seen: set[Any] = field(default_factory=set)


class Estimator:
    """Estimates of one graph under different assignments.

    given: the division of each operand. requested: the division that each result has to have; None
    where it may be any.
    """

    def __init__(
        self,
        graph: Graph,
        units: Units,
        given: Sequence[Division | None],
        requested: Sequence[Division | None],
    ) -> None:
        self.graph, self.units, self.given, self.requested = graph, units, given, requested
        self.classes = Classes(graph, units, requested)
        self._sizes = [
            prod(shape) * itemsize
            for shape, itemsize in zip(graph.shapes, graph.itemsizes, strict=True)
        ]
        self._kinds = self._numbered()
        self._ways: dict[Any, list[_Way]] = {}
        self._divided: dict[Any, _Way] = {}
        self._best: dict[Any, tuple[float, Choice, Sent]] = {}

    def _numbered(self) -> list[int]:
        """Return a number for each node, equal for nodes that have the same prices."""
        numbers: dict[Any, int] = {}
        found = []
        for node in self.graph.nodes:
            values = [*node.ins, *node.outs]
            sizes = tuple(None if v is None else self._sizes[v] for v in values)
            materialized = tuple(v in self.graph.materialized for v in values)
            made = tuple(self.classes.result_divisions[v] is not None for v in node.outs)
            key = node.factors, sizes, materialized, node.flops, SLOW.get(node.name), made
            found.append(numbers.setdefault(key, len(numbers)))
        return found

    def estimate(
        self,
        assignment: Assignment,
        most: float = inf,
        joined: bool = False,
        is_bound: bool = False,
    ) -> Estimate:
        """Return the estimate under an assignment; incomplete if it exceeds `most` seconds.

        joined: whether sums that become results are scattered as one, even where that takes longer.
        is_bound: whether nodes run as their classes are divided, where they are, at any price.
        """
        made, graph = Estimate(), self.graph
        state = _State([()] * len(graph.shapes), [0] * len(graph.shapes))
        for k, division in enumerate(self.given):
            state.held[k] = (division,)
        for k in graph.constants:
            state.held[k] = (((),) * len(graph.shapes[k]),)
        for number, node in enumerate(graph.nodes):
            if made.seconds > most:
                return made
            before = max((state.sums[v] for v in node.ins if v is not None), default=0)
            for out in node.outs:
                state.sums[out] = before
            if node.factors is None:
                is_made = any(v is not None for v in node.ins)  # else every device computes it
                for out in node.outs:
                    state.held[out] = (None if is_made else ((),) * len(graph.shapes[out]),)
                continue
            target = self.classes.target(node.outs[0], assignment)
            bound = self.classes.bound(number, assignment)
            found = self._chosen(number, bound, target, state, joined, is_bound)
            _, choice, sent = found
            made.seconds += sent.seconds
            made.count += sent.alone
            made.choices[node.path] = choice
            self._follow(node, choice, state, before)
        for last, end in zip(graph.outs, self.requested, strict=True):
            if last is not None and end is not None:
                sent = self._relayout(state.held[last], end, last)
                made.seconds += sent.seconds
                made.count += sent.alone
        return made

    def _chosen(
        self,
        number: int,
        bound: Along,
        target: Division,
        state: _State,
        joined: bool,
        is_bound: bool,
    ) -> tuple[float, Choice, Sent]:
        """Return the fastest way of a node, which includes the move to the target division.

        The result is the seconds to choose by, the choice, and its cost without that move.
        """
        node = self.graph.nodes[number]
        held = tuple(() if v is None else state.held[v] for v in node.ins)
        key = self._kinds[number], bound, target, held, is_bound
        assert node.factors is not None
        joins = bool(node.factors.summed) or any(
            v is not None and v < len(self.given) for v in node.ins
        )
        if not joins and key in self._best:
            return self._best[key]
        ways = self._ways.get(key[:4])
        if ways is None:
            ways = self._ways[key[:4]] = self._worth_pricing(number, bound, target, held)
        if is_bound and any(bound):
            ways = ways[:1]
        found = min(
            (self._priced(node, way, target, state, joined) for way in ways),
            key=lambda each: each[0],
        )
        if not joins:
            self._best[key] = found
        return found

    def _follow(self, node: Node, choice: Choice, state: _State, before: int) -> None:
        """Record what a node has moved, summed and made."""
        if choice.summed:
            out = node.outs[0]
            state.sums[out] += not choice.scattered
            local = self._sizes[out] // max(self.units.parts(choice.made), 1)
            if choice.joined or self.units.is_summed_joined(choice.summed, local, choice.scattered):
                state.seen.add((choice.summed, choice.scattered, before))
        for value, division in zip(node.ins, choice.ins, strict=True):
            if value is None or division is None or division in state.held[value]:
                continue
            moved = state.held[value][0], division
            if value < len(self.given) and self.units.is_joined(*moved, self._sizes[value]):
                state.seen.add(moved)
            state.held[value] += (division,)
        assert node.factors is not None
        for out, dims in zip(node.outs, node.factors.outs, strict=True):
            state.held[out] = (choice.out if len(dims) == len(choice.out) else ((),) * len(dims),)

    # -- ways of one node --------------------------------------------------------------------------

    def _worth_pricing(
        self, number: int, bound: Along, target: Division, held: Sequence[Held]
    ) -> list[_Way]:
        """Return the ways that divide a node as its classes, as its result, or as an operand."""
        node = self.graph.nodes[number]
        factors = node.factors
        assert factors is not None
        found = {bound: None}
        if any(along := self._along(factors, factors.outs[0], target)):
            found[along] = None
        for value, dims, divisions in zip(node.ins, factors.ins, held, strict=True):
            if value is None or not self.graph.shapes[value]:
                continue
            for division in divisions:
                if division is not None and any(along := self._along(factors, dims, division)):
                    found[along] = None
        return [self._way(number, along) for along in [*found][: LIMITS.ways]]

    def _along(self, factors: Factors, dims: Dims, division: Division) -> Along:
        """Return the units along each factor, where one value has this division."""
        found: list[tuple[int, ...]] = [()] * len(factors.sizes)
        for f, units in zip(dims, division, strict=True):
            if f is not None and units and factors.fits(f, self.units.count(units)):
                found[f] = units
        return tuple(found)

    def _way(self, number: int, along: Along) -> _Way:
        key = self._kinds[number], along
        if key in self._divided:
            return self._divided[key]
        node = self.graph.nodes[number]
        factors = node.factors
        assert factors is not None

        def division(dims: Dims) -> Division:
            return tuple(() if f is None else along[f] for f in dims)

        ins = tuple(
            None if value is None or not self.graph.shapes[value] else division(dims)
            for value, dims in zip(node.ins, factors.ins, strict=True)
        )
        made = division(factors.outs[0])
        summed = tuple(u for f in sorted(factors.summed) for u in along[f])
        local = self._sizes[node.outs[0]] // max(self.units.parts(made), 1)
        parts = self.units.count([u for used in along for u in used])
        slow = 0
        if times := SLOW.get(node.name):
            value, need = (node.ins[0], ins[0]) if node.name in NEUTRAL else (node.outs[0], made)
            if value is not None and need is not None:
                elements = self._sizes[value] // self.graph.itemsizes[value]
                slow = times * elements // max(self.units.parts(need), 1)
        machine = self.units.machine
        if node.flops:
            read = self._parts(node.ins, ins)
            given = read, [local], machine, node.transposed, node.itemsize(self.graph)
            seconds = sum(computing(node.name, node.flops / max(parts, 1), *given).values())
        else:
            passed = self._passed(node, ins, local)
            seconds = machine.seconds(nbytes=passed, elements=slow)
        way = self._divided[key] = _Way(ins, made, summed, local, seconds)
        return way

    def _passed(self, node: Node, ins: Sequence[Division | None], local: int) -> int:
        """Return the bytes that a device reads and writes for a node that is no product."""
        materialized = self.graph.materialized
        read = [(v if v in materialized else None) for v in node.ins]
        return sum(self._parts(read, ins)) + (local if node.outs[0] in materialized else 0)

    def _parts(self, values: Sequence[int | None], ins: Sequence[Division | None]) -> list[int]:
        """Return the bytes of a device's part of each value."""
        return [
            0 if v is None or need is None else self._sizes[v] // max(self.units.parts(need), 1)
            for v, need in zip(values, ins, strict=True)
        ]

    def _priced(
        self, node: Node, way: _Way, target: Division, state: _State, joined: bool
    ) -> tuple[float, Choice, Sent]:
        """Return what `_chosen` returns, for one way."""
        cost, count, out = way.seconds, 0, node.outs[0]
        for value, need in zip(node.ins, way.ins, strict=True):
            if value is not None and need is not None:
                sent = self._relayout(state.held[value], need, value, state.seen)
                cost, count = cost + sent.seconds, count + sent.alone
        after, scattered, together = way.made, False, False
        if way.summed:
            scattered = self._scatters(way.made, way.summed, target, self.graph.shapes[out])
            after = target if scattered else way.made
            # Sums that depend on equally many sums do not depend on each other.
            is_end = self.classes.result_divisions[out] is not None
            key = way.summed, scattered, state.sums[out]
            joins = (is_end or not scattered) and key in state.seen
            together = joined and is_end and scattered
            dim = scattered_dim(way.made, after) if scattered else 0
            sent = self.units.summed(way.summed, way.local, scattered, joins, together, dim)
            cost, count = cost + sent.seconds, count + sent.alone
        ahead = 0.0
        if len(after) == len(target):
            ahead = self.units.move(after, target, self._sizes[out]).seconds
        choice = Choice(way.ins, way.made, after, way.summed, scattered, together)
        return cost + ahead, choice, Sent(cost, count)

    def _scatters(
        self, made: Division, summed: tuple[int, ...], target: Division, shape: tuple[int, ...]
    ) -> bool:
        """Return whether the target division scatters a sum over exactly the units summed."""
        more: list[int] = []
        for old, new, n in zip(made, target, shape, strict=True):
            if new[: len(old)] != old:
                return False
            more += new[len(old) :]
            if old and len(new) > len(old) and n % self.units.count(new):
                return False
        return bool(more) and set(more) == set(summed)

    def _relayout(
        self,
        held: Held,
        need: Division,
        value: int,
        seen: set[Any] | frozenset[Any] = frozenset(),
    ) -> Sent:
        if need in held:
            return Sent()
        given, size = value < len(self.given), self._sizes[value]
        return min(
            self.units.move(each, need, size, given and (each, need) in seen) for each in held
        )
