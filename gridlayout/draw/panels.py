"""`Panel`: a table of cells with axes. `figure` arranges panels in a drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gridlayout.draw.cells import Span
from gridlayout.draw.letters import lines_of, mono_width, text_width
from gridlayout.draw.ticks import Axis, Scale, column_ticks, dim_axis, place, row_ticks
from gridlayout.svg import Drawing, drawing, escape, tag

__all__ = ["Axis", "Box", "Panel", "Picture", "columns_for", "dim_axis", "figure"]

WIDTH = 980  # most pixels of one panel
_BESIDE = 600  # most pixels of panels side by side: a phone shrinks these to two thirds
_NARROW = 480  # least pixels of the texts around panels
_GAP, _MARGIN = 26, 18
_LABEL = 11  # font size of labels and the legend in pixels
_MOST_LINES = 48  # most lines of one step along an axis
_ROW = 24  # height of a row of single positions in pixels
_RING = 11  # least size of the ring around a marked position in pixels
_INSET = 2.5  # pixels between the sides of a block and its border


@dataclass(frozen=True)
class Box:
    """A drawn cell: half-open spans of rows and columns, a fill class, a label and a hover text.

    sampled: whether its content is known from samples only. share: the share of padding in it.
    """

    rows: Span
    columns: Span
    fill: str
    label: str
    hover: str
    sampled: bool = False
    share: float = 0.0

    @property
    def is_single(self) -> bool:
        """Whether it has one position."""
        return self.rows[1] - self.rows[0] == self.columns[1] - self.columns[0] == 1


@dataclass(frozen=True)
class Panel:
    """A table with a caption, covered by `boxes`.

    block: maps a box to the number of its block, between which lines are drawn, and optionally to
    that of an inner block, which has a red border. None for no lines. marked: row and column of the
    position that has a ring around it, if one has.
    """

    caption: str
    rows: Axis
    columns: Axis
    boxes: tuple[Box, ...]
    block: Callable[[Box], tuple[int, ...]] | None = None
    marked: tuple[int, int] | None = None


@dataclass(frozen=True)
class Picture:
    """SVG text that is arranged like a panel; sizes in pixels.

    numbered: whether cells of one position have labels. named: whether larger ones have.
    """

    width: float
    height: float
    body: str
    numbered: bool = False
    named: bool = False


def figure(
    title: str,
    subtitle: str,
    description: str,
    panels: Sequence[Panel | Picture],
    legend: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    numbers: str = "",
    names: str = "",
) -> Drawing:
    """Draw panels in rows, under a title and above a legend of (fill, text) and notes.

    numbers: a note on the numbers in cells of one position; it is shown if the cells have room for
    numbers. names: the same for the texts in larger cells.
    """
    boxes = [box for panel in panels if isinstance(panel, Panel) for box in panel.boxes]
    single = [box for box in boxes if box.rows[1] - box.rows[0] == 1]
    widest = max((len(box.label) for box in single), default=0)
    shrink = min(len(panels), 4)
    pictures = [_panel(p, shrink, widest) if isinstance(p, Panel) else p for p in panels]
    places, right, low = _in_rows(pictures)
    room = max(right, _MARGIN + _NARROW) - _MARGIN
    head = _Lines(26.0, room)
    head.add(title, 16, "head")
    head.add(subtitle, 12, "note")
    top = head.y + 2
    foot = _Lines(top + low + 26, room)
    swatches = foot.legend(legend)
    if numbers and any(picture.numbered for picture in pictures):
        foot.add(numbers, 12, "note")
    if names and any(picture.named for picture in pictures):
        foot.add(names, 12, "note")
    for note in notes:
        foot.add(note, 12, "note")
    width = _MARGIN + max(right - _MARGIN, head.right, foot.right) + _MARGIN
    paper = tag("rect", class_="paper", width=width, height=foot.y)
    parts = [paper, *head.parts]
    for (x, y), picture in zip(places, pictures, strict=True):
        parts.append(tag("g", picture.body, transform=f"translate({x:g} {top + y:g})"))
    parts += [*swatches, *foot.parts]
    return drawing(title, description, width, foot.y, "".join(parts))


def _in_rows(pictures: Sequence[Picture]) -> tuple[list[tuple[float, float]], float, float]:
    """Return the positions of pictures, side by side while they fit, and the right and low end."""
    x, y, right, low, places = float(_MARGIN), 0.0, float(_MARGIN), 0.0, []
    for picture in pictures:
        if x > _MARGIN and x + picture.width > _MARGIN + _BESIDE:
            x, y = float(_MARGIN), low + _GAP
        places.append((x, y))
        right, low = max(right, x + picture.width), max(low, y + picture.height)
        x += picture.width + _GAP
    return places, right, low


class _Lines:
    """Lines of text, one below another from pixel y, at most `room` pixels wide."""

    def __init__(self, y: float, room: float) -> None:
        self.y, self.room, self.right, self.parts = y, room, 0.0, list[str]()

    def add(self, text: str, size: int, class_: str) -> None:
        """Add a text, wrapped to lines."""
        bold = class_ == "head"
        for line in lines_of(text, self.room, size, bold):
            self.parts.append(_text(line, _MARGIN, self.y + 4, class_))
            self.right = max(self.right, text_width(line, size, bold))
            self.y += size + 7

    def legend(self, entries: Sequence[tuple[str, str]]) -> list[str]:
        """Return swatches of (fill, text), side by side while they fit."""
        parts, x = [], 0.0
        for fill, text in entries:
            width = 20 + mono_width(text, _LABEL)
            if x and x + width > self.room:
                x, self.y = 0.0, self.y + 21
            at, y = _MARGIN + x, self.y
            parts.append(
                tag("rect", class_=f"swatch {fill}", x=at, y=y - 10, width=14, height=14, rx=2)
            )
            parts.append(tag("text", escape(text), x=at + 20, y=y + 1))
            self.right = max(self.right, x + width)
            x += width + 18
        self.y += 21 if entries else 0
        return parts


def _text(text: str, x: float, y: float, class_: str) -> str:
    return tag("text", escape(text), class_=class_, x=x, y=y) if text else ""


def _panel(panel: Panel, shrink: int, widest: int) -> Picture:
    """Return a panel as a picture. widest: letters of the longest label of the figure."""
    caption = _text(panel.caption, 0, 11, "sub")
    named = text_width(panel.caption, 12, bold=True)
    if not panel.boxes:
        none = _text("no elements", 0, 32, "note")
        return Picture(max(named, text_width("no elements", 12)), 44, caption + none)
    rows, columns = (
        _edges([getattr(b, side) for b in panel.boxes]) for side in ("rows", "columns")
    )
    xs, ys = _scales(rows, columns, shrink, widest)
    across, down = column_ticks(panel.columns, xs), row_ticks(panel.rows, ys)
    # The name of the rows is beside their ticks, rotated.
    left = down.width + 8 + (14 if panel.rows.name else 0)
    top = 46 if panel.caption else 30
    rects, plates, labels, which = _boxes(panel, xs, ys, left, top)
    body = [
        *(caption, _axis_names(panel, left, top)),
        *(across.above(left, top - 5), down.beside(left - 5, top)),
        *(rects, _lines(panel, xs, ys, left, top), plates, labels, _mark(panel, xs, ys, left, top)),
    ]
    width = max(xs[columns[-1]], across.end, mono_width(f"{panel.columns.name} →", 10))
    height = max(ys[rows[-1]], mono_width(f"← {panel.rows.name}", 10))
    return Picture(max(left + width, named), top + height + 8, "".join(body), *which)


def _edges(spans: Iterable[Span]) -> list[int]:
    return sorted({edge for span in spans for edge in span})


def _scales(rows: list[int], columns: list[int], shrink: int, widest: int) -> tuple[Scale, Scale]:
    """Return the pixel of each edge: equal steps for single positions, else in proportion to the
    spans, with a least width.
    """
    if all(high - low == 1 for edges in (rows, columns) for low, high in pairwise(edges)):
        # Labels that fit the page are shown, even if fewer panels then fit side by side.
        width, count = _cell_width(widest), len(columns) - 1
        if width * count > WIDTH - 50:
            width = max((WIDTH / min(shrink, 2) - 50) / count, 7)
        return _even(columns, width), _even(rows, _ROW if len(rows) < 40 else 14)
    across, down = columns[-1] - columns[0], rows[-1] - rows[0]
    side = (430, 430, 240, 220, 200)[shrink]
    ratio = min(max(down / across, 0.2), 1.6)
    wide, high = (side, side * ratio) if ratio <= 1 else (side / ratio, side)
    # Few rows have room for labels; columns stay close to their share.
    least = 9 if len(rows) > 32 else 14
    return _in_proportion(columns, wide, 9), _in_proportion(rows, max(high, 40), least)


def _cell_width(letters: int) -> float:
    """Return the width in pixels of a single position whose label has `letters` letters."""
    return min(max(mono_width("0" * letters, _LABEL) + 8, 22), 160)


def columns_for(letters: int) -> int:
    """Return how many single positions with labels of `letters` letters fit side by side.

    >>> columns_for(1), columns_for(15)
    (42, 8)
    """
    return int((WIDTH - 50) / _cell_width(letters))


def _even(edges: list[int], step: float) -> Scale:
    return {edge: k * step for k, edge in enumerate(edges)}


def _in_proportion(edges: list[int], size: float, least: float) -> Scale:
    places, x = {edges[0]: 0.0}, 0.0
    for low, high in pairwise(edges):
        x += max(size * (high - low) / (edges[-1] - edges[0]), least)
        places[high] = x
    return places


def _axis_names(panel: Panel, left: float, top: float) -> str:
    names = []
    if panel.columns.name:
        names.append(tag("text", escape(f"{panel.columns.name} →"), x=left, y=top - 17))
    if panel.rows.name:
        text, turn = escape(f"← {panel.rows.name}"), f"rotate(-90 8 {top + 2:g})"
        names.append(tag("text", text, x=8, y=top + 2, transform=turn, text_anchor="end"))
    return tag("g", "".join(names), class_="ticks")


def _boxes(
    panel: Panel, xs: Scale, ys: Scale, left: float, top: float
) -> tuple[str, str, str, tuple[bool, bool]]:
    """Return the cells, the plates behind labels (which hide lines), the labels that fit, and
    whether a cell of one position has a label, and a larger one.
    """
    rects, plates, labels, labelled = [], [], [], set[bool]()
    for box in panel.boxes:
        (x, right), (y, low) = (xs[e] for e in box.columns), (ys[e] for e in box.rows)
        hover = tag("title", escape(box.hover))
        size = {"width": right - x, "height": low - y}
        rects.append(tag("rect", hover, class_=box.fill, x=left + x, y=top + y, **size))
        if box.share:
            part = {"x": left + right - (right - x) * box.share, "width": (right - x) * box.share}
            rects.append(tag("rect", hover, class_="pad", **{**size, **part, "y": top + y}))
        wide = mono_width(box.label, _LABEL)
        if box.label and right - x >= wide + 3 and low - y >= 13:
            centre = {"x": left + (x + right) / 2, "y": top + (y + low) / 2}
            labels.append(tag("text", escape(box.label), **centre))
            labelled.add(box.is_single)
            if not box.is_single:
                at = {"x": centre["x"] - wide / 2 - 1, "y": centre["y"] - 6}
                plates.append(tag("rect", class_=box.fill, width=wide + 2, height=12, **at))
    groups = (("cells", rects), ("plates", plates), ("labels", labels))
    cells, under, over = (tag("g", "".join(parts), class_=name) for name, parts in groups)
    return cells, under, over, (True in labelled, False in labelled)


def _mark(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> str:
    """Return the ring around the marked position: around its label, or of a fixed size."""
    if panel.marked is None:
        return ""
    row, column = panel.marked
    x, right = (left + place(xs, edge) for edge in (column, column + 1))
    y, low = (top + place(ys, edge) for edge in (row, row + 1))
    wide, high = max(right - x, _RING), max(low - y, _RING)
    size = {"x": (x + right - wide) / 2, "y": (y + low - high) / 2, "width": wide, "height": high}
    rings = (tag("rect", class_=name, rx=4, **size) for name in ("around", "inner"))
    return tag("g", "".join(rings), class_="marked")


def _lines(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> str:
    """Return the frame, and lines at multiples of the axes' steps, heaviest for the first step."""
    x0, x1, y0, y1 = left, left + max(xs.values()), top, top + max(ys.values())
    paths = {2: [f"M{x0:g} {y0:g}H{x1:g}V{y1:g}H{x0:g}z"], 1: []}
    for edge, weight in _line_edges(xs, panel.columns.steps):
        paths[weight].append(f"M{left + place(xs, edge):.1f} {y0:g}V{y1:g}")
    for edge, weight in _line_edges(ys, panel.rows.steps):
        paths[weight].append(f"M{x0:g} {top + place(ys, edge):.1f}H{x1:g}")
    shifted = [{edge: at + by for edge, at in s.items()} for s, by in ((xs, left), (ys, top))]
    paths[2] += _block_edges(panel, *shifted)
    borders = list(_inner_borders(panel, xs, ys, left, top))
    # A red line between two lines in the paper's colour is visible on any fill.
    lines = [("around", borders), ("inner", borders)]
    lines += [(f"line{weight}", found) for weight, found in sorted(paths.items())]
    return "".join(tag("path", class_=name, d="".join(found)) for name, found in lines if found)


def _block_edges(panel: Panel, xs: Scale, ys: Scale) -> Iterator[str]:
    """Yield lines between neighbouring boxes of different outer blocks."""
    if panel.block is None:
        return
    lefts, tops = (defaultdict[int, list[Box]](list) for _ in range(2))
    for box in panel.boxes:
        lefts[box.columns[0]].append(box)
        tops[box.rows[0]].append(box)
    for box in panel.boxes:
        number = panel.block(box)[0]
        for beside in lefts[box.columns[1]]:
            low, high = _shared(box.rows, beside.rows)
            if low < high and panel.block(beside)[0] != number:
                yield f"M{xs[box.columns[1]]:g} {ys[low]:g}V{ys[high]:g}"
        for below in tops[box.rows[1]]:
            low, high = _shared(box.columns, below.columns)
            if low < high and panel.block(below)[0] != number:
                yield f"M{xs[low]:g} {ys[box.rows[1]]:g}H{xs[high]:g}"


def _shared(a: Span, b: Span) -> Span:
    return max(a[0], b[0]), min(a[1], b[1])


def _inner_borders(panel: Panel, xs: Scale, ys: Scale, left: float, top: float) -> Iterator[str]:
    """Yield a border inside each inner block, or inside its boxes if they form no rectangle."""
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
    """Yield positions and weights of lines; steps that would give too many lines are left out."""
    first, end = min(scale), max(scale)
    drawn: set[int] = set()
    for k, step in enumerate(steps):
        if (end - first) // step <= _MOST_LINES:
            edges = set(range(-(-(first + 1) // step) * step, end, step)) - drawn
            drawn |= edges
            yield from ((edge, 1 if k or len(steps) == 1 else 2) for edge in sorted(edges))
