"""Elementwise primitives: each device applies them to its part of the storage.

The padding is computed with the elements. Its value is folded if it is known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import each, same
from gridlayout.ops.decisions.facts import exact_points, known
from gridlayout.ops.decisions.flops import nothing, per_result
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.reshapes import broadcast, number_of
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, Sharded, indexed
from gridlayout.ops.decisions.value import Value
from gridlayout.sharding.limits import LIMITS


def elementwise(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for elementwise primitives: all operands are relaid out to the layout of one.

    It is the operand of the result's shape that takes least time; ties go to the first, also where
    parts differ by their padding.
    """
    aval = op.out
    if aval.ndim == 0:
        scalars = [b.replicated(value) for value in values]
        return b.fused(
            lambda *xs: op.bind(*_as_avals(op, xs)),
            scalars,
            [_replicated(aval)],
            is_elementwise=True,
        )
    if (deferred := _on_deferred_sources(b, op, values)) is not None:
        return deferred
    if op.requested is not None:
        return _on_placement(b, op, *values, target=op.requested.made)
    specs = dict.fromkeys(
        Sharded(x.spec.layout.with_dtype(aval.dtype, None), x.spec.placement)
        for x in values
        if isinstance(x.spec, Sharded) and x.shape == aval.shape
    )
    if len(specs) > 1:
        ways = [partial(_on_placement, target=spec) for spec in specs]
        return cheapest_way(b, op, ways, *values, equal=LIMITS.equal)
    return _on_placement(b, op, *values, target=next(iter(specs), None))


def _on_placement(b: Builder, op: Op, *values: Value, target: Sharded | None = None) -> list[Value]:
    """Rule with all operands relaid out to `target`.

    The default is the layout of the first sharded operand, or else the policy's.
    """
    aval = op.out
    wide = [grown(b, value, aval.shape) for value in values]
    if target is None:
        layout = next((x.spec.layout for x in wide if isinstance(x.spec, Sharded)), None)
        if layout is None:
            # Broadcast, an operand of one element is replicated.
            layout = b.choose_for(aval.shape, aval.dtype, *wide, *values)
        target = b.sharded(layout)
    operands = [_placed_operand(b, value, target) for value in wide]
    return computed(b, op, operands, target, b.record)


def computed(
    b: Builder, op: Op, operands: list[Value], like: Sharded, record: Record
) -> list[Value]:
    """Append the primitive on numbers, and on arrays that all have the layout of `like`."""
    oob = known(op, [x.fact for x in operands])
    out = Sharded(like.layout.with_dtype(op.out.dtype, oob), like.placement)

    # The partitioner fails on arrays without elements.
    is_on_either = any(x.ndim for x in operands) and 0 not in out.local_shape

    def run(*parts: Any) -> list[Any]:
        shape = next((x.shape for x in parts if np.ndim(x)), out.local_shape)
        pairs = zip(_as_avals(op, parts), op.ins, strict=True)
        return op.bind(*(full(x, shape, aval) for x, aval in pairs))

    exact: Any = ()
    if record.is_kept and jnp.issubdtype(op.ins[0].dtype, jnp.floating):
        exact = exact_points(op.name)
    return b.fused(
        run, operands, [out], is_kept=record.is_kept, exact=exact, is_elementwise=is_on_either
    )


def barrier(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.optimization_barrier`: specs stay, deferred values are computed."""
    materialized = [b.materialize(value) for value in values]
    return b.run(lambda *xs: op.bind(*xs), materialized, [x.spec for x in materialized])


def key(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for primitives that make random keys: they run replicated."""
    replicated = [b.replicated(value) for value in values]
    return b.run(lambda *xs: op.bind(*xs), replicated, [_replicated(op.out)])


def _replicated(aval: Aval) -> Replicated:
    return Replicated(aval.shape, aval.dtype, aval.weak_type)


def _as_avals(op: Op, arrays: Any) -> list[Any]:
    """Return the arrays, with known numbers converted to the op's operand types."""
    pairs = zip(arrays, op.ins, strict=True)
    return [x if isinstance(x, jax.Array) else np.asarray(x, a.dtype) for x, a in pairs]


def grown(b: Builder, value: Value, shape: tuple[int, ...]) -> Value:
    """Return the value with dims of extent 1 broadcast to `shape`; scalars stay scalars."""
    if value.ndim == 0 or value.shape == tuple(shape):
        return value
    return broadcast(b, value, tuple(shape), range(len(shape)))


def _placed_operand(b: Builder, value: Value, target: Sharded) -> Value:
    """Return the value relaid out to `target`, or the number that it is or broadcasts."""
    if (number := number_of(value)) is not None:
        return number
    return b.as_spec(value, target)


def full(x: Any, shape: tuple[int, ...], aval: Aval) -> Any:
    """Return the array broadcast to `shape`; a number stays if the op takes a scalar there."""
    return x if aval.ndim == 0 or x.shape == shape else jnp.broadcast_to(x, shape)


def _on_deferred_sources(b: Builder, op: Op, values: Any) -> Value | None:
    """Return a deferred result, computed from the operands' sources; None if not possible.

    All operands must be numbers, or deferred with equal shapes and broadcast dims.
    """
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
    (out,) = _apply_to_sources(b, inner, sources)
    if target is not None:
        target = target.with_dtype(op.out.dtype)
    assert not isinstance(out.spec, Deferred)
    return out.with_spec(Deferred(out.spec, first.dims, shape, target))


def _apply_to_sources(b: Builder, op: Op, sources: list[Value]) -> list[Value]:
    """Append the primitive on sources, in the layout of the first sharded one."""
    first = next(x.spec for x in sources if isinstance(x.spec, Sharded))
    operands = []
    for x in sources:
        spec = x.spec
        if isinstance(spec, Deferred) and isinstance(spec.source, Replicated):
            x = x.with_spec(spec.source)
        elif isinstance(spec, Sharded):
            x = b.relayout(x, first.layout, first.placement)
        elif x.ndim:
            x = b.as_spec(x, first)
        operands.append(x)
    return computed(b, op, operands, first, b.record)


def _source(value: Value, shape: tuple[int, ...]) -> Value:
    """Return the source of a deferred value; a number is broadcast to `shape`."""
    spec = value.spec
    if not isinstance(spec, Deferred):
        return value
    if isinstance(spec.source, Indexed):
        return value.with_spec(indexed(spec.source.shape, spec.dtype))
    if spec.source.ndim:
        return value.with_spec(spec.source)
    return value.with_spec(Deferred(spec.source, (), shape))


def _function(**facts: Any) -> Record:
    """Return the record of an elementwise primitive."""
    return Record(
        (elementwise,),
        per_result,
        same,
        is_elementwise=True,
        is_fused=True,
        takes_fused=True,
        **facts,
    )


_CHEAP = """
abs add and ceil clamp clz complex conj convert_element_type copy div eq eq_to floor ge gt imag
integer_pow is_finite le le_to lt lt_to max min mul mulhi name ne neg nextafter not
one_minus_square or polynomial population_count real reduce_precision rem round select_n shift_left
shift_right_arithmetic shift_right_logical sign square sub xor
""".split()  # noqa: SIM905
# Functions whose result XLA computes once and stores if it has several consumers. It fuses the
# others into each consumer.
_KEPT = """
acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cos cosh digamma erf erf_inv erfc
exp exp2 expm1 igamma igamma_grad_a igammac lgamma log log1p log2 logistic polygamma pow
regularized_incomplete_beta rsqrt sin sinh sqrt tan tanh zeta
""".split()  # noqa: SIM905
# How many times as long as the access to memory some take on CPUs; measured.
_ON_CPUS = {
    **{"acos": 37, "asinh": 5, "atan2": 38, "bessel_i0e": 4, "bessel_i1e": 4, "cbrt": 31},
    **{"cos": 15, "cosh": 4, "digamma": 22, "erf_inv": 5, "igamma": 290, "igamma_grad_a": 290},
    **{"igammac": 290, "lgamma": 17, "pow": 10, "regularized_incomplete_beta": 190, "sin": 16},
    **{"sinh": 4, "tan": 27},
}
ELEMENTWISE: dict[str, Record] = {
    **dict.fromkeys(_CHEAP, _function()),
    **{name: _function(is_kept=True, cpu_functions=float(_ON_CPUS.get(name, 0))) for name in _KEPT},
    # A sum of cotangents is in the memory space of the first one.
    "add_any": _function(changes_space=True),
    "stop_gradient": replace(_function(is_view=True), flops=nothing),
    "optimization_barrier": Record((barrier,), factors=each, takes_keys=True, changes_space=True),
    **{
        f"random_{name}": Record((key,), per_result, takes_keys=True)
        for name in ("seed", "wrap", "fold_in")
    },
}
