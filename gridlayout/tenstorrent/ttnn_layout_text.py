"""Parser of the current `ttnn_layout`: a tensor type with the attribute as its encoding.

`tensor<64x128xbf16, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x4>, memref<1x1x!ttcore.tile<32x32,
bf16>, #ttnn.buffer_type<l1>>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,1)>]>>>`.
This library adds `, row_alignment = 16` (in bytes) and `, oob = zero` after the last word, because
the attribute states neither the alignment of rows nor the value of padding. A tensor in a block
format has tiles for elements, `tensor<70x100x!ttcore.tile<32x32, bfp_bf8>, ...>`, but its shape
counts elements as well.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.text import read_map
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.tenstorrent.metal_layout_text import read_oob
from gridlayout.tenstorrent.ttnn_layout import Ranges, TtnnLayout

# All values of a block format are exact in bfloat16.
_BLOCKS = dict.fromkeys(dtypes.BLOCK_FORMATS, "bfloat16")
_DTYPES = {**dtypes.FROM_ELEMENT, **_BLOCKS}
# Further words in a compiled program's types, which do not affect the placement of elements.
_IGNORED = ("mesh", "exactGrid", "ignorePhysicalLayout")


class Element(NamedTuple):
    """The element type of a tensor; for a tile, that of its elements or its block format."""

    name: str
    tile: Shape | None = None


def read_ttnn(reader: Reader) -> TtnnLayout:
    """Read a type with a `ttnn_layout`; `LayoutError` if its parts contradict each other."""
    reader.expect("tensor", "<")
    shape = reader.dims_before_element()
    element = read_element(reader)
    reader.expect(",")
    layout = read_layout(reader, shape, element)
    reader.expect(">")
    reader.end()
    return layout


def read_layout(
    reader: Reader, shape: Shape, element: Element, *, compiled: bool = False, strict: bool = True
) -> TtnnLayout:
    """Read the attribute of a tensor of this shape and element type, including its `>`.

    compiled: whether it is the type of a value in a compiled program. Such a type may have further
    words (`_IGNORED`) and may omit the cores of shards, but has none of this library's own words.
    strict: whether parts that do not follow from the others are an error; else they are a warning,
    and the layout is that which shape, tile and grid imply.
    """
    reader.expect("#ttnn.ttnn_layout", "<")
    at_map = reader.here()
    linear = read_map(reader)
    reader.expect(",", "<")
    at_grid = reader.at
    # In L1, tt-mlir accepts any grid, including <> for scalars, which means one core.
    grid = () if reader.peek(">") else reader.dims()
    reader.expect(">", ",")
    if compiled and reader.peek("mesh"):
        _skip_word(reader)
        reader.expect(",")
    at = reader.here()
    counts, found = _read_memref(reader, element)
    if not grid and found["buffer_type"] not in ("l1", "l1_small"):
        reader.fail(f"the grid of a tensor in {found['buffer_type']} is <1x1>, not <>", at_grid)
    _read_memory_layout(reader, found, compiled)
    at_ranges, ranges = _read_rest(reader, found, compiled)
    reader.expect(">")
    try:
        layout = TtnnLayout(shape, dtype_of(element.name), grid or (1, 1), **found)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if compiled and not ranges:
        ranges = layout.core_ranges
    try:
        _check_stated(reader, layout, (at_map, linear), (at, counts), (at_ranges, ranges))
    except LayoutError as error:
        if strict:
            raise
        warnings.warn(f"{error}; {layout} is taken", stacklevel=2)
    return layout


def _read_memory_layout(reader: Reader, found: dict[str, Any], compiled: bool) -> None:
    """Read `, <interleaved>`, which tt-mlir omits for system memory."""
    start = reader.at
    if found["buffer_type"] == "system_memory":
        if not reader.take(",") or (compiled and not reader.peek("<")):
            reader.at = start
            return
        reader.at = start
    reader.expect(",", "<")
    found["memory_layout"] = reader.match(r"[a-z_]+", "a memory layout")
    reader.expect(">")


def _read_rest(reader: Reader, found: dict[str, Any], compiled: bool) -> tuple[int, Ranges]:
    """Read the words after the memory layout; return the position and value of core ranges."""
    if compiled:
        _skip_words(reader)
    at, ranges = _read_ranges(reader)
    if ranges:
        found["core_ranges"] = ranges
    if compiled:
        _skip_words(reader)
    else:
        found["row_alignment"] = _read_alignment(reader)
        found["oob"] = read_oob(reader)
    return at, ranges


def _skip_words(reader: Reader) -> None:
    """Skip words such as `, exactGrid = true`, if the text continues with them."""
    while True:
        start = reader.at
        if not reader.take(",") or not any(map(reader.peek, _IGNORED)):
            reader.at = start
            return
        _skip_word(reader)


def _skip_word(reader: Reader) -> None:
    """Skip `exactGrid = true` or `mesh = <"mesh">`."""
    reader.match("|".join(_IGNORED), f"one of {', '.join(_IGNORED)}")
    reader.expect("=")
    reader.match(r"[#\w.]+(?:\s*<[^<>]*>)?|<[^<>]*>", "its value")


def read_element(reader: Reader) -> Element:
    """Read the element type of a tensor or memref."""
    if not reader.take("!ttcore.tile"):
        return Element(reader.element(also=tuple(dtypes.FROM_SIGNED)))
    reader.expect("<")
    tile = reader.dims()
    reader.expect(",")
    name = reader.element(also=(*dtypes.FROM_SIGNED, *dtypes.FROM_TILE, *_BLOCKS))
    reader.expect(">")
    return Element(name, tile)


def dtype_of(element: str) -> str:
    """The name of the dtype of an element type."""
    return _DTYPES[element]


def _check_stated(
    reader: Reader,
    layout: TtnnLayout,
    linear: tuple[int, AffineMap],
    counts: tuple[int, Shape],
    ranges: tuple[int, Ranges],
) -> None:
    """Raise `LayoutError` if the map, the memref or the core ranges contradict the layout.

    Each is a pair of its position in the text and its stated value.
    """
    if not _is_same_map(linear[1], layout):
        reader.fail(
            f"the map {linear[1]} does not follow from the shape and the tile: TTNN pads to tiles, "
            f"then joins all dims but the last, {layout.linear}",
            linear[0],
        )
    if counts[1] != layout.memref_shape:
        reader.fail(
            f"memref {dims_text(counts[1])} does not follow from the shape, the tile and the grid, "
            f"which give {dims_text(layout.memref_shape)}: {layout.memref}",
            counts[0],
        )
    if ranges[1] != layout.core_ranges:
        expected = layout.ranges_text if layout.core_ranges else "no core_ranges"
        reader.fail(
            f"the core ranges do not follow from {layout.memory_layout} on "
            f"{dims_text(layout.grid)}; expected {expected}",
            ranges[0],
        )


def _is_same_map(linear: AffineMap, layout: TtnnLayout) -> bool:
    """Whether a stated map equals that of the layout for all indices."""
    if str(linear) == str(layout.linear):
        return True
    maps = (linear, layout.linear)
    if layout.ndim < 2 and str(linear) == "(d0, d1) -> (d0, d1)":
        return True  # the map of the plane, which optimisers print for scalars
    if linear.num_dims != layout.ndim or len(linear.results) != 2 or 0 in layout.shape:
        return False
    first, second = (each.simplify(layout.shape) for each in maps)
    return first == second


def _read_memref(reader: Reader, element: Element) -> tuple[Shape, dict[str, Any]]:
    """Read a memref: its shape, and the constructor arguments that it states."""
    reader.expect("memref", "<")
    counts = reader.dims_before_element()
    at = reader.here()
    name, tile = read_element(reader)
    found: dict[str, Any] = {"tile": tile}
    if name in _BLOCKS:
        found["tile_format"] = name
    is_same = name == element.name
    if element.name not in _BLOCKS:
        is_same = name in _BLOCKS or dtype_of(name) == dtype_of(element.name)
    if not is_same:
        reader.fail(f"the memref holds {name}, but the tensor holds {element.name}", at)
    if element.tile not in (None, tile):
        reader.fail(
            f"the memref holds tiles of {dims_text(tile or (1, 1))}, but the tensor has tiles of "
            f"{dims_text(element.tile or ())}",
            at,
        )
    reader.expect(",", "#ttnn.buffer_type", "<")
    found["buffer_type"] = reader.word("a buffer type")
    reader.expect(">", ">")
    return counts, found


def _read_alignment(reader: Reader) -> int | None:
    """Read `, row_alignment = 16`; None if the text does not continue with it."""
    if not reader.take(",", "row_alignment"):
        return None
    reader.expect("=")
    return reader.number()


def _read_ranges(reader: Reader) -> tuple[int, Ranges]:
    """Read `, core_ranges = <[#ttnn.core_range<(0,0), (7,7)>]>`, if the text continues with it.

    Returns the position, and the ranges, which are empty otherwise.
    """
    start = reader.here()
    if not reader.take(",", "core_ranges"):
        return start, ()
    reader.expect("=")
    reader.take("#ttnn.core_range_set")
    reader.expect("<", "[")
    found = []
    while True:
        reader.expect("#ttnn.core_range", "<")
        first = _read_core(reader)
        reader.expect(",")
        found.append((first, _read_core(reader)))
        reader.expect(">")
        if not reader.take(","):
            break
    reader.expect("]", ">")
    return start, tuple(found)


def _read_core(reader: Reader) -> tuple[int, int]:
    reader.expect("(")
    x = reader.number()
    reader.expect(",")
    y = reader.number()
    reader.expect(")")
    return x, y
