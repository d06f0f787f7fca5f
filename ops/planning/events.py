"""`Event`: what a device does at a time, and traces that Perfetto and chrome://tracing read."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice, product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from gridlayout.ops.planning.equation import Equation
from gridlayout.ops.programs.timing import Run, Stage, Times, scheduled
from gridlayout.sharding.collectives import COPY
from gridlayout.sharding.machines.chips import COMPUTE, MEMORY
from gridlayout.sharding.machines.machine import Machine

_BETWEEN = "between cores"  # moves whose collectives are not known
_LINES = 6  # the most transfers that are listed below a timeline
_MOST = 64  # the most devices of a trace


class Event(NamedTuple):
    """A span of time in seconds on one device.

    equation: its name. kind: `compute`, or of the collective, such as `all-gather`. track: where it
    runs: `compute`; `memory`, if that limits it and works beside computing; or `links` and mesh
    axes. of: the name of what is sent. nbytes: what the device receives.
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
    def shorter(self) -> tuple[str, ...]:
        """Shorter names, the longest first: what is sent with its bytes, without them, and how."""
        if self.kind == COMPUTE:
            return ()
        return f"{self.words}, {self.nbytes:,} B", self.words, self.kind

    @property
    def words(self) -> str:
        """What is sent, and how, such as `all-gather of x`; for computation, the equation."""
        if self.kind == COMPUTE:
            return self.equation
        return f"{self.kind} of {self.of}" if self.of else self.kind


def sent_in_words(found: Sequence[Event]) -> list[str]:
    """Return what a device receives, the largest amounts first: at most six of them.

    >>> sent_in_words([Event(0, 1e-6, "dot_general:0", "all-gather", "links y", "x", 5184)])
    ['A device receives:', 'links y: all-gather of x, 5,184 B, for dot_general:0']
    """
    sums: Counter[tuple[str, str, str]] = Counter()
    for each in found:
        if each.nbytes:
            sums[each.track, each.words, each.equation] += each.nbytes
    if not sums:
        return []
    lines = ["A device receives:"] + [
        f"{track}: {words}, {nbytes:,} B, for {equation}"
        for (track, words, equation), nbytes in sums.most_common(_LINES)
    ]
    more = len(sums) - _LINES
    return [*lines, f"... and {more:,} more transfers."] if more > 0 else lines


def runs_of(
    equations: Sequence[Equation], staged: Sequence[tuple[int, Stage]], machine: Machine
) -> list[tuple[int, Stage, Run]]:
    """Return when one device does what: an equation's number, a stage of it, and its time.

    staged: pairs of an equation's number and a stage of it, in order; empty for a compiled program,
    in which each equation gets its operands and then computes, one after another.
    """
    some = staged or [*_unordered(equations)]
    runs = scheduled(some, Times(equations, machine))
    return [(n, stage, run) for (n, stage), run in zip(some, runs, strict=True)]


def events(
    equations: Sequence[Equation], runs: Sequence[tuple[int, Stage, Run]], machine: Machine
) -> list[Event]:
    """Return what one device does, in order of time; what takes no time is left out.

    runs: as `runs_of` returns them.
    """
    found = [_event(equations[n], stage, machine, run) for n, stage, run in runs if run.seconds]
    return sorted(found, key=lambda each: each.start)


def held_times(steps: Sequence[int], runs: Sequence[tuple[int, Run]]) -> tuple[float, ...]:
    """Return when each sample of the bytes held is taken: while the step that makes it runs.

    steps: of the samples, in the order in which XLA makes buffers. On CPUs that is not the order of
    the steps; the times are in ascending order all the same. The samples of one step are spread
    over its time. runs: pairs of a step and when a stage of it runs.
    """
    starts: dict[int, float] = {}
    for step, run in runs:
        starts.setdefault(step, run.start)
    last = max((run.end for _, run in runs), default=0.0)
    known = sorted(starts)
    found = []
    for step in steps:
        later = bisect_left(known, step)
        found.append(starts[known[later]] if later < len(known) else last)
    ends = sorted({*starts.values(), last})
    spread = []
    for start, some in groupby(sorted(found)):
        count, later = len([*some]), bisect_right(ends, start)
        end = ends[later] if later < len(ends) else start
        spread += [start + (end - start) * k / count for k in range(count)]
    return tuple(spread)


def _event(each: Equation, stage: Stage, machine: Machine, run: Run) -> Event:
    if stage.collective is None:
        resource = MEMORY if each.memory > each.units else COMPUTE
        return Event(*run, each.name, COMPUTE, machine.lanes[resource])
    if not each.collectives:
        return Event(*run, each.name, _BETWEEN, _BETWEEN, stage.of)
    sent = each.collectives[stage.collective]
    nbytes = round(sent.received_bytes * sent.count * stage.share)
    if sent.kind == COPY:
        track = f"{' to '.join(sent.axes)}"
    else:
        track = f"links {'*'.join(dict.fromkeys(map(machine.mesh_axis_of, sent.axes)))}"
    kind = sent.kind.replace("_", "-")
    return Event(*run, each.name, kind, track, stage.of, nbytes)


def _unordered(equations: Sequence[Equation]) -> Iterator[tuple[int, Stage]]:
    for n, each in enumerate(equations):
        for k in range(len(each.collectives) or bool(each.movement)):
            yield n, Stage(k, 1.0, after=None)
        yield n, Stage(None, 1.0, after=None)


# -- traces ----------------------------------------------------------------------------------------


def write_trace(
    path: str | Path,
    title: str,
    mesh: Mapping[str, int],
    events: Sequence[Event],
    held: Sequence[tuple[float, int]],
) -> None:
    """Write what devices do: a process per device, with a thread to compute and one per link axis.

    mesh: the size of each axis. events: of one device; all do the same. held: seconds, and the
    bytes that a device holds from then on. The file has microseconds, as the format requires.
    """
    tracks = list(dict.fromkeys((COMPUTE, *(each.track for each in events))))
    written: list[dict[str, Any]] = []
    for device, place in enumerate(islice(product(*map(range, mesh.values())), _MOST)):
        at = ", ".join(f"{axis}={k}" for axis, k in zip(mesh, place, strict=True))
        written.append(_named("process_name", device, 0, f"device {device} ({at})"))
        for thread, name in enumerate(tracks):
            written.append(_named("thread_name", device, thread, name))
        written += [_span(device, tracks.index(each.track), each) for each in events]
        for seconds, nbytes in held:
            counter = {"name": "bytes held", "ph": "C", "pid": device, "ts": seconds * 1e6}
            written.append(counter | {"args": {"bytes": nbytes}})
    count = prod(mesh.values())
    record = {
        "traceEvents": written,
        "displayTimeUnit": "ns",
        "otherData": {"program": title, "devices": count, "devices written": min(count, _MOST)},
    }
    Path(path).write_text(json.dumps(record) + "\n", encoding="utf-8")


def _named(what: str, device: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": device, "tid": thread, "args": {"name": name}}


def _span(device: int, thread: int, each: Event) -> dict[str, Any]:
    args: dict[str, Any] = {"equation": each.equation}
    if each.kind != COMPUTE:
        args |= {"collective": each.kind, "bytes received": each.nbytes}
        args |= {"of": each.of} if each.of else {}
    place = {"pid": device, "tid": thread, "ts": each.start * 1e6, "dur": each.seconds * 1e6}
    return {"name": each.name, "ph": "X", **place, "args": args}
