"""Conversion of layouts from the compiler's model to TTNN (tt-mlir, "Mapping from the compiler").

TTNN always collapses all dims but the last, and its grids are planes of cores: "the compiler will
have to enforce only collapsing supported dimensions when targeting TTNN, or handle lowering in a
different way".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.tenstorrent.ttnn_document import TtnnDocument, contiguous
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

# Memory spaces of the document -> buffer types of TTNN.
_BUFFERS = {"l1": "l1", "dram": "dram", "system": "system_memory"}


@public
def from_document(layout: GridLayout) -> TtnnLayout:
    """Return the `ttnn_layout` with the same placement as a document layout.

    `LayoutError` if there is none (tt-mlir, "Mapping from the compiler"): TTNN collapses all dims
    but the last, pads to tiles first, and supports only planes of cores.

    >>> from_document(GridLayout((3, 64, 32), grid=(2, 1), tile=(32, 32)))
    TtnnLayout((3, 64, 32), 'float32', grid=(2, 1), tile=(32, 32), memory_layout='height_sharded')
    """
    _check_plane(layout)
    found = _ttnn_like(layout, layout.shape, layout.grid)
    if not found.same_physical(layout):
        raise LayoutError(
            f"TTNN can't express {layout!r}: it pads to tiles, then joins all dims but the last as "
            f"{found.linear}, in shards of {found.shard_shape}; the layout has {layout.linear} in "
            f"shards of {layout.shard_shape}"
        )
    return found


@public
def from_compiler(layout: GridLayout) -> TtnnDocument:
    """Return the document's TTNN layout with the same placement as a compiler layout.

    The strides of the map become those of the `TtnnDocument`, and the shard is stated explicitly.
    `LayoutError` unless the map collapses all dims but the last, in their order, and the grid is a
    plane.

    >>> bumped = "(d0, d1, d2) -> (d0 * 32 + d1, d2)"
    >>> from_compiler(GridLayout((2, 8, 32), grid=(1, 1), tile=(32, 32), linear=bumped))
    tenstorrent.ttnn_document((2, 8, 32), 'float32', stride=(1024, 32, 1), shard_shape=(40, 32), \
tile=(32, 32))
    """
    _check_plane(layout)
    stride = _stride_of(layout)
    try:
        found = TtnnDocument(
            *(layout.shape, layout.dtype, stride, layout.shard_shape, layout.grid, layout.tile),
            memory_space=layout.memory_space,
            tile_format=layout.tile_format,
            row_alignment=layout.row_alignment,
            oob=layout.oob,
        )
    except LayoutError:  # the strides are of dims in another order, or overlap
        found = None
    if found is None or not found.same_physical(layout):
        raise LayoutError(
            f"TTNN can't express {layout!r}: its strides collapse all dims but the last into rows, "
            f"in their order; the layout has {layout.linear}"
        )
    return found


def _stride_of(layout: GridLayout) -> Shape:
    """The strides that a map implies, for a plane as wide as the inner dim."""
    if layout.ndim < 2 or 0 in layout.shape or not layout.linear.is_linear():
        return contiguous(layout.shape)
    rows = layout.linear.coefficients()[0][0]
    found = [layout.shape[-1], 1]
    for d in reversed(range(layout.ndim - 2)):
        # The stride of a dim of extent 1 is arbitrary; that of a contiguous tensor is always valid.
        step = found[0] * layout.shape[d + 1]
        found.insert(0, rows[d] * layout.shape[-1] if layout.shape[d] > 1 else step)
    return tuple(found)


@dataclass(frozen=True)
class MeshLowering:
    """A batch-parallel layout as the same 2-D layout on each of `devices` devices in a line.

    Device k holds the indices `[k * n, (k + 1) * n)` of d0, where `n = layout.shape[0]`.
    """

    devices: int
    layout: TtnnLayout | TtnnDocument


@public
def lower_to_mesh(layout: GridLayout, *, as_document: bool = False) -> MeshLowering:
    """Lower a layout whose first grid dim divides only d0 to a TTNN mesh tensor.

    as_document: whether to use the document's TTNN layout, which divides by the grid before it pads
    to tiles, instead of today's.

    The mesh slices d0; each device's tensor has d0 fully collapsed (tt-mlir, "Mapping from the
    compiler"). Each device holds the same elements as before. Rows may change cores within a
    device, because TTNN divides the collapsed rows. `LayoutError` for other layouts, and if devices
    would hold parts of different sizes.

    >>> batch = GridLayout((2, 3, 64, 128), grid=(2, 2, 4), tile=(32, 32), collapse=[(1, -1)])
    >>> lowered = lower_to_mesh(batch)
    >>> lowered.devices, lowered.layout.shape, lowered.layout.grid
    (2, (1, 3, 64, 128), (2, 4))
    """
    _check_document(layout)
    if len(layout.grid) != 3 or len(layout.shape) < 3:
        raise LayoutError(
            f"grid {layout.grid} of shape {layout.shape}: a mesh of planes needs a grid of rank 3 "
            "and a tensor of rank 3 or more; use from_document for a grid of rank 2"
        )
    if layout != layout.replace(collapse=[(1, -1)]):
        raise LayoutError(
            f"linear {layout.linear} must leave d0 and join d1 to d{len(layout.shape) - 2}, "
            f"collapse=[(1, -1)]: {layout.replace(collapse=[(1, -1)]).linear}"
        )
    devices, batch = layout.grid[0], layout.shape[0]
    if batch % devices or not batch:
        raise LayoutError(
            f"{batch} indices of d0 do not divide over {devices} devices: parts of a mesh tensor "
            "have equal sizes; pad d0, or use another grid"
        )
    if layout.shard_shape[0] != batch // devices:
        raise LayoutError(
            f"shard_shape {layout.shard_shape} states more than the {batch // devices} indices of "
            "d0 per device, so that devices hold other indices; state only the other extents"
        )
    part = (batch // devices, *layout.shape[1:])
    if as_document:
        each = layout.replace(
            shape=part, grid=layout.grid[1:], collapse=[(0, -1)], shard_shape=None
        )
        return MeshLowering(devices, from_compiler(each))
    return MeshLowering(devices, _ttnn_like(layout, part, layout.grid[1:]))


def _check_plane(layout: Any) -> None:
    _check_document(layout)
    if len(layout.grid) != 2:
        raise LayoutError(
            f"grid {layout.grid} has rank {len(layout.grid)}; TTNN places tensors on a plane: use "
            "lower_to_mesh if the grid divides d0 first, or collapse to two dims"
        )


def _ttnn_like(layout: GridLayout, shape: Shape, grid: Shape) -> TtnnLayout:
    if layout.memory_space not in _BUFFERS:
        raise LayoutError(
            f"memory_space {layout.memory_space!r} has no TTNN buffer type; use one of "
            f"{', '.join(_BUFFERS)}"
        )
    return TtnnLayout(
        *(shape, layout.dtype, grid, layout.tile, None, _BUFFERS[layout.memory_space]),
        tile_format=layout.tile_format,
        row_alignment=layout.row_alignment,
        oob=layout.oob,
    )


def _check_document(layout: Any) -> None:
    if not isinstance(layout, GridLayout):
        raise LayoutError(f"{type(layout).__name__} is not a document-model layout, gl.GridLayout")
    if layout.face is not None:
        raise LayoutError(f"face {layout.face}: a ttnn_layout has no faces; leave it out")
    if layout.tile is not None and len(layout.tile) != 2:
        raise LayoutError(f"tile {layout.tile} must have rank 2, rows and columns")
