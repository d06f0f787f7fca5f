"""A value's type in a compiled TTNN program: `tensor<53x63xf32, #ttnn_layout>` as a layout.

Shape and grid are as the type states them, memory configs too. Interleaved tensors are one plane
of pages, whatever worker grid their pages go round; what memref and map say must follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.text import read_map
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.mlir.source import parts
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

_ATTRIBUTE = "#ttnn.ttnn_layout<"
# Every value of a block format is one of bfloat16, and tiles have names of their own for types.
_ELEMENTS = {
    **dtypes.FROM_MLIR,
    **dtypes.FROM_TILE,
    **dict.fromkeys(dtypes.BLOCK_FORMATS, "bfloat16"),
    **{f"si{n}": f"int{n}" for n in (8, 16, 32, 64)},
    "i1": "bool",
}


@dataclass(frozen=True)
class TensorType:
    """Shape, element type and layout of a value; the layout is None where the type states none."""

    shape: Shape
    dtype: Any
    layout: TtnnLayout | None
    tile_format: str | None = None


def read_tensor_type(text: str, resolved: Callable[[str], str] = str) -> TensorType:
    """The type that a text states. resolved: what an alias stands for, by its name.

    `LayoutError` for what is no tensor, and where the parts of a layout disagree.

    >>> found = read_tensor_type(
    ...     "tensor<53x63xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x"
    ...     "!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <height_sharded>>>")
    >>> found.layout.grid, found.layout.tile, found.layout.buffer_type
    ((2, 1), (32, 32), 'l1')
    """
    reader = Reader(text)
    for word in ("tensor", "<"):
        reader.expect(word)
    shape = reader.dims_before_element()
    element, *encoding = parts(text[reader.at : text.rindex(">")])
    dtype, tile_format = _element(resolved(element), resolved)
    if len(encoding) > 1:
        raise LayoutError(f"type {text[:80]!r} has {len(encoding)} encodings; one is read")
    if not encoding:
        return TensorType(shape, dtype, None, tile_format)
    attribute = resolved(encoding[0])
    if not attribute.startswith(_ATTRIBUTE):
        raise LayoutError(
            f"type {text[:80]!r} is laid out by {attribute[:40]!r}; a #ttnn.ttnn_layout is read"
        )
    layout = _layout(shape, dtype, attribute, resolved)
    return TensorType(shape, dtype, layout, layout.tile_format or tile_format)


def _element(text: str, resolved: Callable[[str], str]) -> tuple[Any, str | None]:
    """The dtype of an element type, and its block format; a tile's are its elements'."""
    if text.startswith("!ttcore.tile<"):
        text = parts(text[len("!ttcore.tile<") : -1])[-1]
    if text not in _ELEMENTS:
        raise LayoutError(f"element type {text[:40]!r} is not one of {', '.join(_ELEMENTS)}")
    return dtypes.as_dtype(_ELEMENTS[text]), text if text in dtypes.BLOCK_FORMATS else None


def _layout(shape: Shape, dtype: Any, attribute: str, resolved: Callable[[str], str]) -> TtnnLayout:
    found = parts(attribute[len(_ATTRIBUTE) : attribute.rindex(">")])
    # The map has a comma between brackets only: `(d0, d1) -> (d0, d1)` is one part.
    if len(found) < 3:
        raise LayoutError(f"layout {attribute[:80]!r} must state a map, a grid and a memref")
    linear, grid_text, memref, *rest = found
    grid = _dims(grid_text.strip("<>"))
    counts, tile, tile_format, buffer_type = _memref(memref, resolved)
    memory_layout = "interleaved"
    for part in rest:
        key = part.partition("=")[0].strip()
        if part.startswith("<"):
            memory_layout = part.strip("<>")
        elif key not in ("core_ranges", "exactGrid", "ignorePhysicalLayout", "mesh"):
            raise LayoutError(f"layout {attribute[:80]!r} states {part[:40]!r}, which is not known")
    is_plane = memory_layout == "interleaved"
    layout = TtnnLayout(
        *(shape, dtype, (1, 1) if is_plane else grid, tile, memory_layout, buffer_type),
        tile_format=tile_format,
    )
    _check(layout, linear, None if is_plane and grid != (1, 1) else counts)
    return layout


def _check(layout: TtnnLayout, linear: str, counts: Shape | None) -> None:
    """What else the attribute states must follow from the layout."""
    stated: AffineMap = read_map(Reader(linear))
    # One element alone has one place, whatever the map's dims.
    if layout.tile and layout.shape and str(stated) != str(layout.linear):
        raise LayoutError(
            f"the map {stated} does not follow from the shape {layout.shape} and the tile: TTNN "
            f"pads to tiles, then joins all dims but the last, {layout.linear}"
        )
    if counts is not None and counts != layout.tile_counts:
        raise LayoutError(
            f"memref {dims_text(counts)} does not follow from the shape {layout.shape}, the tile "
            f"and the grid {dims_text(layout.grid)}: {dims_text(layout.tile_counts)} does"
        )


def _dims(text: str) -> Shape:
    reader = Reader(text)
    dims = reader.dims()
    reader.end()
    return dims


def _memref(
    text: str, resolved: Callable[[str], str]
) -> tuple[Shape, Shape | None, str | None, str]:
    """Shape, tile, block format and buffer type of `memref<1x2x!ttcore.tile<...>, #l1>`."""
    if not text.startswith("memref<"):
        raise LayoutError(f"expected a memref, found {text[:40]!r}")
    inside = text[len("memref<") : text.rindex(">")]
    reader = Reader(inside)
    counts = reader.dims_before_element()
    element, *space = parts(inside[reader.at :])
    space_text = resolved(space[-1]) if space else ""
    if len(space) != 1 or not space_text.startswith("#ttnn.buffer_type<"):
        raise LayoutError(f"{text[:80]!r} must end with a #ttnn.buffer_type")
    tile, tile_format = None, None
    element = resolved(element)
    if element.startswith("!ttcore.tile<"):
        tile = _dims(parts(element[len("!ttcore.tile<") : -1])[0])
        tile_format = _element(element, resolved)[1]
    return counts, tile, tile_format, space_text[len("#ttnn.buffer_type<") :].rstrip(">")
