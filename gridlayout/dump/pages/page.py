"""Renders an explanation as a self-contained HTML page with sortable tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gridlayout.dump.contents import Contents
from gridlayout.dump.pages import table
from gridlayout.tables.html import STYLE, html_page, html_table
from gridlayout.tables.words import plain

# Cells are sorted by the number in data-n: text such as "1.5 KiB" would sort wrongly.
_SCRIPT = """
for (const head of document.querySelectorAll(".gl-dump th")) {
  const sort = () => {
    const body = head.closest("table").tBodies[0], k = head.cellIndex;
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[k].dataset.n ?? row.cells[k].textContent;
    const order = (a, b) => key(a) - key(b) ||
      key(a).localeCompare(key(b), undefined, { numeric: true });
    body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
  };
  head.tabIndex = 0;
  head.onclick = sort;
  head.onkeydown = (event) => { if (event.key === "Enter") sort(); };
}
"""


def page_of(found: Contents) -> str:
    """Return the explanation as an HTML document."""
    return html_page(
        f"Layouts of {plain(found.source)}", f"{body_of(found)}<script>{_SCRIPT}</script>"
    )


def body_of(found: Contents) -> str:
    """Return the tables and their style, without the document around them: for notebooks."""
    title = f"Layouts of {escape(plain(found.source))}"
    parts = [
        f"<style>{STYLE}</style>",
        f'<div class="title" role="heading" aria-level="1">{title}</div>',
        f"<p>{escape(table.summary_of(found))}</p>",
    ]
    if found.findings:
        parts += ["<h2>Layouts, the worst first</h2>", _findings(found)]
    if more := table.hidden_of("values", found):
        parts.append(f"<p>And {more}.</p>")
    for title, head, rows in table.sections_of(found):
        parts += [f"<h2>{title.capitalize()}</h2>", html_table(head, rows, _numbers(title, found))]
        if more := table.hidden_of(title, found):
            parts.append(f"<p>And {more}.</p>")
    if plans := table.plan_rows(found):
        parts += [f"<h2>{table.plan_title(found).capitalize()}</h2>", _plans(found, plans)]
    parts += [f"<pre>{escape(text)}</pre>" for text in table.unknown_lines(found)]
    parts.append(_help(found))
    return f'<div class="gl-dump">{"".join(parts)}</div>\n'


def _help(found: Contents) -> str:
    """Return a folded list of all columns and their meanings."""
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
    """Return the numbers by which the cells of a section are sorted, one dict per row."""
    if title == "moves":
        return [{"moves": each.moved_bytes or 0, "of": each.data_bytes} for each in found.moves]
    if title == "collectives":
        return [
            {"receives": each.received_bytes, "result": each.result_bytes}
            for each in found.collectives
        ]
    if title == "shardings":
        return [
            {"per device": each.device_bytes, "padding": each.padding_share}
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
            "per core": finding.bytes_per_core,
            "total": finding.nbytes,
            "wasted": finding.wasted_bytes,
            "factor": finding.expansion_factor,
        }
        for finding in found.findings
    ]
    return html_table(table.FINDING_HEAD, table.finding_rows(found), data)


def _plans(found: Contents, rows: Sequence[Sequence[str]]) -> str:
    data = [
        {
            "per core": new.bytes_per_core,
            "saves": new.saved_per_core,
            "total": new.nbytes,
            "saves ": new.saved_bytes,
        }
        for new in table.proposals(found)
    ]
    return html_table(table.PLAN_HEAD, rows, data)


COLUMNS = {
    "line": "the first line that names it",
    "count": "how often it occurs: definitions and uses",
    "op": "the operation that defines it",
    "value": "its name in the dump",
    "tensor": "element type and logical shape",
    "grid": "cores along each dim",
    "shard": "the buffer of one core: counts of tiles and their size, or elements",
    "padding": "share of the physical elements that are padding",
    "per core": "bytes on each core",
    "total": "bytes on all cores",
    "wasted": "total bytes minus bytes of the data",
    "factor": "total bytes divided by bytes of the data",
    "fits": "free bytes of the chip's memory, or missing bytes",
    "from": "layout before: grid, shard and memory, or the sharding",
    "to": "layout after",
    "moves": "bytes that move",
    "of": "bytes of the data",
    "where": "source and target of the bytes that move",
    "saves": "bytes saved, per core and in total",
    "text": "the layout, as text for a program",
    "memory": "the memory",
    "function": "the function of the values",
    "peak": "the most bytes that are live at one time",
    "arguments": "bytes of the peak that are arguments",
    "results": "bytes of the peak that are results",
    "temporary": "bytes of the peak that are neither",
    "alive": "the largest values that are live at the peak",
    "kind": "the kind of collective",
    "axes": "the mesh axes of the groups",
    "parts": "number of parts of each dim",
    "sharding": "the sharding as the dump states it",
    "per device": "bytes on each device",
    "receives": "bytes that each device receives",
    "result": "bytes of the result per device",
    "groups": "number of groups of devices",
    "group size": "devices per group",
    "copies": "devices that hold the same part",
}


def meanings(names: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each column, in order, without duplicates.

    >>> meanings(["saves", "saves "])
    {'saves': 'bytes saved, per core and in total'}
    """
    found = dict.fromkeys(name.strip() for name in names)
    return {name: COLUMNS[name] for name in found}
