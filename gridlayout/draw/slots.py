"""Draws the slots of cores: the elements in each tile or channel of each buffer."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.draw.buffers import at_least_one, in_cores
from gridlayout.draw.colourings import colouring, fill, legend, with_fills
from gridlayout.draw.logical import in_words, short, tensor_text
from gridlayout.draw.panels import Axis, Box, Panel, columns_for, figure
from gridlayout.draw.points import Points, core_text
from gridlayout.errors import LayoutError
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

_HELD = 4096  # most elements of a slot that are examined
_SLOTS, _CORES = 32, 16  # most slots and cores that are shown


def draw_slots(layout: Layout, *, slot: int | None = None, color: Any = None) -> Drawing:
    """Draw the content of the first slots of the first cores: a column per core, a row per slot.

    slot: elements per slot; by default those of a tile, or of a channel in an NPU's local memory.
    color: as in the view "logical"; by default the channel, or the core if there are no channels.
    Raises `LayoutError` if `slot` has no default.
    """
    size = _default_slot(layout) if slot is None else at_least_one(slot, "slot")
    slots, cores = -(-prod(layout.local_shape) // size), layout.num_cores
    if color is None:
        color = "core" if layout.slot_dim is None else layout.slot_dim
    colours = colouring(layout, color)
    rows = min(slots, _SLOTS)
    held = {
        (r, c): _held(layout, c, r, size)
        for r, c in product(range(rows), range(min(cores, _CORES)))
    }
    texts = {at: _slot_texts(points, size) for at, points in held.items()}
    # As many cores as have room for their labels.
    room = max(columns_for(max((len(text) for text, _ in texts.values()), default=0)), 1)
    columns = min(cores, _CORES, room) if texts else 0
    held = {(r, c): points for (r, c), points in held.items() if c < columns}
    # The key of a slot is that of its first element that is no padding.
    keys = {at: int(colours.key(points)[points.valid.argmax()]) for at, points in held.items()}
    colours = with_fills(colours, keys.values())
    boxes = []
    for r, c in held:
        text, over = texts[r, c]
        over = f"core {core_text(layout, c)}, slot {r}: {over}"
        boxes.append(Box((r, r + 1), (c, c + 1), fill(colours, keys[r, c]), text, over))

    def core_tick(k: int) -> str:
        return (
            ",".join(map(str, np.unravel_index(k, layout.core_shape))) if layout.core_rank else ""
        )

    panel = Panel("", Axis("slot"), Axis("core", core_tick), tuple(boxes))
    notes = [f"Elements in a slot: {size:,}. Cells name the logical index that these share."]
    if (rows, columns) != (slots, cores):
        notes.append(f"Shown: {rows:,} of {slots:,} slots, of {columns:,} of {cores:,} cores.")
    return figure(
        f"{tensor_text(layout)}: slots of the cores",
        short(repr(layout)),
        in_words(layout),
        [panel],
        legend(colours, keys.values()),
        notes,
    )


def _held(layout: Layout, core: int, slot: int, size: int) -> Points:
    """Return the elements of a slot, or samples of them."""
    start, end = slot * size, min((slot + 1) * size, prod(layout.local_shape))
    inside = np.unique(np.linspace(start, end - 1, min(end - start, _HELD)).astype(np.int64))
    return in_cores(layout, np.array(core), inside.clip(start, end - 1))


def _slot_texts(points: Points, size: int) -> tuple[str, str]:
    """Return label and hover text of a slot: the range of each logical dim in it."""
    if not points.valid.any():
        return "", "padding"
    sides = []
    for d, i in enumerate(points.logical):
        low, high = int(i[points.valid].min()), int(i[points.valid].max())
        whole = (low, high) == (0, points.layout.shape[d] - 1) and high > 0
        sides.append("*" if whole else str(low) if low == high else f"{low}:{high + 1}")
    while len(sides) > 2 and sides[-1] == "*":
        sides.pop()
    count, text = int(points.valid.sum()), ",".join(sides)
    held = "element" if count == 1 else "elements"
    if size > _HELD:
        held = f"of {points.valid.size:,} samples"
    return text, f"logical [{text}], {count:,} {held}"


def _default_slot(layout: Layout) -> int:
    if layout.slot_size is None:
        raise LayoutError(f"{layout!r} has no slots by default: pass slot=, in elements")
    return layout.slot_size
