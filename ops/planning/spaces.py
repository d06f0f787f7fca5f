"""`Spaces`: which values of a planned program are in a core's L1, and which in the chip's DRAM.

What is in DRAM is read by every equation that needs it, while it computes; what is written there is
written as it is made. Of values that do not all fit, those go to DRAM whose reading takes the
least time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.plan.division import Division
from gridlayout.ops.plan.estimate import Choice
from gridlayout.ops.plan.strategies import Place, Strategies
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.solver.problem import Problem, Row
from gridlayout.ops.solver.solve import solve
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machine import Machine

Path = tuple[int, ...]

_LEAST = 1.0  # seconds


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
        places: Sequence[Place],
        choices: Mapping[Path, Choice],
        fixed: bool = True,
        far: Collection[int] = (),
        clock: Clock | None = None,
    ) -> Spaces:
        """The cheapest way to hold a program's values, divided so.

        fixed: whether operands are where they are; else these may go to DRAM too. far: results that
        are in DRAM. clock: of the search that this is for; where its time is over a second more is
        taken, and after an interrupt none. `LayoutError` where L1 or DRAM has no room.
        """
        return _Search(strategies, places, choices, fixed, far).found(clock)


def room_in_l1(machine: Machine) -> int:
    """Bytes of a core's L1 for values, beside the circular buffers of its kernels."""
    return int(machine.chip.capacity.get("l1", 0) * (1 - LIMITS.buffers))


class _Search:
    def __init__(
        self,
        strategies: Strategies,
        places: Sequence[Place],
        choices: Mapping[Path, Choice],
        fixed: bool,
        far: Collection[int],
    ) -> None:
        self.strategies, self.graph, self.units = strategies, strategies.graph, strategies.units
        self.machine, self.choices = self.units.machine, choices
        self.fixed = {k: place.in_dram for k, place in enumerate(places) if fixed or place.in_dram}
        self.fixed |= dict.fromkeys(far, True)
        self.held: dict[int, Division] = {k: place.division for k, place in enumerate(places)}
        for node in self.graph.nodes:
            choice = choices.get(node.path)
            for v in node.outs:
                rank = len(self.graph.shapes[v])
                is_known = choice is not None and len(choice.out) == rank
                self.held[v] = choice.out if is_known and choice is not None else ((),) * rank
        self.sizes = {v: strategies.ways.nbytes(v, division) for v, division in self.held.items()}
        self.reads, self.lives = self._lives()

    def found(self, clock: Clock | None) -> Spaces:
        """The values in DRAM, and what that takes."""
        capacity = room_in_l1(self.machine)
        rows = self._rows(capacity)
        values = sorted({v for row in rows for v in row})
        at = {v: k for k, v in enumerate(values)}
        costs = [self._costs(v) for v in values]
        at_once = None if clock is None or clock.left else self._at_once(rows, capacity)
        if at_once is not None and clock is not None and clock.interrupted:
            return self._with(at_once)
        problem = Problem(
            tuple(np.array(each) for each in costs),
            rows=tuple(
                Row(capacity, {at[v]: np.array([self.sizes[v], 0.0]) for v in row}) for row in rows
            ),
        )
        if clock is None:
            solution = solve(problem)
        else:
            starts = [] if at_once is None else [[int(v in at_once) for v in values]]
            seconds = max(clock.left, _LEAST)
            solution = solve(problem, seconds, starts, on_interrupt=clock.interrupt)
        if solution is None:
            raise self._no_room(capacity)
        return self._with({v for v, k in zip(values, solution.choices, strict=True) if k})

    def _no_room(self, capacity: int) -> LayoutError:
        return LayoutError(
            f"a core's {capacity:,} B of L1 have no room for the arguments that are fixed "
            "there: leave them to the plan, or fix them with memory_space='dram'"
        )

    def _at_once(self, rows: list[list[int]], capacity: int) -> set[int]:
        """Values in DRAM so that the others have room, those first that take the least a byte."""
        costs: dict[int, float] = {}
        dram = {v for v, in_dram in self.fixed.items() if in_dram}
        for row in rows:
            held = sum(self.sizes[v] for v in row if v not in dram)
            if held <= capacity:
                continue
            for v in row:
                if v not in costs:
                    costs[v] = self._costs(v)[1] / max(self.sizes[v], 1)
            for v in sorted(set(row) - dram, key=lambda v: (costs[v], v)):
                if held > capacity and costs[v] < np.inf:
                    dram.add(v)
                    held -= self.sizes[v]
            if held > capacity:
                raise self._no_room(capacity)
        return dram

    def _with(self, dram: set[int]) -> Spaces:
        """The values in DRAM, and those that are fixed there; `LayoutError` without room there."""
        dram = dram | {v for v, in_dram in self.fixed.items() if in_dram}
        shared = sum(self._shared(v) for v in dram)
        room = self.machine.chip.capacity.get("dram")
        if room is not None and shared > room:
            cores = prod((self.machine.mesh or ())[-len(self.machine.chip.grid) :])
            raise LayoutError(
                f"{shared * cores:,} B in DRAM have no room on a chip of {room * cores:,} B: plan "
                "for more chips"
            )
        return Spaces(frozenset(dram), self._streamed(dram), self._over_time(dram), shared)

    def _lives(self) -> tuple[dict[int, list[Path]], dict[int, tuple[int, int]]]:
        """Of each value the nodes that read it, and the first and last at which it is held."""
        reads: dict[int, list[Path]] = {}
        self.made = {v: [node.path] for node in self.graph.nodes for v in node.outs}
        end = len(self.graph.nodes)
        lives = dict.fromkeys(self.held, (0, end))
        for n, node in enumerate(self.graph.nodes):
            for v in node.outs:
                lives[v] = n, n
            for v in (x for x in node.ins if x is not None and x in self.held):
                reads.setdefault(v, []).append(node.path)
                first, last = lives[v]
                lives[v] = first, max(last, n)
        for v in (x for x in self.graph.outs if x is not None and x in lives):
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
        there, streamed = self.fixed.get(value), 0.0
        for path in self.reads.get(value, []) + self.made.get(value, []):
            streamed += self._streaming(path, {value})
        return [np.inf if there else 0.0, np.inf if there is False else streamed]

    def _streaming(self, path: Path, dram: set[int]) -> float:
        node = self.strategies.node(path)
        return self.strategies.ways.streaming(node, self.choices.get(path), dram)

    def _shared(self, value: int) -> int:
        """A core's share of a value in DRAM, of which each chip has its part once."""
        division, chips = self.held[value], self.units.chips
        parts = self.units.count(u for units in division for u in units if u in chips)
        whole = prod(self.graph.shapes[value]) * self.graph.itemsizes[value]
        cores = self.units.count(u for u in range(len(self.units.axes)) if u not in chips)
        return -(-whole // (parts * cores))

    def _streamed(self, dram: set[int]) -> dict[Path, float]:
        found = {node.path: self._streaming(node.path, dram) for node in self.graph.nodes}
        return {path: seconds for path, seconds in found.items() if seconds}

    def _over_time(self, dram: set[int]) -> tuple[tuple[Path, int], ...]:
        starts, ends = self._changes()
        found, held = [], 0
        for n, node in enumerate(self.graph.nodes):
            held += sum(self.sizes[v] for v in starts.get(n, set()) - dram)
            found.append((node.path, held))
            held -= sum(self.sizes[v] for v in ends.get(n, set()) - dram)
        return tuple(found)
