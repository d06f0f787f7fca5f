"""`Spaces`: which values of a planned program are in a core's L1, and which in the chip's DRAM.

A value in DRAM is read by every equation that needs it, during its computation; it is written there
while it is made. If not all values fit L1, those that take the least time in DRAM are placed
there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import NamedTuple

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.live_ranges import (
    Interval,
    first_fit,
    held_over_time,
    highest_over_time,
    live_values,
)
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.dram import streaming
from gridlayout.ops.choose.live_ranges import live_ranges
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.solver.problem import Problem, Row
from gridlayout.ops.solver.solve import solve
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.machine import Machine

Path = tuple[int, ...]
_LEAST = 1.0  # seconds that a search has at least
MOST_LISTED = 12  # the most values that an error names


class NoRoom(LayoutError):
    """The values that have to be in L1 do not fit, with these divisions."""


@dataclass(frozen=True)
class Spaces:
    """Where values are stored. Bytes are one core's.

    dram: the values in DRAM, by number. streamed: for each equation, by its path, the seconds to
    read from DRAM and write to it. held: the end of the used part of L1 during each equation, in
    order, and at last, with an empty path, while results are relaid out. placed: the values in L1,
    in order of their start. shared: a core's share of the bytes in DRAM.
    """

    dram: frozenset[int]
    streamed: Mapping[Path, float]
    held: tuple[tuple[Path, int], ...]
    placed: tuple[Placed, ...]
    shared: int

    @classmethod
    def of(
        cls,
        strategies: Strategies,
        places: Sequence[Place],
        choices: Mapping[Path, Choice],
        ends: Sequence[End] = (),
        fixed: bool = True,
        clock: Clock | None = None,
    ) -> Spaces:
        """Return the cheapest way to store a program's values in these divisions.

        ends: of results. fixed: whether operands stay where they are; otherwise they may go to DRAM
        too. clock: of the search that this is part of; after its end it takes at most a second
        more, and after an interrupt none. `NoRoom` where L1 is too small, `LayoutError` where DRAM
        is.
        """
        return _Search(strategies, places, choices, ends, fixed).found(clock)

    @classmethod
    def given(
        cls,
        strategies: Strategies,
        places: Sequence[Place],
        choices: Mapping[Path, Choice],
        ends: Sequence[End],
        dram: frozenset[int],
    ) -> Spaces:
        """Return the spaces with these values in DRAM and the others in L1, whatever its size."""
        return _Search(strategies, places, choices, ends, True).made(dram)


class End(NamedTuple):
    """Where a result is stored: its division, and whether in DRAM.

    None: in the division of its equation, and in either memory.
    """

    division: Division | None = None
    in_dram: bool | None = None


class Placed(NamedTuple):
    """A value in L1: its text, the path of its equation, and its number among several results.

    path: None for operands, and for a result of the program that is a relayout. block: its bytes,
    and the first and the last step at which it is live.
    """

    words: str
    path: Path | None
    result: int | None
    block: Interval
    address: int


def room_in_l1(machine: Machine) -> int:
    """Return the bytes of a core's L1 for values, without the circular buffers of its kernels."""
    return int((machine.chip.room("l1") or 0) * (1 - LIMITS.buffer_share))


class _Search:
    def __init__(
        self,
        strategies: Strategies,
        places: Sequence[Place],
        choices: Mapping[Path, Choice],
        ends: Sequence[End],
        fixed: bool,
    ) -> None:
        self.strategies, self.graph, self.units = strategies, strategies.graph, strategies.units
        self.machine, self.choices = self.units.machine, choices
        self.fixed = {
            k: place.in_dram
            for k, (place, given) in enumerate(zip(places, strategies.given, strict=True))
            if fixed or place.in_dram or (given and not any(x.in_dram for x in given))
        }
        for v, end in zip(self.graph.outs, ends, strict=False):
            if v is not None and end.in_dram is not None:
                self.fixed.setdefault(v, end.in_dram)
        self.held: dict[int, Division] = {
            k: place.division for k, place in enumerate(places) if place.division is not None
        }
        for node in self.graph.nodes:
            choice = choices.get(node.path)
            for v in node.outs:
                rank = len(self.graph.shapes[v])
                is_known = choice is not None and len(choice.out) == rank
                self.held[v] = choice.out if is_known and choice is not None else ((),) * rank
        computed = {v for v in self.graph.free if v not in self.graph.outs}  # where they are read
        stored = ((v, division) for v, division in self.held.items() if v not in computed)
        self.sizes = {v: strategies.ways.held(v, division) for v, division in stored}
        self.spans = live_ranges(self.graph, len(places))
        # For each value: (result number, bytes) of each of its relaid-out results.
        self.moved: dict[int, list[tuple[int, int]]] = {}
        for k, (v, end) in enumerate(zip(self.graph.outs, ends, strict=False)):
            if v is not None and end.division not in (None, self.held[v]) and not end.in_dram:
                nbytes = strategies.ways.held(v, end.division)
                self.moved.setdefault(v, []).append((k, nbytes))
        self.makers: dict[int, tuple[Path, int | None]] = {}
        self.nodes_of: dict[int, list[Path]] = {}  # value: nodes that read or make it
        for node in self.graph.nodes:
            several = len(node.outs) > 1
            self.makers |= {v: (node.path, k if several else None) for k, v in enumerate(node.outs)}
            for v in dict.fromkeys((*(v for v in node.ins if v is not None), *node.outs)):
                self.nodes_of.setdefault(v, []).append(node.path)

    def found(self, clock: Clock | None) -> Spaces:
        """Return the cheapest spaces such that the values in L1 have room there.

        When values are freed between others, the gaps may be too small for the next value. Then the
        limit of that step is lowered by the excess, and the search is repeated.
        """
        room = room_in_l1(self.machine)
        limits = [room] * (len(self.graph.nodes) + 1)
        if clock is not None:
            clock = Clock(max(clock.left, _LEAST), clock.root)
        while True:
            found = self.made(self._in_dram(limits, clock))
            if max((nbytes for _, nbytes in found.held), default=0) <= room:
                return found
            live = held_over_time((each.block for each in found.placed), len(found.held))
            for n, (_, nbytes) in enumerate(found.held):
                if nbytes > room:
                    limits[n] = live[n] - (nbytes - room)

    def made(self, dram: frozenset[int]) -> Spaces:
        """Return the spaces with these values in DRAM."""
        placed = self._placed(dram)
        paths: list[Path] = [node.path for node in self.graph.nodes]
        paths += [()] if self.moved.keys() - dram or not paths else []
        ends = (Interval(*each.block[:2], each.address + each.block.nbytes) for each in placed)
        over_time = zip(paths, highest_over_time(ends, len(paths)), strict=True)
        streamed, shared = self._streamed(dram), self._shared_by(dram)
        return Spaces(dram, streamed, tuple(over_time), placed, shared)

    def _in_dram(self, limits: Sequence[int], clock: Clock | None) -> frozenset[int]:
        """Return the values in DRAM that take the least time, for the limits of L1 at each step."""
        rows = [(limits[n], dict(live)) for n, held, live in self._live() if held > limits[n]]
        at_once = self._at_once(rows, limits)
        if clock is not None and not clock.left:
            return at_once
        values = sorted({v for _, live in rows for v in live})
        at = {v: k for k, v in enumerate(values)}
        problem = Problem(
            tuple(np.array(self._costs(v)) for v in values),
            rows=tuple(
                Row(limit, {at[v]: np.array([nbytes, 0.0]) for v, nbytes in live.items()})
                for limit, live in rows
            ),
        )
        start = [int(v in at_once) for v in values]
        if clock is None:
            solution = solve(problem, starts=[start])
        else:
            solution = solve(problem, clock.left, [start], on_interrupt=clock.interrupt)
        if solution is None:
            raise NoRoom(self._too_full(limits))
        dram = {v for v, k in zip(values, solution.choices, strict=True) if k}
        return frozenset(dram | {v for v, in_dram in self.fixed.items() if in_dram})

    def _at_once(
        self, rows: Sequence[tuple[int, Mapping[int, int]]], limits: Sequence[int]
    ) -> frozenset[int]:
        """Return values in DRAM such that the others fit, greedily by cost per byte."""
        costs: dict[int, float] = {}
        dram = {v for v, in_dram in self.fixed.items() if in_dram}
        for limit, live in rows:
            held = sum(nbytes for v, nbytes in live.items() if v not in dram)
            if held <= limit:
                continue
            for v in live:
                if v not in costs:
                    costs[v] = self._costs(v)[1] / max(self.sizes[v], 1)
            for v in sorted(live.keys() - dram, key=lambda v: (costs[v], v)):
                if held > limit and costs[v] < inf:
                    dram.add(v)
                    held -= live[v]
            if held > limit:
                raise NoRoom(self._too_full(limits))
        return frozenset(dram)

    def _live(self) -> Iterator[tuple[int, int, dict[int, int]]]:
        """Yield where live ranges end, the bytes held and those of each live value.

        The last ones are held while results are relaid out.
        """
        end = len(self.graph.nodes)
        held = held_over_time((Interval(*self.spans[v], n) for v, n in self.sizes.items()), end)
        for n, live in live_values(self.spans, self.sizes, end):
            yield n, held[n], live
        stay = (v for v in self.sizes if self.spans[v][1] >= end)
        last = {v: self.sizes[v] + sum(n for _, n in self.moved.get(v, ())) for v in stay}
        yield end, sum(last.values()), last

    def _too_full(self, limits: Sequence[int]) -> str:
        """Return the error text: the step where too much must be in L1, and the largest values."""
        most, at, names = -inf, "", list[str]()
        for n, _, live in self._live():
            near = {v: size for v, size in live.items() if self.fixed.get(v) is False}
            if (more := sum(near.values()) - limits[n]) > most:
                largest = sorted(near, key=lambda v: -near[v])[:MOST_LISTED]
                most = more
                at = self.graph.nodes[n].name if n < len(self.graph.nodes) else "the end"
                names = [f"{self.strategies.described(v)}: {near[v]:,} B" for v in largest]
        l1 = self.machine.chip.titled("l1")
        return (
            f"a core's {room_in_l1(self.machine):,} B of {l1} for values are too few at {at} for "
            f"the values that have to be there: {'; '.join(names)}. Leave them to the plan, or fix "
            "them with memory_space='dram'"
        )

    def _placed(self, dram: Collection[int]) -> tuple[Placed, ...]:
        """Return the values in L1 with their addresses, as a first-fit allocator places them."""
        near = [v for v in sorted(self.sizes) if v not in dram]
        near.sort(key=lambda v: self.spans[v][0])
        blocks = [Interval(*self.spans[v], self.sizes[v]) for v in near]
        end = len(self.graph.nodes)
        moved = [each for v, some in self.moved.items() if v not in dram for each in some]
        blocks += [Interval(end, end, nbytes) for _, nbytes in moved]
        addresses = first_fit(blocks)
        found = []
        for v, block, address in zip(near, blocks, addresses, strict=False):
            path, result = self.makers.get(v, (None, None))
            found.append(Placed(self.strategies.described(v), path, result, block, address))
        for k, (result, _) in enumerate(moved, len(near)):
            found.append(Placed("", None, result, blocks[k], addresses[k]))
        return tuple(found)

    def _shared_by(self, dram: Collection[int]) -> int:
        """Return a core's share of the values in DRAM; `LayoutError` where DRAM is too small."""
        shared = sum(self._shared(v) for v in dram)
        room = self.machine.chip.room("dram")
        if room is not None and shared > room:
            name = self.machine.chip.titled("dram")
            cores = prod((self.machine.mesh or ())[-len(self.machine.chip.grid) :])
            raise LayoutError(
                f"{shared * cores:,} B in {name} do not fit a chip of {room * cores:,} B: plan "
                "for more chips"
            )
        return shared

    def _costs(self, value: int) -> list[float]:
        """Return the seconds with the value in L1, and in DRAM."""
        there, streamed = self.fixed.get(value), 0.0
        for path in self.nodes_of.get(value, ()):
            streamed += self._streaming(path, {value})
        return [np.inf if there else 0.0, np.inf if there is False else streamed]

    def _streaming(self, path: Path, dram: Collection[int]) -> float:
        node = self.strategies.node(path)
        return streaming(self.strategies.ways, node, self.choices.get(path), dram)

    def _shared(self, value: int) -> int:
        """Return a core's share of a value in DRAM, where each chip stores its part once."""
        division, chips = self.held[value], self.units.chips
        parts = self.units.count(u for units in division for u in units if u in chips)
        whole = self.graph.nbytes(value)
        cores = self.units.count(u for u in range(len(self.units.axes)) if u not in chips)
        return -(-whole // (parts * cores))

    def _streamed(self, dram: Collection[int]) -> dict[Path, float]:
        found = {node.path: self._streaming(node.path, dram) for node in self.graph.nodes}
        return {path: seconds for path, seconds in found.items() if seconds}
