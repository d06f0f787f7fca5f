"""Strides in elements: their span, the steps of a strided view, and byte alignment."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import MAX_ELEMENTS, Shape, as_items, as_shape, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.steps import Step, StepBuilder, nest


def span(shape: Shape, strides: Shape) -> tuple[int, int]:
    """The lowest offset of an element, and one more than the highest; (0, 0) for no elements.

    `LayoutError` if they are more than 2**62 apart.

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
    """The steps of a strided view of a buffer of `size` elements, and their only axis.

    start: the offset of the element at index (0, 0, ...), in elements.
    """
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
    """Row-major strides, in elements; rows of 2-bit and 4-bit elements are whole bytes.

    >>> contiguous_strides((2, 3, 5), dtypes.as_dtype("int4"))
    (18, 6, 1)
    """
    unit = elements_per_byte(dtype)
    inner = (*shape[:-1], -(-shape[-1] // unit) * unit) if shape else ()
    return row_major(inner)


def row_major(sizes: Sequence[int]) -> Shape:
    """Return the row-major strides of a shape, in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(sizes[k + 1 :]) for k in range(len(sizes)))


def canonical_strides(shape: Shape, strides: Shape) -> Shape:
    """Return the strides, with those of dims of extent 1 as in a layout without gaps.

    A stride of such a dim has no effect. Two layouts with equal results have equal positions.

    >>> canonical_strides((1, 5, 1), (99, 2, 7))
    (10, 2, 1)
    """
    found: list[int] = []
    inner = 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        found.append(stride if n > 1 else inner)
        inner = abs(found[-1]) * n
    return tuple(reversed(found))


def reshaped_strides(shape: Shape, strides: Shape, target: Shape) -> list[int] | None:
    """Return the strides of `target`, or None unless each of its dims is part of one dim."""
    sources = list(zip(shape, strides, strict=True))
    found, left, stride = [], 1, 1
    for n in reversed(target):
        if left == 1 and n != 1:
            left, stride = sources.pop()
        if left % n:
            return None
        found.append(stride)
        left, stride = left // n, stride * n
    return found[::-1]


def elements_per_byte(dtype: np.dtype[Any]) -> int:
    """How many elements fit in a byte; 1 for all types of at least a byte."""
    return max(8 // dtypes.bits(dtype), 1)


def unaligned_stride(shape: Shape, strides: Sequence[int], dtype: np.dtype[Any]) -> int | None:
    """The first stride that is not byte-aligned for elements smaller than a byte, or None.

    Such elements need strides that are 1 or a positive multiple of the elements per byte.

    >>> unaligned_stride((2, 3), (3, 1), dtypes.as_dtype("int4"))
    3
    """
    unit = elements_per_byte(dtype)
    for n, s in zip(shape, strides, strict=True):
        if unit > 1 and n > 1 and (s < 0 or (s != 1 and s % unit)):
            return s
    return None


def as_strides(strides: Any, shape: Shape) -> Shape:
    """Return `strides` as a tuple of ints of any sign, one for each dim of `shape`."""
    given = as_items(strides, "strides", "whole numbers")
    try:
        found = tuple(operator.index(s) for s in given)
    except TypeError:
        raise LayoutError(f"strides {shown(strides)} must be a sequence of whole numbers") from None
    if any(isinstance(s, (bool, np.bool_)) for s in given):
        raise LayoutError(f"strides {strides!r} must hold whole numbers, not bools")
    if len(found) != len(shape):
        raise LayoutError(f"strides {found} must be {len(shape)} numbers, one per dim of {shape}")
    if any(abs(s) > MAX_ELEMENTS for s in found):
        raise LayoutError(f"strides {shown(found)} hold a number beyond 2**62")
    return found


def as_permutation(dims: Any, rank: int, what: str) -> Shape:
    """Return `dims` as a tuple that is a permutation of 0 ... rank - 1."""
    order = as_shape(dims, what)
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"{what} {order} must name each of the dims 0 to {rank - 1} once")
    return order
