"""The bytes of each core's buffer, in the form that a chip expects.

    to_bytes(x, layout)[where.core][where.byte]     where = layout.locate(index)

An element takes `layout.stored_bits` bits, starting at bit `where.bit` of this byte. Elements
smaller than a byte share bytes, the first in the low bits (`gridlayout.layouts.bits`). Block
formats are encoded by `gridlayout.tenstorrent.bfp`. Everything is computed by NumPy on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.arguments import in_short
from gridlayout.errors import LayoutError
from gridlayout.layouts.bits import pack_bits, unpack_bits
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import pack_host, unpack_host
from gridlayout.public import public
from gridlayout.tenstorrent import bfp

Bytes = NDArray[np.uint8]
TILE = 32 * 32  # elements per tile of a block format


@public
def to_bytes(x: Any, layout: Layout) -> Bytes:
    """Return the bytes of each core's buffer.

    x: an array of `layout.shape` and `layout.dtype`, on the host or on devices, or nested lists of
    numbers, which an integer dtype must hold exactly. Returns a uint8 array of shape
    `layout.core_shape + (layout.bytes_per_core,)`. `held[core]` is the buffer of one core, and
    `bytes(held)` contains all buffers in order, if `held` is the result. For a layout without core
    dims, the result is the buffer.

    Element `index` is in `held[where.core]`, starting at byte `where.byte`, where `where` is
    `layout.locate(index)`. Its bytes are little-endian. (Sophon counts bytes from the start of the
    memory; there the buffer starts at byte `layout.byte_of(0)`, the tensor's start.) Two 4-bit
    elements share a byte, the first in the low nibble (`where.bit` is 0 or 4), as in MegEngine and
    XLA. A bool is a byte of 0 or 1. Tiles in a block format are encoded.

    Padding holds `layout.oob`, or 0 if that is undef. Bits that belong to no position are 0, such
    as the rest of a word wider than its element, of an aligned page, or of the last byte.

    `LayoutError`: another shape or dtype; a layout that sends two elements to one place; elements
    with more bits than XLA's E allows; values that a block format can't encode.

    >>> from gridlayout import megengine
    >>> layout = megengine.format((1, 64, 1, 1), "NCHW64", "int4")
    >>> held = to_bytes([[[[n % 8]] for n in range(64)]], layout)
    >>> held.shape, held[:4].tobytes().hex(), layout.locate((0, 1, 0, 0)).bit
    ((32,), '10325476', 4)
    """
    array = as_logical(x, layout)
    array = array.astype(layout.dtype, copy=False)  # native byte order
    held = pack_host(array, layout).reshape(layout.num_cores, prod(layout.local_shape))
    return encoded(held, layout).reshape(*layout.core_shape, layout.bytes_per_core)


@public
def from_bytes(data: Any, layout: Layout) -> NDArray[Any]:
    """Return the logical array of the bytes of cores; padding is ignored.

    data: the result of `to_bytes`, a uint8 array of shape `core_shape + (bytes_per_core,)`; or the
    concatenated bytes of all cores as `bytes`, `bytearray`, `memoryview` or a flat uint8 array.
    Returns a NumPy array of `layout.shape` and `layout.dtype`. A bool is True if its byte is not 0.
    `LayoutError` for another number of bytes.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((2, 3), "int4", grid=(1, 2))
    >>> held = to_bytes([[1, 2, 3], [4, 5, -6]], layout)
    >>> held.shape, bytes(held[0, 1]), from_bytes(bytes(held), layout).tolist()
    ((1, 2, 2), b'\\x03\\n', [[1, 2, 3], [4, 5, -6]])
    """
    check_stored(layout)
    cores, elements = layout.num_cores, prod(layout.local_shape)
    held = _as_bytes(data, layout)
    if layout.tile_format is not None:
        physical = decoded_tiles(blocks(held, layout), layout)
    else:
        size = layout.dtype.itemsize
        fields = np.zeros((cores, elements, size), np.uint8)
        for run in _runs(layout, 0, elements):
            part = unpack_bits(run.of_bytes(held, 0), layout.stored_bits, run.count, size)
            run.of_elements(fields, 0)[...] = own_bits(part, layout)
        physical = fields.reshape(cores, elements * size).view(layout.dtype)
    return unpack_host(physical.reshape(layout.physical_shape), layout)


# -- the contents of a core's buffer -------------------------------------------------------------


def encoded(held: NDArray[Any], layout: Layout, first: int = 0) -> Bytes:
    """Return the bytes of consecutive elements of cores' buffers, starting at element `first`.

    held: the elements, (cores, count), in buffer order. `first` and the end must be at a byte
    boundary, and in a block format at a tile boundary. Returns (cores, bytes); a range up to the
    last element includes the bytes up to the end of the buffer.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((8,), "int4", grid=(1,))
    >>> encoded(np.array([[5, 6]], "int4"), layout, 4).tolist()
    [[101]]
    """
    cores, count = held.shape
    start = byte_at(layout, first)
    out = np.zeros((cores, byte_at(layout, first + count) - start), np.uint8)
    if layout.tile_format is not None:
        blocks(out, layout)[...] = bfp.encode(_as_tiles(held, layout), layout.tile_format)
        return out
    fields = np.ascontiguousarray(held).view(np.uint8).reshape(*held.shape, layout.dtype.itemsize)
    for run in _runs(layout, first, count):
        data = pack_bits(own_bits(run.of_elements(fields, first), layout), layout.stored_bits)
        run.of_bytes(out, start)[..., : data.shape[-1]] = data
    return out


def byte_at(layout: Layout, offset: int) -> int:
    """The byte of a core's buffer at which an element starts; the buffer's end after the last."""
    total = prod(layout.local_shape)
    if offset == total:
        return layout.bytes_per_core
    if layout.tile_format is not None:
        return offset * layout.bytes_per_core // total
    byte, first = layout.byte_of(offset), layout.byte_of(0)
    assert byte is not None
    assert first is not None
    return byte - first


@dataclass(frozen=True)
class _Run:
    """A run of pages in a core's buffer, with the same number of elements each.

    first, byte: the first element and its byte. pages: the number of pages. count: elements per
    page. pitch: bytes from one page to the next.
    """

    first: int
    pages: int
    count: int
    byte: int
    pitch: int

    def of_elements(self, fields: Bytes, first: int) -> Bytes:
        """A view (cores, pages, count, size) of the run in `fields` (cores, elements, size).

        first: the first element in `fields`.
        """
        at = self.first - first
        part = fields[:, at : at + self.pages * self.count]
        return part.reshape(len(fields), self.pages, self.count, fields.shape[-1])

    def of_bytes(self, held: Bytes, start: int) -> Bytes:
        """A view (cores, pages, pitch) of the run in the bytes `held` (cores, bytes).

        start: the first byte in `held`.
        """
        at = self.byte - start
        part = held[:, at : at + self.pages * self.pitch]
        return part.reshape(len(held), self.pages, self.pitch)


def _runs(layout: Layout, first: int, count: int) -> Iterator[_Run]:
    """Divide `count` elements from `first` on into a partial page, full pages and the rest."""
    page, last = layout.page_elements, first + count
    while first < last:
        inside = first % page
        pages = 1 if inside else max((last - first) // page, 1)
        each = min(page - inside, last - first)
        byte, end = byte_at(layout, first), byte_at(layout, first + pages * each)
        yield _Run(first, pages, each, byte, (end - byte) // pages)
        first += pages * each


def own_bits(fields: Bytes, layout: Layout) -> Bytes:
    """Little-endian elements with all bits cleared that are not part of their value."""
    bits = _value_bits(layout)
    if layout.dtype == np.bool_:
        return (fields != 0).astype(np.uint8)
    return fields & np.uint8((1 << bits) - 1) if bits < 8 else fields


def _value_bits(layout: Layout) -> int:
    return 1 if layout.dtype == np.bool_ else dtypes.bits(layout.dtype)


# -- block formats -----------------------------------------------------------------------------


def blocks(held: Bytes, layout: Layout) -> Bytes:
    """A view (cores, tiles, bytes) of the bytes of full tiles, without alignment bytes."""
    cores, size = held.shape
    pitch = tile_pitch(layout)
    tiles = held.reshape(cores, size // pitch, pitch)
    return tiles[..., : dtypes.BLOCK_FORMATS[str(layout.tile_format)]]


def tile_pitch(layout: Layout) -> int:
    """Bytes from one tile in a block format to the next."""
    tiles = prod(layout.local_shape) // TILE
    block = dtypes.BLOCK_FORMATS[str(layout.tile_format)]
    return layout.bytes_per_core // tiles if tiles else block


def _as_tiles(held: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """The cores' elements as row-major tiles, (cores, tiles, 32, 32).

    A block format has its own 16x16 faces, which do not depend on the layout's faces.
    """
    cores, elements = held.shape
    shape = (cores, elements // TILE, 32, 32)
    if layout.local_shape[-2:] == (32, 32):
        return held.reshape(shape)
    by_face = held.reshape(*shape[:2], *layout.local_shape[-4:])
    return by_face.swapaxes(-3, -2).reshape(shape)


def decoded_tiles(encoded: Bytes, layout: Layout) -> NDArray[Any]:
    """Decode tiles (cores, tiles, bytes) to elements in the order of the cores' buffers."""
    tiles = bfp.decode(encoded, str(layout.tile_format))
    inside = layout.local_shape[-2:]
    if inside != (32, 32):
        down, across = 32 // inside[0], 32 // inside[1]
        tiles = tiles.reshape(*tiles.shape[:2], down, inside[0], across, inside[1])
        tiles = tiles.swapaxes(-3, -2)
    return tiles.astype(layout.dtype)


# -- arguments ---------------------------------------------------------------------------------


def check_stored(layout: Any) -> None:
    """Raise `LayoutError` unless it is a layout that stores all bits of its elements."""
    if not isinstance(layout, Layout):
        raise LayoutError(
            f"layout must be a gl.Layout, such as gl.GridLayout(...), not {type(layout).__name__}"
        )
    if layout.stored_bits < _value_bits(layout):
        raise LayoutError(
            f"{layout}: an element takes {layout.stored_bits} bits, but {layout.dtype.name} has "
            f"{_value_bits(layout)}; convert to a type of fewer bits, or increase E"
        )


def as_logical(x: Any, layout: Layout) -> NDArray[Any]:
    """Return `x` as a NumPy array of the layout's shape and dtype, in any byte order.

    `LayoutError` if that is not possible, and for a layout that is not invertible.
    """
    check_stored(layout)
    if not hasattr(x, "dtype"):
        x = dtypes.untyped(x, layout.dtype)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise LayoutError(
            f"the array is not {layout.dtype.name}{list(layout.shape)}: {error}"
        ) from None
    dtype = dtypes.as_dtype(array.dtype)
    if dtype != layout.dtype:
        raise LayoutError(
            f"the array is {dtype.name}, but the layout is {layout.dtype.name}: "
            f"convert one, e.g. x.astype({layout.dtype.name!r})"
        )
    if array.shape != layout.shape:
        raise LayoutError(f"the array has shape {array.shape}, but {layout!r} has {layout.shape}")
    layout.check_invertible()
    return array


def _as_bytes(data: Any, layout: Layout) -> Bytes:
    """Return the bytes of each core, (cores, bytes); LayoutError for another shape or dtype."""
    shape = (*layout.core_shape, layout.bytes_per_core)
    is_buffer = isinstance(data, (bytes, bytearray, memoryview))
    try:
        held = np.frombuffer(bytes(data), np.uint8) if is_buffer else np.asarray(data)
    except (TypeError, ValueError) as error:
        raise LayoutError(
            f"{in_short(data)} must be an array of uint8, or bytes: {error}"
        ) from None
    if held.dtype != np.uint8:
        raise LayoutError(f"data of dtype {held.dtype.name} must be uint8, or bytes")
    if held.shape not in (shape, (prod(shape),)):
        raise LayoutError(
            f"data of shape {held.shape} must be of shape {shape}, or {prod(shape)} consecutive "
            f"bytes, for {layout!r}"
        )
    return np.ascontiguousarray(held).reshape(layout.num_cores, shape[-1])
