"""The policy: the choice of a result's layout where the operation leaves one.

A policy is a function `(shape, dtype, like, device) -> Layout`. `like` is the layout of the operand
that the result comes from, or None. `gl.on_grid(fn, policy=...)` sets another policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Shape, ShapeLike, as_shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import as_dtype
from gridlayout.layouts.buffers import row_bytes
from gridlayout.layouts.folding import primes
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.ops.array.fitting import ANY, fitting, most_bytes
from gridlayout.public import public
from gridlayout.sharding.device_argument import as_device
from gridlayout.sharding.device_grid import DeviceGrid

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The word for a layout of one core, which is on every device.
REPLICATED = "replicated"
Policy = Callable[[Shape, "np.dtype[Any]", Layout | None, DeviceGrid], Layout]


def same_grid_and_tile(
    shape: Shape, dtype: np.dtype[Any], like: Layout | None, device: DeviceGrid
) -> GridLayout:
    """The default policy: the operand's grid and tile for the new shape, with undef padding.

    The last dims are separate, one per grid dim; all dims before them are joined. If the grid has
    more dims than the shape (and than two), its dims of one core are dropped; remaining extra cores
    divide the first dim. Without an operand, the grid is the device grid; for an operand of another
    system, it is the operand's core grid, if it has one. Both are untiled.

    The storage takes at most twice the bytes of the elements, or the operand's ratio of storage to
    elements, or 4096 bytes. Where it would take more, the tile is reduced to a core's part or
    dropped, and cores that would have less than 256 bytes are left out.

    >>> from gridlayout import DeviceGrid
    >>> like = GridLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
    >>> same_grid_and_tile((4, 500, 6), np.dtype("int32"), like, DeviceGrid((1,)))
    GridLayout((4, 500, 6), 'int32', grid=(3, 2), tile=(32, 3))
    >>> same_grid_and_tile((9000,), np.dtype("int32"), like, DeviceGrid((1,)))
    GridLayout((9000,), 'int32', grid=(6,), tile=(32,))
    """
    return offered(tuple(shape), dtype, like, device)[0]


@cached
def offered(
    shape: Shape, dtype: np.dtype[Any], like: Layout | None, device: DeviceGrid, times: int = 1
) -> tuple[GridLayout, ...]:
    """Return the default policy's layout, then others that it allows, as for `fitting`.

    times: how many such tensors there are side by side.
    """
    grid = _grid(shape, like, device)
    extra = len(grid) - len(shape)
    if shape and extra > 0 and prod(grid[:extra]) > 1:
        grid = (prod(grid[: extra + 1]), *grid[extra + 1 :])
    found = _like(shape, dtype, grid, like)
    return fitting(
        found, most_bytes(found.data_bytes, filter(None, [like]), device, times), device, times
    )


def of_rank(
    shape: Shape, dtype: np.dtype[Any], like: Layout | None, device: DeviceGrid
) -> GridLayout:
    """Return the operand's grid and tile on a shape of another rank, with storage of any size.

    `jax.vmap` needs it: for the type of one mapped array, given that of all of them, or vice versa.
    """
    found = _like(shape, dtype, _grid(shape, like, device), like)
    return found if device.placements.has(found.grid) else fitting(found, ANY, device)[0]


def _grid(shape: Shape, like: Layout | None, device: DeviceGrid) -> Shape:
    """Return the operand's or the device grid, without dims of one core that the shape lacks."""
    own = None if like is None else as_grid(like)
    if own is not None:
        grid = own.grid
    else:
        grid = (like.core_shape if like is not None else ()) or device.shape
    for k in reversed(range(len(grid))):
        if len(grid) > max(len(shape), 2) and grid[k] == 1:
            grid = (*grid[:k], *grid[k + 1 :])
    return grid


@public
def fill_devices(
    shape: ShapeLike, dtype: DTypeLike, like: Layout | None, device: DeviceGrid
) -> GridLayout:
    """A policy by which all devices hold nearly as little as possible; the rule of `gl.put(tree)`.

    There is at most one core per device, and none is empty. A vector is divided along its dim. In
    other shapes, all dims except the last are joined to rows; rows and columns are divided by two
    factors of the number of devices. Grids are considered whose shards, in whole tiles, hold at
    most an eighth more than the smallest. Of these, the device grid's own shape is chosen, or else
    the grid whose shards are nearest to squares. like: a layout whose tile, face, row alignment and
    memory space are used.

    >>> from gridlayout import DeviceGrid
    >>> import jax
    >>> device = DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    >>> [fill_devices(shape, "float32", None, device).grid for shape in ((53, 63), (13,), (3, 90))]
    [(2, 4), (7,), (1, 8)]
    >>> fill_devices((53, 63), "float32", GridLayout((1, 1), tile=(32, 32)), device)
    GridLayout((53, 63), 'float32', grid=(2, 2), tile=(32, 32))
    """
    device = as_device(device)
    if like is not None:
        check_layout(like, "like")
    return _filling(as_shape(shape, "shape"), as_dtype(dtype), like, device)


def replicated(shape: ShapeLike, dtype: DTypeLike, like: Layout | None = None) -> GridLayout:
    """Return the layout of one core, of which every device has a copy: the layout "replicated".

    like: a layout whose memory space is used.

    >>> replicated((5, 7), "int32")
    GridLayout((5, 7), 'int32', grid=(1, 1))
    """
    shape = as_shape(shape, "shape")
    found = _like(shape, as_dtype(dtype), (1,) * min(max(len(shape), 1), 2), None)
    space = None if like is None else like.memory
    return found.replace(memory_space=space) if space in MEMORY_SPACES else found


def is_replicated(layout: Any) -> bool:
    """Return whether it is the word "replicated", in place of a layout.

    >>> is_replicated("replicated"), is_replicated(None)
    (True, False)
    """
    return isinstance(layout, str) and layout == REPLICATED


@cached
def _filling(
    shape: Shape, dtype: np.dtype[Any], like: Layout | None, device: DeviceGrid
) -> GridLayout:
    own = None if like is None else as_grid(like)
    tile = (own.tile if own is not None else None) or ()
    rank = min(max(len(shape), len(tile), 1), 2)
    joined = max(len(shape) - rank + 1, 0)
    rows = (prod(shape[:joined]),) if joined else (1,) * (rank - len(shape))
    sizes = (*rows, *shape[joined:])
    tile = (1,) * (rank - len(tile)) + tile[-rank:]
    found = _with_placement(sizes, tile, device)
    least = min(prod(shard) for _, shard in found)
    grids = {grid: sum(shard) for grid, shard in found if 8 * prod(shard) <= 9 * least}
    # Among equals, the one with the most rows of cores, which `_factors` returns first.
    grid = device.shape if device.shape in grids else min(grids, key=grids.__getitem__)
    return _like(shape, dtype, grid, like)


def _with_placement(sizes: Shape, tile: Shape, device: DeviceGrid) -> list[tuple[Shape, Shape]]:
    """Return the grids of as many devices as possible that have a placement, with their shards."""
    count = device.size
    while True:  # one core always has a placement
        divided = (_divided(sizes, cores, tile) for cores in _factors(count, len(sizes)))
        if found := [each for each in divided if device.placements.has(each[0])]:
            return found
        count //= primes(count)[0]


def _factors(devices: int, rank: int) -> Sequence[Shape]:
    """Return the devices as one factor, or as all pairs of factors, the most rows first."""
    if rank == 1:
        return [(devices,)]
    low = [n for n in range(1, isqrt(devices) + 1) if devices % n == 0]
    return sorted({pair for n in low for pair in ((n, devices // n), (devices // n, n))})[::-1]


def _divided(sizes: Shape, cores: Shape, tile: Shape) -> tuple[Shape, Shape]:
    """Return the grid of those cores that hold something, and their shard, in whole tiles."""
    held = [max(-(-n // (many * t)), 1) * t for n, many, t in zip(sizes, cores, tile, strict=True)]
    return tuple(max(-(-n // h), 1) for n, h in zip(sizes, held, strict=True)), tuple(held)


def _like(shape: Shape, dtype: np.dtype[Any], grid: Shape, like: Layout | None) -> GridLayout:
    """Return a layout on this grid with the blocks and the memory space of `like`."""
    tile, face, aligned, space = None, None, None, "l1"
    if like is not None and (own := as_grid(like)) is not None:
        tile, face, space = own.tile, own.face, own.memory_space
        aligned = None if tile else row_bytes(own.row_multiple, dtype)
    elif like is not None and like.memory in MEMORY_SPACES:
        space = like.memory
    joined = max(len(shape) - len(grid) + 1, 0)
    return GridLayout(
        *(shape, dtype, grid, tile and tile[-len(grid) :], [(0, joined)]),
        memory_space=space,
        face=face and face[-len(grid) :],
        row_alignment=aligned,
    )
