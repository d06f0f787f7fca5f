"""Gather and scatter: slices at indices.

There are three ways, and the cheapest is chosen. The layout of the result is the same for all:

* Unsharded: the indexed dims are relaid out to be unsharded, other dims stay sharded.
* In place: the array keeps its layout, and each device reads or writes the slices that it holds.
* Replicated: every device gets the array.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import jax
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide
from gridlayout.ops.decisions.reshapes import broadcast, squeezed, transposed
from gridlayout.ops.decisions.specs import Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import of_replicated, run
from gridlayout.ops.primitives.parts import update_part
from gridlayout.ops.primitives.slices import served
from gridlayout.ops.primitives.slices.in_place import (
    SlicedArray,
    SliceDivision,
    take_slices,
    write_slices,
)
from gridlayout.ops.primitives.slices.logical_indices import (
    at_columns,
    computed_once,
    fill_value,
)
from gridlayout.ops.primitives.slices.slice_dims import SliceDims
from gridlayout.ops.primitives.slices.slicing import (
    DROP,
    known_starts,
    laid_out_target,
    relaid_out_result,
)
from gridlayout.ops.primitives.unsharded import rest_spec, stacked_spec

# -- gather ----------------------------------------------------------------------------------------


def gather(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Rule for `lax.gather`, such as rows of a table at indices.

    Dims of which slices have the full extent stay sharded, and so do batch dims.
    """
    if op.requested is not None:
        return served.gather_requested(b, op, op.requested, value, indices)
    numbers = op.params["dimension_numbers"]
    if value.layout is None and not numbers.operand_batching_dims:
        return _gather_by_indices(b, op, value, indices)
    slices = SliceDims.of_gather(op, value)
    if slices.full_dims != sorted(slices.full_dims):
        return None
    if numbers.operand_batching_dims:
        batched = [partial(_gather_batched, way=way) for way in (served.gather, _gather_unsharded)]
        return cheapest_way(b, op, batched, value, indices)
    ways: list[Decide] = [served.gather, served.gather_divided]
    ways.append(_gather_unsharded if slices.full_dims else of_replicated)
    sent = dtypes.nbytes(indices.shape, indices.dtype)
    sent += 2 * dtypes.nbytes(op.out.shape, op.out.dtype)
    is_whole = isinstance(value.spec, Sharded) and prod(value.spec.placement.slots) == 1
    is_small = is_whole or dtypes.nbytes(value.shape, value.dtype) <= sent
    if indices.layout is not None and is_small:
        if not slices.full_dims and (made := _gather_by_indices(b, op, value, indices)) is not None:
            return made
        ways.append(_gather_replicated)
    sliced = SlicedArray.of(b, b.as_sharded(value), slices.axes)
    if sliced is not None:
        ways += [
            partial(_gather_in_place, along=k)
            for k in sliced.divisible_dims(tuple(op.out.shape[k] for k in slices.lead))
        ]
    return cheapest_way(b, op, ways, value, indices)


def _gather_batched(b: Builder, op: Op, value: Value, indices: Value, way: Decide) -> Any:
    """Rule for a gather with batch dims, by a way; a replicated array is divided along them."""
    if value.layout is None:
        value = _shard_batch(b, value, indices, op.params["dimension_numbers"])
    return None if value.layout is None else way(b, op, value, indices)


def _gather_unsharded(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Rule for a gather with indexed dims unsharded.

    Indices are replicated, or sharded along batch dims as the array.
    """
    numbers, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
    s = SliceDims.of_gather(op, value)
    batch, where = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    changed = lax.GatherDimensionNumbers(
        offset_dims=(*s.in_lead, *_kept(batch, s.lead)),
        collapsed_slice_dims=tuple(map(s.axes.index, numbers.collapsed_slice_dims)),
        start_index_map=s.indexed_axes,
    )
    own = tuple(sizes[a] for a in s.axes)

    def fn(x: Any, i: Any) -> Any:
        taken = (*own, *x.shape[len(own) :])
        bind = op.bound(dimension_numbers=changed, slice_sizes=taken)
        x = computed_once(x, prod(i.shape[:-1]) * prod(taken))
        return bind(x, at_columns(i, s.columns))

    operands, others = _with_indices(b, value, s.axes, indices, batch, where)
    operands = [(value, s.axes), *operands]
    return run(b, op, operands, fn, *others, out_axes=[s.lead], native=not batch)


def _gather_in_place(
    b: Builder, op: Op, value: Value, indices: Value, along: int | None
) -> Value | None:
    """Rule for a gather in place: slices are all-reduced, or reduce-scattered along `along`."""
    s, x = SliceDims.of_gather(op, value), b.as_sharded(value)
    sliced = SlicedArray.of(b, x, s.axes)
    assert sliced is not None
    division = SliceDivision.of(b, sliced, tuple(op.out.shape[k] for k in s.lead), along)
    offset = op.params["dimension_numbers"].offset_dims
    rows = [k for k in range(op.out.ndim) if k not in offset]  # the dims of the indices, in order
    starts, shape = None, indices.shape
    if along is not None and s.lead[along] in rows:
        d = rows.index(s.lead[along])
        starts, division = division.divide_starts(b, indices, d, sliced.mesh_axes)
        if division.start_axes:
            shape = (*shape[:d], division.local_extents[along], *shape[d + 1 :])
    starts = b.replicated(indices) if starts is None else starts
    given = fill_value(op.params["fill_value"], op.out.dtype) if s.mode == DROP else None

    def index_fn(indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        return s.indices(indices.reshape(shape))

    out = take_slices(b, sliced, x, index_fn, [starts], division, op.out, s.lead, given)
    return relaid_out_result(b, op, out, value, s.axes, s.lead)


def _gather_by_indices(b: Builder, op: Op, table: Value, indices: Value) -> Any:
    """Rule for a gather from a replicated array: the result is sharded as the indices."""
    numbers = op.params["dimension_numbers"]
    offset_dims = tuple(range(len(numbers.offset_dims)))
    bind = op.bound(dimension_numbers=numbers._replace(offset_dims=offset_dims))
    placed = indices.spec.placement.slots if isinstance(indices.spec, Sharded) else ()
    reads = prod(op.out.shape) // prod(placed)
    return run(
        *(b, op, [(indices, (indices.ndim - 1,))]),
        lambda i, x: bind(computed_once(x, reads), i),
        b.replicated(table),
        out_axes=[tuple(numbers.offset_dims)],
    )


def _gather_replicated(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Rule for a gather from a replicated array; the result is relaid out to the common layout."""
    if (made := _gather_by_indices(b, op, value, indices)) is None:
        return None
    s, held = SliceDims.of_gather(op, value), made[0].spec
    out = relaid_out_result(b, op, made[0], value, s.axes, s.lead)
    if isinstance(held, Sharded) and out.spec != held:
        b.computing += b.env.machine.work_seconds(nbytes=held.device_bytes)
    return out


def _shard_batch(b: Builder, value: Value, indices: Value, numbers: Any) -> Any:
    """Return a replicated array sharded along batch dims as the indices are."""
    batch, index_batch = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    rest = rest_spec(b, indices, tuple(k for k in range(indices.ndim) if k not in index_batch))
    if rest is None or batch != tuple(sorted(batch)) or index_batch != tuple(sorted(index_batch)):
        return value
    axes = tuple(d for d in range(value.ndim) if d not in batch)
    return b.as_spec(
        value, stacked_spec(rest, axes, tuple(value.shape[d] for d in axes), value.dtype)
    )


# -- scatter ---------------------------------------------------------------------------------------


def scatter(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Rule for a scatter: updates written or combined at indices, as in the gradient of `gather`.

    None for a user's function of the elements, as in `x.at[index].apply(fn)`.
    """
    if op.name == "scatter" and op.params.get("update_jaxpr") is not None:
        return None
    if op.requested is not None and op.name == "scatter-add":
        return served.scatter_requested(b, op, op.requested, value, indices, updates)
    s = SliceDims.of_scatter(op, value, updates)
    if s.full_dims != sorted(s.full_dims):
        return None
    if op.params["dimension_numbers"].operand_batching_dims:
        ways: list[Decide] = [served.scatter, _scatter_unsharded]
        return cheapest_way(b, op, ways, value, indices, updates)
    ways = [_scatter_by_relayout, served.scatter, served.scatter_partial]
    ways += [*([_scatter_unsharded] if s.full_dims else []), _scatter_in_place]
    ways.append(partial(served.scatter_partial, scattered=True))
    return cheapest_way(b, op, ways, value, indices, updates)


# The function that combines an element and its update.
_COMBINE: dict[str, Any] = {
    "scatter": lambda _, new: new,
    **{"scatter-add": lax.add, "scatter-sub": lax.sub, "scatter-mul": lax.mul},
    **{"scatter-min": lax.min, "scatter-max": lax.max},
}


def _scatter_by_relayout(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Rule for a scatter of one slice at known indices: a relayout to its part of the array."""
    s, known = SliceDims.of_scatter(op, value, updates), known_values(indices.spec)
    order = [s.dim_map[d] for d in sorted(s.dim_map)]
    if known is None or prod(indices.shape[:-1]) != 1 or order != sorted(order):
        return None
    starts = [0] * value.ndim
    for d, start in zip(s.indexed, known.reshape(-1)[s.columns], strict=True):
        starts[d] = int(start)
    fitting = known_starts(value.shape, s.sizes, starts)
    x = laid_out_target(b, op, value, s.axes, updates, s.lead, [indices])
    if fitting != starts and s.mode != lax.GatherScatterMode.CLIP:
        return x
    one = broadcast(b, squeezed(b, updates, order), s.sizes, sorted(s.dim_map))
    return update_part(b, x, one, fitting or starts, _COMBINE[op.name])


def _scatter_unsharded(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Rule for a scatter with indexed dims unsharded.

    Indices are replicated, or sharded along batch dims as the array.
    """
    numbers = op.params["dimension_numbers"]
    s = SliceDims.of_scatter(op, value, updates)
    batch, where = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
    changed = lax.ScatterDimensionNumbers(
        update_window_dims=(*s.in_lead, *_kept(batch, s.lead)),
        inserted_window_dims=tuple(map(s.axes.index, numbers.inserted_window_dims)),
        scatter_dims_to_operand_dims=s.indexed_axes,
    )
    bind = op.bound(dimension_numbers=changed)

    def fn(x: Any, u: Any, i: Any) -> Any:
        return bind(x, at_columns(i, s.columns), u)

    more, others = _with_indices(b, value, s.axes, indices, batch, where)
    operands = [(value, s.axes), (updates, s.lead), *more]
    return run(b, op, operands, fn, *others, out_axes=[s.axes], native=not batch)


def _scatter_in_place(
    b: Builder, op: Op, value: Value, indices: Value, updates: Value
) -> Value | None:
    """Rule for a scatter in place: every device gets all slices, and writes those that it holds."""
    s = SliceDims.of_scatter(op, value, updates)

    def write(part: jax.Array, starts: jax.Array, new: jax.Array, numbers: Any) -> jax.Array:
        bind = op.bound(dimension_numbers=numbers, mode=DROP, indices_are_sorted=False)
        out: jax.Array = bind(part, starts, new)[0]
        return out

    x = laid_out_target(b, op, value, s.axes, updates, s.lead, [indices])
    return write_slices(b, x, s.axes, s.indices, [indices], updates, s.lead, write)


def _kept(batch: Shape, lead: Shape) -> Shape:
    """Return the dim of slices for all dims that stay sharded, the last one; none with `batch`.

    Batch dims are in step with the indices, over which the primitive is mapped.
    """
    return () if batch else (len(lead),)


def _with_indices(
    b: Builder, value: Value, axes: Shape, indices: Value, batch: Shape, index_batch: Shape
) -> tuple[list[tuple[Value, Shape]], list[Value]]:
    """Return ([(indices, their unsharded dims)], []) or ([], [replicated indices]).

    The first one is for indices with batch dims: they are sharded as the array along all dims but
    `axes`.
    """
    if not batch:
        return [], [b.replicated(indices)]
    rest = [d for d in range(value.ndim) if d not in axes]
    own = [k for k in range(indices.ndim) if k not in index_batch]
    along = {rest.index(d): k for d, k in zip(batch, index_batch, strict=True)}
    order = [along[k] for k in sorted(along)] + own
    front = transposed(b, b.as_sharded(indices), tuple(order))
    shape = (*(value.shape[d] for d in rest), *(indices.shape[k] for k in own))
    behind = tuple(range(len(rest), len(shape)))
    return [(broadcast(b, front, shape, (*sorted(along), *behind)), behind)], []
