"""Ragged products: each row of the left operand is multiplied by the matrix of its group.

The larger operand stays sharded, the other one is replicated. If the rows stay sharded, each
device multiplies the groups of its rows. A product that contracts the rows, as in a derivative,
is then all-reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import THROUGH, Factors, Numbering
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import run, target_layout
from gridlayout.ops.primitives.windows import as_storage, block_matrix, local_blocks, zero_tail
from gridlayout.sharding.collectives import index_of


def ragged_dot_general(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Rule for `lax.ragged_dot` and its derivatives for matrices; None if there are batch dims."""
    (along, _), (batch, _) = _dims(op).dot_dimension_numbers
    if batch or left.ndim != 2 or op.params["group_offset"] is not None:
        return None
    ways: list[tuple[int, Callable[..., Any]]] = [(_replicated_bytes(left), _by_columns)]
    if _dims(op).lhs_ragged_dimensions == along:
        ways += [
            (_replicated_bytes(right), _by_left_columns),
            (2 * dtypes.nbytes(op.out.shape, op.out.dtype), _by_contracted_rows),
        ]
    else:
        ways.append((_replicated_bytes(right), _by_rows))
    _, way = min(ways, key=lambda pair: pair[0])
    return way(b, op, left, right, sizes)


def _dims(op: Op) -> Any:
    return op.params["ragged_dot_dimension_numbers"]


def _replicated_bytes(value: Value) -> int:
    """Return the bytes to send to replicate a value; 0 if it is replicated already."""
    return 0 if value.layout is None else dtypes.nbytes(value.shape, value.dtype)


def _by_columns(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Rule with the right operand's columns sharded: each device has those of the result."""
    ((_, along), _), grouped = _dims(op).dot_dimension_numbers, _dims(op).rhs_group_dimensions
    whole = tuple(sorted((*along, *grouped)))
    (free,) = set(range(right.ndim)) - set(whole)

    def product(right: jax.Array, left: jax.Array, sizes: jax.Array) -> list[Any]:
        return op.bind(left, jnp.moveaxis(right, -1, free), sizes)

    others = (b.replicated(left), b.replicated(sizes))
    made = tuple(range(op.out.ndim - 1))
    return run(b, op, [(right, whole)], product, *others, out_axes=[made], native=True)


def _by_left_columns(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Rule with the left operand's columns sharded, which are rows of the result."""
    (ragged,) = _dims(op).lhs_ragged_dimensions

    def product(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[Any]:
        (out,) = op.bind(jnp.moveaxis(left, -1, 1 - ragged), right, sizes)
        return [jnp.moveaxis(out, 1, -1)]

    others = (b.replicated(right), b.replicated(sizes))
    return run(b, op, [(left, (ragged,))], product, *others, out_axes=[(0, 2)], native=True)


def _by_rows(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Rule with the left operand's rows sharded: each device has those of the result."""
    (ragged,) = _dims(op).lhs_ragged_dimensions
    x, axes, block = block_matrix(b, left, ragged, left if left.layout else right)
    assert isinstance(x.spec, Sharded)
    cores = x.spec.layout.core_shape[ragged]
    out = b.sharded(GridLayout(op.out.shape, op.out.dtype, (cores, 1), collapse=[]))

    def kernel(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[jax.Array]:
        (made,) = op.bind(local_blocks(left), right, _local_sizes(sizes, axes, block))
        return [as_storage(made, out.placement.per_device)]

    (made,) = b.run(kernel, [x, b.replicated(right), b.replicated(sizes)], [out])
    return b.relayout(made, target_layout(b, out.layout, left, ()))


def _by_contracted_rows(b: Builder, op: Op, left: Value, right: Value, sizes: Value) -> Any:
    """Rule with the contracted rows sharded, and an all-reduce of the partial sums."""
    ((dim,), (right_dim,)), _ = _dims(op).dot_dimension_numbers
    like = left if left.layout else right
    x, axes, block = block_matrix(b, left, dim, like)
    y, right_axes, _ = block_matrix(b, right, right_dim, like)
    if axes != right_axes:
        return None
    extent, out = left.shape[dim], Replicated(op.out.shape, op.out.dtype)

    def kernel(left: jax.Array, right: jax.Array, sizes: jax.Array) -> list[jax.Array]:
        x = zero_tail(local_blocks(left), dim, axes, extent)
        y = zero_tail(local_blocks(right), right_dim, axes, extent)
        (made,) = op.bind(x, y, _local_sizes(sizes, axes, block))
        return [lax.psum(made, axes) if axes else made]

    sent = b.collectives().all_reduce(axes, dtypes.nbytes(out.shape, out.dtype))
    (made,) = b.run(kernel, [x, y, b.replicated(sizes)], [out], sent)
    return b.as_sharded(made, like=right)


def _local_sizes(sizes: jax.Array, axes: Axes, block: int) -> jax.Array:
    """Return how many rows of each group are in this device's block of `block` rows."""
    ends, start = jnp.cumsum(sizes), index_of(axes) * block
    first, last = (jnp.clip(x, start, start + block) for x in (ends - sizes, ends))
    return (last - first).astype(sizes.dtype)


def _flops(op: Op) -> int:
    """Return 2 per element of the left operand and column of the result."""
    return 2 * prod(op.ins[0].shape) * op.out.shape[-1]


def _columns(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of a ragged product: the right operand's columns are through."""
    made, numbers = Numbering(ins, outs), params["ragged_dot_dimension_numbers"]
    (_, along), (_, batch) = numbers.dot_dimension_numbers
    gone = *along, *batch, *numbers.rhs_group_dimensions
    free = [d for d in range(len(ins[1])) if d not in gone]
    for k, d in enumerate(free):
        made.add(THROUGH, (1, d), (len(ins), len(outs[0]) - len(free) + k))
    return made.factors()


RAGGED: dict[str, Record] = {"ragged_dot_general": Record((ragged_dot_general,), _flops, _columns)}
