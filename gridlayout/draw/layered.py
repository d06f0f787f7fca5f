"""Places the boxes of a directed graph in layers, so that every line leads down.

A line that passes a layer has a point in it; all lines with the same start share the point. The
boxes and points of a layer are ordered so that few lines cross, and then placed as close as
possible above and below the boxes that they are connected to.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_ROUNDS = 8
_GAP, _BESIDE = 20.0, 12.0  # pixels between boxes, and beside a passing line
_DOWN, _FAR = 30.0, 12.0  # pixels between layers, plus the sideways distance divided by _FAR
_PORT = 16.0  # pixels between the ends of two lines at one box
# The weight of a straight line, by the number of its ends that are boxes.
_STRAIGHT = (8.0, 2.0, 1.0)


# For each point: its neighbours, with the port of each line, in order.
Sides = dict[int, dict[tuple[int, float], None]]


@dataclass(frozen=True)
class Link:
    """A line from box `start`, `port` pixels right of its middle, to a later box `end`."""

    start: int
    end: int
    port: float = 0.0


@dataclass(frozen=True)
class Placed:
    """The result. xs, ys: middle and top of each box, in pixels. lines: SVG paths. ends: points
    where lines end.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    width: float
    height: float
    lines: tuple[str, ...]
    ends: tuple[tuple[float, float], ...]


@dataclass
class _Layers:
    """The points of all layers: first the boxes, then the points of passing lines."""

    widths: list[float]
    layer: list[int]
    is_box: list[bool]
    above: Sides = field(default_factory=lambda: defaultdict(dict))
    below: Sides = field(default_factory=lambda: defaultdict(dict))
    rows: list[list[int]] = field(default_factory=list)

    def join(self, start: int, end: int, port: float) -> None:
        """Add a line between two points of neighbouring layers."""
        self.below[start][end, port] = None
        self.above[end][start, port] = None


def placed(sizes: Sequence[tuple[float, float]], links: Sequence[Link]) -> Placed:
    """Place boxes of sizes (width, height); links lead to later boxes only.

    >>> found = placed([(10, 10), (10, 10)], [Link(0, 1)])
    >>> found.xs, found.ys, found.height
    ((5.0, 5.0), (0.0, 40.0), 50.0)
    """
    found = _layers(sizes, links)
    _order(found)
    xs = _columns(found)
    return _drawn(found, sizes, xs)


# -- layers ----------------------------------------------------------------------------------------


def _layers(sizes: Sequence[tuple[float, float]], links: Sequence[Link]) -> _Layers:
    count = len(sizes)
    layer = _ranks(count, links)
    found = _Layers([width for width, _ in sizes], layer, [True] * count)
    passing: dict[tuple[int, float, int], int] = {}
    for link in links:
        at, port = link.start, link.port
        for row in range(layer[link.start] + 1, layer[link.end]):
            key = (link.start, link.port, row)
            if key not in passing:
                passing[key] = len(found.widths)
                found.widths.append(0.0)
                found.layer.append(row)
                found.is_box.append(False)
                found.join(at, passing[key], port)
            at, port = passing[key], 0.0
        found.join(at, link.end, port)
    found.rows = [[] for _ in range(max(layer, default=-1) + 1)]
    for k, row in enumerate(found.layer):
        found.rows[row].append(k)
    return found


def _ranks(count: int, links: Sequence[Link]) -> list[int]:
    """Return the layer of each box: below all its operands; with at most one operand, directly
    above its first consumer.
    """
    before: list[set[int]] = [set() for _ in range(count)]
    after: list[set[int]] = [set() for _ in range(count)]
    for link in links:
        before[link.end].add(link.start)
        after[link.start].add(link.end)
    layer = [0] * count
    for k in range(count):
        layer[k] = max((layer[i] + 1 for i in before[k]), default=0)
    for k in reversed(range(count)):
        if after[k] and len(before[k]) < 2:
            layer[k] = min(layer[i] for i in after[k]) - 1
    return layer


# -- order in a layer ------------------------------------------------------------------------------


def _order(found: _Layers) -> None:
    """Sort each layer by the positions of neighbours above, then below; use the best order."""
    best, fewest = [list(row) for row in found.rows], _crossings(found)
    for turn in range(_ROUNDS):
        down = turn % 2 == 0
        sides = found.above if down else found.below
        rows = found.rows if down else found.rows[::-1]
        for fixed, row in pairwise(rows):
            at = {k: i for i, k in enumerate(fixed)}
            here = {k: float(i) for i, k in enumerate(row)}
            for k in row:
                near = [at[i] for i, _ in sides[k] if i in at]
                if near:
                    here[k] = sum(near) / len(near)
            row.sort(key=here.__getitem__)
        crossed = _crossings(found)
        if crossed < fewest:
            best, fewest = [list(row) for row in found.rows], crossed
    found.rows = best


def _crossings(found: _Layers) -> int:
    count = 0
    for upper, lower in pairwise(found.rows):
        at = {k: i for i, k in enumerate(lower)}
        seen: list[int] = []
        for k in upper:
            ends = sorted(at[i] for i, _ in found.below[k])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


# -- columns ---------------------------------------------------------------------------------------


def _columns(found: _Layers) -> list[float]:
    """Return the middle of every point."""
    xs = [0.0] * len(found.widths)
    for row in found.rows:
        _apart(found, row, xs, [0.0] * len(row), [1.0] * len(row))
    for turn in range(2 * _ROUNDS + 1):
        rows, side, sign = (
            (found.rows, found.above, 1) if turn % 2 == 0 else (found.rows[::-1], found.below, -1)
        )
        for row in rows:
            ideal, weights = [], []
            for k in row:
                near = _pulls(found, xs, k, side, sign)
                weight = sum(w for _, w in near)
                ideal.append(sum(x * w for x, w in near) / weight if near else xs[k])
                weights.append(weight or 0.1)
            _apart(found, row, xs, ideal, weights)
    left = min((xs[k] - w / 2 for k, w in enumerate(found.widths)), default=0.0)
    return [round(x - left, 2) for x in xs]


def _pulls(
    found: _Layers, xs: Sequence[float], k: int, side: Sides, sign: int
) -> list[tuple[float, float]]:
    """Return, for each neighbour of a point on one side, its ideal position and the weight."""
    return [
        (xs[i] + sign * port, _STRAIGHT[found.is_box[i] + found.is_box[k]]) for i, port in side[k]
    ]


def _apart(
    found: _Layers,
    row: Sequence[int],
    xs: list[float],
    ideal: Sequence[float],
    weights: Sequence[float],
) -> None:
    """Place the points of a layer close to their ideal positions, at their least distances.

    It minimizes the weighted squares of the differences: neighbours that would be too close become
    one block at their mean.
    """
    offsets, at = [], 0.0
    for i, k in enumerate(row):
        if i:
            last = row[i - 1]
            gap = _GAP if found.is_box[k] and found.is_box[last] else _BESIDE
            at += (found.widths[k] + found.widths[last]) / 2 + gap
        offsets.append(at)
    blocks: list[list[float]] = []  # sum of weight and place, weight, count
    for offset, place, weight in zip(offsets, ideal, weights, strict=True):
        blocks.append([(place - offset) * weight, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last_block = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last_block, strict=True)]
    i = 0
    for total, weight, count in blocks:
        for _ in range(int(count)):
            xs[row[i]] = total / weight + offsets[i]
            i += 1


# -- lines -----------------------------------------------------------------------------------------


def _drawn(found: _Layers, sizes: Sequence[tuple[float, float]], xs: Sequence[float]) -> Placed:
    high = [
        max((float(sizes[k][1]) for k in row if found.is_box[k]), default=0.0) for row in found.rows
    ]
    tops, y = list[float](), 0.0
    for n, points in enumerate(found.rows):
        tops.append(y)
        ends = [(xs[k], xs[i]) for k in points for i, _ in found.below[k]]
        far = max((abs(a - b) for a, b in ends), default=0.0)
        y += high[n] + (_DOWN + min(far / _FAR, _DOWN) if n + 1 < len(found.rows) else 0)
    lines, tips = [], []
    for k, row in enumerate(found.layer):
        top = tops[row]
        if not found.is_box[k]:
            lines.append(f"M{xs[k]:.1f} {top:.1f}V{top + high[row]:.1f}")
        for (start, port), end in _entries(found, xs, k):
            upper = tops[row - 1] + high[row - 1]
            foot = tops[row - 1] + sizes[start][1] if found.is_box[start] else upper
            x0, half = xs[start] + port, (upper + top) / 2
            down = f"V{upper:.1f}" if foot < upper else ""
            curve = f"C{x0:.1f} {half:.1f} {end:.1f} {half:.1f} {end:.1f} {top:.1f}"
            lines.append(f"M{x0:.1f} {foot:.1f}{down}{curve}")
            if found.is_box[k]:
                tips.append((end, top))
    right = max((xs[k] + w / 2 for k, w in enumerate(found.widths)), default=0.0)
    middles = tuple(xs[: len(sizes)])
    ys = tuple(tops[row] for row in found.layer[: len(sizes)])
    return Placed(middles, ys, right, y, tuple(lines), tuple(tips))


def _entries(found: _Layers, xs: Sequence[float], k: int) -> list[tuple[tuple[int, float], float]]:
    """Return the lines (start, port) into a point, from left to right, and where each ends."""
    lines = sorted(found.above[k], key=lambda line: xs[line[0]] + line[1])
    step = min(_PORT, (found.widths[k] - _PORT) / max(len(lines), 1)) if found.is_box[k] else 0.0
    first = xs[k] - step * (len(lines) - 1) / 2
    return [(line, first + step * i) for i, line in enumerate(lines)]
