"""Shape primitives: views wherever a layout describes the same data under the new shape.

Data is communicated only if no layout does.
"""

from __future__ import annotations

from typing import Any

from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.route import find_route
from gridlayout.ops.decisions.blocks import reshaped_blocks
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import (
    broadcast,
    relabelled,
    relabelled_unbroadcast,
    reshape_map,
    reshaped,
    squeezed,
    transposed,
)
from gridlayout.ops.moves.relayout import find_move


def broadcast_in_dim(b: Builder, op: Op, value: Value, *_: Value) -> Value:
    """Rule for a broadcast: a view if it only adds dims of extent 1, else a deferred value."""
    return broadcast(b, value, tuple(op.params["shape"]), op.params["broadcast_dimensions"])


def transpose(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a transpose: a view, whose linear map has its dims in another order."""
    return transposed(b, value, tuple(op.params["permutation"]))


def squeeze(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a squeeze: a view, whose linear map lacks the dims of extent 1."""
    removed = {d % value.ndim for d in op.params["dimensions"]}
    out = squeezed(b, value, [d for d in range(value.ndim) if d not in removed])
    return out if out.shape else b.replicated(out)


def reshape(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a reshape: a view if the collapsed index is an affine map of the new dims too.

    Otherwise data is communicated.
    """
    shape = tuple(op.params["new_sizes"])
    if not shape:
        whole = b.replicated(value)
        return b.run(lambda x: [x.reshape()], [whole], [Replicated((), value.dtype)], is_lazy=True)[
            0
        ]
    if (order := op.params["dimensions"]) is not None:
        value = transposed(b, value, tuple(order))
    old = reshape_map(shape, value.shape)
    if (same := relabelled_unbroadcast(value, shape, old)) is not None:
        return same
    x = b.as_sharded(value)
    assert isinstance(x.spec, Sharded)
    layout = x.spec.layout
    if old is not None and relabelled(layout, shape, old) is None:
        # If each device then has the same elements, it only reorders its own.
        blocks = reshaped_blocks(x.spec, shape)
        back = reshape_map(x.shape, shape)
        before = None
        if blocks is not None and back is not None:
            before = relabelled(blocks.layout, x.shape, back)
        if blocks is not None and before is not None:
            move = find_move(layout, before, b.device, x.spec.placement, blocks.placement)
            if move is None or not move.collectives:
                return b.relayout(x, before, blocks.placement).with_spec(blocks)
        # If the result's layout is a layout of the old shape too, relay the data out to it first.
        target = b.choose(shape, x.dtype, x)
        before = None if back is None else relabelled(target, x.shape, back)
        if before is not None and find_route(layout, before) is not None:
            relaid = b.relayout(x, before)
            assert isinstance(relaid.spec, Sharded)
            return relaid.with_spec(Sharded(target.with_dtype(x.dtype), relaid.spec.placement))
    return reshaped(b, x, shape, old)


def identity(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for JAX's sharding annotations, which have no meaning on the grid: nothing is done."""
    return list(values)


def with_layout(b: Builder, op: Op, value: Value, like: Value | None = None) -> Value:
    """Rule for `gl.with_layout`: a relayout. A cotangent stays in the memory space of `like`."""
    layout = op.params["layout"]
    before = None if like is None else like.layout
    if (
        op.params["back"]
        and before is not None
        and before.memory
        and isinstance(layout, GridLayout)
    ):
        layout = layout.replace(memory_space=before.memory)
    b.device.placement(layout.core_shape)  # a grid that the user states must have one
    out = b.to_layout(value, layout)
    return out if layout.oob is None else b.with_padding(out, layout.oob)
