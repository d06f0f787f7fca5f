"""Overlap: whether two tensors in local memory share a byte, and where.

Exact, and without a look at every element: an NPU's memory is one mask of bytes, and a dim of a
tensor repeats what lies below it at its stride. Neighbouring NPUs mostly hold the same rows of
channels, so that one look where the rows change is enough, at a few masks of `npu_bytes` bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.sophon.tensors import LocalLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

# One byte of mask a byte of memory: far above any chip, far below what hurts.
MAX_NPU_BYTES = 2**26

# (first channel row, last channel row, columns): the features that lie in one NPU.
_Rows = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Overlap:
    """The first byte that two tensors share: `byte` of NPU `npu`, and what each holds there.

    An index is None where that byte is a dummy element of 4N, 2N or 2IC storage.
    """

    npu: int
    byte: int
    first: tuple[int, ...] | None
    second: tuple[int, ...] | None


def overlap(first: LocalLayout, second: LocalLayout) -> Overlap | None:
    """The first byte that two tensors of one chip share, or None where they share none.

    Dummy elements of a storage mode count, for a write writes them; the empty blocks between
    features don't, though the document ("Scatter Features to Different NPUs") warns against using
    them.

    `LayoutError`: different chips, other layouts, or a tensor that does not fit in local memory.

    >>> from gridlayout import sophon
    >>> x = sophon.local((2, 3, 4, 5), "float32")
    >>> print(overlap(x, sophon.local((2, 3, 4, 5), "float32", "compact", start=80)))
    Overlap(npu=0, byte=128, first=(1, 0, 0, 0), second=(0, 0, 2, 2))
    >>> print(overlap(x, sophon.local((1, 3, 3, 4), "float32", "compact", start=80)))
    None
    """
    for layout in (first, second):
        if not isinstance(layout, LocalLayout):
            raise LayoutError(f"{layout!r} is no tensor in Sophon local memory")
    if first.chip != second.chip:
        raise LayoutError(f"tensors on {first.chip} and on {second.chip} share no memory")
    for layout in (first, second):
        if not (fit := layout.fits()):
            raise LayoutError(f"{layout} {fit}")
    if first.chip.npu_bytes > MAX_NPU_BYTES:
        raise LayoutError(
            f"npu_bytes {first.chip.npu_bytes} is over the {MAX_NPU_BYTES} B that overlap compares"
        )
    for npu in sorted({0, *_changes(first), *_changes(second)}):
        shared = _bytes(first, _rows(first, npu)) & _bytes(second, _rows(second, npu))
        if shared.any():
            byte = int(shared.argmax())
            return Overlap(npu, byte, _holder(first, npu, byte), _holder(second, npu, byte))
    return None


def _changes(layout: LocalLayout) -> set[int]:
    """The NPUs that hold other rows of channels than the NPU before them."""
    last = (layout.start_npu + layout.view_shape[1] - 1) % layout.chip.npus
    return {layout.start_npu, last, (last + 1) % layout.chip.npus}


def _rows(layout: LocalLayout, npu: int) -> _Rows:
    """Which rows of channels an NPU holds, and how many columns of each."""
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


def _bytes(layout: LocalLayout, rows: _Rows) -> NDArray[np.bool_]:
    """True at the bytes of an NPU's memory that hold these rows of channels."""
    mask = np.zeros(layout.chip.npu_bytes, bool)
    groups, _, height, _ = layout.view_shape
    n_stride, c_stride, h_stride, w_stride = layout.strides
    bits = dtypes.bits(layout.dtype) * layout.lanes
    for first, last, width in rows:
        dims = [
            *((w_stride, width), (h_stride, height)),
            *((c_stride, last - first + 1), (n_stride, groups)),
        ]
        mask |= _repeated(mask.size, layout.offset * 8, first * c_stride, dims, bits)
    return mask


def _repeated(
    size: int, start: int, slot: int, dims: Sequence[tuple[int, int]], bits: int
) -> NDArray[np.bool_]:
    """Bytes of an element of `bits` at `start`, repeated along (stride, extent) dims."""
    # Elements of less than a byte share bytes, so that the mask is of parts of them until the end.
    unit = gcd(bits, 8)
    mask = np.zeros(size * 8 // unit, bool)
    at, wide = (start + slot * bits) // unit, bits // unit
    mask[at : at + wide] = True
    for stride, extent in dims:
        done = 1
        while done < extent and stride:
            step = min(done, extent - done)
            shift = step * stride * wide
            mask[shift:] |= mask[:-shift]
            done += step
    return np.asarray(mask.reshape(size, 8 // unit).any(axis=1))


def _holder(layout: LocalLayout, npu: int, byte: int) -> tuple[int, ...] | None:
    bits = dtypes.bits(layout.dtype)
    at = (byte - layout.offset) * 8 // bits
    for offset in range(at, at + max(8 // bits, 1)):
        if offset < layout.local_shape[0]:
            index = layout.logical_index((npu, offset))
            if index is not None:
                return index
    return None
