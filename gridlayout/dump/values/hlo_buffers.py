"""`Computation`: the buffers of one computation of HLO, and which of them share memory."""

from __future__ import annotations

from array import array
from bisect import bisect, bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from gridlayout.dump.text.statements import Instruction
from gridlayout.dump.values.peaks import Spans
from gridlayout.dump.values.type_texts import DEVICE
from gridlayout.live_ranges import Interval, in_turn, peak

_Range = tuple[int, int, int]  # the first and last time of a buffer, and its index
Parts = tuple[tuple[int, ...], ...]  # for each part of a value, the buffers that may store it
# What a buffer holds: an op's result, an argument, a constant, the temporaries of a computation
# that an op runs, or those of a loop that its state holds instead if the entry returns the state.
MADE, ARGUMENT, CONSTANT, INNER, APART = range(5)
ELEMENTWISE = frozenset(
    [
        *("abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp", "compare"),
        *("complex", "convert", "cosine", "count-leading-zeros", "divide", "erf", "exponential"),
        *("exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic"),
        *("maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real"),
        *("reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt"),
        *("select", "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine"),
        *("sqrt", "subtract", "tan", "tanh", "xor"),
    ]
)
_ALIGNMENT = 64  # bytes, of every buffer
_MAX_RESULTS = 64  # most results whose buffers are tried for temporaries
_WIDE = 16  # numbers of an op in `turns`, above which its operands become a set
# Ops that write to their first operand in place.
UPDATES = ("dynamic-update-slice", "scatter")


def part_of(parts: Parts, index: int) -> Parts:
    """Return the buffers of one part of a tuple; of all if it has no such part.

    >>> part_of(((1,), (2, 3)), 1), part_of(((2, 3),), 1)
    (((2, 3),), ((2, 3),))
    """
    return (parts[index],) if index < len(parts) else parts


class Finished(NamedTuple):
    """The summary of a completely read computation other than the entry.

    bodies: the computations that it runs. moved: a bit set of the parameters that an op other than
    an elementwise one reads, directly or after elementwise ops. temporary: bytes of temporaries in
    each memory space, if the states of its loops may hold some of them, because the entry returns
    them, and if not. temporary_in_loop: the same as the body of a loop, whose results are its next
    parameters. returned: for each part of the result, the index of the parameter's part that it is;
    -1 if it is none. unread: as in `Computation`.
    """

    bodies: tuple[str, ...]
    moved: int
    temporary: dict[str, tuple[int, int]]
    temporary_in_loop: dict[str, tuple[int, int]]
    returned: tuple[int, ...]
    unread: bool


@dataclass
class Computation:
    """One computation while it is read.

    spans: its buffers, with live ranges in instruction numbers. The mark of each says what it
    holds. spaces: the memory space of each. unread: whether it makes a value of a type that can't
    be read. states: for each buffer marked `APART`, the buffers of the loop's state. places: for
    each name its buffer, or the buffers of each part of its value. lines: the line of each
    instruction.
    turns: a flat list of pairs (result, operand) whose buffers may be shared, sorted by the result.
    kinds: for each buffer a hash of its type, 0 if unknown. inputs: the number of each parameter.
    sources: for each name a bit set of the parameters from which elementwise ops compute it. moved:
    as in `Finished`. characters: of the instructions so far. visited: how many buffers of tuples
    were visited for them. wide: for some results, the operands that `turns` has for each. over:
    whether there are too many instructions, or buffers to visit.
    """

    name: str
    is_entry: bool
    spans: Spans = field(default_factory=Spans)
    spaces: list[str] = field(default_factory=list)
    unread: bool = False
    places: dict[str, int | Parts] = field(default_factory=dict)
    lines: array[int] = field(default_factory=lambda: array("q"))
    turns: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("q"))
    roots: Parts = ()
    is_tuple: bool = False
    bodies: set[str] = field(default_factory=set)
    states: dict[int, set[int]] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    moved: int = 0
    characters: int = 0
    visited: int = 0
    wide: dict[int, frozenset[int]] = field(default_factory=dict)
    over: bool = False

    def hold(
        self,
        found: Instruction,
        nbytes: int,
        at: int,
        mark: int,
        kind: str = "",
        space: str = DEVICE,
    ) -> int:
        """Add a buffer and return its index. at: the instruction that defines it."""
        self.kinds.append(hash(kind) if kind else 0)
        self.spaces.append(space)
        name = "" if mark in (INNER, APART) else found.name
        return self.spans.add(name, found.op, nbytes, at, mark)

    def parts(self, name: str) -> Parts:
        """Return the buffers of each part of a value."""
        found = self.places.get(name)
        if found is None:
            return self.part(name) if "#" in name else ()
        return ((found,),) if isinstance(found, int) else found

    def part(self, name: str) -> Parts:
        """Return the buffers of a part of a tuple, such as `state#1`; of all if it has no parts."""
        name, *indices = name.split("#")
        found = self.parts(name)
        for index in indices:
            found = part_of(found, int(index))
        return found

    def parameters(self) -> list[tuple[int, ...]]:
        """Return the buffers of each part of the parameters, in the order of their numbers."""
        names = sorted(self.inputs, key=self.inputs.__getitem__)
        return [part for name in names for part in self.parts(name)]

    def may_share(self, new: int, name: str) -> None:
        """Record that the result `new` may be in the buffer of an operand, if it has its type."""
        parts = self.parts(name)
        if len(parts) == 1 == len(parts[0]) and self.kinds[new] == self.kinds[parts[0][0]] != 0:
            self.turns.extend((new, parts[0][0]))

    def reuses(self, new: int, old: int) -> bool:
        """Return whether the result `new` may be in the buffer of the operand `old`."""
        if new not in self.wide:
            pairs, key = range(0, len(self.turns), 2), self.turns.__getitem__
            low, high = (2 * find(pairs, new, key=key) for find in (bisect_left, bisect_right))
            if high - low <= _WIDE:
                return old in self.turns[low + 1 : high : 2]
            self.wide[new] = frozenset(self.turns[low + 1 : high : 2])
        return old in self.wide[new]

    def trace(self, found: Instruction) -> None:
        """Update which parameters a name is computed from, and `moved`, for one instruction."""
        if found.op == "parameter":
            number = "".join(found.operands[:1])
            # The number becomes a bit position, so it must be small.
            if number.isdecimal() and len(number) < 5:
                self.inputs[found.name] = int(number)
                self.sources[found.name] = 1 << int(number)
            return
        own = part = 0
        for name in found.operands:
            if "#" in name:
                part |= self.sources.get(name.partition("#")[0], 0)
            own |= self.sources.get(name, 0)
        self.moved |= part
        own |= part
        if own and found.op not in ELEMENTWISE:
            self.moved |= own
        if found.op in UPDATES and found.is_root and "".join(found.operands[:1]) in self.inputs:
            self.moved &= ~self.sources[found.operands[0]]  # updated in place
        if own:
            self.sources[found.name] = own

    def give_up(self) -> None:
        """Drop all data, as there are too many instructions: the computation has no peak."""
        if not self.over:
            self.over, self.spans, self.roots = True, Spans(), ()
            for each in (self.places, self.sources, self.inputs, self.states, self.spaces):
                each.clear()
            del self.lines[:], self.turns[:], self.kinds[:]


# -- shared memory ---------------------------------------------------------------------------------


def most_temporary(
    now: Computation, space: str, reuse: bool = False, in_loop: bool = False, apart: bool = False
) -> tuple[int, int]:
    """Return the peak bytes of temporaries, and the first instruction where it is reached.

    space: the memory space that is asked for. reuse: whether a temporary may be placed in the
    buffer of a result. in_loop: whether results are in the buffers of the parameters, as in the
    body of a loop. apart: whether no temporary may be placed in the state of a loop.
    """
    spans, marks = now.spans, now.spans.marks
    returned = {k for part in now.roots for k in part}
    results = {k for k in returned if marks[k] == MADE and now.spaces[k] == space}
    placed = _in_results(now, results) if reuse else results
    place, last = _places(now, placed if reuse else set(), in_loop, apart)
    elsewhere = set(placed)
    if not apart:
        elsewhere.update(k for k, state in now.states.items() if state & returned)
    if not reuse:
        elsewhere.update(place[k] for k in results)
    return peak(
        Interval(spans.first[k], last[k], _aligned(n) if marks[k] == MADE else n)
        for k, n in enumerate(spans.nbytes)
        if place[k] == k
        and k not in elsewhere
        and marks[k] in (MADE, INNER, APART)
        and now.spaces[k] == space
    )


def _places(
    now: Computation, placed: set[int], in_loop: bool, apart: bool
) -> tuple[list[int], list[int]]:
    """Return the buffer whose memory each buffer uses, and the last instruction that uses it.

    placed: buffers whose place is known. in_loop, apart: as for `most_temporary`; a loop's state is
    free after the parameter's last use.
    """
    spans, nbytes, marks = now.spans, now.spans.nbytes, now.spans.marks
    inputs = _parameters_of_results(now) if in_loop else {}

    def may(new: int, k: int) -> bool:
        if (own := inputs.get(new)) is None:
            return True
        free, start = spans.last[own], spans.first[k]
        return not apart and (free < start or (free == start and now.reuses(k, own)))

    turns = (
        (new, old)
        for new, old in zip(now.turns[::2], now.turns[1::2], strict=True)
        if nbytes[new] == nbytes[old] and marks[old] == MADE and not placed & {new, old}
    )
    return in_turn(spans.first, spans.last, turns, may)


def _parameters_of_results(now: Computation) -> dict[int, int]:
    """Return the buffers of the results of a loop's body, and those of their parameters."""
    inputs, marks = now.parameters(), now.spans.marks
    if len(inputs) != len(now.roots):
        return {}
    pairs = zip(now.roots, inputs, strict=True)
    return {
        part[0]: own[0]
        for part, own in pairs
        if len(part) == 1 == len(own) and marks[part[0]] == MADE
    }


def _in_results(now: Computation, results: set[int]) -> set[int]:
    """Return the buffers that are placed in the memory of a result, with the results.

    results: those in one memory space.

    The largest buffers are placed first; of equal ones, the first defined. Each is placed in the
    smallest result that is free; of equal ones, in the last defined.
    """
    spans = now.spans
    first, last, nbytes = spans.first, spans.last, spans.nbytes
    large = sorted(results, key=lambda k: (nbytes[k], -first[k]))[-_MAX_RESULTS:]
    ranges = {k: [(first[k], last[k], k)] for k in large}
    room = _aligned(nbytes[large[-1]]) if large else -1
    small = [
        k
        for k in range(len(spans))
        if nbytes[k] <= room
        and spans.marks[k] in (MADE, APART)
        and k not in results
        and now.spaces[k] == now.spaces[large[-1]]
    ]
    small.sort(key=lambda k: (-nbytes[k], first[k]))
    placed = set(results)
    for k in small:
        for result, among in ranges.items():
            if nbytes[k] > _aligned(nbytes[result]):
                continue
            at = bisect(among, (first[k], last[k], k))
            if _is_free(now, k, among[at - 1 : at], among[at : at + 1]):
                among.insert(at, (first[k], last[k], k))  # ranges stay sorted
                placed.add(k)
                break
    return placed


def _is_free(now: Computation, k: int, before: list[_Range], after: list[_Range]) -> bool:
    """Return whether `k` may be in the place of what is live before it, and of what is after it."""
    first, last = now.spans.first[k], now.spans.last[k]
    return all(end < first or (end == first and now.reuses(k, n)) for _, end, n in before) and all(
        last < start or (last == start and now.reuses(n, k)) for start, _, n in after
    )


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
