"""Block floating point: tiles whose elements share exponents in groups of 16 (bfp_bf8, bf4, bf2).

The 16 elements of a row of a face share one 8-bit exponent, which is the largest of their
exponents. Each element stores its sign and 7, 3 or 1 bits of magnitude, including the leading 1:

    value = magnitude * 2**(exponent - 127 - (bits - 1)),   0 <= magnitude < 2**bits

A 32x32 tile starts with 64 bytes of exponents, one for each row of each face, face by face. The
elements follow in the same order, 8, 4 or 2 bits each, the first in the low bits. A tile therefore
takes 1088, 576 or 320 bytes.

Rounding is that of tt-metal's packer. The 24-bit significand is shifted right to the shared
exponent, and the bits shifted out are dropped. The result is rounded to nearest, ties to even. A
magnitude that would need one more bit saturates. So with `step = 2**(exponent - 127 - (bits - 1))`

    |value - x| <= step / 2 + 2**(exponent - 150)   where |x| <= (2**bits - 1/2) * step,
    |value - x| <  step                             where saturated.

Zeros of either sign and subnormals become +0, because the chip flushes them. Infinities and NaN
have no encoding and are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import as_flag, one_of
from gridlayout.dtypes import BLOCK_FORMATS
from gridlayout.errors import LayoutError
from gridlayout.layouts.bits import pack_bits, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Bits of magnitude per element; the sign takes one more bit.
_BITS = {"bfp_bf8": 7, "bfp_bf4": 3, "bfp_bf2": 1}
_EXPONENTS, _GROUP = 64, 16
_TILE, _FACES = (32, 32), (2, 2, 16, 16)
# Types all of whose values are exact in float32.
_EXACT = ("float32", "float16", "bfloat16")


def encode(tiles: ArrayLike, tile_format: str) -> NDArray[np.uint8]:
    """Encode tiles: shape (..., 32, 32), or (..., 2, 2, 16, 16) by faces, to (..., bytes).

    tiles: float32, float16 or bfloat16. tile_format: "bfp_bf8", "bfp_bf4" or "bfp_bf2".

    `LayoutError`: another shape or type; infinities and NaN.

    >>> tile = np.zeros((32, 32), np.float32)
    >>> tile[0, :3] = 1.0, -0.75, 0.3
    >>> held = encode(tile, "bfp_bf8")
    >>> held.shape, held[:2].tolist(), held[64:68].tolist()
    ((1088,), [127, 0], [64, 176, 19, 0])
    """
    bits = _bits(tile_format)
    rows = _face_rows(_as_float32(tiles))
    pattern = rows.view(np.uint32)
    exponent = (pattern >> 23) & 0xFF
    if (exponent == 0xFF).any():
        raise LayoutError("tiles hold infinities or NaN, which block formats can't encode")
    shared = exponent.max(axis=-1, keepdims=True)
    significand = np.where(exponent > 0, (pattern & 0x7FFFFF) | 0x800000, 0)
    aligned: Any = significand >> np.minimum(shared - exponent, 31)
    magnitude = np.minimum(_nearest_even(aligned, 24 - bits), (1 << bits) - 1)
    sign = np.where(magnitude > 0, pattern >> 31, 0)
    elements = ((sign << bits) | magnitude).astype(np.uint8)
    lead = rows.shape[:-2]
    data = pack_bits(elements.reshape(*lead, _EXPONENTS * _GROUP, 1), bits + 1)
    return np.concatenate([shared[..., 0].astype(np.uint8), data], axis=-1)


def decode(data: ArrayLike, tile_format: str, *, faces: bool = False) -> NDArray[np.float32]:
    """Decode tiles: shape (..., bytes) to (..., 32, 32), or to (..., 2, 2, 16, 16) by faces.

    A row with exponent 0 is all zeros. `LayoutError`: data that is not uint8; a number of bytes
    that is not that of the format; an exponent of 255.

    >>> tile = np.full((32, 32), -3.0, np.float32)
    >>> bool((decode(encode(tile, "bfp_bf4"), "bfp_bf4") == tile).all())
    True
    """
    bits = _bits(tile_format)
    held = np.asarray(data)
    if held.dtype != np.uint8:
        raise LayoutError(f"data of dtype {held.dtype.name} must be uint8")
    if not held.ndim or held.shape[-1] != BLOCK_FORMATS[tile_format]:
        raise LayoutError(
            f"data of shape {held.shape} must end in the {BLOCK_FORMATS[tile_format]} bytes of a "
            f"{tile_format} tile"
        )
    shared = held[..., :_EXPONENTS, None].astype(np.int32)
    if (shared == 0xFF).any():
        raise LayoutError("data holds an exponent of 255, which is not that of a finite number")
    elements = unpack_bits(held[..., _EXPONENTS:], bits + 1, _EXPONENTS * _GROUP, 1).reshape(
        *held.shape[:-1], _EXPONENTS, _GROUP
    )
    magnitude = np.where(shared > 0, elements & ((1 << bits) - 1), 0).astype(np.float32)
    sign = np.where(((elements >> bits) > 0) & (magnitude > 0), np.float32(-1), np.float32(1))
    rows = np.ldexp(sign * magnitude, shared - (127 + bits - 1))
    by_face = rows.reshape(*held.shape[:-1], *_FACES)
    return (
        by_face
        if as_flag(faces, "faces")
        else by_face.swapaxes(-3, -2).reshape(*held.shape[:-1], *_TILE)
    )


def _bits(tile_format: Any) -> int:
    return _BITS[one_of(tile_format, _BITS, "tile_format")]


def _as_float32(tiles: ArrayLike) -> NDArray[np.float32]:
    found = np.asarray(tiles)
    if found.dtype.name not in _EXACT:
        raise LayoutError(
            f"tiles of dtype {found.dtype.name} must be one of {', '.join(_EXACT)}; other types "
            "would be rounded twice"
        )
    return np.asarray(found, np.float32)


def _face_rows(tiles: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows of the faces in memory order: shape (..., 64, 16)."""
    if tiles.shape[-2:] == _TILE:
        lead = tiles.shape[:-2]
        tiles = tiles.reshape(*lead, 2, 16, 2, 16).swapaxes(-3, -2)
    elif tiles.shape[-4:] == _FACES:
        lead = tiles.shape[:-4]
    else:
        raise LayoutError(
            f"tiles of shape {tiles.shape} must end in (32, 32), or by faces in (2, 2, 16, 16)"
        )
    return np.ascontiguousarray(tiles.reshape(*lead, _EXPONENTS, _GROUP))


def _nearest_even(values: NDArray[np.uint32], dropped: int) -> NDArray[np.uint32]:
    """The values shifted right by `dropped` bits, rounded to nearest, ties to even."""
    odd = (values >> np.uint32(dropped)) & np.uint32(1)
    half_less = np.uint32((1 << (dropped - 1)) - 1)
    return (values + half_less + odd) >> np.uint32(dropped)
