"""Elements of a core's buffer, read from its bytes one by one, wherever they are."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.images import TILE, Bytes, blocks, decoded_tiles, own_bits
from gridlayout.layouts.layout import Layout

_TILES = 256  # in a block format, decoded at once


def elements_at(data: Bytes, places: NDArray[np.int64], layout: Layout) -> NDArray[Any]:
    """The elements at some places of the buffers of cores, which lie one after another.

    data: the bytes of all these cores. places: core * elements of a core + offset in its buffer.
    Returns an array of their shape and the layout's dtype; a bool is True where its byte is not 0.

    >>> from gridlayout import GridLayout, image
    >>> layout = GridLayout((2, 3), "int4", grid=(1, 2))
    >>> elements_at(image([[1, 2, 3], [4, 5, -6]], layout).ravel(), np.array([4, 5, 6]), layout)
    array([3, 0, -6], dtype=int4)
    """
    if layout.tile_format is not None:
        return _of_tiles(data, places, layout)
    size, total = layout.dtype.itemsize, prod(layout.local_shape)
    if layout.stored_bits == 8 * size and layout.bytes_per_core == total * size:
        word = np.dtype(f"u{size}") if size <= 8 else layout.dtype
        fields = data.view(word)[places][..., None].view(np.uint8)
    else:
        fields = _fields(data, places, layout)
    return own_bits(fields, layout).view(layout.dtype)[..., 0]


def _fields(data: Bytes, places: NDArray[np.int64], layout: Layout) -> Bytes:
    """The bytes of elements that don't simply lie end to end: (..., size)."""
    core, offset = np.divmod(places, prod(layout.local_shape))
    first: Any = layout.byte_of(0)
    byte = layout.byte_of(offset) - first + core * layout.bytes_per_core  # type: ignore[arg-type]
    fields = np.empty((*places.shape, layout.dtype.itemsize), np.uint8)
    for k in range(layout.dtype.itemsize):
        fields[..., k] = data[byte + k]
        if layout.stored_bits % 8:  # it may begin inside of a byte, and end in the next one
            bit = layout.bit_of(offset)  # type: ignore[arg-type]
            above = data[np.minimum(byte + k + 1, data.size - 1)].astype(np.uint16) << 8
            fields[..., k] = (above | fields[..., k]) >> bit & 0xFF
    return fields


def _of_tiles(data: Bytes, places: NDArray[np.int64], layout: Layout) -> NDArray[Any]:
    out = np.empty(places.shape, layout.dtype)
    tile, inside = np.divmod(places, TILE)
    used, which = np.unique(tile, return_inverse=True)
    which = which.reshape(tile.shape)
    encoded = blocks(data[None], layout)[0]
    for first in range(0, used.size, _TILES):
        some = used[first : first + _TILES]
        held = decoded_tiles(encoded[some][None], layout).reshape(len(some), TILE)
        here = (which >= first) & (which < first + _TILES)
        out[here] = held[which[here] - first, inside[here]]
    return out
