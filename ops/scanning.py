"""Scans and top_k along the only dim there is: each device takes its block, then they share totals.

A device combines its own scan with the totals of the blocks before it; of top_k each sends its
best. Where another dim stays spread, they run in place (`along.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout import dtypes
from gridlayout.ops import values as v
from gridlayout.ops.along import ALONG, bound, home_layout
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.masking import fill_padding, has_padding
from gridlayout.ops.reductions import NEUTRAL
from gridlayout.ops.report import RULE
from gridlayout.ops.values import Context
from gridlayout.ops.windows import as_storage, blocks, in_blocks, local_blocks
from gridlayout.ops.wires import Wires, index_of

# How the scans of two neighbours combine, and a reduction with the same neutral element.
COMBINED: dict[str, tuple[Callable[..., Any], str]] = {
    "cumsum": (lax.add, "reduce_sum"),
    "cumprod": (lax.mul, "reduce_prod"),
    "cummax": (lax.max, "reduce_max"),
    "cummin": (lax.min, "reduce_min"),
    "cumlogsumexp": (jnp.logaddexp, "reduce_max"),
}


def cumulative(ctx: Context, eqn: Any, value: Any) -> Any:
    """Sums, products, extremes or log-sums of all elements up to each one, or from it on."""
    backward, name = eqn.params["reverse"], eqn.primitive.name
    if value.ndim > 1:
        return ALONG[name](ctx, eqn, value)
    combine, reduction = COMBINED[name]
    neutral = NEUTRAL[reduction](value.dtype)
    # Padding lies behind all elements: a scan from the front does not meet it before them.
    x = _in_blocks(ctx, value, neutral if backward else None)
    placed, wires, bind = ctx.device.placement(x.layout.core_shape), Wires(ctx), bound(eqn)
    (axes,) = placed.axes

    def scan(a: jax.Array) -> jax.Array:
        (own,) = bind(local_blocks(a))
        end = 0 if backward else own.size - 1
        if (count := wires.count(axes)) > 1:
            totals = wires.gather(own[end : end + 1], axes, 0)
            at, here = jnp.arange(count), index_of(axes)
            met = jnp.where(at > here if backward else at < here, totals, neutral)
            (carried,) = bind(met.astype(own.dtype))
            own = combine(carried[0 if backward else -1], own)
        return as_storage(own, placed.per_device)

    out = jax.shard_map(
        scan, mesh=ctx.device.fine, in_specs=placed.spec, out_specs=placed.spec, check_vma=False
    )(x.storage)
    found = GridArray(out, x.layout.with_oob(None), ctx.device)
    return RULE, ctx.relayout(found, home_layout(ctx, found.layout, value, ()))


def top_k(ctx: Context, eqn: Any, value: Any) -> Any:
    """The greatest elements, which every device then has, and where they are."""
    if value.ndim > 1:
        return ALONG["top_k"](ctx, eqn, value)
    x = _in_blocks(ctx, value, NEUTRAL["reduce_max"](value.dtype))
    placed, wires = ctx.device.placement(x.layout.core_shape), Wires(ctx)
    (axes,) = placed.axes

    def best(a: jax.Array) -> list[jax.Array]:
        a = local_blocks(a)
        values, at = bound(eqn, k=min(eqn.params["k"], a.size))(a)
        # Equal ones stay in order, and the padding is behind all others.
        values, at = (wires.gather(y, axes, 0) for y in (values, at + index_of(axes) * a.size))
        values, places = bound(eqn)(values)
        return [values, at[places]]

    outs = jax.shard_map(
        best, mesh=ctx.device.fine, in_specs=placed.spec, out_specs=PartitionSpec(), check_vma=False
    )(x.storage)
    return RULE, [v.on_cores(ctx, out, like=v.layout_of(value)) for out in outs]


def _in_blocks(ctx: Context, value: Any, fill: Any) -> GridArray:
    """A vector in untiled blocks; its padding, behind them all, holds `fill` if one is given."""
    layout = blocks(v.layout_of(value), value.shape, {0: value.shape[0]}, value.dtype)
    x: GridArray = in_blocks(ctx, value, layout)
    if fill is None:
        return x
    known = dtypes.oob_value(fill, x.dtype)
    if repr(x.layout.oob) == repr(known) or not has_padding(x.layout, ctx.device):
        return x
    ctx.masks += 1
    return GridArray(fill_padding(x.storage, x.layout, ctx.device, known), x.layout, ctx.device)


SCANNING: dict[str, Callable[..., Any]] = {**dict.fromkeys(COMBINED, cumulative), "top_k": top_k}
