"""Drawing of the map of local memory: NPUs as rows, bytes from left to right, colours by tensor.

The contents of each byte are known exactly, from masks. A new row or column starts where the
contents change, and all cells have the same width. If there are too many such columns, a new column
starts only where an allocation begins or ends, and gaps inside a tensor are not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Ints
from gridlayout.draw.cells import MIXED, NOTHING, PADDING, Span
from gridlayout.draw.panels import Axis, Box, Panel, figure
from gridlayout.palette import HUES
from gridlayout.sophon.local_memory import LocalLayout
from gridlayout.sophon.occupancy import held, held_at, runs
from gridlayout.svg import Drawing

MAX_COLUMNS = 96  # with more, columns follow allocations instead of features

_SPECIAL = {
    PADDING: ("pad", "empty blocks of a tensor"),
    MIXED: ("mix", "several tensors"),
    NOTHING: ("paper", "free"),
}


def draw_map(tensors: Mapping[str, LocalLayout]) -> Drawing:
    """Return the drawing of tensors that are on one chip and fit it.

    >>> from gridlayout import sophon
    >>> draw_map({"x": sophon.local((2, 3, 4, 5), "float32")}).title
    'Local memory by address: 1 tensor on 64 NPUs of 524,288 B'
    """
    table = _table(tensors)
    seen = {int(key) for key in np.unique(table.keys)}
    legend = [(f"c{k % HUES}", name) for k, name in enumerate(tensors) if k in seen]
    legend += [_SPECIAL[key] for key in (PADDING, MIXED) if key in seen]
    chip = next(iter(tensors.values())).chip
    count = f"{len(tensors)} tensor{'s' * (len(tensors) > 1)}"
    words = [
        f"{name} takes bytes {x.offset:,}:{x.offset + x.bytes_per_core:,} of each NPU"
        for name, x in tensors.items()
    ]

    def npu_tick(row: int) -> str:
        first, end = table.npus[row]
        text = f"{first}" if end == first + 1 else f"{first}:{end}"
        return f"{text} at {first * chip.npu_bytes:,}"

    rows = Axis("NPU", npu_tick)
    edges = [*(first for first, _ in table.columns), chip.npu_bytes]
    columns = Axis("byte of the NPU", lambda column: f"{edges[column]:,}")
    return figure(
        f"Local memory by address: {count} on {chip.npus} NPUs of {chip.npu_bytes:,} B",
        "Each NPU is labelled with the address of its first byte. Not to scale; white is free.",
        f"{'; '.join(words)}.",
        [Panel("", rows, columns, tuple(_boxes(table, tensors)))],
        legend,
        [] if table.exact else ["There are many gaps: those inside a tensor are not drawn."],
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """The contents of the NPUs' memories, in cells of a run of NPUs and a run of bytes.

    keys: for each cell, the number of a tensor or a special key. exact: whether all bytes of every
    cell have the same contents.
    """

    npus: Sequence[Span]
    columns: Sequence[Span]
    keys: Ints
    exact: bool


def _table(tensors: Mapping[str, LocalLayout]) -> _Table:
    # Only two rows of bytes are in memory at a time, because there may be many rows.
    layouts = tuple(tensors.values())
    size, starts, before = layouts[0].chip.npu_bytes, [], None
    changes = np.zeros(size - 1, bool)
    for npu, _ in runs(layouts):
        row = _row(layouts, npu)
        if before is None or (row != before).any():
            starts.append(npu)
            changes |= row[1:] != row[:-1]
        before = row
    exact = int(changes.sum()) < MAX_COLUMNS
    if exact:
        cuts = (np.flatnonzero(changes) + 1).tolist()
    else:
        cuts = [byte for x in layouts for byte in (x.offset, x.offset + x.bytes_per_core)]
    columns = list(pairwise(sorted({0, *cuts, size})))
    rows = (_row(layouts, npu) for npu in starts)
    keys = [[_shown(np.unique(row[low:high])) for low, high in columns] for row in rows]
    npus = list(pairwise([*starts, layouts[0].chip.npus]))
    return _Table(npus, columns, np.array(keys), exact)


def _row(layouts: Sequence[LocalLayout], npu: int) -> NDArray[np.int8]:
    """The contents of each byte of an NPU: the number of a tensor, or a special key."""
    found = np.full(layouts[0].chip.npu_bytes, NOTHING, np.int8)
    parts = [found[x.offset : x.offset + x.bytes_per_core] for x in layouts]
    for part in parts:
        part[:] = PADDING
    for number, (part, layout) in enumerate(zip(parts, layouts, strict=True)):
        mask = held(layout, npu)
        part[mask] = np.where(part[mask] == PADDING, number, MIXED)
    return found


def _shown(keys: NDArray[np.int8]) -> int:
    """The key of a cell from those of its bytes: a tensor if it is the only one in the cell."""
    found = [int(key) for key in keys if key not in (PADDING, NOTHING)]
    if len(found) > 1:
        return MIXED
    return found[0] if found else int(keys.max())


def _boxes(table: _Table, tensors: Mapping[str, LocalLayout]) -> list[Box]:
    """A box for each run of equal cells in a row."""
    boxes = []
    for row, keys in enumerate(table.keys.tolist()):
        changes = [c for c in range(1, len(keys)) if keys[c] != keys[c - 1]]
        for low, high in pairwise([0, *changes, len(keys)]):
            fill, label, hover = _texts(table, tensors, row, (low, high))
            boxes.append(Box((row, row + 1), (low, high), fill, label, hover))
    return boxes


def _texts(
    table: _Table, tensors: Mapping[str, LocalLayout], row: int, columns: Span
) -> tuple[str, str, str]:
    """The fill, label and hover text of equal cells of a row in a span of columns."""
    npu, end = table.npus[row]
    low, high = table.columns[columns[0]][0], table.columns[columns[1] - 1][1]
    key, names = int(table.keys[row, columns[0]]), list(tensors)
    memory = tensors[names[0]].chip.npu_bytes
    npus = f"NPU {npu}" if end == npu + 1 else f"NPUs {npu}:{end}"
    addresses = f"from address {npu * memory + low:,} to {npu * memory + high - 1:,}"
    where = f"{npus}, bytes {low:,}:{high:,}, {addresses}"
    if key < 0:
        fill, text = _SPECIAL[key]
        return fill, "", f"{where}: {text}"
    held_there = (held_at(tensors[names[key]], npu, byte) for byte in (low, high - 1))
    ends = dict.fromkeys(str(index) for index in held_there if index is not None)
    text = ", ".join([names[key], *([" ... ".join(ends)] if ends else [])])
    return f"c{key % HUES}", names[key], f"{where}: {text}"
