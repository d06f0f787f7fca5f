"""Limits on the storage of a result, and layouts that fit them.

A layout is made for one tensor. For another one, a grid dim may divide nothing, and a tile may be
larger than a core's part: most of the storage would be padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, constant, linearized
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.folding import primes
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS

ANY = 1 << 62  # bytes: storage of any size


def storage_bytes(layout: Layout, device: DeviceGrid) -> int:
    """Return the bytes of an array's storage over all cores, with padding and idle slots.

    Copies on several devices count once, as in `x.storage.nbytes`.

    >>> layout = GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    >>> storage_bytes(layout, DeviceGrid((1,))) == layout.nbytes
    True
    """
    return dtypes.nbytes(device.storage_shape(layout), layout.dtype)


def most_bytes(nbytes: int, operands: Iterable[Layout], device: DeviceGrid, times: int = 1) -> int:
    """Return the most bytes that the storage of a result may take, for elements of `nbytes`.

    This is twice `nbytes`; or the ratio of storage to elements of an operand times `nbytes`, if
    that is larger; but at least `LIMITS.page_bytes` for all results together. Operands whose
    storage is no larger than that do not count. times: the number of such results side by side.

    >>> operand = GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    >>> most_bytes(6000, [], DeviceGrid((1,))), most_bytes(60, [operand], DeviceGrid((1,)))
    (12000, 4096)
    """
    most = max(2 * nbytes, LIMITS.page_bytes // times)
    for each in operands:
        held = storage_bytes(each, device)
        if held > LIMITS.page_bytes and each.size:
            most = max(most, held * 8 * nbytes // (each.size * dtypes.bits(each.dtype)))
    return most


@cached
def fitting(
    layout: GridLayout, most: int, device: DeviceGrid, times: int = 1
) -> tuple[GridLayout, ...]:
    """Return layouts of the same tensor whose storage takes at most `most` bytes.

    All have a placement on the device grid. This is the layout itself, if it does and has. Else the
    first one is on the same cores of each grid dim that divides something, or on fewer where a core
    would have less than `LIMITS.core_bytes`. Its tile is reduced to a core's part, or dropped if
    that is not enough. The second, if there is one, is on the whole grid. Stated shards, flips and
    gaps are dropped. times: how many such tensors there are side by side.

    >>> tiled = GridLayout((1, 630), grid=(4, 2), tile=(32, 32))
    >>> fitting(tiled, 4096, DeviceGrid((1,)))[0]
    GridLayout((1, 630), 'float32', grid=(1, 2), tile=(1, 32))
    """

    def fits(x: GridLayout) -> bool:
        return device.placements.has(x.grid) and storage_bytes(x, device) <= most

    if fits(layout):
        return (layout,)
    plain = _plain(layout)
    few = _grids(plain, times)
    first = (found for grid in few for found in _blocks(plain, grid))
    found = [next(filter(fits, first), None)]
    found.append(next(filter(fits, _blocks(plain, plain.grid)), None))
    return tuple(dict.fromkeys(x for x in found if x is not None))


@cached
def spread(layout: GridLayout) -> GridLayout:
    """Return the layout on its whole grid, with its tile reduced to a core's part.

    It is an intermediate layout. A device holds no more than in the first layout of `fitting`; a
    part that is a copy there may be only padding here.

    >>> spread(GridLayout((1, 630), grid=(4, 2), tile=(32, 32)))
    GridLayout((1, 630), 'float32', grid=(4, 2), tile=(1, 32))
    """
    plain = _plain(layout)
    return next(_blocks(plain, plain.grid))


def _plain(layout: GridLayout) -> GridLayout:
    """Return the layout with each group of dims in row-major order from 0, and no stated shards."""
    rows = [linearized(layout.shape, group) if group else constant(0) for group in layout.groups]
    if not rows or layout.is_scatter:
        joined = max(layout.ndim - len(layout.grid) + 1, 0)
        return GridLayout(
            *(layout.shape, layout.dtype, layout.grid, layout.tile, [(0, joined)]),
            memory_space=layout.memory_space,
        )
    return layout.replace(
        linear=AffineMap(layout.ndim, tuple(rows)), shard_shape=None, oob=None, tile_format=None
    )


def _grids(layout: GridLayout, times: int) -> Iterator[Shape]:
    """Yield its grid without dims that divide nothing, then smaller grids, down to one core."""
    pairs = zip(layout.grid, layout.collapsed_shape, strict=True)
    grid = [max(min(pair), 1) for pair in pairs]
    enough = LIMITS.core_bytes
    nbytes = times * dtypes.nbytes(layout.size, layout.dtype)
    while True:
        if prod(grid) == 1 or nbytes >= enough * prod(grid):
            yield tuple(grid)
        if prod(grid) == 1:
            return
        k = max(range(len(grid)), key=grid.__getitem__)
        grid[k] //= primes(grid[k])[0]


def _blocks(layout: GridLayout, grid: Shape) -> Iterator[GridLayout]:
    """Yield the layout on another grid: with its tile reduced to the shard, then untiled."""
    untiled = layout.replace(grid=grid, tile=None, face=None, row_alignment=None)
    if not layout.tile:
        yield layout.replace(grid=grid)
    else:
        shard = untiled.shard_shape[len(grid) - len(layout.tile) :]
        tile = tuple(max(min(pair), 1) for pair in zip(layout.tile, shard, strict=True))
        is_same = tile == layout.tile
        aligned = layout.row_alignment if is_same else None
        if tile != shard:
            yield untiled.replace(
                tile=tile, face=layout.face if is_same else None, row_alignment=aligned
            )
    yield untiled
