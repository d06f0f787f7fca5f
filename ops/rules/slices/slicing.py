"""Slices that start where numbers say, and what all ways to take and to write slices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.ops.decisions.blocks import as_blocks, block_shape, block_spec
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import Decide
from gridlayout.ops.decisions.flops import Rule, nothing
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import Shape, of_replicated, result_layouts, run
from gridlayout.ops.rules.parts import replaced
from gridlayout.ops.rules.slices.in_place import Named, Pieces, Split, taken, written
from gridlayout.ops.rules.slices.places import window
from gridlayout.sharding.collectives import index_of
from gridlayout.sharding.placement import Placement

# Places out of bounds are written by nobody.
DROP = lax.GatherScatterMode.FILL_OR_DROP


def dynamic_slice(b: Builder, op: Op, value: Value, *starts: Value) -> Any:
    """A slice that starts where numbers say."""
    axes = _shortened(value.shape, op.params["slice_sizes"])
    if not axes and value.layout is not None:
        return value
    known = known_starts(value.shape, op.out.shape, [known_values(x.spec) for x in starts])
    if known is not None and value.layout is not None:
        limits = tuple(n + size for n, size in zip(known, op.out.shape, strict=True))
        whole = {"start_indices": tuple(known), "limit_indices": limits, "strides": None}
        return b.call(Op.made(lax.slice_p, whole, value), value)
    ways: list[Decide] = [_sliced_along if len(axes) < value.ndim else of_replicated]
    held = Split.of(b, b.on_cores(value), axes)
    if held is not None and value.layout is not None:
        lead = tuple(op.out.shape[d] for d in axes)
        ways += [partial(_sliced_in_place, along=k) for k in held.ways(lead)]
    return cheapest_way(b, op, ways, value, *starts)


def _sliced_along(b: Builder, op: Op, value: Value, *starts: Value) -> Any:
    """Dims that are shortened are whole on each device."""
    sizes = op.params["slice_sizes"]
    axes = _shortened(value.shape, sizes)
    fn = op.bound(slice_sizes=tuple(sizes[a] for a in axes))

    def on_blocks(block: jax.Array, *at: jax.Array) -> list[jax.Array]:
        own = tuple(sizes[d] if d in axes else n for d, n in enumerate(block.shape))
        return op.bind(block, *_starts(axes, block.ndim, at), slice_sizes=own)

    others = (b.replicated(starts[a]) for a in axes)
    return run(b, op, [(value, axes)], fn, *others, on_blocks=on_blocks)


def _sliced_in_place(b: Builder, op: Op, value: Value, *starts: Value, along: int | None) -> Any:
    """Who has a part of it sends it to all devices, or to those that have its piece of a dim."""
    axes, x = _shortened(value.shape, op.params["slice_sizes"]), b.on_cores(value)
    held = Split.of(b, x, axes)
    assert held is not None
    shape, sizes = (tuple(n[d] for d in axes) for n in (value.shape, op.out.shape))
    named = partial(window, shape, sizes)
    entered = [b.replicated(starts[d]) for d in axes]
    out = taken(b, held, x, named, entered, Pieces.of(b, held, sizes, along), op.out, axes)
    return brought(b, op, out, value, axes, axes)


def dynamic_update_slice(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """An array with a part of it replaced."""
    axes = _shortened(value.shape, update.shape)
    if not axes:
        return b.on_cores(update, value.layout)
    ways: list[Decide] = [_updated_on_blocks, _updated_in_place, _updated_there]
    if len(axes) < value.ndim:
        ways.insert(0, _updated_along)
    return cheapest_way(b, op, ways, value, update, *starts)


def _updated_along(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Dims that are replaced in part are whole on each device."""
    axes = _shortened(value.shape, update.shape)
    others = (b.replicated(starts[a]) for a in axes)

    def on_blocks(block: jax.Array, new: jax.Array, *at: jax.Array) -> list[jax.Array]:
        return op.bind(block, new, *_starts(axes, block.ndim, at))

    operands = [(value, axes), (update, axes)]
    return run(b, op, operands, op.bound(), *others, on_blocks=on_blocks)


def _starts(axes: Shape, rank: int, starts: Sequence[jax.Array]) -> list[jax.Array]:
    """Where a slice of a block starts: at 0 along dims of which all is taken."""
    found = [jnp.zeros_like(starts[0])] * rank
    for a, start in zip(axes, starts, strict=True):
        found[a] = start
    return found


def _updated_on_blocks(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Where dims that devices divide get one position, whoever has it updates its block."""
    axes, spec = _shortened(value.shape, update.shape), as_blocks(value.spec, b.device)
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
    own = block_spec(update.shape, update.dtype, place)
    x = b.on_cores(value, spec.layout, placement=placed)
    new = b.on_cores(update, own.layout, placement=own.placement)
    shape, small = value.shape, block_shape(own)

    def kernel(part: jax.Array, new: jax.Array, *at: jax.Array) -> list[jax.Array]:
        found, new = part.reshape(block), new.reshape(small)
        mine, starts = jnp.ones((), bool), [jnp.zeros((), np.int32)] * found.ndim
        for a, start in zip(axes, at, strict=True):
            last = min(shape[a] - update.shape[a], np.iinfo(start.dtype).max)
            starts[a] = jnp.clip(start, 0, last).astype(np.int32)
        for a in divided:
            starts[a] -= index_of(placed.axes[a]) * block[a]
            mine &= (starts[a] >= 0) & (starts[a] < block[a])
        old = lax.dynamic_slice(found, starts, small)
        found = lax.dynamic_update_slice(found, jnp.where(mine, new, old), starts)
        return [found.reshape(part.shape)]

    first = [b.replicated(starts[a]) for a in axes]
    (out,) = b.run(kernel, [x, new, *first], [spec])
    assert isinstance(value.spec, Sharded)
    return b.relayout(out, value.spec.layout.with_oob(None), value.spec.placement)


def _updated_there(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Where starts are known the update goes to where its part of the array is."""
    known = known_starts(value.shape, update.shape, [known_values(x.spec) for x in starts])
    if known is None:
        return None
    axes = _shortened(value.shape, update.shape)
    x = written_to(b, op, value, axes, update, axes, starts)
    return replaced(b, x, update, known, lambda _, new: new)


def known_starts(shape: Shape, sizes: Shape, starts: Sequence[Any]) -> list[int] | None:
    """Where a slice starts that is moved to where it fits, if that is known."""
    if any(start is None for start in starts):
        return None
    rows = zip(shape, sizes, starts, strict=True)
    return [min(max(int(start), 0), n - size) for n, size, start in rows]


def _updated_in_place(b: Builder, op: Op, value: Value, update: Value, *starts: Value) -> Any:
    """Every device gets the update, and takes what lies with it."""
    axes = _shortened(value.shape, update.shape)
    shape, sizes = (tuple(n[d] for d in axes) for n in (value.shape, update.shape))
    named, first = partial(window, shape, sizes), [starts[d] for d in axes]

    def scatter(part: jax.Array, at: jax.Array, new: jax.Array, numbers: Any) -> jax.Array:
        return lax.scatter(part, at, new, numbers, mode=DROP)

    return put_slices(b, op, value, axes, update, axes, named, first, scatter)


# -- what the ways share ---------------------------------------------------------------------------


def put_slices(
    b: Builder,
    op: Op,
    value: Value,
    axes: Shape,
    new: Value,
    lead: Shape,
    named: Named,
    starts: Sequence[Value],
    scatter: Callable[..., jax.Array],
) -> Value | None:
    """Slices written to an array where it lies, or is to lie, by all who have a place of them.

    axes: the dims that are written in part. lead: the dims of `new` that say which slice it is. The
    others are as `written` takes them.
    """
    x = written_to(b, op, value, axes, new, lead, starts)
    if (held := Split.of(b, x, axes)) is None:
        return None
    entered = [b.replicated(start) for start in starts]
    return written(b, held, x, named, entered, new, lead, scatter)


def written_to(
    b: Builder, op: Op, value: Value, axes: Shape, new: Value, lead: Shape, starts: Sequence[Value]
) -> Value:
    """An array that is written to, where it is; else as what is written lies, or as indices do."""
    target, like = None, next((y for y in (new, *starts) if y.layout is not None), None)
    if value.layout is None and new.layout is not None and len(axes) < value.ndim:
        target = result_layouts(b, new, lead, op.out, axes)[0]
    return b.on_cores(value, target, like=like)


def brought(b: Builder, op: Op, out: Value, value: Value, axes: Shape, lead: Shape) -> Value:
    """What was taken where it belongs, however it was taken."""
    aval = op.out
    if not aval.shape:
        return out
    if len(axes) == value.ndim:
        return b.on_cores(out, b.choose(aval.shape, aval.dtype, value))
    return b.on_cores(out, result_layouts(b, value, axes, aval, lead)[0])


def _shortened(shape: Shape, sizes: Sequence[int]) -> Shape:
    return tuple(d for d, n in enumerate(shape) if sizes[d] != n)


SLICING: dict[str, Rule] = {
    "dynamic_slice": Rule(dynamic_slice, nothing),
    "dynamic_update_slice": Rule(dynamic_update_slice, nothing),
}
