"""A value's type in a compiled TTNN program: `tensor<53x63xf32, #ttnn_layout>` as a layout.

The layout is what `gl.parse` reads of the same text, aliases written out: one grammar reads both
(`ttnn_layout_text.py`). Beyond it, values of a program have types without a layout and elements of
block formats, and their layouts say what says nothing of places (`mesh`, `exactGrid`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout
from gridlayout.tenstorrent.ttnn_layout_text import dtype_of, read_element, read_layout

_ALIAS = re.compile(r"[#!][A-Za-z_][\w$.-]*")
_MOST = 1 << 16  # characters of a type, its aliases written out
_DEPTH = 16  # aliases of aliases


@dataclass(frozen=True)
class TensorType:
    """Shape, element type and layout of a value; the layout is None where the type states none."""

    shape: Shape
    dtype: Any
    layout: TtnnLayout | None
    tile_format: str | None = None


def read_tensor_type(text: str, resolved: Callable[[str], str] = str) -> TensorType:
    """The type that a text states. resolved: what an alias stands for, by its name.

    Interleaved tensors are one plane of pages, grid 1x1: a grid that they state is that of the
    workers whose banks have the pages, `layout.workers`, and stands in L1 only. Where a sharded
    layout states no cores, as tt-mlir's earlier texts, it has those that `ttnn` gives it.

    `LayoutError` for what is no tensor, and where the parts of a layout disagree. Its columns are
    those of the text with aliases written out.

    >>> found = read_tensor_type(
    ...     "tensor<53x63xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x"
    ...     "!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <height_sharded>>>")
    >>> found.layout.grid, found.layout.tile, found.layout.buffer_type
    ((2, 1), (32, 32), 'l1')
    >>> read_tensor_type("tensor<2x3xsi32>")
    TensorType(shape=(2, 3), dtype=dtype('int32'), layout=None, tile_format=None)
    """
    reader = Reader(_written_out(text, resolved))
    for word in ("tensor", "<"):
        reader.expect(word)
    shape = reader.dims_before_element()
    element = read_element(reader)
    layout = None
    if reader.take(","):
        reader.skip()
        if not reader.peek("#ttnn.ttnn_layout"):
            stated = reader.text[reader.at :][:40]
            reader.fail(f"the type is laid out by {stated!r}; a #ttnn.ttnn_layout is read")
        layout = read_layout(reader, shape, element, compiled=True)
    reader.expect(">", ": one encoding is read")
    reader.end()
    tile_format = element if element in dtypes.BLOCK_FORMATS else None
    if layout is not None:
        tile_format = layout.tile_format or tile_format
    return TensorType(shape, dtypes.as_dtype(dtype_of(element)), layout, tile_format)


def _written_out(text: str, resolved: Callable[[str], str]) -> str:
    """The text with what its aliases stand for, and theirs."""
    for _ in range(_DEPTH):
        names = [name for name in _ALIAS.findall(text) if resolved(name) != name]
        if not names:
            return text
        if len(text) + sum(len(resolved(name)) for name in names) > _MOST:
            break
        text = _ALIAS.sub(lambda found: resolved(found[0]), text)
    raise LayoutError(
        f"type {text[:80]!r}: its aliases stand for each other, or for over {_MOST} characters"
    )
