"""Pages: an explanation as HTML that needs no other file, in light and dark, sorted by a click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gridlayout.dump.contents import Contents
from gridlayout.dump.pages import table
from gridlayout.layouts.memory import number
from gridlayout.tables.html import STYLE, html_page, html_table
from gridlayout.tables.words import plain

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


def page_of(found: Contents) -> str:
    """A whole page."""
    return html_page(
        f"Layouts of {plain(found.source)}", f"{body_of(found)}<script>{_SCRIPT}</script>"
    )


def body_of(found: Contents) -> str:
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


def _help(found: Contents) -> str:
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


def _numbers(title: str, found: Contents) -> list[dict[str, float]]:
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


def _findings(found: Contents) -> str:
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


def _plans(found: Contents, rows: Sequence[Sequence[str]]) -> str:
    data = [
        {
            "a core": new.bytes_per_core,
            "saves": new.saved_per_core,
            "in all": new.nbytes,
            "saves ": new.saved_bytes,
        }
        for new in table.proposals(found)
    ]
    return html_table(table.PLAN_HEAD, rows, data)


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
