"""Reductions over whole collapsed dims: on storage, padding set to the neutral element first.

Padding is only masked when its value is not known to be neutral already. Dims that share a
collapsed dim with kept ones are moved apart first. Reductions that devices can't share, by a
function of one's own or of single bits, have the reduced dims whole on each core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.affine import AffineMap, constant, dim
from gridlayout.collapse import embedding, joined
from gridlayout.grid_layout import GridLayout
from gridlayout.ops import values as v
from gridlayout.ops.along import bound, run
from gridlayout.ops.grid_array import GridArray, place
from gridlayout.ops.masking import fill_padding, has_padding
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.values import Context


def _least(dtype: Any) -> Any:
    """The least value of a dtype: the neutral element of max."""
    if dtype == np.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).min)


def _greatest(dtype: Any) -> Any:
    if dtype == np.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).max)


NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "reduce_sum": lambda dtype: 0,
    "reduce_prod": lambda dtype: 1,
    "reduce_max": _least,
    "reduce_min": _greatest,
    "reduce_and": lambda dtype: True,
    "reduce_or": lambda dtype: False,
    "argmax": _least,
    "argmin": _greatest,
}


def reduction(ctx: Context, eqn: Any, value: Any) -> Any:
    """Reduce whole collapsed dims on storage; the others keep their place on the grid.

    The result belongs in the operand's grid and tile, a collapsed dim that is reduced away holding
    one element at index 0; until it is wanted there, every device along that dim has a copy. Dims
    that share a collapsed dim with kept ones are moved apart first.
    """
    axes = tuple(sorted(eqn.params["axes"]))
    out_dtype = eqn.outvars[0].aval.dtype
    if eqn.primitive.name in ("reduce_and", "reduce_or") and out_dtype != np.bool_:
        return bitwise(ctx, eqn, value)  # XLA has no all-reduce for it
    if eqn.primitive.name not in ("argmax", "argmin"):
        # A dim of extent 1 is its own sum, product or extreme.
        kept = [d for d in range(value.ndim) if d not in axes or value.shape[d] != 1]
        axes = tuple(kept.index(d) for d in axes if d in kept)
        value = v.squeezed(ctx, value, kept)
    home = value.home if isinstance(value, v.Spread) and value.is_whole else None
    x = v.on_cores(ctx, value) if home is None else value.source
    if not axes:
        return VIEW, value if x.ndim and home is not None else x if x.ndim else v.plain(ctx, x)
    own = x.layout
    x, added = _apart(ctx, x, axes)
    layout = x.layout
    home = home if layout == own else None
    assert isinstance(layout, GridLayout)
    assert layout.groups is not None
    reduced = [k for k, group in enumerate(layout.groups) if set(group) & set(axes)]
    along = [d for k in reduced for d in layout.axis_dims(k)]
    neutral = dtypes.oob_value(NEUTRAL[eqn.primitive.name](layout.dtype), layout.dtype)
    storage = x.storage
    # All dims reduced: grid dims that no logical dim feeds must be neutral too.
    everywhere = along if len(axes) < x.ndim else None
    if everywhere is None:
        along = list(range(storage.ndim))
    if repr(layout.oob) != repr(neutral) and has_padding(layout, ctx.device, everywhere):
        storage = fill_padding(storage, layout, ctx.device, neutral, everywhere)
        ctx.masks += 1
    if eqn.primitive.name in ("argmax", "argmin"):
        out = _arg(eqn, storage, layout, ctx, reduced[0], along)
    else:
        out = _bind_axes(eqn, storage, along)
    ctx.moved += _reduced_bytes(ctx, layout, reduced, out)
    if len(axes) == x.ndim:
        return RULE, out
    made = _thin_result(ctx, layout, axes, reduced, out, out_dtype, neutral, added)
    home = _without(home or layout, axes, out_dtype, added)
    if made.layout.physical_shape == home.physical_shape:
        return RULE, GridArray(made.storage, home.with_oob(made.layout.oob), ctx.device)
    return RULE, v.Spread(made, tuple(range(made.ndim)), made.shape, home)


def bitwise(ctx: Context, eqn: Any, value: Any) -> Any:
    """The and, or, or exclusive or, of the bits of integers."""
    axes = tuple(sorted(eqn.params["axes"]))
    fn = bound(eqn, axes=tuple(range(len(axes))))
    return run(ctx, eqn, [(value, axes)], fn, out_axes=[()])


def own_function(ctx: Context, eqn: Any, *values: Any) -> Any:
    """`lax.reduce` by a function of one's own, of one array or of several together."""
    count, axes = len(values) // 2, tuple(sorted(eqn.params["dimensions"]))
    fn = bound(eqn, dimensions=tuple(range(len(axes))))
    operands = [(x, axes) for x in values[:count]]
    starts = [v.plain(ctx, x) for x in values[count:]]
    return run(ctx, eqn, operands, fn, *starts, out_axes=[()] * count)


def _bind_axes(eqn: Any, storage: jax.Array, along: Sequence[int]) -> jax.Array:
    return eqn.primitive.bind(storage, **{**eqn.params, "axes": tuple(sorted(along))})


def _arg(
    eqn: Any, storage: jax.Array, layout: GridLayout, ctx: Context, k: int, along: Sequence[int]
) -> jax.Array:
    """The logical index of the extreme element: positions along one collapsed dim are in order."""
    own = layout.axis_dims(k)
    kept = [d for d in range(storage.ndim) if d not in along]
    rest = [d for d in along if d not in own]
    flat = storage.transpose([*kept, *own, *rest])
    flat = flat[(..., *(0,) * len(rest))] if rest else flat
    flat = flat.reshape(*(storage.shape[d] for d in kept), -1)
    # A type that counts the elements need not count the positions, which are more.
    params = {**eqn.params, "axes": (flat.ndim - 1,), "index_dtype": np.dtype(np.int32)}
    at = eqn.primitive.bind(flat, **params)
    inside = np.int32(prod(storage.shape[d] for d in own[1:]))
    index = lax.div(at, inside) * layout.shard_shape[k] + lax.rem(at, inside)
    return index.astype(eqn.params["index_dtype"])


def _reduced_bytes(ctx: Context, layout: GridLayout, reduced: Sequence[int], out: Any) -> int:
    """Bytes an all-reduce over the mesh axes of the reduced grid dims receives, on all devices."""
    placement = ctx.device.placement(layout.grid)
    devices = 1
    for k in reduced:
        devices *= placement.slots[k] // placement.per_device[k]
    return 2 * (devices - 1) * out.size * out.dtype.itemsize


def _thin_result(
    ctx: Context,
    layout: GridLayout,
    axes: tuple[int, ...],
    reduced: Sequence[int],
    out: jax.Array,
    dtype: Any,
    neutral: Any,
    added: int,
) -> GridArray:
    """The reduced storage, without the reduced dims, on one core along these."""
    was_neutral = repr(layout.oob) == repr(neutral) and dtype == layout.dtype
    fill = neutral if was_neutral else 0
    kept = [k for k in range(len(layout.grid)) if k not in reduced]
    others = [d for k in kept for d in layout.axis_dims(k)]
    sure = was_neutral or not has_padding(layout, ctx.device, others)
    home = _without(layout, axes, dtype, added)
    thin = v.thinned(home, tuple(range(home.ndim)), tuple(k - added for k in kept))
    storage = jnp.expand_dims(out, [d for k in reduced for d in layout.axis_dims(k)])
    dropped = [d for k in range(added) for d in layout.axis_dims(k)]
    storage = storage.reshape([n for d, n in enumerate(storage.shape) if d not in dropped])
    physical = storage[tuple(slice(n) for n in thin.physical_shape)]
    thin = thin.with_oob(fill if sure else None)
    return GridArray(place(physical, thin, ctx.device, fill), thin, ctx.device)


@lru_cache(maxsize=4096)
def _without(layout: GridLayout, axes: tuple[int, ...], dtype: Any, added: int) -> GridLayout:
    """The layout without dims `axes`, nor the first `added` grid dims that held them."""
    kept = [d for d in range(layout.ndim) if d not in axes]
    linear = layout.linear.compose(embedding(layout.ndim, kept))
    gone = {k for k, group in enumerate(layout.groups or ()) if set(group) & set(axes)}
    rows = tuple(constant(0) if k in gone else row for k, row in enumerate(linear.results))
    return layout.replace(
        shape=tuple(layout.shape[d] for d in kept),
        dtype=dtype,
        grid=layout.grid[added:],
        linear=AffineMap(len(kept), rows[added:]),
        oob=None,
        tile_format=None,
    )


def _apart(ctx: Context, x: GridArray, axes: tuple[int, ...]) -> tuple[GridArray, int]:
    """`x` in a layout where no collapsed dim joins reduced and kept dims, and argmax's is plain.

    Also how many leading grid dims were added to get there.
    """
    layout = x.layout
    if not isinstance(layout, GridLayout) or layout.groups is None:
        x = ctx.relayout(x, ctx.choose(x.shape, x.dtype, layout))
        layout = x.layout
    if isinstance(layout, GridLayout) and layout.groups is not None and _is_apart(layout, axes):
        return x, 0
    assert isinstance(layout, GridLayout)
    return ctx.relayout(x, _moved_apart(layout, axes)), len(axes)


def _is_apart(layout: GridLayout, axes: tuple[int, ...]) -> bool:
    """Each collapsed dim is all reduced or all kept; a reduced one is in logical order from 0."""
    groups = layout.groups or ()
    if not set(axes) <= {d for group in groups for d in group}:
        return False
    for k, group in enumerate(groups):
        wide = {d for d in group if layout.shape[d] > 1}
        if set(group) & set(axes) and not set(group) <= set(axes):
            return False
        if set(group) & set(axes) and (
            len(wide) > 1 or layout.linear.results[k] not in map(dim, group)
        ):
            return len(axes) == layout.ndim and len(axes) > 1
    return True


@lru_cache(maxsize=4096)
def _moved_apart(layout: GridLayout, axes: tuple[int, ...]) -> GridLayout:
    """A leading grid dim of one core for each reduced dim; kept dims on the old grid dims."""
    rank = len(layout.grid)
    kept = [d for d in range(layout.ndim) if d not in axes]
    count = max(len(kept) - rank + 1, 0)
    rows = [constant(0)] * max(rank - len(kept), 0)
    rows += [joined(layout.shape, kept[:count])] if count else []
    rows += [dim(d) for d in kept[count:]]
    linear = AffineMap(layout.ndim, (*(dim(d) for d in axes), *rows))
    return GridLayout(
        *(layout.shape, layout.dtype, (1,) * len(axes) + layout.grid, layout.tile),
        linear=linear,
        memory_space=layout.memory_space,
        face=layout.face,
    )
