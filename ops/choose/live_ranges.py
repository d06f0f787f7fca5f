"""The live ranges of a program's values, in nodes of its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import CARRY, SLICE, STACK, Node, Path

Span = tuple[int, int]


def live_ranges(graph: Graph, operands: int) -> dict[int, Span]:
    """Return the live range of each value: the first and the last node during which it is live.

    Operands are live throughout, and results until the end. A value made before a loop that the
    loop reads is live until the loop ends. A loop's carry is live throughout the loop; the next
    value is copied to it at the end of each iteration. Constants of called functions have no live
    range: they are part of the compiled program.
    """
    end, loops = len(graph.nodes), spans_of_loops(graph)
    found = {v: (n, n) for n, node in enumerate(graph.nodes) for v in node.outs}
    for n, node in enumerate(graph.nodes):
        around = [loops[path] for path in _paths(node) if path in loops]
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


class Stored(NamedTuple):
    """The values that have buffers in every program, with their live ranges at least.

    parts: those of which a device may hold no more than it holds in the finest division, because
    the value is computed where it is cut into parts.
    """

    ranges: dict[int, Span]
    parts: frozenset[int]


def stored(graph: Graph, operands: int) -> Stored:
    """Return the values that are stored whichever divisions are chosen.

    A value that XLA may compute in the kernels of all its consumers is not among them, nor is the
    slice that an iteration of a scan reads. The result of a fused kernel may be written over an
    operand that is read for the last time.
    """
    ranges, parts = live_ranges(graph, operands), set[int]()
    consumers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for v in node.ins:
            if v is not None:
                consumers.setdefault(v, []).append(node)
    results = set(graph.outs)
    for n, node in enumerate(graph.nodes):
        if node.name == SLICE:
            del ranges[node.outs[0]]
        if not all(each.record.is_fused or each.record.is_view for each in node.equations):
            continue
        for v in node.outs:
            fuses = [each.equations[0].record.takes_fused for each in consumers.get(v, [])]
            if v not in results and all(fuses):
                del ranges[v]
            elif v in ranges:
                ranges[v] = n + 1, max(ranges[v][1], n + 1)
                parts |= {v} - results
    return Stored(ranges, frozenset(parts))


def spans_of_loops(graph: Graph) -> dict[Path, Span]:
    """Return the first and the last node of each loop, by its path."""
    found: dict[Path, Span] = {}
    loops = set(graph.loops)
    for n, node in enumerate(graph.nodes):
        for path in _paths(node):
            if path in loops:
                found[path] = found.get(path, (n, n))[0], n
    return found


def _paths(node: Node) -> Iterator[Path]:
    """Yield the paths that may be loops around a node, outer ones first."""
    return (node.path[:k] for k in range(1, len(node.path)))
