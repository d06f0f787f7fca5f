"""Dynamic slice and dynamic update slice, and helpers that gather and scatter use too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, blocks_like
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import INDEXED, THROUGH, UPDATED, Factors, Numbering
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.specs import Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import mapped, of_replicated, result_layouts
from gridlayout.ops.primitives.empty import unchanged
from gridlayout.ops.primitives.parts import update_part
from gridlayout.ops.primitives.slices.in_place import (
    SlicedArray,
    SliceDivision,
    take_slices,
    write_slices,
)
from gridlayout.ops.primitives.slices.logical_indices import window_indices
from gridlayout.sharding.collectives import index_of
from gridlayout.sharding.meshes.placement import Placement

# Updates out of bounds are dropped.
DROP = lax.GatherScatterMode.FILL_OR_DROP


def dynamic_slice(b: Builder, op: Op, value: Value, *starts: Value) -> Any:
    """Rule for `lax.dynamic_slice`."""
    axes = _shortened_dims(value.shape, op.params["slice_sizes"])
    if not axes and value.layout is not None:
        return value
    known = known_starts(value.shape, op.out.shape, [known_values(x.spec) for x in starts])
    if known is not None and value.layout is not None:
        limits = tuple(n + size for n, size in zip(known, op.out.shape, strict=True))
        whole = {"start_indices": tuple(known), "limit_indices": limits, "strides": None}
        return b.call(Op.made(lax.slice_p, whole, value), value)
    ways: list[Decide] = [mapped if len(axes) < value.ndim else of_replicated]
    sliced = SlicedArray.of(b, b.as_sharded(value), axes)
    if sliced is not None and value.layout is not None:
        lead = tuple(op.out.shape[d] for d in axes)
        ways += [partial(_slice_in_place, along=k) for k in sliced.divisible_dims(lead)]
    return cheapest_way(b, op, ways, value, *starts)


def _slice_in_place(b: Builder, op: Op, value: Value, *starts: Value, along: int | None) -> Any:
    """Rule for a slice in place: it is all-reduced, or reduce-scattered along its dim `along`."""
    axes, x = _shortened_dims(value.shape, op.params["slice_sizes"]), b.as_sharded(value)
    sliced = SlicedArray.of(b, x, axes)
    assert sliced is not None
    shape, sizes = (tuple(n[d] for d in axes) for n in (value.shape, op.out.shape))
    index_fn = partial(window_indices, shape, sizes)
    operands = [b.replicated(starts[d]) for d in axes]
    out = take_slices(
        b, sliced, x, index_fn, operands, SliceDivision.of(b, sliced, sizes, along), op.out, axes
    )
    return relaid_out_result(b, op, out, value, axes, axes)


def dynamic_update_slice(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Rule for `lax.dynamic_update_slice`."""
    axes = _shortened_dims(value.shape, update.shape)
    if not axes:
        return b.as_sharded(update, value.own_layout, like=value if value.layout else None)
    ways: list[Decide] = [_update_blocks, _update_in_place, _update_by_relayout]
    if len(axes) < value.ndim:
        ways.insert(0, mapped)
    return cheapest_way(b, op, ways, value, update, *starts)


def _update_blocks(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Rule for an update of one position per divided dim: the device that holds it updates it.

    None for other updates.
    """
    axes, spec = _shortened_dims(value.shape, update.shape), as_blocks(value.spec, b.device)
    if spec is None or max(value.shape) > np.iinfo(np.int32).max:
        return None
    divided = [a for a in axes if spec.placement.slots[a] > 1]
    if any(update.shape[a] > 1 for a in divided):
        return None
    block, placed = block_shape(spec), spec.placement

    def along_others(each: Sequence[Any], none: Any) -> Any:
        return tuple(none if d in divided else n for d, n in enumerate(each))

    ones = (1,) * value.ndim
    grid, slots = along_others(placed.grid, 1), along_others(placed.slots, 1)
    place = Placement(grid, along_others(placed.axes, ()), slots, ones)
    own = blocks_like(spec, update.shape, update.dtype, place)
    x = b.as_spec(value, spec)
    new = b.as_spec(update, own)
    shape, small = value.shape, block_shape(own)

    def kernel(part: jax.Array, new: jax.Array, *at: jax.Array) -> list[jax.Array]:
        found, new = lax.optimization_barrier(part.reshape(block)), new.reshape(small)
        mine, starts = jnp.ones((), bool), [jnp.zeros((), np.int32)] * found.ndim
        for a, start in zip(axes, at, strict=True):
            last = min(shape[a] - update.shape[a], np.iinfo(start.dtype).max)
            starts[a] = jnp.clip(start, 0, last).astype(np.int32)
        for a in divided:
            starts[a] -= index_of(placed.axes[a]) * block[a]
            mine &= (starts[a] >= 0) & (starts[a] < block[a])
        old = lax.dynamic_slice(found, starts, small)
        found = lax.dynamic_update_slice(found, jnp.where(mine, new, old), starts)
        # XLA would update a copy for each shape in which the array or the result is read.
        return [lax.optimization_barrier(found).reshape(part.shape)]

    first = [b.replicated(starts[a]) for a in axes]
    (out,) = b.run(kernel, [x, new, *first], [spec])
    assert isinstance(value.spec, Sharded)
    return b.as_spec(out, value.spec.with_oob(None))


def _update_by_relayout(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Rule for an update at known start indices: it is relaid out to its part of the array."""
    known = known_starts(value.shape, update.shape, [known_values(x.spec) for x in starts])
    if known is None:
        return None
    axes = _shortened_dims(value.shape, update.shape)
    x = laid_out_target(b, op, value, axes, update, axes, starts)
    return update_part(b, x, update, known, lambda _, new: new)


def known_starts(shape: Shape, sizes: Shape, starts: Sequence[Any]) -> list[int] | None:
    """Return known start indices, clipped so that the slice is in bounds; None if unknown."""
    if any(start is None for start in starts):
        return None
    rows = zip(shape, sizes, starts, strict=True)
    return [min(max(int(start), 0), n - size) for n, size, start in rows]


def _update_in_place(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Rule for an update in place: every device gets it, and writes the part that it holds."""
    axes = _shortened_dims(value.shape, update.shape)
    shape, sizes = (tuple(n[d] for d in axes) for n in (value.shape, update.shape))
    index_fn, first = partial(window_indices, shape, sizes), [starts[d] for d in axes]

    def scatter(part: jax.Array, at: jax.Array, new: jax.Array, numbers: Any) -> jax.Array:
        return lax.scatter(part, at, new, numbers, mode=DROP)

    x = laid_out_target(b, op, value, axes, update, axes, first)
    return write_slices(b, x, axes, index_fn, first, update, axes, scatter)


# -- shared with gather and scatter ---------------------------------------------------------------


def laid_out_target(
    b: Builder, op: Op, value: Value, axes: Shape, new: Value, lead: Shape, starts: Sequence[Value]
) -> Value:
    """Return the array to write to, laid out as it is, or else like the slices or the indices."""
    target, like = None, next((y for y in (new, *starts) if y.layout is not None), None)
    if value.layout is None and any(x.shape == value.shape for x in b.env.templates):
        return b.as_sharded(value, b.choose(value.shape, value.dtype))
    if value.layout is None and new.layout is not None and len(axes) < value.ndim:
        target = result_layouts(b, new, lead, op.out, axes)[0]
    return b.as_sharded(value, target, like=like)


def relaid_out_result(
    b: Builder, op: Op, out: Value, value: Value, axes: Shape, lead: Shape
) -> Value:
    """Return the slices that were read in the result's layout, which is the same for all ways."""
    return b.as_sharded(out, slices_layout(b, op, value, axes, lead)) if op.out.shape else out


def slices_layout(b: Builder, op: Op, value: Value, axes: Shape, lead: Shape) -> Layout:
    """Return the layout of slices that are read, by default."""
    if len(axes) == value.ndim:
        return b.choose(op.out.shape, op.out.dtype, value)
    return result_layouts(b, value, axes, op.out, lead)[0]


def _shortened_dims(shape: Shape, sizes: Sequence[int]) -> Shape:
    return tuple(d for d, n in enumerate(shape) if sizes[d] != n)


def _sliced(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    made = Numbering(ins, outs)
    for d, (n, size) in enumerate(zip(ins[0], outs[0], strict=True)):
        made.add(THROUGH if n == size else INDEXED, (0, d), (len(ins), d))
    return made.factors()


def _of_part(params: Any, shapes: Sequence[Shape], parts: Sequence[Shape]) -> dict[str, Any]:
    rows = zip(params["slice_sizes"], shapes[0], parts[0], strict=True)
    return {"slice_sizes": tuple(own if size == n else size for size, n, own in rows)}


def _updated(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of an update in place; dims in which the update is smaller are updated."""
    made = Numbering(ins, outs)
    for d, (n, size) in enumerate(zip(ins[0], ins[1], strict=True)):
        update = [(1, d)] if n == size else []
        made.add(THROUGH if update else UPDATED, (0, d), *update, (len(ins), d))
    return made.factors()


SLICING: dict[str, Record] = {
    "dynamic_slice": Record(
        (dynamic_slice,), factors=_sliced, of_part=_of_part, is_fused=True, takes_fused=True
    ),
    "dynamic_update_slice": Record(
        (dynamic_update_slice,), factors=_updated, of_empty=unchanged, writes_part=True
    ),
}
