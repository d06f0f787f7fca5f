"""How many ways there are to divide the nodes of a graph, and how many of these are considered."""

from __future__ import annotations

from math import inf

from gridlayout.ops.choose.division import Units
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
