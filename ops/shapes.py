"""Shape primitives: the layout that describes the same data under the new shape.

Data moves only where no layout says so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gridlayout.affine import AffineMap, constant, dim
from gridlayout.ops import values as v
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.values import Context, Spread
from gridlayout.route import find_route


def broadcast_in_dim(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """Dims of extent 1 are a view; a real broadcast waits until a layout is wanted for it."""
    dims = eqn.params["broadcast_dimensions"]
    return VIEW, v.broadcast(ctx, value, tuple(eqn.params["shape"]), dims)


def transpose(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view: the linear map with its dims in another order."""
    return transposed(ctx, value, tuple(eqn.params["permutation"]))


def transposed(ctx: Context, value: Any, order: tuple[int, ...]) -> tuple[str, Any]:
    """The value with its dims in another order."""
    shape = tuple(value.shape[d] for d in order)
    old = AffineMap(len(order), tuple(dim(order.index(d)) for d in range(len(order))))
    if isinstance(value, Spread):
        if (same := v.relabel_whole(ctx, value, shape, old)) is not None:
            return VIEW, same
        dims = tuple(order.index(d) for d in value.dims)
        return VIEW, Spread(value.source, dims, shape, value.home)
    return _viewed(ctx, value, shape, old, lambda logical: logical.transpose(order))


def squeeze(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view: the linear map without the dims of extent 1."""
    gone = {d % len(value.shape) for d in eqn.params["dimensions"]}
    keep = [d for d in range(len(value.shape)) if d not in gone]
    out = v.squeezed(ctx, value, keep)
    return (VIEW, out) if out.shape else (RULE, v.plain(ctx, out))


def reshape(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view where the collapsed index of the new dims is an affine map too, else data moves."""
    shape = tuple(eqn.params["new_sizes"])
    if not shape:
        return RULE, v.plain(ctx, value).reshape(())
    if (order := eqn.params["dimensions"]) is not None:
        value = transposed(ctx, value, tuple(order))[1]
    old = _reshape_map(shape, tuple(value.shape))
    if isinstance(value, Spread) and (same := v.relabel_whole(ctx, value, shape, old)) is not None:
        return VIEW, same
    x = v.on_cores(ctx, value)
    if old is not None and v.relabelled(x.layout, shape, old) is None:
        # Where the new shape's layout can be said of the old shape, the data goes there first.
        wanted = ctx.choose(shape, x.dtype, x)
        before = v.relabelled(wanted, x.shape, _reshape_map(x.shape, shape))
        if before is not None and find_route(x.layout, before) is not None:
            return RULE, GridArray(ctx.relayout(x, before).storage, wanted, ctx.device)
    return _viewed(ctx, x, shape, old, lambda logical: logical.reshape(shape))


def _viewed(
    ctx: Context, x: GridArray, shape: tuple[int, ...], old: AffineMap | None, change: Any
) -> tuple[str, GridArray]:
    layout = None if old is None else v.relabelled(x.layout, shape, old)
    if layout is not None:
        return VIEW, GridArray(x.storage, layout, ctx.device)
    return RULE, v.moved(ctx, x, shape, change)


@lru_cache(maxsize=4096)
def _reshape_map(new: tuple[int, ...], old: tuple[int, ...]) -> AffineMap | None:
    """New logical index -> old logical index of the same element, row-major; None when empty."""
    if 0 in new:
        return None
    flat, stride = constant(0), 1
    for d in reversed(range(len(new))):
        flat, stride = dim(d) * stride + flat, stride * new[d]
    results, stride = [], 1
    for n in reversed(old):
        results.append(flat // stride % n if n > 1 else constant(0))
        stride *= n
    return AffineMap(len(new), tuple(reversed(results))).simplify(new)


def identity(ctx: Context, eqn: Any, *values: Any) -> tuple[str, Any]:
    """Where the user's own sharding of a logical array says nothing here: the value as it is."""
    return VIEW, values if eqn.primitive.multiple_results else values[0]


def with_layout(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """`gl.with_layout`: the value in that layout."""
    layout = eqn.params["layout"]
    before = ctx.moved
    out = v.on_cores(ctx, value, layout)
    if layout.oob is not None and repr(layout.oob) != repr(out.layout.oob):
        out, ctx.masks = out.with_oob(layout.oob), ctx.masks + 1
    return (VIEW if ctx.moved == before else RULE), out
