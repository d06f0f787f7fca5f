"""Tables: an explanation as rows of text, with colours for a terminal, and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves import Move
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Fit, number, size
from gridlayout.layouts.reader import dims_text

if TYPE_CHECKING:
    from gridlayout.dump.explanation import Explanation

FINDING_HEAD = (
    *("line", "times", "op", "value", "tensor", "grid", "shard"),
    *("padding", "a core", "in all", "wasted", "factor", "fits"),
)
MOVE_HEAD = ("line", "times", "op", "value", "tensor", "from", "to", "moves", "of", "where")
PLAN_HEAD = ("line", "tensor", "grid", "shard", "a core", "saves", "in all", "saves ", "text")
_LEFT = ("op", "value", "tensor", "grid", "shard", "fits", "from", "to", "where", "text")
# Padding shares that are coloured: yellow from the first, red from the second.
NOTABLE, BAD = 0.1, 0.5
_RED, _YELLOW, _BOLD, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_WIDTH = 32  # of a cell of the dump's own words


def text_of(found: Explanation, colour: bool = False) -> str:
    """The explanation as aligned tables. colour: ANSI colours for the rows that waste much."""
    parts = [summary_of(found)]
    if found.findings:
        marks = [_mark(finding.padding_share) if colour else "" for finding in found.findings]
        parts.append(_aligned(FINDING_HEAD, finding_rows(found), marks, colour))
    if found.left_out:
        parts.append(f"and {number(found.left_out, 'mention')} of layouts that waste less")
    if found.moves:
        parts += ["moves", _aligned(MOVE_HEAD, move_rows(found), [], colour)]
        if hidden := found.all_moves - sum(move.count for move in found.moves):
            parts.append(f"and {number(hidden, 'move')} of less data")
    if plans := plan_rows(found):
        parts += [plan_title(found), _aligned(PLAN_HEAD, plans, [], colour)]
    parts += unknown_lines(found)
    return "\n\n".join(parts)


def summary_of(found: Explanation) -> str:
    """One sentence of totals."""
    wasted = found.nbytes - found.data_bytes
    chip = ""
    if any(finding.fit is not None for finding in found.findings):
        chip = f"; chip {plain(found.chip.name)}, {dims(found.chip.grid)} cores"
    return (
        f"{plain(found.source)}: {number(found.layouts, 'layout')} in "
        f"{number(found.lines, 'line')} hold{'s' if found.layouts == 1 else ''} "
        f"{size(found.nbytes)} for {size(found.data_bytes)} of data, {size(max(wasted, 0))} "
        f"wasted{chip}"
    )


def unknown_lines(found: Explanation) -> list[str]:
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


def finding_rows(found: Explanation) -> list[tuple[str, ...]]:
    """One row a finding, under `FINDING_HEAD`."""
    return [
        (
            *_where(finding),
            *(tensor(finding.layout), grid(finding.layout), shard(finding.layout)),
            f"{finding.padding_share:.1%}",
            *(size(finding.layout.bytes_per_core), size(finding.layout.nbytes)),
            *(size(finding.wasted_bytes), f"{finding.expansion_factor:.2f}x", fits(finding.fit)),
        )
        for finding in found.findings
    ]


def move_rows(found: Explanation) -> list[tuple[str, ...]]:
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


def plan_title(found: Explanation) -> str:
    """What the proposals are."""
    cores = [(new.layout.num_cores, new.instead_of.num_cores) for new in proposals(found)]
    more = ", or less a core on more cores" if any(a > b for a, b in cores) else ""
    return f"layouts that waste less{more}"


def plan_rows(found: Explanation) -> list[tuple[str, ...]]:
    """One row a proposal, under `PLAN_HEAD`."""
    return [
        (
            str(line),
            *(tensor(new.layout), grid(new.layout), shard(new.layout)),
            *(size(new.layout.bytes_per_core), size(new.saved_per_core)),
            *(size(new.layout.nbytes), size(new.saved_bytes), str(new)),
        )
        for new, line in proposals(found).items()
    ]


def proposals(found: Explanation) -> dict[Proposal, int]:
    """Each proposal once, and the line of the worst finding that it is for."""
    lines: dict[Proposal, int] = {}
    for finding in found.findings:
        if finding.proposal:
            lines.setdefault(finding.proposal, finding.line)
    return lines


def _where(found: Finding | Move) -> tuple[str, ...]:
    name, op = plain(found.name, _WIDTH), plain(found.op, _WIDTH)
    return str(found.line), f"{found.count:,}", op or "-", name or "-"


def dims(shape: Sequence[int]) -> str:
    """Extents with an x between.

    >>> dims((3, 2)), dims(())
    ('3x2', '-')
    """
    return dims_text(tuple(shape)) or "-"


def tensor(layout: Layout) -> str:
    """Element type and logical shape.

    >>> from gridlayout import xla
    >>> tensor(xla.layout((3, 5)))
    'f32[3,5]'
    """
    name = layout.tile_format or dtypes.MLIR_NAMES[layout.dtype.name]
    return f"{name}[{','.join(map(str, layout.shape))}]"


def grid(layout: Layout) -> str:
    """The grid of cores."""
    return dims(layout.core_shape)


def shard(layout: Layout) -> str:
    """One core's buffer: tiles and their size, or what is in an XLA type's braces."""
    return layout.shard_text or "-"


def place(layout: Layout) -> str:
    """Grid, shard and memory of one side of a move."""
    words = [word for word in (grid(layout), shard(layout)) if word != "-"]
    for name in ("memory_space", "buffer_type"):
        if isinstance(word := getattr(layout, name, None), str):
            words.append(word)
    return " ".join(words) or "-"


def fits(fit: Fit | None) -> str:
    """Whether it fits, the bytes that are left or lacking, and a tile that no op computes with.

    >>> fits(Fit("l1", 512, 512, 2048)), fits(Fit("l1", 4096, 4096, 1024)), fits(None)
    ('l1, 1.5 KiB free', 'NO: l1, 3.0 KiB over', '-')
    >>> fits(Fit("l1", 512, 512, 2048, (4, 4)))
    'l1, 1.5 KiB free; no op: 4x4'
    """
    if fit is None:
        return "-"
    words = [] if fit.unusable_tile is None else [f"no op: {dims_text(fit.unusable_tile)}"]
    if fit.free is not None:
        room = f"{size(fit.free)} free" if fit else f"{size(-fit.free)} over"
        words.insert(0, f"{'' if fit else 'NO: '}{fit.space}, {room}")
    return "; ".join(words) or "-"


def plain(text: str, width: int = 1 << 16) -> str:
    """The dump's own words, made safe to print: control characters escaped, cut to `width`.

    >>> print(plain("a" + chr(27) + "[31m" + chr(0x202E)), plain("abcdef", 4))
    a\\x1b[31m\\u202e abc…
    """
    if len(text) > width:
        text = text[: width - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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
            cell.ljust(width) if name in _LEFT else cell.rjust(width)
            for name, cell, width in zip(head, cells, widths, strict=True)
        )
        lines.append(line.rstrip())
    begins = [_BOLD if colour else "", *(marks or [""] * len(rows))]
    return "\n".join(
        f"{begin}{line}{_PLAIN}" if begin else line
        for begin, line in zip(begins, lines, strict=True)
    )


# -- data ------------------------------------------------------------------------------------------


def record_of(found: Explanation) -> dict[str, Any]:
    """The explanation as numbers, strings, lists and dicts. Sizes in bytes."""
    return {
        "source": found.source,
        "chip": {
            "name": found.chip.name,
            "grid": found.chip.grid,
            "capacity": dict(found.chip.capacity),
        },
        "lines": found.lines,
        "layouts": found.layouts,
        "bytes": found.nbytes,
        "data_bytes": found.data_bytes,
        "left_out": found.left_out,
        "findings": [_finding_record(finding) for finding in found.findings],
        "moves": [_move_record(move) for move in found.moves],
        "all_moves": found.all_moves,
        "unknown": [vars(unknown) for unknown in found.unknown],
        "all_unknown": found.all_unknown,
    }


def _finding_record(finding: Finding) -> dict[str, Any]:
    return {
        **_where_record(finding),
        **_layout_record(finding.layout),
        "padding_share": finding.padding_share,
        "data_bytes": finding.data_bytes,
        "wasted_bytes": finding.wasted_bytes,
        "expansion_factor": finding.expansion_factor,
        "fit": None if finding.fit is None else _fit_record(finding.fit),
        "proposal": finding.proposal and _proposal_record(finding.proposal),
    }


def _fit_record(fit: Fit) -> dict[str, Any]:
    return {**vars(fit), "free": fit.free, "fits": bool(fit)}


def _proposal_record(proposal: Proposal) -> dict[str, Any]:
    return {
        **_layout_record(proposal.layout),
        "saved_bytes": proposal.saved_bytes,
        "saved_per_core": proposal.saved_per_core,
    }


def _move_record(move: Move) -> dict[str, Any]:
    return {
        **_where_record(move),
        "before": _layout_record(move.before),
        "after": _layout_record(move.after),
        "permutation": move.permutation,
        "elements": move.elements,
        "moved_bytes": move.moved_bytes,
        "data_bytes": move.data_bytes,
        "where": move.where,
    }


def _where_record(found: Finding | Move) -> dict[str, Any]:
    return {"line": found.line, "count": found.count, "op": found.op, "name": found.name}


def _layout_record(layout: Layout) -> dict[str, Any]:
    return {
        "layout": str(layout),
        "shape": layout.shape,
        "dtype": layout.dtype.name,
        "grid": layout.core_shape,
        "shard": layout.local_shape,
        "bytes_per_core": layout.bytes_per_core,
        "bytes": layout.nbytes,
    }
