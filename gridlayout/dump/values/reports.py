"""Reports of memory that running systems print: XLA's of memory that ran out, tt-mlir's states.

    Ran out of memory in memory space hbm. Used 41.00G of 16.00G hbm. Exceeded ...
    Total hbm usage >= 41.00G:
      1. Size: 16.00G
         Shape: s32[4194304,8,5]{2,1,0:T(8,128)}
         XLA label: %copy.7 = s32[4194304,8,5]{2,1,0:T(8,128)} copy(...)

A report states totals, and lists the largest allocations only, so its totals are the peak.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gridlayout.dump.text.hlo import TYPE, instruction_of
from gridlayout.dump.values.peaks import Peak, Span, largest

_SIZE = r"([0-9]{1,18}(?:\.[0-9]{1,6})?) ?([KMGT]?)(?:i?B|ytes)?\b"
_BEGIN = re.compile(
    r"Ran out of memory in memory space|BufferAssignment (?:OOM|stats)|Total \w{1,32} usage >= "
)
# A TPU's report names the memory, maybe twice; a GPU's does not.
_USED = re.compile(rf"Ran out of memory in memory space (\w{{1,32}})\. Used (){_SIZE} of ")
_TOTAL = re.compile(rf"Total (\w{{1,32}}) usage (>=) {_SIZE}|\b()()total allocation:\s+{_SIZE}")
_PART = re.compile(rf"\b(parameter|maybe_live_out|preallocated temp) allocation:\s+{_SIZE}")
_START = r"[\s>|E]{0,99}"  # as quoted in a message, or shown by pytest
_ENTRY = re.compile(rf"{_START}(?:[0-9]{{1,6}}\. )?Size: {_SIZE}")
_LINES = re.compile(
    rf"{_START}(?:Operator|Shape|Entry Parameter Subshape|Unpadded size|Extra memory|XLA [Ll]abel"
    r"|Allocation type): ?(.*)"
)
_UNNAMED = "memory"
_MAX_MEMORIES = 16
_STATE = re.compile(
    r"Device (\w[\w ]{0,30}?) memory state: MemoryView\{numBanks: ([0-9]{1,6}), .{0,80}?"
    r"totalBytesAllocatedPerBank: ([0-9]{1,12}(?:\.[0-9]{1,6})?) MB"
)


def _bytes(number: str, unit: str) -> int:
    """Return a size as XLA prints it, in bytes; its units are binary.

    >>> _bytes("1.50", "K"), _bytes("12", "")
    (1536, 12)
    """
    return round(float(number) * 1024 ** " KMGT".index(unit or " "))


class Allocation(NamedTuple):
    """An allocation that a report lists: its line, name and op, and the types it was made for."""

    line: int
    name: str
    op: str
    types: tuple[str, ...]


@dataclass
class Report:
    """A report while it is read; a text may hold several, and the same one several times.

    found: the totals of each memory. alive: its largest allocations so far. now: the memory of the
    lines that follow. seen: the totals so far. is_again: whether the lines that
    follow repeat a report.
    """

    begun: bool = False
    found: dict[str, Peak] = field(default_factory=dict)
    alive: dict[str, list[Span]] = field(default_factory=dict)
    now: str = _UNNAMED
    seen: set[tuple[str, int, bool]] = field(default_factory=set)
    is_again: bool = False
    line: int = 0
    nbytes: int = 0
    name: str = ""
    op: str = ""
    types: tuple[str, ...] = ()

    def read(self, text: str, line: int) -> tuple[bool, Allocation | None]:
        """Read a line; return whether it is of a report, and the allocation that it ends.

        >>> report = Report()
        >>> report.read("Total hbm usage >= 2.00K:", 1), report.peaks()[0].nbytes
        ((True, None), 2048)
        >>> report.read("  1. Size: 1.0K", 2), report.read("  Shape: f32[256]{0}", 3)
        ((True, None), (True, None))
        >>> report.read("  ======", 4)
        (True, Allocation(line=2, name='', op='', types=('f32[256]{0}',)))
        """
        begins = _BEGIN.search(text) is not None
        self.begun = self.begun or begins
        if not self.begun:
            return False, None
        if total := _USED.search(text) or _TOTAL.search(text):
            ended = self.end()
            memory, least, number, unit = (each for each in total.groups() if each is not None)
            self._total(memory or _UNNAMED, _bytes(number, unit), line, bool(least))
            return True, ended
        if entry := _ENTRY.match(text):
            ended = self.end()
            self.line, self.nbytes = line, _bytes(*entry.groups())
            return True, ended
        if self.line and text.strip().startswith("====="):
            return True, self.end()
        if part := _PART.search(text):
            self._part(part[1], _bytes(part[2], part[3]), line)
            return True, None
        if stated := _LINES.match(text):
            self._state(text, stated[1])
            return True, None
        return begins, None

    def _total(self, memory: str, nbytes: int, line: int, at_least: bool) -> None:
        """Begin the report of a memory, or replace its total by a better one."""
        key = (memory, nbytes, at_least)
        self.is_again, self.now = key in self.seen, memory
        self.seen.add(key)
        if self.is_again or (memory not in self.found and len(self.found) >= _MAX_MEMORIES):
            return
        old = self.found.get(memory, Peak("", memory, 0, line, ()))
        self.found[memory] = replace(old, nbytes=nbytes, line=line, at_least=at_least)

    def _part(self, word: str, nbytes: int, line: int) -> None:
        """Add a part of a GPU's total, which follows."""
        old = self.found.get(_UNNAMED, Peak("", _UNNAMED, 0, line, ()))
        if word == "parameter":
            self.found[_UNNAMED] = replace(old, arguments=nbytes)
        elif word == "maybe_live_out":
            self.found[_UNNAMED] = replace(old, results=nbytes)
        else:
            self.found[_UNNAMED] = replace(old, temporary=nbytes)

    def _state(self, text: str, value: str) -> None:
        if "Subshape: " in text:
            self.name, self.op = self.name or "parameter", self.op or "parameter"
        if "hape: " in text:
            self.types = tuple(TYPE.findall(value))
        elif "XLA " in text:
            found = instruction_of(value)
            self.name, self.op = (found.name, found.op) if found else (value[:200], "")

    def end(self) -> Allocation | None:
        """End the allocation that is being read, and return it; None if it was read before."""
        if not self.line:
            return None
        found = Allocation(self.line, self.name, self.op, self.types)
        span = Span(self.name, self.op, self.line, self.line, self.nbytes)
        self.line, self.nbytes, self.name, self.op, self.types = 0, 0, "", "", ()
        if self.is_again:
            return None
        self.alive[self.now] = largest([*self.alive.get(self.now, ()), span])
        return found

    def peaks(self) -> list[Peak]:
        """Return the peaks that the reports state; none without a report."""
        stated = [peak for peak in self.found.values() if peak.nbytes]
        return [replace(each, alive=tuple(self.alive.get(each.memory, ()))) for each in stated]


def measured(text: str, line: int) -> Peak | None:
    """Return what a memory state of tt-mlir's runtime says is allocated; None for another line.

    That is bytes of one core for L1, of all banks for DRAM. Source: `runtime/lib/ttnn` of tt-mlir,
    whose MB are 2**20 bytes.

    >>> found = measured("Device DRAM memory state: MemoryView{numBanks: 8, totalBytesPerBank: "
    ...                  "32.0 MB, totalBytesAllocatedPerBank: 0.5 MB, ...}", 7)
    >>> found.memory, found.nbytes
    ('measured dram', 4194304)
    """
    found = _STATE.search(text)
    if found is None:
        return None
    memory = found[1].lower().replace(" ", "_")
    banks = 1 if memory.startswith("l1") else int(found[2])
    return Peak("", f"measured {memory}", banks * _bytes(found[3], "M"), line, ())
