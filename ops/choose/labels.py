"""`labels`: digests of operands and nodes of a graph that are equal for equal neighbourhoods."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any

from gridlayout.ops.decisions.stated import STATED
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node
from gridlayout.ops.graph.once import once
from gridlayout.sharding.limits import LIMITS


@once
def labels(graph: Graph, operands: int) -> tuple[list[bytes], list[bytes]]:
    """Return digests of operands and of nodes; equal ones have equal neighbourhoods."""
    made = {v: (n, k) for n, node in enumerate(graph.nodes) for k, v in enumerate(node.outs)}
    ends = Counter(v for v in graph.outs if v is not None)
    consumers: list[list[tuple[int, int]]] = [[] for _ in graph.shapes]
    for n, node in enumerate(graph.nodes):
        for position, v in enumerate(node.ins):
            if v is not None:
                consumers[v].append((n, position))

    def text(value: int) -> tuple[Any, ...]:
        width = graph.width(value)
        return graph.shapes[value], width // 8 or width / 8, ends[value]

    nodes = [
        _digest(
            *(node.name, _dims(node), node.flops, node.times, [*map(text, node.outs)]),
            [graph.kernels.traffic.get(each.outs) for each in node.members or (node,)],
            str(node.params[STATED[node.name]]) if node.name in STATED else "",
        )
        for node in graph.nodes
    ]
    values = [_digest(text(v), v < operands) for v in range(len(graph.shapes))]
    for _ in range(LIMITS.radius):
        values = [
            _digest(
                values[v],
                (nodes[made[v][0]], made[v][1]) if v in made else None,
                sorted((nodes[n], position) for n, position in consumers[v]),
            )
            for v in range(len(values))
        ]
        nodes = [
            _digest(
                nodes[n],
                [None if v is None else values[v] for v in node.ins],
                [values[v] for v in node.outs],
            )
            for n, node in enumerate(graph.nodes)
        ]
    return values[:operands], nodes


def _dims(node: Node) -> Any:
    """Return the factors of a node; their sizes follow from the shapes of its values."""
    factors = node.factors
    return None if factors is None else (factors.ins, factors.outs, factors.kinds)


def _digest(*parts: Any) -> bytes:
    return sha256(repr(parts).encode()).digest()
