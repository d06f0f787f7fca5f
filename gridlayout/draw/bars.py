"""Bar charts that compare several items: one panel per measure, with one bar per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gridlayout.draw.letters import mono_width, text_width
from gridlayout.draw.panels import Picture, figure
from gridlayout.palette import HUES
from gridlayout.svg import Drawing, escape, tag

_LENGTH, _ROW, _HIGH = 190, 20, 13  # pixels of the longest bar, of a row, of a bar
_LABEL = 11


class Measure(NamedTuple):
    """One measure of several items. words: each number as text; numbers may be None."""

    caption: str
    numbers: Sequence[float | None]
    words: Sequence[str]


def bars(
    title: str,
    subtitle: str,
    names: Sequence[str],
    measures: Sequence[Measure],
    notes: Sequence[str] = (),
) -> Drawing:
    """Draw one panel per measure, with one bar per name; the largest number has the full length.

    If there are more names than colours, the colours repeat.

    >>> drawing = bars("Two", "", ["a", "b"], [Measure("bytes", [2, 1], ["2 B", "1 B"])])
    >>> drawing.description
    'bytes: a 2 B, b 1 B.'
    """
    texts = [
        f"{measure.caption}: "
        + ", ".join(f"{name} {word}" for name, word in zip(names, measure.words, strict=True))
        for measure in measures
    ]
    panels = [_panel(names, measure) for measure in measures]
    wide = max((panel.width for panel in panels), default=0)  # aligns the panels in columns
    panels = [replace(panel, width=wide) for panel in panels]
    return figure(title, subtitle, f"{'; '.join(texts)}.", panels, notes=notes)


def _panel(names: Sequence[str], measure: Measure) -> Picture:
    left = max((mono_width(name, _LABEL) for name in names), default=0) + 10
    most = max((n for n in measure.numbers if n is not None), default=0)
    rects, words = [], [tag("text", escape(measure.caption), class_="sub", x=0, y=11)]
    right = text_width(measure.caption, 12, bold=True)
    for k, (name, number, word) in enumerate(
        zip(names, measure.numbers, measure.words, strict=True)
    ):
        y, length = 24 + k * _ROW, 0.0
        if number is not None:
            length = max(_LENGTH * number / most, 1.5) if most else 1.5
            hover = tag("title", escape(f"{name}: {word}"))
            size = {"x": left, "y": y, "width": length, "height": _HIGH}
            rects.append(tag("rect", hover, class_=f"c{k % HUES}", **size))
        words.append(tag("text", escape(name), x=0, y=y + 11))
        at = left + length + 7
        words.append(tag("text", escape(word), x=at, y=y + 11))
        right = max(right, at + mono_width(word, _LABEL))
    body = tag("g", "".join(rects), class_="bars") + "".join(words)
    return Picture(right, 24 + len(names) * _ROW, body)
