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
# Every value of a block format is one of bfloat16.
_BLOCKS = dict.fromkeys(dtypes.BLOCK_FORMATS, "bfloat16")
_DTYPES = {**_SIGNED, **dtypes.FROM_TILE, **dtypes.FROM_MLIR, **_BLOCKS}
# What a compiled program's types say besides, which is of no place of an element.
_ASIDE = ("mesh", "exactGrid", "ignorePhysicalLayout")


def read_ttnn(reader: Reader) -> TtnnLayout:
    """The layout of a type with a `ttnn_layout`; `LayoutError` where its parts disagree."""
    for word in ("tensor", "<"):
        reader.expect(word)
    shape = reader.dims_before_element()
    element = reader.element(also=tuple(_SIGNED))
    reader.expect(",")
    layout = read_layout(reader, shape, element)
    reader.expect(">")
    reader.end()
    return layout


def read_layout(
    reader: Reader, shape: Shape, element: str, *, compiled: bool = False
) -> TtnnLayout:
    """The attribute of a tensor of that shape and element type, up to its own `>`.

    compiled: of a value of a compiled program, whose types may say more (`_ASIDE`), and may leave
    the cores of shards out; they have none of this library's own words.
    """
    for word in ("#ttnn.ttnn_layout", "<"):
        reader.expect(word)
    reader.skip()
    at_map = reader.at
    linear = read_map(reader)
    for word in (",", "<"):
        reader.expect(word)
    at_grid = reader.at
    # tt-mlir takes any grid in L1, for scalars one of no dims too: one core.
    grid = () if reader.peek(">") else reader.dims()
    for word in (">", ","):
        reader.expect(word)
    if compiled and reader.peek("mesh"):
        _pass_over(reader)
        reader.expect(",")
    reader.skip()
    at = reader.at
    counts, found = _read_memref(reader, element)
    if not grid and found["buffer_type"] not in ("l1", "l1_small"):
        reader.fail(f"the grid of a tensor in {found['buffer_type']} is <1x1>, not <>", at_grid)
    _read_memory_layout(reader, found, compiled)
    at_ranges, ranges = _read_rest(reader, found, compiled)
    reader.expect(">")
    try:
        layout = TtnnLayout(shape, dtype_of(element), grid or (1, 1), **found)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if compiled and not ranges:
        ranges = layout.core_ranges
    _check_stated(reader, layout, (at_map, linear), (at, counts), (at_ranges, ranges))
    return layout


def _read_memory_layout(reader: Reader, found: dict[str, Any], compiled: bool) -> None:
    """`, <interleaved>`: tt-mlir leaves it out for system memory, which is always that."""
    start = reader.at
    if found["buffer_type"] == "system_memory":
        if not reader.take(",") or (compiled and not reader.peek("<")):
            reader.at = start
            return
        reader.at = start
    for word in (",", "<"):
        reader.expect(word)
    found["memory_layout"] = reader.match(r"[a-z_]+", "a memory layout")
    reader.expect(">")


def _read_rest(reader: Reader, found: dict[str, Any], compiled: bool) -> tuple[int, Ranges]:
    """What comes after the memory layout: where core ranges stand, and these."""
    if compiled:
        _read_aside(reader)
    at, ranges = _read_ranges(reader)
    if ranges:
        found["core_ranges"] = ranges
    if compiled:
        _read_aside(reader)
    else:
        found["row_alignment"] = _read_alignment(reader)
        found["oob"] = read_oob(reader)
    return at, ranges


def _read_aside(reader: Reader) -> None:
    """Pass over `, exactGrid = true`, if the text goes on so."""
    while True:
        start = reader.at
        if not reader.take(",") or not any(map(reader.peek, _ASIDE)):
            reader.at = start
            return
        _pass_over(reader)


def _pass_over(reader: Reader) -> None:
    """`exactGrid = true`, `mesh = <"mesh">`."""
    reader.match("|".join(_ASIDE), f"one of {', '.join(_ASIDE)}")
    reader.expect("=")
    reader.match(r"[#\w.]+(?:\s*<[^<>]*>)?|<[^<>]*>", "its value")


def read_element(reader: Reader) -> str:
    """The element type of a tensor; of a tile's, that of its elements or their block format."""
    if reader.take("!ttcore.tile"):
        reader.expect("<")
        reader.dims()
        reader.expect(",")
        name = reader.element(also=(*_SIGNED, *dtypes.FROM_TILE, *_BLOCKS))
        reader.expect(">")
        return name
    return reader.element(also=tuple(_SIGNED))


def dtype_of(element: str) -> str:
    """The dtype of an element type that was read."""
    return _DTYPES[element]


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
        name = reader.element(also=(*dtypes.FROM_TILE, *_BLOCKS))
        if name in _BLOCKS:
            found["tile_format"] = name
            name = name if element in _BLOCKS else element
        reader.expect(">")
    else:
        name = reader.element(also=tuple(_SIGNED))
    if dtype_of(name) != dtype_of(element) or (element in _BLOCKS and name != element):
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
