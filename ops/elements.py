"""Single elements: gathers and scatters whose indices name every dim, wherever the array lies.

No dim could stay spread as a whole. The array stays where it is; its layout's map says which
device has an element, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.layout import Layout
from gridlayout.ops import values as v
from gridlayout.ops.along import ALONG, Shape, bound
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.report import RULE
from gridlayout.ops.values import Context
from gridlayout.ops.wires import Wires, index_of
from gridlayout.sharding.device_grid import Placement


def elements(ctx: Context, eqn: Any, value: Any, indices: Any) -> Any:
    """A gather of elements: who has one sends it to all devices."""
    aval, dims = eqn.outvars[0].aval, eqn.params["dimension_numbers"].start_index_map
    x, named = v.on_cores(ctx, value), v.plain(ctx, indices)
    index, inside = _index(x, dims, named)
    out = _fetched(ctx, x, index)
    if eqn.params["mode"] == lax.GatherScatterMode.FILL_OR_DROP:
        out = jnp.where(inside, out, _fill(eqn.params["fill_value"], aval.dtype))
    return RULE, v.on_cores(ctx, out.reshape(aval.shape), like=x)


def put_elements(ctx: Context, eqn: Any, value: Any, indices: Any, updates: Any) -> Any:
    """A scatter of elements: every device gets them all, and takes those for places of its own."""
    dims = eqn.params["dimension_numbers"].scatter_dims_to_operand_dims
    like = next((y for y in (updates, indices) if v.layout_of(y) is not None), None)
    x, named = v.on_cores(ctx, value, like=like), v.plain(ctx, indices)
    index, inside = _index(x, dims, named)
    if eqn.params["mode"] != lax.GatherScatterMode.FILL_OR_DROP:
        inside = jnp.ones_like(inside)
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

    new = v.plain(ctx, updates).reshape(inside.shape)
    return RULE, _written(ctx, x, index, inside, new, write)


def dynamic_slice(ctx: Context, eqn: Any, value: Any, *starts: Any) -> Any:
    """As in `along.py`; a part of a vector, or one element, as elements at indices."""
    sizes = eqn.params["slice_sizes"]
    if v.layout_of(value) is None or not _is_alone(value.shape, sizes):
        return ALONG["dynamic_slice"](ctx, eqn, value, *starts)
    x = v.on_cores(ctx, value)
    out = _fetched(ctx, x, _window(ctx, value.shape, sizes, starts))
    return RULE, v.on_cores(ctx, out.reshape(sizes), like=x)


def dynamic_update_slice(ctx: Context, eqn: Any, value: Any, update: Any, *starts: Any) -> Any:
    """As in `along.py`; a part of a vector, or one element, as elements at indices."""
    if not _is_alone(value.shape, update.shape):
        return ALONG["dynamic_update_slice"](ctx, eqn, value, update, *starts)
    x = v.on_cores(ctx, value, like=update if v.layout_of(update) is not None else None)
    index = _window(ctx, value.shape, update.shape, starts)

    def write(part: jax.Array, local: Sequence[jax.Array], new: jax.Array) -> jax.Array:
        return part.at[tuple(local)].set(new, mode="drop")

    new = v.plain(ctx, update).reshape(index[0].shape)
    return RULE, _written(ctx, x, index, jnp.ones(new.shape, bool), new, write)


def _is_alone(shape: Shape, sizes: Shape) -> bool:
    """Whether a window shortens all dims, and is one element or of a vector."""
    shortened = all(size != n for size, n in zip(sizes, shape, strict=True))
    return shortened and (len(shape) == 1 or set(sizes) == {1})


def _window(ctx: Context, shape: Shape, sizes: Shape, starts: Sequence[Any]) -> list[jax.Array]:
    """The indices of a window's elements along each dim; it starts where it fits."""
    return [
        jnp.clip(v.plain(ctx, start), 0, n - size) + jnp.arange(size)
        for start, n, size in zip(starts, shape, sizes, strict=True)
    ]


def _index(x: Any, dims: Sequence[int], named: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """The logical index that columns of indices name, in bounds, and whether it was."""
    inside = jnp.ones(named.shape[:-1], bool)
    index = [jnp.zeros(inside.shape, jnp.int32)] * x.ndim
    for column, d in enumerate(dims):
        k, last = named[..., column], x.shape[d] - 1
        inside &= (k >= 0) & (k <= last)
        index[d] = jnp.clip(k, 0, last).astype(jnp.int32 if last < 2**31 else jnp.int64)
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
    physical = jnp.broadcast_arrays(*layout.index_map(*index), index[0])[:-1]
    local, here = list(physical), True
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
