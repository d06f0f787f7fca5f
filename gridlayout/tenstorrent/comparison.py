"""`compare`: one tensor in all layout models of Tenstorrent's documents and code.

The models differ in the order of their steps. tt-mlir's document divides by the grid first.
`metal_layout` aligns, then divides exactly. `ttnn_layout` and tt-metal divide by the tile first.
tt-metal's shards also consist of whole tiles, so some cores may be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Shape, ShapeLike, as_shape, one_of, positive
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import as_dtype
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.reader import dims_text
from gridlayout.public import public
from gridlayout.tables.table import aligned
from gridlayout.tenstorrent.metal_layout import MetalLayout, grid_multiple_alignments
from gridlayout.tenstorrent.sharding import block_sharded
from gridlayout.tenstorrent.tiles import as_tile
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Rows of the tensor and of cores are enumerated.
_MAX_ROWS = 1 << 24


@dataclass(frozen=True)
class Row:
    """One model's layout of the tensor, or the text of its refusal."""

    model: str
    layout: Layout | None
    rows: Shape
    refusal: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        if self.layout is None:
            return (self.model, f"refused: {self.refusal}")
        return (
            self.model,
            _dims(self.layout.physical_shape),
            _dims(self.layout.local_shape),
            ",".join(map(str, self.rows)),
            f"{self.layout.padding_share:.1%}",
            str(self.layout.bytes_per_core),
        )


@dataclass(frozen=True)
class Comparison:
    """A table with one row per model; `comparison["document"]` is the row of one model."""

    title: str
    table: tuple[Row, ...]

    def __getitem__(self, model: str) -> Row:
        rows = {row.model: row for row in self.table}
        return rows[one_of(model, rows, "model")]

    def __str__(self) -> str:
        head = ("model", "physical shape", "shard", "rows per core", "padding", "bytes per core")
        return "\n".join([self.title, *aligned([head, *(row.cells for row in self.table)])])

    __repr__ = __str__


@public
def compare(
    shape: ShapeLike,
    grid: ShapeLike = (1, 1),
    tile: ShapeLike | None = (32, 32),
    dtype: DTypeLike = "float32",
) -> Comparison:
    """Compare a tensor on a plane of cores in every model: shapes, rows, padding and bytes.

    Shapes and rows are in elements. "rows per core" are the logical rows (all dims but the last)
    that each row of cores holds. `metal_layout` has two lines: aligned to tiles, which the grid may
    not divide, and aligned to the grid. `LayoutError` for arguments that no model accepts.

    >>> table = compare((53, 63), (3, 2), (32, 32))
    >>> for row in table.table:
    ...     print(row.model, row.rows)
    document (18, 18, 17)
    metal ()
    metal, aligned (32, 21, 0)
    ttnn (22, 22, 9)
    tt-metal (32, 21, 0)
    >>> print(table["metal"].refusal)  # doctest: +ELLIPSIS
    grid (3, 2) does not divide the aligned shape (64, 64) in dim 0, which is 2 tiles: ...
    """
    shape, grid, block = as_shape(shape, "shape"), positive(grid, "grid"), as_tile(tile, None)
    element = as_dtype(dtype)
    if len(grid) != 2:
        raise LayoutError(f"grid {grid} must have rank 2, which all models support")
    if prod(shape[:-1]) > _MAX_ROWS:
        raise LayoutError(f"shape {shape} has over {_MAX_ROWS} rows, too many to enumerate")
    if grid[0] > _MAX_ROWS:
        raise LayoutError(f"grid {grid} has over {_MAX_ROWS} rows of cores, too many to list")

    def aligned() -> Layout:
        alignments = grid_multiple_alignments(shape, grid, block)
        return MetalLayout(shape, element, alignments, grid=grid, tile=block)

    page: dict[str, Any] = {"page": "row_major"} if block is None else {"tile": block}
    models: dict[str, Callable[[], Layout]] = {
        "document": lambda: GridLayout(shape, element, grid, block),
        "metal": lambda: MetalLayout(shape, element, grid=grid, tile=block),
        "metal, aligned": aligned,
        "ttnn": lambda: TtnnLayout(shape, element, grid, block),
        "tt-metal": lambda: block_sharded(shape, element, grid, **page),
    }
    where = f"{_dims(shape)} on {_dims(grid)} cores"
    title = where if block is None else f"{where}, {_dims(block)} tiles"
    return Comparison(title, tuple(_row(model, make) for model, make in models.items()))


def _row(model: str, make: Callable[[], Layout]) -> Row:
    try:
        layout = make()
    except LayoutError as error:
        return Row(model, None, (), str(error))
    return Row(model, layout, _rows_per_core(layout))


def _rows_per_core(layout: Layout) -> Shape:
    """The number of logical rows in each row of cores."""
    rows = layout.shape[:-1]
    if 0 in layout.shape:
        return (0,) * layout.core_shape[0]
    index: list[Any] = [*np.indices(rows, sparse=True), *(0 for _ in layout.shape[-1:])]
    core = np.broadcast_to(layout.index_map(*index)[0], rows)
    return tuple(np.bincount(core.ravel(), minlength=layout.core_shape[0]).tolist())


def _dims(shape: Shape) -> str:
    return dims_text(shape) or "scalar"
