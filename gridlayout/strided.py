"""Strided views of a buffer, with strides of any sign or zero.

    index --sum(stride * index)--> offset of the element, relative to element (0, 0, ...)

Strides count elements. With a negative stride, elements precede element 0, so the buffer begins
`start` elements before element 0. A zero stride reads the same element repeatedly. Such a view has
no inverse, and neither does a view whose strides overlap; both are read-only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_count, as_flag, as_shape, one_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.strides import (
    as_permutation,
    as_strides,
    canonical_strides,
    contiguous_strides,
    elements_per_byte,
    reshaped_strides,
    span,
    strided_steps,
    unaligned_stride,
)
from gridlayout.public import public

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["StridedLayout", "contiguous", "layout"]

# The type of an argument of `StridedLayout.slice`, in which the name `slice` is the method.
Cut: TypeAlias = "slice | int"

# The most dims of a MegEngine tensor. MegEngine uses rank 0 for "not initialised".
MAX_DIMS = 7


@public
class StridedLayout(Layout):
    """A tensor of `shape` whose element `i` is `sum(stride * i)` elements from element 0.

    strides: signed, in elements, one for each dim. start: elements of the buffer before element 0.
    size: elements of the buffer. Both default to the smallest buffer that holds every element. oob:
    the value of the positions between elements.

    `LayoutError`: a rank other than 1 to 7; a start or size for which elements are outside the
    buffer; 4-bit elements of different rows that would share a byte.

    >>> x = StridedLayout((2, 3), (-3, 1), "float32")
    >>> x.start, x.low, x.high, x.physical_shape
    (3, -3, 3, (6,))
    >>> x.locate((1, 0))
    Location(core=(), local=(0,), offset=0, byte=0)
    """

    def __init__(
        self,
        shape: ShapeLike,
        strides: Sequence[int],
        dtype: DTypeLike,
        *,
        start: int | None = None,
        size: int | None = None,
        oob: Any = None,
    ) -> None:
        shape, kind = as_dims(shape), dtypes.as_dtype(dtype)
        self.strides: Shape = as_strides(strides, shape)
        self.low, self.high = span(shape, self.strides)
        self.start: int = -self.low if start is None else as_count(start, "start")
        self.buffer_size: int = self.start + self.high if size is None else as_count(size, "size")
        if self.start + self.low < 0 or self.start + self.high > self.buffer_size:
            raise LayoutError(
                f"start {self.start} and size {self.buffer_size} leave elements outside the "
                f"buffer: elements are at {self.low} to {self.high} (exclusive) relative to "
                f"element 0, so start must be >= {-self.low} and size >= start + {self.high}"
            )
        _check_low_bits(shape, self.strides, self.start, kind)
        steps, order = strided_steps(shape, self.strides, self.start, self.buffer_size)
        super().__init__(shape, kind, steps, order, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        # The stride of a dim of extent 1 has no effect (MegEngine's eq_layout ignores it too).
        strides = canonical_strides(self.shape, self.strides)
        place = (self.start, self.buffer_size)
        return (self.shape, self.dtype, strides, *place, repr(self.oob))

    @property
    def canonical(self) -> StridedLayout:
        """The same layout with strides of dims of extent 1 as in a layout without gaps."""
        return self._changed(strides=canonical_strides(self.shape, self.strides))

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, with another type; `LayoutError` if 4 bits forbid them.

        >>> StridedLayout((2, 3), (3, 1), "int8").with_dtype("int32").strides_bytes
        (12, 4)
        """
        new = super().with_dtype(dtype, oob)
        _check_low_bits(self.shape, self.strides, self.start, new.dtype)
        return new

    _constructor = "megengine.strided", 3

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        named: dict[str, Any] = {x: getattr(self, x) for x in ("shape", "strides", "dtype")}
        named |= {"start": self.start} if self.start != -self.low else {}
        is_own = self.buffer_size != self.start + self.high
        named |= {"size": self.buffer_size} if is_own else {}
        return StridedLayout, {**named, "oob": self.oob}

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def strides_bytes(self) -> Shape:
        """The strides in bytes, as in MegEngine's document ("Strides").

        >>> StridedLayout((2, 5), (5, 1), "int32").strides_bytes
        (20, 4)
        """
        bits = dtypes.bits(self.dtype)
        if bits < 8:
            raise LayoutError(
                f"strides_bytes: {self.dtype.name} takes {bits} bits, so a stride need not be "
                "whole bytes; use strides, which count elements"
            )
        return tuple(stride * bits // 8 for stride in self.strides)

    @property
    def span_bytes(self) -> tuple[int, int]:
        """The byte offsets, relative to element 0, of the lowest element and of the buffer's end.

        The first is <= 0; the second is the end of the highest element.

        >>> StridedLayout((2, 3), (-1, 1), "float32").span_bytes
        (-4, 12)
        """
        bits = dtypes.bits(self.dtype)
        return self.low * bits // 8, -(-self.high * bits // 8)

    # -- predicates ----------------------------------------------------------------------------

    def is_contiguous(self, *, allow_broadcast: bool = False) -> bool:
        """Whether the elements are in row-major order without gaps; False for no elements.

        allow_broadcast: whether to ignore dims of stride 0. Rows of 4-bit elements are padded to
        whole bytes.

        >>> StridedLayout((2, 3, 2), (2, 0, 1), "int8").is_contiguous(allow_broadcast=True)
        True
        """
        allow_broadcast = as_flag(allow_broadcast, "allow_broadcast")
        shape = tuple(
            1 if allow_broadcast and s == 0 else n
            for n, s in zip(self.shape, self.strides, strict=True)
        )
        expected = contiguous_strides(shape, self.dtype)
        return 0 not in shape and all(
            n == 1 or s == e for n, s, e in zip(shape, self.strides, expected, strict=True)
        )

    def is_abs_monotonous(self) -> bool:
        """Whether the absolute value of each stride is at least the span of the next dim.

        Dims of stride 0 or extent 1 are ignored.

        >>> StridedLayout((3, 2), (3, -1), "int8").is_abs_monotonous()
        True
        """
        least = 0
        for n, s in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n == 1 or s == 0:
                continue
            if abs(s) < least:
                return False
            least = abs(s) * n
        return True

    def is_non_overlapping(self) -> bool:
        """Whether no two elements share a position; an exact test, not only a sufficient one.

        >>> StridedLayout((3, 2), (2, 3), "int8").is_non_overlapping()
        True
        """
        return not self.is_scatter or self.index_map.is_injective(self.shape)

    # -- views of the same buffer, without a copy ----------------------------------------------

    def _view(
        self, shape: ShapeLike, strides: Sequence[int], start: int | None = None
    ) -> StridedLayout:
        place = {"start": self.start if start is None else start, "size": self.buffer_size}
        return StridedLayout(shape, strides, self.dtype, **place, oob=self.oob)

    def slice(self, *cuts: Cut) -> StridedLayout:
        """The view that NumPy's basic indexing gives; one slice or int per dim.

        A slice keeps its dim, and an int drops it. Dims without an argument are unchanged. A single
        element has shape (1,). `LayoutError` for indices outside the dim. `LayoutError` also for
        elements smaller than a byte if rows would not begin at a byte or a stride is negative.

        >>> x = StridedLayout((4, 6), (6, 1), "float32").slice(slice(1, 3), slice(None, None, -2))
        >>> x.shape, x.strides, x.start, x.locate((0, 0)).byte
        ((2, 3), (6, -2), 11, 44)
        """
        if len(cuts) > self.ndim:
            raise LayoutError(f"{len(cuts)} cuts of {self.ndim} dims: give at most one per dim")
        start, dims = self.start, []
        for d, (n, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            cut: Any = cuts[d] if d < len(cuts) else slice(None)
            first, count, step = _taken(cut, n, d)
            start += first * stride
            if isinstance(cut, slice):
                dims.append((count, stride * step))
        dims = dims or [(1, 1)]
        empty = any(n == 0 for n, _ in dims)
        place = self.start if empty else start
        return self._view([n for n, _ in dims], [s for _, s in dims], place)

    def flip(self, *dims: int) -> StridedLayout:
        """The view with the given dims reversed; all dims if none is given.

        >>> x = StridedLayout((2, 3), (3, 1), "int8").flip(1)
        >>> x.strides, x.start, x.locate((1, 0)).offset
        ((3, -1), 2, 5)
        """
        flipped = as_shape(dims or range(self.ndim), "dims")
        if len(set(flipped)) < len(flipped) or any(d >= self.ndim for d in flipped):
            raise LayoutError(f"dims {flipped} must be distinct dims from 0 to {self.ndim - 1}")
        return self.slice(*(slice(None, None, -1 if d in flipped else 1) for d in range(self.ndim)))

    def dimshuffle(self, dims: Sequence[int]) -> StridedLayout:
        """The view whose dim `k` is dim `dims[k]` of this one.

        >>> StridedLayout((2, 3, 4), (12, 4, 1), "int8").dimshuffle((2, 0, 1)).strides
        (1, 12, 4)
        """
        order = as_permutation(dims, self.ndim, "dims")
        return self._view([self.shape[d] for d in order], [self.strides[d] for d in order])

    def broadcast(self, shape: ShapeLike) -> StridedLayout:
        """The view broadcast to `shape`, aligned at the last dims.

        A dim whose extent changes gets stride 0. `LayoutError` if the extent of such a dim is not 1
        and its stride is not 0.

        >>> StridedLayout((1, 32, 1, 1), (32, 1, 1, 1), "int8").broadcast((16, 32, 7, 7)).strides
        (0, 1, 0, 0)
        """
        target = as_dims(shape)
        missing = len(target) - self.ndim
        if missing < 0:
            raise LayoutError(
                f"shape {target} has fewer dims than {self.shape}: broadcasting keeps all dims"
            )
        # The stride of a scalar has no meaning, so its dims of extent 1 get stride 1.
        fill = 1 if self.shape == (1,) else 0
        found = (1,) * missing + self.shape
        strides = (fill,) * missing + ((1,) if self.shape == (1,) else self.strides)
        for n, s, extent in zip(found, strides, target, strict=True):
            if n != extent and n != 1 and s != 0:
                raise LayoutError(
                    f"shape {self.shape} can't be broadcast to {target}: extent {n} must be "
                    f"{extent} or 1"
                )
        new = [s if n == extent else 0 for n, s, extent in zip(found, strides, target, strict=True)]
        return self._view(target, new)

    def collapse_contiguous(self) -> StridedLayout:
        """The view with adjacent dims merged wherever the outer stride is the inner dim's span.

        Dims of extent 1 are dropped. With one element or none, the result has shape (1,) or (0,)
        and stride 1.

        >>> x = StridedLayout((5, 1, 3, 8), (32, 99, 8, 1), "int8").collapse_contiguous()
        >>> x.shape, x.strides
        ((5, 24), (32, 1))
        """
        if self.size <= 1:
            return self._view((self.size,), (1,))
        dims: list[tuple[int, int]] = []
        for n, s in zip(self.shape, self.strides, strict=True):
            if n == 1:
                continue
            if dims and dims[-1][1] == s * n:
                dims[-1] = (dims[-1][0] * n, s)
            else:
                dims.append((n, s))
        return self._view([n for n, _ in dims], [s for _, s in dims])

    def try_reshape(self, shape: ShapeLike) -> StridedLayout | None:
        """The view reshaped to `shape`, or None if the reshape needs a copy.

        `LayoutError` if `shape` has a different number of elements.

        >>> x = StridedLayout((2, 3, 2), (0, 0, 1), "int8")
        >>> x.try_reshape((6, 2)).strides, x.try_reshape((3, 4))
        ((0, 1), None)
        """
        target = as_dims(shape)
        if prod(target) != self.size:
            raise LayoutError(
                f"shape {target} has {prod(target)} elements, but {self.shape} has {self.size}"
            )
        if 0 in target:
            return self._view(target, contiguous_strides(target, self.dtype))
        collapsed = self.collapse_contiguous()
        strides = reshaped_strides(collapsed.shape, collapsed.strides, target)
        if strides is None or unaligned_stride(target, strides, self.dtype) is not None:
            return None
        return self._view(target, strides)


def _taken(cut: Any, extent: int, d: int) -> tuple[int, int, int]:
    """The first index of a slice or int of dim `d`, the number of indices, and the step."""
    parts = (cut.start, cut.stop, cut.step) if isinstance(cut, slice) else (cut, None, None)
    try:
        at, stop, step = (None if p is None else operator.index(p) for p in parts)
    except TypeError:
        raise LayoutError(f"cut {cut!r} of dim {d} must be a slice or a whole number") from None
    if any(isinstance(p, (bool, np.bool_)) for p in parts) or step == 0:
        raise LayoutError(f"cut {cut!r} of dim {d} must hold whole numbers, and a nonzero step")
    if not isinstance(cut, slice):
        if at is None or not -extent <= at < extent:
            raise LayoutError(f"index {cut} is outside dim {d}, of extent {extent}")
        return at % extent, 1, 1
    if any(p is not None and not -extent <= p <= extent for p in (at, stop)):
        raise LayoutError(
            f"cut {cut} of dim {d} must be in [-{extent}, {extent}], as its extent is {extent}"
        )
    taken = range(*slice(at, stop, step).indices(extent))
    return taken.start, len(taken), taken.step


def _check_low_bits(shape: Shape, strides: Shape, start: int, dtype: np.dtype[Any]) -> None:
    unit = elements_per_byte(dtype)
    if start % unit:
        raise LayoutError(f"start {start} of {dtype.name} elements must be a multiple of {unit}")
    stride = unaligned_stride(shape, strides, dtype)
    if stride is not None:
        raise LayoutError(
            f"stride {stride} of strides {strides}: strides of {dtype.name} must be 0, 1 or "
            f"positive multiples of {unit}, because rows begin at whole bytes"
        )


layout = StridedLayout
ORDERS = ("row_major", "column_major")


@public
def contiguous(
    shape: ShapeLike, dtype: DTypeLike, order: str = "row_major", *, oob: Any = None
) -> StridedLayout:
    """A tensor without gaps: row-major, or column-major (MegEngine, "How values are stored").

    order: with "row_major" the last dim is contiguous, with "column_major" the first. For elements
    smaller than a byte, each contiguous row is padded to whole bytes.

    >>> contiguous((2, 5), "int32").strides, contiguous((2, 3, 5), "int4").strides
    ((5, 1), (18, 6, 1))
    >>> contiguous((3, 3), "int32", "column_major").strides_bytes
    (4, 12)
    """
    dims, kind = as_dims(shape), dtypes.as_dtype(dtype)
    turn = -1 if one_of(order, ORDERS, "order") == "column_major" else 1
    return StridedLayout(dims, contiguous_strides(dims[::turn], kind)[::turn], kind, oob=oob)


# -- arguments ---------------------------------------------------------------------------------


def as_dims(shape: Any) -> Shape:
    """Return `shape` as a tuple of 1 to 7 extents."""
    dims = as_shape(shape, "shape")
    if not 1 <= len(dims) <= MAX_DIMS:
        raise LayoutError(
            f"shape {dims} has rank {len(dims)}; a MegEngine tensor has 1 to {MAX_DIMS} dims, and "
            "a scalar is (1,)"
        )
    return dims
