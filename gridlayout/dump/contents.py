"""`Contents`: the rows and sums of a dump, from which tables, pages and comparisons are made.

Sizes are in bytes. `data_bytes` is the size of the logical elements, in the layout's element size.
All bytes that a layout allocates beyond them are wasted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.costs import Described
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.pass_result import PassResult
from gridlayout.dump.plan import Proposal
from gridlayout.dump.values.peaks import Peak
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, Fit
from gridlayout.layouts.padding import bounded_share


@dataclass(frozen=True)
class Finding:
    """A value of a dump and its layout.

    line, op: its definition. count: the number of its definitions and uses. name: empty for a type
    without a value. layout: its layout. fit: whether the layout fits on the chip; None if the chip
    has no such memory. proposal: a layout that wastes less, if one was requested and found. last:
    the last line that uses it. function: the function that it is in. address: in bytes; None if the
    dump does not state it. values: the number of values that the row describes: 1 for a named one.
    """

    line: int
    count: int
    op: str
    name: str
    layout: Described
    fit: Fit | None
    proposal: Proposal | None = None
    last: int = 0
    function: str = ""
    address: int | None = None
    values: int = 1

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffer, in whole pages where the memory is allocated in pages.

        For a layout interleaved over the L1 of all cores, the bytes of the fullest core.
        """
        if self.fit is not None and self.fit.space == "l1" and self.layout.is_interleaved:
            return self.fit.needed
        return self.layout.held.per_core

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers."""
        return self.layout.held.nbytes

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements."""
        return self.layout.data_bytes

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all cores' buffers minus those of the data."""
        return max(self.nbytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The share of physical elements that are padding, 0 to 1.

        If two results of the map use one dim and there are over 2**22 positions, the padding is
        not counted exactly: then the share is 1 - elements / positions.
        """
        if isinstance(self.layout, Layout):
            return bounded_share(self.layout)
        return self.layout.padding_share

    @property
    def expansion_factor(self) -> float:
        """Bytes held divided by bytes of data; 1.0 for a tensor without elements."""
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0


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
    advice: what to state if the assumed chip is not the dump's, or that the text is cut; empty if
    there is nothing.
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
    advice: str = ""
    found: PassResult | None = field(default=None, repr=False, compare=False)

    @property
    def left_out(self) -> int:
        """The number of values that are not in `findings`; they waste less."""
        return self.layouts - sum(finding.values for finding in self.findings)
