"""`Contents`: what was read of a dump, the worst rows of each kind and the sums over all.

It is what tables, pages, records and comparisons are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.reading import Found
from gridlayout.dump.values.peaks import Peak
from gridlayout.layouts.memory import Chip


@dataclass(frozen=True)
class Unknown:
    """Texts that look like layouts and are none: why, how many, the first one and its line."""

    reason: str
    count: int
    line: int
    text: str


@dataclass(frozen=True)
class Contents:
    """What was read of a dump.

    findings: the values that waste most bytes, the worst first (with a plan, those that save most).
    moves: the copies of most data, the one that moves most bytes first. peaks: the most that each
    memory holds at a time, and the values alive then. collectives: what devices send each other,
    the most bytes first. shardings, reshards: tensors divided over devices, and those that change.
    unknown: texts that look like layouts and can't be read, by reason.

    lines: of the dump. layouts, nbytes, data_bytes: of all values that own memory, each counted
    once; mentions: how often a layout is named, all_moves and all_unknown too. kind: what kind of
    text it is (ttnn, hlo, stablehlo, ...). passes: the lines in which the dump's passes begin, and
    their titles; pass_name: the one that is explained. note: why nothing was found, if so.
    unpeaked: functions of too many values to tell a peak: over 2**18, or 16 MiB of names.
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
    reshards: tuple[Reshard, ...] = ()
    kind: str = "text"
    passes: tuple[tuple[int, str], ...] = ()
    pass_name: str = ""
    note: str = ""
    unpeaked: tuple[str, ...] = ()
    found: Found | None = field(default=None, repr=False, compare=False)

    @property
    def left_out(self) -> int:
        """Values that waste less than those in `findings`."""
        return self.layouts - sum(finding.values for finding in self.findings)
