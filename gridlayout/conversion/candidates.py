"""Candidates for the conversion of a layout to another system, by system, the likeliest first.

A candidate is a function that creates a layout. It may raise, because the system refuses the
arguments, and its placement may differ from that of the given layout; `convert` creates the
candidates one by one and compares placements. The last candidates are plain layouts of the tensor,
so that there is a result whenever the system supports the tensor's shape and type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

from gridlayout import dtypes, megengine, mli, sophon, strided, tenstorrent, xla
from gridlayout.affine.map import AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import is_word
from gridlayout.tenstorrent.metal_layout import SPACES, grid_multiple_alignments

Candidates = Iterator[Callable[[], Layout]]
_LETTERS = {0: "", 1: "C", 2: "HW", 3: "HWC", 4: "HWCN"}
_BUFFERS = {"l1": "l1", "dram": "dram", "system": "system_memory"}


def strides_of(layout: Layout) -> tuple[int, Shape]:
    """The offset of the first element, and the distance to the next element along each dim.

    Both are in elements, in the concatenation of all cores' buffers.
    """

    if 0 in layout.shape:
        return 0, (1,) * layout.ndim
    start = _place(layout, (0,) * layout.ndim)
    steps = (_along(layout, d, 1) for d in range(layout.ndim))
    return start, tuple(1 if step is None else step for step in steps)


def _along(layout: Layout, d: int, count: int) -> int | None:
    """The distance, in elements, to `count` indices further along a dim; None if it is shorter."""
    if count >= layout.shape[d]:
        return None
    zero = (0,) * layout.ndim
    return _place(layout, (*zero[:d], count, *zero[d + 1 :])) - _place(layout, zero)


def _place(layout: Layout, index: Shape) -> int:
    """The offset of an element in the concatenation of all cores' buffers."""
    at, number = layout.locate(index), 0
    for i, n in zip(at.core, layout.core_shape, strict=True):
        number = number * n + i
    return number * prod(layout.local_shape) + at.offset


def _buffer(layout: Layout) -> int:
    """The elements of all cores' buffers; 0 for block formats."""
    return layout.nbytes * 8 // layout.stored_bits if layout.tile_format is None else 0


# -- the document and Tenstorrent's compilers ------------------------------------------------------


def _space(layout: Layout) -> str:
    return layout.memory if layout.memory and is_word(layout.memory) else "l1"


def of_document(layout: Layout) -> Candidates:
    """Document layouts: by `as_grid`, by order and tiles, by collapse, by strides, by index map."""
    if (found := as_grid(layout)) is not None:
        yield lambda: found
        return
    make = partial(GridLayout, layout.shape, layout.dtype, memory_space=_space(layout))
    if isinstance(layout, xla.XlaLayout) and layout.ndim:
        yield partial(_of_order, make, layout)
    if layout.core_rank:
        yield partial(_of_collapse, make, layout)
    start, strides = strides_of(layout)
    if not layout.core_rank and layout.ndim:
        row: Any = sum((dim(d) * s for d, s in enumerate(strides)), dim(0) * 0 + start)
        linear = AffineMap(layout.ndim, (row,))
        full = (_buffer(layout),)
        yield partial(make, grid=(1,), linear=linear, shard_shape=full, oob=layout.oob)
    ones = (1,) * (len(layout.physical_shape) - layout.core_rank)
    shard = (1,) * layout.core_rank + layout.local_shape
    grid = layout.core_shape + ones
    yield partial(make, grid, linear=layout.index_map, shard_shape=shard, oob=layout.oob)
    yield partial(make, oob=layout.oob)


def _of_order(make: Callable[..., GridLayout], layout: xla.XlaLayout) -> GridLayout:
    """A document layout with the dims in physical order, the first tile as tile, then the face."""
    order = [dim(d) for d in reversed(layout.minor_to_major)]
    tile, face, *more = (*layout.tiles, None, None)[: max(len(layout.tiles), 2)]
    if more or any(xla.COMBINE in t for t in layout.tiles):
        raise LayoutError("the document supports only a tile and a face, without combined dims")
    linear = AffineMap(layout.ndim, order)
    ones = (1,) * layout.ndim
    return make(grid=ones, tile=tile, linear=linear, face=face, oob=layout.oob)


def _of_collapse(make: Callable[..., GridLayout], layout: Layout) -> GridLayout:
    """A document layout whose collapsed dims combine cores, tiles and positions in a tile."""
    rank, tile = layout.core_rank, layout.tile or ()
    counts = layout.local_shape[:rank]
    sides = (1,) * (rank - len(tile)) + tile
    if layout.local_shape != counts + tile:
        raise LayoutError("a core's buffer does not consist of row-major tiles")
    places = layout.index_map.results
    rows = []
    for k in range(rank):
        shard = counts[k] * sides[k]
        inner = places[2 * rank + k - rank + len(tile)] if k >= rank - len(tile) else dim(0) * 0
        rows.append(places[k] * shard + places[rank + k] * sides[k] + inner)
    linear = AffineMap(layout.ndim, rows).simplify(layout.shape)
    shards = [n * t for n, t in zip(counts, sides, strict=True)]
    return make(
        *(layout.core_shape, layout.tile),
        linear=linear,
        shard_shape=shards,
        tile_format=layout.tile_format,
        oob=layout.oob,
    )


def _documented(layout: Layout) -> Iterator[GridLayout]:
    """The document layouts among the candidates that do not raise."""
    for make in of_document(layout):
        try:
            found = make()
        except LayoutError:
            continue
        if isinstance(found, GridLayout):
            yield found


def of_ttnn(layout: Layout) -> Candidates:
    """TTNN layouts: with the same placement, with the same grid and tile, then plain ones."""
    for found in _documented(layout):
        yield partial(tenstorrent.from_document, found)
    buffer = _BUFFERS.get(_space(layout), "l1")
    make = partial(
        tenstorrent.ttnn,
        *(layout.shape, layout.dtype),
        buffer_type=buffer,
        tile_format=layout.tile_format,
        oob=layout.oob,
    )
    if len(layout.core_shape) == 2:
        yield partial(make, layout.core_shape, layout.tile)
        yield partial(make, layout.core_shape)
    yield partial(make, tile=layout.tile)
    yield make
    yield partial(tenstorrent.ttnn, layout.shape, layout.dtype, buffer_type=buffer, oob=layout.oob)


def of_ttnn_document(layout: Layout) -> Candidates:
    """TTNN layouts of the document: by strides and a stated shard, then by grid and tile."""
    for found in _documented(layout):
        yield partial(tenstorrent.from_compiler, found)
    make = partial(
        tenstorrent.ttnn_document,
        *(layout.shape, layout.dtype),
        memory_space=_space(layout),
        oob=layout.oob,
    )
    if len(layout.core_shape) == 2:
        tiles = {"tile": layout.tile, "tile_format": layout.tile_format}
        yield partial(make, grid=layout.core_shape, **tiles)
        yield partial(make, grid=layout.core_shape)
    yield make


def of_metal(layout: Layout) -> Candidates:
    """Metal layouts: groups of dims as intervals, aligned to tiles, not aligned, or to the grid."""
    make = partial(
        tenstorrent.metal,
        *(layout.shape, layout.dtype),
        memory_space=_space(layout) if _space(layout) in SPACES else "l1",
        oob=layout.oob,
    )
    for found in _documented(layout):
        spans = _spans(found)
        ways: list[Any] = [None, (1,) * found.ndim]
        if len(found.grid) == 2 and found.ndim:
            ways.append(partial(grid_multiple_alignments, found.shape, found.grid, found.tile))
        for way in ways:
            for intervals in dict.fromkeys((spans, None)):
                like = {"tile": found.tile, "tile_format": found.tile_format}
                yield partial(_aligned, make, way, intervals, grid=found.grid, **like)
    yield partial(make, tile=layout.tile)
    yield make


def _aligned(make: Callable[..., Layout], way: Any, intervals: Any, **named: Any) -> Layout:
    alignments = way() if callable(way) else way
    return make(dim_alignments=alignments, collapsed_intervals=intervals, **named)


def _spans(layout: GridLayout) -> tuple[tuple[int, int], ...] | None:
    """The groups as intervals of dims; None unless there is one group per grid dim."""
    spans = tuple((min(group), max(group) + 1) for group in layout.groups if group)
    return spans if len(spans) == len(layout.grid) else None


def of_tt_metal(layout: Layout) -> Candidates:
    """tt-metal layouts: the same shards on the same number of cores, in pages of tiles or rows."""
    make = partial(tenstorrent.tensor_layout, layout.shape, layout.dtype, oob=layout.oob)
    pages: list[dict[str, Any]] = [{"page": "row_major"}]
    if layout.tile is not None:
        pages.insert(0, {"page": "tile", "tile": layout.tile, "tile_format": layout.tile_format})
    shard = getattr(layout, "physical_shard_shape", None) or getattr(layout, "shard_shape", None)
    for page in pages:
        if len(layout.core_shape) == 2 and layout.num_cores > 1:
            yield partial(
                tenstorrent.block_sharded,
                *(layout.shape, layout.dtype, layout.core_shape),
                **page,
                oob=layout.oob,
            )
        if shard is not None:
            yield partial(make, shard_shape=shard, cores=layout.num_cores, **page)
        yield partial(make, **page)


# -- XLA -------------------------------------------------------------------------------------------


def of_xla(layout: Layout) -> Candidates:
    """XLA layouts: shard, tile and face as tiles; a block as tile; an order of dims; row-major."""
    bits = layout.stored_bits
    element_bits = 0 if bits == max(dtypes.bits(layout.dtype), 8) else bits
    make = partial(xla.layout, layout.shape, layout.dtype, element_bits=element_bits)
    for found in _documented(layout):
        if found.num_cores == 1:
            yield partial(_of_tiles, make, found, is_one_shard=True)
        yield partial(_of_tiles, make, found)
    _, strides = strides_of(layout)
    if layout.blocks and layout.size:
        for d in (d for d in range(layout.ndim) if strides[d] == 1):
            yield partial(_of_block, make, layout, d)
    order = sorted(range(layout.ndim), key=lambda d: (strides[d], -d))
    yield partial(make, order, oob=layout.oob)
    yield partial(make, oob=layout.oob)


def _of_block(make: Callable[..., Layout], layout: Layout, blocked: int) -> Layout:
    """An XLA layout with one tile: the layout's innermost block, which divides the dim `blocked`.

    NCHW4 becomes `{3,2,1,0:T(4,1,1)}`, and 4N becomes `{3,2,1,0:T(4,1,1,1)}`.
    """
    block = layout.blocks[-1]
    steps = []
    for d, n in enumerate(layout.shape):
        step = _along(layout, d, block if d == blocked else 1)
        # A dim that is a single block can be the major one, and a dim of extent 1 the minor one.
        steps.append(step if step is not None else 1 if n == 1 else layout.nbytes * 8)
    order = sorted(range(layout.ndim), key=lambda d: (steps[d], -d))
    tile = (block, *(1,) * order.index(blocked))
    return make(order, [tile], oob=layout.oob)


def _of_tiles(
    make: Callable[..., Layout], layout: GridLayout, is_one_shard: bool = False
) -> Layout:
    """An XLA layout whose tiles are the shard, the tile and the face.

    is_one_shard: whether the only shard is the full tensor, so that no tile is needed for it.
    """
    groups = layout.groups
    if not groups:
        raise LayoutError(f"{layout.linear} has no groups of dims that tiles could divide")
    order = [d for group in groups for d in group]
    order += [d for d in range(layout.ndim) if d not in order]
    if sorted(order) != list(range(layout.ndim)):
        raise LayoutError(f"{layout.linear} has a dim in two results")
    # The document divides by the grid first, then pads each shard to full tiles.
    padded = [n * t for n, t in zip(layout.tile_counts, layout.padded_tile, strict=True)]
    joined = [(xla.COMBINE,) * (len(group) - 1) for group in groups]
    shards = zip(joined, layout.shard_shape, strict=True)
    tiles: list[Any] = [[n for stars, size in shards for n in (*stars, size)]]
    if tuple(padded) not in (layout.shard_shape, layout.tile):
        tiles.append(padded)
    minor_to_major = tuple(reversed(order))
    if is_one_shard:
        tiles = []
    tiles += [tile for tile in (layout.tile, layout.face) if tile]
    return make(minor_to_major, tiles, oob=layout.oob)


# -- strides ---------------------------------------------------------------------------------------


def of_strided(layout: Layout) -> Candidates:
    """Strided layouts: by strides, then without gaps."""
    start, strides = strides_of(layout)
    size = _buffer(layout)
    yield partial(
        strided.layout,
        *(layout.shape, strides, layout.dtype),
        start=start,
        size=size or None,
        oob=layout.oob,
    )
    yield partial(strided.layout, layout.shape, strides, layout.dtype, oob=layout.oob)
    yield partial(strided.contiguous, layout.shape, layout.dtype, oob=layout.oob)


def of_mli(layout: Layout) -> Candidates:
    """MLI tensors: by memory strides, then without gaps."""
    start, strides = strides_of(layout)
    make = partial(
        mli.tensor,
        *(layout.shape, _LETTERS.get(layout.ndim, "HWCN"), layout.dtype),
        oob=layout.oob,
    )
    yield partial(make, strides, start=start, size=_buffer(layout) or None)
    yield partial(make, strides)
    yield make


def of_sophon(layout: Layout) -> Candidates:
    """Sophon tensors: local memory if a chip has as many NPUs as cores, then system memory.

    In system memory: by strides, with the innermost block as a group of a storage mode, then
    continuous.
    """
    start, strides = strides_of(layout)
    chips = (sophon.BM1684, sophon.BM1684X, sophon.BM1688, sophon.BM1690)
    for chip in chips:
        if layout.num_cores == chip.npus:
            for name in ("aligned", "compact", "line_aligned"):
                yield partial(
                    sophon.local,
                    *(layout.shape, layout.dtype, name),
                    chip=chip,
                    oob=layout.oob,
                )
    make = partial(sophon.system, layout.shape, layout.dtype, oob=layout.oob)
    byte, bit = divmod(start * layout.stored_bits, 8)
    if byte and not bit:
        yield partial(make, strides, start=byte)
    yield partial(make, strides)
    if layout.blocks:
        yield partial(make, lanes=layout.blocks[-1])
    yield make


def of_megengine(layout: Layout) -> Candidates:
    """MegEngine layouts: each data format that supports the type, then strides."""
    if layout.ndim == 4:
        for name in megengine.FORMATS:
            if layout.dtype.name in megengine.MADE_FOR.get(name, (layout.dtype.name,)):
                make = partial(megengine.format, layout.shape, name, layout.dtype)
                yield partial(make, oob=layout.oob)
    yield from of_strided(layout)


SYSTEMS: dict[str, tuple[tuple[type[Layout], ...], Callable[[Layout], Candidates]]] = {
    "document": ((GridLayout,), of_document),
    "metal": ((tenstorrent.MetalLayout,), of_metal),
    "ttnn": ((tenstorrent.TtnnLayout,), of_ttnn),
    "ttnn_document": ((tenstorrent.TtnnDocument,), of_ttnn_document),
    "tt_metal": ((tenstorrent.TensorLayout,), of_tt_metal),
    "xla": ((xla.XlaLayout,), of_xla),
    "strided": ((strided.StridedLayout,), of_strided),
    "sophon": ((sophon.LocalLayout, sophon.SystemLayout), of_sophon),
    "megengine": ((megengine.FormatLayout, strided.StridedLayout), of_megengine),
    "mli": ((mli.TensorLayout,), of_mli),
}
