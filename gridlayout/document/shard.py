"""Shards: the elements of the collapsed dims on each core, by ceil-division or as stated.

And the alignment of a shard's rows: "minimum Noc addressing requirements" (tt-mlir, "Padding").
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_shape, positive
from gridlayout.errors import LayoutError

# Of each collapsed dim the shard that was stated, None where it is what ceil-division gives.
Stated = tuple[int | None, ...]


def ceil_shard(collapsed: Shape, grid: Shape) -> Shape:
    """The collapsed dims by the grid dims, rounded up (tt-mlir, "Padding").

    >>> ceil_shard((53, 63), (3, 2))
    (18, 32)
    """
    return tuple(-(-n // cores) for n, cores in zip(collapsed, grid, strict=True))


def as_shard(shard_shape: Any, collapsed: Shape, grid: Shape) -> tuple[Shape, Stated]:
    """The shard, and what of it is stated: more than ceil-division gives.

    shard_shape: elements along each collapsed dim; None for a dim, or for all, is what
    ceil-division gives. `LayoutError` where the cores of a dim would hold less than all of it.

    >>> as_shard((96, 16), (364, 16), (4, 1))
    ((96, 16), (96, None))
    """
    needed = ceil_shard(collapsed, grid)
    if shard_shape is None:
        return needed, (None,) * len(grid)
    try:
        given = tuple(shard_shape)
    except TypeError:
        raise LayoutError(f"shard_shape {shard_shape!r} must be a sequence of numbers") from None
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
    """What a memref of `counts` tiles states of the shard; None where it has too few of them.

    plain: the tiles of the shard that ceil-division gives; as many of them state nothing.

    >>> stated_by((4, 1), (3, 1), (32, 32)), stated_by((2, 1), (3, 1), (32, 32))
    ((128, None), None)
    """
    if len(counts) != len(plain) or any(n < m for n, m in zip(counts, plain, strict=True)):
        return None
    sides = zip(counts, plain, tile, strict=True)
    return tuple(n * side if n > m else None for n, m, side in sides)


def row_multiple(row_alignment: Any, dtype: np.dtype[Any], tile: Shape | None) -> int:
    """The elements that a row of a core's buffer is a multiple of, for an alignment in bytes.

    A tile's elements lie together, so with tiles it is their bytes that must be a multiple.
    `LayoutError` for what is no power of 2, and for tiles that are not aligned.

    >>> row_multiple(16, dtypes.as_dtype("bfloat16"), None)
    8
    """
    if row_alignment is None:
        return 1
    (bytes_,) = positive((row_alignment,), "row_alignment")
    if bytes_ & (bytes_ - 1):
        raise LayoutError(f"row_alignment {bytes_} must be a power of 2, in bytes, such as 16")
    multiple = max(8 * bytes_ // dtypes.bits(dtype), 1)
    if tile is not None and prod(tile) % multiple:
        raise LayoutError(
            f"row_alignment {bytes_}: a tile {tile} of {dtype.name} is "
            f"{prod(tile) * dtypes.bits(dtype) / 8:g} B, no multiple of it; give another tile"
        )
    return multiple


def row_bytes(multiple: int, dtype: np.dtype[Any]) -> int | None:
    """The alignment in bytes that a multiple of elements is; None for single elements.

    >>> row_bytes(8, dtypes.as_dtype("bfloat16"))
    16
    """
    return None if multiple == 1 else multiple * dtypes.bits(dtype) // 8
