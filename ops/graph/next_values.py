"""`next_value_layouts`: the layouts of results that are the next values of a program's operands.

A training step returns parameters and moments in the layouts in which it takes them, so that the
next step is the same program. Values that are added to them are relaid out to their layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from gridlayout.layouts.layout import Layout
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import BARRIER
from gridlayout.sharding.device_grid import DeviceGrid


def next_value_layouts(
    graph: Graph,
    device: DeviceGrid,
    operands: Sequence[Layout | None],
    nexts: Mapping[int, int],
) -> list[Layout | None]:
    """Return for each result the layout of the operand that it is the next value of, or None.

    operands: the layouts of the graph's operands. nexts: results and the operands that they are the
    next values of, by number, as far as the program's structure states it. Any other result is the
    next value of an operand of its shape and dtype from which elementwise operations make it. If
    there are several such operands in different layouts, it is the one that no other result is made
    from, or the only one left when the other operands have their next values; for instance the
    parameter, when the moments have theirs. A result that depends on a stated placement
    (`gl.with_layout`, a sharding of JAX) is the next value of none.
    """
    sources: list[list[int]] = []
    for number, v in enumerate(graph.outs):
        reached = None if v is None else _reached(graph, device, v)
        if reached is not None and number in nexts:
            reached = [nexts[number]]
        sources.append(
            [
                k
                for k in reached or ()
                if operands[k] is not None and v is not None and _kind(graph, k) == _kind(graph, v)
            ]
        )
    found: list[Layout | None] = []
    for own, some in zip(_nexts(sources), sources, strict=True):
        by_data = {}
        for k in reversed(some):
            layout = operands[k]
            assert layout is not None
            by_data[layout.with_oob(None)] = layout
        if own is not None:
            found.append(operands[own])
        else:
            found.append(next(iter(by_data.values())) if len(by_data) == 1 else None)
    return found


def _nexts(sources: Sequence[Sequence[Any]]) -> list[Any]:
    """Return for each result its only remaining operand, or the only one that no other result has.

    None where there are several such operands, or none.

    >>> _nexts([["p", "m", "v"], ["m"], ["v"]]), _nexts([["p", "g"], ["g", "m", "n"], ["g"]])
    (['p', 'm', 'v'], ['p', None, 'g'])
    >>> _nexts([["a", "b"], ["a", "b"]])
    [None, None]
    """
    found: list[Any] = [None] * len(sources)
    left = [dict.fromkeys(some) for some in sources]
    results: dict[Any, set[int]] = {}  # of each operand that is left
    for k, some in enumerate(left):
        for var in some:
            results.setdefault(var, set()).add(k)
    waiting = list(range(len(sources)))  # a heap: the first result is decided first
    while waiting:
        k = heappop(waiting)
        own = [var for var in left[k] if len(left[k]) == 1 or len(results[var]) == 1]
        if len(own) != 1:
            continue
        (found[k],) = own
        changed = results.pop(found[k]) - {k}
        for j in changed:
            del left[j][found[k]]
        for var in left[k].keys() & results.keys():
            results[var].remove(k)
            changed |= results[var] if len(results[var]) == 1 else set()
        left[k] = {}
        for j in changed:
            heappush(waiting, j)
    return found


def _kind(graph: Graph, value: int) -> tuple[Any, Any]:
    return graph.shapes[value], graph.dtypes[value]


def _reached(graph: Graph, device: DeviceGrid, result: int) -> list[int] | None:
    """Return the operands of the result's shape that it is made of by elementwise operations.

    They are in order. None where the program states the placement of one of these values.
    """
    seen: dict[int, None] = {}
    left = [result]
    while left:
        v = left.pop()
        if v in seen or graph.shapes[v] != graph.shapes[result]:
            continue
        seen[v] = None
        node = graph.makers.get(v)
        if node is None:
            continue
        if node.placed(device) is not None:
            return None
        ins = node.ins if node.record.is_elementwise else ()
        if node.label == BARRIER:
            ins = (node.ins[node.outs.index(v)],)
        left += [each for each in reversed(ins) if each is not None]
    return [v for v in seen if v < graph.operands]
