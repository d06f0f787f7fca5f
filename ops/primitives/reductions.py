"""Reductions of whole collapsed dims, on the storage, with padding set to the neutral element.

Padding is masked only if it is not known to be neutral already. If a collapsed dim joins reduced
and other dims, the array is relaid out first, so that they are separate. Reductions that can't be
all-reduced, by a user's function or bit by bit, run with the reduced dims unsharded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.array.fitting import fitting, most_bytes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.factors import SUMMED, WHOLE, Factors, Numbering, along, dims_of
from gridlayout.ops.decisions.flops import per_operand
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.reshapes import squeezed
from gridlayout.ops.decisions.specs import Deferred, Local, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import Padding
from gridlayout.ops.primitives.along import mapped
from gridlayout.ops.primitives.extreme_places import places_of, places_workspace
from gridlayout.ops.primitives.in_windows import WINDOW, InWindows
from gridlayout.ops.primitives.reduced_dims import ReducedDims, result_spec, separate, without_dims
from gridlayout.sharding.collectives import Collectives
from gridlayout.sharding.extremes import pmax, pmin, sent_dtype
from gridlayout.sharding.meshes.emulate import has_ynnpack


def _minimum_of(dtype: Any) -> Any:
    """Return the minimum of a dtype: the neutral element of max."""
    if dtype == np.bool_:
        return False
    if jnp.issubdtype(dtype, jnp.inexact):
        return dtypes.oob_value(-np.inf, np.dtype(dtype))  # some types have no infinity
    return int(jnp.iinfo(dtype).min)


def _maximum_of(dtype: Any) -> Any:
    """Return the maximum of a dtype: the neutral element of min."""
    if dtype == np.bool_:
        return True
    if jnp.issubdtype(dtype, jnp.inexact):
        return dtypes.oob_value(np.inf, np.dtype(dtype))
    return int(jnp.iinfo(dtype).max)


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


def reduction(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reduction: in place, or else with the reduced dims unsharded."""
    ways = [] if op.name in ("argmax", "argmin") or op.out.ndim == 0 else [mapped]
    return Choice(_in_place, lambda: ways)


def _in_place(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a reduction of collapsed dims on each device, then over the mesh axes along them.

    The target layout of the result has the operand's grid and tile, and one element at index 0 of
    each reduced collapsed dim. Until a consumer requests that layout, all devices along those dims
    hold copies.
    """
    axes, is_arg = tuple(sorted(op.params["axes"])), op.name in ("argmax", "argmin")
    if op.name in ("reduce_and", "reduce_or") and op.out.dtype != np.bool_:
        return mapped(b, op, value)  # no collective has it
    if not is_arg:
        # Reducing a dim of extent 1 changes nothing.
        kept = [d for d in range(value.ndim) if d not in axes or value.shape[d] != 1]
        axes = tuple(kept.index(d) for d in axes if d in kept)
        value = squeezed(b, value, kept)
    target = None
    if isinstance(value.spec, Deferred) and value.spec.is_unbroadcast:
        target = value.spec.target_layout
    x = b.as_sharded(value) if target is None else value.with_spec(value.spec.source)  # type: ignore[union-attr]
    if not axes:
        return value if x.ndim and target is not None else x if x.ndim else b.replicated(x)
    own = x.spec
    x, added = separate(b, x, axes)
    target = target if x.spec == own else None
    reduced = ReducedDims.of(x.spec, axes)
    neutral = dtypes.oob_value(NEUTRAL[op.name](x.dtype), x.dtype)
    x = b.with_padding(x, neutral, reduced.along)
    is_all = len(axes) == x.ndim
    out = (
        Replicated((), op.out.dtype)
        if is_all
        else result_spec(reduced, axes, op.out.dtype, neutral, added)
    )
    thin = _reduce_parts(b, op, x, reduced, out)
    if not isinstance(out, Sharded):
        return thin
    if op.requested is not None:  # the plan of the whole program places it
        return thin
    whole = without_dims(target or reduced.layout, axes, op.out.dtype, added)
    most = most_bytes(whole.data_bytes, [target or reduced.layout], b.device)
    return _in_tiles_of(b, own, _relaid_out(b, thin, out, whole, most))


def _in_tiles_of(b: Builder, own: Any, thin: Value) -> Value:
    """Return the result in tiles, if the operand was in tiles and was reduced without them."""
    spec = thin.spec
    if isinstance(spec, Deferred) and spec.target_layout is not None:
        there = b.sharded(spec.target_layout)
        tiled = b.in_tiles(there, own.layout).layout
        assert isinstance(tiled, GridLayout)
        return thin.with_spec(replace(spec, target_layout=tiled))
    return b.as_spec(thin, b.in_tiles(spec, own.layout)) if isinstance(spec, Sharded) else thin


def _reduce_parts(
    b: Builder, op: Op, x: Value, reduced: ReducedDims, out: Sharded | Replicated
) -> Value:
    """Append the reduction on each device, then over mesh axes."""
    local, made = out.local_shape, b.collectives()
    is_arg = op.name in ("argmax", "argmin")
    is_summed = bool(reduced.mesh) and _all_reduce_of(op) is lax.psum
    if is_arg:
        combine, made = places_of(b, op, reduced)
    elif is_summed:
        combine = lambda x: x  # noqa: E731
    else:
        combine, made = _combine(b, op, reduced)

    def run(reduce: Callable[[jax.Array], jax.Array], x: jax.Array) -> list[Any]:
        return [combine(reduce(x)).reshape(local)]

    def unset(padding: Padding) -> Callable[..., Any] | None:
        found = InWindows.of(op, padding, order) if padding.along == along else None
        return None if found is None else partial(run, found)

    assert isinstance(x.spec, Sharded)
    along = tuple(sorted(reduced.along))
    order = _in_order(b, along, x.spec.local_shape)
    reduce = (lambda x: x) if is_arg else partial(_reduced, b, op, order)
    sets = None if is_arg or b.device.platform != "cpu" else unset
    fields: dict[str, Any] = {"takes_fused": _fuses(b, op, x, reduced), "unset": sets}
    if is_arg:
        fields["workspace"] = partial(places_workspace, b, reduced, x.spec)
    spec = Local(local, op.out.dtype) if is_summed else out
    (part,) = b.run(partial(run, reduce), [x], [spec], made, **fields)
    return b.all_reduced(part, reduced.mesh, out, op.out.dtype) if is_summed else part


def _fuses(b: Builder, op: Op, x: Value, reduced: ReducedDims) -> bool:
    """Whether XLA fuses the operand's producer into the reduction.

    On CPUs it does if the reduced dims fit one window, or if XLA has YNNPACK.
    """
    assert isinstance(x.spec, Sharded)
    if b.device.platform != "cpu" or op.name in ("argmax", "argmin"):
        return True
    longest = max((x.spec.local_shape[k] for k in reduced.along), default=1)
    return longest <= WINDOW or has_ynnpack()


def _in_order(b: Builder, axes: Shape, shape: Shape) -> Shape:
    """Return the dims of more than one element; the first one is reduced before the others.

    XLA on CPUs computes elements one by one where several dims are reduced, but many at once along
    one dim that is not the last.
    """
    wide = [d for d in axes if shape[d] > 1]
    inner = [d for d in wide if d < len(shape) - 1]
    if b.device.platform == "cpu" and inner:
        wide.remove(inner[-1])
        wide.insert(0, inner[-1])
    return tuple(wide)


def _reduced(b: Builder, op: Op, order: Shape, x: jax.Array) -> Any:
    """Return the reduction of dims of a device's part; those of one element may stay.

    On CPUs the first one is reduced behind a barrier: XLA would join both reductions.
    """
    if b.device.platform == "cpu" and len(order) > 1 and order[0] < x.ndim - 1:
        first, *rest = order
        x = lax.optimization_barrier(op.bind(x, axes=(first,))[0])
        order = tuple(sorted(d - (d > first) for d in rest))
    return op.bind(x, axes=tuple(sorted(order)))[0]


def _relaid_out(b: Builder, thin: Value, out: Sharded, whole: GridLayout, most: int) -> Value:
    """Return the result as it is if its placement is the default, else deferred.

    The target layout of a deferred result is its own layout in the default placement, or the whole
    grid, whichever takes less time.
    """
    grid = out.layout.core_shape
    if b.device.placements.has(grid) and out.placement == b.device.placement(grid):
        return thin
    trial = Builder(b.env, [out])
    ways = [out.layout.with_oob(None), *fitting(whole, most, b.device)]
    target = trial.nearest(Value(out, 0), ways).layout
    assert isinstance(target, GridLayout)
    return thin.with_spec(Deferred(out, tuple(range(len(out.shape))), out.shape, target))


# The all-reduce of each primitive, if there is one.
_ALL_REDUCE: dict[str, Callable[..., Any]] = {
    "reduce_sum": lax.psum,
    "reduce_max": pmax,
    "reduce_min": pmin,
    "reduce_and": lambda x, axes: lax.pmin(x.astype(np.uint8), axes).astype(bool),
    "reduce_or": lambda x, axes: lax.pmax(x.astype(np.uint8), axes).astype(bool),
}


def _combine(
    b: Builder, op: Op, reduced: ReducedDims
) -> tuple[Callable[[jax.Array], jax.Array], Collectives]:
    """Return the function that combines devices' reductions, and its collectives."""
    made, reduce = b.collectives(), _all_reduce_of(op)
    sent = sent_dtype(op.out.dtype) if reduce in (pmax, pmin) else op.out.dtype
    size = dtypes.nbytes(reduced.part, sent)
    made.all_reduce(reduced.mesh, size) if reduce else made.all_gather(reduced.mesh, size)

    def combine(x: jax.Array) -> jax.Array:
        if not reduced.mesh:
            return x
        if reduce is not None:
            return cast(jax.Array, reduce(x, reduced.mesh))
        return cast(jax.Array, op.bind(lax.all_gather(x, reduced.mesh), axes=(0,))[0])

    return combine, made


def _all_reduce_of(op: Op) -> Callable[..., Any] | None:
    """Return the all-reduce of an op; None if partial results have to be gathered instead.

    That is so for extremes of complex numbers and for elements of less than a byte.
    """
    dtype = op.out.dtype
    ordered = not jnp.issubdtype(dtype, jnp.complexfloating) or op.name == "reduce_sum"
    return (
        _ALL_REDUCE.get(op.name) if ordered and dtype.itemsize * 8 == dtypes.bits(dtype) else None
    )


@dataclass(frozen=True)
class _Reduction:
    """A reduction as a primitive whose parameters are the same for all versions of JAX."""

    name: str
    reduce: Callable[..., Any]
    multiple_results: bool = False

    def bind(self, x: jax.Array, axes: Shape) -> Any:
        return self.reduce(x, axes)


def _over_mapped_axis(primitive: _Reduction) -> Record:
    """Return the record of a collective over an axis name of `jax.vmap`: it reduces that dim."""

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

    return Record((rule,), per_operand, _mapped)


def _mapped(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of a collective over an axis name of `jax.vmap`; else all are whole."""
    made, axes = Numbering(ins, outs), params["axes"]
    if len(ins) == 1 and all(isinstance(axis, int) for axis in axes):
        return _summed({"axes": axes}, ins, outs)
    return made.factors()


def _record(name: str) -> Record:
    return Record(
        *((reduction,), per_operand, _summed),
        neutral=NEUTRAL[name],
        takes_fused=True,
    )


_summed = along(dims_of("axes", SUMMED), keeps=False)
REDUCTIONS: dict[str, Record] = {
    **{name: _record(name) for name in NEUTRAL},
    # No collective combines the partial results of these two.
    "reduce_xor": Record(
        *((mapped,), per_operand, along(dims_of("axes", WHOLE), keeps=False)),
    ),
    "reduce": Record(
        *((mapped,), per_operand, along(dims_of("dimensions", WHOLE), keeps=False)),
    ),
    "psum": _over_mapped_axis(_Reduction("reduce_sum", lax.reduce_sum)),
    "pmax": _over_mapped_axis(_Reduction("reduce_max", lax.reduce_max)),
    "pmin": _over_mapped_axis(_Reduction("reduce_min", lax.reduce_min)),
}
