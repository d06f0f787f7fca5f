"""`TreeSummary`: the bytes that the arrays of a pytree take on their cores, one row per array."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.costs import fit_of
from gridlayout.dtypes import MLIR_NAMES
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, Fit, as_chip, number, size
from gridlayout.layouts.padding import bounded_share
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.array.grid_array import GridArray, check_no_stack
from gridlayout.ops.trees.leaves import Leaf, leaves_of
from gridlayout.public import public
from gridlayout.tables.cells import fits, grid, tensor
from gridlayout.tables.html import STYLE
from gridlayout.tables.table import WIDTH, Column, Table, aligned
from gridlayout.tables.words import plain

_COLUMNS = (
    *map(Column, ("path", "shape", "grid", "tile")),
    Column("per core", size, True),
    Column("padding", "{:.1%}".format, True),
    Column("fits"),  # shown only with a chip
)
_NARROWEST = 8  # columns: no cell is cut to less


@dataclass(frozen=True)
class SummaryRow:
    """One array: its path, its shape, its element type as MLIR names it, and its layout or None.

    data_bytes: of its logical elements alone. fit: whether this array alone fits the chip; None
    without a chip, and where the layout names no memory of a chip.
    """

    path: str
    shape: Shape
    dtype: str
    data_bytes: int
    layout: Layout | None = None
    fit: Fit | None = None

    @property
    def bytes_per_core(self) -> int | None:
        """Bytes of one core's buffer, padding included; None without a layout."""
        return None if self.layout is None else self.layout.bytes_per_core

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers; without a layout, of one copy of the array."""
        return self.data_bytes if self.layout is None else self.layout.nbytes

    @property
    def padding_share(self) -> float | None:
        """The share of physical elements that are padding, 0 to 1; None without a layout."""
        return None if self.layout is None else bounded_share(self.layout)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the table's columns."""
        path, x = plain(self.path) or "-", self.layout
        if x is None:
            return path, f"{self.dtype}[{','.join(map(str, self.shape))}]", *(None,) * 5
        tile = None if x.tile is None else dims_text(x.tile)
        sizes = (self.bytes_per_core, self.padding_share)
        return path, tensor(x), grid(x), tile, *sizes, fits(self.fit)


@dataclass(frozen=True)
class TreeSummary:
    """The arrays of a tree, one row each, and their totals. Made by `gl.summary`.

    `print` shows it as a table of at most 100 columns, notebooks as HTML. Totals cover the rows
    that have a layout.
    """

    rows: tuple[SummaryRow, ...]
    chip: Chip | None = None

    @cached_property
    def laid_out(self) -> tuple[SummaryRow, ...]:
        """The rows that have a layout."""
        return tuple(row for row in self.rows if row.layout is not None)

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements."""
        return sum(row.data_bytes for row in self.laid_out)

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return sum(row.nbytes for row in self.laid_out)

    @property
    def bytes_per_core(self) -> int:
        """The bytes that all of them together take on one core."""
        return sum(row.bytes_per_core or 0 for row in self.laid_out)

    @property
    def fits(self) -> tuple[Fit, ...]:
        """Whether all of them fit the chip together: one `gl.results.Fit` per memory space.

        Empty without a chip.
        """
        if self.chip is None:
            return ()
        core: Counter[str] = Counter()
        needed: Counter[str] = Counter()
        for fit in (row.fit for row in self.laid_out if row.fit is not None):
            core[fit.space] += fit.bytes_per_core
            needed[fit.space] += fit.needed
        return tuple(self.chip.fit(space, core[space], n) for space, n in needed.items())

    @property
    def totals(self) -> str:
        """The totals as text."""
        if not self.rows:
            return "no arrays"
        parts = []
        if self.laid_out:
            share = (self.nbytes - self.data_bytes) / self.nbytes if self.nbytes else 0.0
            parts.append(
                f"{number(len(self.laid_out), 'array')} on cores: "
                f"{size(self.data_bytes)} of data in {size(self.nbytes)}, {share:.1%} "
                f"padding, {size(self.bytes_per_core)} per core"
            )
        if self.chip is not None and self.fits:
            room = "; ".join(map(fits, self.fits))
            parts.append(f"all at once on {plain(self.chip.name)}: {room}")
        if whole := len(self.rows) - len(self.laid_out):
            held = sum(row.data_bytes for row in self.rows if row.layout is None)
            parts.append(f"{number(whole, 'array')} without a layout: {size(held)}")
        return "\n".join(parts)

    @property
    def table(self) -> Table:
        """The rows as a table, whose `records` are its values: bytes per core, padding as share."""
        count = len(_COLUMNS) - (self.chip is None)
        return Table(_COLUMNS[:count], [row.values[:count] for row in self.rows])

    def __str__(self) -> str:
        shown = _narrowed(self.table) if self.rows else []
        wrapped = [textwrap.fill(line, WIDTH) for line in self.totals.splitlines()]
        return "\n".join((*shown, *wrapped))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        totals = "<br>".join(map(escape, self.totals.splitlines()))
        shown = self.table.html if self.rows else ""
        return f'<div class="gl-dump"><style>{STYLE}</style>{shown}<p>{totals}</p></div>'


def _narrowed(table: Table) -> list[str]:
    """Return the lines of a table, with the widest columns of words cut until it fits a page."""
    cells, numbers = table.cells, table.numbers
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = [k for k in range(len(widths)) if k not in numbers]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widest = max(words, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return aligned([tuple(map(_cut, row, widths, range(len(row)))) for row in cells], numbers)


def _cut(text: str, width: int, column: int) -> str:
    """Return the text cut to the width; a path keeps its end, which tells it from others."""
    if len(text) <= width:
        return text
    return f"{text[: width - 1]}…" if column else f"…{text[1 - width :]}"


@public
def summary(tree: Any, chip: Chip | str | None = None) -> TreeSummary:
    """Return a table of the layouts, bytes and padding of the arrays of a pytree.

    tree: of `GridArray`s, with data or without (`gl.put` of `jax.ShapeDtypeStruct`s), or of
    layouts. Other arrays are listed too; leaves that are no arrays are not. chip: a `gl.Chip` or
    its name; the table then says whether each array fits its memory, and whether all of them do.
    `LayoutError` for an unknown chip.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put([[1, 2, 3]], GridLayout((1, 3), "int32", grid=(1, 2)), DeviceGrid((1,)))
    >>> print(summary({"dense": {"kernel": x}}))
    path          shape     grid  tile  per core  padding
    dense/kernel  i32[1,3]  1x2   -          8 B    25.0%
    1 array on cores: 12 B of data in 16 B, 25.0% padding, 8 B per core
    """
    found = None if chip is None else as_chip(chip)
    leaves = leaves_of(tree)[0]
    return TreeSummary(
        tuple(
            _row(leaf, found) for leaf in leaves if leaf.is_array or isinstance(leaf.value, Layout)
        ),
        found,
    )


def _row(leaf: Leaf, chip: Chip | None) -> SummaryRow:
    x = leaf.value
    if isinstance(x, GridArray):
        with leaf.named():
            check_no_stack(x)
    layout = x if isinstance(x, Layout) else x.layout if leaf.is_laid_out else None
    if layout is None:
        dtype = MLIR_NAMES.get(getattr(x.dtype, "name", ""), str(x.dtype))
        return SummaryRow(leaf.path, leaf.shape, dtype, dtypes.nbytes(leaf.shape, x.dtype))
    fit = None if chip is None else fit_of(layout, chip)
    dtype = MLIR_NAMES[layout.dtype.name]
    return SummaryRow(leaf.path, layout.shape, dtype, layout.data_bytes, layout, fit)
