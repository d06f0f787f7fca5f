"""`scheduled`: when a device does each part of a program. Nothing else computes schedules.

A part, or stage, starts when what it needs is there and its resources are free. Each lane of
resources (`Computing.lanes`) does its stages in the order of the program, so a stage never starts
later because another one takes less time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from gridlayout.sharding.collectives import COPY, Collective
from gridlayout.sharding.machines.chips import COMPUTE, LINKS, MEMORY
from gridlayout.sharding.machines.machine import Machine


class Timed(Protocol):
    """The times of an equation: a row of a report, or an equation of a simulation."""

    @property
    def compute(self) -> float:
        """Seconds of computation."""

    @property
    def movement(self) -> float:
        """Seconds of movement."""

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the devices send each other."""

    @property
    def units(self) -> float:
        """The seconds of `compute` in which the units that compute are busy."""

    @property
    def memory(self) -> float:
        """The seconds of `compute` in which the memory is busy."""


class Stage(NamedTuple):
    """A part of an equation's time on a device.

    collective: its number among the equation's collectives; None for computation. share: of the
    time of that collective, or of the equation's computation. of: the name of what is sent, empty
    if it has none. after: the numbers of the stages whose results it needs. None: it starts when
    all stages before it have ended, and none after it starts earlier.
    """

    collective: int | None
    share: float
    of: str = ""
    after: tuple[int, ...] | None = ()


class Run(NamedTuple):
    """When a stage runs, in seconds."""

    start: float
    seconds: float

    @property
    def end(self) -> float:
        """The seconds at its end."""
        return self.start + self.seconds


class Times:
    """The times of the stages of equations on a machine."""

    def __init__(self, equations: Sequence[Timed], machine: Machine) -> None:
        self.equations, self.machine, self.lanes = equations, machine, machine.lanes
        self._sent: dict[int, list[float]] = {}  # the seconds of each collective, by equation

    def seconds(self, equation: int, stage: Stage) -> float:
        """Return the seconds of a stage of an equation."""
        each = self.equations[equation]
        if stage.collective is None:
            return each.compute * stage.share
        if not each.collectives:
            return each.movement * stage.share
        if equation not in self._sent:
            sent = [self.machine.once(c) * c.count for c in each.collectives]
            total = sum(sent)
            share = each.movement / total if total else 0.0
            self._sent[equation] = [n * share for n in sent]
        return self._sent[equation][stage.collective] * stage.share

    def resource(self, equation: int, stage: Stage) -> str:
        """Return the resource that is busy during all of a stage."""
        each = self.equations[equation]
        if stage.collective is None:
            return MEMORY if each.memory > each.units else COMPUTE
        is_copy = bool(each.collectives) and each.collectives[stage.collective].kind == COPY
        return MEMORY if is_copy else LINKS

    def busy(self, equation: int, stage: Stage) -> dict[str, float]:
        """Return the seconds for which a stage keeps each lane busy, from its start."""
        each, seconds = self.equations[equation], self.seconds(equation, stage)
        found: dict[str, float] = {}
        if stage.collective is None:
            both = ((COMPUTE, each.units), (MEMORY, each.memory))
            found = {self.lanes[name]: min(n * stage.share, seconds) for name, n in both if n}
        return found | {self.lanes[self.resource(equation, stage)]: seconds}


def scheduled(staged: Iterable[tuple[int, Stage]], times: Times) -> list[Run]:
    """Return when each stage runs, in linear time; staged: pairs of its equation and the stage."""
    free = dict.fromkeys(times.lanes.values(), 0.0)
    last, runs = 0.0, list[Run]()
    for equation, stage in staged:
        if stage.after is None:
            start = last
            free = dict.fromkeys(free, last)
        else:
            start = max((runs[k].end for k in stage.after), default=0.0)
        seconds = times.seconds(equation, stage)
        if seconds:  # what takes no time waits for no resource
            busy = times.busy(equation, stage)
            start = max(start, *(free[lane] for lane in busy))
            free |= {lane: start + n for lane, n in busy.items()}
        runs.append(Run(start, seconds))
        last = max(last, runs[-1].end)
    return runs
