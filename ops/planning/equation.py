"""`Equation`: the time of one equation of a simulated program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gridlayout.ops.decisions.decision import PER_TRIP
from gridlayout.ops.programs.row import Row
from gridlayout.sharding.collectives import Collective, in_words
from gridlayout.tables.cells import placed, tensors
from gridlayout.tables.words import duration


@dataclass(frozen=True)
class Equation:
    """One equation of a simulated program.

    name: its primitive and its number among the equations of that primitive, such as
    `dot_general:3`. ins, outs: the layouts of its operands and results in short form. compute,
    movement: seconds of one device, over all its runs; limit: what takes most of them. how: the
    algorithm. collectives: what the devices send each other. shape: of its first result; place:
    where that is stored, as text. units, memory: the seconds of `compute` in which the units that
    compute, and the memory, are busy; they matter where these work at the same time.
    """

    name: str
    ins: str
    outs: str
    compute: float
    movement: float
    limit: str = ""
    how: str = ""
    collectives: tuple[Collective, ...] = ()
    shape: tuple[int, ...] = ()
    place: str = ""
    units: float = 0.0
    memory: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds of computation and movement."""
        return self.compute + self.movement

    @property
    def words(self) -> str:
        """What it takes, and how it runs, as text."""
        texts = [f"{self.ins or '-'} to {self.outs or '-'}", self.how]
        if sent := in_words(self.collectives):
            texts.append(f"each device receives {'; '.join(sent)}")
        return f"{self.name} takes {duration(self.seconds)}: {'; '.join(filter(None, texts))}"


def equation_of(name: str, row: Row, streamed: float, trips: int) -> Equation:
    """Return a row as an equation; streamed: seconds of DRAM transfers during its computation."""
    if PER_TRIP in row.note.split(", "):
        sent = tuple(each.times(trips) for each in row.collectives)
        note = row.note.replace(PER_TRIP, f"{trips} trips")
        row = replace(row, collectives=sent, seconds=row.seconds * trips, note=note)
        row = replace(row, units=row.units * trips, memory=row.memory * trips)
        row = replace(row, movement=row.movement * trips)
    ins, outs = map(tensors, (row.inputs, row.outputs))
    compute, movement, limit = row.compute, row.movement, row.limit
    memory = max(min(row.memory, compute), streamed)
    if streamed > compute:
        compute, limit = streamed, "dram" if streamed > movement else limit
    first = row.outputs[0] if row.outputs else None
    where = ((), "") if first is None else (first.shape, placed(first))
    own = name, ins, outs, compute, movement, limit, row.note, row.collectives
    return Equation(*own, *where, min(row.units, compute), memory)
