"""Kernels: what the ops of a program read from memory, and which of their results are stored.

As XLA does, an op that can be fused is computed inside the kernel of each consumer that takes it,
unless its value is a result, or has to be kept, or its consumers would read more for it
(`Dependents`). A value that is stored is read once by each kernel.
The records of primitives say what is fused; `programs/memory.py` finds the buffers of a program
that is decided by the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.stated import STATED
from gridlayout.ops.graph.node import SLICE, Node, Path
from gridlayout.ops.programs.dependents import Dependents
from gridlayout.ops.programs.passes import Traffic


@dataclass(eq=False)
class Kernels:
    """The kernels of a graph's nodes.

    results: the values that are stored because they are returned. views: the results that are their
    operand's bytes, besides those of views. body: the loop around a node, by its path; what enters
    or leaves a loop is stored.
    """

    nodes: Sequence[Node]
    results: Sequence[int | None]
    shapes: Sequence[Shape]
    views: frozenset[int]
    body: Callable[[Path], Path]
    _view: list[bool] = field(default_factory=list)  # of each node, whether it is one
    _source: dict[int, int] = field(default_factory=dict)  # of a view: the value that it shows
    _stored: set[int] = field(default_factory=set)  # results, and what no kernel computes
    _readers: dict[int, list[int]] = field(default_factory=dict)  # nodes that are no views
    _kernels: list[frozenset[int]] = field(default_factory=list)  # of each node, by their last one
    _inside: set[int] = field(default_factory=set)  # the values that are not stored

    def __post_init__(self) -> None:
        self._view = [self._is_view(node) for node in self.nodes]
        for node, is_view in zip(self.nodes, self._view, strict=True):
            if is_view:
                assert node.ins[0] is not None
                self._source[node.outs[0]] = self._shown(node.ins[0])
        self._stored |= {self._shown(v) for v in self.results if v is not None}
        for n, node in enumerate(self.nodes):
            for v in (self._shown(v) for v in node.ins if v is not None):
                if not self._view[n]:
                    self._readers.setdefault(v, []).append(n)
                elif not node.record.takes_fused and node.outs[0] not in self.views:
                    self._stored.add(v)
        self._find_kernels()

    def is_copied(self, row: int, body: Path) -> bool:
        """Return whether a row of a scanned array is copied before the loop's body reads it.

        It is not where the kernels of all that read it cut it out of the array.
        """
        readers = self._readers.get(row, [])
        return row in self._stored or not all(self._takes(body, self.nodes[n]) for n in readers)

    @cached_property
    def traffic(self) -> dict[tuple[int, ...], Traffic]:
        """What each node reads and writes, by its results."""
        found, seen = {}, dict[int, set[int]]()
        for node, is_view, kernels in zip(self.nodes, self._view, self._kernels, strict=True):
            if is_view or node.name in STATED:
                found[node.outs] = Traffic((0,) * len(node.ins), (False,) * len(node.outs))
                continue
            if node.name == SLICE:
                copied = self.is_copied(node.outs[0], self.body(node.path))
                found[node.outs] = Traffic((0,), (copied,))
                continue
            reads = tuple(self._read(node, v, kernels, seen) for v in node.ins)
            writes = tuple(v not in self._inside for v in node.outs)
            found[node.outs] = Traffic(reads, writes)
        return found

    def _read(
        self, node: Node, value: int | None, kernels: frozenset[int], seen: dict[int, set[int]]
    ) -> int:
        """Return how many kernels read an operand for a node; seen: those that have read it."""
        if value is None or (source := self._shown(value)) in self._inside:
            return 0
        if node.record.multiplies:  # a product passes over each operand
            return 1
        known = seen.setdefault(source, set())
        new = kernels - known
        known |= new
        return len(new)

    def _shown(self, value: int) -> int:
        return self._source.get(value, value)

    def _is_view(self, node: Node) -> bool:
        """Return whether the result of a node is its operand's bytes."""
        if not node.ins or node.ins[0] is None or len(node.outs) != 1:
            return False
        before, after = prod(self.shapes[node.ins[0]]), prod(self.shapes[node.outs[0]])
        is_same = node.record.is_view or node.record.is_reduction
        return node.outs[0] in self.views or (is_same and before == after)

    def _find_kernels(self) -> None:
        self._kernels = [frozenset()] * len(self.nodes)
        made = (
            ([k for k in node.ins if k is not None], node.outs, is_view)
            for node, is_view in zip(self.nodes, self._view, strict=True)
        )
        dependents = Dependents(dict(enumerate(map(prod, self.shapes))), made)
        for n in reversed(range(len(self.nodes))):
            node, mine = self.nodes[n], set[int]()
            for v in node.outs:
                readers = self._readers.get(v, [])
                makes = ((k, self.nodes[k].outs) for k in readers)
                is_apart = dependents.is_stored(v, makes, self._inside)
                fuses = node.record.is_fused and v not in self._stored
                if fuses and all(self._takes(self.body(node.path), self.nodes[k]) for k in readers):
                    into = {kernel for k in readers for kernel in self._kernels[k]}
                    if len(into) < 2 or not (node.record.is_kept or is_apart):
                        self._inside.add(v)
                        mine |= into
                        continue
                mine.add(n)
            self._kernels[n] = frozenset(mine)

    def _takes(self, body: Path, consumer: Node) -> bool:
        """Return whether a consumer computes what is made in a loop's body in its own kernel."""
        return consumer.record.takes_fused and self.body(consumer.path) == body
