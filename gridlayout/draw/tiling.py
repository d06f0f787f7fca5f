"""Blocks of a core's buffer: its tiles, the faces in them, elements that share a word."""

from __future__ import annotations

from math import prod

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout, Shape
from gridlayout.megengine import FORMATS, FormatLayout
from gridlayout.sophon.tensors import LocalLayout, SystemLayout
from gridlayout.tenstorrent.tiles import face_of
from gridlayout.tenstorrent.tt_metal import TensorLayout
from gridlayout.xla import COMBINE, XlaLayout


def blocks(layout: Layout) -> Shape:
    """The nested blocks of a core's buffer, the outer first, in elements: tiles, faces, lanes.

    >>> from gridlayout import parse, GridLayout
    >>> blocks(parse("f32[4,8]{1,0:T(2,4)(2,1)}"))
    (8, 2)
    >>> blocks(GridLayout((64, 64), tile=(32, 32), face=(16, 16)))
    (1024, 256)
    """
    if isinstance(layout, XlaLayout):
        return tuple(prod(n for n in tile if n != COMBINE) for tile in layout.tiles)
    if isinstance(layout, (LocalLayout, SystemLayout)):
        return (layout.lanes,) if layout.lanes > 1 else ()
    if isinstance(layout, FormatLayout):
        return (layout.physical_shape[-1],) if "%" in FORMATS[layout.format][-1] else ()
    tile, face = (getattr(layout, name, None) for name in ("tile", "face"))
    if isinstance(layout, TensorLayout) and tile and layout.tile_order != "swizzled":
        face = face_of(tile)
    return tuple(prod(sizes) for sizes in (tile, face) if sizes)


def outer_block(layout: Layout) -> int:
    """Elements of the outermost block; `LayoutError` for a layout without blocks."""
    found = blocks(layout)
    if not found:
        raise LayoutError(f"{layout!r} has no tiles, faces or lanes to draw")
    return found[0]
