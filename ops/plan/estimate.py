"""What a program takes where units of the mesh divide classes of dims, and how nodes then run.

Dims that equations divide together are one class: the rows of a batch through a whole network, say.
An *assignment* gives each unit the classes that it divides, and so each value a division that it is
best in. A node runs in that of its result, in that of its classes, or as its operands are divided,
whichever takes the least time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from gridlayout.ops.plan.division import Division, Sent, Units
from gridlayout.ops.plan.factors import Factors
from gridlayout.ops.plan.graph import Graph, Node
from gridlayout.ops.rules.elementwise import ELEMENTWISE

Assignment = tuple[frozenset[int], ...]  # the classes of each unit
# The units along each factor of a node.
FactorUnits = dict[int, tuple[int, ...]]
_CHAIN = ELEMENTWISE | {"transpose", "convert_element_type", "copy", "reshape"}


@dataclass(frozen=True)
class Choice:
    """How a node runs: the division of each operand, of its result, and what is summed.

    summed: units that have partial results. scattered: whether each then keeps its part of the sum,
    as `out` says, else all have it; joined: whether it is so with all other such sums at once. made:
    the division of the result before the sum.
    """

    ins: tuple[Division | None, ...]
    made: Division
    out: Division
    summed: tuple[int, ...] = ()
    scattered: bool = False
    joined: bool = False


@dataclass(eq=False)
class Estimate:
    """Seconds of a whole program, its collectives, and the choice for each node that is known."""

    seconds: float = 0.0
    count: int = 0
    choices: dict[Any, Choice] = field(default_factory=dict)


class Estimator:
    """Estimates of one graph under different assignments.

    given: the division of each operand. wanted: of each result, None where it may be any.
    """

    def __init__(
        self,
        graph: Graph,
        units: Units,
        given: Sequence[Division | None],
        wanted: Sequence[Division | None],
    ) -> None:
        self.graph, self.units, self.given, self.wanted = graph, units, given, wanted
        self._parent: dict[Any, Any] = {}
        self._find_classes()
        self.ends = self._ends()

    # -- classes -----------------------------------------------------------------------------------

    def _root(self, key: Any) -> Any:
        while (above := self._parent.get(key, key)) != key:
            self._parent[key] = key = self._parent.get(above, above)
        return key

    def _find_classes(self) -> None:
        for number, node in enumerate(self.graph.nodes):
            if node.factors is None:
                continue
            pairs = [*zip(node.ins, node.factors.ins, strict=True)]
            pairs += zip(node.outs, node.factors.outs, strict=True)
            for value, dims in pairs:
                for d, factor in enumerate(dims):
                    if value is not None and factor is not None:
                        a, b = self._root((value, d)), self._root((-1 - number, factor))
                        if a != b:
                            self._parent[a] = b
        names: dict[Any, int] = {}
        self.of_value: list[tuple[int, ...]] = []
        for value, shape in enumerate(self.graph.shapes):
            roots = [self._root((value, d)) for d in range(len(shape))]
            self.of_value.append(tuple(names.setdefault(root, len(names)) for root in roots))
        self.of_node: list[tuple[int, ...]] = []
        self.weights: dict[int, float] = {}
        for number, node in enumerate(self.graph.nodes):
            sizes = () if node.factors is None else node.factors.sizes
            found = [
                names.setdefault(self._root((-1 - number, f)), len(names))
                for f in range(len(sizes))
            ]
            self.of_node.append(tuple(found))
            for f in set(found):
                self.weights[f] = self.weights.get(f, 0.0) + node.flops

    def _ends(self) -> list[Division | None]:
        """Of each value the division in which a result of the program is wanted that it becomes.

        Through elementwise operations and transposes alone; None where anything else reads it.
        """
        found: list[Division | None] = [None] * len(self.graph.shapes)
        other = [False] * len(found)
        for out, division in zip(self.graph.outs, self.wanted, strict=True):
            if out is not None and division is not None:
                found[out] = division
        for number in reversed(range(len(self.graph.nodes))):
            node = self.graph.nodes[number]
            if node.name not in _CHAIN or node.factors is None:
                for value in node.ins:
                    if value is not None:
                        other[value] = True
                continue
            end = found[node.outs[0]]
            if other[node.outs[0]]:
                end = None
            back = None if end is None else _units_of(node.factors.outs[0], end)
            for value, dims in zip(node.ins, node.factors.ins, strict=True):
                if value is None or not self.graph.shapes[value]:
                    continue
                mine = None if back is None else _along(dims, back)
                if back is None or mine is None:
                    other[value] = True
                elif found[value] is None:
                    found[value] = mine
        return [None if other[v] else end for v, end in enumerate(found)]

    # -- one assignment ----------------------------------------------------------------------------

    def target(self, value: int, assignment: Assignment) -> Division:
        """The division of a value: that of the result that it becomes, or of its classes."""
        if (end := self.ends[value]) is not None:
            return end
        shape, classes = self.graph.shapes[value], self.of_value[value]
        found: list[list[int]] = [[] for _ in shape]
        for u, mine in enumerate(assignment):
            fits = [
                d
                for d, n in enumerate(shape)
                if classes[d] in mine and n >= self.units.count((*found[d], u))
            ]
            if fits:
                found[max(fits, key=lambda d: (shape[d], -d))].append(u)
        return tuple(map(tuple, found))

    def estimate(
        self,
        assignment: Assignment,
        most: float = float("inf"),
        joined: bool = False,
        is_bound: bool = False,
    ) -> Estimate:
        """The program under an assignment; followed until it takes more than `most` seconds.

        joined: whether sums that become results are scattered as one, also where it takes longer.
        is_bound: whether nodes run as their classes are divided, where these are, whatever is cheaper.
        """
        made, graph = Estimate(), self.graph
        seen: set[Any] = set()  # moves and sums that others can join
        sums = [0] * len(graph.shapes)  # how many sums in a row a value waits for
        held: list[list[Division | None]] = [[] for _ in graph.shapes]
        for k, division in enumerate(self.given):
            held[k] = [division]
        for k in graph.constants:
            held[k] = [((),) * len(graph.shapes[k])]
        for number, node in enumerate(graph.nodes):
            if made.seconds > most:
                return made
            before = max((sums[v] for v in node.ins if v is not None), default=0)
            for out in node.outs:
                sums[out] = before
            if node.factors is None:
                for out in node.outs:
                    held[out] = [None]
                continue
            best: tuple[float, Choice, Sent] | None = None
            ways = self._ways(number, node, assignment, held)
            for along in ways[:1] if is_bound and ways[0] else ways:
                priced = self._priced(node, along, assignment, held, seen, before, joined)
                if best is None or priced[0] < best[0]:
                    best = priced
            assert best is not None
            made.seconds += best[2].seconds
            made.count += best[2].count
            choice = made.choices[node.path] = best[1]
            if choice.summed:
                sums[node.outs[0]] += not choice.scattered
                if self._joins(self._size(node.outs[0]), choice):
                    seen.add((choice.summed, choice.scattered, before))
            for value, division in zip(node.ins, choice.ins, strict=True):
                if value is not None and division is not None and division not in held[value]:
                    moved = held[value][0], division
                    if value < len(self.given) and self.units.is_joined(*moved, self._size(value)):
                        seen.add(moved)
                    held[value].append(division)
            for out, dims in zip(node.outs, node.factors.outs, strict=True):
                held[out] = [choice.out if len(dims) == len(choice.out) else ((),) * len(dims)]
        for last, end in zip(graph.outs, self.wanted, strict=True):
            if last is not None and end is not None:
                sent = self._relayout(held[last], end, last)
                made.seconds += sent.seconds
                made.count += sent.count
        return made

    def _ways(
        self,
        number: int,
        node: Node,
        assignment: Assignment,
        held: Sequence[Sequence[Division | None]],
    ) -> list[FactorUnits]:
        """The units along each factor of a node, in ways that are worth pricing."""
        factors = node.factors
        assert factors is not None
        classes, found = self.of_node[number], []
        bound: FactorUnits = {}
        for u, mine in enumerate(assignment):
            fits = [
                f
                for f in range(len(factors.sizes))
                if classes[f] in mine and self._fits(factors, f, (*bound.get(f, ()), u))
            ]
            if fits:
                f = max(fits, key=lambda f: (f not in factors.summed, factors.sizes[f], -f))
                bound[f] = (*bound.get(f, ()), u)
        found.append(bound)
        if after := self._follow(factors, factors.outs[0], self.target(node.outs[0], assignment)):
            found.append(after)
        for value, dims in zip(node.ins, factors.ins, strict=True):
            if value is None or not self.graph.shapes[value]:
                continue
            for division in held[value]:
                if division is not None and (way := self._follow(factors, dims, division)):
                    found.append(way)
        unique = []
        for way in found:
            if way not in unique:
                unique.append(way)
        return unique[:6]

    def _fits(self, factors: Factors, f: int, units: tuple[int, ...]) -> bool:
        return _is_used(factors, f) and factors.fits(f, self.units.count(units))

    def _follow(
        self, factors: Factors, dims: Sequence[int | None], division: Division
    ) -> FactorUnits | None:
        """The units along factors where one value is divided so."""
        found: FactorUnits = {}
        for f, units in zip(dims, division, strict=True):
            if f is not None and units and self._fits(factors, f, units):
                found[f] = units
        return found or None

    def _priced(
        self,
        node: Node,
        along: FactorUnits,
        assignment: Assignment,
        held: Sequence[Sequence[Division | None]],
        seen: set[Any],
        before: int,
        joined: bool,
    ) -> tuple[float, Choice, Sent]:
        """Seconds to choose by, how the node runs, and what it takes without what comes after."""
        factors, graph, units = node.factors, self.graph, self.units
        assert factors is not None
        cost, count = 0.0, 0
        ins: list[Division | None] = []
        for value, dims in zip(node.ins, factors.ins, strict=True):
            if value is None or not graph.shapes[value]:
                ins.append(None)
                continue
            need = tuple(() if f is None else along.get(f, ()) for f in dims)
            sent = self._relayout(held[value], need, value, seen)
            cost, count = cost + sent.seconds, count + sent.count
            ins.append(need)
        out = node.outs[0]
        made = tuple(() if f is None else along.get(f, ()) for f in factors.outs[0])
        summed = tuple(u for f in sorted(factors.summed) for u in along.get(f, ()))
        parts = units.count(u for used in along.values() for u in used)
        size = self._size(out)
        local = size // max(units.parts(made), 1)
        passed = 0 if node.flops else self._passed(node, ins, local)
        cost += units.machine.seconds((), node.flops / max(parts, 1), passed)
        target, scattered, together = self.target(out, assignment), False, False
        after = made
        if summed:
            scattered = self._scatters(made, summed, target, graph.shapes[out])
            after = target if scattered else made
            # Of sums that wait for as many others, none waits for another.
            is_end = self.ends[out] is not None
            joins = (is_end or not scattered) and (summed, scattered, before) in seen
            together = joined and is_end and scattered
            sent = units.summed(summed, local, scattered, joins, together)
            cost, count = cost + sent.seconds, count + sent.count
        ahead = units.move(after, target, size) if len(after) == len(target) else Sent()
        choice = Choice(tuple(ins), made, after, summed, scattered, together)
        return cost + ahead.seconds, choice, Sent(cost, count)

    def _passed(self, node: Node, ins: Sequence[Division | None], local: int) -> int:
        """Bytes that a device reads and writes for a node that is no product."""
        kept = self.graph.kept
        passed = local if node.outs[0] in kept else 0
        for value, need in zip(node.ins, ins, strict=True):
            if value in kept and value is not None and need is not None:
                passed += self._size(value) // max(self.units.parts(need), 1)
        return passed

    def _scatters(
        self, made: Division, summed: tuple[int, ...], target: Division, shape: tuple[int, ...]
    ) -> bool:
        """Whether a sum over units is wanted in parts, each where one of these devices is."""
        more: list[int] = []
        for old, new, n in zip(made, target, shape, strict=True):
            if new[: len(old)] != old:
                return False
            more += new[len(old) :]
            if old and len(new) > len(old) and n % self.units.count(new):
                return False
        return bool(more) and set(more) == set(summed)

    def _joins(self, size: int, choice: Choice) -> bool:
        """Whether others are added up together with the partial sums of a node."""
        local = size // max(self.units.parts(choice.made), 1)
        return choice.joined or self.units.is_summed_joined(choice.summed, local, choice.scattered)

    def _size(self, value: int) -> int:
        """Bytes of a value."""
        return prod(self.graph.shapes[value]) * self.graph.itemsizes[value]

    def _relayout(
        self,
        held: Sequence[Division | None],
        need: Division,
        value: int,
        seen: set[Any] | frozenset[Any] = frozenset(),
    ) -> Sent:
        given, size = value < len(self.given), self._size(value)
        return min(
            self.units.move(each, need, size, given and (each, need) in seen) for each in held
        )


def _is_used(factors: Factors, f: int) -> bool:
    return any(f in dims for dims in (*factors.ins, *factors.outs))


def _units_of(dims: Sequence[int | None], division: Division) -> FactorUnits:
    return {f: units for f, units in zip(dims, division, strict=True) if f is not None and units}


def _along(dims: Sequence[int | None], units: FactorUnits) -> Division | None:
    """The division of an operand whose factors are divided so; None where it lacks one of them."""
    if not set(units) <= set(dims):
        return None
    return tuple(() if f is None else units.get(f, ()) for f in dims)
