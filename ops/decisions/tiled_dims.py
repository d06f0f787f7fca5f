"""`TiledDims`: operations that only move whole tiles, as operations on an array's part in tiles.

Functions of an operation's parameters return those of the same operation on the parts, or None if
it does not keep the tiles of an undivided dim whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout

Params = Mapping[str, Any]


@dataclass(frozen=True)
class TiledDims:
    """Where the dims of an array are in a device's part of it.

    shape: of the array. part: the shape of the part. cores: the number of its dims that count
    cores. dims: for each dim of the array, those of its tiles and in a tile, the major first.
    """

    shape: Shape
    part: Shape
    cores: int
    dims: tuple[Shape, ...]

    @classmethod
    def of(cls, layout: GridLayout, per_device: Shape) -> TiledDims:
        """Return those of a layout with each dim in a grid dim of its own.

        per_device: how many cores a device has along each grid dim.

        >>> layout = GridLayout((3, 64, 96), grid=(1, 2, 1), tile=(32, 32), collapse=[])
        >>> at = TiledDims.of(layout, (1, 1, 1))
        >>> at.part, at.dims, [at.tile(d) for d in range(3)]
        ((1, 1, 1, 3, 1, 3, 32, 32), ((3,), (4, 6), (5, 7)), [1, 32, 32])
        """
        cores = len(layout.grid)
        dims = tuple(layout.axis_dims(k)[1:] for k in range(cores))
        return cls(layout.shape, per_device + layout.local_shape, cores, dims)

    def tile(self, d: int) -> int:
        """Return the extent of a tile along a dim; 1 where that is not tiled."""
        return prod(self.part[k] for k in self.dims[d][1:])

    def is_whole(self, d: int, n: int) -> bool:
        """Whether `n` positions along a dim are whole tiles."""
        return n % self.tile(d) == 0

    def tiles(self, d: int, n: int) -> int:
        """Return how many tiles have `n` positions along a dim."""
        return -(-n // self.tile(d))


# A function of an op's parameters, of its operands' shapes and of where the first one's dims are.
OfTiles = Callable[[Params, Sequence[Shape], TiledDims], Params | None]


def sliced(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the slice of tiles."""
    starts, limits = [0] * len(at.part), [*at.part]
    for d, (start, limit) in enumerate(
        zip(params["start_indices"], params["limit_indices"], strict=True)
    ):
        if not at.is_whole(d, start) or (params["strides"] or (1,) * len(shapes[0]))[d] != 1:
            return None
        if (start, limit) != (0, at.shape[d]):
            starts[at.dims[d][0]] = at.tiles(d, start)
            limits[at.dims[d][0]] = at.tiles(d, limit)
    return {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": None}


def split(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the split of tiles."""
    d, sizes = params["axis"], params["sizes"]
    if not all(at.is_whole(d, start) for start in accumulate(sizes[:-1])):
        return None
    return {"axis": at.dims[d][0], "sizes": tuple(at.tiles(d, n) for n in sizes)}


def reversed_(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the reversal of tiles, and of positions in them."""
    if not all(at.is_whole(d, at.shape[d]) for d in params["dimensions"]):
        return None
    return {"dimensions": tuple(k for d in params["dimensions"] for k in at.dims[d])}


def padded(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the padding by tiles."""
    config = [(0, 0, 0)] * len(at.part)
    for d, (low, high, inside) in enumerate(params["padding_config"]):
        n = at.shape[d]
        if inside or not at.is_whole(d, low) or (high > 0 and not at.is_whole(d, n)):
            return None
        before = low // at.tile(d)
        after = at.tiles(d, low + n + high) - at.tiles(d, n) - before
        config[at.dims[d][0]] = before, after, 0
    return {"padding_config": tuple(config)}


def joined(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the concatenation of tiles."""
    d = params["dimension"]
    if not all(at.is_whole(d, shape[d]) for shape in shapes[:-1]):
        return None
    return {"dimension": at.dims[d][0]}


def repeated(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the repetition of tiles."""
    reps = [1] * len(at.part)
    for d, count in enumerate(params["reps"]):
        if count != 1 and not at.is_whole(d, at.shape[d]):
            return None
        reps[at.dims[d][0]] = count
    return {"reps": tuple(reps)}


def stacked(params: Params, shapes: Sequence[Shape], at: TiledDims) -> Params | None:
    """Return the stack of parts, whose new dim follows those of cores."""
    return {"axis": at.cores}
