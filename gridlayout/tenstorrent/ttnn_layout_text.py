"""Reads the text of today's `ttnn_layout`: a tensor type with the attribute as its encoding.

`tensor<64x128xbf16, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x4>, memref<1x1x!ttcore.tile<32x32,
bf16>, #ttnn.buffer_type<l1>>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,1)>]>>>`.
`, row_alignment = 16` (bytes) and `, oob = zero` after the last word are this library's: the
attribute says nothing of rows, nor of padding.
"""

from __future__ import annotations

from typing import Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.text import read_map
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.tenstorrent.metal_layout_text import read_oob
from gridlayout.tenstorrent.ttnn_layout import Ranges, TtnnLayout

# Signed integers by their own names; MLIR's i32 says nothing of a sign.
_SIGNED = {f"si{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)}


def read_ttnn(reader: Reader) -> TtnnLayout:
    """The layout of a type with a `ttnn_layout`; `LayoutError` where its parts disagree."""
    reader.expect("tensor")
    reader.expect("<")
    shape = reader.dims_before_element()
    element = reader.element(also=tuple(_SIGNED))
    for word in (",", "#ttnn.ttnn_layout", "<"):
        reader.expect(word)
    reader.skip()
    at_map = reader.at
    linear = read_map(reader)
    for word in (",", "<"):
        reader.expect(word)
    grid = reader.dims()
    for word in (">", ","):
        reader.expect(word)
    reader.skip()
    at = reader.at
    counts, found = _read_memref(reader, element)
    # tt-mlir leaves the word out for system memory, which is always interleaved.
    if found["buffer_type"] != "system_memory" or reader.peek(","):
        for word in (",", "<"):
            reader.expect(word)
        found["memory_layout"] = reader.match(r"[a-z_]+", "a memory layout")
        reader.expect(">")
    at_ranges, ranges = _read_ranges(reader)
    if ranges:
        found["core_ranges"] = ranges
    found["row_alignment"] = _read_alignment(reader)
    found["oob"] = read_oob(reader)
    reader.expect(">")
    reader.expect(">")
    reader.end()
    try:
        layout = TtnnLayout(shape, _dtype(element), grid, **found)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    _check_stated(reader, layout, (at_map, linear), (at, counts), (at_ranges, ranges))
    return layout


def _check_stated(
    reader: Reader,
    layout: TtnnLayout,
    linear: tuple[int, AffineMap],
    counts: tuple[int, Shape],
    ranges: tuple[int, Ranges],
) -> None:
    """`LayoutError` where what a text states, and where, does not follow from the rest of it."""
    if not _is_same_map(linear[1], layout):
        reader.fail(
            f"the map {linear[1]} does not follow from the shape and the tile: TTNN pads to tiles, "
            f"then joins all dims but the last, {layout.linear}",
            linear[0],
        )
    if counts[1] != layout.memref_shape:
        reader.fail(
            f"memref {dims_text(counts[1])} does not follow from the shape, the tile and the grid: "
            f"{dims_text(layout.memref_shape)} does, as {layout.memref}",
            counts[0],
        )
    if ranges[1] != layout.core_ranges:
        wanted = layout.ranges_text if layout.core_ranges else "no core_ranges"
        reader.fail(
            f"the core ranges do not follow from {layout.memory_layout} on "
            f"{dims_text(layout.grid)}: {wanted}",
            ranges[0],
        )


def _dtype(name: str) -> str:
    return _SIGNED.get(name) or dtypes.FROM_TILE.get(name) or dtypes.FROM_MLIR[name]


def _is_same_map(linear: AffineMap, layout: TtnnLayout) -> bool:
    """Whether a stated map sends every index where the layout's does."""
    if str(linear) == str(layout.linear):
        return True
    maps = (linear, layout.linear)
    if layout.ndim < 2 and str(linear) == "(d0, d1) -> (d0, d1)":
        return True  # of the plane, as optimisers write it for scalars
    if linear.num_dims != layout.ndim or len(linear.results) != 2 or 0 in layout.shape:
        return False
    first, second = (each.simplify(layout.shape) for each in maps)
    return first == second


def _read_memref(reader: Reader, element: str) -> tuple[tuple[int, ...], dict[str, Any]]:
    found: dict[str, Any] = {}
    reader.expect("memref")
    reader.expect("<")
    counts = reader.dims_before_element()
    reader.skip()
    at = reader.at
    if reader.take("!ttcore.tile"):
        reader.expect("<")
        found["tile"] = reader.dims()
        reader.expect(",")
        name = reader.element(also=(*dtypes.FROM_TILE, *dtypes.BLOCK_FORMATS))
        if name in dtypes.BLOCK_FORMATS:
            found["tile_format"], name = name, element
        reader.expect(">")
    else:
        name = reader.element(also=tuple(_SIGNED))
    if _dtype(name) != _dtype(element):
        reader.fail(f"the memref holds {name}, but the tensor {element}: they must agree", at)
    for word in (",", "#ttnn.buffer_type", "<"):
        reader.expect(word)
    found["buffer_type"] = reader.match(r"[A-Za-z0-9_]+", "a buffer type")
    reader.expect(">")
    reader.expect(">")
    return counts, found


def _read_alignment(reader: Reader) -> int | None:
    """`, row_alignment = 16`, if the text goes on with it."""
    reader.skip()
    start = reader.at
    if not reader.take(",") or not reader.take("row_alignment"):
        reader.at = start
        return None
    reader.expect("=")
    return reader.number()


def _read_ranges(reader: Reader) -> tuple[int, Ranges]:
    """`, core_ranges = <[#ttnn.core_range<(0,0), (7,7)>]>`, if the text goes on with it."""
    reader.skip()
    start = reader.at
    if not reader.take(",") or not reader.take("core_ranges"):
        reader.at = start
        return start, ()
    reader.expect("=")
    reader.take("#ttnn.core_range_set")
    reader.expect("<")
    reader.expect("[")
    found = []
    while True:
        for word in ("#ttnn.core_range", "<"):
            reader.expect(word)
        first = _read_core(reader)
        reader.expect(",")
        found.append((first, _read_core(reader)))
        reader.expect(">")
        if not reader.take(","):
            break
    reader.expect("]")
    reader.expect(">")
    return start, tuple(found)


def _read_core(reader: Reader) -> tuple[int, int]:
    reader.expect("(")
    x = reader.number()
    reader.expect(",")
    y = reader.number()
    reader.expect(")")
    return x, y
