"""`Event`: what a device does at a time, for timelines and traces of simulations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from gridlayout.ops.programs.stages import Placed, Stage
from gridlayout.sharding.collectives import COPY, Collective
from gridlayout.sharding.machines.machine import Machine

COMPUTE = "compute"
_BETWEEN = "between cores"  # moves whose collectives are not known


class Timed(Protocol):
    """An equation's times, as `Equation` of a simulation has them."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def compute(self) -> float:
        """Seconds of computation."""

    @property
    def movement(self) -> float:
        """Seconds of movement."""

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the devices send each other."""


class Event(NamedTuple):
    """A span of time in seconds on one device.

    equation: its name. kind: `compute`, or of the collective, such as `all-gather`. track: where it
    runs: `compute`, or `links` and mesh axes. of: the name of what is sent. nbytes: what the device
    receives.
    """

    start: float
    seconds: float
    equation: str
    kind: str
    track: str
    of: str = ""
    nbytes: int = 0

    @property
    def name(self) -> str:
        """The equation; and what is sent, and how.

        >>> Event(0, 1e-6, "dot_general:0", "all-gather", "links y", "x", 5184).name
        'dot_general:0: all-gather of x, 5,184 B'
        """
        if self.kind == COMPUTE:
            return self.equation
        return f"{self.equation}: {self.words}" + (f", {self.nbytes:,} B" if self.nbytes else "")

    @property
    def words(self) -> str:
        """What is sent, and how, such as `all-gather of x`; for computation, the equation."""
        if self.kind == COMPUTE:
            return self.equation
        return f"{self.kind} of {self.of}" if self.of else self.kind


def events(
    equations: Sequence[Timed], staged: Sequence[tuple[int, Stage]], machine: Machine
) -> list[Event]:
    """Return what one device does, one thing after another; what takes no time is left out.

    staged: pairs of an equation's number and a stage of it, in order; empty for a compiled program,
    in which each equation gets its operands and then computes.
    """
    at, found = 0.0, []
    for n, stage in staged or _unordered(equations):
        if seconds := stage_seconds(equations[n], stage, machine):
            found.append(_event(equations[n], stage, machine, at, seconds))
            at += seconds
    return found


def stage_seconds(each: Timed, stage: Stage, machine: Machine) -> float:
    """Return the seconds of a stage of an equation."""
    if stage.collective is None:
        return each.compute * stage.share
    if not each.collectives:
        return each.movement * stage.share
    sent = [machine.once(c) * c.count for c in each.collectives]
    total = sum(sent)
    return each.movement * sent[stage.collective] / total * stage.share if total else 0.0


def held_times(
    steps: Sequence[int],
    equations: Sequence[Timed],
    staged: Sequence[Placed],
    machine: Machine,
) -> tuple[float, ...]:
    """Return when each sample of the bytes held is taken: while the step that makes it runs.

    steps: of the samples, in the order in which XLA makes buffers. On CPUs that is not the order of
    the steps; the times are in ascending order all the same. The samples of one step are spread
    over its time. staged: the stages in order.
    """
    starts: dict[int, float] = {}
    at = 0.0
    for n, step, stage in staged:
        starts.setdefault(step, at)
        at += stage_seconds(equations[n], stage, machine)
    known = sorted(starts)
    found = []
    for step in steps:
        later = bisect_left(known, step)
        found.append(starts[known[later]] if later < len(known) else at)
    ends = sorted({*starts.values(), at})
    spread = []
    for start, some in groupby(sorted(found)):
        count, later = len([*some]), bisect_right(ends, start)
        end = ends[later] if later < len(ends) else start
        spread += [start + (end - start) * k / count for k in range(count)]
    return tuple(spread)


def _event(each: Timed, stage: Stage, machine: Machine, at: float, seconds: float) -> Event:
    if stage.collective is None:
        return Event(at, seconds, each.name, COMPUTE, COMPUTE)
    if not each.collectives:
        return Event(at, seconds, each.name, _BETWEEN, _BETWEEN, stage.of)
    sent = each.collectives[stage.collective]
    nbytes = round(sent.received_bytes * sent.count * stage.share)
    if sent.kind == COPY:
        track = f"{' to '.join(sent.axes)}"
    else:
        track = f"links {'*'.join(dict.fromkeys(map(machine.mesh_axis_of, sent.axes)))}"
    kind = sent.kind.replace("_", "-")
    return Event(at, seconds, each.name, kind, track, stage.of, nbytes)


def _unordered(equations: Sequence[Timed]) -> Iterator[tuple[int, Stage]]:
    for n, each in enumerate(equations):
        for k in range(len(each.collectives) or bool(each.movement)):
            yield n, Stage(k, 1.0)
        yield n, Stage(None, 1.0)
