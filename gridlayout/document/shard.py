"""Shard shapes: elements of each collapsed dim per core, by ceil-division or as stated.

This module also computes the alignment of a shard's rows, for "minimum Noc addressing requirements"
(tt-mlir, "Padding").
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_shape, in_sequence, positive, shown
from gridlayout.errors import LayoutError

# For each collapsed dim the stated shard extent, or None if it follows from ceil-division.
Stated = tuple[int | None, ...]


def ceil_shard(collapsed: Shape, grid: Shape) -> Shape:
    """The collapsed dims divided by the grid dims, rounded up (tt-mlir, "Padding").

    >>> ceil_shard((53, 63), (3, 2))
    (18, 32)
    """
    return tuple(-(-n // cores) for n, cores in zip(collapsed, grid, strict=True))


def as_shard(shard_shape: Any, collapsed: Shape, grid: Shape) -> tuple[Shape, Stated]:
    """Return the shard shape, and its stated extents: those larger than ceil-division gives.

    shard_shape: elements along each collapsed dim; None, for a dim or for all, means ceil-division.
    `LayoutError` if the shards of a dim together are smaller than the dim.

    >>> as_shard((96, 16), (364, 16), (4, 1))
    ((96, 16), (96, None))
    """
    needed = ceil_shard(collapsed, grid)
    if shard_shape is None:
        return needed, (None,) * len(grid)
    try:
        given = tuple(in_sequence(shard_shape))
    except TypeError:
        raise LayoutError(
            f"shard_shape {shown(shard_shape)} must be a sequence of numbers"
        ) from None
    if len(given) != len(grid):
        raise LayoutError(
            f"shard_shape {given} has {len(given)} dims, but the grid {grid} has {len(grid)}"
        )
    filled = (n if size is None else size for n, size in zip(needed, given, strict=True))
    shard = as_shape(filled, "shard_shape")
    for k, (size, least) in enumerate(zip(shard, needed, strict=True)):
        if size < least:
            raise LayoutError(
                f"shard_shape {shard}: {grid[k]} cores of {size} do not hold the {collapsed[k]} "
                f"positions of collapsed dim {k}; give {least} or more, or None"
            )
    stated = (size if size > n else None for size, n in zip(shard, needed, strict=True))
    return shard, tuple(stated)


def stated_by(counts: Shape, plain: Shape, tile: Shape) -> Stated | None:
    """The shard extents that a memref of `counts` tiles states; None if it has too few tiles.

    plain: the number of tiles for ceil-division; a dim with this number states nothing.

    >>> stated_by((4, 1), (3, 1), (32, 32)), stated_by((2, 1), (3, 1), (32, 32))
    ((128, None), None)
    """
    if len(counts) != len(plain) or any(n < m for n, m in zip(counts, plain, strict=True)):
        return None
    extents = zip(counts, plain, tile, strict=True)
    return tuple(n * extent if n > m else None for n, m, extent in extents)


def row_multiple(
    row_alignment: Any, dtype: np.dtype[Any], tile: Shape | None, tile_format: str | None = None
) -> int:
    """The alignment of a row of a core's buffer in elements, for an alignment in bytes.

    With tiles, whose elements are contiguous, the bytes of each tile must be aligned.
    tile_format: the block format of the tiles, which states their bytes. `LayoutError` if the
    alignment is not a power of 2, and for tiles that are not aligned.

    >>> row_multiple(16, dtypes.as_dtype("bfloat16"), None)
    8
    """
    if row_alignment is None:
        return 1
    (bytes_,) = positive((row_alignment,), "row_alignment")
    if bytes_ & (bytes_ - 1):
        raise LayoutError(f"row_alignment {bytes_} must be a power of 2, in bytes, such as 16")
    multiple = max(8 * bytes_ // dtypes.bits(dtype), 1)
    if tile is None:
        return multiple
    if tile_format is None:
        size = prod(tile) * dtypes.bits(dtype) / 8
    else:
        size = prod(tile) / (32 * 32) * dtypes.BLOCK_FORMATS[tile_format]
    if size % bytes_:
        raise LayoutError(
            f"row_alignment {bytes_}: a tile {tile} of {tile_format or dtype.name} is {size:g} B, "
            "which is not a multiple of it; give another tile"
        )
    return multiple
