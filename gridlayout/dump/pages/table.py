"""Renders an explanation as text tables, with colours for a terminal."""

from __future__ import annotations

import re

from gridlayout.dump.contents import Contents
from gridlayout.dump.pages.sections import bytes_text, peak_bytes, sections_of
from gridlayout.layouts.memory import number, size
from gridlayout.tables.words import dims, plain

# Rows are yellow from the first padding share, red from the second.
NOTABLE, BAD = 0.1, 0.5
# Keyword arguments, with a value in double quotes or of three dots, and the command's options.
_OPTIONS = {"pass_name": "pass", "chip": "chip", "function": "function", "limit": "limit"}
_KEYWORD = re.compile(rf'\b({"|".join(_OPTIONS)})=(?:"(\w+)"|(\.\.\.))')
_RED, _YELLOW, _BOLD, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


def text_of(found: Contents, colour: bool = False, flags: bool = False) -> str:
    """Return the explanation as aligned tables.

    colour: mark rows of much padding in colour. flags: advice names options of the command line.
    """
    parts = [with_flags(summary_of(found)) if flags else summary_of(found)]
    for section in sections_of(found):
        rows, (head, *lines) = section.table.rows, section.table.lines
        is_values = rows is found.findings
        parts += [] if is_values else [section.title]
        if colour:
            marks = [_mark(row.padding_share) for row in rows] if is_values else [""] * len(rows)
            head, lines = f"{_BOLD}{head}{_PLAIN}", [*map(_marked, marks, lines)]
        parts.append("\n".join((head, *lines)))
        parts += [f"and {section.more}"] if section.more else []
    return "\n\n".join(parts + unknown_lines(found))


def with_flags(text: str) -> str:
    """Return a text for the command line: with options instead of keyword arguments.

    >>> with_flags('give chip="blackhole"'), with_flags("pass_name=... chooses another")
    ('give --chip blackhole', '--pass ... chooses another')
    """
    text = re.sub(r"^(limit|function|pass_name)(?= .{1,200} must be)", _option, text)
    return _KEYWORD.sub(lambda found: f"{_option(found)} {found[2] or found[3]}", text)


def _option(found: re.Match[str]) -> str:
    return f"--{_OPTIONS[found[1]]}"


def summary_of(found: Contents) -> str:
    """Return one sentence with the totals and the pass that they describe."""
    if found.note:
        return f"{plain(found.source)}: {number(found.lines, 'line')}; {found.note}"
    wasted = found.nbytes - found.data_bytes
    chip = ""
    if any(finding.fit is not None for finding in found.findings):
        chip = f"; chip {plain(found.chip.name)}, {dims(found.chip.grid)} cores"
    if len(found.passes) > 1:
        shown = f"pass {plain(found.pass_name, 80)!r} of {len(found.passes)}"
        chip += f"; {shown} (pass_name=... chooses another)"
    if found.advice:
        chip += f"; {found.advice}"
    lines = number(found.lines, "line")
    chip = (
        "".join(f"; {peak.memory} peak {bytes_text(peak_bytes(peak))}" for peak in found.peaks)
        + "".join(
            f"; no peak of {plain(f, 80) or 'the module'}: too many values" for f in found.unpeaked
        )
        + chip
    )
    if not found.layouts:
        kinds = (("collective", found.all_collectives), ("sharding", found.all_shardings))
        words = [number(n, word) for word, n in kinds if n]
        return f"{plain(found.source)}: {' and '.join(words) or 'no layout'} in {lines}{chip}"
    return (
        f"{plain(found.source)}: {number(found.layouts, 'layout')} in "
        f"{lines} hold{'s' if found.layouts == 1 else ''} "
        f"{size(found.nbytes)} for {size(found.data_bytes)} of data, {size(max(wasted, 0))} "
        f"wasted{chip}"
    )


def unknown_lines(found: Contents) -> list[str]:
    """Return the texts that could not be read, one line per reason."""
    if not found.unknown:
        return []
    lines = [f"not read: {number(found.all_unknown, 'text')} that may be a layout"]
    for unknown in found.unknown:
        lines.append(
            f"  {unknown.count:,} x, first at line {unknown.line}: {plain(unknown.reason)}: "
            f"{plain(unknown.text, 60)}"
        )
    if hidden := found.all_unknown - sum(unknown.count for unknown in found.unknown):
        lines.append(f"  {hidden:,} for other reasons")
    return ["\n".join(lines)]


def _mark(share: float) -> str:
    return _RED if share >= BAD else _YELLOW if share >= NOTABLE else ""


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line}{_PLAIN}" if mark else line
