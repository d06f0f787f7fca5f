"""`Graph`: a program's steps, the values between them, and the moves of values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gridlayout.dtypes import MLIR_NAMES
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.decision import Decision, Step
from gridlayout.ops.decisions.specs import Deferred, Held, Indexed, Local, Sharded, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.programs.passes import Traffic
from gridlayout.ops.programs.program import RELAYOUT, Made, Program, program_in
from gridlayout.ops.programs.row import Row, row_of
from gridlayout.sharding.collectives import Collective

OPERAND = -1
# What makes a value: the number of a node and of its result, or OPERAND and an operand's number.
Source = tuple[int, int]


@dataclass(frozen=True)
class Tensor:
    """A value: its shape, its short dtype name, and its layout.

    held: where it is stored, if it has no layout of its own.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: Layout | None
    held: str = ""


@dataclass(frozen=True)
class Move:
    """A relayout of a value for the nodes that read it; node: the first of these.

    before: the number of a move that precedes it, or None. to, held: the value's state after it, as
    in `Tensor`.
    """

    node: int
    source: Source
    before: int | None
    collectives: tuple[Collective, ...]
    to: Layout | None
    held: str = ""


@dataclass(frozen=True)
class Read:
    """An operand of a node: its source, and the number of the move that relays it out."""

    source: Source
    move: int | None = None


@dataclass(frozen=True)
class Body:
    """A program inside a node: how often it runs, and whether its rows are counted.

    note: which part of it is counted.
    """

    title: str
    times: int
    graph: Graph
    is_counted: bool
    note: str = ""


@dataclass(frozen=True)
class Node:
    """A decision as a node: its row, and the values that it reads and makes, without constants.

    note: the algorithm. collectives: its own, without those of moves. within: the called functions
    around it. is_listed: whether it belongs to an equation on arrays, not only on single numbers.
    is_row: whether the report has a row for it, besides those of its bodies. is_run: whether any of
    its steps runs.
    """

    row: Row
    note: str
    reads: tuple[Read, ...]
    results: tuple[Tensor, ...]
    collectives: tuple[Collective, ...]
    bodies: tuple[Body, ...]
    within: tuple[tuple[str, int], ...]
    is_listed: bool
    is_row: bool
    is_run: bool


@dataclass(frozen=True)
class Graph:
    """Nodes in order, on operands, to results; a result that is a constant is None.

    names, result_names: the users' names for operands and results. title: of the function.
    """

    operands: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    results: tuple[Source | None, ...]
    moves: tuple[Move, ...]
    names: tuple[str, ...] = ()
    result_names: tuple[str, ...] = ()
    title: str = ""

    @property
    def rows(self) -> Iterator[Row]:
        """The rows of a report; the rows of bodies precede that of their node."""
        for node in self.nodes:
            for body in node.bodies:
                if body.is_counted:
                    yield from body.graph.rows
            if node.is_row:
                yield node.row

    @cached_property
    def unread(self) -> frozenset[int]:
        """The nodes that no result needs; those that have no effect are not run."""
        needed = {source[0] for source in self.results if source is not None}
        for n in reversed(range(len(self.nodes))):
            if n in needed or self.nodes[n].is_run:
                needed.update(read.source[0] for read in self.nodes[n].reads)
        return frozenset(range(len(self.nodes))) - needed

    def tensor(self, source: Source) -> Tensor:
        """Return the value of a source."""
        node, k = source
        return self.operands[k] if node == OPERAND else self.nodes[node].results[k]


def graph_of(program: Program, times: int = 1, note: str = "") -> Graph:
    """Return the graph of a program that runs `times` times; note: which part is counted."""
    return _Reading(program, times, note).graph()


class _Reading:
    """A walk through a program's decisions, in order."""

    def __init__(self, program: Program, times: int, note: str) -> None:
        self.program, self.times, self.note = program, times, note
        self.reads: dict[Value, Read | None] = {}  # the values that decisions have made
        self.nodes: list[Node] = []
        self.moves: list[Move] = []
        self.moved: dict[int, int] = {}  # the number of the move that writes a register
        # Of equal layers, which have the same decisions and specs: by these, by identity.
        self.rows: dict[Hashable, Row] = {}
        self.tensors: dict[int, Tensor] = {}

    def graph(self) -> Graph:
        """Return the graph of the whole program."""
        run = self.program.steps_by_decision
        for number, made in enumerate(self.program.made):
            found = [self._read(value) for value in made.values]
            if made.is_listed:
                self._add(number, made, run.get(number, []), found)
            elif made.decision.op.name == RELAYOUT:
                self.reads.update(zip(made.outs, found, strict=True))
            elif any(found):
                self._add(number, made, run.get(number, []), found)
            else:
                self.reads.update(dict.fromkeys(made.outs))
        outs = self._results()
        return Graph(
            tuple(tensor_of(spec) for spec in self.program.operands),
            tuple(self.nodes),
            tuple(None if out is None else out.source for out in outs),
            tuple(self.moves),
        )

    def _read(self, value: Value) -> Read | None:
        """Return where a value comes from; None for a constant."""
        if value in self.reads:
            return self.reads[value]
        return Read((OPERAND, value.at)) if isinstance(value.at, int) else None

    def _results(self) -> list[Read | None]:
        """Return where results come from, also with their padding set or in another memory."""
        before = {x.writes[0]: x.reads[0] for x in self.program.steps if x.sets_padding}
        made = {value.at: read for value, read in self.reads.items() if isinstance(value.at, int)}
        found = []
        for out in self.program.outs:
            at = before.get(out.at, out.at) if isinstance(out.at, int) else None
            found.append(made[at] if out not in self.reads and at in made else self._read(out))
        return found

    def _add(
        self, at: int, made: Made, steps: Sequence[Step], found: Sequence[Read | None]
    ) -> None:
        """Add a node for decision `at` of the program, with these operands."""
        number, decision = len(self.nodes), self.program.done(at)
        moves, own = self._operand_moves(made, steps, found)
        reads = dict.fromkeys(
            Read(read.source, moves.get(k, read.move))
            for k, read in enumerate(found)
            if read is not None
        )
        row = self._row(decision, steps, made.traffic)
        node = Node(
            replace(row, made=made),
            decision.note,
            tuple(reads),
            tuple(self._tensor(out.spec) for out in decision.outs),
            tuple(c.times(self.times) for c in own),
            tuple(body for step in steps for body in self._bodies(step)),
            made.within,
            made.is_listed,
            made.is_listed and (not decision.bodies or row.seconds > 0 or bool(row.collectives)),
            bool(steps),
        )
        self.nodes.append(node)
        self.reads.update({out: Read((number, k)) for k, out in enumerate(made.outs)})

    def _row(self, decision: Decision, steps: Sequence[Step], traffic: Traffic | None) -> Row:
        """Return the row of a decision, of which steps run."""
        key = id(decision), traffic, *((step.collectives, step.masks) for step in steps)
        if key not in self.rows:
            given = self.times, self.note, self.program.machine, traffic
            self.rows[key] = row_of(decision, steps, *given)
        return self.rows[key]

    def _tensor(self, spec: Held) -> Tensor:
        if id(spec) not in self.tensors:
            self.tensors[id(spec)] = tensor_of(spec)
        return self.tensors[id(spec)]

    def _bodies(self, step: Step) -> Iterator[Body]:
        """Yield the programs inside a step; for branches all of them, in their order."""
        every = [*step.bodies, *step.others]
        if step.others:
            every.sort(key=lambda body: (len(body.title), body.title))
        for body in every:
            graph = graph_of(program_in(body), self.times * max(body.times, 1), body.note)
            named = replace(graph, names=body.roles)
            note = body.note if body.times else "not counted"
            yield Body(body.title, body.times, named, body.times > 0, note)

    # -- moves ---------------------------------------------------------------------------------

    def _operand_moves(
        self, made: Made, steps: Sequence[Step], found: Sequence[Read | None]
    ) -> tuple[dict[int, int], list[Collective]]:
        """Return the moves of operands, by operand number, and the step's other collectives."""
        stands: dict[int, int] = {}  # the operand in each register, relaid out or not
        for k, value in enumerate(made.values):
            if isinstance(value.at, int):
                stands.setdefault(value.at, k)
        moves: dict[int, int] = {}
        relayouts = []
        needed: set[int] = set()  # registers read by steps that do more than relay out one operand
        for step in steps:
            at = [k for k in step.reads if isinstance(k, int)]
            for k in at:
                self._shared(k, stands, moves, found)
            if step.is_lazy and len(at) == len(step.writes) == 1 and at[0] in stands:
                stands[step.writes[0]] = stands[at[0]]
                relayouts.append(step)
            else:
                needed.update(at)
        for step in reversed(relayouts):
            if step.writes[0] in needed:
                needed.add(step.reads[0])
        own: list[Collective] = []
        for step in steps:
            if step in relayouts and step.writes[0] in needed:
                self._move(step, stands[step.reads[0]], moves, found)
            else:
                own += step.collectives
        return moves, own

    def _shared(
        self, at: int, stands: dict[int, int], moves: dict[int, int], found: Sequence[Read | None]
    ) -> None:
        """Record which operand is in a register because of an earlier decision's move."""
        number = self.moved.get(at)
        if number is None or at in stands:
            return
        for k, read in enumerate(found):
            if read is not None and read.source == self.moves[number].source:
                stands[at], moves[k] = k, number
                return

    def _move(
        self, step: Step, k: int, moves: dict[int, int], found: Sequence[Read | None]
    ) -> None:
        """Record a step that relays out operand `k` or a part of that."""
        read, number = found[k], len(self.nodes)
        if read is None or not step.collectives:
            if k in moves:
                self.moved[step.writes[0]] = moves[k]
            return
        to = tensor_of(self.program.registers[step.writes[0]])
        sent = tuple(c.times(self.times) for c in step.collectives)
        before = moves.get(k, read.move)
        if before is not None and self.moves[before].node == number:
            first = self.moves[before]
            sent = (*first.collectives, *sent)
            self.moves[before] = Move(number, read.source, first.before, sent, to.layout, to.held)
        else:
            moves[k] = len(self.moves)
            self.moves.append(Move(number, read.source, before, sent, to.layout, to.held))
        self.moved[step.writes[0]] = moves[k]


def tensor_of(spec: Any) -> Tensor:
    """Return a spec as a `Tensor`, for texts and drawings."""
    is_number = isinstance(spec.dtype, np.dtype)
    name = MLIR_NAMES.get(spec.dtype.name, spec.dtype.name) if is_number else str(spec.dtype)
    if isinstance(spec, Sharded):
        return Tensor(spec.shape, name, spec.layout)
    if isinstance(spec, Deferred):
        layout = layout_of(spec) if spec.is_unbroadcast else None
        how = "made" if isinstance(spec.source, Indexed) else "broadcast"
        return Tensor(spec.shape, name, layout, "" if layout else f"{how} where it is read")
    held = "" if isinstance(spec, Local) else "on every device"
    return Tensor(tuple(spec.shape), name, None, held)
