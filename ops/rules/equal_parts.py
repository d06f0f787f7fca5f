"""An array cut into equal parts along a sharded dim, or joined of them, in one move.

Seen in the shape (..., n, extent, ...), the array goes to where its parts belong, `n` unsharded: a
part is then a slice of what a device has. On the other way the parts are stacked, and go together.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value, nbytes
from gridlayout.ops.decisions.views import relabelled, reshape_map
from gridlayout.ops.rules.along import stacked, target_layout, without
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.placement import Placement


def split(b: Builder, op: Op, value: Value) -> list[Value] | None:
    """Parts one after another."""
    axis, count, out = op.params["axis"], len(op.outs), op.outs[0]
    if count < 2 or len(set(op.params["sizes"])) > 1 or not isinstance(value.spec, Sharded):
        return None
    wanted = _belongs(b, out, value, axis)
    seen = _in_parts(value.spec.layout, axis, count)
    if wanted is None or seen is None:
        return None
    x = b.relayout(value.seen(Sharded(seen, value.spec.placement)), _stack(wanted, axis, count))
    part, at = b.sharded(wanted), 1 + wanted.core_rank
    if not _is_cheap(b, x) or not _is_beside(x, part):
        return None

    def kernel(array: jax.Array) -> list[jax.Array]:
        parts = jax.lax.split(array, (1,) * count, axis=at)
        return [jax.lax.squeeze(each, (0, at)) for each in parts]

    return b.fused(kernel, [x], [part] * count)


def concatenate(b: Builder, op: Op, *values: Value) -> Value | None:
    """Arrays one after another."""
    axis, count = op.params["dimension"], len(values)
    first = next((x for x in values if isinstance(x.spec, Sharded)), None)
    if first is None or count < 2 or len({x.shape for x in values}) > 1:
        return None
    assert isinstance(first.spec, Sharded)
    own, wanted = first.spec.layout.as_grid, _belongs(b, op.out, first, axis)
    there = None if wanted is None else _in_parts(wanted, axis, count)
    if own is None or own.is_scatter or wanted is None or there is None:
        return None
    spec, at = b.sharded(_stack(own.with_dtype(op.out.dtype), axis, count)), own.core_rank

    def kernel(*arrays: jax.Array) -> list[jax.Array]:
        return [jnp.stack(arrays, at)[None]]

    operands = [b.on_cores(x, own.with_oob(None)) for x in values]
    (x,) = b.fused(kernel, operands, [spec], is_kept=True)
    if not _is_beside(x, b.sharded(own)):
        return None
    x, out = b.relayout(x, there), b.sharded(wanted)
    return x.seen(out) if _is_cheap(b, x) and _placement(x) == out.placement else None


def _belongs(b: Builder, aval: Aval, value: Value, axis: int) -> GridLayout | None:
    """Where a part or the whole belongs: as the operand, if its layout can be said of the shape."""
    found = b.choose(aval.shape, aval.dtype, value)
    layout = target_layout(b, found, value, (axis,))
    if layout is found and value.layout is not None and without(value.layout, (axis,)) is not None:
        return None
    own = layout.as_grid
    return None if own is None or own.is_scatter else own.with_dtype(aval.dtype, None)


def _in_parts(layout: Layout, axis: int, count: int) -> GridLayout | None:
    """The layout of the same data with dim `axis` as two: which part, and where in it."""
    shape = layout.shape
    inner = (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :])
    old = reshape_map(inner, shape)
    return None if old is None else relabelled(layout, inner, old)


def _stack(part: GridLayout, axis: int, count: int) -> GridLayout:
    """The layout of several parts side by side: which one, unsharded, before dim `axis`."""
    return stacked(part, (axis,), (count,))


def _placement(x: Value) -> Placement:
    assert isinstance(x.spec, Sharded)
    return x.spec.placement


def _is_beside(together: Value, part: Sharded) -> bool:
    """Whether the parts of a stack are, on every device, where a part alone is."""
    stack, own = _placement(together), part.placement
    return stack.axes == ((), *own.axes) and stack.slots == (1, *own.slots)


def _is_cheap(b: Builder, x: Value) -> bool:
    """Whether something moves; where bytes decide, no more than all of it once."""
    moved = total_bytes(each for step in b.steps for each in step.collectives)
    return moved > 0 and (not b.env.machine.bytes_decide or moved <= nbytes(x.shape, x.dtype))
