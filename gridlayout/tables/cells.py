"""Cells of tables: short texts about a layout."""

from __future__ import annotations

from collections.abc import Iterable

from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.memory import Fit, size
from gridlayout.layouts.reader import dims_text
from gridlayout.tables.words import dims


def tensor(layout: Buffers) -> str:
    """Return the element type and the logical shape.

    >>> from gridlayout import xla
    >>> tensor(xla.layout((3, 5), "int32"))
    's32[3,5]'
    """
    return f"{layout.element_name}[{','.join(map(str, layout.shape))}]"


def grid(layout: Buffers) -> str:
    """Return the grid of cores."""
    return dims(layout.core_shape)


def shard(layout: Buffers) -> str:
    """Return one core's buffer: tiles and their size, or the braces of an XLA type."""
    return layout.shard_text or "-"


def fits(fit: Fit | None) -> str:
    """Return whether a layout fits, the bytes left or lacking, and a tile that no op supports.

    >>> fits(Fit("l1", 512, 512, 2048)), fits(Fit("l1", 4096, 4096, 1024)), fits(None)
    ('l1, 1.5 KiB free', 'NO: l1, 3.0 KiB over', '-')
    >>> fits(Fit("l1", 512, 512, 2048, (4, 4)))
    'l1, 1.5 KiB free; no op: 4x4'
    """
    if fit is None:
        return "-"
    words = [] if fit.unusable_tile is None else [f"no op: {dims_text(fit.unusable_tile)}"]
    if fit.grid is not None:
        return f"NO: {dims_text(fit.grid)} does not fit {dims_text(fit.chip_grid)}"
    if fit.free is not None:
        room = f"{size(fit.free)} free" if fit else f"{size(-fit.free)} over"
        words.insert(0, f"{'' if fit else 'NO: '}{fit.memory}, {room}")
    return "; ".join(words) or "-"


def placed(layout: Buffers) -> str:
    """Return where a value is stored, as text: its memory, and the cores that divide it.

    >>> from gridlayout import GridLayout
    >>> placed(GridLayout((8, 6), grid=(2, 1), memory_space="l1"))
    'l1 2x1'
    """
    return f"{layout.memory or ''} {dims_text(layout.core_shape)}".strip()


def tensors(layouts: Iterable[Buffers | None]) -> str:
    """Return types and grids of values; `-` for a value without a layout.

    >>> from gridlayout import GridLayout
    >>> tensors((GridLayout((8, 6), "float32", grid=(2, 1)), None))
    'float32[8,6]@2x1, -'
    """
    return ", ".join(
        "-"
        if x is None
        else f"{x.dtype.name}[{','.join(map(str, x.shape))}]@{dims_text(x.core_shape)}"
        for x in layouts
    )
