"""`Peak`: the most bytes that are held at a time, where, and by which values.

A value lives from the line that makes it to the one that ends it: `ttnn.deallocate` where the dump
has such lines, else its last use.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from sys import intern
from typing import NamedTuple

MAX_ALIVE = 16  # values that a peak names
# Values of one function, and characters of their names; of more no peak is told.
MAX_SPANS, MAX_CHARACTERS = 1 << 18, 1 << 24


class Span(NamedTuple):
    """A value that owns memory: from which line to which, and its bytes."""

    name: str
    op: str
    line: int
    last: int
    nbytes: int


@dataclass(frozen=True)
class Peak:
    """The most that one memory holds at a time. Bytes.

    function: in which function or entry computation; memory: l1 (the fullest core's), dram (one
    device's), or memory of which the dump names no kind. line: where it is reached. alive: the
    largest values that live there. arguments, results, temporary: the parts of a compiled program's
    memory, as XLA's `memory_analysis()` has them; nbytes is their sum.
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
    """Values that own memory and their lives, in columns: a function may have a hundred thousand.

    marks: a number below 256 for each, whose meaning is the caller's.

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
        """Whether there is no room for more."""
        return len(self.names) >= MAX_SPANS or self.characters >= MAX_CHARACTERS

    def add(self, name: str, op: str, nbytes: int, at: int, mark: int = 0) -> int:
        """A value that lives at one place so far; its number."""
        self.names.append(name)
        self.ops.append(intern(op))
        self.nbytes.append(nbytes)
        self.first.append(at)
        self.last.append(at)
        self.marks.append(mark)
        self.characters += len(name)
        return len(self.names) - 1

    def peak(self, function: str, memory: str) -> Peak:
        """Where the values' lives add up to most; the first such line."""
        every = range(len(self))
        most, line = most_of(every, self.first, self.last, self.nbytes)
        alive = self.largest(k for k in every if self.first[k] <= line <= self.last[k])
        return Peak(function, memory, most, line, alive)

    def largest(self, among: Iterable[int]) -> tuple[Span, ...]:
        """The `MAX_ALIVE` largest of some values, those of no bytes left out."""
        found = nlargest(MAX_ALIVE, filter(self.nbytes.__getitem__, among), self.nbytes.__getitem__)
        return tuple(
            Span(self.names[k], self.ops[k], self.first[k], self.last[k], self.nbytes[k])
            for k in found
        )


def most_of(
    among: Sequence[int], first: Sequence[int], last: Sequence[int], nbytes: Sequence[int]
) -> tuple[int, int]:
    """The most bytes at a time of lives, both ends included, and the first place where it is so.

    among: the values that count, in the order in which they begin.

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
