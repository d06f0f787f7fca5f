"""Windows: small parts of a layout's physical and logical arrays.

An affine map is evaluated on a box of indices, and each result only over the dims that it reads. So
for a window of a million elements, most index arrays have only a few thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.evaluation import evaluate, program_of
from gridlayout.affine.expressions import AffineExpr
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import host_fill, pack_host
from gridlayout.layouts.strides import row_major

# Elements per window: its index takes 8 bytes per element, and a few such arrays are live at once.
ELEMENTS = 1 << 17

Box = tuple[range, ...]
Index = int | NDArray[np.int64]


def consecutive(shape: Sequence[int], most: int) -> Iterator[Box]:
    """Divide an array into boxes of at most `most` elements, consecutive in row-major order.

    An array without elements is one box.

    >>> for box in consecutive((2, 5, 2), most=6):
    ...     print(box)
    (range(0, 1), range(0, 3), range(0, 2))
    (range(0, 1), range(3, 5), range(0, 2))
    (range(1, 2), range(0, 3), range(0, 2))
    (range(1, 2), range(3, 5), range(0, 2))
    """
    k, inner = 0 if 0 in shape else len(shape), 1
    while k and inner * shape[k - 1] <= most:
        k -= 1
        inner *= shape[k]
    full = tuple(map(range, shape[k:]))
    if k == 0:
        yield full
        return
    step = max(most // inner, 1)
    for outer in product(*map(range, shape[: k - 1])):
        for first in range(0, shape[k - 1], step):
            part = range(first, min(first + step, shape[k - 1]))
            yield (*(range(i, i + 1) for i in outer), part, *full)


def parts(box: Box, most: int) -> Iterator[tuple[tuple[slice, ...], Box]]:
    """Divide a box into parts of at most `most` elements.

    Yields the slices of each part in the box's array, and the part. The last dim of a part has at
    most most / 32 elements, so that a part contains full tiles if the layout is tiled.

    >>> [place for place, _ in parts((range(4), range(2, 70)), most=256)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [(slice(0, 4, None), slice(0, 8, None)), (slice(0, 4, None), slice(8, 16, None)),
     (slice(0, 4, None), slice(16, 24, None)), (slice(0, 4, None), slice(24, 32, None)),
     (slice(0, 4, None), slice(32, 40, None)), (slice(0, 4, None), slice(40, 48, None)),
     (slice(0, 4, None), slice(48, 56, None)), (slice(0, 4, None), slice(56, 64, None)),
     (slice(0, 4, None), slice(64, 68, None))]
    """
    left, steps = most, []
    for k, each in enumerate(reversed(box)):
        limit = max(left // 32, 1) if k == 0 and len(box) > 1 else left
        steps.append(max(min(len(each), limit), 1))
        left //= steps[-1]
    steps.reverse()
    starts = [range(0, len(each), step) for each, step in zip(box, steps, strict=True)]
    for first in product(*starts):
        place = tuple(
            slice(a, min(a + step, len(each)))
            for a, step, each in zip(first, steps, box, strict=True)
        )
        yield place, tuple(each[at] for each, at in zip(box, place, strict=True))


class Results:
    """Affine expressions over the same dims, evaluated on boxes.

    >>> from gridlayout.affine.expressions import dim
    >>> at = Results(2, [dim(0) * 4 + dim(1), dim(1), dim(0) * 0 + 7])
    >>> [np.shape(found) for found in at((range(2), range(3)))]
    [(2, 3), (3,), ()]
    """

    def __init__(self, num_dims: int, exprs: Sequence[AffineExpr]) -> None:
        self._parts = [(program_of(num_dims, (expr,)), expr.dims) for expr in exprs]

    def __call__(self, box: Box) -> list[Index]:
        """The values of each expression, as arrays that broadcast to the box."""
        rank = len(box)
        mesh = [
            np.arange(each.start, each.stop, each.step).reshape([-1, *[1] * (rank - 1 - d)])
            for d, each in enumerate(box)
        ]
        return [
            evaluate(program, [mesh[d] if d in used else 0 for d in range(rank)])[0]
            for program, used in self._parts
        ]


def weighted(values: Sequence[Index], weights: Sequence[int]) -> Index:
    """The sum of value * weight, with the smallest arrays added first.

    >>> weighted([np.arange(2).reshape(2, 1), np.arange(3), 1], [10, 1, 100])
    array([[100, 101, 102],
           [110, 111, 112]])
    """
    total: Any = 0
    terms = zip(values, weights, strict=True)
    for value, weight in sorted(terms, key=lambda term: np.size(term[0])):
        total = total + value * weight
    return total


def physical_windows(array: NDArray[Any], layout: Layout) -> Callable[[Box], NDArray[Any]]:
    """Return a function from a box of physical indices to the elements and padding there.

    array: of the layout's shape and dtype, in any byte order; only the elements of a box are read.
    A layout without a closed inverse is packed in full.
    """
    fill = host_fill(layout)
    try:
        inverse = layout.inverse_in_bounds
    except LayoutError:
        physical = pack_host(array.astype(layout.dtype, copy=False), layout)
        return lambda box: physical[tuple(slice(each.start, each.stop) for each in box)]
    rank = len(layout.physical_shape)
    logical = Results(rank, inverse.map.results)
    bounds = Results(rank, [expr for expr, _ in inverse.domain.constraints])
    equal = [is_equal for _, is_equal in inverse.domain.constraints]

    def window(box: Box) -> NDArray[Any]:
        out = np.empty(tuple(map(len, box)), layout.dtype)
        if not array.size or not out.size:
            out[...] = fill
            return out
        index = [np.clip(i, 0, n - 1) for i, n in zip(logical(box), array.shape, strict=True)]
        out[...] = _taken(array, index)
        for value, is_equal in zip(bounds(box), equal, strict=True):
            is_padding = np.asarray(value) != 0 if is_equal else np.asarray(value) < 0
            if is_padding.any():
                np.copyto(out, fill, where=is_padding)
        return out

    return window


def _taken(array: NDArray[Any], index: Sequence[Index]) -> NDArray[Any]:
    if array.flags.c_contiguous:  # one flat index is faster than one index per dim
        return array.reshape(-1)[weighted(index, row_major(array.shape))]
    return np.asarray(array[tuple(index)])
