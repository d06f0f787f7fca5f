"""The variables of a planning problem, for the operands and the nodes of a graph.

The choices of an operand are the divisions that a layout can state. The choices of a node are the
ways to assign units of the mesh to its factors. In large graphs (`Graph.is_large`), equal nodes, as
in the layers of a stack, share one variable, and so do equal operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.chains import of_member
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.choose.labels import labels
from gridlayout.ops.choose.ways import Ways
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import CARRY, SLICE, Node, Path
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.stated_axes import StatedAxes


class Place(NamedTuple):
    """The place of an operand: its division, and whether it is in the DRAM behind the cores.

    division: None for an operand of `gl.on_grid` whose blocks are those of no division.
    """

    division: Division | None
    in_dram: bool = False


class Moved(NamedTuple):
    """Where and how often a value is moved to what reads it.

    body: of the loop in which it is moved. times: how often. What a loop does not change is moved
    before it. again: how often it is cut for each of these times, where nothing is sent: in each
    iteration.
    """

    body: Path
    times: float
    again: float = 1.0


@dataclass(eq=False)
class Variable:
    """A variable: equal operands, or equal nodes, for which one choice is made.

    members: the numbers of the operands or nodes. choices: the places of an operand, or the ways to
    run a node; None if nothing is known about it. seconds: the time of each choice for one member.
    stays: of the rows of a scanned array, the number of choices, the first ones, that read it where
    it is. The others are the same ones, with a copy of the array for the time of the loop.
    """

    is_operand: bool
    members: list[int]
    choices: list[Any]
    seconds: NDArray[np.float64]
    stays: int = 0


@dataclass(eq=False)
class Variables:
    """The variables of a graph, and the choices of each.

    given: for each operand, the places that it may have. targets: for each result, the divisions
    that it may have; or the number of the operand whose next value it is, and whose division it
    takes. names: of the operands. most: as in `Ways`. each_step: is called at each step of the
    construction, and ends it by raising.
    """

    graph: Graph
    units: Units
    given: Sequence[Sequence[Place]]
    targets: Sequence[Sequence[Division] | int]
    names: Sequence[str] = ()
    most: int | None = None
    each_step: Callable[[], None] = field(default=no_step, repr=False)
    variables: list[Variable] = field(default_factory=list)
    _of_operand: dict[int, int] = field(default_factory=dict)
    _of_node: dict[int, int] = field(default_factory=dict)
    _by_path: dict[tuple[int, ...], Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pairs = ((v, some[0].division) for v, some in enumerate(self.given) if len(some) == 1)
        placed = {(self.graph.shapes[v], own) for v, own in pairs if own is not None}
        self.ways = Ways(self.graph, self.units, self.most, sorted(placed))
        own, nodes = labels(self.graph, len(self.given))
        merged: dict[Hashable, int] = {}
        order: list[tuple[bytes, bool, int]] = []
        order += [(own[k], True, k) for k in range(len(self.given))]
        order += [(nodes[n], False, n) for n in range(len(self.graph.nodes))]
        for label, is_operand, number in sorted(order):
            self.each_step()
            allowed = tuple(map(tuple, self.given[number])) if is_operand else ()
            key = (label, is_operand, allowed) if self.graph.is_large else (number, is_operand)
            at = merged.setdefault(key, len(self.variables))
            if at == len(self.variables):
                make = self._operand if is_operand else self._node
                self.variables.append(make(number))
            else:
                self.variables[at].members.append(number)
            (self._of_operand if is_operand else self._of_node)[number] = at

    def _operand(self, number: int) -> Variable:
        choices = list(self.given[number])
        held = [
            0 if place.division is None else self.ways.nbytes(number, place.division)
            for place in choices
        ]
        seconds = [LIMITS.read_penalty * self.units.machine.seconds(nbytes=each) for each in held]
        return Variable(True, [number], choices, np.array(seconds))

    def _node(self, number: int) -> Variable:
        node = self.graph.nodes[number]
        if node.factors is None:
            return Variable(False, [number], [self.ways.undivided(node)], np.zeros(1))
        if (stated := node.placed(self.units.device)) is not None:
            return self._stated(number, stated)
        choices, seconds = self.ways.of(node)
        if node.name != SLICE or self.most is not None or self.units.machine.has_cores:
            return Variable(False, [number], list(choices), seconds)
        return Variable(False, [number], [*choices] * 2, np.tile(seconds, 2), len(choices))

    def _stated(self, number: int, stated: Sharded) -> Variable:
        """Return the variable of a node whose placement the program states.

        Its choices are the divisions that have the stated axes: one, unless dims are left open.
        """
        node = self.graph.nodes[number]
        axes = node.constraint(self.units.device)
        if axes is not None and None in axes:
            found = [x for x in self.ways.of(node)[0] if self._has_axes(x.out, axes)]
            if found:
                return Variable(False, [number], found, np.zeros(len(found)))
        division = self.units.stated(stated, f"{node.name}: {stated.layout!r}")
        rest = (None,) * (len(node.ins) - 1)
        return Variable(
            False, [number], [Choice((division, *rest), division, division)], np.zeros(1)
        )

    def _has_axes(self, division: Division, axes: StatedAxes) -> bool:
        own = map(self.units.mesh_axes, division)
        return all(need is None or found == need for found, need in zip(own, axes, strict=True))

    # -- values ------------------------------------------------------------------------------------

    def source(self, value: int) -> tuple[int, int] | None:
        """Return the variable of a value and its result number; None if the value is replicated."""
        if value < len(self.given):
            return self._of_operand[value], 0
        return self._makers.get(value)

    @cached_property
    def _makers(self) -> dict[int, tuple[int, int]]:
        """The variable of each value that a node produces, and its number among the results."""
        return {
            v: (self._of_node[n], k)
            for n, node in enumerate(self.graph.nodes)
            if node.factors is not None
            for k, v in enumerate(node.outs)
        }

    def held(self, at: int, position: int) -> list[Division]:
        """Return the division of a value under each choice of its variable."""
        variable = self.variables[at]
        if variable.is_operand:
            return [place.division for place in variable.choices]
        node = self.graph.nodes[variable.members[0]]
        assert node.factors is not None
        rank = len(node.factors.outs[position])
        whole: Division = ((),) * rank
        return [x.out if len(x.out) == rank else whole for x in variable.choices]

    def forms(
        self, needs: Sequence[tuple[int, Sequence[Division | None]]]
    ) -> tuple[list[Division], list[bool], list[tuple[int, NDArray[np.int64]]]]:
        """Return the forms of a value that are read, and which one each choice of variables reads.

        needs: the variables, and what each reads the value as, by choice. The second list says of
        each form whether it is read only where the value is held like that (`Variable.stays`).
        """
        numbers: dict[tuple[Division, bool], int] = {}
        reads = []
        for at, own in needs:
            stays = self.variables[at].stays
            read = [
                -1 if need is None else numbers.setdefault((need, k < stays), len(numbers))
                for k, need in enumerate(own)
            ]
            reads.append((at, np.array(read)))
        return [form for form, _ in numbers], [stays for _, stays in numbers], reads

    def described(self, value: int) -> str:
        """Return the name or a description of a value, for error texts and reports."""
        if value < len(self.names):
            return self.names[value]
        dims = ",".join(map(str, self.graph.shapes[value]))
        maker = next(node for node in self.graph.nodes if value in node.outs)
        return f"{self.graph.dtypes[value]}[{dims}] of {maker.name}"

    def moved(self, node: Node, position: int) -> Moved:
        """Return where and how often an operand of a node is moved."""
        graph = self.graph
        body, times = graph.body(node.path), node.times
        if not position and node.name in (CARRY, SLICE):  # it is read before the loop
            return Moved(graph.body(body), node.starts)
        v = node.ins[position]
        maker = None if v is None else graph.makers.get(v)
        made = () if maker is None else graph.body(maker.path)
        while len(body) > len(made):
            body = graph.body(body)
            times = graph.loops.get(body, 1)
        return Moved(body, times, node.times / times)

    # -- solutions -------------------------------------------------------------------------------

    def choices(self, found: Sequence[int]) -> dict[tuple[int, ...], Choice]:
        """Return the choice of each node in a solution, by the node's path."""
        # The last choice in `found` is for joined collectives, which are no variable.
        made: dict[tuple[int, ...], Choice] = {}
        for variable, k in zip(self.variables, found, strict=False):
            choice: Choice | None = None if variable.is_operand else variable.choices[k]
            if choice is None:
                continue
            for node in (self.graph.nodes[n] for n in variable.members):
                if node.factors is None:  # its rule decides, whatever is requested
                    continue
                made |= {each.path: of_member(each, choice) for each in node.members}
                if not node.members:
                    made[node.path] = choice
        return made | apart_in(self.graph, made, lambda node: node.record.is_permutation)

    def reads(self, found: Sequence[int]) -> list[Sequence[Division | None]]:
        """Return what each node reads its operands as in a solution; empty if that is unknown."""
        made = []
        for n in range(len(self.graph.nodes)):
            at = self._of_node[n]
            choice = self.variables[at].choices[found[at]]
            made.append(() if choice is None else choice.ins)
        return made

    def places(self, found: Sequence[int]) -> list[Place]:
        """Return the place of each operand in a solution."""
        of = self._of_operand
        return [self.variables[of[k]].choices[found[of[k]]] for k in range(len(self.given))]

    def node(self, path: tuple[int, ...]) -> Node:
        """Return the node of a path."""
        if not self._by_path:
            self._by_path.update({node.path: node for node in self.graph.nodes})
        return self._by_path[path]

    def inside(self, path: Path) -> Sequence[int]:
        """Return the numbers of the nodes that are the equation of a path, or within it."""
        return self._inside.get(path, ())

    @cached_property
    def _inside(self) -> dict[Path, list[int]]:
        found: dict[Path, list[int]] = {}
        for n, node in enumerate(self.graph.nodes):
            paths = (each.path for each in node.equations)
            for outer in {path[:k] for path in paths for k in range(1, len(path) + 1)}:
                found.setdefault(outer, []).append(n)
        return found

    def operand(self, number: int) -> int:
        """Return the variable of an operand."""
        return self._of_operand[number]

    def variable(self, node: int) -> int:
        """Return the variable of a node."""
        return self._of_node[node]


def apart_in(
    graph: Graph, choices: Mapping[Path, Choice], where: Callable[[Node], bool]
) -> dict[Path, Choice]:
    """Return the choices of some nodes with the operands that no other node reads so divided.

    Those that others read too are relaid out once, for all of them.
    """
    nodes = [node for node in graph.nodes if node.path in choices]
    asking = list(filter(where, nodes))
    if not asking:
        return {}
    readers = Counter(
        pair for node in nodes for pair in {*zip(node.ins, choices[node.path].ins, strict=False)}
    )
    found = {}
    for node in asking:
        choice = choices[node.path]
        pairs = enumerate(zip(node.ins, choice.ins, strict=True))
        found[node.path] = choice._replace(
            apart=tuple(k for k, pair in pairs if readers[pair] == 1)
        )
    return found
