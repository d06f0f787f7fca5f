"""A product in one step: each device multiplies its blocks and sums are reduced.

The request states the mesh axes along each dim: along batch and free dims, which the result keeps,
and along contracted dims, where devices have partial sums. Partial sums are all-reduced, or
reduce-scattered so that each device keeps its part of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import grouped
from gridlayout.dtypes import sum_dtype
from gridlayout.ops.decisions.blocks import block_shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import of_blocks
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Local
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import Phases, Send, run_alone
from gridlayout.ops.moves.workspace import Chain, Workspace
from gridlayout.ops.products.rounds import Multiply, Rounds, in_rounds
from gridlayout.sharding.collectives import REDUCE_SCATTER


def divided(b: Builder, op: Op, requested: Requested, lhs: Value, rhs: Value) -> Value:
    """Return the product of operands that are divided as `requested` states."""
    contracted = op.params["dimension_numbers"][0]
    dtype, made = op.out.dtype, requested.made
    wide = sum_dtype(dtype) if requested.summed else dtype
    specs = [spec for spec in requested.ins if spec is not None]
    shapes, block = list(map(block_shape, specs)), block_shape(made)
    b.note = requested.note
    own = block  # before the product is transposed
    if op.permutation is not None:
        own = tuple(block[op.permutation.index(d)] for d in range(len(block)))
    b.device_flops = of_blocks(op, shapes[0], own, b.device.machine)
    multiply = _multiply(op, lhs.ndim, wide)
    if requested.rounds > 1:
        found = in_rounds(b, op, requested, (lhs, rhs), block, requested.rounds)
        if found is not None:
            return _by_rounds(b, *found, (lhs, rhs), multiply)
    values = []
    for value, spec, dims in zip((lhs, rhs), requested.ins, contracted, strict=True):
        assert spec is not None
        there = b.as_spec(value, spec)
        grid = grouped(spec.layout)
        assert grid is not None
        # Contracted dims are filled with 0 beyond their end, because the padding is multiplied too.
        along = [d for k in dims for d in grid.axis_dims(k)]
        values.append(b.with_padding(there, 0, along) if along else there)

    def whole(x: jax.Array, y: jax.Array) -> jax.Array:
        return multiply(lax.reshape(x, shapes[0]), lax.reshape(y, shapes[1]))

    if not requested.summed:
        local = made.local_shape
        return b.run(lambda x, y: [lax.reshape(whole(x, y), local)], values, [made])[0]
    (part,) = b.run(lambda x, y: [whole(x, y)], values, [Local(block, wide)])
    return summed(b, part, requested, wide, dtype)


def _by_rounds(
    b: Builder, found: Rounds, rounds: int, operands: Sequence[Value], multiply: Multiply
) -> Value:
    """Return the product in so many rounds; the operand that is not cut is moved before them."""
    requested = found.requested
    values = []
    for k, (value, spec) in enumerate(zip(operands, requested.ins, strict=True)):
        assert spec is not None
        is_there = k == found.cut and found.gathered is not None
        values.append(value if is_there else b.as_spec(value, spec))
    out = requested.out if requested.scattered else requested.made
    b.note = f"{requested.note}, in {rounds} rounds"

    def kernel(*parts: jax.Array) -> list[jax.Array]:
        return [found.run(rounds, multiply, *parts).reshape(out.local_shape)]

    space = cache(partial(found.workspace, rounds))
    return b.run(kernel, values, [out], found.sends(rounds), workspace=space)[0]


def _multiply(op: Op, left: int, dtype: Any) -> Multiply:
    """Return the function of two blocks that multiplies them; left: rank of the left operand."""
    is_swapped, order = _order(op, left)
    numbers, given = op.params["dimension_numbers"], {"preferred_element_type": dtype}
    joins = _in_order(numbers)
    if joins:
        numbers = (tuple((dims[0],) for dims in numbers[0]), numbers[1])
    if is_swapped:
        numbers = tuple(pair[::-1] for pair in numbers)

    def multiply(x: jax.Array, y: jax.Array) -> jax.Array:
        if joins:
            ends = ((dims[0], dims[-1] + 1) for dims in op.params["dimension_numbers"][0])
            x, y = (lax.collapse(each, *end) for each, end in zip((x, y), ends, strict=True))
        pair = (y, x) if is_swapped else (x, y)
        (found,) = op.bind(*pair, **given, dimension_numbers=numbers)
        return found if order is None else lax.transpose(found, order)

    return multiply


def _in_order(numbers: Any) -> bool:
    """Whether several contracted dims are adjacent, in the same order in both operands.

    As one dim, they are contracted where they are. XLA on CPUs would first move several to the end.
    """
    contracted, batch = numbers
    if len(contracted[0]) < 2 or batch[0]:
        return False
    return all(tuple(dims) == tuple(range(dims[0], dims[0] + len(dims))) for dims in contracted)


def _order(op: Op, left: int) -> tuple[bool, Shape | None]:
    """Return whether to swap the operands, and how to transpose the product (None: not at all).

    The result then has its dims in the order that `op` requests. left: rank of the left operand.
    """
    if op.permutation is None:
        return False, None
    (contracted, _), (batch, _) = op.params["dimension_numbers"]
    lead, rank = len(batch), len(op.permutation)
    columns = left - len(contracted)
    if op.permutation == (*range(lead), *range(columns, rank), *range(lead, columns)):
        return True, None
    return False, op.permutation


def summed(b: Builder, part: Value, requested: Requested, wide: Any, dtype: Any) -> Value:
    """Return the sum of partial sums, on all devices or scattered."""
    axes, shape = requested.summed, part.shape
    if not requested.scattered:
        return b.all_reduced(part, axes, requested.made, dtype)
    sent = b.collectives()
    nbytes = dtypes.nbytes(shape, wide)
    out = requested.out
    block, device = block_shape(out), b.device
    pieces, order = [], []
    for before, after in zip(requested.made.placement.axes, out.placement.axes, strict=True):
        pieces.append(device.count(after[len(before) :]))
        order.append(after[len(before) :])
    scattered = tuple(axis for some in order for axis in some)
    padded = tuple(n * count for n, count in zip(block, pieces, strict=True))
    # The pieces of the first dim are contiguous already.
    later = any(n > 1 for n in pieces[1:])
    sent.reduce_scatter(axes, dtypes.nbytes(padded, wide), int(later))

    def phases(view: LazyView) -> Phases:
        x = view.materialize()
        more = [(0, n - m, 0) for n, m in zip(padded, x.shape, strict=True)]
        x = lax.pad(x, jnp.zeros((), x.dtype), more) if any(n for _, n, _ in more) else x
        both = [n for pair in zip(pieces, block, strict=True) for n in pair]
        view = LazyView.of(x).reshape(*both)
        view = view.transpose([*range(0, 2 * len(block), 2), *range(1, 2 * len(block), 2)])
        view = view.reshape(prod(pieces), prod(block))
        view = yield Send(REDUCE_SCATTER, scattered, prod(pieces), view)
        return LazyView.of(view.materialize().astype(dtype)).reshape(*out.local_shape)

    whole = dtypes.nbytes(padded, wide)
    is_copied = padded != shape or later
    chain = Chain(nbytes).view() if is_copied else Chain(nbytes)
    space = Workspace((chain,), (*((whole,) if is_copied else ()), whole // prod(pieces)))
    return b.run(
        lambda view: [run_alone(phases(view))],
        [part],
        [out],
        sent,
        is_lazy=True,
        phases=phases,
        sends=(scattered,),
        workspace=lambda: space,
    )[0]
