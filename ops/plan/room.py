"""`Room`: what is alive at a time on a device, under each choice, and whether it has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.plan.live_ranges import live_values
from gridlayout.ops.plan.variables import Variables
from gridlayout.ops.solver.problem import Row
from gridlayout.sharding.limits import LIMITS


@dataclass(frozen=True, eq=False)
class Room:
    """What the values of a graph hold on a device, which has room for so many bytes.

    capacity: of a core in its L1; None for any. dram: results of nodes that are in the DRAM behind
    a chip's cores. copies: whether operands of nodes that are divided less than they can be are
    counted beside where they come from.
    """

    of: Variables
    capacity: float | None
    dram: frozenset[int]
    copies: bool

    def _sizes(self, value: int, at: int, position: int) -> list[int]:
        """Bytes of a value in a device's own memory, under each choice of its variable."""
        variable, held = self.of.variables[at], self.of.held(at, position)
        is_there = [not (variable.is_operand and place.in_dram) for place in variable.choices]
        return [
            self.of.ways.held(value, x) if there else 0
            for x, there in zip(held, is_there, strict=True)
        ]

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
                most, found, where = total, each, self.of.graph.nodes[n].name
        return where, sorted(found, key=lambda pair: -pair[1])

    def _alive(self) -> Iterator[tuple[int, dict[int, tuple[int, int] | None]]]:
        """At each node the values that are alive, with their variables.

        On cores also those that have none: each core has all of them.
        """
        found = ((v, self.of.source(v)) for v in range(len(self.of.graph.shapes)))
        every = self.of.units.machine.has_cores
        known = {v: source for v, source in found if every or source is not None}
        return live_values(self.of.graph, known, len(self.of.given), self.copies)

    def _whole(self, value: int) -> int:
        """Bytes of a value of which a device has all."""
        return self.of.ways.held(value, ((),) * len(self.of.graph.shapes[value]))

    def rows(self) -> list[Row]:
        """What is alive at a time, where that may be too much; the fullest times."""
        if self.capacity is None:
            return []
        sizes: dict[tuple[int, int], NDArray[np.float64]] = {}
        found: dict[Any, float] = {}
        for n, live in self._alive():
            self.of.each_step()
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
            at = self.of.variable(n) if self.copies else -1
            most += float(self._copied(at).max()) if self.copies else 0.0
            if most > self.capacity:
                found.setdefault((at, tuple(sorted(counts.items())), whole), least)
        fullest = sorted(found, key=lambda key: (-found[key], key))[: LIMITS.memory_rows]
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
