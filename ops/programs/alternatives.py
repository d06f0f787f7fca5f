"""`Alternatives`: the ways to run one row of a report, with the cost of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gridlayout.ops.decisions.decision import Decision
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.row import Row, priced
from gridlayout.sharding.collectives import Collective, in_words
from gridlayout.sharding.meshes.placement import parts_in_words


@dataclass(frozen=True)
class Way:
    """One way: its name, the seconds of one device, its collectives, and whether it is chosen."""

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
    """The ways to run a primitive on the same operands, the chosen one first. `print` shows it."""

    primitive: str
    ways: tuple[Way, ...]
    parts: tuple[str, ...] = ()  # explanations of the names of parts of mesh axes

    def __str__(self) -> str:
        first = f"{self.primitive}, once, on one device:"
        return "\n".join([first, *map(str, self.ways), *self.parts])

    __repr__ = __str__


def axes_in_words(sent: Iterable[Collective], program: Program) -> list[str]:
    """Return explanations of the parts of mesh axes that these collectives are printed with."""
    return parts_in_words((axis for each in sent for axis in each.axes), program.device.sizes)


def alternatives(row: Row, decision: Decision, program: Program) -> Alternatives:
    """Return the decision's way, and after it the ways that its rule offers instead.

    The offered ways of a product include the relayout of its result. A way that was chosen for the
    program as a whole does not: that relayout is in the next rows.
    """
    machine = program.machine

    def way(found: Decision, is_chosen: bool = False) -> Way:
        sent = row.collectives if is_chosen else found.collectives
        taken = priced(found, sent, machine, row.made.traffic)
        seconds = sum(taken.values()) / (row.times if is_chosen else 1)
        return Way(found.note or found.how, seconds, sent, is_chosen)

    ways = [way(decision, True)]
    seen = {(decision.note, decision.collectives)}
    op = replace(decision.op, requested=None) if decision.op.requested else decision.op
    for found in program.offers(op, decision.operands) if program.offers else ():
        if (found.note, found.collectives) not in seen:
            seen.add((found.note, found.collectives))
            ways.append(way(found))
    parts = axes_in_words((c for each in ways for c in each.collectives), program)
    return Alternatives(decision.op.title, tuple(ways), tuple(parts))
