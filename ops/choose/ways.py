"""`Ways`: the ways in which a node can be divided over the mesh, and the cost of each.

Each unit of the mesh divides one factor of the node or none. Partial sums are all-reduced, or
reduce-scattered so that each device keeps its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.dtypes import sum_dtype
from gridlayout.ops.choose.chains import divided, of_member
from gridlayout.ops.choose.choice import Choice, scattered, scattered_dim
from gridlayout.ops.choose.counts import fewer, most_ways
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.decisions.factors import Factors
from gridlayout.ops.decisions.flops import of_blocks, windows
from gridlayout.ops.decisions.specs import is_of_keys
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import CARRY, SLICE, STACK, Node
from gridlayout.ops.primitives.user_rules import is_user_rule
from gridlayout.ops.programs.passes import computing, cpu_functions, is_view
from gridlayout.sharding.exchanges.borders import seconds_of_borders
from gridlayout.sharding.limits import LIMITS

_OF_LOOPS = frozenset((CARRY, SLICE, STACK))


@dataclass(eq=False)
class Ways:
    """The ways of the nodes of a graph, computed once for equal nodes.

    most: the number of ways of a node that are kept; None for the limits of plans. given: shapes
    and divisions of the operands that have one place.
    """

    graph: Graph
    units: Units
    most: int | None = None
    given: Sequence[tuple[Shape, Division]] = ()
    _known: dict[Any, tuple[list[Choice], NDArray[np.float64]]] = field(default_factory=dict)
    _listed: dict[Any, list[Choice]] = field(default_factory=dict)
    _views: dict[Node, bool] = field(default_factory=dict)
    _bytes: dict[Any, int] = field(default_factory=dict)

    def of(self, node: Node) -> tuple[list[Choice], NDArray[np.float64]]:
        """Return the ways to run a node, and the seconds of each over all its runs."""
        graph, every = self.graph, (*node.ins, *node.outs)
        values = tuple(None if v is None else (graph.shapes[v], graph.width(v)) for v in every)
        dtype = graph.dtypes[node.outs[0]]
        folded, follows = graph.permutation(node.outs[0]), node.outs[0] in graph.followers
        passed = tuple((each.work, graph.kernels.traffic.get(each.outs)) for each in node.equations)
        own = node.name, node.factors, values, node.flops, dtype, node.times, folded, follows
        key = *own, node.near, passed
        if key not in self._known:
            choices = self._ways(node)
            computed = self._computed(node, choices)
            shapes = [None if v is None else graph.shapes[v] for v in node.ins]
            most = most_ways(graph) if self.most is None else self.most
            few = fewer(choices, computed, most, len(self.units.axes), shapes, self.given)
            moved = np.array([self._moving(node, choices[k]) for k in few])
            self._known[key] = [choices[k] for k in few], (computed[few] + moved) * node.times
        return self._known[key]

    def undivided(self, node: Node) -> Choice | None:
        """Return the choice of a node without factors; None if its rule may compute it in parts.

        A rule that computes parts sends something. A small node is computed whole in less time, if
        its operands are small too: each device needs all of them, also for a corner.
        """
        if node.eqn is None or not node.outs or node.eqn.effects or node.record.is_control:
            return None
        own_rule, avals = any(map(is_user_rule, node.record.rules)), (*node.op.ins, *node.op.outs)
        if own_rule or any(map(is_of_keys, avals)):
            return None
        shapes = [() if v is None else self.graph.shapes[v] for v in (*node.ins, node.outs[0])]
        *ins, out = (((),) * len(shape) for shape in shapes)
        choice = Choice(tuple(x or None for x in ins), out, out)
        read = sum(self.nbytes(v, x) for v, x in zip(node.ins, ins, strict=True) if v is not None)
        seconds = self.computing(node, choice) + self.units.machine.work_seconds(nbytes=read)
        return choice if seconds < self._least_sent else None

    @cached_property
    def _least_sent(self) -> float:
        """The least seconds in which devices send each other anything."""
        units = range(len(self.units.axes))
        return min((self.units.move(((u,),), ((),), 1).seconds for u in units), default=0.0)

    def _ways(self, node: Node) -> list[Choice]:
        """Return the ways to give each unit to a factor or to none, and to reduce partial sums."""
        own, out = node.record, node.outs[0]
        is_any = bool(node.members) or own.takes_any_division or node.name in _OF_LOOPS
        shapes = (*(None if v is None else self.graph.shapes[v] for v in node.ins),)
        has_sum = self.graph.dtypes[out] != np.dtype(bool)  # no collective adds up truth values
        key = node.factors, shapes, self.graph.shapes[out], is_any, own.scatters_sums, has_sum
        if key not in self._listed:
            self._listed[key] = self._list(node, is_any, has_sum)
        return self._listed[key]

    def _list(self, node: Node, is_any: bool, has_sum: bool) -> list[Choice]:
        factors = node.factors
        assert factors is not None
        shape, found = self.graph.shapes[node.outs[0]], dict[Choice, None]()
        for along in self._alongs(factors):
            made = divided(factors.outs[0], along)
            ins = tuple(
                None if v is None or not self.graph.shapes[v] else divided(dims, along)
                for v, dims in zip(node.ins, factors.ins, strict=True)
            )
            if not is_any and not self._are_by_rule(node, ins, made):
                continue
            summed = tuple(u for f in sorted(factors.summed) for u in along[f])
            if not summed:
                found.setdefault(Choice(ins, made, made))
                continue
            if has_sum:
                found.setdefault(Choice(ins, made, made, summed))
            if has_sum and node.record.scatters_sums:
                for out in scattered(shape, made, summed, self.units.count):
                    found.setdefault(Choice(ins, made, out, summed, True))
        return list(found)

    @cached_property
    def _nodes(self) -> dict[tuple[int, ...], Node]:
        return {node.path: node for node in self.graph.nodes}

    def has(self, path: tuple[int, ...], choice: Choice) -> bool:
        """Return whether a choice is a valid way to run the node at a path."""
        node = self._nodes.get(path)
        factors = None if node is None else node.factors
        if node is None or factors is None:
            return False
        if node.placed(self.units.device) is not None:
            return len(choice.ins) == len(node.ins) and choice.made == choice.out == choice.ins[0]
        if (along := self._along(node, choice)) is None:
            return False
        summed = tuple(u for f in sorted(factors.summed) for u in along.get(f, ()))
        if choice.summed != summed:
            return False
        if not choice.scattered:
            return choice.out == choice.made
        if not summed or len(choice.out) != len(choice.made):
            return False
        pairs = [*zip(choice.made, choice.out, strict=True)]
        more = [u for made, out in pairs for u in out[len(made) :]]
        return all(out[: len(made)] == made for made, out in pairs) and (
            sorted(more) == sorted(summed)
        )

    def _along(self, node: Node, choice: Choice) -> dict[int, tuple[int, ...]] | None:
        """Return the units along each factor of a choice; None where the choice is inconsistent."""
        factors, graph = node.factors, self.graph
        assert factors is not None
        along: dict[int, tuple[int, ...]] = {}
        if len(choice.ins) != len(node.ins):
            return None
        values, divisions = (*node.ins, node.outs[0]), (*choice.ins, choice.made)
        dims = *factors.ins, factors.outs[0]
        for v, own, division in zip(values, dims, divisions, strict=True):
            if v is None or (v != node.outs[0] and not graph.shapes[v]):
                if division is not None:
                    return None
                continue
            if division is None or len(division) != len(own):
                return None
            for f, units in zip(own, division, strict=True):
                if units if f is None else along.setdefault(f, units) != units:
                    return None
        used = [u for units in along.values() for u in units]
        if len({*used}) != len(used):
            return None
        counts = ((f, self.units.count(units)) for f, units in along.items() if units)
        return along if all(factors.fits(f, n, self.units.idle) for f, n in counts) else None

    def _are_by_rule(self, node: Node, ins: Sequence[Division | None], made: Division) -> bool:
        """Return whether operands and result are divided as grids of theirs are by the rule.

        Most rules need that, for some order of the mesh axes.
        """
        shapes = [None if v is None else self.graph.shapes[v] for v in node.ins]
        pairs = [*zip(shapes, ins, strict=True), (self.graph.shapes[node.outs[0]], made)]
        return self.units.are_by_rule(
            (shape, division)
            for shape, division in pairs
            if shape is not None and division is not None
        )

    def _alongs(self, factors: Factors) -> list[tuple[tuple[int, ...], ...]]:
        """Return all ways to place units along factors such that each factor fits its devices."""
        found = []
        options = (None, *factors.divisible)
        for given in product(options, repeat=len(self.units.axes)):
            along: list[tuple[int, ...]] = [()] * len(factors.sizes)
            for u, f in enumerate(given):
                if f is not None:
                    along[f] += (u,)
            counts = ((f, self.units.count(us)) for f, us in enumerate(along) if us)
            if all(factors.fits(f, count, self.units.idle) for f, count in counts):
                found.append(tuple(along))
        return found

    # -- what a device has -------------------------------------------------------------------------

    def part(self, value: int, division: Division) -> tuple[int, ...]:
        """Return the shape of a device's part of a value."""
        counts = self.units.counts(division)
        return tuple(-(-n // k) for n, k in zip(self.graph.shapes[value], counts, strict=True))

    def nbytes(self, value: int, division: Division) -> int:
        """Return the bytes of a device's block of a value, in whole tiles on chips with tiles."""
        key = self.graph.shapes[value], self.graph.width(value), division
        if key not in self._bytes:
            block = self.units.machine.padded(self.part(value, division))
            self._bytes[key] = self.graph.nbytes(value, block)
        return self._bytes[key]

    def held(self, value: int, division: Division) -> int:
        """Return the bytes of memory of a block; in a core's L1, rounded up to its alignment.

        >>> import jax
        >>> from gridlayout.ops.planning.traced import traced_for
        >>> x = jax.ShapeDtypeStruct((100,), "float32")
        >>> ways = traced_for(lambda x: x * 2, (x,), "n150", None).strategies(None).ways
        >>> ways.nbytes(0, ((),)), ways.held(0, ((),))
        (400, 416)
        """
        to = LIMITS.align if self.units.machine.has_cores else 1
        return -(-self.nbytes(value, division) // to) * to

    # -- costs of ways -----------------------------------------------------------------------------

    def _computed(self, node: Node, choices: Sequence[Choice]) -> NDArray[np.float64]:
        """Return the seconds of each choice's computation, which depend on the parts' extents."""
        counts, known = self.units.counts, dict[Any, float]()
        found = np.empty(len(choices))
        for k, choice in enumerate(choices):
            needs = (*choice.ins, choice.made, choice.out)
            key = tuple([None if need is None else counts(need) for need in needs])
            if key not in known:
                known[key] = self.computing(node, choice)
            found[k] = known[key]
        return found

    def _moving(self, node: Node, choice: Choice) -> float:
        """Return the seconds in which a device sums partial results and receives borders."""
        seconds = 0.0
        if choice.summed:
            dim = self.scattered_dim(node, choice)
            given = choice.summed, self.partial(node, choice), choice.scattered
            seconds += self.units.summed(*given, dim=dim).seconds + LIMITS.collective_penalty
        return seconds + self._borders(node, choice)

    def _borders(self, node: Node, choice: Choice) -> float:
        """Return the seconds in which a device receives the borders around its blocks."""
        units, found = self.units, 0.0
        for v, need, row in zip(node.ins, choice.ins, node.near, strict=False):
            if v is None or need is None:
                continue
            part = self.part(v, need)
            if node.record.lengths is not None:  # of dims that nothing divides, no more is sent
                pairs = zip(part, node.record.lengths(node.params), need, strict=True)
                part = tuple(n if units else min(n, most) for n, most, units in pairs)
            for d in range(len(row)):
                row_bytes = self.graph.nbytes(v, (prod(part) // part[d],))
                if need[d] and (widths := [n * row_bytes for n in row[d] or () if n]):
                    axes = units.mesh_axes(need[d])
                    found += seconds_of_borders(units.machine, units.device, axes, widths)
        return found

    def scattered_dim(self, node: Node, choice: Choice) -> int:
        """Return the last dim of the array as it is made along which a sum is scattered, or 0."""
        if not choice.scattered:
            return 0
        dim, order = scattered_dim(choice.made, choice.out), self.graph.permutation(node.outs[0])
        return dim if order is None else order.index(dim)

    def computing(self, node: Node, choice: Choice) -> float:
        """Return the seconds of one run's computation, not of reads from DRAM, which overlap it."""
        if node.members:
            members = ((each, of_member(each, choice)) for each in node.members)
            return sum(self.computing(*each) for each in members)
        if node.name == SLICE and self.graph.kernels.traffic[node.outs].writes[0]:
            return self.units.machine.slicing(self._read(node, choice)[0])  # of all rows
        if node not in self._views:
            self._views[node] = self._is_view(node)
        if self._views[node]:
            return 0.0
        graph, out, ins, pieces = self.graph, node.outs[0], self._read(node, choice), 0
        if node.record.multiplies:
            flops, outs = self._multiplied(node, choice), [self._made(node, choice)]
            pieces = windows(node.op, self.part(out, choice.made))
        else:
            flops, outs = node.work / self._shares(choice), self._written(node, choice)
        given = flops, ins, outs, self.units.machine, node.transposed, graph.first_dtype(node)
        traffic = graph.kernels.traffic.get(node.outs)
        reads = zip(node.ins, choice.ins, strict=True)
        part = next((self.part(v, x) for v, x in reads if v is not None and x is not None), ())
        more = traffic, pieces, cpu_functions(node.record, node.op, part)
        return sum(computing(node.record, *given, *more).values())

    def _shares(self, choice: Choice) -> int:
        """Return among how many devices the work of a choice is divided."""
        used = {u for need in (*choice.ins, choice.made) for units in need or () for u in units}
        return self.units.count(sorted(used))

    def _made(self, node: Node, choice: Choice) -> int:
        """Return the bytes of a device's block of a product, which may be made transposed."""
        part, order = self.part(node.outs[0], choice.made), self.graph.permutation(node.outs[0])
        block = part if order is None else tuple(part[d] for d in order)
        return dtypes.nbytes(self.units.machine.padded(block), self._dtype(node, choice))

    def _dtype(self, node: Node, choice: Choice) -> np.dtype[Any]:
        """Return the dtype in which a result is made: a wide one for what devices add up."""
        dtype = self.graph.dtypes[node.outs[0]]
        return sum_dtype(dtype) if node.record.multiplies and choice.summed else dtype

    def made_at(self, value: int, division: Division) -> float:
        """Return the seconds to compute a free value, and all that it depends on, in a division."""
        total, waiting, seen = 0.0, [(value, division)], set[tuple[int, Division]]()
        for each in waiting:
            if each in seen:
                continue
            seen.add(each)
            node, own = self.graph.free[each[0]], each[1]
            way = of_member(node, Choice((), own, own))
            total += self.computing(node, way) * node.times
            waiting += [
                (v, need)
                for v, need in zip(node.ins, way.ins, strict=True)
                if v in self.graph.free and need is not None
            ]
        return total

    def _is_view(self, node: Node) -> bool:
        """Return whether its result is a reshaped operand, or fused into another node."""
        if node.outs[0] in self.graph.followers:
            return True
        shapes = [self.graph.shapes[v] for v in (*node.ins, *node.outs) if v is not None]
        is_same = node.record.is_reduction and len({prod(shape) for shape in shapes}) == 1
        if is_same or node.name in _OF_LOOPS:
            return True
        return is_view(node.record, node.params, shapes[0], shapes[-1], self.units.machine)

    def _multiplied(self, node: Node, choice: Choice) -> float:
        """Return the operations of a device's part of a product."""
        op, lhs, need = node.op, node.ins[0], choice.ins[0]
        # A single number, which has no division, is whole on every device.
        left = op.ins[0].shape if lhs is None or need is None else self.part(lhs, need)
        made = self.part(node.outs[0], choice.made)
        return of_blocks(op, left, made, self.units.machine)

    def partial(self, node: Node, choice: Choice) -> int:
        """Return the bytes of a device's partial result, which is not padded."""
        dtype = self._dtype(node, choice)
        key = "partial", self.graph.shapes[node.outs[0]], dtype, choice.made
        if key not in self._bytes:
            self._bytes[key] = dtypes.nbytes(self.part(node.outs[0], choice.made), dtype)
        return self._bytes[key]

    def _read(self, node: Node, choice: Choice) -> list[int]:
        """Return the bytes of a device's part of each operand."""
        return [
            0 if v is None or need is None else self.nbytes(v, need)
            for v, need in zip(node.ins, choice.ins, strict=True)
        ]

    def _written(self, node: Node, choice: Choice) -> list[int]:
        """Return the bytes of a device's part of each result."""
        ranks = [(v, len(self.graph.shapes[v])) for v in node.outs]
        return [
            self.nbytes(v, choice.out if rank == len(choice.out) else ((),) * rank)
            for v, rank in ranks
        ]
