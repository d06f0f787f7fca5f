"""Draws a relayout: ribbons from the cores that hold bytes to the cores that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Ints
from gridlayout.draw.letters import mono_width
from gridlayout.draw.logical import in_words, short, tensor_text
from gridlayout.draw.panels import Picture, figure
from gridlayout.draw.points import core_text, number
from gridlayout.errors import LayoutError
from gridlayout.palette import HUES
from gridlayout.svg import Drawing, escape, tag

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

MAX_NODES = HUES  # bars on each side, one colour each; more are drawn in groups
_COLOURS = "A ribbon has the colour of the bar that it leaves, and is as wide as it has bytes."
_LONG, _BAR = 220, 14  # pixels: length of a ribbon, width of the bars at its ends


@dataclass(frozen=True, eq=False)
class Bars:
    """The bars on one side of the drawing. count: the number of members; name: of a member."""

    count: int
    name: Callable[[int], str]

    @property
    def group(self) -> int:
        """The number of members per bar."""
        return -(-self.count // MAX_NODES)

    def text(self, bar: int) -> str:
        """Return the text beside a bar."""
        first, last = bar * self.group, min((bar + 1) * self.group, self.count) - 1
        return self.name(first) if first == last else f"{self.name(first)} ... {self.name(last)}"


def draw_flows(layout: Layout, *, to: Layout | None = None) -> Drawing:
    """Draw the bytes that a relayout moves from core to core.

    to: the target layout, of the same shape and element type. Raises `LayoutError` without one.
    """
    wanted = (layout.shape, layout.dtype)
    if to is None or (getattr(to, "shape", None), getattr(to, "dtype", None)) != wanted:
        raise LayoutError(
            f"view 'flows' needs to=, a layout of the shape {layout.shape} and of "
            f"{layout.dtype.name}"
        )
    found = layout.traffic(to)
    before, after = (
        number(list(found.before.T), layout.core_shape),
        number(list(found.after.T), to.core_shape),
    )
    sides = [Bars(x.num_cores, lambda k, x=x: f"core {core_text(x, k)}") for x in (layout, to)]  # type: ignore[misc]
    shape = found.counts.shape
    pairs = (np.broadcast_to(before, shape), np.broadcast_to(after, shape), found.counts)
    return _figure(layout, to, sides, pairs, dtypes.bits(layout.dtype))


def draw_device_flows(layout: Layout, to: Layout, amounts: Ints) -> Drawing:
    """Draw the bytes that a relayout moves between devices. amounts: bytes (from, to).

    >>> from gridlayout import GridLayout
    >>> a, b = (GridLayout((4,), grid=(n,)) for n in (2, 1))
    >>> print(draw_device_flows(a, b, np.array([[8, 0], [8, 0]])).description[-37:])
    8 B change place, 8 B stay in theirs.
    """
    before, after = np.nonzero(amounts)
    side = Bars(len(amounts), lambda k: f"device {k}")
    pairs = (before, after, amounts[before, after])
    return _figure(layout, to, [side, side], pairs, bits=8)


def _figure(
    layout: Layout, to: Layout, sides: Sequence[Bars], pairs: tuple[Ints, Ints, Ints], bits: int
) -> Drawing:
    """Draw (from, to, amount) between members of the two sides, given by number.

    bits: those of one unit of the amounts.
    """
    before, after, amounts = pairs
    stays = int(amounts[before == after].sum())
    moved = int(amounts.sum()) - stays
    moving, staying = _bytes_text(moved, bits), _bytes_text(stays, bits)
    return figure(
        f"{tensor_text(layout)}: {moving} move, {staying} stay",
        short(f"{layout!r}  →  {to!r}"),
        f"{in_words(layout)} It moves to {short(repr(to))}: {moving} change place, {staying} stay "
        "in theirs.",
        [_ribbons(sides[0], sides[1], pairs, bits)] if len(amounts) else [],
        [("stay", "stays where it is")] if stays else [],
        [_COLOURS if moved else ""] if len(amounts) else ["There are no elements to move."],
    )


def _bytes_text(amount: int, bits: int) -> str:
    whole, rest = divmod(amount * bits, 8)
    return f"{whole + rest / 8:,} B" if rest else f"{whole:,} B"


def _ribbons(source: Bars, target: Bars, pairs: tuple[Ints, Ints, Ints], bits: int) -> Picture:
    """Return the bars of both sides and the ribbons; a ribbon's thickness shows its bytes."""
    before, after, amounts = pairs
    sides = (source, target)
    total, staying = np.zeros((2, *(-(-side.count // side.group) for side in sides)), np.int64)
    cells = (before // source.group, after // target.group)
    np.add.at(total, cells, amounts)
    np.add.at(staying, cells, np.where(before == after, amounts, 0))
    most = max(total.shape)
    unit = (min(max(34 * most, 150), 560) - 8 * most) / max(int(total.sum()), 1)
    sums = [total.sum(axis=1 - side).tolist() for side in (0, 1)]
    tops = [_tops(found, unit) for found in sums]
    starts, ends = (list(top) for top in tops)
    paths = []
    for i, j in np.argwhere(total).tolist():
        stay, move = int(staying[i, j]), int(total[i, j] - staying[i, j])
        for amount, kind, what in (
            (stay, "stay", f"stay in {source.text(i)}"),
            (move, f"c{i}", f"from {source.text(i)} to {target.text(j)}"),
        ):
            if amount:
                hover = tag("title", escape(f"{_bytes_text(amount, bits)} {what}"))
                path = _ribbon(starts[i], ends[j], amount * unit)
                paths.append(tag("path", hover, class_=kind, d=path))
                starts[i], ends[j] = starts[i] + amount * unit, ends[j] + amount * unit
    texts = [
        [f"{side.text(k)}: {_bytes_text(n, bits)}" for k, n in enumerate(found)]
        for side, found in zip(sides, sums, strict=True)
    ]
    left, right = (max(mono_width(text, 11) for text in side) + _BAR + 8 for side in texts)
    bars = "".join(
        _bar(text, y, max(n * unit, 2), f"c{k}" if side == 0 else "bar", side)
        for side in (0, 1)
        for k, (text, y, n) in enumerate(zip(texts[side], tops[side], sums[side], strict=True))
    )
    body = tag("g", "".join(paths), class_="flows") + tag("g", bars, class_="bars")
    height = max(
        top + max(n * unit, 14)
        for side in (0, 1)
        for top, n in zip(tops[side], sums[side], strict=True)
    )
    moved = tag("g", body, transform=f"translate({left:g} 0)")
    return Picture(left + _LONG + right, height, moved)


def _bar(text: str, y: float, height: float, fill: str, side: int) -> str:
    """Return a bar and its text, left of the ribbons (side 0) or right of them."""
    x, beside, anchor = (_LONG, _LONG + _BAR + 6, "start") if side else (-_BAR, -_BAR - 6, "end")
    hover = tag("title", escape(text))
    return tag("rect", hover, class_=fill, x=x, y=y, width=_BAR, height=height) + tag(
        "text", escape(text), x=beside, y=y + height / 2 + 4, text_anchor=anchor
    )


def _tops(totals: Sequence[int], unit: float) -> list[float]:
    """Return the top of each bar; a bar without bytes has room for its text."""
    tops, y = [], 4.0
    for total in totals:
        tops.append(y)
        y += max(int(total) * unit + 8, 14)
    return tops


def _ribbon(y0: float, y1: float, thick: float) -> str:
    """Return the path of a curved band from a left bar to a right one."""
    middle = _LONG / 2
    there = f"M0 {y0:.1f}C{middle:g} {y0:.1f} {middle:g} {y1:.1f} {_LONG} {y1:.1f}"
    y0, y1 = y0 + thick, y1 + thick
    back = f"V{y1:.1f}C{middle:g} {y1:.1f} {middle:g} {y0:.1f} 0 {y0:.1f}z"
    return there + back
