"""Views: the same data under another logical shape, where a layout says so; else it moves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from gridlayout.affine.map import AffineMap, constant, dim, embedding
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.place_operands import in_place
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, Sharded, indexed
from gridlayout.ops.decisions.value import Value

if TYPE_CHECKING:
    from gridlayout.ops.decisions.builder import Builder

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def relabelled(
    layout: Layout, shape: Shape, old: AffineMap, in_part: bool = False
) -> GridLayout | None:
    """The layout of the same data seen with another logical shape, or None if there is none.

    old: new logical index -> old logical index. in_part: which need not reach all elements, so that
    cores are said to hold as much as they do.
    """
    own = as_grid(layout)
    if own is None or 0 in layout.shape or 0 in shape:
        return None
    held = {"shard_shape": own.shard_shape} if in_part else {}
    new = own.replace(shape=shape, linear=own.linear.compose(old).simplify(shape), **held)
    if new.physical_shape != layout.physical_shape or new.is_scatter != layout.is_scatter:
        return None
    return new


def relabelled_whole(value: Value, shape: Shape, old: AffineMap | None) -> Value | None:
    """A value with a target layout under another shape, if both its layouts can be said of it."""
    spec = value.spec
    if not isinstance(spec, Deferred) or not spec.is_whole or old is None:
        return None
    assert isinstance(spec.source, Sharded)
    assert spec.target_layout is not None
    pair = (spec.source.layout, spec.target_layout)
    source, target = (relabelled(each, shape, old) for each in pair)
    if source is None or target is None:
        return None
    inner = Sharded(source, spec.source.placement)
    return value.seen(Deferred(inner, tuple(range(len(shape))), shape, target))


def of_indices(b: Builder, value: Value, shape: Shape, old: AffineMap) -> Value:
    """What is computed of logical indices under another shape; `old`: new index -> old index.

    Where that is out of bounds, what is read may be anything.
    """

    def make(b: Builder, place: Place, value: Value) -> Value:
        return in_place(b, value, place.seen(old))

    return b.deferred(make, [value], shape, value.dtype)


def squeezed(b: Builder, value: Value, keep: Sequence[int]) -> Value:
    """The value without the dims of extent 1 that are not in `keep`."""
    shape = tuple(value.shape[d] for d in keep)
    if len(keep) == value.ndim:
        return value
    spec = value.spec
    if isinstance(spec, Sharded):
        return reshaped(b, value, shape, embedding(value.ndim, keep))
    if isinstance(spec, Deferred):
        if (same := relabelled_whole(value, shape, embedding(value.ndim, keep))) is not None:
            return same
        at = {d: k for k, d in enumerate(keep)}
        inner = [i for i, d in enumerate(spec.dims) if d in at]
        if isinstance(spec.source, Indexed):
            return _squeezed_source(b, value, inner, [at[spec.dims[i]] for i in inner], shape)
        source = squeezed(b, value.seen(spec.source), inner)
        target = spec.target_layout
        if target is not None:
            target = relabelled(target, source.shape, embedding(target.ndim, inner))
        assert isinstance(source.spec, (Sharded, Replicated))
        dims = tuple(at[spec.dims[i]] for i in inner)
        return source.seen(Deferred(source.spec, dims, shape, target))
    made = Replicated(shape, value.dtype)
    return b.fused(lambda x: [jnp.reshape(x, shape)], [value], [made])[0]


def _squeezed_source(
    b: Builder, value: Value, inner: Sequence[int], dims: Sequence[int], shape: Shape
) -> Value:
    """What is computed of logical indices: only `inner` of its source's dims, as `dims`."""
    assert isinstance(value.spec, Deferred)
    old = value.spec.source
    source = value.seen(indexed(old.shape, value.dtype))
    if len(inner) < old.ndim:
        extents = tuple(old.shape[i] for i in inner)
        source = of_indices(b, source, extents, embedding(old.ndim, inner))
    if not inner:
        source = b.replicated(source)
        return source.seen(Deferred(source.spec, (), shape)) if shape else source  # type: ignore[arg-type]
    assert isinstance(source.spec, Deferred)
    return source.seen(Deferred(source.spec.source, tuple(dims), shape))


def broadcast(b: Builder, value: Value, shape: Shape, dims: Sequence[int]) -> Value:
    """The value broadcast in `shape`, dim `i` becoming `dims[i]`; extents of 1 grow."""
    keep = [i for i, d in enumerate(dims) if value.shape[i] == shape[d]]
    value = squeezed(b, value, keep)
    # One element is a number: what was known of the padding around it says nothing of it.
    value = value if value.ndim else b.replicated(value)
    dims = tuple(int(dims[i]) for i in keep)
    is_view = all(shape[d] == 1 for d in range(len(shape)) if d not in dims)
    old = AffineMap(len(shape), tuple(dim(d) for d in dims))
    spec = value.spec
    if isinstance(spec, Deferred):
        if is_view and (same := relabelled_whole(value, shape, old)) is not None:
            return same
        moved = tuple(dims[d] for d in spec.dims)
        return value.seen(Deferred(spec.source, moved, shape, spec.target_layout))
    if isinstance(spec, Sharded) and is_view:
        return reshaped(b, value, shape, old)
    if dims == tuple(range(len(shape))):
        return value
    assert not isinstance(value.spec, Deferred)
    return value.seen(Deferred(value.spec, dims, shape))


def reshaped(
    b: Builder, x: Value, shape: Shape, old: AffineMap | None, change: Any = None
) -> Value:
    """A sharded value's data under another logical shape; moves it only when no layout says so.

    old: new logical index -> old logical index. change: the same on a logical array, by default a
    reshape.
    """
    spec = x.spec
    assert isinstance(spec, Sharded)
    layout = None if old is None else relabelled(spec.layout, shape, old)
    if layout is not None:
        return x.seen(Sharded(layout, spec.placement))
    # No layout says so: through the logical array, laid out by the policy.
    made = Replicated(shape, x.dtype)
    change = change or (lambda logical: logical.reshape(shape))
    (out,) = b.fused(lambda logical: [change(logical)], [b.replicated(x)], [made])
    return b.on_cores(out, like=x) if shape else out


def transposed(b: Builder, value: Value, order: Shape) -> Value:
    """The value with its dims in another order."""
    shape = tuple(value.shape[d] for d in order)
    old = AffineMap(len(order), tuple(dim(order.index(d)) for d in range(len(order))))
    spec = value.spec
    if isinstance(spec, Deferred):
        if (same := relabelled_whole(value, shape, old)) is not None:
            return same
        dims = tuple(order.index(d) for d in spec.dims)
        return value.seen(Deferred(spec.source, dims, shape, spec.target_layout))
    if isinstance(spec, Replicated):
        out = Replicated(shape, value.dtype)
        return b.fused(lambda x: [x.transpose(order)], [value], [out], is_lazy=True)[0]
    return reshaped(b, value, shape, old, lambda logical: logical.transpose(order))


@lru_cache(maxsize=4096)
def reshape_map(new: Shape, old: Shape) -> AffineMap | None:
    """New logical index -> old logical index of the same element, row-major; None when empty."""
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
