"""`Proposal`: a layout of the same tensor that wastes less, or fits.

The candidates are few and in a fixed order: other grids of at most as many cores, other ways to
collapse dims, other tiles that the system computes with, and no alignment beyond the tile's. The
best candidate has the fewest bytes per core, then in total. It must be smaller in one of the two
and not larger in the other. Bytes are counted in whole pages, as memory is allocated; in DRAM, the
fullest bank must hold fewer. The chip must have enough memory and cores for the candidate, with at
most one shard per core, as `gl.Machine` places it.

A layout that still does not fit its cores' memory may use more cores, up to the chip's ("just max
the grid" in tt-mlir's document), if it fits then. Its total bytes may then be larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice, pairwise
from math import isqrt, prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.costs import Described
from gridlayout.document.collapse import collapse_map
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import COMPUTE_TILES, Chip
from gridlayout.layouts.padding import bounded_share
from gridlayout.tenstorrent.alignment import PAGE, align
from gridlayout.tenstorrent.metal_layout import MetalLayout, tile_alignments
from gridlayout.tenstorrent.ttnn_document import TtnnDocument
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout
from gridlayout.xla import XlaLayout, tpu_tiles

THRESHOLD = 0.1  # padding share from which another layout is searched
_MAX_CANDIDATES = 512
_MAX_RUNS = 16
_MAX_CORES = 1 << 12  # grids are enumerated by trial division
_LANES = 128  # the minor extent of a TPU's tile
_ROWS = {"l1": 16, "dram": 64}  # alignment of TTNN's rows in bytes; the largest of all chips


Candidates = Iterator[Callable[[], Layout]]


@dataclass(frozen=True)
class Proposal:
    """A layout that wastes less than `instead_of`, or fits where that does not.

    `str` is the layout's text. Sizes are in bytes, in whole pages.
    """

    layout: Layout
    instead_of: Layout

    @property
    def bytes_per_core(self) -> int:
        """Bytes on one core."""
        return allocated(self.layout)[0]

    @property
    def nbytes(self) -> int:
        """Bytes on all cores."""
        return allocated(self.layout)[1]

    @property
    def saved_bytes(self) -> int:
        """Bytes saved on all cores."""
        return allocated(self.instead_of)[1] - self.nbytes

    @property
    def saved_per_core(self) -> int:
        """Bytes saved on one core."""
        return allocated(self.instead_of)[0] - self.bytes_per_core

    def __str__(self) -> str:
        return str(self.layout)


@cached(entries=1024)
def propose(layout: Described, chip: Chip | None = None) -> Proposal | None:
    """Return a better layout; None if there is none.

    Candidates are tried if the padding share is `THRESHOLD` or more, or the layout does not fit.
    chip: a candidate must fit on it (`can_be_on`); for a layout that does not fit, candidates may
    use more of its cores.

    >>> found = propose(GridLayout((53, 63), "float32", (3, 2), tile=(32, 32)))
    >>> found.layout, found.saved_per_core
    (GridLayout((53, 63), 'float32', grid=(2, 2), tile=(32, 32)), 0)
    >>> chip = Chip("toy", (8, 8), {"l1": 1 << 20})
    >>> propose(GridLayout((4096, 4096), "float32", tile=(32, 32)), chip).layout
    GridLayout((4096, 4096), 'float32', grid=(8, 8), tile=(32, 32))
    """
    if not isinstance(layout, Layout) or not layout.size:
        return None
    candidates = _CANDIDATES.get(type(layout))
    if candidates is None:
        return None
    best = layout
    if bounded_share(layout) >= THRESHOLD:
        few = islice(candidates(layout, None), _MAX_CANDIDATES)
        best = _best(layout, few, chip, in_all=True)
    if chip is not None and _is_over(best, chip):
        more = islice(candidates(layout, prod(chip.grid)), _MAX_CANDIDATES)
        best = _best(best, more, chip, in_all=False)
    return None if best is layout else Proposal(best, layout)


def allocated(layout: Layout) -> tuple[int, int]:
    """Return the bytes of one core's buffer and of all buffers, in whole pages.

    A page is a tile. An untiled buffer has pages of 32x32 elements, as the current compiler
    allocates it; in TTNN, its pages are rows, each of them aligned.

    >>> allocated(GridLayout((33, 63), grid=(2, 1))), allocated(GridLayout((33, 63), grid=(3, 1)))
    ((8192, 16384), (4096, 12288))
    """
    held = layout.held.per_core
    if layout.tile is None and layout.memory in _ROWS:
        if isinstance(layout, TtnnLayout):
            rows, columns = layout.tile_counts
            held = rows * align(-(-columns * layout.stored_bits // 8), _ROWS[layout.memory])
        else:
            held = align(held, PAGE * layout.stored_bits // 8)
    return held, held * layout.num_cores


def _is_over(layout: Layout, chip: Chip) -> bool:
    """Return whether a sharded layout needs more L1 than a core has."""
    free = layout.fits(chip).free
    return layout.memory == "l1" and not layout.is_interleaved and free is not None and free < 0


def _best(
    layout: Layout,
    candidates: Candidates,
    chip: Chip | None,
    in_all: bool,
) -> Layout:
    """Return the smallest candidate that is allowed on the chip, or the layout itself.

    in_all: whether the total bytes may not grow.
    """
    best = layout
    now, total = allocated(layout)
    for make in candidates:
        try:
            found = make()
        except LayoutError:  # not a valid layout of the system
            continue
        if found.is_scatter:
            continue
        held, every = allocated(found)
        if held > now or (every > total if in_all else held == now):
            continue
        if (held, every) < allocated(best) and (chip is None or _is_allowed(found, layout, chip)):
            best = found
    return best


def _is_allowed(found: Layout, layout: Layout, chip: Chip) -> bool:
    """Return whether a layout fits the chip, in tiles it computes with, with less per DRAM bank."""
    if found.memory == "dram" and _in_bank(found, chip) >= _in_bank(layout, chip):
        return False
    if found.tile != layout.tile and chip.tiles and found.tile not in chip.tiles:
        return False
    return found.can_be_on(chip)


def _in_bank(layout: Layout, chip: Chip) -> int:
    """Return the bytes in the fullest bank of DRAM, in whole pages."""
    held, every = allocated(layout)
    if layout.one_bank_per_shard:
        return held * -(-layout.num_cores // chip.banks)
    page = (
        held // prod(layout.tile_counts or (1,)) if layout.tile else PAGE * layout.stored_bits // 8
    )
    return -(-every // (page * chip.banks)) * page


def _of_document(layout: GridLayout, cores: int | None) -> Candidates:
    rank = len(layout.grid)
    tiles = [layout.tile]
    if layout.tile in COMPUTE_TILES and layout.tile_format is None and layout.face is None:
        tiles += [tile for tile in COMPUTE_TILES if tile != layout.tile]
    maps = [layout.linear]
    if rank <= layout.ndim:
        maps += [collapse_map(layout.shape, runs, rank) for runs in _runs(layout.ndim, rank)]
    for linear in maps:
        for tile in tiles:
            for grid in _grids(layout.grid, cores):
                yield partial(_trimmed, layout, linear=linear, tile=tile, grid=grid)


def _runs(dims: int, parts: int) -> list[tuple[tuple[int, int], ...]]:
    """Return ways to cut `dims` dims into `parts` collapse intervals, as pairs (start, end).

    Those with more dims in the first intervals are first.
    """
    cuts = islice(combinations(range(dims - 1, 0, -1), parts - 1), _MAX_RUNS)
    return [tuple(pairwise((0, *reversed(cut), dims))) for cut in cuts]


def _trimmed(layout: GridLayout, **changes: Any) -> GridLayout:
    """Return the changed layout on the smallest grid with the same number of tiles per shard."""
    layout = layout.replace(**changes, shard_shape=None)
    whole = [n * t for n, t in zip(layout.tile_counts, layout.padded_tile, strict=True)]
    grid = tuple(max(-(-n // s), 1) for n, s in zip(layout.collapsed_shape, whole, strict=True))
    return layout.replace(grid=grid)


def _of_metal(layout: MetalLayout, cores: int | None) -> Candidates:
    spans = [layout.collapsed_intervals]
    if len(layout.grid) <= layout.ndim:
        spans += _runs(layout.ndim, len(layout.grid))
    for intervals in spans:
        alignment = (1,) * layout.ndim
        if layout.tile is not None:
            alignment = tile_alignments(layout.shape, intervals, layout.tile)
        make = partial(
            layout.replace, dim_alignments=alignment, collapsed_intervals=intervals, grid=None
        )
        try:
            whole = make().shard_shape
        except LayoutError:
            continue
        for grid in _exact_grids(whole, layout.grid, cores or prod(layout.grid)):
            yield partial(make, grid=grid)


def _exact_grids(counts: Shape, grid: Shape, cores: int) -> Iterator[Shape]:
    """Yield grids of at most `cores` cores that divide the tile counts, the squarest first.

    For each number of rows, the grid with the most columns.
    """
    if len(grid) != 2 or len(counts) != 2 or cores > _MAX_CORES:
        yield grid
        return
    found = []
    for rows in range(min(cores, counts[0]), 0, -1):
        if counts[0] % rows == 0:
            most = min(cores // rows, counts[1])
            found.append((rows, next(n for n in range(most, 0, -1) if counts[1] % n == 0)))
    yield from sorted(found, key=lambda grid: abs(grid[0] - grid[1]))


def _of_ttnn(layout: TtnnLayout, cores: int | None) -> Candidates:
    tiles = [-(-n // side) for n, side in zip(layout.plane, layout.tile_shape, strict=True)]
    for grid in _grids(layout.grid, cores):
        # Each core has whole tiles, and at least one.
        shard = [-(-n // each) for n, each in zip(tiles, grid, strict=True)]
        fewer = tuple(-(-n // part) for n, part in zip(tiles, shard, strict=True))
        yield partial(layout.replace, grid=fewer, memory_layout=None, core_ranges=None)


def _of_strided(layout: TtnnDocument, cores: int | None) -> Candidates:
    for grid in _grids(layout.grid, cores):
        yield partial(_whole_tiles, layout, grid)


def _whole_tiles(layout: TtnnDocument, grid: Shape) -> TtnnDocument:
    """Return the layout on the grid, without the cores that would hold no tile."""
    found = layout.replace(grid=grid, shard_shape=None)
    fewer = layout.replace(grid=None, shard_shape=found.physical_shard_shape).grid
    return layout.replace(grid=fewer, shard_shape=None)


def _of_xla(layout: XlaLayout, cores: int | None) -> Candidates:
    """Yield layouts with each pair of dims as minor ones, with the same tiles and TPU tiles."""
    order = layout.minor_to_major
    pairs: list[Shape] = [(a, b) for a in order for b in order if a != b]
    for pair in () if layout.splits else (pairs or [order]):
        dims = (*pair, *(d for d in order if d not in pair))
        tilings = [layout.tiles]
        if layout.tiles and layout.tiles[0][-1] == _LANES:
            with suppress(LayoutError):  # TPU tiles are not defined for this type
                shape = [layout.shape[d] for d in reversed(dims)]
                tilings.append(tpu_tiles(shape, layout.dtype))
        for tiles in tilings:
            yield partial(layout.replace, minor_to_major=dims, tiles=tiles)


def _grids(grid: Shape, cores: int | None) -> Iterator[Shape]:
    """Yield the grid, then grids with another factorization of the last two dims, squarest first.

    cores: the total number of cores; None keeps that of the grid, and only varies grids of rank 2.
    """
    yield grid
    lead = grid[:-2]
    if (cores is None and lead) or prod(grid) > _MAX_CORES:
        return
    left = (prod(grid) if cores is None else min(cores, _MAX_CORES)) // prod(lead)
    if len(grid) == 1:
        if cores is not None:
            yield (left,)
        return
    for rows in range(isqrt(left), 0, -1):
        if left % rows == 0:
            pairs = dict.fromkeys(((rows, left // rows), (left // rows, rows)))
            yield from ((*lead, *pair) for pair in pairs)


_CANDIDATES: dict[type[Layout], Callable[[Any, int | None], Candidates]] = {
    GridLayout: _of_document,
    MetalLayout: _of_metal,
    TtnnLayout: _of_ttnn,
    TtnnDocument: _of_strided,
    XlaLayout: _of_xla,
}
