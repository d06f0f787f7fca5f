"""embARC MLI: tensors of up to 4 dims with memory strides, and moves between them.

    index --sum(mem_stride * index)--> element, counted from the tensor's first one

A layout's letters name the dims of the shape in order, the outermost first: `tensor((32, 16, 3),
"HWC", ...)` has 32 rows, 16 columns and 3 channels. H is height, W width, C input channels, N
output channels (never a batch), and 1 stands for a dim of extent 1, as in the depthwise weights
HW1N. Strides count elements; the last dim has the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.strides import as_count, as_permutation, span, strided_steps
from gridlayout.strided import StridedLayout, oob_argument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Mov", "TensorLayout", "mov", "tensor"]

MAX_RANK = 4


class TensorLayout(Layout):
    """A tensor whose dims, from the outermost, are the letters of `layout`.

    layout: "HWC", "CHW", "HWCN", "HW1N", or any other order of distinct letters of H, W, C, N and
    1: "C" of a bias, "CN" of fully connected weights. mem_stride: in elements, None for no gaps.
    capacity: bytes of memory from the first element on, None for no limit. start, size: elements
    of the buffer before the first one, and of the whole buffer, as of a sub-tensor. oob: the value
    of what lies between elements.

    `LayoutError` names the rule that is broken: extents and strides >= 1; each stride at least
    what the next dim spans; the capacity; whole-byte elements; "1" of extent 1.

    >>> x = tensor((32, 16, 3), "HWC", "int16")
    >>> x.mem_stride, x.nbytes, x.locate((16, 0, 0)).byte
    ((48, 3, 1), 3072, 1536)
    """

    def __init__(
        self,
        shape: Sequence[int],
        layout: str,
        dtype: DTypeLike,
        mem_stride: Sequence[int] | None = None,
        *,
        capacity: int | None = None,
        start: int = 0,
        size: int | None = None,
        oob: Any = None,
    ) -> None:
        shape, kind = _as_extents(shape), dtypes.as_dtype(dtype)
        self.layout: str = _as_letters(layout, shape)
        self.mem_stride: Shape = (
            _row_major(shape) if mem_stride is None else _as_mem_stride(mem_stride, shape)
        )
        _, self.min_elements = span(shape, self.mem_stride)
        self.capacity: int | None = None if capacity is None else as_count(capacity, "capacity")
        self.start: int = as_count(start, "start")
        end = self.start + self.min_elements
        self.buffer_size: int = end if size is None else as_count(size, "size")
        if end > self.buffer_size:
            raise LayoutError(
                f"size {self.buffer_size}: the tensor ends at element {end} of its buffer; give "
                "at least as many elements"
            )
        _check_memory(self.min_elements, self.capacity, kind)
        steps, order = strided_steps(shape, self.mem_stride, self.start, self.buffer_size)
        super().__init__(shape, kind, steps, order, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        place = (self.capacity, self.start, self.buffer_size)
        return (self.shape, self.layout, self.dtype, self.mem_stride, *place, repr(self.oob))

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, of another type; `LayoutError` beyond the capacity."""
        new = super().with_dtype(dtype, oob)
        _check_memory(self.min_elements, self.capacity, new.dtype)
        return new

    def __repr__(self) -> str:
        named: dict[str, Any] = {}
        if self.mem_stride != _row_major(self.shape):
            named["mem_stride"] = self.mem_stride
        if self.capacity is not None:
            named["capacity"] = self.capacity
        if self.start:
            named["start"] = self.start
        if self.buffer_size != self.start + self.min_elements:
            named["size"] = self.buffer_size
        place = (self.shape, self.layout, self.dtype.name)
        return call_text("mli.tensor", *place, **named, **oob_argument(self))

    def permute(self, perm: Sequence[int], mem_stride: Sequence[int] | None = None) -> TensorLayout:
        """The tensor to which the permute kernel writes: its dim `k` is dim `perm[k]` of this one.

        mem_stride: of the result, in elements, None for no gaps. The data follow as
        `x.transpose(perm)`.

        >>> tensor((2, 4, 8), "HWC", "int8").permute((2, 0, 1))
        mli.tensor((8, 2, 4), 'CHW', 'int8')
        """
        return mov(self, perm=perm, mem_stride=mem_stride).destination

    def subtensor(
        self, offset: Sequence[int], size: Sequence[int], rank: int | None = None
    ) -> TensorLayout:
        """The part of this tensor from `offset` on, of extents `size`, in the same buffer.

        rank: of the result; the first dims of extent 1 go until it is reached. The capacity is
        what is left of this one's. `unpack` of this tensor's physical array reads the part.

        `LayoutError`: a part outside the tensor; a rank that dims of extent 1 do not allow.

        >>> x = tensor((32, 16, 3), "HWC", "int8").subtensor((16, 0, 0), (16, 16, 3))
        >>> x.start, x.mem_stride
        (768, (48, 3, 1))
        """
        start, extents = as_shape(offset, "offset"), as_shape(size, "size")
        for what, given in (("offset", start), ("size", extents)):
            if len(given) != self.ndim:
                raise LayoutError(f"{what} {given} must be {self.ndim}, one for each dim")
        for k, (o, n, whole) in enumerate(zip(start, extents, self.shape, strict=True)):
            if n < 1 or o + n > whole:
                raise LayoutError(
                    f"dim {k}: offset {o} and size {n} must have size >= 1 and offset + size <= "
                    f"the extent, {whole}"
                )
        kept = _kept_dims(extents, rank)
        skipped = sum(o * s for o, s in zip(start, self.mem_stride, strict=True))
        left = self.capacity
        if left is not None:
            left -= skipped * self.dtype.itemsize
        return TensorLayout(
            [extents[k] for k in kept],
            "".join(self.layout[k] for k in kept),
            self.dtype,
            [self.mem_stride[k] for k in kept],
            capacity=left,
            start=self.start + skipped,
            size=self.buffer_size,
            oob=self.oob,
        )


tensor = TensorLayout


@dataclass(frozen=True)
class Mov:
    """A move from one tensor to another: padded, cropped, subsampled, permuted; `mov` makes it.

    destination: the tensor that is written; its indices start at those that `dst_offset` skips.
    read, write: the elements that move, as they lie in the source's buffer and in the
    destination's: `gl.pack(gl.unpack(source, m.read), m.write)` does the move. What `write` calls
    padding is 0: zeros from padding, and what the move leaves alone (`source_index` tells these
    apart). first, step: the source index of the destination's first written element, which may
    lie in the padding, and the step; by source dim.
    """

    source: TensorLayout
    destination: TensorLayout
    read: StridedLayout
    write: StridedLayout
    perm: Shape
    dst_offset: Shape
    first: Shape
    step: Shape

    def source_index(self, index: Sequence[int]) -> Shape | None:
        """The source index of a destination's element, or None where a zero is written.

        `LayoutError` for an index outside the destination, or before `dst_offset`: not written.

        >>> m = mov(tensor((4,), "C", "int8"), pad_pre=(2,), pad_post=(1,))
        >>> [m.source_index((k,)) for k in range(7)]
        [None, None, (0,), (1,), (2,), (3,), None]
        """
        found = as_shape(index, "index")
        inside = len(found) == len(self.perm) and all(
            o <= i < n
            for o, i, n in zip(self.dst_offset, found, self.destination.shape, strict=True)
        )
        if not inside:
            raise LayoutError(
                f"index {found} is not written: the move writes from {self.dst_offset} to "
                f"{self.destination.shape}, exclusive"
            )
        back = [0] * len(found)
        for k, p in enumerate(self.perm):
            back[p] = (found[k] - self.dst_offset[k]) * self.step[p] + self.first[p]
        inside = all(0 <= i < n for i, n in zip(back, self.source.shape, strict=True))
        return tuple(back) if inside else None


def mov(
    source: TensorLayout,
    *,
    offset: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    step: Sequence[int] | None = None,
    perm: Sequence[int] | None = None,
    pad_pre: Sequence[int] | None = None,
    pad_post: Sequence[int] | None = None,
    dst_offset: Sequence[int] | None = None,
    mem_stride: Sequence[int] | None = None,
) -> Mov:
    """The move of the data movement kernel: pad, crop, subsample, permute, write at an offset.

    pad_pre, pad_post: zeros before and after. offset, size: the part to keep, counted in the padded
    tensor; a size of 0 is all that is left. step: keeps every `step`-th. All of these by source
    dim, in elements. perm: dim `k` of the result is source dim `perm[k]`. dst_offset: where in
    the destination to write; it makes the destination larger; mem_stride: the destination's, None
    for no gaps; both by destination dim.

    `LayoutError`: a part outside the padded tensor, a step of 0, strides that are not valid.

    >>> m = mov(tensor((16, 8), "HW", "int16"), step=(4, 2), perm=(1, 0), mem_stride=(8, 1))
    >>> m.destination, m.source_index((1, 3))
    (mli.tensor((4, 4), 'WH', 'int16', mem_stride=(8, 1)), (12, 2))
    """
    if not isinstance(source, TensorLayout):
        raise LayoutError(f"source {source!r} must be an MLI tensor, as mli.tensor makes")
    rank = source.ndim
    zeros, ones = (0,) * rank, (1,) * rank
    order = as_permutation(range(rank) if perm is None else perm, rank, "perm")
    pre, post = _each(pad_pre, zeros, "pad_pre"), _each(pad_post, zeros, "pad_post")
    crop, kept = _each(offset, zeros, "offset"), _each(size, zeros, "size")
    steps, at = _each(step, ones, "step"), _each(dst_offset, zeros, "dst_offset")
    axes = [
        _move_axis(k, source.shape[k], pre[k], post[k], crop[k], kept[k], steps[k])
        for k in range(rank)
    ]
    first = tuple(crop[k] - pre[k] for k in range(rank))
    destination = TensorLayout(
        [at[k] + axes[p].written for k, p in enumerate(order)],
        "".join(source.layout[p] for p in order),
        source.dtype,
        mem_stride,
    )
    moved = [axes[p].moved for p in order]
    lows = [first[k] + axes[k].low * steps[k] for k in range(rank)]
    read = _strided(
        source, moved, [source.mem_stride[p] * steps[p] for p in order], lows, source.mem_stride
    )
    lands = [at[k] + axes[p].low for k, p in enumerate(order)]
    write = _strided(destination, moved, destination.mem_stride, lands, destination.mem_stride)
    return Mov(source, destination, read, write.with_oob(0), order, at, first, steps)


@dataclass(frozen=True)
class _Axis:
    """One dim of a move: `written` positions; from `low` on, `moved` of them hold elements."""

    written: int
    low: int
    moved: int


def _move_axis(k: int, n: int, pre: int, post: int, offset: int, size: int, step: int) -> _Axis:
    padded = pre + n + post
    extent = size or padded - offset
    if step < 1:
        raise LayoutError(f"dim {k}: step {step} must be >= 1")
    if extent < 1 or offset + extent > padded:
        raise LayoutError(
            f"dim {k}: offset {offset} and size {size} leave the padded extent {pre} + {n} + "
            f"{post} = {padded}; offset + size must be <= {padded}, and offset < {padded}"
        )
    written = -(-extent // step)
    first = offset - pre
    low = max(-(first // step), 0)
    high = min((n - 1 - first) // step + 1, written)
    return _Axis(written, low, high - low) if high > low else _Axis(written, 0, 0)


def _strided(
    whole: TensorLayout,
    shape: Sequence[int],
    strides: Sequence[int],
    index: Sequence[int],
    index_strides: Sequence[int],
) -> StridedLayout:
    """The view of a tensor's buffer whose element 0 is the tensor's element `index`."""
    start = whole.start + sum(i * s for i, s in zip(index, index_strides, strict=True))
    if 0 in shape:
        start = whole.start
    # A view has at least one dim, also of a tensor that has none.
    place = (shape or (1,), strides or (1,), whole.dtype)
    return StridedLayout(*place, start=start, size=whole.buffer_size)


def _each(values: Any, default: Shape, what: str) -> Shape:
    """One whole number >= 0 for each dim, or the defaults."""
    found = default if values is None else as_shape(values, what)
    if len(found) != len(default):
        raise LayoutError(f"{what} {found} must be {len(default)}, one for each dim")
    return found


def _as_extents(shape: Any) -> Shape:
    dims = as_shape(shape, "shape")
    if len(dims) > MAX_RANK:
        raise LayoutError(f"shape {dims} has rank {len(dims)}; MLI tensors have at most {MAX_RANK}")
    if 0 in dims:
        raise LayoutError(f"shape {dims}: every extent of an MLI tensor must be >= 1")
    return dims


def _as_letters(layout: Any, shape: Shape) -> str:
    if not isinstance(layout, str) or set(layout) - set("HWCN1") or len(set(layout)) < len(layout):
        raise LayoutError(
            f"layout {layout!r} must be distinct letters of H, W, C, N and 1, such as HWC or HWCN"
        )
    if len(layout) != len(shape):
        raise LayoutError(f"layout {layout!r} names {len(layout)} dims, but the shape is {shape}")
    for letter, n in zip(layout, shape, strict=True):
        if letter == "1" and n != 1:
            raise LayoutError(f"layout {layout!r}: the dim named 1 has extent {n}, it must be 1")
    return layout


def _row_major(shape: Shape) -> Shape:
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def _as_mem_stride(mem_stride: Any, shape: Shape) -> Shape:
    """Strides that the library's checks accept; they are stricter than its document's."""
    found = as_shape(mem_stride, "mem_stride")
    if len(found) != len(shape):
        raise LayoutError(f"mem_stride {found} must be {len(shape)}, one for each dim of {shape}")
    for k, stride in enumerate(found):
        if stride < 1:
            raise LayoutError(f"mem_stride[{k}] = {stride} must be >= 1: MLI has no broadcast")
        least = shape[k + 1] * found[k + 1] if k + 1 < len(shape) else 1
        if stride < least:
            raise LayoutError(
                f"mem_stride[{k}] = {stride} must be >= shape[{k + 1}] * mem_stride[{k + 1}] = "
                f"{shape[k + 1]} * {found[k + 1]} = {least}"
            )
    return found


def _check_memory(elements: int, capacity: int | None, dtype: np.dtype[Any]) -> None:
    if dtypes.bits(dtype) < 8:
        raise LayoutError(f"dtype {dtype.name}: elements of an MLI tensor take whole bytes")
    if capacity is not None and elements * dtype.itemsize > capacity:
        raise LayoutError(
            f"capacity {capacity}: the tensor needs {elements * dtype.itemsize} bytes, "
            f"{elements} elements of {dtype.itemsize}"
        )


def _kept_dims(extents: Shape, rank: Any) -> list[int]:
    """The dims left when the first dims of extent 1 go until `rank` are left."""
    drop = 0 if rank is None else len(extents) - as_count(rank, "rank")
    ones = [k for k, n in enumerate(extents) if n == 1]
    if not 0 <= drop <= len(ones):
        raise LayoutError(
            f"rank {rank} must be in [{len(extents) - len(ones)}, {len(extents)}]: only dims of "
            f"extent 1 of the size {extents} can go"
        )
    return [k for k in range(len(extents)) if k not in ones[:drop]]
