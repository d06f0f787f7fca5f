"""Renders an explanation as a self-contained HTML page with sortable tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gridlayout.dump.contents import Contents
from gridlayout.dump.pages.sections import Section, sections_of
from gridlayout.dump.pages.table import summary_of, unknown_lines, with_flags
from gridlayout.dump.pages.worst import worst_of
from gridlayout.tables.html import framed, heading, html_page, paragraph
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
        f"Layouts of {plain(found.source)}", f"{body_of(found, True)}<script>{_SCRIPT}</script>"
    )


def body_of(found: Contents, flags: bool = False) -> str:
    """Return the tables and their style, without the document around them: for notebooks.

    flags: as in `text_of`.
    """
    sections = sections_of(found)
    parts = [
        f'<div class="title" role="heading" aria-level="1">Layouts of '
        f"{escape(plain(found.source))}</div>",
        paragraph(with_flags(summary_of(found)) if flags else summary_of(found)),
        _list("What costs most", worst_of(found)),
    ]
    for section in sections:
        parts += [heading(section.title.capitalize()), section.table.html]
        parts += [paragraph(f"And {section.more}.")] if section.more else []
    parts += [f"<pre>{escape(text)}</pre>" for text in unknown_lines(found)]
    return framed([*parts, _help(sections)])


def _list(title: str, items: Sequence[str]) -> str:
    """Return a numbered list under a heading; empty without items."""
    rows = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"{heading(title)}<ol>{rows}</ol>" if items else ""


def _help(sections: Iterable[Section]) -> str:
    """Return a folded list of all columns and their meanings."""
    names = dict.fromkeys(name.strip() for section in sections for name in section.table.head)
    rows = "".join(
        f"<dt><b>{escape(name)}</b></dt><dd>{escape(COLUMNS[name])}</dd>" for name in names
    )
    if not rows:
        return ""
    more = "<p>Click on a column's name to sort by it.</p>"
    return f"<details><summary>What the columns mean</summary><dl>{rows}</dl>{more}</details>"


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
    "over time": "bytes over the program: a full bar is the most; each is the highest of its part",
    "alive": "the largest values that are live at the peak",
    "kind": "the kind of collective",
    "axes": "the mesh axes of the groups, and their sizes",
    "parts": "number of parts of each dim",
    "sharding": "the sharding as the dump states it",
    "per device": "bytes on each device",
    "receives": "bytes that each device receives",
    "result": "bytes of the result per device",
    "groups": "number of groups of devices",
    "group size": "devices per group",
    "copies": "devices that hold the same part",
}
