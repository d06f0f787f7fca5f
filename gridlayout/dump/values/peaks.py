"""`Peak`: the most bytes that are live at one time, at which line, and in which values.

A value is live from the line that defines it to the end of its live range: `ttnn.deallocate` in a
dump with such lines, else its last use.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from sys import intern
from typing import NamedTuple

MAX_ALIVE = 16  # most values that a peak lists
# Bounds on the values of one function and the characters of their names; beyond, there is no peak.
MAX_SPANS, MAX_CHARACTERS = 1 << 18, 1 << 24


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
    device), or "memory" where the dump names no kind. line: where the peak is reached. alive: the
    largest values that are live there. arguments, results, temporary: the parts of a compiled
    program's memory in bytes, as in XLA's `memory_analysis()`; nbytes is their sum.
    """

    function: str
    memory: str
    nbytes: int
    line: int
    alive: tuple[Span, ...]
    arguments: int = 0
    results: int = 0
    temporary: int = 0


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
        every = range(len(self))
        most, line = most_of(every, self.first, self.last, self.nbytes)
        alive = self.largest(k for k in every if self.first[k] <= line <= self.last[k])
        return Peak(function, memory, most, line, alive)

    def largest(self, among: Iterable[int]) -> tuple[Span, ...]:
        """Return the `MAX_ALIVE` largest of the given values, without those of 0 bytes."""
        found = nlargest(MAX_ALIVE, filter(self.nbytes.__getitem__, among), self.nbytes.__getitem__)
        return tuple(
            Span(self.names[k], self.ops[k], self.first[k], self.last[k], self.nbytes[k])
            for k in found
        )


def most_of(
    among: Sequence[int], first: Sequence[int], last: Sequence[int], nbytes: Sequence[int]
) -> tuple[int, int]:
    """Return the most bytes that are live at one time, and the first time at which they are.

    among: indices of the values, sorted by `first`. Live ranges include both ends.

    >>> most_of(range(3), [0, 2, 3], [2, 3, 3], [8, 4, 5])
    (12, 2)
    """
    ends = sorted(among, key=last.__getitem__)
    most = at = held = gone = 0
    for k in among:
        while last[ends[gone]] < first[k]:
            held -= nbytes[ends[gone]]
            gone += 1
        held += nbytes[k]
        if held > most:
            most, at = held, first[k]
    return most, at
