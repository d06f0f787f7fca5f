"""Primitives along the only dim there is: each device has a block of it.

What moves elements, a slice or a concatenation, moves to each device the range that its block of
the result is made of, from the devices near it (`windows.py`). A scan is combined with the totals
of the blocks before; of top_k each device sends its best. Where another dim stays spread, the same
primitives run in place (`along.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout import dtypes
from gridlayout.affine import dim
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import values as v
from gridlayout.ops.along import ALONG, bound, home_layout, resized
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.masking import fill_padding, has_padding
from gridlayout.ops.reductions import NEUTRAL
from gridlayout.ops.report import RULE
from gridlayout.ops.values import Context
from gridlayout.ops.windows import (
    Reach,
    Window,
    as_storage,
    blocks,
    hops,
    in_blocks,
    local_blocks,
    of_results,
    of_whole,
    with_halo,
)
from gridlayout.ops.wires import Wires, index_of

# -- moving elements -----------------------------------------------------------------------------

Read = Callable[..., jax.Array]


def _moved(
    ctx: Context, eqn: Any, operands: Sequence[Any], make: Sequence[Callable[[Read, Any], Any]]
) -> Any:
    """Each result by blocks: `make[i](read, place)` for one device's block, at those positions.

    `read(i, reach, fill)` is what a device needs of operand `i`; see `with_halo`. Results lie as
    the first operand that lies on cores.
    """
    first = next(x for x in operands if v.layout_of(x) is not None)
    line, k = _line(v.layout_of(first), first.shape)
    arrays = [in_blocks(ctx, x, resized(line, x.shape)).storage for x in operands]
    layouts = [resized(line, var.aval.shape).with_dtype(var.aval.dtype) for var in eqn.outvars]
    placed, wires, rank = ctx.device.placement(line.grid), Wires(ctx), len(line.grid)
    axes, cores = placed.axes[k], placed.per_device[k]
    # Cores that are not the first ones along other grid dims hold nothing, whatever is there.
    inside = tuple(slice(None) if d in (k, rank + k) else 0 for d in range(2 * rank))

    def kernel(*parts: jax.Array) -> list[jax.Array]:
        whole: dict[int, jax.Array] = {}  # operands that are gathered, once

        def read(i: int, reach: Reach, fill: Any = 0) -> jax.Array:
            block, extent = parts[i][inside].reshape(-1), operands[i].shape[0]
            far = max(hops(wires.count(axes), block.size, extent, reach)) > block.size
            if far and i not in whole:
                whole[i] = wires.gather(block, axes, 0)
            if i in whole:
                return of_whole(wires, whole[i], 0, axes, extent, reach, fill)
            return with_halo(wires, block, 0, axes, extent, reach, fill)

        found = []
        for one, layout in zip(make, layouts, strict=True):
            length = cores * layout.shard_shape[k]
            block = one(read, index_of(axes) * length + jnp.arange(length))
            local = (*placed.per_device, *layout.shard_shape)
            block = block.reshape([n if d in (k, rank + k) else 1 for d, n in enumerate(local)])
            found.append(jnp.broadcast_to(block, local))
        return found

    outs = jax.shard_map(
        kernel, mesh=ctx.device.fine, in_specs=placed.spec, out_specs=placed.spec, check_vma=False
    )(*arrays)
    done = [GridArray(out, at, ctx.device) for out, at in zip(outs, layouts, strict=True)]
    done = [ctx.relayout(x, home_layout(ctx, x.layout, first, ())) for x in done]
    return RULE, done if eqn.primitive.multiple_results else done[0]


def _line(layout: Layout | None, shape: tuple[int, ...]) -> tuple[GridLayout, int]:
    """An untiled layout of a vector, each core along one grid dim a block, and that grid dim.

    The layout itself, but for its tiles, if it divides the vector so.
    """
    if isinstance(layout, GridLayout) and layout.groups is not None:
        held = [k for k, group in enumerate(layout.groups) if group]
        if len(held) == 1 and layout.linear.results[held[0]] == dim(0):
            return layout.replace(tile=None, face=None, tile_format=None, oob=None), held[0]
    return blocks(layout, shape, {0: shape[0]}, "float32"), 0


def _window(start: int, stride: int = 1, base: int = 1) -> Callable[[Any], Reach]:
    """What a block of the result needs, whose element 0 is element `start` of the operand."""
    window = Window(1, stride, -start, 0, base)
    return lambda place: of_results(window, place.size)


def slice_(ctx: Context, eqn: Any, value: Any) -> Any:
    """Every so many elements from one to another."""
    (start,), (stride,) = eqn.params["start_indices"], eqn.params["strides"] or (1,)
    reach = _window(start, stride)
    return _moved(ctx, eqn, [value], [lambda read, at: read(0, reach(at))[::stride]])


def split(ctx: Context, eqn: Any, value: Any) -> Any:
    """Parts one after another."""
    starts = accumulate(eqn.params["sizes"], initial=0)
    reaches = [_window(start) for start, _ in zip(starts, eqn.outvars, strict=False)]
    return _moved(ctx, eqn, [value], [partial(_read, reach=reach) for reach in reaches])


def _read(read: Read, at: jax.Array, reach: Callable[[Any], Reach]) -> jax.Array:
    return read(0, reach(at))


def pad(ctx: Context, eqn: Any, value: Any, fill: Any) -> Any:
    """`fill` before, after and between the elements; negative amounts drop elements."""
    ((low, _, interior),) = eqn.params["padding_config"]
    reach, number = _window(-low, 1, interior + 1), v.plain(ctx, fill)
    return _moved(ctx, eqn, [value], [lambda read, at: read(0, reach(at), number)])


def concatenate(ctx: Context, eqn: Any, *values: Any) -> Any:
    """Vectors one after another."""
    starts = list(accumulate((x.shape[0] for x in values), initial=0))

    def joined(read: Read, at: jax.Array) -> jax.Array:
        out = read(0, _window(0)(at))
        for i, start in list(enumerate(starts[:-1]))[1:]:
            out = jnp.where(at < start, out, read(i, _window(-start)(at)))
        return out

    return _moved(ctx, eqn, values, [joined])


def tile(ctx: Context, eqn: Any, value: Any) -> Any:
    """The elements again and again."""
    extent = value.shape[0]
    whole = Reach(0, 0, extent, 1)
    return _moved(ctx, eqn, [value], [lambda read, at: read(0, whole)[at % extent]])


def rev(ctx: Context, eqn: Any, value: Any) -> Any:
    """The elements backwards."""
    extent = value.shape[0]

    def backwards(read: Read, at: jax.Array) -> jax.Array:
        length = at.size  # a device's block ends where it begins from behind
        return lax.rev(read(0, Reach(-length, extent - length, length, 1)), (0,))

    return _moved(ctx, eqn, [value], [backwards])


# -- scans ---------------------------------------------------------------------------------------

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


def _alone(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for a vector, and that of `along.py` for all else."""

    def either(ctx: Context, eqn: Any, *values: Any) -> Any:
        chosen = rule if eqn.outvars[0].aval.ndim == 1 else ALONG[name]
        return chosen(ctx, eqn, *values)

    return either


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(COMBINED, cumulative),
    **{"top_k": top_k, "slice": slice_, "split": split, "pad": pad, "concatenate": concatenate},
    **{"rev": rev, "tile": tile},
}
VECTORS = {name: _alone(name, rule) for name, rule in _RULES.items()}
