"""`Peak`: the most bytes that are held at a time, where, and by which values.

A value lives from the line that makes it to the one that ends it: `ttnn.deallocate` where the dump
has such lines, else its last use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_ALIVE = 16  # values that a peak names
MAX_SPANS = 1 << 18  # values of one function; of more no peak is told


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


def peak_of(function: str, memory: str, spans: Sequence[Span]) -> Peak:
    """Where the values' lives add up to most; the first such line.

    >>> a, b, c = Span("a", "x", 1, 3, 8), Span("b", "x", 2, 3, 4), Span("c", "x", 4, 5, 9)
    >>> found = peak_of("f", "l1", [a, b, c])
    >>> found.nbytes, found.line, [span.name for span in found.alive]
    (12, 2, ['a', 'b'])
    """
    most, line = most_of((span.line, span.last, span.nbytes) for span in spans)
    alive = [span for span in spans if span.line <= line <= span.last and span.nbytes]
    alive.sort(key=lambda span: -span.nbytes)
    return Peak(function, memory, most, line, tuple(alive[:MAX_ALIVE]))


def most_of(spans: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """The most bytes at a time of (first, last, bytes), both ends included, and the first place.

    >>> most_of([(0, 2, 8), (2, 3, 4), (3, 3, 5)])
    (12, 2)
    """
    changes: dict[int, int] = {}
    for first, last, nbytes in spans:
        changes[first] = changes.get(first, 0) + nbytes
        changes[last + 1] = changes.get(last + 1, 0) - nbytes
    most = at = now = 0
    for place in sorted(changes):
        now += changes[place]
        if now > most:
            most, at = now, place
    return most, at
