"""Draws the bytes held over the steps of a program, with the peak and the capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gridlayout.draw.letters import mono_width
from gridlayout.draw.logical import short
from gridlayout.draw.panels import Picture, figure
from gridlayout.draw.ticks import Ticks
from gridlayout.draw.units import amount, binary_steps, bytes_text, round_steps
from gridlayout.svg import Drawing, escape, tag

_HIGH, _TOP = 200.0, 26  # pixels: height of the axis of bytes, and of the peak's label above it
_LONGEST, _SHORTEST, _STEP = 700, 320, 48  # pixels: the axis of steps at most, at least; a step
_LABEL = 11  # font size in pixels
_FAR = 8  # a capacity of more than this factor times the peak is not drawn to scale
_NAME, _HOVER = 40, 120  # most letters of a step's name beside the peak, and in a hover text


class Held(NamedTuple):
    """A step and the bytes that are held while it runs."""

    name: str
    nbytes: float


def held_over_time(
    title: str,
    subtitle: str,
    steps: Sequence[Held],
    limit: float | None = None,
    notes: Sequence[str] = (),
) -> Drawing:
    """Draw the bytes held at each step, with a line at `limit` bytes.

    If there are many steps, several share a column, whose height is their maximum. Raises
    `LayoutError` for bytes that are negative or not finite.

    >>> steps = [Held("load", 4096), Held("dot", 12288), Held("add", 8192)]
    >>> print(held_over_time("A block", "", steps, limit=10240).description)
    3 steps. The peak is 12.0 KiB, in step 1, dot. The capacity is 10.0 KiB; 1 step holds more.
    """
    held = [Held(step.name, _checked(step)) for step in steps]
    room = None if limit is None else amount(limit, "the capacity")
    if not held:
        nothing = "There are no steps."
        return figure(title, subtitle, nothing, [], notes=[*notes, nothing])
    chart = _Chart(tuple(held), room)
    legend = [("c5", "held"), ("c6", "above the capacity")] if chart.over else []
    all_notes = [*notes]
    if chart.columns < len(held):
        all_notes.append("A column stands for several steps; its height is their maximum.")
    return figure(title, subtitle, _in_words(chart), [_picture(chart)], legend, all_notes)


def _checked(step: Held) -> float:
    return amount(step.nbytes, f"the bytes of step {short(step.name, 60)!r}")


@dataclass(frozen=True)
class _Chart:
    """The steps, and the capacity in bytes. Positions are in pixels."""

    steps: tuple[Held, ...]
    limit: float | None

    @property
    def columns(self) -> int:
        """The number of columns, each at least one pixel wide."""
        return min(len(self.steps), _LONGEST)

    @property
    def width(self) -> float:
        """The width of all columns."""
        return min(max(_STEP * len(self.steps), _SHORTEST), _LONGEST)

    def first(self, column: int) -> int:
        """Return the first step of a column."""
        return column * len(self.steps) // self.columns

    def column(self, step: int) -> int:
        """Return the column of a step."""
        return ((step + 1) * self.columns - 1) // len(self.steps)

    def most(self, column: int) -> int:
        """Return the first step of a column that holds the most."""
        steps = range(self.first(column), self.first(column + 1))
        return max(steps, key=lambda k: self.steps[k].nbytes)

    @cached_property
    def peak(self) -> int:
        """The first step that holds the most."""
        return max(range(len(self.steps)), key=lambda k: self.steps[k].nbytes)

    @property
    def is_far(self) -> bool:
        """Whether the capacity is above the axis."""
        return self.limit is not None and self.limit / _FAR > self.steps[self.peak].nbytes > 0

    @property
    def top(self) -> float:
        """The bytes at the top of the axis."""
        limit = 0.0 if self.limit is None or self.is_far else self.limit
        return max(self.steps[self.peak].nbytes * (1.25 if self.is_far else 1), limit)

    @cached_property
    def over(self) -> int:
        """The number of steps that hold more than the capacity."""
        return sum(self.limit is not None and step.nbytes > self.limit for step in self.steps)

    def x(self, column: int) -> float:
        """Return the left side of a column."""
        return column * self.width / self.columns

    def y(self, nbytes: float) -> float:
        """Return the position of an amount of bytes, from the top."""
        return _HIGH * (1 - nbytes / self.top) if self.top else _HIGH


def _in_words(chart: _Chart) -> str:
    count, peak = len(chart.steps), chart.steps[chart.peak]
    words = (
        f"{count:,} step{'' if count == 1 else 's'}. The peak is {bytes_text(peak.nbytes)}, in "
        f"step {chart.peak:,}, {short(peak.name, _HOVER)}."
    )
    if chart.limit is None:
        return words
    number, holds = f"{chart.over or 'no'}", "step holds" if chart.over == 1 else "steps hold"
    return f"{words} The capacity is {bytes_text(chart.limit)}; {number} {holds} more."


def _picture(chart: _Chart) -> Picture:
    """Return the axes, the area, the label of the peak above it and of the capacity beside it."""
    marks = [(chart.y(n), bytes_text(n).replace(".0 ", " ")) for n in binary_steps(chart.top, 6)]
    ticks = Ticks(marks)
    left = ticks.width + 8
    end = left + chart.width
    lines = "".join(f"M{left:g} {_TOP + y:.1f}H{end:g}" for y, _ in marks)
    grid = tag("path", d=lines, stroke="var(--hatch)", stroke_opacity=0.5)
    below, low = _steps_axis(chart, left)
    peak, peak_end = _peak(chart, left)
    capacity, capacity_end = _capacity(chart, left)
    body = [grid, ticks.beside(left - 5, _TOP), _area(chart, left), capacity, peak, below]
    return Picture(
        max(end + 10, peak_end, capacity_end), low, "".join([*body, _hovers(chart, left)])
    )


def _area(chart: _Chart, left: float) -> str:
    """Return the area of held bytes; the part above the capacity has another colour."""
    heights = [chart.steps[chart.most(k)].nbytes for k in range(chart.columns)]
    base = 0.0 if chart.limit is None else min(chart.limit, chart.top)
    paths = [_outline(chart, heights, 0.0, left, "c5")]
    if chart.over:
        paths[0] = _outline(chart, [min(n, base) for n in heights], 0.0, left, "c5")
        paths.append(_outline(chart, heights, base, left, "c6"))
    line = "".join(
        f"{'L' if k else 'M'}{left + chart.x(k):.1f} {_TOP + chart.y(n):.1f}H"
        f"{left + chart.x(k + 1):.1f}"
        for k, n in enumerate(heights)
    )
    return tag("g", "".join(paths), class_="flows") + tag("path", class_="line1", d=line)


def _outline(chart: _Chart, heights: Sequence[float], base: float, left: float, fill: str) -> str:
    """Return the area between `base` bytes and the heights of the columns."""
    low = _TOP + chart.y(base)
    parts = [
        f"V{min(_TOP + chart.y(n), low):.1f}H{left + chart.x(k + 1):.1f}"
        for k, n in enumerate(heights)
    ]
    return tag("path", class_=fill, d=f"M{left:.1f} {low:.1f}{''.join(parts)}V{low:.1f}z")


def _hovers(chart: _Chart, left: float) -> str:
    """Return a transparent rectangle over each column, with its hover text."""
    rects = []
    for k in range(chart.columns):
        first, last, most = chart.first(k), chart.first(k + 1) - 1, chart.most(k)
        step = chart.steps[most]
        text = f"step {most:,}, {short(step.name, _HOVER)}: {bytes_text(step.nbytes)}"
        if last > first:
            text = f"{text}, the most of steps {first:,} to {last:,}"
        size = {"x": left + chart.x(k), "width": chart.x(k + 1) - chart.x(k)}
        hover = tag("title", escape(text))
        rects.append(tag("rect", hover, y=_TOP, height=_HIGH, **size))
    return tag("g", "".join(rects), fill="transparent")


def _peak(chart: _Chart, left: float) -> tuple[str, float]:
    """Return a dot at the peak and its label above, shifted to stay inside the picture."""
    step = chart.steps[chart.peak]
    words = f"peak {bytes_text(step.nbytes)}: {short(step.name, _NAME)}"
    column = chart.column(chart.peak)
    x, y = left + (chart.x(column) + chart.x(column + 1)) / 2, _TOP + chart.y(step.nbytes)
    wide = mono_width(words, _LABEL)
    start = max(min(x - wide / 2, left + chart.width - wide), 0)
    line = tag("path", class_="line1", d=f"M{x:.1f} {_TOP - 10}V{y:.1f}") if chart.top else ""
    dot = tag("circle", class_="bar", cx=x, cy=y, r=3)
    return line + dot + tag("text", escape(words), x=start, y=11), start + wide


def _capacity(chart: _Chart, left: float) -> tuple[str, float]:
    """Return the line at the capacity and its label beside it."""
    if chart.limit is None:
        return "", 0.0
    words = f"capacity {bytes_text(chart.limit)}" + (", far above" if chart.is_far else "")
    y, end = _TOP + (0.0 if chart.is_far else chart.y(chart.limit)), left + chart.width
    dashes = {"stroke_dasharray": "5 5"} if chart.is_far else {}  # dashed if not to scale
    line = tag("path", class_="inner", d=f"M{left:g} {y:.1f}H{end:g}", **dashes)
    text = tag("text", escape(words), x=end + 6, y=y + 4)
    return line + text, end + 6 + mono_width(words, _LABEL)


def _steps_axis(chart: _Chart, left: float) -> tuple[str, float]:
    """Return the names of the steps below the columns, or their numbers if names have no room."""
    y, middles = (
        _TOP + _HIGH + 14,
        [(chart.x(k) + chart.x(k + 1)) / 2 for k in range(chart.columns)],
    )
    named = Ticks([(x, s.name) for x, s in zip(middles, chart.steps, strict=False)])
    if chart.columns == len(chart.steps) and named.width + 6 < chart.width / chart.columns:
        return named.above(left, y), y + 4
    numbers, _ = round_steps(0, len(chart.steps) - 1, min(14, max(len(chart.steps) - 1, 1)))
    marks = [(middles[chart.column(round(k))], f"{round(k):,}") for k in numbers]
    name = tag("g", tag("text", "step →", x=left, y=y + 14), class_="ticks")
    return Ticks(marks).above(left, y) + name, y + 18
