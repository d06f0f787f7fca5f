"""Reshapes, transposes and broadcasts without data movement, where a layout describes it.

Where no layout describes the result, the data is communicated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from gridlayout.affine.map import AffineMap, constant, dim, embedding
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import (
    Deferred,
    Indexed,
    Replicated,
    Sharded,
    indexed,
    is_of_keys,
)
from gridlayout.ops.decisions.value import Value

if TYPE_CHECKING:
    from gridlayout.ops.decisions.builder import Builder


@cached
def relabelled(
    layout: Layout, shape: Shape, old: AffineMap, in_part: bool = False
) -> GridLayout | None:
    """Return the layout of the same physical data under another logical shape, or None.

    old: new logical index -> old logical index. in_part: whether the new shape may cover only some
    elements. Then the shard shape is stated, so that it stays the same.
    """
    own = as_grid(layout)
    if own is None or 0 in layout.shape or 0 in shape:
        return None
    stated = {"shard_shape": own.shard_shape} if in_part else {}
    new = own.replace(shape=shape, linear=own.linear.compose(old).simplify(shape), **stated)
    if new.physical_shape != layout.physical_shape or new.is_scatter != layout.is_scatter:
        return None
    return new


def relabelled_unbroadcast(value: Value, shape: Shape, old: AffineMap | None) -> Value | None:
    """Return a value with a target layout under another shape.

    None if it has no target layout, or if one of its layouts can't describe that shape.
    """
    spec = value.spec
    if not isinstance(spec, Deferred) or not spec.is_unbroadcast or old is None:
        return None
    assert isinstance(spec.source, Sharded)
    assert spec.target_layout is not None
    pair = (spec.source.layout, spec.target_layout)
    source, target = (relabelled(each, shape, old) for each in pair)
    if source is None or target is None:
        return None
    inner = Sharded(source, spec.source.placement)
    return value.with_spec(Deferred(inner, tuple(range(len(shape))), shape, target))


def of_indices(b: Builder, value: Value, shape: Shape, old: AffineMap) -> Value:
    """Return a value that is computed from logical indices, under another shape.

    old: new index -> old index. Where that is out of bounds, the elements may be anything.
    """

    def make(b: Builder, place: Place, value: Value) -> Value:
        return at_place(b, value, place.reindexed(old))

    return b.deferred(make, [value], shape, value.dtype)


def squeezed(b: Builder, value: Value, keep: Sequence[int]) -> Value:
    """Return the value with only the dims `keep`; the others must have extent 1."""
    shape = tuple(value.shape[d] for d in keep)
    if len(keep) == value.ndim:
        return value
    spec = value.spec
    if isinstance(spec, Sharded):
        return reshaped(b, value, shape, embedding(value.ndim, keep))
    if isinstance(spec, Deferred):
        if (same := relabelled_unbroadcast(value, shape, embedding(value.ndim, keep))) is not None:
            return same
        at = {d: k for k, d in enumerate(keep)}
        inner = [i for i, d in enumerate(spec.dims) if d in at]
        if isinstance(spec.source, Indexed):
            return _squeezed_source(b, value, inner, [at[spec.dims[i]] for i in inner], shape)
        source = squeezed(b, value.with_spec(spec.source), inner)
        target = spec.target_layout
        if target is not None:
            target = relabelled(target, source.shape, embedding(target.ndim, inner))
        assert isinstance(source.spec, (Sharded, Replicated))
        dims = tuple(at[spec.dims[i]] for i in inner)
        return source.with_spec(Deferred(source.spec, dims, shape, target))
    made = Replicated(shape, value.dtype)
    return b.fused(lambda x: [jnp.reshape(x, shape)], [value], [made])[0]


def _squeezed_source(
    b: Builder, value: Value, inner: Sequence[int], dims: Sequence[int], shape: Shape
) -> Value:
    """Return a deferred value that keeps only the dims `inner` of its source, as `dims`."""
    assert isinstance(value.spec, Deferred)
    old = value.spec.source
    source = value.with_spec(indexed(old.shape, value.dtype))
    if len(inner) < old.ndim:
        extents = tuple(old.shape[i] for i in inner)
        source = of_indices(b, source, extents, embedding(old.ndim, inner))
    if not inner:
        source = b.replicated(source)
        return source.with_spec(Deferred(source.spec, (), shape)) if shape else source  # type: ignore[arg-type]
    assert isinstance(source.spec, Deferred)
    return source.with_spec(Deferred(source.spec.source, tuple(dims), shape))


def broadcast(b: Builder, value: Value, shape: Shape, dims: Sequence[int]) -> Value:
    """Return the value broadcast to `shape`, as `jax.lax.broadcast_in_dim` does."""
    keep = [i for i, d in enumerate(dims) if value.shape[i] == shape[d]]
    value = squeezed(b, value, keep)
    # A value of one element is a number: the known padding value does not apply to it.
    value = value if value.ndim else b.replicated(value)
    dims = tuple(int(dims[i]) for i in keep)
    is_view = all(shape[d] == 1 for d in range(len(shape)) if d not in dims)
    old = AffineMap(len(shape), tuple(dim(d) for d in dims))
    spec = value.spec
    if isinstance(spec, Deferred):
        if is_view and (same := relabelled_unbroadcast(value, shape, old)) is not None:
            return same
        new_dims = tuple(dims[d] for d in spec.dims)
        return value.with_spec(Deferred(spec.source, new_dims, shape, spec.target_layout))
    if isinstance(spec, Sharded) and is_view:
        return reshaped(b, value, shape, old)
    if dims == tuple(range(len(shape))):
        return value
    assert not isinstance(value.spec, Deferred)
    return value.with_spec(Deferred(value.spec, dims, shape))


def reshaped(
    b: Builder, x: Value, shape: Shape, old: AffineMap | None, change: Any = None
) -> Value:
    """Return a sharded value under another logical shape, as a view if a layout describes that.

    Otherwise the array is replicated, changed and laid out by the policy. old: new logical index ->
    old logical index. change: the same operation on a logical array, by default a reshape.
    """
    spec = x.spec
    assert isinstance(spec, Sharded)
    layout = None if old is None else relabelled(spec.layout, shape, old)
    if layout is not None:
        return x.with_spec(Sharded(layout, spec.placement))
    made = Replicated(shape, x.dtype)
    change = change or (lambda logical: logical.reshape(shape))
    (out,) = b.fused(lambda logical: [change(logical)], [b.replicated(x)], [made])
    return b.as_sharded(out, like=x) if shape else out


def transposed(b: Builder, value: Value, order: Shape) -> Value:
    """Return the value with its dims in another order."""
    shape = tuple(value.shape[d] for d in order)
    old = AffineMap(len(order), tuple(dim(order.index(d)) for d in range(len(order))))
    spec = value.spec
    if isinstance(spec, Deferred):
        if (same := relabelled_unbroadcast(value, shape, old)) is not None:
            return same
        dims = tuple(order.index(d) for d in spec.dims)
        return value.with_spec(Deferred(spec.source, dims, shape, spec.target_layout))
    if isinstance(spec, Replicated):
        out = Replicated(shape, value.dtype)
        return b.fused(lambda x: [x.transpose(order)], [value], [out], is_lazy=True)[0]
    return reshaped(b, value, shape, old, lambda logical: logical.transpose(order))


@cached
def reshape_map(new: Shape, old: Shape) -> AffineMap | None:
    """Return the map new index -> old index of a row-major reshape; None if it has no elements."""
    if 0 in new:
        return None
    flat, stride = constant(0), 1
    for d in reversed(range(len(new))):
        flat, stride = dim(d) * stride + flat, stride * new[d]
    results, stride = [], 1
    for n in reversed(old):
        results.append(flat // stride % n if n > 1 else constant(0))
        stride *= n
    return AffineMap(len(new), tuple(reversed(results))).simplify(new)


def number_of(value: Value) -> Value | None:
    """Return the number that a value is, or that it broadcasts; None for any other value."""
    spec = value.spec
    if isinstance(spec, Deferred) and spec.source.ndim == 0:
        assert isinstance(spec.source, Replicated)
        return value.with_spec(spec.source)
    return None if value.ndim else value


def at_place(b: Builder, value: Value, place: Place) -> Value:
    """Return an operand relaid out for a consumer that is computed in a place.

    A number, or a broadcast of one, is returned as the number.
    """
    if (number := number_of(value)) is not None:
        return number
    spec = value.spec
    if place.is_itself and place.shape == value.shape and not is_of_keys(spec):
        if place.layout is None:
            return b.replicated(value)
        return b.as_sharded(value, place.layout, placement=place.placement)
    if isinstance(spec, Deferred):
        place = place.reindexed(AffineMap(spec.ndim, tuple(map(dim, spec.dims))))
        if isinstance(spec.source, Indexed):
            return b.compute_in(value, place)
        value = value.with_spec(spec.source)
    return lookup(b, value, place)


def lookup(b: Builder, value: Value, place: Place) -> Value:
    """Return the elements of a replicated array at the indices of a place."""

    def run(x: Any) -> list[Any]:
        found = jnp.asarray(x).at[tuple(place.index())].get(mode="clip")
        return [jnp.broadcast_to(found, place.local_shape)]

    return b.run(run, [value], [place.spec(value.dtype)], is_fused=True)[0]
