"""`Peak`: the most bytes that are live at one time, at which line, and in which values.

`Spans` are values with their live ranges, of MLIR or HLO. In MLIR, `LiveRanges` of a function are
built line by line: a live range ends with `ttnn.deallocate`. In a function without deallocations it
ends with the last use; in a function with some, a value that is not deallocated is live to the
function's end. A view is an alias of its operand. A result is an alias of an operand that was
allocated for it. A `Curve` is bytes over time, with a bounded number of points.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import attrgetter, itemgetter
from sys import intern
from typing import NamedTuple

from gridlayout.dump.text.statements import Result, Statement
from gridlayout.dump.values.type_texts import Sizes
from gridlayout.layouts.memory import Chip, Held
from gridlayout.live_ranges import Interval, peak

MAX_ALIVE = 16  # most values that a peak lists
# Bounds on the values of one function and the characters of their names; beyond, there is no peak.
MAX_SPANS, MAX_CHARACTERS = 1 << 18, 1 << 24
_MAX_EMPTIES = 1 << 12  # most buffers that are allocated and not yet filled
_MOST_POINTS = 48  # of a curve; twice as many are merged in pairs
_BARS = "▁▂▃▄▅▆▇█"
MEMORIES = ("l1", "dram")  # of a core, and of a device


class Span(NamedTuple):
    """A value that owns memory, live from `line` to `last`, and its bytes."""

    name: str
    op: str
    line: int
    last: int
    nbytes: int


@dataclass(frozen=True)
class Peak:
    """The most bytes that one memory holds at one time.

    function: the function or entry computation. memory: "l1" (of the fullest core), "dram" (of one
    device), or of a compiled program "memory", "host memory", and its other memory spaces: "VMEM"
    and "semaphores" of a TPU, else "memory 1"; these names follow "whole-array " for a program that
    is not yet divided over devices, whose shapes are those of whole arrays. line: where the peak is
    reached. alive: the largest values that are live there. arguments, results, temporary: the parts
    of a compiled program's memory in bytes, as in XLA's `memory_analysis()`; nbytes is their sum.
    at_least: whether values whose type can't be read are left out, so that nbytes is a lower bound.
    curve: bytes over time, as pairs of a line, or an instruction's number, and bytes, if the dump
    states them: of many, the highest of several in a row.

    XLA's files on buffers have peaks of other names. "assigned memory" is the total of all
    allocations, also of constants, which are no part; "assigned memory of all spaces" that of all
    memories, where a file does not tell them apart. "live memory" is the most that is in use at
    one instruction. tt-mlir's runtime states "measured l1" and "measured dram".
    """

    function: str
    memory: str
    nbytes: int
    line: int
    alive: tuple[Span, ...]
    arguments: int = 0
    results: int = 0
    temporary: int = 0
    at_least: bool = False
    curve: tuple[tuple[int, int], ...] = ()


def largest(spans: Iterable[Span]) -> list[Span]:
    """Return the `MAX_ALIVE` largest values."""
    return nlargest(MAX_ALIVE, spans, key=attrgetter("nbytes"))


class Spans:
    """Values that own memory and their live ranges, stored as columns to save memory.

    first, last: both ends of each live range. marks: a number below 256 for each value, whose
    meaning the caller defines.

    >>> spans = Spans()
    >>> for name, first, last, nbytes in (("a", 1, 3, 8), ("b", 2, 3, 4), ("c", 4, 5, 9)):
    ...     spans.last[spans.add(name, "x", nbytes, first)] = last
    >>> found = spans.peak("f", "l1")
    >>> found.nbytes, found.line, [span.name for span in found.alive]
    (12, 2, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ops: list[str] = []
        self.nbytes: list[int] = []
        self.first, self.last, self.marks = array("q"), array("q"), bytearray()
        self.characters = 0

    def __len__(self) -> int:
        return len(self.names)

    @property
    def is_full(self) -> bool:
        """Whether no more values can be added."""
        return len(self.names) >= MAX_SPANS or self.characters >= MAX_CHARACTERS

    def add(self, name: str, op: str, nbytes: int, at: int, mark: int = 0) -> int:
        """Add a value that is live at `at` only, so far; return its index."""
        self.names.append(name)
        self.ops.append(intern(op))
        self.nbytes.append(nbytes)
        self.first.append(at)
        self.last.append(at)
        self.marks.append(mark)
        self.characters += len(name)
        return len(self.names) - 1

    def peak(self, function: str, memory: str) -> Peak:
        """Return the peak of the values, at the first line that reaches it."""
        most, line = peak(map(Interval, self.first, self.last, self.nbytes))
        alive = self.largest(k for k in range(len(self)) if self.first[k] <= line <= self.last[k])
        return Peak(function, memory, most, line, alive)

    def largest(self, among: Iterable[int]) -> tuple[Span, ...]:
        """Return the `MAX_ALIVE` largest of the given values, without those of 0 bytes."""
        found = nlargest(MAX_ALIVE, filter(self.nbytes.__getitem__, among), self.nbytes.__getitem__)
        return tuple(
            Span(self.names[k], self.ops[k], self.first[k], self.last[k], self.nbytes[k])
            for k in found
        )


@dataclass
class LiveRanges:
    """The live ranges of one function of MLIR, built line by line.

    spans: the values in L1 and in DRAM; deallocated ones have mark 1. places: for each name of a
    value or an alias, the index of the value in its spans, times 2, plus 1 if it is in DRAM.
    aliases: their number. empties: the types of buffers that are allocated and not yet filled, by
    name. has_ends: whether the function has deallocations. unread: whether a value has no type
    that can be read.
    """

    function: str
    chip: Chip
    spans: tuple[Spans, Spans] = field(default_factory=lambda: (Spans(), Spans()))
    places: dict[str, int] = field(default_factory=dict)
    aliases: int = 0
    empties: dict[str, str] = field(default_factory=dict)
    has_ends: bool = False
    over: bool = False
    unread: bool = False
    line: int = 0

    def read(self, statement: Statement) -> None:
        """Extend the ranges of the values that a line reads; end those that it deallocates."""
        self.line = statement.line
        for name in statement.operands:
            if (place := self.places.get(name)) is not None:
                spans = self.spans[place & 1]
                if not spans.marks[place >> 1]:
                    spans.last[place >> 1] = statement.line
            elif not self.function and name.startswith("%arg"):  # as in a log, which has no head
                self.unread = True
        for name in statement.frees:
            self.has_ends = True
            if (place := self.places.pop(name, None)) is not None:
                self.spans[place & 1].marks[place >> 1] = 1

    def is_alias(self, statement: Statement, result: Result) -> bool:
        """Return whether a result is an alias of an operand, and record of which."""
        owner = None
        if statement.is_view and statement.operands:
            owner = statement.operands[0]
        elif self.empties:
            of_type = (n for n in statement.operands if self.empties.get(n) == result.text)
            owner = next(reversed([*of_type]), None)
        if owner is None:
            if statement.is_empty:
                if len(self.empties) >= _MAX_EMPTIES:
                    self.empties.clear()
                self.empties[result.name] = result.text
            return False
        self.aliases += 1
        if self.aliases > MAX_SPANS:
            self._give_up()
        if (place := self.places.get(owner)) is not None:
            self.places[result.name] = place
        return True

    def add(self, statement: Statement, result: Result, sizes: Sizes) -> None:
        """Add a value that owns memory."""
        memory = sizes.buffers[0]
        if self.over or memory not in MEMORIES:
            return
        which = MEMORIES.index(memory)
        spans = self.spans[which]
        if spans.is_full:
            self._give_up()
            return
        nbytes = Held(*sizes.buffers).share(self.chip) if memory == "l1" else sizes.nbytes
        k = spans.add(result.name, statement.op, nbytes, statement.line)
        self.places[result.name] = k << 1 | which

    def _give_up(self) -> None:
        """Drop all data of a function with too many values: it has no peak."""
        self.over, self.spans = True, (Spans(), Spans())
        self.places.clear()

    def peaks(self) -> list[Peak]:
        """Return the peaks of L1 and DRAM; none if there are too many values."""
        found = []
        for memory, spans in zip(MEMORIES, self.spans, strict=True):
            for k in range(len(spans)) if self.has_ends else ():
                if not spans.marks[k]:
                    spans.last[k] = self.line
            if len(spans):
                peak = spans.peak(self.function, memory)
                found.append(replace(peak, at_least=self.unread))
        return found


class Curve:
    """Bytes over time, as points. Where there are many, each is the highest of several in a row.

    >>> curve = Curve()
    >>> for at, nbytes in enumerate((0, 5, 10, 20, 2)):
    ...     curve.add(at, nbytes)
    >>> curve.points[-2:], bars(curve.points)
    (((3, 20), (4, 2)), '▁▂▄█▁')
    """

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []
        self._each, self._count = 1, 0  # values that one point stands for; those so far

    def add(self, at: int, nbytes: int) -> None:
        """Add the bytes at a time, which is not before the last one."""
        points = self._points
        if self._count % self._each == 0:
            points.append((at, nbytes))
        elif nbytes > points[-1][1]:
            points[-1] = (at, nbytes)
        self._count += 1
        if len(points) == 2 * _MOST_POINTS:
            pairs = (points[k : k + 2] for k in range(0, 2 * _MOST_POINTS, 2))
            self._points = [max(pair, key=itemgetter(1)) for pair in pairs]
            self._each *= 2

    @property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The points so far."""
        return tuple(self._points)


def bars(points: tuple[tuple[int, int], ...]) -> str:
    """Return the bytes of each point as a bar; the highest is full."""
    most = max((nbytes for _, nbytes in points), default=0) or 1
    return "".join(_BARS[(len(_BARS) - 1) * nbytes // most] for _, nbytes in points)
