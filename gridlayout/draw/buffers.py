"""Draws the memory of each core: its shard in tiles, its buffer, its lanes.

A `Fold` maps rows and columns of the drawing to elements of the buffer; the rest is common to these
views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.affine.search import components
from gridlayout.arguments import Ints, Shape, as_items, as_shape
from gridlayout.draw.cells import NOTHING, Cell
from gridlayout.draw.colourings import Colouring, Field, colouring, find_coloured, legend
from gridlayout.draw.logical import (
    BUDGET,
    box_of,
    cell_texts,
    drawn_keys,
    in_words,
    short,
    tensor_text,
)
from gridlayout.draw.notes import NUMBERS, caveats
from gridlayout.draw.panels import Axis, Box, Panel, figure
from gridlayout.draw.points import Points, as_label, at, cell_label, core_text, from_physical, hover
from gridlayout.errors import LayoutError
from gridlayout.layouts.strides import row_major
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

MAX_PANELS = 8
_COUNTED = 1 << 20  # most positions and elements for which each core's padding is counted
_WIDTH = 32  # elements per row, unless the layout suggests another width
_LONGEST = 4096  # most elements per row of a large buffer
_LANES = 64  # most lanes; a larger block is a tile


@dataclass(frozen=True, eq=False)
class Fold:
    """A buffer as a table. offset: maps row and column to the element's offset, or -1 if none."""

    rows: int
    columns: int
    offset: Callable[[Ints, Ints], Ints]
    row_axis: Axis
    column_axis: Axis


def draw_physical(
    layout: Layout, *, color: Any = "core", label: str = "index", cores: Any = None
) -> Drawing:
    """Draw the shard of each core: tiles side by side, padding hatched.

    color, label: as in the view "logical"; by default, labels are logical indices. cores: the
    coordinates of the cores to draw; by default the first few and the last.
    """
    local = layout.local_shape
    if len(local) < 2:
        return draw_memory(layout, color=color, label=label, cores=cores)
    fold = in_space(local, *sides_of(layout))
    return _drawn(layout, fold, "physical memory", color, label, cores, [])


def sides_of(layout: Layout) -> tuple[list[int], list[int]]:
    """Return the dims of a core's buffer, of which there are two or more, as rows and as columns.

    Columns are the minor dim, and the dims that depend on the same logical dims.

    >>> from gridlayout import GridLayout
    >>> sides_of(GridLayout((64, 96), tile=(32, 32)))
    ([0, 2], [1, 3])
    """
    rank = len(layout.local_shape)
    groups = [dims for _, dims in components(layout.index_map.used_dims())]
    last = next(dims for dims in groups if len(layout.physical_shape) - 1 in dims)
    across = [k for k in range(rank) if k + layout.core_rank in last]
    down = [k for k in range(rank) if k not in across]
    return (down, across) if down else (list(range(rank - 1)), [rank - 1])


def in_space(local: Shape, down: list[int], across: list[int]) -> Fold:
    """Return the fold of a buffer with some dims as rows and the others as columns."""
    strides = row_major(local)

    def part(dims: list[int], at: Ints) -> Ints:
        total = np.zeros_like(at)
        for k in reversed(dims):
            at, i = np.divmod(at, max(local[k], 1))
            total = total + i * strides[k]
        return total

    def steps(dims: list[int]) -> tuple[int, ...]:
        sizes = [local[k] for k in reversed(dims)]
        return tuple(sorted({n for n in accumulate(sizes, mul) if n > 1}, reverse=True)[1:])

    return Fold(
        prod(local[k] for k in down),
        prod(local[k] for k in across),
        lambda r, c: part(down, r) + part(across, c),
        Axis("rows", steps=steps(down)),
        Axis("columns", steps=steps(across)),
    )


def draw_memory(
    layout: Layout,
    *,
    color: Any = "core",
    label: str = "index",
    width: int | None = None,
    rows: int | None = None,
    cores: Any = None,
) -> Drawing:
    """Draw the buffer of each core in address order, `width` elements per row; padding hatched.

    rows: the number of rows to draw; by default all. color, label, cores: as in the view
    "physical".
    """
    fold, left, width = in_memory(layout, width, rows)
    notes = [f"... and {left:,} more rows of {width} elements."] if left else []
    return _drawn(layout, fold, "memory, in order of addresses", color, label, cores, notes)


def in_memory(
    layout: Layout, width: int | None = None, rows: int | None = None
) -> tuple[Fold, int, int]:
    """Return the fold of a buffer by address, the number of rows left out, and elements per row."""
    total = prod(layout.local_shape)
    width = _default_width(layout.local_shape) if width is None else at_least_one(width, "width")
    all_rows = -(-total // width)
    shown = all_rows if rows is None else min(at_least_one(rows, "rows"), all_rows)

    def offset(r: Ints, c: Ints) -> Ints:
        found = r * width + c
        return np.where(found < total, found, -1)

    steps = tuple(n for n in layout.blocks if n < width and width % n == 0)
    fold = Fold(
        shown,
        min(width, total),
        offset,
        Axis("offset", lambda r: f"{min(r * width, total):,}"),
        Axis("+ elements", steps=steps),
    )
    return fold, all_rows - shown, width


def draw_lanes(
    layout: Layout, *, color: Any = "core", label: str = "index", cores: Any = None
) -> Drawing:
    """Draw the elements that share a word as lanes, one above another; words from left to right.

    Layouts with lanes are 4N, 2N, 2IC, NCHW4, and the last tile of T(8,128)(2,1). Raises
    `LayoutError` for a layout without lanes.
    """
    lanes, total = _lanes(layout), prod(layout.local_shape)
    wide = max(min(-(-total // lanes), _WIDTH), 1)
    bands = -(-total // (lanes * wide))

    def offset(r: Ints, c: Ints) -> Ints:
        band, lane = np.divmod(r, lanes)
        at = (band * wide + c) * lanes + lane
        return np.where(at < total, at, -1)

    def tick(r: int) -> str:
        band, lane = divmod(r, lanes)
        return f"{band * wide:,} · {lane}" if band < bands else f"{-(-total // lanes):,} · 0"

    fold = Fold(
        bands * lanes,
        wide,
        offset,
        Axis("word · lane", tick, (lanes,)) if bands > 1 else Axis("lane", steps=(lanes,)),
        Axis("+ words" if bands > 1 else "word"),
    )
    return _drawn(layout, fold, f"{lanes} lanes", color, label, cores, [])


def _lanes(layout: Layout) -> int:
    """Return the elements per word: those of the innermost block, if they are along one dim."""
    lanes = layout.blocks[-1] if layout.blocks else 0
    if 1 < lanes <= _LANES:
        if 0 in layout.shape:
            return lanes
        word = in_cores(layout, np.array(0), np.arange(lanes))
        if sum(len(np.unique(i)) > 1 for i in word.logical) == 1:
            return lanes
    raise LayoutError(
        f"{layout!r} has no lanes: view 'lanes' needs an innermost block of 2 to {_LANES} elements "
        "along one dim; use view='memory'"
    )


# -- shared ----------------------------------------------------------------------------------------


def in_cores(layout: Layout, core: Ints, offset: Ints) -> Points:
    """Return the elements at offsets in the buffers of cores, given by row-major number."""
    shape = np.broadcast_shapes(core.shape, offset.shape)
    inside = np.unravel_index(offset, layout.local_shape) if layout.local_shape else ()
    cores = np.unravel_index(core, layout.core_shape) if layout.core_rank else ()
    return from_physical(layout, [np.asarray(i) for i in (*cores, *inside)], shape)


def _drawn(
    layout: Layout, fold: Fold, what: str, color: Any, kind: str, cores: Any, notes: list[str]
) -> Drawing:
    as_label(kind)
    if isinstance(color, str) and color == "core" and layout.num_cores <= 1 and layout.blocks:
        color = "tile"
    numbers = _chosen(layout, cores)
    fields = [field_of(layout, fold, core) for core in numbers]
    found, colours = find_coloured(fields, colouring(layout, color), BUDGET // len(numbers))
    # Cells past the end of a buffer are not drawn.
    found = [[cell for cell in cells if cell.key != NOTHING] for cells in found]
    counts = None
    if max(prod(layout.physical_shape), layout.size) <= _COUNTED:
        counts = layout.padding_per_core().reshape(-1)
    panels = []
    for core, cells in zip(numbers, found, strict=True):
        caption = f"core {core_text(layout, core)}" if layout.core_rank else "buffer"
        if counts is not None:
            whole = (
                "padding" if layout.core_rank else f"of {prod(layout.local_shape):,} are padding"
            )
            caption += f": {int(counts[core]):,} {whole}"
        boxes = boxes_of(layout, fold, core, cells, colours, kind)
        panels.append(Panel(caption, fold.row_axis, fold.column_axis, boxes))
    notes = list(notes)
    if len(numbers) < layout.num_cores:
        notes.append(f"{len(numbers)} of {layout.num_cores:,} cores are shown.")
    if layout.core_rank and counts is not None:
        notes.append(f"Each core holds {prod(layout.local_shape):,} positions.")
    return figure(
        f"{tensor_text(layout)}: {what}",
        short(repr(layout)),
        in_words(layout),
        panels,
        legend(colours, drawn_keys(found)),
        [*notes, *caveats(panels)],
        NUMBERS[kind],
        "In a block: the logical indices of its first and last element.",
    )


def field_of(layout: Layout, fold: Fold, core: int) -> Field:
    """Return the table of a core's buffer, to find its cells."""

    def key(colours: Colouring, r: Ints, c: Ints) -> Ints:
        offset = fold.offset(r, c)
        held = in_cores(layout, np.array(core), offset.clip(0))
        return np.where(offset < 0, NOTHING, colours.key(held))

    return Field(fold.rows, fold.columns, key)


def boxes_of(
    layout: Layout, fold: Fold, core: int, cells: list[Cell], colours: Colouring, kind: str
) -> tuple[Box, ...]:
    """Return the boxes of a core's cells, with labels of a kind."""

    def points(k: int) -> Points:
        r, c = (np.array([spans[k] - k for spans in side], int) for side in (rows, columns))
        return in_cores(layout, np.array(core), fold.offset(r, c).clip(0))

    rows, columns = [cell.rows for cell in cells], [cell.columns for cell in cells]
    first, last = points(0), points(1)
    boxes = []
    for k, cell in enumerate(cells):
        if cell.size == 1:
            text, over = cell_label(first, (k,), kind), hover(first, (k,))
        else:
            (r0, r1), (c0, c1) = cell.rows, cell.columns
            held = " ... ".join(str(at(p, (k,))[0]) for p in (first, last))
            where = f"rows {r0:,}:{r1:,}, columns {c0:,}:{c1:,}"
            full = cell.key >= 0 and not cell.share and NOTHING not in cell.found
            where += f", logical {held}" if full else ""
            _, over = cell_texts(cell, colours, where)
            text = held if full and kind != "none" else ""
        boxes.append(box_of(cell, colours, text, over))
    return tuple(boxes)


def _chosen(layout: Layout, cores: Any) -> list[int]:
    """Return the row-major numbers of the cores to draw."""
    total = layout.num_cores
    if cores is None:
        return [*range(min(total, MAX_PANELS - 1)), *([total - 1] if total >= MAX_PANELS else [])]
    chosen = []
    for core in as_items(cores, "cores", "core coordinates"):
        index = as_shape(core, "core")
        if len(index) != layout.core_rank or any(
            i >= n for i, n in zip(index, layout.core_shape, strict=True)
        ):
            raise LayoutError(f"core {index} is outside the grid {layout.core_shape}")
        chosen.append(int(np.ravel_multi_index(index, layout.core_shape)) if index else 0)
    if not 1 <= len(chosen) <= 64:
        raise LayoutError(f"cores has {len(chosen)} cores; it must have 1 to 64")
    return chosen


def at_least_one(value: Any, what: str) -> int:
    """Return an option that must be a whole number >= 1, else raise `LayoutError`."""
    (number,) = as_shape((value,), what)
    if number < 1:
        raise LayoutError(f"{what} {number} must be >= 1")
    return number


def _default_width(local: Shape) -> int:
    """Return the elements per row: the trailing dims that fit, at most twice `_WIDTH`.

    A buffer that is too large for one cell per element may have longer rows.
    """
    width = 1
    for n in reversed(local):
        if width * n > 2 * _WIDTH:
            longer = prod(local) > BUDGET and len(local) > 1 and width * n <= _LONGEST
            return width if width > 4 else width * n if longer else _WIDTH
        width *= max(n, 1)
    return width if len(local) > 1 or width <= _WIDTH else _WIDTH
