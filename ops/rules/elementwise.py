"""Elementwise primitives: each device on its part, and the padding computed along as a fact."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.facts import known
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.place_operands import number_of
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, Sharded, indexed
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import broadcast

ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil
    clamp clz complex conj convert_element_type copy cos cosh digamma div eq eq_to erf erf_inv
    erfc exp exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag integer_pow is_finite le
    le_to lgamma log log1p log2 logistic lt lt_to max min mul mulhi name ne neg nextafter not
    one_minus_square or polygamma polynomial population_count pow real reduce_precision
    regularized_incomplete_beta rem round rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor zeta
    """.split()  # noqa: SIM905
)


# What XLA computes once, where several read it, and keeps; the rest it computes for each.
KEPT = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cos cosh digamma erf erf_inv
    erfc exp exp2 expm1 igamma igamma_grad_a igammac lgamma log log1p log2 logistic polygamma pow
    regularized_incomplete_beta rsqrt sin sinh sqrt tan tanh zeta
    """.split()  # noqa: SIM905
)


def elementwise(b: Builder, op: Op, *values: Value) -> Any:
    """The primitive on parts, brought to the operand for which the least time goes to moves.

    Of operands of the result's shape, the first of those for which it is as much.
    """
    aval = op.out
    if aval.ndim == 0:
        scalars = [b.replicated(value) for value in values]
        return b.fused(lambda *xs: op.bind(*_as_avals(op, xs)), scalars, [_replicated(aval)])
    if (deferred := _over_sources(b, op, values)) is not None:
        return deferred
    if op.requested is not None:
        return _beside(b, op, *values, there=op.requested.made)
    places = dict.fromkeys(
        Sharded(x.spec.layout.with_dtype(aval.dtype, None), x.spec.placement)
        for x in values
        if isinstance(x.spec, Sharded) and x.shape == aval.shape
    )
    if len(places) > 1:
        ways = [partial(_beside, there=place) for place in places]
        return cheapest_way(b, op, ways, *values)
    return _beside(b, op, *values)


def _beside(b: Builder, op: Op, *values: Value, there: Sharded | None = None) -> list[Value]:
    """The primitive on parts, all brought there; by default to the first one, or by the policy."""
    aval = op.out
    wide = [grown(b, value, aval.shape) for value in values]
    if there is None:
        layout = next((x.spec.layout for x in wide if isinstance(x.spec, Sharded)), None)
        if layout is None:
            like = next(value for value in wide if value.layout is not None)
            layout = b.choose(aval.shape, aval.dtype, like)
        there = b.sharded(layout)
    return computed(b, op, [_operand(b, value, there) for value in wide], there)


def computed(b: Builder, op: Op, operands: list[Value], like: Sharded) -> list[Value]:
    """The primitive on parts that lie alike, and on numbers."""
    oob = known(op, [x.fact for x in operands])
    out = Sharded(like.layout.with_dtype(op.out.dtype, oob), like.placement)

    def run(*parts: Any) -> list[Any]:
        pairs = zip(_as_avals(op, parts), op.ins, strict=True)
        return op.bind(*(full(x, out.local_shape, aval) for x, aval in pairs))

    return b.fused(run, operands, [out], is_kept=op.name in KEPT)


def barrier(b: Builder, op: Op, *values: Value) -> Any:
    """`lax.optimization_barrier`: each value as it lies, and what is known of it."""
    settled = [b.settled(value) for value in values]
    return b.run(lambda *xs: op.bind(*xs), settled, [x.spec for x in settled])


def key(b: Builder, op: Op, *values: Value) -> Any:
    """Random keys, which every device has, made of arrays on the grid."""
    whole = [b.replicated(value) for value in values]
    return b.run(lambda *xs: op.bind(*xs), whole, [_replicated(op.out)])


def _replicated(aval: Aval) -> Replicated:
    return Replicated(aval.shape, aval.dtype, aval.weak_type)


def _as_avals(op: Op, arrays: Any) -> list[Any]:
    """Known numbers in the types that the primitive is told of."""
    pairs = zip(arrays, op.ins, strict=True)
    return [x if isinstance(x, jax.Array) else np.asarray(x, a.dtype) for x, a in pairs]


def grown(b: Builder, value: Value, shape: tuple[int, ...]) -> Value:
    """The value broadcast where it has extents of 1; scalars stay scalars."""
    if value.ndim == 0 or value.shape == tuple(shape):
        return value
    return broadcast(b, value, tuple(shape), range(len(shape)))


def _operand(b: Builder, value: Value, there: Sharded) -> Value:
    """The value beside another one; what broadcasts one number stays that number."""
    if (number := number_of(value)) is not None:
        return number
    return b.on_cores(value, there.layout, placement=there.placement)


def full(x: Any, shape: tuple[int, ...], aval: Aval) -> Any:
    """The array in the shape; a number stays one where the primitive takes it beside arrays."""
    return x if aval.ndim == 0 or x.shape == shape else jnp.broadcast_to(x, shape)


def _over_sources(b: Builder, op: Op, values: Any) -> Value | None:
    """A deferred result where all operands are numbers or deferred alike: work on the sources."""
    wide = [x for x in values if x.ndim > 0]
    deferred = [x.spec for x in wide if isinstance(x.spec, Deferred) and x.spec.source.ndim > 0]
    if not deferred or any(not isinstance(x.spec, Deferred) for x in wide):
        return None
    first, shape = deferred[0], op.out.shape
    if first.shape != shape or any((s.dims, s.shape) != (first.dims, shape) for s in deferred):
        return None
    if not any(isinstance(spec.source, Sharded) for spec in deferred):
        return None
    small = first.source.shape
    sources = [_source(x, small) for x in values]
    ins = [Aval(small if aval.ndim else (), aval.dtype, aval.weak_type) for aval in op.ins]
    inner = Op(op.primitive, op.params, tuple(ins), (Aval(small, op.out.dtype),))
    target = next((s.target_layout for s in deferred if s.target_layout is not None), None)
    (out,) = _on_sources(b, inner, sources)
    if target is not None:
        target = target.with_dtype(op.out.dtype)
    assert not isinstance(out.spec, Deferred)
    return out.seen(Deferred(out.spec, first.dims, shape, target))


def _on_sources(b: Builder, op: Op, sources: list[Value]) -> list[Value]:
    """The primitive on what is broadcast, where the first of it lies."""
    first = next(x.spec for x in sources if isinstance(x.spec, Sharded))
    operands = []
    for x in sources:
        spec = x.spec
        if isinstance(spec, Deferred) and isinstance(spec.source, Replicated):
            x = x.seen(spec.source)
        elif isinstance(spec, Sharded):
            x = b.relayout(x, first.layout, first.placement)
        elif x.ndim:
            x = b.on_cores(x, first.layout, placement=first.placement)
        operands.append(x)
    return computed(b, op, operands, first)


def _source(value: Value, shape: tuple[int, ...]) -> Value:
    """What a value broadcasts; a number is broadcast to `shape`."""
    spec = value.spec
    if not isinstance(spec, Deferred):
        return value
    if isinstance(spec.source, Indexed):
        return value.seen(indexed(spec.source.shape, spec.dtype))
    if spec.source.ndim:
        return value.seen(spec.source)
    return value.seen(Deferred(spec.source, (), shape))
