"""`TreeSummary`: the bytes that the arrays of a pytree take on their cores, one row per array."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from gridlayout import dtypes
from gridlayout.costs import fit_of
from gridlayout.dtypes import MLIR_NAMES
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, Fit, as_chip, number, size
from gridlayout.layouts.padding import bounded_share
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.array.grid_array import GridArray, check_no_stack
from gridlayout.ops.trees.leaves import Leaf, Shape, leaves_of
from gridlayout.tables.cells import fits, grid, tensor
from gridlayout.tables.html import STYLE, html_table
from gridlayout.tables.words import plain

_HEAD = ("path", "shape", "grid", "tile", "per core", "padding", "fits")
_WORDS = ("path", "shape", "grid", "tile", "fits")
_WIDTH = 100  # columns of the whole table
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
    def cells(self) -> tuple[str, ...]:
        """The row as text: path, shape, grid, tile, bytes per core, padding, fits."""
        path = plain(self.path) or "-"
        if self.layout is None:
            return path, f"{self.dtype}[{','.join(map(str, self.shape))}]", *("-",) * 5
        return (
            path,
            tensor(self.layout),
            grid(self.layout),
            "-" if self.layout.tile is None else dims_text(self.layout.tile),
            size(self.layout.bytes_per_core),
            f"{bounded_share(self.layout):.1%}",
            fits(self.fit),
        )


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
        """Whether all of them fit the chip together: one `gl.Fit` per memory space.

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
    def _columns(self) -> int:
        """The number of columns shown; the last one, `fits`, is shown only with a chip."""
        return len(_HEAD) - (self.chip is None)

    def __str__(self) -> str:
        wrapped = [textwrap.fill(line, _WIDTH) for line in self.totals.splitlines()]
        if not self.rows:
            return "\n".join(wrapped)
        lines = [cells[: self._columns] for cells in (_HEAD, *(row.cells for row in self.rows))]
        widths = _widths([max(map(len, column)) for column in zip(*lines, strict=True)])
        shown = ["  ".join(map(_cell, _HEAD, cells, widths)).rstrip() for cells in lines]
        return "\n".join((*shown, *wrapped))

    def _repr_html_(self) -> str:
        head = _HEAD[: self._columns]
        rows = [row.cells[: self._columns] for row in self.rows]
        data = [
            {"per core": row.bytes_per_core or 0, "padding": row.padding_share or 0.0}
            for row in self.rows
        ]
        totals = "<br>".join(map(escape, self.totals.splitlines()))
        shown = html_table(head, rows, data) if rows else ""
        return f'<div class="gl-dump"><style>{STYLE}</style>{shown}<p>{totals}</p></div>'


def _widths(natural: list[int]) -> list[int]:
    """Return the columns' widths: the widest text columns are narrowed until the table fits."""
    widths = list(natural)
    words = [k for k, name in enumerate(_HEAD[: len(widths)]) if name in _WORDS]
    while sum(widths) + 2 * (len(widths) - 1) > _WIDTH:
        widest = max(words, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _cell(name: str, text: str, width: int) -> str:
    """Return the text cut to the width; a path keeps its end, which tells it from others."""
    if len(text) > width:
        text = f"…{text[1 - width :]}" if name == "path" else f"{text[: width - 1]}…"
    return text.ljust(width) if name in _WORDS else text.rjust(width)


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
