"""Rules for values that depend on logical indices only: positions, masks, tables, random numbers.

Such a value is deferred until an operation requests it in a layout. Each device then computes the
elements of its part.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.reshapes import at_place, broadcast, of_indices, reshape_map, squeezed
from gridlayout.ops.decisions.specs import (
    Deferred,
    Indexed,
    Replicated,
    Sharded,
    indexed,
    is_array_deferred,
    is_indexed,
    is_of_keys,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.elementwise import computed, full, grown
from gridlayout.ops.primitives.keys import many_keys, unwrapped
from gridlayout.ops.primitives.random import random_bits
from gridlayout.ops.primitives.shapes import broadcast_in_dim, transpose

# The least extent that 32-bit integers can't index, and the most parts of a concatenation,
# as each device computes all parts.
_MOST, _PARTS = 2**31, 4


def deferred_result(b: Builder, op: Op, *values: Value) -> Any:
    """Return the deferred result of an op whose operands have no layout; None to compute it now."""
    if len(op.outs) != 1 or not op.out.shape or not 0 < max(op.out.shape) < _MOST:
        return None
    if 0 in op.out.shape:
        return None
    if is_of_keys(op.out):
        return _keys(b, op, *values)
    if op.name == "iota":
        return _iota(b, op)
    if op.name == "random_bits":
        return random_bits(b, op, *values)
    if op.name == "random_unwrap":
        return unwrapped(b, op, *values)
    if b.record.is_elementwise or (op.name == "bitcast_convert_type" and _keeps_width(op)):
        return _elementwise(b, op, values)
    rule = _VIEWS.get(op.name)
    if rule is None or not any(is_indexed(value.spec) for value in values):
        return None
    return rule(b, op, *values)


def _keys(b: Builder, op: Op, *values: Value) -> Value | None:
    """Return many keys, or a view of deferred keys, deferred; else None."""
    rule = _VIEWS.get(op.name)
    if rule is None or rule is _concatenate or not is_indexed(values[0].spec):
        return many_keys(b, op, *values)
    return rule(b, op, *values)


# -- positions -------------------------------------------------------------------------------------


def _iota(b: Builder, op: Op) -> Value:
    dimension, dtype = op.params["dimension"], op.out.dtype

    def make(b: Builder, place: Place) -> Value:
        def run() -> list[Any]:
            (index,) = place.index()
            return [jnp.broadcast_to(lax.convert_element_type(index, dtype), place.local_shape)]

        return b.fused(run, [], [place.spec(dtype)])[0]

    positions = b.deferred(make, [], (op.out.shape[dimension],), dtype)
    return broadcast(b, positions, op.out.shape, (dimension,))


# -- elementwise -----------------------------------------------------------------------------------


def _keeps_width(op: Op) -> bool:
    return op.out.ndim == op.ins[0].ndim


def _elementwise(b: Builder, op: Op, values: tuple[Value, ...]) -> Value | None:
    """Return a deferred result, computed in each place that requests it, or None.

    If all operands are numbers, the result is a number.
    """
    shape = op.out.shape
    wide = [grown(b, value, shape) for value in values]
    if all(x.ndim == 0 or _is_number(x) for x in wide):
        return _number(b, op, wide)
    if not any(is_array_deferred(x.spec) for x in wide):
        return None
    if (thin := _over_sources(b, op, wide)) is not None:
        return thin

    record = b.record

    def make(b: Builder, place: Place, *values: Value) -> Value:
        operands = [at_place(b, value, place) for value in values]
        spec = place.spec(op.out.dtype)
        if isinstance(spec, Sharded):
            return computed(b, op, operands, spec, record)[0]

        def run(*arrays: Any) -> list[Any]:
            pairs = zip(arrays, op.ins, strict=True)
            return op.bind(*(full(jnp.asarray(x, a.dtype), spec.shape, a) for x, a in pairs))

        return b.fused(run, operands, [spec], is_kept=record.is_kept)[0]

    return b.deferred(make, wide, shape, op.out.dtype)


def _is_number(value: Value) -> bool:
    return isinstance(value.spec, Deferred) and value.spec.source.ndim == 0


def _number(b: Builder, op: Op, values: list[Value]) -> Value | None:
    """Return the op on numbers, which gives one number, broadcast to the result's shape."""
    ins = tuple(Aval((), aval.dtype, aval.weak_type) for aval in op.ins)
    out = Aval((), op.out.dtype, op.out.weak_type)
    inner = Op(op.primitive, op.params, ins, (out,))
    assert b.ask is not None
    (made,) = b.call(inner, *(_source(value) for value in values))
    if not isinstance(made.spec, Replicated):
        return None
    return made.with_spec(Deferred(made.spec, (), op.out.shape))


def _source(value: Value) -> Value:
    return value.with_spec(value.spec.source) if isinstance(value.spec, Deferred) else value


def _over_sources(b: Builder, op: Op, values: list[Value]) -> Value | None:
    """Return the op on the sources of operands that all vary along the same few dims, else None."""
    specs = [x.spec for x in values if isinstance(x.spec, Deferred) and x.spec.source.ndim]
    first = specs[0]
    if len(first.dims) == first.ndim or any(x.dims != first.dims for x in specs):
        return None
    if any(x.ndim and not isinstance(x.spec, Deferred) for x in values):
        return None
    small = first.source.shape
    ins = tuple(Aval(small if x.ndim else (), x.dtype, x.weak_type) for x in op.ins)
    inner = Op(op.primitive, op.params, ins, (Aval(small, op.out.dtype),))
    sources = [_in_shape(value, small) for value in values]
    out = _elementwise(b, inner, tuple(sources))
    if out is None or not isinstance(out.spec, Deferred) or len(out.spec.dims) != len(small):
        return None
    return out.with_spec(Deferred(out.spec.source, first.dims, op.out.shape))


def _in_shape(value: Value, shape: tuple[int, ...]) -> Value:
    """Return the source of a broadcast as a value of its own shape."""
    spec = value.spec
    if not isinstance(spec, Deferred):
        return value
    if spec.source.ndim == 0:
        return value.with_spec(Deferred(spec.source, (), shape))
    if isinstance(spec.source, Indexed):
        return value.with_spec(indexed(shape, spec.dtype))
    return value.with_spec(Deferred(spec.source, tuple(range(len(shape))), shape))


# -- views -----------------------------------------------------------------------------------------


def _squeeze(b: Builder, op: Op, value: Value) -> Value:
    gone = {d % value.ndim for d in op.params["dimensions"]}
    return squeezed(b, value, [d for d in range(value.ndim) if d not in gone])


def _reshape(b: Builder, op: Op, value: Value) -> Value | None:
    shape = tuple(op.params["new_sizes"])
    if op.params["dimensions"] is not None:
        return None
    kept = [d for d, n in enumerate(value.shape) if n != 1]
    wide = [d for d, n in enumerate(shape) if n != 1]
    if [value.shape[d] for d in kept] == [shape[d] for d in wide]:
        return broadcast(b, squeezed(b, value, kept), shape, wide)
    old = reshape_map(shape, value.shape)
    return None if old is None else of_indices(b, value, shape, old)


def _slice(b: Builder, op: Op, value: Value) -> Value:
    starts = op.params["start_indices"]
    strides = op.params["strides"] or (1,) * value.ndim
    results = tuple(dim(d) * strides[d] + starts[d] for d in range(value.ndim))
    return of_indices(b, value, op.out.shape, AffineMap(value.ndim, results))


def _rev(b: Builder, op: Op, value: Value) -> Value:
    back = set(op.params["dimensions"])
    results = tuple(
        constant(n - 1) - dim(d) if d in back else dim(d) for d, n in enumerate(value.shape)
    )
    return of_indices(b, value, value.shape, AffineMap(value.ndim, results))


def _concatenate(b: Builder, op: Op, *values: Value) -> Value | None:
    """Return the concatenation; each device computes all parts, and selects by index."""
    if len(values) > _PARTS:
        return None
    along, rank = op.params["dimension"], op.out.ndim
    ends = [sum(value.shape[along] for value in values[: k + 1]) for k in range(len(values))]

    def make(b: Builder, place: Place, *values: Value) -> Value:
        parts = []
        for value, end in zip(values, ends, strict=True):
            start = end - value.shape[along]
            shifted = tuple(dim(d) - start if d == along else dim(d) for d in range(rank))
            parts.append(at_place(b, value, place.reindexed(AffineMap(rank, shifted))))

        def run(*arrays: Any) -> list[Any]:
            index, out = place.index()[along], arrays[-1]
            for array, end in reversed(list(zip(arrays[:-1], ends[:-1], strict=True))):
                out = jnp.where(index < end, array, out)
            return [jnp.broadcast_to(jnp.asarray(out, op.out.dtype), place.local_shape)]

        return b.fused(run, parts, [place.spec(op.out.dtype)])[0]

    return b.deferred(make, values, op.out.shape, op.out.dtype)


_VIEWS: dict[str, Callable[..., Value | None]] = {
    "broadcast_in_dim": broadcast_in_dim,
    "transpose": transpose,
    "squeeze": _squeeze,
    "reshape": _reshape,
    "slice": _slice,
    "rev": _rev,
    "concatenate": _concatenate,
}


# -- size ------------------------------------------------------------------------------------------


def is_too_large_to_replicate(b: Builder, value: Value) -> bool:
    """Whether a deferred array is too large for every device to compute all of it."""
    spec = value.spec
    is_array = isinstance(spec, Deferred) and prod(spec.shape) > 1 and not is_of_keys(spec)
    return is_array and b.env.is_large(spec)
