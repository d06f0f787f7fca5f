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
# A TPU's report names the memory; a GPU's does not.
_TOTAL = re.compile(rf"Total (\w{{1,32}}) usage (>=) {_SIZE}|\b()()total allocation:\s+{_SIZE}")
_START = r"[\s>|E]{0,99}"  # as quoted in a message, or shown by pytest
_ENTRY = re.compile(rf"{_START}(?:[0-9]{{1,6}}\. )?Size: {_SIZE}")
_LINES = re.compile(
    rf"{_START}(?:Operator|Shape|Unpadded size|Extra memory|XLA [Ll]abel|Allocation type): ?(.*)"
)
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
    """A report while it is read. peak: of its totals. alive: the largest allocations so far."""

    begun: bool = False
    peak: Peak | None = None
    alive: list[Span] = field(default_factory=list)
    line: int = 0
    nbytes: int = 0
    name: str = ""
    op: str = ""
    types: tuple[str, ...] = ()

    def read(self, text: str, line: int) -> tuple[bool, Allocation | None]:
        """Read a line; return whether it is of a report, and the allocation that it ends.

        >>> report = Report()
        >>> report.read("Total hbm usage >= 2.00K:", 1), report.peak.nbytes
        ((True, None), 2048)
        >>> report.read("  1. Size: 1.0K", 2), report.read("  Shape: f32[256]{0}", 3)
        ((True, None), (True, None))
        >>> report.read("  ======", 4)
        (True, Allocation(line=2, name='', op='', types=('f32[256]{0}',)))
        """
        self.begun = self.begun or _BEGIN.search(text) is not None
        if not self.begun:
            return False, None
        if total := _TOTAL.search(text):
            found = [each for each in total.groups() if each is not None]
            memory, least, number, unit = found
            self.peak = Peak(
                "", memory or "memory", _bytes(number, unit), line, (), at_least=bool(least)
            )
            return True, None
        if entry := _ENTRY.match(text):
            ended = self.end()
            self.line, self.nbytes = line, _bytes(*entry.groups())
            return True, ended
        if self.line and text.strip().startswith("====="):
            return True, self.end()
        if stated := _LINES.match(text):
            self._state(text, stated[1])
            return True, None
        return _BEGIN.search(text) is not None, None

    def _state(self, text: str, value: str) -> None:
        if "Shape: " in text:
            self.types = tuple(TYPE.findall(value))
        elif "XLA " in text:
            found = instruction_of(value)
            self.name, self.op = (found.name, found.op) if found else (value[:200], "")

    def end(self) -> Allocation | None:
        """End the allocation that is being read, and return it."""
        if not self.line:
            return None
        found = Allocation(self.line, self.name, self.op, self.types)
        self.alive.append(Span(self.name, self.op, self.line, self.line, self.nbytes))
        self.alive = largest(self.alive)
        self.line, self.nbytes, self.name, self.op, self.types = 0, 0, "", "", ()
        return found

    def peaks(self) -> list[Peak]:
        """Return the peak that the report states; none without a report."""
        if self.peak is None:
            return []
        return [replace(self.peak, alive=tuple(self.alive))]


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
