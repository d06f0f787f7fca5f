"""What XLA writes about buffers: their assignment, `*-buffer-assignment.txt`, and the live ranges,
`*-live-range.txt`; `*-memory-usage-report.txt` and `*-buffer-assignment-values.txt` have totals.

    BufferAssignment:
    allocation 0: size 1024, parameter 0, shape |f32[8,32]| at ShapeIndex {}:
     value: <281 param.5 @0> (size=1024,offset=0): f32[8,32]{1,0}
    HloLiveRange (max 109):
      BufferLiveRange:
        param.5{}:2-70

    Memory Space: default (color=0)
    Total bytes: 3468 (3.4KiB)

An allocation is memory that values share, each at an offset. `color` is its memory space. Both
files together give the bytes in use at each instruction: values that are at one place count once.
Source: `BufferAllocation::ToString` and `HloLiveRange::ToString` of XLA.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from gridlayout.dump.text.hlo import instruction_of, type_of
from gridlayout.dump.text.prefixes import prefix_of, without
from gridlayout.dump.values.peaks import MAX_SPANS, Curve, Peak, Span, largest
from gridlayout.dump.values.type_texts import DEVICE

_ALLOCATION = re.compile(r"\s*allocation ([0-9]{1,9}): size ([0-9]{1,18})([,:].*)")
_COLOR = re.compile(r"\bcolor ([0-9]{1,9})\b")
_VALUE = re.compile(
    r"\s*value: <[0-9]{1,9} ([\w.-]{1,200})((?:\{[0-9, ]{0,99}\})?) ?(\(phi\))? ?@[0-9]{1,9}> "
    r"\(size=([0-9]{1,18}),offset=([0-9]{1,18})\): (.*)"
)
_RANGE = re.compile(r"\s*([\w.-]{1,200}\{[0-9, ]{0,99}\}):([0-9]{1,9})-([0-9]{1,9})\s*$")
_MOMENT = re.compile(r"\s*Live ranges at ([0-9]{1,9}) \(peak\):")
_ALIVE = re.compile(r"\s*([\w.-]{1,200})\{[0-9, ]{0,99}\}: ([0-9]{1,18}) bytes \(cumulative: (\d+)")
_START = re.compile(
    r"(.{0,200}?)(?:BufferAssignment:|HloLiveRange(?: \(max [0-9]{1,9}\))?:"
    r"|Memory Space: \w{1,32} \(color=[0-9]{1,9}\)"
    r"|Total bytes used: [0-9]{1,18} \([^()]{1,20}\))\s*$"
)
_SPACE = re.compile(r"\s*Memory Space: \w{1,32} \(color=([0-9]{1,9})\)")
_TOTAL = re.compile(r"\s*Total bytes( used)?: ([0-9]{1,18}) \(")
_USED = re.compile(
    r"\s*<[0-9]{1,9} [\w.-]{1,200}(?:\{([0-9, ]{1,99})\})? ?(\(phi\))? ?@[0-9]{1,9}>\s*$"
)
_MADE = re.compile(r"\s*from instruction: (.*)")
_STARTS = ("BufferA", "HloL", "Memory Space: ", "Total bytes used: ")
# Kinds of allocations, by words that follow the size; the first that is there.
_KINDS = {"parameter ": "arguments", "preallocated-temp": "temporary", "maybe-live-out": "results"}


class Held(NamedTuple):
    """A value that has a place in an allocation: its line, name and type."""

    line: int
    name: str
    kind: str


class _Place(NamedTuple):
    """Where a value is: its allocation, offset and bytes."""

    allocation: int
    offset: int
    nbytes: int


@dataclass
class Assignment:
    """The assignment of one program, while it is read.

    spaces: for each memory space the bytes of its allocations, of each kind. places: where each
    value is, by its name and index. ranges: the first and the last instruction of each value.
    stated: the peak that live ranges state by themselves. blocks: the largest allocations of each
    memory space. moment, sequence: the instruction of the stated peak; the line of the first one.
    totals: of each memory space, the bytes that a report states and its line. space: that of the
    next total. index: of the next value in its tuple; None for one that is a value of another op.
    """

    begun: bool = False
    prefix: str = ""
    line: int = 0
    now: int = -1
    spaces: dict[str, Counter[str]] = field(default_factory=dict)
    space_of: dict[int, str] = field(default_factory=dict)
    places: dict[str, _Place] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    stated: list[Span] = field(default_factory=list)
    blocks: dict[str, list[Span]] = field(default_factory=dict)
    moment: int = 0
    sequence: int = 0
    over: bool = False
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)
    space: str = DEVICE
    index: str | None = ""

    def read(self, text: str, line: int) -> tuple[bool, Held | None]:
        """Read a line; return whether it is of an assignment, and the value that it places.

        >>> found = Assignment()
        >>> found.read("BufferAssignment:", 1)
        (True, None)
        >>> found.read("allocation 3: size 64, color 5, maybe-live-out:", 2)
        (True, None)
        >>> found.read(" value: <7 add.1{0} @0> (size=16,offset=32): f32[4]{0}", 3)
        (True, Held(line=3, name='add.1', kind='f32[4]{0}'))
        >>> found.peaks()[0].memory, found.peaks()[0].results
        ('assigned memory 5', 64)
        """
        if any(word in text for word in _STARTS) and (begun := _START.match(text)):
            self.begun, self.line, self.prefix = True, self.line or line, prefix_of(begun[1])
            return self._total(text[len(begun[1]) :], line) or True, None
        if not self.begun:
            return False, None
        text = without(self.prefix, text)
        if found := _ALLOCATION.match(text):
            self._allocate(int(found[1]), int(found[2]), found[3], line)
            return True, None
        if found := _VALUE.match(text):
            return True, self._value(found, line)
        if self._total(text, line):
            return True, None
        if found := _USED.match(text):
            self.index = None if found[2] else found[1] or ""
            return True, None
        if found := _MADE.match(text):
            return True, self._made(found[1], line)
        if found := _RANGE.match(text):
            if len(self.ranges) < MAX_SPANS:
                self.ranges[found[1].replace(" ", "")] = int(found[2]), int(found[3])
            self.over = self.over or len(self.ranges) >= MAX_SPANS
            return True, None
        if text.strip() == "InstructionSequence:":
            self.sequence = line + 1
            return True, None
        if found := _MOMENT.match(text):
            self.moment = int(found[1])
            return True, None
        if found := _ALIVE.match(text):
            if len(self.stated) < MAX_SPANS:
                self.stated.append(Span(found[1], "", line, line, int(found[2])))
            return True, None
        return False, None

    def _total(self, text: str, line: int) -> bool:
        """Read the total of a memory space, or of all; return whether the line is of one."""
        if space := _SPACE.match(text):
            self.space = DEVICE if int(space[1]) == 0 else f"memory {int(space[1])}"
        elif total := _TOTAL.match(text):
            space_of = "memory of all spaces" if total[1] else self.space
            self.totals[space_of] = int(total[2]), line
        else:
            return False
        return True

    def _made(self, text: str, line: int) -> Held | None:
        """Return the value that an instruction makes; None for a tuple, whose parts are others."""
        found = instruction_of(text)
        if found is None or self.index is None:
            return None
        name = f"{found.name}#{self.index}" if self.index else found.name
        kind = type_of(name, {found.name: found.kind})
        return None if kind is None else Held(line, name.removesuffix("#0"), kind)

    def _allocate(self, number: int, nbytes: int, words: str, line: int) -> None:
        color = _COLOR.search(words)
        space = f"memory {color[1]}" if color and int(color[1]) else DEVICE
        kind = next((kind for word, kind in _KINDS.items() if word in words), "others")
        self.spaces.setdefault(space, Counter())[kind] += nbytes
        block = Span(f"allocation {number}", kind, line, line, nbytes)
        self.blocks[space] = largest([*self.blocks.get(space, ()), block])
        self.now = number
        if len(self.space_of) < MAX_SPANS:
            self.space_of[number] = space

    def _value(self, found: re.Match[str], line: int) -> Held | None:
        name, index, phi, nbytes, offset, kind = found.groups()
        if len(self.places) < MAX_SPANS:
            key = f"{name}{index.replace(' ', '') or '{}'}"
            self.places[key] = _Place(self.now, int(offset), int(nbytes))
        self.over = self.over or len(self.places) >= MAX_SPANS
        # A tuple is pointers, and the value of a loop is that of its state.
        return None if phi or kind.startswith("(") else Held(line, name, kind)

    def peaks(self) -> list[Peak]:
        """Return the totals of each memory space, and the most that is live at one time."""
        found = []
        for space, kinds in sorted(self.spaces.items()):
            name = "assigned memory" if space == DEVICE else f"assigned {space}"
            parts = kinds["arguments"], kinds["results"], kinds["temporary"]
            alive = tuple(self.blocks[space])
            found.append(Peak("", name, kinds.total(), self.line, alive, *parts))
        if not found:
            for space, (total, line) in sorted(self.totals.items()):
                name = "assigned memory" if space == DEVICE else f"assigned {space}"
                found.append(Peak("", name, total, line, ()))
        return found + self._live()

    def _live(self) -> list[Peak]:
        """Return the most bytes in use at one instruction, of each space, with those over time."""
        if not self.ranges or not self.places:
            total = sum(span.nbytes for span in self.stated)
            alive = tuple(largest(self.stated))
            line = self.sequence + self.moment
            return [Peak("", "live memory", total, line, alive)] if total else []
        spaces = dict.fromkeys(self.space_of.values())
        return [peak for space in spaces if (peak := self._live_in(space)) is not None]

    def _live_in(self, space: str) -> Peak | None:
        names = [
            name
            for name, place in self.places.items()
            if name in self.ranges and self.space_of.get(place.allocation, DEVICE) == space
        ]
        curve = Curve()
        for at, nbytes in _in_use([(*self.ranges[name], self.places[name]) for name in names]):
            curve.add(at, nbytes)
        if not curve.points:
            return None
        at, most = max(curve.points, key=lambda point: (point[1], -point[0]))
        alive = {
            self.places[name][:2]: Span(name.partition("{")[0], "", at, at, self.places[name][2])
            for name in names
            if self.ranges[name][0] <= at <= self.ranges[name][1]
        }
        name = "live memory" if space == DEVICE else f"live {space}"
        least = self.over or any(key not in self.places for key in self.ranges)
        rows = tuple(largest(alive.values()))
        line = self.sequence + at
        return Peak("", name, most, line, rows, at_least=least, curve=curve.points)


def _in_use(values: list[tuple[int, int, _Place]]) -> list[tuple[int, int]]:
    """Return pairs (instruction, bytes in use) where these change; a place in use counts once."""
    order = count()
    events = [(first, 0, next(order), place) for first, _, place in values]
    events += [(last + 1, -1, next(order), place) for _, last, place in values]
    users: Counter[tuple[int, int]] = Counter()
    held: dict[tuple[int, int], int] = {}
    total = 0
    found: list[tuple[int, int]] = []
    for at, is_end, _, place in sorted(events, key=lambda event: event[:3]):
        key = place[:2]
        users[key] += 1 if not is_end else -1
        now = 0 if users[key] == 0 else max(held.get(key, 0), place.nbytes)
        total += now - held.get(key, 0)
        held[key] = now
        if found and found[-1][0] == at:
            found[-1] = (at, total)
        else:
            found.append((at, total))
    steps = zip(found, [(-1, -1), *found], strict=False)
    return [point for point, before in steps if point[1] != before[1]]
