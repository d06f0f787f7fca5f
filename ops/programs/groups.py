"""The groups of nodes that are drawn together: called functions, repeated steps, parts of a list.

A group is a range of a graph's nodes. Nodes are in an order in which none reads a later one, so a
group never depends on its consumers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from gridlayout.layouts.memory import number
from gridlayout.ops.programs.graph import Graph, Node

MOST_ITEMS = 60  # items of one chart
_PART = 40  # items of one part of a longer chart
_LEAST_CALLED = 3  # the fewest nodes of a function for it to be a group
_LEAST_SPARED = 8  # the fewest nodes that a group of repeated steps hides
_PERIODS = 512  # the most items in a repeated run of steps


@dataclass(frozen=True)
class Group:
    """Nodes from `start` to `stop`, drawn as `items`, the first of `times` equal repetitions."""

    title: str
    start: int
    stop: int
    items: tuple[Item, ...]
    times: int = 1

    @property
    def shown(self) -> range:
        """The nodes that are drawn."""
        return range(self.start, self.start + (self.stop - self.start) // self.times)


Item = int | Group


def items_of(graph: Graph) -> tuple[Item, ...]:
    """Return a graph's nodes, some of them in groups."""
    return _few(_folded(graph, _called(graph, range(len(graph.nodes)), 0)))


def span(item: Item) -> range:
    """Return the nodes of an item."""
    return range(item, item + 1) if isinstance(item, int) else range(item.start, item.stop)


# -- called functions ------------------------------------------------------------------------------


def _called(graph: Graph, nodes: range, depth: int) -> tuple[Item, ...]:
    """Return nodes, with those of a called function in one group, unless these are few or all."""

    def call(n: int) -> tuple[str, int] | None:
        within = graph.nodes[n].within
        return within[depth] if len(within) > depth else None

    found: list[Item] = []
    for key, some in groupby(nodes, call):
        numbers = list(some)
        if key is None:
            found += numbers
            continue
        inside = range(numbers[0], numbers[-1] + 1)
        items = _called(graph, inside, depth + 1)
        if len(inside) < _LEAST_CALLED or inside == nodes or len(items) == 1:
            found += items
        else:
            name = key[0].strip("_") or key[0]
            found.append(Group(name, inside.start, inside.stop, _few(_folded(graph, items))))
    return tuple(found)


# -- repeated steps --------------------------------------------------------------------------------


def _folded(graph: Graph, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return items, with each repeated run of them in one group."""
    kinds: dict[Any, int] = {}
    codes = np.array([kinds.setdefault(_kind(graph, item), len(kinds)) for item in items], int)
    reads = _reads(graph, items)
    found: list[Item] = []
    waiting = [(0, len(items))]
    while waiting:
        start, stop = waiting.pop()
        first, period, times = _repeated(items, codes, reads, start, stop)
        if times < 2:
            found += items[start:stop]
            continue
        last = first + period * times
        some = items[first : first + period]
        ends = span(items[first]).start, span(items[last - 1]).stop
        steps = number(len(range(*ends)) // times, "step")
        found.append(Group(f"{steps}, {times} times", *ends, _few(tuple(some)), times))
        waiting += [(a, b) for a, b in ((start, first), (last, stop)) if a < b]
    return tuple(sorted(found, key=lambda item: span(item).start))


def _repeated(
    items: Sequence[Item],
    codes: np.ndarray[Any, Any],
    reads: Sequence[tuple[int, ...]],
    start: int,
    stop: int,
) -> tuple[int, int, int]:
    """Return the run between `start` and `stop` that hides most: (start, period, repetitions)."""
    best, least = (start, 1, 1), _LEAST_SPARED
    for period in range(1, min((stop - start) // 2, _PERIODS) + 1):
        same = codes[start : stop - period] == codes[start + period : stop]
        ends = np.flatnonzero(np.diff(np.concatenate(([0], same.astype(np.int8), [0]))))
        runs = ends.reshape(-1, 2)
        again = (runs[:, 1] - runs[:, 0]) // period
        for low, high in runs[again > 0].tolist():
            times = (high - low) // period + 1
            first = start + low
            size = sum(len(span(item)) for item in items[first : first + period])
            if size * (times - 1) < least:
                continue
            if _has_same_data_flow(reads, first, period, times):
                best, least = (first, period, times), size * (times - 1) + 1
    return best


def _has_same_data_flow(
    reads: Sequence[tuple[int, ...]], first: int, period: int, times: int
) -> bool:
    """Return whether corresponding items of all repetitions read corresponding items."""
    inside = [
        tuple(back for back in reads[first + k] if back <= k % period)
        for k in range(period * times)
    ]
    return all(inside[k] == inside[k % period] for k in range(len(inside)))


def _reads(graph: Graph, items: Sequence[Item]) -> list[tuple[int, ...]]:
    """Return for each item how many items back each of its operands was made."""
    at = {n: k for k, item in enumerate(items) for n in span(item)}
    return [
        tuple(
            k - at[read.source[0]]
            for n in span(item)
            for read in graph.nodes[n].reads
            if read.source[0] in at and at[read.source[0]] != k
        )
        for k, item in enumerate(items)
    ]


def _kind(graph: Graph, item: Item) -> Any:
    """Return a key that is equal for items that do the same."""
    if isinstance(item, int):
        return _node_kind(graph, graph.nodes[item])
    return item.title, *(_node_kind(graph, graph.nodes[n]) for n in span(item))


def _node_kind(graph: Graph, node: Node) -> Any:
    row = node.row
    moves = tuple(
        None if read.move is None else graph.moves[read.move].collectives for read in node.reads
    )
    given = tuple(graph.tensor(read.source) for read in node.reads)
    inner = tuple(
        (body.times, *(_node_kind(body.graph, each) for each in body.graph.nodes))
        for body in node.bodies
    )
    return row.primitive, row.how, row.note, given, node.results, node.collectives, moves, inner


# -- parts of a long chart -------------------------------------------------------------------------


def _few(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items, split into parts where they are too many for one chart."""
    while len(items) > MOST_ITEMS:
        parts = [items[k : k + _PART] for k in range(0, len(items), _PART)]
        items = tuple(
            Group(_numbers(span(part[0]).start, span(part[-1]).stop), *ends, part)
            for part in parts
            for ends in [(span(part[0]).start, span(part[-1]).stop)]
        )
    return items


def _numbers(start: int, stop: int) -> str:
    return f"steps {start + 1:,} to {stop:,}"
