"""`Room`: the memory of the values that are live at each node, as limits on the choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.live_ranges import Interval, changes, held_over_time, live_values
from gridlayout.ops.choose.copies import Copied, Copies
from gridlayout.ops.choose.live_ranges import Span, Stored, live_ranges, spans_of_loops, stored
from gridlayout.ops.choose.variables import Variables
from gridlayout.ops.graph.node import Path
from gridlayout.ops.solver.problem import Row
from gridlayout.sharding.limits import LIMITS


@dataclass(frozen=True, eq=False)
class Room:
    """The memory that the values of a graph take on a device, and the memory that there is.

    On devices, only what every program with these choices holds is counted at first, with copies in
    the divisions in which values are read (`copies.py`): none fits where that exceeds a limit.
    Programs that were made, and did not fit, tell what else they hold.

    capacity: bytes of a device, or of a core's L1; None for no limit. left: values in the DRAM
    behind a chip's cores. dram: these and values that may be there, which do not count. more: for
    some choices of variables, the bytes that their nodes hold in addition.
    """

    of: Variables
    capacity: float | None
    left: frozenset[int]
    dram: frozenset[int]
    more: dict[tuple[int, int], float]

    def _sizes(self, value: int, at: int, position: int) -> list[int]:
        """Return the bytes of a value in a device's own memory, for each choice of its variable."""
        variable = self.of.variables[at]
        if value in self._copies:
            (scanned,) = self.of.graph.nodes[variable.members[0]].ins
            assert scanned is not None
            copied = [x.ins[0] for x in variable.choices[variable.stays :]]
            return [0] * variable.stays + [self.of.ways.held(scanned, x) for x in copied]
        held = self.of.held(at, position)
        is_there = [not (variable.is_operand and place.in_dram) for place in variable.choices]
        return [
            self.of.ways.held(value, x) if there else 0
            for x, there in zip(held, is_there, strict=True)
        ]

    @cached_property
    def _stored(self) -> Stored:
        """The values that count, with their live ranges."""
        graph, operands = self.of.graph, len(self.of.given)
        if self.of.units.machine.has_cores:
            return Stored(live_ranges(graph, operands), frozenset())
        ranges, parts = stored(graph, operands)
        return Stored(ranges | self._copies, parts)

    @cached_property
    def _copies(self) -> dict[int, Span]:
        """The live ranges of copies of scanned arrays; they have numbers after those of values."""
        graph, found = self.of.graph, dict[int, Span]()
        loops = spans_of_loops(graph) if graph.loops else {}
        for n, node in enumerate(graph.nodes):
            if self.of.variables[self.of.variable(n)].stays:
                found[len(graph.shapes) + n] = loops[graph.body(node.path)]
        return found

    @property
    def fullest(self) -> tuple[str, list[tuple[int, int]]]:
        """The node with the most live bytes, and the bytes of each value that is live there.

        Each value counts in the division with the fewest bytes. The largest values come first.
        """
        graph = self.of.graph
        ranges = self._stored.ranges
        sizes = {
            v: self._any_bytes(v) if at is None else min(self._sizes(v, *at))
            for v, at in self._known().items()
        }
        sizes = {v: nbytes for v, nbytes in sizes.items() if nbytes}
        most, where, found = -1, "the start", list[tuple[int, int]]()
        for n, live in live_values(ranges, sizes, len(graph.nodes) + 1):
            if (total := sum(live.values())) > most:
                where = graph.nodes[n].name if n < len(graph.nodes) else "the end"
                most, found = total, list(live.items())
        return where, sorted(found, key=lambda pair: -pair[1])

    def _known(self) -> dict[int, tuple[int, int] | None]:
        """Return the values that count, with the variables that their bytes depend on, if any.

        On machines with cores these include values without a variable: each core holds all of such
        a value.
        """
        parts, found = self._stored.parts, dict[int, tuple[int, int] | None]()
        for v in range(len(self.of.graph.shapes)):
            source = self.of.source(v)
            if source is not None or self.of.units.machine.has_cores:
                found[v] = None if v in parts else source
        first = len(self.of.graph.shapes)
        return found | {v: (self.of.variable(v - first), 0) for v in self._copies}

    def _any_bytes(self, value: int) -> int:
        """Return the bytes of a value that depend on no variable: all of it, or its finest part."""
        nbytes = self.of.ways.held(value, ((),) * len(self.of.graph.shapes[value]))
        if value not in self._stored.parts:
            return nbytes
        return nbytes // self.of.units.count(range(len(self.of.units.axes)))

    def rows(self) -> list[Row]:
        """Return limits for the nodes where live values may not fit, the fullest nodes first."""
        if self.capacity is None:
            return []
        known = {v: source for v, source in self._known().items() if v not in self.dram}
        found: dict[Any, tuple[float, int]] = {}
        ranges = {v: ends for v, ends in self._stored.ranges.items() if v in known}
        end = len(self.of.graph.nodes)
        for v, operand in self._next_values():
            known[v], ranges[v] = (self.of.operand(operand), 0), (end, end)
        live = _Live(self, known)
        for n, began, ended in changes(ranges, end + 1, always=True):
            self.of.each_step()
            live.count(began, 1)
            at = self.of.variable(n) if n < end else -1
            more = float(self._while_running(at).max()) if at >= 0 else 0.0
            most, copied = live.most + more + sum(map(self._most_kept, live.parts)), 0.0
            if at >= 0 and most + self._most_copied(n) > self.capacity:
                copied = self._copied(n).most
            most += copied
            if (ended or more or copied or n == end) and most > self.capacity:
                counts = tuple(sorted(live.counts.items()))
                own = n if copied or live.parts else -1  # else equal nodes need one row
                key = own, at if more else -1, counts, tuple(live.parts), live.whole
                found.setdefault(key, (live.least, n))
            live.count(ended, -1)
        fullest = sorted(found, key=lambda key: (-found[key][0], key))[: LIMITS.memory_rows]
        rows = []
        for own, at, counts, parts, whole in fullest:
            n = found[own, at, counts, parts, whole][1]
            usages, pairs = dict[int, NDArray[np.float64]](), self._pairs(n, parts)
            if n < end and (own >= 0 or at >= 0):
                at = self.of.variable(n)
                usages[at] = self._while_running(at) + self._copied(n).own
            for source, count in counts:
                used = count * live.sizes[source]
                at = source[0]
                usages[at] = usages[at] + used if at in usages else used
            rows.append(Row(self.capacity - whole, usages, pairs))
        return rows

    def _pairs(self, n: int, parts: Iterable[int]) -> dict[tuple[int, int], NDArray[np.float64]]:
        """Return the bytes that pairs of choices hold at a node, where these parts are live."""
        found, read = dict[tuple[int, int], NDArray[np.float64]](), set[int | None]()
        if n < len(self.of.graph.nodes):
            found, read = dict(self._copied(n).pairs), {*self.of.graph.nodes[n].ins}
        for kept in (self._kept(part) for part in parts if part not in read):
            if kept is not None:
                key, more = kept
                found[key] = found[key] + more if key in found else more
        return found

    def _kept(self, part: int) -> tuple[tuple[int, int], NDArray[np.float64]] | None:
        """Return which pairs of choices surely hold a value as it is, as `Copies.kept`."""
        if self.of.units.machine.has_cores or self.of.graph.is_large:
            return None
        if part not in self._of_part:
            self._of_part[part] = self._copies_of.kept(part)
        return self._of_part[part]

    def _most_kept(self, part: int) -> float:
        kept = self._kept(part)
        return 0.0 if kept is None else float(kept[1].max())

    @cached_property
    def _of_part(self) -> dict[int, tuple[tuple[int, int], NDArray[np.float64]] | None]:
        return {}

    def _copied(self, n: int) -> Copied:
        """Return what a node holds of its operands besides what is stored.

        It is not counted in large graphs: it would take longer than their programs, which tell.
        """
        if self.of.units.machine.has_cores or self.of.graph.is_large:
            return Copied(np.zeros(1))
        if n not in self._of_node:
            self._of_node[n] = self._copies_of.at(n)
        return self._of_node[n]

    def _most_copied(self, n: int) -> float:
        """Return at least as many bytes as `_copied` has, in less time."""
        is_counted = not (self.of.units.machine.has_cores or self.of.graph.is_large)
        return self._copies_of.most(n) if is_counted else 0.0

    @cached_property
    def _of_node(self) -> dict[int, Copied]:
        return {}

    @cached_property
    def _copies_of(self) -> Copies:
        finest = {v: self._any_bytes(v) for v in self._stored.parts}
        return Copies(self.of, self._stored, self._known(), finest)

    def _next_values(self) -> Iterator[tuple[int, int]]:
        """Yield the next values of operands, with these, if they do not count otherwise.

        In the end, each is in the place of the operand, and takes as much.
        """
        for v, operand in zip(self.of.graph.outs, self.of.targets, strict=True):
            if v in self.dram and isinstance(operand, int) and v not in self.left:
                yield v, operand

    def _while_running(self, at: int) -> NDArray[np.float64]:
        """Return, for each choice of a node, the bytes that it holds besides values."""
        if at not in self._running:
            self._running[at] = self._found_while_running(at)
        return self._running[at]

    @cached_property
    def _running(self) -> dict[int, NDArray[np.float64]]:
        return {}

    def _found_while_running(self, at: int) -> NDArray[np.float64]:
        variable = self.of.variables[at]
        node = self.of.graph.nodes[variable.members[0]]
        found = np.array([self.more.get((at, k), 0.0) for k in range(len(variable.choices))])
        if self.of.units.machine.has_cores:
            return found
        for k, choice in enumerate(variable.choices):
            if choice is not None and choice.summed:
                partial = self.of.ways.partial(node, choice)
                found[k] += max(partial - self.of.ways.nbytes(node.outs[0], choice.out), 0)
        return found

    def held(self, choices: Sequence[int]) -> list[float]:
        """Return the bytes that are counted at each node, for some choices."""
        known, count = self._known(), len(self.of.graph.nodes)
        live = []
        for v, (first, last) in self._stored.ranges.items():
            if v in known:
                source = known[v]
                if source is None:
                    nbytes = self._any_bytes(v)
                else:
                    nbytes = self._sizes(v, *source)[choices[source[0]]]
                live.append(Interval(first, last, nbytes))
        found = held_over_time(live, count)
        variables = map(self.of.variable, range(count))
        parts = {v: ends for v, ends in self._stored.ranges.items() if v in self._stored.parts}
        held = []
        for n, (nbytes, at) in enumerate(zip(found, variables, strict=True)):
            own, k = self._copied(n).own, choices[at]
            pairs = self._pairs(n, (v for v, (a, b) in parts.items() if a <= n <= b))
            terms = [float(x[choices[v], choices[w]]) for (v, w), x in pairs.items()]
            terms += [float(self._while_running(at)[k]), float(own[min(k, len(own) - 1)])]
            held.append(nbytes + sum(terms))
        return held

    def learn(self, choices: Sequence[int], held: Iterable[tuple[Path, int]]) -> bool:
        """Count what the program of some choices holds where that is too much.

        held: the bytes of a device, by the paths of equations. Returns whether anything is new.
        """
        if self.capacity is None:
            return False
        counted, is_new = self.held(choices), False
        for path, nbytes in held:
            if nbytes <= self.capacity or not (own := self.of.inside(path)):
                continue
            n = max(own, key=counted.__getitem__)
            if (missing := nbytes - counted[n]) > 0:
                key = self.of.variable(n), choices[self.of.variable(n)]
                self.more[key] = self.more.get(key, 0.0) + missing
                counted[n], is_new = nbytes, True
        return is_new


class _Live:
    """The live values at a node: how many of each variable, and bytes in their divisions.

    whole: bytes of values without a variable, and of finest parts. parts: the values of these of
    which more may be kept. most, least: bytes of all, with those of the others in the divisions
    with the most and the fewest.
    """

    def __init__(self, room: Room, known: Mapping[int, tuple[int, int] | None]) -> None:
        self.room, self.known = room, known
        self.counts: Counter[tuple[int, int]] = Counter()
        self.sizes: dict[tuple[int, int], NDArray[np.float64]] = {}
        self.whole, self.most, self.least = 0, 0.0, 0.0
        self.parts: dict[int, None] = {}

    def count(self, values: Iterable[int], sign: int) -> None:
        """Add values, or take them away with a sign of -1."""
        for v in values:
            source = self.known[v]
            if source is None:
                sizes = np.array([self.room._any_bytes(v)], float)
                self.whole += sign * int(sizes[0])
                if sign > 0 and v in self.room._stored.parts and self.room._kept(v) is not None:
                    self.parts[v] = None
                else:
                    self.parts.pop(v, None)
            else:
                if source not in self.sizes:
                    self.sizes[source] = np.array(self.room._sizes(v, *source), float)
                sizes = self.sizes[source]
                self.counts[source] += sign
                if not self.counts[source]:
                    del self.counts[source]
            self.most += sign * float(sizes.max())
            self.least += sign * float(sizes.min())
