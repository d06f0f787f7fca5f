"""What loops and branches take and hold: operands, carried values, slices and stacked rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax import lax

from gridlayout.document.grid_form import grouped
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import BodyPlanner
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, is_indexed, is_of_keys
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.unsharded import rest_spec, stacked_spec, unstack


def start_body(b: Builder, operands: Sequence[Spec], chosen: Any = None) -> BodyPlanner:
    """Start the program of a body on operands; chosen: its choices, None to make them."""
    assert b.plan is not None
    return b.plan(b.env, operands, chosen)


def as_operand(b: Builder, value: Value) -> Value:
    """Return a value as an operand of a body: laid out, or replicated if a scalar or a key."""
    if value.ndim == 0 or is_of_keys(value.spec):
        return b.replicated(value)
    return b.replicated(value) if b.env.replicates(value.spec) else b.as_sharded(value)


def carry_operands(
    b: Builder, values: Sequence[Value], requested: Sequence[Sharded | None] | None
) -> list[Value]:
    """Return the initial carry of a loop, relaid out as requested."""
    wanted = [None] * len(values) if requested is None else requested
    return [
        as_operand(b, x) if spec is None else b.as_spec(x, spec)
        for x, spec in zip(values, wanted, strict=True)
    ]


def _memory(spec: Spec) -> str | None:
    return spec.layout.memory if isinstance(spec, Sharded) else None


def made_carry(
    b: Builder,
    jaxpr: Any,
    carry: Sequence[Value],
    consts: Sequence[Spec],
    slices: Sequence[Spec],
) -> list[Sharded | None] | None:
    """Return the specs in which a body makes its carry if that is replicated before.

    They depend on the constants and slices alone. None if the carry has these specs already.
    """
    before = [as_operand(b, value).spec for value in carry]
    if any(is_of_keys(spec) for spec in before):
        return None
    start = [Replicated(spec.shape, spec.dtype) for spec in before]
    planner = start_body(b, [*consts, *start, *slices])
    outs = planner.evaluate(jaxpr, planner.operands)[: len(carry)]
    pairs = [(x.spec, y) for x, y in zip(outs, before, strict=True)]
    found = [
        x.with_oob(None) if isinstance(x, Sharded) and _memory(x) == _memory(y) else None
        for x, y in pairs
    ]
    is_same = all(x is None or x == without_facts(y) for x, y in zip(found, before, strict=True))
    return None if is_same else found


def constants(
    b: Builder, values: Sequence[Value], requested: Sequence[Sharded | None] | None
) -> list[Value]:
    """Return the constants of a loop, each computed once, as requested."""
    wanted = [None] * len(values) if requested is None else requested
    return [as_constant(b, *pair) for pair in zip(values, wanted, strict=True)]


def as_constant(b: Builder, value: Value, requested: Sharded | None = None) -> Value:
    """Return a value as a constant of a body: computed once, and replicated if it is small.

    requested: where the body reads it.
    """
    if b.env.replicates(value.spec):
        return b.replicated(value)
    if requested is not None:
        return b.as_spec(value, requested)
    return b.materialize(value) if is_indexed(value.spec) else value


def without_facts(spec: Spec) -> Spec:
    """Return the spec without the known padding value or number, which change in a loop."""
    if isinstance(spec, Sharded):
        return spec.with_oob(None)
    assert isinstance(spec, Replicated)
    return Replicated(spec.shape, spec.dtype)


def without_weak_types(arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """Return the arrays converted to the dtypes of the specs, without weak types."""
    return [
        x if is_of_keys(spec) else lax.convert_element_type(x, spec.dtype)
        for x, spec in zip(arrays, specs, strict=True)
    ]


def as_state(arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """Return arrays as JAX's loop carries them: strongly typed, without inner dims of extent 1."""
    return without_ones(without_weak_types(arrays, specs))


def without_ones(arrays: Sequence[Any], lead: int = 0) -> list[Any]:
    """Return arrays without dims of extent 1 behind others, so that XLA updates them in place.

    Reshapes that move such dims make XLA choose other orders of them, and copy between these. Those
    in front stay: XLA would compute what several kernels read in each of them. lead: the number of
    dims in front that stay in any case.
    """

    def inner(x: Any) -> Any:
        first = next((d for d in range(lead, x.ndim) if x.shape[d] > 1), x.ndim)
        return x.reshape(*x.shape[:first], *(n for n in x.shape[first:] if n > 1))

    return [x if is_of_keys(x) else inner(x) for x in arrays]


def with_ones(arrays: Sequence[Any], specs: Sequence[Spec], lead: int = 0) -> list[Any]:
    """Return the inverse of `without_ones`."""
    return [
        x if is_of_keys(x) else x.reshape(*x.shape[:lead], *spec.local_shape)
        for x, spec in zip(arrays, specs, strict=True)
    ]


def in_order(x: Any) -> Any:
    """Return a loop's result that XLA does not copy to bring dims of extent 1 into their order.

    On CPUs it makes arrays with such dims before all others, and copies them to any other order.
    """
    wide = [d for d, n in enumerate(x.shape) if n > 1]
    if is_of_keys(x) or not wide or wide == list(range(wide[0], x.ndim)):
        return x
    return lax.optimization_barrier(x.reshape(-1)).reshape(x.shape)


def scanned_operand(
    b: Builder, value: Value, requested: Sharded | None = None
) -> tuple[Value, Spec]:
    """Return a scanned operand with its first dim unsharded, and the spec of one slice.

    requested: the spec that is requested of a slice.
    """
    if requested is not None:
        return unstack(b, value, (0,), requested), requested
    is_key = is_of_keys(value.spec)
    rest = None if is_key or b.env.replicates(value.spec) else rest_spec(b, value, (0,))
    if rest is None:
        return b.replicated(value), Replicated(value.shape[1:], value.dtype)
    rest = Sharded(rest.layout.with_dtype(value.dtype), rest.placement)
    return unstack(b, value, (0,), rest), rest


def as_row(planner: BodyPlanner, out: Value, length: int) -> Value:
    """Return a result of the body as a row to stack.

    It is replicated if its layout can't be extended by a leading dim.
    """
    out = planner.apply(as_operand, out)
    layout = out.layout
    stacks = layout is not None and grouped(layout) and layout.size and length
    if layout is None or stacks:
        return out
    return planner.apply(Builder.replicated, out)


def stacked_rows(b: Builder, row: Spec, length: int) -> Spec:
    """Return the spec of `length` stacked rows; the first dim is unsharded."""
    if isinstance(row, Sharded):
        return stacked_spec(row, (0,), (length,), row.dtype)
    return Replicated((length, *row.shape), row.dtype)
