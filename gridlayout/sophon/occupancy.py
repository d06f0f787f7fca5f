"""Occupancy: the bytes of local memory that tensors hold, overlaps, and reuse of gaps.

The results are exact, but elements are not enumerated: a tensor's allocation in one NPU is a mask
of bytes, and each dim of the tensor repeats the mask of its inner dims at its stride. Most
neighbouring NPUs hold the same rows of channels, so only one NPU per run of equal rows is examined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from gridlayout import dtypes
from gridlayout.caching import array_bytes, cached
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.sophon.local_memory import LocalLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

# A mask takes one byte per byte of memory. This limit is far above any chip.
MAX_NPU_BYTES = 2**26

# (first channel row, last channel row, columns): the features in one NPU.
_Rows = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Overlap:
    """The first byte that two tensors share, `byte` of NPU `npu`, and the index of each there.

    An index is None if the byte is a dummy element of 4N, 2N or 2IC storage.
    """

    npu: int
    byte: int
    first: tuple[int, ...] | None
    second: tuple[int, ...] | None


@dataclass(frozen=True)
class Reuse:
    """The first byte of a tensor in an empty block of another: `byte` of NPU `npu`.

    index: the index of the tensor's element there, None for a dummy element.
    """

    npu: int
    byte: int
    index: tuple[int, ...] | None


@public
def overlap(first: LocalLayout, second: LocalLayout) -> Overlap | None:
    """Return the first byte that two tensors of one chip share, or None.

    Dummy elements of a storage mode count, because a write writes them. Empty blocks between
    features do not count; `reuse` finds tensors in those.

    `LayoutError`: different chips; other layouts; a tensor that does not fit in local memory.

    >>> from gridlayout import sophon
    >>> x = sophon.local((2, 3, 4, 5), "float32")
    >>> print(overlap(x, sophon.local((2, 3, 4, 5), "float32", "compact", start=80)))
    Overlap(npu=0, byte=128, first=(1, 0, 0, 0), second=(0, 0, 2, 2))
    >>> print(overlap(x, sophon.local((1, 3, 3, 4), "float32", "compact", start=80)))
    None
    """
    check_tensors((first, second))
    found = _first_byte(first, second, lambda a, b: a & b)
    if found is None:
        return None
    return Overlap(*found, held_at(first, *found), held_at(second, *found))


@public
def reuse(tensor: LocalLayout, other: LocalLayout) -> Reuse | None:
    """Return the first byte of another tensor in an empty block of this tensor, or None.

    Empty blocks are the bytes of a tensor's allocation, in every NPU, that hold none of its
    elements: between features, after them, and in NPUs without features. A kernel that works on the
    tensor with all NPUs in parallel may write them: "Try not to reuse the empty blocks" (Sophon,
    "Scatter Features to Different NPUs"). `LayoutError` as for `overlap`.

    >>> from gridlayout import sophon
    >>> x = sophon.local((2, 3, 4, 5), "float32")
    >>> print(reuse(x, sophon.local((1, 3, 3, 4), "float32", "compact", start=80)))
    Reuse(npu=0, byte=80, index=(0, 0, 0, 0))
    >>> print(reuse(x, sophon.local((1, 3, 3, 4), "float32", "compact", start=256)))
    None
    """
    check_tensors((tensor, other))
    found = _first_byte(tensor, other, lambda a, b: b & ~a)
    return None if found is None else Reuse(*found, held_at(other, *found))


def check_tensors(layouts: Sequence[LocalLayout]) -> None:
    """Raise `LayoutError` unless all are tensors in the local memory of one chip and fit."""
    chip = None
    for layout in layouts:
        if not isinstance(layout, LocalLayout):
            raise LayoutError(f"{layout!r} is not a tensor in Sophon local memory")
        chip = chip or layout.chip
        if layout.chip != chip:
            raise LayoutError(f"tensors on {chip} and on {layout.chip} share no memory")
    for layout in layouts:
        if not (fit := layout.fits()):
            raise LayoutError(f"{layout} {fit}")
    if chip is not None and chip.npu_bytes > MAX_NPU_BYTES:
        raise LayoutError(
            f"npu_bytes {chip.npu_bytes} is over {MAX_NPU_BYTES} B, the limit for comparisons"
        )


def _first_byte(
    first: LocalLayout, second: LocalLayout, matches: Callable[[Mask, Mask], Mask]
) -> tuple[int, int] | None:
    """The first (NPU, byte) of both allocations where `matches` of the masks is True, or None."""
    two = (first, second)
    low = max(x.offset for x in two)
    high = min(x.offset + x.bytes_per_core for x in two)
    if low >= high:
        return None
    for npu, _ in runs(two):
        found = matches(*(held(x, npu)[low - x.offset : high - x.offset] for x in two))
        if found.any():
            return npu, low + int(found.argmax())
    return None


def runs(layouts: Sequence[LocalLayout]) -> list[tuple[int, int]]:
    """Runs (first, end) of NPUs that hold the same rows of channels of these tensors.

    >>> from gridlayout import sophon
    >>> runs([sophon.local((1, 66, 1, 1), "int8")])
    [(0, 1), (1, 2), (2, 64)]
    """
    starts, npus = {0}, 1
    for layout in layouts:
        npus = layout.chip.npus
        last = (layout.start_npu + layout.view_shape[1] - 1) % npus
        starts |= {layout.start_npu, last, (last + 1) % npus}
    return list(pairwise([*sorted(starts), npus]))


def held(layout: LocalLayout, npu: int) -> Mask:
    """A mask of the bytes of a tensor's allocation that hold elements or dummies in an NPU."""
    return _held(layout, _rows(layout, npu))


@cached(size=array_bytes)
def _held(layout: LocalLayout, rows: _Rows) -> Mask:
    mask = np.zeros(layout.bytes_per_core, bool)
    groups, _, height, _ = layout.view_shape
    n_stride, c_stride, h_stride, w_stride = layout.strides
    bits = dtypes.bits(layout.dtype) * layout.lanes
    for first, last, width in rows:
        dims = [
            *((w_stride, width), (h_stride, height)),
            *((c_stride, last - first + 1), (n_stride, groups)),
        ]
        mask |= _repeated(mask.size, first * c_stride, dims, bits)
    mask.flags.writeable = False  # the cached mask is shared
    return mask


def held_at(layout: LocalLayout, npu: int, byte: int) -> tuple[int, ...] | None:
    """The logical index at a byte of an NPU's memory; None for a dummy or an empty byte."""
    bits = dtypes.bits(layout.dtype)
    at = (byte - layout.offset) * 8 // bits
    for offset in range(at, at + max(8 // bits, 1)):
        if 0 <= offset < layout.local_shape[0]:
            index = layout.logical_index((npu, offset))
            if index is not None:
                return index
    return None


def _rows(layout: LocalLayout, npu: int) -> _Rows:
    """The rows of channels that an NPU holds, and the columns of each."""
    _, channels, _, width = layout.view_shape
    npus, start = layout.chip.npus, layout.start_npu
    first = 0 if npu >= start else 1
    last = (start + channels - 1 - npu) // npus
    if last < first:
        return ()
    rest = layout.last_channel_width
    if rest == width or npu != (start + channels - 1) % npus:
        return ((first, last, width),)
    full = ((first, last - 1, width),) if first < last else ()
    return (*full, (last, last, rest))


def _repeated(size: int, slot: int, dims: Sequence[tuple[int, int]], bits: int) -> Mask:
    """A mask of the bytes of an element, repeated along dims given as (stride, extent).

    The element has `bits` bits and is element number `slot`; strides are in elements.
    """
    # Elements smaller than a byte share bytes, so the mask has a finer unit until the end.
    unit = gcd(bits, 8)
    mask = np.zeros(size * 8 // unit, bool)
    wide = bits // unit
    mask[slot * wide : (slot + 1) * wide] = True
    for stride, extent in dims:
        done = 1
        while done < extent and stride:
            step = min(done, extent - done)
            shift = step * stride * wide
            mask[shift:] |= mask[:-shift]
            done += step
    return mask if unit == 8 else np.asarray(mask.reshape(size, 8 // unit).any(axis=1))
