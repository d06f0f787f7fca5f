"""`materialized`: computes a deferred broadcast in the layout that an operation requests."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap, constant, dim, embedding
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.route import find_route
from gridlayout.ops.decisions.mover import Mover
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import has_padding
from gridlayout.ops.moves.relayout import find_move, lay_out
from gridlayout.sharding.meshes.placement import Placement


def materialized(b: Mover, value: Value, layout: Layout, placement: Placement) -> Value:
    """Return a deferred broadcast in `layout`; broadcasting it on a device sends nothing.

    The source is relaid out to a slice of `layout`, with grid and tile 1 in each collapsed dim that
    it does not vary along. Then each device broadcasts its part along those dims.
    """
    spec = value.spec
    assert isinstance(spec, Deferred)
    if isinstance(spec.source, Indexed) and 0 not in spec.shape and not layout.is_scatter:
        place = Place.part(layout, placement)
        if spec.dims == tuple(range(spec.ndim)):
            return b.compute_in(value, place)
        if grouped(layout) is None:
            kept = AffineMap(spec.ndim, tuple(map(dim, spec.dims)))
            return b.compute_in(value, place.reindexed(kept))
    own = grouped(layout)
    if own is None or 0 in spec.shape:
        return b.laid_out(b.replicated(value), layout, placement)
    touched = [k for k, group in enumerate(own.groups) if set(group) & set(spec.dims)]
    dims = tuple(sorted({d for k in touched for d in own.groups[k]} | set(spec.dims)))
    thin = thinned(own, dims, tuple(touched))
    source = _thin(b, value, dims, thin, thin_placement(placement, thin))
    rest = [d for k in range(len(own.grid)) if k not in touched for d in own.axis_dims(k)]
    oob = None if has_padding(layout, placement, rest) else source.fact
    out = Sharded(layout.with_dtype(value.dtype, oob), placement)
    rank = range(len(out.local_shape))
    wide = lambda part: [lax.broadcast_in_dim(part, out.local_shape, rank)]  # noqa: E731
    return b.fused(wide, [source], [out])[0]


@cached
def thinned(layout: GridLayout, dims: Shape, kept: Shape) -> GridLayout:
    """Return `layout` for the dims `dims` only, with grid and tile 1 outside the dims `kept`.

    kept: collapsed dims.
    """
    rows = layout.linear.compose(embedding(layout.ndim, dims)).results
    rank = len(layout.grid)

    def sizes(block: Shape | None) -> Shape | None:
        if block is None:
            return None
        return tuple(n if k + rank - len(block) in kept else 1 for k, n in enumerate(block))

    return layout.replace(
        shape=tuple(layout.shape[d] for d in dims),
        grid=sizes(layout.grid),
        tile=sizes(layout.tile),
        face=sizes(layout.face),
        linear=AffineMap(
            len(dims), tuple(row if k in kept else constant(0) for k, row in enumerate(rows))
        ),
        row_alignment=layout.row_alignment if rank - 1 in kept and not layout.tile else None,
        shard_shape=tuple(n if k in kept else None for k, n in enumerate(layout.stated_shard)),
        oob=None,
        tile_format=None,
    )


def thin_placement(placement: Placement, thin: GridLayout) -> Placement:
    """Return the placement with one core along the grid dims that a thin layout does not use."""
    varies = [bool(used) for used in thin.linear.used_dims()]
    return Placement(
        thin.grid,
        tuple(axes if yes else () for axes, yes in zip(placement.axes, varies, strict=True)),
        tuple(n if yes else 1 for n, yes in zip(placement.slots, varies, strict=True)),
        tuple(n if yes else 1 for n, yes in zip(placement.per_device, varies, strict=True)),
    )


def _thin(b: Mover, value: Value, dims: Shape, thin: GridLayout, after: Placement) -> Value:
    """Return the source of a deferred broadcast in the thin layout."""
    spec = value.spec
    assert isinstance(spec, Deferred)
    inner = spec.source
    if isinstance(inner, Indexed):
        place = Place.part(thin.with_dtype(value.dtype), after)
        kept = AffineMap(len(dims), tuple(dim(dims.index(d)) for d in spec.dims))
        return b.compute_in(value, place.reindexed(kept))
    source = value.with_spec(inner)
    if isinstance(inner, Sharded) and spec.dims == dims and find_route(inner.layout, thin):
        move = find_move(
            inner.layout, thin.with_oob(inner.layout.oob), b.device, inner.placement, after
        )
        return b.run_move(source, move, Sharded(thin.with_oob(inner.layout.oob), after))
    logical = b.replicated(source)
    shape = tuple(spec.shape[d] for d in dims)
    at = tuple(dims.index(d) for d in spec.dims)
    if logical.shape != shape:
        wide = Replicated(shape, value.dtype)
        dtype = value.dtype
        (logical,) = b.fused(
            lambda x: [lax.broadcast_in_dim(jnp.asarray(x, dtype), shape, at)],
            [logical],
            [wide],
        )
    thin = thin.with_dtype(value.dtype, 0)
    if not shape:  # one number: each device's part has one element
        spec_out = Sharded(thin.with_oob(None), after)
        dtype, local = value.dtype, spec_out.local_shape
        oob = logical.fact
        made = Sharded(thin.with_dtype(dtype, oob), after)
        return b.run(lambda x: [jnp.broadcast_to(jnp.asarray(x, dtype), local)], [logical], [made])[
            0
        ]
    return b.run_move(logical, lay_out(thin, b.device, after), Sharded(thin, after))
