"""`lives`: when each value of a program is held; `alive`: those that are held at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from gridlayout.ops.plan.graph import CARRY, STACK, Graph

T = TypeVar("T")
Span = tuple[int, int]


def lives(graph: Graph, operands: int) -> dict[int, Span]:
    """Of each value the first and the last node while which it is held.

    Operands are held throughout, results to the end. What a loop reads of values made before it, it
    reads in every round; what goes round has its place throughout, to which the next value is
    copied at the end of a round.
    """
    end, loops = len(graph.nodes), _loops(graph)
    found = {v: (n, n) for n, node in enumerate(graph.nodes) for v in node.outs}
    for n, node in enumerate(graph.nodes):
        around = [span for span in loops if span[0] <= n <= span[1]]
        if node.name in (CARRY, STACK):
            first, last = around[-1]
            found[node.outs[0]] = n if node.name == CARRY else first, last
        for k, v in enumerate(node.ins):
            if v not in found:
                continue
            if node.name == CARRY and k:  # the next value, made later
                found[v] = found[v][0], max(found[v][1], last)
                continue
            entered = around[:-1] if node.name == CARRY else around
            again = (b for a, b in entered if found[v][0] < a)
            found[v] = found[v][0], max(found[v][1], n, *again)
    found |= {v: (found.get(v, (0, 0))[0], end) for v in graph.outs if v is not None}
    return found | dict.fromkeys(range(operands), (0, end))


def _loops(graph: Graph) -> list[Span]:
    """The first and the last node of each loop, outer loops first."""
    found = []
    for path in graph.loops:
        inside = [n for n, node in enumerate(graph.nodes) if node.path[: len(path)] == path]
        found += [(inside[0], inside[-1])] if inside else []
    return found


def alive(
    graph: Graph, known: Mapping[int, T], operands: int, always: bool
) -> Iterator[tuple[int, dict[int, T]]]:
    """At each node after which a value dies, the values that are alive, with what is known of them.

    At other nodes no more are; always: at those too.
    """
    born: dict[int, list[int]] = {}
    dying: dict[int, list[int]] = {len(graph.nodes) - 1: []}
    for v, (first, last) in lives(graph, operands).items():
        if v in known:
            born.setdefault(first, []).append(v)
            dying.setdefault(last, []).append(v)
    live: dict[int, T] = {}
    for n in range(len(graph.nodes)):
        live |= {v: known[v] for v in born.get(n, ())}
        if always or n in dying:
            yield n, live
        for v in dying.get(n, ()):
            del live[v]
