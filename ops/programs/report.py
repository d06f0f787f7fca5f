"""`Report`: what `gl.on_grid` does with a function, one row a primitive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gridlayout.dump.costs import Costs, cores_of, mean_of
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import FALLBACK, VIEW, Decision, Step
from gridlayout.ops.decisions.specs import layout_of
from gridlayout.ops.programs.memory import peak_bytes
from gridlayout.ops.programs.program import Program
from gridlayout.sharding.collectives import COPY, Collective, total_bytes
from gridlayout.sharding.cost import Cost


@dataclass(frozen=True)
class Row:
    """One primitive: how it ran, the layouts in and out, and what it takes.

    `bytes_moved` is received bytes, added up over all devices; `masks` counts selects that set
    padding; `flops` counts operations on logical elements; `peak_bytes` are a core's operands,
    results and what else the rule holds on its device. A layout is None for a value that no core
    holds: a scalar, a constant. `note` names the algorithm, where a rule has several, or says what
    of a loop or a branch is counted. `collectives` are what the devices send each other, and
    `device_flops` one device's operations, on padding too. times: how often it runs, in a loop;
    bytes, masks and flops are of all of them.
    """

    primitive: str
    how: str
    inputs: tuple[Layout | None, ...]
    outputs: tuple[Layout | None, ...]
    bytes_moved: int = 0
    masks: int = 0
    flops: int = 0
    peak_bytes: int = 0
    note: str = ""
    collectives: tuple[Collective, ...] = ()
    device_flops: int = 0
    times: int = 1


@dataclass(frozen=True)
class Report:
    """The rows of a function's primitives in order. `print` shows them as a table.

    peak_bytes: the most that one device holds at a time, operands and results included;
    core_peak_bytes: the most that one core holds of arrays in layouts. arguments: their layouts,
    None of those that no core holds.
    """

    rows: tuple[Row, ...]
    peak_bytes: int = 0
    core_peak_bytes: int = 0
    arguments: tuple[Layout | None, ...] = ()

    @classmethod
    def of(cls, program: Program) -> Report:
        """The report of a program: its decisions, and those of the programs inside."""
        arguments = tuple(map(layout_of, program.operands))
        return cls(tuple(_rows(program, 1)), *peak_bytes(program), arguments)

    @property
    def fallbacks(self) -> tuple[Row, ...]:
        """The primitives that had no rule."""
        return tuple(row for row in self.rows if row.how == FALLBACK)

    @property
    def bytes_moved(self) -> int:
        """Bytes received over all devices, in all rows."""
        return sum(row.bytes_moved for row in self.rows)

    @property
    def masks(self) -> int:
        """Selects that set padding, in all rows."""
        return sum(row.masks for row in self.rows)

    @property
    def flops(self) -> int:
        """Operations on logical elements, in all rows."""
        return sum(row.flops for row in self.rows)

    @property
    def costs(self) -> Costs:
        """What the layouts cost, in the numbers that `gl.compare` compares, each device a core.

        As if each primitive but views read its operands and wrote its results once, whole; which of
        them are relayouts only is not told.
        """
        touched: Counter[str] = Counter()
        rows = [row for row in self.rows if row.how != VIEW]
        for row in rows:
            for held in (x.held for x in (*row.inputs, *row.outputs) if x is not None):
                touched[held.memory] += held.nbytes * row.times
        values = [(x, 1) for x in self.arguments if x is not None]
        results = [(x, row.times) for row in rows for x in row.outputs if x is not None]
        cores, known, count = mean_of((cores_of(x), times) for x, times in results)
        sent = sum(c.total_bytes for row in self.rows for c in row.collectives if c.kind != COPY)
        return Costs(
            ops=sum(row.times for row in rows),
            dram_bytes=touched["dram"],
            l1_bytes=touched["l1"],
            core_bytes=sent,
            values=sum(times for _, times in (*values, *results)),
            held_bytes=sum(x.held.nbytes * times for x, times in (*values, *results)),
            data_bytes=sum(x.data_bytes * times for x, times in (*values, *results)),
            l1_peak=self.core_peak_bytes,
            cores=cores,
            results_known=known,
            results=count,
        )

    def __str__(self) -> str:
        head = ("primitive", "how", "in", "out", "bytes moved", "masks", "each device receives")
        lines = [head]
        for row in self.rows:
            ins, outs = (_short(layouts) for layouts in (row.inputs, row.outputs))
            moved, masks = f"{row.bytes_moved:,}", str(row.masks)
            how = f"{row.how}: {row.note}" if row.note else row.how
            sent = "; ".join(each.words for each in row.collectives)
            lines.append((row.primitive, how, ins, outs, moved, masks, sent))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = "\n".join(
            "  ".join(
                cell.rjust(w) if k in (4, 5) else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return (
            f"{text}\n{len(self.rows)} primitives, {len(self.fallbacks)} fallbacks, "
            f"{self.bytes_moved:,} bytes moved, {self.masks} masks"
        )


def _short(layouts: tuple[Layout | None, ...]) -> str:
    return ", ".join("-" if layout is None else _one(layout) for layout in layouts)


def _one(layout: Layout) -> str:
    dims = ",".join(map(str, layout.shape))
    return f"{layout.dtype.name}[{dims}]@{'x'.join(map(str, layout.core_shape))}"


def _rows(program: Program, times: int, note: str = "") -> Iterator[Row]:
    run = program.steps_by_decision
    for number, decision in enumerate(program.made):
        steps = run.get(number, [])
        for body in (body for step in steps for body in step.bodies):
            yield from _rows(body.program, times * body.times, body.note)
        if not decision.bodies or any(step.collectives for step in steps):
            yield _row(decision, steps, times, note)


def _row(decision: Decision, steps: Sequence[Step], times: int, note: str) -> Row:
    own = tuple(c.times(times) for step in steps for c in step.collectives)
    before, after = (
        tuple(map(layout_of, specs)) for specs in (decision.operands, decision.results)
    )
    held = sum(spec.core_bytes for spec in (*decision.operands, *decision.results))
    peak = held + decision.workspace_bytes
    cost = decision.stated or Cost(total_bytes(own), decision.flops * times, peak)
    return Row(
        decision.op.name,
        decision.how,
        before,
        after,
        cost.bytes_moved,
        sum(step.masks for step in steps) * times,
        cost.flops,
        cost.peak_bytes,
        ", ".join(filter(None, (decision.note, note))),
        own,
        decision.device_flops * times,
        times,
    )
