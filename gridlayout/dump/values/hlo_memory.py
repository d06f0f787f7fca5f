"""The memory of a compiled HLO module: arguments, results and temporaries, as XLA assigns buffers.

Instructions run in the order of the text (`is_scheduled=true`). A buffer is live from the
instruction that defines it to the last one that reads it or an alias of it; tuples and bitcasts are
aliases. A result reuses the buffer of an operand of its type if this is the operand's last use and
each element of the result depends only on the same element of the operand, or if the op updates or
sorts the operand in place. The state of a loop stays in its buffers. A temporary is placed in the
buffer of a result if the two are never live at once. Fusion bodies own no buffers; loops, branches
and calls own those of their bodies. Each memory space, `S(5)` in a type, has a peak of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gridlayout.dump.text.hlo import (
    CALLS,
    INDEX,
    braced,
    called_by,
    is_partitioned,
    is_view,
    new_arrays,
)
from gridlayout.dump.text.statements import Instruction
from gridlayout.dump.values.hlo_buffers import (
    APART,
    ARGUMENT,
    CONSTANT,
    ELEMENTWISE,
    INNER,
    MADE,
    UPDATES,
    Computation,
    Finished,
    Parts,
    most_temporary,
    part_of,
)
from gridlayout.dump.values.peaks import MAX_SPANS, Peak
from gridlayout.dump.values.type_texts import DEVICE, Sizes

_POINTER = 8
WHOLE = "whole-array "  # of memory, in a program that is not yet divided over devices
# A sharding that divides an array, such as sharding={devices=[2,4]<=[8]} or {{mesh['x'=2], ...}}.
_SHARDED = re.compile(r", sharding=\{[^=]*?(?:devices=|mesh\[)")
_MOST_VISITED = 256  # buffers of tuples that are visited per character of the text
_BODIES = re.compile(
    r"\b(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^{}]*)\}")
_ALIASED = re.compile(r"\{([0-9, ]*)\}: \(([0-9]{1,6}), \{([0-9, ]*)\}")
_MARKS = {"parameter": ARGUMENT, "constant": CONSTANT}
# Names of memory spaces: XLA's (`Layout::kHostMemorySpace`), and those of TPUs, whose arrays are
# in tiles. A GPU has other memories of these numbers.
_SPACES = {DEVICE: "memory", "memory 5": "host memory"}
_TPU_SPACES = {"memory 1": "VMEM", "memory 2": "semaphores"}
# Ops whose result may reuse an operand's buffer.
_TAKERS = ELEMENTWISE | {"fusion", "sort", *UPDATES}
CALLERS = ("while", "call", "conditional", "async-start")


def bodies_of(found: Instruction) -> list[str]:
    """Return the names of the computations that a loop, branch or call runs.

    >>> bodies_of(Instruction("a", False, "f32[]", "call", (), ", to_apply=%f, metadata={}"))
    ['f']
    """
    names = _BODIES.findall(found.attributes) + CALLS.findall(found.attributes)
    for group in _BRANCHES.findall(found.attributes):
        names += re.findall(r"[\w.-]+", group)
    return names


class HloMemory:
    """The computations of one module; `peaks` has that of its entry computation."""

    def __init__(self, header: str) -> None:
        self.aliased = _ALIASED.findall(braced(header, "input_output_alias="))
        self.is_module = header != ""
        self.is_scheduled = "is_scheduled=true" in header
        self.done: dict[str, Finished] = {}
        self.entry: Computation | None = None
        self.over = self.is_tiled = self.is_sharded = False

    def is_of_parts(self, now: Computation) -> bool:
        """Return whether shapes are those of the parts that one device holds.

        They are where instructions are scheduled, and after XLA's partitioner, which names
        computations so. `num_partitions` and collectives do not tell: modules have them before.
        """
        return self.is_scheduled or is_partitioned(now.name)

    def add(self, found: Instruction, line: int, sizes: Sequence[Sizes], now: Computation) -> None:
        """Add an instruction to the computation `now`. sizes: of each array in its type."""
        if now.over or now.spans.is_full or len(now.lines) >= 2 * MAX_SPANS:
            now.give_up()
            return
        op, at = found.op, len(now.lines)
        now.lines.append(line)
        places, last = now.places, now.spans.last
        for name in found.operands:
            place = places.get(name)
            if place is None:
                place = now.parts(name)
            if isinstance(place, int):
                last[place] = at
                continue
            for part in place:
                now.visited += len(part) + 1
                for k in part:
                    last[k] = at
            if now.visited > _MOST_VISITED * (now.characters + len(found.attributes)):
                now.give_up()
                return
        now.characters += len(found.kind) + len(found.attributes)
        self.is_tiled = self.is_tiled or ":T(" in found.kind
        self.is_sharded = self.is_sharded or _SHARDED.search(found.attributes) is not None
        if op in CALLERS:
            self._hold_inside(found, at, now)
        if is_view(op):
            own = _renamed(found, [now.parts(name) for name in found.operands], len(sizes))
            places[found.name] = own[0][0] if len(own) == 1 == len(own[0]) else own
        else:
            places[found.name] = self._made(found, at, sizes, now)
        if not now.is_entry:
            now.trace(found)
        if found.is_root:
            now.roots, now.is_tuple = now.parts(found.name), found.kind.startswith("(")

    def _made(
        self, found: Instruction, at: int, sizes: Sequence[Sizes], now: Computation
    ) -> int | Parts:
        mark = _MARKS.get(found.op, MADE)
        aliases = self._aliases(found, len(sizes), now)
        if len(sizes) == 1 and not aliases:
            kind = found.own[0] if len(found.own) == 1 else found.kind
            _watch(found, sizes, now)
            own = now.hold(found, sizes[0].nbytes, at, mark, kind, sizes[0].space)
            if mark == MADE and found.op in _TAKERS:
                self._take_turns(found, own, now)
            return own
        new = new_arrays(found.op, len(found.operands), sizes)
        _watch(found, new, now)
        kinds = found.own if len(found.own) == len(new) else ("",) * len(new)
        made: Parts = tuple(
            [
                aliases.get(k) or (now.hold(found, each.nbytes, at, mark, kind, each.space),)
                for k, (each, kind) in enumerate(zip(new, kinds, strict=True))
            ]
        )
        if found.op == "sort":  # of several arrays, each in its own place
            for part, name in zip(made, found.operands, strict=False):
                now.may_share(part[0], name)
        if len(new) == len(sizes):
            return made
        # Of an async op, which reads its operands until it is done: results, then operands.
        return made + tuple(part for name in found.operands for part in now.parts(name))

    def _aliases(
        self, found: Instruction, parts: int, now: Computation
    ) -> dict[int, tuple[int, ...]]:
        """Return those of a result's parts that are in buffers of operands, and these buffers."""
        if found.op == "call":
            reads = [part for name in found.operands for part in now.parts(name)]
            body = self.done.get("".join(bodies_of(found)[:1]))
            returned = enumerate(body.returned[:parts] if body else ())
            return {k: reads[n] for k, n in returned if 0 <= n < len(reads)}
        aliases = {}
        for out, number, index in _ALIASED.findall(
            braced(found.attributes, "output_to_operand_aliasing=")
        ):
            if int(number) < len(found.operands):
                read = now.parts(found.operands[int(number)])
                if (at := _first(index)) < len(read):
                    aliases[_first(out)] = read[at]
        return aliases

    def end(self, now: Computation) -> None:
        """Finish a computation: store the entry, or the summary of any other."""
        for k in {k for part in now.roots for k in part}:
            now.spans.last[k] = len(now.lines)
        self.over = self.over or now.over
        if now.is_entry:
            self.entry = now
        elif len(self.done) < MAX_SPANS // 2:
            temporary = _temporaries(now)
            in_loop = _temporaries(now, in_loop=True) if now.turns or now.states else temporary
            inputs = {part: k for k, part in enumerate(now.parameters())}
            returned = tuple(inputs.get(part, -1) for part in now.roots)
            self.done[now.name] = Finished(
                *(tuple(now.bodies), now.moved, temporary, in_loop, returned, now.unread)
            )
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

    def peaks(self) -> list[Peak]:
        """Return the peaks of the entry, one of each memory space: arguments, results, temporaries.

        Empty if there is no entry, or a computation has too many instructions.
        """
        now = self.entry
        if now is None or self.over:
            return []
        return [self._peak(now, space) for space in sorted({DEVICE, *now.spaces})]

    def _peak(self, now: Computation, space: str) -> Peak:
        spans, marks = now.spans, now.spans.marks
        held = [n if at == space else 0 for n, at in zip(spans.nbytes, now.spaces, strict=True)]
        returned = {k for part in now.roots for k in part}
        arguments = sum(n for n, mark in zip(held, marks, strict=True) if mark == ARGUMENT)
        results = sum(held[k] for k in returned if marks[k] == MADE)
        results += _POINTER * len(now.roots) if now.is_tuple and space == DEVICE else 0
        results -= self._aliased_bytes(now, held)
        temporary, at = most_temporary(now, space, reuse=True)
        line = now.lines[min(at, len(now.lines) - 1)] if now.lines else 0
        alive = spans.largest(
            k
            for k, mark in enumerate(marks)
            if held[k]
            and (mark == ARGUMENT or (mark == MADE and spans.first[k] <= at <= spans.last[k]))
        )
        alive = tuple(span._replace(line=line, last=line) for span in alive)
        name = ((_TPU_SPACES if self.is_tiled else {}) | _SPACES).get(space, space)
        if self.is_sharded and not self.is_of_parts(now):
            name = f"{WHOLE}{name}"
        total, parts = arguments + results + temporary, (arguments, results, temporary)
        return Peak(now.name, name, total, line, alive, *parts, at_least=now.unread)

    # -- one instruction ---------------------------------------------------------------------------

    def _hold_inside(self, found: Instruction, at: int, now: Computation) -> None:
        """Add the temporaries of the computations that an op runs."""
        names = bodies_of(found)
        now.bodies.update(names)
        done = [self.done[name] for name in names if name in self.done]
        now.unread = now.unread or any(each.unread for each in done)
        in_loop = found.op == "while"
        held = [each.temporary_in_loop if in_loop else each.temporary for each in done]
        for space in sorted({space for each in held for space in each}):
            pairs = [each.get(space, (0, 0)) for each in held]
            inside, apart = (max(column) for column in zip(*pairs, strict=True))
            if inside:
                now.hold(found, inside, at, INNER, space=space)
            if apart > inside:
                parts = [part for name in found.operands for part in now.parts(name)]
                state = {k for part in parts for k in part if now.spaces[k] == space}
                now.states[now.hold(found, apart - inside, at, APART, space=space)] = state

    def _take_turns(self, found: Instruction, new: int, now: Computation) -> None:
        """Record the operands whose buffer the result `new` may reuse."""
        body = None
        if found.op == "fusion":
            body = self.done.get(called_by(found) or "")
            if body is None or "kind=kLoop" not in found.attributes:
                return
        for k, name in enumerate(found.operands):
            if not body.moved >> k & 1 if body else k == 0 or found.op in ELEMENTWISE:
                now.may_share(new, name)

    def _aliased_bytes(self, now: Computation, held: Sequence[int]) -> int:
        """Return the bytes of results that reuse the buffer of a donated argument."""
        # A result that is an argument, such as the state of a loop, owns no other memory.
        marks = now.spans.marks
        nbytes = [sum(held[k] for k in part if marks[k] == MADE) for part in now.roots]
        indices = (_first(out) for out, _, _ in self.aliased)
        return sum(nbytes[index] for index in indices if index < len(nbytes))


def _temporaries(now: Computation, in_loop: bool = False) -> dict[str, tuple[int, int]]:
    """Return the bytes of temporaries in each memory space.

    The first number is theirs if the states of loops may hold some, the second if not.
    """
    found = {}
    for space in set(now.spaces):
        shared, _ = most_temporary(now, space, in_loop=in_loop)
        apart = shared
        if (now.turns and in_loop) or now.states:
            apart, _ = most_temporary(now, space, in_loop=in_loop, apart=True)
        if apart:
            found[space] = shared, apart
    return found


def _watch(found: Instruction, made: Sequence[Sizes], now: Computation) -> None:
    """Record that an op makes a value of a type that can't be read, and so of unknown bytes."""
    if any(each.reason for each in made) and (now.is_entry or found.op != "parameter"):
        now.unread = True


def _first(index: str) -> int:
    """Return the first number of an index, such as 1 of `1, 0`; 0 if it has none."""
    return int(index.split(",")[0]) if index.strip() else 0


def _renamed(found: Instruction, reads: list[Parts], arrays: int) -> Parts:
    """Return the parts of a value that is an alias of its operands. arrays: those in its type."""
    if found.op == "tuple":
        return tuple(tuple(sorted({k for part in parts for k in part})) for parts in reads)
    parts = reads[0] if reads else ()
    if found.op == "get-tuple-element":
        index = INDEX.search(found.attributes)
        return part_of(parts, int(index[1]) if index else 0)
    return parts[:arrays] if found.op.endswith("-done") else parts
