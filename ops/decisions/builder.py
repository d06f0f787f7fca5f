"""`Builder`: the interface through which a rule records its decision.

A rule works on `Value`s, which have a spec but no data. It records steps: relay a value out to a
layout, run a kernel on values. Nothing is executed or traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.array.fitting import fitting, most_bytes, spread, storage_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.blocks import as_blocks, untiled
from gridlayout.ops.decisions.decision import Choice, Decision, Step
from gridlayout.ops.decisions.deferred import materialized
from gridlayout.ops.decisions.mover import Mover
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide
from gridlayout.ops.decisions.specs import Deferred, Sharded, is_indexed, is_of_keys, layout_of
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.moves.relayout import sent_between
from gridlayout.sharding.choice import Offer, cheapest, fastest_of
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.machines.machine import Machine
from gridlayout.sharding.meshes.placement import Placement


class Builder(Mover):
    """Records the steps of a decision and chooses layouts for its values; passed to rules."""

    # -- choosing layouts ------------------------------------------------------------------------

    def choose(self, shape: Shape, dtype: Any, like: Any = None) -> Layout:
        """Return the policy's layout for a new value that is derived from `like`."""
        if not isinstance(like, Value):
            return self.env.choose(shape, dtype, like)
        layout = like.layout
        if isinstance(like.spec, Deferred) and layout is not None:
            layout = self.env.wider(shape, layout)
        return self.on_axes_of(like, self.env.choose(shape, dtype, layout))

    def on_axes_of(self, value: Value, layout: Layout) -> Layout:
        """Return a layout on a value's mesh axes, where the rule chooses others of equal size."""
        spec = value.spec.source if isinstance(value.spec, Deferred) else value.spec
        if not isinstance(spec, Sharded):
            return layout
        return self.device.placements.near(layout, spec.placement)

    def choose_for(self, shape: Shape, dtype: Any, *values: Value) -> Layout:
        """Return a layout for broadcasts of these values, in which nothing has to move if possible.

        Each dim is divided as that of a source; else it is the policy's for the first one's.
        """
        first = next((x for x in values if x.layout is not None), None)
        chosen = self.choose(shape, dtype, first)
        if (found := self._in_place(shape, dtype, values)) is None:
            return chosen
        blocks, like = found
        layout = self.in_tiles(blocks, like).layout
        if storage_bytes(layout, self.device) > most_bytes(layout.data_bytes, [like], self.device):
            layout = blocks.layout
        return layout if layout.num_cores >= chosen.num_cores else chosen

    def _in_place(
        self, shape: Shape, dtype: Any, values: Sequence[Value]
    ) -> tuple[Sharded, Layout] | None:
        """Return the blocks in which each dim is divided as that of a source, and its layout.

        None without a source. values: broadcasts of arrays in blocks.
        """
        if self.env.policy is not same_grid_and_tile:
            return None
        axes: dict[int, Axes] = {}
        grid, space, like = [1] * len(shape), "l1", None
        shards: list[int | None] = [None] * len(shape)
        for value in values:
            spec = value.spec
            if value.shape != shape:
                continue
            if isinstance(spec, Sharded):
                return None  # it has a layout
            if not isinstance(spec, Deferred) or not isinstance(spec.source, Sharded):
                continue
            if (blocks := as_blocks(untiled(spec.source), self.device)) is None:
                return None
            like = like or spec.source.layout
            space, placed = blocks.layout.memory or space, blocks.placement
            assert isinstance(blocks.layout, GridLayout)
            rows = zip(spec.dims, placed.grid, placed.axes, blocks.layout.stated_shard, strict=True)
            for d, n, own, shard in rows:
                used = {name for each in axes.values() for name in each}
                if own and d not in axes and not used.intersection(own):
                    axes[d], grid[d], shards[d] = own, n, shard
        if not axes:
            return None
        there = tuple(axes.get(d, ()) for d in range(len(shape)))
        if any(self.device.count(own) != n for own, n in zip(there, grid, strict=True)):
            return None
        found = GridLayout(shape, dtype, grid, collapse=[], memory_space=space, shard_shape=shards)
        placed = Placement(tuple(grid), there, tuple(grid), (1,) * len(grid))
        assert like is not None
        return Sharded(found.on_mesh_axes(self.device.placements.named(placed)), placed), like

    def in_tiles(self, spec: Sharded, like: Layout | None) -> Sharded:
        """Return the spec of parts on the same devices in the tiles of `like`, of any size.

        It is that of the policy's layout, if parts on the same devices have it.
        """
        form, own = None if like is None else as_grid(like), as_grid(spec.layout)
        if form is None or not form.tile or own is None or own.tile:
            return spec
        chosen = self.choose(spec.shape, spec.dtype, like)
        placed = self.placement(chosen)
        if not sent_between(own, chosen, self.device, spec.placement, placed):
            return Sharded(chosen, placed)
        rank = len(own.grid)
        tile, face = form.tile[-rank:], form.face and form.face[-rank:]
        if own.row_alignment and prod(tile) % own.row_multiple:
            return spec
        return Sharded(own.replace(tile=tile, face=face), spec.placement)

    def result_layout(self, op: Op, like: Any = None) -> Layout:
        """Return the layout of the op's result: the one its users request, else the policy's."""
        chosen = self.choose(op.out.shape, op.out.dtype, like)
        if op.layout is None or not chosen.memory:
            return chosen
        return op.layout.replace(memory_space=chosen.memory)

    # -- relaying values out ---------------------------------------------------------------------

    def to_layout(self, value: Value, layout: Layout, placement: Placement | None = None) -> Value:
        """Return the value in a requested layout, also where that is in another memory space."""
        before = None if value.layout is None else value.layout.memory
        out = self.as_sharded(value, layout, placement=placement)
        assert isinstance(out.spec, Sharded)
        copied = self.collectives().copy(before, layout.memory, out.spec.device_bytes)
        if not copied.found:
            return out
        return self.run(lambda x: [x], [out], [out.spec], copied, is_lazy=True, is_view=True)[0]

    def as_sharded(
        self,
        value: Value,
        layout: Layout | None = None,
        like: Any = None,
        placement: Placement | None = None,
    ) -> Value:
        """Return the value sharded: in `layout`, else in its own layout, else in the policy's.

        placement: of `layout`, by default the device grid's.
        """
        spec = value.spec
        if isinstance(spec, Deferred) and spec.is_unbroadcast:
            layout, value = layout or layout_of(spec), value.with_spec(spec.source)
            spec = spec.source
        if isinstance(spec, Sharded):
            return value if layout is None else self.relayout(value, layout, placement)
        if layout is None and like is None and is_indexed(spec):
            layout = self.env.spread(value.shape, value.dtype)
        elif layout is None:
            if like is None:
                layout = self.choose_for(value.shape, value.dtype, value)
            else:
                layout = self.choose(value.shape, value.dtype, like)
        layout = layout.with_dtype(value.dtype)
        placement = placement or self.placement(layout)
        if isinstance(spec, Deferred):
            if (near := self._joined_later(value, layout, placement)) is not None:
                made = materialized(self, value, near.layout, near.placement)
                return self.relayout(made, layout, placement)
            return materialized(self, value, layout, placement)
        return self.laid_out(value, layout, placement)

    def as_spec(self, value: Value, spec: Sharded) -> Value:
        """Return the value sharded as a spec states."""
        return self.as_sharded(value, spec.layout, placement=spec.placement)

    def _joined_later(self, value: Value, layout: Layout, placement: Placement) -> Sharded | None:
        """Return the blocks in which a broadcast is computed before its dims are joined.

        None if a layout joins no dims, or if something would be sent then.
        """
        own = as_grid(layout)
        if own is None or all(len(group) == 1 for group in own.groups):
            return None
        if (found := self._in_place(value.shape, value.dtype, [value])) is None:
            return None
        near = found[0]
        sent = sent_between(near.layout, layout, self.device, near.placement, placement)
        return None if sent else near

    def nearest(self, value: Value, layouts: Sequence[Layout]) -> Value:
        """Return a sharded value in the layout that is reached in the least time."""
        spec = value.spec
        assert isinstance(spec, Sharded)
        if len(layouts) == 1:  # nothing to compare
            return self.relayout(value, layouts[0])

        def price(layout: Layout, least: float) -> float:
            places = spec.placement, self.placement(layout)
            sent = sent_between(spec.layout, layout, self.device, *places)
            return self.env.machine.price(sent, self.device.size)

        best, _ = cheapest(Offer(layout, partial(price, layout)) for layout in layouts)
        assert best is not None
        return self.relayout(value, best)

    def fit(self, value: Value, most: int, is_result: bool = False) -> Value:
        """Return a result in a layout that takes at most `most` bytes of storage, if one does.

        is_result: whether it is a result of the program. If not, it may be on the whole grid too:
        then no core holds a copy, and some hold only padding.
        """
        spec = value.spec
        if isinstance(spec, Deferred) and spec.is_unbroadcast:
            assert spec.target_layout is not None
            target = fitting(spec.target_layout, most, self.device)[0]
            return value.with_spec(replace(spec, target_layout=target))
        if not isinstance(spec, Sharded):
            return value
        if prod(spec.placement.slots) * spec.core_bytes <= most:
            return value
        own = as_grid(spec.layout) or self.env.choose_grid(spec.shape, spec.dtype, spec.layout)
        ways = fitting(own, most, self.device)
        if not is_result:
            ways = (*ways, spread(own))
            if spec.core_bytes <= ways[-1].bytes_per_core:
                return value
        return self.nearest(value, ways)

    def materialize(self, value: Value) -> Value:
        """Return the value, computed if deferred, so that it can enter a loop or a branch."""
        if not isinstance(value.spec, Deferred):
            return value
        if is_of_keys(value.spec):
            return self.replicated(value)
        is_spread = is_indexed(value.spec) and self.env.is_large(value.spec)
        return self.as_sharded(value) if value.layout or is_spread else self.replicated(value)


def written_seconds(decision: Decision, machine: Machine, fuses_moves: bool = False) -> float:
    """Return the seconds in which a device writes what the steps make; 0 if bytes decide.

    What collectives hold meanwhile is written too. fuses_moves: whether XLA reorders a part where
    it is read.
    """
    if not machine.has_latency:
        return 0.0
    outs = {out.at for out in decision.outs}
    for step in reversed(decision.steps):
        if step.is_view and outs.intersection(step.writes):
            outs.update(k for k in step.reads if isinstance(k, int))
    made = {
        k
        for step in decision.steps
        if not (step.is_view or _is_received(step))
        for k in step.writes
        if k in outs
        or not (step.is_fused or (fuses_moves and step.is_local_move and _is_fused(decision, k)))
    }
    nbytes = sum(decision.registers[k].device_bytes for k in made)
    nbytes += sum(step.workspace().most for step in decision.steps if step.collectives)
    return machine.work_seconds(nbytes=nbytes)


def _is_received(step: Step) -> bool:
    """Whether the result of a move is the buffer into which it receives."""
    space = step.workspace()
    is_move = isinstance(step.does, LocalMove) and bool(step.collectives)
    return is_move and not space.is_view and not space.together


def _is_fused(decision: Decision, k: int) -> bool:
    """Whether all steps that read a register compute the elements that they need of it themselves.

    Those with collectives do if they send pieces, which their workspace holds.
    """
    nbytes = decision.registers[k].device_bytes
    for step in decision.steps:
        if k not in step.reads:
            continue
        if step.collectives:
            fuses = step.workspace().most < nbytes
        elif step.is_view:
            fuses = all(_is_fused(decision, made) for made in step.writes)
        else:
            fuses = step.takes_fused or step.is_local_move or decision.record.takes_fused
        if not fuses:
            return False
    return True


def cheapest_way(
    b: Builder,
    op: Op,
    ways: Sequence[Decide],
    *values: Value,
    similar: float | None = None,
    equal: float = 0.0,
) -> Choice | None:
    """Return a `Choice` of ways to run an op, the fastest as its best; None if all decline.

    Its others are the remaining ways that do not decline. Of equally fast ways the first one wins.
    After a way that takes no time, no more are tried. similar, equal: as in `fastest_of`, by
    default that of the machine, and none.
    """
    similar = b.env.machine.similar if similar is None else similar
    found: list[tuple[float, float, Decide]] = []  # seconds, bytes received
    longer: list[Decide] = []  # of which a part takes longer than another way
    trials: dict[Decide, tuple[Builder, Any]] = {}

    def price(way: Decide, least: float) -> float:
        trial = Builder(b.env, [value.spec for value in values], b.ask, b.plan, b.record)
        trial.most = least * similar
        made = way(trial, op, *values)
        if made is None:
            longer.extend([way] if trial.is_too_long else [])
            return inf
        trials[way] = trial, made
        outs = made if isinstance(made, (list, tuple)) else [made]
        decision = trial.decision(op, (), outs)
        sent = b.env.machine.price(decision.collectives, b.device.size)
        seconds = sent + trial.computing + written_seconds(decision, b.env.machine)
        found.append((seconds, total_bytes(decision.collectives) / b.device.size, way))
        return seconds

    fastest, _ = cheapest(Offer(way, partial(price, way)) for way in ways)
    if fastest is None:
        return None
    seconds, received, _ = zip(*found, strict=True)
    best = found[fastest_of(seconds, received, similar, equal)][2]
    trial, made = trials[best]

    def again(b: Builder, op: Op, *same: Value) -> Any:
        """Record the best way, as its trial did if that was of these values and nothing else."""
        if not b.has_only(same) or not b.has_only(values):
            return best(b, op, *same)
        b.take(trial)
        return made

    def others() -> list[Decide]:
        while longer:
            price(longer.pop(), inf)
        known = sorted((each for each in found if each[2] is not best), key=lambda each: each[0])
        return [way for _, _, way in known]

    return Choice(best, others, again)
