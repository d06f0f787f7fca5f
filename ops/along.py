"""Primitives that work along some dims: these lie whole on each core, the others where they were.

An array of which dims `axes` lie whole is, on each device, a plain array of those dims in front of
the storage of a smaller layout, of the other dims: a primitive then runs along the front ones, and
over the rest like over a batch. Where no dim is left over, the primitive falls back, but for those
in `vectors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.affine import AffineMap, dim
from gridlayout.collapse import embedding
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import values as v
from gridlayout.ops.elementwise import elementwise
from gridlayout.ops.exchange import exchange_bytes
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.ports import Port, entering, leaving
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.seen import Seen
from gridlayout.ops.values import Context
from gridlayout.sharding.device_grid import DeviceGrid

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def stacked(rest: GridLayout, axes: Shape, extents: Shape) -> GridLayout:
    """The layout in which dims `axes` lie whole on each core, and the others as `rest` says.

    >>> stacked(GridLayout((4, 6), grid=(2, 3)), (0,), (5,)).physical_shape
    (1, 2, 3, 5, 2, 2)
    """
    rank = rest.ndim + len(axes)
    kept = [d for d in range(rank) if d not in axes]
    rows = rest.linear.compose(AffineMap(rank, [dim(d) for d in kept])).results
    sizes = dict(zip(axes, extents, strict=True)) | dict(zip(kept, rest.shape, strict=True))
    return rest.replace(
        shape=tuple(sizes[d] for d in range(rank)),
        grid=(*(1 for _ in axes), *rest.grid),
        linear=AffineMap(rank, (*(dim(a) for a in axes), *rows)),
        oob=None,
    )


@lru_cache(maxsize=4096)
def without(layout: Layout, axes: Shape) -> GridLayout | None:
    """The layout of the other dims, if each of `axes` has an untiled grid dim to itself.

    >>> without(GridLayout((5, 4, 6), grid=(1, 2, 3), collapse=[]), (0,))
    GridLayout((4, 6), 'float32', grid=(2, 3))
    """
    if not isinstance(layout, GridLayout) or layout.groups is None:
        return None
    untiled = len(layout.grid) - len(layout.tile or ())
    gone = [k for k, group in enumerate(layout.groups) if set(group) & set(axes)]
    alone = sorted(layout.groups[k] for k in gone) == [(a,) for a in sorted(axes)]
    if not alone or len(gone) == len(layout.grid) or any(k >= untiled for k in gone):
        return None
    kept = [d for d in range(layout.ndim) if d not in axes]
    rows = layout.linear.compose(embedding(layout.ndim, kept)).results
    stay = [k for k in range(len(layout.grid)) if k not in gone]
    return layout.replace(
        shape=tuple(layout.shape[d] for d in kept),
        grid=tuple(layout.grid[k] for k in stay),
        linear=AffineMap(len(kept), tuple(rows[k] for k in stay)),
        oob=None,
    )


def rest_layout(ctx: Context, value: Any, axes: Shape) -> GridLayout | None:
    """A layout of the dims other than `axes`: that of the value, or the policy's; None without."""
    shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
    if not shape or 0 in value.shape:
        return None
    if isinstance(value, GridArray) and (own := without(value.layout, axes)) is not None:
        extents = tuple(value.shape[a] for a in axes)
        return _spread_out(value.layout, own, axes, extents, ctx.device)
    found = ctx.choose(shape, value.dtype, value)
    if not isinstance(found, GridLayout):
        return None
    if (extra := len(found.grid) - len(shape)) > 0:  # fewer dims divide them among as many cores
        grid = (prod(found.grid[: extra + 1]), *found.grid[extra + 1 :])
        tile = found.tile and found.tile[-len(grid) :]
        found = GridLayout(shape, value.dtype, grid, tile, memory_space=found.memory_space)
    return found


@lru_cache(maxsize=4096)
def _spread_out(
    layout: GridLayout, own: GridLayout, axes: Shape, extents: Shape, device: DeviceGrid
) -> GridLayout:
    """The layout of the other dims, the cores along `axes` given to the longest of them.

    As it was where that does not save half of the bytes, since the way back costs as many.
    """
    k = max(range(len(own.grid)), key=lambda k: own.shard_shape[k])
    cores = prod(layout.grid) // prod(own.grid)
    grid = tuple(g * cores if i == k else g for i, g in enumerate(own.grid))
    wide = own.replace(grid=grid)
    few, many = (
        exchange_bytes(layout, stacked(rest, axes, extents), device) for rest in (wide, own)
    )
    return wide if 2 * few < many else own


def unstack(ctx: Context, value: Any, axes: Shape, rest: GridLayout) -> jax.Array:
    """The value with dims `axes` in front, whole on each device, then the storage of `rest`."""
    extents = tuple(value.shape[a] for a in axes)
    rest = rest.with_dtype(value.dtype)
    storage = v.on_cores(ctx, value, stacked(rest, axes, extents)).storage
    count, cores = len(axes), len(rest.grid)
    storage = storage[(0,) * count]
    array = jnp.moveaxis(storage, range(cores, cores + count), range(count))
    return lax.with_sharding_constraint(array, ctx.device.sharding(rest, count))


def restack(ctx: Context, array: jax.Array, axes: Shape, rest: GridLayout) -> GridArray:
    """The inverse of `unstack`: the front dims of the array are dims `axes` of the result."""
    rest = rest.with_dtype(array.dtype)
    count, cores = len(axes), len(rest.grid)
    array = lax.with_sharding_constraint(array, ctx.device.sharding(rest, count))
    layout = stacked(rest, axes, array.shape[:count])
    storage = jnp.moveaxis(array, range(count), range(cores, cores + count))
    return GridArray(storage[(None,) * count], layout, ctx.device)


def run(
    ctx: Context,
    eqn: Any,
    operands: Sequence[tuple[Any, Shape]],
    fn: Callable[..., Any],
    *others: Any,
    out_axes: Sequence[Shape] | None = None,
    native: bool = False,
) -> Any:
    """`fn` of the operands' dims that lie whole, and of other values that every device has.

    native: `fn` itself takes one more dim, the last one, for the rest; else it is mapped over it.
    operands: each with its dims that lie whole; in the rest they are alike. out_axes: the dims of
    each result that `fn` makes, by default those of the first operand. Results lie as the first
    operand, or where the policy puts their shape. None without a rest.
    """
    first, axes = next((pair for pair in operands if v.layout_of(pair[0])), operands[0])
    rest = rest_layout(ctx, first, axes)
    if rest is None or (not axes and out_axes is None):
        return None
    if not (isinstance(first, GridArray) and without(first.layout, axes)):
        rest = rest.replace(tile=None, face=None)  # it moves anyway: no work on padding
    entered = [_entered(ctx, value, own, rest) for value, own in operands]
    made = [axes] * len(eqn.outvars) if out_axes is None else out_axes
    left = [
        _left(ctx, var.aval, own, rest, first, axes)
        for var, own in zip(eqn.outvars, made, strict=True)
    ]
    if not native:
        fn = jax.vmap(fn, in_axes=(-1,) * len(entered) + (None,) * len(others), out_axes=-1)
    cores = len(rest.grid)

    def kernel(*parts: jax.Array) -> list[jax.Array]:
        # Parts come as a 1 for each whole dim, the rest's cores, the whole dims, the rest's shard.
        arrays: list[jax.Array] = []
        around: Shape = ()
        inner: Shape = ()
        for (_, port), part, (_, own) in zip(entered, parts, operands, strict=False):
            count, seen = len(own), port.step(Seen.of(part))
            whole, around = seen.shape[count + cores :][:count], seen.shape[count:][:cores]
            inner = seen.shape[2 * count + cores :]
            seen = seen.reshape(*around, *whole, -1).transpose(_exchanged(cores, count))
            arrays.append(seen.reshape(*whole, -1).now())
        outs, found = fn(*arrays, *parts[len(entered) :]), []
        for (_, _, port), own, out in zip(left, made, outs, strict=True):
            count, whole = len(own), out.shape[:-1]
            seen = Seen.of(out).reshape(*whole, *around, -1).transpose(_exchanged(count, cores))
            found.append(port.step(seen.reshape(*(1 for _ in own), *around, *whole, *inner)).now())
        return found

    outs = jax.shard_map(
        kernel,
        mesh=ctx.device.fine,
        in_specs=(*(port.spec for _, port in entered), *(PartitionSpec() for _ in others)),
        out_specs=[port.spec for _, _, port in left],
        check_vma=False,
    )(*(array for array, _ in entered), *others)
    found = [
        ctx.relayout(GridArray(out, at, ctx.device), home)
        for out, (at, home, _) in zip(outs, left, strict=True)
    ]
    return RULE, found if eqn.primitive.multiple_results else found[0]


def _exchanged(first: int, second: int) -> list[int]:
    """The order of dims in which the second few come before the first few; one more stays last."""
    both = first + second
    return [*range(first, both), *range(first), both]


def _entered(ctx: Context, value: Any, axes: Shape, rest: GridLayout) -> tuple[jax.Array, Port]:
    """The storage of a value, and how it enters with dims `axes` whole."""
    layout = stacked(rest.with_dtype(value.dtype), axes, tuple(value.shape[a] for a in axes))
    x = value if isinstance(value, GridArray) else v.on_cores(ctx, value, layout)
    return entering(ctx, x, layout, ctx.device.placement(layout.grid))


def _left(
    ctx: Context, aval: Any, made: Shape, rest: GridLayout, first: Any, axes: Shape
) -> tuple[Layout, Layout, Port]:
    """How a result leaves, whose dims `made` are whole in the kernel; where to, and its home."""
    layout = stacked(rest.with_dtype(aval.dtype), made, tuple(aval.shape[a] for a in made))
    home = home_layout(ctx, layout, first, axes).with_dtype(aval.dtype)
    placed = ctx.device.placement(layout.grid)
    port = leaving(ctx, layout, placed, home)
    return (home, home, port) if port else (layout, home, Port(placed.spec, lambda x: x))


def home_layout(ctx: Context, found: Layout, first: Any, axes: Shape) -> Layout:
    """Where a result belongs: as the first operand, if its layout can be said of the shape."""
    layout = v.layout_of(first)
    if isinstance(first, GridArray) and without(first.layout, axes):
        if first.ndim == found.ndim and _can_resize(first.layout, found.shape):
            return resized(first.layout, found.shape)
        if axes:
            return found
    if layout is None or layout.shape != found.shape or layout.is_scatter:
        return ctx.choose(found.shape, found.dtype, layout)
    return layout


def _can_resize(layout: Layout, shape: Shape) -> bool:
    """Whether the dims that are to be longer or shorter each are alone in a collapsed dim."""
    changed = {d for d, n in enumerate(layout.shape) if n != shape[d]}
    groups = layout.groups or () if isinstance(layout, GridLayout) else ()
    return all(len(group) == 1 for group in groups if changed & set(group))


@lru_cache(maxsize=4096)
def resized(layout: GridLayout, shape: Shape) -> GridLayout:
    """The layout with other extents of dims that are alone: their flips and gaps are dropped."""
    rows = tuple(
        dim(group[0]) if any(shape[d] != layout.shape[d] for d in group) else row
        for row, group in zip(layout.linear.results, layout.groups or (), strict=True)
    )
    return layout.replace(shape=shape, linear=AffineMap(len(shape), rows), oob=None)


def bound(eqn: Any, **changes: Any) -> Callable[..., Any]:
    """The equation's primitive, some of its parameters changed, as a function with many results."""

    def bind(*arrays: Any) -> Any:
        out = eqn.primitive.bind(*arrays, **{**eqn.params, **changes})
        return out if eqn.primitive.multiple_results else [out]

    return bind


def _one_dim(name: str) -> Callable[..., Any]:
    """The rule of a primitive that works along the one dim that its parameter `name` says."""

    def rule(ctx: Context, eqn: Any, *values: Any) -> Any:
        axis = eqn.params[name] % values[0].ndim
        return run(ctx, eqn, [(x, (axis,)) for x in values], bound(eqn, **{name: 0}), native=True)

    return rule


def stack(ctx: Context, eqn: Any, *values: Any) -> Any:
    """Arrays side by side along a new dim."""
    operands = [(x, ()) for x in values]
    return run(ctx, eqn, operands, bound(eqn, axis=0), out_axes=[(eqn.params["axis"],)])


def unstack_(ctx: Context, eqn: Any, value: Any) -> Any:
    """The slices of an array along a dim, each by itself."""
    out_axes = [()] * len(eqn.outvars)
    return run(ctx, eqn, [(value, (eqn.params["axis"],))], bound(eqn, axis=0), out_axes=out_axes)


def rev(ctx: Context, eqn: Any, value: Any) -> Any:
    """Dims reversed."""
    axes = tuple(sorted(eqn.params["dimensions"]))
    fn = bound(eqn, dimensions=tuple(range(len(axes))))
    return run(ctx, eqn, [(value, axes)], fn)


def pad(ctx: Context, eqn: Any, value: Any, fill: Any) -> Any:
    """`lax.pad`: positive, negative and interior padding."""
    none, config = (0, 0, 0), eqn.params["padding_config"]
    axes = tuple(d for d, sizes in enumerate(config) if tuple(sizes) != none)
    if len(axes) == value.ndim > 1:
        halves = (*config[:1], *(none,) * (value.ndim - 1)), (none, *config[1:])
        return _in_turn(pad, ctx, eqn, [{"padding_config": half} for half in halves], value, fill)
    fn = bound(eqn, padding_config=tuple(config[a] for a in axes))
    return run(ctx, eqn, [(value, axes)], fn, v.plain(ctx, fill))


def slice_(ctx: Context, eqn: Any, value: Any) -> Any:
    """A slice along the dims that it shortens."""
    p = eqn.params
    names = ("start_indices", "limit_indices", "strides")
    whole = [(0, n, 1) for n in value.shape]
    strides = p["strides"] or (1,) * value.ndim
    wanted = list(zip(p["start_indices"], p["limit_indices"], strides, strict=True))
    axes = tuple(d for d in range(value.ndim) if wanted[d] != whole[d])
    if not axes:
        return (VIEW, value) if v.layout_of(value) is not None else None

    def along(bounds: Sequence[Shape]) -> dict[str, Shape]:
        return dict(zip(names, zip(*bounds, strict=True), strict=True))

    if len(axes) == value.ndim > 1:
        whole_after = (0, len(range(*wanted[0])), 1)
        halves = [wanted[0], *whole[1:]], [whole_after, *wanted[1:]]
        return _in_turn(slice_, ctx, eqn, [along(half) for half in halves], value)
    return run(ctx, eqn, [(value, axes)], bound(eqn, **along([wanted[a] for a in axes])))


def _in_turn(
    rule: Callable[..., Any], ctx: Context, eqn: Any, changes: Sequence[Any], *values: Any
) -> Any:
    """The rule for the first dim, then for the others: for all at once none is left to lie spread.

    changes: the parameters of each turn.
    """
    value, *others = values
    for change in changes:
        params = {**eqn.params, **change}
        dtype = eqn.outvars[0].aval.dtype
        avals = [jax.ShapeDtypeStruct(np.shape(x), dtype) for x in (value, *others)]
        out = SimpleNamespace(aval=jax.eval_shape(partial(eqn.primitive.bind, **params), *avals))
        part = SimpleNamespace(primitive=eqn.primitive, params=params, outvars=[out])
        if (made := rule(ctx, part, value, *others)) is None:
            return None
        value = made[1]
    return RULE, value


def dynamic_slice(ctx: Context, eqn: Any, value: Any, *starts: Any) -> Any:
    """A slice that starts where numbers say."""
    sizes = eqn.params["slice_sizes"]
    axes = tuple(d for d in range(value.ndim) if sizes[d] != value.shape[d])
    fn = bound(eqn, slice_sizes=tuple(sizes[a] for a in axes))
    return run(ctx, eqn, [(value, axes)], fn, *(v.plain(ctx, starts[a]) for a in axes))


def dynamic_update_slice(ctx: Context, eqn: Any, value: Any, update: Any, *starts: Any) -> Any:
    """An array with a part of it replaced."""
    axes = tuple(d for d in range(value.ndim) if update.shape[d] != value.shape[d])
    others = (v.plain(ctx, starts[a]) for a in axes)
    return run(ctx, eqn, [(value, axes), (update, axes)], bound(eqn), *others)


def tile(ctx: Context, eqn: Any, value: Any) -> Any:
    """An array repeated along the dims with more than one repetition."""
    reps = eqn.params["reps"]
    axes = tuple(d for d, count in enumerate(reps) if count != 1)
    return run(ctx, eqn, [(value, axes)], bound(eqn, reps=tuple(reps[a] for a in axes)))


def bitcast(ctx: Context, eqn: Any, value: Any) -> Any:
    """Bits as another type: of another width, a last dim that joins elements, or parts them."""
    aval = eqn.outvars[0].aval
    if aval.ndim == value.ndim:
        x = v.on_cores(ctx, value)
        # Of a NaN the bits are not known.
        return elementwise(ctx, eqn, GridArray(x.storage, x.layout.with_oob(None), x.device))
    kept = min(aval.ndim, value.ndim)
    axes, out_axes = tuple(range(kept, value.ndim)), tuple(range(kept, aval.ndim))
    if (rest := rest_layout(ctx, value, axes)) is None:
        return None
    # Not by `run`: under vmap, JAX joins elements of the mapped dim.
    array = unstack(ctx, value, axes, rest)
    array = array if not axes else jnp.moveaxis(array, 0, -1)
    out = eqn.primitive.bind(array, **eqn.params)
    return RULE, restack(ctx, out if not out_axes else jnp.moveaxis(out, -1, 0), out_axes, rest)


ALONG: dict[str, Callable[..., Any]] = {
    **{name: _one_dim("axis") for name in ("cumsum", "cumprod", "cummax", "cummin")},
    **{name: _one_dim("axis") for name in ("cumlogsumexp", "top_k", "split")},
    **{name: _one_dim("dimension") for name in ("sort", "concatenate")},
    "approx_top_k": _one_dim("reduction_dimension"),
    **{"bitcast_convert_type": bitcast, "tile": tile, "stack": stack, "unstack": unstack_},
    **{"rev": rev, "pad": pad, "slice": slice_},
    **{"dynamic_slice": dynamic_slice, "dynamic_update_slice": dynamic_update_slice},
}
