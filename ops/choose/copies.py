"""`Copies`: what nodes hold of their operands besides what the values take where they are stored.

A value that a node reads in another division than it is stored in has a copy in that division. So
has the part of a value that is computed where it is cut into parts, and read by a product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.live_ranges import Stored
from gridlayout.ops.choose.variables import Variables
from gridlayout.ops.graph.node import CARRY, SLICE, Node

Bytes = NDArray[np.float64]


@dataclass
class Copied:
    """Bytes that a node holds: by its own choice, and by pairs of choices, its own the second."""

    own: Bytes
    pairs: dict[tuple[int, int], Bytes] = field(default_factory=dict)

    @property
    def most(self) -> float:
        """The most bytes for any choices."""
        return float(self.own.max()) + sum(float(each.max()) for each in self.pairs.values())


@dataclass(frozen=True, eq=False)
class Copies:
    """The copies of the operands of each node, at least.

    known: the values that count, with the variables that their bytes depend on, if any; as in
    `Room`. finest: the bytes of the finest part of a value.
    """

    of: Variables
    stored: Stored
    known: Mapping[int, tuple[int, int] | None]
    finest: Mapping[int, int]
    _pairs: dict[Any, Bytes] = field(default_factory=dict)

    def at(self, n: int) -> Copied:
        """Return what a node holds of its operands besides what is stored."""
        node, at = self.of.graph.nodes[n], self.of.variable(n)
        choices = self.of.variables[at].choices
        made = Copied(np.zeros(len(choices)))
        if node.name in (CARRY, SLICE) or choices[0] is None:
            return made
        for position, v in enumerate(node.ins):
            source = None if v is None else self.of.source(v)
            if v is None or source is None or v in node.ins[:position] or not self._moves(v):
                continue
            forms = [choice.ins[position] for choice in choices]
            if v in self.stored.parts and not _fuses(node):
                sizes = [0 if form is None else self.of.ways.held(v, form) for form in forms]
                made.own += np.maximum(np.array(sizes, float) - self.finest[v], 0)
            elif source[0] != at:
                both = self._moved(v, n, source, at, position)
                if both.any():
                    key = source[0], at
                    made.pairs[key] = made.pairs[key] + both if key in made.pairs else both
        return made

    def most(self, n: int) -> float:
        """Return at least as many bytes as a node holds of its operands besides what is stored.

        They are found in less time, as if each operand were moved to the largest division.
        """
        node, choices = self.of.graph.nodes[n], self.of.variables[self.of.variable(n)].choices
        if node.name in (CARRY, SLICE) or choices[0] is None:
            return 0.0
        found = 0.0
        for position, v in enumerate(node.ins):
            if v is not None and self._moves(v):
                forms = {choice.ins[position] for choice in choices} - {None}
                found += max((self.of.ways.held(v, form) for form in forms), default=0)
        return found

    def kept(self, v: int) -> tuple[tuple[int, int], Bytes] | None:
        """Return the bytes of a value beyond its finest part, where it is surely stored as it is.

        It is, if a node that does not compute its operands reads it so. The result is the variables
        of the value and of such a node, and the bytes by their choices; None if there is none.
        """
        source, n = self.of.source(v), self._readers.get(v)
        if n is None or source is None or source[0] == (at := self.of.variable(n)):
            return None
        position = self.of.graph.nodes[n].ins.index(v)
        sizes = [self.of.ways.held(v, x) for x in self.of.held(*source)]
        more = np.maximum(np.array(sizes, float) - self.finest[v], 0)
        forms = [choice.ins[position] for choice in self.of.variables[at].choices]
        same = np.array([[a == b for b in forms] for a in self.of.held(*source)])
        return (source[0], at), more[:, None] * same

    @cached_property
    def _readers(self) -> dict[int, int]:
        """The last node that reads a value and does not compute its operands."""
        return {
            v: n
            for n, node in enumerate(self.of.graph.nodes)
            if self.of.variables[self.of.variable(n)].choices[0] is not None
            and node.name not in (CARRY, SLICE)
            and not _fuses(node)
            for v in node.ins
            if v is not None and self._moves(v)
        }

    def _moves(self, value: int) -> bool:
        """Return whether a value is stored, and moved to where it is read."""
        graph = self.of.graph
        is_computed = value in graph.free or value in graph.folded
        return bool(graph.shapes[value]) and not is_computed

    def _moved(self, v: int, n: int, source: tuple[int, int], at: int, position: int) -> Bytes:
        """Return the bytes of a copy, [choice of the value's variable, choice of the node's].

        At its last use, a value is moved before the node runs, and does not count any more.
        """
        first, last = self.stored.ranges.get(v, (0, -1))
        goes = v in self.known and first <= n == last < len(self.of.graph.nodes)
        finest = self.finest[v] if goes and v in self.stored.parts else None
        shape, width = self.of.graph.shapes[v], self.of.graph.width(v)
        key = source, at, position, shape, width, goes, finest
        if key not in self._pairs:
            held = self.of.held(*source)
            forms = [choice.ins[position] for choice in self.of.variables[at].choices]
            known: dict[Any, float] = {}
            for pair in product(held, forms):
                if pair not in known:
                    known[pair] = self._copy(v, *pair, goes)
            found = [known[pair] for pair in product(held, forms)]
            self._pairs[key] = np.array(found).reshape(len(held), len(forms))
        return self._pairs[key]

    def _copy(self, v: int, old: Any, new: Any, goes: bool) -> float:
        """Return the bytes of a copy in another division; none for a part of what is there."""
        if old is None or new is None or old == new or self.of.units.is_local(old, new):
            return 0.0
        counted = 0
        if goes:
            own = self.known[v] is None
            counted = self.finest[v] if own else self.of.ways.held(v, old)
        return max(self.of.ways.held(v, new) - counted, 0)


def _fuses(node: Node) -> bool:
    """Return whether a node computes operands while it reads them."""
    return node.equations[0].record.takes_fused
