"""Decomposition of a copy into boxes that are strided in both the source and the destination.

A `Box` consists of words of 8, 16 or 32 bits. In local memory, its channels go from NPU to NPU; its
other axes are strided. One move of the DMA engine supports the channels, two strided axes, and one
axis of stride 1 in both the source and the destination.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, lcm

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.sophon.tensors import Tensor

# (extent, source stride, destination stride), in words.
Axis = tuple[int, int, int]
Sides = tuple[Tensor, Tensor]
NONE: Axis = (1, 0, 0)


@dataclass(frozen=True)
class Box:
    """A strided copy of words of `bits` bits; `source` and `destination` are byte addresses.

    channels: the axis that is scattered over NPUs. axes: the other axes, the outer first.
    """

    source: int
    destination: int
    bits: int
    channels: Axis
    axes: tuple[Axis, ...]

    def part(self, at: int, index: int) -> Box:
        """The box at one index of an axis; the axis is removed."""
        _, *steps = self.axes[at]
        source, destination = (index * step * self.bits // 8 for step in steps)
        return replace(
            self,
            source=self.source + source,
            destination=self.destination + destination,
            axes=(*self.axes[:at], NONE, *self.axes[at + 1 :]),
        )


def tensor_boxes(sides: Sides) -> Iterator[Box]:
    """The boxes of a copy of a tensor (N, C, H, W).

    If source and destination have the same lanes, there is one box, which moves complete groups
    including their dummy elements. Otherwise there is one box per lane position.
    """
    source, destination = sides
    same_lanes = source.lanes == destination.lanes
    period = source.lanes if same_lanes else lcm(source.lanes, destination.lanes)
    element = dtypes.bits(source.dtype) * (period if same_lanes else 1)
    bits = _word(element, sides)
    count, channels, height, width = source.shape
    # The strides of both tensors in words; those of N are per group of `period` elements.
    n, c, h, w = zip(*(_words(side, side.strides, bits) for side in sides), strict=True)
    groups = [step * (period // side.lanes) for step, side in zip(n, sides, strict=True)]
    for first in range(1 if same_lanes else min(period, count)):
        index = (first, 0, 0, 0)
        outer = ((-(-(count - first) // period), *groups), (height, *h))
        axes = (*outer, *_columns((width, *w), element // bits))
        addresses = (source.address(index), destination.address(index))
        yield Box(*addresses, bits, (channels, *c), axes)


def matrix_boxes(sides: Sides, rows: int, cols: int) -> Iterator[Box]:
    """The boxes of a copy of a matrix: complete channels, or columns within one channel."""
    element = dtypes.bits(sides[0].dtype)
    bits = _word(element, sides)
    for first, channels, width in _column_parts(sides, cols):
        strides = [_matrix_strides(side, width) for side in sides]
        pairs = zip(sides, strides, strict=True)
        row, channel, column = zip(*(_words(*pair, bits) for pair in pairs), strict=True)
        at = [side.address((0, first) if side.ndim == 2 else (0, 0, 0, first)) for side in sides]
        axes = ((rows, *row), *_columns((width, *column), element // bits))
        yield Box(at[0], at[1], bits, (channels, *channel), axes)


def _column_parts(sides: Sides, cols: int) -> Iterator[tuple[int, int, int]]:
    """Parts (first column, channels, columns per channel) that are strided in both matrices."""
    widths = {side.view_shape[3] for side in sides if side.ndim == 2}
    if len(widths) == 1:
        (width,) = widths
        channels, rest = divmod(cols, width)
        parts = [(0, channels, width), (channels * width, 1, rest)]
        yield from (part for part in parts if part[1] * part[2])
        return
    first = 0
    while first < cols:
        end = min(cols, *((first // width + 1) * width for width in widths))
        yield first, 1, end - first
        first = end


def _matrix_strides(side: Tensor, width: int) -> tuple[int, int, int]:
    """The strides of rows, of channels of `width` columns, and of columns, in elements."""
    n_stride, c_stride, _, w_stride = side.strides
    return (n_stride, c_stride if side.ndim == 2 else width * w_stride, w_stride)


def _columns(axis: Axis, words: int) -> tuple[Axis, ...]:
    """The axis of columns and the axis of words per column, joined if contiguous."""
    width, *steps = axis
    return ((width * words, 1, 1),) if steps == [words, words] else (axis, (words, 1, 1))


def _words(side: Tensor, strides: tuple[int, ...], bits: int) -> tuple[int, ...]:
    """Strides of the view in words of `bits`."""
    return tuple(stride * side.lanes * dtypes.bits(side.dtype) // bits for stride in strides)


def _word(element: int, sides: Sides) -> int:
    """The largest word size, in bits, that divides the element size and both addresses."""
    bits = gcd(32, element, *(8 * side.start for side in sides))
    if bits < 8:
        raise LayoutError(f"elements of {element} bits can't be moved: words have 8, 16 or 32 bits")
    return bits


# -- division into moves ---------------------------------------------------------------------------


def packed(box: Box) -> Iterator[Box]:
    """Divide a box into boxes that each fit one move.

    Adjacent axes that form one axis in both the source and the destination are joined, the inner
    ones first. If the box still has too many axes, it is divided along the shortest axis.
    """
    axes = box.axes
    while not _fits(axes) and (joined := _joined(axes)) is not None:
        axes = joined
    box = replace(box, axes=axes)
    if _fits(axes):
        yield box
        return
    shortest = min(axis for axis in axes if axis[0] > 1 and not is_unit(axis))
    at = axes.index(shortest)
    for index in range(shortest[0]):
        yield from packed(box.part(at, index))


def is_unit(axis: Axis) -> bool:
    """Whether the words of an axis are contiguous in both the source and the destination."""
    return axis[0] > 1 and axis[1:] == (1, 1)


def _fits(axes: tuple[Axis, ...]) -> bool:
    return sum(axis[0] > 1 for axis in axes) - any(map(is_unit, axes)) <= 2


def _joined(axes: tuple[Axis, ...]) -> tuple[Axis, ...] | None:
    """The axes with two adjacent ones joined, or None if no two form one axis in both tensors."""
    axes = tuple(axis for axis in axes if axis[0] > 1)
    for k, ((n, *outer), (m, *inner)) in reversed(list(enumerate(pairwise(axes)))):
        if outer == [m * step for step in inner]:
            return (*axes[:k], (n * m, inner[0], inner[1]), *axes[k + 2 :])
    return None
