"""`Move`: a copy from one layout to another, and how many elements change core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.map import AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.dump.values.type_texts import layout_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip
from gridlayout.layouts.traffic import core_traffic
from gridlayout.tenstorrent.core_maps import device_map

# Most indices and pairs of cores that are listed for one move: a dump may have many moves.
_MAX_INDICES, _MAX_PAIRS = 1 << 20, 1 << 16


@dataclass(frozen=True)
class Move:
    """One op that only copies its operand to another layout.

    line, op, name, count: as in `Finding`. permutation: dim k of the result is dim
    `permutation[k]` of the operand; empty if dims keep their order. elements: the number of
    elements that change core or memory, or, in a layout without cores, their position; None if
    unknown. If one layout is interleaved over banks and the other is not, all elements move: no
    dump states which bank is next to which core. where: source and target, in a few words.
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
        """Bytes of all elements, in the operand's element size."""
        return self.before.data_bytes

    @property
    def moved_bytes(self) -> int | None:
        """Bytes of the elements that move; None if unknown."""
        if self.elements is None or not self.before.size:
            return self.elements
        return -(-self.data_bytes * self.elements // self.before.size)


def permutation_of(before: Shape, after: Shape, permutation: Shape, swap: Shape) -> Shape | None:
    """Return the permutation from one shape to the other, () for the identity.

    permutation, swap: as the op states them. None if the shapes do not match.

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


@cached(entries=256)
def moved(before: Layout, after: Layout, permutation: Shape, chip: Chip) -> tuple[int | None, str]:
    """Return the number of elements that move (None if unknown), and source and target in words.

    Virtual grids are folded onto the chip's cores (`gridlayout.tenstorrent.device_map`).

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
        # Pages are dealt to the banks in turn, so other pages or another order move every element.
        same = before.tile == after.tile and before.local_shape == after.local_shape
        if same and not permutation and before.dtype == after.dtype:
            return 0, "nothing"
        return before.size, "between banks"
    if before.is_interleaved or after.is_interleaved:
        return before.size, "between banks and shards"
    if before.core_rank == after.core_rank == 0:
        return before.size, "inside its memory"
    try:
        elements = _between_cores(before, after, target, chip)
    except LayoutError:  # too many to list, or more cores than the chip has
        return None, "too many cores or indices"
    return elements, "to another core" if elements else "inside each core"


def _between_cores(before: Layout, after: Layout, target: AffineMap, chip: Chip) -> int:
    cores = AffineMap(before.ndim, target.results[: after.core_rank])
    found = core_traffic(before.shape, before.core_map, cores, _MAX_INDICES, _MAX_PAIRS)
    here = _on_chip(found.before, before.core_shape, chip)
    there = _on_chip(found.after, after.core_shape, chip)
    return int(found.counts[(here != there).any(axis=1)].sum())


def _on_chip(cores: NDArray[np.int64], grid: Shape, chip: Chip) -> NDArray[np.int64]:
    """Return device, row and column of each core, after folding the grid onto the chip's."""
    forward = device_map(grid, chip_grid=chip.grid).forward
    columns = [np.broadcast_to(np.asarray(c), len(cores)) for c in forward(*cores.T)]
    return np.stack(columns, axis=1)


def move_of(key: tuple[Any, ...], count: int, first: tuple[int, str], chip: Chip) -> Move:
    """Return the move of a row of `Tally.moves`: its key, count, and first line and name."""
    (op, was, is_now, permutation), (line, name) = key, first
    before, after = layout_of(was), layout_of(is_now)
    assert isinstance(before, Layout)
    assert isinstance(after, Layout)
    elements, where = moved(before, after, permutation, chip)
    return Move(line, count, op, name, before, after, permutation, elements, where)
