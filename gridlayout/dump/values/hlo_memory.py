"""The memory of a compiled HLO module: arguments, results and temporaries, as XLA assigns buffers.

Instructions run in the order of the text (`is_scheduled=true`). A buffer is live from the
instruction that defines it to the last one that reads it or an alias of it; tuples and bitcasts are
aliases. A result reuses the buffer of an operand if this is the operand's last use and each element
of the result depends only on the same element of the operand. A temporary is placed in the buffer
of a result if the two are never live at once. Fusion bodies own no buffers; loops, branches and
calls own those of their bodies.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gridlayout.dump.text.hlo import CALLS, Instruction, braced, called_by, is_view, new_arrays
from gridlayout.dump.values.peaks import MAX_SPANS, Peak, Spans, most_of

_ALIGNMENT = 64  # bytes, of every buffer
_POINTER = 8
_MAX_RESULTS = 64  # most results whose buffers are tried for temporaries
_BODIES = re.compile(
    r"\b(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^{}]*)\}")
_INDEX = re.compile(r"\bindex=([0-9]{1,6})")
_ALIASED = re.compile(r"\{([0-9, ]*)\}: \(([0-9]{1,6}), \{([0-9, ]*)\}")
Parts = tuple[tuple[int, ...], ...]  # for each part of a value, the buffers that may store it
_MADE, _ARGUMENT, _CONSTANT, _INNER = range(4)
_MARKS = {"parameter": _ARGUMENT, "constant": _CONSTANT}
CALLERS = ("while", "call", "conditional", "async-start")
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
# Ops whose result may reuse an operand's buffer.
_TAKERS = _ELEMENTWISE | {"fusion", "dynamic-update-slice"}


def bodies_of(found: Instruction) -> list[str]:
    """Return the names of the computations that a loop, branch or call runs.

    >>> bodies_of(Instruction("a", False, "f32[]", "call", (), ", to_apply=%f, metadata={}"))
    ['f']
    """
    names = _BODIES.findall(found.attributes) + CALLS.findall(found.attributes)
    for group in _BRANCHES.findall(found.attributes):
        names += re.findall(r"[\w.-]+", group)
    return names


class Finished(NamedTuple):
    """The summary of a completely read computation other than the entry.

    bodies: the computations that it runs. moved: a bit set of the parameters that an op other than
    an elementwise one reads, directly or after elementwise ops. temporary: bytes of temporaries.
    """

    bodies: tuple[str, ...]
    moved: int
    temporary: int


@dataclass
class Computation:
    """One computation while it is read.

    spans: its buffers, with live ranges in instruction numbers. The mark of each says whether it is
    defined by an op, an argument, a constant, or the temporaries of a body that an op runs.
    places: for each name its buffer, or the buffers of each part of its value. lines: the line of
    each instruction. turns: a flat list of pairs (result, operand) whose buffers may be shared.
    sources: for each name a bit set of the parameters from which elementwise ops compute it. moved:
    as in `Finished`. over: whether there are too many instructions.
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
    """The computations of one module; `peak` is that of its entry computation."""

    def __init__(self, header: str) -> None:
        self.aliased = _ALIASED.findall(braced(header, "input_output_alias="))
        self.done: dict[str, Finished] = {}
        self.entry: Computation | None = None
        self.over = False

    def add(self, found: Instruction, line: int, sizes: Sequence[int], now: Computation) -> None:
        """Add an instruction to the computation `now`. sizes: bytes of each array in its type."""
        if now.over or now.spans.is_full or len(now.lines) >= 2 * MAX_SPANS:
            _give_up(now)
            return
        op, at = found.op, len(now.lines)
        now.lines.append(line)
        if op in CALLERS and (inside := self._inside(found, now)):
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
        if is_view(op):
            own = _renamed(found, [_parts(now, name) for name in found.operands], len(sizes))
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
            new = new_arrays(found.op, len(found.operands), sizes)
            made: Parts = tuple([(add(found.name, found.op, n, at, mark),) for n in new])
            if len(new) == len(sizes):
                return made
            # Of an async op, which reads its operands until it is done: results, then operands.
            return made + tuple(part for name in found.operands for part in _parts(now, name))
        own = add(found.name, found.op, sizes[0], at, mark)
        if mark == _MADE and found.op in _TAKERS:
            self._take_turns(found, own, now)
        return own

    def end(self, now: Computation) -> None:
        """Finish a computation: store the entry, or the summary of any other."""
        for k in {k for part in now.roots for k in part}:
            now.spans.last[k] = len(now.lines)
        self.over = self.over or now.over
        if now.is_entry:
            self.entry = now
        elif len(self.done) < MAX_SPANS // 2:
            temporary, _ = _most(now, reuse=False)
            self.done[now.name] = Finished(tuple(now.bodies), now.moved, temporary)
        else:
            self.over = True

    def holds(self) -> set[str]:
        """Return the computations whose values are in memory: the entry and the bodies it runs."""
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
        """Return the peak of the entry: arguments, results and temporaries, in bytes.

        None if there is no entry, or a computation has too many instructions.
        """
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
        names = bodies_of(found)
        now.bodies.update(names)
        return max((self.done[name].temporary for name in names if name in self.done), default=0)

    def _take_turns(self, found: Instruction, new: int, now: Computation) -> None:
        """Record the operands whose buffer the result `new` may reuse."""
        body = None
        if found.op == "fusion":
            body = self.done.get(called_by(found) or "")
            if body is None or "kind=kLoop" not in found.attributes:
                return
        for k, name in enumerate(found.operands):
            ok = not body.moved >> k & 1 if body else k == 0 or found.op in _ELEMENTWISE
            parts = _parts(now, name)
            if ok and len(parts) == 1 == len(parts[0]):
                now.turns.extend((new, parts[0][0]))

    def _aliased_bytes(self, now: Computation) -> int:
        """Return the bytes of results that reuse the buffer of a donated argument."""
        found = 0
        for out, _, _ in self.aliased:
            index = int(out.split(",")[0]) if out.strip() else 0
            if index < len(now.roots):
                found += sum(now.spans.nbytes[k] for k in now.roots[index])
        return found


def _give_up(now: Computation) -> None:
    """Drop all data of a computation with too many instructions: it has no peak."""
    if not now.over:
        now.over, now.spans, now.roots = True, Spans(), ()
        for each in (now.places, now.sources):
            each.clear()
        del now.lines[:], now.turns[:]


def _parts(now: Computation, name: str) -> Parts:
    """Return the buffers of each part of a value."""
    found = now.places.get(name, ())
    return ((found,),) if isinstance(found, int) else found


def _renamed(found: Instruction, reads: list[Parts], arrays: int) -> Parts:
    """Return the parts of a value that is an alias of its operands. arrays: those in its type."""
    if found.op == "tuple":
        return tuple(tuple(sorted({k for part in parts for k in part})) for parts in reads)
    parts = reads[0] if reads else ()
    if found.op == "get-tuple-element":
        index = _INDEX.search(found.attributes)
        n = int(index[1]) if index else 0
        return (parts[n],) if n < len(parts) else parts
    return parts[:arrays] if found.op.endswith("-done") else parts


def _trace(found: Instruction, now: Computation) -> None:
    """Update which parameters a name is computed from, and `moved`, for one instruction."""
    if found.op == "parameter":
        number = "".join(found.operands[:1])
        # The number becomes a bit position, so it must be small.
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
    """Return the peak bytes of temporaries, and the first instruction where it is reached.

    reuse: whether a temporary may be placed in the buffer of a result.
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
    """Assign results to the buffers of operands that they may reuse.

    Returns, for each buffer: the buffer whose memory it uses, whether that memory is returned, and
    the last instruction at which it is in use.
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
    """Return the buffers that are placed in the memory of a result.

    The largest buffers are placed first; of equal ones, the last defined.
    """
    ranges = {k: [(spans.first[k], last[k])] for k in results}
    room = _aligned(spans.nbytes[results[-1]]) if results else -1
    small = [k for k in rest if spans.nbytes[k] <= room and spans.marks[k] == _MADE]
    small.sort(key=spans.first.__getitem__, reverse=True)
    small.sort(key=spans.nbytes.__getitem__, reverse=True)
    placed = set()
    for k in small:
        own = (spans.first[k], last[k])
        for result, among in ranges.items():
            at = bisect(among, own)
            free = (not at or among[at - 1][1] < own[0]) and (
                at == len(among) or own[1] < among[at][0]
            )
            if free and spans.nbytes[k] <= _aligned(spans.nbytes[result]):
                among.insert(at, own)  # ranges never overlap, so this keeps them sorted
                placed.add(k)
                break
    return placed


def _aligned(nbytes: int) -> int:
    # An aligned number is returned as the same object, which saves memory for a million values.
    return nbytes + -nbytes % _ALIGNMENT if nbytes % _ALIGNMENT else nbytes
