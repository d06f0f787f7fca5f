"""`Chart`: the data of curves over counts. `Axes`: the positions of its points in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple

from gridlayout.draw.letters import mono_width
from gridlayout.draw.ticks import SIZE, Ticks
from gridlayout.draw.units import round_steps, time_text

WIDE = 560.0  # length of the axis of counts in pixels
INSET = 12  # pixels between the sides of the axes and the first and last count
MARK, SMALL, _ROOM = 4.2, 1.8, 11.0  # pixels: half of a mark, of a small one; room of a large one
_HIGH = {False: 330.0, True: 190.0}  # pixels: heights of an axis of times, and of one of shares
_LEAST_DECADES = 0.35  # shortest range of an axis of times
_MOST_TICKS = 9


class Point(NamedTuple):
    """One point of a curve. at: the count. value: None if there is none.

    hover: the text shown while the pointer is over it. is_open: whether its mark is drawn empty.
    """

    at: float
    value: float | None
    hover: str = ""
    is_open: bool = False


class Curve(NamedTuple):
    """A named curve; its points may be in any order."""

    name: str
    points: Sequence[Point]


class Chart(NamedTuple):
    """Curves on one pair of axes. guides: curves drawn dashed, without marks.

    is_share: whether values are shares, 0 to 1; else they are seconds.
    """

    caption: str
    lines: Sequence[Curve]
    guides: Sequence[Curve] = ()
    is_share: bool = False


class Axes:
    """The axes of a chart: positions in pixels from their left and top."""

    def __init__(self, chart: Chart, counted: str) -> None:
        self.counted, self.is_share = counted, chart.is_share
        self.high = _HIGH[chart.is_share]
        lines = (*chart.lines, *chart.guides)
        self.points = [point for line in lines for point in line.points]
        self.counts = sorted({point.at for point in self.points})
        self.values = [p.value for p in self.points if p.value is not None and self.has(p)]

    def has(self, point: Point) -> bool:
        """Return whether a point can be drawn: a time must be above 0 on the logarithmic axis."""
        return point.value is not None and (self.is_share or point.value > 0)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis of values: shares, or logarithms of seconds."""
        if self.is_share:
            top = max(*self.values, 1.0)
            return -0.05 * top, 1.05 * top
        times = [log10(value) for value in self.values]
        middle = (min(times) + max(times)) / 2
        half = max(max(times) - min(times), _LEAST_DECADES) / 2 * 1.06
        return middle - half, middle + half

    def x(self, count: float) -> float:
        """Return the pixel of a count."""
        first, last = log10(self.counts[0]), log10(self.counts[-1])
        part = (log10(count) - first) / (last - first) if last > first else 0.5
        return INSET + part * (WIDE - 2 * INSET)

    def y(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.ends
        place = value if self.is_share else log10(value)
        return (high - place) / (high - low) * self.high

    @cached_property
    def across(self) -> Ticks:
        """The ticks of the counts that have room, always including the first and the last."""
        marks = [(self.x(count), count_text(count)) for count in self.counts]
        kept, last = marks[:1], marks[-1]
        for x, text in marks[1:]:
            room = (mono_width(text, SIZE) + mono_width(kept[-1][1], SIZE)) / 2 + 6
            to_last = (mono_width(text, SIZE) + mono_width(last[1], SIZE)) / 2 + 6
            if x == last[0] or (x - kept[-1][0] >= room and last[0] - x >= to_last):
                kept.append((x, text))
        return Ticks(kept)

    @cached_property
    def down(self) -> Ticks:
        """The ticks of the values: round numbers, as many as have room."""
        low, high = self.ends
        if self.is_share:
            numbers, _ = round_steps(0, high, 6)
            return Ticks([(self.y(n), f"{n:,.0%}") for n in numbers if n <= high])
        for digits in (("1", "1.5", "2", "3", "5", "7"), ("1", "2", "5"), ("1", "3"), ("1",)):
            tens = range(floor(low), ceil(high) + 1)
            # As text, so that numbers beyond those of floats are 0 or infinite.
            numbers = [float(f"{digit}e{ten}") for ten in tens for digit in digits]
            inside = [n for n in numbers if n and low <= log10(n) <= high]
            if len(inside) <= _MOST_TICKS:
                break
        kept = inside[:: ceil(len(inside) / _MOST_TICKS) or 1]
        return Ticks([(self.y(n), time_text(n).replace(".0 ", " ")) for n in kept])

    @cached_property
    def half(self) -> float:
        """Half the size of a mark: small if marks at all counts have no room side by side."""
        apart = [self.x(after) - self.x(before) for before, after in pairwise(self.counts)]
        return MARK if min(apart, default=_ROOM) >= _ROOM else SMALL


def count_text(count: float) -> str:
    """Return a count as text.

    >>> count_text(1024), count_text(2.5)
    ('1,024', '2.5')
    """
    return f"{count:,.0f}" if count == int(count) and count < 1e9 else f"{count:g}"
