"""The logical tensor, drawn: by the core, the tile or the offset that each element goes to.

The last two dims are rows and columns; each index of the dims before them is a panel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.draw.cells import MIXED, NOTHING, PADDING, Cell, find_cells
from gridlayout.draw.colourings import Colouring, colouring, fill, outer_block, tile_colouring
from gridlayout.draw.panels import Box, Panel, dim_axis, figure
from gridlayout.draw.points import (
    Ints,
    Points,
    as_label,
    cell_label,
    from_logical,
    hover,
    tuple_text,
)
from gridlayout.draw.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

BUDGET = 1024  # cells of one drawing
MAX_PANELS = 12
_PROBED = 4096  # elements along a dim that are looked at for its strides and tiles
_BY_SAMPLES = " samples"  # how what hovers over a cell that was not looked at whole ends
_NAMED = 3  # things that what hovers over a cell names
_TILES = 6  # tiles along an axis that the view of tiles shows


def draw_logical(layout: Layout, *, color: Any = None, label: str = "offset") -> Drawing:
    """Where each element goes: colours say the core, numbers the offset in the core's buffer.

    color: "core", "tile", "offset", a logical dim by its number, or a function that gives a number
    for each index: it takes an array a dim; by default the core, in a layout of one core the tile
    where there are not too many, else the offset. label: what cells of one element say: "offset"
    and "byte" inside the core's buffer, "index", "number" (the row-major one), "core" or "none".
    """
    if color is None:
        tiles = prod(layout.local_shape) // layout.blocks[0] if layout.blocks else BUDGET
        color = "core" if layout.num_cores > 1 else "tile" if tiles < BUDGET // 4 else "offset"
    return _drawn(layout, color, label, layout.shape[-2:], [])


def draw_tiles(layout: Layout, *, label: str = "offset") -> Drawing:
    """The tiles, and the blocks in them (faces, second-level tiles, lanes), of the first elements.

    `LayoutError` for a layout without tiles.
    """
    outer, *deeper = layout.blocks or (outer_block(layout),)
    window = _first_tiles(layout)
    # Blocks in tiles that are too small to be cells of their own are left out.
    cells = prod(window) / BUDGET * 2
    inner = next((n for n in reversed(deeper) if n >= cells or prod(window) <= BUDGET), outer)
    notes = [f"Each colour is a tile: {outer:,} elements, one after another in memory."]
    if inner != outer:
        notes = [f"{notes[0][:-1]}; red borders are around {inner:,} of them."]
    colours = tile_colouring(layout, inner)
    lined = (outer, inner) if inner != outer else (outer,)
    return _drawn(layout, "tile", label, window, notes, colours, lined)


def draw_strides(layout: Layout, *, label: str = "offset") -> Drawing:
    """Offsets in the core's buffer, from light to dark, and how far a step along each dim goes."""
    return _drawn(layout, "offset", label, layout.shape[-2:], strides_in_words(layout))


def strides_in_words(layout: Layout) -> list[str]:
    """What one step along each logical dim does to the offset and the core, a line a dim.

    >>> from gridlayout import parse
    >>> strides_in_words(parse("f32[4,6]{1,0:T(2,2)}"))
    ['d0: +2 or +10 elements (8 or 40 B)', 'd1: +1 or +3 elements (4 or 12 B)']
    """
    if 0 in layout.shape:
        return []
    lines = []
    for d in range(layout.ndim):
        line = _line(layout, d)
        same = np.diff(line.core) == 0
        steps = np.unique(np.diff(line.offset)[same])
        parts = []
        if len(steps):
            numbers = [f"{s:+,}" for s in steps.tolist()[:3]] + ["..."] * (len(steps) > 3)
            bits = [abs(s) * dtypes.bits(layout.dtype) / 8 for s in steps.tolist()[:3]]
            sizes = " or ".join(f"{b:g}" for b in bits)
            parts.append(f"{' or '.join(numbers)} elements ({sizes} B)")
        if not same.all():
            parts.append(f"another core at {int((~same).sum())} of {len(same)} steps")
        lines.append(f"d{d}: {', '.join(parts) or 'no step'}")
    return lines


def _line(layout: Layout, d: int) -> Points:
    """The first elements along a dim, at index 0 of the others."""
    along = np.arange(min(layout.shape[d], _PROBED))
    return from_logical(layout, [along if k == d else along[:1] for k in range(layout.ndim)])


def _first_tiles(layout: Layout) -> Shape:
    """Extents of the last two dims that hold the first few tiles."""
    colours = colouring(layout, "tile")
    window = []
    for d in range(max(layout.ndim - 2, 0), layout.ndim):
        if 0 in layout.shape:
            window.append(layout.shape[d])
            continue
        changes = np.flatnonzero(np.diff(colours.key(_line(layout, d)))) + 1
        stops = [*changes[:_TILES].tolist(), layout.shape[d]]
        window.append(stops[min(len(stops), _TILES) - 1])
    return tuple(window)


def _drawn(
    layout: Layout,
    color: Any,
    kind: str,
    window: Shape,
    notes: list[str],
    colours: Colouring | None = None,
    lined: tuple[int, ...] | None = None,
) -> Drawing:
    as_label(kind)
    colours = colouring(layout, color) if colours is None else colours
    count = prod(layout.shape[:-2])
    shown = min(count, MAX_PANELS)
    panels, seen = [], set()
    for k in range(shown):
        leading = tuple(map(int, np.unravel_index(k, layout.shape[:-2]))) if layout.ndim > 2 else ()
        table = Table(layout, leading, window)
        panel, keys = logical_panel(table, colours, kind, BUDGET // shown, lined)
        panels.append(panel)
        seen |= keys
    if count > shown:
        notes = [*notes, f"... and {count - shown:,} more panels of the dims before the last two."]
    if window != layout.shape[-2:]:
        sides = zip(window, layout.shape[-2:], strict=True)
        text = " x ".join(f"{shown:,} of {n:,}" for shown, n in sides)
        notes = [*notes, f"Shown: the first {text} positions."]
    by = color if isinstance(color, str) else "a function" if callable(color) else f"d{color}"
    return figure(
        f"{tensor_text(layout)}: logical tensor by {by}",
        short(repr(layout)),
        in_words(layout),
        panels,
        legend(colours, seen),
        [*notes, *caveats(panels)],
    )


@dataclass(frozen=True)
class Table:
    """The elements of a layout at one index of the leading dims, the first `window` of them."""

    layout: Layout
    leading: Shape
    window: Shape

    def points(self, r: Ints, c: Ints) -> Points:
        """The elements at rows and columns."""
        index = [*map(np.array, self.leading), r, c]
        skipped = len(index) - self.layout.ndim
        return from_logical(self.layout, index[skipped:], np.broadcast_shapes(r.shape, c.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = (1,) * (2 - len(self.window)) + self.window
        return rows, columns


def logical_panel(
    table: Table, colours: Colouring, kind: str, budget: int, lined: tuple[int, ...] | None = None
) -> tuple[Panel, set[int]]:
    """The panel of a table, and the keys that it shows; `lined`: blocks to draw lines between."""
    layout, (rows, columns) = table.layout, table.shape
    empty = 0 in layout.shape
    found = find_cells(rows, columns, lambda r, c: colours.key(table.points(r, c)), budget)
    cells = [] if empty else found
    first = table.points(*(np.array([side(c)[0] for c in cells], int) for side in _SIDES))
    boxes = []
    for k, cell in enumerate(cells):
        if cell.size == 1:
            text, over = cell_label(first, (k,), kind), hover(first, (k,))
        else:
            where = f"logical {_box_text(table.leading, cell, layout.ndim)}"
            text, over = cell_texts(cell, colours, where)
            if lined is not None and cell.key != MIXED:
                text = cell_label(first, (k,), kind)
        boxes.append(Box(cell.rows, cell.columns, fill(colours, cell.key), text, over))
    names = ["", "", *(f"d{d}" for d in range(layout.ndim))][-2:]
    caption = f"[{', '.join(map(str, table.leading))}, :, :]" if table.leading else ""
    down, across = map(dim_axis, names)
    block = None if lined is None else _blocks_of(boxes, first, lined)
    panel = Panel(caption, down, across, tuple(boxes), block)
    return panel, {key for cell in cells for key in cell.found}


_SIDES = (attrgetter("rows"), attrgetter("columns"))


def _blocks_of(
    boxes: list[Box], first: Points, lined: tuple[int, ...]
) -> Callable[[Box], tuple[int, ...]]:
    """The blocks at the first position of each box, the outer one first."""
    total = prod(first.layout.local_shape)
    numbers = [(first.core * -(-total // n) + first.offset // n).tolist() for n in lined]
    known = {box: found for box, *found in zip(boxes, *numbers, strict=True)}
    return lambda box: tuple(known[box])


def caveats(panels: Sequence[Panel]) -> list[str]:
    """Notes on cells of several things, and on cells that were told from samples, if there are."""
    boxes = [box for panel in panels for box in panel.boxes]
    notes = []
    if any(box.fill == "mix" for box in boxes):
        notes.append("Striped cells hold several; hover to see which.")
    if any(box.hover.endswith(_BY_SAMPLES) for box in boxes):
        notes.append("Cells of many positions are told from samples; hover to see how many.")
    return notes


def cell_texts(cell: Cell, colours: Colouring, where: str) -> tuple[str, str]:
    """Label and hover of a cell of many positions."""
    named = cell.found if len(cell.found) <= _NAMED else (*cell.found[: _NAMED - 1], cell.found[-1])
    special = {PADDING: "padding", NOTHING: "past the end"}
    names = [special.get(k) or colours.name(k) for k in named]
    if len(cell.found) > _NAMED:
        names[-1:] = ["...", f"{names[-1]} ({len(cell.found)} in all)"]
    looked = "" if cell.sampled >= cell.size else f", by {cell.sampled}{_BY_SAMPLES}"
    text = f"{where}, {cell.size:,} positions -> {', '.join(names)}{looked}"
    return "" if cell.key < 0 else colours.label(cell.key), text


def _box_text(leading: Shape, cell: Cell, rank: int) -> str:
    sides = [f"{low}:{high}" for low, high in (cell.rows, cell.columns)]
    return f"[{', '.join([*map(str, leading), *sides][-rank:])}]"


# -- words that all views share --------------------------------------------------------------------


def tensor_text(layout: Layout) -> str:
    """The tensor in short: `float32[53, 63]`."""
    return f"{layout.dtype.name}[{', '.join(map(str, layout.shape))}]"


def short(text: str, most: int = 150) -> str:
    """`text`, cut off with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def in_words(layout: Layout) -> str:
    """The alt text: what is laid out, on which cores, in how many bytes, with how much padding.

    >>> from gridlayout import GridLayout
    >>> print(in_words(GridLayout((53, 63), grid=(3, 2), tile=(32, 32))))
    A float32 tensor of shape (53, 63), 3,339 elements, on 3 x 2 cores of 4,096 B each; each core
    holds (1, 1, 32, 32) elements, 45.7% of all positions are padding.
    """
    grid = " x ".join(map(str, layout.core_shape))
    cores = f"{grid} cores of {layout.bytes_per_core:,} B each" if grid else "one buffer"
    text = (
        f"A {layout.dtype.name} tensor of shape {tuple_text(layout.shape)}, {layout.size:,} "
        f"elements, on {cores}; each core holds {tuple_text(layout.local_shape)} elements"
    )
    total = prod(layout.physical_shape)
    if layout.is_scatter or not total:
        return f"{text}."
    return f"{text}, {1 - layout.size / total:.1%} of all positions are padding."


def legend(colours: Colouring, keys: set[int]) -> Sequence[tuple[str, str]]:
    """Swatches of what a drawing shows, where that is few enough to name."""
    named = {(fill(colours, k), colours.name(k)): None for k in sorted(keys) if k >= 0}
    entries = list(named) if len(named) <= 12 else []
    return [*entries, ("pad", "padding")] if PADDING in keys else entries
