"""`decide`: the decision for an op on operands of known specs, remembered; `offers`: all there are.

Pure Python over layouts, padding facts and the environment: no device is asked, nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.ops.array.fitting import most_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import FALLBACK, Choice, Decide, Decision
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.facts import number, on_host
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import OF_BLOCKS
from gridlayout.ops.decisions.specs import (
    Deferred,
    Replicated,
    Sharded,
    Spec,
    in_space,
    is_laid_out,
    is_of_keys,
    known_values,
    layout_of,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import broadcast
from gridlayout.ops.plan.loops import draws_much, sends_often, with_small_whole
from gridlayout.ops.rules.elementwise import ELEMENTWISE, KEPT
from gridlayout.ops.rules.empty import without_elements
from gridlayout.ops.rules.indices import is_spread, of_indices_alone
from gridlayout.ops.rules.sorting import sort
from gridlayout.ops.rules.table import (
    LOOPS,
    REASONS,
    SHARDED,
    flops,
    is_of_user,
    rules_of,
    rules_version,
)

# Numbers of an array that may be known: as many as index a tensor.
_MOST_KNOWN = 64
# Ops whose rules place their operands as is requested.
_PLACES_ITSELF = ELEMENTWISE | {*OF_BLOCKS}
# Ops with rules for what has no elements.
_EMPTY_TOO = (*LOOPS, "with_layout")
# Ops whose operands have nothing to do with each other, or whose results are asked for elsewhere. A
# sum of cotangents is in the space of the first.
_CHANGES_SPACE = ("with_layout", "optimization_barrier", "add_any")
# What XLA makes where it is read, also of whole arrays: masks, positions, constants.
_FUSED = ELEMENTWISE | {"iota", "broadcast_in_dim", "reshape", "squeeze"}


def decide(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any = None) -> Decision:
    """The cheapest decision for an op on operands of these specs.

    plan: makes a planner of the programs that run inside a loop or a branch.
    """
    if has_effects(op):  # remembered, the functions that it calls would be held
        return _decided(op, operands, env, plan)
    try:
        version = rules_version(), jax.config.jax_threefry_partitionable
        return _remembered(op, operands, env, plan, version)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _decided(op, operands, env, plan)


@lru_cache(maxsize=1 << 14)
def _remembered(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any, version: Any) -> Decision:
    return _decided(op, operands, env, plan)


def _decided(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any) -> Decision:
    best = next(_offered(op, operands, env, plan))
    if sends_often(best, env):
        return with_small_whole(best, decide(op, operands, replace(env, whole=True), plan), env)
    return best


def offers(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any = None) -> tuple[Decision, ...]:
    """All decisions that the op's rule offers, the cheapest first."""
    return tuple(_offered(op, operands, env, plan))


def _offered(op: Op, operands: tuple[Spec, ...], env: Env, plan: Any) -> Iterator[Decision]:
    for rule in _rules(op, operands, env):
        made, offered = _written(rule, op, operands, env, plan), False
        ways = chain([made.best], _later(made.others)) if isinstance(made, Choice) else ()
        for found in (_written(way, op, operands, env, plan) for way in ways):
            if isinstance(found, Decision):
                yield found
                offered = True
        if isinstance(made, Decision):
            yield made
        if offered or isinstance(made, Decision):
            return


def _placed(b: Builder, value: Value, there: Sharded | None) -> Value:
    return value if there is None else b.on_cores(value, there.layout, placement=there.placement)


def _later(others: Callable[[], Sequence[Decide]]) -> Iterator[Decide]:
    yield from others()


def _rules(op: Op, operands: tuple[Spec, ...], env: Env) -> Iterator[Decide]:
    """What is tried for an op, in order; the last one declines nothing."""
    is_laid = any(map(is_laid_out, operands))
    if not is_laid and not (op.name in LOOPS and (env.whole or draws_much(op, env))):
        if op.name == "with_layout":
            yield from (rule.decide for rule in rules_of(op))
        yield of_indices_alone
        yield _spread
        yield _replicated
    elif op.name not in _EMPTY_TOO and op.outs and all(0 in aval.shape for aval in op.outs):
        yield _empty
    elif op.name not in _EMPTY_TOO and _has_no_elements(operands):
        yield _everywhere  # nothing is moved
    else:
        yield from (rule.decide for rule in rules_of(op))
        yield _everywhere if any(map(is_of_keys, (*op.ins, *op.outs))) else fallback


def _has_no_elements(operands: Sequence[Spec]) -> bool:
    """Whether no operand that cores hold has elements."""
    return all(0 in spec.shape for spec in operands if is_laid_out(spec))


def _written(
    rule: Decide, op: Op, operands: tuple[Spec, ...], env: Env, plan: Any
) -> Decision | Choice | None:
    """What a rule writes down, or the ways that it knows; None where it declines."""

    def ask(op: Op, operands: tuple[Spec, ...]) -> Decision:
        return decide(op, operands, env, plan)

    space = _space(op, operands)
    builder = Builder(env, operands, ask, plan)
    values = [Value(spec, k) for k, spec in enumerate(operands)]
    if op.requested is not None and op.name not in _PLACES_ITSELF:
        values = [_placed(builder, *pair) for pair in zip(values, op.requested.ins, strict=True)]
    made = rule(builder, op, *values)
    if made is None or isinstance(made, Choice):
        return made
    outs = made if isinstance(made, (list, tuple)) else [made]
    if env.policy is same_grid_and_tile and not is_of_user(rule):
        if op.requested is None and op.name != "with_layout":
            outs = _fitted(builder, outs, operands)
        if space is not None:
            outs = [out.seen(in_space(out.spec, space)) for out in outs]
    decision = builder.decision(op, operands, outs)
    # Where every device does all of it, they all do the work.
    times = env.device.size if decision.how == FALLBACK else 1
    total = times * flops(op)
    share = builder.device_flops
    own = -(-total // env.device.size) if share is None else share
    return replace(decision, flops=total, device_flops=own)


def _fitted(b: Builder, outs: Sequence[Value], operands: Sequence[Spec]) -> list[Value]:
    """Results in storage that is no larger than the policy allows of these operands."""
    sources = (spec.source if isinstance(spec, Deferred) else spec for spec in operands)
    layouts = [spec.layout for spec in sources if isinstance(spec, Sharded)]
    found = []
    for out in outs:
        layout = out.layout
        if layout is not None:
            out = b.fitted(out, most_bytes(layout.data_bytes, layouts, b.device))
        found.append(out)
    return found


def _space(op: Op, operands: tuple[Spec, ...]) -> str | None:
    """The memory space of an op's operands, which is its results' too; None where it may change.

    `LayoutError` where they are in several: "a tensor must belong exclusively to only one of these
    memory spaces at a time" (tt-mlir, "Memory Spaces").
    """
    if op.name in LOOPS or op.name in _CHANGES_SPACE:
        return None
    layouts = (layout_of(spec) for spec in operands)
    spaces = {x.memory for x in layouts if x is not None and x.memory in MEMORY_SPACES}
    if len(spaces) > 1:
        *some, last = sorted(map(str, spaces))
        raise LayoutError(
            f"{op.name}: its operands are in the memory spaces {', '.join(some)} and {last}; an "
            "operation takes them from one. Bring one over first: gl.relayout(x, "
            f"x.layout.replace(memory_space={last!r})), or gl.with_layout inside the function"
        )
    return spaces.pop() if spaces else None


def _spread(b: Builder, op: Op, *values: Value) -> Any:
    """Large arrays that are made of logical indices are laid out; then it is as any other op.

    Where that would run whole on every device, each makes all of them instead, and sends nothing.
    """
    large = [is_spread(b, value) for value in values]
    if not any(large) or not rules_of(op) or b.ask is None:
        return None
    is_own = any(is_of_user(rule.decide) for rule in rules_of(op))
    if op.name == "sort" and op.out.ndim == 1 and not is_own:
        return sort(b, op, *values)  # priced with nothing to send for all of it
    brought = [b.on_cores(x) if is_one else x for x, is_one in zip(values, large, strict=True)]
    made = b.ask(op, tuple(value.spec for value in brought))
    if made.how == FALLBACK:
        return None
    b.how, b.note, b.device_flops = made.how, made.note, made.device_flops
    return b.inlined(made, brought)


def _replicated(b: Builder, op: Op, *values: Value) -> Any:
    """No core holds any operand: every device does it; a broadcast waits until it is wanted."""
    if op.name in SHARDED:
        return list(values)
    out = op.out if op.outs else None
    if op.name == "broadcast_in_dim" and len(values) == 1 and out is not None:
        (value,) = values
        is_more = prod(out.shape) > prod(value.shape) or (out.shape and not value.ndim)
        if isinstance(value.spec, Replicated) and is_more:
            return broadcast(b, value, out.shape, op.params["broadcast_dimensions"])
    if out is not None and op.name == "concatenate" and out.size <= _MOST_KNOWN:
        parts = [known_values(value.spec) for value in values]
        some = [part for part in parts if part is not None]
        if len(some) == len(parts):
            return b.known(np.concatenate(some, op.params["dimension"]), out.dtype)
    values = tuple(map(b.replicated, values))
    numbers = [getattr(value.spec, "number", None) for value in values]
    if out is not None and not out.shape and numbers and not any(x is None for x in numbers):
        pairs = zip(numbers, op.ins, strict=True)
        if (known := on_host(op, [number(x, aval.dtype) for x, aval in pairs])) is not None:
            return b.known(known, out.dtype, out.weak_type)
    b.device_flops = flops(op)
    return on_every_device(b, op, values)


def on_every_device(b: Builder, op: Op, values: Sequence[Value]) -> list[Value]:
    """The primitive on logical arrays, by every device."""
    outs = [Replicated(aval.shape, aval.dtype, aval.weak_type) for aval in op.outs]

    def run(*arrays: Any) -> list[Any]:
        made = op.on_logical(*arrays)
        return made if op.permutation is None else [lax.transpose(made[0], op.permutation)]

    fused = op.name in _FUSED and op.permutation is None
    return b.run(
        run,
        values,
        outs,
        is_global=has_effects(op),
        is_fused=fused,
        takes_fused=fused,
        is_kept=op.name in KEPT,
    )


# The interpreter of Pallas traces a kernel again, and fails inside of a `shard_map`.
_ON_WHOLE_ARRAYS = ("pure_callback", "io_callback", "debug_callback", "shard_map", "pallas_call")


def has_effects(op: Op) -> bool:
    """Whether the op calls the host, or lays out by itself: it is done once, on whole arrays."""
    effects = op.equation is not None and bool(op.equation.effects)
    return effects or op.name in _ON_WHOLE_ARRAYS


def _empty(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Results without elements."""
    return without_elements(b, op.outs, next(x for x in values if x.layout is not None))


def _everywhere(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Every device gets the logical operands, runs the primitive, and keeps its part.

    So it is with random keys beside arrays: every device has the keys.
    """
    like: Any = next(layout for layout in (value.layout for value in values) if layout is not None)
    made = on_every_device(b, op, [b.replicated(value) for value in values])
    return [laid_out(b, out, like) for out in made]


def fallback(b: Builder, op: Op, *values: Value) -> list[Value]:
    """No rule: as with keys, which the report tells apart."""
    b.how, b.note = FALLBACK, REASONS.get(op.name, "")
    return _everywhere(b, op, *values)


def laid_out(b: Builder, out: Value, like: Layout | None) -> Value:
    """A replicated result where it belongs; single numbers and keys stay."""
    if out.ndim == 0 or is_of_keys(out.spec):
        return out
    return b.on_cores(out, like=like)
