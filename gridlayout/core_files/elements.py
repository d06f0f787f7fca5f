"""Reading of single elements at any offsets of cores' buffers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.core_bytes import TILE, Bytes, blocks, decoded_tiles, own_bits
from gridlayout.core_files.windows import Index
from gridlayout.layouts.layout import Layout

_TILES = 256  # tiles of a block format that are decoded at a time
_SPAN = 1 << 21  # numbers within this range are ranked by a table


def elements_at(data: Bytes, core: Index, offset: Index, layout: Layout) -> NDArray[Any]:
    """Return the elements at some offsets of cores' buffers.

    data: the concatenated bytes of the cores. core: core numbers. offset: offsets in elements of a
    core's buffer; these two broadcast together. Returns an array of their common shape and the
    layout's dtype. A bool is True if its byte is not 0.

    >>> from gridlayout import GridLayout, to_bytes
    >>> layout = GridLayout((2, 3), "int4", grid=(1, 2))
    >>> held = to_bytes([[1, 2, 3], [4, 5, -6]], layout).ravel()
    >>> elements_at(held, np.array([1, 1]), np.array([0, 2]), layout)
    array([3, -6], dtype=int4)
    """
    total, size = prod(layout.local_shape), layout.dtype.itemsize
    if layout.tile_format is not None:
        return _of_tiles(data, np.asarray(core * total + offset), layout)
    if layout.stored_bits == 8 * size and layout.bytes_per_core == total * size:
        fields = _words(data, np.asarray(core * total + offset), size)
    else:
        fields = _fields(data, core, np.asarray(offset), layout)
    return own_bits(fields, layout).view(layout.dtype)[..., 0]


def _words(data: Bytes, places: NDArray[np.int64], size: int) -> Bytes:
    """The bytes of the words of `size` bytes at some positions: (..., size)."""
    word = np.dtype(f"u{size}" if size <= 8 else f"c{size}")
    words = data[: data.size // size * size].view(word)
    return words[places][..., None].view(np.uint8)


def _fields(data: Bytes, core: Index, offset: NDArray[np.int64], layout: Layout) -> Bytes:
    """The bytes of elements that are not contiguous words: (..., size)."""
    size, first = layout.dtype.itemsize, layout.byte_of(0)
    found: Any = layout.byte_of(offset)  # type: ignore[arg-type]
    byte = core * layout.bytes_per_core + (found - first)
    if layout.stored_bits % 8 == 0 and not (byte % size).any():
        return _words(data, byte // size, size)
    fields = np.empty((*byte.shape, size), np.uint8)
    bit: Any = layout.bit_of(offset)  # type: ignore[arg-type]
    for k in range(size):
        fields[..., k] = data[byte + k]
        if layout.stored_bits % 8:  # an element may start inside a byte and end in the next
            above = data[np.minimum(byte + k + 1, data.size - 1)].astype(np.uint16) << 8
            fields[..., k] = (above | fields[..., k]) >> bit & 0xFF
    # Elements of less than a byte are followed by others in it.
    return fields & np.uint8((1 << min(layout.stored_bits, 8)) - 1)


def _of_tiles(data: Bytes, places: NDArray[np.int64], layout: Layout) -> NDArray[Any]:
    out = np.empty(places.shape, layout.dtype)
    tile, inside = places // TILE, places % TILE
    used, which = ranked(tile)
    encoded = blocks(data[None], layout)[0]
    for first in range(0, used.size, _TILES):
        some = used[first : first + _TILES]
        held = decoded_tiles(encoded[some][None], layout).reshape(len(some), TILE)
        here: Any = ...
        if used.size > _TILES:
            here = (which >= first) & (which < first + _TILES)
        out[here] = held[which[here] - first, inside[here]]
    return out


def ranked(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers, ascending, and the position of each number among them.

    >>> ranked(np.array([[7, 3], [7, 9]]))
    (array([3, 7, 9]), array([[1, 0], [1, 2]]))
    """
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span > _SPAN:
        used, which = np.unique(numbers, return_inverse=True)
        return used, which.reshape(numbers.shape)
    table = np.zeros(span, np.int64)
    table[numbers - low] = 1
    found = np.flatnonzero(table)
    table[found] = np.arange(found.size)
    return found + low, table[numbers - low]
