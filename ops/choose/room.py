"""`Room`: the memory of the values that are live at each node, as limits on the choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.live_ranges import changes, live_values
from gridlayout.ops.choose.live_ranges import live_ranges
from gridlayout.ops.choose.variables import Variables
from gridlayout.ops.solver.problem import Row
from gridlayout.sharding.limits import LIMITS


@dataclass(frozen=True, eq=False)
class Room:
    """The memory that the values of a graph take on a device, and the memory that there is.

    capacity: bytes of a device, or of a core's L1; None for no limit. dram: values that nodes
    produce in the DRAM behind a chip's cores. copies: whether a node's copy of an operand counts in
    addition to the operand, beyond the bytes of the operand's smallest part.
    """

    of: Variables
    capacity: float | None
    dram: frozenset[int]
    copies: bool

    def _sizes(self, value: int, at: int, position: int) -> list[int]:
        """Return the bytes of a value in a device's own memory, for each choice of its variable."""
        variable, held = self.of.variables[at], self.of.held(at, position)
        is_there = [not (variable.is_operand and place.in_dram) for place in variable.choices]
        return [
            self.of.ways.held(value, x) if there else 0
            for x, there in zip(held, is_there, strict=True)
        ]

    @property
    def fullest(self) -> tuple[str, list[tuple[int, int]]]:
        """The node with the most live bytes, and the bytes of each value that is live there.

        Each value counts in the division with the fewest bytes. The largest values come first.
        """
        graph = self.of.graph
        ranges = live_ranges(graph, len(self.of.given))
        sizes = {
            v: self._full_bytes(v) if at is None else min(self._sizes(v, *at))
            for v, at in self._known().items()
        }
        most, where, found = -1, "the start", list[tuple[int, int]]()
        for n, live in live_values(ranges, sizes, len(graph.nodes), self.copies):
            if (total := sum(live.values())) > most:
                most, found, where = total, list(live.items()), graph.nodes[n].name
        return where, sorted(found, key=lambda pair: -pair[1])

    def _known(self) -> dict[int, tuple[int, int] | None]:
        """Return the values that count, with their variables.

        On machines with cores these include values without a variable: each core holds all of such
        a value.
        """
        found = ((v, self.of.source(v)) for v in range(len(self.of.graph.shapes)))
        every = self.of.units.machine.has_cores
        return {v: source for v, source in found if every or source is not None}

    def _full_bytes(self, value: int) -> int:
        """Return the bytes of a value that a device holds in full."""
        return self.of.ways.held(value, ((),) * len(self.of.graph.shapes[value]))

    def rows(self) -> list[Row]:
        """Return limits for the nodes where live values may not fit, the fullest nodes first."""
        if self.capacity is None:
            return []
        known = {v: source for v, source in self._known().items() if v not in self.dram}
        live = _Live(self, known)
        copied: dict[int, NDArray[np.float64]] = {}
        found: dict[Any, float] = {}
        every = live_ranges(self.of.graph, len(self.of.given))
        ranges = {v: ends for v, ends in every.items() if v in known}
        for n, began, ended in changes(ranges, len(self.of.graph.nodes), self.copies):
            self.of.each_step()
            live.count(began, 1)
            at, copies = -1, 0.0
            if self.copies:
                at = self.of.variable(n)
                copied[at] = copied[at] if at in copied else self._copied(at)
                copies = float(copied[at].max())
            if live.most + copies > self.capacity:
                key = at, tuple(sorted(live.counts.items())), live.whole
                found.setdefault(key, live.least)
            live.count(ended, -1)
        fullest = sorted(found, key=lambda key: (-found[key], key))[: LIMITS.memory_rows]
        rows = []
        for reader, counts, whole in fullest:
            usages = {} if reader < 0 else {reader: copied[reader]}
            for source, count in counts:
                used = count * live.sizes[source]
                at = source[0]
                usages[at] = usages[at] + used if at in usages else used
            rows.append(Row(self.capacity - whole, usages))
        return rows

    def _copied(self, at: int) -> NDArray[np.float64]:
        """Return, for each choice of a node, the bytes of its operands beyond the smallest parts.

        The smallest part of an operand is the one of a value divided over all devices.
        """
        variable = self.of.variables[at]
        node = self.of.graph.nodes[variable.members[0]]
        every = self.of.units.count(range(len(self.of.units.axes)))
        found = []
        for choice in variable.choices:
            total = 0
            for v, need in zip(node.ins, () if choice is None else choice.ins, strict=False):
                if v is not None and need is not None:
                    least = self.of.ways.nbytes(v, ((),) * len(need)) // every
                    total += self.of.ways.nbytes(v, need) - least
            found.append(max(total, 0))
        return np.array(found, float)


class _Live:
    """The live values at a node: how many of each variable, and bytes in their divisions.

    whole: bytes of values without a variable. most, least: bytes of all, with those of the others
    in the divisions with the most and the fewest.
    """

    def __init__(self, room: Room, known: Mapping[int, tuple[int, int] | None]) -> None:
        self.room, self.known = room, known
        self.counts: Counter[tuple[int, int]] = Counter()
        self.sizes: dict[tuple[int, int], NDArray[np.float64]] = {}
        self.whole, self.most, self.least = 0, 0.0, 0.0

    def count(self, values: Iterable[int], sign: int) -> None:
        """Add values, or take them away with a sign of -1."""
        for v in values:
            source = self.known[v]
            if source is None:
                sizes = np.array([self.room._full_bytes(v)], float)
                self.whole += sign * int(sizes[0])
            else:
                if source not in self.sizes:
                    self.sizes[source] = np.array(self.room._sizes(v, *source), float)
                sizes = self.sizes[source]
                self.counts[source] += sign
                if not self.counts[source]:
                    del self.counts[source]
            self.most += sign * float(sizes.max())
            self.least += sign * float(sizes.min())
