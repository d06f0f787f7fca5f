"""`StridedLayout`: a view of a buffer by strides of any sign, zero among them.

    index --sum(stride * index)--> place of the element, counted from that of element (0, 0, ...)

Strides count elements. A negative stride walks back from where element 0 lies, so the buffer begins
`start` elements before it. A zero stride reads one element again and again: such a view has no
inverse, and neither has one whose strides overlap; both are read-only.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import MAX_ELEMENTS, Shape, as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.steps import Step, StepBuilder, nest

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The most dims that MegEngine's tensors have; none at all stands for "not initialised" there.
MAX_DIMS = 7


class StridedLayout(Layout):
    """A tensor of `shape` whose element `i` lies `sum(stride * i)` elements from element 0.

    strides: signed, in elements, one for each dim. start: elements of the buffer before element 0.
    size: elements of the buffer. Both default to the least that holds every element. oob: the
    value of what lies between elements.

    `LayoutError`: ranks other than 1 to 7, a start or a size that leaves elements outside the
    buffer, 4-bit elements that would share bytes across rows.

    >>> x = StridedLayout((2, 3), (-3, 1), "float32")
    >>> x.start, x.low, x.high, x.physical_shape
    (3, -3, 3, (6,))
    >>> x.locate((1, 0))
    Location(core=(), local=(0,), offset=0, byte=0)
    """

    def __init__(
        self,
        shape: Sequence[int],
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
                f"buffer: they lie from {self.low} to {self.high} (exclusive) around element 0, so "
                f"start must be >= {-self.low} and size >= start + {self.high}"
            )
        _check_low_bits(shape, self.strides, self.start, kind)
        steps, order = strided_steps(shape, self.strides, self.start, self.buffer_size)
        super().__init__(shape, kind, steps, order, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        # The stride of a dim of extent 1 moves nothing (eq_layout compares the others only).
        strides = tuple(s for n, s in zip(self.shape, self.strides, strict=True) if n > 1)
        place = (self.start, self.buffer_size)
        return (self.shape, self.dtype, strides, *place, repr(self.oob))

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, of another type; `LayoutError` where 4 bits forbid them.

        >>> StridedLayout((2, 3), (3, 1), "int8").with_dtype("int32").strides_bytes
        (12, 4)
        """
        new = super().with_dtype(dtype, oob)
        _check_low_bits(self.shape, self.strides, self.start, new.dtype)
        return new

    def __repr__(self) -> str:
        named = {"start": self.start} if self.start != -self.low else {}
        named |= {"size": self.buffer_size} if self.buffer_size != self.start + self.high else {}
        place = (self.shape, self.strides, self.dtype.name)
        return call_text("megengine.strided", *place, **named, **oob_argument(self))

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def strides_bytes(self) -> Shape:
        """The strides in bytes, as the document counts them (MegEngine, "Strides").

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
        """Bytes from element 0 to the lowest element, <= 0, and to the end of the highest.

        >>> StridedLayout((2, 3), (-1, 1), "float32").span_bytes
        (-4, 12)
        """
        bits = dtypes.bits(self.dtype)
        return self.low * bits // 8, -(-self.high * bits // 8)

    # -- questions -----------------------------------------------------------------------------

    def is_contiguous(self, *, allow_broadcast: bool = False) -> bool:
        """Whether the elements lie in row-major order without gaps; False for no elements.

        allow_broadcast: dims of stride 0 don't count. Rows of 4-bit elements fill whole bytes.

        >>> StridedLayout((2, 3, 2), (2, 0, 1), "int8").is_contiguous(allow_broadcast=True)
        True
        """
        shape = tuple(
            1 if allow_broadcast and s == 0 else n
            for n, s in zip(self.shape, self.strides, strict=True)
        )
        wanted = contiguous_strides(shape, self.dtype)
        return 0 not in shape and all(
            n == 1 or s == w for n, s, w in zip(shape, self.strides, wanted, strict=True)
        )

    def is_abs_monotonous(self) -> bool:
        """Whether each stride is at least what the next dim spans, signs and zeros left aside.

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
        """Whether no two elements share a place: exact, not only sufficient.

        >>> StridedLayout((3, 2), (2, 3), "int8").is_non_overlapping()
        True
        """
        return not self.is_scatter or self.index_map.is_injective(self.shape)

    # -- views of the same buffer --------------------------------------------------------------

    def _view(self, shape: Sequence[int], strides: Sequence[int]) -> StridedLayout:
        place = {"start": self.start, "size": self.buffer_size}
        return StridedLayout(shape, strides, self.dtype, **place, oob=self.oob)

    def dimshuffle(self, dims: Sequence[int]) -> StridedLayout:
        """The view whose dim `k` is dim `dims[k]` of this one.

        >>> StridedLayout((2, 3, 4), (12, 4, 1), "int8").dimshuffle((2, 0, 1)).strides
        (1, 12, 4)
        """
        order = as_permutation(dims, self.ndim, "dims")
        return self._view([self.shape[d] for d in order], [self.strides[d] for d in order])

    def broadcast(self, shape: Sequence[int]) -> StridedLayout:
        """The view of `shape`, aligned at the last dims: a stride of 0 where the extent differs.

        `LayoutError` where a dim that differs has an extent other than 1, and a stride of its own.

        >>> StridedLayout((1, 32, 1, 1), (32, 1, 1, 1), "int8").broadcast((16, 32, 7, 7)).strides
        (0, 1, 0, 0)
        """
        target = as_dims(shape)
        missing = len(target) - self.ndim
        if missing < 0:
            raise LayoutError(f"shape {target} has fewer dims than {self.shape}: dims can't go")
        # A scalar's own stride says nothing, so every dim of extent 1 gets the plain one.
        fill = 1 if self.shape == (1,) else 0
        found = (1,) * missing + self.shape
        strides = (fill,) * missing + ((1,) if self.shape == (1,) else self.strides)
        for n, s, wanted in zip(found, strides, target, strict=True):
            if n != wanted and n != 1 and s != 0:
                raise LayoutError(
                    f"shape {self.shape} can't be broadcast to {target}: extent {n} must be "
                    f"{wanted} or 1"
                )
        new = [s if n == w else 0 for n, s, w in zip(found, strides, target, strict=True)]
        return self._view(target, new)

    def collapse_contiguous(self) -> StridedLayout:
        """The view with the fewest dims: neighbours merged where one's stride is the other's span.

        Dims of extent 1 go; of no elements, or of one, (0,) or (1,) with stride 1 is left.

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

    def try_reshape(self, shape: Sequence[int]) -> StridedLayout | None:
        """The view of `shape` on the same elements, or None where only a copy has that shape.

        `LayoutError` where `shape` has another number of elements.

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
        strides = _reshaped(self.collapse_contiguous(), target)
        if strides is None or low_bits_refuse(target, strides, self.dtype) is not None:
            return None
        return self._view(target, strides)


def _reshaped(collapsed: StridedLayout, target: Shape) -> list[int] | None:
    """Strides of `target`, from the last dim on, each of its dims inside one collapsed dim."""
    sources = list(zip(collapsed.shape, collapsed.strides, strict=True))
    strides, left, stride = [], 1, 1
    for n in reversed(target):
        if left == 1 and n != 1:
            left, stride = sources.pop()
        if left % n:
            return None
        strides.append(stride)
        left, stride = left // n, stride * n
    return strides[::-1]


def span(shape: Shape, strides: Shape) -> tuple[int, int]:
    """The lowest place of an element, and one more than the highest; (0, 0) for no elements.

    >>> span((2, 3), (-1, 1))
    (-1, 3)
    """
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), 1 + sum(max(r, 0) for r in reach)
    if high - low > MAX_ELEMENTS:
        raise LayoutError(
            f"strides {strides} of shape {shape} span {high - low} elements, more than 2**62"
        )
    return low, high


def strided_steps(
    shape: Shape, strides: Shape, start: int, size: int
) -> tuple[list[Step], tuple[int, ...]]:
    """The steps of a strided view of a buffer of `size` elements, and their one axis."""
    builder, dims = StepBuilder(shape), range(len(shape))
    if 0 in shape:
        return builder.steps, (builder.resize(builder.join(list(dims)), size),)
    terms = [(strides[d], d) for d in dims]
    if nest(terms, builder.extent) is not None:
        return builder.steps, (builder.strided(terms, start, size),)
    offset = constant(start)
    for d in dims:
        if shape[d] > 1:
            offset = offset + dim(d) * strides[d]
    return builder.steps, builder.scatter(AffineMap(len(shape), (offset,)), (size,))


def contiguous_strides(shape: Shape, dtype: np.dtype[Any]) -> Shape:
    """Row-major strides, in elements; rows of 4-bit elements are rounded up to whole bytes.

    >>> contiguous_strides((2, 3, 5), dtypes.as_dtype("int4"))
    (18, 6, 1)
    """
    unit = elements_per_byte(dtype)
    inner = (*shape[:-1], -(-shape[-1] // unit) * unit) if shape else ()
    return tuple(prod(inner[k + 1 :]) for k in range(len(shape)))


def elements_per_byte(dtype: np.dtype[Any]) -> int:
    """How many elements fill a byte: 1 for all types that take at least one."""
    return max(8 // dtypes.bits(dtype), 1)


def _check_low_bits(shape: Shape, strides: Shape, start: int, dtype: np.dtype[Any]) -> None:
    unit = elements_per_byte(dtype)
    if start % unit:
        raise LayoutError(f"start {start} of {dtype.name} elements must be a multiple of {unit}")
    stride = low_bits_refuse(shape, strides, dtype)
    if stride is not None:
        raise LayoutError(
            f"stride {stride} of strides {strides}: strides of {dtype.name} must be 0, 1 or "
            f"positive multiples of {unit}, as rows begin at whole bytes"
        )


def low_bits_refuse(shape: Shape, strides: Sequence[int], dtype: np.dtype[Any]) -> int | None:
    """The first stride that elements of less than a byte can't have, or None.

    >>> low_bits_refuse((2, 3), (3, 1), dtypes.as_dtype("int4"))
    3
    """
    unit = elements_per_byte(dtype)
    for n, s in zip(shape, strides, strict=True):
        if unit > 1 and n > 1 and (s < 0 or (s != 1 and s % unit)):
            return s
    return None


def oob_argument(layout: Layout) -> dict[str, Any]:
    """The `oob` argument of a layout's constructor call; none where the padding is undef."""
    if layout.oob is None:
        return {}
    word = dtypes.oob_text(layout.oob)
    return {"oob": word if word in dtypes.OOB_NAMES else layout.oob}


# -- arguments ---------------------------------------------------------------------------------


def as_dims(shape: Any) -> Shape:
    """`shape` as a tuple of 1 to 7 extents."""
    dims = as_shape(shape, "shape")
    if not 1 <= len(dims) <= MAX_DIMS:
        raise LayoutError(
            f"shape {dims} has rank {len(dims)}; a MegEngine tensor has 1 to {MAX_DIMS} dims, a "
            "scalar is (1,)"
        )
    return dims


def as_count(value: Any, what: str) -> int:
    """`value` as a whole number from 0 to 2**62."""
    return as_shape((value,), what)[0]


def as_strides(strides: Any, shape: Shape) -> Shape:
    """`strides` as whole numbers of any sign, one for each dim of `shape`."""
    try:
        given = tuple(strides)
        found = tuple(operator.index(s) for s in given)
    except TypeError:
        raise LayoutError(f"strides {strides!r} must be a sequence of whole numbers") from None
    if any(isinstance(s, (bool, np.bool_)) for s in given):
        raise LayoutError(f"strides {strides!r} must hold whole numbers, not truth values")
    if len(found) != len(shape):
        raise LayoutError(f"strides {found} must be {len(shape)}, one for each dim of {shape}")
    if any(abs(s) > MAX_ELEMENTS for s in found):
        raise LayoutError(f"strides {found} hold a number beyond 2**62")
    return found


def as_permutation(dims: Any, rank: int, what: str) -> Shape:
    """`dims` as a permutation of 0 ... rank - 1."""
    order = as_shape(dims, what)
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"{what} {order} must name each of the dims 0 to {rank - 1} once")
    return order
