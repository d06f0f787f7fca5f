"""`decide`: the cached decision for an op on operands of known specs. `offers`: all decisions.

Pure Python on layouts, known padding values and the environment: it uses no device and, except for
rules of users, traces nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import jax
from jax import lax

from gridlayout.caching import cached
from gridlayout.errors import LayoutError, PlacementError
from gridlayout.key import Key
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.ops.array.fitting import ANY, fitting, most_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import FALLBACK, Choice, Decision, PlanBody
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.facts import number, on_host
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide
from gridlayout.ops.decisions.specs import (
    Deferred,
    Replicated,
    Sharded,
    Spec,
    in_space,
    is_laid_out,
    is_of_keys,
    layout_of,
    parts_of,
)
from gridlayout.ops.decisions.stated import stated_spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.interpret.in_rows import faster_first, in_rows, in_tiles, tiled_operand
from gridlayout.ops.interpret.loops import draws_much, sends_often, with_small_replicated
from gridlayout.ops.primitives.empty import without_elements
from gridlayout.ops.primitives.indices import deferred_result, is_too_large_to_replicate
from gridlayout.ops.primitives.table import flops, record_of, rules_of, rules_version
from gridlayout.ops.primitives.user_rules import is_user_rule
from gridlayout.ops.primitives.whole_tiles import on_tiles

# The note of a fallback for which a device grid's `core_map` is the reason.
_NO_PLACEMENT = "the core_map places no grid that its rule needs"


def decide(op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None = None) -> Decision:
    """Return the cheapest decision for an op on operands of these specs.

    plan: starts the programs of loop bodies and branches.
    """
    if has_effects(op):  # the cache must not hold the functions that it calls
        return _decide(op, operands, env, plan)
    try:
        version = rules_version(), jax.config.jax_threefry_partitionable
        return _decide_cached(op, operands, env, plan, version)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _decide(op, operands, env, plan)


@cached(size=6 << 10)
def _decide_cached(
    op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None, version: Any
) -> Decision:
    return _decide(op, operands, env, plan).made_of(Key(op, operands, env, version))


def _decide(op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None) -> Decision:
    best = next(_offers(op, operands, env, plan))
    if sends_often(best, env):
        return with_small_replicated(
            best, decide(op, operands, replace(env, replicates_small=True), plan), env
        )
    return best


def offers(
    op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None = None
) -> tuple[Decision, ...]:
    """Return all decisions that the op's rule offers, the cheapest first."""
    return tuple(_offers(op, operands, env, plan))


def _offers(
    op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None
) -> Iterator[Decision]:
    found = _by_rules(op, operands, env, plan)
    if any(map(is_user_rule, rules_of(op))):
        return found
    if tiled_operand(op, record_of(op.name), operands, env) is None:
        return found
    others = [_apply_rule(rule, op, operands, env, plan) for rule in (on_tiles, in_rows)]
    return faster_first(found, [each for each in others if isinstance(each, Decision)], env)


def _by_rules(
    op: Op, operands: tuple[Spec, ...], env: Env, plan: PlanBody | None
) -> Iterator[Decision]:
    refused: list[str] = []

    def proposed(rule: Decide) -> Decision | Choice | None:
        try:
            made = _apply_rule(rule, op, operands, env, plan)
        except PlacementError as error:
            if _is_stated(op, rule, env):
                raise LayoutError(str(error)) from error
            refused.append(str(error))
            return None
        if refused and isinstance(made, Decision) and made.how == FALLBACK:
            return replace(made, note=", ".join(filter(None, (made.note, _NO_PLACEMENT))))
        return made

    for rule in _rules(op, operands, env):
        made, offered = proposed(rule), False
        ways: Iterable[Decide] = ()
        if isinstance(made, Choice):
            ways = chain([made.again or made.best], _lazily(made.others))
        for found in map(proposed, ways):
            if isinstance(found, Decision):
                yield found
                offered = True
        if isinstance(made, Decision):
            yield made
        if offered or isinstance(made, Decision):
            return
    raise LayoutError(refused[0])


def _is_stated(op: Op, rule: Decide, env: Env) -> bool:
    """Return whether the user states the layouts of an op, or how it runs."""
    named = env.algorithm not in (None, "gathered")  # which always works
    return _is_placed(op, env) or is_user_rule(rule) or named


def _is_placed(op: Op, env: Env) -> bool:
    """Return whether the program states the placement of an op's result."""
    return bool(op.outs) and stated_spec(op.name, op.params, op.out, env.device) is not None


def _relaid_out(b: Builder, value: Value, target: Sharded | None) -> Value:
    return value if target is None else b.as_spec(value, target)


def _lazily(others: Callable[[], Sequence[Decide]]) -> Iterator[Decide]:
    yield from others()


def _rules(op: Op, operands: tuple[Spec, ...], env: Env) -> Iterator[Decide]:
    """Yield the rules to try for an op, in order; the last one always applies."""
    is_laid, record = any(map(is_laid_out, operands)), record_of(op.name)
    if not is_laid and not (record.is_control and (env.replicates_small or draws_much(op, env))):
        if record.of_logical is not None:
            yield record.of_logical
        yield deferred_result
        yield _with_large_laid_out
        yield _on_logical_arrays
    elif not record.takes_empty and op.outs and all(0 in aval.shape for aval in op.outs):
        yield _without_elements
    elif not record.takes_empty and _has_no_elements(operands):
        yield _with_replicated_operands  # nothing is sent
    else:
        yield from rules_of(op)
        yield _with_replicated_operands if any(map(is_of_keys, (*op.ins, *op.outs))) else fallback


def _has_no_elements(operands: Sequence[Spec]) -> bool:
    """Whether all laid-out operands are without elements."""
    return all(0 in spec.shape for spec in operands if is_laid_out(spec))


def _apply_rule(
    rule: Decide, op: Op, operands: tuple[Spec, ...], env: Env, plan: Any
) -> Decision | Choice | None:
    """Return the decision of a rule, or its choices; None if it does not apply."""

    def ask(op: Op, operands: tuple[Spec, ...]) -> Decision:
        return decide(op, operands, env, plan)

    record = record_of(op.name)
    space = None if record.changes_space else _memory_space(op, operands)
    builder = Builder(env, operands, ask, plan, record)
    values = [Value(spec, k) for k, spec in enumerate(operands)]
    if op.requested is not None and not record.places_itself:
        values = [
            _relaid_out(builder, *pair) for pair in zip(values, op.requested.ins, strict=True)
        ]
    made = rule(builder, op, *values)
    if made is None or isinstance(made, Choice):
        return made
    outs = made if isinstance(made, (list, tuple)) else [made]
    if (like := tiled_operand(op, record, operands, env)) and not is_user_rule(rule):
        outs = [in_tiles(builder, out, like) for out in outs]
    if op.requested is None and not is_user_rule(rule):
        outs = [_with_placement(builder, out) for out in outs]
    if env.policy is same_grid_and_tile and not is_user_rule(rule):
        if op.requested is None and not _is_placed(op, env):
            outs = _fit_results(builder, outs, operands)
        if space is not None:
            outs = [out.with_spec(in_space(out.spec, space)) for out in outs]
    decision = builder.decision(op, operands, outs)
    if decision.how == FALLBACK:  # it runs replicated, so every device does all the work
        own, total = flops(op), env.device.size * flops(op)
    else:
        parts = max(map(parts_of, (*operands, *decision.results)), default=1)
        own, total = -(-flops(op) // parts), flops(op)
    own = own if builder.device_flops is None else builder.device_flops
    return replace(decision, flops=total, device_flops=own)


def _with_placement(b: Builder, out: Value) -> Value:
    """Return a result on a grid that has a placement.

    A rule may compute on a grid that the device grid's `core_map` gives none.
    """
    spec, has = out.spec, b.device.placements.has
    if isinstance(spec, Deferred) and spec.target_layout is not None:
        target = fitting(spec.target_layout, ANY, b.device)[0]
        return out.with_spec(replace(spec, target_layout=target))
    if isinstance(spec, Sharded) and not has(spec.layout.core_shape):
        return b.relayout(out, b.choose(out.shape, out.dtype, spec.layout))
    return out


def _fit_results(b: Builder, outs: Sequence[Value], operands: Sequence[Spec]) -> list[Value]:
    """Return results whose storage is no larger than the policy allows for these operands."""
    sources = (spec.source if isinstance(spec, Deferred) else spec for spec in operands)
    layouts = [spec.layout for spec in sources if isinstance(spec, Sharded)]
    found = []
    for out in outs:
        layout = out.layout
        if layout is not None:
            out = b.fit(out, most_bytes(layout.data_bytes, layouts, b.device))
        found.append(out)
    return found


def _memory_space(op: Op, operands: tuple[Spec, ...]) -> str | None:
    """Return the memory space of an op's operands and results; None if they have none.

    `LayoutError` if operands are in several: "a tensor must belong exclusively to only one of these
    memory spaces at a time" (tt-mlir, "Memory Spaces").
    """
    layouts = (layout_of(spec) for spec in operands)
    spaces = {x.memory for x in layouts if x is not None and x.memory in MEMORY_SPACES}
    if len(spaces) > 1:
        *others, last = sorted(map(str, spaces))
        raise LayoutError(
            f"{op.name}: its operands are in the memory spaces {', '.join(others)} and {last}; all "
            "operands must be in one. Move one first: gl.relayout(x, "
            f"x.layout.replace(memory_space={last!r})), or gl.with_layout inside the function"
        )
    return spaces.pop() if spaces else None


def _with_large_laid_out(b: Builder, op: Op, *values: Value) -> Any:
    """Rule that lays out large operands which depend on logical indices only.

    If only results are large, all replicated arrays are laid out. None if none is large, or if the
    op would then fall back: computing these operands replicated sends nothing.
    """
    large = [is_too_large_to_replicate(b, value) for value in values]
    if not any(large) and any(b.env.is_large(Replicated(x.shape, x.dtype)) for x in op.outs):
        specs = [value.spec for value in values]
        large = [isinstance(x, Replicated) and x.ndim > 0 and not is_of_keys(x) for x in specs]
    if not any(large) or not rules_of(op) or b.ask is None:
        return None
    laid_out_values = [
        b.as_sharded(x) if is_one else x for x, is_one in zip(values, large, strict=True)
    ]
    made = b.ask(op, tuple(value.spec for value in laid_out_values))
    if made.how == FALLBACK:
        return None
    b.how, b.note, b.device_flops = made.how, made.note, made.device_flops
    return b.inlined(made, laid_out_values)


def _on_logical_arrays(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for ops on operands that no core holds: they run replicated."""
    if b.record.is_annotation:
        return list(values)
    out = op.out if op.outs else None
    values = tuple(map(b.replicated, values))
    numbers = [getattr(value.spec, "number", None) for value in values]
    if out is not None and not out.shape and numbers and not any(x is None for x in numbers):
        pairs = zip(numbers, op.ins, strict=True)
        if (known := on_host(op, [number(x, aval.dtype) for x, aval in pairs])) is not None:
            return b.constant(known, out.dtype, out.weak_type)
    b.device_flops = flops(op)
    return on_every_device(b, op, values)


def on_every_device(b: Builder, op: Op, values: Sequence[Value]) -> list[Value]:
    """Append the primitive on replicated logical arrays."""
    outs = [Replicated(aval.shape, aval.dtype, aval.weak_type) for aval in op.outs]

    def run(*arrays: Any) -> list[Any]:
        made = op.on_logical(*arrays)
        return made if op.permutation is None else [lax.transpose(made[0], op.permutation)]

    fused = b.record.is_fused and op.permutation is None
    return b.run(
        run,
        values,
        outs,
        is_global=has_effects(op),
        is_fused=fused,
        takes_fused=fused,
        is_kept=b.record.is_kept,
    )


def has_effects(op: Op) -> bool:
    """Whether the op calls the host or has its own sharding: it runs once, outside `shard_map`."""
    effects = op.equation is not None and bool(op.equation.effects)
    return effects or record_of(op.name).is_global


def _without_elements(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Rule for ops whose results have no elements."""
    return without_elements(b, op.outs, next(x for x in values if x.layout is not None))


def _with_replicated_operands(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Rule that replicates the operands; each device keeps its part of the results.

    Ops on random keys and arrays run so too: keys are replicated.
    """
    like: Any = next(layout for layout in (value.layout for value in values) if layout is not None)
    made = on_every_device(b, op, [b.replicated(value) for value in values])
    return [laid_out(b, out, like) for out in made]


def fallback(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Rule for ops without another one: as `_with_replicated_operands`, reported as a fallback."""
    b.how, b.note = FALLBACK, b.record.reason
    return _with_replicated_operands(b, op, *values)


def laid_out(b: Builder, out: Value, like: Layout | None) -> Value:
    """Return a replicated result laid out by the policy; single numbers and keys stay."""
    if out.ndim == 0 or is_of_keys(out.spec):
        return out
    return b.as_sharded(out, like=like)
