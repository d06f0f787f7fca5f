"""Control flow: scan, while and cond as JAX has them, around programs of their bodies.

What goes round a loop keeps one layout: the one it enters in, its padding undef. Arrays that a scan
takes apart, or stacks, lie with their first dim whole on every core, so that each step's slice is
in place. A scan costs its body times its length, a while loop one trip, a cond its dearest branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Body
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import scan_parts
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import RequestedLoop
from gridlayout.ops.decisions.specs import (
    Replicated,
    Sharded,
    Spec,
    is_indexed,
    is_of_keys,
    layout_of,
    unmasked,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.programs.program import Program
from gridlayout.ops.rules.along import from_front, in_front, rest_layout, stacked, unstack

# The note of bodies of which one time is counted, however often they run.
PER_TRIP = "per trip"


def scan(b: Builder, op: Op, *values: Value) -> Any:
    """`lax.scan`: the carry keeps its layouts, slices of what is scanned lie in place."""
    p = op.params
    first, second = scan_parts(p)
    consts, length = [_given(b, value) for value in values[:first]], p["length"]
    asked = op.loop
    carry = _carried(b, values[first:second], asked)
    scanned, slices = [], []
    for k, value in enumerate(values[second:]):
        whole, spec = _scanned(b, value, None if asked is None else asked.slices[k])
        scanned.append(whole)
        slices.append(spec)
    kept = [_unknown(value.spec) for value in carry]
    specs = [*(x.spec for x in consts), *kept, *slices]
    count = len(consts) + len(kept)

    def planned(env: Env, chosen: Any, simple: Program | None) -> Program:
        planner = b.plan(env, specs, chosen)
        parts = [planner.moved(_given, value) for value in planner.operands[count:]]
        outs = planner.closed(p["jaxpr"], [*planner.operands[:count], *parts], _layouts(kept))
        rows = [_stackable(planner, out, length) for out in outs[len(kept) :]]
        there = () if simple is None else map(unmasked, simple.results[len(kept) :])
        found: Program = planner.program([*outs[: len(kept)], *rows], [*kept, *there])
        return found

    if asked is None:
        body = b.plan.cheapest(b.env, p["jaxpr"], specs, planned)
    else:
        body = planned(b.env, asked.chosen, None)
    rows = [row.spec for row in body.outs[len(kept) :]]
    made = [_stacked(b, row, length) for row in rows]

    run = partial(_scanned_over, p, body, first, kept, slices, rows)
    roles = _roles(constant=consts, carry=carry, slice=slices)
    bodies = [Body(body, length, roles=roles)]
    outs = _around(b, run, [*consts, *carry, *scanned], [*kept, *made], bodies)
    return [_home(b, out, asked is not None) for out in outs]


def _scanned_over(
    p: Any,
    body: Program,
    first: int,
    kept: Sequence[Spec],
    slices: Sequence[Spec],
    rows: Sequence[Spec],
    *arrays: Any,
) -> list[Any]:
    """`lax.scan` of a program on a device's parts: constants, carry, and what is taken apart."""
    second = first + len(kept)
    given = arrays[:first]

    def step(carried: Any, parts: Any) -> Any:
        inside = [*_with_cores(carried, kept), *_with_cores(parts, slices)]
        found = body.run_inside([*given, *inside])
        after, made = found[: len(kept)], found[len(kept) :]
        return _buffers(_strong(after, kept), kept), _buffers(made, rows)

    parts = [
        in_front(x, 1, len(spec.placement.grid)) if isinstance(spec, Sharded) else x
        for x, spec in zip(arrays[second:], slices, strict=True)
    ]
    start = _buffers(_strong(arrays[first:second], kept), kept)
    parts = _buffers(parts, slices, 1)
    final, found = lax.scan(step, start, parts, p["length"], p["reverse"], p["unroll"])
    return [
        *_with_cores(final, kept),
        *(
            from_front(x, 1, len(row.placement.grid)) if isinstance(row, Sharded) else x
            for x, row in zip(_with_cores(found, rows, 1), rows, strict=True)
        ),
    ]


def _layouts(specs: Sequence[Spec]) -> list[Layout | None]:
    return list(map(layout_of, specs))


def while_(b: Builder, op: Op, *values: Value) -> Any:
    """`lax.while_loop`: what goes round keeps its layouts."""
    p = op.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    consts = [_given(b, value) for value in values[:second]]
    asked = op.loop
    carry = _carried(b, values[second:], asked)
    kept = [_unknown(value.spec) for value in carry]
    number = p["cond_jaxpr"].out_avals[0]
    of_test, of_body = ([x.spec for x in some] for some in (consts[:first], consts[first:]))

    planner = b.plan(b.env, [*of_test, *kept])
    going = planner.closed(p["cond_jaxpr"], planner.operands)
    test = planner.program(going, [Replicated(number.shape, number.dtype)])

    def planned(env: Env, chosen: Any, _: Any) -> Program:
        planner = b.plan(env, [*of_test, *of_body, *kept], chosen)
        given = planner.operands
        before = given[second:]
        outs = planner.closed(p["body_jaxpr"], given[first:], _layouts(kept))
        if number.shape:
            # `jax.vmap` of a test: each row goes round while its own says so.
            going = planner.closed(p["cond_jaxpr"], [*given[:first], *before])
            outs = planner.closed(_kept_rows(p), [*going, *outs, *before])
        found: Program = planner.program(outs, kept)
        return found

    specs = [*of_body, *kept]
    if number.shape or asked is not None:
        body = planned(b.env, None if asked is None else asked.chosen, None)
    else:
        body = b.plan.cheapest(b.env, p["body_jaxpr"], specs, planned)

    def run(*arrays: Any) -> list[Any]:
        given = arrays[:second]

        def more(carried: Any) -> Any:
            inside = _with_cores(carried, kept)
            return jnp.any(test.run_inside([*given[:first], *inside])[0])

        def step(carried: Any) -> Any:
            inside = _with_cores(carried, kept)
            return _buffers(_strong(body.run_inside([*given, *inside]), kept), kept)

        start = _buffers(_strong(arrays[second:], kept), kept)
        return _with_cores(lax.while_loop(more, step, start), kept)

    bodies = [
        Body(test, 1, PER_TRIP, "test", _roles(constant=consts[:first], carry=carry)),
        Body(body, 1, PER_TRIP, "body", _roles(constant=consts, carry=carry)),
    ]
    return _around(b, run, [*consts, *carry], kept, bodies)


def _kept_rows(p: Any) -> Any:
    """What goes round a batched loop: a new row where its test says so, else the old one."""
    (going,), carry = p["cond_jaxpr"].out_avals, p["body_jaxpr"].out_avals

    def kept(going: Any, new: Any, old: Any) -> list[Any]:
        rows = [going.reshape(going.shape + (1,) * (x.ndim - going.ndim)) for x in new]
        return [jnp.where(*row) for row in zip(rows, new, old, strict=True)]

    return jax.make_jaxpr(kept)(going, carry, carry)


def cond(b: Builder, op: Op, *values: Value) -> Any:
    """`lax.cond` and `lax.switch`: every branch gives its results in the layouts of the first."""
    index = b.replicated(values[0])
    operands = [_entering(b, x) if x.layout is not None else b.settled(x) for x in values[1:]]
    specs = [_unknown(x.spec) for x in operands]
    programs: list[Program] = []
    kept: list[Spec] = []
    for branch in op.params["branches"]:
        planner = b.plan(b.env, specs)
        outs = planner.closed(branch, planner.operands, _layouts(kept))
        programs.append(planner.program([planner.moved(_entering, out) for out in outs], kept))
        kept = kept or [_unknown(spec) for spec in programs[0].results]

    def run(index: Any, *arrays: Any) -> list[Any]:
        def way(program: Program) -> Callable[..., list[Any]]:
            return lambda *arrays: _strong(program.run_inside(arrays), kept)

        return list(lax.switch(index, [way(each) for each in programs], *arrays))

    dearest = max(programs, key=lambda each: b.env.machine.seconds(each.collectives))
    roles = _roles(operand=operands)
    bodies = [
        Body(each, int(each is dearest), "the dearest branch", f"branch {k}", roles)
        for k, each in enumerate(programs)
    ]
    return _around(b, run, [index, *operands], kept, bodies)


def _around(
    b: Builder, run: Any, operands: Sequence[Value], specs: Sequence[Spec], bodies: list[Body]
) -> list[Value]:
    is_global = not all(body.program.is_local for body in bodies)
    counted = tuple(body for body in bodies if body.times)
    others = tuple(body for body in bodies if not body.times)
    return b.run(run, operands, specs, is_global=is_global, bodies=counted, others=others)


def _roles(**values: Sequence[Any]) -> tuple[str, ...]:
    """What the operands of a body are, in order: numbered where there are several."""
    return tuple(
        f"{role} {k}" if len(some) > 1 else role
        for role, some in values.items()
        for k, _ in enumerate(some)
    )


def _entering(b: Builder, value: Value) -> Value:
    """The value as it crosses into a body: laid out, or a plain scalar or key."""
    if value.ndim == 0 or is_of_keys(value.spec):
        return b.replicated(value)
    return b.replicated(value) if b.env.is_whole(value.spec) else b.on_cores(value)


def _carried(b: Builder, values: Sequence[Value], asked: RequestedLoop | None) -> list[Value]:
    """The carry of a loop: as it is, or where it is requested."""
    carry = [_entering(b, value) for value in values]
    if asked is None:
        return carry
    return [
        x if there is None else b.on_cores(x, there.layout, placement=there.placement)
        for x, there in zip(carry, asked.carry, strict=True)
    ]


def _given(b: Builder, value: Value) -> Value:
    """The value as a body takes it from outside: as it is, or whole; made, and so once for all."""
    if b.env.is_whole(value.spec):
        return b.replicated(value)
    return b.settled(value) if is_indexed(value.spec) else value


def _unknown(spec: Spec) -> Spec:
    """The spec of what goes round: nothing is known of its padding, nor of its number."""
    if isinstance(spec, Sharded):
        return spec.with_oob(None)
    assert isinstance(spec, Replicated)
    return Replicated(spec.shape, spec.dtype)


def _strong(arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """The arrays in the types of the specs, none of them weak."""
    return [
        x if is_of_keys(spec) else lax.convert_element_type(x, spec.dtype)
        for x, spec in zip(arrays, specs, strict=True)
    ]


def _buffers(arrays: Sequence[Any], specs: Sequence[Spec], lead: int = 0) -> list[Any]:
    """Parts of one core each as that core's buffer: XLA updates in place what it need not reshape.

    lead: dims in front of the cores.
    """
    found = []
    for x, spec in zip(arrays, specs, strict=True):
        end = lead + (len(spec.placement.grid) if isinstance(spec, Sharded) else 0)
        is_one = set(x.shape[lead:end]) == {1}
        found.append(x.reshape(*x.shape[:lead], *x.shape[end:]) if is_one else x)
    return found


def _with_cores(arrays: Sequence[Any], specs: Sequence[Spec], lead: int = 0) -> list[Any]:
    """The inverse of `_buffers`."""
    found = []
    for x, spec in zip(arrays, specs, strict=True):
        if isinstance(spec, Sharded) and x.ndim == lead + len(spec.layout.local_shape):
            ones = (1,) * len(spec.placement.grid)
            x = x.reshape(*x.shape[:lead], *ones, *x.shape[lead:])
        found.append(x)
    return found


def _scanned(b: Builder, value: Value, there: Sharded | None = None) -> tuple[Value, Spec]:
    """A value that is scanned, and what one slice of it is; there: where slices are requested."""
    if there is not None:
        layout = there.layout.as_grid
        assert layout is not None
        whole = Sharded(stacked(layout, (0,), value.shape[:1]), there.placement.behind(1))
        return b.on_cores(value, whole.layout, placement=whole.placement), there
    is_key = is_of_keys(value.spec)
    rest = None if is_key or b.env.is_whole(value.spec) else rest_layout(b, value, (0,))
    if rest is None:
        return b.replicated(value), Replicated(value.shape[1:], value.dtype)
    rest = rest.with_dtype(value.dtype)
    return unstack(b, value, (0,), rest), b.sharded(rest)


def _stackable(planner: Any, out: Value, length: int) -> Value:
    """A row as a scan stacks it: laid out in dims that another can come before, or replicated."""
    out = planner.moved(_entering, out)
    layout = out.layout
    stacks = layout is not None and layout.grouped and layout.size and length
    if layout is None or stacks:
        return out
    return planner.moved(Builder.replicated, out)


def _stacked(b: Builder, row: Spec, length: int) -> Spec:
    """The spec of rows one after another: the first dim whole on each core."""
    if isinstance(row, Sharded):
        own = row.layout.grouped
        assert own is not None
        return Sharded(stacked(own.with_oob(None), (0,), (length,)), row.placement.behind(1))
    return Replicated((length, *row.shape), row.dtype)


def _home(b: Builder, out: Value, stays: bool) -> Value:
    """A stacked result where it belongs: arrays on cores, numbers and keys on every device.

    stays: whether it may be on other devices than its layout's, as a plan says where it is read.
    """
    spec = out.spec
    if isinstance(spec, Sharded):
        return out if stays else b.relayout(out, spec.layout)
    if spec.ndim == 0 or b.env.is_whole(spec):
        return out
    return out if is_of_keys(spec) else b.on_cores(out)
