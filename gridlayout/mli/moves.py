"""Moves from one MLI tensor to another by the data movement kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import Shape, as_shape
from gridlayout.errors import LayoutError
from gridlayout.mli.tensors import TensorLayout, as_order
from gridlayout.public import public
from gridlayout.strided import StridedLayout


@public
@dataclass(frozen=True)
class Mov:
    """A move from one tensor to another: pads, crops, subsamples, permutes; created by `mov`.

    destination: the tensor that is written, including the elements before `dst_offset`. read,
    write: the moved elements as views of the source's buffer and of the destination's buffer;
    `gl.pack(gl.unpack(source, m.read), m.write)` performs the move. The padding of `write` is 0; it
    includes both the zeros that the move writes and the elements that it does not write
    (`source_index` distinguishes them). first: the source index of the first written element, which
    may be in the padding. step: the source step between written elements. Both are by source dim.
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
        """The source index of an element of the destination, or None if a zero is written there.

        `LayoutError` for an index that is not written: outside the destination, or before
        `dst_offset`.

        >>> m = mov(TensorLayout((4,), "C", "int8"), pad_pre=(2,), pad_post=(1,))
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


@public
def mov(
    source: TensorLayout,
    *,
    offset: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    step: Sequence[int] | None = None,
    perm: Sequence[int] | str | None = None,
    pad_pre: Sequence[int] | None = None,
    pad_post: Sequence[int] | None = None,
    dst_offset: Sequence[int] | None = None,
    mem_stride: Sequence[int] | None = None,
) -> Mov:
    """Return a move of the data movement kernel: pad, crop, subsample, permute, then write.

    pad_pre, pad_post: zeros before and after. offset, size: the part of the padded tensor to move;
    a size of 0 means all elements from `offset` on. step: moves only every `step`-th element. These
    five are by source dim, in elements. perm: dim `k` of the result is source dim `perm[k]`; or
    letters, "HWC->CHW". dst_offset: the index in the destination at which to write; it makes the
    destination larger. mem_stride: that of the destination, None for no gaps. Both are by
    destination dim.

    `LayoutError`: a part outside the padded tensor; a step of 0; strides that are not valid.

    >>> m = mov(TensorLayout((16, 8), "HW", "int16"), step=(4, 2), perm="HW->WH", mem_stride=(8, 1))
    >>> m.destination, m.source_index((1, 3))
    (mli.tensor((4, 4), 'WH', 'int16', mem_stride=(8, 1)), (12, 2))
    """
    if not isinstance(source, TensorLayout):
        raise LayoutError(f"source {source!r} must be an MLI tensor, as mli.tensor makes")
    order = as_order(range(source.ndim) if perm is None else perm, source.layout)
    at = _each(dst_offset, (0,) * source.ndim, "dst_offset")
    axes = _axes(source.shape, offset, size, step, pad_pre, pad_post)
    shape = [at[k] + axes[p].written for k, p in enumerate(order)]
    letters = "".join(source.layout[p] for p in order)
    destination = TensorLayout(shape, letters, source.dtype, mem_stride)
    read, write = _views(source, destination, axes, order, at)
    first, steps = tuple(axis.first for axis in axes), tuple(axis.step for axis in axes)
    return Mov(source, destination, read, write, order, at, first, steps)


@dataclass(frozen=True)
class _Axis:
    """One source dim of a move.

    written: the number of written positions. low, moved: `moved` positions from `low` on hold
    elements, the others zeros. first: the source index of the first written position. step: the
    source step between positions.
    """

    written: int
    low: int
    moved: int
    first: int
    step: int


def _axes(
    shape: Shape, offset: Any, size: Any, step: Any, pad_pre: Any, pad_post: Any
) -> list[_Axis]:
    """The axis of each source dim; the arguments are those of `mov`."""
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    pre, post = _each(pad_pre, zeros, "pad_pre"), _each(pad_post, zeros, "pad_post")
    crop, kept = _each(offset, zeros, "offset"), _each(size, zeros, "size")
    steps = _each(step, ones, "step")
    return [
        _move_axis(k, shape[k], pre[k], post[k], crop[k], kept[k], steps[k])
        for k in range(len(shape))
    ]


def _move_axis(k: int, n: int, pre: int, post: int, offset: int, size: int, step: int) -> _Axis:
    padded = pre + n + post
    extent = size or padded - offset
    if step < 1:
        raise LayoutError(f"dim {k}: step {step} must be >= 1")
    if extent < 1 or offset + extent > padded:
        raise LayoutError(
            f"dim {k}: offset {offset} and size {size} reach outside the padded extent {pre} + "
            f"{n} + {post} = {padded}; offset + size must be <= {padded}, and offset < {padded}"
        )
    written = -(-extent // step)
    first = offset - pre
    low = max(-(first // step), 0)
    high = min((n - 1 - first) // step + 1, written)
    if high <= low:
        low = high = 0
    return _Axis(written, low, high - low, first, step)


def _views(
    source: TensorLayout, destination: TensorLayout, axes: list[_Axis], order: Shape, at: Shape
) -> tuple[StridedLayout, StridedLayout]:
    """The moved elements, as views of the source's buffer and of the destination's buffer."""
    moved = [axes[p].moved for p in order]
    read_index = [axis.first + axis.low * axis.step for axis in axes]
    # The step has no effect on a single element, and its stride may then be out of range.
    steps = [axes[p].step if axes[p].moved > 1 else 1 for p in order]
    strides = [source.mem_stride[p] * step for p, step in zip(order, steps, strict=True)]
    write_index = [at[k] + axes[p].low for k, p in enumerate(order)]
    write = _strided(destination, moved, destination.mem_stride, write_index)
    return _strided(source, moved, strides, read_index), write.with_oob(0)


def _strided(
    tensor: TensorLayout,
    shape: Sequence[int],
    strides: Sequence[int],
    index: Sequence[int],
) -> StridedLayout:
    """The view of a tensor's buffer whose element 0 is the tensor's element `index`."""
    start = tensor.start + sum(i * s for i, s in zip(index, tensor.mem_stride, strict=True))
    if 0 in shape:
        start = tensor.start
    # A view needs at least one dim, even of a tensor of rank 0.
    place = (shape or (1,), strides or (1,), tensor.dtype)
    return StridedLayout(*place, start=start, size=tensor.buffer_size)


def _each(values: Any, default: Shape, what: str) -> Shape:
    """Return one int >= 0 for each dim, or the defaults."""
    found = default if values is None else as_shape(values, what)
    if len(found) != len(default):
        raise LayoutError(f"{what} {found} must be {len(default)} numbers, one per dim")
    return found
