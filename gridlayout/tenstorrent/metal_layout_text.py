"""Parser of the current `metal_layout`: a tensor type with the device shape, and its attribute.

`tensor<6x1x32x32xf32, #ttcore.metal_layout<logical_shape = 3x43x7, dim_alignments = 1x32x32,
collapsed_intervals = dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>, l1, sharded>>`. The type contains
grid and shard. This library adds two parts that the type lacks: `, oob = zero` after the last word,
and the dtype of the arrays for a block format, `!ttcore.tile<32x32, bfp_bf8, f32>`, if it is not
bf16.
"""

from __future__ import annotations

from typing import Any

from gridlayout import dtypes
from gridlayout.document.text import read_oob_word
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.tenstorrent.metal_layout import MetalLayout


def read_metal(reader: Reader) -> MetalLayout:
    """Read a `metal_layout` type; `LayoutError` if type and attribute contradict each other."""
    reader.expect("tensor", "<")
    at = reader.here()
    device = reader.dims_before_element()
    found = _read_element(reader)
    reader.expect(",", "#ttcore.metal_layout", "<", "logical_shape", "=")
    shape = _read_dims(reader)
    reader.expect(",", "dim_alignments", "=")
    found["dim_alignments"] = _read_dims(reader)
    reader.expect(",", "collapsed_intervals", "=")
    found["collapsed_intervals"] = _read_intervals(reader)
    reader.expect(",")
    found |= _read_words(reader)
    reader.expect(">", ">")
    reader.end()
    if len(device) % 2 or not device:
        reader.fail(
            f"the device shape {dims_text(device)} must be a grid and a shard of one rank", at
        )
    half = len(device) // 2
    try:
        layout = MetalLayout(shape, grid=device[:half], **found)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if layout.shard_shape != device[half:]:
        reader.fail(
            f"shard {dims_text(device[half:])} does not follow from the logical shape, the "
            f"alignments and the grid {dims_text(layout.grid)}, which give "
            f"{dims_text(layout.shard_shape)}; the aligned shape is "
            f"{dims_text(layout.aligned_shape)}",
            at,
        )
    return layout


def _read_words(reader: Reader) -> dict[str, Any]:
    """Read `l1, sharded`, or the older form of the attribute, `undef, l1, index_map = map(0)`.

    The older form starts with the padding's value, may omit `sharded`, and ends with an index map.
    Only the empty map is accepted; any other makes a view, which is not a layout.
    """
    found: dict[str, Any] = {}
    word = reader.word("a memory space")
    earlier = word in dtypes.OOB_NAMES
    if earlier:
        found["oob"] = dtypes.OOB_NAMES[word]
        reader.expect(",")
        word = reader.word("a memory space")
    found["memory_space"] = word
    if not earlier:
        reader.expect(",")
        found["memory_layout"] = reader.word("a memory layout")
        return found | {"oob": read_oob(reader)}
    more = reader.take(",")
    if more and not reader.peek("index_map"):
        found["memory_layout"] = reader.word("a memory layout")
        more = reader.take(",")
    if more:
        reader.expect("index_map", "=")
        reader.expect("map(0)", what=", the empty map; a layout with another map is a view")
    return found


def read_oob(reader: Reader) -> dtypes.Scalar | None:
    """Read a padding value, `, oob = zero`; None if the text does not continue with it."""
    if not reader.take(","):
        return None
    reader.expect("oob", "=")
    return read_oob_word(reader)


def _read_dims(reader: Reader) -> tuple[int, ...]:
    if reader.take("["):
        reader.expect("]")
        return ()
    return reader.dims()


def _read_element(reader: Reader) -> dict[str, Any]:
    if not reader.take("!ttcore.tile"):
        return {"dtype": reader.element(also=tuple(dtypes.FROM_SIGNED))}
    reader.expect("<")
    found: dict[str, Any] = {"tile": reader.dims()}
    reader.expect(",")
    name = reader.element(also=(*dtypes.FROM_SIGNED, *dtypes.FROM_TILE, *dtypes.BLOCK_FORMATS))
    if name in dtypes.BLOCK_FORMATS:
        found["tile_format"], name = name, "bf16"
        if reader.take(","):
            name = reader.element()
    found["dtype"] = name
    reader.expect(">")
    return found


def _read_intervals(reader: Reader) -> list[tuple[int, int]]:
    """Read `dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>`, or `dense<> : tensor<0x2xi64>`."""
    reader.expect("dense", "<")
    found: list[tuple[int, int]] = []
    if reader.take("["):
        while True:
            reader.expect("[")
            start = _signed(reader)
            reader.expect(",")
            found.append((start, _signed(reader)))
            reader.expect("]", what=": an interval is a pair")
            if not reader.take(","):
                break
        reader.expect("]")
    reader.expect(">", ":", "tensor", "<")
    at = reader.here()
    counts = reader.dims_before_element()
    reader.expect("i64", ">")
    if counts != (len(found), 2):
        reader.fail(
            f"collapsed_intervals are {len(found)} pairs, tensor<{len(found)}x2xi64>, but the text "
            f"states {dims_text(counts)}",
            at,
        )
    return found


def _signed(reader: Reader) -> int:
    return -reader.number() if reader.take("-") else reader.number()
