"""`parse`: reads the text of any layout. `parse(str(layout)) == layout`; the same for `repr`.

The start of a text identifies its system; that system's module reads the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gridlayout.constructor import read_call, starts_call
from gridlayout.document.text import read_grid_layout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.reader import Reader
from gridlayout.public import public
from gridlayout.tenstorrent.metal_layout_text import read_metal
from gridlayout.tenstorrent.tt_metal_text import read_print, starts_print
from gridlayout.tenstorrent.ttnn_layout_text import read_ttnn
from gridlayout.xla.mosaic import read_memref, starts_memref
from gridlayout.xla.text import read_type, starts_type

MAX_TEXT = 1 << 16
_OLD = re.compile(r"[#!]tt\.[a-z_]{1,40}")
# Characters that an error shows before and after the reported column.
_AROUND = 40


@public
def parse(text: str) -> Layout:
    """Return the layout that `text` describes.

    text: a compiler's type, a `TensorSpec(...)` or a tensor that TTNN prints, or a constructor call
    as `repr` prints it. `str` of the result is the canonical form of the text. A printed tensor
    does not state its memory config; its layout is that of an interleaved one.

    `LayoutError` names the column that does not parse and shows the text around it. If a memref
    contradicts the rest of its type, the error states the memref that the rest implies.

    >>> parse('tensor<8x300xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x2>, '
    ...       'memref<8x150xf32, #ttcore.memory_space<l1>>>>')
    GridLayout((8, 300), 'float32', grid=(1, 2))
    >>> parse("sophon.system((1, 2, 3, 4), 'float16')").strides
    (24, 12, 4, 1)
    """
    if not isinstance(text, str):
        raise LayoutError(f"column 1: a layout's text must be a str, not {type(text).__name__}")
    try:
        return _parsed(text)
    except LayoutError as error:
        if found := re.search(r"\bcolumn (\d+)", str(error)):  # errors of maps end with it
            error.add_note(_excerpt(text, int(found[1]) - 1))
        raise


def _excerpt(text: str, at: int) -> str:
    """Return the text around the position `at` on one line, and a line with a mark below it."""
    first = max(at - _AROUND, 0)
    shown = "".join(c if c.isprintable() else " " for c in text[first : at + _AROUND])
    return f"  {shown}\n  {' ' * (at - first)}^"


def _parsed(text: str) -> Layout:
    if len(text) > MAX_TEXT:
        raise LayoutError(
            f"column {MAX_TEXT}: the text has {len(text)} characters, over {MAX_TEXT}"
        )
    reader = Reader(text)
    if old := _OLD.search(text):
        reader.fail(
            f"{old[0]} is of an old dialect of tt-mlir, which since 2025 writes #ttcore. and "
            "!ttcore., with other fields: print the program with a current tt-mlir",
            old.start(),
        )
    if reader.peek("tensor"):
        return _reader_of(text)(reader)
    if starts_call(text):
        found = read_call(text)
        if not isinstance(found, Layout):
            reader.fail(f"{text.strip()[:48]!r} is not a layout")
        return found
    if starts_print(text):
        return read_print(reader)
    if starts_memref(text):
        return read_memref(reader)
    if starts_type(text):
        return read_type(reader)
    if reader.peek("Layout("):
        reader.fail("a gl.Layout built from steps belongs to no system and has no parsable text")
    reader.fail(
        "no known layout starts here; known: tensor<..., #ttcore.metal_layout<...>>, "
        "tensor<..., #ttnn.ttnn_layout<...>>, f32[3,5]{1,0:T(2,2)}, memref<..., #tpu.tiled<...>>, "
        "TTNN's TensorSpec(...), and constructor calls such as "
        "GridLayout(...) and sophon.local(...)"
    )


def _reader_of(text: str) -> Callable[[Reader], Layout]:
    """Return the reader of a tensor type; the start of its encoding tells three systems apart."""
    if "#ttnn.ttnn_layout" in text:
        return read_ttnn
    if re.search(r"#ttcore\.metal_layout\s*<\s*logical_shape", text):
        return read_metal
    return read_grid_layout
