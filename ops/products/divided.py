"""A product in one step: each device multiplies its blocks, and partial sums are added up.

The mesh axes along each dim are stated: of batch and free dims, which the result keeps, and of
contracted ones, along which devices have partial sums. These are added up for all of them (an
all-reduce), or so that each keeps its part (a reduce-scatter).
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.dtypes import sum_dtype
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Local, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import Phases, Send, run_alone
from gridlayout.ops.moves.workspace import Chain, Workspace
from gridlayout.sharding.collectives import REDUCE_SCATTER

Shape = tuple[int, ...]


def divided(b: Builder, op: Op, requested: Requested, lhs: Value, rhs: Value) -> Value:
    """The product of operands divided as `requested` says."""
    contracted, _ = op.params["dimension_numbers"]
    values = []
    for value, entry, dims in zip((lhs, rhs), requested.ins, contracted, strict=True):
        assert entry is not None
        there = b.on_cores(value, entry.layout, placement=entry.placement)
        grid = entry.layout.grouped
        assert grid is not None
        # Zeros after the end of contracted dims: what lies there is multiplied too.
        along = [d for k in dims for d in grid.axis_dims(k)]
        values.append(b.filled(there, 0, along) if along else there)
    dtype, made = op.out.dtype, requested.made
    wide = sum_dtype(dtype) if requested.summed else dtype
    shapes = [_block(value.spec) for value in values]
    block = _product_shape(op, *shapes)
    b.note = requested.note
    b.device_flops = 2 * prod(block) * prod(shapes[0][d] for d in contracted[0])

    def multiply(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        pair = (x.reshape(shapes[0]), y.reshape(shapes[1]))
        params = {**op.params, "preferred_element_type": wide}
        return [lax.dot_general(*pair, **_known(params))]

    if not requested.summed:
        local = made.local_shape
        return b.run(lambda x, y: [multiply(x, y)[0].reshape(local)], values, [made])[0]
    (part,) = b.run(multiply, values, [Local(block, wide)])
    return _summed(b, part, requested, wide, dtype)


def _summed(b: Builder, part: Value, requested: Requested, wide: Any, dtype: Any) -> Value:
    """Partial sums added up, for all devices or each its part."""
    axes, shape = requested.summed, part.shape
    sent = b.collectives()
    nbytes = prod(shape) * wide.itemsize
    if not requested.scattered:
        made = requested.made
        local = made.local_shape
        sent.all_reduce(axes, nbytes)

        def add(x: jax.Array) -> list[jax.Array]:
            return [lax.psum(x, axes).astype(dtype).reshape(local)]

        return b.run(add, [part], [made], sent)[0]
    out = requested.out
    block, device = _block(out), b.device
    pieces, order = [], []
    for before, after in zip(requested.made.placement.axes, out.placement.axes, strict=True):
        pieces.append(device.count(after[len(before) :]))
        order.append(after[len(before) :])
    scattered = tuple(axis for some in order for axis in some)
    padded = tuple(n * count for n, count in zip(block, pieces, strict=True))
    sent.reduce_scatter(axes, prod(padded) * wide.itemsize)

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

    whole = prod(padded) * wide.itemsize
    # Pieces of the first dim are one after another as they are.
    is_copied = padded != shape or any(n > 1 for n in pieces[1:])
    chain = Chain(nbytes).see() if is_copied else Chain(nbytes)
    space = Workspace((chain,), (*((whole,) if is_copied else ()), whole // prod(pieces)))
    return b.run(
        lambda view: [run_alone(phases(view))],
        [part],
        [out],
        sent,
        is_lazy=True,
        phases=phases,
        workspace=lambda: space,
    )[0]


def _block(spec: Any) -> Shape:
    """A device's part as one block of the logical dims."""
    assert isinstance(spec, Sharded)
    local, rank = spec.local_shape, len(spec.placement.grid)
    return tuple(a * b for a, b in zip(local[:rank], local[rank:], strict=True))


def _product_shape(op: Op, left: Shape, right: Shape) -> Shape:
    (lc, rc), (lb, rb) = op.params["dimension_numbers"]
    free = [n for d, n in enumerate(left) if d not in (*lc, *lb)]
    free += [n for d, n in enumerate(right) if d not in (*rc, *rb)]
    return (*(left[d] for d in lb), *free)


def _known(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that `lax.dot_general` takes."""
    names = ("dimension_numbers", "precision", "preferred_element_type")
    return {name: params[name] for name in names}
