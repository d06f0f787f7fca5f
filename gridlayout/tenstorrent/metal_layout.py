"""`MetalLayout`: tt-mlir's current `#ttcore.metal_layout`. Align and join, then divide exactly.

Each interval of logical dims is joined from its inner dim outward: `c = align(n * c, alignment)`.
So the alignment of an inner dim leaves gaps between the steps of the outer dim, and that of the
outermost dim only pads the tail. The tile must divide the last two physical dims, and the grid must
divide the tiles. Nothing is rounded up, unlike in the document model (`gl.GridLayout`). Sizes are
in elements.

tt-mlir sorts the intervals and keeps the dims after the last one, but drops dims before the first
interval and between intervals. Such a layout would lose data, so it is refused here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_shape, one_of, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, as_space
from gridlayout.layouts.reader import dims_text, shaped_text
from gridlayout.layouts.steps import StepBuilder
from gridlayout.public import public
from gridlayout.tenstorrent.alignment import PAGE, align
from gridlayout.tenstorrent.tiles import as_tile

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Intervals = tuple[tuple[int, int], ...]
# The memory spaces of the document, and the registers in which tiles are computed.
SPACES = (*MEMORY_SPACES, "dst")
ARRANGEMENTS = ("sharded", "interleaved")
_SIDE = 32


@public
class MetalLayout(Layout):
    """tt-mlir's current `metal_layout`: align and join, divide exactly by the tile and the grid.

    dim_alignments: one number >= 1 per logical dim, in elements; by default `tile_alignments`.
    collapsed_intervals: pairs (start, end), end excluded; negative numbers count from the rank. By
    default all dims but the last are joined; `[]` joins none. grid: cores along each physical dim,
    by default 1. tile: rows and columns of a tile, None for scalars. memory_layout: sharded, or
    interleaved (with a grid of 1s). tile_format: a block format, as for `gl.GridLayout`.

    The physical shape is grid + shard in tiles + tile. A tensor of rank 0 is a plane of 32x32, and
    one of rank 1 has 32 rows. `LayoutError` if a division is not exact, or a dim would be lost.

    >>> layout = metal((3, 43, 7), "float32", grid=(6, 1))
    >>> layout.aligned_shape, layout.shard_shape
    ((192, 32), (32, 32))
    >>> metal((53, 63), grid=(3, 2), tile=(32, 32), dim_alignments=(96, 32)).physical_shape
    (3, 2, 1, 1, 32, 32)
    """

    one_bank_per_shard = True

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        dim_alignments: Sequence[int] | None = None,
        collapsed_intervals: Sequence[Sequence[int]] | None = None,
        grid: ShapeLike | None = None,
        tile: ShapeLike | None = None,
        memory_space: str = "l1",
        memory_layout: str = "sharded",
        *,
        tile_format: str | None = None,
        oob: Any = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        self.tile: Shape | None = as_tile(tile, tile_format)
        self.tile_format: str | None = tile_format
        if collapsed_intervals is None:
            collapsed_intervals = default_intervals(len(shape))
        self.collapsed_intervals: Intervals = _as_pairs(collapsed_intervals)
        spans = intervals_of(self.collapsed_intervals, len(shape))
        if dim_alignments is None:
            dim_alignments = tile_alignments(shape, self.collapsed_intervals, self.tile or (32, 32))
        self.dim_alignments: Shape = _as_alignments(dim_alignments, shape)
        self.memory_space: str = as_space(memory_space, SPACES)
        self.memory_layout: str = one_of(memory_layout, ARRANGEMENTS, "memory_layout")
        builder = StepBuilder(shape)
        axes = _joined(builder, shape, spans, self.dim_alignments)
        self.aligned_shape: Shape = tuple(builder.extent[axis] for axis in axes)
        self.grid: Shape = (1,) * len(axes) if grid is None else positive(grid, "grid")
        if self.memory_layout == "interleaved" and prod(self.grid) != 1:
            raise LayoutError(
                f"grid {self.grid} of an interleaved layout must be all 1, because its shard is "
                "the full tensor; use memory_layout='sharded' to divide it"
            )
        self.shard_shape: Shape = _shard(self.aligned_shape, self.grid, self.tile)
        untiled = len(axes) - len(self.tile or ())
        sides = ((),) * untiled + tuple((side,) for side in self.tile or ())
        digits = [
            builder.split(axis, (cores, count, *side))
            for axis, cores, count, side in zip(
                axes, self.grid, self.shard_shape, sides, strict=True
            )
        ]
        order = [d[0] for d in digits] + [d[1] for d in digits] + [d[2] for d in digits[untiled:]]
        super().__init__(shape, dtype, builder.steps, order, core_rank=len(self.grid), oob=oob)

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.dim_alignments, self.collapsed_intervals, self.grid),
            *(self.tile, self.tile_format, self.memory_space, self.memory_layout, repr(self.oob)),
        )

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        names = ("shape", "dtype", "tile", "memory_space", "memory_layout", "tile_format", "oob")
        now = {name: getattr(self, name) for name in names}
        intervals, sides = self.collapsed_intervals, self.tile or (_SIDE, _SIDE)
        if self.dim_alignments != tile_alignments(self.shape, intervals, sides):
            now["dim_alignments"] = self.dim_alignments
        if intervals != default_intervals(self.ndim):
            now["collapsed_intervals"] = intervals
        if prod(self.grid) > 1:
            now["grid"] = self.grid
        return MetalLayout, now

    def __repr__(self) -> str:
        names = ("shape", "dtype", "dim_alignments", "collapsed_intervals", "grid", "tile")
        named = {name: getattr(self, name) for name in names}
        named |= {"tile_format": self.tile_format} if self.tile_format else {}
        named["oob"] = self.oob
        if (self.memory_space, self.memory_layout) != ("l1", "sharded"):
            named |= {"memory_space": self.memory_space, "memory_layout": self.memory_layout}
        return call_text("MetalLayout", named, 2)

    def __str__(self) -> str:
        """The type as tt-mlir prints it; `metal_layout_text` parses it."""
        pairs = ", ".join(f"[{start}, {end}]" for start, end in self.collapsed_intervals)
        dense = f"dense<[{pairs}]>" if pairs else "dense<>"
        oob = f", oob = {dtypes.oob_text(self.oob)}" if self.oob is not None else ""
        device = shaped_text(self.grid + self.shard_shape, self._element())
        return (
            f"tensor<{device}, #ttcore.metal_layout<"
            f"logical_shape = {dims_text(self.shape) or '[]'}, "
            f"dim_alignments = {dims_text(self.dim_alignments) or '[]'}, collapsed_intervals = "
            f"{dense} : tensor<{len(self.collapsed_intervals)}x2xi64>, "
            f"{self.memory_space}, {self.memory_layout}{oob}>>"
        )

    def _element(self) -> str:
        name = dtypes.MLIR_NAMES[self.dtype.name]
        if self.tile is None:
            return name
        inner = dtypes.TILE_NAMES.get(self.dtype.name, name)
        if self.tile_format is not None:
            inner = self.tile_format + ("" if name == "bf16" else f", {name}")
        return f"!ttcore.tile<{dims_text(self.tile)}, {inner}>"

    @property
    def tile_counts(self) -> Shape | None:
        """The shard in tiles; None for scalars."""
        return None if self.tile is None else self.shard_shape

    @property
    def memory(self) -> str:
        """The memory space."""
        return self.memory_space

    @property
    def allocated_per_core(self) -> int:
        """Bytes allocated for one core's buffer: in L1, whole pages of 32x32 elements.

        >>> metal((1, 1), "uint32", dim_alignments=(1, 1)).allocated_per_core
        4096
        """
        if self.memory != "l1" or self.tile is not None:
            return self.bytes_per_core
        return align(self.bytes_per_core, PAGE * self.stored_bits // 8)


metal = MetalLayout


def default_intervals(rank: int) -> Intervals:
    """The intervals that join all dims but the last.

    >>> default_intervals(3), default_intervals(0)
    (((0, 2), (2, 3)), ())
    """
    return ((0, rank - 1), (rank - 1, rank)) if rank else ()


def intervals_of(intervals: Any, rank: int) -> Intervals:
    """The intervals in order, with negative ends resolved and the dims after the last one added.

    They cover every dim once. `LayoutError` for ends outside the rank, overlaps, and dims that
    tt-mlir would drop.

    >>> intervals_of([(0, -1)], 4), intervals_of([], 2)
    (((0, 3), (3, 4)), ((0, 1), (1, 2)))
    """
    spans = []
    for start, end in _as_pairs(intervals):
        low, high = (start + rank if start < 0 else start), (end + rank if end < 0 else end)
        if not 0 <= low < max(rank, 1) or not low <= high <= rank:
            raise LayoutError(
                f"collapsed interval ({start}, {end}) does not fit rank {rank}: 0 <= start < rank "
                "and start <= end <= rank, where negative numbers count from the rank"
            )
        if low < high:
            spans.append((low, high))
    spans.sort()
    last = spans[-1][1] if spans else 0
    spans += [(d, d + 1) for d in range(last, rank)]
    for (_, before), (after, _) in pairwise([(0, 0), *spans]):
        if after < before:
            raise LayoutError(f"collapsed intervals {intervals} overlap at dim {after}")
        if after > before:
            raise LayoutError(
                f"collapsed intervals {intervals} of rank {rank} lose dim {before}: metal_layout "
                "keeps only dims in an interval or after the last one; "
                f"list ({before}, {before + 1}) too"
            )
    return tuple(spans)


@public
def tile_alignments(
    shape: ShapeLike,
    collapsed_intervals: Any = None,
    tile: ShapeLike = (32, 32),
) -> Shape:
    """Alignments that are the tile's sizes for the last dims of the last two intervals, else 1.

    >>> tile_alignments((2, 3, 5, 193))
    (1, 1, 32, 32)
    """
    shape = as_shape(shape, "shape")
    spans = spans_of(shape, collapsed_intervals)
    found = [1] * len(shape)
    for (_, end), side in zip(spans[::-1], positive(tile, "tile")[::-1], strict=False):
        found[end - 1] = side
    return tuple(found)


def grid_multiple_alignments(
    shape: ShapeLike, grid: ShapeLike, tile: ShapeLike | None = (32, 32)
) -> Shape:
    """Alignments for which a tensor of rank 2 or more divides over a 2-D grid, even with few tiles.

    The first dims of the default intervals are aligned to the grid times the tile, or times 1 for
    scalars. Cores may hold only padding. A tensor of lower rank has 32 rows, which no alignment
    changes.

    >>> grid_multiple_alignments((53, 63), (3, 2))
    (96, 64)
    """
    shape, grid = as_shape(shape, "shape"), positive(grid, "grid")
    sides = (1, 1) if tile is None else positive(tile, "tile")
    found = list(tile_alignments(shape, None, sides))
    spans = intervals_of(default_intervals(len(shape)), len(shape))
    for (start, _), cores, side in zip(spans[::-1], grid[::-1], sides[::-1], strict=False):
        found[start] = cores * side
    return tuple(found)


@public
def host_strides(
    shape: ShapeLike, dim_alignments: Sequence[int], collapsed_intervals: Any = None
) -> tuple[Shape, int]:
    """The strides and the volume, in elements, of the padded row-major buffer on the host.

    >>> host_strides((7, 43, 7), (256, 32, 32))
    ((2048, 32, 1), 16384)
    """
    shape = as_shape(shape, "shape")
    alignments = _as_alignments(dim_alignments, shape)
    strides, step = [0] * len(shape), 1
    for start, end in spans_of(shape, collapsed_intervals)[::-1]:
        size = 1
        for d in range(end - 1, start - 1, -1):
            strides[d] = size * step
            size = align(size * shape[d], alignments[d])
        step *= size
    return tuple(strides), step


def spans_of(shape: Shape, intervals: Any) -> Intervals:
    """Return the collapsed intervals of a shape, by default those of the compiler."""
    return intervals_of(
        default_intervals(len(shape)) if intervals is None else intervals, len(shape)
    )


def _as_pairs(intervals: Any) -> Intervals:
    try:
        pairs = [tuple(pair) for pair in intervals]
        found = tuple((operator.index(start), operator.index(end)) for start, end in pairs)
    except (TypeError, ValueError):
        found = None
    if found is None or any(isinstance(n, bool) for pair in pairs for n in pair):
        raise LayoutError(
            f"collapsed_intervals {intervals!r} must be a list of pairs (start, end) of whole "
            "numbers"
        )
    return found


def _as_alignments(alignments: Any, shape: Shape) -> Shape:
    found = as_shape(alignments, "dim_alignments")
    if len(found) != len(shape):
        raise LayoutError(
            f"dim_alignments {found} has rank {len(found)}, but the shape {shape} has rank "
            f"{len(shape)}: give one alignment per dim"
        )
    if 0 in found:
        raise LayoutError(f"dim_alignments {found} must all be >= 1; use 1 for no alignment")
    return found


def _joined(builder: StepBuilder, shape: Shape, spans: Intervals, alignments: Shape) -> list[int]:
    """Join the dims of each interval, with the gaps from alignments; return the physical dims."""
    axes = []
    for start, end in spans:
        axis = builder.resize(end - 1, align(shape[end - 1], alignments[end - 1]))
        for d in range(end - 2, start - 1, -1):
            axis = builder.join((d, axis))
            axis = builder.resize(axis, align(builder.extent[axis], alignments[d]))
        axes.append(axis)
    # Devices only support planes: rank 1 gets rows, rank 0 rows and columns.
    rows = [builder.resize(builder.unit(), _SIDE) for _ in range(2 - len(shape))]
    return [*rows, *axes]


def _shard(aligned: Shape, grid: Shape, tile: Shape | None) -> Shape:
    """Return one core's part in tiles; `LayoutError` if a division is not exact."""
    if len(grid) != len(aligned):
        raise LayoutError(
            f"grid {grid} has rank {len(grid)}, but the collapsed and aligned shape is {aligned}: "
            f"give a grid of rank {len(aligned)}, or other collapsed_intervals"
        )
    if len(aligned) < len(tile or ()):
        raise LayoutError(f"tile {tile} needs two physical dims; {aligned} has one: collapse less")
    sides = (1,) * (len(aligned) - len(tile or ())) + (tile or ())
    for k, (n, cores, side) in enumerate(zip(aligned, grid, sides, strict=True)):
        if n % side:
            raise LayoutError(
                f"tile {tile} does not divide the aligned shape {aligned} in dim {k}: metal_layout "
                f"divides exactly; align that dim to a multiple of {side}"
            )
        if n // side % cores:
            raise LayoutError(
                f"grid {grid} does not divide the aligned shape {aligned} in dim {k}, which is "
                f"{n // side} {'tiles' if tile else 'elements'}: metal_layout divides exactly; "
                f"align it to a multiple of {cores * side}, or use another grid"
            )
    return tuple(n // side // cores for n, cores, side in zip(aligned, grid, sides, strict=True))
