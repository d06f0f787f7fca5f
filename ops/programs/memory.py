"""`peak_bytes`: the most that a device holds while a program runs, with XLA's buffer assignment.

Results, workspaces and values that are not fused into their consumers have buffers. XLA orders them
in time. It lets a result reuse the place of an operand of the same size at the operand's last use,
and puts a temporary value into the place of a result that is made later, if it fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.moves.workspace import Chain
from gridlayout.ops.programs.program import Program, program_in


@dataclass
class _Buffer:
    """A buffer: its bytes on a device and on a core, and the buffers that it is made from.

    may_reuse: whether it may reuse the place of a buffer of which it is the last consumer.
    """

    nbytes: int
    core: int
    reads: set[int]
    may_reuse: bool = False
    inner: tuple[int, int] = (0, 0)  # also held while it is made, in a loop or a branch
    owner: int = 0  # the number of the decision that makes it
    step: int = 0  # and of its step in the program
    first: int = 0
    last: int = 0


@dataclass
class _Buffers:
    """The buffers of a program; `at`: for each register, its buffers, or those it is made from."""

    program: Program
    found: list[_Buffer] = field(default_factory=list)
    at: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        outs = {out.at for out in self.program.outs if isinstance(out.at, int)}
        fused_registers = _fused_registers(self.program, outs)
        pairs = zip(self.program.steps, self.program.owners, strict=True)
        for number, (step, owner) in enumerate(pairs):
            count = len(self.found)
            self._add(step, fused_registers)
            for each in self.found[count:]:
                each.owner, each.step = owner, number

    def read(self, registers: Iterable[object]) -> set[int]:
        """Return the buffers of registers, or those that these are made from."""
        return {n for k in registers if isinstance(k, int) for n in self.at.get(k, ())}

    def _new(
        self, nbytes: int, reads: set[int], core: int = 0, may_reuse: bool = False
    ) -> set[int]:
        self.found.append(_Buffer(nbytes, core, reads, may_reuse))
        return {len(self.found) - 1}

    def _chained(self, chain: Chain, own: set[int]) -> set[int]:
        """Add the buffers of a chain that starts from `own`; return the last ones."""
        if chain.made and not chain.copies:
            own = own | self._new(0, own)  # a view, which takes a turn in the order
        first: set[int] = set()
        for nbytes, pieces in chain.made:
            apart = chain.is_apart and len(own) == pieces
            reads = [{n} for n in sorted(own)] if apart else [own] * pieces
            own = {n for each in reads for n in self._new(nbytes // pieces, each)}
            first = first or own
        return own | first if chain.keeps_first else own

    def _add(self, step: Step, fused_registers: set[int]) -> None:
        held = step.workspace()
        now: set[int] = set()
        for n, k in enumerate(step.reads):
            own = self.read([k])
            now |= self._chained(held.operands[n], own) if n < len(held.operands) else own
        for nbytes in held.together:
            if held.is_written:
                now |= self._new(nbytes, set())
            now = self._new(nbytes, now, may_reuse=held.is_written)
        has_own = bool(held.together) or any(chain.made for chain in held.operands)
        inner = _inside(step)
        for k in step.writes:
            spec = self.program.registers[k]
            if k in fused_registers or (has_own and not held.is_view):
                self.at[k] = frozenset(now)
                for m in now if k not in fused_registers else ():
                    self.found[m].core = spec.core_bytes
            else:
                own = self._new(spec.device_bytes, now, spec.core_bytes, step.is_fused)
                self.at[k] = frozenset(own)
                self.found[-1].inner = inner


def _inside(step: Step) -> tuple[int, int]:
    """Return the most bytes that a body of a step holds: beyond operands on a device; on a core."""
    most = 0, 0
    for body in step.bodies:
        device, core = peak_bytes(program_in(body))
        given = sum(spec.device_bytes for spec in body.program.operands)
        most = max(most[0], device - given), max(most[1], core)
    return most


def _fused_registers(program: Program, outs: set[int]) -> set[int]:
    """Return the registers without buffers: XLA fuses their values into all consumers."""
    consumers: dict[int, list[tuple[Step, int]]] = {}
    makes: dict[int, set[int]] = {}  # for a register: those in whose kernels it is computed
    found: set[int] = set()
    for step in reversed(program.steps):
        for k in step.writes:
            seen = step.is_fused or step.is_view or step.workspace().is_view
            mine = consumers.get(k, [])
            makes[k] = {made for consumer, _ in mine for made in _makers(consumer, found, makes)}
            several = len(makes[k]) > 1 or any(_reads_parts(*each) for each in mine)
            once = step.is_view or not (step.is_kept and several)
            fused = seen and once and all(_fuses(*each) for each in mine)
            if k not in outs and (step.is_view or fused):
                found.add(k)
            if step.is_view:  # consumers of a view read what it is a view of
                for read in step.reads:
                    if isinstance(read, int):
                        consumers.setdefault(read, []).extend(mine)
        for n, k in enumerate(step.reads):
            if isinstance(k, int) and not step.is_view:
                consumers.setdefault(k, []).append((step, n))
    return found


def _makers(consumer: Step, found: set[int], makes: dict[int, set[int]]) -> set[int]:
    if consumer.writes and found.issuperset(consumer.writes):
        return {made for k in consumer.writes for made in makes[k]}
    return {*(consumer.writes if consumer.is_fused else consumer.writes[:1])}


def _reads_parts(step: Step, operand: int) -> bool:
    """Return whether a step makes several results from an operand, each from a part of it."""
    held = step.workspace()
    if operand < len(held.operands):
        made = held.operands[operand].made
        return bool(made) and made[0][1] > 1
    return len(step.writes) > 1


def _fuses(step: Step, operand: int) -> bool:
    """Return whether a step computes an operand while it reads it."""
    held = step.workspace()
    if operand < len(held.operands):
        chain = held.operands[operand]
        return chain.copies or (chain.is_view and not chain.made)
    return step.takes_fused


def peak_bytes(program: Program) -> tuple[int, int]:
    """Return the most bytes held at one time, on a device and on a core.

    Operands belong to the caller and are held throughout; so are results, whose buffers XLA
    allocates at the start. On CPUs, XLA makes each buffer as early as possible; elsewhere steps run
    in order.
    """
    found, outs, always = _laid_out(program)
    core = sum(spec.core_bytes for spec in program.operands) + _most(
        [(b.first, b.last, b.core, b.owner) for b in found]
        + [(b.first, b.first, b.inner[1], b.owner) for b in found]
    )
    return always + _most(_temporary(found, outs)), core


def bytes_over_time(program: Program) -> list[tuple[int, int, int]]:
    """Return for each buffer, in order of time, its decision, its step and the bytes held then.

    The maximum of these bytes is the first result of `peak_bytes`.
    """
    found, outs, always = _laid_out(program)
    held = _changes(_temporary(found, outs))
    now, most = 0, {}
    for time in range(len(found)):
        now += held.get(time, 0)
        most[time] = now
    ordered = sorted(found, key=lambda each: each.first)
    return [(each.owner, each.step, always + most[each.first]) for each in ordered]


def places(program: Program) -> list[tuple[int, int, int, int]]:
    """Return the places of results and temporaries: (decision, bytes, first time, last time).

    Times are positions in `bytes_over_time`; at each of them, the places and the operands add up to
    its bytes. Several buffers may use a place in turn; its decision is that of the last.
    """
    found, outs, _ = _laid_out(program)
    end = len(found) - 1
    made = [(found[n].owner, found[n].nbytes, 0, end) for n in sorted(outs)]
    rest = _temporary(found, outs)
    return made + [(owner, nbytes, first, last) for first, last, nbytes, owner in rest]


def _laid_out(program: Program) -> tuple[list[_Buffer], set[int], int]:
    """Return the buffers with their times, those of results, and bytes of operands and results."""
    buffers = _Buffers(program)
    found = buffers.found
    outs = buffers.read(out.at for out in program.outs)
    order = _earliest_order(found) if program.device.platform == "cpu" else range(len(found))
    _live(found, list(order), outs)
    given = sum(spec.device_bytes for spec in program.operands)
    return found, outs, given + sum(found[n].nbytes for n in outs)


def _earliest_order(found: list[_Buffer]) -> list[int]:
    """Return the order in which XLA makes buffers on CPUs: each once all that it reads exist."""
    waits = [len(each.reads) for each in found]
    consumers: dict[int, list[int]] = {}
    for n, each in enumerate(found):
        for k in each.reads:
            consumers.setdefault(k, []).append(n)
    queue, order = deque(n for n, count in enumerate(waits) if not count), []
    while queue:
        order.append(n := queue.popleft())
        for consumer in consumers.get(n, ()):
            waits[consumer] -= 1
            if not waits[consumer]:
                queue.append(consumer)
    return order


def _live(found: list[_Buffer], order: list[int], outs: set[int]) -> None:
    """Set the live range of each buffer."""
    for time, n in enumerate(order):
        found[n].first = found[n].last = time
        for k in found[n].reads:
            found[k].last = time
    for n in outs:
        found[n].last = len(order)


def _temporary(found: list[_Buffer], outs: set[int]) -> list[tuple[int, int, int, int]]:
    """Return (first, last, bytes, owner) of the places needed in addition to those of results."""
    place = list(range(len(found)))
    spans = {n: [(each.first, each.last)] for n, each in enumerate(found)}
    for n in sorted(range(len(found)), key=lambda n: found[n].first):
        each = found[n]
        for k in sorted(each.reads) if each.may_reuse else ():
            ends = found[k].last == each.first and found[k].nbytes == each.nbytes
            if ends and place[k] not in outs:
                # A buffer read here for the last time passes its place on.
                spans[n] = spans.pop(place[k]) + spans[n]
                place = [n if p == place[k] else p for p in place]
                break
    rest = []
    for n in sorted(spans.keys() - outs, key=lambda n: -found[n].nbytes):
        first, last = spans[n][0][0], spans[n][-1][1]
        for out in outs:
            free = all(last < a or b < first for a, b in spans[out])
            if found[n].nbytes <= found[out].nbytes and free:
                spans[out].append((first, last))
                break
        else:
            rest.append((first, last, found[n].nbytes, found[n].owner))
    return rest + [(each.first, each.first, each.inner[0], each.owner) for each in found]


def _most(spans: list[tuple[int, int, int, int]]) -> int:
    """Return the most bytes live at one time, from (first, last, bytes, owner)."""
    changes = _changes(spans)
    held, most = 0, 0
    for time in sorted(changes):
        held += changes[time]
        most = max(most, held)
    return most


def _changes(spans: list[tuple[int, int, int, int]]) -> dict[int, int]:
    """Return by how many bytes the total changes, for each time where it does."""
    changes: dict[int, int] = {}
    for first, last, nbytes, _ in spans:
        changes[first] = changes.get(first, 0) + nbytes
        changes[last + 1] = changes.get(last + 1, 0) - nbytes
    return changes
