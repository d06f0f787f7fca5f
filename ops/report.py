"""`Report`: what `gl.on_grid` does with a function, one row a primitive."""

from __future__ import annotations

from dataclasses import dataclass

from gridlayout.layout import Layout

# How a primitive ran: its rule; as a view, with no data touched; or unpacked, run and packed again.
RULE, VIEW, FALLBACK = "rule", "view", "fallback"


@dataclass(frozen=True)
class Cost:
    """Bytes received over all devices, floating-point operations in all, peak bytes on one core.

    >>> Cost(bytes_moved=64).flops
    0
    """

    bytes_moved: int = 0
    flops: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True)
class Row:
    """One primitive: how it ran, the layouts in and out, and what it takes.

    `bytes_moved` is received bytes, added up over all devices; `masks` counts selects that set
    padding; `flops` counts operations on logical elements; `peak_bytes` are a core's operands,
    results and what else the rule holds on its device. A layout is None for a value that no core
    holds: a scalar, a constant. `note` names the algorithm, where a rule has several.
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


@dataclass(frozen=True)
class Report:
    """The rows of a function's primitives in order. `print` shows them as a table."""

    rows: tuple[Row, ...]

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
    def peak_bytes(self) -> int:
        """The most bytes that one primitive has on a core."""
        return max((row.peak_bytes for row in self.rows), default=0)

    def __str__(self) -> str:
        head = ("primitive", "how", "in", "out", "bytes moved", "masks")
        lines = [head]
        for row in self.rows:
            ins, outs = (_short(layouts) for layouts in (row.inputs, row.outputs))
            moved, masks = f"{row.bytes_moved:,}", str(row.masks)
            how = f"{row.how}: {row.note}" if row.note else row.how
            lines.append((row.primitive, how, ins, outs, moved, masks))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = "\n".join(
            "  ".join(
                cell.rjust(w) if k > 3 else cell.ljust(w)
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
