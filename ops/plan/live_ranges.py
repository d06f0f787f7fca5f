"""The live ranges of a program's values, and the values that are live at each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from gridlayout.ops.plan.graph import CARRY, STACK, Graph

T = TypeVar("T")
Span = tuple[int, int]


def live_ranges(graph: Graph, operands: int) -> dict[int, Span]:
    """Return the live range of each value: the first and the last node during which it is live.

    Operands are live throughout, and results until the end. A value made before a loop that the
    loop reads is live until the loop ends. A loop's carry is live throughout the loop; the next
    value is copied to it at the end of each iteration. Constants of called functions have no live
    range: they are part of the compiled program.
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
            if node.name == CARRY and k:  # the next value of the carry, which is made later
                found[v] = found[v][0], max(found[v][1], last)
                continue
            entered = around[:-1] if node.name == CARRY else around
            again = (b for a, b in entered if found[v][0] < a)
            found[v] = found[v][0], max(found[v][1], n, *again)
    found |= {v: (found.get(v, (0, 0))[0], end) for v in graph.outs if v is not None}
    return found | dict.fromkeys(range(operands), (0, end))


def _loops(graph: Graph) -> list[Span]:
    """Return the first and the last node of each loop, outer loops first."""
    found = []
    for path in graph.loops:
        inside = [n for n, node in enumerate(graph.nodes) if node.path[: len(path)] == path]
        found += [(inside[0], inside[-1])] if inside else []
    return found


def live_values(
    graph: Graph, known: Mapping[int, T], operands: int, always: bool
) -> Iterator[tuple[int, dict[int, T]]]:
    """Yield each node that ends a live range, with the live values and what is `known` about them.

    At any other node the live values are among those of the next node that is yielded. always:
    yield such nodes too. The yielded dict is the same object each time.
    """
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {len(graph.nodes) - 1: []}
    for v, (first, last) in live_ranges(graph, operands).items():
        if v in known:
            starts.setdefault(first, []).append(v)
            ends.setdefault(last, []).append(v)
    live: dict[int, T] = {}
    for n in range(len(graph.nodes)):
        live |= {v: known[v] for v in starts.get(n, ())}
        if always or n in ends:
            yield n, live
        for v in ends.get(n, ()):
            del live[v]
