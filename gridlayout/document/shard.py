"""Shards: the elements of the collapsed dims on each core, by ceil-division or as stated."""

from __future__ import annotations

from typing import Any

from gridlayout.arguments import Shape, as_shape
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
