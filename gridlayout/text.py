"""Text: a layout as its system writes it, and back. `parse(str(layout)) == layout`.

The document's form (seed 004): `tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef,
<3x2>, memref<18x32xf32, #ttcore.memory_space<l1>>>>`. Padding values beyond the document's words
are printed as numbers, and a tile with faces as `!ttcore.tile<32x32, f32, face<16x16>>`: both are
this library's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.errors import LayoutError
from gridlayout.layouts.constructor import read_call, starts_call
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.reader import Reader
from gridlayout.xla.text import read_type, starts_type

if TYPE_CHECKING:
    from gridlayout.document.grid_layout import GridLayout

MAX_TEXT = 1 << 16


def parse(text: str) -> Layout:
    """The layout that `text` describes; `str` of the result prints it in canonical form.

    `LayoutError` names the column of what does not parse, and says what follows from the rest
    when the memref contradicts it.

    >>> parse('tensor<8x300xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x2>, '
    ...       'memref<8x150xf32, #ttcore.memory_space<l1>>>>')
    GridLayout((8, 300), 'float32', grid=(1, 2))
    """
    if not isinstance(text, str):
        raise LayoutError(f"column 1: a layout's text must be a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise LayoutError(
            f"column {MAX_TEXT}: the text has {len(text)} characters, over {MAX_TEXT}"
        )
    reader = Reader(text)
    if reader.peek("tensor"):
        return _reader_of(text)(reader)
    if starts_call(text):
        found = read_call(text)
        if not isinstance(found, Layout):
            reader.fail(f"{text.strip()[:48]!r} is no layout")
        return found
    if starts_type(text):
        return read_type(reader)
    reader.fail(
        "no known layout starts here; known: tensor<..., #ttcore.metal_layout<...>>, "
        "tensor<..., #ttnn.ttnn_layout<...>>, f32[3,5]{1,0:T(2,2)}, and constructor calls such as "
        "sophon.local(...)"
    )


def _reader_of(text: str) -> Callable[[Reader], Layout]:
    """Three systems write a tensor type; the start of its encoding says whose it is."""
    from gridlayout.tenstorrent.metal_layout_text import read_metal
    from gridlayout.tenstorrent.ttnn_layout_text import read_ttnn

    if "#ttnn.ttnn_layout" in text:
        return read_ttnn
    if re.search(r"#ttcore\.metal_layout\s*<\s*logical_shape", text):
        return read_metal
    return _read_grid_layout


def print_grid_layout(layout: GridLayout) -> str:
    """The document's text of a `GridLayout` (seed 004)."""
    element = dtypes.MLIR_NAMES[layout.dtype.name]
    tensor = "".join(f"{n}x" for n in layout.shape) + element
    return (
        f"tensor<{tensor}, #ttcore.metal_layout<{layout.linear}, {dtypes.oob_text(layout.oob)}, "
        f"<{_dims(layout.grid)}>, {_memref(layout)}>>"
    )


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _memref(layout: GridLayout) -> str:
    element = dtypes.MLIR_NAMES[layout.dtype.name]
    if layout.tile is not None:
        face = f", face<{_dims(layout.face)}>" if layout.face else ""
        element = f"!ttcore.tile<{_dims(layout.tile)}, {layout.tile_format or element}{face}>"
    space = f"#ttcore.memory_space<{layout.memory_space}>"
    return f"memref<{_dims(layout.tile_counts)}x{element}, {space}>"


def _read_grid_layout(reader: Reader) -> GridLayout:
    from gridlayout.document.grid_layout import GridLayout

    reader.expect("tensor")
    reader.expect("<")
    shape = reader.dims_before_element()
    element = reader.element()
    reader.expect(",")
    reader.expect("#ttcore.metal_layout")
    reader.expect("<")
    linear = read_map(reader)
    reader.expect(",")
    oob = read_oob_word(reader)
    reader.expect(",")
    reader.expect("<")
    grid = reader.dims()
    reader.expect(">")
    reader.expect(",")
    reader.skip()
    at = reader.at
    memref = _read_memref(reader, element)
    reader.expect(">")
    reader.expect(">")
    reader.end()
    counts = memref.pop("counts")
    try:
        layout = GridLayout(
            shape, dtypes.FROM_MLIR[element], grid, linear=linear, oob=oob, **memref
        )
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if counts != layout.tile_counts:
        reader.fail(
            f"memref {_dims(counts)} does not follow from the shape, the map and the grid: "
            f"{_dims(layout.tile_counts)} does, as {_memref(layout)}",
            at,
        )
    return layout


def read_map(reader: Reader) -> AffineMap:
    """The affine map: `(...) -> (...)` up to the parenthesis that closes its results."""
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
        # Blanks in front keep the columns of the map's own errors true.
        return AffineMap.parse(" " * start + reader.text[start : reader.at])
    except LayoutError as error:
        raise LayoutError(f"in the affine map: {error}") from None


def read_oob_word(reader: Reader) -> dtypes.Scalar | None:
    """What is known of the padding: one of the document's words, or a number."""
    reader.skip()
    at = reader.at
    word = reader.match(r"[-+.A-Za-z0-9()]+", f"one of {', '.join(dtypes.OOB_NAMES)}, or a number")
    if word in dtypes.OOB_NAMES:
        return dtypes.OOB_NAMES[word]
    for kind in (int, float, complex):
        try:
            return dtypes.NAN if word == "nan" else kind(word)
        except ValueError:
            continue
    reader.fail(f"{word!r} is not one of {', '.join(dtypes.OOB_NAMES)}, nor a number", at)


def _read_memref(reader: Reader, element: str) -> dict[str, Any]:
    """The constructor arguments that a memref states, and its shape as `counts`."""
    found: dict[str, Any] = {}
    reader.expect("memref")
    reader.expect("<")
    found["counts"] = reader.dims_before_element()
    at = reader.at
    if reader.take("!ttcore.tile"):
        reader.expect("<")
        found["tile"] = reader.dims()
        reader.expect(",")
        reader.skip()
        at = reader.at
        name = reader.element(also=tuple(dtypes.BLOCK_FORMATS))
        if name in dtypes.BLOCK_FORMATS:
            found["tile_format"], name = name, element
        if reader.take(","):
            reader.expect("face")
            reader.expect("<")
            found["face"] = reader.dims()
            reader.expect(">")
        reader.expect(">")
    else:
        name = reader.element()
    if name != element:
        reader.fail(f"the memref holds {name}, but the tensor {element}: they must agree", at)
    reader.expect(",")
    reader.expect("#ttcore.memory_space")
    reader.expect("<")
    found["memory_space"] = reader.match(r"[A-Za-z0-9_]+", "a memory space")
    reader.expect(">")
    reader.expect(">")
    return found
