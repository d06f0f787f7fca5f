"""A relayout, drawn: ribbons from the cores that hold bytes to the cores that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.draw.logical import in_words, short, tensor_text
from gridlayout.draw.palette import HUES
from gridlayout.draw.panels import Picture, figure
from gridlayout.draw.points import core_text, number
from gridlayout.draw.svg import Drawing, escape, tag
from gridlayout.errors import LayoutError
from gridlayout.layout import Layout
from gridlayout.traffic import traffic

Ints = NDArray[np.int64]
MAX_NODES = 16  # bars on a side; more are drawn in groups
_LONG, _BAR = 430, 14  # pixels of a ribbon and of the bars at its ends


@dataclass(frozen=True, eq=False)
class Side:
    """The bars of one side: how many members there are, and what one is called."""

    count: int
    name: Callable[[int], str]

    @property
    def group(self) -> int:
        """Members in a bar."""
        return -(-self.count // MAX_NODES)

    def text(self, bar: int) -> str:
        """What stands beside a bar."""
        first, last = bar * self.group, min((bar + 1) * self.group, self.count) - 1
        return self.name(first) if first == last else f"{self.name(first)} ... {self.name(last)}"


def draw_flows(layout: Layout, *, to: Layout | None = None) -> Drawing:
    """What a relayout moves, core by core: how many bytes each holds that another needs.

    to: the layout to move to, of the same shape. `LayoutError` without one.
    """
    if not isinstance(to, Layout) or to.shape != layout.shape:
        raise LayoutError(f"view 'flows' needs to=, a layout of the shape {layout.shape}")
    found = traffic(layout, to)
    before, after = (
        number(list(found.before.T), layout.core_shape),
        number(list(found.after.T), to.core_shape),
    )
    sides = [Side(x.num_cores, lambda k, x=x: f"core {core_text(x, k)}") for x in (layout, to)]  # type: ignore[misc]
    amounts = found.counts * dtypes.bits(layout.dtype) // 8
    shape = amounts.shape
    pairs = (np.broadcast_to(before, shape), np.broadcast_to(after, shape), amounts)
    return flow_figure(layout, to, sides[0], sides[1], pairs)


def draw_device_flows(layout: Layout, to: Layout, amounts: Ints) -> Drawing:
    """What a relayout moves between devices, numbered as in the matrix `amounts` of bytes.

    >>> from gridlayout import GridLayout
    >>> a, b = (GridLayout((4,), grid=(n,)) for n in (2, 1))
    >>> print(draw_device_flows(a, b, np.array([[8, 0], [8, 0]])).description[-37:])
    8 B change place, 8 B stay in theirs.
    """
    before, after = np.nonzero(amounts)
    side = Side(len(amounts), lambda k: f"device {k}")
    return flow_figure(layout, to, side, side, (before, after, amounts[before, after]))


def flow_figure(
    layout: Layout, to: Layout, source: Side, target: Side, pairs: tuple[Ints, Ints, Ints]
) -> Drawing:
    """The drawing of (from, to, bytes), between members of two sides given by number."""
    before, after, amounts = pairs
    stays = int(amounts[before == after].sum())
    moved = int(amounts.sum()) - stays
    words = f"{moved:,} B change place, {stays:,} B stay in theirs."
    return figure(
        f"{tensor_text(layout)}: {moved:,} B move, {stays:,} B stay",
        short(f"{layout!r}  →  {to!r}"),
        f"{in_words(layout)} It moves to {short(repr(to))}: {words}",
        [_ribbons(source, target, pairs)] if len(amounts) else [],
        [("stay", "stays where it is")] if stays else [],
        [] if len(amounts) else ["There are no elements to move."],
    )


def _ribbons(source: Side, target: Side, pairs: tuple[Ints, Ints, Ints]) -> Picture:
    before, after, amounts = pairs
    bars = (-(-source.count // source.group), -(-target.count // target.group))
    matrix = np.zeros(bars, np.int64)
    staying = np.zeros(bars, np.int64)
    cells = (before // source.group, after // target.group)
    np.add.at(matrix, cells, amounts)
    np.add.at(staying, cells, np.where(before == after, amounts, 0))
    height = min(max(34 * max(bars), 150), 560)
    unit = (height - 8 * max(bars)) / max(int(matrix.sum()), 1)
    tops = [_tops(matrix.sum(axis=1 - side), unit) for side in (0, 1)]
    starts, ends = (list(side) for side in tops)
    paths = []
    for i, j in np.argwhere(matrix).tolist():
        for amount, stay in ((staying[i, j], True), (matrix[i, j] - staying[i, j], False)):
            if not amount:
                continue
            thick = int(amount) * unit
            path = _ribbon(starts[i], ends[j], thick)
            starts[i], ends[j] = starts[i] + thick, ends[j] + thick
            what = "stay" if stay else f"from {source.text(i)} to {target.text(j)}"
            text = f"{int(amount):,} B {what}" + (f" in {source.text(i)}" if stay else "")
            kind = "stay" if stay else f"c{i % HUES}"
            paths.append(tag("path", tag("title", escape(text)), class_=kind, d=path))
    body = [tag("g", "".join(paths), class_="flows")]
    reach = []
    for right, side in enumerate((source, target)):
        x, anchor = (_LONG, "start") if right else (-_BAR, "end")
        for k, total in enumerate(matrix.sum(axis=1 - right).tolist()):
            y, high = tops[right][k], max(total * unit, 2)
            text = f"{side.text(k)}: {total:,} B"
            reach.append(len(text) * 6.7)
            fill = "bar" if right else f"c{k % HUES}"
            hover = tag("title", escape(text))
            body.append(tag("rect", hover, class_=fill, x=x, y=y, width=_BAR, height=high))
            at = {"x": x + _BAR + 6 if right else x - 6, "y": y + high / 2 + 4}
            body.append(tag("text", escape(text), text_anchor=anchor, **at))
    left = max(reach) + _BAR + 8
    moved = tag("g", "".join(body), transform=f"translate({left:g} 0)")
    return Picture(2 * left + _LONG, max(y[-1] for y in tops) + 30, moved)


def _tops(totals: Sequence[int] | Ints, unit: float) -> list[float]:
    """Where each bar begins, one below another; a bar without bytes keeps room for its text."""
    tops, y = [], 4.0
    for total in totals:
        tops.append(y)
        y += max(int(total) * unit + 8, 14)
    return tops


def _ribbon(y0: float, y1: float, thick: float) -> str:
    """A curved band from the left bars to the right ones."""
    middle = _LONG / 2
    there = f"M0 {y0:.1f}C{middle:g} {y0:.1f} {middle:g} {y1:.1f} {_LONG} {y1:.1f}"
    y0, y1 = y0 + thick, y1 + thick
    back = f"V{y1:.1f}C{middle:g} {y1:.1f} {middle:g} {y0:.1f} 0 {y0:.1f}z"
    return there + back
