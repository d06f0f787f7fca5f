"""HTML of tables, headings and paragraphs in one style, and of a self-contained page."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from html import escape

# A wide table wraps its words. In a narrow container each row becomes a block of names and values.
# The table head stays visible, because clicking a name sorts the rows.
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
  .gl-dump .wide td.none { display: none; }
}
@container (max-width: 30em) {
  .gl-dump table:not(.wide) { display: block; overflow-x: auto; }
}
"""
_WIDE = 7  # a table with more columns is wide
# In characters: a short text is never broken, a long one gets its own line in a block.
_SHORT, _LONG = 15, 32


def html_page(title: str, body: str) -> str:
    """Return a self-contained HTML page with this title and body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    data: Sequence[Mapping[str, float]],
    words: Container[str],
) -> str:
    """Return a table. data: for each row, the numbers behind its cells, by column name.

    words: the columns of words; all others are of numbers.
    """
    kinds = ["" if name in words else "number" for name in head]
    names = "".join(
        f'<th scope="col"{_class(kind)}>{escape(name.strip())}</th>'
        for name, kind in zip(head, kinds, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(map(_cell, head, cells, [numbers] * len(head), kinds))}</tr>\n"
        for cells, numbers in zip(rows, data, strict=True)
    )
    wide = _class("wide" if len(head) > _WIDE else "")
    return f"<table{wide}><thead><tr>{names}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def _cell(name: str, text: str, numbers: Mapping[str, float], kind: str) -> str:
    style, value = "", ""
    if name == "padding" and name in numbers:
        kind, style = "number share", f' style="--share: {numbers[name]:.1%}"'
    if text.startswith("NO:"):
        kind = "over"
    if (digits := text.replace(",", "")).isdecimal():
        value = f' data-n="{digits}"' if kind == "number" and digits != text else ""
    elif name in numbers:
        value = f' data-n="{numbers[name]:.6f}"'
    if text == "-":
        kind = f"{kind} none".strip()
    elif not kind.startswith("number"):
        length = "short" if len(text) <= _SHORT else "long" if len(text) > _LONG else ""
        kind = " ".join(filter(None, (kind, length)))
    named = f' data-name="{escape(name.strip())}"'
    return f"<td{_class(kind)}{style}{value}{named}>{escape(text)}</td>"


def framed(parts: Sequence[str]) -> str:
    """Return parts of HTML with their style sheet, as a notebook shows them."""
    return f'<div class="gl-dump"><style>{STYLE}</style>{"".join(parts)}</div>\n'


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def heading(text: str) -> str:
    """Return a heading of plain text."""
    return f"<h2>{escape(text)}</h2>"


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text cells."""
    return html_table(head, rows, [{}] * len(rows), head)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
