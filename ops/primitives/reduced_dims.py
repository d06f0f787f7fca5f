"""`ReducedDims`: the dims that a reduction reduces, and the layouts of its operand and result.

Each collapsed dim of the operand is reduced wholly or not at all; other operands are relaid out
first. The result is on one core along the reduced dims.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from gridlayout.affine.map import AffineMap, constant, dim, embedding, linearized
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import as_blocks, untiled
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.deferred import thinned
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import has_padding
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class ReducedDims:
    """The dims of a layout that a reduction reduces.

    collapsed: the reduced collapsed dims. along: the reduced dims of a device's part. mesh: the
    mesh axes to reduce over.
    """

    layout: GridLayout
    placement: Placement
    collapsed: tuple[int, ...]
    along: tuple[int, ...]
    mesh: Axes

    @classmethod
    def of(cls, spec: Spec, axes: tuple[int, ...]) -> ReducedDims:
        """Return the logical dims `axes`, which no collapsed dim may join with other dims."""
        assert isinstance(spec, Sharded)
        layout, placement = grouped(spec.layout), spec.placement
        assert layout is not None
        reduced = tuple(k for k, group in enumerate(layout.groups) if set(group) & set(axes))
        along = tuple(d for k in reduced for d in layout.axis_dims(k))
        mesh = tuple(a for k in reduced for a in placement.axes[k])
        if len(axes) == layout.ndim:
            # Grid dims that depend on no logical dim are reduced too: cores other than the first
            # must be neutral there. Their axes come first, so that the first core stays first.
            unfed = [k for k in range(len(layout.grid)) if k not in reduced]
            mesh = (*(a for k in unfed for a in placement.axes[k]), *mesh)
            along = tuple(range(len(spec.local_shape)))
        return cls(layout, placement, reduced, along, mesh)

    @property
    def part(self) -> int:
        """The number of elements of one device's result."""
        shape = (*self.placement.per_device, *self.layout.local_shape)
        return prod(n for d, n in enumerate(shape) if d not in self.along)


def result_spec(
    reduced: ReducedDims, axes: tuple[int, ...], dtype: Any, neutral: Any, added: int
) -> Sharded:
    """Return the spec of a result: the layout without the reduced dims, on one core along them.

    added: the number of leading grid dims that `separate` added. They are removed.
    """
    layout, placement = reduced.layout, reduced.placement
    was_neutral = repr(layout.oob) == repr(neutral) and dtype == layout.dtype
    kept = [k for k in range(len(layout.grid)) if k not in reduced.collapsed]
    others = [d for k in kept for d in layout.axis_dims(k)]
    is_known = was_neutral or not has_padding(layout, placement, others)
    thin = thinned(
        without_dims(layout, axes, dtype, added),
        tuple(range(layout.ndim - len(axes))),
        tuple(k - added for k in kept),
    )
    rows = range(added, len(layout.grid))
    return Sharded(
        thin.with_oob((neutral if was_neutral else 0) if is_known else None),
        Placement(
            thin.grid,
            tuple(placement.axes[k] if k in kept else () for k in rows),
            tuple(placement.slots[k] if k in kept else 1 for k in rows),
            tuple(placement.per_device[k] if k in kept else 1 for k in rows),
        ),
    )


@cached
def without_dims(layout: GridLayout, axes: tuple[int, ...], dtype: Any, added: int) -> GridLayout:
    """Return the layout without the dims `axes` and without the first `added` grid dims."""
    kept = [d for d in range(layout.ndim) if d not in axes]
    linear = layout.linear.compose(embedding(layout.ndim, kept))
    removed = {k for k, group in enumerate(layout.groups) if set(group) & set(axes)}
    rows = tuple(constant(0) if k in removed else row for k, row in enumerate(linear.results))
    # The row alignment, in elements, stays if the last collapsed dim does.
    last = len(layout.grid) - 1
    layout = layout.with_dtype(dtype)
    return layout.replace(
        shape=tuple(layout.shape[d] for d in kept),
        row_alignment=None if last in removed else layout.row_alignment,
        grid=layout.grid[added:],
        linear=AffineMap(len(kept), rows[added:]),
        shard_shape=tuple(
            None if k in removed else n for k, n in enumerate(layout.stated_shard) if k >= added
        ),
        oob=None,
        tile_format=None,
    )


def separate(b: Builder, x: Value, axes: tuple[int, ...]) -> tuple[Value, int]:
    """Return `x` in a layout whose collapsed dims are reduced wholly or not at all.

    Also return the number of leading grid dims that were added for that.
    """
    assert x.layout is not None
    layout = grouped(x.layout)
    if layout is None:
        layout = b.env.choose_grid(x.shape, x.dtype, x.layout)
        x = b.relayout(x, layout)
    if layout.groups and _is_separate(layout, axes):
        return x, 0
    assert isinstance(x.spec, Sharded)
    blocks = as_blocks(untiled(x.spec), b.device)  # each dim in a grid dim of its own
    if blocks is not None:
        return b.as_spec(x, blocks), 0
    return b.relayout(x, separated_layout(layout, axes)), len(axes)


def _is_separate(layout: GridLayout, axes: tuple[int, ...]) -> bool:
    """Whether each collapsed dim is reduced wholly, in logical order from 0, or not at all.

    The order does not matter if all dims of the array are reduced, and these are several.
    """
    if not set(axes) <= {d for group in layout.groups for d in group}:
        return False
    for k, group in enumerate(layout.groups):
        wide = {d for d in group if layout.shape[d] > 1}
        if set(group) & set(axes) and not set(group) <= set(axes):
            return False
        if set(group) & set(axes) and (
            len(wide) > 1 or layout.linear.results[k] not in map(dim, group)
        ):
            return len(axes) == layout.ndim and len(axes) > 1
    return True


@cached
def separated_layout(layout: GridLayout, axes: tuple[int, ...]) -> GridLayout:
    """Return a layout with a leading grid dim of one core per reduced dim.

    The other dims are on the grid dims of `layout`.
    """
    rank = len(layout.grid)
    kept = [d for d in range(layout.ndim) if d not in axes]
    count = max(len(kept) - rank + 1, 0)
    rows = [constant(0)] * max(rank - len(kept), 0)
    rows += [linearized(layout.shape, kept[:count])] if count else []
    rows += [dim(d) for d in kept[count:]]
    linear = AffineMap(layout.ndim, (*(dim(d) for d in axes), *rows))
    return GridLayout(
        *(layout.shape, layout.dtype, (1,) * len(axes) + layout.grid, layout.tile),
        linear=linear,
        memory_space=layout.memory_space,
        face=layout.face,
    )
