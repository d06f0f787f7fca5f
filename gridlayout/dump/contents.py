"""`Contents`: the rows and sums of a dump, from which tables, pages and comparisons are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.reading import PassResult
from gridlayout.dump.values.peaks import Peak
from gridlayout.layouts.memory import Chip


@dataclass(frozen=True)
class Unknown:
    """Texts that look like layouts but can't be read, for one reason.

    count: how many. line, text: the first one.
    """

    reason: str
    count: int
    line: int
    text: str


@dataclass(frozen=True)
class Contents:
    """The largest rows of each kind in a dump, and the sums over all rows.

    findings: the values that waste most bytes, the worst first; with `plan`, those whose proposal
    saves most first. moves: the copies of most data, sorted by moved bytes. peaks: the most bytes
    that each memory holds at one time, and the values that are live then. collectives: data that
    devices exchange, sorted by bytes. shardings, reshards: tensors sharded over devices, and
    changes of their sharding. unknown: texts that look like layouts but can't be read, by reason.

    lines: the number of lines of the dump. layouts, nbytes, data_bytes: the number and bytes of all
    values that own memory, each counted once. mentions: the number of occurrences of layouts.
    all_moves, all_collectives, all_shardings, all_reshards, all_unknown: the numbers of all
    occurrences, also of those not listed. kind: the kind of text (ttnn, hlo, stablehlo, ...).
    passes: first line and title of each pass; pass_name: the title of the one that is explained.
    note: why no layout was found; empty if some were. unpeaked: functions without a peak, because
    they have over 2**18 values, names of over 16 MiB, or too many values in tuples of tuples.
    """

    source: str
    chip: Chip
    lines: int
    layouts: int
    nbytes: int
    data_bytes: int
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]
    all_moves: int
    unknown: tuple[Unknown, ...]
    all_unknown: int
    mentions: int = 0
    peaks: tuple[Peak, ...] = ()
    collectives: tuple[CollectiveOp, ...] = ()
    all_collectives: int = 0
    shardings: tuple[ShardedTensor, ...] = ()
    all_shardings: int = 0
    reshards: tuple[Reshard, ...] = ()
    all_reshards: int = 0
    kind: str = "text"
    passes: tuple[tuple[int, str], ...] = ()
    pass_name: str = ""
    note: str = ""
    unpeaked: tuple[str, ...] = ()
    found: PassResult | None = field(default=None, repr=False, compare=False)

    @property
    def left_out(self) -> int:
        """The number of values that are not in `findings`; they waste less."""
        return self.layouts - sum(finding.values for finding in self.findings)
