"""Every way to divide the values and run the nodes of a graph, as one optimisation problem.

An operand has a strategy for each division that a layout can state, a node one for each way to give
units of the mesh to its factors. A value is moved once to each division in which it is read. Nodes
that are equal, as in the layers of a stack, share one strategy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.plan.classes import CHAIN
from gridlayout.ops.plan.division import Division, Units
from gridlayout.ops.plan.estimate import Choice
from gridlayout.ops.plan.graph import WITH_LAYOUT, Graph, Node
from gridlayout.ops.plan.labels import labels
from gridlayout.ops.plan.live_ranges import live_values
from gridlayout.ops.plan.ways import Ways
from gridlayout.ops.solver.problem import Fetch, Problem, Row
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.limits import LIMITS


class Place(NamedTuple):
    """Where an operand is: its division, and whether it is in the DRAM behind a chip's cores."""

    division: Division
    in_dram: bool = False


@dataclass(eq=False)
class Variable:
    """What one choice is made for: operands, or nodes, that are equal.

    members: their numbers, as operands or as nodes. choices: of an operand places, of a node ways
    to run it; None where nothing is known of it. seconds: of each choice, of one member.
    """

    is_operand: bool
    members: list[int]
    choices: list[Any]
    seconds: NDArray[np.float64]


@dataclass(eq=False)
class Strategies:
    """The strategies of a graph on a machine.

    given: of each operand the places that it may have. wanted: of each result the divisions that it
    may have, or the number of the operand whose next value it is, which has its division. names: of
    operands. capacity: bytes that a device can hold, a core in its L1; None for any. dram: results
    of nodes that are in the DRAM behind a chip's cores, whence nodes read them while they compute.
    each_step: called while all this is made; what it raises ends that.
    """

    graph: Graph
    units: Units
    given: Sequence[Sequence[Place]]
    wanted: Sequence[Sequence[Division] | int]
    names: Sequence[str] = ()
    capacity: float | None = None
    dram: frozenset[int] = frozenset()
    copies: bool = False
    each_step: Callable[[], None] = field(default=no_step, repr=False)
    variables: list[Variable] = field(default_factory=list)
    _of_operand: dict[int, int] = field(default_factory=dict)
    _of_node: dict[int, int] = field(default_factory=dict)
    _by_path: dict[tuple[int, ...], Node] = field(default_factory=dict)
    _computing: dict[Any, float] = field(default_factory=dict)
    _prices: dict[Any, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ways = Ways(self.graph, self.units)
        own, nodes = labels(self.graph, len(self.given))
        merged: dict[Hashable, int] = {}
        is_large = len(self.graph.nodes) > LIMITS.alike
        order: list[tuple[bytes, bool, int]] = []
        order += [(own[k], True, k) for k in range(len(self.given))]
        order += [(nodes[n], False, n) for n in range(len(self.graph.nodes))]
        for label, is_operand, number in sorted(order):
            self.each_step()
            allowed = tuple(map(tuple, self.given[number])) if is_operand else ()
            key = (label, is_operand, allowed) if is_large else (number, is_operand)
            at = merged.setdefault(key, len(self.variables))
            if at == len(self.variables):
                make = self._operand if is_operand else self._node
                self.variables.append(make(number))
            else:
                self.variables[at].members.append(number)
            (self._of_operand if is_operand else self._of_node)[number] = at

    def limited(
        self,
        capacity: float | None,
        dram: frozenset[int] = frozenset(),
        copies: bool = False,
        each_step: Callable[[], None] | None = None,
    ) -> Strategies:
        """The same choices where a device has room for so many bytes; dram: values there.

        copies: whether operands of nodes that are divided less than they can be are counted beside
        where they come from. each_step: instead of the one before.
        """
        other = copy(self)
        other.each_step = self.each_step if each_step is None else each_step
        vars(other).pop("problem", None)
        other.capacity, other.dram, other.copies = capacity, dram, copies
        return other

    # -- what can be chosen ------------------------------------------------------------------------

    def _operand(self, number: int) -> Variable:
        choices = list(self.given[number])
        held = [self.ways.nbytes(number, place.division) for place in choices]
        seconds = [LIMITS.held * self.units.machine.seconds(nbytes=each) for each in held]
        return Variable(True, [number], choices, np.array(seconds))

    def _node(self, number: int) -> Variable:
        node = self.graph.nodes[number]
        if node.factors is None:
            return Variable(False, [number], [None], np.zeros(1))
        if node.name == WITH_LAYOUT:
            return self._stated(number)
        choices, seconds = self.ways.of(node)
        return Variable(False, [number], list(choices), seconds)

    def _stated(self, number: int) -> Variable:
        """The division of the layout that a `with_layout` states."""
        layout = self.graph.nodes[number].eqn.params["layout"]
        division = self.units.stated(layout, f"with_layout: {layout!r}")
        rest = (None,) * (len(self.graph.nodes[number].ins) - 1)
        return Variable(
            False, [number], [Choice((division, *rest), division, division)], np.zeros(1)
        )

    # -- the problem -------------------------------------------------------------------------------

    @cached_property
    def problem(self) -> Problem:
        """The costs of all choices, the moves between them, and what is held at a time."""
        costs = [each.seconds * len(each.members) for each in self.variables]
        if far := self._far:
            for at, variable in enumerate(self.variables):
                self.each_step()
                if not variable.is_operand:
                    costs[at] = costs[at] + self._spilled(variable, far)
        # Of each value its readers by how often they read: what is moved in a loop is moved there.
        readers: dict[tuple[int, float], list[tuple[int, int]]] = {}
        for n, node in enumerate(self.graph.nodes):
            for position, v in enumerate(node.ins):
                if v is not None and node.factors is not None:
                    times = node.starts if not position else node.times
                    readers.setdefault((v, times), []).append((self._of_node[n], position))
        counts: dict[Any, float] = {}
        for (v, times), mine in readers.items():
            if (source := self._source(v)) is not None and self.graph.shapes[v]:
                size = prod(self.graph.shapes[v]) * self.graph.itemsizes[v]
                key = (*source, size, tuple(sorted(mine)))
                counts[key] = counts.get(key, 0) + times
        fetches = []
        for (at, position, size, mine), count in counts.items():
            self.each_step()
            fetches.append(self._fetch(at, position, size, mine, count))
        fetches += self._streams()
        fetches += self._joined(costs)
        for v, divisions in zip(self.graph.outs, self.wanted, strict=True):
            source = None if v is None else self._source(v)
            if v is not None and source is not None and self.graph.shapes[v]:
                size = prod(self.graph.shapes[v]) * self.graph.itemsizes[v]
                if isinstance(divisions, int):
                    fetches.append(self._tied(source, divisions, size))
                    continue
                if not divisions:
                    continue
                moved = {x: self._home(x, divisions, size)[0] for x in set(self._held(*source))}
                more = np.array([moved[x] for x in self._held(*source)])
                costs[source[0]] = costs[source[0]] + more
        return Problem(tuple(costs), tuple(fetches), tuple(self._rows()))

    def _source(self, value: int) -> tuple[int, int] | None:
        """The variable that a value is of, and which result; None where it is everywhere."""
        if value < len(self.given):
            return self._of_operand[value], 0
        return self._makers.get(value)

    @cached_property
    def _makers(self) -> dict[int, tuple[int, int]]:
        """The variable of each value that a node makes, and which of its results it is."""
        return {
            v: (self._of_node[n], k)
            for n, node in enumerate(self.graph.nodes)
            if node.factors is not None
            for k, v in enumerate(node.outs)
        }

    def _held(self, at: int, position: int) -> list[Division]:
        """The division of a value under each choice of its variable."""
        variable = self.variables[at]
        if variable.is_operand:
            return [place.division for place in variable.choices]
        node = self.graph.nodes[variable.members[0]]
        assert node.factors is not None
        rank = len(node.factors.outs[position])
        whole: Division = ((),) * rank
        return [x.out if len(x.out) == rank else whole for x in variable.choices]

    def _fetch(
        self, at: int, position: int, size: int, mine: Sequence[tuple[int, int]], count: float
    ) -> Fetch:
        """A value, and those that read it."""
        variable = self.variables[at]
        held = [Place(x) for x in self._held(at, position)]
        held = variable.choices if variable.is_operand else held
        forms: dict[Division, int] = {}
        readers = []
        for reader, place in mine:
            needs = [choice.ins[place] for choice in self.variables[reader].choices]
            read = [-1 if need is None else forms.setdefault(need, len(forms)) for need in needs]
            readers.append((reader, np.array(read)))
        kinds: dict[Place, int] = {}
        rows = np.array([kinds.setdefault(x, len(kinds)) for x in held])
        key = tuple(kinds), tuple(forms), size
        if key not in self._prices:
            self._prices[key] = np.array(
                [[self._brought(a, b, size) for b in forms] for a in kinds]
            ).reshape(len(kinds), len(forms))
        prices = self._prices[key][rows] * count
        if self._folded(mine[0][0], mine, at):
            same = [[a.division == b for b in forms] for a in kinds]
            prices = np.where(np.array(same)[rows], prices, 2 * prices)
        return Fetch(at, prices, tuple(readers))

    @property
    def _far(self) -> frozenset[int]:
        """The values that are in DRAM whatever is chosen: results, and operands that only can be.

        What a node reads and writes of them adds up, while it computes.
        """
        only = (k for k, places in enumerate(self.given) if places and all(p[1] for p in places))
        return self.dram | frozenset(only)

    def _spilled(self, variable: Variable, far: frozenset[int]) -> NDArray[np.float64]:
        """What reading values from DRAM, and writing them there, adds to a variable's choices."""
        more = np.zeros(len(variable.choices))
        for n in variable.members:
            node = self.graph.nodes[n]
            if not far.intersection((*(v for v in node.ins if v is not None), *node.outs)):
                continue
            for k, choice in enumerate(variable.choices):
                if choice is not None:
                    seconds = self.ways.streaming(node, choice, far)
                    more[k] += max(seconds - self._computed(node, choice), 0.0)
        return more

    def _computed(self, node: Node, choice: Choice | None) -> float:
        """Seconds that a node computes, while it reads from DRAM, every time that it runs."""
        if choice is None or node.name == WITH_LAYOUT:
            return 0.0
        key = node.path, choice
        if key not in self._computing:
            self._computing[key] = self.ways.computing(node, choice) * node.times
        return self._computing[key]

    def _sizes(self, value: int, at: int, position: int) -> list[int]:
        """Bytes of a value in a device's own memory, under each choice of its variable."""
        variable, held = self.variables[at], self._held(at, position)
        is_there = [not (variable.is_operand and place.in_dram) for place in variable.choices]
        return [
            self.ways.held(value, x) if there else 0
            for x, there in zip(held, is_there, strict=True)
        ]

    def _tied(self, source: tuple[int, int], operand: int, size: int) -> Fetch:
        """The relayout of a result to the layout of the operand whose next value it is."""
        at = self._of_operand[operand]
        places, held = self.variables[at].choices, self._held(*source)
        prices = [[self._move(x, place.division, size) for place in places] for x in held]
        return Fetch(source[0], np.array(prices), ((at, np.arange(len(places))),))

    def _home(
        self, held: Division, divisions: Sequence[Division], size: int
    ) -> tuple[float, Division]:
        """Seconds of the relayout of a result to an allowed division, and that division."""
        if held in divisions:
            return 0.0, held
        moves = [(self._move(held, x, size), k) for k, x in enumerate(divisions)]
        seconds, k = min(moves)
        return seconds, divisions[k]

    def results(self, found: Sequence[int]) -> list[Division | None]:
        """The division of each result; None of numbers, and of what stays as its rule has it."""
        made: list[Division | None] = []
        for v, divisions in zip(self.graph.outs, self.wanted, strict=True):
            if v is None or not self.graph.shapes[v]:
                made.append(None)
                continue
            if isinstance(divisions, int):
                at = self._of_operand[divisions]
                made.append(self.variables[at].choices[found[at]].division)
                continue
            source, size = self._source(v), prod(self.graph.shapes[v]) * self.graph.itemsizes[v]
            if source is None or not divisions:  # where its rule has it
                made.append(None)
                continue
            held = self._held(*source)[found[source[0]]]
            made.append(self._home(held, divisions, size)[1])
        return made

    def _joined(self, costs: list[NDArray[np.float64]]) -> list[Fetch]:
        """What is paid once for the all-reduces of results that go as one; costs: without it.

        They wait for nothing of each other, so those over the same devices are joined.
        """
        ends = self._ends()
        forms: dict[tuple[int, ...], int] = {}
        latencies: list[float] = []
        readers = []
        for at, variable in enumerate(self.variables):
            node = None if variable.is_operand else self.graph.nodes[variable.members[0]]
            if node is None or node.outs[0] not in ends or node.times != 1:
                continue
            read = np.full(len(variable.choices), -1)
            for k, choice in enumerate(variable.choices):
                if choice is None or not choice.summed or choice.scattered:
                    continue
                saved = self.units.saved(choice.summed, self.ways.partial(node, choice))
                if saved <= 0:
                    continue
                if choice.summed not in forms:
                    forms[choice.summed] = len(forms)
                    latencies.append(self.units.latency(choice.summed))
                read[k] = forms[choice.summed]
                costs[at] = costs[at].copy()
                costs[at][k] -= saved * len(variable.members)
                costs[at][k] = max(costs[at][k], 0.0)
            if (read >= 0).any():
                readers.append((at, read))
        if not readers or not any(latencies):
            return []
        costs.append(np.zeros(1))
        return [Fetch(len(costs) - 1, np.array([latencies]), tuple(readers))]

    def _ends(self) -> set[int]:
        """The values that become results, through elementwise operations and transposes alone."""
        graph = self.graph
        found = {v for v in graph.outs if v is not None}
        others: set[int] = set()
        for node in reversed(graph.nodes):
            is_chain = node.name in CHAIN and node.outs[0] in found
            for v in node.ins:
                if v is not None:
                    (found if is_chain else others).add(v)
            if node.outs[0] in others:
                found.discard(node.outs[0])
        return found - others

    def _folded(self, reader: int, mine: Sequence[tuple[int, int]], at: int) -> bool:
        """Whether a product's one reader is a transpose, which is done with it.

        A move between the two would be one of the transposed product, to what reads that.
        """
        nodes = self.graph.nodes
        if len(mine) != 1 or self.variables[at].is_operand or self.variables[reader].is_operand:
            return False
        maker, only = (nodes[self.variables[k].members[0]] for k in (at, reader))
        return maker.name == "dot_general" and only.name == "transpose"

    def _brought(self, place: Place, need: Division, size: int) -> float:
        """What moving takes; what is in DRAM moves among chips alone."""
        if not place.in_dram:
            return self._move(place.division, need, size)
        return self._move(place.division, self.units.among_chips(need), size)

    def _streams(self) -> list[Fetch]:
        """What nodes that read operands from DRAM take longer than they compute."""
        found, far = [], self._far
        for n, node in enumerate(self.graph.nodes):
            self.each_step()
            for position, v in enumerate(node.ins):
                if v is None or v >= len(self.given) or node.factors is None or v in far:
                    continue
                at, reader = self._of_operand[v], self._of_node[n]
                in_dram = np.array([place.in_dram for place in self.variables[at].choices])
                if not in_dram.any() or not self.graph.shapes[v]:
                    continue
                variable, more = self.variables[reader], []
                for choice in variable.choices:
                    need = None if choice is None else choice.ins[position]
                    read = 0.0 if need is None else self.ways.reading(v, need) * node.times
                    more.append(max(read - self._computed(node, choice), 0.0) if read else 0.0)
                prices = np.where(in_dram[:, None], np.array(more)[None], 0.0)
                found.append(Fetch(at, prices, ((reader, np.arange(len(more))),)))
        return found

    def _move(self, before: Division, after: Division, size: int) -> float:
        sent = self.units.move(before, after, size)
        return sent.seconds + LIMITS.once * sent.alone

    @property
    def fits(self) -> bool:
        """Whether what is alive at each time has room, if each value is divided the most."""
        return not any(
            sum(float(each.min()) for each in row.usages.values()) > row.limit
            for row in self.problem.rows
        )

    @property
    def fullest(self) -> tuple[str, list[tuple[int, int]]]:
        """Where the most is alive, each value divided the most: the equation, and their bytes.

        The largest first.
        """
        most, where, found = -1, "the start", list[tuple[int, int]]()
        for n, live in self._alive():
            each = [
                (v, min(self._sizes(v, *at)) if at else self._whole(v)) for v, at in live.items()
            ]
            if (total := sum(nbytes for _, nbytes in each)) > most:
                most, found, where = total, each, self.graph.nodes[n].name
        return where, sorted(found, key=lambda pair: -pair[1])

    def described(self, value: int) -> str:
        """A value, for a person."""
        if value < len(self.names):
            return self.names[value]
        dims = ",".join(map(str, self.graph.shapes[value]))
        maker = next(node for node in self.graph.nodes if value in node.outs)
        return f"{self.graph.dtypes[value]}[{dims}] of {maker.name}"

    def _alive(self) -> Iterator[tuple[int, dict[int, tuple[int, int] | None]]]:
        """At each node the values that are alive, with their variables.

        On cores also those that have none: each core has all of them.
        """
        found = ((v, self._source(v)) for v in range(len(self.graph.shapes)))
        every = self.units.machine.has_cores
        known = {v: source for v, source in found if every or source is not None}
        return live_values(self.graph, known, len(self.given), self.copies)

    def _whole(self, value: int) -> int:
        """Bytes of a value of which a device has all."""
        return self.ways.held(value, ((),) * len(self.graph.shapes[value]))

    def _rows(self) -> list[Row]:
        """What is alive at a time, where that may be too much; the fullest times."""
        if self.capacity is None:
            return []
        sizes: dict[tuple[int, int], NDArray[np.float64]] = {}
        found: dict[Any, float] = {}
        for n, live in self._alive():
            self.each_step()
            near = {v: source for v, source in live.items() if v not in self.dram}
            counts = Counter(source for source in near.values() if source is not None)
            whole = sum(self._whole(v) for v, source in near.items() if source is None)
            most = least = float(whole)
            for source, count in counts.items():
                if source not in sizes:
                    v = next(v for v in live if live[v] == source)
                    sizes[source] = np.array(self._sizes(v, *source), float)
                most += count * float(sizes[source].max())
                least += count * float(sizes[source].min())
            at = self._of_node[n] if self.copies else -1
            most += float(self._copied(at).max()) if self.copies else 0.0
            if most > self.capacity:
                found.setdefault((at, tuple(sorted(counts.items())), whole), least)
        fullest = sorted(found, key=lambda key: (-found[key], key))[: LIMITS.rows]
        rows = []
        for reader, key, whole in fullest:
            usages = {} if reader < 0 else {reader: self._copied(reader)}
            for source, count in key:
                used = count * sizes[source]
                at = source[0]
                usages[at] = usages[at] + used if at in usages else used
            rows.append(Row(self.capacity - whole, usages))
        return rows

    def _copied(self, at: int) -> NDArray[np.float64]:
        """Bytes of the operands of a node beyond what a device has of them if all have a part."""
        variable = self.variables[at]
        node = self.graph.nodes[variable.members[0]]
        every = self.units.count(range(len(self.units.axes)))
        found = []
        for choice in variable.choices:
            total = 0
            for v, need in zip(node.ins, () if choice is None else choice.ins, strict=False):
                if v is not None and need is not None:
                    total += (
                        self.ways.nbytes(v, need) - self.ways.nbytes(v, ((),) * len(need)) // every
                    )
            found.append(max(total, 0))
        return np.array(found, float)

    # -- what is found -----------------------------------------------------------------------------

    def choices(self, found: Sequence[int]) -> dict[tuple[int, ...], Choice]:
        """The choice of each node, by its path."""
        return {
            self.graph.nodes[n].path: choice
            for variable, k in zip(self.variables, found, strict=False)  # one more: what is joined
            if not variable.is_operand and (choice := variable.choices[k]) is not None
            for n in variable.members
        }

    def places(self, found: Sequence[int]) -> list[Place]:
        """Where each operand is."""
        of = self._of_operand
        return [self.variables[of[k]].choices[found[of[k]]] for k in range(len(self.given))]

    def node(self, path: tuple[int, ...]) -> Node:
        """The node of a path."""
        if not self._by_path:
            self._by_path.update({node.path: node for node in self.graph.nodes})
        return self._by_path[path]

    def operand(self, number: int) -> int:
        """The variable of an operand."""
        return self._of_operand[number]

    def variable(self, node: int) -> int:
        """The variable of a node."""
        return self._of_node[node]
