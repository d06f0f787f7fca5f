"""Draws curves of times and shares over counts, with dashed guides for comparison.

Every curve has its own colour and mark, and its name at its end, so no legend is needed. Counts and
times have logarithmic axes, on which a time proportional to 1 / count is a straight line. Shares
have a linear axis from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gridlayout.draw.chart import INSET, MARK, WIDE, Axes, Chart, Curve, Point, count_text
from gridlayout.draw.letters import mono_width
from gridlayout.draw.logical import short
from gridlayout.draw.panels import Picture, figure
from gridlayout.draw.units import amount, time_text
from gridlayout.errors import LayoutError
from gridlayout.palette import HUES
from gridlayout.svg import Drawing, escape, tag

_TOP = 22  # pixels above the axes
_LABEL, _NAME, _HOVER = 11, 40, 200  # font size in pixels; most letters of a name and a hover text
_STEP = 16  # least distance between names in pixels
_LEADER, _KEY = 22, 12  # pixels from the axes to the mark of a name, and from the mark to the name
# The colours that differ most come first.
_ORDER = ("c6", "c5", "c2", "c1", "c7", "c3", "c4", "c0")


def curves(
    title: str,
    subtitle: str,
    charts: Sequence[Chart],
    counted: str = "devices",
    notes: Sequence[str] = (),
) -> Drawing:
    """Draw charts one below another, with the same counts.

    counted: what is counted. Two points with a missing value between them are joined by dots.
    Curves with equal points are drawn once, with all their names. Times of 0 are left out, and a
    note says so. Raises `LayoutError` for values that are negative or not finite, and for counts
    that are not above 0.

    >>> ring = Curve("ring", [Point(1, 8e-6), Point(2, 5e-6), Point(4, None), Point(8, 2e-6)])
    >>> ideal = Curve("ideal", [Point(1, 8e-6), Point(8, 1e-6)])
    >>> print(curves("A product", "", [Chart("time", [ring], [ideal])]).description)
    1 curve over 1 to 8 devices. Time on 8: ring 2.0 us; guides: ideal 1.0 us.
    """
    checked = [
        each._replace(
            lines=[_checked(line, each) for line in each.lines],
            guides=[_checked(line, each) for line in each.guides],
        )
        for each in charts
    ]
    axes = [Axes(each, counted) for each in checked]
    all_notes = [*notes]
    if any(p.value == 0 for each in axes if not each.is_share for p in each.points):
        all_notes.append("Times of 0 s have no place on a logarithmic axis, and are left out.")
    drawn = [(each, chart) for each, chart in zip(axes, checked, strict=True) if each.values]
    if not drawn:
        nothing = "There is nothing to draw."
        return figure(title, subtitle, nothing, [], notes=[*all_notes, nothing])
    left = max(each.down.width for each, _ in drawn) + 8
    panels = [_picture(each, chart, left) for each, chart in drawn]
    return figure(title, subtitle, _in_words(checked, counted), panels, notes=all_notes)


def _checked(line: Curve, chart: Chart) -> Curve:
    """Return a curve sorted by counts. Raises `LayoutError` for invalid counts or values."""
    name, points = short(line.name, 60), []
    what = chart.caption or "value"
    for point in line.points:
        count = amount(point.at, f"a count of {name!r}")
        if not count:
            raise LayoutError(f"a count of {name!r} is 0: it must be above 0")
        value = point.value
        if value is not None:
            value = amount(value, f"the {what} of {name!r} at {count:g}")
        points.append(Point(count, value, point.hover, point.is_open))
    return Curve(line.name, sorted(points, key=lambda point: point.at))


def _in_words(charts: Sequence[Chart], counted: str) -> str:
    """Return the description: the range of counts, and all values at the largest one."""
    every = [line for chart in charts for line in (*chart.lines, *chart.guides)]
    counts = [point.at for line in every for point in line.points]
    last, names = max(counts), {line.name for chart in charts for line in chart.lines}

    def at_last(lines: Iterable[Curve], text: str) -> str:
        values = (
            f"{short(line.name, _NAME)} {_value_text(point.value, text)}"
            for line in lines
            for point in line.points
            if point.at == last and point.value is not None
        )
        return ", ".join(values) or "nothing"

    texts = [f"{len(names):,} curve{'' if len(names) == 1 else 's'}"]
    texts[0] += f" over {count_text(min(counts))} to {count_text(last)} {counted}."
    for chart in charts:
        kind = "share" if chart.is_share else "time"
        guides = f"; guides: {at_last(chart.guides, kind)}" if chart.guides else ""
        caption = chart.caption[:1].upper() + chart.caption[1:]
        texts.append(f"{caption} on {count_text(last)}: {at_last(chart.lines, kind)}{guides}.")
    return " ".join(texts)


def _value_text(value: float, kind: str) -> str:
    return f"{value:.0%}" if kind == "share" else time_text(value)


# -- curves ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Drawn:
    """Curves with equal points, drawn as one. A guide has no fill and mark.

    joined: for each point, whether a line joins it to the previous one.
    """

    names: tuple[str, ...]
    places: tuple[tuple[float, float, Point], ...]
    joined: tuple[bool, ...]
    fill: str = ""
    mark: int = 0

    @property
    def text(self) -> str:
        """All names, shortened to `_NAME` letters."""
        return short(", ".join(self.names), _NAME)


# Position in pixels, the point there, and whether a line joins it to the previous point.
_Place = tuple[float, float, Point, bool]


def _drawn(lines: Sequence[Curve], axes: Axes) -> list[_Drawn]:
    """Return the curves with their colours and marks; those with equal points are merged."""
    every = [_placed(line, axes) for line in lines]
    by_points: dict[tuple[tuple[float, int, bool, bool], ...], list[int]] = {}
    for k, places in enumerate(every):
        looks = tuple((p.at, round(y), p.is_open, is_joined) for _, y, p, is_joined in places)
        if looks:
            by_points.setdefault(looks, []).append(k)
    found = []
    for same in by_points.values():
        first = same[0]
        fill, mark = _ORDER[first % HUES], first % len(_MARKS) + first // HUES
        names = tuple(lines[k].name for k in same)
        merged = [_merged(places) for places in zip(*(every[k] for k in same), strict=True)]
        joined = tuple(is_joined for *_, is_joined in every[first])
        found.append(_Drawn(names, tuple(merged), joined, fill, mark))
    return found


def _placed(line: Curve, axes: Axes) -> list[_Place]:
    """Return the places of a curve's points that have one."""
    found, is_next = list[_Place](), False
    for point in line.points:
        if point.value is not None and axes.has(point):
            found.append((axes.x(point.at), axes.y(point.value), point, is_next))
        is_next = axes.has(point)
    return found


def _merged(places: Sequence[_Place]) -> tuple[float, float, Point]:
    """Return the first of equal places, with the hover texts of all."""
    hovers = dict.fromkeys(short(point.hover, _HOVER) for _, _, point, _ in places)
    x, y, point, _ = places[0]
    return x, y, point._replace(hover="\n".join(filter(None, hovers)))


def _line(each: _Drawn, left: float) -> str:
    """Return the line of a curve in its colour with dark edges, with dots across gaps."""
    whole, dotted = "", ""
    for ((x, y, _), (right, low, _)), is_joined in zip(
        pairwise(each.places), each.joined[1:], strict=True
    ):
        part = f"M{left + x:.1f} {_TOP + y:.1f}L{left + right:.1f} {_TOP + low:.1f}"
        whole, dotted = (whole + part, dotted) if is_joined else (whole, dotted + part)
    found = []
    if whole:
        found.append(_stroke(whole, "line", 3.4))
        found.append(_stroke(whole, each.fill, 2))
    if dotted:
        found.append(_stroke(dotted, "line", 2, "0.1 5"))
    return "".join(found)


def _guide(each: _Drawn, left: float) -> str:
    """Return the dashed line of a guide."""
    points = (f"{left + x:.1f} {_TOP + y:.1f}" for x, y, _ in each.places)
    return _stroke(f"M{'L'.join(points)}", "muted", 1, "6 5")


def _stroke(path: str, colour: str, width: float, dashes: str = "") -> str:
    more = {"stroke_dasharray": dashes} if dashes else {}
    look = {"stroke": f"var(--{colour})", "stroke_width": width, "stroke_linecap": "round"}
    return tag("path", d=path, fill="none", pointer_events="none", **look, **more)  # type: ignore[arg-type]


# The corners of each mark in units of half its size; a circle has none.
_MARKS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.15, 0.85), (-1.15, 0.85)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, 1.2), (1.15, -0.85), (-1.15, -0.85)),
)


def _mark(each: _Drawn, x: float, y: float, half: float, point: Point | None = None) -> str:
    """Return the mark of a curve at a position, with its hover text."""
    hover = tag("title", escape(point.hover)) if point is not None and point.hover else ""
    fill = "paper" if point is not None and point.is_open else each.fill
    corners = _MARKS[each.mark % len(_MARKS)]
    if not corners:
        return tag("circle", hover, class_=fill, cx=x, cy=y, r=half)
    points = (f"{x + i * half:.1f} {y + j * half:.1f}" for i, j in corners)
    return tag("path", hover, class_=fill, d=f"M{'L'.join(points)}z")


# -- the picture -----------------------------------------------------------------------------------


def _picture(axes: Axes, chart: Chart, left: float) -> Picture:
    """Return the axes with guides, curves and marks on top, and the names at the right."""
    drawn, guides = _drawn(chart.lines, axes), _drawn(chart.guides, axes)
    low = _TOP + axes.high
    ground = tag("rect", fill="var(--pad)", x=left, y=_TOP, width=WIDE, height=axes.high)
    rows = "".join(f"M{left:g} {_TOP + y:.1f}h{WIDE:g}" for y, _ in axes.down.marks)
    columns = "".join(f"M{left + x:.1f} {_TOP}v{axes.high:g}" for x, _ in axes.across.marks)
    grid = tag("path", d=rows + columns, stroke="var(--hatch)", stroke_opacity=0.5, fill="none")
    marks = [
        _mark(each, left + x, _TOP + y, axes.half, point)
        for each in drawn
        for x, y, point in each.places
    ]
    counted = tag("text", escape(f"{axes.counted} →"), x=left, y=low + 29)
    names, right = _names(drawn, guides, left, axes.high)
    body = [
        tag("text", escape(chart.caption), class_="sub", x=0, y=11),
        *(ground, grid, axes.down.beside(left - 5, _TOP), axes.across.above(left, low + 14)),
        tag("g", counted, class_="ticks"),
        *(_guide(each, left) for each in guides),
        *(_line(each, left) for each in drawn),
        tag("g", "".join(marks), class_="marks", stroke="var(--line)"),
        names,
    ]
    return Picture(max(right, left + axes.across.end), low + 32, "".join(body))


def _names(
    drawn: Sequence[_Drawn], guides: Sequence[_Drawn], left: float, high: float
) -> tuple[str, float]:
    """Return the names beside the ends of their curves, without overlap, and their right edge."""
    every = sorted([*drawn, *guides], key=lambda each: each.places[-1][1])
    at, keys, words = left + WIDE + _LEADER, [], []
    right = at
    ends = [_TOP + each.places[-1][1] for each in every]
    for each, y in zip(every, _apart(ends, _TOP + 6, _TOP + high), strict=True):
        x, end, _ = each.places[-1]
        if x >= WIDE - INSET - 1:
            line = f"M{left + x + INSET:.1f} {_TOP + end:.1f}L{at - 8:.1f} {y:.1f}"
            keys.append(tag("path", class_="line1", d=line))
        is_guide = any(each is guide for guide in guides)
        if is_guide:
            keys.append(_stroke(f"M{at - 6:.1f} {y:.1f}h13", "muted", 1, "5 3"))
        else:
            keys.append(_mark(each, at, y, MARK))
        words.append(tag("text", escape(each.text), x=at + _KEY, y=y + 4))
        right = max(right, at + _KEY + mono_width(each.text, _LABEL))
    return tag("g", "".join(keys), stroke="var(--line)") + "".join(words), right


def _apart(ideal: Sequence[float], low: float, high: float) -> Iterator[float]:
    """Yield positions at least `_STEP` apart, in the given order, each close to its ideal.

    >>> list(_apart([5, 6, 50], 0, 100))
    [0.0, 16.0, 50.0]
    """
    # Runs of touching neighbours; each run is centred on the ideal positions of its members.
    runs: list[tuple[list[float], float]] = []
    for place in ideal:
        run = [place]
        while True:
            middle = sum(w - k * _STEP for k, w in enumerate(run)) / len(run)
            start = float(max(min(middle, high - (len(run) - 1) * _STEP), low))
            if not runs or runs[-1][1] + len(runs[-1][0]) * _STEP <= start:
                break
            run = runs.pop()[0] + run
        runs.append((run, start))
    for run, start in runs:
        yield from (start + k * _STEP for k in range(len(run)))
