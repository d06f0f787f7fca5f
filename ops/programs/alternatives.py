"""`Alternatives`: the ways to do one row of a report, with what each takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gridlayout.ops.decisions.decision import Decision
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.row import Row, priced
from gridlayout.sharding.collectives import Collective, in_words


@dataclass(frozen=True)
class Way:
    """One way: what it is called, seconds of one device, what is sent, and whether it is done."""

    note: str
    seconds: float
    collectives: tuple[Collective, ...]
    is_chosen: bool = False

    def __str__(self) -> str:
        sent = "; ".join(in_words(self.collectives)) or "nothing is sent"
        mark = "*" if self.is_chosen else " "
        return f"{mark} {self.seconds * 1e6:10,.1f} us  {self.note}: {sent}"


@dataclass(frozen=True)
class Alternatives:
    """The ways to do a primitive on the same operands, the one that is done first. `print` it."""

    primitive: str
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.primitive}, once, on one device:", *map(str, self.ways)])


def alternatives(row: Row, decision: Decision, program: Program) -> Alternatives:
    """The ways that a rule offers for a decision of a program, after that one.

    What follows a product, to bring its result where it is wanted, is in those that rules offer; in
    one that was chosen for the program as a whole, the next rows have it.
    """
    machine = program.machine

    def way(found: Decision, is_chosen: bool = False) -> Way:
        sent = row.collectives if is_chosen else found.collectives
        seconds = sum(priced(found, sent, machine).values()) / (row.times if is_chosen else 1)
        return Way(found.note or found.how, seconds, sent, is_chosen)

    ways = [way(decision, True)]
    seen = {(decision.note, decision.collectives)}
    op = replace(decision.op, requested=None) if decision.op.requested else decision.op
    for found in program.offers(op, decision.operands) if program.offers else ():
        if (found.note, found.collectives) not in seen:
            seen.add((found.note, found.collectives))
            ways.append(way(found))
    return Alternatives(decision.op.name, tuple(ways))
