"""`Report`: what `gl.on_grid` does with a function, one row a primitive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from gridlayout.draw.svg import Drawing
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import FALLBACK
from gridlayout.ops.programs.graph import Graph, graph_of
from gridlayout.ops.programs.memory import peak_bytes
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.row import Row


@dataclass(frozen=True)
class Report:
    """The rows of a function's primitives in order. `print` shows them as a table.

    peak_bytes: the most that one device holds at a time, operands and results included;
    core_peak_bytes: the most that one core holds of arrays in layouts; graph: the primitives with
    the values between them, which `draw` draws.
    """

    rows: tuple[Row, ...]
    peak_bytes: int = 0
    core_peak_bytes: int = 0
    graph: Graph = field(default_factory=lambda: Graph((), (), (), ()), repr=False, compare=False)

    @classmethod
    def of(cls, program: Program) -> Report:
        """The report of a program: its decisions, and those of the programs inside."""
        graph = graph_of(program)
        return cls(tuple(graph.rows), *peak_bytes(program), graph)

    def named(self, operands: tuple[str, ...], results: tuple[str, ...], title: str) -> Report:
        """The same with what users call the function, its arguments and its results."""
        graph = replace(self.graph, names=operands, result_names=results, title=title)
        return replace(self, graph=graph)

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

    def draw(self, path: str | Path | None = None) -> Drawing:
        """The program as a graph: its steps, the values between them, and what is moved on the way.

        Each value has its shape, element type, grid and share of padding; on a line stands what
        devices receive to bring it where it is read. Loops, branches, called functions and runs of
        the same steps are drawn apart, and fold in notebooks. path: a file to write it to: as a
        page where it ends in .html, else as SVG.
        """
        # Few programs draw.
        from gridlayout.ops.programs.picture import draw_report

        drawing = draw_report(self)
        if path is not None:
            drawing.save(path)
        return drawing

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()

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
