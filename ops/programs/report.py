"""`Report`: what `gl.on_grid` does with a function, one row per primitive."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gridlayout.costs import Costs, cores_of, mean_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import number, size
from gridlayout.ops.decisions.decision import FALLBACK, VIEW
from gridlayout.ops.decisions.specs import layout_of
from gridlayout.ops.programs.alternatives import Alternatives, alternatives, axes_in_words
from gridlayout.ops.programs.graph import Graph, graph_of
from gridlayout.ops.programs.memory import Memory
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.row import Row, named_rows
from gridlayout.ops.programs.stages import stages
from gridlayout.ops.programs.timing import Times, scheduled
from gridlayout.public import public
from gridlayout.sharding.collectives import COPY, in_words
from gridlayout.svg import Drawing
from gridlayout.tables.cells import tensors
from gridlayout.tables.table import Column, Table


@public
@dataclass(frozen=True)
class Report:
    """The rows of a function's primitives in order. `print` shows them as a table.

    peak_bytes: the most that one device holds at a time, operands and results included.
    core_peak_bytes: the most that one core holds of arrays in layouts. arguments: their layouts,
    None for arguments without one. graph: the primitives and the values between them, which `draw`
    shows. program: the reported program. memory: what a device holds over time.
    """

    rows: tuple[Row, ...]
    peak_bytes: int = 0
    core_peak_bytes: int = 0
    arguments: tuple[Layout | None, ...] = ()
    graph: Graph = field(default_factory=lambda: Graph((), (), (), ()), repr=False, compare=False)
    program: Any = field(default=None, repr=False, compare=False)
    memory: Memory = field(default=Memory(0, 0, (), ()), repr=False, compare=False)

    @classmethod
    def of(cls, program: Program) -> Report:
        """Return the report of a program: its decisions, and those of programs inside of it."""
        graph, memory = graph_of(program), Memory.of(program)
        arguments = tuple(map(layout_of, program.operands))
        peaks = memory.peak_bytes, memory.core_peak_bytes
        return cls(tuple(graph.rows), *peaks, arguments, graph, program, memory)

    def named(self, operands: tuple[str, ...], results: tuple[str, ...], title: str) -> Report:
        """Return the same report with the user's names of the function, arguments and results."""
        graph = replace(self.graph, names=operands, result_names=results, title=title)
        return replace(self, graph=graph)

    @property
    def fallbacks(self) -> tuple[Row, ...]:
        """The primitives without a rule."""
        return tuple(row for row in self.rows if row.how == FALLBACK)

    @property
    def bytes_moved(self) -> int:
        """The bytes received over all devices, in all rows."""
        return sum(row.bytes_moved for row in self.rows)

    @property
    def masks(self) -> int:
        """The number of selects that set padding, in all rows."""
        return sum(row.masks for row in self.rows)

    @property
    def flops(self) -> int:
        """The number of operations on logical elements, in all rows."""
        return sum(row.flops for row in self.rows)

    @property
    def costs(self) -> Costs:
        """The costs of the layouts, in the measures of `gl.compare`, with each device as a core.

        Every primitive except views counts as reading its operands and writing its results once.
        It does not count which primitives are only relayouts.
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

    @property
    def seconds(self) -> float:
        """The seconds of one device on the device grid's machine, with the rows in sequence."""
        return sum(row.seconds for row in self.rows)

    @cached_property
    def overlapped(self) -> float:
        """The seconds where a device does at the same time what the machine's `overlap` states.

        As `Simulation.overlapped`: equal to `seconds` for a machine that states no overlap.

        >>> import gridlayout as gl, jax
        >>> x, w = (gl.GridLayout((n, 1024), "bfloat16", grid=(16, 1)) for n in (8192, 1024))
        >>> mesh = jax.sharding.AbstractMesh((4, 4), ("x", "y"))
        >>> device = gl.DeviceGrid(mesh, machine=gl.Machine("v5e 4x4"))
        >>> report = gl.on_grid(lambda x, a, b: (x @ a) @ b, device).report(x, w, w)
        >>> print(f"{report.seconds * 1e6:.1f} us, {report.overlapped * 1e6:.1f} us")
        60.6 us, 55.1 us
        """
        machine = self.program.device.machine
        if not machine.overlap:
            return self.seconds
        times, names = Times(self.rows, machine), named_rows(self.rows)
        placed = stages(self.program, self.rows, names, self.graph.names, times)
        runs = scheduled([(each.equation, each.stage) for each in placed], times)
        return min(max((run.end for run in runs), default=0.0), self.seconds)

    def why(self, row: Row | int) -> Alternatives:
        """Return the ways to run a row, each with its cost on the machine.

        row: a row of this report, or its number; `LayoutError` for anything else. The ways are
        those that the primitive's rule offers for the same operands.

        >>> from gridlayout import DeviceGrid, GridLayout, on_grid
        >>> x = GridLayout((64, 64), grid=(2, 2))
        >>> report = on_grid(lambda x: x @ x, DeviceGrid((1,))).report(x)
        >>> report.why(0).ways[0].is_chosen
        True
        """
        if isinstance(row, int) and not isinstance(row, bool) and row in range(len(self.rows)):
            row = self.rows[row]
        if not isinstance(row, Row) or row not in self.rows or row.decision is None:
            raise LayoutError(
                f"{row!r} is no row of this report: give one of report.rows, or a number from 0 to "
                f"{len(self.rows) - 1}"
            )
        return alternatives(row, row.decision, self.program)

    def by_padding(self) -> Report:
        """Return the report sorted by the padding of results on a device, largest first.

        >>> from gridlayout import DeviceGrid, GridLayout, on_grid
        >>> x = GridLayout((40, 40), grid=(2, 2), tile=(32, 32))
        >>> report = on_grid(lambda x: x.sum(0) + x, DeviceGrid((1,))).report(x)
        >>> first, *others = report.by_padding().rows
        >>> first.primitive, first.held_bytes, first.padding_bytes
        ('add', 16384, 9984)
        """
        rows = sorted(self.rows, key=lambda row: row.padding_bytes, reverse=True)
        return replace(self, rows=tuple(rows))

    def draw(self, path: str | Path | None = None) -> Drawing:
        """Return a drawing of the program: its steps, the values between them, and their moves.

        Each value has its shape, element type, grid and share of padding. A line shows what devices
        receive to relay the value out for its consumer. Loops, branches, called functions and
        repeated steps are drawn separately, and fold in notebooks. path: a file to write: an .svg,
        or a page if it ends in .html.
        """
        # Imported here because few programs draw.
        from gridlayout.ops.programs.picture import draw_graph

        words = (
            f"{number(len(self.rows), 'primitive')}, {number(len(self.fallbacks), 'fallback')}; "
            f"{self.bytes_moved:,} B received over all devices; {number(self.masks, 'mask')}; "
            f"at most {size(self.peak_bytes)} on a device"
        )
        drawing = draw_graph(self.graph, words)
        if path is not None:
            drawing.save(path)
        return drawing

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()

    @property
    def table(self) -> Table:
        """The rows as a table, whose `records` are its values: bytes and seconds.

        >>> from gridlayout import DeviceGrid, GridLayout, on_grid
        >>> x = GridLayout((40, 40), grid=(2, 2))
        >>> report = on_grid(lambda x: x.T, DeviceGrid((1,))).report(x)
        >>> [(each["primitive"], each["bytes moved"]) for each in report.table.records]
        [('transpose', 0)]
        """
        return Table(
            _COLUMNS,
            [
                (
                    row.primitive,
                    f"{row.how}: {row.note}" if row.note else row.how,
                    *map(tensors, (row.inputs, row.outputs)),
                    *(row.held_bytes, row.padding_bytes, row.bytes_moved, row.masks),
                    *(row.seconds, row.limit, "; ".join(in_words(row.collectives))),
                )
                for row in self.rows
            ],
        )

    def __str__(self) -> str:
        parts = axes_in_words((c for row in self.rows for c in row.collectives), self.program)
        return "\n".join((str(self.table), self._totals, *parts))

    def __repr__(self) -> str:
        return f"Report({self._totals})"

    @property
    def _totals(self) -> str:
        both = [duration(self.seconds), duration(self.overlapped)]
        notes = [] if both[0] == both[1] else [f"{both[1]} with overlap"]
        if self.program.against is not None:
            notes.append(f"instead of {duration(self.program.against)}")
        return (
            f"{len(self.rows)} primitives, {len(self.fallbacks)} fallbacks, "
            f"{self.bytes_moved:,} bytes moved, {self.masks} masks, {both[0]}"
            + (f" ({', '.join(notes)})" if notes else "")
        )


def duration(seconds: float) -> str:
    """Return seconds as text.

    >>> duration(1.5e-6), duration(0.0123)
    ('1.5 us', '12,300.0 us')
    """
    return f"{seconds * 1e6:,.1f} us"


_COLUMNS = (
    *map(Column, ("primitive", "how", "in", "out")),
    *(Column(name, "{:,}".format, True) for name in ("bytes held", "padding", "bytes moved")),
    Column("masks", is_number=True),
    Column("time", lambda seconds: duration(seconds) if seconds else "-", True),
    *map(Column, ("limit", "each device receives")),
)
