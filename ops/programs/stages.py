"""`Stage`: what a device does for an equation, one thing after another: it computes, or it sends.

A gathered product gathers its operands before it multiplies, a ring sends between multiplications,
and partial results are reduced after them. The order is that of the steps of a decision.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.programs.program import RELAYOUT, Made, Program, program_in
from gridlayout.ops.programs.row import Row
from gridlayout.sharding.collectives import ALL_REDUCE, REDUCE_SCATTER, Turn

_REDUCES = (ALL_REDUCE, REDUCE_SCATTER)
_COMPUTES = Turn()


class Stage(NamedTuple):
    """A part of an equation's time on a device.

    collective: its number among the equation's collectives; None for computation. share: of the
    time of that collective, or of the equation's computation. of: the name of what is sent, empty
    if it has none.
    """

    collective: int | None
    share: float
    of: str = ""


class Placed(NamedTuple):
    """A stage as part of a program: the number of its equation, and that of its step.

    The step of a stage in the body of a loop is the loop.
    """

    equation: int
    step: int
    stage: Stage


def stages(
    program: Program, rows: Sequence[Row], names: Sequence[str], operands: Sequence[str]
) -> list[Placed]:
    """Return the stages of a program in the order in which devices run them.

    Those of bodies of loops and branches are where the loop or branch runs, once. rows: of its
    report, with the names of the equations. operands: the names of the program's operands.
    """
    # Equal loops have the same decisions in their bodies: each visit takes the next row.
    numbers: dict[int, deque[int]] = {}
    for number, row in enumerate(rows):
        numbers.setdefault(id(row.made), deque()).append(number)
    return list(_of_program(program, numbers, names, operands))


def _of_program(
    program: Program,
    numbers: Mapping[int, deque[int]],
    names: Sequence[str],
    operands: Sequence[str],
) -> Iterator[Placed]:
    called = dict(enumerate(operands))  # the name of the value in each register
    single = [[pair] for pair in zip(program.owners, program.steps, strict=True)]
    own: dict[int, list[tuple[int, Step]]] = {}
    for n, some in enumerate(program.parts or single):
        for owner, step in some:
            own.setdefault(owner, []).append((n, step))
    for owner, made in enumerate(program.made):
        steps, waiting = own.get(owner, []), numbers.get(id(made))
        equation = waiting.popleft() if waiting else None
        name = "" if equation is None else names[equation]
        mine = _stages(made, [step for _, step in steps], called, name)
        if not steps and equation is not None:
            yield from (Placed(equation, -1, stage) for _, stage in mine)
        for k, (n, step) in enumerate(steps):
            for body in step.bodies:
                inside = program_in(body), numbers, names, body.roles
                yield from (each._replace(step=n) for each in _of_program(*inside))
            if equation is not None:
                yield from (Placed(equation, n, stage) for at, stage in mine if at == k)


def _stages(
    made: Made, steps: Sequence[Step], called: dict[int, str], name: str
) -> list[tuple[int, Stage]]:
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
            turns.append((k, Turn(at), of))
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
    return [(k, Stage(t.collective, 1 / counts[t.collective], of)) for k, t, of in turns]


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
