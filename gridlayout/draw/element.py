"""Draws the way of one element: logical index, collapsed index, core, tile, buffer, byte, device.

The numbers are those of `layout.locate`; each panel is one of another view, with a ring around the
element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Ints, Shape, as_index
from gridlayout.draw.buffers import Fold, boxes_of, field_of, in_memory, in_space, sides_of
from gridlayout.draw.cells import NOTHING, PADDING, Cell
from gridlayout.draw.colourings import Colouring, Field, colouring, find_coloured, legend
from gridlayout.draw.fold import CoreGrid, Devices, DeviceSlots
from gridlayout.draw.logical import BUDGET, Table, drawn_keys, logical_panel, short, tensor_text
from gridlayout.draw.notes import members_in_words
from gridlayout.draw.panels import Panel, figure
from gridlayout.draw.points import number, tuple_text
from gridlayout.errors import LayoutError
from gridlayout.layouts.strides import row_major
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.document.grid_layout import GridLayout
    from gridlayout.layouts.layout import Layout
    from gridlayout.layouts.location import Location

_LONGEST = 60  # letters of an index map's result in a note


def draw_element(
    layout: Layout, *, index: Sequence[int] | None = None, device: Devices | None = None
) -> Drawing:
    """Draw the way of one element, step by step, with a ring around it in each panel.

    The steps are its logical index, its collapsed index if dims are joined, its core, its position
    in the core's shard, in elements, its offset (elements) and byte in the core's buffer, and its
    device. The numbers are those of `layout.locate`, and below are the terms of the index map that
    give them ("Tensor Layout", tt-mlir). index: the logical index. device: the `gl.DeviceGrid` of
    the last step, which is left out by default. Raises `LayoutError` without an index, or if it is
    outside the shape.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    >>> print(draw_element(layout, index=(20, 40)).description)
    Logical index (20, 40), core (1, 1), tile (0, 0), in it (2, 8), offset 72, byte 288.
    """
    if index is None:
        raise LayoutError("view 'element' needs index=, the logical index of one element")
    if device is not None and not hasattr(device, "first_cores"):
        raise LayoutError(f"device {device!r} must be a gl.DeviceGrid")
    at = as_index(index, layout.shape, "index")
    steps = list(_steps(layout, at, layout.locate(at), device))
    colours = colouring(layout, "core")
    budget = BUDGET // len(steps)
    found, colours = find_coloured([step.field for step in steps], colours, budget)
    found = [[cell for cell in cells if cell.key != NOTHING] for cells in found]
    panels = [
        replace(step.panel(cells, colours), caption=f"{k}. {step.words}", marked=step.marked)
        for k, (step, cells) in enumerate(zip(steps, found, strict=True), 1)
    ]
    words = ", ".join(step.words for step in steps)
    return figure(
        f"{tensor_text(layout)}: the way of element {tuple_text(at)}",
        short(repr(layout)),
        f"{words[0].upper()}{words[1:]}.",
        panels,
        legend(colours, drawn_keys(found)),
        _terms(layout, at, device),
        names=members_in_words(colours),
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """A step: its words, the table that it shows, its panel, and the marked row and column."""

    words: str
    field: Field
    panel: Callable[[Sequence[Cell], Colouring], Panel]
    marked: tuple[int, int]


def _steps(layout: Layout, at: Shape, place: Location, device: Devices | None) -> Iterator[_Step]:
    yield _in_table(f"logical index {tuple_text(at)}", layout, at)
    yield from _collapsed(layout, at, place)
    if layout.core_rank:
        cores = CoreGrid(layout, lambda core: number(core, layout.core_shape))
        row = int(number(place.core[:-1], layout.core_shape[:-1]))
        words = f"core {tuple_text(place.core)}"
        yield _Step(words, cores.field(), cores.panel, (row, place.core[-1]))
    ends, local = [_position(layout, place), _address(place)], layout.local_shape
    sides = sides_of(layout) if len(local) > 1 else ([], [])
    shapes = [tuple(local[k] for k in dims) for dims in sides]
    # A shard that is a single row or column looks like the buffer.
    if min(map(prod, shapes)) > 1:
        row, column = (
            int(number([place.local[k] for k in dims], shape))
            for dims, shape in zip(sides, shapes, strict=True)
        )
        yield _in_core(ends.pop(0), layout, place, in_space(local, *sides), (row, column))
    fold, _, width = in_memory(layout)
    yield _in_core(", ".join(ends), layout, place, fold, divmod(place.offset, width))
    if device is not None:
        yield _on_device(layout, place, device)


def _in_table(words: str, layout: Layout, at: Shape) -> _Step:
    """Return the step that shows the last two dims of a tensor, at the element's other indices."""
    table = Table(layout, at[:-2], layout.shape[-2:])

    row, column = (0, 0, *at)[-2:]

    def panel(cells: Sequence[Cell], colours: Colouring) -> Panel:
        found = logical_panel(table, cells, colours, "none")
        # The ring is not on a label.
        boxes = (
            replace(b, label="") if row in range(*b.rows) and column in range(*b.columns) else b
            for b in found.boxes
        )
        return replace(found, boxes=tuple(boxes))

    return _Step(words, table.field(), panel, (row, column))


def _collapsed(layout: Layout, at: Shape, place: Location) -> Iterator[_Step]:
    """Yield the step to the collapsed index, unless it is the logical one or there is none."""
    plane, joined, _ = _plane(layout, at, place)
    if joined != at:
        yield _in_table(f"collapsed index {tuple_text(joined)}", plane, joined)


def _plane(layout: Layout, at: Shape, place: Location) -> tuple[Layout, Shape, Sequence[Any]]:
    """Return the layout of the collapsed tensor, the index there, and the terms that give it.

    Where no dims are joined, these are the layout itself, its index and no terms.
    """
    grid = cast("GridLayout | None", layout.as_grid)
    if grid is None or grid.physical_shape != layout.physical_shape:
        return layout, at, ()
    joined = grid.linear(*at)
    plane = grid.replace(shape=grid.collapsed_shape, linear=AffineMap.identity(len(joined)))
    if joined == at or plane.locate(joined) != place:
        return layout, at, ()
    return plane, joined, grid.linear.results


def _in_core(
    words: str, layout: Layout, place: Location, fold: Fold, marked: tuple[int, int]
) -> _Step:
    """Return a step that shows the buffer of the element's core as a table."""
    core = int(number(place.core, layout.core_shape))

    def panel(cells: Sequence[Cell], colours: Colouring) -> Panel:
        boxes = boxes_of(layout, fold, core, list(cells), colours, "none")
        return Panel("", fold.row_axis, fold.column_axis, boxes)

    return _Step(words, field_of(layout, fold, core), panel, marked)


def _on_device(layout: Layout, place: Location, device: Devices) -> _Step:
    """Return the step that shows the cores on each device."""
    slots = DeviceSlots.of(layout, device)
    mesh = tuple(device.shape)
    which = device.core_map(layout)(*place.core)[: len(mesh)]
    n = int(number(which, mesh))
    inside = np.asarray(place.core, np.int64) - slots.starts[n]
    i, j = divmod(int(number(inside, slots.slots)), slots.sides[1])
    down, across = divmod(n, mesh[-1])
    marked = (down * slots.sides[0] + i, across * slots.sides[1] + j)

    def key(colours: Colouring, r: Ints, c: Ints) -> Ints:
        _, cores = slots.core(r, c)
        used = (cores < np.array(layout.core_shape, int)).all(axis=-1)
        numbers = number(
            [*np.moveaxis(np.where(used[..., None], cores, 0), -1, 0)], layout.core_shape
        )
        return np.where(used, colours.renumber(numbers), PADDING)

    field = slots.field()
    return _Step(
        f"device {tuple_text(which)}", Field(field.rows, field.columns, key), slots.panel, marked
    )


# -- in words --------------------------------------------------------------------------------------


def _position(layout: Layout, place: Location) -> str:
    """Return the position in a core's shard: its tile, if there are tiles, and that in the tile."""
    block = layout.blocks[0] if layout.blocks else 0
    for k in reversed(range(1, len(place.local))):
        if prod(layout.local_shape[k:]) == block:
            return f"tile {tuple_text(place.local[:k])}, in it {tuple_text(place.local[k:])}"
    return f"position {tuple_text(place.local)} in the shard"


def _address(place: Location) -> str:
    if place.byte is None:
        return f"offset {place.offset:,}"
    bit = f", bit {place.bit}" if place.bit else ""
    return f"offset {place.offset:,}, byte {place.byte:,}{bit}"


def _terms(layout: Layout, at: Shape, device: Devices | None) -> list[str]:
    """Return how the numbers are computed: the terms of the index map, and the offset's sum."""
    place, rank = layout.locate(at), layout.core_rank
    plane, joined, collapse = _plane(layout, at, place)
    terms = plane.index_map.results
    lines = [f"Logical index: {_named('d', at)}."] if at else []
    if joined != at:
        lines.append(
            f"Collapsed index: {_equal(collapse, joined)}; from here on, {_named('d', joined)}."
        )
    if rank:
        found = (f"g{d} = {text}" for d, text in enumerate(_each(terms[:rank], place.core)))
        lines.append(f"Core: {', '.join(found)}.")
    if place.local:
        lines.append(f"Position: {_equal(terms[rank:], place.local)}.")
        strides = row_major(layout.local_shape)
        pairs = zip(place.local, strides, strict=True)
        total = " + ".join(f"{i:,} x {stride:,}" for i, stride in pairs)
        lines.append(f"Offset: {total} = {place.offset:,} elements.")
    if place.byte is not None:
        bits = layout.stored_bits
        total = f"{place.offset:,} x {bits} bits" if bits % 8 else f"{place.offset:,} x {bits // 8}"
        lines.append(f"Byte: {total} = {_address(place).partition('byte ')[2]}.")
    if device is not None and rank:
        to_device = device.core_map(layout)
        which = to_device(*place.core)[: len(device.shape)]
        texts = [re.sub(r"\bd(\d+)", r"g\1", str(term)) for term in to_device.results]
        lines.append(f"Device: {_equal(texts, which)}.")
    return lines


def _named(letter: str, index: Sequence[int]) -> str:
    return ", ".join(f"{letter}{d} = {i}" for d, i in enumerate(index))


def _equal(terms: Sequence[Any], values: Sequence[int]) -> str:
    return ", ".join(_each(terms, values))


def _each(terms: Sequence[Any], values: Sequence[int]) -> list[str]:
    """Return `term = value` of each; a constant is its own value."""
    pairs = [(short(str(term), _LONGEST), str(n)) for term, n in zip(terms, values, strict=False)]
    return [n if text == n else f"{text} = {n}" for text, n in pairs]
