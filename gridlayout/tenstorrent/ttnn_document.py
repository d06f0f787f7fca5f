"""`TtnnDocument`: the TTNN layout as tt-mlir's document describes it ("TTNN Tensor Layout").

    logical dims --stride--> rows of a plane, the inner dim its columns --shard_shape--> core, shard
                 --ceilDiv(tile)--> tiles

There is no affine map; PyTorch-like strides express how dims are collapsed. The shard divides the
logical plane. It need not be a multiple of the tile, because it is padded to tiles afterwards. This
is the order of `gl.GridLayout`, and `as_grid` returns such a layout. Today's TTNN (`ttnn`) pads to
tiles first. Sizes and strides are in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gridlayout.affine.map import AffineMap, constant, dim, embedding
from gridlayout.arguments import Shape, ShapeLike, as_shape, positive
from gridlayout.caching import cached
from gridlayout.document.collapse import collapsed_shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, as_space
from gridlayout.layouts.strides import row_major
from gridlayout.public import public
from gridlayout.tenstorrent.tiles import as_tile

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@public
class TtnnDocument(Layout):
    """A tensor packed into a plane by its strides; shards divide the plane (tt-mlir, "Terms").

    stride: strides in elements, as in PyTorch; by default those of a contiguous tensor. The last
    must be 1. The last but one is the width of a row, at least the extent of the inner dim. Every
    other stride is a multiple of this width, and at least the stride times the extent of the next
    dim. So dims [0, N-1) are collapsed into rows in their order; larger strides leave rows, or the
    ends of rows, as padding. shard_shape: rows and columns of the plane per core; the tile need not
    divide them. By default the plane divided by the grid, where the plane has shape[0] steps of
    stride[0]. grid: rows and columns of cores; by default the number of shards. tile: rows and
    columns, None for row-major scalars. memory_space, tile_format, row_alignment: as for
    `gl.GridLayout`.

    The physical shape is grid + shard in tiles + tile. `LayoutError` for other strides, and if all
    shards together are smaller than the tensor.

    >>> layout = ttnn_document((12, 12, 16), "float32", grid=(2, 1), tile=(32, 32))
    >>> layout.stride, layout.shard_shape, layout.physical_shard_shape, layout.grid_shape
    ((192, 16, 1), (72, 16), (96, 32), (2, 1))
    >>> padded = ttnn_document((12, 12, 16), stride=(512, 16, 1), shard_shape=(96, 16))
    >>> padded.grid_shape, padded.plane, padded.as_grid.linear(1, 0, 0)
    ((4, 1), (384, 16), (32, 0))
    """

    def __init__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = "float32",
        stride: Sequence[int] | None = None,
        shard_shape: int | Sequence[int | None] | None = None,
        grid: ShapeLike | None = None,
        tile: ShapeLike | None = None,
        *,
        memory_space: str = "l1",
        tile_format: str | None = None,
        row_alignment: int | None = None,
        oob: Any = None,
    ) -> None:
        shape = as_shape(shape, "shape")
        self.stride: Shape = contiguous(shape) if stride is None else _as_stride(stride, shape)
        self.plane: Shape = _plane(shape, self.stride)
        linear = _linear(self.stride)
        if grid is None and shard_shape is not None:
            sizes = as_shape(shard_shape, "shard_shape")
            if len(sizes) == 2:  # a shard without elements needs one core
                used = collapsed_shape(linear, shape, (1, 1))
                grid = [max(n, 1) for n in _divided(used, sizes)]
        grid = positive((1, 1) if grid is None else grid, "grid")
        if len(grid) != 2:
            raise LayoutError(f"grid {grid} must have rank 2: TTNN places tensors on a plane")
        like = GridLayout(
            *(shape, dtype, grid, as_tile(tile, tile_format)),
            linear=linear,
            shard_shape=_divided(self.plane, grid) if shard_shape is None else shard_shape,
            memory_space=as_space(memory_space, MEMORY_SPACES),
            tile_format=tile_format,
            row_alignment=row_alignment,
        )
        self.grid: Shape = grid
        self.tile: Shape | None = like.tile
        self.tile_format: str | None = tile_format
        self.row_multiple: int = like.row_multiple
        self.memory_space: str = like.memory_space
        self.shard_shape: Shape = like.shard_shape
        super().__init__(shape, dtype, like.steps, like.order, core_rank=2, oob=oob)

    # -- identity ------------------------------------------------------------------------------

    def _key(self) -> tuple[Any, ...]:
        return (*(getattr(self, name) for name in _ARGUMENTS[:-1]), repr(self.oob))

    _constructor = "tenstorrent.ttnn_document", 2

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        shard = _divided(self.plane, self.grid)
        defaults: dict[str, Any] = {"stride": contiguous(self.shape), "shard_shape": shard}
        defaults |= {"grid": (1, 1), "memory_space": "l1"}
        given = {name: getattr(self, name) for name in _ARGUMENTS}
        # A dtype of float64 equals None.
        known = {k: v for k, v in given.items() if v is not None}
        return TtnnDocument, {
            k: v for k, v in known.items() if k not in defaults or v != defaults[k]
        }

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def tile_shape(self) -> Shape:
        """Rows and columns of a tile; 1x1 for scalars."""
        return self.tile or (1, 1)

    @property
    def tile_counts(self) -> Shape:
        """The shard in tiles."""
        return self.as_grid.tile_counts

    @property
    def physical_shard_shape(self) -> Shape:
        """The shard padded to tiles; the document: "The shard_shape padded out to tile_shape"."""
        return tuple(n * t for n, t in zip(self.tile_counts, self.tile_shape, strict=True))

    @property
    def grid_shape(self) -> Shape:
        """The cores that hold a part of the tensor: divup(rows, shard rows), columns likewise.

        For the document's own formula, see `written_grid_shape`.
        """
        return _divided(self.as_grid.collapsed_shape if self.size else (0, 0), self.shard_shape)

    @property
    def written_grid_shape(self) -> Shape:
        """The document's formula for `grid_shape`, taken literally.

        `[divup(stride[0] // stride[-2], shard_shape[0]), divup(stride[-2], shard_shape[0])]`. It
        counts only the rows of one index of d0, and divides columns by the rows of a shard.

        >>> layout = ttnn_document((2, 3, 64, 128), grid=(2, 4))
        >>> layout.grid_shape, layout.written_grid_shape
        ((2, 4), (1, 1))
        """
        width, rows = self.plane[1], self.shard_shape[0]
        step = self.stride[0] if self.ndim > 1 else width
        return _divided((step // width if width else 0, width), (rows, rows))

    @property
    def memory(self) -> str:
        """The memory space."""
        return self.memory_space

    # -- structure -----------------------------------------------------------------------------

    @property
    def as_grid(self) -> GridLayout:
        """The same layout in the compiler's model, with an affine map and a stated shard.

        >>> print(ttnn_document((12, 12, 16), grid=(2, 1)).as_grid.linear)
        (d0, d1, d2) -> (d0 * 12 + d1, d2)
        """
        return _as_grid(self)

    @property
    def grouped(self) -> GridLayout | None:
        """`as_grid`, if it has groups."""
        return self.as_grid.grouped


# The name in texts, as for the other systems.
ttnn_document = TtnnDocument

_ARGUMENTS = (
    *("shape", "dtype", "stride", "shard_shape", "grid", "tile"),
    *("memory_space", "tile_format", "row_alignment", "oob"),
)


@cached
def _as_grid(layout: TtnnDocument) -> GridLayout:
    given = {name: getattr(layout, name) for name in _ARGUMENTS if name != "stride"}
    return GridLayout(**given, linear=_linear(layout.stride))


def contiguous(shape: Shape) -> Shape:
    """PyTorch's strides of a contiguous tensor, in elements.

    >>> contiguous((53, 63)), contiguous((2, 0, 3))
    ((63, 1), (3, 3, 1))
    """
    return row_major([max(n, 1) for n in shape])


def _as_stride(stride: Any, shape: Shape) -> Shape:
    """Return strides that collapse dims [0, N-1) into rows, in their order; else LayoutError."""
    found = as_shape(stride, "stride")
    if len(found) != len(shape):
        raise LayoutError(f"stride {found} must have one number per dim of the shape {shape}")
    if found and found[-1] != 1:
        raise LayoutError(
            f"stride {found}: the inner dim is a row of the plane, so its stride must be 1"
        )
    for d in reversed(range(len(found) - 1)):
        least = found[d + 1] * max(shape[d + 1], 1)
        if found[d] < least:
            raise LayoutError(
                f"stride {found} of {shape}: that of dim {d} is below {least}, the span of dim "
                f"{d + 1}; TTNN collapses dims into rows in their order, so give {least} or more"
            )
        if found[d] % found[-2]:
            raise LayoutError(
                f"stride {found}: that of dim {d} must be a multiple of {found[-2]}, the width of "
                "a row (the stride of the last dim but one)"
            )
    return found


def _linear(stride: Shape) -> AffineMap:
    rank = len(stride)
    if rank < 2:
        return embedding(2, range(2 - rank, 2))
    rows = constant(0)
    for d in range(rank - 1):
        rows = rows + dim(d) * (stride[d] // stride[-2])
    return AffineMap(rank, (rows, dim(rank - 1)))


def _plane(shape: Shape, stride: Shape) -> Shape:
    """The rows, shape[0] steps of stride[0], and the columns of the plane."""
    if len(shape) < 2:
        return (1, *shape, *(1 for _ in range(1 - len(shape))))
    return (shape[0] * (stride[0] // stride[-2]), stride[-2])


def _divided(sizes: Shape, by: Shape) -> Shape:
    return tuple(-(-n // m) if m else 0 for n, m in zip(sizes, by, strict=True))
