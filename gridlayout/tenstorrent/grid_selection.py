"""Alignments of dims by the grid of cores that tt-mlir selects for a tensor.

Source: tt-mlir, `lib/Dialect/D2M/Utils/GridSelectionUtils.cpp`. A tensor is first padded to the
device's grid where it has more tiles than cores. A grid is selected that divides its tiles: in
blocks, or, where these take less than half of the cores, along its longer side over as many cores
as divide it. Then the dims are aligned again, to the selected grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, lcm, prod
from typing import Any

from gridlayout.arguments import Shape, ShapeLike, as_shape, positive
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.tenstorrent.alignment import align
from gridlayout.tenstorrent.metal_layout import spans_of, tile_alignments

_SIDE = 32
_MOST_CORES = 1 << 16


@public
def grid_aware_alignments(
    shape: ShapeLike, grid: ShapeLike, collapsed_intervals: Any = None
) -> Shape:
    """The alignments of tt-mlir for 32x32 tiles on a device with a 2-D grid of cores.

    The first dim of an interval is aligned such that the selected grid divides the tiles. grid: the
    device's, of at most 2**16 cores. If the dims are not collapsed to two, the last two intervals
    are aligned to the device's grid.

    >>> grid_aware_alignments((9, 43, 7), (8, 8)), grid_aware_alignments((4, 43, 7), (8, 8))
    ((256, 32, 32), (1, 32, 32))
    >>> grid_aware_alignments((1, 19, 1, 1), (8, 8))  # 24 rows of tiles on 24 cores
    (192, 1, 32, 32)
    """
    shape, grid = as_shape(shape, "shape"), positive(grid, "grid")
    if len(grid) != 2:
        raise LayoutError(f"grid {grid} must have rank 2: grid-aware alignments are for a plane")
    if prod(grid) > _MOST_CORES:
        raise LayoutError(f"grid {grid} has {prod(grid)} cores: give a device's, at most 2**16")
    spans = spans_of(shape, collapsed_intervals)
    found = list(tile_alignments(shape, collapsed_intervals))
    for (start, end), cores in zip(spans[::-1], grid[::-1], strict=False):
        if _size(shape, found, start, end) > cores * _SIDE:
            found[start] = cores * _SIDE
    if len(spans) != 2 or 0 in shape:
        return tuple(found)
    tiles = [_size(shape, found, start, end) // _SIDE for start, end in spans]
    found = list(tile_alignments(shape, collapsed_intervals))
    for (start, end), cores in zip(spans, selected_grid(tiles, grid), strict=True):
        found[start] = _aligned(shape, found, start, end, cores * _SIDE)
    return tuple(found)


def selected_grid(tiles: Sequence[int], grid: Sequence[int]) -> Shape:
    """Return the grid over which tt-mlir divides a plane of tiles on a device of 2-D `grid`.

    >>> [selected_grid(tiles, (8, 8)) for tiles in ((16, 16), (24, 1), (4, 3))]
    [(8, 8), (24, 1), (4, 3)]
    """
    cores = prod(grid)
    blocks = tuple(
        next(n for n in range(most, 0, -1) if count % n == 0)
        for count, most in zip(tiles, grid, strict=True)
    )
    if 2 * prod(blocks) >= cores:
        return blocks
    longer = 1 if tiles[1] > tiles[0] else 0
    most = min(tiles[longer], cores)
    best = next(n for n in range(most, 0, -1) if tiles[longer] % n == 0 and _has_place(n, grid))
    if 4 * best <= cores:
        return blocks
    return (1, best) if longer else (best, 1)


def _has_place(count: int, grid: Sequence[int]) -> bool:
    """Whether a rectangle of `count` cores fits a device's grid."""
    return any(
        count % n == 0
        and any(a <= grid[0] and b <= grid[1] for a, b in ((n, count // n), (count // n, n)))
        for n in range(isqrt(count), 0, -1)
    )


def _size(shape: Shape, alignments: Sequence[int], start: int, end: int) -> int:
    """Return the elements of an interval of dims, each aligned with those after it."""
    size = 1
    for d in range(end - 1, start - 1, -1):
        size = align(size * shape[d], alignments[d])
    return size


def _aligned(shape: Shape, alignments: Sequence[int], start: int, end: int, unit: int) -> int:
    """Return the alignment of the first dim of an interval for which `unit` divides its elements.

    That is the compiler's: a multiple of `unit` for larger intervals, else the smallest.
    """
    base, size = alignments[start], _size(shape, alignments, start, end)
    if size > unit:
        return lcm(base, unit)
    if size % unit == 0:
        return base
    inner = _size(shape, alignments, start + 1, end) * shape[start]
    return next(n for n in range(base, unit + 1, base) if align(inner, n) % unit == 0)
