"""Reductions over whole collapsed dims: on storage, padding set to the neutral element first.

Padding is only masked when its value is not known to be neutral already. Dims that share a
collapsed dim with kept ones are moved apart first. Reductions that devices can't share, by a
function of one's own or of single bits, have the reduced dims whole on each core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.array.fitting import fitting, most_bytes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.flops import Rule, per_operand
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Deferred, Local, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import squeezed
from gridlayout.ops.rules.along import run
from gridlayout.ops.rules.extent import Extent, apart, thin_result, without
from gridlayout.sharding.collectives import Collectives, index_of
from gridlayout.sharding.emulate import has_ynnpack

Shape = tuple[int, ...]


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


# XLA on CPUs reduces more elements along a dim in windows of so many, which read what is there.
_AT_ONCE = 32


def reduction(b: Builder, op: Op, value: Value) -> Any:
    """Reduce where the array lies; the other way is to make the reduced dims whole first."""
    ways = [] if op.name in ("argmax", "argmin") or op.out.ndim == 0 else [bitwise]
    return Choice(_in_place, lambda: ways)


def _in_place(b: Builder, op: Op, value: Value) -> Any:
    """Reduce whole collapsed dims on each device, then over the devices along them.

    The result belongs in the operand's grid and tile, a collapsed dim that is reduced away holding
    one element at index 0; until it is wanted there, every device along that dim has a copy. Dims
    that share a collapsed dim with kept ones are moved apart first.
    """
    axes, is_arg = tuple(sorted(op.params["axes"])), op.name in ("argmax", "argmin")
    if op.name in ("reduce_and", "reduce_or") and op.out.dtype != np.bool_:
        return bitwise(b, op, value)  # no collective has it
    if not is_arg:
        # A dim of extent 1 is its own sum, product or extreme.
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
    x, added = apart(b, x, axes)
    target = target if x.spec == own else None
    over = Extent.of(x.spec, axes)
    neutral = dtypes.oob_value(NEUTRAL[op.name](x.dtype), x.dtype)
    x = b.filled(x, neutral, over.along)
    is_all = len(axes) == x.ndim
    out = (
        Replicated((), op.out.dtype)
        if is_all
        else thin_result(over, axes, op.out.dtype, neutral, added)
    )
    thin = _reduced(b, op, x, over, out)
    if not isinstance(out, Sharded):
        return thin
    if op.requested is not None:  # it is read where a program that is chosen as a whole says
        return thin
    whole = without(target or over.layout, axes, op.out.dtype, added)
    most = most_bytes(whole.data_bytes, [target or over.layout], b.device)
    return _placed(b, thin, out, whole, most)


def _reduced(b: Builder, op: Op, x: Value, over: Extent, out: Sharded | Replicated) -> Value:
    """The reduction on each device, and then that of the devices along mesh axes."""
    local = out.local_shape if isinstance(out, Sharded) else out.shape
    fuses = _fuses(b, op, x, over)
    if over.mesh and _all_reduction(op) is lax.psum:
        along = tuple(sorted(over.along))
        specs = [Local(local, op.out.dtype)]
        (part,) = b.run(
            lambda x: [op.bind(x, axes=along)[0].reshape(local)], [x], specs, takes_fused=fuses
        )
        return b.all_reduced(part, over.mesh, out, op.out.dtype)
    kernel, made = (_arg if op.name in ("argmax", "argmin") else _combined)(b, op, over)
    (thin,) = b.run(lambda x: [kernel(x)[0].reshape(local)], [x], [out], made, takes_fused=fuses)
    return thin


def _fuses(b: Builder, op: Op, x: Value, over: Extent) -> bool:
    """Whether XLA makes the operand as it reduces it.

    On CPUs it does so of what is reduced at once, and of arithmetic where it has YNNPACK.
    """
    assert isinstance(x.spec, Sharded)
    if b.device.platform != "cpu" or op.name in ("argmax", "argmin"):
        return b.device.platform != "cpu"
    longest = max((x.spec.local_shape[k] for k in over.along), default=1)
    return longest <= _AT_ONCE or has_ynnpack()


def _placed(b: Builder, thin: Value, out: Sharded, whole: GridLayout, most: int) -> Value:
    """What is left of a reduction where it belongs: where it is, if the device grid puts it there.

    Else it waits until it is wanted: by default on these cores as the device grid places them, or
    on the whole grid, whichever takes less.
    """
    if out.placement == b.placement(out.layout):
        return thin
    trial = Builder(b.env, [out])
    ways = [out.layout.with_oob(None), *fitting(whole, most, b.device)]
    home = trial.nearest(Value(out, 0), ways).layout
    assert isinstance(home, GridLayout)
    return thin.seen(Deferred(out, tuple(range(len(out.shape))), out.shape, home))


def bitwise(b: Builder, op: Op, value: Value) -> Any:
    """A reduction of unsharded dims, as of single bits it must be."""
    axes = tuple(sorted(op.params["axes"]))
    fn = op.bound(axes=tuple(range(len(axes))))
    return run(b, op, [(value, axes)], fn, out_axes=[()])


def own_function(b: Builder, op: Op, *values: Value) -> Any:
    """`lax.reduce` by a function of one's own, of one array or of several together."""
    count, axes = len(values) // 2, tuple(sorted(op.params["dimensions"]))
    fn = op.bound(dimensions=tuple(range(len(axes))))
    operands = [(x, axes) for x in values[:count]]
    starts = [b.replicated(x) for x in values[count:]]
    return run(b, op, operands, fn, *starts, out_axes=[()] * count)


# The all-reduce of each, for types that have it.
_ALL_REDUCE: dict[str, Callable[..., Any]] = {
    "reduce_sum": lax.psum,
    "reduce_max": lax.pmax,
    "reduce_min": lax.pmin,
    "reduce_and": lambda x, axes: lax.pmin(x.astype(np.uint8), axes).astype(bool),
    "reduce_or": lambda x, axes: lax.pmax(x.astype(np.uint8), axes).astype(bool),
}


def _combined(b: Builder, op: Op, over: Extent) -> tuple[Callable[..., Any], Collectives]:
    """A device's reduction, and then that of the devices along mesh axes; and what these send."""
    made, reduce = b.collectives(), _all_reduction(op)
    size = over.part * op.out.dtype.itemsize
    made.all_reduce(over.mesh, size) if reduce else made.all_gather(over.mesh, size)

    def kernel(x: jax.Array) -> list[Any]:
        (out,) = op.bind(x, axes=tuple(sorted(over.along)))
        if not over.mesh:
            return [out]
        if reduce is not None:
            return [reduce(out, over.mesh)]
        return op.bind(lax.all_gather(out, over.mesh), axes=(0,))

    return kernel, made


def _all_reduction(op: Op) -> Callable[..., Any] | None:
    """What reduces devices' parts along mesh axes; None where these are gathered first.

    As of complex extremes, and of elements that do not fill whole bytes.
    """
    dtype = op.out.dtype
    ordered = not jnp.issubdtype(dtype, jnp.complexfloating) or op.name == "reduce_sum"
    return (
        _ALL_REDUCE.get(op.name) if ordered and dtype.itemsize * 8 == dtypes.bits(dtype) else None
    )


def _arg(b: Builder, op: Op, over: Extent) -> tuple[Callable[..., Any], Collectives]:
    """Where the extreme is along a collapsed dim, on a device and then among all."""
    layout, placement, (k, *_) = over.layout, over.placement, over.collapsed
    rank = len(placement.per_device) + len(layout.local_shape)
    own = list(layout.axis_dims(k))
    kept = [d for d in range(rank) if d not in over.along]
    rest = [d for d in over.along if d not in own]
    # A type that counts the elements need not count the positions, which are more.
    index = {"index_dtype": np.dtype(np.int32)}
    made = b.collectives().all_gather(over.mesh, over.part * layout.dtype.itemsize)
    made = made.all_gather(over.mesh, over.part * 4)

    def kernel(x: jax.Array) -> list[Any]:
        flat = x.transpose([*kept, *own, *rest])
        flat = flat[(..., *(0,) * len(rest))] if rest else flat
        flat = flat.reshape(*(x.shape[d] for d in kept), -1)
        (at,) = op.bind(flat, axes=(flat.ndim - 1,), **index)
        inside = np.int32(prod(x.shape[d] for d in own[1:]))
        first = index_of(placement.axes[k]) * placement.per_device[k]
        found = (first + lax.div(at, inside)) * layout.shard_shape[k] + lax.rem(at, inside)
        if over.mesh:
            extreme = lax.reduce_max if op.name == "argmax" else lax.reduce_min
            best = lax.all_gather(extreme(flat, (flat.ndim - 1,)), over.mesh)
            (device,) = op.bind(best, axes=(0,), **index)  # the first of those that have it
            chosen = lax.broadcasted_iota(np.int32, best.shape, 0) == device[None]
            found = (lax.all_gather(found, over.mesh) * chosen.astype(np.int32)).sum(0)
        return [found.astype(op.params["index_dtype"])]

    return kernel, made


@dataclass(frozen=True)
class _Reduction:
    """A reduction as a primitive, its parameters told apart from those of other versions of JAX."""

    name: str
    reduce: Callable[..., Any]
    multiple_results: bool = False

    def bind(self, x: jax.Array, axes: Shape) -> Any:
        return self.reduce(x, axes)


def _over_mapped(primitive: _Reduction) -> Rule:
    """A collective over an axis that `jax.vmap` named: a reduction of the mapped dim."""

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
    "psum": _over_mapped(_Reduction("reduce_sum", lax.reduce_sum)),
    "pmax": _over_mapped(_Reduction("reduce_max", lax.reduce_max)),
    "pmin": _over_mapped(_Reduction("reduce_min", lax.reduce_min)),
}
