"""The pictures of the README and of the site's pages: `python docs/pictures.py` writes them all.

Those of the README are two files each, light and dark: a page that GitHub shows follows its own
theme, not the system's. Those of a page, static/<page>-<name>.svg, are drawn by the last line of
the `python` block above them, and the gallery's by `gridlayout.gallery`, whose page is written too.
So what shows Markdown shows them; the site puts them into its pages, where cells have hover texts.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import groupby
from math import log
from pathlib import Path
from typing import Any

import gridlayout as gl
from gridlayout.gallery import entries
from gridlayout.palette import fixed
from gridlayout.svg import drawing, escape, tag

HERE = Path(__file__).parent
MEASURED = HERE.parent / "benchmarks" / "measured.json"
LONG = HERE.parent / "benchmarks" / "long.json"
# A `python` block, and the picture right below it.
_BLOCK = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n!\[[^\n]*\]\(static/([\w-]+\.svg)\)$)?", re.M | re.S
)
PAGES = ("tutorial", "explorer")
# Of the plot of ratios, in pixels.
_LEFT, _WIDTH, _ROW, _TOP = 290, 420, 22, 64
_TICKS = (0.125, 0.25, 0.5, 1, 2, 4)
# Of the plots of a long run, in pixels.
_AT, _PLOT, _HIGH, _APART = 70, 560, 110, 160


def measured() -> dict[str, Any]:
    """The stored run: when, where, and the ratios; smaller is faster."""
    found: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return found


def grid() -> str:
    """The shard of each core in a tile, with its padding."""
    layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    return layout.draw("physical").svg


def _x(ratio: float) -> float:
    low, high = log(_TICKS[0]), log(_TICKS[-1])
    return _LEFT + _WIDTH * (log(ratio) - low) / (high - low)


def _axis(bottom: float) -> Iterator[str]:
    for tick in _TICKS:
        kind = "line2" if tick == 1 else "line1"
        yield tag("path", d=f"M{_x(tick):.1f} {_TOP - 12}V{bottom:.0f}", class_=kind)
        words = "as fast" if tick == 1 else f"{tick:g}x"
        label = tag("text", words, x=_x(tick), y=_TOP - 18)
        yield tag("g", label, class_="ticks middle")


def _row(row: dict[str, Any], y: float) -> Iterator[str]:
    ratio = row["ratio"]
    start, end = sorted((_x(1), _x(ratio)))
    yield tag("rect", x=start, y=y - 6, width=max(end - start, 1), height=12, class_="c6")
    if "least" in row:
        yield tag("path", d=f"M{_x(row['least']):.1f} {y}H{_x(row['most']):.1f}", class_="line2")
    yield tag("text", escape(row["what"]), x=18, y=y + 4)
    number = tag("text", f"{ratio:.2f}x", x=_LEFT + _WIDTH + 52, y=y)
    yield tag("g", number, class_="right")


def _groups(found: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of the picture of speed, whole steps first, under the words of their group."""
    means = "in the geometric mean; lines from the least to the most"
    yield f"whole steps against GSPMD, {means}", found["steps"]
    for against, rows in groupby(found["ratios"], lambda row: row["against"]):
        yield f"single measurements against {against}", list(rows)


def speed() -> str:
    """Each ratio as a bar from 1, as long as what this library does, grouped by what it is of."""
    found = measured()
    body, y, shown = [], float(_TOP), []
    for words, rows in _groups(found):
        body.append(tag("text", escape(words), x=18, y=y + 4, class_="sub"))
        shown.append(words)
        y += _ROW
        for row in rows:
            body += _row(row, y)
            shown.append(f"{row['what']}: {row['ratio']:.2f}x")
            y += _ROW
        y += _ROW / 2
    title = "Time taken, in that of others: bars to the left are faster"
    head = tag("text", title, x=18, y=24, class_="head")
    when = f"whole steps {found['steps_when']}, the rest {found['when']}; {found['where']}"
    note = tag("text", escape(when), x=18, y=y + 4, class_="note")
    axis = list(_axis(y - _ROW))
    return drawing(
        *(title, "; ".join(shown), _LEFT + _WIDTH + 70, y + 20),
        "".join([_PAPER, head, *axis, *body, note]),
    ).svg


def _curve(
    values: list[tuple[float, float]], most: tuple[float, float], low: float, hue: str
) -> str:
    """A line through (x, y), each from 0 to `most`; low: where y is 0."""
    points = (f"{_AT + _PLOT * x / most[0]:.1f} {low - _HIGH * y / most[1]:.1f}" for x, y in values)
    return tag(
        "path", d=f"M{'L'.join(points)}", fill="none", stroke=f"var(--{hue})", stroke_width=2
    )


def _plot(top: float, caption: str, unit: str, lines: dict[str, tuple[str, list[Any]]]) -> str:
    """One plot of a long run: lines by name, each with its colour and its points."""
    last = max(x for _, points in lines.values() for x, _ in points)
    most, low = max(y for _, points in lines.values() for _, y in points), top + _HIGH + 22
    found = [tag("text", escape(caption), x=_AT, y=top + 8, class_="sub")]
    found.append(tag("path", d=f"M{_AT} {low}h{_PLOT}", class_="line2"))
    for value, y in ((most, low - _HIGH), (0, low)):
        found.append(
            tag("g", tag("text", f"{value:.3g} {unit}", x=_AT - 8, y=y + 4), class_="right")
        )
    ends = tag("text", f"{last:.0f} min", x=_AT + _PLOT, y=low + 15)
    found.append(tag("g", ends, class_="ticks middle"))
    for name, (hue, points) in lines.items():
        found.append(_curve(points, (last, most), low, hue))
        y = low - _HIGH * points[-1][1] / most
        found.append(tag("text", escape(name), x=_AT + _PLOT + 8, y=y + 4))
    return "".join(found)


def long() -> str:
    """A long run: its memory, the time of each step, and the loss."""
    found = json.loads(LONG.read_text("utf-8"))
    run = [dict(zip(found["columns"], row, strict=True)) for row in found["run"]]

    def points(name: str, scale: float = 1) -> list[tuple[float, float]]:
        return [(row["at"], row[name] / scale) for row in run]

    losses = [(row["at"], float.fromhex(row["loss"])) for row in run]
    title = "A long training: each step has new shapes and layouts"
    plots = (
        _plot(
            *(50, "Memory of the process, and what the caches hold by their own estimate", "MiB"),
            {"process": ("c6", points("rss", 2**20)), "caches": ("c5", points("cached", 2**20))},
        ),
        _plot(
            *(50 + _APART, "CPU time of a step, compilations included", "s"),
            {"step": ("c6", points("seconds"))},
        ),
        _plot(50 + 2 * _APART, "Loss of the batch", "", {"loss": ("c6", losses)}),
    )
    head = tag("text", title, x=18, y=24, class_="head")
    words = f"{found['when']}; {found['where']}; {found['steps']} steps"
    y = 50 + 3 * _APART
    note = tag("text", escape(words), x=18, y=y + 4, class_="note")
    text = f"{words}. Process: {run[-1]['rss'] >> 20} MiB at the end."
    return drawing(title, text, _AT + _PLOT + 80, y + 20, "".join([_PAPER, head, *plots, note])).svg


_PAPER = tag("rect", class_="paper", width="100%", height="100%")


def value_of(program: str, scope: dict[str, Any]) -> Any:
    """Run a program, and return the value of its last line."""
    *before, last = ast.parse(program).body
    assert isinstance(last, ast.Expr), ast.unparse(last)
    exec(compile(ast.Module(before, []), "<page>", "exec"), scope)
    return eval(compile(ast.Expression(last.value), "<page>", "eval"), scope)


def of_page(text: str) -> dict[str, str]:
    """The pictures of a page, by file: its blocks run one after another up to the last picture."""
    found, scope = dict[str, str](), dict[str, Any]()
    blocks = _BLOCK.findall(text)
    last = max(k for k, (_, file) in enumerate(blocks) if file)
    with redirect_stdout(StringIO()):
        for program, file in blocks[: last + 1]:
            if file:
                found[f"static/{file}"] = value_of(program, scope).svg
            else:
                exec(compile(program, "<page>", "exec"), scope)
    return found


_GALLERY = """# Gallery

<!-- Written by docs/pictures.py. -->

Layouts of every system, built and drawn by this library. They follow the figures of the
documents that describe the systems. On the site, and on the one page that
`python -m gridlayout gallery OUT.html` writes, hover over a cell to see its element.
"""


def gallery() -> dict[str, str]:
    """The gallery's page and its pictures, by file."""
    found, lines = dict[str, str](), [_GALLERY]
    for document, figures in groupby(entries(), key=lambda entry: entry.document):
        lines.append(f"## {document}\n")
        for figure in figures:
            file = f"static/gallery-{figure.name}.svg"
            found[file] = figure.drawing.svg
            words = re.sub(r"[\[\]]", r"\\\g<0>", figure.drawing.description)
            lines.append(f"**{figure.section}.** {figure.caption}\n\n![{words}]({file})\n")
    return {"gallery.md": "\n".join(lines), **found}


def written() -> dict[str, str]:
    """What this script writes, by its path from this folder."""
    found = {}
    for name, svg in (("grid", grid()), ("speed", speed()), ("long", long())):
        for theme in ("light", "dark"):
            found[f"static/{name}-{theme}.svg"] = fixed(svg, theme == "dark")
    for page in PAGES:
        found |= of_page((HERE / f"{page}.md").read_text("utf-8"))
    return found | gallery()


if __name__ == "__main__":
    gl.emulate_devices(8)
    for file, text in written().items():
        (HERE / file).write_text(text, encoding="utf-8")
