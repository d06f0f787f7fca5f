"""Ticks: the numbers along the axes of a panel, as many as have room, always those at both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gridlayout.draw.letters import mono_width
from gridlayout.svg import escape, tag

SIZE = 10  # pixels of the numbers' font
_APART = 5  # pixels between two numbers side by side

Scale = Mapping[int, float]


@dataclass(frozen=True)
class Axis:
    """One side of a panel: its name, the text at an edge, and the steps of lines across it.

    each: positions that one tick is in the middle of, where it is for more than one.
    """

    name: str
    tick: Callable[[int], str] = "{:,}".format
    steps: tuple[int, ...] = ()
    each: int = 1


def dim_axis(name: str) -> Axis:
    """The axis of a dim, its ticks the indices; an axis without a name has no ticks."""
    return Axis(name) if name else Axis(name, lambda edge: "")


@dataclass(frozen=True)
class Ticks:
    """Texts with the pixel that each is centred at."""

    marks: Sequence[tuple[float, str]]

    @property
    def width(self) -> float:
        """Pixels of the widest text."""
        return max((mono_width(text, SIZE) for _, text in self.marks), default=0)

    @property
    def end(self) -> float:
        """The pixel at which the text of the last mark ends."""
        return max((x + mono_width(text, SIZE) / 2 for x, text in self.marks), default=0)

    def above(self, left: float, y: float) -> str:
        """The texts side by side, from `left`."""
        texts = [tag("text", escape(t), x=left + x, y=y) for x, t in self.marks]
        return tag("g", "".join(texts), class_="ticks middle")

    def beside(self, x: float, top: float) -> str:
        """The texts one below another, which end at x."""
        texts = [tag("text", escape(t), x=x, y=top + y) for y, t in self.marks]
        return tag("g", "".join(texts), class_="ticks right")


def column_ticks(axis: Axis, scale: Scale) -> Ticks:
    """The ticks above a panel's columns."""
    return _placed(axis, scale, lambda text: mono_width(text, SIZE) + _APART)


def row_ticks(axis: Axis, scale: Scale) -> Ticks:
    """The ticks beside a panel's rows."""
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
    """Single positions in their middle; others where they begin, and where the last one ends."""
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
    """Which marks have room where all are equally far apart: each, every second, every fourth."""
    steps = {round(b[0] - a[0], 3) for a, b in pairwise(marks)}
    if len(steps) > 1:
        return 1
    needed, every = max(room(text) for _, text in marks), 1
    while every < len(marks) and steps and min(steps) * every < needed:
        every *= 2
    return every


def place(scale: Scale, edge: int) -> float:
    """Pixels of any position, in proportion between the edges."""
    if edge in scale:
        return scale[edge]
    low = max(e for e in scale if e < edge)
    high = min(e for e in scale if e > edge)
    return scale[low] + (scale[high] - scale[low]) * (edge - low) / (high - low)
