"""The policy: which layout a result gets where the operation leaves a choice.

A policy is a function `(shape, dtype, like, device) -> Layout`. `like` is the layout of the operand
that the result comes from, or None. `gl.on_grid(fn, policy=...)` takes another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gridlayout.document.grid_layout import GridLayout
from gridlayout.document.shard import row_bytes
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.sharding.device_grid import DeviceGrid

Policy = Callable[[tuple[int, ...], "np.dtype[Any]", Layout | None, DeviceGrid], Layout]


@lru_cache(maxsize=4096)
def same_grid_and_tile(
    shape: tuple[int, ...], dtype: np.dtype[Any], like: Layout | None, device: DeviceGrid
) -> Layout:
    """The default policy: the operand's grid and tile on the new shape, its padding undef.

    The last dims stay apart, one to a grid dim; all dims before them are joined. Of a grid of more
    dims than the shape (and than two), those of one core go. Without an operand, or with one of
    another system, the grid is the operand's core grid or the device grid, untiled.

    >>> from gridlayout import DeviceGrid
    >>> like = GridLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
    >>> same_grid_and_tile((4, 5, 6), np.dtype("int32"), like, DeviceGrid((1,)))
    GridLayout((4, 5, 6), 'int32', grid=(3, 2), tile=(32, 32))
    """
    own = None if like is None else like.as_grid
    if own is not None:
        grid, tile, face, space = own.grid, own.tile, own.face, own.memory_space
        aligned = None if tile else row_bytes(own.row_multiple, dtype)
    else:
        grid = (like.core_shape if like is not None else ()) or device.shape
        tile, face, aligned = None, None, None
        space = like.memory if like is not None and like.memory in MEMORY_SPACES else "l1"
    for k in reversed(range(len(grid))):
        if len(grid) > max(len(shape), 2) and grid[k] == 1:
            grid = (*grid[:k], *grid[k + 1 :])
    tile = tile if tile is None else tile[-len(grid) :]
    joined = max(len(shape) - len(grid) + 1, 0)
    collapse = [(0, joined)]
    return GridLayout(
        *(shape, dtype, grid, tile, collapse),
        memory_space=space,
        face=face,
        row_alignment=aligned,
    )
