"""Gather and scatter of arrays in blocks: each device serves the indices in its own block.

A gather reads the slices that a device has, with zeros for others, and sums them over the devices
that divide the indexed dims. A scatter writes the updates that fall into the block and drops the
others. Batch dims stay divided. If the updates of a scatter-add, -max or -min are divided, each
device combines its own, and these partial results are combined.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import as_blocks, block_shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Deferred, Local, Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import has_padding
from gridlayout.ops.primitives.slices.divided import (
    Divided,
    cores_of,
    cores_of_slices,
    divided_spec,
    is_update,
    like_rows,
    padded_rows,
)
from gridlayout.ops.primitives.slices.in_place import as_bits, from_bits
from gridlayout.ops.primitives.slices.logical_indices import computed_once, fill_value, in_shape
from gridlayout.ops.primitives.slices.partial_results import PARTIAL
from gridlayout.ops.primitives.slices.slice_dims import SliceDims
from gridlayout.ops.primitives.slices.slicing import (
    DROP,
    laid_out_target,
    relaid_out_result,
    slices_layout,
)
from gridlayout.sharding.collectives import index_of

# Padding of the index array breaks what the user promises of the indices.
ANY = {"indices_are_sorted": False, "unique_indices": False}


def _served(spec: Sharded, s: SliceDims) -> list[int] | None:
    """Return the divided dims that are indexed; None if slices would cross their blocks."""
    found = [d for d in s.axes if spec.placement.axes[d]]
    return found if all(s.sizes[d] == 1 and d in s.indexed for d in found) else None


def _local(
    spec: Sharded, s: SliceDims, dims: Shape, indices: jax.Array, drops: bool
) -> tuple[list[Any], Any, Any]:
    """Return the indices in a device's block, whether they are in it, and in the array's bounds.

    dims: of each column. drops: whether slices out of bounds are dropped; else they are clipped.
    """
    block, placed = block_shape(spec), spec.placement
    mine = inside = jnp.ones(indices.shape[:-1], bool)
    found = []
    for c, d in enumerate(dims):
        at, last = indices[..., c], s.shape[d] - s.sizes[d]
        most = min(last, jnp.iinfo(indices.dtype).max)
        if drops:
            inside &= (at >= 0) & (at <= most)
        at = jnp.clip(at, 0, most)
        at = at.astype(jnp.int32) if most < 2**31 else at
        if placed.axes[d] and d in s.axes:
            at -= index_of(placed.axes[d]) * block[d]
            mine &= (at >= 0) & (at < block[d])
            at = jnp.clip(at, 0, block[d] - 1)
        found.append(at)
    return found, mine, inside


def gather(b: Builder, op: Op, value: Value, indices: Value) -> Value | None:
    """Rule for a gather; None if the array is not in blocks."""
    spec, s = as_blocks(value.spec, b.device), SliceDims.of_gather(op, value)
    served = None if spec is None else _served(spec, s)
    if spec is None or served is None or max(value.shape) >= 2**31 or not op.out.shape:
        return None
    indices = indices if indices.layout is None else b.as_sharded(indices)
    cores, rows = _result_cores(b, op, spec, s, indices)
    out, at = divided_spec(b, op.out.shape, op.out.dtype, cores), like_rows(b, indices, cores, rows)
    over = tuple(axis for d in served for axis in spec.placement.axes[d])
    found = _summed(b, op, value, indices, (spec, at, out), over)
    steps = len(b.steps)
    common = relaid_out_result(b, op, found, value, s.axes, s.lead)
    # In the layout that other ways give, unless that takes another collective.
    return found if any(step.collectives for step in b.steps[steps:]) else common


def gather_requested(
    b: Builder, op: Op, requested: Requested, value: Value, indices: Value
) -> Value:
    """Rule for a gather whose operands and result are divided as the plan requests."""
    spec, at = requested.ins
    assert spec is not None
    assert at is not None
    return _summed(b, op, value, indices, (spec, at, requested.made), requested.summed)


def _summed(
    b: Builder,
    op: Op,
    value: Value,
    indices: Value,
    specs: tuple[Sharded, Sharded, Sharded],
    over: Axes,
) -> Value:
    """Return the slices of blocks, summed over the devices that divide the indexed dims.

    specs: of the array, the indices and the result. over: the mesh axes of the indexed dims, none
    if these are unsharded.
    """
    spec, at, out = specs
    x = b.as_spec(value, spec)
    starts = b.as_spec(indices, at)
    dtype = op.out.dtype
    sent, many = b.collectives(), 2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1
    for _ in range(many):
        sent.all_reduce(over, dtypes.nbytes(prod(block_shape(out)), dtype) // many)
    kernel = _gather_kernel(op, spec, SliceDims.of_gather(op, value), at, out, over)
    return b.run(kernel, [x, starts], [out], sent)[0]


def gather_divided(b: Builder, op: Op, value: Value, indices: Value) -> Value | None:
    """Rule for a gather at indices that are divided as the result is to be.

    Indexed dims of the array are unsharded. None if the result is in no blocks, or not divided
    along dims of the indices.
    """
    numbers, s = op.params["dimension_numbers"], SliceDims.of_gather(op, value)
    if numbers.operand_batching_dims or not op.out.shape or value.layout is None:
        return None
    layout = slices_layout(b, op, value, s.axes, s.lead)
    out = as_blocks(Sharded(layout, b.placement(layout)), b.device)
    if out is None:
        return None
    cores = cores_of(out, range(op.out.ndim))
    rows = [k for k in range(op.out.ndim) if k not in numbers.offset_dims]
    kept = {s.dim_map[d]: d for d in s.dim_map if d not in s.axes}
    if not cores.keys() & {*rows} or not cores.keys() <= {*rows, *kept}:
        return None
    array = divided_spec(
        b, value.shape, value.dtype, {kept[k]: cores[k] for k in cores if k in kept}
    )
    at = like_rows(b, indices, cores, rows)
    return _summed(b, op, value, indices, (array, at, out), ())


def _result_cores(
    b: Builder, op: Op, spec: Sharded, s: SliceDims, indices: Value
) -> tuple[dict[int, Divided], list[int]]:
    """Return how a gather's result is divided, and its dims for those of the indices, in order.

    Dims of the array that slices keep stay divided. Those of the indices do, where the mesh axes
    that divide them do not divide the array.
    """
    numbers = op.params["dimension_numbers"]
    rows = [k for k in range(op.out.ndim) if k not in numbers.offset_dims]
    cores = cores_of_slices(spec, s)
    used = {axis for axes in spec.placement.axes for axis in axes}
    if (own := as_blocks(indices.spec, b.device)) is not None:
        for j, each in cores_of(own, range(indices.ndim - 1)).items():
            is_batch = j in numbers.start_indices_batching_dims  # divided as the array's dim
            if not is_batch and not used.intersection(each[1]):
                cores.setdefault(rows[j], each)
    return cores, rows


def _gather_kernel(
    op: Op, spec: Sharded, s: SliceDims, at: Sharded, out: Sharded, over: Axes
) -> Callable[..., list[Any]]:
    """Return the kernel of a gather. at: of the indices. over: the axes of the indexed dims."""
    block, shape, made = block_shape(spec), block_shape(at), block_shape(out)
    numbers, pairs = op.params["dimension_numbers"], zip(block, s.sizes, s.shape, strict=True)
    sizes = tuple(own if size == n else size for own, size, n in pairs)
    fill = fill_value(op.params["fill_value"], op.out.dtype) if s.mode == DROP else None
    fixed = {
        "slice_sizes": sizes,
        "mode": lax.GatherScatterMode.CLIP,
        "fill_value": None,
        **ANY,
    }

    def wide(mask: Any) -> Any:
        return jnp.broadcast_to(lax.expand_dims(mask, numbers.offset_dims), made)

    def kernel(x: jax.Array, i: jax.Array) -> list[jax.Array]:
        dims = numbers.start_index_map
        columns, mine, inside = _local(spec, s, dims, i.reshape(shape), fill is not None)
        x = computed_once(x.reshape(block), prod(made))
        (found,) = op.bind(x, jnp.stack(columns, -1), **fixed)
        if over:
            bits = [lax.psum(jnp.where(wide(mine), x, 0), over) for x in as_bits(found)]
            found = from_bits(bits, op.out.dtype)
        if fill is not None:
            found = jnp.where(wide(inside), found, fill)
        return [found.reshape(out.local_shape)]

    return kernel


def scatter(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Value | None:
    """Rule for a scatter; None if the array is not in blocks, or if it is one element."""
    if not updates.shape:
        return None
    s = SliceDims.of_scatter(op, value, updates)
    target = laid_out_target(b, op, value, s.axes, updates, s.lead, [indices])
    spec = as_blocks(target.spec, b.device)
    if spec is None or _served(spec, s) is None or max(value.shape) >= 2**31:
        return None
    numbers = op.params["dimension_numbers"]
    cores = cores_of_slices(spec, s)
    rows = [k for k in range(updates.ndim) if k not in numbers.update_window_dims]
    padded = padded_rows(b, indices, updates, cores, rows) if s.indexed else None
    new_spec = divided_spec(b, updates.shape, updates.dtype, cores)
    at, new_spec = padded or (like_rows(b, indices, cores, rows), new_spec)
    x = b.as_spec(target, spec)
    starts = b.as_spec(indices, at)
    new = b.as_spec(updates, new_spec)
    block, shapes = block_shape(spec), (block_shape(at), block_shape(new_spec))
    local, is_one = spec.local_shape, _is_number(updates)

    def kernel(x: jax.Array, i: jax.Array, new: jax.Array) -> list[jax.Array]:
        new = in_shape(new, shapes[1], is_one)
        own = True if padded is None else is_update(at)
        found = _with_own_updates(op, spec, s, x.reshape(block), i.reshape(shapes[0]), new, own)
        return [found.reshape(local)]

    (out,) = b.run(kernel, [x, starts, new], [Sharded(spec.layout.with_oob(None), spec.placement)])
    assert isinstance(target.spec, Sharded)
    return b.as_spec(out, target.spec.with_oob(None))


def _with_own_updates(
    op: Op,
    spec: Sharded,
    s: SliceDims,
    block: jax.Array,
    indices: jax.Array,
    updates: jax.Array,
    mask: Any = True,
) -> jax.Array:
    """Return a device's block of an array with the updates that fall into it.

    mask: of the indices, false where they are padding.
    """
    dims = op.params["dimension_numbers"].scatter_dims_to_operand_dims
    drops = s.mode != lax.GatherScatterMode.CLIP
    columns, mine, inside = _local(spec, s, dims, indices, drops)
    if columns:
        columns[0] = jnp.where(mine & inside & mask, columns[0], block.shape[dims[0]])
        indices = jnp.stack(columns, -1)
    found: jax.Array = op.bind(block, indices, updates, mode=DROP, **ANY)[0]
    return found


def scatter_partial(
    b: Builder, op: Op, value: Value, indices: Value, updates: Value, scattered: bool = False
) -> Value | None:
    """Rule for a scatter of divided updates: devices combine their own, then these partial results.

    scattered: whether each device gets a part of the sums, along the first indexed dim, else all.
    """
    own, s = as_blocks(updates.spec, b.device), SliceDims.of_scatter(op, value, updates)
    numbers = op.params["dimension_numbers"]
    how = PARTIAL.get(op.name)
    rows = [k for k in range(updates.ndim) if k not in numbers.update_window_dims]
    if own is None and (there := as_blocks(indices.spec, b.device)) is not None:
        cores = {rows[k]: one for k, one in cores_of(there, range(len(rows))).items()}
        own = divided_spec(b, updates.shape, updates.dtype, cores)
    if own is None or how is None or (scattered and how.reduce is not None):
        return None
    if numbers.operand_batching_dims or not how.takes(op.out.dtype):
        return None
    lead = cores_of(own, rows)
    over = tuple(axis for _, axes, _ in lead.values() for axis in axes)
    if not over or any(own.placement.axes[k] for k in s.lead if k not in rows):
        return None
    divided_dims = cores_of(own, range(updates.ndim))
    kept = {d: k for d, k in s.dim_map.items() if d not in s.axes}
    window = {d: divided_dims[k] for d, k in kept.items() if k in divided_dims}
    made = out = divided_spec(b, value.shape, op.out.dtype, window)
    count = b.device.count(over)
    if scattered:
        d = next((d for d in s.axes if value.shape[d] >= count), None)
        if d is None:
            return None
        out = divided_spec(b, value.shape, op.out.dtype, {**window, d: (count, over, None)})
    at = like_rows(b, indices, lead, rows)
    requested = Requested((None, at, own), made, out, over, scattered)
    found = scatter_requested(b, op, requested, value, indices, updates)
    if value.layout is None:
        return found
    return b.as_sharded(found, value.layout)


def scatter_requested(
    b: Builder, op: Op, requested: Requested, value: Value, *others: Value
) -> Value:
    """Rule for a scatter whose operands and result are divided as requested.

    A device combines the updates that it has and that fall into its block. If these are partial
    results, they are combined first and then with the array.
    """
    s = SliceDims.of_scatter(op, value, others[1])
    specs = [spec for spec in requested.ins[1:] if spec is not None]
    indices, updates = map(b.as_spec, others, specs)
    shapes = [block_shape(spec) for spec in specs]
    made, out, dtype = requested.made, requested.out, op.out.dtype
    block, local, is_one = block_shape(made), made.local_shape, _is_number(others[1])

    drops = bool(requested.summed and s.indexed) and has_padding(
        specs[0].layout, specs[0].placement
    )

    def added(x: jax.Array, at: jax.Array, new: jax.Array) -> jax.Array:
        at, new = at.reshape(shapes[0]), in_shape(new, shapes[1], is_one)
        if not (drops or cores_of(made, s.axes)):
            return op.bind(x, at, new, **(ANY if requested.summed else {}))[0]
        own = is_update(specs[0]) if drops else True
        return _with_own_updates(op, made, s, x, at, new, own)

    if not requested.summed:
        operand = b.as_spec(value, made)

        def write(x: jax.Array, at: jax.Array, new: jax.Array) -> list[jax.Array]:
            return [added(x.reshape(block), at, new).reshape(local)]

        return b.run(write, [operand, indices, updates], [made])[0]
    how = PARTIAL[op.name]
    neutral = how.neutral(dtype)
    if not s.indexed:
        updates = b.with_padding(updates, dtypes.oob_value(neutral, dtype))  # it changes nothing
    (part,) = b.run(
        lambda at, new: [added(jnp.full(block, neutral, dtype), at, new)],
        [indices, updates],
        [Local(block, dtype)],
    )
    total = how.reduced(b, part, requested, dtype)
    if how.reduce is None and _is_zero(value):
        return total
    operand = b.as_spec(value, out)
    return b.run(lambda x, y: [how.combine(x, y)], [operand, total], [out])[0]


def _is_number(value: Value) -> bool:
    """Whether all elements of a value are one number, which is not written out yet."""
    return isinstance(value.spec, Deferred) and not value.spec.dims


def _is_zero(value: Value) -> bool:
    """Whether a value is known to be all zeros before anything runs."""
    spec = value.spec.source if isinstance(value.spec, Deferred) else value.spec
    known = known_values(spec) if prod(spec.shape) == 1 else None
    return known is not None and not known.any()
