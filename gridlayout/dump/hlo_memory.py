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
from dataclasses import dataclass, field

from gridlayout.dump.hlo import VIEWS, Instruction
from gridlayout.dump.peaks import MAX_SPANS, Peak, Span, most_of, peak_of

_ALIGNMENT = 64  # bytes, of every buffer
_POINTER = 8
_BODIES = re.compile(
    r"\b(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^{}]*)\}")
_CALLS = re.compile(r"\bcalls=%?([\w.-]+)")
_INDEX = re.compile(r"\bindex=([0-9]{1,6})")
_ALIASED = re.compile(r"\{([0-9, ]*)\}: \(([0-9]{1,6}), \{([0-9, ]*)\}")
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


@dataclass(slots=True)
class _Buffer:
    """Bytes of one buffer, and its life by the instructions' numbers.

    kind: argument, constant or made.
    """

    name: str
    op: str
    nbytes: int
    first: int
    last: int
    kind: str
    is_result: bool = False


def _numbers() -> array[int]:
    return array("q")


@dataclass
class Computation:
    """One computation, while it is read and when it is done.

    places: for each name, its buffer, or those of each part of its value. turns: in pairs, results
    that may take the place of an operand. moved: the parameters from which something is made that
    is not made element by element. temporary: bytes beyond what is given and returned.
    """

    name: str
    is_entry: bool
    buffers: list[_Buffer] = field(default_factory=list)
    places: dict[str, int | list[tuple[int, ...]]] = field(default_factory=dict)
    lines: array[int] = field(default_factory=_numbers)
    inner: array[int] = field(default_factory=_numbers)
    turns: array[int] = field(default_factory=_numbers)
    roots: list[tuple[int, ...]] = field(default_factory=list)
    is_tuple: bool = False
    bodies: set[str] = field(default_factory=set)
    sources: dict[str, set[int]] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    temporary: int = 0
    over: bool = False


class HloMemory:
    """The computations of one module, as they come; `peak` of its entry."""

    def __init__(self, header: str) -> None:
        self.aliased = _ALIASED.findall(_braced(header, "input_output_alias="))
        self.done: dict[str, Computation] = {}
        self.entry: Computation | None = None

    def add(self, found: Instruction, line: int, sizes: list[int], now: Computation) -> None:
        """Take in an instruction. sizes: bytes of each array in its type."""
        at = len(now.lines)
        now.lines.append(line)
        now.inner.append(self._inside(found, now))
        if len(now.buffers) > MAX_SPANS or now.over:
            now.over = True
            return
        reads = [_parts(now, name) for name in found.operands]
        for parts in reads:
            for part in parts:
                for k in part:
                    now.buffers[k].last = at
        own = _renamed(found, reads)
        if own is None:
            kind = {"parameter": "argument", "constant": "constant"}.get(found.op, "made")
            own = []
            for nbytes in sizes:
                now.buffers.append(_Buffer(found.name, found.op, nbytes, at, at, kind))
                own.append((len(now.buffers) - 1,))
            self._take_turns(found, own, now)
        now.places[found.name] = own[0][0] if len(own) == 1 == len(own[0]) else own
        _trace(found, now)
        if found.is_root:
            now.roots, now.is_tuple = own, found.kind.startswith("(")

    def end(self, now: Computation) -> None:
        """A computation is whole: what it holds besides arguments and results."""
        for k in {k for part in now.roots for k in part}:
            now.buffers[k].is_result, now.buffers[k].last = True, len(now.lines)
        if now.is_entry:
            self.entry = now
            self.done[now.name] = now
            return
        spans = _temporaries(now, reuse=False)
        now.temporary = most_of([*spans, *_inner(now)])[0]
        self.done[now.name] = Computation(
            *(now.name, False), bodies=now.bodies, moved=now.moved, temporary=now.temporary
        )

    def holds(self) -> set[str]:
        """The computations whose values are in memory: the entry and the bodies it runs."""
        names = [self.entry.name] if self.entry else []
        found: set[str] = set()
        while names:
            name = names.pop()
            if name not in found and name in self.done:
                found.add(name)
                names += self.done[name].bodies
        return found

    def peak(self) -> Peak | None:
        """Arguments, results and temporaries of the entry; None without one, or one too long."""
        now = self.entry
        if now is None or now.over:
            return None
        arguments = sum(each.nbytes for each in now.buffers if each.kind == "argument")
        results = [each for each in now.buffers if each.is_result and each.kind == "made"]
        pointers = _POINTER * len(now.roots) if now.is_tuple else 0
        spans = [*_temporaries(now, reuse=True), *_inner(now)]
        temporary, at = most_of(spans)
        held = sum(each.nbytes for each in results) + pointers - self._aliased_bytes(now)
        last = len(now.lines) - 1
        line = now.lines[min(at, last)] if now.lines else 0
        alive = [
            Span(each.name, each.op, line, line, each.nbytes)
            for each in now.buffers
            if each.kind == "argument" or (each.kind == "made" and each.first <= at <= each.last)
        ]
        alive = list(peak_of(now.name, "memory", alive).alive)
        total = arguments + held + temporary
        return Peak(now.name, "memory", total, line, tuple(alive), arguments, held, temporary)

    # -- one instruction ---------------------------------------------------------------------------

    def _inside(self, found: Instruction, now: Computation) -> int:
        if found.op not in _CALLERS:
            return 0
        names = _BODIES.findall(found.attributes) + _CALLS.findall(found.attributes)
        for group in _BRANCHES.findall(found.attributes):
            names += re.findall(r"[\w.-]+", group)
        now.bodies.update(names)
        return max((self.done[name].temporary for name in names if name in self.done), default=0)

    def _take_turns(self, found: Instruction, own: list[tuple[int, ...]], now: Computation) -> None:
        """Note an operand whose place a result may take."""
        if len(own) != 1 or found.op in ("parameter", "constant"):
            return
        body = None
        if found.op == "fusion":
            called = _CALLS.search(found.attributes)
            body = self.done.get(called[1]) if called else None
            if body is None or "kind=kLoop" not in found.attributes:
                return
        elif found.op == "dynamic-update-slice":
            pass
        elif found.op not in _ELEMENTWISE:
            return
        for k, name in enumerate(found.operands):
            parts = _parts(now, name)
            ok = k not in body.moved if body else k == 0 or found.op in _ELEMENTWISE
            if ok and len(parts) == 1 and len(parts[0]) == 1:
                now.turns.extend((own[0][0], parts[0][0]))

    def _aliased_bytes(self, now: Computation) -> int:
        """Bytes of results that lie where a donated argument does."""
        found = 0
        for out, _, _ in self.aliased:
            index = int(out.split(",")[0]) if out.strip() else 0
            if index < len(now.roots):
                found += sum(now.buffers[k].nbytes for k in now.roots[index])
        return found


def _parts(now: Computation, name: str) -> list[tuple[int, ...]]:
    """The buffers of each part of a value."""
    found = now.places.get(name)
    return [(found,)] if isinstance(found, int) else found or []


def _renamed(
    found: Instruction, reads: list[list[tuple[int, ...]]]
) -> list[tuple[int, ...]] | None:
    """The parts of a value that is another name for its operands; None where it is a new one."""
    if found.op == "tuple":
        return [tuple(sorted({k for part in parts for k in part})) for parts in reads]
    if found.op == "get-tuple-element":
        index, parts = _INDEX.search(found.attributes), reads[0] if reads else []
        n = int(index[1]) if index else 0
        return [parts[n]] if n < len(parts) else parts
    if found.op in VIEWS:
        return reads[0] if reads else []
    return None


def _trace(found: Instruction, now: Computation) -> None:
    """Follow parameters through elementwise ops; `moved` are those that reach something else."""
    if now.is_entry:
        return
    if found.op == "parameter":
        number = "".join(found.operands[:1])
        now.sources[found.name] = {int(number)} if number.isdecimal() else set()
        return
    own: set[int] = set()
    for name in found.operands:
        own |= now.sources.get(name, set())
    if own and found.op not in _ELEMENTWISE:
        now.moved |= own
    now.sources[found.name] = own


def _temporaries(now: Computation, reuse: bool) -> list[tuple[int, int, int]]:
    """(first, last, bytes) of the places that buffers need besides those of results."""
    place = list(range(len(now.buffers)))
    spans = [(each.first, each.last) for each in now.buffers]
    taken = [each.is_result for each in now.buffers]
    turns = iter(now.turns)
    for new, old in zip(turns, turns, strict=True):
        k = place[old]
        one, other = now.buffers[new], now.buffers[k]
        same = one.nbytes == other.nbytes and other.kind == "made" and place[new] == new
        if same and not taken[k] and spans[k][1] == one.first and k != new:
            place[new] = k
            spans[k] = (spans[k][0], spans[new][1])
            taken[k] = taken[new]
    own = [k for k, each in enumerate(now.buffers) if place[k] == k and each.kind == "made"]
    rest = [k for k in own if not taken[k]]
    rest.sort(key=lambda k: (-now.buffers[k].nbytes, -spans[k][0]))
    results = sorted((k for k in own if taken[k]), key=lambda k: now.buffers[k].nbytes)
    used = {k: [spans[k]] for k in results[-_MAX_RESULTS:]} if reuse else {}
    found = []
    for k in rest:
        first, last = spans[k]
        for result, lives in used.items():
            at = bisect(lives, (first, last))
            free = (not at or lives[at - 1][1] < first) and (
                at == len(lives) or last < lives[at][0]
            )
            if free and now.buffers[k].nbytes <= _aligned(now.buffers[result].nbytes):
                lives.insert(at, (first, last))  # they never overlap, so they stay in order
                break
        else:
            found.append((first, last, _aligned(now.buffers[k].nbytes)))
    return found


_MAX_RESULTS = 64  # results whose place is tried


def _inner(now: Computation) -> list[tuple[int, int, int]]:
    return [(at, at, nbytes) for at, nbytes in enumerate(now.inner) if nbytes]


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


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
