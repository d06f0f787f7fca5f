"""Live ranges of a function's values in MLIR: the first and last line of each.

A live range ends with `ttnn.deallocate`. In a function without deallocations it ends with the last
use; in a function with some, a value that is not deallocated is live to the function's end. A view
is an alias of its operand. A result is an alias of an operand that was allocated for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.dump.text.statements import Result, Statement
from gridlayout.dump.values.peaks import MAX_SPANS, Peak, Spans
from gridlayout.dump.values.sizes import Sizes
from gridlayout.layouts.memory import Chip, Held

_MAX_EMPTIES = 1 << 12  # most buffers that are allocated and not yet filled
_MEMORIES = ("l1", "dram")


@dataclass
class LiveRanges:
    """The live ranges of one function, built line by line.

    spans: the values in L1 and in DRAM; deallocated ones have mark 1. values: for each name of a
    value that is not deallocated, its index in its spans, times 2, plus 1 if it is in DRAM. same:
    for each alias, the name of the value that owns the memory. empties: the types of buffers that
    are allocated and not yet filled, by name. has_ends: whether the function has deallocations.
    """

    function: str
    chip: Chip
    spans: tuple[Spans, Spans] = field(default_factory=lambda: (Spans(), Spans()))
    values: dict[str, int] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    empties: dict[str, str] = field(default_factory=dict)
    has_ends: bool = False
    over: bool = False
    line: int = 0

    def read(self, statement: Statement) -> None:
        """Extend the ranges of the values that a line reads; end those that it deallocates."""
        self.line = statement.line
        for name in statement.operands:
            place = self.values.get(self.same.get(name, name))
            if place is not None:
                self.spans[place & 1].last[place >> 1] = statement.line
        for name in statement.frees:
            self.has_ends = True
            place = self.values.pop(self.same.get(name, name), None)
            if place is not None:
                self.spans[place & 1].marks[place >> 1] = 1

    def owner_of(self, statement: Statement, result: Result) -> str | None:
        """Return the value of which a result is an alias; None if it owns its memory."""
        found = None
        if statement.is_view and statement.operands:
            found = statement.operands[0]
        elif self.empties:
            for name in statement.operands:
                if self.empties.get(name) == result.text:
                    found = name
        if found is None:
            if statement.is_empty:
                if len(self.empties) >= _MAX_EMPTIES:
                    self.empties.clear()
                self.empties[result.name] = result.text
            return None
        if len(self.same) >= MAX_SPANS:
            self._give_up()
        if not self.over:
            self.same[result.name] = self.same.get(found, found)
        return found

    def add(self, statement: Statement, result: Result, sizes: Sizes) -> None:
        """Add a value that owns memory."""
        memory = sizes.buffers[0]
        if self.over or memory not in _MEMORIES:
            return
        which = _MEMORIES.index(memory)
        spans = self.spans[which]
        if spans.is_full:
            self._give_up()
            return
        nbytes = Held(*sizes.buffers).share(self.chip) if memory == "l1" else sizes.nbytes
        k = spans.add(result.name, statement.op, nbytes, statement.line)
        self.values[result.name] = k << 1 | which
        if self.same:
            self.same.pop(result.name, None)

    def _give_up(self) -> None:
        """Drop all data of a function with too many values: it has no peak."""
        self.over, self.spans = True, (Spans(), Spans())
        self.values.clear()
        self.same.clear()

    def peaks(self) -> list[Peak]:
        """Return the peaks of L1 and DRAM; none if there are too many values."""
        found = []
        for memory, spans in zip(_MEMORIES, self.spans, strict=True):
            for k in range(len(spans)) if self.has_ends else ():
                if not spans.marks[k]:
                    spans.last[k] = self.line
            if len(spans):
                found.append(spans.peak(self.function, memory))
        return found
