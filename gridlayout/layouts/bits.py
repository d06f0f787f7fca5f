"""Elements of any number of bits, one after another in bytes: the first in the low bits.

That is the order of MegEngine's and XLA's 4-bit elements, of ONNX and of Tenstorrent's block
formats: element k of `width` bits begins at bit `k * width`, and bit b is bit `b mod 8` of byte
`b floordiv 8`, counted from the lowest. Elements of whole bytes are little-endian for that reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def pack_bits(elements: Bytes, width: int) -> Bytes:
    """Elements in bytes: shape (..., count, size) to (..., ceil(count * width / 8)).

    elements: `size` bytes each, the lowest first, of which the low `width` bits count; bits beyond
    these bytes are 0, and so are those that fill up the last byte.

    >>> [hex(byte) for byte in pack_bits(np.array([[1], [2], [15]], np.uint8), 4)]
    ['0x21', '0xf']
    """
    *lead, count, size = elements.shape
    if width % 8 == 0:
        return _resized(elements, width // 8).reshape(*lead, count * width // 8)
    if 8 % width or size != 1:
        bits = _resized(np.unpackbits(elements, axis=-1, bitorder="little"), width)
        return np.packbits(bits.reshape(*lead, count * width), axis=-1, bitorder="little")
    each = 8 // width
    out = np.zeros((*lead, -(-count // each)), np.uint8)
    for k in range(min(each, count)):
        part = (elements[..., k::each, 0] & np.uint8((1 << width) - 1)) << np.uint8(k * width)
        out[..., : part.shape[-1]] |= part
    return out


def unpack_bits(data: Bytes, width: int, count: int, size: int) -> Bytes:
    """The elements that bytes hold: shape (..., bytes) to (..., count, size), as `pack_bits` has them.

    >>> unpack_bits(np.array([0x21, 0x0F], np.uint8), 4, count=3, size=1).tolist()
    [[1], [2], [15]]
    """
    lead = data.shape[:-1]
    data = data[..., : -(-count * width // 8)]
    if width % 8 == 0:
        return _resized(data.reshape(*lead, count, width // 8), size)
    if 8 % width or size != 1:
        bits = np.unpackbits(data, axis=-1, count=count * width, bitorder="little")
        bits = _resized(bits.reshape(*lead, count, width), size * 8)
        return np.packbits(bits, axis=-1, bitorder="little")
    each = 8 // width
    out = np.zeros((*lead, count, 1), np.uint8)
    for k in range(min(each, count)):
        part = out[..., k::each, 0]
        part[...] = (data[..., : part.shape[-1]] >> np.uint8(k * width)) & ((1 << width) - 1)
    return out


def _resized(array: Bytes, last: int) -> Bytes:
    """The array with `last` numbers along its last dim: cut off, or 0 more."""
    lead, have = array.shape[:-1], array.shape[-1]
    if have >= last:
        return array[..., :last]
    return np.concatenate([array, np.zeros((*lead, last - have), np.uint8)], axis=-1)
