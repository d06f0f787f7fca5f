"""`Simulation`: the cost of a program on a machine, equation by equation, before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path

from gridlayout.draw.held import Held, held_over_time
from gridlayout.draw.timeline import Span, Track, timeline
from gridlayout.ops.planning.equation import Equation, equation_of
from gridlayout.ops.planning.events import (
    Event,
    events,
    held_times,
    runs_of,
    sent_in_words,
    write_trace,
)
from gridlayout.ops.planning.spaces import Spaces
from gridlayout.ops.programs.memory import Memory
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.report import Report
from gridlayout.ops.programs.row import named_rows
from gridlayout.ops.programs.stages import stages
from gridlayout.ops.programs.timing import Run, Stage, Times, scheduled
from gridlayout.public import public
from gridlayout.sharding.collectives import COPY, in_words
from gridlayout.sharding.machines.chips import COMPUTE
from gridlayout.sharding.machines.machine import Machine
from gridlayout.sharding.meshes.placement import parts_in_words
from gridlayout.svg import Drawing
from gridlayout.tables.table import Column, Table
from gridlayout.tables.words import duration, taken

_COLUMNS = (
    *map(Column, ("equation", "in", "out")),
    *(Column(name, taken, True) for name in ("compute", "movement")),
    *map(Column, ("limit", "how", "each device receives")),
)


@dataclass(frozen=True)
class LiveRange:
    """The live range of a value in a device's memory; on cores, in a core's L1.

    name: the argument, or the equation that makes the value; `split:0 result 1` for one of several
    results. nbytes: bytes of the device's part, in whole tiles. first, last: the first and the last
    step of `Simulation.held` at which it is live. address: of its first byte, from the start of the
    values' part of L1; None on devices without cores.
    """

    name: str
    nbytes: int
    first: int
    last: int
    address: int | None = None


@public
@dataclass(frozen=True)
class Simulation:
    """The cost of a program on each device of a machine; all devices do the same.

    title: of the function. machine: the source of the figures. equations: in order. held: pairs of
    an equation's name (or "") and the bytes that a device holds then, over time; for a core, the
    end of the used part of L1, including gaps between values. peak_bytes: the maximum of these.
    live_ranges: the live ranges of values, in order of their start; empty for a compiled program.
    capacity: bytes of a device, None where the machine states none. links: the bytes that a device
    receives along each axis of the mesh, in the mean of all devices, at the slowest links that they
    cross; `x between hosts` for the part of an axis x that is between hosts. dram: the numbers of
    values that cores read from the chip's DRAM. in_dram: like `held`, the bytes in the chip's DRAM;
    for a compiled program. staged: what a device does in order, as pairs of an equation's number
    and a stage of it; empty for a compiled program. held_at: the seconds of each pair of `held`,
    from the start; empty for a compiled program. held_in: the paths of their equations
    in the jaxpr, on devices without cores. paths: of `equations`, in the jaxpr; empty for a
    compiled program.

    `print` shows it as a table. Times are seconds, sizes bytes.
    """

    title: str
    machine: Machine
    mesh: dict[str, int]
    equations: tuple[Equation, ...]
    held: tuple[tuple[str, int], ...]
    peak_bytes: int
    links: dict[str, int] = field(default_factory=dict)
    dram: frozenset[int] = field(default_factory=frozenset, repr=False)
    in_dram: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    live_ranges: tuple[LiveRange, ...] = field(default=(), repr=False)
    staged: tuple[tuple[int, Stage], ...] = field(default=(), repr=False)
    held_at: tuple[float, ...] = field(default=(), repr=False)
    held_in: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)
    paths: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, report: Report, spaces: Spaces | None = None, trips: int = 1) -> Simulation:
        """Return the simulation of the program of a report on its device grid's machine.

        spaces: where its values are stored, if the machine's devices are cores. trips: the assumed
        trip count of loops of unknown length.
        """
        program, device = report.program, report.program.device
        names = named_rows(report.rows)
        streamed = {} if spaces is None else spaces.streamed
        equations = tuple(
            equation_of(name, row, streamed.get(row.made.path, 0.0), trips)
            for name, row in zip(names, report.rows, strict=True)
        )
        own = {id(row.made): name for row, name in zip(report.rows, names, strict=True)}
        times = Times(equations, device.machine)
        placed = stages(program, report.rows, names, report.graph.names, times)
        staged = tuple((each.equation, each.stage) for each in placed)
        if spaces is None:
            held, live_ranges = _as_xla_holds(program, report.memory, own, report.graph.names)
            paths = [program.made[each.decision].path for each in report.memory.over_time]
            steps = [each.step for each in report.memory.over_time] or [-1]
        else:
            rows = {row.made.path: own[id(row.made)] for row in report.rows}
            held, live_ranges = _in_l1(spaces, rows, report.graph.result_names)
            paths = []
            first = dict(reversed([(names[n], step) for n, step, _ in placed]))
            steps = [first.get(name, -1) for name, _ in held]
        links: Counter[str] = Counter()
        for each in (c for row in report.rows for c in row.collectives if c.kind != COPY):
            for along, received in device.machine.received_along(each).items():
                links[along] += received * each.count * each.receivers
        return cls(
            report.graph.title or "a function",
            device.machine,
            dict(zip(map(str, device.mesh.axis_names), device.shape, strict=True)),
            equations,
            tuple(held),
            report.peak_bytes if spaces is None else max((n for _, n in held), default=0),
            {along: total // device.size for along, total in sorted(links.items())},
            frozenset() if spaces is None else spaces.dram,
            live_ranges=tuple(live_ranges),
            staged=staged,
            held_at=held_times(
                steps, [*zip((each.step for each in placed), scheduled(staged, times), strict=True)]
            ),
            held_in=tuple(paths),
            paths=tuple(row.made.path for row in report.rows),
        )

    @property
    def time(self) -> float:
        """The seconds of one device, with the equations in sequence."""
        return sum(each.seconds for each in self.equations)

    @property
    def overlapped(self) -> float:
        """The seconds of one device where it does at the same time what `machine.overlap` states.

        An operation starts when its operands are there and its resource is free; each resource does
        its operations in the order of the program, and a loop or a branch runs alone. It is equal
        to `time` for a machine that states no overlap, and for a compiled program, whose
        dependencies are not known.

        The second matrix is gathered during the first product:

        >>> import gridlayout as gl
        >>> x, w = (gl.GridLayout((n, 1024), "bfloat16", grid=(16, 1)) for n in (8192, 1024))
        >>> found = gl.simulate(lambda x, a, b: (x @ a) @ b, x, w, w, machine="v5e 4x4")
        >>> print(f"{found.time * 1e6:.1f} us, {found.overlapped * 1e6:.1f} us")
        60.6 us, 55.1 us
        """
        end = max((run.end for _, _, run in self._runs), default=0.0)
        return min(end, self.time) if self.machine.overlap else self.time

    @cached_property
    def _runs(self) -> list[tuple[int, Stage, Run]]:
        """What one device does when."""
        return runs_of(self.equations, self.staged, self.machine)

    @property
    def received(self) -> int:
        """The bytes that a device receives along all links, in the mean of all devices."""
        return sum(self.links.values())

    @property
    def capacity(self) -> int | None:
        """The bytes of a device's memory, or of a core's L1; None where the machine states none."""
        if self.machine.has_cores:
            return self.machine.chip.room("l1")
        return self.machine.device_capacity

    @property
    def fits(self) -> bool:
        """Whether a device's memory is large enough; True where its capacity is not known."""
        return self.capacity is None or self.peak_bytes <= self.capacity

    @cached_property
    def peak_at(self) -> str:
        """The equation during which a device holds the most bytes."""
        return max(self.held, key=lambda each: each[1], default=("", 0))[0]

    def timeline(self) -> Drawing:
        """Return a drawing of what a device computes and sends, with one track per link axis.

        Spans are at the same time where the machine states that (`Machine.overlap`).
        """
        tracks: dict[str, list[Span]] = {COMPUTE: []}
        for each in self.events:
            span = Span(each.start, each.seconds, each.name, each.kind, each.shorter)
            tracks.setdefault(each.track, []).append(span)
        subtitle = f"one of {self._devices}"
        found = [Track(name, spans) for name, spans in tracks.items()]
        notes = sent_in_words(self.events)
        return timeline(f"{self.title}: {self.times}", subtitle, found, notes)

    def memory(self) -> Drawing:
        """Return a drawing of the bytes that a device holds, equation by equation.

        For a compiled program with all values in DRAM, of the bytes there.
        """
        in_dram = any(nbytes for _, nbytes in self.in_dram) and not self.peak_bytes
        steps = [Held(name, nbytes) for name, nbytes in (self.in_dram if in_dram else self.held)]
        dram = self.machine.chip.titled("dram")
        subtitle = f"{dram} of {self.machine.chip.name}" if in_dram else f"one of {self._devices}"
        capacity = None if in_dram else self.capacity
        return held_over_time(f"{self.title}: bytes held", subtitle, steps, capacity)

    def trace(self, path: str | Path) -> None:
        """Write a trace for Perfetto and chrome://tracing: a process per device, with its links.

        All devices do the same at the same time; at most the first 64 are written.
        """
        times = self.held_at
        if not times:
            runs = reversed(self._runs)
            starts = {self.equations[n].name: run.start for n, _, run in runs}
            times = tuple(starts.get(name, 0.0) for name, _ in self.held)
        held = list(zip(times, (nbytes for _, nbytes in self.held), strict=True))
        write_trace(path, self.title, self.mesh, self.events, held)

    @property
    def events(self) -> list[Event]:
        """What one device computes and sends, in order of time."""
        return events(self.equations, self._runs, self.machine)

    @property
    def times(self) -> str:
        """The time as text; and that with overlap, where it is less."""
        both = duration(self.time), duration(self.overlapped)
        return both[0] if both[0] == both[1] else f"{both[0]} ({both[1]} with overlap)"

    @property
    def _devices(self) -> str:
        """The number and kind of devices as text."""
        name = self.machine.chip.name
        return (
            f"{prod(self.mesh.values())} {name if self.machine.has_cores else f'devices of {name}'}"
        )

    @property
    def table(self) -> Table:
        """The equations as a table, whose `records` are its values: times are seconds.

        >>> import jax, gridlayout as gl
        >>> x = jax.ShapeDtypeStruct((64, 64), "float32")
        >>> found = gl.simulate(lambda x: x @ x, x, machine="v5e 4x4").table.records[0]
        >>> found["equation"], found["compute"] > 0
        ('dot_general:0', True)
        """
        return Table(
            _COLUMNS,
            [
                (
                    *(each.name, each.ins, each.outs, each.compute, each.movement),
                    *(each.limit, each.how, "; ".join(in_words(each.collectives))),
                )
                for each in self.equations
            ],
        )

    @property
    def lines(self) -> list[str]:
        """The table, and the totals."""
        at = f" (at {self.peak_at})" if self.peak_at else ""
        room = "" if self.capacity is None else f" of {self.capacity:,} B"
        verdict = "" if self.fits else ": it does not fit"
        bandwidth_text = self.machine.topology.bandwidth_text
        sent = ", ".join(f"{axis} {n:,} B{bandwidth_text(axis)}" for axis, n in self.links.items())
        axes = {axis for each in self.equations for c in each.collectives for axis in c.axes}
        return [
            *self.table.lines,
            f"time {self.times} on {self.machine.chip.name}, mesh "
            + " x ".join(f"{axis}={size}" for axis, size in self.mesh.items()),
            f"peak {self.peak_bytes:,} B{room} on a device{at}{verdict}",
            f"a device receives along links: {sent or 'nothing'}",
            *parts_in_words(axes, self.mesh),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis}={n}" for axis, n in self.mesh.items())
        return f"Simulation({self.title}, {axes}: {self.times})"


def _in_l1(
    spaces: Spaces, names: Mapping[tuple[int, ...], str], results: Sequence[str]
) -> tuple[list[tuple[str, int]], list[LiveRange]]:
    """Return what a core holds over time, and the live ranges of values.

    names: of equations, by their paths. results: their names.
    """
    held = [(names.get(path, ""), nbytes) for path, nbytes in spaces.held]
    live_ranges = []
    for each in spaces.placed:
        name, which = each.words, "" if each.result is None else f" result {each.result}"
        if each.path is not None:
            name = names[each.path] + which if each.path in names else name
        elif each.result is not None:
            name = results[each.result]
        first, last, nbytes = each.block
        live_range = LiveRange(name, nbytes, first, min(last, len(held) - 1), each.address)
        live_ranges.append(live_range)
    return held, live_ranges


def _as_xla_holds(
    program: Program, memory: Memory, names: Mapping[int, str], operands: Sequence[str]
) -> tuple[list[tuple[str, int]], list[LiveRange]]:
    """Return what a device holds over time, and its buffers; names: of rows, by decisions' ids."""

    def name(owner: int) -> str:
        return names.get(id(program.made[owner]), "")

    held = [(name(each.decision), each.nbytes) for each in memory.over_time]
    held = held or [("", memory.peak_bytes)]  # no buffer is allocated
    given = zip(operands, program.operands, strict=True)
    live_ranges = [LiveRange(words, spec.device_bytes, 0, len(held) - 1) for words, spec in given]
    live_ranges += [LiveRange(name(owner), *block) for owner, *block in memory.places]
    return held, [each for each in live_ranges if each.nbytes]
