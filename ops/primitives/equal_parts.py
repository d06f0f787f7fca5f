"""Split into equal parts, and concatenation of equal parts, along a sharded dim, in one relayout.

A split views the array in the shape (..., n, extent, ...) for n parts, and relays it out with `n`
unsharded: then each part is a local slice. A concatenation stacks the parts along an unsharded
`n`, and relays the stack out.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, blocks_like
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.reshapes import relabelled, reshape_map
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import can_resize, target_layout
from gridlayout.ops.primitives.unsharded import layout_without, stacked
from gridlayout.ops.primitives.views import bordered
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.meshes.placement import Placement


def split(b: Builder, op: Op, value: Value) -> list[Value] | None:
    """Rule for a split into equal parts; None if it does not apply."""
    axis, count, out = op.params["axis"], len(op.outs), op.outs[0]
    if count < 2 or len(set(op.params["sizes"])) > 1 or not isinstance(value.spec, Sharded):
        return None
    layout = _result_layout(b, out, value, axis)
    viewed = _split_dim(value.spec.layout, axis, count)
    if layout is None or viewed is None:
        return None
    part, at = b.sharded(layout), 1 + layout.core_rank
    shown = value.with_spec(Sharded(viewed, value.spec.placement))
    together = part.placement.with_leading_dims(1)
    x = b.relayout(shown, _stack(layout, axis, count), together)
    if not _is_cheap(b, x) or not _has_same_devices(x, part):
        return None

    def kernel(array: jax.Array) -> list[jax.Array]:
        parts = jax.lax.split(array, (1,) * count, axis=at)
        return [jax.lax.squeeze(each, (0, at)) for each in parts]

    return b.fused(kernel, [x], [part] * count)


def concatenate_whole_blocks(b: Builder, op: Op, *values: Value) -> Value | None:
    """Rule for a concatenation of equal parts whose last block is not full; None without one.

    The parts are extended to full blocks and concatenated; each device's block of the result is a
    few positions off, and receives these from its neighbours.
    """
    axis, count = op.params["dimension"], len(values)
    first = next(x for x in values if x.layout is not None)
    spec = as_blocks(first.spec, b.device)
    if spec is None or count < 2 or len({x.shape for x in values}) > 1:
        return None
    n, long = first.shape[axis], block_shape(spec)[axis] * spec.placement.grid[axis]
    if n == long:
        return None

    def extended(shape: Shape, length: int) -> Shape:
        return (*shape[:axis], length, *shape[axis + 1 :])

    wide = blocks_like(spec, extended(first.shape, long), first.dtype)
    own = [b.as_spec(x, spec) for x in values]
    out = replace(op.out, shape=extended(op.out.shape, count * long))
    ins = tuple(replace(x, shape=wide.shape) for x in op.ins)
    whole = replace(op, ins=ins, outs=(out,))
    found = concatenate(b, whole, *(x.with_spec(wide) for x in own))
    if found is None:
        return None
    shown = Shifted.of(out.shape)
    parts = [shown.cut(axis, k * long, k * long + n) for k in range(count)]
    view = Shifted.joined([part for part in parts if part is not None], axis)
    made = bordered(b, [view], found) if view is not None else None
    return None if made is None else made[0]


def concatenate(b: Builder, op: Op, *values: Value) -> Value | None:
    """Rule for a concatenation of equal parts; None if it does not apply."""
    axis, count = op.params["dimension"], len(values)
    first = next((x for x in values if isinstance(x.spec, Sharded)), None)
    if first is None or count < 2 or len({x.shape for x in values}) > 1:
        return None
    assert isinstance(first.spec, Sharded)
    own, layout = as_grid(first.spec.layout), _result_layout(b, op.out, first, axis)
    split_layout = None if layout is None else _split_dim(layout, axis, count)
    if own is None or own.is_scatter or layout is None or split_layout is None:
        return None
    together, at = first.spec.placement.with_leading_dims(1), own.core_rank
    spec = Sharded(_stack(own.with_dtype(op.out.dtype), axis, count), together)

    def kernel(*arrays: jax.Array) -> list[jax.Array]:
        return [jnp.stack(arrays, at)[None]]

    operands = [b.as_spec(x, first.spec.with_oob(None)) for x in values]
    (x,) = b.fused(kernel, operands, [spec], is_kept=True)
    out = b.sharded(layout)
    x = b.relayout(x, split_layout, out.placement)
    return x.with_spec(out) if _is_cheap(b, x) and _placement(x) == out.placement else None


def _result_layout(b: Builder, aval: Aval, value: Value, axis: int) -> GridLayout | None:
    """Return the layout of a result like that of the operand `value`, or None."""
    found = b.choose(aval.shape, aval.dtype, value)
    now = None if value.layout is None else as_grid(value.layout)
    if now is not None and layout_without(now, (axis,)) and not can_resize(now, aval.shape):
        return None
    own = as_grid(target_layout(b, found, value, (axis,)))
    return None if own is None or own.is_scatter else own.with_dtype(aval.dtype, None)


def _split_dim(layout: Layout, axis: int, count: int) -> GridLayout | None:
    """Return the layout of the same data with dim `axis` split in two: part, position in it."""
    shape = layout.shape
    inner = (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :])
    old = reshape_map(inner, shape)
    return None if old is None else relabelled(layout, inner, old)


def _stack(part: GridLayout, axis: int, count: int) -> GridLayout:
    """Return the layout of `count` stacked parts, with a new unsharded dim `axis`."""
    return stacked(part, (axis,), (count,))


def _placement(x: Value) -> Placement:
    assert isinstance(x.spec, Sharded)
    return x.spec.placement


def _has_same_devices(together: Value, part: Sharded) -> bool:
    """Whether a stack places its parts on the same devices as a single part is placed."""
    stack, own = _placement(together), part.placement
    return stack.axes == ((), *own.axes) and stack.slots == (1, *own.slots)


def _is_cheap(b: Builder, x: Value) -> bool:
    """Whether something is sent; where bytes decide also at most the bytes of the whole array."""
    sent = total_bytes(each for step in b.steps for each in step.collectives)
    whole = dtypes.nbytes(x.shape, x.dtype)
    return sent > 0 and (not b.env.machine.bytes_decide or sent <= whole)
