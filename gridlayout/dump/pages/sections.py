"""The tables of an explanation: their columns, each with its cells and the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gridlayout import dtypes
from gridlayout.costs import Described
from gridlayout.dump.contents import Contents, Finding
from gridlayout.dump.moves.shardings import ShardedTensor
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.memory import number, size
from gridlayout.tables.cells import fits, grid, shard, tensor
from gridlayout.tables.words import WIDTH, dims, plain


class Column(NamedTuple):
    """A column. cell: the text for a row; number: what it is sorted by, if that is not the text."""

    name: str
    cell: Callable[[Any], str]
    number: Callable[[Any], float] | None = None


class Section(NamedTuple):
    """A table. title: its heading. rows: what it lists. more: what it does not list, in words."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    more: str = ""

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The text of each row."""
        return [tuple(column.cell(row) for column in self.columns) for row in self.rows]

    @property
    def numbers(self) -> list[dict[str, float]]:
        """The numbers behind the cells of each row, by column name."""
        sorting = [(name, find) for name, _, find in self.columns if find]
        return [{name: find(row) for name, find in sorting} for row in self.rows]


def _bytes(name: str, find: Callable[[Any], int | None]) -> Column:
    return Column(name, lambda row: _size(find(row)), lambda row: find(row) or 0)


def _size(nbytes: int | None) -> str:
    return "?" if nbytes is None else size(nbytes)


def _words(name: str, find: Callable[[Any], str]) -> Column:
    return Column(name, lambda row: plain(find(row), WIDTH) or "-")


def _padding(row: Finding | ShardedTensor) -> str:
    return f"{row.padding_share:.1%}"


def _sharded(row: ShardedTensor) -> str:
    return f"{dtypes.MLIR_NAMES[row.dtype]}[{','.join(map(str, row.shape))}]"


def _alive(row: Any) -> str:
    names = ", ".join(f"{plain(span.name, 24)} {size(span.nbytes)}" for span in row.alive[:4])
    return names + (", ..." if len(row.alive) > 4 else "")


def _part(name: str) -> Column:
    """Return the column of a part of a peak, which only a compiled program's memory has."""

    def cell(row: Any) -> str:
        return size(getattr(row, name)) if row.memory == "memory" else "-"

    return Column(name, cell, lambda row: getattr(row, name))


def place(layout: Described) -> str:
    """Return grid, shard and memory of a layout, in a few words."""
    words = [word for word in (grid(layout), shard(layout)) if word != "-"]
    for name in ("memory_space", "buffer_type"):
        if isinstance(word := getattr(layout, name, None), str):
            words.append(word)
    return " ".join(words) or "-"


_LINE = Column("line", lambda row: str(row.line))
_COUNT = Column("count", lambda row: f"{row.count:,}")
_OP, _VALUE = _words("op", lambda row: row.op), _words("value", lambda row: row.name)
_FINDINGS = (
    *(_LINE, _COUNT, _OP, _VALUE),
    Column("tensor", lambda row: tensor(row.layout)),
    Column("grid", lambda row: grid(row.layout)),
    Column("shard", lambda row: shard(row.layout)),
    Column("padding", _padding, lambda row: row.padding_share),
    _bytes("per core", lambda row: row.bytes_per_core),
    _bytes("total", lambda row: row.nbytes),
    _bytes("wasted", lambda row: row.wasted_bytes),
    Column("factor", lambda row: f"{row.expansion_factor:.2f}x", lambda row: row.expansion_factor),
    Column("fits", lambda row: fits(row.fit)),
)
_PEAKS = (
    Column("memory", lambda row: f"{row.memory} per {'core' if row.memory == 'l1' else 'device'}"),
    *(_words("function", lambda row: row.function), _LINE, _bytes("peak", lambda row: row.nbytes)),
    *(_part("arguments"), _part("results"), _part("temporary"), Column("alive", _alive)),
)
_MOVES = (
    *(_LINE, _COUNT, _OP, _VALUE),
    Column("tensor", lambda row: tensor(row.before)),
    Column("from", lambda row: place(row.before)),
    Column("to", lambda row: place(row.after)),
    _bytes("moves", lambda row: row.moved_bytes),
    _bytes("of", lambda row: row.data_bytes),
    Column("where", lambda row: plain(row.where)),
)
_COLLECTIVES = (
    *(_LINE, _COUNT, _OP, _VALUE),
    Column("kind", lambda row: row.kind),
    Column("groups", lambda row: f"{row.groups:,}" if row.groups else "?"),
    Column("group size", lambda row: f"{row.group_size:,}"),
    _words("axes", lambda row: "*".join(row.axes)),
    _bytes("receives", lambda row: row.received_bytes),
    _bytes("result", lambda row: row.result_bytes),
)
_SHARDINGS = (
    *(_LINE, _COUNT, _OP, _VALUE),
    Column("tensor", _sharded),
    Column("parts", lambda row: dims(row.parts)),
    Column("copies", lambda row: f"{row.copies:,}" if row.copies else "?"),
    Column("shard", lambda row: dims(row.shard_shape)),
    Column("padding", _padding, lambda row: row.padding_share),
    _bytes("per device", lambda row: row.device_bytes),
    Column("sharding", lambda row: plain(row.text, 60)),
)
_RESHARDS = (
    *(_LINE, _COUNT, _VALUE),
    Column("tensor", lambda row: _sharded(row.after)),
    Column("from", lambda row: dims(row.before.parts)),
    Column("to", lambda row: dims(row.after.parts)),
    _bytes("receives", lambda row: row.received_bytes),
)
_PLAN = (  # of pairs: a proposal and a line
    Column("line", lambda row: str(row[1])),
    Column("tensor", lambda row: tensor(row[0].layout)),
    Column("grid", lambda row: grid(row[0].layout)),
    Column("shard", lambda row: shard(row[0].layout)),
    _bytes("per core", lambda row: row[0].bytes_per_core),
    _bytes("saves", lambda row: row[0].saved_per_core),
    _bytes("total", lambda row: row[0].nbytes),
    _bytes("saves ", lambda row: row[0].saved_bytes),
    Column("text", lambda row: str(row[0])),
)


def sections_of(found: Contents) -> list[Section]:
    """Return the tables that have rows: that of the values first, that of the proposals last."""

    def counted(name: str, columns: tuple[Column, ...], others: str) -> Section:
        rows, total = getattr(found, name), getattr(found, f"all_{name}")
        hidden = total - sum(row.count for row in rows)
        return Section(name, columns, rows, _more(hidden, name.removesuffix("s"), others))

    plan = list(proposals_of(found).items())
    more = any(new.layout.num_cores > new.instead_of.num_cores for new, _ in plan)
    wider = ", or hold less per core on more cores" if more else ""
    left_out = _more(found.left_out, "value", "with less waste")
    sections = (
        Section("layouts, the worst first", _FINDINGS, found.findings, left_out),
        Section("memory peaks", _PEAKS, found.peaks),
        counted("moves", _MOVES, "of smaller tensors"),
        counted("collectives", _COLLECTIVES, "that receive less"),
        counted("shardings", _SHARDINGS, "with smaller parts"),
        counted("reshards", _RESHARDS, "to smaller parts"),
        Section(f"layouts that waste less{wider}", _PLAN, plan),
    )
    return [section for section in sections if section.rows]


def _more(count: int, noun: str, which: str) -> str:
    return f"{number(count, noun)} {which}" if count > 0 else ""


def proposals_of(found: Contents) -> dict[Proposal, int]:
    """Return each distinct proposal, and the line of the first finding that has it."""
    lines: dict[Proposal, int] = {}
    for finding in found.findings:
        if finding.proposal:
            lines.setdefault(finding.proposal, finding.line)
    return lines
