"""Renders an explanation as text tables, with colours for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.costs import Described
from gridlayout.dump.contents import Contents
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.pages import device_rows
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.memory import number, size
from gridlayout.tables.cells import fits, grid, shard, tensor
from gridlayout.tables.words import LEFT, WIDTH, dims, plain

FINDING_HEAD = (
    *("line", "count", "op", "value", "tensor", "grid", "shard"),
    *("padding", "per core", "total", "wasted", "factor", "fits"),
)
MOVE_HEAD = ("line", "count", "op", "value", "tensor", "from", "to", "moves", "of", "where")
PLAN_HEAD = ("line", "tensor", "grid", "shard", "per core", "saves", "total", "saves ", "text")
# Rows are yellow from the first padding share, red from the second.
NOTABLE, BAD = 0.1, 0.5
_RED, _YELLOW, _BOLD, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


def text_of(found: Contents, colour: bool = False) -> str:
    """Return the explanation as aligned tables. colour: mark rows of much padding in colour."""
    parts = [summary_of(found)]
    if found.findings:
        marks = [_mark(finding.padding_share) if colour else "" for finding in found.findings]
        parts.append(_aligned(FINDING_HEAD, finding_rows(found), marks, colour))
    if more := hidden_of("values", found):
        parts.append(f"and {more}")
    for title, head, rows in sections_of(found):
        parts += [title, _aligned(head, rows, [], colour)]
        if more := hidden_of(title, found):
            parts.append(f"and {more}")
    if plans := plan_rows(found):
        parts += [plan_title(found), _aligned(PLAN_HEAD, plans, [], colour)]
    parts += unknown_lines(found)
    return "\n\n".join(parts)


def sections_of(
    found: Contents,
) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Return title, head and rows of each nonempty section besides the findings and the plan."""
    sections = [
        ("memory peaks", device_rows.PEAK_HEAD, device_rows.peak_rows(found)),
        ("moves", MOVE_HEAD, move_rows(found)),
        ("collectives", device_rows.COLLECTIVE_HEAD, device_rows.collective_rows(found)),
        ("shardings", device_rows.SHARDING_HEAD, device_rows.sharding_rows(found)),
        ("reshards", device_rows.RESHARD_HEAD, device_rows.reshard_rows(found)),
    ]
    return [section for section in sections if section[2]]


_HIDDEN = {
    "values": "with less waste",
    "moves": "of smaller tensors",
    "collectives": "that receive less",
    "shardings": "with smaller parts",
    "reshards": "to smaller parts",
}


def hidden_of(title: str, found: Contents) -> str:
    """Return how many entries a section does not show, and what they are; "" if it shows all."""
    rows: Sequence[Move | CollectiveOp | ShardedTensor | Reshard]
    if title == "values":
        hidden = found.left_out if found.findings else 0
    elif title in _HIDDEN:
        rows, total = getattr(found, title), getattr(found, f"all_{title}")
        hidden = total - sum(row.count for row in rows)
    else:
        return ""
    return f"{number(hidden, title.removesuffix('s'))} {_HIDDEN[title]}" if hidden > 0 else ""


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
        chip += f"; {shown} (pass_name or --pass chooses another)"
    lines = number(found.lines, "line")
    if not found.layouts:
        kinds = (("collective", found.all_collectives), ("sharding", found.all_shardings))
        words = [number(n, word) for word, n in kinds if n]
        return f"{plain(found.source)}: {' and '.join(words) or 'no layout'} in {lines}{chip}"
    chip = (
        "".join(f"; {peak.memory} peak {size(peak.nbytes)}" for peak in found.peaks)
        + "".join(
            f"; no peak of {plain(f, 80) or 'the module'}: too many values" for f in found.unpeaked
        )
        + chip
    )
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


# -- rows ------------------------------------------------------------------------------------------


def finding_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per finding, under `FINDING_HEAD`."""
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
    """Return one row per move, under `MOVE_HEAD`."""
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
    """Return the title of the table of proposals."""
    cores = [(new.layout.num_cores, new.instead_of.num_cores) for new in proposals(found)]
    more = ", or hold less per core on more cores" if any(a > b for a, b in cores) else ""
    return f"layouts that waste less{more}"


def plan_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per proposal, under `PLAN_HEAD`."""
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
    """Return each distinct proposal, and the line of the first finding that has it."""
    lines: dict[Proposal, int] = {}
    for finding in found.findings:
        if finding.proposal:
            lines.setdefault(finding.proposal, finding.line)
    return lines


def _where(found: Finding | Move) -> tuple[str, ...]:
    name, op = plain(found.name, WIDTH), plain(found.op, WIDTH)
    return str(found.line), f"{found.count:,}", op or "-", name or "-"


def place(layout: Described) -> str:
    """Return grid, shard and memory of a layout, in a few words."""
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
