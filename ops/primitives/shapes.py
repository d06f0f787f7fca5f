"""Shape primitives: views wherever a layout describes the same data under the new shape.

Data is communicated only if no layout does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.route import find_route
from gridlayout.ops.decisions.blocks import as_blocks, dim_groups, reshaped_blocks, same_blocks
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import THROUGH, Factors, FactorsOf, Numbering, each
from gridlayout.ops.decisions.flops import nothing
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.reshapes import (
    broadcast,
    relabelled,
    relabelled_unbroadcast,
    reshape_map,
    reshaped,
    squeezed,
    transposed,
)
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Replicated, Sharded, is_of_keys
from gridlayout.ops.decisions.stated import CONSTRAINTS, constraint, ignored, spec_in
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.relayout import find_move
from gridlayout.ops.moves.spaces import as_stored
from gridlayout.ops.programs.passes import keeps_tiles
from gridlayout.sharding.limits import LIMITS


def broadcast_in_dim(b: Builder, op: Op, value: Value, *_: Value) -> Value:
    """Rule for a broadcast: a view if it only adds dims of extent 1, else a deferred value."""
    return broadcast(b, value, tuple(op.params["shape"]), op.params["broadcast_dimensions"])


def _broadcast_logical(b: Builder, op: Op, value: Value, *sizes: Value) -> Value | None:
    """Rule for a broadcast of a replicated array: deferred if it gets more elements or a dim."""
    is_more = prod(op.out.shape) > prod(value.shape) or (op.out.shape and not value.ndim)
    is_array = isinstance(value.spec, Replicated) and not is_of_keys(value.spec)
    if sizes or not is_array or not is_more:
        return None
    return broadcast_in_dim(b, op, value)


def transpose(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a transpose: a view, whose linear map has its dims in another order."""
    order, requested = tuple(op.params["permutation"]), op.requested
    if requested is None or (there := requested.ins[0]) is None:
        return transposed(b, value, order)
    if requested.apart:  # so parts are turned before they are gathered
        return b.as_spec(transposed(b, value, order), requested.made)
    return transposed(b, b.as_spec(value, there), order)


def squeeze(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a squeeze: a view, whose linear map lacks the dims of extent 1."""
    removed = {d % value.ndim for d in op.params["dimensions"]}
    out = squeezed(b, value, [d for d in range(value.ndim) if d not in removed])
    return out if out.shape else b.replicated(out)


def reshape(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reshape: a view if the collapsed index is an affine map of the new dims too.

    Otherwise data is communicated.
    """
    shape = tuple(op.params["new_sizes"])
    if not shape:
        whole = b.replicated(value)
        return b.run(lambda x: [x.reshape()], [whole], [Replicated((), value.dtype)], is_lazy=True)[
            0
        ]
    original = value
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
        return cheapest_way(b, op, [_by_own_blocks, _by_blocks, _by_layout], original)
    return reshaped(b, x, shape, old)


def _source(b: Builder, op: Op, value: Value) -> Value:
    """Return the operand of a reshape, its dims in the order in which they are joined."""
    order = op.params["dimensions"]
    return b.as_sharded(value if order is None else transposed(b, value, tuple(order)))


def _by_own_blocks(b: Builder, op: Op, value: Value) -> Value | None:
    """Rule for a reshape to blocks that are the operand's or a few positions off them."""
    x = _source(b, op, value)
    assert isinstance(x.spec, Sharded)
    blocks = reshaped_blocks(x.spec, tuple(op.params["new_sizes"]), near=True)
    return None if blocks is None else _to_blocks(b, x, blocks)


def _by_blocks(b: Builder, op: Op, value: Value) -> Value | None:
    """Rule for a reshape by blocks that are a few positions off those of the policy's layout."""
    x = _source(b, op, value)
    target = b.choose(tuple(op.params["new_sizes"]), x.dtype, x)
    blocks = as_blocks(Sharded(target, b.placement(target)), b.device)
    return None if blocks is None else _to_blocks(b, x, blocks)


def _to_blocks(b: Builder, x: Value, blocks: Sharded) -> Value | None:
    """Return an array reshaped to blocks of the same elements near them.

    These are whole elements of the dims that devices divide, and stay so unless that takes much
    more memory.
    """
    assert isinstance(x.spec, Sharded)
    if (same := same_blocks(blocks, x.spec)) is None:
        return None
    before, after = same
    x, local = b.relayout(x, before.layout, before.placement), after.local_shape
    (made,) = b.run(lambda part: [part.reshape(local)], [x], [after], is_view=True)
    if after.device_bytes <= LIMITS.slack * blocks.device_bytes:
        return made
    return b.relayout(made, blocks.layout, blocks.placement)


def _by_layout(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a reshape by the result's layout under the old shape, or by the whole array."""
    x = _source(b, op, value)
    assert isinstance(x.spec, Sharded)
    shape = tuple(op.params["new_sizes"])
    # If the result's layout is a layout of the old shape too, relay the data out to it first.
    target, back = b.choose(shape, x.dtype, x), reshape_map(x.shape, shape)
    before = None if back is None else relabelled(target, x.shape, back)
    if before is not None and find_route(x.spec.layout, before) is not None:
        relaid = b.relayout(x, before)
        assert isinstance(relaid.spec, Sharded)
        return relaid.with_spec(Sharded(target.with_dtype(x.dtype), relaid.spec.placement))
    return reshaped(b, x, shape, reshape_map(shape, x.shape))


def identity(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for annotations of JAX that have no meaning on the grid: nothing is done."""
    return list(values)


def constrained(b: Builder, op: Op, value: Value) -> Value:
    """Rule for a sharding that the program states: a relayout, in the tiles of the value."""
    if (axes := constraint(op.name, op.params, op.out, b.device)) is None:
        b.note = ignored(op.params[CONSTRAINTS[op.name]])
        return value
    now = value.spec
    found = spec_in(axes, value.shape, value.dtype, b.device, now)
    if found is now:
        return value
    found = b.in_tiles(found, value.layout)
    return b.to_layout(value, found.layout, found.placement)


def with_layout(b: Builder, op: Op, value: Value, like: Value | None = None) -> Value:
    """Rule for `gl.with_layout`: a relayout. A cotangent stays in the memory space of `like`."""
    layout = as_stored(op.params["layout"], b.device)
    before = None if like is None else like.layout
    if (
        op.params["back"]
        and before is not None
        and before.memory
        and isinstance(layout, GridLayout)
    ):
        layout = layout.replace(memory_space=before.memory)
    b.device.placement(layout)  # a grid that the user states must have one
    out = b.to_layout(value, layout)
    return out if layout.oob is None else b.with_padding(out, layout.oob)


# -- factors ---------------------------------------------------------------------------------------


def _transposed(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    made, order = Numbering(ins, outs), params["permutation"]
    for d in range(len(ins[0])):
        made.add(THROUGH, (0, d), (1, order.index(d)))
    return made.factors()


def _broadcast(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    made, (shape, *_), (wide,) = Numbering(ins, outs), ins, outs
    of = {d: k for k, d in enumerate(params["broadcast_dimensions"])}
    for d, n in enumerate(wide):
        operand = [(0, of[d])] if d in of and shape[of[d]] == n else []
        made.add(THROUGH, *operand, (len(ins), d))
    return made.factors()


def _reshaped(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of the first dim of each group of dims that are joined or split."""
    made, (before,), (after,) = Numbering(ins, outs), ins, outs
    if params.get("dimensions") is not None:
        return made.factors()
    for some, others in dim_groups(before, after):
        wide = [d for d in some if before[d] > 1], [d for d in others if after[d] > 1]
        if wide[0]:
            a, b = wide[0][0], wide[1][0]
            parts = gcd(before[a], after[b]) if len(wide[0]) > 1 or len(wide[1]) > 1 else 0
            made.add(THROUGH, (0, a), (1, b), exact=parts)
    return made.factors()


def _squeezed(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    made, rank = Numbering(ins, outs), len(ins[0])
    gone = {d % rank for d in params["dimensions"]}
    for to, d in enumerate(d for d in range(rank) if d not in gone):
        made.add(THROUGH, (0, d), (1, to))
    return made.factors()


def _stated(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of `with_layout`: of the value, not of the array that it is like."""
    made = Numbering(ins, outs)
    for d in range(len(outs[0])):
        made.add(THROUGH, (0, d), (len(ins), d))
    return made.factors()


def _views_squeezed(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    (x,) = views
    assert isinstance(x, Shifted)
    gone = {d % len(x.shape) for d in params["dimensions"]}
    return [x.on_dims([d for d in range(len(x.shape)) if d not in gone])]


def _views_permuted(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    (x,) = views
    assert isinstance(x, Shifted)
    return [x.on_dims(params["permutation"])]


def _views_widened(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    """Return a view with new dims, if these have extent 1."""
    x, *_ = views
    assert isinstance(x, Shifted)
    at: dict[int, int] = {d: k for k, d in enumerate(params["broadcast_dimensions"])}
    wide = [at.get(d) for d in range(len(params["shape"]))]
    found = x.on_dims(wide)
    return [found if found.shape == tuple(params["shape"]) else None]


def _views_reshaped(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    """Return a view with other dims of extent 1, if nothing else changes."""
    x, *_ = views
    assert isinstance(x, Shifted)
    wide = [d for d, n in enumerate(x.shape) if n > 1]
    if params["dimensions"] is not None or [x.shape[d] for d in wide] != [
        n for n in params["new_sizes"] if n > 1
    ]:
        return [None]
    left = iter(wide)
    return [x.on_dims([next(left) if n > 1 else None for n in params["new_sizes"]])]


def _keeps_rows(params: Any, before: Shape, after: Shape, tile: Shape) -> bool:
    return tuple(params["permutation"])[-2:] == (*range(len(before)),)[-2:]


def _keeps_tiles(params: Any, before: Shape, after: Shape, tile: Shape) -> bool:
    return keeps_tiles(before, after, tile)


def _view(rule: Decide, factors: FactorsOf, **facts: Any) -> Record:
    return Record((rule,), factors=factors, is_view=True, is_fused=True, takes_fused=True, **facts)


# Primitives that only annotate how JAX shards a logical array.
_ANNOTATIONS = ("mesh_cast", "device_put")
SHAPES: dict[str, Record] = {
    "broadcast_in_dim": _view(
        *(broadcast_in_dim, _broadcast),
        of_logical=_broadcast_logical,
        is_made_in_place=True,
        of_views=_views_widened,
    ),
    "transpose": _view(
        *(transpose, _transposed),
        is_reordered=True,
        is_permutation=True,
        keeps_tiles=_keeps_rows,
        of_views=_views_permuted,
    ),
    "reshape": _view(
        *(reshape, _reshaped),
        is_reordered=True,
        keeps_tiles=_keeps_tiles,
        of_views=_views_reshaped,
    ),
    "squeeze": _view(squeeze, _squeezed, of_views=_views_squeezed),
    **dict.fromkeys(_ANNOTATIONS, _view(identity, each, is_annotation=True)),
    **dict.fromkeys(
        CONSTRAINTS, _view(constrained, each, of_logical=constrained, is_annotation=True)
    ),
    "with_layout": Record(
        *((with_layout,), nothing, _stated),
        of_logical=with_layout,
        takes_empty=True,
        changes_space=True,
    ),
}
