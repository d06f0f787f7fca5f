"""Tables: an explanation as rows of text, with colours for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.costs import Described
from gridlayout.dump.contents import Contents
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.move import Move
from gridlayout.dump.pages import spread
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.memory import number, size
from gridlayout.tables.cells import fits, grid, shard, tensor
from gridlayout.tables.words import LEFT, WIDTH, dims, plain

FINDING_HEAD = (
    *("line", "times", "op", "value", "tensor", "grid", "shard"),
    *("padding", "a core", "in all", "wasted", "factor", "fits"),
)
MOVE_HEAD = ("line", "times", "op", "value", "tensor", "from", "to", "moves", "of", "where")
PLAN_HEAD = ("line", "tensor", "grid", "shard", "a core", "saves", "in all", "saves ", "text")
# Padding shares that are coloured: yellow from the first, red from the second.
NOTABLE, BAD = 0.1, 0.5
_RED, _YELLOW, _BOLD, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


def text_of(found: Contents, colour: bool = False) -> str:
    """The explanation as aligned tables. colour: ANSI colours for the rows that waste much."""
    parts = [summary_of(found)]
    if found.findings:
        marks = [_mark(finding.padding_share) if colour else "" for finding in found.findings]
        parts.append(_aligned(FINDING_HEAD, finding_rows(found), marks, colour))
    if found.left_out > 0 and found.findings:
        parts.append(f"and {number(found.left_out, 'value')} of less waste")
    for title, head, rows in sections_of(found):
        parts += [title, _aligned(head, rows, [], colour)]
        if title == "moves" and (hidden := hidden_moves(found)):
            parts.append(f"and {number(hidden, 'move')} of less data")
    if plans := plan_rows(found):
        parts += [plan_title(found), _aligned(PLAN_HEAD, plans, [], colour)]
    parts += unknown_lines(found)
    return "\n\n".join(parts)


def sections_of(
    found: Contents,
) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, head and rows of what there is besides the findings and the plan."""
    sections = [
        ("most at a time", spread.PEAK_HEAD, spread.peak_rows(found)),
        ("moves", MOVE_HEAD, move_rows(found)),
        ("collectives", spread.COLLECTIVE_HEAD, spread.collective_rows(found)),
        ("shardings", spread.SHARDING_HEAD, spread.sharding_rows(found)),
        ("reshards", spread.RESHARD_HEAD, spread.reshard_rows(found)),
    ]
    return [section for section in sections if section[2]]


def hidden_moves(found: Contents) -> int:
    """Moves of less data than those shown."""
    return found.all_moves - sum(move.count for move in found.moves)


def summary_of(found: Contents) -> str:
    """A sentence of totals, and which pass they are of."""
    if found.note:
        return f"{plain(found.source)}: {number(found.lines, 'line')}; {found.note}"
    wasted = found.nbytes - found.data_bytes
    chip = ""
    if any(finding.fit is not None for finding in found.findings):
        chip = f"; chip {plain(found.chip.name)}, {dims(found.chip.grid)} cores"
    if len(found.passes) > 1:
        shown = f"pass {plain(found.pass_name, 80)!r} of {len(found.passes)}"
        chip += f"; {shown}, chosen by --pass"
    lines = number(found.lines, "line")
    if not found.layouts:
        kinds = (("collective", found.all_collectives), ("sharding", len(found.shardings)))
        words = [number(n, word) for word, n in kinds if n]
        return f"{plain(found.source)}: {' and '.join(words) or 'no layout'} in {lines}{chip}"
    chip = (
        "".join(f"; at most {size(peak.nbytes)} of {peak.memory} at a time" for peak in found.peaks)
        + "".join(f"; no peak of {plain(f, 80) or 'it'}: too many values" for f in found.unpeaked)
        + chip
    )
    return (
        f"{plain(found.source)}: {number(found.layouts, 'layout')} in "
        f"{lines} hold{'s' if found.layouts == 1 else ''} "
        f"{size(found.nbytes)} for {size(found.data_bytes)} of data, {size(max(wasted, 0))} "
        f"wasted{chip}"
    )


def unknown_lines(found: Contents) -> list[str]:
    """What was passed over, one line a reason."""
    if not found.unknown:
        return []
    lines = [f"passed over: {number(found.all_unknown, 'text')} like a layout"]
    for unknown in found.unknown:
        lines.append(
            f"  {unknown.count:,} x, first in line {unknown.line}: {plain(unknown.reason)}: "
            f"{plain(unknown.text, 60)}"
        )
    if hidden := found.all_unknown - sum(unknown.count for unknown in found.unknown):
        lines.append(f"  {hidden:,} for other reasons")
    return ["\n".join(lines)]


# -- rows ------------------------------------------------------------------------------------------


def finding_rows(found: Contents) -> list[tuple[str, ...]]:
    """One row a finding, under `FINDING_HEAD`."""
    return [
        (
            *_where(finding),
            *(tensor(finding.layout), grid(finding.layout), shard(finding.layout)),
            f"{finding.padding_share:.1%}",
            *(size(finding.bytes_per_core), size(finding.nbytes)),
            *(size(finding.wasted_bytes), f"{finding.expansion_factor:.2f}x", fits(finding.fit)),
        )
        for finding in found.findings
    ]


def move_rows(found: Contents) -> list[tuple[str, ...]]:
    """One row a move, under `MOVE_HEAD`."""
    return [
        (
            *_where(move),
            *(tensor(move.before), place(move.before), place(move.after)),
            "?" if move.moved_bytes is None else size(move.moved_bytes),
            *(size(move.data_bytes), plain(move.where)),
        )
        for move in found.moves
    ]


def plan_title(found: Contents) -> str:
    """What the proposals are."""
    cores = [(new.layout.num_cores, new.instead_of.num_cores) for new in proposals(found)]
    more = ", or less a core on more cores" if any(a > b for a, b in cores) else ""
    return f"layouts that waste less{more}"


def plan_rows(found: Contents) -> list[tuple[str, ...]]:
    """One row a proposal, under `PLAN_HEAD`."""
    return [
        (
            str(line),
            *(tensor(new.layout), grid(new.layout), shard(new.layout)),
            *(size(new.bytes_per_core), size(new.saved_per_core)),
            *(size(new.nbytes), size(new.saved_bytes), str(new)),
        )
        for new, line in proposals(found).items()
    ]


def proposals(found: Contents) -> dict[Proposal, int]:
    """Each proposal once, and the line of the worst finding that it is for."""
    lines: dict[Proposal, int] = {}
    for finding in found.findings:
        if finding.proposal:
            lines.setdefault(finding.proposal, finding.line)
    return lines


def _where(found: Finding | Move) -> tuple[str, ...]:
    name, op = plain(found.name, WIDTH), plain(found.op, WIDTH)
    return str(found.line), f"{found.count:,}", op or "-", name or "-"


def place(layout: Described) -> str:
    """Grid, shard and memory of one side of a move."""
    words = [word for word in (grid(layout), shard(layout)) if word != "-"]
    for name in ("memory_space", "buffer_type"):
        if isinstance(word := getattr(layout, name, None), str):
            words.append(word)
    return " ".join(words) or "-"


# -- text ------------------------------------------------------------------------------------------


def _mark(share: float) -> str:
    return _RED if share >= BAD else _YELLOW if share >= NOTABLE else ""


def _aligned(
    head: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str], colour: bool
) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for cells in (head, *rows):
        line = "  ".join(
            cell.ljust(width) if name in LEFT else cell.rjust(width)
            for name, cell, width in zip(head, cells, widths, strict=True)
        )
        lines.append(line.rstrip())
    begins = [_BOLD if colour else "", *(marks or [""] * len(rows))]
    return "\n".join(
        f"{begin}{line}{_PLAIN}" if begin else line
        for begin, line in zip(begins, lines, strict=True)
    )
