"""`Program`: the decisions for a whole jaxpr as one list of steps, and running them.

All steps that work on one device's parts run inside of `shard_map`, so devices send each other
exactly the collectives of the decisions. Steps on whole storages (users' rules, calls to the host)
run between two such regions (`regions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from gridlayout.key import Key
from gridlayout.ops.decisions.decision import Body, Decision, Renumbering, Step
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Held, Indexed, Local, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.writer import needed
from gridlayout.ops.moves.pieces import shared_lookups
from gridlayout.ops.programs.padding import set_once
from gridlayout.ops.programs.passes import Traffic
from gridlayout.ops.programs.regions import Region, regions
from gridlayout.ops.programs.row import priced
from gridlayout.ops.programs.running import array_at, run_steps, with_calls
from gridlayout.ops.programs.together import as_one, joined, joined_by_xla
from gridlayout.sharding.collectives import Collective, shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine

RELAYOUT = "relayout"  # the op of relayouts that no equation states
# What a program and its executable take on the host, and one step of it: measured.
_PROGRAM, _STEP = 1 << 19, 1 << 15


@dataclass(frozen=True, eq=False)
class Made:
    """A decision as part of a program, with the values that it reads and makes.

    within: the called functions around it, outermost first, each with the number of its call.
    is_listed: whether it belongs to an equation on arrays, not only on single numbers. path: the
    number of its equation in the jaxpr, after the numbers of enclosing calls. traffic: which of its
    values are in memory, where it is fused with others; None for all.
    """

    decision: Decision
    values: tuple[Value, ...]
    outs: tuple[Value, ...]
    within: tuple[tuple[str, int], ...] = ()
    is_listed: bool = True
    path: tuple[int, ...] = ()
    traffic: Traffic | None = None


@dataclass(frozen=True, eq=False)
class _Deferred:
    """A step whose result is made where it is requested, with its scope and its decision."""

    step: Step
    scope: str
    owner: int


@dataclass(eq=False)
class Program:
    """Steps on registers, of which the operands' come first. Built by appending decisions.

    operands: specs. outs: the results. made: the decisions in order. owners: for each step, the
    number of its decision in `made`. parts: for each step, the steps that are joined in it, with
    their owners; empty where none are joined. offers: a function that returns all decisions
    that rules offer for an op and operands' specs. against: seconds of the program that this one
    was preferred to, or None. chosen: the choices for the whole program; None where each equation
    chooses by itself.
    """

    device: DeviceGrid
    operands: tuple[Spec, ...]
    registers: list[Held] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    outs: tuple[Value, ...] = ()
    parts: list[list[tuple[int, Step]]] = field(default_factory=list)
    offers: Callable[..., Sequence[Decision]] | None = None
    against: float | None = None
    chosen: Any = None
    _made: dict[Any, tuple[int, ...]] = field(default_factory=dict)
    _deferred: dict[int, _Deferred] = field(default_factory=dict)
    _places: dict[tuple[int, Place], int] = field(default_factory=dict)
    _made_of: dict[int, list[Spec]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registers = list(self.operands)

    @property
    def held_bytes(self) -> int:
        """An estimate of the bytes that it takes on the host, with its executable."""
        return _PROGRAM + _STEP * len(self.steps)

    @property
    def results(self) -> tuple[Spec, ...]:
        """The results' specs."""
        return tuple(out.spec for out in self.outs)

    def append(
        self,
        decision: Decision,
        values: Sequence[Value],
        scope: str = "",
        listed: bool = True,
        within: tuple[tuple[str, int], ...] = (),
        path: tuple[int, ...] = (),
        traffic: Traffic | None = None,
    ) -> list[Value]:
        """Append a decision on these values and return its results; `scope`: a `named_scope`."""
        outs = self._added(decision, values, scope, len(self.made))
        given = tuple(values), tuple(outs), within, listed, path, traffic
        self.made.append(Made(decision, *given))
        return outs

    def _added(
        self, decision: Decision, values: Sequence[Value], scope: str, owner: int
    ) -> list[Value]:
        """Append the steps of a decision, which belong to decision number `owner`."""
        at = Renumbering(decision, values, self.registers)
        for step in decision.steps:
            here = at.step(step)
            if here.makes is not None:
                self._deferred[here.writes[0]] = _Deferred(here, scope, owner)
                continue
            if here.place is not None:
                made: tuple[int, ...] | None = (self._made_in(here.reads[0], here.place),)
            else:
                made = self._made_before(here)
            if made is not None:
                for k, register in zip(step.writes, made, strict=True):
                    at.at[k] = register
                continue
            self.steps.append(here)
            self.scopes.append(scope)
            self.owners.append(owner)
        return at.outs()

    def _made_in(self, register: int, place: Place) -> int:
        """Return the register with a deferred value in a requested place; made once per place.

        Its steps belong to the decision that deferred it. What it is made from is made first, with
        a list of pending values, because chains are too long for recursion.
        """
        waiting = [(register, place)]
        while waiting:
            key = waiting[-1]
            if key in self._places:
                waiting.pop()
                continue
            deferred = self._deferred[key[0]]
            assert deferred.step.makes is not None
            decision, reads = deferred.step.makes(key[1]), deferred.step.reads
            if deferred.step.kernel is not None:
                decision = decision.made_of(Key(deferred.step.kernel, key[1]))
            first = [
                (reads[each.reads[0]], each.place)
                for each in decision.steps
                if each.place is not None and each.reads[0] < len(reads)
            ]
            if missing := [each for each in first if each not in self._places]:
                waiting += missing
                continue
            values = [Value(spec, at) for spec, at in zip(decision.operands, reads, strict=True)]
            (out,) = self._added(decision, values, deferred.scope, deferred.owner)
            self._places[key] = out.at
            self._made_of.setdefault(key[0], []).append(out.spec)
            waiting.pop()
        return self._places[register, place]

    def done(self, number: int) -> Decision:
        """Return a decision as it is run, with the largest part of a deferred value as result."""
        decision = self.made[number].decision
        if not any(step.makes for step in decision.steps):
            return decision
        outs = []
        for out in self.made[number].outs:
            specs = [spec for spec in self._made_of.get(out.at, ()) if spec.shape == out.shape]
            best = max(specs, key=lambda spec: spec.device_bytes, default=out.spec)
            outs.append(out.with_spec(best))
        return replace(decision, outs=tuple(outs))

    def _made_before(self, step: Step) -> tuple[int, ...] | None:
        """Return the registers of an earlier step that does the same, or None."""
        if step.is_global:  # parts inside of a region do not exist after it
            self._made.clear()
            self._places.clear()
        if step.does is None or not all(isinstance(k, int) for k in step.reads):
            return None
        known = self._made.setdefault((step.does, step.reads), step.writes)
        return None if known == step.writes else known

    def finish(self, outs: Sequence[Value]) -> Program:
        """Set the program's results, and drop the steps that none of them needs."""
        remaining = needed(self.steps, outs)
        steps = [self.steps[n] for n in remaining]
        order, self.steps, made = set_once(steps, self.registers, outs)
        self.outs = tuple(made)
        self.scopes = [self.scopes[remaining[n]] for n in order]
        self.owners = [self.owners[remaining[n]] for n in order]
        self._join()
        self._mark_sums()
        return self

    def _join(self) -> None:
        """Join independent collectives where that takes less time."""
        if not self.is_local:
            return
        found = joined(self.steps, self.registers, self.device.machine)
        if found is None:
            return
        self.parts = [
            [(self.owners[n], self._shared(self.steps[n], len(some))) for n in some]
            for some in found.order
        ]
        firsts = [some[0] for some in found.order]
        self.steps = [
            self.steps[some[0]]
            if len(some) == 1
            else as_one([self.steps[n] for n in some], self.registers)
            for some in found.order
        ]
        self.scopes = [self.scopes[n] for n in firsts]
        self.owners = [self.owners[n] for n in firsts]

    def _mark_sums(self) -> None:
        """Mark the all-reduces that XLA joins."""
        if not self.is_local:
            return
        names = [self.made[owner].decision.op.name for owner in self.owners]
        found = joined_by_xla(self.steps, self.registers, names, self.device.machine)
        for n, count in found.items():
            self.steps[n] = self._shared(self.steps[n], count)
            if self.parts:
                self.parts[n] = [(self.owners[n], self.steps[n])]

    def _shared(self, step: Step, count: int) -> Step:
        """Return a step for reports, whose collectives are joined with those of others."""
        if count == 1:
            return step
        sent = tuple(replace(each, together=count) for each in step.collectives)
        return replace(step, collectives=sent)

    @property
    def steps_by_decision(self) -> dict[int, list[Step]]:
        """The steps that run, by the number of their decision."""
        found: dict[int, list[Step]] = {}
        single = [[(owner, step)] for owner, step in zip(self.owners, self.steps, strict=True)]
        for owner, step in (pair for some in self.parts or single for pair in some):
            found.setdefault(owner, []).append(step)
        return found

    @property
    def is_local(self) -> bool:
        """Whether every step works on one device's parts."""
        return not any(step.is_global for step in self.steps)

    @property
    def sends(self) -> bool:
        """Whether devices send each other anything."""
        return any(each.count for each in self.collectives)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of all steps, in order."""
        return tuple(each for step in self.steps for each in step.all_collectives)

    @cached_property
    def machine(self) -> Machine:
        """The device grid's machine, for a program with this computation between collectives."""
        machine = self.device.machine
        products = [each for each in self.made if each.decision.record.multiplies]
        taken = (priced(each.decision, (), machine, each.traffic) for each in products)
        work = sum(sum(each.values()) for each in taken)
        return machine.after(work / max(len(products), 1))

    @property
    def seconds(self) -> float:
        """The seconds of one device to send and compute, in sequence.

        An equation takes its operations, or its reads and writes if those take longer
        (`passes.py`); a loop its body's seconds times its length, of `LIMITS.trips` if that is not
        known; a branch those of its costliest one.
        """
        machine = self.machine
        run = {owner for some in self.parts for owner, _ in some} or set(self.owners)
        made = sum(
            sum(priced(self.done(n), (), machine, each.traffic).values())
            for n, each in enumerate(self.made)
            if n in run or not each.decision.steps
        )
        sent = machine.seconds(each for step in self.steps for each in step.collectives)
        bodies = (body for step in self.steps for body in step.bodies)
        return sent + made + sum(each.trips * program_in(each).seconds for each in bodies)

    # -- running ---------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the results' storages from those of the operands; outside of `shard_map`."""
        held: dict[int, Any] = dict(enumerate(arrays))
        for region in self._regions:
            if region.is_whole:
                made = zip(region.writes, region.run(held), strict=True)
                held.update({k: x if region.is_global else self._placed(x, k) for k, x in made})
                continue
            # XLA's partitioner fails on operands without elements, so these are made inside.
            empty = [k for k in region.reads if 0 in self.registers[k].local_shape]
            full = [k for k in region.reads if k not in empty]

            def run(
                *arrays: Any, region: Any = region, full: Any = full, empty: Any = empty
            ) -> Any:
                with shared_lookups(region.in_pieces):
                    return region.run(dict(zip(full, arrays, strict=True)) | self._zeros(empty))

            specs = (tuple(map(self._partition, some)) for some in (full, region.writes))
            parts = shard_mapped(run, self.device.fine, *specs)(*(held[k] for k in full))
            held.update(zip(region.writes, parts, strict=True))
        return [array_at(held, out.at) for out in self.outs]

    def run_inside(self, arrays: Sequence[Any]) -> list[Any]:
        """Return a device's parts of the results from those of the operands; in `shard_map`."""
        if not self.is_local:
            return self.run(arrays)
        held: dict[int, Any] = dict(enumerate(arrays))
        steps = list(zip(self.steps, self.scopes, strict=True))
        needed = [out.at for out in self.outs if isinstance(out.at, int)]
        run_steps(with_calls(steps, needed), held)
        return [array_at(held, out.at) for out in self.outs]

    def _zeros(self, registers: Sequence[int]) -> dict[int, Any]:
        specs = {k: self.registers[k] for k in registers}
        return {k: jnp.zeros(spec.local_shape, spec.dtype) for k, spec in specs.items()}

    def _placed(self, whole: Any, register: int) -> Any:
        sharding = NamedSharding(self.device.fine, self._partition(register))
        return lax.with_sharding_constraint(whole, sharding)

    def _partition(self, register: int) -> PartitionSpec:
        return self.registers[register].partition

    @cached_property
    def _regions(self) -> list[Region]:
        steps = list(zip(self.steps, self.scopes, strict=True))
        needed = {out.at for out in self.outs if isinstance(out.at, int)}
        inner = {k for k, held in enumerate(self.registers) if isinstance(held, (Local, Indexed))}
        return regions(steps, needed, inner)


def program_in(body: Body) -> Program:
    """Return the program of a body."""
    assert isinstance(body.program, Program)
    return body.program
