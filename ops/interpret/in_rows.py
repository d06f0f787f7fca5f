"""Ops on tiled operands, run without the tiles: each device untiles its part, and tiles results.

A tile divides a core's part, so both are local. Rules that read parts of blocks, such as those of
views and indices, then serve tiled arrays as they serve others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from jax import lax

from gridlayout.document.grid_form import as_grid
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.blocks import untiled
from gridlayout.ops.decisions.builder import Builder, written_seconds
from gridlayout.ops.decisions.decision import Decision
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Deferred, Sharded, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.sharding.choice import fastest_of


def tiled_operand(op: Op, record: Record, operands: Sequence[Spec], env: Env) -> Layout | None:
    """Return the layout of the first tiled operand of an op that may run without tiles.

    Functions of elements, reductions and products run on tiles as they are, and a chip with tiles
    in hardware computes on them.
    """
    if op.requested is not None or env.policy is not same_grid_and_tile:
        return None
    if record.is_elementwise or record.is_reduction or record.multiplies or record.is_control:
        return None
    if record.is_annotation or record.is_global or record.changes_space or not record.rules:
        return None
    if env.machine.chip.tiles:
        return None
    return next((held.layout for held in map(_tiled, operands) if held is not None), None)


def in_rows(b: Builder, op: Op, *values: Value) -> Any:
    """Rule that untiles the operands and runs the op by its rule."""
    assert b.ask is not None
    given = [_untiled(b, value) for value in values]
    made = b.ask(op, tuple(value.spec for value in given))
    b.how, b.note, b.device_flops = made.how, made.note, made.device_flops
    for k, (value, before) in enumerate(zip(given, values, strict=True)):
        if value is not before and b.device.platform == "cpu" and _is_read_often(made, k):
            given[k] = _stored(b, value)
    return b.inlined(made, given)


def _is_read_often(made: Decision, k: int) -> bool:
    """Whether several kernels that XLA fuses with others read the elements of an operand.

    XLA on CPUs would find them in tiles for each, one by one.
    """
    seen, nbytes, count = {k}, 0, 0
    for step in made.steps:
        if not any(at in seen for at in step.reads if isinstance(at, int)):  # others are constants
            continue
        if step.is_view or step.workspace().is_view:
            seen.update(step.writes)
        elif step.is_fused:
            nbytes += sum(made.registers[at].device_bytes for at in step.writes)
            count += 1
    return count > 1 and 2 * nbytes > 3 * made.registers[k].device_bytes


def _stored(b: Builder, value: Value) -> Value:
    """Return a value that is stored before it is read."""
    spec = value.spec
    if not isinstance(spec, Sharded):
        return value
    return b.run(lambda x: [lax.optimization_barrier(x)], [value], [spec], takes_fused=True)[0]


def in_tiles(b: Builder, out: Value, like: Layout) -> Value:
    """Return a result in the tiles of an operand."""
    if not isinstance(out.spec, Sharded):
        return out
    return b.as_sharded(out, b.in_tiles(out.spec, like).layout)


def faster_first(
    found: Iterator[Decision], others: Sequence[Decision], env: Env
) -> Iterator[Decision]:
    """Yield the fastest of several ways to run an op, then those with its results.

    found: the ways by the op's rules, the cheapest first. others: other ways, preferred to these
    where they are as fast, and reorder parts no more.
    """
    first = next(found)
    ways = sorted([*others, first], key=lambda way: any(step.is_lazy for step in way.steps))
    seconds = [_seconds(way, env) for way in ways]
    received = [way.bytes_moved / env.device.size for way in ways]
    best = ways[fastest_of(seconds, received, env.machine.similar)]
    yield best
    rest = (way for way in ways[::-1] if way is not best)
    yield from (each for each in chain(rest, found) if each.results == best.results)


def _seconds(decision: Decision, env: Env) -> float:
    """Return the seconds to send, and to write what is sent and made."""
    machine = env.machine
    sent = machine.price(decision.collectives, env.device.size)
    if not machine.has_latency:
        return sent
    held = sum(step.workspace().most for step in decision.steps)
    return (
        sent
        + written_seconds(decision, machine, fuses_moves=True)
        + machine.work_seconds(nbytes=held)
    )


def _tiled(spec: Spec) -> Sharded | None:
    """Return the spec of what devices hold of a value, if that is in tiles."""
    held = spec.source if isinstance(spec, Deferred) else spec
    own = as_grid(held.layout) if isinstance(held, Sharded) else None
    return held if isinstance(held, Sharded) and own is not None and own.tile else None


def _untiled(b: Builder, value: Value) -> Value:
    """Return a value without tiles, each core's part on the same device."""
    spec = value.spec
    if (held := _tiled(spec)) is None:
        return value
    rows = untiled(held)
    out = b.as_spec(value.with_spec(held), rows)
    assert isinstance(out.spec, Sharded)
    return out.with_spec(replace(spec, source=out.spec)) if isinstance(spec, Deferred) else out
