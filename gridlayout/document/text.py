"""Parser of the text in tt-mlir's document; `str` of a `GridLayout` prints it.

`tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<18x32xf32,
#ttcore.memory_space<l1>>>>`. `d0 <> d1` in the map joins dims by the shape. A memref with more
tiles than the shape, the map and the grid need states a larger shard.

This library adds to the document's syntax: padding values that are numbers, tiles with faces,
`!ttcore.tile<32x32, f32, face<16x16>>`, and three words after the memref: a shard that its tiles
do not state, `, shard = 96x16`, the alignment of rows in bytes, `, row_alignment = 16`, and the
mesh axes that divide each dim of the grid, `, mesh_axes = [{"y"}, {}]`, in Shardy's syntax.
"""

from __future__ import annotations

import json
from typing import Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.document.shard import stated_by
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text


def read_grid_layout(reader: Reader) -> GridLayout:
    """Read a tensor type of the document; `LayoutError` if its parts contradict each other."""
    reader.expect("tensor", "<")
    shape = reader.dims_before_element()
    element = reader.element()
    if reader.peek(">"):
        reader.fail(
            "expected ',' and an encoding, found '>': a type without one states no layout; it "
            "follows the element type, as in tensor<53x63xf32, #ttcore.metal_layout<...>>"
        )
    reader.expect(",", "#ttcore.metal_layout", "<")
    linear = read_map(reader, shape)
    reader.expect(",")
    oob = read_oob_word(reader)
    reader.expect(",", "<")
    grid = reader.dims()
    reader.expect(">", ",")
    at = reader.here()
    counts, found = _read_memref(reader, element)
    found |= _read_words(reader)
    reader.expect(">", ">")
    reader.end()
    try:
        layout = GridLayout(shape, dtypes.FROM_MLIR[element], grid, linear=linear, oob=oob, **found)
        stated = stated_by(counts, layout.tile_counts, layout.padded_tile)
        if stated is not None and "shard_shape" not in found:
            layout = layout.replace(shard_shape=stated)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if counts != layout.tile_counts:
        reader.fail(
            f"memref {dims_text(counts)} does not follow from the shape, the map and the grid, "
            f"which give {dims_text(layout.tile_counts)}: {layout.memref}",
            at,
        )
    return layout


def read_map(reader: Reader, shape: Shape | None = None) -> AffineMap:
    """Read an affine map, `(...) -> (...)`.

    shape: the extents of the dims, for `d0 <> d1`.
    """
    reader.skip()
    start, depth, groups = reader.at, 0, 0
    for at in range(start, len(reader.text)):
        depth += {"(": 1, ")": -1}.get(reader.text[at], 0)
        if depth == 0 and reader.text[at] == ")":
            groups += 1
        if groups == 2 or depth < 0:
            break
    if groups != 2:
        reader.fail("expected an affine map, (d0, ...) -> (...)")
    reader.at = at + 1
    try:
        # Leading blanks preserve the columns in the errors of the map's parser.
        return AffineMap.parse(" " * start + reader.text[start : reader.at], shape)
    except LayoutError as error:
        raise LayoutError(f"in the affine map: {error}") from None


def read_oob_word(reader: Reader) -> dtypes.Scalar | None:
    """Read a padding value: one of the document's words, or a number."""
    at = reader.here()
    word = reader.match(r"[-+.A-Za-z0-9()]+", f"one of {', '.join(dtypes.OOB_NAMES)}, or a number")
    if word in dtypes.OOB_NAMES:
        return dtypes.OOB_NAMES[word]
    for kind in (int, float, complex):
        try:
            return dtypes.NAN if word == "nan" else kind(word)
        except ValueError:
            continue
    reader.fail(f"{word!r} is not one of {', '.join(dtypes.OOB_NAMES)}, nor a number", at)


def _read_words(reader: Reader) -> dict[str, Any]:
    """Read the words after the memref: the shard, the alignment of rows, and mesh axes."""
    found: dict[str, Any] = {}
    names = "shard, row_alignment, mesh_axes"
    while reader.take(","):
        at = reader.here()
        word = reader.match(r"[a-z_]+", f"one of {names}")
        if word not in names.split(", ") or f"{word}_shape" in found or word in found:
            reader.fail(f"{word!r} is not one of {names}, or is repeated", at)
        reader.expect("=")
        if word == "shard":
            found["shard_shape"] = reader.dims()
        elif word == "mesh_axes":
            found["mesh_axes"] = _read_axes(reader)
        else:
            found["row_alignment"] = reader.number()
    return found


def _read_axes(reader: Reader) -> list[tuple[str, ...]]:
    """Read the mesh axes of each dim of a grid: `[{"y"}, {}]`."""
    found: list[tuple[str, ...]] = []
    reader.expect("[")
    while not reader.take("]"):
        if found:
            reader.expect(",")
        reader.expect("{")
        names: list[str] = []
        while not reader.take("}"):
            if names:
                reader.expect(",")
            at = reader.here()
            text = reader.match(r'"(?:[^"\\\x00-\x1f]|\\.)*"', 'the name of a mesh axis, "x"')
            try:
                names.append(json.loads(text))
            except ValueError:
                reader.fail(f"{text} is no name of a mesh axis", at)
        found.append(tuple(names))
    return found


def _read_memref(reader: Reader, element: str) -> tuple[Shape, dict[str, Any]]:
    """Read a memref: its shape, and the constructor arguments that it states."""
    found: dict[str, Any] = {}
    reader.expect("memref", "<")
    counts = reader.dims_before_element()
    at = reader.at
    if reader.take("!ttcore.tile"):
        reader.expect("<")
        found["tile"] = reader.dims()
        reader.expect(",")
        at = reader.here()
        name = reader.element(also=tuple(dtypes.BLOCK_FORMATS))
        if name in dtypes.BLOCK_FORMATS:
            found["tile_format"], name = name, element
        if reader.take(","):
            reader.expect("face", "<")
            found["face"] = reader.dims()
            reader.expect(">")
        reader.expect(">")
    else:
        name = reader.element()
    if name != element:
        reader.fail(f"the memref holds {name}, but the tensor holds {element}", at)
    reader.expect(",", "#ttcore.memory_space", "<")
    found["memory_space"] = reader.word("a memory space")
    reader.expect(">", ">")
    return counts, found
