"""`alive`: the values of a program that are held at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from gridlayout.ops.plan.graph import Graph

T = TypeVar("T")


def alive(
    graph: Graph, known: Mapping[int, T], operands: int, always: bool
) -> Iterator[tuple[int, dict[int, T]]]:
    """At each node after which a value dies, the values that are alive, with what is known of them.

    At other nodes no more are; always: at those too. Operands are alive throughout.
    """
    end = len(graph.nodes)
    last = {v: n for n, node in enumerate(graph.nodes) for v in node.ins if v is not None}
    last |= dict.fromkeys(range(operands), end)
    last |= {v: end for v in graph.outs if v is not None}
    dying: dict[int, list[int]] = {end - 1: []}
    for v in known:
        dying.setdefault(last.get(v, -1), []).append(v)
    live = {v: known[v] for v in range(operands) if v in known}
    for n, node in enumerate(graph.nodes):
        born = {v: known[v] for v in node.outs if v in known}
        live |= born
        if always or n in dying:
            yield n, live
        for v in (*dying.get(n, ()), *(v for v in born if v not in last)):
            live.pop(v, None)
