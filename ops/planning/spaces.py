"""`Spaces`: which values of a planned program are in a core's L1, and which in the chip's DRAM.

What is in DRAM is read by every equation that reads it, while it computes; one that is written there
is written as it is made. Of values that do not all fit, those go to DRAM whose reading takes the
least time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.plan.division import Division
from gridlayout.ops.plan.estimate import Choice
from gridlayout.ops.plan.strategies import Strategies
from gridlayout.ops.solver.problem import Problem, Row
from gridlayout.ops.solver.solve import solve
from gridlayout.sharding.machine import LIMITS

Path = tuple[int, ...]


@dataclass(frozen=True)
class Spaces:
    """Where values are. Bytes are one core's.

    dram: the values there, by number. streamed: seconds that each equation reads from DRAM and
    writes to it, by its path. held: bytes in L1 while each equation runs, in order. shared: bytes
    in DRAM, a core's share.
    """

    dram: frozenset[int]
    streamed: Mapping[Path, float]
    held: tuple[tuple[Path, int], ...]
    shared: int

    @classmethod
    def of(
        cls,
        strategies: Strategies,
        divisions: Sequence[Division],
        choices: Mapping[Path, Choice],
        fixed: Mapping[int, str],
    ) -> Spaces:
        """The cheapest way to hold a program's values, divided so; fixed: operands' spaces.

        `LayoutError` where L1 or DRAM has no room.
        """
        return _Search(strategies, divisions, choices, fixed).found()


class _Search:
    def __init__(
        self,
        strategies: Strategies,
        divisions: Sequence[Division],
        choices: Mapping[Path, Choice],
        fixed: Mapping[int, str],
    ) -> None:
        self.strategies, self.graph, self.units = strategies, strategies.graph, strategies.units
        self.machine, self.fixed = self.units.machine, fixed
        self.choices = choices
        self.held: dict[int, Division] = dict(enumerate(divisions))
        for node in self.graph.nodes:
            choice = choices.get(node.path)
            for v in node.outs:
                rank = len(self.graph.shapes[v])
                is_known = choice is not None and len(choice.out) == rank
                self.held[v] = choice.out if is_known and choice is not None else ((),) * rank
        self.sizes = {v: strategies.nbytes(v, division) for v, division in self.held.items()}
        self.chip = [
            u for u, axes in enumerate(self.units.axes)
            if not set(map(self.machine.whole_axis, axes)) & set(self.machine.core_axes)
        ]
        self.reads, self.lives = self._lives()

    def found(self) -> Spaces:
        """The values in DRAM, and what that takes."""
        capacity = int(self.machine.chip.capacity.get("l1", 0) * (1 - LIMITS.buffers))
        rows = self._rows(capacity)
        values = sorted({v for row in rows for v in row})
        at = {v: k for k, v in enumerate(values)}
        costs = [self._costs(v) for v in values]
        problem = Problem(
            tuple(np.array(each) for each in costs),
            rows=tuple(
                Row(capacity, {at[v]: np.array([self.sizes[v], 0.0]) for v in row}) for row in rows
            ),
        )
        solution = solve(problem)
        if solution is None:
            raise LayoutError(
                f"a core's {capacity:,} B of L1 have no room for the arguments that are fixed "
                "there: leave them to the plan, or fix them with memory_space='dram'"
            )
        dram = {v for v, k in zip(values, solution.choices, strict=True) if k}
        dram |= {v for v, space in self.fixed.items() if space == "dram"}
        shared = sum(self._shared(v) for v in dram)
        room = self.machine.chip.capacity.get("dram")
        if room is not None and shared > room:
            cores = prod(self.machine.mesh[-len(self.machine.chip.grid) :])
            raise LayoutError(
                f"{shared * cores:,} B in DRAM have no room on a chip of {room * cores:,} B: plan "
                "for more chips"
            )
        return Spaces(frozenset(dram), self._streamed(dram), self._over_time(dram), shared)

    def _lives(self) -> tuple[dict[int, list[Path]], dict[int, tuple[int, int]]]:
        """Of each value the nodes that read it, and the first and last at which it is held."""
        reads: dict[int, list[Path]] = {}
        end = len(self.graph.nodes)
        lives = {v: (0, end) for v in self.held}
        for n, node in enumerate(self.graph.nodes):
            for v in node.outs:
                lives[v] = n, n
            for v in node.ins:
                if v is not None and v in self.held:
                    reads.setdefault(v, []).append(node.path)
                    first, last = lives[v]
                    lives[v] = first, max(last, n)
        for v in self.graph.outs:
            if v is not None and v in lives:
                lives[v] = lives[v][0], end
        return reads, lives

    def _rows(self, capacity: int) -> list[list[int]]:
        """The values that are held at a time, where L1 has no room for all; the fullest times."""
        starts, ends = self._changes()
        found, live = [], set[int]()
        for n in range(len(self.graph.nodes)):
            live |= starts.get(n, set())
            # Where nothing ends, the next time holds all of these too.
            if n in ends and sum(self.sizes[v] for v in live) > capacity:
                found.append(sorted(live))
            live -= ends.get(n, set())
        return found

    def _changes(self) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """The values that are held from each node on, and those that are held up to it."""
        starts: dict[int, set[int]] = {}
        ends: dict[int, set[int]] = {len(self.graph.nodes) - 1: set()}
        for v, (first, last) in self.lives.items():
            starts.setdefault(first, set()).add(v)
            ends.setdefault(last, set()).add(v)
        return starts, ends

    def _costs(self, value: int) -> list[float]:
        """Seconds in L1, and in DRAM."""
        space = self.fixed.get(value)
        streamed = sum(self._reading(value, path) for path in self.reads.get(value, []))
        if value >= len(self.strategies.given):
            streamed += self._time(self.sizes[value])
        l1 = np.inf if space == "dram" else 0.0
        return [l1, np.inf if space == "l1" else streamed]

    def _reading(self, value: int, path: Path) -> float:
        """Seconds to read a value from DRAM for an equation: each byte once for all cores."""
        choice = self.choices.get(path)
        node = self.strategies.node(path)
        need = self.held[value]
        if choice is not None:
            for v, each in zip(node.ins, choice.ins, strict=True):
                if v == value and each is not None:
                    need = each
        parts = self.units.count(u for units in need for u in units if u not in self.chip)
        local = self.strategies.nbytes(value, need)
        cores = self.units.count(u for u in range(len(self.units.axes)) if u not in self.chip)
        assert self.machine.rates is not None
        # What several cores need is read once, and goes to all of them over the network.
        return max(self._time(local * parts / cores), local / self.machine.rates.noc)

    def _time(self, share: float) -> float:
        assert self.machine.rates is not None
        return share / self.machine.rates.dram

    def _shared(self, value: int) -> int:
        """A core's share of a value in DRAM, of which each chip has its part once."""
        division = self.held[value]
        parts = self.units.count(u for units in division for u in units if u in self.chip)
        whole = prod(self.graph.shapes[value]) * self.graph.itemsizes[value]
        cores = self.units.count(u for u in range(len(self.units.axes)) if u not in self.chip)
        return -(-whole // (parts * cores))

    def _streamed(self, dram: set[int]) -> dict[Path, float]:
        found: dict[Path, float] = {}
        for v in sorted(dram):
            for path in self.reads.get(v, []):
                found[path] = found.get(path, 0.0) + self._reading(v, path)
        for node in self.graph.nodes:
            for v in node.outs:
                if v in dram:
                    found[node.path] = found.get(node.path, 0.0) + self._time(self.sizes[v])
        return found

    def _over_time(self, dram: set[int]) -> tuple[tuple[Path, int], ...]:
        starts, ends = self._changes()
        found, held = [], 0
        for n, node in enumerate(self.graph.nodes):
            held += sum(self.sizes[v] for v in starts.get(n, set()) - dram)
            found.append((node.path, held))
            held -= sum(self.sizes[v] for v in ends.get(n, set()) - dram)
        return tuple(found)
