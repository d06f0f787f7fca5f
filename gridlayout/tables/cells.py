"""Cells of tables: short texts about a layout."""

from __future__ import annotations

from gridlayout import dtypes
from gridlayout.costs import Described
from gridlayout.layouts.memory import Fit, size
from gridlayout.layouts.reader import dims_text
from gridlayout.tables.words import dims
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


def tensor(layout: Described) -> str:
    """Return the element type and the logical shape.

    >>> from gridlayout import xla
    >>> tensor(xla.layout((3, 5)))
    'f32[3,5]'
    """
    name = layout.tile_format or dtypes.MLIR_NAMES[layout.dtype.name]
    return f"{name}[{','.join(map(str, layout.shape))}]"


def grid(layout: Described) -> str:
    """Return the grid of cores."""
    return dims(layout.core_shape)


def shard(layout: Described) -> str:
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
        words.insert(0, f"{'' if fit else 'NO: '}{fit.space}, {room}")
    return "; ".join(words) or "-"


def ttnn_place(layout: TtnnLayout) -> str:
    """Return how a TTNN tensor is laid out: its memory, how it is divided, and the cores.

    >>> from gridlayout import tenstorrent
    >>> ttnn_place(tenstorrent.ttnn((64, 64), grid=(2, 1), tile=(32, 32)))
    'l1 height 2x1'
    >>> ttnn_place(tenstorrent.ttnn((64, 64), buffer_type="dram"))
    'dram rows'
    """
    if layout.is_interleaved:
        return f"{layout.buffer_type} {'rows' if layout.tile is None else 'tiles'}"
    kind = layout.memory_layout.removesuffix("_sharded")
    return f"{layout.buffer_type} {kind} {dims(layout.grid)}"
