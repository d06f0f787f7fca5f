"""Draws a chart with parts, as SVG with all parts, and as HTML in which parts can be folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from gridlayout.draw.cards import Chart
from gridlayout.draw.letters import text_width
from gridlayout.draw.panels import Picture, figure
from gridlayout.palette import style
from gridlayout.svg import Drawing, escape, hatches, tag

_CAPTION = 24  # height of a part's title in pixels
_FONT = "font: 13px/1.5 system-ui, sans-serif"


def folded(
    title: str,
    subtitle: str,
    description: str,
    chart: Chart,
    legend: Sequence[tuple[str, str]],
    notes: Sequence[str] = (),
) -> Drawing:
    """Draw a chart. legend: (fill, text) of all possible fills; those that occur are shown."""
    seen = chart.fills
    drawn = [entry for entry in legend if entry[0] in seen]
    charts = [each for part in chart.parts for each in _all(part)]
    pictures = [chart.picture, *map(_captioned, charts)]
    flat = figure(title, subtitle, description, pictures, drawn, notes)
    return replace(flat, html=_html(title, subtitle, description, chart, drawn, notes))


def _all(chart: Chart) -> Iterator[Chart]:
    yield chart
    for part in chart.parts:
        yield from _all(part)


def _captioned(chart: Chart) -> Picture:
    """Return the cards of a part under its title."""
    found = chart.picture
    caption = tag("text", escape(chart.title), x=0, y=12, class_="sub")
    moved = tag("g", found.body, transform=f"translate(0 {_CAPTION})")
    width = max(found.width, text_width(chart.title, 12, bold=True))
    return Picture(width, found.height + _CAPTION, caption + moved)


# -- HTML ------------------------------------------------------------------------------------------


def _html(
    title: str,
    subtitle: str,
    description: str,
    chart: Chart,
    legend: Sequence[tuple[str, str]],
    notes: Sequence[str],
) -> str:
    """Return one HTML element of the available width, with its style under its own id."""
    parts = "".join(map(_part, chart.parts))
    words = tag("p", tag("b", escape(title)), style="margin: 0") + "".join(
        tag("p", escape(text), style="margin: 0.2em 0") for text in (subtitle, *notes) if text
    )
    swatches = "".join(_swatch(*entry) for entry in legend)
    body = words + tag("p", swatches, style="margin: 0.4em 0 0.8em") if swatches else words
    body += _scrolled(chart, description) + parts
    name = "gl" + sha256(body.encode()).hexdigest()[:10]
    defs = tag("svg", hatches(name), width=0, height=0, aria_hidden="true", style=_ASIDE)
    page = f"color: var(--ink); padding: 0.8em; {_FONT}"
    return tag("div", style(name) + defs + body, id=name, class_="gl-chart", style=page)


_ASIDE = "position: absolute"


def _part(chart: Chart) -> str:
    """Return a part as an element that can be opened and closed."""
    head = tag("summary", escape(chart.title), style="cursor: pointer; padding: 0.2em 0")
    body = _scrolled(chart, chart.title) + "".join(map(_part, chart.parts))
    inside = tag("div", body, style="padding-left: 1em; border-left: 2px solid var(--hatch)")
    return tag("details", head + inside)


def _scrolled(chart: Chart, words: str) -> str:
    """Return the cards of a chart; they scroll sideways if they are wider than the page."""
    picture = chart.picture
    svg = tag(
        "svg",
        tag("rect", class_="paper", width=picture.width, height=picture.height) + picture.body,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=words,
        viewBox=f"0 0 {picture.width:.1f} {picture.height:.1f}",
        width=picture.width,
        height=picture.height,
        style="display: block; max-width: none; flex: none",
    )
    return tag("div", svg, style="overflow-x: auto; margin: 0.4em 0", tabindex=0)


def _swatch(fill: str, text: str) -> str:
    square = tag("rect", class_=f"swatch {fill}", x=0.5, y=0.5, width=13, height=13, rx=2)
    icon = tag("svg", square, width=14, height=14, style="vertical-align: -2px; flex: none")
    apart = "display: inline-block; margin-right: 1.2em"
    return tag("span", f"{icon} {escape(text)}", style=apart)
