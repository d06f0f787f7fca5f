"""Alignment: how tt-metal pads a tensor's dims, from the last dim outward (tensor_layout.cpp).

An alignment applies to the last dims of a tensor. If it has more dims than the tensor, the tensor
gets leading dims of extent 1. All numbers are in elements.
"""

from __future__ import annotations

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError

PAGE = 32 * 32  # elements per page in which tt-mlir allocates L1 for scalars


def align(n: int, to: int) -> int:
    """The smallest multiple of `to` that is at least `n`.

    >>> align(43, 32)
    64
    """
    return -(-n // to) * to


def merged(given: Shape, needed: Shape) -> Shape:
    """The given alignment, each dim rounded up to a multiple of the needed alignment.

    >>> merged((3, 40, 20), (32, 32))
    (3, 64, 32)
    """
    rank = max(len(given), len(needed))
    return tuple(align(n, to) for n, to in zip(_led(given, rank), _led(needed, rank), strict=True))


def padded_shape(shape: Shape, alignment: Shape) -> Shape:
    """The shape with each dim padded to its alignment.

    The last two dims are rounded up to their alignment. The alignment of an outer dim counts rows:
    if one index of the dim holds `rows` rows, the dim is rounded up to `alignment / rows`.
    `LayoutError` unless one of `alignment` and `rows` divides the other.

    >>> padded_shape((30, 20, 10), (1024, 32, 32)), padded_shape((), (32, 32))
    ((32, 32, 32), (32, 32))
    """
    rank = max(len(shape), len(alignment))
    extents, alignments = _led(shape, rank), _led(alignment, rank)
    padded: list[int] = []
    rows = 1
    for k in reversed(range(rank)):
        to = alignments[k]
        if k < rank - 2:
            if rows % to and to % rows:
                raise LayoutError(
                    f"alignment {to} of a dim whose indices hold {rows} rows: one must divide the "
                    "other"
                )
            to = max(to // rows, 1) if rows else 1
        padded.append(align(extents[k], to))
        rows *= padded[-1] if k < rank - 1 else 1
    return tuple(reversed(padded))


def logical_strides(shape: Shape, alignment: Shape) -> Shape:
    """tt-metal's logical strides, in elements.

    Each is the product of the inner extents, rounded up at every dim to its alignment. They are not
    distances in memory; `locate` gives the place of an element in memory.

    >>> logical_strides((5, 4, 3, 2), (32, 32))
    (384, 96, 32, 1)
    """
    alignments = _led(alignment, len(shape))
    found = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        found[k] = align(found[k + 1] * shape[k + 1], alignments[k + 1])
    return tuple(found)


def _led(dims: Shape, rank: int) -> Shape:
    """`dims` with leading ones up to `rank`; the last `rank` if there are more dims."""
    return ((1,) * rank + dims)[len(dims) :]
