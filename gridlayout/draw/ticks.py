"""`Ticks`: the numbers along an axis, as many as have room, always including both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gridlayout.draw.letters import mono_width
from gridlayout.svg import escape, tag

SIZE = 10  # font size of the numbers in pixels
_APART = 5  # pixels between two numbers side by side

Scale = Mapping[int, float]


@dataclass(frozen=True)
class Axis:
    """An axis of a panel. tick: maps an edge to its text. steps: distances of lines across it.

    each: the number of positions per tick; the tick is in their middle.
    """

    name: str
    tick: Callable[[int], str] = "{:,}".format
    steps: tuple[int, ...] = ()
    each: int = 1


def dim_axis(name: str) -> Axis:
    """Return the axis of a dim, with indices as ticks; an axis without a name has no ticks."""
    return Axis(name) if name else Axis(name, lambda edge: "")


@dataclass(frozen=True)
class Ticks:
    """Texts, each with the pixel of its centre."""

    marks: Sequence[tuple[float, str]]

    @property
    def width(self) -> float:
        """The width of the widest text in pixels."""
        return max((mono_width(text, SIZE) for _, text in self.marks), default=0)

    @property
    def end(self) -> float:
        """The pixel at which the text of the last mark ends."""
        return max((x + mono_width(text, SIZE) / 2 for x, text in self.marks), default=0)

    def above(self, left: float, y: float) -> str:
        """Return the texts side by side, from `left`."""
        texts = [tag("text", escape(t), x=left + x, y=y) for x, t in self.marks]
        return tag("g", "".join(texts), class_="ticks middle")

    def beside(self, x: float, top: float) -> str:
        """Return the texts one below another, right-aligned at x."""
        texts = [tag("text", escape(t), x=x, y=top + y) for y, t in self.marks]
        return tag("g", "".join(texts), class_="ticks right")


def column_ticks(axis: Axis, scale: Scale) -> Ticks:
    """Return the ticks above a panel's columns."""
    return _placed(axis, scale, lambda text: mono_width(text, SIZE) + _APART)


def row_ticks(axis: Axis, scale: Scale) -> Ticks:
    """Return the ticks beside a panel's rows."""
    return _placed(axis, scale, lambda text: SIZE + 1)


def _placed(axis: Axis, scale: Scale, room: Callable[[str], float]) -> Ticks:
    marks = _marks(axis, scale)
    if len(marks) < 2:
        return Ticks(marks)
    first, last, kept = marks[0], marks[-1], [marks[0]]
    if last[0] - first[0] < (room(first[1]) + room(last[1])) / 2:
        return Ticks([first])
    for x, text in marks[1:-1][_every(marks, room) - 1 :: _every(marks, room)]:
        before, end = ((room(t) + room(text)) / 2 for t in (kept[-1][1], last[1]))
        if x - kept[-1][0] >= before and last[0] - x >= end:
            kept.append((x, text))
    return Ticks([*kept, last])


def _marks(axis: Axis, scale: Scale) -> list[tuple[float, str]]:
    """Return ticks in the middle of single positions; else at the beginning of each span and at
    the end of the last.
    """
    edges = sorted(scale)
    if axis.each > 1:
        ends = [(place(scale, at), at) for at in range(edges[0], edges[-1] + 1, axis.each)]
        places = [((x + after) / 2, at) for (x, at), (after, _) in pairwise(ends)]
    elif all(high - low == 1 for low, high in pairwise(edges)):
        places = [((scale[low] + scale[high]) / 2, low) for low, high in pairwise(edges)]
    else:
        places = [(scale[edge], edge) for edge in edges]
    return [(x, text) for x, edge in places if (text := axis.tick(edge))]


def _every(marks: Sequence[tuple[float, str]], room: Callable[[str], float]) -> int:
    """Return the step (1, 2, 4, ...) at which equally spaced marks have room; 1 for others."""
    steps = {round(b[0] - a[0], 3) for a, b in pairwise(marks)}
    if len(steps) > 1:
        return 1
    needed, every = max(room(text) for _, text in marks), 1
    while every < len(marks) and steps and min(steps) * every < needed:
        every *= 2
    return every


def place(scale: Scale, edge: int) -> float:
    """Return the pixel of any position, interpolated between the edges."""
    if edge in scale:
        return scale[edge]
    low = max(e for e in scale if e < edge)
    high = min(e for e in scale if e > edge)
    return scale[low] + (scale[high] - scale[low]) * (edge - low) / (high - low)
