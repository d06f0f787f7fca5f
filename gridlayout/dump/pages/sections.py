"""The tables of an explanation: their columns, each with its cells and the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from gridlayout import dtypes
from gridlayout.costs import Described
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.shardings import ShardedTensor
from gridlayout.dump.pages.worst import axes_text
from gridlayout.dump.plan import Proposal
from gridlayout.dump.values.hlo_memory import WHOLE
from gridlayout.dump.values.peaks import Peak, bars
from gridlayout.layouts.memory import number, size
from gridlayout.tables.cells import fits, grid, shard, tensor
from gridlayout.tables.table import Column, Table
from gridlayout.tables.words import WIDTH, dims, plain


class Section(NamedTuple):
    """A table under a title. more: what it does not list, in words."""

    title: str
    table: Table
    more: str = ""


def _number(name: str, find: Callable[[Any], int | None], unknown: str = "-") -> Column:
    return Column(name, "{:,}".format, True, find, unknown)


def _bytes(name: str, find: Callable[[Any], int | None], unknown: str = "?") -> Column:
    return Column(name, size, True, find, unknown)


def _text(name: str, find: Callable[[Any], str]) -> Column:
    return Column(name, of=find)


def _words(name: str, find: Callable[[Any], str]) -> Column:
    return Column(name, lambda text: plain(text, WIDTH) or "-", of=find)


def _sharded(row: ShardedTensor) -> str:
    names = dtypes.XLA_NAMES if row.is_hlo else dtypes.MLIR_NAMES
    return f"{names[row.dtype]}[{','.join(map(str, row.shape))}]"


def _alive(row: Any) -> str:
    names = ", ".join(f"{plain(span.name, 24)} {size(span.nbytes)}" for span in row.alive[:4])
    return names + (", ..." if len(row.alive) > 4 else "") or "-"


class _AtLeast(int):
    """A number of bytes from which some are left out."""


def peak_bytes(row: Peak) -> int:
    """Return the bytes of a peak, for `bytes_text`."""
    return _AtLeast(row.nbytes) if row.at_least else row.nbytes


def bytes_text(nbytes: int) -> str:
    """Return a number of bytes in words, such as "at least 4.0 MiB" where some are left out."""
    return f"at least {size(nbytes)}" if isinstance(nbytes, _AtLeast) else size(nbytes)


def _place_of(memory: str) -> str:
    """Return the name of a memory, and of what it is a part."""
    if memory.startswith(WHOLE):
        return memory
    return f"{memory} per {'core' if memory.endswith('l1') else 'device'}"


def _part(name: str) -> Column:
    """Return the column of a part of a peak, which only a compiled program's memory has."""
    find = attrgetter(name)

    def known(row: Peak) -> int | None:
        parts = row.arguments + row.results + row.temporary
        return find(row) if parts else None

    return _bytes(name, known, "-")


def place(layout: Described) -> str:
    """Return grid, shard and memory of a layout, in a few words."""
    words = [word for word in (grid(layout), shard(layout)) if word != "-"]
    for name in ("memory_space", "buffer_type"):
        if isinstance(word := getattr(layout, name, None), str):
            words.append(word)
    return " ".join(words) or "-"


_LINE = Column("line", str, True, attrgetter("line"))
_COUNT = _number("count", attrgetter("count"))
_PADDING = Column("padding", "{:.1%}".format, True, attrgetter("padding_share"))
_OP, _VALUE = _words("op", attrgetter("op")), _words("value", attrgetter("name"))
_FINDINGS = (
    *(_LINE, _COUNT, _OP, _VALUE),
    _text("tensor", lambda row: tensor(row.layout)),
    _text("grid", lambda row: grid(row.layout)),
    _text("shard", lambda row: shard(row.layout)),
    _PADDING,
    _bytes("per core", attrgetter("bytes_per_core")),
    _bytes("total", attrgetter("nbytes")),
    _bytes("wasted", attrgetter("wasted_bytes")),
    Column("factor", "{:.2f}x".format, True, attrgetter("expansion_factor")),
    _text("fits", lambda row: fits(row.fit)),
)
_PEAKS = (
    _text("memory", lambda row: _place_of(row.memory)),
    *(_words("function", attrgetter("function")), _LINE),
    Column("peak", bytes_text, True, peak_bytes),
    *(_part("arguments"), _part("results"), _part("temporary"), _text("alive", _alive)),
)
_CURVE = _text("over time", lambda row: bars(row.curve) or "-")


def _peak_columns(found: Contents) -> tuple[Column, ...]:
    return (*_PEAKS, _CURVE) if any(peak.curve for peak in found.peaks) else _PEAKS


_MOVES = (
    *(_LINE, _COUNT, _OP, _VALUE),
    _text("tensor", lambda row: tensor(row.before)),
    _text("from", lambda row: place(row.before)),
    _text("to", lambda row: place(row.after)),
    _bytes("moves", attrgetter("moved_bytes")),
    _bytes("of", attrgetter("data_bytes")),
    _text("where", lambda row: plain(row.where)),
)
_COLLECTIVES = (
    *(_LINE, _COUNT, _OP, _VALUE),
    _text("kind", attrgetter("kind")),
    _number("groups", lambda row: row.groups or None, "?"),
    _number("group size", lambda row: row.group_size or None, "?"),
    _words("axes", axes_text),
    _bytes("receives", attrgetter("received_bytes")),
    _bytes("result", attrgetter("result_bytes")),
)
_SHARDINGS = (
    *(_LINE, _COUNT, _OP, _VALUE),
    _text("tensor", _sharded),
    _text("parts", lambda row: dims(row.parts)),
    _number("copies", lambda row: row.copies or None, "?"),
    _text("shard", lambda row: dims(row.shard_shape)),
    _PADDING._replace(unknown="?"),
    _bytes("per device", attrgetter("device_bytes")),
    _text("sharding", lambda row: plain(row.text, 60)),
)
_RESHARDS = (
    *(_LINE, _COUNT, _VALUE),
    _text("tensor", lambda row: _sharded(row.after)),
    _text("from", lambda row: dims(row.before.parts)),
    _text("to", lambda row: dims(row.after.parts)),
    _bytes("receives", attrgetter("received_bytes")),
)
_PLAN = (  # of pairs: a proposal and a line
    Column("line", str, True, itemgetter(1)),
    _text("tensor", lambda row: tensor(row[0].layout)),
    _text("grid", lambda row: grid(row[0].layout)),
    _text("shard", lambda row: shard(row[0].layout)),
    _bytes("per core", lambda row: row[0].bytes_per_core),
    _bytes("saves", lambda row: row[0].saved_per_core),
    _bytes("total", lambda row: row[0].nbytes),
    _bytes("saves ", lambda row: row[0].saved_bytes),
    _text("text", lambda row: str(row[0])),
)


def sections_of(found: Contents) -> list[Section]:
    """Return the tables that have rows: that of the values first, that of the proposals last."""

    def counted(name: str, columns: tuple[Column, ...], others: str) -> Section:
        rows, total = getattr(found, name), getattr(found, f"all_{name}")
        hidden = total - sum(row.count for row in rows)
        return Section(name, Table(columns, rows), _more(hidden, name.removesuffix("s"), others))

    plan = list(proposals_of(found).items())
    more = any(new.layout.num_cores > new.instead_of.num_cores for new, _ in plan)
    wider = ", or hold less per core on more cores" if more else ""
    left_out = _more(found.left_out, "value", "with less waste")
    sections = (
        Section("layouts, the worst first", Table(_FINDINGS, found.findings), left_out),
        Section("memory peaks", Table(_peak_columns(found), found.peaks)),
        counted("moves", _MOVES, "of smaller tensors"),
        counted("collectives", _COLLECTIVES, "that receive less"),
        counted("shardings", _SHARDINGS, "with smaller parts"),
        counted("reshards", _RESHARDS, "to smaller parts"),
        Section(f"layouts that waste less{wider}", Table(_PLAN, plan)),
    )
    return [section for section in sections if section.table.rows]


def _more(count: int, noun: str, which: str) -> str:
    return f"{number(count, noun)} {which}" if count > 0 else ""


def proposals_of(found: Contents) -> dict[Proposal, int]:
    """Return each distinct proposal, and the line of the first finding that has it."""
    lines: dict[Proposal, int] = {}
    for finding in found.findings:
        if finding.proposal:
            lines.setdefault(finding.proposal, finding.line)
    return lines
