"""Intervals of linear positions, as boxes of multi-dimensional indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# For each dim: start (included), stop (excluded).
Box = tuple[tuple[int, int], ...]


def is_nested(strides: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether each stride is at least the span of all dims with smaller strides.

    Then the positions of different indices differ. strides: at least 1, the largest first.

    >>> is_nested((8, 1), (4, 6)), is_nested((4, 1), (4, 6))
    (True, False)
    """
    inner = 1
    for stride, extent in zip(reversed(strides), reversed(extents), strict=True):
        if stride < inner:
            return False
        inner += stride * (extent - 1)
    return True


def boxes_between(
    low: int, high: int, strides: Sequence[int], extents: Sequence[int], level: int = 0
) -> Iterator[Box]:
    """The indices whose position, the sum of stride * index, is in [low, high), as boxes.

    strides: nested, the largest first. There are at most `2 k - 1` boxes for `k` dims.

    >>> list(boxes_between(5, 14, (4, 1), (4, 4)))
    [((1, 2), (1, 4)), ((3, 4), (0, 2)), ((2, 3), (0, 4))]
    """
    if low >= high:
        return
    if level == len(strides):
        yield ()
        return
    stride, extent = strides[level], extents[level]
    below = zip(strides[level + 1 :], extents[level + 1 :], strict=True)
    inner = 1 + sum(s * (n - 1) for s, n in below)
    first, last = low // stride, (high - 1) // stride
    # Only the first and the last row can be partial.
    partial = [e for e in {first, last} if low > e * stride or high < e * stride + inner]
    for e in partial:
        if 0 <= e < extent:
            start, stop = max(low - e * stride, 0), min(high - e * stride, inner)
            for box in boxes_between(start, stop, strides, extents, level + 1):
                yield ((e, e + 1), *box)
    start, stop = max(first + (first in partial), 0), min(last + (last not in partial), extent)
    if start < stop:
        yield ((start, stop), *((0, n) for n in extents[level + 1 :]))
