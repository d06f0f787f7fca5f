"""`Builder`: how a rule writes a decision down.

A rule works on `Value`s, which have a spec and no data, and says what is to be done: bring this
value to that layout, run this kernel on these. Nothing runs and nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import inf, prod
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.dtypes import has_zero
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import fitting, spread
from gridlayout.ops.decisions.decision import (
    RULE,
    VIEW,
    Choice,
    Decide,
    Decision,
    Renumbering,
    Step,
)
from gridlayout.ops.decisions.deferred import materialized
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import (
    Deferred,
    Held,
    Indexed,
    Replicated,
    Sharded,
    Spec,
    indexed,
    is_indexed,
    is_of_keys,
    known_number,
    layout_of,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.padding import fill_padding, has_padding
from gridlayout.ops.moves.relayout import LocalMove, find_move, lay_out, nothing_moves, replicate
from gridlayout.ops.moves.sends import Phases, Send
from gridlayout.sharding.choice import Offer, cheapest
from gridlayout.sharding.collectives import ALL_REDUCE, Axes, Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]
Array = Any
# How a device makes what it has of a deferred value: `(builder, place, *operands)`.
Make = Callable[..., Value]
_DEFERRED = Op(core.Primitive("deferred"), {}, (), ())


class Builder:
    """Writes down the steps of a decision; handed to rules.

    ask: gives the decision for another op. plan: makes a planner of the programs that run inside.
    """

    def __init__(
        self,
        env: Env,
        specs: Sequence[Spec],
        ask: Callable[[Op, tuple[Spec, ...]], Decision] | None = None,
        plan: Any = None,
    ) -> None:
        self.env, self.ask, self.plan = env, ask, plan
        self.registers: list[Held] = list(specs)
        self.steps: list[Step] = []
        self.note = ""
        self.how = ""
        self.stated: Any = None
        self.device_flops: int | None = None
        self.computing = 0.0  # seconds of a device, of ways that differ in what they compute

    @property
    def device(self) -> DeviceGrid:
        """The device grid."""
        return self.env.device

    def placement(self, layout: Layout) -> Placement:
        """Where the device grid places a layout's cores."""
        return self.env.placement(layout)

    def sharded(self, layout: Layout, placement: Placement | None = None) -> Sharded:
        """The spec of an array in a layout, where the device grid places it by default."""
        return Sharded(layout, placement or self.placement(layout))

    def collectives(self) -> Collectives:
        """An empty list of collectives on these devices."""
        return Collectives(self.device)

    # -- steps ---------------------------------------------------------------------------------

    def run(
        self,
        fn: Callable[..., Any],
        operands: Sequence[Value],
        specs: Sequence[Held],
        collectives: Collectives | Iterable[Collective] = (),
        **facts: Any,
    ) -> list[Value]:
        """A kernel: `fn` of one device's parts of the operands, a list of its parts of results."""
        found = collectives.found if isinstance(collectives, Collectives) else collectives
        writes = tuple(range(len(self.registers), len(self.registers) + len(specs)))
        # A deferred broadcast's register holds its source.
        self.registers += [spec.source if isinstance(spec, Deferred) else spec for spec in specs]
        reads = tuple(value.at for value in operands)
        self.steps.append(Step(reads, writes, fn, tuple(found), **facts))
        # A device's own is read by a later kernel alone, which knows what it is.
        return [Value(cast(Spec, spec), at) for spec, at in zip(specs, writes, strict=True)]

    def fused(self, fn: Any, operands: Any, specs: Any, **facts: Any) -> list[Value]:
        """A kernel whose results XLA makes where they are read, as it does its operands."""
        return self.run(fn, operands, specs, is_fused=True, takes_fused=True, **facts)

    def deferred(self, make: Make, operands: Sequence[Value], shape: Shape, dtype: Any) -> Value:
        """A value that is computed of logical indices where it is wanted.

        make: `make(builder, place, *operands)` writes down how a device makes what it has of the
        value there.
        """
        specs = tuple(value.spec for value in operands)

        @lru_cache(maxsize=64)
        def makes(place: Place) -> Decision:
            builder = Builder(self.env, specs)
            made = make(builder, place, *(Value(spec, k) for k, spec in enumerate(specs)))
            return builder.decision(_DEFERRED, specs, [made])

        (value,) = self.run(_not_run, operands, [indexed(shape, dtype)])
        self.steps[-1] = replace(self.steps[-1], makes=makes)
        return value

    def made(self, value: Value, place: Place) -> Value:
        """A value that is computed of logical indices, made in a place."""
        (out,) = self.run(_not_run, [value], [place.spec(value.dtype)], place=place)
        return out

    def all_reduced(self, part: Value, axes: Axes, spec: Spec, dtype: Any) -> Value:
        """The sum of every device's part along mesh axes, as `spec` has it, in a type."""
        nbytes = prod(part.shape) * part.dtype.itemsize
        shape = spec.local_shape if isinstance(spec, Sharded) else spec.shape

        def phases(view: LazyView) -> Phases:
            view = yield Send(ALL_REDUCE, axes, self.device.count(axes), view)
            return LazyView.of(view.materialize().astype(dtype)).reshape(*shape)

        (out,) = self.run(
            lambda x: [lax.psum(x, axes).astype(dtype).reshape(shape)],
            [part],
            [spec],
            self.collectives().all_reduce(axes, nbytes),
            phases=phases,
            sends=(axes,),
        )
        return out

    def known(self, number: Any, dtype: Any, weak_type: bool = False) -> Value:
        """A number, or a few, that are known before anything runs."""
        return Value(known_number(number, dtype, weak_type), np.asarray(number, dtype))

    def moved(self, value: Value, move: LocalMove | None, spec: Spec) -> Value:
        """The value where a move brings it; None moves nothing."""
        if move is None:
            return value.seen(spec)
        (out,) = self.run(
            lambda x: [move.run(x)],
            [value],
            [spec],
            move.collectives,
            workspace=move.workspace,
            is_lazy=True,
            is_view=move.is_view,
            is_kept=move.is_gathered,
            does=move,
            phases=move.phases,
            sends=move.sends,
        )
        return out

    # -- bringing values to places ---------------------------------------------------------------

    def choose(self, shape: Shape, dtype: Any, like: Any = None) -> Layout:
        """The policy's layout for a new value that comes from the value or layout `like`."""
        layout = like.layout if isinstance(like, Value) else like
        if isinstance(like, Value) and isinstance(like.spec, Deferred) and layout is not None:
            layout = self.env.wider(shape, layout)
        return self.env.choose(shape, dtype, layout)

    def wanted(self, op: Op, like: Any = None) -> Layout:
        """Where the op's result belongs: where what reads it brings it, else by the policy."""
        chosen = self.choose(op.out.shape, op.out.dtype, like)
        if op.layout is None or not chosen.memory:
            return chosen
        return op.layout.replace(memory_space=chosen.memory)

    def relayout(self, x: Value, layout: Layout, placement: Placement | None = None) -> Value:
        """A sharded value in a layout, whatever is known of its padding then."""
        spec, after = x.spec, placement or self.placement(layout)
        assert isinstance(spec, Sharded)
        if spec.placement == after and spec.layout.same_physical(layout):
            return x.seen(Sharded(layout.with_dtype(x.dtype, spec.layout.oob), after))
        layout = layout.with_dtype(x.dtype, None)
        if spec.placement == after and nothing_moves(spec.layout, layout):
            return x.seen(Sharded(layout, after))
        places = (spec.placement, after)
        move = find_move(spec.layout, layout, self.device, *places)
        return self.moved(x, move, Sharded(layout, after))

    def brought(self, value: Value, layout: Layout) -> Value:
        """The value in a layout that was asked for, also in another memory space."""
        before = None if value.layout is None else value.layout.memory
        out = self.on_cores(value, layout)
        assert isinstance(out.spec, Sharded)
        copied = self.collectives().copy(before, layout.memory, out.spec.device_bytes)
        if not copied.found:
            return out
        return self.run(lambda x: [x], [out], [out.spec], copied, is_lazy=True, is_view=True)[0]

    def replicated(self, value: Value) -> Value:
        """The value as a logical array that every device has."""
        spec = value.spec
        if isinstance(spec, Deferred):
            if isinstance(spec.source, Indexed):
                source = self.made(value, Place.whole(spec.source.shape))
            else:
                source = self.replicated(value.seen(spec.source))
            if spec.dims == tuple(range(spec.ndim)):
                return source
            out = Replicated(spec.shape, spec.dtype)
            shape, dims = spec.shape, spec.dims
            return self.fused(
                lambda x: [lax.broadcast_in_dim(jnp.asarray(x, out.dtype), shape, dims)],
                [source],
                [out],
            )[0]
        if isinstance(spec, Sharded):
            move = replicate(spec.layout, self.device, spec.placement)
            return self.moved(value, move, Replicated(spec.shape, spec.dtype))
        return value

    def on_cores(
        self,
        value: Value,
        layout: Layout | None = None,
        like: Any = None,
        placement: Placement | None = None,
    ) -> Value:
        """The value sharded: in `layout`, or as it is, or where the policy puts it.

        placement: of `layout`, if not where the device grid places it.
        """
        spec = value.spec
        if isinstance(spec, Deferred) and spec.is_whole:
            layout, value = layout or layout_of(spec), value.seen(spec.source)
            spec = spec.source
        if isinstance(spec, Sharded):
            return value if layout is None else self.relayout(value, layout, placement)
        if layout is None and like is None and is_indexed(spec):
            layout = self.env.spread(value.shape, value.dtype)
        elif layout is None:
            layout = self.choose(value.shape, value.dtype, value if like is None else like)
        layout = layout.with_dtype(value.dtype)
        placement = placement or self.placement(layout)
        if isinstance(spec, Deferred):
            return materialized(self, value, layout, placement)
        return self.laid_out(value, layout, placement)

    def laid_out(self, value: Value, layout: Layout, placement: Placement | None = None) -> Value:
        """A replicated value in a layout: each device keeps its part."""
        layout = layout.with_dtype(value.dtype, 0 if has_zero(value.dtype) else None)
        after = placement or self.placement(layout)
        return self.moved(value, lay_out(layout, self.device, after), Sharded(layout, after))

    def nearest(self, value: Value, layouts: Sequence[Layout]) -> Value:
        """A sharded value in the one of these layouts that takes the least time, or the first."""
        spec = value.spec
        assert isinstance(spec, Sharded)

        def price(layout: Layout, least: float) -> float:
            move = find_move(
                *(spec.layout, layout, self.device, spec.placement, self.placement(layout))
            )
            return self.env.machine.seconds(() if move is None else move.collectives)

        best, _ = cheapest(Offer(layout, partial(price, layout)) for layout in layouts)
        assert best is not None
        return self.relayout(value, best)

    def fitted(self, value: Value, most: int, leaves: bool = False) -> Value:
        """A result whose storage takes at most so many bytes, where it leaves the program.

        Where it does not, a core may have nothing of it: others then hold no copies.
        """
        spec = value.spec
        if isinstance(spec, Deferred) and spec.is_whole:
            assert spec.target_layout is not None
            target = fitting(spec.target_layout, most, self.device)[0]
            return value.seen(replace(spec, target_layout=target))
        if not isinstance(spec, Sharded):
            return value
        if prod(spec.placement.slots) * spec.core_bytes <= most:
            return value
        own = spec.layout.as_grid or self.env.choose_grid(spec.shape, spec.dtype, spec.layout)
        ways = fitting(own, most, self.device)
        if not leaves:
            ways = (*ways, spread(own))
            if spec.core_bytes <= ways[-1].bytes_per_core:
                return value
        return self.nearest(value, ways)

    def settled(self, value: Value) -> Value:
        """The value with a deferred broadcast made, fit to cross into a loop or a branch."""
        if not isinstance(value.spec, Deferred):
            return value
        if is_of_keys(value.spec):
            return self.replicated(value)
        is_spread = is_indexed(value.spec) and self.env.is_large(value.spec)
        return self.on_cores(value) if value.layout or is_spread else self.replicated(value)

    def filled(self, x: Value, oob: Any, along: Sequence[int] | None = None) -> Value:
        """A sharded value with its padding set to `oob`, where it is not known to be that.

        along: only padding in parts of the layout that touch these physical dims.
        """
        spec = x.spec
        assert isinstance(spec, Sharded)
        layout, placement = spec.layout, spec.placement
        known = layout.with_oob(oob)
        if repr(layout.oob) == repr(known.oob):
            return x
        new = Sharded(known if along is None else layout.with_oob(None), placement)
        if not has_padding(layout, placement, along):
            return x.seen(new) if along is None else x
        (out,) = self.fused(
            lambda part: [fill_padding(part, layout, placement, known.oob, along)],
            [x],
            [new],
            masks=1,
        )
        return out

    # -- other ops -------------------------------------------------------------------------------

    def call(self, op: Op, *values: Value) -> list[Value]:
        """Another op's decision, done here."""
        assert self.ask is not None
        return self.inlined(self.ask(op, tuple(value.spec for value in values)), values)

    def inlined(self, decision: Decision, values: Sequence[Value]) -> list[Value]:
        """The steps of a decision, on these values."""
        at = Renumbering(decision, values, self.registers)
        self.steps += [at.step(step) for step in decision.steps]
        return at.outs()

    def decision(self, op: Op, operands: Sequence[Spec], outs: Sequence[Value]) -> Decision:
        """What has been written down."""
        steps = _needed(self.steps, outs)
        how = self.how or (RULE if steps else VIEW)
        return Decision(
            *(op, tuple(operands), tuple(outs), steps, tuple(self.registers)),
            *(how, self.note, 0, self.device_flops or 0, self.stated),
        )


def _not_run(*_: Any) -> Any:
    raise AssertionError("a program has the steps that make a deferred value in this one's place")


def cheapest_way(b: Builder, op: Op, ways: Sequence[Decide], *values: Value) -> Choice | None:
    """The ways to do an op that do not decline, the one that takes the least time first.

    Of ways that take as long, the first; what follows one in which nothing is sent is not tried.
    """
    found: list[tuple[float, Decide]] = []

    def price(way: Decide, least: float) -> float:
        trial = Builder(b.env, [value.spec for value in values], b.ask, b.plan)
        made = way(trial, op, *values)
        if made is None:
            return inf
        outs = made if isinstance(made, (list, tuple)) else [made]
        sent = b.env.machine.seconds(trial.decision(op, (), outs).collectives)
        found.append((sent + trial.computing, way))
        return found[-1][0]

    best, _ = cheapest(Offer(way, partial(price, way)) for way in ways)
    if best is None:
        return None
    others = sorted((each for each in found if each[1] is not best), key=lambda each: each[0])
    return Choice(best, lambda: [way for _, way in others])


def _needed(steps: Sequence[Step], outs: Sequence[Value]) -> tuple[Step, ...]:
    """The steps that results are made of: a rule may have tried another way first."""
    wanted = {out.at for out in outs if isinstance(out.at, int)}
    found = []
    for step in reversed(steps):
        if wanted.intersection(step.writes) or step.is_global:
            wanted.update(k for k in step.reads if isinstance(k, int))
            found.append(step)
    return tuple(reversed(found))
