"""`Move`: data that goes from one layout to another, and how much of it changes core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.map import AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.dump.values.readings import layout_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip
from gridlayout.layouts.traffic import core_traffic
from gridlayout.tenstorrent.core_maps import device_map

# Indices listed for one move, and pairs of cores: a dump may hold many.
_MAX_INDICES, _MAX_PAIRS = 1 << 20, 1 << 16


@dataclass(frozen=True)
class Move:
    """One op whose operand and result lie differently.

    line, op, name, count: as in `Finding`. permutation: dim k of the result is dim
    `permutation[k]` of the operand; empty where dims stay. elements: those that change core or
    memory, or their place where there is one memory; None where that can't be told. Between pages
    dealt to banks and anything else all of them, as no dump says which bank is next to which core.
    where: from where to where, in a few words.
    """

    line: int
    count: int
    op: str
    name: str
    before: Layout
    after: Layout
    permutation: Shape
    elements: int | None
    where: str

    @property
    def data_bytes(self) -> int:
        """Bytes of all elements, as the operand stores them."""
        return self.before.data_bytes

    @property
    def moved_bytes(self) -> int | None:
        """Bytes of the elements that move."""
        if self.elements is None or not self.before.size:
            return self.elements
        return -(-self.data_bytes * self.elements // self.before.size)


def permutation_of(before: Shape, after: Shape, permutation: Shape, swap: Shape) -> Shape | None:
    """How dims go from one shape to the other, () if they stay; None where they don't fit.

    >>> permutation_of((2, 3), (3, 2), (1, 0), ()), permutation_of((2, 3), (3, 2), (), (-2, 1))
    ((1, 0), (1, 0))
    >>> permutation_of((2, 3), (3, 2), (), ())
    """
    if not permutation and not swap:
        return () if before == after else None
    rank = len(before)
    dims = list(permutation or range(rank))
    if swap and all(-rank <= d < rank for d in swap):
        first, second = swap
        dims[first], dims[second] = dims[second], dims[first]
    if sorted(dims) != list(range(rank)):
        return None
    if tuple(before[d] for d in dims) != after:
        return None
    return () if dims == sorted(dims) else tuple(dims)


@lru_cache(maxsize=256)
def moved(before: Layout, after: Layout, permutation: Shape, chip: Chip) -> tuple[int | None, str]:
    """Elements that move, and from where to where; None where that can't be told.

    Virtual grids are folded onto the chip's cores first (`gridlayout.tenstorrent.device_map`).

    >>> from gridlayout import GridLayout
    >>> toy = Chip("toy", (2, 2))
    >>> moved(GridLayout((4, 4), grid=(2, 1)), GridLayout((4, 4), grid=(1, 2)), (), toy)
    (12, 'to another core')
    """
    here, there = (layout.memory or "memory" for layout in (before, after))
    if here != there:
        return before.size, f"{here} to {there}"
    dims = [dim(d) for d in permutation or range(before.ndim)]
    target = after.index_map.compose(AffineMap(before.ndim, dims))
    if 0 not in before.shape:
        target = target.simplify(before.shape)
    shapes = [(layout.physical_shape, layout.core_rank) for layout in (before, after)]
    if shapes[0] == shapes[1] and before.index_map == target:
        return 0, "nothing"
    if before.is_interleaved and after.is_interleaved:
        return _between_pages(before, after, permutation)
    if before.is_interleaved or after.is_interleaved:
        return before.size, "between banks and shards"
    if before.core_rank == after.core_rank == 0:
        return before.size, "inside its memory"
    try:
        elements = _between_cores(before, after, target, chip)
    except LayoutError:  # too many to list, or no place for so many cores on the chip
        return None, "too many cores or indices"
    return elements, "to another core" if elements else "inside each core"


def _between_pages(before: Layout, after: Layout, permutation: Shape) -> tuple[int, str]:
    """Pages lie in turn on the banks: other pages, or another order, are all written anew."""
    same = before.tile == after.tile and before.local_shape == after.local_shape
    if same and not permutation and before.dtype == after.dtype:
        return 0, "nothing"
    return before.size, "between banks"


def _between_cores(before: Layout, after: Layout, target: AffineMap, chip: Chip) -> int:
    cores = AffineMap(before.ndim, target.results[: after.core_rank])
    found = core_traffic(before.shape, before.core_map, cores, _MAX_INDICES, _MAX_PAIRS)
    here = _on_chip(found.before, before.core_shape, chip)
    there = _on_chip(found.after, after.core_shape, chip)
    return int(found.counts[(here != there).any(axis=1)].sum())


def _on_chip(cores: NDArray[np.int64], grid: Shape, chip: Chip) -> NDArray[np.int64]:
    """Device, row and column of every core: virtual grids are folded onto the chip's."""
    forward = device_map(grid, chip_grid=chip.grid).forward
    columns = [np.broadcast_to(np.asarray(c), len(cores)) for c in forward(*cores.T)]
    return np.stack(columns, axis=1)


def move_of(key: tuple[Any, ...], count: int, first: tuple[int, str], chip: Chip) -> Move:
    """The move of a tally's row: its key, how often it comes, and where it comes first."""
    (op, was, is_now, permutation), (line, name) = key, first
    before, after = layout_of(was), layout_of(is_now)
    assert isinstance(before, Layout)
    assert isinstance(after, Layout)
    elements, where = moved(before, after, permutation, chip)
    return Move(line, count, op, name, before, after, permutation, elements, where)
