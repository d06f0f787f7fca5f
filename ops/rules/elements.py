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

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, nothing
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value, nbytes
from gridlayout.ops.moves.padding import valid_mask
from gridlayout.ops.rules.along import Shape, in_front, rest_layout, unstack
from gridlayout.sharding.collectives import index_of


def elements(b: Builder, op: Op, value: Value, indices: Value, place: Mapping[int, int]) -> Value:
    """A gather of elements, or of slices of all dims: who has one sends it to all devices.

    place: where dims of the operand are in the result.
    """
    aval, sizes = op.out, op.params["slice_sizes"]
    if 2 * aval.size > prod(value.shape):
        return of_replicated(b, op, value, indices)
    dims, mode = op.params["dimension_numbers"].start_index_map, op.params["mode"]
    drops = mode == lax.GatherScatterMode.FILL_OR_DROP
    given = op.params["fill_value"]

    def named(indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        return _index(value.shape, sizes, place, aval.ndim, dims, indices, mode)

    def outside(out: jax.Array, inside: jax.Array) -> jax.Array:
        return jnp.where(inside, out, _fill(given, aval.dtype)) if drops else out

    out = _fetched(b, op, b.on_cores(value), [indices], named, outside)
    return b.on_cores(out, like=value) if out.ndim else out


def put_elements(
    b: Builder, op: Op, value: Value, indices: Value, updates: Value, place: Mapping[int, int]
) -> Value:
    """A scatter of elements: every device gets them all, and takes those for places of its own.

    place: where dims of the operand are in the updates.
    """
    dims = op.params["dimension_numbers"].scatter_dims_to_operand_dims
    sizes = [updates.shape[place[d]] if d in place else 1 for d in range(value.ndim)]
    like = next((y for y in (updates, indices) if y.layout is not None), None)
    x = b.on_cores(value, like=like)
    assert isinstance(x.spec, Sharded)
    every = tuple(range(len(x.spec.local_shape)))
    bind = op.bound(
        dimension_numbers=lax.ScatterDimensionNumbers((), every, every),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
    )
    rank, mode = updates.ndim, op.params["mode"]

    def named(indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        return _index(value.shape, sizes, place, rank, dims, indices, mode)

    def write(part: jax.Array, local: Sequence[jax.Array], new: jax.Array) -> jax.Array:
        shape = jnp.broadcast_shapes(*(k.shape for k in local), new.shape)
        index = jnp.stack([jnp.broadcast_to(k, shape) for k in local], -1)
        out: jax.Array = bind(part, index, new)[0]
        return out

    return _written(b, x, [indices], named, updates, write)


def add_to_few(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Value | None:
    """Elements added to an array that is smaller than they are: each device adds up its own first.

    None where they are not more, or do not lie on cores.
    """
    last = updates.ndim  # the columns of the indices; no slice has dims of its own
    few = 2 * prod(value.shape) < prod(updates.shape) and op.name == "scatter-add"
    if not few or last != indices.ndim - 1 or indices.layout is None:
        return None
    if (rest := rest_layout(b, indices, (last,))) is None:
        return None
    named = unstack(b, indices, (last,), rest)
    new = b.on_cores(updates, rest.with_dtype(updates.dtype))
    dims = op.params["dimension_numbers"].scatter_dims_to_operand_dims
    sizes, mode, cores = (1,) * value.ndim, op.params["mode"], len(rest.grid)
    placed = b.placement(rest)
    over = tuple(axis for axes in placed.axes for axis in axes)

    def kernel(named: jax.Array, new: jax.Array) -> list[jax.Array]:
        columns = jnp.moveaxis(in_front(named, 1, cores), 0, -1)
        index, inside = _index(value.shape, sizes, {}, columns.ndim - 1, dims, columns, mode)
        inside = inside & valid_mask(rest, placed)
        places = [jnp.where(inside, k, n) for k, n in zip(index, value.shape, strict=True)]
        own = jnp.zeros(value.shape, new.dtype).at[tuple(places)].add(new, mode="drop")
        return [lax.psum(own, over) if over else own]

    made = b.collectives().all_reduce(over, nbytes(value.shape, updates.dtype))
    (total,) = b.run(kernel, [named, new], [Replicated(value.shape, updates.dtype)], made)
    x = b.on_cores(value, like=indices)
    assert isinstance(x.spec, Sharded)
    added = b.on_cores(total, x.spec.layout)
    return b.run(lambda x, y: [x + y], [x, added], [x.spec.with_oob(None)])[0]


def dynamic_slice(b: Builder, op: Op, value: Value, *starts: Value) -> Any:
    """A slice of all dims, as elements; it declines where a dim is taken whole."""
    sizes = op.params["slice_sizes"]
    if value.layout is not None and sizes == value.shape:
        return value
    shortened = all(size != n for size, n in zip(sizes, value.shape, strict=True))
    if value.layout is None or not shortened:
        return None
    if 2 * prod(sizes) > prod(value.shape):
        return of_replicated(b, op, value, *starts)
    window = _window(value.shape, sizes)
    out = _fetched(b, op, b.on_cores(value), starts, window, lambda out, _: out)
    return b.on_cores(out, like=value)


def dynamic_update_slice(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """A slice of all dims, as elements; it declines where a dim is taken whole."""
    if update.shape == value.shape:
        return b.on_cores(update, value.layout)
    if any(size == n for size, n in zip(update.shape, value.shape, strict=True)):
        return None
    x = b.on_cores(value, like=update if update.layout is not None else None)

    def write(part: jax.Array, local: Sequence[jax.Array], new: jax.Array) -> jax.Array:
        return part.at[tuple(local)].set(new, mode="drop")

    return _written(b, x, starts, _window(value.shape, update.shape), update, write)


def of_replicated(b: Builder, op: Op, value: Value, *named: Value) -> Value:
    """Every device gets the operand and keeps its part: fewer bytes than to send so much of it."""
    whole = [b.replicated(x) for x in (value, *named)]
    (out,) = b.run(op.bound(), whole, [Replicated(op.out.shape, op.out.dtype)])
    return b.on_cores(out, like=value) if out.ndim else out


Named = Callable[..., tuple[list[jax.Array], Any]]


def _window(shape: Shape, sizes: Shape) -> Named:
    """The logical indices of a slice's elements, which broadcast to it; it starts where it fits."""
    every, mode = range(len(shape)), lax.GatherScatterMode.CLIP
    place = {d: d for d in every}

    def named(*starts: jax.Array) -> tuple[list[jax.Array], Any]:
        columns = jnp.stack([jnp.asarray(start) for start in starts])
        return _index(shape, sizes, place, len(shape), every, columns, mode)[0], jnp.asarray(True)

    return named


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


def _fetched(
    b: Builder,
    op: Op,
    x: Value,
    indices: Sequence[Value],
    named: Named,
    outside: Callable[..., jax.Array],
) -> Value:
    """The elements at logical indices, on every device: a sum in which one device has each."""
    assert isinstance(x.spec, Sharded)
    spec, out = x.spec, Replicated(op.out.shape, op.out.dtype)
    axes = tuple(axis for axes in spec.placement.axes for axis in axes)

    def kernel(part: jax.Array, *indices: jax.Array) -> list[jax.Array]:
        index, inside = named(*indices)
        local, here = _held(spec, index)
        found = part.at[tuple(local)].get(mode="clip")
        bits = _as_bits(jnp.where(here, found, jnp.zeros((), found.dtype)))
        summed = [lax.psum(each, axes) if axes else each for each in bits]
        made = outside(_from_bits(summed, found.dtype), inside)
        return [jnp.broadcast_to(made, out.shape)]

    made = b.collectives()
    size = prod(out.shape) * out.dtype.itemsize
    parts = 2 if jnp.issubdtype(out.dtype, jnp.complexfloating) else 1
    for _ in range(parts):
        made.all_reduce(axes, size // parts)
    return b.run(kernel, [x, *map(b.replicated, indices)], [out], made)[0]


def _written(
    b: Builder,
    x: Value,
    indices: Sequence[Value],
    named: Named,
    new: Value,
    write: Callable[..., jax.Array],
) -> Value:
    """`write(part, places, new)` on each device, where places of others are out of bounds."""
    assert isinstance(x.spec, Sharded)
    spec = x.spec

    def kernel(part: jax.Array, new: jax.Array, *indices: Any) -> list[jax.Array]:
        index, inside = named(*indices)
        local, here = _held(spec, index)
        mine = [jnp.where(here & inside, k, n) for k, n in zip(local, part.shape, strict=True)]
        return [write(part, mine, jnp.asarray(new))]

    return b.run(kernel, [x, b.replicated(new), *map(b.replicated, indices)], [spec])[0]


def _held(spec: Sharded, index: Sequence[jax.Array]) -> tuple[list[jax.Array], Any]:
    """Where logical indices are in this device's part, and whether they are."""
    placed = spec.placement
    local: list[Any] = [*jnp.broadcast_arrays(*spec.layout.index_map(*index))]
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


ELEMENTS: dict[str, Rule] = {
    "dynamic_slice": Rule(dynamic_slice, nothing),
    "dynamic_update_slice": Rule(dynamic_update_slice, nothing),
}
