"""`SliceDims`: how the dims of an array correspond to those of its slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.slices.logical_indices import at_columns, columns_of, slice_indices


@dataclass(frozen=True)
class SliceDims:
    """How the dims of an array correspond to those of its slices: a gather's result, or updates.

    shape: of the array. sizes: of one slice. dim_map: dim of the array -> dim of the slices.
    axes: the dims of the array that are indexed or sliced. indexed: the dim that each column of
    `columns` of the indices is for. full_dims: the dims of the slices for all other dims of the
    array. lead: the other dims of the slices. mode: the op's `GatherScatterMode`.
    """

    shape: Shape
    sizes: Shape
    dim_map: dict[int, int]
    axes: Shape
    indexed: Shape
    columns: list[int]
    full_dims: list[int]
    lead: Shape
    mode: Any

    @classmethod
    def of(
        cls,
        op: Op,
        shape: Shape,
        sizes: Shape,
        dim_map: dict[int, int],
        index_dims: Shape,
        batch: Shape,
        dropped: Shape,
        rank: int,
    ) -> SliceDims:
        """Return the dims of slices in an array of rank `rank`: a gather's result, or updates.

        index_dims: the dim of each column of the indices. batch: the batch dims of the operand.
        dropped: its dims that the slices lack.
        """
        columns = columns_of(op, index_dims, shape, sizes)
        indexed = tuple(index_dims[k] for k in columns)
        some = {*indexed, *dropped}
        taken = [d for d in range(len(shape)) if d in some or sizes[d] != shape[d]]
        axes = tuple(d for d in taken if d not in batch)
        full_dims = [dim_map[d] for d in range(len(shape)) if d not in axes]
        lead = tuple(k for k in range(rank) if k not in full_dims)
        mode = op.params["mode"]
        return cls(shape, sizes, dim_map, axes, indexed, columns, full_dims, lead, mode)

    @classmethod
    def of_gather(cls, op: Op, value: Value) -> SliceDims:
        """Return the dims of a gather."""
        n, rank = op.params["dimension_numbers"], op.out.ndim
        dropped, batch = n.collapsed_slice_dims, n.operand_batching_dims
        dim_map = _dim_map(
            value.ndim, dropped, batch, n.offset_dims, rank, n.start_indices_batching_dims
        )
        sizes, index_dims = tuple(op.params["slice_sizes"]), n.start_index_map
        return cls.of(op, value.shape, sizes, dim_map, index_dims, batch, dropped, rank)

    @classmethod
    def of_scatter(cls, op: Op, value: Value, updates: Value) -> SliceDims:
        """Return the dims of a scatter."""
        n, rank = op.params["dimension_numbers"], updates.ndim
        dropped, batch = n.inserted_window_dims, n.operand_batching_dims
        dim_map = _dim_map(
            value.ndim, dropped, batch, n.update_window_dims, rank, n.scatter_indices_batching_dims
        )
        sizes = tuple(updates.shape[dim_map[d]] if d in dim_map else 1 for d in range(value.ndim))
        index_dims = n.scatter_dims_to_operand_dims
        return cls.of(op, value.shape, sizes, dim_map, index_dims, batch, dropped, rank)

    @property
    def in_lead(self) -> tuple[int, ...]:
        """The positions in `lead` of the dims of slices along `axes`."""
        return tuple(self.lead.index(self.dim_map[d]) for d in self.axes if d in self.dim_map)

    @property
    def indexed_axes(self) -> Shape:
        """The positions in `axes` of the indexed dims."""
        return tuple(map(self.axes.index, self.indexed))

    def indices(self, indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        """Return the logical indices along `axes` and a mask of slices in bounds.

        Both broadcast to the dims `lead`.
        """
        here = [d for d in self.axes if d in self.dim_map]
        dim_map = dict(zip(map(self.axes.index, here), self.in_lead, strict=True))
        shape, sizes = (tuple(x[d] for d in self.axes) for x in (self.shape, self.sizes))
        columns = at_columns(indices, self.columns)
        return slice_indices(
            shape, sizes, dim_map, len(self.lead), self.indexed_axes, columns, self.mode
        )


def _dim_map(
    ndim: int, dropped: Shape, batch: Shape, window: Shape, rank: int, index_batch: Shape
) -> dict[int, int]:
    """Return the dim of the slices, of rank `rank`, for each dim of an array of rank `ndim`.

    dropped: dims that the slices lack. window: the slices' dims for the other dims. index_batch:
    the dims of the indices that correspond to the batch dims `batch`.
    """
    sliced = [d for d in range(ndim) if d not in dropped and d not in batch]
    rest = [k for k in range(rank) if k not in window]
    return dict(zip(sliced, window, strict=True)) | {
        d: rest[k] for d, k in zip(batch, index_batch, strict=True)
    }
