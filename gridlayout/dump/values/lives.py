"""Lives of a function's values in MLIR: where each is made, and where it ends.

`ttnn.deallocate` ends a value. In a function without such lines its last use does; in one with
them, what is not ended lives on to the function's end. Views are other names of what they show, and
so is a result that an op puts where an operand was allocated for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.dump.text.statements import Made, Statement
from gridlayout.dump.values.peaks import MAX_SPANS, Peak, Spans
from gridlayout.dump.values.sizes import Sizes
from gridlayout.layouts.memory import Chip, Held

_MAX_EMPTIES = 1 << 12  # allocated and not yet filled


_MEMORIES = ("l1", "dram")


@dataclass
class Lives:
    """The values of one function, as its lines come.

    spans: the values of each memory, marked where they are ended. values: by name, the number of
    each that is not, times two, and its memory's.
    """

    function: str
    chip: Chip
    spans: tuple[Spans, Spans] = field(default_factory=lambda: (Spans(), Spans()))
    values: dict[str, int] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # another name of
    empties: dict[str, str] = field(default_factory=dict)  # allocated, to be filled: its type
    has_ends: bool = False
    over: bool = False
    line: int = 0

    def read(self, said: Statement) -> None:
        """What a line reads lives on to it; what it frees ends there."""
        self.line = said.line
        for name in said.reads:
            place = self.values.get(self.same.get(name, name))
            if place is not None:
                self.spans[place & 1].last[place >> 1] = said.line
        for name in said.frees:
            self.has_ends = True
            place = self.values.pop(self.same.get(name, name), None)
            if place is not None:
                self.spans[place & 1].marks[place >> 1] = 1

    def owner_of(self, said: Statement, made: Made) -> str | None:
        """The value that a made one is another name of; None where it has its own memory."""
        found = None
        if said.is_view and said.reads:
            found = said.reads[0]
        elif self.empties:
            for name in said.reads:
                if self.empties.get(name) == made.text:
                    found = name
        if found is None:
            if said.is_empty:
                if len(self.empties) >= _MAX_EMPTIES:
                    self.empties.clear()
                self.empties[made.name] = made.text
            return None
        if len(self.same) >= MAX_SPANS:
            self._give_up()
        if not self.over:
            self.same[made.name] = self.same.get(found, found)
        return found

    def add(self, said: Statement, made: Made, sizes: Sizes) -> None:
        """A value with memory of its own."""
        memory = sizes.buffers[0]
        if self.over or memory not in _MEMORIES:
            return
        which = _MEMORIES.index(memory)
        spans = self.spans[which]
        if spans.is_full:
            self._give_up()
            return
        nbytes = Held(*sizes.buffers).share(self.chip) if memory == "l1" else sizes.nbytes
        k = spans.add(made.name, said.op, nbytes, said.line)
        self.values[made.name] = k << 1 | which
        if self.same:
            self.same.pop(made.name, None)

    def _give_up(self) -> None:
        """Too many values to say what they hold at a time."""
        self.over, self.spans = True, (Spans(), Spans())
        self.values.clear()
        self.same.clear()

    def peaks(self) -> list[Peak]:
        """The most that L1 and DRAM hold at a time; none where there are too many values."""
        found = []
        for memory, spans in zip(_MEMORIES, self.spans, strict=True):
            for k in range(len(spans)) if self.has_ends else ():
                if not spans.marks[k]:
                    spans.last[k] = self.line
            if len(spans):
                found.append(spans.peak(self.function, memory))
        return found
