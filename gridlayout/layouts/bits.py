"""Packing of elements of any number of bits into bytes, the first element in the low bits.

Element k of `width` bits starts at bit `k * width`. Bit b is bit `b mod 8` of byte `b floordiv 8`,
counted from the lowest. This is the order of 4-bit elements in MegEngine, XLA and ONNX, and of
Tenstorrent's block formats. Elements of one or more bytes are therefore little-endian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def pack_bits(elements: Bytes, width: int) -> Bytes:
    """Pack elements into bytes: shape (..., count, size) to (..., ceil(count * width / 8)).

    elements: `size` bytes each, little-endian. The low `width` bits of each are packed; if `width`
    is larger than `8 * size`, the missing bits are 0. The last byte is filled up with 0 bits.

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
    """Unpack elements from bytes: shape (..., bytes) to (..., count, size); inverts `pack_bits`.

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
    """The array with its last dim cut, or extended with 0, to `last` numbers."""
    lead, have = array.shape[:-1], array.shape[-1]
    if have >= last:
        return array[..., :last]
    return np.concatenate([array, np.zeros((*lead, last - have), np.uint8)], axis=-1)
