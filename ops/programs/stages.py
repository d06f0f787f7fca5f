"""`stages`: what a device does for a program: it computes, and it sends.

A gathered product gathers its operands before it multiplies, a ring sends between multiplications,
and partial results are reduced after them. The order is that of the steps of a program. Each stage
knows the stages whose results it needs (`timing.py`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.programs.program import RELAYOUT, Made, Program, program_in
from gridlayout.ops.programs.row import Row
from gridlayout.ops.programs.timing import Stage, Times
from gridlayout.sharding.collectives import ALL_REDUCE, REDUCE_SCATTER, Turn

_REDUCES = (ALL_REDUCE, REDUCE_SCATTER)
_COMPUTES = Turn()
# Of the stages that something waits for, the last one on each resource: those before it on the same
# resource have ended by then. So their number does not grow with the program.
After = Mapping[str, int]


class Placed(NamedTuple):
    """A stage as part of a program: the number of its equation, and that of its step.

    The step of a stage in the body of a loop is the loop.
    """

    equation: int
    step: int
    stage: Stage


def stages(
    program: Program,
    rows: Sequence[Row],
    names: Sequence[str],
    operands: Sequence[str],
    times: Times,
) -> list[Placed]:
    """Return the stages of a program in the order in which devices run them.

    Those of bodies of loops and branches are where the loop or branch runs, once; nothing else runs
    at the same time. rows: of its report, with the names and the times of the equations. operands:
    the names of the program's operands.
    """
    # Equal loops have the same decisions in their bodies: each visit takes the next row.
    numbers: dict[int, deque[int]] = {}
    for number, row in enumerate(rows):
        numbers.setdefault(id(row.made), deque()).append(number)
    walk = _Walk(numbers, names, times)
    walk.program(program, operands)
    return walk.found


class _Part(NamedTuple):
    """What a step does for a decision: its turns, in order, each with its stage.

    at: the number of the step; then 0, or a number of its own for a decision without steps, which
    comes after that step. step: None for such a decision. equation: None for one that is not
    reported. reads, writes: registers.
    """

    at: tuple[int, int]
    equation: int | None
    step: Step | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    turns: tuple[tuple[Turn, Stage], ...]


@dataclass
class _Walk:
    """A walk through a program and the bodies of its loops, in the order of the steps."""

    numbers: Mapping[int, deque[int]]
    names: Sequence[str]
    times: Times
    found: list[Placed] = field(default_factory=list)
    waits: bool = False  # whether the next stage waits for all before it

    def program(self, program: Program, operands: Sequence[str], inside: int | None = None) -> None:
        """Add the stages of a program; inside: the number of the step whose body it is."""
        ready: dict[int, After] = {}  # for each register, the last stages that made its value
        parts = sorted(self._parts(program, operands), key=lambda part: part.at)
        for at, some in groupby(parts, lambda part: part.at):
            joined = [*some]  # they send together
            base = _last(ready.get(k, {}) for part in joined for k in part.reads)
            step = (-1 if joined[0].step is None else at[0]) if inside is None else inside
            done = _last(self._run(part, step, base, ready) for part in joined)
            ready |= {k: done for part in joined for k in part.writes}

    def _parts(self, program: Program, operands: Sequence[str]) -> Iterator[_Part]:
        called = dict(enumerate(operands))  # the name of the value in each register
        single = [[pair] for pair in zip(program.owners, program.steps, strict=True)]
        own: dict[int, list[tuple[int, Step]]] = {}
        for n, some in enumerate(program.parts or single):
            for owner, step in some:
                own.setdefault(owner, []).append((n, step))
        last = -1
        for owner, made in enumerate(program.made):
            steps, waiting = own.get(owner, []), self.numbers.get(id(made))
            equation = waiting.popleft() if waiting else None
            name = "" if equation is None else self.names[equation]
            mine = _stages(made, [step for _, step in steps], called, name)
            if not steps:
                reads, writes = (_registers(v.at for v in x) for x in (made.values, made.outs))
                turns = tuple((turn, stage) for _, turn, stage in mine)
                yield _Part((last, 1 + owner), equation, None, reads, writes, turns)
            for k, (n, step) in enumerate(steps):
                last = max(last, n)
                turns = tuple((turn, stage) for at, turn, stage in mine if at == k)
                yield _Part((n, 0), equation, step, _registers(step.reads), step.writes, turns)

    def _run(self, part: _Part, at: int, base: After, ready: Mapping[int, After]) -> After:
        """Add the stages of a part, and return the last ones; base: what it needs."""
        step = part.step
        is_alone = step is not None and (bool(step.bodies) or step.is_global)
        self.waits |= is_alone
        for body in () if step is None else step.bodies:
            self.program(program_in(body), body.roles, at)
            self.waits = True
        if part.equation is None:
            return base
        sent: dict[int | None, After] = {}  # the last transfers, by operand
        computed: list[After] = [{}, {}]
        last = base
        for turn, stage in part.turns:
            if step is None or _COMPUTES not in step.turns:
                needs = last
            elif turn.collective is None:
                operands = (each for k, each in sent.items() if k is not None)
                needs = _last((base, *operands, computed[-1]))
            elif turn.operand is None:
                needs = _last((base, *sent.values(), *computed[-1:]))
            else:  # of two buffers, one is computed with
                own = _registers(step.reads[turn.operand : turn.operand + 1])
                first = _last(ready.get(k, {}) for k in own)
                needs = _last((sent.get(turn.operand, first), computed[-2]))
            last = self._add(part.equation, at, stage, needs)
            if turn.collective is None:
                computed.append(last)
            else:
                sent[turn.operand] = last
        self.waits |= is_alone
        return _last((base, *sent.values(), computed[-1], last))

    def _add(self, equation: int, at: int, stage: Stage, needs: After) -> After:
        """Add a stage, and return what waits for it waits for."""
        number = len(self.found)
        after = None if self.waits else tuple(sorted({*needs.values()}))
        self.found.append(Placed(equation, at, stage._replace(after=after)))
        self.waits = False
        if not self.times.seconds(equation, stage):
            return needs
        return {self.times.resource(equation, stage): number}


def _last(some: Iterable[After]) -> After:
    """Return the last stage on each resource."""
    found: dict[str, int] = {}
    for each in some:
        for resource, number in each.items():
            found[resource] = max(found.get(resource, -1), number)
    return found


def _registers(some: Iterable[object]) -> tuple[int, ...]:
    """Return the registers among operands, some of which are constants."""
    return tuple(k for k in some if isinstance(k, int))


def _stages(
    made: Made, steps: Sequence[Step], called: dict[int, str], name: str
) -> list[tuple[int, Turn, Stage]]:
    """Return the stages of one decision, each with the position of its step among these steps.

    called: gets the names of the registers that it writes. What a relayout makes has the name of
    its operand.
    """
    is_relayout = made.decision.op.name == RELAYOUT
    turns: list[tuple[int, Turn, str]] = []
    first = 0
    for k, step in enumerate(steps):
        sources = [called.get(r, "") if isinstance(r, int) else "a constant" for r in step.reads]
        for turn in _turns(step):
            of = "" if turn.collective is None else _sent(step, turn, sources, name)
            at = None if turn.collective is None else first + turn.collective
            turns.append((k, Turn(at, turn.operand), of))
        keeps_name = bool(sources) and (is_relayout or _is_move(step))
        called |= dict.fromkeys(step.writes, sources[0] if keeps_name else name)
        first += len(step.collectives)
    fused = {k for k, step in enumerate(steps) if step.is_fused}
    works = {k for k, turn, _ in turns if turn == _COMPUTES}
    if works - fused:  # XLA fuses the other kernels into these
        turns = [each for each in turns if each[1] != _COMPUTES or each[0] not in fused]
    if not works:  # the moves copy what a device has itself
        turns.append((len(steps) - 1, _COMPUTES, ""))
    counts = Counter(turn.collective for _, turn, _ in turns)
    return [(k, t, Stage(t.collective, 1 / counts[t.collective], of)) for k, t, of in turns]


def _is_move(step: Step) -> bool:
    """Return whether a step only moves one value."""
    return step.does is not None or step.is_view


def _turns(step: Step) -> Sequence[Turn]:
    """Return the order in which a step computes and sends.

    A kernel that does not state it computes before each collective, and after the last one unless
    that reduces results.
    """
    if _COMPUTES in step.turns:
        return step.turns
    sends = [Turn(k) for k in range(len(step.collectives))]
    if _is_move(step) or step.phases is not None:
        return sends
    turns = [each for send in sends for each in (_COMPUTES, send)]
    reduces = bool(sends) and step.collectives[-1].kind in _REDUCES
    return turns if reduces else [*turns, _COMPUTES]


def _sent(step: Step, turn: Turn, sources: Sequence[str], name: str) -> str:
    """Return the name of what a step sends; name: of the equation itself."""
    assert turn.collective is not None
    if step.collectives[turn.collective].kind in _REDUCES:
        return "partial results"
    if not _is_move(step) and turn.operand is None:
        return ""
    source = sources[turn.operand or 0] if sources else ""
    return "the result" if source == name else source
