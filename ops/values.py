"""The values of an `on_grid` program, and how to have one in a given layout.

A value is a `GridArray`; a plain array that every device holds whole (a scalar, a constant, an
iota); or a `Spread`, a smaller value to be broadcast, not made yet. Plain and spread values are
made in place, on each core, once an operation tells in which layout they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from gridlayout.affine import AffineMap, constant, dim
from gridlayout.collapse import embedding
from gridlayout.dtypes import Scalar
from gridlayout.errors import LayoutError
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops.exchange import exchange_bytes
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.masking import has_padding
from gridlayout.ops.policy import Policy
from gridlayout.ops.relayout import exchanged, lay_out, move, nothing_moves, relayout
from gridlayout.ops.report import Cost, Row
from gridlayout.route import find_route
from gridlayout.sharding.device_grid import DeviceGrid, Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """`source` broadcast to `shape`, its dim `i` being dim `dims[i]`: not made until needed.

    home: the layout that the source belongs in, where it lies on fewer cores as yet: one along the
    grid dims that it does not vary along, so that the devices there hold copies.
    """

    source: Any
    dims: Shape
    shape: Shape
    home: GridLayout | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the source has the shape already, and only belongs elsewhere."""
        return self.home is not None and self.home.shape == self.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return np.dtype(self.source.dtype)

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return len(self.shape)


@dataclass
class Context:
    """What the rules of one program share: the device grid, its choices, the rows of the report.

    algorithm: of matrix products, by name; None where the cost rule chooses. reports: whether rows
    are wanted. A rule adds to `moved` and `masks`, and says of its one equation what else it holds
    on a core (`held`, bytes), which algorithm it took (`note`), or all it costs (`stated`).
    """

    device: DeviceGrid
    policy: Policy
    template: Layout | None
    algorithm: str | None = None
    reports: bool = False
    rows: list[Row] = field(default_factory=list)
    moved: int = 0
    masks: int = 0
    held: int = 0
    note: str = ""
    stated: Cost | None = None

    def choose(self, shape: Shape, dtype: Any, like: Any = None) -> Layout:
        """The policy's layout for a new value that comes from the value or layout `like`."""
        if not isinstance(like, Layout):
            like = layout_of(like)
        chosen = self.policy(shape, np.dtype(dtype), like or self.template, self.device)
        if not isinstance(chosen, Layout) or chosen.shape != tuple(shape):
            raise LayoutError(
                f"the policy gives {chosen!r} for {np.dtype(dtype).name}{list(shape)}: it must "
                "return a gl.Layout of that shape"
            )
        return chosen

    def fresh(self) -> Context:
        """The same device, policy and template, with nothing recorded yet."""
        return Context(self.device, self.policy, self.template, self.algorithm, self.reports)

    def relayout(self, x: GridArray, layout: Layout) -> GridArray:
        """`x` in a layout, whatever is known of its padding; the bytes that move are counted."""
        if x.layout.same_physical(layout):
            layout = layout.with_dtype(x.dtype, x.layout.oob)
            return GridArray(x.storage, layout, x.device)
        if not nothing_moves(x.layout, layout):
            self.moved += exchange_bytes(x.layout, layout, self.device)
        return relayout(x, layout.with_dtype(x.dtype))


def layout_of(value: Any) -> Layout | None:
    """The layout a value brings along: its own, or that of what it spreads."""
    if isinstance(value, Spread):
        if value.home is not None:
            return value.home.with_oob(value.source.layout.oob)
        value = value.source
    return value.layout if isinstance(value, GridArray) else None


def fact(value: Any) -> Scalar | None:
    """What is known of a value outside the logical tensor: its oob, or the constant itself."""
    if isinstance(value, GridArray):
        return value.layout.oob
    if isinstance(value, Spread):
        return fact(value.source) if value.source.ndim == 0 or value.is_whole else None
    if isinstance(value, jax.core.Tracer) or np.ndim(value) != 0:
        return None
    return np.asarray(value).item()


def plain(ctx: Context, value: Any) -> Any:
    """The value as a logical array that every device holds whole."""
    if isinstance(value, Spread):
        return lax.broadcast_in_dim(plain(ctx, value.source), value.shape, value.dims)
    if isinstance(value, GridArray):
        ctx.moved += value.layout.size * value.dtype.itemsize * (ctx.device.size - 1)
        return value.to_logical()
    return value


def on_cores(ctx: Context, value: Any, layout: Layout | None = None, like: Any = None) -> GridArray:
    """The value as a `GridArray`: in `layout`, or as it lies, or where the policy puts it."""
    if isinstance(value, Spread) and value.is_whole:
        layout, value = layout or layout_of(value), value.source
    if isinstance(value, GridArray):
        return value if layout is None else ctx.relayout(value, layout)
    if layout is None:
        layout = ctx.choose(value.shape, value.dtype, like if like is not None else value)
    layout = layout.with_dtype(value.dtype)
    if isinstance(value, Spread):
        storage, oob = _spread(ctx, value, layout)
        return GridArray(storage, layout.with_oob(oob), ctx.device)
    return lay_out(jnp.asarray(value), layout.with_oob(0), ctx.device)


def settled(ctx: Context, values: Sequence[Any]) -> list[Any]:
    """The values with every spread one made, fit to cross a JAX call."""
    return [
        v if not isinstance(v, Spread) else on_cores(ctx, v) if layout_of(v) else plain(ctx, v)
        for v in values
    ]


def operand(ctx: Context, value: Any, layout: Layout) -> tuple[Any, Scalar | None]:
    """The value's array and its fact, for an elementwise operation on storage in `layout`."""
    if np.ndim(value) == 0 and not isinstance(value, (GridArray, Spread)):
        return value, fact(value)
    if isinstance(value, Spread) and value.source.ndim == 0:
        shape = ctx.device.storage_shape(layout)
        return jnp.broadcast_to(value.source, shape), fact(value.source)
    if isinstance(value, GridArray) and value.layout.same_physical(layout):
        return value.storage, value.layout.oob
    there = on_cores(ctx, value, layout)
    return there.storage, there.layout.oob


def relabel_whole(
    ctx: Context, value: Spread, shape: Shape, old: AffineMap | None
) -> Spread | None:
    """A value with a home under another logical shape, if both its layouts can be said of it.

    old: new logical index -> old logical index.
    """
    if not value.is_whole or old is None:
        return None
    source, home = (relabelled(each, shape, old) for each in (value.source.layout, value.home))
    if source is None or home is None:
        return None
    array = GridArray(value.source.storage, source, ctx.device)
    return Spread(array, tuple(range(len(shape))), shape, home)


def squeezed(ctx: Context, value: Any, keep: Sequence[int]) -> Any:
    """The value without the dims of extent 1 that are not in `keep`."""
    shape = tuple(value.shape[d] for d in keep)
    if len(keep) == len(value.shape):
        return value
    if isinstance(value, GridArray):
        return relabel(ctx, value, shape, embedding(value.ndim, keep))
    if isinstance(value, Spread):
        if (
            same := relabel_whole(ctx, value, shape, embedding(len(value.shape), keep))
        ) is not None:
            return same
        at = {d: k for k, d in enumerate(keep)}
        inner = [i for i, d in enumerate(value.dims) if d in at]
        source, home = squeezed(ctx, value.source, inner), value.home
        if home is not None:
            home = relabelled(home, tuple(source.shape), embedding(home.ndim, inner))
        return Spread(source, tuple(at[value.dims[i]] for i in inner), shape, home)
    return jnp.reshape(value, shape)


def broadcast(ctx: Context, value: Any, shape: Shape, dims: Sequence[int]) -> Any:
    """The value broadcast in `shape`, dim `i` becoming `dims[i]`; extents of 1 grow."""
    keep = [i for i, d in enumerate(dims) if value.shape[i] == shape[d]]
    value = squeezed(ctx, value, keep)
    dims = tuple(int(dims[i]) for i in keep)
    is_view = all(shape[d] == 1 for d in range(len(shape)) if d not in dims)
    old = AffineMap(len(shape), tuple(dim(d) for d in dims))
    if isinstance(value, Spread):
        if is_view and (same := relabel_whole(ctx, value, shape, old)) is not None:
            return same
        return Spread(value.source, tuple(dims[d] for d in value.dims), shape, value.home)
    if isinstance(value, GridArray) and is_view:
        return relabel(ctx, value, shape, old)
    if dims == tuple(range(len(shape))):
        return value
    # One element is a number: what was known of the padding around it says nothing of it.
    return Spread(value if value.ndim else plain(ctx, value), dims, shape)


def relabel(
    ctx: Context,
    x: GridArray,
    shape: Shape,
    old: AffineMap,
    change: Callable[[jax.Array], jax.Array] | None = None,
) -> GridArray:
    """The same data under another logical shape; moves it only when no layout says so.

    old: new logical index -> old logical index. change: the same on a logical array, by default a
    reshape.
    """
    layout = relabelled(x.layout, shape, old)
    if layout is not None:
        return GridArray(x.storage, layout, x.device)
    return moved(ctx, x, shape, change or (lambda logical: logical.reshape(shape)))


@lru_cache(maxsize=4096)
def relabelled(layout: Layout, shape: Shape, old: AffineMap) -> GridLayout | None:
    """The layout of the same data seen with another logical shape, or None if there is none."""
    if not isinstance(layout, GridLayout) or 0 in layout.shape or 0 in shape:
        return None
    linear = layout.linear.compose(old).simplify(shape)
    new = layout.replace(shape=shape, linear=linear)
    if new.physical_shape != layout.physical_shape or new.is_scatter != layout.is_scatter:
        return None
    return new


def moved(
    ctx: Context, x: GridArray, shape: Shape, change: Callable[[jax.Array], jax.Array]
) -> GridArray:
    """A changed logical array, laid out by the policy; every element may move."""
    ctx.moved += x.size * x.dtype.itemsize
    return move(x, ctx.choose(shape, x.dtype, x), change)


# -- spreading ---------------------------------------------------------------------------------


def _spread(ctx: Context, value: Spread, layout: Layout) -> tuple[jax.Array, Scalar | None]:
    """The storage of a spread value in `layout`, and what is known of its padding.

    The source is laid out like a slice of `layout`: grid and tile 1 in every collapsed dim that it
    does not vary along. Then it is broadcast along those, on each device, with no communication.
    """
    if not isinstance(layout, GridLayout) or layout.groups is None or 0 in value.shape:
        there = lay_out(plain(ctx, value), layout.with_oob(0), ctx.device)
        return there.storage, there.layout.oob
    touched = [k for k, group in enumerate(layout.groups) if set(group) & set(value.dims)]
    dims = tuple(sorted({d for k in touched for d in layout.groups[k]} | set(value.dims)))
    thin = thinned(layout, dims, tuple(touched))
    storage, oob = _thin_storage(ctx, value, dims, thin, layout)
    whole = ctx.device.storage_shape(layout)
    rest = [d for k in range(len(layout.grid)) if k not in touched for d in layout.axis_dims(k)]
    known = None if has_padding(layout, ctx.device, rest) else oob
    return lax.with_sharding_constraint(
        lax.broadcast_in_dim(storage, whole, range(len(whole))), ctx.device.sharding(layout)
    ), known


@lru_cache(maxsize=4096)
def thinned(layout: GridLayout, dims: Shape, kept: Shape) -> GridLayout:
    """`layout` for a tensor of dims `dims` only: grid and tile 1 but in collapsed dims `kept`."""
    rows = layout.linear.compose(embedding(layout.ndim, dims)).results
    rank = len(layout.grid)

    def sizes(block: Shape | None) -> Shape | None:
        if block is None:
            return None
        return tuple(n if k + rank - len(block) in kept else 1 for k, n in enumerate(block))

    return layout.replace(
        shape=tuple(layout.shape[d] for d in dims),
        grid=sizes(layout.grid),
        tile=sizes(layout.tile),
        face=sizes(layout.face),
        linear=AffineMap(
            len(dims), tuple(row if k in kept else constant(0) for k, row in enumerate(rows))
        ),
        oob=None,
        tile_format=None,
    )


def _thin_storage(
    ctx: Context, value: Spread, dims: Shape, thin: GridLayout, layout: GridLayout
) -> tuple[jax.Array, Scalar | None]:
    """The source in the thin layout, with slots and sharding as in `layout` where it varies."""
    source, old = value.source, layout_of(value.source)
    at = ctx.device.placement(layout.grid)
    varies = [bool(used) for used in thin.linear.used_dims()]
    after = Placement(
        thin.grid,
        tuple(axes if yes else () for axes, yes in zip(at.axes, varies, strict=True)),
        tuple(n if yes else 1 for n, yes in zip(at.slots, varies, strict=True)),
        tuple(n if yes else 1 for n, yes in zip(at.per_device, varies, strict=True)),
    )
    if old is not None and value.dims == dims and find_route(old, thin) is not None:
        storage = source.storage
        if not nothing_moves(old, thin) or ctx.device.placement(old.core_shape) != after:
            ctx.moved += exchange_bytes(old, thin, ctx.device, after)
            fill = packing.fill_value(old)
            storage = exchanged(old.with_oob(None), thin, ctx.device, after, storage, fill)
        return storage, old.oob
    logical = plain(ctx, source)
    shape = tuple(value.shape[d] for d in dims)
    logical = lax.broadcast_in_dim(logical, shape, tuple(dims.index(d) for d in value.dims))
    physical, oob = packing.pack(logical, thin.with_oob(0)), thin.with_oob(0).oob
    grow = [(0, s - g, 0) for s, g in zip(after.slots, thin.grid, strict=True)]
    grow += [(0, 0, 0)] * (physical.ndim - len(grow))
    storage = lax.pad(physical, jnp.zeros((), physical.dtype), grow)
    return lax.with_sharding_constraint(storage, NamedSharding(ctx.device.fine, after.spec)), oob
