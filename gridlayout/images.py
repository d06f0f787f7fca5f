"""Images: the bytes of each core's buffer, as they are handed to the chip, and back.

    image(x, layout)[where.core][where.byte]     where = layout.locate(index)

An element takes `layout.stored_bits` from bit `where.bit` of that byte on; elements of less than a
byte share it, the first in the low bits (`gridlayout.layouts.bits`). In a block format the bytes
are those of `gridlayout.tenstorrent.bfp`. NumPy does it all, on the host.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.layouts.bits import joined, parted
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import pack_host, unpack_host
from gridlayout.tenstorrent import bfp

Bytes = NDArray[np.uint8]
_TILE = 32 * 32  # elements of a tile in a block format


def image(x: Any, layout: Layout) -> Bytes:
    """The bytes of each core's buffer, for the chip.

    x: an array of `layout.shape` and `layout.dtype`, on the host or on devices; nested lists take
    the dtype. Returns a uint8 array of shape `layout.core_shape + (layout.bytes_per_core,)`:
    `image[core]` is one core's, and `bytes(image)` all of them in order; without dims of cores it
    is the buffer itself.

    Element `index` lies in `image[where.core]` from `where.byte` on, where `where` is
    `layout.locate(index)`; its bytes are little-endian. (Sophon counts bytes from the start of the
    memory: there the image begins at byte `layout.byte_of(0)`, the tensor's start.) Two 4-bit
    elements share a byte, the first in the low nibble (`where.bit` is 0 or 4), as MegEngine and XLA
    pack them; bools take a byte of 0 or 1. Tiles in a block format are encoded.

    Padding holds `layout.oob`, or 0 where that is undef. What is no element's place is 0: the rest
    of a word wider than its element, of an aligned page, of the last byte.

    `LayoutError`: another shape or dtype; a layout that puts two elements in one place; elements
    that have more bits than XLA's E gives them; values that a block format can't encode.

    >>> from gridlayout import megengine
    >>> layout = megengine.format((1, 64, 1, 1), "NCHW64", "int4")
    >>> held = image([[[[n % 8]] for n in range(64)]], layout)
    >>> held.shape, held[:4].tobytes().hex(), layout.locate((0, 1, 0, 0)).bit
    ((32,), '10325476', 4)
    """
    _check(layout)
    array = _as_logical(x, layout)
    layout.check_invertible()
    cores, elements = layout.num_cores, prod(layout.local_shape)
    held = pack_host(array, layout).reshape(cores, elements)
    out = np.zeros((cores, layout.bytes_per_core), np.uint8)
    if layout.tile_format is not None:
        _blocks(out, layout)[...] = bfp.encode(_as_tiles(held, layout), layout.tile_format)
    else:
        fields = held.view(np.uint8).reshape(cores, elements, layout.dtype.itemsize)
        for first, count, byte in _runs(layout):
            data = joined(_own_bits(fields[:, first : first + count], layout), layout.stored_bits)
            out[:, byte : byte + data.shape[-1]] = data
    return out.reshape(*layout.core_shape, layout.bytes_per_core)


def from_image(data: Any, layout: Layout) -> NDArray[Any]:
    """The logical array that the bytes of each core hold, whatever their padding is.

    data: as `image` returns it, a uint8 array of shape `core_shape + (bytes_per_core,)`; or the
    bytes of all cores one after another, as `bytes`, `bytearray`, `memoryview` or a flat uint8
    array. Returns a NumPy array of `layout.shape` and `layout.dtype`. A bool is True where its byte
    is not 0. `LayoutError` for another number of bytes.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((2, 3), "int4", grid=(1, 2))
    >>> held = image([[1, 2, 3], [4, 5, -6]], layout)
    >>> held.shape, bytes(held[0, 1]), from_image(bytes(held), layout).tolist()
    ((1, 2, 2), b'\\x03\\n', [[1, 2, 3], [4, 5, -6]])
    """
    _check(layout)
    cores, elements = layout.num_cores, prod(layout.local_shape)
    held = _as_bytes(data, layout)
    if layout.tile_format is not None:
        physical = _from_tiles(bfp.decode(_blocks(held, layout), layout.tile_format), layout)
    else:
        size = layout.dtype.itemsize
        fields = np.zeros((cores, elements, size), np.uint8)
        for first, count, byte in _runs(layout):
            part = parted(held[:, byte:], layout.stored_bits, count, size)
            fields[:, first : first + count] = _own_bits(part, layout)
        physical = fields.reshape(cores, elements * size).view(layout.dtype)
    return unpack_host(physical.reshape(layout.physical_shape), layout)


def _runs(layout: Layout) -> Iterator[tuple[int, int, int]]:
    """What lies side by side in a core's buffer: the first element, how many, the first byte.

    One run where nothing is aligned, else one a page.
    """
    total, bits = prod(layout.local_shape), layout.stored_bits

    def gap(first: int, count: int) -> bool:
        """Whether elements from `first` on span more bits than `count` of them have."""
        return _place(layout, first + count - 1) - _place(layout, first) > (count - 1) * bits

    first, count = 0, total
    while first < total:
        if gap(first, min(count, total - first)):
            count = bisect_left(range(1, total - first), True, key=lambda n: gap(first, n + 1)) + 1
        count = min(count, total - first)
        yield first, count, (_place(layout, first) - _place(layout, 0)) // 8
        first += count


def _place(layout: Layout, offset: int) -> int:
    """The first bit of an element of a core's buffer, counted as `Location.byte` is."""
    byte, bit = layout.byte_of(offset), layout.bit_of(offset)
    assert byte is not None
    assert bit is not None
    return byte * 8 + bit


def _own_bits(fields: Bytes, layout: Layout) -> Bytes:
    """Elements, the lowest byte first, without bits that say nothing of their value."""
    bits = _value_bits(layout)
    if layout.dtype == np.bool_:
        return (fields != 0).astype(np.uint8)
    return fields & np.uint8((1 << bits) - 1) if bits < 8 else fields


def _value_bits(layout: Layout) -> int:
    return 1 if layout.dtype == np.bool_ else dtypes.bits(layout.dtype)


# -- block formats -----------------------------------------------------------------------------


def _blocks(held: Bytes, layout: Layout) -> Bytes:
    """The cores' bytes by tile, without those that align it: a view, (cores, tiles, bytes)."""
    cores, size = held.shape
    tiles, block = prod(layout.local_shape) // _TILE, dtypes.BLOCK_FORMATS[str(layout.tile_format)]
    return held.reshape(cores, tiles, size // tiles if tiles else block)[..., :block]


def _as_tiles(held: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """The cores' elements by tile, (cores, tiles, 32, 32): its rows and columns.

    A block format has 16x16 faces of its own, whatever blocks the layout has.
    """
    cores, elements = held.shape
    whole = (cores, elements // _TILE, 32, 32)
    if layout.local_shape[-2:] == (32, 32):
        return held.reshape(whole)
    by_face = held.reshape(*whole[:2], *layout.local_shape[-4:])
    return by_face.swapaxes(-3, -2).reshape(whole)


def _from_tiles(tiles: NDArray[np.float32], layout: Layout) -> NDArray[Any]:
    """The cores' elements in the order of their buffers, from tiles as `_as_tiles` has them."""
    inside = layout.local_shape[-2:]
    if inside != (32, 32):
        down, across = 32 // inside[0], 32 // inside[1]
        tiles = tiles.reshape(*tiles.shape[:2], down, inside[0], across, inside[1])
        tiles = tiles.swapaxes(-3, -2)
    return tiles.astype(layout.dtype)


# -- arguments ---------------------------------------------------------------------------------


def _check(layout: Any) -> None:
    if not isinstance(layout, Layout):
        raise LayoutError(
            f"layout must be a gl.Layout, such as gl.GridLayout(...), not {type(layout).__name__}"
        )
    if layout.stored_bits < _value_bits(layout):
        raise LayoutError(
            f"{layout}: an element takes {layout.stored_bits} bits, but {layout.dtype.name} has "
            f"{_value_bits(layout)}; convert to a type of fewer bits, or give E as many"
        )


def _as_logical(x: Any, layout: Layout) -> NDArray[Any]:
    """`x` as a NumPy array of the layout's shape and dtype, or `LayoutError`."""
    try:
        array = np.asarray(x) if hasattr(x, "dtype") else np.asarray(x, layout.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise LayoutError(
            f"the array is no {layout.dtype.name}{list(layout.shape)}: {error}"
        ) from None
    array = array.astype(dtypes.as_dtype(array.dtype), copy=False)  # native byte order
    if array.dtype != layout.dtype:
        raise LayoutError(
            f"the array is {array.dtype.name}, but the layout {layout.dtype.name}: "
            f"convert one, e.g. x.astype({layout.dtype.name!r})"
        )
    if array.shape != layout.shape:
        raise LayoutError(f"the array has shape {array.shape}, but {layout!r} has {layout.shape}")
    return array


def _as_bytes(data: Any, layout: Layout) -> Bytes:
    """The bytes of each core, (cores, bytes), or `LayoutError`."""
    shape = (*layout.core_shape, layout.bytes_per_core)
    is_buffer = isinstance(data, (bytes, bytearray, memoryview))
    held = np.frombuffer(bytes(data), np.uint8) if is_buffer else np.asarray(data)
    if held.dtype != np.uint8:
        raise LayoutError(f"data of dtype {held.dtype.name} must be uint8, or bytes")
    if held.shape not in (shape, (prod(shape),)):
        raise LayoutError(
            f"data of shape {held.shape} must be {shape}, or {prod(shape)} bytes one after "
            f"another, for {layout!r}"
        )
    return np.ascontiguousarray(held).reshape(layout.num_cores, shape[-1])
