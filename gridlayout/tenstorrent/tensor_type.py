"""Types of values in a compiled TTNN program, such as `tensor<53x63xf32, #ttnn_layout>`.

`gl.parse` reads the same text, with aliases resolved, as the same layout; both use one grammar
(`ttnn_layout_text.py`). In addition, values of a program may have types without a layout, and
layouts with words that do not affect the placement (`mesh`, `exactGrid`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.tenstorrent.quantized import Quantized, read_quantized
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout
from gridlayout.tenstorrent.ttnn_layout_text import dtype_of, read_element, read_layout


@dataclass(frozen=True)
class TensorType:
    """The shape, element type and layout of a value; the layout is None if the type has none.

    quantized: what the elements stand for; None for elements that are themselves.
    """

    shape: Shape
    dtype: Any
    layout: TtnnLayout | None
    tile_format: str | None = None
    quantized: Quantized | None = None


def read_tensor_type(text: str, strict: bool = True) -> TensorType:
    """Read a tensor type, whose aliases are written out. strict: as for `read_layout`.

    Interleaved tensors are one plane of pages with grid 1x1. A grid that they state, which is
    possible only in L1, is that of the workers whose banks have the pages, `layout.workers`. A
    sharded layout without core ranges, as in older texts of tt-mlir, has the default ranges of
    `ttnn`.

    `LayoutError` if the text is not a tensor, and if the parts of a layout contradict each other.

    >>> found = read_tensor_type(
    ...     "tensor<53x63xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x"
    ...     "!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>, <height_sharded>>>")
    >>> found.layout.grid, found.layout.tile, found.layout.buffer_type
    ((2, 1), (32, 32), 'l1')
    >>> read_tensor_type("tensor<2x3xsi32>")
    TensorType(shape=(2, 3), dtype=dtype('int32'), layout=None, tile_format=None, quantized=None)
    """
    reader = Reader(text)
    reader.expect("tensor", "<")
    shape = reader.dims_before_element()
    if reader.peek("!quant.uniform"):
        quantized = read_quantized(reader)
        reader.expect(">", what=", as quantized tensors have no layout")
        reader.end()
        return TensorType(shape, dtypes.as_dtype(quantized.dtype), None, None, quantized)
    element = read_element(reader)
    layout = None
    if reader.take(","):
        reader.skip()
        if not reader.peek("#ttnn.ttnn_layout"):
            stated = reader.text[reader.at :][:40]
            reader.fail(f"the encoding {stated!r} is not supported; expected #ttnn.ttnn_layout")
        layout = read_layout(reader, shape, element, compiled=True, strict=strict)
    reader.expect(">", what=" after one encoding")
    reader.end()
    tile_format = element.name if element.name in dtypes.BLOCK_FORMATS else None
    if layout is not None:
        tile_format = layout.tile_format or tile_format
    return TensorType(shape, dtypes.as_dtype(dtype_of(element.name)), layout, tile_format)


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
    return f"{layout.buffer_type} {kind} {dims_text(layout.grid)}"
