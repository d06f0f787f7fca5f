"""Panels: tables of cells with their axes; and the figure that they make side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gridlayout.draw.cells import Span
from gridlayout.draw.svg import Drawing, drawing, escape, tag

WIDTH = 980  # pixels that panels side by side may take
_GAP, _MARGIN = 26, 18
_CHAR = 6.7  # pixels of a character of the 11 px font
_MOST_LINES = 48  # of one step along an axis
_ROW = 24  # pixels of a row of single positions
_INSET = 2.5  # pixels from the sides of a block to its border


@dataclass(frozen=True)
class Box:
    """A drawn cell: half-open spans of rows and columns, a fill class, a label, and what hovers."""

    rows: Span
    columns: Span
    fill: str
    label: str
    hover: str


@dataclass(frozen=True)
class Axis:
    """One side of a panel: its name, the text at an edge, and the steps of lines across it."""

    name: str
    tick: Callable[[int], str] = str
    steps: tuple[int, ...] = ()


def dim_axis(name: str) -> Axis:
    """The axis of a dim, its ticks the indices; an axis without a name has no ticks."""
    return Axis(name) if name else Axis(name, lambda edge: "")


@dataclass(frozen=True)
class Panel:
    """A table of `boxes`, which cover it, under a caption.

    block: numbers the block of a box, if lines are to be drawn between blocks; and the block inside
    that one, if each of those is to have a red border.
    """

    caption: str
    rows: Axis
    columns: Axis
    boxes: tuple[Box, ...]
    block: Callable[[Box], tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Picture:
    """SVG text that stands where a panel may stand; sizes in pixels."""

    width: float
    height: float
    body: str


def figure(
    title: str,
    subtitle: str,
    description: str,
    panels: Sequence[Panel | Picture],
    legend: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> Drawing:
    """The drawing of panels in rows, under a title and above a legend of (fill, text) and notes."""
    parts = [_text(title, _MARGIN, 30, "head"), _text(subtitle, _MARGIN, 49, "note")]
    right = _MARGIN + max(len(title) * 8.6, len(subtitle) * 6.4, 260)
    x, y, low = float(_MARGIN), 66.0, 66.0
    boxes = [box for panel in panels if isinstance(panel, Panel) for box in panel.boxes]
    single = [box for box in boxes if box.rows[1] - box.rows[0] == 1]
    widest = max((len(box.label) for box in single), default=0)
    for panel in panels:
        shrink = min(len(panels), 4)
        picture = _panel(panel, shrink, widest) if isinstance(panel, Panel) else panel
        width, height = picture.width, picture.height
        if x > _MARGIN and x + width > _MARGIN + WIDTH:
            x, y = float(_MARGIN), low + _GAP
        parts.append(tag("g", picture.body, transform=f"translate({x:g} {y:g})"))
        right, low = max(right, x + width), max(low, y + height)
        x += width + _GAP
    y = low + 26
    for line in _wrapped(legend, max(right, 760)):
        for at, fill, text in line:
            parts.append(
                tag("rect", class_=f"swatch {fill}", x=at, y=y - 10, width=14, height=14, rx=2)
            )
            parts.append(tag("text", escape(text), x=at + 20, y=y + 1))
            right = max(right, at + 20 + len(text) * _CHAR)
        y += 21
    for note in notes:
        parts.append(_text(note, _MARGIN, y + 2, "note"))
        right, y = max(right, _MARGIN + len(note) * 6.3), y + 18
    width, height = right + _MARGIN, y + 2
    paper = tag("rect", class_="paper", width=width, height=height)
    return drawing(title, description, width, height, paper + "".join(parts))


def _text(text: str, x: float, y: float, class_: str) -> str:
    return tag("text", escape(text), class_=class_, x=x, y=y) if text else ""


def _wrapped(legend: Sequence[tuple[str, str]], right: float) -> list[list[tuple[float, str, str]]]:
    """Legend entries in lines: the x of each swatch, its fill and its text."""
    lines: list[list[tuple[float, str, str]]] = []
    x = right
    for fill, text in legend:
        width = 20 + len(text) * _CHAR + 18
        if x + width > right + 18:
            lines.append([])
            x = _MARGIN
        lines[-1].append((x, fill, text))
        x += width
    return lines


def _panel(panel: Panel, shrink: int, widest: int) -> Picture:
    """A panel as a picture; `widest` is the longest label of the figure, in characters."""
    caption = _text(panel.caption, 0, 11, "sub")
    if not panel.boxes:
        none = _text("no elements", 0, 32, "note")
        return Picture(len(panel.caption) * 7.2 + 90, 44, caption + none)
    rows, columns = (
        _edges([getattr(b, side) for b in panel.boxes]) for side in ("rows", "columns")
    )
    xs, ys = _scales(rows, columns, shrink, widest)
    ticks = [panel.rows.tick(edge) for edge in rows[:-1]]
    left = max([len(t) for t in ticks], default=0) * 6.2 + 8
    top = 46 if panel.caption else 30
    body = [caption, _axis_names(panel, left, top)]
    body.append(_column_ticks(panel, xs, left, top))
    body.append(_row_ticks(panel, ys, left, top))
    rects, labels = _boxes(panel, xs, ys, left, top)
    body += [rects, _lines(panel, xs, ys, left, top), labels]
    width, height = left + xs[columns[-1]], top + ys[rows[-1]]
    return Picture(max(width, len(panel.caption) * 7.2), height + 2, "".join(body))


def _edges(spans: Iterable[Span]) -> list[int]:
    return sorted({edge for span in spans for edge in span})


Scale = Mapping[int, float]


def _scales(rows: list[int], columns: list[int], shrink: int, widest: int) -> tuple[Scale, Scale]:
    """Pixels of each edge: equal steps for single positions, else in proportion, none too thin."""
    if all(high - low == 1 for edges in (rows, columns) for low, high in pairwise(edges)):
        # Labels that fit the page are shown, even if only one panel then fits beside another.
        width, count = min(max(widest * _CHAR + 8, 22), 110), len(columns) - 1
        if width * count > WIDTH - 50:
            width = max((WIDTH / min(shrink, 2) - 50) / count, 7)
        return _even(columns, width), _even(rows, _ROW if len(rows) < 40 else 14)
    across, down = columns[-1] - columns[0], rows[-1] - rows[0]
    side = (430, 430, 320, 250, 200)[shrink]
    ratio = min(max(down / across, 0.2), 1.6)
    wide, high = (side, side * ratio) if ratio <= 1 else (side / ratio, side)
    return _in_proportion(columns, wide), _in_proportion(rows, max(high, 40))


def _even(edges: list[int], step: float) -> Scale:
    return {edge: k * step for k, edge in enumerate(edges)}


def _in_proportion(edges: list[int], size: float) -> Scale:
    places, x = {edges[0]: 0.0}, 0.0
    for low, high in pairwise(edges):
        x += max(size * (high - low) / (edges[-1] - edges[0]), 9)
        places[high] = x
    return places


def _axis_names(panel: Panel, left: float, top: float) -> str:
    names = []
    if panel.columns.name:
        names.append(tag("text", escape(f"{panel.columns.name} →"), x=left, y=top - 17))
    if panel.rows.name:
        y, turn = top + 2, f"rotate(-90 -8 {top + 2:g})"
        names.append(
            tag(
                "text", escape(f"← {panel.rows.name}"), x=-8, y=y, transform=turn, text_anchor="end"
            )
        )
    return tag("g", "".join(names), class_="ticks")


def _column_ticks(panel: Panel, xs: Scale, left: float, top: float) -> str:
    marks = _marks(panel.columns, xs)
    texts, free = [], -1.0
    for (low, high), text in marks[:: _every(marks, xs, lambda text: len(text) * 6.2 + 5)]:
        width = len(text) * 6.2
        x = (xs[low] + xs[high] - width) / 2 if high - low <= 1 else xs[low]
        if x >= free:
            texts.append(tag("text", escape(text), x=left + x, y=top - 5))
            free = x + width + 5
    return tag("g", "".join(texts), class_="ticks")


def _row_ticks(panel: Panel, ys: Scale, left: float, top: float) -> str:
    marks = _marks(panel.rows, ys)
    texts, free = [], -1.0
    for (low, high), text in marks[:: _every(marks, ys, lambda text: 11)]:
        y = (ys[low] + ys[high]) / 2 if high - low <= 1 else ys[low] + 6
        if y >= free:
            texts.append(tag("text", escape(text), x=left - 5, y=top + y))
            free = y + 11
    return tag("g", "".join(texts), class_="ticks right")


def _marks(axis: Axis, scale: Scale) -> list[tuple[Span, str]]:
    return [(span, text) for span in _tick_spans(scale) if (text := axis.tick(span[0]))]


def _every(marks: Sequence[tuple[Span, str]], scale: Scale, room: Callable[[str], float]) -> int:
    """Which marks of single positions have room: each, every second, every fourth ..."""
    if len(marks) < 2 or any(high - low != 1 for (low, high), _ in marks):
        return 1
    (first, _), (second, _) = marks[0][0], marks[1][0]
    needed, every = max(room(text) for _, text in marks), 1
    while every < len(marks) and (scale[second] - scale[first]) * every < needed:
        every *= 2
    return every


def _tick_spans(scale: Scale) -> list[Span]:
    """The spans between edges; where they are of many positions, the end of the axis too."""
    spans, end = list(pairwise(scale)), max(scale)
    return spans if all(high - low == 1 for low, high in spans) else [*spans, (end, end)]


def _boxes(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> tuple[str, str]:
    rects, labels = [], []
    for box in panel.boxes:
        (x, right), (y, low) = (xs[e] for e in box.columns), (ys[e] for e in box.rows)
        hover = tag("title", escape(box.hover))
        size = {"width": right - x, "height": low - y}
        rects.append(tag("rect", hover, class_=box.fill, x=left + x, y=top + y, **size))
        if box.label and right - x >= len(box.label) * _CHAR + 3 and low - y >= 13:
            centre = {"x": left + (x + right) / 2, "y": top + (y + low) / 2}
            labels.append(tag("text", escape(box.label), **centre))
    return tag("g", "".join(rects), class_="cells"), tag("g", "".join(labels), class_="labels")


def _lines(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> str:
    """The frame, and lines at the multiples of the axes' steps, the first step's the heaviest."""
    x0, x1, y0, y1 = left, left + max(xs.values()), top, top + max(ys.values())
    paths = {2: [f"M{x0:g} {y0:g}H{x1:g}V{y1:g}H{x0:g}z"], 1: []}
    for edge, weight in _line_edges(xs, panel.columns.steps):
        paths[weight].append(f"M{left + _place(xs, edge):.1f} {y0:g}V{y1:g}")
    for edge, weight in _line_edges(ys, panel.rows.steps):
        paths[weight].append(f"M{x0:g} {top + _place(ys, edge):.1f}H{x1:g}")
    for box, beside in _block_edges(panel):
        x, y = left + xs[beside.columns[0]], top + ys[beside.rows[0]]
        end = (
            f"H{left + xs[box.columns[1]]:g}"
            if box.rows != beside.rows
            else f"V{top + ys[box.rows[1]]:g}"
        )
        paths[2].append(f"M{x:g} {y:g}{end}")
    borders = list(_inner_borders(panel, xs, ys, left, top))
    # A red line is seen on any fill between two of the paper's colour.
    lines = [("around", borders), ("inner", borders)]
    lines += [(f"line{weight}", found) for weight, found in sorted(paths.items())]
    return "".join(tag("path", class_=name, d="".join(found)) for name, found in lines if found)


def _block_edges(panel: Panel) -> Iterator[tuple[Box, Box]]:
    """Boxes and those right of them and below them, where another outer block begins."""
    if panel.block is None:
        return
    corners = {(box.rows[0], box.columns[0]): box for box in panel.boxes}
    for box in panel.boxes:
        for corner in ((box.rows[0], box.columns[1]), (box.rows[1], box.columns[0])):
            beside = corners.get(corner)
            if beside is not None and panel.block(box)[0] != panel.block(beside)[0]:
                yield box, beside


def _inner_borders(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> Iterator[str]:
    """A border just inside each inner block, or inside its boxes where they make no rectangle."""
    held: dict[tuple[int, ...], list[Box]] = {}
    for box in panel.boxes:
        number = panel.block(box) if panel.block else ()
        if len(number) > 1:
            held.setdefault(number, []).append(box)
    for boxes in held.values():
        rows, columns = (
            (min(low for low, _ in spans), max(high for _, high in spans))
            for spans in ([box.rows for box in boxes], [box.columns for box in boxes])
        )
        area = sum(_length(box.rows) * _length(box.columns) for box in boxes)
        whole = area == _length(rows) * _length(columns)
        for (r0, r1), (c0, c1) in (
            [(rows, columns)] if whole else [(box.rows, box.columns) for box in boxes]
        ):
            x0, x1 = left + xs[c0] + _INSET, left + xs[c1] - _INSET
            y0, y1 = top + ys[r0] + _INSET, top + ys[r1] - _INSET
            yield f"M{x0:g} {y0:g}H{x1:g}V{y1:g}H{x0:g}z"


def _length(span: Span) -> int:
    return span[1] - span[0]


def _line_edges(scale: Scale, steps: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Where lines go, and how heavy they are: at no step that would make too many of them."""
    first, end = min(scale), max(scale)
    drawn: set[int] = set()
    for k, step in enumerate(steps):
        if (end - first) // step <= _MOST_LINES:
            edges = set(range(-(-(first + 1) // step) * step, end, step)) - drawn
            drawn |= edges
            yield from ((edge, 1 if k or len(steps) == 1 else 2) for edge in sorted(edges))


def _place(scale: Scale, edge: int) -> float:
    """Pixels of any position, in proportion between the edges."""
    if edge in scale:
        return scale[edge]
    low = max(e for e in scale if e < edge)
    high = min(e for e in scale if e > edge)
    return scale[low] + (scale[high] - scale[low]) * (edge - low) / (high - low)
