"""Reductions of whole collapsed dims, on the storage, with padding set to the neutral element.

Padding is masked only if it is not known to be neutral already. If a collapsed dim joins reduced
and other dims, the array is relaid out first, so that they are separate. Reductions that can't be
all-reduced, by a user's function or bit by bit, run with the reduced dims unsharded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, constant, dim, embedding, linearized
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.array.fitting import fitting, most_bytes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.deferred import thinned
from gridlayout.ops.decisions.flops import Rule, per_operand
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Deferred, Local, Replicated, Sharded, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import squeezed
from gridlayout.ops.moves.padding import has_padding
from gridlayout.ops.rules.along import run
from gridlayout.sharding.collectives import Axes, Collectives, index_of
from gridlayout.sharding.emulate import has_ynnpack
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


def _minimum_of(dtype: Any) -> Any:
    """Return the minimum of a dtype: the neutral element of max."""
    if dtype == np.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).min)


def _maximum_of(dtype: Any) -> Any:
    """Return the maximum of a dtype: the neutral element of min."""
    if dtype == np.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).max)


NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "reduce_sum": lambda dtype: 0,
    "reduce_prod": lambda dtype: 1,
    "reduce_max": _minimum_of,
    "reduce_min": _maximum_of,
    "reduce_and": lambda dtype: True,
    "reduce_or": lambda dtype: False,
    "argmax": _minimum_of,
    "argmin": _maximum_of,
}


# XLA on CPUs reduces longer dims in windows of this many elements, which read a stored operand.
_WINDOW = 32


def reduction(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reduction: in place, or else with the reduced dims unsharded."""
    ways = [] if op.name in ("argmax", "argmin") or op.out.ndim == 0 else [reduce_unsharded]
    return Choice(_in_place, lambda: ways)


def _in_place(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reduction of collapsed dims on each device, then over the mesh axes along them.

    The target layout of the result has the operand's grid and tile, and one element at index 0 of
    each reduced collapsed dim. Until a consumer requests that layout, all devices along those dims
    hold copies.
    """
    axes, is_arg = tuple(sorted(op.params["axes"])), op.name in ("argmax", "argmin")
    if op.name in ("reduce_and", "reduce_or") and op.out.dtype != np.bool_:
        return reduce_unsharded(b, op, value)  # no collective has it
    if not is_arg:
        # Reducing a dim of extent 1 changes nothing.
        kept = [d for d in range(value.ndim) if d not in axes or value.shape[d] != 1]
        axes = tuple(kept.index(d) for d in axes if d in kept)
        value = squeezed(b, value, kept)
    target = None
    if isinstance(value.spec, Deferred) and value.spec.is_whole:
        target = value.spec.target_layout
    x = b.on_cores(value) if target is None else value.seen(value.spec.source)  # type: ignore[union-attr]
    if not axes:
        return value if x.ndim and target is not None else x if x.ndim else b.replicated(x)
    own = x.spec
    x, added = _separate(b, x, axes)
    target = target if x.spec == own else None
    extent = _Extent.of(x.spec, axes)
    neutral = dtypes.oob_value(NEUTRAL[op.name](x.dtype), x.dtype)
    x = b.filled(x, neutral, extent.along)
    is_all = len(axes) == x.ndim
    out = (
        Replicated((), op.out.dtype)
        if is_all
        else _result_spec(extent, axes, op.out.dtype, neutral, added)
    )
    thin = _reduce_parts(b, op, x, extent, out)
    if not isinstance(out, Sharded):
        return thin
    if op.requested is not None:  # the plan of the whole program places it
        return thin
    whole = _without_dims(target or extent.layout, axes, op.out.dtype, added)
    most = most_bytes(whole.data_bytes, [target or extent.layout], b.device)
    return _relaid_out(b, thin, out, whole, most)


def _reduce_parts(
    b: Builder, op: Op, x: Value, extent: _Extent, out: Sharded | Replicated
) -> Value:
    """Append the reduction on each device, then over mesh axes."""
    local = out.local_shape if isinstance(out, Sharded) else out.shape
    fuses = _fuses(b, op, x, extent)
    if extent.mesh and _all_reduce_of(op) is lax.psum:
        along = tuple(sorted(extent.along))
        specs = [Local(local, op.out.dtype)]
        (part,) = b.run(
            lambda x: [op.bind(x, axes=along)[0].reshape(local)], [x], specs, takes_fused=fuses
        )
        return b.all_reduced(part, extent.mesh, out, op.out.dtype)
    kernel, made = (_arg if op.name in ("argmax", "argmin") else _reduce_and_combine)(b, op, extent)
    (thin,) = b.run(lambda x: [kernel(x)[0].reshape(local)], [x], [out], made, takes_fused=fuses)
    return thin


def _fuses(b: Builder, op: Op, x: Value, extent: _Extent) -> bool:
    """Whether XLA fuses the operand's producer into the reduction.

    On CPUs it does if the reduced dims fit one window, or if XLA has YNNPACK.
    """
    assert isinstance(x.spec, Sharded)
    if b.device.platform != "cpu" or op.name in ("argmax", "argmin"):
        return b.device.platform != "cpu"
    longest = max((x.spec.local_shape[k] for k in extent.along), default=1)
    return longest <= _WINDOW or has_ynnpack()


def _relaid_out(b: Builder, thin: Value, out: Sharded, whole: GridLayout, most: int) -> Value:
    """Return the result as it is if its placement is the default, else deferred.

    The target layout of a deferred result is its own layout in the default placement, or the whole
    grid, whichever takes less time.
    """
    if out.placement == b.placement(out.layout):
        return thin
    trial = Builder(b.env, [out])
    ways = [out.layout.with_oob(None), *fitting(whole, most, b.device)]
    target = trial.nearest(Value(out, 0), ways).layout
    assert isinstance(target, GridLayout)
    return thin.seen(Deferred(out, tuple(range(len(out.shape))), out.shape, target))


@dataclass(frozen=True)
class _Extent:
    """What a reduction reduces.

    collapsed: the reduced collapsed dims. along: the reduced dims of a device's part. mesh: the
    mesh axes to reduce over.
    """

    layout: GridLayout
    placement: Placement
    collapsed: tuple[int, ...]
    along: tuple[int, ...]
    mesh: Axes

    @classmethod
    def of(cls, spec: Spec, axes: tuple[int, ...]) -> _Extent:
        """Return the extent of logical dims that no collapsed dim joins with other dims."""
        assert isinstance(spec, Sharded)
        layout, placement = spec.layout.grouped, spec.placement
        assert layout is not None
        reduced = tuple(k for k, group in enumerate(layout.groups) if set(group) & set(axes))
        along = tuple(d for k in reduced for d in layout.axis_dims(k))
        mesh = tuple(a for k in reduced for a in placement.axes[k])
        if len(axes) == layout.ndim:
            # Grid dims that depend on no logical dim are reduced too: cores other than the first
            # must be neutral there. Their axes come first, so that the first core stays first.
            unfed = [k for k in range(len(layout.grid)) if k not in reduced]
            mesh = (*(a for k in unfed for a in placement.axes[k]), *mesh)
            along = tuple(range(len(spec.local_shape)))
        return cls(layout, placement, reduced, along, mesh)

    @property
    def part(self) -> int:
        """The number of elements of one device's result."""
        shape = (*self.placement.per_device, *self.layout.local_shape)
        return prod(n for d, n in enumerate(shape) if d not in self.along)


def reduce_unsharded(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reduction with the reduced dims unsharded, as bitwise reductions require."""
    axes = tuple(sorted(op.params["axes"]))
    fn = op.bound(axes=tuple(range(len(axes))))
    return run(b, op, [(value, axes)], fn, out_axes=[()])


def custom_reduction(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.reduce` by the user's function, of one or several arrays."""
    count, axes = len(values) // 2, tuple(sorted(op.params["dimensions"]))
    fn = op.bound(dimensions=tuple(range(len(axes))))
    operands = [(x, axes) for x in values[:count]]
    starts = [b.replicated(x) for x in values[count:]]
    return run(b, op, operands, fn, *starts, out_axes=[()] * count)


# The all-reduce of each primitive, if there is one.
_ALL_REDUCE: dict[str, Callable[..., Any]] = {
    "reduce_sum": lax.psum,
    "reduce_max": lax.pmax,
    "reduce_min": lax.pmin,
    "reduce_and": lambda x, axes: lax.pmin(x.astype(np.uint8), axes).astype(bool),
    "reduce_or": lambda x, axes: lax.pmax(x.astype(np.uint8), axes).astype(bool),
}


def _reduce_and_combine(
    b: Builder, op: Op, extent: _Extent
) -> tuple[Callable[..., Any], Collectives]:
    """Return the kernel of a reduction on a device and over mesh axes, and its collectives."""
    made, reduce = b.collectives(), _all_reduce_of(op)
    size = extent.part * op.out.dtype.itemsize
    made.all_reduce(extent.mesh, size) if reduce else made.all_gather(extent.mesh, size)

    def kernel(x: jax.Array) -> list[Any]:
        (out,) = op.bind(x, axes=tuple(sorted(extent.along)))
        if not extent.mesh:
            return [out]
        if reduce is not None:
            return [reduce(out, extent.mesh)]
        return op.bind(lax.all_gather(out, extent.mesh), axes=(0,))

    return kernel, made


def _all_reduce_of(op: Op) -> Callable[..., Any] | None:
    """Return the all-reduce of an op; None if partial results have to be gathered instead.

    That is so for extremes of complex numbers and for elements of less than a byte.
    """
    dtype = op.out.dtype
    ordered = not jnp.issubdtype(dtype, jnp.complexfloating) or op.name == "reduce_sum"
    return (
        _ALL_REDUCE.get(op.name) if ordered and dtype.itemsize * 8 == dtypes.bits(dtype) else None
    )


def _arg(b: Builder, op: Op, extent: _Extent) -> tuple[Callable[..., Any], Collectives]:
    """Return the kernel of argmax or argmin on a device and over mesh axes, and its collectives."""
    layout, placement, (k, *_) = extent.layout, extent.placement, extent.collapsed
    rank = len(placement.per_device) + len(layout.local_shape)
    own = list(layout.axis_dims(k))
    kept = [d for d in range(rank) if d not in extent.along]
    rest = [d for d in extent.along if d not in own]
    # The op's index type may be too small for positions in the storage, which include padding.
    index = {"index_dtype": np.dtype(np.int32)}
    made = b.collectives().all_gather(extent.mesh, extent.part * layout.dtype.itemsize)
    made = made.all_gather(extent.mesh, extent.part * 4)

    def kernel(x: jax.Array) -> list[Any]:
        flat = x.transpose([*kept, *own, *rest])
        flat = flat[(..., *(0,) * len(rest))] if rest else flat
        flat = flat.reshape(*(x.shape[d] for d in kept), -1)
        (at,) = op.bind(flat, axes=(flat.ndim - 1,), **index)
        inside = np.int32(prod(x.shape[d] for d in own[1:]))
        first = index_of(placement.axes[k]) * placement.per_device[k]
        found = (first + lax.div(at, inside)) * layout.shard_shape[k] + lax.rem(at, inside)
        if extent.mesh:
            extreme = lax.reduce_max if op.name == "argmax" else lax.reduce_min
            best = lax.all_gather(extreme(flat, (flat.ndim - 1,)), extent.mesh)
            (device,) = op.bind(best, axes=(0,), **index)  # the first device that has the extreme
            chosen = lax.broadcasted_iota(np.int32, best.shape, 0) == device[None]
            found = (lax.all_gather(found, extent.mesh) * chosen.astype(np.int32)).sum(0)
        return [found.astype(op.params["index_dtype"])]

    return kernel, made


def _result_spec(
    extent: _Extent, axes: tuple[int, ...], dtype: Any, neutral: Any, added: int
) -> Sharded:
    """Return the spec of a result: the layout without the reduced dims, on one core along them.

    added: the number of leading grid dims that `_separate` added. They are removed.
    """
    layout, placement = extent.layout, extent.placement
    was_neutral = repr(layout.oob) == repr(neutral) and dtype == layout.dtype
    kept = [k for k in range(len(layout.grid)) if k not in extent.collapsed]
    others = [d for k in kept for d in layout.axis_dims(k)]
    is_known = was_neutral or not has_padding(layout, placement, others)
    thin = thinned(
        _without_dims(layout, axes, dtype, added),
        tuple(range(layout.ndim - len(axes))),
        tuple(k - added for k in kept),
    )
    rows = range(added, len(layout.grid))
    return Sharded(
        thin.with_oob((neutral if was_neutral else 0) if is_known else None),
        Placement(
            thin.grid,
            tuple(placement.axes[k] if k in kept else () for k in rows),
            tuple(placement.slots[k] if k in kept else 1 for k in rows),
            tuple(placement.per_device[k] if k in kept else 1 for k in rows),
        ),
    )


@lru_cache(maxsize=4096)
def _without_dims(layout: GridLayout, axes: tuple[int, ...], dtype: Any, added: int) -> GridLayout:
    """Return the layout without the dims `axes` and without the first `added` grid dims."""
    kept = [d for d in range(layout.ndim) if d not in axes]
    linear = layout.linear.compose(embedding(layout.ndim, kept))
    removed = {k for k, group in enumerate(layout.groups) if set(group) & set(axes)}
    rows = tuple(constant(0) if k in removed else row for k, row in enumerate(linear.results))
    # The row alignment, in elements, stays if the last collapsed dim does.
    last = len(layout.grid) - 1
    layout = layout.with_dtype(dtype)
    return layout.replace(
        shape=tuple(layout.shape[d] for d in kept),
        row_alignment=None if last in removed else layout.row_alignment,
        grid=layout.grid[added:],
        linear=AffineMap(len(kept), rows[added:]),
        shard_shape=tuple(
            None if k in removed else n for k, n in enumerate(layout.stated_shard) if k >= added
        ),
        oob=None,
        tile_format=None,
    )


def _separate(b: Builder, x: Value, axes: tuple[int, ...]) -> tuple[Value, int]:
    """Return `x` in a layout whose collapsed dims are reduced wholly or not at all.

    Also return the number of leading grid dims that were added for that.
    """
    assert x.layout is not None
    layout = x.layout.grouped
    if layout is None:
        layout = b.env.choose_grid(x.shape, x.dtype, x.layout)
        x = b.relayout(x, layout)
    if layout.groups and _is_separate(layout, axes):
        return x, 0
    return b.relayout(x, _separated_layout(layout, axes)), len(axes)


def _is_separate(layout: GridLayout, axes: tuple[int, ...]) -> bool:
    """Whether each collapsed dim is reduced wholly, in logical order from 0, or not at all.

    The order does not matter if all dims of the array are reduced, and these are several.
    """
    if not set(axes) <= {d for group in layout.groups for d in group}:
        return False
    for k, group in enumerate(layout.groups):
        wide = {d for d in group if layout.shape[d] > 1}
        if set(group) & set(axes) and not set(group) <= set(axes):
            return False
        if set(group) & set(axes) and (
            len(wide) > 1 or layout.linear.results[k] not in map(dim, group)
        ):
            return len(axes) == layout.ndim and len(axes) > 1
    return True


@lru_cache(maxsize=4096)
def _separated_layout(layout: GridLayout, axes: tuple[int, ...]) -> GridLayout:
    """Return a layout with a leading grid dim of one core per reduced dim.

    The other dims are on the grid dims of `layout`.
    """
    rank = len(layout.grid)
    kept = [d for d in range(layout.ndim) if d not in axes]
    count = max(len(kept) - rank + 1, 0)
    rows = [constant(0)] * max(rank - len(kept), 0)
    rows += [linearized(layout.shape, kept[:count])] if count else []
    rows += [dim(d) for d in kept[count:]]
    linear = AffineMap(layout.ndim, (*(dim(d) for d in axes), *rows))
    return GridLayout(
        *(layout.shape, layout.dtype, (1,) * len(axes) + layout.grid, layout.tile),
        linear=linear,
        memory_space=layout.memory_space,
        face=layout.face,
    )


@dataclass(frozen=True)
class _Reduction:
    """A reduction as a primitive whose parameters are the same for all versions of JAX."""

    name: str
    reduce: Callable[..., Any]
    multiple_results: bool = False

    def bind(self, x: jax.Array, axes: Shape) -> Any:
        return self.reduce(x, axes)


def _over_mapped_axis(primitive: _Reduction) -> Rule:
    """Return the rule of a collective over an axis name of `jax.vmap`: it reduces that dim."""

    def rule(b: Builder, op: Op, *values: Value) -> Any:
        axes = tuple(op.params["axes"])
        if not all(isinstance(axis, int) for axis in axes):
            return None
        found = []
        for value, out in zip(values, op.outs, strict=True):
            own = Op(primitive, {"axes": axes}, (Aval(value.shape, value.dtype),), (out,))
            made = _in_place(b, own, value) if value.layout is not None else None
            if made is None:
                whole = b.replicated(value)
                spec = Replicated(out.shape, out.dtype)
                made = b.run(lambda x: [primitive.reduce(x, axes)], [whole], [spec])
            found.append(made[0] if isinstance(made, list) else made)
        return found

    return Rule(rule, per_operand)


OVER_MAPPED: dict[str, Rule] = {
    "psum": _over_mapped_axis(_Reduction("reduce_sum", lax.reduce_sum)),
    "pmax": _over_mapped_axis(_Reduction("reduce_max", lax.reduce_max)),
    "pmin": _over_mapped_axis(_Reduction("reduce_min", lax.reduce_min)),
}
