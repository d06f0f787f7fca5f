"""`Classes`: dims that equations divide together, through a whole program.

For instance, the rows of a batch are one class through a whole network. An *assignment* gives each
unit of the mesh the classes that it divides, and so gives each value a preferred division.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from gridlayout.ops.decisions.factors import Dims, Factors
from gridlayout.ops.plan.division import Division, Units
from gridlayout.ops.plan.graph import Graph

Assignment = tuple[frozenset[int], ...]  # for each unit, its classes
Along = tuple[tuple[int, ...], ...]  # for each factor of a node, its units


class Classes:
    """The classes of a graph's dims, by number.

    of_value, of_node: the class of each dim of a value, and of each factor of a node. weights: for
    each class, the operations of the nodes that have it. requested: the requested division of each
    result, None where it may be any.
    """

    def __init__(self, graph: Graph, units: Units, requested: Sequence[Division | None]) -> None:
        self.graph, self.units, self._requested = graph, units, requested
        self._parent: dict[Any, Any] = {}
        self._targets: dict[Any, Division] = {}
        self._by_class: dict[Any, Along] = {}
        self._find_classes()

    def _root(self, key: Any) -> Any:
        while (above := self._parent.get(key, key)) != key:
            self._parent[key] = key = self._parent.get(above, above)
        return key

    def _find_classes(self) -> None:
        for number, node in enumerate(self.graph.nodes):
            if node.factors is None:
                continue
            pairs = [*zip(node.ins, node.factors.ins, strict=True)]
            pairs += zip(node.outs, node.factors.outs, strict=True)
            for value, dims in pairs:
                for d, factor in enumerate(dims):
                    if value is not None and factor in node.factors.divisible:
                        a, b = self._root((value, d)), self._root((-1 - number, factor))
                        if a != b:
                            self._parent[a] = b
        names: dict[Any, int] = {}
        self.of_value: list[tuple[int, ...]] = []
        for value, shape in enumerate(self.graph.shapes):
            roots = [self._root((value, d)) for d in range(len(shape))]
            self.of_value.append(tuple(names.setdefault(root, len(names)) for root in roots))
        self.of_node: list[tuple[int, ...]] = []
        self.weights: dict[int, float] = {}
        for number, node in enumerate(self.graph.nodes):
            sizes = () if node.factors is None else node.factors.sizes
            found = [
                names.setdefault(self._root((-1 - number, f)), len(names))
                for f in range(len(sizes))
            ]
            self.of_node.append(tuple(found))
            for f in set(found):
                self.weights[f] = self.weights.get(f, 0.0) + node.flops
        self._count = len(names)

    @cached_property
    def result_divisions(self) -> list[Division | None]:
        """For each value, the requested division of the program's result that it becomes, or None.

        It has to become the result by elementwise operations, transposes and reshapes alone; None
        where anything else reads it.
        """
        found: list[Division | None] = [None] * len(self.graph.shapes)
        other = [False] * len(found)
        for out, division in zip(self.graph.outs, self._requested, strict=True):
            if out is not None and division is not None:
                found[out] = division
        for number in reversed(range(len(self.graph.nodes))):
            node = self.graph.nodes[number]
            if not node.record.is_chain or node.factors is None:
                for value in node.ins:
                    if value is not None:
                        other[value] = True
                continue
            end = found[node.outs[0]]
            if other[node.outs[0]]:
                end = None
            back = None if end is None else _of_factors(node.factors, node.factors.outs[0], end)
            for value, dims in zip(node.ins, node.factors.ins, strict=True):
                if value is None or not self.graph.shapes[value]:
                    continue
                mine = None if back is None else _back(dims, back)
                if back is None or mine is None:
                    other[value] = True
                elif found[value] is None:
                    found[value] = mine
        return [None if other[v] else end for v, end in enumerate(found)]

    def units_of(self, assignment: Assignment) -> list[tuple[int, ...]]:
        """Return the units that divide each class, by its number."""
        found: list[tuple[int, ...]] = [()] * self._count
        for u, mine in enumerate(assignment):
            for c in mine:
                found[c] += (u,)
        return found

    def target(self, value: int, units_of: Sequence[tuple[int, ...]]) -> Division:
        """Return the preferred division of a value: of the result it becomes, or of its classes."""
        if (end := self.result_divisions[value]) is not None:
            return end
        shape = self.graph.shapes[value]
        key = shape, tuple([units_of[c] for c in self.of_value[value]])
        if key in self._targets:
            return self._targets[key]
        found: list[tuple[int, ...]] = [()] * len(shape)
        for u in range(len(self.units.axes)):
            fits = [
                d
                for d, n in enumerate(shape)
                if u in key[1][d] and n >= self.units.count((*found[d], u))
            ]
            if fits:
                found[max(fits, key=lambda d: (shape[d], -d))] += (u,)
        made = self._targets[key] = tuple(found)
        return made

    def by_class(self, number: int, units_of: Sequence[tuple[int, ...]]) -> Along:
        """Return the units along each factor of a node, as its classes are divided."""
        factors = self.graph.nodes[number].factors
        assert factors is not None
        key = id(factors), tuple([units_of[c] for c in self.of_node[number]])
        if key in self._by_class:
            return self._by_class[key]
        found: list[tuple[int, ...]] = [()] * len(factors.sizes)
        for u in range(len(self.units.axes)):
            fits = [
                f
                for f in factors.divisible
                if u in key[1][f] and factors.fits(f, self.units.count((*found[f], u)))
            ]
            if fits:
                f = max(fits, key=lambda f: (f not in factors.summed, factors.sizes[f], -f))
                found[f] += (u,)
        made = self._by_class[key] = tuple(found)
        return made


def _of_factors(factors: Factors, dims: Dims, division: Division) -> Along:
    """Return the units along each factor, where one value has this division."""
    found: list[tuple[int, ...]] = [()] * len(factors.sizes)
    for f, units in zip(dims, division, strict=True):
        if f is not None and f in factors.divisible:
            found[f] = units
    return tuple(found)


def _back(dims: Dims, along: Along) -> Division | None:
    """Return an operand's division from the units along factors; None if it lacks a divided one."""
    if any(units and f not in dims for f, units in enumerate(along)):
        return None
    return tuple(() if f is None else along[f] for f in dims)
