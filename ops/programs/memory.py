"""`Memory`: what a device holds while a program runs, with XLA's buffer assignment.

Results, workspaces and values that are not fused into their consumers have buffers. XLA orders them
in time. It lets a result reuse the place of an operand of the same size at the operand's last use,
and puts a temporary value into the place of a result that is made later, if it fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from gridlayout.live_ranges import Interval, held_over_time, in_results, in_turn
from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.moves.workspace import Chain, Workspace
from gridlayout.ops.programs.dependents import Dependents
from gridlayout.ops.programs.program import Program, program_in


class Sample(NamedTuple):
    """The bytes that a device holds while a buffer is made, by its decision and its step."""

    decision: int
    step: int
    nbytes: int


class BufferPlace(NamedTuple):
    """The place of a result or of temporaries: the decision that uses it last, and its times."""

    decision: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Memory:
    """What a device holds while a program runs.

    peak_bytes, core_peak_bytes: the most at one time, on a device and on a core. Operands belong to
    the caller and are held throughout; so are results, whose buffers XLA allocates at the start.
    over_time: a sample for each buffer, in order of time; one for the pieces of an exchange. On
    CPUs, XLA makes each buffer as early as possible; elsewhere steps run in order. places: of
    results, then of temporaries in order of their first times. Times are positions in `over_time`;
    at each, the places and the operands add up to the bytes held.
    """

    peak_bytes: int
    core_peak_bytes: int
    over_time: tuple[Sample, ...]
    places: tuple[BufferPlace, ...]

    @classmethod
    def of(cls, program: Program) -> Memory:
        """Return what a device holds while a program runs."""
        return _memory(program, {})


def _memory(program: Program, known: dict[int, Memory]) -> Memory:
    """Return the memory of a program; known: that of programs inside of it, by their ids."""
    buffers = _Buffers(program, known)
    found = buffers.found
    outs = buffers.expanded(buffers.read(out.at for out in program.outs))
    order = _order(found, program.device.platform == "cpu")
    _set_live_ranges(found, order, outs)
    always = sum(spec.device_bytes for spec in program.operands)
    always += sum(found[n].nbytes for n in outs)
    temporary = _temporary(found, order, outs)
    times = held_over_time((Interval(*each[2:], each.nbytes) for each in temporary), len(order))
    made = [found[n] for n in order]
    cores = [Interval(each.first, each.last, each.core) for each in made]
    cores += [Interval(each.first, each.first, each.inner[1]) for each in made]
    core = max(held_over_time(cores, len(order)), default=0)
    samples = [
        Sample(each.owner, each.step, always + nbytes)
        for each, nbytes in zip(made, times, strict=True)
    ]
    end = len(order) - 1
    results = [BufferPlace(found[n].owner, found[n].nbytes, 0, end) for n in sorted(outs)]
    return Memory(
        max((each.nbytes for each in samples), default=always),
        sum(spec.core_bytes for spec in program.operands) + core,
        tuple(samples),
        (*results, *temporary),
    )


@dataclass
class _Buffer:
    """A buffer: its bytes on a device and on a core, and the buffers that it is made from.

    may_reuse: whether it may reuse the place of a buffer of which it is the last consumer, if both
    have the same element type or that of one is not known.
    is_fused: whether it stands for a value without a buffer, which is computed where it is read.
    pieces: the buffers of one size that it stands for, which are made from the same ones and read
    together; nbytes: of all of them.
    """

    nbytes: int
    core: int
    reads: set[int]
    may_reuse: bool = False
    pieces: int = 1
    is_fused: bool = False
    inner: tuple[int, int] = (0, 0)  # also held while it is made, in a loop or a branch
    dtype: Any = None
    owner: int = 0  # the number of the decision that makes it
    step: int = 0  # and of its step in the program
    first: int = 0
    last: int = -1


@dataclass
class _Buffers:
    """The buffers of a program; own: for each register, its buffers, or those it is made from."""

    program: Program
    known: dict[int, Memory]
    found: list[_Buffer] = field(default_factory=list)
    own: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        outs = {out.at for out in self.program.outs if isinstance(out.at, int)}
        spaces = [step.workspace() for step in self.program.steps]
        fused_registers = _fused_registers(self.program, spaces, outs)
        steps = zip(self.program.steps, self.program.owners, spaces, strict=True)
        for number, (step, owner, space) in enumerate(steps):
            count = len(self.found)
            self._add(step, space, fused_registers)
            for each in self.found[count:]:
                each.owner, each.step = owner, number

    def read(self, registers: Iterable[object]) -> set[int]:
        """Return the buffers of registers, or those that these are made from."""
        return {n for k in registers if isinstance(k, int) for n in self.own.get(k, ())}

    def expanded(self, numbers: set[int]) -> set[int]:
        """Return buffers, with those that fused values are made from instead of these."""
        waiting, seen = list(numbers), set(numbers)
        while waiting:
            each = self.found[waiting.pop()]
            new = each.reads - seen if each.is_fused else set()
            seen |= new
            waiting += new
        return {n for n in seen if not self.found[n].is_fused}

    def _new(
        self,
        nbytes: int,
        reads: set[int],
        core: int = 0,
        may_reuse: bool = False,
        pieces: int = 1,
    ) -> set[int]:
        self.found.append(_Buffer(nbytes, core, reads, may_reuse, pieces))
        return {len(self.found) - 1}

    def _chained(self, chain: Chain, own: set[int]) -> set[int]:
        """Add the buffers of a chain that starts from `own`; return the last ones."""
        if chain.is_apart:
            own = self.expanded(own)
        if chain.made and not chain.copies:
            own = own | self._new(0, own)  # a view, which takes a turn in the order
        first: set[int] = set()
        for k, (nbytes, pieces) in enumerate(chain.made):
            each, following = nbytes // pieces, [count for _, count in chain.made[k + 1 : k + 2]]
            if chain.is_apart and len(own) == pieces:
                own = {n for read in sorted(own) for n in self._new(each, {read})}
            elif chain.is_apart and [pieces] == following:
                own = {n for _ in range(pieces) for n in self._new(each, own)}
            else:
                own = self._new(each * pieces, own, pieces=pieces)
            first = first or own
        return own | first if chain.keeps_first else own

    def _add(self, step: Step, space: Workspace, fused_registers: set[int]) -> None:
        has_own = bool(space.together) or any(chain.made for chain in space.operands)
        now: set[int] = set()
        for n, k in enumerate(step.reads):
            own = self.read([k])
            now |= self._chained(space.operands[n], own) if n < len(space.operands) else own
        for nbytes in space.together:
            if space.is_written:
                now |= self._new(nbytes, set())
            now = self._new(nbytes, now, may_reuse=space.is_written)
        inner = self._inside(step)
        for k in step.writes:
            spec = self.program.registers[k]
            if k in fused_registers and len(now) > 1:
                (n,) = self._new(0, now)
                self.found[n].is_fused = True
                now = {n}
            if k in fused_registers or (has_own and not space.is_view):
                self.own[k] = frozenset(now)
                for m in self.expanded(now) if k not in fused_registers else ():
                    self.found[m].core = spec.core_bytes
            else:
                own = self._new(spec.device_bytes, now, spec.core_bytes, step.is_fused)
                self.own[k] = frozenset(own)
                self.found[-1].inner, self.found[-1].dtype = inner, spec.dtype

    def _inside(self, step: Step) -> tuple[int, int]:
        """Return the most bytes that a body holds: beyond operands on a device; on a core."""
        most = 0, 0
        for body in step.bodies:
            program = program_in(body)
            if id(program) not in self.known:
                self.known[id(program)] = _memory(program, self.known)
            inside = self.known[id(program)]
            given = sum(spec.device_bytes for spec in program.operands)
            most = max(most[0], inside.peak_bytes - given), max(most[1], inside.core_peak_bytes)
        return most


# -- fusion ----------------------------------------------------------------------------------------


class _Use(NamedTuple):
    """A step that reads a register, its workspace, and which of its operands the register is.

    number: of the step.
    """

    number: int
    step: Step
    space: Workspace
    operand: int

    @property
    def reads_parts(self) -> bool:
        """Whether it makes several results from the operand, each from a part of it."""
        if self.operand < len(self.space.operands):
            made = self.space.operands[self.operand].made
            return bool(made) and made[0][1] > 1
        return len(self.step.writes) > 1

    @property
    def fuses(self) -> bool:
        """Whether it computes the operand while it reads it."""
        if self.operand < len(self.space.operands):
            chain = self.space.operands[self.operand]
            return chain.copies or (chain.is_view and not chain.made)
        return self.step.takes_fused


def _fused_registers(program: Program, spaces: Sequence[Workspace], outs: set[int]) -> set[int]:
    """Return the registers without buffers: XLA fuses their values into all consumers."""
    sizes = {k: prod(spec.local_shape) for k, spec in enumerate(program.registers)}
    dependents = Dependents(
        sizes,
        (
            ([k for k in step.reads if isinstance(k, int)], step.writes, step.is_view)
            for step in program.steps
        ),
    )
    uses: dict[int, list[_Use]] = {}
    makes: dict[int, tuple[int, ...]] = {}  # for a register: two of those that are computed of it
    found: set[int] = set()
    for number in reversed(range(len(spaces))):
        step, space = program.steps[number], spaces[number]
        for k in step.writes:
            mine = uses.get(k, [])
            readers = ((use.number, use.step.writes) for use in mine)
            is_apart = dependents.is_stored(k, readers, found)
            made = dict.fromkeys(m for use in mine for m in _makers(use.step, found, makes))
            makes[k] = tuple(made)[:2]
            several = len(made) > 1 or any(use.reads_parts for use in mine)
            once = step.is_view or not ((step.is_kept or is_apart) and several)
            seen = step.is_fused or step.is_view or space.is_view
            fused = seen and once and all(use.fuses for use in mine)
            if k not in outs and (step.is_view or fused):
                found.add(k)
            if step.is_view:  # consumers of a view read what it is a view of
                for read in step.reads:
                    if isinstance(read, int):
                        uses.setdefault(read, []).extend(mine)
        for n, k in enumerate(step.reads):
            if isinstance(k, int) and not step.is_view:
                uses.setdefault(k, []).append(_Use(number, step, space, n))
    return found


def _makers(consumer: Step, found: set[int], makes: dict[int, tuple[int, ...]]) -> Iterable[int]:
    """Return those in whose kernels a consumer's operand is computed; of several, two."""
    if consumer.writes and found.issuperset(consumer.writes):
        return (made for k in consumer.writes for made in makes[k])
    return consumer.writes if consumer.is_fused else consumer.writes[:1]


# -- time and places -------------------------------------------------------------------------------


def _order(found: list[_Buffer], earliest: bool) -> list[int]:
    """Return the order in which buffers are made; earliest: each once all that it reads exist."""
    made = [n for n, each in enumerate(found) if not each.is_fused]
    if not earliest:
        return made
    waits = [len(each.reads) for each in found]
    consumers: dict[int, list[int]] = {}
    for n, each in enumerate(found):
        for k in each.reads:
            consumers.setdefault(k, []).append(n)
    queue, order = deque(n for n in made if not waits[n]), []
    while queue:
        order.append(n := queue.popleft())
        existing, ready = [n], list[int]()
        while existing:
            for consumer in consumers.get(existing.pop(), ()):
                waits[consumer] -= 1
                if not waits[consumer]:
                    (existing if found[consumer].is_fused else ready).append(consumer)
        queue += sorted(ready)
    return order


def _set_live_ranges(found: list[_Buffer], order: list[int], outs: set[int]) -> None:
    for time, n in enumerate(order):
        found[n].first = found[n].last = time
    latest: dict[int, int] = {}  # of the buffers that read the same others: pieces of one buffer
    for each in reversed(found):  # consumers before what they read
        time = each.last if each.is_fused else each.first
        if time > latest.get(id(each.reads), -1):
            latest[id(each.reads)] = time
            for k in each.reads:
                found[k].last = max(found[k].last, time)
    for n in outs:
        found[n].last = len(order)


def _temporary(found: list[_Buffer], order: list[int], outs: set[int]) -> list[BufferPlace]:
    """Return the places that are needed in addition to those of results."""
    first, last = [each.first for each in found], [each.last for each in found]
    ending: dict[int, list[int]] = {}  # the buffers that are last read at each time
    for n, each in enumerate(found):
        if not each.is_fused:
            ending.setdefault(each.last, []).append(n)
    same = (
        (n, k)
        for n in order
        if found[n].may_reuse
        for k in ending.get(first[n], ())
        if found[k].nbytes == found[n].nbytes and found[k].pieces == 1
        if None in (found[k].dtype, found[n].dtype) or found[k].dtype == found[n].dtype
    )
    place, end = in_turn(first, last, same)
    users = {place[n]: n for n in order}  # of each place, the last
    sizes = [each.nbytes // each.pieces for each in found]
    spans = {n: Interval(first[k], end[k], sizes[n]) for k, n in users.items()}
    others = sorted(spans.keys() - outs)
    counts = [found[n].pieces for n in others]
    inside = in_results([spans[n] for n in sorted(outs)], [spans[n] for n in others], counts)
    rest = [
        BufferPlace(found[n].owner, (count - len(results)) * sizes[n], *spans[n][:2])
        for n, count, results in zip(others, counts, inside, strict=True)
        if len(results) < count
    ]
    rest += [BufferPlace(x.owner, x.inner[0], x.first, x.first) for x in found if x.inner[0]]
    return sorted(rest, key=lambda each: each.first)
