"""Control flow: `lax.scan`, `lax.while_loop` and `lax.cond` around the programs of their bodies.

A carried value keeps the layout that it has before the loop, with unknown padding. The first dim of
scanned and stacked arrays is unsharded, so that slicing them is local. A scan costs its body times
its length, a while loop one iteration, a cond its costliest branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.document.grid_form import as_grid, grouped
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.bodies import BodyPlanner
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import PER_TRIP, Body, Inner
from gridlayout.ops.decisions.jaxprs import scan_parts
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import (
    Replicated,
    Sharded,
    Spec,
    is_indexed,
    is_of_keys,
    layout_of,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.unsharded import from_front, in_front, rest_layout, stacked, unstack


def scan(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.scan`: scanned arrays are sliced locally, carried values keep a layout.

    It is the layout that they have before, or the one that the body makes from other values.
    """
    if op.loop is not None:
        return _scan(b, op, *values)
    return cheapest_way(b, op, [_scan, partial(_scan, as_made=True)], *values)


def _scan(b: Builder, op: Op, *values: Value, as_made: bool = False) -> Any:
    """Rule for `lax.scan`; as_made: with the carry laid out as the body makes it, or None."""
    p = op.params
    first, second = scan_parts(p)
    consts, length = [_as_constant(b, value) for value in values[:first]], p["length"]
    requested = op.loop
    scanned, slices = [], []
    for k, value in enumerate(values[second:]):
        whole, spec = _scanned(b, value, None if requested is None else requested.slices[k])
        scanned.append(whole)
        slices.append(spec)
    given: Sequence[Sharded | None] | None = None if requested is None else requested.carry
    if as_made:
        around = [x.spec for x in consts], slices
        if (given := _made_carry(b, p["jaxpr"], values[first:second], *around)) is None:
            return None
    carry = _carry_operands(b, values[first:second], given)
    state = [_without_facts(value.spec) for value in carry]
    specs = [*(x.spec for x in consts), *state, *slices]
    count = len(consts) + len(state)

    def planned(chosen: Any) -> Inner:
        planner = _body(b, specs, chosen)
        parts = [planner.apply(_as_constant, value) for value in planner.operands[count:]]
        outs = planner.evaluate(p["jaxpr"], [*planner.operands[:count], *parts], _layouts(state))
        rows = [_as_row(planner, out, length) for out in outs[len(state) :]]
        return planner.program([*outs[: len(state)], *rows], state)

    body = planned(None if requested is None else requested.chosen)
    rows = body.results[len(state) :]
    made = [_stacked(b, row, length) for row in rows]

    run = partial(_run_scan, p, body, first, state, slices, rows)
    roles = _roles(constant=consts, carry=carry, slice=slices)
    bodies = [Body(body, length, roles=roles)]
    outs = _run_with_bodies(b, run, [*consts, *carry, *scanned], [*state, *made], bodies)
    return [_place_result(b, out, requested is not None) for out in outs]


def _run_scan(
    p: Any,
    body: Inner,
    first: int,
    state: Sequence[Spec],
    slices: Sequence[Spec],
    rows: Sequence[Spec],
    *arrays: Any,
) -> list[Any]:
    """Run `lax.scan` of `body` on a device's parts of constants, carry and scanned arrays.

    first: the number of constants. state, slices, rows: the specs of the carry, of one iteration's
    slices, and of one iteration's stacked results.
    """
    second = first + len(state)
    given = arrays[:first]

    def step(carried: Any, parts: Any) -> Any:
        inside = [*_with_core_dims(carried, state), *_with_core_dims(parts, slices)]
        found = body.run_inside([*given, *inside])
        after, made = found[: len(state)], found[len(state) :]
        return _as_state(after, state), _without_core_dims(made, rows)

    parts = [
        in_front(x, 1, len(spec.placement.grid)) if isinstance(spec, Sharded) else x
        for x, spec in zip(arrays[second:], slices, strict=True)
    ]
    start = _as_state(arrays[first:second], state)
    parts = _without_core_dims(parts, slices, 1)
    final, found = lax.scan(step, start, parts, p["length"], p["reverse"], p["unroll"])
    return [
        *_with_core_dims(final, state),
        *(
            from_front(x, 1, len(row.placement.grid)) if isinstance(row, Sharded) else x
            for x, row in zip(_with_core_dims(found, rows, 1), rows, strict=True)
        ),
    ]


def _layouts(specs: Sequence[Spec]) -> list[Layout | None]:
    return list(map(layout_of, specs))


def while_(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.while_loop`: carried values keep a layout, as for `scan`."""
    if op.loop is not None:
        return _while(b, op, *values)
    return cheapest_way(b, op, [_while, partial(_while, as_made=True)], *values)


def _while(b: Builder, op: Op, *values: Value, as_made: bool = False) -> Any:
    """Rule for `lax.while_loop`; as_made: with the carry laid out as the body makes it, or None."""
    p = op.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    consts = [_as_constant(b, value) for value in values[:second]]
    requested = op.loop
    given: Sequence[Sharded | None] | None = None if requested is None else requested.carry
    if as_made:
        around = [x.spec for x in consts[first:]]
        if (given := _made_carry(b, p["body_jaxpr"], values[second:], around, ())) is None:
            return None
    carry = _carry_operands(b, values[second:], given)
    state = [_without_facts(value.spec) for value in carry]
    number = p["cond_jaxpr"].out_avals[0]
    of_test, of_body = ([x.spec for x in some] for some in (consts[:first], consts[first:]))

    planner = _body(b, [*of_test, *state])
    continues = planner.evaluate(p["cond_jaxpr"], planner.operands)
    test = planner.program(continues, [Replicated(number.shape, number.dtype)])

    def planned(chosen: Any) -> Inner:
        planner = _body(b, [*of_test, *of_body, *state], chosen)
        given = planner.operands
        before = given[second:]
        outs = planner.evaluate(p["body_jaxpr"], given[first:], _layouts(state))
        if number.shape:
            # A loop under `jax.vmap`: each row stops changing once its own test fails.
            continues = planner.evaluate(
                p["cond_jaxpr"], [*given[:first], *before], has_choices=False
            )
            rows = [*continues, *outs, *before]
            outs = planner.evaluate(_select_rows(p), rows, has_choices=False)
        return planner.program(outs, state)

    body = planned(None if requested is None else requested.chosen)

    run = partial(_loop, test, body, state, first, second)
    bodies = [
        Body(test, 1, PER_TRIP, "test", _roles(constant=consts[:first], carry=carry)),
        Body(body, 1, PER_TRIP, "body", _roles(constant=consts, carry=carry)),
    ]
    return _run_with_bodies(b, run, [*consts, *carry], state, bodies)


def _loop(
    test: Inner, body: Inner, state: Sequence[Spec], first: int, second: int, *arrays: Any
) -> list[Any]:
    """Run the loop on one device's parts.

    arrays: the constants, of which the first `first` are the test's, and from `second` on the
    carry. state: the specs of the carry.
    """
    given = arrays[:second]

    def test_holds(carried: Any) -> Any:
        inside = _with_core_dims(carried, state)
        return jnp.any(test.run_inside([*given[:first], *inside])[0])

    def step(carried: Any) -> Any:
        inside = _with_core_dims(carried, state)
        return _as_state(body.run_inside([*given, *inside]), state)

    start = _as_state(arrays[second:], state)
    return _with_core_dims(lax.while_loop(test_holds, step, start), state)


def _select_rows(p: Any) -> Any:
    """Return the jaxpr that updates the carry of a batched loop: only rows whose test holds."""
    (continues,), carry = p["cond_jaxpr"].out_avals, p["body_jaxpr"].out_avals

    def select(continues: Any, new: Any, old: Any) -> list[Any]:
        rows = [continues.reshape(continues.shape + (1,) * (x.ndim - continues.ndim)) for x in new]
        return [jnp.where(*row) for row in zip(rows, new, old, strict=True)]

    return jax.make_jaxpr(select)(continues, carry, carry)


def cond(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.cond` or `lax.switch`: all branches return the first branch's layouts."""
    index = b.replicated(values[0])
    operands = [_as_operand(b, x) if x.layout is not None else b.materialize(x) for x in values[1:]]
    specs = [_without_facts(x.spec) for x in operands]
    programs: list[Inner] = []
    results: list[Spec] = []
    for branch in op.params["branches"]:
        planner = _body(b, specs)
        outs = planner.evaluate(branch, planner.operands, _layouts(results))
        programs.append(planner.program([planner.apply(_as_operand, out) for out in outs], results))
        results = results or [_without_facts(spec) for spec in programs[0].results]

    def run(index: Any, *arrays: Any) -> list[Any]:
        def way(program: Inner) -> Callable[..., list[Any]]:
            return lambda *arrays: _without_weak_types(program.run_inside(arrays), results)

        return list(lax.switch(index, [way(each) for each in programs], *arrays))

    costliest = max(programs, key=lambda each: b.env.machine.seconds(each.collectives))
    roles = _roles(operand=operands)
    bodies = [
        Body(each, int(each is costliest), "the costliest branch", f"branch {k}", roles)
        for k, each in enumerate(programs)
    ]
    return _run_with_bodies(b, run, [index, *operands], results, bodies)


def _run_with_bodies(
    b: Builder, run: Any, operands: Sequence[Value], specs: Sequence[Spec], bodies: list[Body]
) -> list[Value]:
    is_global = not all(body.program.is_local for body in bodies)
    counted = tuple(body for body in bodies if body.times)
    others = tuple(body for body in bodies if not body.times)
    return b.run(run, operands, specs, is_global=is_global, bodies=counted, others=others)


def _roles(**values: Sequence[Any]) -> tuple[str, ...]:
    """Return the roles of a body's operands in order, numbered if there are several of a role."""
    return tuple(
        f"{role} {k}" if len(some) > 1 else role
        for role, some in values.items()
        for k, _ in enumerate(some)
    )


def _body(b: Builder, operands: Sequence[Spec], chosen: Any = None) -> BodyPlanner:
    """Start the program of a body on operands; chosen: its choices, None to make them."""
    assert b.plan is not None
    return b.plan(b.env, operands, chosen)


def _as_operand(b: Builder, value: Value) -> Value:
    """Return a value as an operand of a body: laid out, or replicated if a scalar or a key."""
    if value.ndim == 0 or is_of_keys(value.spec):
        return b.replicated(value)
    return b.replicated(value) if b.env.replicates(value.spec) else b.as_sharded(value)


def _carry_operands(
    b: Builder, values: Sequence[Value], requested: Sequence[Sharded | None] | None
) -> list[Value]:
    """Return the initial carry of a loop, relaid out as requested."""
    carry = [_as_operand(b, value) for value in values]
    if requested is None:
        return carry
    return [
        x if spec is None else b.as_sharded(x, spec.layout, placement=spec.placement)
        for x, spec in zip(carry, requested, strict=True)
    ]


def _made_carry(
    b: Builder,
    jaxpr: Any,
    carry: Sequence[Value],
    consts: Sequence[Spec],
    slices: Sequence[Spec],
) -> list[Sharded | None] | None:
    """Return the specs in which a body makes its carry if that is replicated before.

    They depend on the constants and slices alone. None if the carry has these specs already.
    """
    before = [_as_operand(b, value).spec for value in carry]
    if any(is_of_keys(spec) for spec in before):
        return None
    start = [Replicated(spec.shape, spec.dtype) for spec in before]
    planner = _body(b, [*consts, *start, *slices])
    outs = planner.evaluate(jaxpr, planner.operands)[: len(carry)]
    found = [out.spec.with_oob(None) if isinstance(out.spec, Sharded) else None for out in outs]
    is_same = all(x is None or x == _without_facts(y) for x, y in zip(found, before, strict=True))
    return None if is_same else found


def _as_constant(b: Builder, value: Value) -> Value:
    """Return a value as a constant of a body: computed once, and replicated if it is small."""
    if b.env.replicates(value.spec):
        return b.replicated(value)
    return b.materialize(value) if is_indexed(value.spec) else value


def _without_facts(spec: Spec) -> Spec:
    """Return the spec without the known padding value or number, which change in a loop."""
    if isinstance(spec, Sharded):
        return spec.with_oob(None)
    assert isinstance(spec, Replicated)
    return Replicated(spec.shape, spec.dtype)


def _without_weak_types(arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """Return the arrays converted to the dtypes of the specs, without weak types."""
    return [
        x if is_of_keys(spec) else lax.convert_element_type(x, spec.dtype)
        for x, spec in zip(arrays, specs, strict=True)
    ]


def _as_state(arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """Return arrays as JAX's loop carries them: strongly typed, without core dims of 1."""
    return _without_core_dims(_without_weak_types(arrays, specs), specs)


def _without_core_dims(arrays: Sequence[Any], specs: Sequence[Spec], lead: int = 0) -> list[Any]:
    """Return parts without their core dims if these are all 1, so that XLA updates them in place.

    lead: the number of dims in front of the core dims.
    """
    found = []
    for x, spec in zip(arrays, specs, strict=True):
        end = lead + (len(spec.placement.grid) if isinstance(spec, Sharded) else 0)
        is_one = set(x.shape[lead:end]) == {1}
        found.append(x.reshape(*x.shape[:lead], *x.shape[end:]) if is_one else x)
    return found


def _with_core_dims(arrays: Sequence[Any], specs: Sequence[Spec], lead: int = 0) -> list[Any]:
    """Return the inverse of `_without_core_dims`."""
    found = []
    for x, spec in zip(arrays, specs, strict=True):
        if isinstance(spec, Sharded) and x.ndim == lead + len(spec.layout.local_shape):
            ones = (1,) * len(spec.placement.grid)
            x = x.reshape(*x.shape[:lead], *ones, *x.shape[lead:])
        found.append(x)
    return found


def _scanned(b: Builder, value: Value, requested: Sharded | None = None) -> tuple[Value, Spec]:
    """Return a scanned operand with its first dim unsharded, and the spec of one slice.

    requested: the spec that is requested of a slice.
    """
    if requested is not None:
        layout = as_grid(requested.layout)
        assert layout is not None
        whole = Sharded(
            stacked(layout, (0,), value.shape[:1]), requested.placement.with_leading_dims(1)
        )
        return b.as_sharded(value, whole.layout, placement=whole.placement), requested
    is_key = is_of_keys(value.spec)
    rest = None if is_key or b.env.replicates(value.spec) else rest_layout(b, value, (0,))
    if rest is None:
        return b.replicated(value), Replicated(value.shape[1:], value.dtype)
    rest = rest.with_dtype(value.dtype)
    return unstack(b, value, (0,), rest), b.sharded(rest)


def _as_row(planner: BodyPlanner, out: Value, length: int) -> Value:
    """Return a result of the body as a row to stack.

    It is replicated if its layout can't be extended by a leading dim.
    """
    out = planner.apply(_as_operand, out)
    layout = out.layout
    stacks = layout is not None and grouped(layout) and layout.size and length
    if layout is None or stacks:
        return out
    return planner.apply(Builder.replicated, out)


def _stacked(b: Builder, row: Spec, length: int) -> Spec:
    """Return the spec of `length` stacked rows; the first dim is unsharded."""
    if isinstance(row, Sharded):
        own = grouped(row.layout)
        assert own is not None
        return Sharded(
            stacked(own.with_oob(None), (0,), (length,)), row.placement.with_leading_dims(1)
        )
    return Replicated((length, *row.shape), row.dtype)


def _place_result(b: Builder, out: Value, stays: bool) -> Value:
    """Return a result of the loop: arrays laid out, numbers and keys replicated.

    stays: whether it keeps a placement other than its layout's default, as a plan requests it.
    """
    spec = out.spec
    if isinstance(spec, Sharded):
        return out if stays else b.relayout(out, spec.layout)
    if spec.ndim == 0 or b.env.replicates(spec):
        return out
    return out if is_of_keys(spec) else b.as_sharded(out)


# Their bodies are planned on their own.
_OF_BODIES = Record(is_control=True, takes_keys=True, takes_empty=True, changes_space=True)
CONTROL: dict[str, Record] = {
    name: replace(_OF_BODIES, rules=(rule,))
    for name, rule in (("scan", scan), ("while", while_), ("cond", cond))
}
