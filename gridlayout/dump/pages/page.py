"""Pages: an explanation as HTML that needs no other file, in light and dark, sorted by a click."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from gridlayout.dump.pages import table
from gridlayout.dump.pages.words import plain
from gridlayout.layouts.memory import number

if TYPE_CHECKING:
    from gridlayout.dump.explanation import Explanation

# A table of many columns wraps its words; where that is not enough, a row becomes a block of names
# and values. The head stays: its names sort.
STYLE = """
.gl-dump { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif;
  container-type: inline-size; overflow-wrap: anywhere; }
.gl-dump .title { font-size: 1.5em; font-weight: 600; margin: 0.3em 0; }
.gl-dump h2 { font-size: 1.15em; margin: 1.2em 0 0.3em; }
.gl-dump table { border-collapse: collapse; margin: 0.5em 0 1.5em; max-width: 100%; }
.gl-dump th, .gl-dump td { padding: 0.25em 0.6em; text-align: left; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.gl-dump th { cursor: pointer; user-select: none; white-space: nowrap; }
.gl-dump th[aria-sort=ascending]::after { content: " ▲"; }
.gl-dump th[aria-sort=descending]::after { content: " ▼"; }
.gl-dump td { font-family: ui-monospace, monospace; font-size: 13px; }
.gl-dump .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.gl-dump .short { white-space: nowrap; }
.gl-dump .share { background: linear-gradient(90deg, rgb(220 60 50 / 0.45) var(--share),
  transparent var(--share)); }
.gl-dump .over { color: light-dark(#b00020, #ff7a70); font-weight: 600; }
.gl-dump pre { white-space: pre-wrap; }
.gl-dump summary { cursor: pointer; }
.gl-dump dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1em 1em; }
.gl-dump dd { margin: 0; }
@container (max-width: 70em) {
  .gl-dump table.wide, .gl-dump .wide thead, .gl-dump .wide tbody { display: block; }
  .gl-dump .wide thead tr { display: flex; flex-wrap: wrap; }
  .gl-dump .wide tbody tr { display: grid; padding: 0.4em 0;
    grid-template-columns: repeat(auto-fill, minmax(9.5em, 1fr));
    border-bottom: 1px solid color-mix(in srgb, currentColor 30%, transparent); }
  .gl-dump .wide th, .gl-dump .wide td { border: 0; text-align: left; }
  .gl-dump .wide td::before { content: attr(data-name); display: block; opacity: 0.75;
    font: 12px/1.4 system-ui, sans-serif; }
  .gl-dump .wide td.long { grid-column: 1 / -1; }
}
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
_WIDE = 7  # columns; tables of more are wide
# Letters: what is as short is never broken; what is longer has a line of its own in a block.
_SHORT, _LONG = 15, 32


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
    title = f"Layouts of {escape(plain(found.source))}"
    parts = [
        f"<style>{STYLE}</style>",
        f'<div class="title" role="heading" aria-level="1">{title}</div>',
        f"<p>{escape(table.summary_of(found))}</p>",
    ]
    if found.findings:
        parts += ["<h2>Layouts, the worst first</h2>", _findings(found)]
    if found.left_out > 0 and found.findings:
        parts.append(f"<p>And {number(found.left_out, 'value')} of less waste.</p>")
    for title, head, rows in table.sections_of(found):
        parts += [f"<h2>{title.capitalize()}</h2>", html_table(head, rows, _numbers(title, found))]
    if plans := table.plan_rows(found):
        parts += [f"<h2>{table.plan_title(found).capitalize()}</h2>", _plans(found, plans)]
    parts += [f"<pre>{escape(text)}</pre>" for text in table.unknown_lines(found)]
    parts.append(_help(found))
    return f'<div class="gl-dump">{"".join(parts)}</div>\n'


def _help(found: Explanation) -> str:
    """What the columns of all tables mean, folded."""
    heads: list[tuple[str, ...]] = [table.FINDING_HEAD] if found.findings else []
    heads += [head for _, head, _ in table.sections_of(found)]
    heads += [table.PLAN_HEAD] if table.plan_rows(found) else []
    rows = "".join(
        f"<dt><b>{escape(name)}</b></dt><dd>{escape(text)}</dd>"
        for name, text in meanings(name for head in heads for name in head).items()
    )
    if not rows:
        return ""
    more = "<p>Click on a column's name to sort by it.</p>"
    return f"<details><summary>What the columns mean</summary><dl>{rows}</dl>{more}</details>"


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
    return _table(names, body, len(head))


def _cell(name: str, text: str, numbers: Mapping[str, float]) -> str:
    kind = "" if name in _WORDS else "number"
    style, value = "", ""
    if name == "padding":
        kind, style = "number share", f' style="--share: {numbers[name]:.1%}"'
    if text.startswith("NO:"):
        kind = "over"
    if name in numbers:
        value = f' data-n="{numbers[name]:.6f}"'
    if not kind.startswith("number"):
        length = "short" if len(text) <= _SHORT else "long" if len(text) > _LONG else ""
        kind = " ".join(filter(None, (kind, length)))
    named = f' data-name="{escape(name.strip())}"'
    return f"<td{_class(kind)}{style}{value}{named}>{escape(text)}</td>"


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
    named = [f' data-name="{escape(name)}"' for name in head]
    body = "".join(
        f"<tr>{''.join(f'<td{n}>{escape(c)}</td>' for n, c in zip(named, row, strict=True))}</tr>\n"
        for row in rows
    )
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return _table(names, body, len(head))


def _table(names: str, body: str, columns: int) -> str:
    wide = _class("wide" if columns > _WIDE else "")
    return f"<table{wide}><thead><tr>{names}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


COLUMNS = {
    "line": "where the dump first names it",
    "times": "how often it is there, uses too",
    "op": "the operation that makes it",
    "value": "its name in the dump",
    "tensor": "element type and logical shape",
    "grid": "cores along each dim",
    "shard": "a core's buffer: counts of tiles of a size, or elements",
    "padding": "share of the places that hold no element",
    "a core": "bytes on each core",
    "in all": "bytes on all cores",
    "wasted": "bytes in all beyond those of the data",
    "factor": "bytes in all over bytes of data",
    "fits": "what is left of the chip's memory, or lacking",
    "from": "how it lies before: grid, shard and memory, or its sharding",
    "to": "how it lies after",
    "moves": "bytes that change their place",
    "of": "bytes of the data",
    "where": "how far they go",
    "saves": "bytes less than now, a core and in all",
    "text": "the layout, to paste into a program",
    "memory": "the memory that is meant",
    "function": "the function that the values are in",
    "peak": "the most bytes that are held at a time",
    "arguments": "bytes of these that are arguments",
    "results": "bytes of these that are results",
    "temporary": "bytes of these that are neither",
    "alive": "the values that are held then",
    "kind": "which collective",
    "axes": "the mesh axes that it goes over",
    "parts": "how many parts each dim is in",
    "sharding": "how the dump says it",
    "a device": "bytes on each device",
    "receives": "bytes that each device receives",
    "result": "bytes of the result",
    "groups": "groups of devices that send each other",
    "of devices": "devices in a group",
    "copies": "devices that hold the same part",
}


def meanings(names: Iterable[str]) -> dict[str, str]:
    """Columns and what they mean, each once, in order.

    >>> meanings(["saves", "saves "])
    {'saves': 'bytes less than now, a core and in all'}
    """
    found = dict.fromkeys(name.strip() for name in names)
    return {name: COLUMNS[name] for name in found}
