"""`Builder`: how a rule writes a decision down.

A rule works on `Value`s, which have a spec and no data, and says what is to be done: bring this
value to that layout, run this kernel on these. Nothing runs and nothing is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod
from typing import Any

from gridlayout.document.grid_form import as_grid
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import fitting, spread
from gridlayout.ops.decisions.decision import Choice, Decide
from gridlayout.ops.decisions.deferred import materialized
from gridlayout.ops.decisions.mover import Mover
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Deferred, Sharded, is_indexed, is_of_keys, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.choice import Offer, cheapest
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


class Builder(Mover):
    """Writes down the steps of a decision and chooses layouts for its values; handed to rules."""

    # -- choosing layouts ------------------------------------------------------------------------

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

    # -- bringing values to layouts --------------------------------------------------------------

    def brought(self, value: Value, layout: Layout) -> Value:
        """The value in a layout that was asked for, also in another memory space."""
        before = None if value.layout is None else value.layout.memory
        out = self.on_cores(value, layout)
        assert isinstance(out.spec, Sharded)
        copied = self.collectives().copy(before, layout.memory, out.spec.device_bytes)
        if not copied.found:
            return out
        return self.run(lambda x: [x], [out], [out.spec], copied, is_lazy=True, is_view=True)[0]

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
        own = as_grid(spec.layout) or self.env.choose_grid(spec.shape, spec.dtype, spec.layout)
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
