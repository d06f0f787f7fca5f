"""`TtnnLayout`: tt-mlir's current `#ttnn.ttnn_layout`. Pad to tiles, collapse, divide.

    logical dims --last two padded to the tile--> padded dims --all but the last joined--> plane
                 --ceilDiv(grid)--> core, shard --ceilDiv(tile)--> tiles

The tile comes before the grid; in the document model (`gl.GridLayout`) the grid comes first. So
53x63 on 3x2 cores gives 22, 22, 9 rows here, and 18, 18, 17 there. Sizes are in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, dim, embedding, linearized
from gridlayout.arguments import Shape, ShapeLike, as_shape, one_of, positive
from gridlayout.document.shard import row_multiple
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, as_chip
from gridlayout.layouts.reader import dims_text, shaped_text
from gridlayout.layouts.steps import StepBuilder
from gridlayout.layouts.strides import row_major
from gridlayout.public import public
from gridlayout.tenstorrent.alignment import align
from gridlayout.tenstorrent.tiles import as_tile

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BUFFER_TYPES = ("l1", "l1_small", "dram", "system_memory", "trace")
MEMORY_LAYOUTS = ("interleaved", "block_sharded", "height_sharded", "width_sharded")
# Cores per row of the worker grid, by which height and width shardings number their cores.
WORKER_COLUMNS = 8
_MAX_RANGES = 256

Core = tuple[int, int]
Ranges = tuple[tuple[Core, Core], ...]


@public
class TtnnLayout(Layout):
    """tt-mlir's current `ttnn_layout`: pad to tiles, collapse, divide by the grid.

    grid: rows and columns of cores. tile: rows and columns in elements, None for row-major
    scalars. memory_layout: interleaved, height_sharded (grid Mx1), width_sharded (1xM) or
    block_sharded; by default as the grid implies. An interleaved layout has grid 1x1; in l1 it may
    be given the grid of the workers whose banks hold the pages, which becomes `workers`.
    buffer_type: l1, l1_small, dram, system_memory or trace. core_ranges: the cores of a sharded
    layout as pairs of (x, y) corners; by default rows of `WORKER_COLUMNS` cores. tile_format,
    row_alignment: as for `gl.GridLayout`.

    The physical shape is grid + shard in tiles + tile. `LayoutError` for what TTNN refuses, such as
    system memory or interleaved DRAM on more than one core, and block-sharded DRAM.

    >>> layout = ttnn((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))
    >>> layout.shard_shape, layout.physical_shard_shape, layout.physical_shape
    ((22, 32), (32, 32), (3, 2, 1, 1, 32, 32))
    >>> layout.memory_layout, layout.stride
    ('block_sharded', (64, 1))

    The terms of tt-mlir's document refer to the padded plane here; `ttnn_document` follows the
    document itself.
    """

    one_bank_per_shard = True

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        grid: ShapeLike = (1, 1),
        tile: ShapeLike | None = None,
        memory_layout: str | None = None,
        buffer_type: str = "l1",
        *,
        tile_format: str | None = None,
        row_alignment: int | None = None,
        core_ranges: Sequence[Sequence[Sequence[int]]] | None = None,
        oob: Any = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        self.grid: Shape = positive(grid, "grid")
        if len(self.grid) != 2:
            raise LayoutError(f"grid {self.grid} must have rank 2: TTNN places tensors on a plane")
        self.tile: Shape | None = as_tile(tile, tile_format)
        self.tile_format: str | None = tile_format
        self.row_multiple: int = row_multiple(
            row_alignment, dtypes.as_dtype(dtype), self.tile, tile_format
        )
        if memory_layout is None:
            memory_layout = _default_memory_layout(self.grid)
        self.memory_layout: str = memory_layout
        self.buffer_type: str = buffer_type
        self.workers: Shape | None = None
        words = [word for word in (memory_layout, buffer_type) if isinstance(word, str)]
        if words == ["interleaved", "l1"] and prod(self.grid) != 1:
            self.workers, self.grid = self.grid, (1, 1)
        _check_memory(self.grid, memory_layout, buffer_type)
        self.core_ranges: Ranges = _default_ranges(self.grid, memory_layout)
        if core_ranges is not None:
            self.core_ranges = _as_ranges(core_ranges, self.grid, memory_layout)
        self.padded_shape: Shape = _padded(shape, self.tile_shape)
        rows, width = prod(self.padded_shape[:-1]), self.padded_shape[-1]
        self.plane: Shape = (rows, width)
        self.shard_shape: Shape = (-(-rows // self.grid[0]), -(-width // self.grid[1]))
        builder = StepBuilder(shape)
        axes = _plane(builder, len(shape), self.padded_shape)
        order = self._divide(builder, axes)
        super().__init__(shape, dtype, builder.steps, order, core_rank=2, oob=oob)

    def _divide(self, builder: StepBuilder, axes: Sequence[int]) -> list[int]:
        cores, counts, inner = [], [], []
        for k, axis in enumerate(axes):
            padded = builder.resize(axis, self.grid[k] * self.shard_shape[k])
            core, shard = builder.split(padded, (self.grid[k], self.shard_shape[k]))
            cores.append(core)
            shard = builder.resize(shard, self.physical_shard_shape[k])
            if self.tile is None:
                counts.append(shard)
                continue
            count, rest = builder.split(shard, (self.tile_counts[k], self.tile[k]))
            counts.append(count)
            inner.append(rest)
        return cores + counts + inner

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.grid, self.tile, self.tile_format),
            *(self.memory_layout, self.buffer_type, self.row_multiple, repr(self.oob)),
            *(self.workers, self.core_ranges),
        )

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        grid = self.workers or self.grid
        now: dict[str, Any] = {"shape": self.shape, "dtype": self.dtype, "grid": grid}
        if self.memory_layout != _default_memory_layout(grid):
            now["memory_layout"] = self.memory_layout
        if self.has_stated_ranges:
            now["core_ranges"] = self.core_ranges
        names = ("tile", "buffer_type", "tile_format", "row_alignment", "oob")
        return TtnnLayout, now | {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        named: dict[str, Any] = {"shape": self.shape, "dtype": self.dtype}
        named |= {"grid": self.workers or self.grid, "tile": self.tile}
        named |= {"memory_layout": self.memory_layout}
        named |= {"buffer_type": self.buffer_type} if self.buffer_type != "l1" else {}
        named |= {"tile_format": self.tile_format} if self.tile_format else {}
        named |= {"row_alignment": self.row_alignment} if self.row_alignment else {}
        named |= {"core_ranges": self.core_ranges} if self.has_stated_ranges else {}
        return call_text("TtnnLayout", named | {"oob": self.oob}, 2)

    def __str__(self) -> str:
        """The type as tt-mlir prints it; `ttnn_layout_text` parses it."""
        tensor = shaped_text(self.shape, dtypes.MLIR_NAMES[self.dtype.name])
        words = f", row_alignment = {self.row_alignment}" if self.row_alignment else ""
        words += f", oob = {dtypes.oob_text(self.oob)}" if self.oob is not None else ""
        ranges = f", {self.ranges_text}" if self.core_ranges else ""
        return (
            f"tensor<{tensor}, #ttnn.ttnn_layout<{self.linear}, "
            f"<{dims_text(self.workers or self.grid)}>, {self.memref}, <{self.memory_layout}>"
            f"{ranges}{words}>>"
        )

    @property
    def memref(self) -> str:
        """One core's shard as tt-mlir prints it.

        For an interleaved layout with a worker grid, it is one worker's pages in a row.

        >>> TtnnLayout((64, 64), grid=(2, 1)).memref
        'memref<32x64xf32, #ttnn.buffer_type<l1>>'
        >>> TtnnLayout((96, 96), grid=(2, 2), tile=(32, 32), memory_layout="interleaved").memref
        'memref<1x3x!ttcore.tile<32x32, f32>, #ttnn.buffer_type<l1>>'
        """
        element = dtypes.MLIR_NAMES[self.dtype.name]
        if self.tile is not None:
            inner = self.tile_format or dtypes.TILE_NAMES.get(self.dtype.name, element)
            element = f"!ttcore.tile<{dims_text(self.tile)}, {inner}>"
        space = f"#ttnn.buffer_type<{self.buffer_type}>"
        return f"memref<{dims_text(self.memref_shape)}x{element}, {space}>"

    @property
    def memref_shape(self) -> Shape:
        """The extents of the memref, in tiles: one core's shard, or one worker's pages."""
        if self.workers is None:
            return self.tile_counts
        return (1, -(-prod(self.tile_counts) // prod(self.workers)))

    @property
    def ranges_text(self) -> str:
        """`core_ranges` as tt-mlir prints them.

        >>> TtnnLayout((64, 64), grid=(2, 1)).ranges_text
        'core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>'
        """
        return _ranges_text(self.core_ranges)

    @property
    def has_stated_ranges(self) -> bool:
        """Whether `core_ranges` differ from the defaults of the grid."""
        return self.core_ranges != _default_ranges(self.grid, self.memory_layout)

    @property
    def linear(self) -> AffineMap:
        """The map from a logical index to the row and column in the padded plane."""
        rank = len(self.shape)
        if rank < 2:
            return embedding(2, range(2 - rank, 2))
        rows = linearized(self.padded_shape, range(rank - 1))
        return AffineMap(rank, (rows, dim(rank - 1)))

    @property
    def tile_shape(self) -> Shape:
        """Rows and columns of a tile; 1x1 for scalars."""
        return self.tile or (1, 1)

    @property
    def stride(self) -> Shape:
        """The strides in elements, as in PyTorch, of the padded tensor."""
        return row_major(self.padded_shape[len(self.padded_shape) - len(self.shape) :])

    @property
    def tile_counts(self) -> Shape:
        """The shard in tiles, which is the shape of a shard's memref."""
        rows, columns = (-(-n // t) for n, t in zip(self.shard_shape, self.tile_shape, strict=True))
        return (rows, align(columns, self.row_multiple) if self.tile is None else columns)

    @property
    def physical_shard_shape(self) -> Shape:
        """The shard padded to tiles, or to the alignment of rows."""
        return tuple(n * t for n, t in zip(self.tile_counts, self.tile_shape, strict=True))

    @property
    def memory(self) -> str:
        """The memory space of the buffer type; l1_small is l1, and system_memory is system."""
        return {"l1_small": "l1", "system_memory": "system"}.get(self.buffer_type, self.buffer_type)

    def is_placed(self, chip: Chip | str) -> bool:
        """Whether the chip has enough cores, or banks of DRAM, for the shards.

        Stated `core_ranges` and block-sharded grids must be inside the chip's grid. For other
        layouts the number of cores or banks must suffice.

        >>> grids = (("height_sharded", (13, 1)), ("block_sharded", (13, 1)), (None, (16, 2)))
        >>> [
        ...     ttnn((512, 64), grid=grid, memory_layout=word).is_placed("wormhole")
        ...     for word, grid in grids
        ... ]
        [True, False, False]
        """
        chip = as_chip(chip)
        if self.is_interleaved or self.memory not in ("l1", "dram"):
            return True
        if self.memory == "dram" and chip.banks == 1:
            return True
        rows, columns = chip.grid[-2:] if self.memory == "l1" else (1, chip.banks)
        if self.memory_layout == "block_sharded" or self.has_stated_ranges:
            return all(x < columns and y < rows for _, (x, y) in self.core_ranges)
        return self.num_cores <= rows * columns

    @property
    def grid_shape(self) -> Shape:
        """The cores that hold a part of the plane: divup(plane, shard_shape), at most the grid."""
        return tuple(
            -(-n // s) if s else 0 for n, s in zip(self.plane, self.shard_shape, strict=True)
        )


ttnn = TtnnLayout


@public
def interleaved_shard_shape(
    shape: ShapeLike, grid: ShapeLike, tile: ShapeLike | None = None
) -> Shape:
    """The shard size of a tensor interleaved over a grid: one row of tiles, in elements.

    It has ceil(tiles / cores) tiles. It is only a size; tt-metal decides where each page is placed.

    >>> interleaved_shard_shape((512, 512), (8, 8), (32, 32))
    (32, 128)
    """
    rows, columns = as_tile(tile, None) or (1, 1)
    padded = _padded(as_shape(shape, "shape"), (rows, columns))
    tiles = prod(padded) // (rows * columns)
    return (rows, -(-tiles // prod(positive(grid, "grid"))) * columns)


def _padded(shape: Shape, tile: Shape) -> Shape:
    """The shape with rank at least 2, and its last two dims padded to the tile."""
    shape = (1,) * (2 - len(shape)) + shape
    return (*shape[:-2], align(shape[-2], tile[0]), align(shape[-1], tile[1]))


def _plane(builder: StepBuilder, rank: int, padded: Shape) -> tuple[int, int]:
    """Pad the last two dims and join all dims but the last; return the rows and columns."""
    axes = [*(builder.unit() for _ in range(2 - rank)), *range(rank)]
    axes[-2:] = [builder.resize(axis, n) for axis, n in zip(axes[-2:], padded[-2:], strict=True)]
    return builder.join(axes[:-1]), axes[-1]


def _default_memory_layout(grid: Shape) -> str:
    if prod(grid) == 1:
        return "interleaved"
    return {(False, True): "height_sharded", (True, False): "width_sharded"}.get(
        (grid[0] == 1, grid[1] == 1), "block_sharded"
    )


def _ranges_text(ranges: Ranges) -> str:
    words = [f"#ttnn.core_range<({a},{b}), ({c},{d})>" for (a, b), (c, d) in ranges]
    return f"core_ranges = <[{', '.join(words)}]>"


def _default_ranges(grid: Shape, memory_layout: str) -> Ranges:
    """The cores as rectangles of (x, y) corners, both included; empty unless sharded.

    Height and width shardings number cores row by row, `WORKER_COLUMNS` per row; a last, partial
    row is a second rectangle.
    """
    if memory_layout == "interleaved":
        return ()
    rows, columns = grid
    if memory_layout == "block_sharded":
        return (((0, 0), (columns - 1, rows - 1)),)
    full, rest = divmod(rows * columns, WORKER_COLUMNS)
    found = [((0, 0), (WORKER_COLUMNS - 1, full - 1))] if full else []
    return (*found, *([((0, full), (rest - 1, full))] if rest else []))


def _as_ranges(ranges: Any, grid: Shape, memory_layout: str) -> Ranges:
    """Return disjoint rectangles with as many cores as the grid, none if interleaved."""
    try:
        found: Any = tuple(
            tuple(as_shape(corner, "core_ranges") for corner in one) for one in ranges
        )
    except TypeError:
        raise LayoutError(
            f"core_ranges {ranges!r} must be pairs of (x, y) corners, such as [((0, 0), (7, 1))]"
        ) from None
    if len(found) > _MAX_RANGES:
        raise LayoutError(f"core_ranges are {len(found)} rectangles, over {_MAX_RANGES}")
    if any(len(one) != 2 or len(one[0]) != 2 or len(one[1]) != 2 for one in found):
        raise LayoutError(f"core_ranges {ranges!r} must be pairs of (x, y) corners")
    if memory_layout == "interleaved" and found:
        raise LayoutError(f"core_ranges {ranges!r}: an interleaved layout has no core ranges")
    sizes = [(c - a + 1, d - b + 1) for (a, b), (c, d) in found]
    if any(x < 1 or y < 1 for x, y in sizes):
        raise LayoutError(f"core_ranges {ranges!r}: the second corner is before the first")
    for k, ((a, b), (c, d)) in enumerate(found):
        for (e, f), (g, h) in found[:k]:
            if a <= g and e <= c and b <= h and f <= d:
                raise LayoutError(f"core_ranges {ranges!r}: rectangle {k} overlaps another")
    if memory_layout != "interleaved" and sum(x * y for x, y in sizes) != prod(grid):
        raise LayoutError(
            f"core_ranges {ranges!r} are {sum(x * y for x, y in sizes)} cores: the core ranges do "
            f"not follow from {memory_layout} on {dims_text(grid)}; its default is "
            f"{_ranges_text(_default_ranges(grid, memory_layout))}"
        )
    return tuple(found)


def _check_memory(grid: Shape, memory_layout: Any, buffer_type: Any) -> None:
    one_of(memory_layout, MEMORY_LAYOUTS, "memory_layout")
    one_of(buffer_type, BUFFER_TYPES, "buffer_type")
    if buffer_type == "system_memory" and (prod(grid) != 1 or memory_layout != "interleaved"):
        raise LayoutError(f"grid {grid}, {memory_layout}: system memory is interleaved on grid 1x1")
    if memory_layout == "interleaved" and prod(grid) != 1:
        raise LayoutError(
            f"grid {grid} of an interleaved layout must be 1x1 outside of l1; "
            "interleaved_shard_shape gives the size per core; use height_sharded, width_sharded or "
            "block_sharded to divide the tensor"
        )
    if memory_layout == "block_sharded" and buffer_type == "dram":
        raise LayoutError("block_sharded is illegal in dram: use height_sharded or width_sharded")
    if memory_layout == "height_sharded" and grid[1] != 1:
        raise LayoutError(f"grid {grid} of height_sharded must be Mx1, ({prod(grid)}, 1)")
    if memory_layout == "width_sharded" and grid[0] != 1:
        raise LayoutError(f"grid {grid} of width_sharded must be 1xM, (1, {prod(grid)})")
