"""Draws the logical tensor, coloured by the core, the tile or the offset of each element.

The last two dims are rows and columns; there is one panel per index of the dims before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Ints, Shape
from gridlayout.draw.cells import MIXED, NOTHING, PADDING, Cell
from gridlayout.draw.colourings import (
    Colouring,
    Field,
    colouring,
    fill,
    find_coloured,
    legend,
    outer_block,
    tile_colouring,
)
from gridlayout.draw.notes import FIRSTS, NUMBERS, caveats, members_in_words
from gridlayout.draw.panels import Box, Panel, dim_axis, figure
from gridlayout.draw.points import Points, as_label, cell_label, from_logical, hover, tuple_text
from gridlayout.layouts.memory import number
from gridlayout.palette import HUES
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

BUDGET = 1024  # most cells of one drawing
MAX_PANELS = 12
_PROBED = 4096  # most elements along a dim that are examined for its strides and tiles
_NAMED = 3  # most keys that the hover text of a cell names


def draw_logical(layout: Layout, *, color: Any = None, label: str = "offset") -> Drawing:
    """Draw where each element is stored: colours show the core, numbers the offset in its buffer.

    color: "core", "tile", "offset", the number of a logical dim, or a function that takes one index
    array per dim and returns a whole number >= 0 per index. By default "core"; in a layout of one
    core "tile", or "offset" if there are too many tiles. label: the text in cells of one element:
    "offset" or "byte" in the core's buffer, "index" (logical), "number" (row-major), "core" or
    "none".
    """
    if color is None:
        tiles = prod(layout.local_shape) // layout.blocks[0] if layout.blocks else BUDGET
        color = "core" if layout.num_cores > 1 else "tile" if tiles < BUDGET // 4 else "offset"
    return drawn(layout, color, label, layout.shape[-2:], [], MAX_PANELS)


def draw_tiles(layout: Layout, *, label: str = "offset") -> Drawing:
    """Draw the first tiles and the blocks in them (faces, second-level tiles, lanes).

    Raises `LayoutError` for a layout without tiles.
    """
    outer, *deeper = layout.blocks or (outer_block(layout),)
    window = _first_tiles(layout)
    # Blocks that are too small to be drawn as cells are left out.
    cells = prod(window) / BUDGET * 2
    inner = next((n for n in reversed(deeper) if n >= cells or prod(window) <= BUDGET), outer)
    notes = [f"Each colour is a tile: {outer:,} elements, one after another in memory."]
    if inner != outer:
        notes = [f"{notes[0][:-1]}; red borders are around {inner:,} of them."]
    lined = (outer, inner) if inner != outer else (outer,)
    panels = _panels_of_tiles(layout, window)
    return drawn(
        *(layout, "tile", label, window, notes, panels), tile_colouring(layout, inner), lined
    )


def draw_strides(layout: Layout, *, label: str = "offset") -> Drawing:
    """Draw the offsets in the core's buffer, from light to dark, with the stride of each dim.

    If cells of the full tensor would contain several parts of a buffer, only the first core is
    drawn.
    """
    whole, notes = layout.shape[-2:], strides_in_words(layout)
    tables = _tables(layout, whole, MAX_PANELS)
    fields = [table.field() for table in tables]
    found, _ = find_coloured(fields, colouring(layout, "offset"), BUDGET // max(len(tables), 1))
    mixed = layout.num_cores > 1 and any(cell.key == MIXED for cells in found for cell in cells)
    cores = colouring(layout, "core")
    window = tuple(cuts[0] for cuts in _cuts(layout, cores)) if mixed else whole
    return drawn(layout, "offset", label, window, notes, MAX_PANELS)


def strides_in_words(layout: Layout) -> list[str]:
    """Return how one step along each logical dim changes offset and core, one line per dim.

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
            parts.append(_steps_text(layout, steps.tolist()))
        if not same.all():
            parts.append(f"another core at {int((~same).sum())} of {len(same)} steps")
        lines.append(f"d{d}: {', '.join(parts) or 'no step'}")
    return lines


def _steps_text(layout: Layout, steps: list[int]) -> str:
    """Return distances in elements, and in bytes if the elements have addresses of their own."""
    more = ["..."] * (len(steps) > 3)
    text = " or ".join([*(f"{n:+,}" for n in steps[:3]), *more])
    text += " element" if text in ("+1", "-1") else " elements"
    if layout.tile_format is not None:
        return text
    bits = [abs(n) * layout.stored_bits for n in steps[:3]]
    sizes = [f"{b // 8:,}" if b % 8 == 0 else f"{b / 8:,}" for b in bits]
    return f"{text} ({' or '.join([*sizes, *more])} B)"


def _line(layout: Layout, d: int) -> Points:
    """Return the first elements along a dim, at index 0 of the others."""
    along = np.arange(min(layout.shape[d], _PROBED))
    return from_logical(layout, [along if k == d else along[:1] for k in range(layout.ndim)])


def _cuts(layout: Layout, colours: Colouring) -> list[list[int]]:
    """Return, for each of the last two dims, the indices at which the key changes, and the end."""
    found = []
    for d in range(max(layout.ndim - 2, 0), layout.ndim):
        changes: list[int] = []
        if 0 not in layout.shape:
            changes = (np.flatnonzero(np.diff(colours.key(_line(layout, d)))) + 1).tolist()
        found.append([*changes, layout.shape[d]])
    return found


def _first_tiles(layout: Layout) -> Shape:
    """Return extents of the last two dims that contain the first tiles, at most one per colour."""
    *rows, columns = _cuts(layout, colouring(layout, "tile")) or [[]]
    if not rows:
        return tuple(columns[:HUES][-1:])
    pairs = [(a, b) for a in range(1, HUES + 1) for b in range(1, HUES // a + 1)]
    fits = [(a, b) for a, b in pairs if a <= len(rows[0]) and b <= len(columns)]
    # As many tiles as possible; among equal numbers, the arrangement closest to a square.
    a, b = max(fits, key=lambda ab: (ab[0] * ab[1], -abs(ab[0] - ab[1])))
    return rows[0][a - 1], columns[b - 1]


def _panels_of_tiles(layout: Layout, window: Shape) -> int:
    """Return the number of panels whose tiles have different colours; at least one."""
    tiles = colouring(layout, "tile")
    shown: set[int] = set()
    for count, table in enumerate(_tables(layout, window, MAX_PANELS)):
        field = table.field()
        cells, _ = find_coloured([field], tiles, BUDGET)
        shown |= {key for cell in cells[0] for key in cell.found}
        if len(shown) > HUES:
            return max(count, 1)
    return MAX_PANELS


def _tables(layout: Layout, window: Shape, most: int) -> list[Table]:
    """Return the tables of the first `most` panels, by the dims before the last two."""
    leading = layout.shape[:-2]
    numbers = range(min(prod(leading), most))
    return [Table(layout, tuple(map(int, np.unravel_index(k, leading))), window) for k in numbers]


def drawn(
    layout: Layout,
    color: Any,
    kind: str,
    window: Shape,
    notes: list[str],
    most: int,
    colours: Colouring | None = None,
    lined: tuple[int, ...] | None = None,
    title: str = "",
) -> Drawing:
    """Draw the first `window` positions of the last two dims, in at most `most` panels."""
    as_label(kind)
    colours = colouring(layout, color) if colours is None else colours
    tables = _tables(layout, window, most)
    fields = [table.field() for table in tables]
    found, colours = find_coloured(fields, colours, BUDGET // max(len(tables), 1))
    panels = [
        logical_panel(table, cells, colours, kind, lined)
        for table, cells in zip(tables, found, strict=True)
    ]
    count = prod(layout.shape[:-2])
    if count > len(tables):
        left = count - len(tables)
        notes = [*notes, f"... and {left:,} more panels of the dims before the last two."]
    if window != layout.shape[-2:]:
        sides = zip(window, layout.shape[-2:], strict=True)
        text = " x ".join(f"{shown:,} of {n:,}" for shown, n in sides)
        notes = [*notes, f"Shown: the first {text} positions."]
    by = color if isinstance(color, str) else "a function" if callable(color) else f"d{color}"
    return figure(
        title or f"{tensor_text(layout)}: logical tensor by {by}",
        short(repr(layout)),
        in_words(layout),
        panels,
        legend(colours, drawn_keys(found)),
        [*notes, *caveats(panels)],
        NUMBERS[kind],
        FIRSTS[kind] if lined else members_in_words(colours),
    )


def drawn_keys(fields: Sequence[Sequence[Cell]]) -> set[int]:
    """Return the keys that the cells of several panels are drawn with."""
    every = [cell for cells in fields for cell in cells]
    padding = {PADDING} if any(cell.share for cell in every) else set()
    return {cell.key for cell in every} | padding


@dataclass(frozen=True)
class Table:
    """The elements of a layout at one index of the leading dims, limited to `window`."""

    layout: Layout
    leading: Shape
    window: Shape

    def points(self, r: Ints, c: Ints) -> Points:
        """Return the elements at rows and columns."""
        index = [*map(np.array, self.leading), r, c]
        skipped = len(index) - self.layout.ndim
        return from_logical(self.layout, index[skipped:], np.broadcast_shapes(r.shape, c.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns; 0 for a tensor without elements."""
        rows, columns = (1,) * (2 - len(self.window)) + self.window
        return (rows, columns) if 0 not in self.layout.shape else (0, 0)

    def field(self) -> Field:
        """Return the table, to find its cells."""
        return Field(*self.shape, lambda colours, r, c: colours.key(self.points(r, c)))


def logical_panel(
    table: Table,
    cells: Sequence[Cell],
    colours: Colouring,
    kind: str,
    lined: tuple[int, ...] | None = None,
) -> Panel:
    """Return the panel of a table's cells. lined: sizes of blocks between which lines are drawn."""
    layout = table.layout
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
        boxes.append(box_of(cell, colours, text, over))
    names = ["", "", *(f"d{d}" for d in range(layout.ndim))][-2:]
    caption = f"[{', '.join(map(str, table.leading))}, :, :]" if table.leading else ""
    down, across = map(dim_axis, names)
    block = None if lined is None else _blocks_of(boxes, first, lined)
    # Blocks, and the members of a group that has one colour, have edges.
    if block is None and (colours.coarse is not None or any(cell.size > 1 for cell in cells)):
        keys = {(cell.rows, cell.columns): (cell.key,) for cell in cells}
        return Panel(caption, down, across, tuple(boxes), lambda b: keys[b.rows, b.columns])
    return Panel(caption, down, across, tuple(boxes), block)


def box_of(cell: Cell, colours: Colouring, text: str, over: str) -> Box:
    """Return the box of a cell. text: its label. over: its hover text."""
    sampled = cell.sampled < cell.size
    return Box(cell.rows, cell.columns, fill(colours, cell.key), text, over, sampled, cell.share)


_SIDES = (attrgetter("rows"), attrgetter("columns"))


def _blocks_of(
    boxes: list[Box], first: Points, lined: tuple[int, ...]
) -> Callable[[Box], tuple[int, ...]]:
    """Return a function that maps a box to its block numbers, the outer one first."""
    total = prod(first.layout.local_shape)
    numbers = [(first.core * -(-total // n) + first.offset // n).tolist() for n in lined]
    known = {box: found for box, *found in zip(boxes, *numbers, strict=True)}
    return lambda box: tuple(known[box])


def cell_texts(cell: Cell, colours: Colouring, where: str) -> tuple[str, str]:
    """Return label and hover text of a cell of many positions."""
    named = cell.found if len(cell.found) <= _NAMED else (*cell.found[: _NAMED - 1], cell.found[-1])
    padding = f"about {cell.share:.0%} padding" if cell.share else "padding"
    special = {PADDING: padding, NOTHING: "past the end"}
    names = [special.get(k) or colours.name(k) for k in named]
    if len(cell.found) > _NAMED:
        names[-1:] = ["...", f"{names[-1]} ({len(cell.found)} in all)"]
    text = f"{where}, {cell.size:,} positions -> {', '.join(names)}"
    return "" if cell.key < 0 else colours.label(cell.key), text


def _box_text(leading: Shape, cell: Cell, rank: int) -> str:
    sides = [f"{low}:{high}" for low, high in (cell.rows, cell.columns)]
    return f"[{', '.join([*map(str, leading), *sides][-rank:])}]"


# -- texts that all views share --------------------------------------------------------------------


def tensor_text(layout: Layout) -> str:
    """Return the tensor in short: `float32[53, 63]`."""
    return f"{layout.dtype.name}[{', '.join(map(str, layout.shape))}]"


def short(text: str, most: int = 150) -> str:
    """Return `text`, shortened to `most` letters with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def in_words(layout: Layout) -> str:
    """Return the alt text: the tensor, its cores, bytes and padding.

    >>> from gridlayout import GridLayout
    >>> print(in_words(GridLayout((53, 63), grid=(3, 2), tile=(32, 32))))
    A float32 tensor of shape (53, 63), 3,339 elements, on 3 x 2 cores of 4,096 B each; each core
    holds (1, 1, 32, 32) elements, 45.7% of all positions are padding.
    >>> print(in_words(GridLayout((8,), "int8", grid=(1,), collapse=[])))
    An int8 tensor of shape (8,), 8 elements, on 1 core of 8 B each; each core holds (8,) elements,
    0.0% of all positions are padding.
    """
    grid = " x ".join(map(str, layout.core_shape))
    cores = (
        f"{grid} core{'' if grid == '1' else 's'} of {layout.bytes_per_core:,} B each"
        if grid
        else "one buffer"
    )
    article = "An" if layout.dtype.name.startswith("int") else "A"
    text = (
        f"{article} {layout.dtype.name} tensor of shape {tuple_text(layout.shape)}, "
        f"{number(layout.size, 'element')}, on {cores}; each core holds "
        f"{tuple_text(layout.local_shape)} elements"
    )
    total = prod(layout.physical_shape)
    if layout.is_scatter or not total:
        return f"{text}."
    return f"{text}, {1 - layout.size / total:.1%} of all positions are padding."
