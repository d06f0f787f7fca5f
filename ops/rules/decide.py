"""`decide`: the decisions for an op on operands of known specs, remembered; `pick`: the one taken.

Pure Python over layouts, padding facts and the environment: no device is asked, nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout.layout import Layout
from gridlayout.ops.decisions.builder import (
    FALLBACK,
    Builder,
    Choice,
    Decision,
)
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.facts import number, on_host
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Deferred, Replicated, Spec, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.table import LOOPS, flops, is_key, rules_of, rules_version


def decide(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any = None) -> tuple[Decision, ...]:
    """All decisions that the op's rule offers, the first ones preferred where costs are equal.

    plan: makes a planner of the programs that run inside a loop or a branch.
    """
    try:
        return _remembered(op, operands, env, plan, rules_version())
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _decided(op, operands, env, plan)


def pick(decisions: Sequence[Decision], env: Env) -> Decision:
    """The cheapest decision by the cost model."""
    if len(decisions) == 1:
        return decisions[0]
    return min(decisions, key=lambda each: env.model.seconds(each.collectives))


@lru_cache(maxsize=1 << 14)
def _remembered(
    op: Op, operands: tuple[Spec, ...], env: Env, plan: Any, version: int
) -> tuple[Decision, ...]:
    return _decided(op, operands, env, plan)


def _decided(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any) -> tuple[Decision, ...]:
    if all(layout_of(spec) is None for spec in operands):
        return _tried(_replicated, op, operands, env, plan)
    if op.outs and all(0 in aval.shape for aval in op.outs) and op.name not in LOOPS:
        return _tried(_empty, op, operands, env, plan)
    for rule in rules_of(op):
        if found := _tried(rule.decide, op, operands, env, plan):
            return found
    others = _everywhere if any(map(is_key, (*op.ins, *op.outs))) else fallback
    return _tried(others, op, operands, env, plan)


def _tried(
    rule: Callable[..., Any], op: Op, operands: tuple[Spec, ...], env: Env, plan: Any
) -> tuple[Decision, ...]:
    """The decisions of a rule; none where it declines."""

    def ask(op: Op, operands: tuple[Spec, ...]) -> Decision:
        return pick(decide(op, operands, env, plan), env)

    builder = Builder(env, operands, ask, plan)
    made = rule(builder, op, *(Value(spec, k) for k, spec in enumerate(operands)))
    if made is None:
        return ()
    if isinstance(made, Choice):
        ways = (_tried(way, op, operands, env, plan) for way in made.rules)
        return tuple(each for way in ways for each in way)
    outs = made if isinstance(made, (list, tuple)) else [made]
    decision = builder.decision(op, operands, outs)
    # Where every device does all of it, they all do the work.
    times = env.device.size if decision.how == FALLBACK else 1
    total = times * flops(op)
    share = builder.device_flops
    own = -(-total // env.device.size) if share is None else share
    return (replace(decision, flops=total, device_flops=own),)


def _replicated(b: Builder, op: Op, *values: Value) -> Any:
    """No core holds any operand: every device does it; a broadcast waits until it is wanted."""
    out = op.out if op.outs else None
    if op.name == "broadcast_in_dim" and len(values) == 1 and out is not None:
        (value,) = values
        if not isinstance(value.spec, Deferred) and value.ndim == 0 and out.shape:
            return value.seen(Deferred(value.spec, (), out.shape))
    values = tuple(map(b.replicated, values))
    numbers = [getattr(value.spec, "number", None) for value in values]
    if out is not None and not out.shape and numbers and not any(x is None for x in numbers):
        pairs = zip(numbers, op.ins, strict=True)
        if (known := on_host(op, [number(x, aval.dtype) for x, aval in pairs])) is not None:
            return b.known(known, out.dtype, out.weak_type)
    return on_every_device(b, op, values)


def on_every_device(b: Builder, op: Op, values: Sequence[Value]) -> list[Value]:
    """The primitive on logical arrays, by every device."""
    outs = [Replicated(aval.shape, aval.dtype, aval.weak_type) for aval in op.outs]

    def run(*arrays: Any) -> list[Any]:
        made = op.on_logical(*arrays)
        if op.permutation is not None:
            made = [lax.transpose(made[0], op.permutation)]
        # A result that nobody reads is not made.
        return [
            jnp.zeros(spec.shape, spec.dtype) if out is None else out
            for out, spec in zip(made, outs, strict=True)
        ]

    return b.run(run, values, outs, is_global=has_effects(op))


def has_effects(op: Op) -> bool:
    """Whether the op calls the host, or lays out by itself: it is done once, on whole arrays."""
    effects = op.equation is not None and bool(op.equation.effects)
    return effects or op.name in ("pure_callback", "io_callback", "debug_callback", "shard_map")


def _empty(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Results without elements, of which nothing has to be moved."""
    like = next(value for value in values if value.layout is not None)
    outs = [Replicated(aval.shape, aval.dtype) for aval in op.outs]
    made = b.run(lambda: [jnp.zeros(out.shape, out.dtype) for out in outs], [], outs)
    return [b.on_cores(out, like=like) for out in made]


def _everywhere(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Every device gets the logical operands, runs the primitive, and keeps its part.

    So it is with random keys beside arrays: every device has the keys.
    """
    like: Any = next(layout for layout in (value.layout for value in values) if layout is not None)
    made = on_every_device(b, op, [b.replicated(value) for value in values])
    return [laid_out(b, out, like) for out in made]


def fallback(b: Builder, op: Op, *values: Value) -> list[Value]:
    """No rule: as with keys, which the report tells apart."""
    b.how = FALLBACK
    return _everywhere(b, op, *values)


def laid_out(b: Builder, out: Value, like: Layout | None) -> Value:
    """A replicated result where it belongs; single numbers and keys stay."""
    if out.ndim == 0 or (isinstance(out.spec, Replicated) and out.spec.is_key):
        return out
    return b.on_cores(out, like=like)
