"""Products by groups of rows: each row of the left operand meets the matrix of its group.

One operand stays spread, the other is sent to every device, whichever is smaller. Where the rows
stay spread, a device's groups are those of its block; the product that sums over rows (a
derivative) then sums over the devices.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value, nbytes
from gridlayout.ops.rules.along import run, target_layout
from gridlayout.ops.rules.windows import as_storage, in_rows, local_blocks, without_tail
from gridlayout.sharding.collectives import Axes, index_of


def ragged_dot_general(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """`lax.ragged_dot` and its derivatives, of matrices; None where there is a batch."""
    (along, _), (batch, _) = _dims(op).dot_dimension_numbers
    if batch or left.ndim != 2 or op.params["group_offset"] is not None:
        return None
    ways: list[tuple[int, Callable[..., Any]]] = [(_sent(left), _of_columns)]
    if _dims(op).lhs_ragged_dimensions == along:
        ways += [(_sent(right), _of_left_columns), (2 * nbytes(op.out.shape, op.out.dtype), _sums)]
    else:
        ways.append((_sent(right), _of_rows))
    _, way = min(ways, key=lambda pair: pair[0])
    return way(b, op, left, right, sizes)


def _dims(op: Op) -> Any:
    return op.params["ragged_dot_dimension_numbers"]


def _sent(value: Value) -> int:
    """Bytes of what every device is to have, if it does not."""
    return 0 if value.layout is None else nbytes(value.shape, value.dtype)


def _of_columns(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Each device makes the columns of the result that it has of the right operand."""
    ((_, along), _), grouped = _dims(op).dot_dimension_numbers, _dims(op).rhs_group_dimensions
    whole = tuple(sorted((*along, *grouped)))
    (free,) = set(range(right.ndim)) - set(whole)

    def product(right: jax.Array, left: jax.Array, sizes: jax.Array) -> list[Any]:
        return op.bind(left, jnp.moveaxis(right, -1, free), sizes)

    others = (b.replicated(left), b.replicated(sizes))
    made = tuple(range(op.out.ndim - 1))
    return run(b, op, [(right, whole)], product, *others, out_axes=[made], native=True)


def _of_left_columns(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Each device makes the rows of each group's matrix that it has the left columns of."""
    (ragged,) = _dims(op).lhs_ragged_dimensions

    def product(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[Any]:
        (out,) = op.bind(jnp.moveaxis(left, -1, 1 - ragged), right, sizes)
        return [jnp.moveaxis(out, 1, -1)]

    others = (b.replicated(right), b.replicated(sizes))
    return run(b, op, [(left, (ragged,))], product, *others, out_axes=[(0, 2)], native=True)


def _of_rows(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Each device makes the rows of the result that it has of the left operand."""
    (ragged,) = _dims(op).lhs_ragged_dimensions
    x, axes, block = in_rows(b, left, ragged, left if left.layout else right)
    assert isinstance(x.spec, Sharded)
    cores = x.spec.layout.core_shape[ragged]
    out = b.sharded(GridLayout(op.out.shape, op.out.dtype, (cores, 1), collapse=[]))

    def kernel(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[jax.Array]:
        (made,) = op.bind(local_blocks(left), right, _own_sizes(sizes, axes, block))
        return [as_storage(made, out.placement.per_device)]

    (made,) = b.run(kernel, [x, b.replicated(right), b.replicated(sizes)], [out])
    return b.relayout(made, target_layout(b, out.layout, left, ()))


def _sums(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Each device adds up the rows that it has; then all of them do."""
    ((dim,), (right_dim,)), _ = _dims(op).dot_dimension_numbers
    like = left if left.layout else right
    x, axes, block = in_rows(b, left, dim, like)
    y, right_axes, _ = in_rows(b, right, right_dim, like)
    if axes != right_axes:
        return None
    extent, out = left.shape[dim], Replicated(op.out.shape, op.out.dtype)

    def kernel(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[jax.Array]:
        x = without_tail(local_blocks(left), dim, axes, extent, 0)
        y = without_tail(local_blocks(right), right_dim, axes, extent, 0)
        (made,) = op.bind(x, y, _own_sizes(sizes, axes, block))
        return [lax.psum(made, axes) if axes else made]

    sent = b.collectives().all_reduce(axes, nbytes(out.shape, out.dtype))
    (made,) = b.run(kernel, [x, y, b.replicated(sizes)], [out], sent)
    return b.on_cores(made, like=right)


def _own_sizes(sizes: jax.Array, axes: Axes, block: int) -> jax.Array:
    """How many of each group's rows are in this device's block."""
    ends, start = jnp.cumsum(sizes), index_of(axes) * block
    first, last = (jnp.clip(x, start, start + block) for x in (ends - sizes, ends))
    return (last - first).astype(sizes.dtype)


def _flops(op: Op) -> int:
    """A product and a sum for each element of the left operand and each column."""
    return 2 * prod(op.ins[0].shape) * op.out.shape[-1]


RAGGED: dict[str, Rule] = {"ragged_dot_general": Rule(ragged_dot_general, _flops)}
