"""Lives of a function's values in MLIR: where each is made, and where it ends.

`ttnn.deallocate` ends a value. In a function without such lines its last use does; in one with
them, what is not ended lives on to the function's end. Views are other names of what they show, and
so is a result that an op puts where an operand was allocated for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.dump.peaks import MAX_SPANS, Peak, Span, peak_of
from gridlayout.dump.statements import Made, Statement
from gridlayout.layouts.memory import Chip, Held


@dataclass(slots=True)
class _Life:
    op: str
    line: int
    last: int
    memory: str
    nbytes: int
    is_ended: bool = False


@dataclass
class Lives:
    """The values of one function, as its lines come."""

    function: str
    chip: Chip
    values: dict[str, _Life] = field(default_factory=dict)
    ended: list[tuple[str, _Life]] = field(default_factory=list)
    same: dict[str, str] = field(default_factory=dict)  # another name of
    empties: dict[str, str] = field(default_factory=dict)  # allocated, to be filled: its type
    has_ends: bool = False
    over: bool = False
    line: int = 0

    def read(self, said: Statement) -> None:
        """What a line reads lives on to it; what it frees ends there."""
        self.line = said.line
        for name in said.reads:
            if life := self.values.get(self.same.get(name, name)):
                life.last = said.line
        for name in said.frees:
            self.has_ends = True
            if life := self.values.pop(self.same.get(name, name), None):
                life.is_ended = True
                self.ended.append((name, life))

    def owner_of(self, said: Statement, made: Made) -> str | None:
        """The value that a made one is another name of; None where it has its own memory."""
        found = None
        if said.is_view and said.reads:
            found = said.reads[0]
        else:
            for name in said.reads:
                if self.empties.get(name) == made.text:
                    found = name
        if found is None:
            if said.is_empty:
                self.empties[made.name] = made.text
            return None
        self.same[made.name] = self.same.get(found, found)
        return found

    def add(self, said: Statement, made: Made, held: Held) -> None:
        """A value with memory of its own."""
        self.over = self.over or len(self.values) + len(self.ended) >= MAX_SPANS
        if self.over:
            return
        nbytes = held.share(self.chip) if held.memory == "l1" else held.nbytes
        if old := self.values.pop(made.name, None):  # another region's value of this name
            self.ended.append((made.name, old))
        self.values[made.name] = _Life(said.op, said.line, said.line, held.memory, nbytes)
        self.same.pop(made.name, None)

    def peaks(self) -> list[Peak]:
        """The most that L1 and DRAM hold at a time; none where there are too many values."""
        if self.over:
            return []
        spans: dict[str, list[Span]] = {}
        for name, life in [*self.ended, *self.values.items()]:
            stays = self.has_ends and not life.is_ended
            last = self.line if stays else life.last
            span = Span(name, life.op, life.line, last, life.nbytes)
            spans.setdefault(life.memory, []).append(span)
        return [
            peak_of(self.function, memory, spans[memory])
            for memory in ("l1", "dram")
            if memory in spans
        ]
