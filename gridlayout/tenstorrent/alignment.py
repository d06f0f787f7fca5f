"""Alignment: what tt-metal pads a tensor's dims to, from the last dim outward (tensor_layout.cpp).

An alignment names the last dims of a tensor; it may have more dims than the tensor, which then gets
dims of extent 1 in front. All numbers count elements.
"""

from __future__ import annotations

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError

PAGE = 32 * 32  # elements of the pages in which tt-mlir allocates L1 for scalars


def align(n: int, to: int) -> int:
    """The smallest multiple of `to` that is at least `n`.

    >>> align(43, 32)
    64
    """
    return -(-n // to) * to


def merged(given: Shape, needed: Shape) -> Shape:
    """The given alignment, each dim rounded up to what is needed there.

    >>> merged((3, 40, 20), (32, 32))
    (3, 64, 32)
    """
    rank = max(len(given), len(needed))
    return tuple(align(n, to) for n, to in zip(_led(given, rank), _led(needed, rank), strict=True))


def padded_shape(shape: Shape, alignment: Shape) -> Shape:
    """The shape, each dim padded so that it and all that it holds meet its alignment.

    The last two dims round up to their alignment. An outer dim counts the rows that one index of it
    holds: it rounds up to `alignment / rows`, and one of the two must divide the other.

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
                    f"alignment {to} of a dim over {rows} rows: one must divide the other"
                )
            to = max(to // rows, 1) if rows else 1
        padded.append(align(extents[k], to))
        rows *= padded[-1] if k < rank - 1 else 1
    return tuple(reversed(padded))


def logical_strides(shape: Shape, alignment: Shape) -> Shape:
    """tt-metal's logical strides: from one index of a dim to the next, in elements.

    The product of the inner extents, rounded up at every step to the alignment of the dim just
    inside. They are no distances in memory: those are what `locate` gives.

    >>> logical_strides((5, 4, 3, 2), (32, 32))
    (384, 96, 32, 1)
    """
    alignments = _led(alignment, len(shape))
    found = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        found[k] = align(found[k + 1] * shape[k + 1], alignments[k + 1])
    return tuple(found)


def _led(dims: Shape, rank: int) -> Shape:
    """`dims` with ones in front up to `rank`; of more dims, the last `rank`."""
    return ((1,) * rank + dims)[len(dims) :]
