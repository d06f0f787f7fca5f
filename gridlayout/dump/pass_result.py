"""`PassResult`: what a dump's pass holds, while it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from gridlayout.dump.moves.collectives import Collectives
from gridlayout.dump.moves.shardings import Sharded
from gridlayout.dump.moves.traffic import Traffic
from gridlayout.dump.tally import Tally
from gridlayout.dump.values.peaks import Curve, Peak
from gridlayout.dump.values.top_keys import TopKeys

MAX_REASONS = 20
_MAX_FUNCTIONS = 1 << 12


class PassResult:
    """The data collected from one pass. is_cut: whether it ends before its ENTRY computation."""

    def __init__(self, title: str, limit: int) -> None:
        self.title, self.limit = title, limit
        self.tally = Tally(limit)
        self.unknown = TopKeys(MAX_REASONS)
        self.collectives, self.sharded = Collectives(limit), Sharded(limit)
        self.traffic = Traffic()
        self.peaks: dict[str, Peak] = {}
        self.curves: dict[str, Curve] = {}  # of measured memories
        self.unpeaked: dict[str, None] = {}
        self.mentions, self.is_cut = 0, False
        self.functions: dict[str, None] = {}

    def name(self, function: str, requested: str | None) -> None:
        """Record the name of a function: of the first ones, and of the requested one."""
        if len(self.functions) < _MAX_FUNCTIONS or function == requested:
            self.functions[function] = None

    def add_peaks(self, function: str, peaks: Iterable[Peak], over: bool) -> None:
        """Store the highest peak of each memory. over: the function has too many values for one."""
        for peak in peaks:
            highest = max(self.peaks.get(peak.memory, peak), peak, key=attrgetter("nbytes"))
            at_least = any(each.at_least for each in (highest, peak))
            if highest.nbytes:
                self.peaks[peak.memory] = replace(highest, at_least=at_least)
        if over and len(self.unpeaked) < MAX_REASONS:
            self.unpeaked[function] = None

    def measure(self, peak: Peak) -> None:
        """Add what a memory holds at one time."""
        if peak.memory in self.curves or len(self.curves) < MAX_REASONS:
            self.curves.setdefault(peak.memory, Curve()).add(peak.line, peak.nbytes)
            self.add_peaks("", [peak], over=False)

    def peaks_over_time(self) -> tuple[Peak, ...]:
        """Return the peaks, with the curves of those that were measured."""
        return tuple(
            replace(peak, curve=curve.points) if (curve := self.curves.get(memory)) else peak
            for memory, peak in self.peaks.items()
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        held = self.mentions or self.peaks
        return not (held or self.collectives.ops.total or self.sharded.tensors.total)
