"""How many ways there are to divide the nodes of a graph, and how many of these are considered."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.graph.graph import Graph
from gridlayout.sharding.limits import LIMITS


def number_of_ways(graph: Graph, units: Units, all_ways: bool = False) -> int:
    """Return the most choices of all nodes, of which equal ones in large graphs count once.

    all_ways: those too that are not considered, because a node has too many.
    """
    factors = [node.factors for node in graph.nodes if node.factors is not None]
    counted, most = {*factors} if graph.is_large else factors, inf if all_ways else most_ways(graph)
    return int(sum(min((1 + len(each.divisible)) ** len(units.axes), most) for each in counted))


def most_ways(graph: Graph) -> int:
    """Return the number of ways of a node that plans consider."""
    return LIMITS.choices if graph.is_large else LIMITS.all_choices


def fewer(
    choices: Sequence[Choice],
    seconds: NDArray[np.float64],
    most: int,
    every: int,
    shapes: Sequence[Shape | None],
    given: Sequence[tuple[Shape, Division]],
) -> NDArray[np.int64]:
    """Return the indices of the choices of a node to keep: if too many, those that compute fastest.

    Those that use all units together, or none, are kept too, and those that have an operand divided
    along some of the units of an argument of its shape. seconds: of each choice. every: the number
    of units. shapes: of the node's operands. given: the shapes and divisions of arguments.
    """
    if len(choices) <= most:
        return np.arange(len(choices))

    def is_gathered(shape: Shape | None, division: Division | None) -> bool:
        return division is not None and any(
            all(set(units) <= set(own) for units, own in zip(division, there, strict=True))
            for own_shape, there in given
            if own_shape == shape
        )

    kept = {
        k
        for k, choice in enumerate(choices)
        if all(len(units) in (0, every) for units in (*choice.out, choice.summed))
        or any(map(is_gathered, shapes, choice.ins))
    }
    return np.array(sorted(kept.union(np.argsort(seconds, kind="stable")[:most].tolist())))
