"""`TensorLayout`: tt-metal's placement of a tensor's pages in banks, interleaved or sharded.

    logical dims --alignment--> padded dims --divided by the shard--> shard k, index in the shard
    shard k      --round robin--> core k mod cores, slot k floordiv cores
    index in the shard --divided by the page--> page, index in the page

A page is a tile, or a row of the shard (of the plane, if interleaved). Leading dims beyond the
shard's rank are joined with its first dim. Every shard takes its full size on its core; missing
pages are padding. The physical shape is cores + (slots,) + shard in pages + page. An interleaved
tensor has shards of one page. Sizes are in elements unless stated in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_shape, one_of, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import check_offset
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.steps import StepBuilder
from gridlayout.public import public
from gridlayout.tenstorrent.alignment import align, logical_strides, merged, padded_shape
from gridlayout.tenstorrent.tiles import face_of, page_order, page_tile, split_tile

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

PAGES = ("tile", "row_major")
MEMORY_LAYOUTS = ("interleaved", "nd_sharded", "height_sharded", "width_sharded", "block_sharded")
DISTRIBUTIONS = ("round_robin", "grid_2d")
ORIENTATIONS = ("row_major", "col_major")
_2D = MEMORY_LAYOUTS[2:]
_ARGUMENTS = (
    *("shape", "dtype", "page", "shard_shape", "cores", "tile", "alignment", "memory_layout"),
    *("distribution", "orientation", "tile_order", "tile_format", "page_alignment", "oob"),
)


@public
class TensorLayout(Layout):
    """tt-metal's layout of a tensor: aligned dims, divided into shards that cores hold in pages.

    page: "tile" or "row_major". tile: rows and columns of a tile page, 32x32 or another of the 12
    legal tiles. shard_shape: the shard of the last dims; None interleaves single pages. cores: the
    number of cores, or (rows, columns); by default one per shard, and one bank if interleaved.
    alignment: alignment of the last dims, rounded up to whole pages.

    memory_layout: by default "interleaved", or "nd_sharded" with a shard_shape. "height_sharded",
    "width_sharded" and "block_sharded" take a 2-D shard of the plane, at most one per core.
    distribution: "round_robin" assigns shard k to core k mod cores; "grid_2d" assigns the shard in
    row r, column c to core (r, c). orientation: "row_major", or "col_major" to number cores by
    columns. tile_order: "faces" by default, "transposed" or "swizzled"; see `tiles`. tile_format: a
    block format, as for `gl.GridLayout`. page_alignment: alignment of a page in its bank, in bytes:
    16 in L1, 32 (Wormhole) or 64 (Blackhole) in DRAM.

    `LayoutError` for what tt-metal refuses, and for shards that do not fit their cores.

    >>> layout = tensor_layout((2, 64, 96), "bfloat16", shard_shape=(1, 32, 64), cores=3)
    >>> layout.shard_grid, layout.shards_per_core, layout.physical_shape
    ((2, 2, 2), (3, 3, 2), (3, 3, 1, 1, 2, 2, 2, 16, 16))
    >>> layout.locate((0, 32, 80))  # shard 3: core 0, its second slot; face 1 of a tile
    Location(core=(0,), local=(1, 0, 0, 0, 0, 1, 0, 0), offset=2304, byte=4608)
    """

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        page: str = "tile",
        shard_shape: ShapeLike | None = None,
        cores: int | Sequence[int] | None = None,
        *,
        tile: ShapeLike | None = None,
        alignment: ShapeLike | None = None,
        memory_layout: str | None = None,
        distribution: str | None = None,
        orientation: str = "row_major",
        tile_order: str | None = None,
        tile_format: str | None = None,
        page_alignment: int = 1,
        oob: Any = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        self.page: str = one_of(page, PAGES, "page")
        self.tile: Shape | None = page_tile(page, tile, tile_format)
        self.tile_format: str | None = tile_format
        self.tile_order: str | None = page_order(page, tile_order)
        self.page_alignment: int = positive((page_alignment,), "page_alignment")[0]
        self.memory_layout: str = _memory_layout(memory_layout, shard_shape)
        self.distribution: str = _distribution(distribution, self.memory_layout)
        self.orientation: str = one_of(orientation, ORIENTATIONS, "orientation")
        if shard_shape is not None:
            shard_shape = self._checked_shard(shard_shape)
        self.alignment: Shape = self._aligned(alignment, shard_shape)
        self.padded_shape: Shape = padded_shape(shape, self.alignment)
        self.plane: Shape = (prod(self.padded_shape[:-1]), self.padded_shape[-1])
        if shard_shape is None:
            # A plane without elements has no pages, but the page shape still needs a width.
            shard_shape = self.tile or (1, max(self.plane[1], 1))
        self.shard_shape: Shape = shard_shape
        builder = StepBuilder(shape)
        counts, inner = self._divide(builder, len(shape))
        self.shard_grid: Shape = tuple(builder.extent[axis] for axis in counts)
        self.cores: Shape = self._as_cores(cores)
        self._check_fit()
        order = [*self._distribute(builder, counts), *inner]
        rank = len(self.cores)
        super().__init__(shape, dtype, builder.steps, order, core_rank=rank, oob=oob)

    # -- arguments -----------------------------------------------------------------------------

    def _checked_shard(self, shard_shape: ShapeLike) -> Shape:
        shard = positive(shard_shape, "shard_shape")
        if self.memory_layout == "interleaved":
            raise LayoutError(f"shard_shape {shard}: an interleaved tensor has no shards")
        if self.memory_layout in _2D and len(shard) != 2:
            raise LayoutError(f"shard_shape {shard} of {self.memory_layout} must have rank 2")
        if self.tile is not None and (
            len(shard) < 2 or shard[-2] % self.tile[0] or shard[-1] % self.tile[1]
        ):
            raise LayoutError(
                f"Physical shard shape {shard} must be tile {self.tile} sized: its last two dims "
                "must be multiples of the tile's"
            )
        if self.distribution == "grid_2d" and len(shard) < 2:
            raise LayoutError(f"shard_shape {shard} needs rank 2 or more for grid_2d")
        return shard

    def _aligned(self, alignment: ShapeLike | None, shard: Shape | None) -> Shape:
        """The given alignment, rounded up to pages: to the tile, or to the shard's width."""
        needed = self.tile or (1 if shard is None else shard[-1],)
        if alignment is None:
            return needed
        given = positive(alignment, "alignment")
        if len(given) > 2 and shard is not None:
            raise LayoutError(
                f"alignment {given}: a tensor must be interleaved if its alignment has rank > 2"
            )
        return merged(given, needed)

    def _as_cores(self, cores: int | Sequence[int] | None) -> Shape:
        found: Shape
        if cores is None:
            rows, columns = max(prod(self.shard_grid[:-1]), 1), max(self.shard_grid[-1], 1)
            found = (rows, columns) if self.distribution == "grid_2d" else (rows * columns,)
            if self.memory_layout == "interleaved":
                found = (1,)
            elif self.orientation == "col_major":
                found = found[::-1]
        else:
            found = positive(cores, "cores")
        if len(found) > 2:
            raise LayoutError(f"cores {found} must be a number, or rows and columns of cores")
        if len(found) == 1 and self.orientation != "row_major":
            raise LayoutError(f"orientation col_major of {found[0]} cores: give (rows, columns)")
        if self.distribution == "grid_2d" and len(found) != 2:
            raise LayoutError(
                f"cores {found} of {self.memory_layout} with grid_2d must be (rows, columns)"
            )
        return found

    def _check_fit(self) -> None:
        """Check the rules of the 2-D shardings and of grid_2d, which place one shard per core."""
        rows, columns = prod(self.shard_grid[:-1]), self.shard_grid[-1]
        count = prod(self.cores)
        if self.memory_layout in ("height_sharded", "width_sharded"):
            kind = self.memory_layout.partition("_")[0]
            k, other = (1, "width") if kind == "height" else (0, "height")
            if self.shard_shape[k] != self.plane[k]:
                raise LayoutError(
                    f"Shard {other} {self.shard_shape[k]} must match physical {other} "
                    f"{self.plane[k]} for {kind} sharded"
                )
            if rows * columns > count:
                raise LayoutError(
                    f"Number of shards along {kind} {rows * columns} must not exceed number of "
                    f"cores {count}; take larger shards or more cores"
                )
        elif self.distribution == "grid_2d":
            names = ("rows", "columns") if self.orientation == "row_major" else ("columns", "rows")
            for kind, shards, name, limit in zip(
                ("height", "width"), (rows, columns), names, self._cores_by_shards, strict=True
            ):
                if shards > limit:
                    raise LayoutError(
                        f"Number of shards along {kind} {shards} must not exceed number of {name} "
                        f"{limit} for {self.orientation} orientation"
                    )

    @property
    def _cores_by_shards(self) -> Shape:
        """The cores along rows and columns of shards; col_major swaps rows and columns of cores."""
        return self.cores[::-1] if self.orientation == "col_major" else self.cores

    # -- steps ---------------------------------------------------------------------------------

    def _divide(self, builder: StepBuilder, rank: int) -> tuple[list[int], list[int]]:
        """Divide into shards and pages.

        Returns the axes that count shards, and the axes inside a shard: its pages, then the page.
        """
        padded, shard = self.padded_shape, self.shard_shape
        if len(shard) > len(padded):
            if self.memory_layout == "nd_sharded":
                raise LayoutError(
                    f"shard_shape {shard} has rank {len(shard)}, more than the padded tensor's "
                    f"{padded}; drop its leading dims"
                )
            padded = (1,) * (len(shard) - len(padded)) + padded
        axes = [*(builder.unit() for _ in range(len(padded) - rank)), *range(rank)]
        axes = [builder.resize(axis, n) for axis, n in zip(axes, padded, strict=True)]
        joined = len(padded) - len(shard) + 1
        axes = [builder.join(axes[:joined]), *axes[joined:]]
        counts, insides = [], []
        for axis, n in zip(axes, shard, strict=True):
            padded_axis = builder.resize(axis, align(builder.extent[axis], n))
            count, inside = builder.split(padded_axis, (builder.extent[padded_axis] // n, n))
            counts.append(count)
            insides.append(inside)
        if self.tile is None or self.tile_order is None:
            return counts, insides
        pages, page = [], []
        for axis, n, side in zip(insides[-2:], shard[-2:], self.tile, strict=True):
            count, inside = builder.split(axis, (n // side, side))
            pages.append(count)
            page.append(inside)
        elements = split_tile(builder, page[0], page[1], self.tile, self.tile_order)
        return counts, [*insides[:-2], *pages, *elements]

    def _distribute(self, builder: StepBuilder, counts: Sequence[int]) -> list[int]:
        """Assign shards to cores; return the axes of the cores, then of the slots on a core."""
        cores = self._cores_by_shards
        if self.distribution == "grid_2d":
            axes = [builder.join(counts[:-1]), counts[-1]]
            found = [builder.resize(axis, n) for axis, n in zip(axes, cores, strict=True)]
            slot = builder.unit()
        else:
            shards, number = prod(self.shard_grid), prod(cores)
            slots = -(-shards // number)
            padded = builder.resize(builder.join(counts), slots * number)
            slot, *found = builder.split(padded, (slots, *cores))
        return [*(found[::-1] if self.orientation == "col_major" else found), slot]

    # -- identity ------------------------------------------------------------------------------

    def _key(self) -> tuple[Any, ...]:
        return (*(getattr(self, name) for name in _ARGUMENTS[:-1]), repr(self.oob))

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        arguments = {name: getattr(self, name) for name in _ARGUMENTS}
        if self.memory_layout == "interleaved":
            arguments["shard_shape"] = None
        defaults = {
            "tile": (32, 32) if self.page == "tile" else None,
            "alignment": self._aligned(None, arguments["shard_shape"]),
            "memory_layout": _memory_layout(None, arguments["shard_shape"]),
            "distribution": _distribution(None, self.memory_layout),
            "orientation": "row_major",
            "tile_order": page_order(self.page, None),
            "tile_format": None,
            "page_alignment": 1,
            "oob": None,
        }
        named = {k: v for k, v in arguments.items() if k not in defaults or v != defaults[k]}
        return TensorLayout, named

    def __repr__(self) -> str:
        return call_text("tenstorrent.tensor_layout", self._call()[1], 3, words=False)

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def blocks(self) -> tuple[int, ...]:
        """The elements of the tile, and of its face unless tiles are swizzled."""
        if self.tile is None:
            return ()
        sizes = (self.tile,) if self.tile_order == "swizzled" else (self.tile, face_of(self.tile))
        return tuple(map(prod, sizes))

    @property
    def tile_counts(self) -> Shape | None:
        """The tiles of a shard along each dim; None for row-major pages."""
        tile = self.tile and (1,) * (len(self.shard_shape) - 2) + self.tile
        return tile and tuple(n // t for n, t in zip(self.shard_shape, tile, strict=True))

    @property
    def strides(self) -> Shape:
        """tt-metal's logical strides, in elements: see `alignment.logical_strides`."""
        return logical_strides(self.shape, self.alignment)

    @property
    def page_shape(self) -> Shape:
        """Rows and columns of a page."""
        return self.tile or (1, self.shard_shape[-1])

    @property
    def page_elements(self) -> int:
        """Elements of one page."""
        return prod(self.page_shape)

    @property
    def page_bytes(self) -> int:
        """Bytes of a page, without padding for the bank's alignment."""
        if self.tile_format is not None:
            return dtypes.BLOCK_FORMATS[self.tile_format]
        return -(-prod(self.page_shape) * dtypes.bits(self.dtype) // 8)

    @property
    def pages(self) -> int:
        """Pages of the tensor, partly filled ones included."""
        return prod(self.plane) // prod(self.page_shape)

    @property
    def shards(self) -> int:
        """Shards of the tensor; the last ones may be partly filled."""
        return prod(self.shard_grid)

    @property
    def shards_per_core(self) -> Shape:
        """The number of shards with data on each core, in the order of assignment."""
        if self.distribution == "round_robin":
            cores = prod(self.cores)
            return tuple(-(-(self.shards - k) // cores) for k in range(cores))
        used = (prod(self.shard_grid[:-1]), self.shard_grid[-1])
        rows, columns = self._cores_by_shards
        return tuple(int(r < used[0] and c < used[1]) for r in range(rows) for c in range(columns))

    @property
    def device_pages(self) -> int:
        """Pages of all cores' buffers: full shards, missing pages included."""
        return prod(self.cores) * self.pages_per_core

    @property
    def pages_per_core(self) -> int:
        """Pages of one core's buffer."""
        slots = self.physical_shape[self.core_rank]
        return slots * (prod(self.shard_shape) // prod(self.page_shape))

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffer: its pages, each aligned to `page_alignment`."""
        return self.pages_per_core * align(self.page_bytes, self.page_alignment)

    def byte_of(self, offset: int) -> int | None:
        """The byte at which an element starts, with aligned pages; None in a block format."""
        check_offset(offset)
        if self.tile_format is not None:
            return None
        page, inside = divmod(offset, prod(self.page_shape))
        start = page * align(self.page_bytes, self.page_alignment)
        return start + inside * dtypes.bits(self.dtype) // 8

    def bit_of(self, offset: int) -> int | None:
        """The bit of that byte at which the element starts; None in a block format."""
        check_offset(offset)
        return super().bit_of(offset % prod(self.page_shape))


# The name in texts, as for the other systems.
tensor_layout = TensorLayout


def _memory_layout(memory_layout: Any, shard_shape: Any) -> str:
    if memory_layout is None:
        return "interleaved" if shard_shape is None else "nd_sharded"
    found = one_of(memory_layout, MEMORY_LAYOUTS, "memory_layout")
    if shard_shape is None and found != "interleaved":
        raise LayoutError(f"memory_layout {found!r} needs a shard_shape")
    return found


def _distribution(distribution: Any, memory_layout: str) -> str:
    """The distribution; each memory layout has a default, and only ND shards allow another."""
    own = "grid_2d" if memory_layout == "block_sharded" else "round_robin"
    if distribution is None:
        return own
    found = one_of(distribution, DISTRIBUTIONS, "distribution")
    if found != own and memory_layout != "nd_sharded":
        raise LayoutError(f"distribution {found!r} of {memory_layout} must be {own!r}")
    return found
