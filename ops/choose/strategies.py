"""Every way to divide the values and run the nodes of a graph, as one optimisation problem.

One choice is made for each variable (`variables.py`), and the values that are live at a node must
fit in memory (`room.py`). A value is relaid out once to each division in which it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.changes import Joined
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.dram import Dram
from gridlayout.ops.choose.joined import (
    JoinedMove,
    Latencies,
    Levels,
    Read,
    joined_later,
    sum_kind,
    sum_levels,
)
from gridlayout.ops.choose.room import Room
from gridlayout.ops.choose.variables import Moved, Place, Variables
from gridlayout.ops.solver.descent import improved
from gridlayout.ops.solver.problem import Fetch, Problem
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.limits import LIMITS


@dataclass(eq=False)
class Strategies(Variables):
    """The strategies of a graph on a machine: its variables, and the costs of their choices.

    capacity: bytes that fit on a device, or in a core's L1; None for no limit. dram: values that
    nodes produce in the DRAM behind a chip's cores, from where nodes read them while they compute.
    uncounted: values that take no room besides those, so that limits hold wherever they are. more:
    bytes that nodes hold in addition, as in `Room`. dearer: seconds that some choices of variables
    take in addition.
    """

    capacity: float | None = None
    dram: frozenset[int] = frozenset()
    uncounted: frozenset[int] = frozenset()
    more: dict[tuple[int, int], float] = field(default_factory=dict)
    dearer: dict[tuple[int, int], float] = field(default_factory=dict)
    _prices: dict[Any, NDArray[np.float64]] = field(default_factory=dict)
    _reads: list[Read] = field(default_factory=list)
    _exact: dict[Any, tuple[float, Joined | None]] = field(default_factory=dict)
    _joined: dict[tuple[int, int], JoinedMove] = field(default_factory=dict)
    _apart: Problem = field(init=False)  # without the shares of latencies
    _first: dict[tuple[int, int], JoinedMove] = field(init=False)  # joined, whatever is chosen
    _levels: Levels = field(init=False)  # of sums

    def limited(
        self,
        capacity: float | None,
        dram: frozenset[int] = frozenset(),
        each_step: Callable[[], None] | None = None,
        uncounted: frozenset[int] = frozenset(),
    ) -> Strategies:
        """Return the same strategies with other limits on memory.

        capacity, dram, uncounted: as for the class. each_step: replaces the present one.
        """
        other = copy(self)
        other.each_step = self.each_step if each_step is None else each_step
        vars(other).pop("problem", None)
        other._exact = {}
        other.capacity, other.dram, other.uncounted = capacity, dram, uncounted
        return other

    # -- the problem -------------------------------------------------------------------------------

    @cached_property
    def problem(self) -> Problem:
        """The costs of all choices, the moves between them, and the limits on memory."""
        costs = [each.seconds * len(each.members) for each in self.variables]
        _add(costs, self.dearer)
        dram = Dram(self, self.dram)
        if dram.always:
            for at, variable in enumerate(self.variables):
                self.each_step()
                if not variable.is_operand:
                    costs[at] = costs[at] + dram.seconds(variable)
        # The users of each value, by how often it moves: a loop repeats the moves inside it.
        consumers: dict[tuple[int, Moved], list[tuple[int, int]]] = {}
        for n, node in enumerate(self.graph.nodes):
            is_known = self.variables[self._of_node[n]].choices[0] is not None
            for position, v in enumerate(node.ins if is_known else ()):
                if v is not None:
                    key = v, self.moved(node, position)
                    consumers.setdefault(key, []).append((self._of_node[n], position))
        counts: dict[Any, float] = {}
        values: dict[Any, tuple[int, Moved]] = {}
        for (v, moved), mine in consumers.items():
            if (source := self.source(v)) is not None and self.graph.shapes[v]:
                size = self.graph.nbytes(v)
                same = (*source, size, moved.again, tuple(sorted(mine)))
                counts[same] = counts.get(same, 0) + moved.times
                values.setdefault(same, (v, moved))
        self._reads, self._joined = [], {}
        fetches = []
        for same, count in counts.items():
            *source, _, _, mine = same
            needs = [(at, self._needs(at, position)) for at, position in mine]
            fetches.append(self._fetch(*values[same], (source[0], source[1]), needs, count))
        fetches += self._to_results()
        fetches += dram.transfers()
        self._apart = Problem(tuple(costs), tuple(fetches), tuple(self.room.rows()))
        self._levels, self._first = sum_levels(self.graph), self._joined
        return self._with_joined()

    def count(self, more: Mapping[tuple[int, int], float]) -> None:
        """Count seconds that some choices of variables take in addition.

        The problem is then again the first one, in which all collectives that may be joined are,
        but with the exact prices of moves that are known.
        """
        costs = [*self._apart.costs]
        for key, seconds in more.items():
            self.dearer[key] = self.dearer.get(key, 0.0) + seconds
        _add(costs, more)
        self._apart = self._apart.with_terms(costs, self._apart.fetches)
        self._levels, self._joined = sum_levels(self.graph), self._first
        self.problem = self._with_joined()

    def _with_joined(self) -> Problem:
        """Return the problem in which collectives that can be joined share their latency."""
        costs, joined = list(self._apart.costs), Latencies()
        fetches = list(self._apart.fetches)
        prices = {k: fetches[k].prices.copy() for k, _ in self._joined}
        for (k, form), move in self._joined.items():
            read = self._reads[k]
            rows = [p.division == move.held and not p.in_dram for p in read.held]
            less = prices[k][rows, form] - move.latency * read.count
            prices[k][rows, form] = np.maximum(less, 0.0)
            joined.add_readers(move.key, move.seconds, form, fetches[k].consumers)
        for k, own in prices.items():
            fetches[k] = fetches[k].with_prices(own)
        self._join_sums(costs, joined)
        made = joined.fetches(costs)
        return self._apart.with_terms(costs, (*fetches, *made))

    def _needs(self, at: int, position: int) -> list[Division | None]:
        """Return what a variable reads an operand as, for each of its choices."""
        return [choice.ins[position] for choice in self.variables[at].choices]

    def _fetch(
        self,
        value: int,
        moved: Moved,
        source: tuple[int, int],
        needs: Sequence[tuple[int, Sequence[Division | None]]],
        count: float,
    ) -> Fetch:
        """Return the costs of moving a value to its users, for all their choices.

        moved: where and how often it moves. source: the value's variable, and its number among the
        results. needs: the users, and what each reads it as, by choice. count: how often it moves
        and all values that equal it.
        """
        self.each_step()
        (at, position), size = source, self.graph.nbytes(value)
        variable = self.variables[at]
        held = [Place(x) for x in self.held(at, position)]
        held = variable.choices if variable.is_operand else held
        forms, stay, consumers = self.forms(needs)
        kinds: dict[Place, int] = {}
        rows = np.array([kinds.setdefault(x, len(kinds)) for x in held])
        is_free, is_folded = value in self.graph.free, value in self.graph.folded
        if is_free or is_folded or any(stay):
            same = np.array([[a.division == b for b in forms] for a in kinds], bool)
        if is_free:  # it is computed where it is read
            made = [self.ways.made_at(value, form) for form in forms]
            prices = np.where(same, 0.0, made)[rows]
        else:
            prices = self._moves(tuple(kinds), tuple(forms), size, moved.again)[rows] * count
        if is_folded:  # a move would move the transposed product to its consumers
            others = np.where(same.any(1)[rows, None], np.inf, 2 * prices)
            prices = np.where(same[rows] | (prices == 0), prices, others)
        if any(stay):
            prices = np.where(same[rows] | ~np.array(stay, bool), prices, np.inf)
        self._reads.append(Read(value, held, forms, stay, moved, count))
        if variable.is_operand and len(held) == 1:
            self._join_operand(len(self._reads) - 1, size)
        return Fetch(at, prices, tuple(consumers))

    def _moves(
        self, kinds: tuple[Place, ...], forms: tuple[Division, ...], size: int, again: float
    ) -> NDArray[np.float64]:
        """Return the seconds of the moves from some places to some forms; again: as in `Moved`."""
        key = kinds, forms, size, again
        if key not in self._prices:
            found = []
            for place in kinds:  # one in DRAM moves between chips only
                needs = map(self.units.among_chips, forms) if place.in_dram else forms
                found.append([self._move(place.division, need, size, again) for need in needs])
            self._prices[key] = np.array(found).reshape(len(kinds), len(forms))
        return self._prices[key]

    def _join_operand(self, k: int, size: int) -> None:
        """Note which moves of an operand with one place can be joined; k: of its fetch."""
        read = self._reads[k]
        (place,) = read.held
        for form, need in enumerate(read.forms):
            made = None if place.in_dram else self.units.joined_move(place.division, need, size)
            if made is not None:
                key = made.kind, str(self.graph.dtypes[read.value]), read.moved.body, 0
                move = JoinedMove(
                    place.division, made.latency, made.latency * read.moved.times, key
                )
                self._joined[k, form] = move

    def refined(self, found: Sequence[int]) -> Problem | None:
        """Return the problem with what is exact for a solution; None if it is so already.

        The prices of moves are estimates from divisions alone: the relayout of an array finds the
        exact collectives, which takes longer. Which sums do not depend on each other, and can be
        joined, follows from how the others run.
        """
        problem, new = self.problem, set[Any]()
        moved: dict[tuple[int, Division], tuple[int, int, Division, Joined | None]] = {}
        for k, (read, fetch) in enumerate(zip(self._reads, problem.fetches, strict=False)):
            place = read.held[found[fetch.source]]
            if place.in_dram or place.division is None or not self._is_relaid_out(read.value):
                continue
            for form in {int(forms[found[v]]) for v, forms in fetch.consumers} - {-1}:
                if place.division == (need := read.forms[form]):
                    continue
                own = self.graph.shapes[read.value], self.graph.dtypes[read.value]
                key: Any = (*own, place.division, need)
                if key not in self._exact:
                    self._exact[key] = self.units.exact_move(*key)
                    new.add(key)
                moved[read.value, need] = k, form, place.division, self._exact[key][1]
        levels = sum_levels(self.graph, self.choices(found))
        # What can be joined in this solution, and what is known of the moves of operands elsewhere.
        used = {(k, form) for k, form, *_ in moved.values()}
        joined = {
            key: move
            for key, move in self._joined.items()
            if key not in used and self._reads[key[0]].value < self.graph.operands
        }
        joined |= joined_later(self.graph, self._reads, self.reads(found), moved)
        if not new and levels == self._levels and joined == self._joined:
            return None
        self._levels, self._joined = levels, joined
        fetches = list(self._apart.fetches)
        shapes = {key[:2] for key in new}
        for k, read in enumerate(self._reads):
            own = self.graph.shapes[read.value], self.graph.dtypes[read.value]
            if own not in shapes or not self._is_relaid_out(read.value):
                continue
            prices = fetches[k].prices.copy()
            for row, place in enumerate(read.held):
                for form, need in enumerate(read.forms):
                    if read.stays[form] or place.in_dram:
                        continue
                    if (key := (*own, place.division, need)) in new:
                        again = read.moved.again if self.units.is_local(*key[2:]) else 1
                        prices[row, form] = self._exact[key][0] * read.count * again
            fetches[k] = fetches[k].with_prices(prices)
        self._apart = self._apart.with_terms(self._apart.costs, fetches)
        self.problem = self._with_joined()
        return self.problem

    def with_exact_moves(
        self, found: Sequence[int], each_step: Callable[[], None] = no_step
    ) -> tuple[tuple[int, ...], float]:
        """Return the best choices that descents reach with exact prices from some; their seconds.

        each_step: as in `improved`."""
        choices, priced = tuple(found), dict[tuple[int, ...], float]()
        for k in range(LIMITS.refinements + 1):
            before = self.problem
            is_exact = self.refined(choices) is None
            priced[choices] = self.problem.cost(choices)
            if is_exact or k == LIMITS.refinements:
                break
            choices = improved(self.problem, choices, before, each_step)
        best = min(priced, key=priced.__getitem__)
        return best, priced[best]

    def _is_relaid_out(self, value: int) -> bool:
        """Return whether a value moves, and is not computed otherwise instead."""
        return value not in self.graph.free and value not in self.graph.folded

    def _to_results(self) -> list[Fetch]:
        """Return the costs of relaying results out, as allowed or to the operands they update."""
        found = []
        for v, divisions in zip(self.graph.outs, self.targets, strict=True):
            source = None if v is None else self.source(v)
            if v is None or source is None or not self.graph.shapes[v] or divisions == []:
                continue
            if isinstance(divisions, int):
                at = self._of_operand[divisions]
                needs = [place.division for place in self.variables[at].choices]
            else:
                at, size = source[0], self.graph.nbytes(v)
                best = {
                    x: self._cheapest_division(x, divisions, size)[1]
                    for x in set(self.held(*source))
                }
                needs = [best[x] for x in self.held(*source)]
            found.append(self._fetch(v, Moved((), 1.0), source, [(at, needs)], 1.0))
        return found

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
                    key = self._levels.of(node, kind), kind, self.graph.body(node.path)
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
                if (latency := self.units.summed(*given, dim=dim).shared) > 0:
                    latencies.append((k, sum_kind(node, choice), latency * node.times))
            found.append((at, latencies))
        return found

    def _move(self, before: Division | None, after: Division, size: int, again: float = 1) -> float:
        sent = self.units.move(before, after, size)
        seconds = sent.seconds if sent.alone else sent.seconds * again
        return seconds + LIMITS.collective_penalty * sent.alone

    # -- memory ------------------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        """The memory of the values that are live at each node."""
        return Room(self, self.capacity, self.dram, self.dram | self.uncounted, self.more)

    @property
    def fits(self) -> bool:
        """Whether the values that are live at each node fit, if each is divided the most."""
        return not any(
            sum(float(each.min()) for each in row.usages.values()) > row.limit
            for row in self.problem.rows
        )


def _add(costs: list[NDArray[np.float64]], more: Mapping[tuple[int, int], float]) -> None:
    """Add seconds to the costs of some choices of variables."""
    for (at, k), seconds in more.items():
        costs[at] = costs[at] + seconds * (np.arange(len(costs[at])) == k)
