"""Every way to divide the values and run the nodes of a graph, as one optimisation problem.

One choice is made for each variable (`variables.py`), and the values that are live at a node must
fit in memory (`room.py`). A value is relaid out once to each division in which it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.joined import Latencies, Later, Levels, Read, later_moves, sum_levels
from gridlayout.ops.choose.room import Room
from gridlayout.ops.choose.variables import Place, Variable, Variables
from gridlayout.ops.graph.node import WITH_LAYOUT, Node
from gridlayout.ops.solver.descent import improved
from gridlayout.ops.solver.problem import Fetch, Problem
from gridlayout.sharding.limits import LIMITS


@dataclass(eq=False)
class Strategies(Variables):
    """The strategies of a graph on a machine: its variables, and the costs of their choices.

    capacity: bytes that fit on a device, or in a core's L1; None for no limit. dram: values that
    nodes produce in the DRAM behind a chip's cores, from where nodes read them while they compute.
    copies: whether a node's copy of an operand counts in addition to the operand, beyond the bytes
    of the operand's smallest part.
    """

    capacity: float | None = None
    dram: frozenset[int] = frozenset()
    copies: bool = False
    _computing: dict[Any, float] = field(default_factory=dict)
    _prices: dict[Any, NDArray[np.float64]] = field(default_factory=dict)
    _reads: list[Read] = field(default_factory=list)
    _exact: dict[Any, float] = field(default_factory=dict)
    _joined: Latencies = field(default_factory=Latencies)  # of moves
    _later: list[Later] = field(default_factory=list)
    _apart: Problem = field(init=False)  # without the shares of latencies
    _levels: Levels = field(init=False)  # of sums

    def limited(
        self,
        capacity: float | None,
        dram: frozenset[int] = frozenset(),
        copies: bool = False,
        each_step: Callable[[], None] | None = None,
    ) -> Strategies:
        """Return the same strategies with other limits on memory.

        capacity, dram, copies: as for the class. each_step: replaces the present one.
        """
        other = copy(self)
        other.each_step = self.each_step if each_step is None else each_step
        vars(other).pop("problem", None)
        other._exact = {}
        other.capacity, other.dram, other.copies = capacity, dram, copies
        return other

    # -- the problem -------------------------------------------------------------------------------

    @cached_property
    def problem(self) -> Problem:
        """The costs of all choices, the moves between them, and the limits on memory."""
        costs = [each.seconds * len(each.members) for each in self.variables]
        if far := self._always_in_dram:
            for at, variable in enumerate(self.variables):
                self.each_step()
                if not variable.is_operand:
                    costs[at] = costs[at] + self._dram_seconds(variable, far)
        # The users of each value, by how often they read it: a loop repeats the moves inside it.
        consumers: dict[tuple[int, float], list[tuple[int, int]]] = {}
        for n, node in enumerate(self.graph.nodes):
            for position, v in enumerate(node.ins):
                if v is not None and node.factors is not None:
                    times = node.starts if not position else node.times
                    consumers.setdefault((v, times), []).append((self._of_node[n], position))
        counts: dict[Any, float] = {}
        values: dict[Any, tuple[int, float]] = {}
        for (v, times), mine in consumers.items():
            if (source := self.source(v)) is not None and self.graph.shapes[v]:
                size = self.graph.nbytes(v)
                key = (*source, size, tuple(sorted(mine)))
                counts[key] = counts.get(key, 0) + times
                values.setdefault(key, (v, times))
        self._reads, self._joined = [], Latencies()
        fetches = [self._fetch(*values[key], key, count) for key, count in counts.items()]
        fetches += self._dram_reads()
        for v, divisions in zip(self.graph.outs, self.targets, strict=True):
            source = None if v is None else self.source(v)
            if v is not None and source is not None and self.graph.shapes[v]:
                size = self.graph.nbytes(v)
                if isinstance(divisions, int):
                    fetches.append(self._to_next_value(source, divisions, size))
                    continue
                if not divisions:
                    continue
                moved = {
                    x: self._cheapest_division(x, divisions, size)[0]
                    for x in set(self.held(*source))
                }
                more = np.array([moved[x] for x in self.held(*source)])
                costs[source[0]] = costs[source[0]] + more
        self._apart = Problem(tuple(costs), tuple(fetches), tuple(self.room.rows()))
        self._levels = sum_levels(self.graph)
        return self._with_joined()

    def _with_joined(self) -> Problem:
        """Return the problem in which collectives that can be joined share their latency."""
        costs, joined = list(self._apart.costs), self._joined.copy()
        self._join_sums(costs, joined)
        fetches = list(self._apart.fetches)
        for each in self._later:
            fetch, read = fetches[each.read], self._reads[each.read]
            prices, saved = fetch.prices.copy(), each.latency * read.count
            for row, place in enumerate(read.held):
                if place.division == each.held:
                    prices[row, each.form] = max(prices[row, each.form] - saved, 0.0)
            fetches[each.read] = replace(fetch, prices=prices)
            joined.add_readers(each.key, saved, each.form, fetch.consumers)
        made = joined.fetches(costs)
        return replace(self._apart, costs=tuple(costs), fetches=(*fetches, *made))

    def _fetch(self, value: int, times: float, what: Any, count: float) -> Fetch:
        """Return the costs of moving a value to its users, for all their choices.

        times: how often it moves. what: the value's variable, number among its results and bytes,
        and its users. count: how often it moves and all values that equal it.
        """
        self.each_step()
        at, position, size, mine = what
        variable = self.variables[at]
        held = [Place(x) for x in self.held(at, position)]
        held = variable.choices if variable.is_operand else held
        forms: dict[Division, int] = {}
        consumers = []
        for consumer, place in mine:
            needs = [choice.ins[place] for choice in self.variables[consumer].choices]
            read = [-1 if need is None else forms.setdefault(need, len(forms)) for need in needs]
            consumers.append((consumer, np.array(read)))
        kinds: dict[Place, int] = {}
        rows = np.array([kinds.setdefault(x, len(kinds)) for x in held])
        key = tuple(kinds), tuple(forms), size
        if key not in self._prices:
            self._prices[key] = np.array(
                [[self._place_move(a, b, size) for b in forms] for a in kinds]
            ).reshape(len(kinds), len(forms))
        prices = self._prices[key][rows] * count
        if value in self.graph.folded:
            # A move would instead move the transposed product to its consumers.
            same = [[a.division == b for b in forms] for a in kinds]
            prices = np.where(np.array(same)[rows], prices, 2 * prices)
        saved: NDArray[np.float64] | float = 0.0
        if variable.is_operand and len(held) == 1:
            dtype = str(self.graph.dtypes[value])
            saved = self._joined_moves(held[0], dtype, forms, size, consumers, times) * count
        self._reads.append(Read(value, held, list(forms), times, count, saved))
        return Fetch(at, prices - saved, tuple(consumers))

    def refined(self, found: Sequence[int]) -> Problem | None:
        """Return the problem with what is exact for a solution; None if it is so already.

        The prices of moves are estimates from divisions alone: the relayout of an array finds the
        exact collectives, which takes longer. Which sums do not depend on each other, and can be
        joined, follows from how the others run.
        """
        problem, new = self.problem, set[Any]()
        moved: dict[tuple[int, Division], tuple[int, int, Division]] = {}
        for k, (read, fetch) in enumerate(zip(self._reads, problem.fetches, strict=False)):
            place = read.held[found[fetch.source]]
            if place.in_dram or place.division is None:
                continue
            for form in {int(forms[found[v]]) for v, forms in fetch.consumers} - {-1}:
                key = self._move_key(read.value, place.division, need := read.forms[form])
                if place.division == need:
                    continue
                moved[read.value, need] = k, form, place.division
                if key not in self._exact:
                    self._exact[key] = self.units.exact_move(*key)
                    new.add(key)
        levels = sum_levels(self.graph, self.choices(found))
        later = later_moves(self.graph, self.units, self._reads, self.reads(found), moved)
        if not new and levels == self._levels and later == self._later:
            return None
        self._levels, self._later = levels, later
        fetches = list(self._apart.fetches)
        shapes = {key[:2] for key in new}
        for k, read in enumerate(self._reads):
            own = self.graph.shapes[read.value], self.graph.dtypes[read.value]
            if own not in shapes:
                continue
            prices = fetches[k].prices.copy()
            for row, place in enumerate(read.held):
                for form, need in enumerate(read.forms):
                    if (key := (*own, place.division, need)) in new and not place.in_dram:
                        prices[row, form] = self._exact[key] * read.count
                        if not isinstance(read.saved, float):
                            prices[row, form] = max(prices[row, form] - read.saved[0, form], 0.0)
            fetches[k] = replace(fetches[k], prices=prices)
        self._apart = replace(self._apart, fetches=tuple(fetches))
        self.problem = self._with_joined()
        return self.problem

    def with_exact_moves(self, found: Sequence[int]) -> tuple[tuple[int, ...], Problem]:
        """Return the choices that a descent reaches with exact prices of moves, and its problem.

        found: the choices from which it begins.
        """
        choices = tuple(found)
        for _ in range(LIMITS.refinements):
            before = self.problem
            if (problem := self.refined(choices)) is None:
                break
            choices = improved(problem, choices, before)
        return choices, self.problem

    def _move_key(self, value: int, before: Division, after: Division) -> Any:
        return self.graph.shapes[value], self.graph.dtypes[value], before, after

    def _joined_moves(
        self,
        held: Place,
        dtype: Any,
        forms: Mapping[Division, int],
        size: int,
        consumers: Sequence[tuple[int, NDArray[np.int64]]],
        times: float,
    ) -> NDArray[np.float64]:
        """Return what a move to each form saves where it is joined, and note its latency."""
        found = np.zeros((1, len(forms)))
        for need, form in forms.items():
            if held.in_dram:
                continue
            if (made := self.units.joined_move(held.division, need, size)) is None:
                continue
            found[0, form] = made.latency
            key = made.kind, dtype, times, 0
            self._joined.add_readers(key, made.latency * times, form, consumers)
        return found

    @property
    def _always_in_dram(self) -> frozenset[int]:
        """The values that are in DRAM for every choice: those of `dram`, and some operands.

        A node reads and writes them while it computes; the times of these transfers add up.
        """
        only = (k for k, places in enumerate(self.given) if places and all(p[1] for p in places))
        return self.dram | frozenset(only)

    def _dram_seconds(self, variable: Variable, far: frozenset[int]) -> NDArray[np.float64]:
        """Return the seconds that reading and writing DRAM adds to each choice of a variable."""
        more = np.zeros(len(variable.choices))
        for n in variable.members:
            node = self.graph.nodes[n]
            if not far.intersection((*(v for v in node.ins if v is not None), *node.outs)):
                continue
            for k, choice in enumerate(variable.choices):
                if choice is not None:
                    seconds = self.ways.streaming(node, choice, far)
                    more[k] += max(seconds - self._computed(node, choice), 0.0)
        return more

    def _computed(self, node: Node, choice: Choice | None) -> float:
        """Return the seconds that all runs of a node compute, while DRAM is being read."""
        if choice is None or node.name == WITH_LAYOUT:
            return 0.0
        key = node.path, choice
        if key not in self._computing:
            self._computing[key] = self.ways.computing(node, choice) * node.times
        return self._computing[key]

    def _to_next_value(self, source: tuple[int, int], operand: int, size: int) -> Fetch:
        """Return the costs of relaying a result out to the operand whose next value it is."""
        at = self._of_operand[operand]
        places, held = self.variables[at].choices, self.held(*source)
        prices = [[self._move(x, place.division, size) for place in places] for x in held]
        return Fetch(source[0], np.array(prices), ((at, np.arange(len(places))),))

    def _cheapest_division(
        self, held: Division, divisions: Sequence[Division], size: int
    ) -> tuple[float, Division]:
        """Return the least seconds to relay a result out as allowed, and the division it gets."""
        if held in divisions:
            return 0.0, held
        moves = [(self._move(held, x, size), k) for k, x in enumerate(divisions)]
        seconds, k = min(moves)
        return seconds, divisions[k]

    def results(self, found: Sequence[int]) -> list[Division | None]:
        """Return the division of each result; None for a number, or where the rule decides."""
        made: list[Division | None] = []
        for v, divisions in zip(self.graph.outs, self.targets, strict=True):
            if v is None or not self.graph.shapes[v]:
                made.append(None)
                continue
            if isinstance(divisions, int):
                at = self._of_operand[divisions]
                made.append(self.variables[at].choices[found[at]].division)
                continue
            source, size = self.source(v), self.graph.nbytes(v)
            if source is None or not divisions:
                made.append(None)
                continue
            held = self.held(*source)[found[source[0]]]
            made.append(self._cheapest_division(held, divisions, size)[1])
        return made

    def _join_sums(self, costs: list[NDArray[np.float64]], joined: Latencies) -> None:
        """Add the latencies of sums to `joined`, and subtract them from costs of choices."""
        for at, latencies in self._sums:
            members = [self.graph.nodes[n] for n in self.variables[at].members]
            costs[at] = own = costs[at].copy()
            for k, kind, saved in latencies:
                for node in members:
                    key = self._levels.of(node, kind), kind, node.times
                    joined.add(key, saved, at, len(own), k)
                own[k] = max(own[k] - saved * len(members), 0.0)

    @cached_property
    def _sums(self) -> list[tuple[int, list[tuple[int, Hashable, float]]]]:
        """The variables of nodes that sum: of some choices the kind of sum, and its latency."""
        found = []
        for at, variable in enumerate(self.variables):
            node = None if variable.is_operand else self.graph.nodes[variable.members[0]]
            if node is None or node.factors is None or not node.factors.summed:
                continue
            latencies: list[tuple[int, Hashable, float]] = []
            for k, choice in enumerate(variable.choices):
                if choice is None or not choice.summed:
                    continue
                dim = self.ways.scattered_dim(node, choice)
                given = choice.summed, self.ways.partial(node, choice), choice.scattered
                if (latency := self.units.shared_latency(*given, dim=dim)) > 0:
                    latencies.append((k, choice.sum_kind, latency * node.times))
            found.append((at, latencies))
        return found

    def _place_move(self, place: Place, need: Division, size: int) -> float:
        """Return the seconds to move an operand; one in DRAM moves between chips only."""
        if not place.in_dram:
            return self._move(place.division, need, size)
        return self._move(place.division, self.units.among_chips(need), size)

    def _dram_reads(self) -> list[Fetch]:
        """Return the seconds by which reading operands from DRAM takes longer than computing."""
        found, far = [], self._always_in_dram
        for n, node in enumerate(self.graph.nodes):
            self.each_step()
            for position, v in enumerate(node.ins):
                if v is None or v >= len(self.given) or node.factors is None or v in far:
                    continue
                at, consumer = self._of_operand[v], self._of_node[n]
                in_dram = np.array([place.in_dram for place in self.variables[at].choices])
                if not in_dram.any() or not self.graph.shapes[v]:
                    continue
                variable, more = self.variables[consumer], []
                for choice in variable.choices:
                    need = None if choice is None else choice.ins[position]
                    read = 0.0 if need is None else self.ways.reading(v, need) * node.times
                    more.append(max(read - self._computed(node, choice), 0.0) if read else 0.0)
                prices = np.where(in_dram[:, None], np.array(more)[None], 0.0)
                found.append(Fetch(at, prices, ((consumer, np.arange(len(more))),)))
        return found

    def _move(self, before: Division | None, after: Division, size: int) -> float:
        sent = self.units.move(before, after, size)
        return sent.seconds + LIMITS.collective_penalty * sent.alone

    # -- memory ------------------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        """The memory of the values that are live at each node."""
        return Room(self, self.capacity, self.dram, self.copies)

    @property
    def fits(self) -> bool:
        """Whether the values that are live at each node fit, if each is divided the most."""
        return not any(
            sum(float(each.min()) for each in row.usages.values()) > row.limit
            for row in self.problem.rows
        )
