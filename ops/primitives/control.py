"""Control flow: `lax.scan`, `lax.while_loop` and `lax.cond` around the programs of their bodies.

A carried value keeps one layout, with unknown padding: the one that it has before the loop, or the
one that the body makes, whichever takes less time (`carries.py`). The first dim of scanned and
stacked arrays is unsharded, so that slicing them is local. A scan costs its body times its length,
a while loop one iteration, a cond the branch that takes the longest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import PER_TRIP, Body, Inner
from gridlayout.ops.decisions.jaxprs import scan_parts
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, is_of_keys, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.carries import (
    as_constant,
    as_operand,
    as_row,
    as_state,
    carry_operands,
    constants,
    in_order,
    made_carry,
    scanned_operand,
    stacked_rows,
    start_body,
    with_ones,
    without_facts,
    without_ones,
    without_weak_types,
)
from gridlayout.ops.primitives.stencils import STEPS, in_rounds
from gridlayout.ops.primitives.unsharded import from_front, in_front


def scan(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.scan`: scanned arrays are sliced locally, carried values keep a layout.

    It is the layout that they have before, or the one that the body makes from other values.
    """
    if op.loop is not None:
        return _scan(b, op, *values)
    ways: list[Decide] = [_scan, partial(_scan, as_made=True)]
    ways += [partial(_in_rounds, steps=steps) for steps in STEPS]
    # Rounds of several iterations receive more bytes to exchange them less often.
    return cheapest_way(b, op, ways, *values, similar=1)


def _in_rounds(b: Builder, op: Op, *values: Value, steps: int) -> list[Value] | None:
    """Rule for `lax.scan` around a stencil: with one halo exchange for several iterations."""
    if (found := in_rounds(b, op, *values, steps=steps)) is None:
        return None
    rounds, operands, rest, consts = found
    outs: list[Value] = _scan(b, rounds, *operands)
    if rest.params["steps"]:
        outs = b.call(rest, *consts, *outs)
    return [_place_result(b, out, False) for out in outs]


def _scan(b: Builder, op: Op, *values: Value, as_made: bool = False) -> Any:
    """Rule for `lax.scan`; as_made: with the carry laid out as the body makes it, or None."""
    p = op.params
    first, second = scan_parts(p)
    requested, length = op.loop, p["length"]
    consts = constants(b, values[:first], None if requested is None else requested.constants)
    scanned, slices = [], []
    for k, value in enumerate(values[second:]):
        whole, spec = scanned_operand(b, value, None if requested is None else requested.slices[k])
        scanned.append(whole)
        slices.append(spec)
    given: Sequence[Sharded | None] | None = None if requested is None else requested.carry
    if as_made:
        around = [x.spec for x in consts], slices
        if (given := made_carry(b, p["jaxpr"], values[first:second], *around)) is None:
            return None
    carry = carry_operands(b, values[first:second], given)
    state = [without_facts(value.spec) for value in carry]
    specs = [*(x.spec for x in consts), *state, *slices]
    count = len(consts) + len(state)

    def planned(chosen: Any) -> Inner:
        planner = start_body(b, specs, chosen)
        parts = [planner.apply(as_constant, value) for value in planner.operands[count:]]
        outs = planner.evaluate(p["jaxpr"], [*planner.operands[:count], *parts], _layouts(state))
        rows = [as_row(planner, out, length) for out in outs[len(state) :]]
        return planner.program([*outs[: len(state)], *rows], state)

    body = planned(None if requested is None else requested.chosen)
    rows = body.results[len(state) :]
    made = [stacked_rows(b, row, length) for row in rows]

    run = partial(_run_scan, p, body, first, state, slices, rows)
    roles = _roles(constant=consts, carry=carry, slice=slices)
    bodies = [Body(body, length, roles=roles, copied=_copied(b, p["jaxpr"], slices, count))]
    outs = _run_with_bodies(b, run, [*consts, *carry, *scanned], [*state, *made], bodies)
    return [_place_result(b, out, requested is not None) for out in outs]


def _copied(b: Builder, jaxpr: Any, slices: Sequence[Spec], first: int) -> int:
    """Return the bytes of the slices that a device copies; first: the number of the first one."""
    assert b.plan is not None
    kernels = b.plan.graph(jaxpr).kernels
    copied = (spec for k, spec in enumerate(slices, first) if kernels.is_copied(k, ()))
    return sum(spec.device_bytes for spec in copied)


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
        inside = [*with_ones(carried, state), *with_ones(parts, slices)]
        found = body.run_inside([*given, *inside])
        after, made = found[: len(state)], found[len(state) :]
        return as_state(after, state), without_ones(made)

    parts = [
        in_front(x, 1, len(spec.placement.grid)) if isinstance(spec, Sharded) else x
        for x, spec in zip(arrays[second:], slices, strict=True)
    ]
    start = as_state(arrays[first:second], state)
    parts = without_ones(parts, 1)
    final, found = lax.scan(step, start, parts, p["length"], p["reverse"], p["unroll"])
    return [
        *with_ones(final, state),
        *(
            from_front(x, 1, len(row.placement.grid)) if isinstance(row, Sharded) else x
            for x, row in zip(with_ones(found, rows, 1), rows, strict=True)
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
    requested = op.loop
    consts = constants(b, values[:second], None if requested is None else requested.constants)
    given: Sequence[Sharded | None] | None = None if requested is None else requested.carry
    if as_made:
        around = [x.spec for x in consts[first:]]
        if (given := made_carry(b, p["body_jaxpr"], values[second:], around, ())) is None:
            return None
    carry = carry_operands(b, values[second:], given)
    state = [without_facts(value.spec) for value in carry]
    number = p["cond_jaxpr"].out_avals[0]
    of_test, of_body = ([x.spec for x in some] for some in (consts[:first], consts[first:]))

    planner = start_body(b, [*of_test, *state])
    continues = planner.evaluate(p["cond_jaxpr"], planner.operands)
    test = planner.program(continues, [Replicated(number.shape, number.dtype)])

    def planned(chosen: Any) -> Inner:
        planner = start_body(b, [*of_test, *of_body, *state], chosen)
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
        inside = with_ones(carried, state)
        return jnp.any(test.run_inside([*given[:first], *inside])[0])

    def step(carried: Any) -> Any:
        inside = with_ones(carried, state)
        return as_state(body.run_inside([*given, *inside]), state)

    start = as_state(arrays[second:], state)
    return with_ones(lax.while_loop(test_holds, step, start), state)


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
    operands = [as_operand(b, x) if x.layout is not None else b.materialize(x) for x in values[1:]]
    specs = [without_facts(x.spec) for x in operands]
    programs: list[Inner] = []
    results: list[Spec] = []
    for branch in op.params["branches"]:
        planner = start_body(b, specs)
        outs = planner.evaluate(branch, planner.operands, _layouts(results))
        programs.append(planner.program([planner.apply(as_operand, out) for out in outs], results))
        results = results or [without_facts(spec) for spec in programs[0].results]

    def run(index: Any, *arrays: Any) -> list[Any]:
        def way(program: Inner) -> Callable[..., list[Any]]:
            return lambda *arrays: without_weak_types(program.run_inside(arrays), results)

        return list(lax.switch(index, [way(each) for each in programs], *arrays))

    costliest = max(programs, key=lambda each: each.seconds)
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
    ordered = run
    if b.device.platform == "cpu" and not is_global:
        ordered = lambda *arrays: list(map(in_order, run(*arrays)))  # noqa: E731
    return b.run(ordered, operands, specs, is_global=is_global, bodies=counted, others=others)


def _roles(**values: Sequence[Any]) -> tuple[str, ...]:
    """Return the roles of a body's operands in order, numbered if there are several of a role."""
    return tuple(
        f"{role} {k}" if len(some) > 1 else role
        for role, some in values.items()
        for k, _ in enumerate(some)
    )


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
