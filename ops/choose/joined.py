"""Joined collectives: the latencies that several collectives of a program share.

Collectives of one kind over the same devices become one if none depends on another: sums of one
level, and moves of one level that send the same. The latency is then paid once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.changes import Joined
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.variables import Moved, Place
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node, Path
from gridlayout.ops.solver.problem import Fetch


@dataclass(eq=False)
class _Group:
    """A latency, and the choices that share it: 0 for such a choice, -1 for any other."""

    seconds: float
    reads: dict[int, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(eq=False)
class Latencies:
    """The shared latencies of a problem, by what the collectives have in common."""

    groups: dict[Hashable, _Group] = field(default_factory=dict)

    def add(self, key: Hashable, seconds: float, variable: int, choices: int, choice: int) -> None:
        """Add one of a variable's `choices`, whose price lacks the latency of `seconds`."""
        self._reads(key, seconds, variable, choices)[choice] = 0

    def _reads(
        self, key: Hashable, seconds: float, variable: int, choices: int
    ) -> NDArray[np.int64]:
        """Return which of a variable's choices share a latency, to be changed in place."""
        if (group := self.groups.get(key)) is None:
            group = self.groups[key] = _Group(seconds)
        if variable not in group.reads:
            group.reads[variable] = np.full(choices, -1)
        return group.reads[variable]

    def add_readers(
        self,
        key: Hashable,
        seconds: float,
        form: int,
        consumers: Sequence[tuple[int, NDArray[np.int64]]],
    ) -> None:
        """Add all choices of consumers that read a form."""
        for consumer, read in consumers:
            if (reads := read == form).any():
                self._reads(key, seconds, consumer, len(read))[reads] = 0

    def fetches(self, costs: list[NDArray[np.float64]]) -> list[Fetch]:
        """Return the fetch of all latencies, of which each is paid once.

        costs: of all choices. Latencies that only one variable has are added to them, and a
        variable with one choice is appended: the source of the other latencies.
        """
        shared = [group for group in self.groups.values() if len(group.reads) > 1]
        for group in self.groups.values():
            for at, read in group.reads.items() if len(group.reads) == 1 else ():
                costs[at] = costs[at] + np.where(read >= 0, group.seconds, 0.0)
        costs.append(np.zeros(1))
        if not shared:
            return []
        prices = np.array([[group.seconds for group in shared]])
        reads = (
            (at, np.where(read >= 0, form, -1))
            for form, group in enumerate(shared)
            for at, read in group.reads.items()
        )
        return [Fetch(len(costs) - 1, prices, tuple(reads))]


@dataclass(frozen=True, eq=False)
class Read:
    """The moves of a fetch: of a value from each place of its source to each form.

    stays: the forms, by number, that are read only where they are held. moved: where and how often
    it moves. count: how often it and the values that equal it do.
    """

    value: int
    held: Sequence[Place]
    forms: Sequence[Division]
    stays: Sequence[bool]
    moved: Moved
    count: float


@dataclass(frozen=True)
class JoinedMove:
    """A move that can be joined with others.

    held: the division of the value before. latency: which is shared, of each run; seconds: of all
    runs. key: of the moves that are joined with it.
    """

    held: Division | None
    latency: float
    seconds: float
    key: Hashable


@dataclass(frozen=True)
class Levels:
    """For each node, how many sums its own one has to wait for, one after another.

    of_kind: where it is known how the others run, by node and kind of sum; sums of one kind and
    level do not depend on each other. any_kind: otherwise, by value; -1 for values that reach
    results through elementwise operations, transposes and reshapes alone, which can wait until the
    end.
    """

    of_kind: dict[Path, dict[Hashable, int]]
    any_kind: dict[int, int]

    def of(self, node: Node, kind: Hashable) -> int:
        """Return the level of a node's sum of a kind."""
        if self.of_kind:
            return self.of_kind[node.path].get(kind, 0)
        return self.any_kind[node.outs[0]]


def sum_kind(node: Node, choice: Choice) -> Hashable:
    """Return what the sum of a node sends: over which units, to whom, and how it is combined.

    Additions of all primitives are of one kind; maxima are of another one than minima.
    """
    how = node.name if node.name.startswith(("reduce_m", "reduce_p", "arg")) else "sum"
    return choice.summed, choice.scattered, how


def sum_levels(graph: Graph, choices: Mapping[Path, Choice] | None = None) -> Levels:
    """Return the levels of sums; choices: how the nodes run, if that is known."""
    if choices is None:
        return Levels({}, _levels(graph))
    found: dict[Path, dict[Hashable, int]] = {}
    after: dict[int, dict[Hashable, int]] = {}  # of each value: the sums that it waits for
    for node in graph.nodes:
        mine: dict[Hashable, int] = {}
        for v in node.ins:
            for kind, count in after.get(v, {}).items() if v is not None else ():
                mine[kind] = max(mine.get(kind, 0), count)
        found[node.path] = mine
        choice = choices.get(node.path)
        if choice is not None and choice.summed:
            kind = sum_kind(node, choice)
            mine = {**mine, kind: mine.get(kind, 0) + 1}
        after |= dict.fromkeys(node.outs, mine)
    return Levels(found, {})


def _levels(graph: Graph) -> dict[int, int]:
    found: dict[int, int] = {}
    for node in graph.nodes:
        level = max((found.get(v, 0) for v in node.ins if v is not None), default=0)
        sums = node.factors is not None and bool(node.factors.summed)
        found |= dict.fromkeys(node.outs, level + sums)
    return found | dict.fromkeys(_ends(graph), -1)


def _ends(graph: Graph) -> set[int]:
    found = {v for v in graph.outs if v is not None}
    others: set[int] = set()
    for node in reversed(graph.nodes):
        first = node.outs[:1]  # none, of what only prints or checks
        found.difference_update(others.intersection(first))
        is_chain = (node.members or node.record.is_chain) and not found.isdisjoint(first)
        for v in node.ins:
            if v is not None:
                (found if is_chain else others).add(v)
    return found - others


def joined_later(
    graph: Graph,
    reads: Sequence[Read],
    chosen: Sequence[Sequence[Division | None]],
    moved: Mapping[tuple[int, Division], tuple[int, int, Division, Joined | None]],
) -> dict[tuple[int, int], JoinedMove]:
    """Return the moves of a solution that can be joined, by the numbers of their fetch and form.

    chosen: what each node reads its operands as. moved: by value and what it is moved to, the
    number of the fetch in `reads`, the form, the value's division, and what can be joined.
    """
    kinds: dict[tuple[int, Division], tuple[Joined, str, Path]] = {}
    for (v, need), (k, _, _, made) in moved.items():
        if made is not None:
            kinds[v, need] = made, str(graph.dtypes[v]), reads[k].moved.body
    found = {}
    if len(kinds) > 1:
        for (level, (made, *rest)), moves in _move_levels(graph, chosen, kinds).items():
            for v, need in moves:
                k, form, held, _ = moved[v, need]
                seconds = made.latency * (
                    reads[k].count if v >= graph.operands else reads[k].moved.times
                )
                key = made.kind, *rest, level
                found[k, form] = JoinedMove(held, made.latency, seconds, key)
    return found


def _move_levels(
    graph: Graph,
    chosen: Sequence[Sequence[Division | None]],
    kinds: Mapping[tuple[int, Division], Hashable],
) -> dict[tuple[int, Any], list[tuple[int, Division]]]:
    """Return the moves that can be joined, by how many of their kind come before, and their kind.

    chosen: what each node reads its operands as. kinds: the kind of each move, by value and what it
    is moved to.
    """
    found: dict[tuple[int, Any], dict[tuple[int, Division], None]] = {}
    after: dict[int, dict[Hashable, int]] = {}  # of each value: the moves that it waits for
    for node, needs in zip(graph.nodes, chosen, strict=True):
        mine: dict[Hashable, int] = {}
        for v, need in zip(node.ins, needs, strict=False):
            if v is None:
                continue
            before = after.get(v, {})
            if need is not None and (kind := kinds.get((v, need))) is not None:
                level = before.get(kind, 0)
                found.setdefault((level, kind), {})[v, need] = None
                before = {**before, kind: level + 1}
            for each, count in before.items():
                mine[each] = max(mine.get(each, 0), count)
        after |= dict.fromkeys(node.outs, mine)
    return {key: [*moves] for key, moves in found.items() if len(moves) > 1}
