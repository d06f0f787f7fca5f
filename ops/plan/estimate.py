"""Estimates of a program's time, where units of the mesh divide classes of dims.

A node runs in the division of its result, in that of its classes, or in that of an operand,
whichever takes the least time. Equal layers of a stack are estimated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, NamedTuple

from gridlayout.ops.decisions.factors import Dims, Factors
from gridlayout.ops.plan.choice import Choice
from gridlayout.ops.plan.classes import Along, Assignment, Classes
from gridlayout.ops.plan.division import Division, Sent, Units, scattered_dim
from gridlayout.ops.plan.graph import Graph, Node
from gridlayout.ops.programs.passes import computing
from gridlayout.sharding.limits import LIMITS

Held = tuple[Division | None, ...]  # the divisions in which devices hold a value
_NOTHING: frozenset[Any] = frozenset()


@dataclass(eq=False)
class Estimate:
    """Seconds of a whole program, its number of collectives, and the choice of each known node."""

    seconds: float = 0.0
    count: int = 0
    choices: dict[Any, Choice] = field(default_factory=dict)

    def cost(self, fastest: Estimate) -> float:
        """Return the time and the weighted number of collectives, relative to the fastest ones.

        Times are not exact: among programs that take about as long, fewer collectives are better.
        """
        sent = self.count / max(fastest.count, 1)
        return self.seconds / max(fastest.seconds, 1e-12) + LIMITS.margin * sent

    def is_worse(self, fastest: Estimate) -> bool:
        """Return whether it takes longer than the fastest one and costs more."""
        return self.seconds > fastest.seconds and self.cost(fastest) > fastest.cost(fastest)


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


class _Taken(NamedTuple):
    """The way that a node runs, and what is known after it.

    price: the seconds to choose by, which include the move to the node's target. sent: the cost
    without that move. moved: operands, by position, and the division to which each is relaid out.
    joined: moves that others can join. is_sum_joined: whether others can join its sum. outs: the
    division of each result.
    """

    price: float
    choice: Choice
    sent: Sent
    moved: tuple[tuple[int, Division], ...] = ()
    joined: tuple[tuple[Division | None, Division], ...] = ()
    is_sum_joined: bool = False
    outs: tuple[Division, ...] = ()


@dataclass(eq=False)
class _Ways:
    """The ways of nodes with equal prices whose classes, target and operands are divided equally.

    moves: those of the program's operands, which can join equal ones before them. sums: the units
    summed, and whether the sum is scattered, of sums that can join others. taken: the way taken, by
    which of these can join, and by `joined` and `is_by_class` of `Estimator.estimate`.
    """

    ways: list[_Way]
    moves: tuple[tuple[Division | None, Division], ...]
    sums: tuple[tuple[tuple[int, ...], bool], ...]
    taken: dict[Any, _Taken] = field(default_factory=dict)


@dataclass(eq=False)
class _State:
    """The state of an estimate half-way through a program.

    held: the divisions of each value. seen: moves and sums that others can join. sums: the number
    of sums, one after another, that each value depends on. made: the estimate so far.
    """

    held: list[Held]
    sums: list[int]
    seen: set[Any] = field(default_factory=set)
    made: Estimate = field(default_factory=Estimate)


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
        self._sizes = [graph.nbytes(value) for value in range(len(graph.shapes))]
        self._kinds = self._numbered()
        self._reads = [[v for v in node.ins if v is not None] for node in graph.nodes]
        self._ways: dict[Any, _Ways] = {}
        self._way_of: dict[tuple[int, Along], _Way] = {}

    def _numbered(self) -> list[int]:
        """Return a number for each node, equal for nodes that have the same prices."""
        numbers: dict[Any, int] = {}
        found = []
        for node in self.graph.nodes:
            values = [*node.ins, *node.outs]
            sizes = tuple(None if v is None else self._sizes[v] for v in values)
            materialized = tuple(v in self.graph.materialized for v in values)
            made = tuple(self.classes.result_divisions[v] is not None for v in node.outs)
            given = tuple(v is not None and v < len(self.given) for v in node.ins)
            key = node.factors, sizes, materialized, given, node.flops, node.record.slow, made
            found.append(numbers.setdefault(key, len(numbers)))
        return found

    def estimate(
        self,
        assignment: Assignment,
        fastest: Estimate | None = None,
        joined: bool = False,
        is_by_class: bool = False,
    ) -> Estimate | None:
        """Return the estimate under an assignment; None if it is slower and costs more.

        fastest: the fastest program so far, with which it is compared. joined: whether sums that
        become results are scattered as one, even where that takes longer. is_by_class: whether a
        node with divided classes runs in their division, at any price.
        """
        graph = self.graph
        state = _State([()] * len(graph.shapes), [0] * len(graph.shapes))
        for k, division in enumerate(self.given):
            state.held[k] = (division,)
        for k in graph.constants:
            state.held[k] = (((),) * len(graph.shapes[k]),)
        units_of, made = self.classes.units_of(assignment), state.made
        for number, node in enumerate(graph.nodes):
            if fastest is not None and made.is_worse(fastest):
                return None
            before = max([state.sums[v] for v in self._reads[number]], default=0)
            for out in node.outs:
                state.sums[out] = before
            if node.factors is None:
                is_made = bool(self._reads[number])  # else every device computes it
                for out in node.outs:
                    state.held[out] = (None if is_made else ((),) * len(graph.shapes[out]),)
                continue
            target = self.classes.target(node.outs[0], units_of)
            by_class = self.classes.by_class(number, units_of)
            self._record(
                node, self._taken(number, by_class, target, state, joined, is_by_class), state
            )
        for last, end in zip(graph.outs, self.requested, strict=True):
            if last is not None and end is not None:
                sent = self._relayout(state.held[last], end, self._sizes[last])
                made.seconds += sent.seconds
                made.count += sent.alone
        return made

    def _taken(
        self,
        number: int,
        by_class: Along,
        target: Division,
        state: _State,
        joined: bool,
        is_by_class: bool,
    ) -> _Taken:
        """Return the fastest way of a node, with the move to the target division."""
        node = self.graph.nodes[number]
        held = tuple([() if v is None else state.held[v] for v in node.ins])
        key = self._kinds[number], by_class, target, held
        if (ways := self._ways.get(key)) is None:
            ways = self._ways[key] = self._worth_pricing(number, by_class, target, held)
        seen = _NOTHING
        if ways.moves or ways.sums:
            before = state.sums[node.outs[0]]
            sums = (each for each in ways.sums if (*each, before) in state.seen)
            seen = frozenset([*state.seen.intersection(ways.moves), *sums])
        what = seen, joined, is_by_class
        if what not in ways.taken:
            found = None
            for way in ways.ways[:1] if is_by_class and any(by_class) else ways.ways:
                most = inf if found is None else found.price
                found = self._priced(node, way, target, held, seen, joined, most) or found
            assert found is not None
            ways.taken[what] = found
        return ways.taken[what]

    def _record(self, node: Node, taken: _Taken, state: _State) -> None:
        """Record what a node takes, and what it has moved, summed and made."""
        made, choice = state.made, taken.choice
        made.seconds += taken.sent.seconds
        made.count += taken.sent.alone
        made.choices[node.path] = choice
        if choice.summed:
            # Sums that depend on equally many sums do not depend on each other.
            before = state.sums[node.outs[0]]
            state.sums[node.outs[0]] += not choice.scattered
            if taken.is_sum_joined:
                state.seen.add((choice.summed, choice.scattered, before))
        state.seen.update(taken.joined)
        for position, division in taken.moved:
            value = node.ins[position]
            assert value is not None
            if division not in state.held[value]:  # as an operand can be read twice
                state.held[value] += (division,)
        for out, division in zip(node.outs, taken.outs, strict=True):
            state.held[out] = (division,)

    # -- ways of one node --------------------------------------------------------------------------

    def _worth_pricing(
        self, number: int, by_class: Along, target: Division, held: Sequence[Held]
    ) -> _Ways:
        """Return the ways that divide a node as its classes, as its result, or as an operand."""
        node = self.graph.nodes[number]
        factors, out = node.factors, node.outs[0]
        assert factors is not None
        found = {by_class: None}
        if any(along := self._along(factors, factors.outs[0], target)):
            found[along] = None
        for value, dims, divisions in zip(node.ins, factors.ins, held, strict=True):
            if value is None or not self.graph.shapes[value]:
                continue
            for division in divisions:
                if division is not None and any(along := self._along(factors, dims, division)):
                    found[along] = None
        ways = []
        for key in [(self._kinds[number], along) for along in found][: LIMITS.ways]:
            if key not in self._way_of:
                self._way_of[key] = self._way(node, key[1])
            ways.append(self._way_of[key])
        sums: dict[tuple[tuple[int, ...], bool], None] = {}
        moves: dict[tuple[Division | None, Division], None] = {}
        is_end = self.classes.result_divisions[out] is not None
        for way in ways:
            if way.summed:
                scattered = self._scatters(way, target, out)
                if is_end or not scattered:
                    sums[way.summed, scattered] = None
            for value, need, divisions in zip(node.ins, way.ins, held, strict=True):
                if value is not None and need is not None and value < len(self.given):
                    moves.update(((each, need), None) for each in divisions if each != need)
        return _Ways(ways, tuple(moves), tuple(sums))

    def _along(self, factors: Factors, dims: Dims, division: Division) -> Along:
        """Return the units along each factor, where one value has this division."""
        found: list[tuple[int, ...]] = [()] * len(factors.sizes)
        for f, units in zip(dims, division, strict=True):
            if f is not None and units and factors.fits(f, self.units.count(units)):
                found[f] = units
        return tuple(found)

    def _way(self, node: Node, along: Along) -> _Way:
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
        if times := node.record.slow:
            is_reduction = node.record.is_reduction
            value, need = (node.ins[0], ins[0]) if is_reduction else (node.outs[0], made)
            if value is not None and need is not None:
                elements = prod(self.graph.shapes[value])
                slow = times * elements // max(self.units.parts(need), 1)
        machine = self.units.machine
        if node.flops:
            read = self._parts(node.ins, ins)
            given = read, [local], machine, node.transposed, node.width(self.graph)
            seconds = sum(computing(node.record, node.flops / max(parts, 1), *given).values())
        else:
            passed = self._passed(node, ins, local)
            seconds = machine.work_seconds(nbytes=passed, elements=slow)
        return _Way(ins, made, summed, local, seconds)

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
        self,
        node: Node,
        way: _Way,
        target: Division,
        held: Sequence[Held],
        seen: frozenset[Any],
        joined: bool,
        most: float,
    ) -> _Taken | None:
        """Return what it takes to run a node in one way; None if that is not less than `most`.

        seen: moves and sums that it can join.
        """
        cost, count, out = way.seconds, 0, node.outs[0]
        moved, able = [], []
        for k, (value, need) in enumerate(zip(node.ins, way.ins, strict=True)):
            if value is None or need is None or need in held[k]:
                continue
            size, given = self._sizes[value], value < len(self.given)
            sent = self._relayout(held[k], need, size, seen if given else _NOTHING)
            cost, count = cost + sent.seconds, count + sent.alone
            moved.append((k, need))
            if given and self.units.is_joined(held[k][0], need, size):
                able.append((held[k][0], need))
            if cost >= most:
                return None
        after, scattered, together, is_sum_joined = way.made, False, False, False
        if way.summed:
            scattered = self._scatters(way, target, out)
            after = target if scattered else way.made
            is_end = self.classes.result_divisions[out] is not None
            joins = (is_end or not scattered) and (way.summed, scattered) in seen
            together = joined and is_end and scattered
            dim = scattered_dim(way.made, after) if scattered else 0
            sent = self.units.summed(way.summed, way.local, scattered, joins, together, dim)
            cost, count = cost + sent.seconds, count + sent.alone
            summed = way.summed, way.local, scattered
            is_sum_joined = together or self.units.is_summed_joined(*summed)
        price = cost
        if len(after) == len(target):
            price += self.units.move(after, target, self._sizes[out]).seconds
        if price >= most:
            return None
        choice = Choice(way.ins, way.made, after, way.summed, scattered, together)
        assert node.factors is not None
        outs = tuple(
            after if len(dims) == len(after) else ((),) * len(dims) for dims in node.factors.outs
        )
        moves = tuple(moved), tuple(able)
        return _Taken(price, choice, Sent(cost, count), *moves, is_sum_joined, outs)

    def _scatters(self, way: _Way, target: Division, out: int) -> bool:
        """Return whether the target division scatters a sum over exactly the units summed."""
        more: list[int] = []
        for old, new, n in zip(way.made, target, self.graph.shapes[out], strict=True):
            if new[: len(old)] != old:
                return False
            more += new[len(old) :]
            if old and len(new) > len(old) and n % self.units.count(new):
                return False
        return bool(more) and set(more) == set(way.summed)

    def _relayout(
        self, held: Held, need: Division, size: int, seen: frozenset[Any] = _NOTHING
    ) -> Sent:
        if need in held:
            return Sent()
        return min(self.units.move(each, need, size, (each, need) in seen) for each in held)
