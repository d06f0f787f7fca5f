"""Draws a graph: one card per step, with lines from its results to their consumers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gridlayout.draw.layered import Link, Placed, placed
from gridlayout.draw.letters import lines_of, mono_lines, mono_width, text_width
from gridlayout.draw.panels import Picture
from gridlayout.svg import escape, tag

SENT = "c1"  # the fill of received data
_LETTER, _HEAD = 11, 12  # font sizes in pixels
_LINE, _INSIDE = 15.0, 10.0  # pixels: height of a line, and space beside text
_MOST = 230.0  # most pixels of a line of text
_BAR = 7.0  # height of the padding bar in pixels
_TIP = "l-3.5 -7h7z"


@dataclass(frozen=True)
class Cell:
    """A result on the card of its step, where its lines begin. share: of padding, 0 to 1."""

    lines: tuple[str, ...]
    share: float = 0.0
    hover: str = ""


@dataclass(frozen=True)
class Card:
    """A step. head: its name, on `fill`. lines: details. sent: data that devices receive for it.
    cells: its results.
    """

    head: str
    fill: str
    lines: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    hover: str = ""


@dataclass(frozen=True)
class Chart:
    """Cards in topological order, and lines (card, cell, consuming card).

    parts: charts that some cards represent; each is drawn separately, under its title.
    """

    title: str
    cards: tuple[Card, ...]
    lines: tuple[tuple[int, int, int], ...]
    parts: tuple[Chart, ...] = ()

    @cached_property
    def picture(self) -> Picture:
        """The cards and lines, without the parts."""
        return _picture(self)

    @property
    def fills(self) -> set[str]:
        """All fills that are drawn, including those of the parts."""
        own = {card.fill for card in self.cards} | {SENT for card in self.cards if card.sent}
        if any(cell.share for card in self.cards for cell in card.cells):
            own.add("pad")
        return own.union(*(part.fills for part in self.parts))


def _picture(chart: Chart) -> Picture:
    shapes = [_Shape.of(card) for card in chart.cards]
    links = [Link(a, b, shapes[a].port(cell)) for a, cell, b in chart.lines]
    found = placed([(shape.width, shape.height) for shape in shapes], links)
    body = [_lines(found)]
    for shape, x, y in zip(shapes, found.xs, found.ys, strict=True):
        left = x - shape.width / 2
        body.append(tag("g", shape.body(), transform=f"translate({left:.1f} {y:.1f})"))
    moved = tag("g", "".join(body), class_="cards", transform="translate(1 1)")
    return Picture(found.width + 2, found.height + 2, moved)


def _lines(found: Placed) -> str:
    path = tag("path", d="".join(found.lines), class_="line1") if found.lines else ""
    tips = "".join(f"M{x:.1f} {y:.1f}{_TIP}" for x, y in found.ends)
    return path + (tag("path", d=tips, class_="bar") if tips else "")


@dataclass(frozen=True)
class _Shape:
    """A card with wrapped texts, and the widths of its cells and of the card, in pixels."""

    card: Card
    head: tuple[str, ...]
    lines: tuple[str, ...]
    sent: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]
    width: float

    @classmethod
    def of(cls, card: Card) -> _Shape:
        head = tuple(lines_of(card.head, _MOST, _HEAD, bold=True))
        lines, sent = (_wrapped(some) for some in (card.lines, card.sent))
        cells = tuple(_wrapped(cell.lines) for cell in card.cells)
        widths = [_width(some) + 2 * _INSIDE for some in cells]
        own = max((text_width(line, _HEAD, bold=True) for line in head), default=0.0)
        width = max(own + 2 * _INSIDE, _width((*lines, *sent)) + 2 * _INSIDE, sum(widths), 60.0)
        more = (width - sum(widths)) / max(len(widths), 1)
        return cls(card, head, lines, sent, cells, tuple(w + more for w in widths), width)

    @cached_property
    def _heights(self) -> tuple[float, float, float]:
        """The heights of the head, the received data and the results, in pixels."""
        top = len(self.head + self.lines) * _LINE + 8
        middle = len(self.sent) * _LINE + 6 if self.sent else 0.0
        rows = max(map(len, self.cells), default=0)
        bar = _BAR if any(cell.share for cell in self.card.cells) else 0.0
        return top, middle, rows * _LINE + 6 + bar if self.cells else 0.0

    @property
    def height(self) -> float:
        """The height of the card in pixels."""
        return sum(self._heights)

    def port(self, cell: int) -> float:
        """Return the distance in pixels from the card's middle to the start of a cell's lines."""
        if not self.cells:
            return 0.0
        return round(sum(self.widths[:cell]) + self.widths[cell] / 2 - self.width / 2, 2)

    def body(self) -> str:
        """Return the card as SVG, its corner at (0, 0)."""
        top, middle, _ = self._heights
        parts = [tag("title", escape(self.card.hover))] if self.card.hover else []
        parts.append(_plate(self.card.fill, 0, 0, self.width, top))
        texts = [
            _text(line, self.width / 2, 4 + (k + 0.5) * _LINE, "sub")
            for k, line in enumerate(self.head)
        ]
        below = 4 + len(self.head) * _LINE
        texts += _column(self.lines, self.width / 2, below)
        if self.sent:
            parts.append(_plate(SENT, 0, top, self.width, middle))
            texts += _column(self.sent, self.width / 2, top + 3)
        x, y = 0.0, top + middle
        for cell, lines, width in zip(self.card.cells, self.cells, self.widths, strict=True):
            parts.append(self._cell(cell, x, y, width))
            texts += _column(lines, x + width / 2, y + 3)
            x += width
        frame = tag("rect", class_="frame", width=self.width, height=self.height)
        return "".join(parts) + frame + tag("g", "".join(texts), class_="labels")

    def _cell(self, cell: Cell, x: float, y: float, width: float) -> str:
        height = self._heights[2]
        hover = tag("title", escape(cell.hover)) if cell.hover else ""
        plate = _plate("paper", x, y, width, height)
        if cell.share:
            at = y + height - _BAR
            plate += _plate("paper", x, at, width, _BAR)
            plate += _plate("pad", x, at, max(width * cell.share, 1.0), _BAR)
        return tag("g", hover + plate)


def _plate(fill: str, x: float, y: float, width: float, height: float) -> str:
    return tag("rect", class_=f"{fill} plate", x=x, y=y, width=width, height=height)


def _text(text: str, x: float, y: float, class_: str = "") -> str:
    named = {"class_": class_} if class_ else {}
    return tag("text", escape(text), x=x, y=y, **named)


def _column(lines: Sequence[str], x: float, y: float) -> list[str]:
    return [_text(line, x, y + (k + 0.5) * _LINE) for k, line in enumerate(lines)]


def _width(lines: Sequence[str]) -> float:
    return max((mono_width(line, _LETTER) for line in lines), default=0.0)


def _wrapped(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts, wrapped to lines of at most `_MOST` pixels."""
    return tuple(line for text in texts for line in mono_lines(text, _MOST, _LETTER))
