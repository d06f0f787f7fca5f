"""What a compiled HLO module holds: arguments, results and temporaries, as XLA lays them out.

Instructions run in the order of the text (`is_scheduled=true`). A buffer lives from the instruction
that makes it to the last one that reads it, under whatever name: tuples and bitcasts are names. A
result takes the place of an operand that is read last by it, where every element of the one is made
from the same element of the other. What is not returned is put where a result will lie, if the two
never live at once. Fusion bodies hold nothing; loops, branches and calls hold what their bodies do.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gridlayout.dump.text.hlo import VIEWS, Instruction
from gridlayout.dump.values.peaks import MAX_SPANS, Peak, Spans, most_of

_ALIGNMENT = 64  # bytes, of every buffer
_POINTER = 8
_MAX_RESULTS = 64  # results whose place is tried
_BODIES = re.compile(
    r"\b(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^{}]*)\}")
_CALLS = re.compile(r"\bcalls=%?([\w.-]+)")
_INDEX = re.compile(r"\bindex=([0-9]{1,6})")
_ALIASED = re.compile(r"\{([0-9, ]*)\}: \(([0-9]{1,6}), \{([0-9, ]*)\}")
Parts = tuple[tuple[int, ...], ...]  # of each part of a value, the buffers that it may lie in
_MADE, _ARGUMENT, _CONSTANT, _INNER = range(4)
_MARKS = {"parameter": _ARGUMENT, "constant": _CONSTANT}
_CALLERS = ("while", "call", "conditional", "async-start")
_ELEMENTWISE = frozenset(
    [
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "convert",
        "cosine",
        "count-leading-zeros",
        "divide",
        "erf",
        "exponential",
        "exponential-minus-one",
        "floor",
        "imag",
        "is-finite",
        "log",
        "log-plus-one",
        "logistic",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "power",
        "real",
        "reduce-precision",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
        "xor",
    ]
)
# Ops whose result may take an operand's place.
_TAKERS = _ELEMENTWISE | {"fusion", "dynamic-update-slice"}


class Done(NamedTuple):
    """What is left of a computation that is no entry, once it is whole.

    bodies: the computations that it runs. moved: the numbers of the parameters from which something
    is made that is not made element by element, as bits. temporary: bytes beyond what is given and
    returned.
    """

    bodies: tuple[str, ...]
    moved: int
    temporary: int


@dataclass
class Computation:
    """One computation, while it is read.

    spans: its buffers and what the bodies that it runs hold, marked as such, as arguments and as
    constants, with their lives by the instructions' numbers. places: for each name its buffer, or
    those of each part of its value. lines: of the instructions. turns: in pairs, results that may
    take the place of an operand. sources: of names in a fusion's body the parameters that they are
    made of, as bits.
    """

    name: str
    is_entry: bool
    spans: Spans = field(default_factory=Spans)
    places: dict[str, int | Parts] = field(default_factory=dict)
    lines: array[int] = field(default_factory=lambda: array("q"))
    turns: array[int] = field(default_factory=lambda: array("q"))
    roots: Parts = ()
    is_tuple: bool = False
    bodies: set[str] = field(default_factory=set)
    sources: dict[str, int] = field(default_factory=dict)
    moved: int = 0
    over: bool = False


class HloMemory:
    """The computations of one module, as they come; `peak` of its entry."""

    def __init__(self, header: str) -> None:
        self.aliased = _ALIASED.findall(_braced(header, "input_output_alias="))
        self.done: dict[str, Done] = {}
        self.entry: Computation | None = None
        self.over = False

    def add(self, found: Instruction, line: int, sizes: Sequence[int], now: Computation) -> None:
        """Take in an instruction. sizes: bytes of each array in its type."""
        if now.over or now.spans.is_full or len(now.lines) >= 2 * MAX_SPANS:
            _give_up(now)
            return
        op, at = found.op, len(now.lines)
        now.lines.append(line)
        if op in _CALLERS and (inside := self._inside(found, now)):
            now.spans.add("", op, inside, at, _INNER)
        places, last = now.places, now.spans.last
        for name in found.operands:
            place = places.get(name, ())
            if isinstance(place, int):
                last[place] = at
            else:
                for part in place:
                    for k in part:
                        last[k] = at
        if op in VIEWS:
            own = _renamed(found, [_parts(now, name) for name in found.operands])
            places[found.name] = own[0][0] if len(own) == 1 == len(own[0]) else own
        else:
            places[found.name] = self._made(found, at, sizes, now)
        if not now.is_entry:
            _trace(found, now)
        if found.is_root:
            now.roots, now.is_tuple = _parts(now, found.name), found.kind.startswith("(")

    def _made(
        self, found: Instruction, at: int, sizes: Sequence[int], now: Computation
    ) -> int | Parts:
        mark, add = _MARKS.get(found.op, _MADE), now.spans.add
        if len(sizes) != 1:
            return tuple([(add(found.name, found.op, n, at, mark),) for n in sizes])
        own = add(found.name, found.op, sizes[0], at, mark)
        if mark == _MADE and found.op in _TAKERS:
            self._take_turns(found, own, now)
        return own

    def end(self, now: Computation) -> None:
        """A computation is whole: what it holds besides arguments and results."""
        for k in {k for part in now.roots for k in part}:
            now.spans.last[k] = len(now.lines)
        self.over = self.over or now.over
        if now.is_entry:
            self.entry = now
        elif len(self.done) < MAX_SPANS // 2:
            temporary, _ = _most(now, reuse=False)
            self.done[now.name] = Done(tuple(now.bodies), now.moved, temporary)
        else:
            self.over = True

    def holds(self) -> set[str]:
        """The computations whose values are in memory: the entry and the bodies it runs."""
        if self.entry is None:
            return set()
        names, found = list(self.entry.bodies), {self.entry.name}
        while names:
            name = names.pop()
            if name not in found and name in self.done:
                found.add(name)
                names += self.done[name].bodies
        return found

    def peak(self) -> Peak | None:
        """Arguments, results and temporaries of the entry; None without one, or one too long."""
        now = self.entry
        if now is None or self.over:
            return None
        spans, marks = now.spans, now.spans.marks
        returned = {k for part in now.roots for k in part}
        arguments = sum(n for n, mark in zip(spans.nbytes, marks, strict=True) if mark == _ARGUMENT)
        results = sum(spans.nbytes[k] for k in returned if marks[k] == _MADE)
        pointers = _POINTER * len(now.roots) if now.is_tuple else 0
        temporary, at = _most(now, reuse=True)
        held = results + pointers - self._aliased_bytes(now)
        line = now.lines[min(at, len(now.lines) - 1)] if now.lines else 0
        alive = spans.largest(
            k
            for k, mark in enumerate(marks)
            if mark == _ARGUMENT or (mark == _MADE and spans.first[k] <= at <= spans.last[k])
        )
        alive = tuple(span._replace(line=line, last=line) for span in alive)
        total = arguments + held + temporary
        return Peak(now.name, "memory", total, line, alive, arguments, held, temporary)

    # -- one instruction ---------------------------------------------------------------------------

    def _inside(self, found: Instruction, now: Computation) -> int:
        names = _BODIES.findall(found.attributes) + _CALLS.findall(found.attributes)
        for group in _BRANCHES.findall(found.attributes):
            names += re.findall(r"[\w.-]+", group)
        now.bodies.update(names)
        return max((self.done[name].temporary for name in names if name in self.done), default=0)

    def _take_turns(self, found: Instruction, new: int, now: Computation) -> None:
        """Note an operand whose place a result may take."""
        body = None
        if found.op == "fusion":
            called = _CALLS.search(found.attributes)
            body = self.done.get(called[1]) if called else None
            if body is None or "kind=kLoop" not in found.attributes:
                return
        for k, name in enumerate(found.operands):
            ok = not body.moved >> k & 1 if body else k == 0 or found.op in _ELEMENTWISE
            parts = _parts(now, name)
            if ok and len(parts) == 1 == len(parts[0]):
                now.turns.extend((new, parts[0][0]))

    def _aliased_bytes(self, now: Computation) -> int:
        """Bytes of results that lie where a donated argument does."""
        found = 0
        for out, _, _ in self.aliased:
            index = int(out.split(",")[0]) if out.strip() else 0
            if index < len(now.roots):
                found += sum(now.spans.nbytes[k] for k in now.roots[index])
        return found


def _give_up(now: Computation) -> None:
    """There are too many instructions to say what they hold at a time."""
    if not now.over:
        now.over, now.spans, now.roots = True, Spans(), ()
        for each in (now.places, now.sources):
            each.clear()
        del now.lines[:], now.turns[:]


def _parts(now: Computation, name: str) -> Parts:
    """The buffers of each part of a value."""
    found = now.places.get(name, ())
    return ((found,),) if isinstance(found, int) else found


def _renamed(found: Instruction, reads: list[Parts]) -> Parts:
    """The parts of a value that is another name for its operands."""
    if found.op == "tuple":
        return tuple(tuple(sorted({k for part in parts for k in part})) for parts in reads)
    parts = reads[0] if reads else ()
    if found.op == "get-tuple-element":
        index = _INDEX.search(found.attributes)
        n = int(index[1]) if index else 0
        return (parts[n],) if n < len(parts) else parts
    return parts


def _trace(found: Instruction, now: Computation) -> None:
    """Follow parameters through elementwise ops; `moved` are those that reach something else."""
    if found.op == "parameter":
        number = "".join(found.operands[:1])
        # Bits of one number, so that a text's own number must be small.
        if number.isdecimal() and len(number) < 5:
            now.sources[found.name] = 1 << int(number)
        return
    own = 0
    for name in found.operands:
        own |= now.sources.get(name, 0)
    if own and found.op not in _ELEMENTWISE:
        now.moved |= own
    if own:
        now.sources[found.name] = own


def _most(now: Computation, reuse: bool) -> tuple[int, int]:
    """The most that temporaries take at a time, and the instruction where they first do.

    reuse: whether what is not returned may lie where a result will.
    """
    spans, marks = now.spans, now.spans.marks
    place, taken, last = _places(now)
    own = [k for k in range(len(spans)) if place[k] == k and marks[k] in (_MADE, _INNER)]
    rest = [k for k in own if not taken[k]]
    if reuse:
        results = sorted((k for k in own if taken[k]), key=spans.nbytes.__getitem__)
        placed = _in_results(results[-_MAX_RESULTS:], rest, spans, last)
        rest = [k for k in rest if k not in placed]
    sizes = [
        _aligned(n) if mark == _MADE else n for n, mark in zip(spans.nbytes, marks, strict=True)
    ]
    return most_of(rest, spans.first, last, sizes)


def _places(now: Computation) -> tuple[array[int], bytearray, array[int]]:
    """Where each buffer lies once results took operands' places: whose place, if it is returned.

    And the last instruction at which the place is in use.
    """
    spans, nbytes, marks = now.spans, now.spans.nbytes, now.spans.marks
    place, taken, last = array("q", range(len(spans))), bytearray(len(spans)), spans.last[:]
    for part in now.roots:
        for k in part:
            taken[k] = 1
    turns = iter(now.turns)
    for new, old in zip(turns, turns, strict=True):
        k = place[old]
        same = nbytes[new] == nbytes[k] and marks[k] == _MADE and place[new] == new != k
        if same and not taken[k] and last[k] == spans.first[new]:
            place[new], last[k], taken[k] = k, last[new], taken[new]
    return place, taken, last


def _in_results(results: list[int], rest: list[int], spans: Spans, last: array[int]) -> set[int]:
    """The buffers that lie where a result will: the largest choose first, of them the last."""
    lives = {k: [(spans.first[k], last[k])] for k in results}
    room = _aligned(spans.nbytes[results[-1]]) if results else -1
    small = [k for k in rest if spans.nbytes[k] <= room and spans.marks[k] == _MADE]
    small.sort(key=spans.first.__getitem__, reverse=True)
    small.sort(key=spans.nbytes.__getitem__, reverse=True)
    placed = set()
    for k in small:
        own = (spans.first[k], last[k])
        for result, among in lives.items():
            at = bisect(among, own)
            free = (not at or among[at - 1][1] < own[0]) and (
                at == len(among) or own[1] < among[at][0]
            )
            if free and spans.nbytes[k] <= _aligned(spans.nbytes[result]):
                among.insert(at, own)  # they never overlap, so they stay in order
                placed.add(k)
                break
    return placed


def _aligned(nbytes: int) -> int:
    # What is aligned is given back itself: of a million values no second number is held.
    return nbytes + -nbytes % _ALIGNMENT if nbytes % _ALIGNMENT else nbytes


def _braced(text: str, word: str) -> str:
    """What stands in the braces after a word."""
    start = text.find(word)
    if start < 0:
        return ""
    depth = 0
    for at in range(start + len(word), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start + len(word) + 1 : at]
    return ""
