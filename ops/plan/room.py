"""`Room`: the memory of the values that are live at each node, as limits on the choices."""

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
        most, where, found = -1, "the start", list[tuple[int, int]]()
        for n, live in self._live_values():
            each = [
                (v, min(self._sizes(v, *at)) if at else self._full_bytes(v))
                for v, at in live.items()
            ]
            if (total := sum(nbytes for _, nbytes in each)) > most:
                most, found, where = total, each, self.of.graph.nodes[n].name
        return where, sorted(found, key=lambda pair: -pair[1])

    def _live_values(self) -> Iterator[tuple[int, dict[int, tuple[int, int] | None]]]:
        """Yield nodes as `live_values` does, with the variables of the live values.

        On machines with cores these include values without a variable: each core holds all of such
        a value.
        """
        found = ((v, self.of.source(v)) for v in range(len(self.of.graph.shapes)))
        every = self.of.units.machine.has_cores
        known = {v: source for v, source in found if every or source is not None}
        return live_values(self.of.graph, known, len(self.of.given), self.copies)

    def _full_bytes(self, value: int) -> int:
        """Return the bytes of a value that a device holds in full."""
        return self.of.ways.held(value, ((),) * len(self.of.graph.shapes[value]))

    def rows(self) -> list[Row]:
        """Return limits for the nodes where live values may not fit, the fullest nodes first."""
        if self.capacity is None:
            return []
        sizes: dict[tuple[int, int], NDArray[np.float64]] = {}
        found: dict[Any, float] = {}
        for n, live in self._live_values():
            self.of.each_step()
            near = {v: source for v, source in live.items() if v not in self.dram}
            counts = Counter(source for source in near.values() if source is not None)
            whole = sum(self._full_bytes(v) for v, source in near.items() if source is None)
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
