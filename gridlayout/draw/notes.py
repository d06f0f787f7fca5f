"""Notes below drawings: what numbers and texts in cells are, and how large blocks are."""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.draw.colourings import Colouring
from gridlayout.draw.panels import Box, Panel

# The meaning of the numbers in cells, by the kind of label.
NUMBERS = {
    "offset": "Numbers are offsets in a core's buffer, in elements.",
    "byte": "Numbers are bytes of a core's buffer.",
    "index": "Numbers are logical indices.",
    "number": "Numbers count the elements in row-major order.",
    "core": "Numbers are cores.",
    "none": "",
}


# The same of the texts in blocks between which lines are drawn.
FIRSTS = {
    "offset": "In a block: the offset of its first element in a core's buffer, in elements.",
    "byte": "In a block: its first byte in a core's buffer.",
    "index": "In a block: the logical index of its first element.",
    "number": "In a block: the row-major number of its first element.",
    "core": "In a block: its core.",
    "none": "",
}


def members_in_words(colours: Colouring) -> str:
    """Return what the texts in blocks of one colour are; empty if they have none."""
    one = "" if colours.members is None else colours.members.one
    return f"In a block: its {'index along ' + one[:-2] if one.endswith(' =') else one}." * bool(
        one
    )


def caveats(panels: Sequence[Panel]) -> list[str]:
    """Return notes on the size of blocks and on cells with some padding, if there are any."""
    boxes = [box for panel in panels for box in panel.boxes]
    notes = _blocks_in_words(boxes)
    if any(box.share for box in boxes):
        notes.append("Cells of data and padding are hatched by the share of padding.")
    return notes


def _blocks_in_words(boxes: Sequence[Box]) -> list[str]:
    """Return how many elements the blocks of one colour have, if there are such."""
    filled = [b for b in boxes if not b.is_single and b.fill not in ("pad", "mix")]
    sizes = {tuple(high - low for low, high in (b.rows, b.columns)) for b in filled}
    if not sizes:
        return []
    rows, columns = map(max, zip(*sizes, strict=True))
    most = "" if len(sizes) == 1 else "up to "
    return [f"Blocks of {most}{rows:,} x {columns:,} elements."]
