"""Single elements: gathers and scatters whose indices name every dim, wherever the array lies.

No dim could stay spread as a whole. The array stays where it is; its layout's map says which
device has an element, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.layout import Layout
from gridlayout.ops import values as v
from gridlayout.ops.along import ALONG, Shape, bound, rest_layout, unstack
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.masking import valid_mask
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.values import Context
from gridlayout.ops.wires import Wires, index_of
from gridlayout.sharding.device_grid import Placement


def elements(ctx: Context, eqn: Any, value: Any, indices: Any, place: Mapping[int, int]) -> Any:
    """A gather of elements, or of slices of all dims: who has one sends it to all devices.

    place: where dims of the operand are in the result.
    """
    aval, sizes = eqn.outvars[0].aval, eqn.params["slice_sizes"]
    if 2 * aval.size > prod(value.shape):
        return _of_whole(ctx, eqn, value, indices)
    dims, named = eqn.params["dimension_numbers"].start_index_map, v.plain(ctx, indices)
    mode = eqn.params["mode"]
    index, inside = _index(value.shape, sizes, place, aval.ndim, dims, named, mode)
    x = v.on_cores(ctx, value)
    out = _fetched(ctx, x, index)
    if mode == lax.GatherScatterMode.FILL_OR_DROP:
        out = jnp.where(inside, out, _fill(eqn.params["fill_value"], aval.dtype))
    return RULE, v.on_cores(ctx, out, like=x)


def put_elements(
    ctx: Context, eqn: Any, value: Any, indices: Any, updates: Any, place: Mapping[int, int]
) -> Any:
    """A scatter of elements: every device gets them all, and takes those for places of its own.

    place: where dims of the operand are in the updates.
    """
    dims = eqn.params["dimension_numbers"].scatter_dims_to_operand_dims
    sizes = [updates.shape[place[d]] if d in place else 1 for d in range(value.ndim)]
    named, mode = v.plain(ctx, indices), eqn.params["mode"]
    index, inside = _index(value.shape, sizes, place, updates.ndim, dims, named, mode)
    like = next((y for y in (updates, indices) if v.layout_of(y) is not None), None)
    x = v.on_cores(ctx, value, like=like)
    every = tuple(range(x.storage.ndim))
    bind = bound(
        eqn,
        dimension_numbers=lax.ScatterDimensionNumbers((), every, every),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
    )

    def write(part: jax.Array, local: Sequence[jax.Array], new: jax.Array) -> jax.Array:
        out: jax.Array = bind(part, jnp.stack(local, -1), new)[0]
        return out

    return RULE, _written(ctx, x, index, inside, v.plain(ctx, updates), write)


def add_to_few(ctx: Context, eqn: Any, value: Any, indices: Any, updates: Any) -> Any:
    """Elements added to an array that is smaller than they are: each device adds up its own first.

    None where they are not more, or do not lie on cores.
    """
    last = updates.ndim  # the columns of the indices; no slice has dims of its own
    few = 2 * prod(value.shape) < prod(updates.shape) and eqn.primitive.name == "scatter-add"
    if not few or last != indices.ndim - 1 or v.layout_of(indices) is None:
        return None
    if (rest := rest_layout(ctx, indices, (last,))) is None:
        return None
    named = jnp.moveaxis(unstack(ctx, indices, (last,), rest), 0, -1)
    new = v.on_cores(ctx, updates, rest.with_dtype(updates.dtype)).storage
    dims = eqn.params["dimension_numbers"].scatter_dims_to_operand_dims
    sizes, mode = (1,) * value.ndim, eqn.params["mode"]
    index, inside = _index(value.shape, sizes, {}, named.ndim - 1, dims, named, mode)
    inside = inside & valid_mask(rest, ctx.device)
    placed, wires = ctx.device.placement(rest.core_shape), Wires(ctx)

    def kernel(new: jax.Array, inside: jax.Array, *index: jax.Array) -> jax.Array:
        places = [jnp.where(inside, k, n) for k, n in zip(index, value.shape, strict=True)]
        own = jnp.zeros(value.shape, new.dtype).at[tuple(places)].add(new, mode="drop")
        return wires.sum(own, tuple(axis for axes in placed.axes for axis in axes))

    total = jax.shard_map(
        kernel,
        mesh=ctx.device.fine,
        in_specs=(placed.spec,) * (2 + len(index)),
        out_specs=PartitionSpec(),
        check_vma=False,
    )(new, inside, *(jnp.broadcast_to(k, inside.shape) for k in index))
    x = v.on_cores(ctx, value, like=indices)
    added = v.on_cores(ctx, total, x.layout)
    return RULE, GridArray(x.storage + added.storage, x.layout, ctx.device)


def dynamic_slice(ctx: Context, eqn: Any, value: Any, *starts: Any) -> Any:
    """A slice of all dims as elements; else as in `along.py`."""
    sizes = eqn.params["slice_sizes"]
    if v.layout_of(value) is not None and sizes == value.shape:
        return VIEW, value
    shortened = all(size != n for size, n in zip(sizes, value.shape, strict=True))
    if v.layout_of(value) is None or not shortened:
        return ALONG["dynamic_slice"](ctx, eqn, value, *starts)
    if 2 * prod(sizes) > prod(value.shape):
        return _of_whole(ctx, eqn, value, *starts)
    x = v.on_cores(ctx, value)
    out = _fetched(ctx, x, _window(ctx, value.shape, sizes, starts))
    return RULE, v.on_cores(ctx, out, like=x)


def dynamic_update_slice(ctx: Context, eqn: Any, value: Any, update: Any, *starts: Any) -> Any:
    """A slice of all dims as elements; else as in `along.py`."""
    if update.shape == value.shape:
        return RULE, v.on_cores(ctx, update, v.layout_of(value))
    if any(size == n for size, n in zip(update.shape, value.shape, strict=True)):
        return ALONG["dynamic_update_slice"](ctx, eqn, value, update, *starts)
    x = v.on_cores(ctx, value, like=update if v.layout_of(update) is not None else None)
    index = _window(ctx, value.shape, update.shape, starts)

    def write(part: jax.Array, local: Sequence[jax.Array], new: jax.Array) -> jax.Array:
        return part.at[tuple(local)].set(new, mode="drop")

    return RULE, _written(ctx, x, index, jnp.asarray(True), v.plain(ctx, update), write)


def _of_whole(ctx: Context, eqn: Any, value: Any, *named: Any) -> Any:
    """Every device gets the operand and keeps its part: fewer bytes than to send so much of it."""
    (out,) = bound(eqn)(v.plain(ctx, value), *(v.plain(ctx, x) for x in named))
    return RULE, v.on_cores(ctx, out, like=value)


def _window(ctx: Context, shape: Shape, sizes: Shape, starts: Sequence[Any]) -> list[jax.Array]:
    """The logical indices of a slice's elements, which broadcast to it; it starts where it fits."""
    named = jnp.stack([v.plain(ctx, start) for start in starts])
    every, mode = range(len(shape)), lax.GatherScatterMode.CLIP
    place = {d: d for d in every}
    return _index(shape, sizes, place, len(shape), every, named, mode)[0]


def _index(
    shape: Shape,
    sizes: Sequence[int],
    place: Mapping[int, int],
    rank: int,
    dims: Sequence[int],
    named: jax.Array,
    mode: Any,
) -> tuple[list[jax.Array], jax.Array]:
    """The logical indices of slices, whose starts columns of `named` say, moved to where they fit.

    sizes: of the slices. place: where dims of slices are in the result, of `rank` dims; the others
    are those of `named`. dims: what its columns name. Also whether the slices count: by `mode`,
    those that did fit, or all. All broadcast to the result.
    """
    named = named.astype(jnp.int64 if named.dtype.itemsize > 4 else jnp.int32)
    behind = sorted(place.values())
    inside = jnp.ones((1,) * rank, bool)
    index = [jnp.zeros((1,) * rank, jnp.int32)] * len(shape)
    for column, d in enumerate(dims):
        start = lax.expand_dims(named[..., column], behind)
        last = shape[d] - sizes[d]
        if mode != lax.GatherScatterMode.CLIP:
            inside &= (start >= 0) & (start <= last)
        index[d] = jnp.clip(start, 0, last).astype(jnp.int32 if last < 2**31 else jnp.int64)
    for d, k in place.items():
        along = tuple(sizes[d] if axis == k else 1 for axis in range(rank))
        index[d] = index[d] + lax.broadcasted_iota(index[d].dtype, along, k)
    return index, inside


def _fetched(ctx: Context, x: GridArray, index: Sequence[jax.Array]) -> jax.Array:
    """The elements at logical indices, on every device: a sum in which one device has each."""
    placed, wires = ctx.device.placement(x.layout.core_shape), Wires(ctx)

    def kernel(part: jax.Array, *index: jax.Array) -> jax.Array:
        local, here = _held(x.layout, placed, index)
        found = part.at[tuple(local)].get(mode="clip")
        bits = _as_bits(jnp.where(here, found, jnp.zeros((), found.dtype)))
        axes = tuple(axis for axes in placed.axes for axis in axes)
        return _from_bits([wires.sum(b, axes) for b in bits], found.dtype)

    return jax.shard_map(
        kernel,
        mesh=ctx.device.fine,
        in_specs=(placed.spec, *(PartitionSpec() for _ in index)),
        out_specs=PartitionSpec(),
        check_vma=False,
    )(x.storage, *index)


def _written(
    ctx: Context,
    x: GridArray,
    index: Sequence[jax.Array],
    inside: jax.Array,
    new: jax.Array,
    write: Callable[..., jax.Array],
) -> GridArray:
    """`write(part, places, new)` on each device, where places of others are out of bounds."""
    placed = ctx.device.placement(x.layout.core_shape)

    def kernel(part: jax.Array, inside: jax.Array, new: jax.Array, *index: Any) -> jax.Array:
        local, here = _held(x.layout, placed, index)
        mine = [jnp.where(here & inside, k, n) for k, n in zip(local, part.shape, strict=True)]
        return write(part, mine, new)

    out = jax.shard_map(
        kernel,
        mesh=ctx.device.fine,
        in_specs=(placed.spec, *(PartitionSpec() for _ in range(2 + len(index)))),
        out_specs=placed.spec,
        check_vma=False,
    )(x.storage, inside, new, *index)
    return GridArray(out, x.layout, ctx.device)


def _held(
    layout: Layout, placed: Placement, index: Sequence[jax.Array]
) -> tuple[list[jax.Array], Any]:
    """Where logical indices are in this device's part, and whether they are."""
    local: list[Any] = [*jnp.broadcast_arrays(*layout.index_map(*index))]
    here: Any = True
    for k, (axes, cores) in enumerate(zip(placed.axes, placed.per_device, strict=True)):
        here &= local[k] // cores == index_of(axes)
        local[k] = local[k] % cores
    return local, here


def _as_bits(x: jax.Array) -> list[jax.Array]:
    """Integers that say which number it is: their sum with zeros keeps it, be it -0.0 or NaN."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return [*_as_bits(x.real), *_as_bits(x.imag)]
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return [x.astype(jnp.uint8) if x.dtype.itemsize == 1 else x]
    return [lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")]


def _from_bits(bits: Sequence[jax.Array], dtype: Any) -> jax.Array:
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = np.zeros((), dtype).real.dtype
        return lax.complex(*(_from_bits([b], part) for b in bits))
    (found,) = bits
    if jnp.issubdtype(dtype, jnp.floating):
        return lax.bitcast_convert_type(found, dtype)
    return found.astype(dtype)


def _fill(given: Any, dtype: Any) -> Any:
    """What a gather gives for an index that is out of bounds (JAX, `GatherScatterMode`)."""
    if given is not None:
        return jnp.asarray(given, dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(jnp.nan, dtype)
    if dtype == np.bool_:
        return jnp.asarray(True)
    info = jnp.iinfo(dtype)
    return jnp.asarray(info.min if jnp.issubdtype(dtype, jnp.signedinteger) else info.max, dtype)
