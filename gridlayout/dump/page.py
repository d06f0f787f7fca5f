"""Pages: an explanation as HTML that needs no other file, in light and dark, sorted by a click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from gridlayout.dump import table
from gridlayout.dump.words import plain
from gridlayout.layouts.memory import number

if TYPE_CHECKING:
    from gridlayout.dump.explanation import Explanation

STYLE = """
.gl-dump { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
.gl-dump table { border-collapse: collapse; margin: 0.5em 0 1.5em; display: block;
  overflow-x: auto; }
.gl-dump p, .gl-dump pre { overflow-wrap: anywhere; white-space: pre-wrap; }
.gl-dump th, .gl-dump td { padding: 0.25em 0.7em; text-align: left; white-space: nowrap;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.gl-dump th { cursor: pointer; user-select: none; }
.gl-dump th[aria-sort=ascending]::after { content: " ▲"; }
.gl-dump th[aria-sort=descending]::after { content: " ▼"; }
.gl-dump td { font-family: ui-monospace, monospace; }
.gl-dump .number { text-align: right; font-variant-numeric: tabular-nums; }
.gl-dump .share { background: linear-gradient(90deg, rgb(220 60 50 / 0.45) var(--share),
  transparent var(--share)); }
.gl-dump .over { color: light-dark(#b00020, #ff7a70); font-weight: 600; }
"""
# A cell's number is in data-n: text such as "1.5 KiB" sorts wrongly.
_SCRIPT = """
for (const head of document.querySelectorAll(".gl-dump th")) {
  const sort = () => {
    const body = head.closest("table").tBodies[0], k = head.cellIndex;
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[k].dataset.n ?? row.cells[k].textContent;
    const order = (a, b) => key(a).localeCompare(key(b), undefined, { numeric: true });
    body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
  };
  head.tabIndex = 0;
  head.onclick = sort;
  head.onkeydown = (event) => { if (event.key === "Enter") sort(); };
}
"""
_WORDS = table.LEFT


def page_of(found: Explanation) -> str:
    """A whole page."""
    return whole(f"Layouts of {plain(found.source)}", f"{body_of(found)}<script>{_SCRIPT}</script>")


def whole(title: str, body: str) -> str:
    """A page of HTML that needs nothing else, around a body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def body_of(found: Explanation) -> str:
    """The tables alone, with their style: what a notebook shows."""
    parts = [f"<style>{STYLE}</style>", f"<p>{escape(table.summary_of(found))}</p>"]
    if found.findings:
        parts += ["<h2>Layouts, the worst first</h2>", _findings(found)]
    if found.left_out > 0 and found.findings:
        parts.append(f"<p>And {number(found.left_out, 'value')} of less waste.</p>")
    for title, head, rows in table.sections_of(found):
        parts += [f"<h2>{title.capitalize()}</h2>", html_table(head, rows, _numbers(title, found))]
    if plans := table.plan_rows(found):
        parts += [f"<h2>{table.plan_title(found).capitalize()}</h2>", _plans(found, plans)]
    parts += [f"<pre>{escape(text)}</pre>" for text in table.unknown_lines(found)]
    return f'<div class="gl-dump">{"".join(parts)}</div>\n'


def _numbers(title: str, found: Explanation) -> list[dict[str, float]]:
    """What the cells of a section sort by."""
    if title == "moves":
        return [{"moves": each.moved_bytes or 0, "of": each.data_bytes} for each in found.moves]
    if title == "collectives":
        return [
            {"receives": each.received_bytes, "result": each.result_bytes}
            for each in found.collectives
        ]
    if title == "shardings":
        return [
            {"a device": each.device_bytes, "padding": each.padding_share}
            for each in found.shardings
        ]
    if title == "reshards":
        return [{"receives": each.received_bytes} for each in found.reshards]
    names = ("arguments", "results", "temporary")
    return [
        {"peak": each.nbytes, **{name: getattr(each, name) for name in names}}
        for each in found.peaks
    ]


def _findings(found: Explanation) -> str:
    data = [
        {
            "padding": finding.padding_share,
            "a core": finding.bytes_per_core,
            "in all": finding.nbytes,
            "wasted": finding.wasted_bytes,
            "factor": finding.expansion_factor,
        }
        for finding in found.findings
    ]
    return html_table(table.FINDING_HEAD, table.finding_rows(found), data)


def _plans(found: Explanation, rows: Sequence[Sequence[str]]) -> str:
    data = [
        {
            "a core": new.layout.held.per_core,
            "saves": new.saved_per_core,
            "in all": new.layout.held.nbytes,
            "saves ": new.saved_bytes,
        }
        for new in table.proposals(found)
    ]
    return html_table(table.PLAN_HEAD, rows, data)


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], data: Sequence[Mapping[str, float]]
) -> str:
    """One table. data: of each row the numbers that its cells stand for, by the column's name."""
    names = "".join(
        f'<th scope="col"{_class("" if name in _WORDS else "number")}>{escape(name.strip())}</th>'
        for name in head
    )
    body = "".join(
        f"<tr>{''.join(map(_cell, head, cells, [numbers] * len(head)))}</tr>\n"
        for cells, numbers in zip(rows, data, strict=True)
    )
    return f"<table><thead><tr>{names}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def _cell(name: str, text: str, numbers: Mapping[str, float]) -> str:
    kind = "" if name in _WORDS else "number"
    style, value = "", ""
    if name == "padding":
        kind, style = "number share", f' style="--share: {numbers[name]:.1%}"'
    if text.startswith("NO:"):
        kind = "over"
    if name in numbers:
        value = f' data-n="{numbers[name]:.6f}"'
    return f"<td{_class(kind)}{style}{value}>{escape(text)}</td>"


def framed(parts: Sequence[str]) -> str:
    """Parts of HTML with their style: what a notebook shows."""
    return f'<div class="gl-dump"><style>{STYLE}</style>{"".join(parts)}</div>\n'


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def heading(text: str) -> str:
    """A heading of plain text."""
    return f"<h2>{escape(text)}</h2>"


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """One table of words."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n" for cells in rows
    )
    return f"<table><thead><tr>{names}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
