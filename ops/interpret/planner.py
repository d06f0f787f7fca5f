"""`planned`: the decisions for a jaxpr, equation by equation, as one program. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import CALLS, called
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import (
    Deferred,
    Replicated,
    Sharded,
    Spec,
    in_space,
    is_laid_out,
    is_of_keys,
    known_number,
    layout_of,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.interpret.decide import decide, has_effects, offers
from gridlayout.ops.interpret.leaving import Leaving
from gridlayout.ops.plan.chosen import Chosen, choices_for, is_open
from gridlayout.ops.plan.readers import Readers
from gridlayout.ops.programs.program import RELAYOUT, Program
from gridlayout.ops.rules.composed import composition
from gridlayout.ops.rules.table import RULES
from gridlayout.sharding.limits import LIMITS

_RELAYOUT = core.Primitive(RELAYOUT)
# What brings its result to where it belongs, by default or as its readers take it.
_ASK_READERS = ("dot_general", "conv_general_dilated")


def planned(
    env: Env, closed: Any, operands: Sequence[Spec], wanted: Sequence[Spec | None] = ()
) -> Program:
    """The program of a whole call: arrays among its operands and results are laid out.

    As a plan states it, where there is one for this jaxpr.
    """
    stated, nexts = env.stated, dict(env.nexts)
    env = replace(env, stated=None, nexts=())
    if stated is not None and stated.is_of(closed):
        operands, chosen = [in_space(spec, "l1") for spec in operands], stated.chosen.on(env.device)
        there = Leaving.of(env, closed.jaxpr, operands, wanted or stated.wanted(env.device))
        made = _planned(env, closed, operands, there, chosen)
        spaces = ["l1" if layout is None else layout.memory for layout in stated.results]
        if not wanted and set(spaces) != {"l1"}:  # what of them is in the chip's DRAM
            pairs = zip(made.outs, spaces, strict=True)
            made.outs = tuple(out.seen(in_space(out.spec, space)) for out, space in pairs)
        return made

    leaving = Leaving.of(env, closed.jaxpr, operands, wanted, nexts)

    def make(env: Env, chosen: Chosen | None, simple: Program | None) -> Program:
        if simple is None:
            return _planned(env, closed, operands, leaving)
        return _planned(env, closed, operands, leaving.asked(simple.results), chosen)

    return Planner.cheapest(env, closed, operands, make, often=False)


def _planned(
    env: Env,
    closed: Any,
    operands: Sequence[Spec],
    leaving: Leaving,
    chosen: Chosen | None = None,
) -> Program:
    planner = Planner(env, operands, chosen)
    entered = [planner.moved(_entered, value) for value in planner.operands]
    outs = planner.closed(closed, entered, leaving.layouts)
    outs = [planner.moved(leaving.left, out, number) for number, out in enumerate(outs)]
    return planner.program(outs, leaving.wanted)


def _entered(b: Builder, x: Value) -> Value:
    """An operand as the rules take it: arrays laid out, single numbers on every device."""
    if x.ndim == 0 or is_of_keys(x.spec):
        return b.replicated(x)
    return b.on_cores(x)


class Planner:
    """Appends decisions to a program, equation by equation."""

    def __init__(self, env: Env, operands: Sequence[Spec], chosen: Chosen | None = None) -> None:
        self.env, self.made = env, Program(env.device, tuple(operands))
        self.made.offers = partial(offers, env=env, plan=Planner)
        self.chosen = chosen
        self._path: tuple[int, ...] = ()  # the numbers of the calls that equations are in
        self._within: tuple[tuple[str, int], ...] = ()  # the calls that equations are in
        self._calls = 0

    @staticmethod
    def cheapest(
        env: Env,
        closed: Any,
        operands: Sequence[Spec],
        make: Callable[[Env, Chosen | None, Program | None], Program],
        often: bool = True,
    ) -> Program:
        """A program of a jaxpr on operands of these specs, chosen as a whole where that is cheaper.

        make: plans it in an environment, by the choices that it is given, its results as they are
        in a program that is there already. often: whether it runs in a loop.
        """
        if not is_open(env, closed, operands):
            return make(env, None, None)
        # Where results are does not depend on how products are done.
        simple = make(replace(env, algorithm="gathered"), None, None)
        if (chosen := choices_for(env, closed, operands, simple, often)) is None:
            return make(env, None, None)
        together, alone = make(env, chosen, simple), simple
        seconds, other = (each.seconds for each in (together, alone))
        if chosen.products <= LIMITS.products or other < seconds:
            alone = make(env, None, None)  # products as is cheapest for each
            other = alone.seconds
        if other < LIMITS.less * seconds:
            alone.against = seconds
            return alone
        together.against, together.chosen = other, chosen
        return together

    @property
    def operands(self) -> list[Value]:
        """The program's operands."""
        return [Value(spec, k) for k, spec in enumerate(self.made.operands)]

    def program(self, outs: Sequence[Value], wanted: Sequence[Spec | None] = ()) -> Program:
        """The program that gives these values, some as they are wanted."""
        found = []
        for k, out in enumerate(outs):
            spec = wanted[k] if k < len(wanted) else None
            if spec is not None:
                out = self.moved(as_spec, out, spec)
            else:
                out = self.moved(Builder.settled, out)
            found.append(out)
        return self.made.finish(found)

    def moved(self, fn: Callable[..., Value], value: Value, *args: Any) -> Value:
        """A value brought somewhere by `fn(builder, value, ...)`."""
        builder = Builder(self.env, [value.spec])
        out = fn(builder, value if not isinstance(value.at, int) else Value(value.spec, 0), *args)
        op = Op(_RELAYOUT, {}, (), ())
        decision = builder.decision(op, [value.spec], [out])
        listed = bool(decision.collectives)
        return self.made.append(decision, [value], listed=listed, within=self._within)[0]

    def closed(
        self,
        closed: Any,
        values: Sequence[Value],
        wanted: Sequence[Layout | None] = (),
        scope: str = "",
    ) -> list[Value]:
        """The results of a closed jaxpr on values; `wanted` is how they lie next, if known."""
        jaxpr = closed.jaxpr
        env: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = _constant(const)
        env.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Value:
            return _constant(atom.val, atom.aval) if isinstance(atom, core.Literal) else env[atom]

        readers = Readers(jaxpr, env, wanted)
        skipped = readers.folded_transposes()
        outside = self._path
        for number, eqn in enumerate(jaxpr.eqns):
            if number in skipped.values():
                continue
            self._path = (*outside, number)
            follower = jaxpr.eqns[skipped[number]] if number in skipped else None
            given = [read(atom) for atom in eqn.invars]
            outs = self.equation(eqn, given, follower, readers, scope)
            env.update(zip((follower or eqn).outvars, outs, strict=True))
        self._path = outside
        return [read(atom) for atom in jaxpr.outvars]

    def equation(
        self, eqn: Any, values: Sequence[Value], follower: Any, readers: Readers, scope: str
    ) -> Sequence[Value]:
        """The results of one equation; of a call, those of the called function."""
        names = str(eqn.source_info.name_stack)
        scope = f"{scope}/{names}" if scope and names else scope or names
        name = eqn.primitive.name
        if name == "custom_linear_solve":
            # Its matrix and transpose are for derivatives, which are taken before.
            counts, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
            first = counts.matvec + counts.vecmat
            consts = values[first : first + counts.solve]
            return self.closed(jaxprs.solve, [*consts, *values[sum(counts) :]], scope=scope)
        if name in CALLS:
            if eqn.params.get("differentiated") and eqn.params.get("prevent_cse"):
                # A backward pass computes this part again; keep XLA from finding the first result.
                values = self._apart(values)
            wanted = [readers.layout(out, 0) for out in eqn.outvars]
            return self._called(str(eqn.params.get("name", "")), called(eqn), values, wanted, scope)
        layout = None
        requested = None
        if self.chosen is not None:
            requested = self.chosen.requested(self._path, eqn, values, follower)
        if requested is None and name in _ASK_READERS and self.env.policy is same_grid_and_tile:
            layouts = (layout_of(value.spec) for value in values)
            cores = max((layout.num_cores for layout in layouts if layout is not None), default=1)
            layout = readers.layout((follower or eqn).outvars[0], cores)
        op = Op.of(eqn, follower, layout, requested)
        specs = tuple(value.spec for value in values)
        is_array = self.env.whole and any(aval.shape for aval in (*op.ins, *op.outs))
        listed = is_array or any(map(is_laid_out, specs))
        is_unknown = listed and name not in RULES and not has_effects(op)
        if is_unknown and (made_of := composition(op)) is not None:
            return self.closed(made_of, values, scope=scope)
        decision = decide(op, specs, self.env, Planner)
        prefix = () if self.chosen is None else self.chosen.prefix
        path = (*prefix, *self._path)
        listed = listed or any(map(_is_array, (*specs, *decision.results)))
        outs = self.made.append(decision, values, scope, listed, self._within, path)
        return [self._gathered_if_small(out) for out in outs] if self.env.whole else outs

    def _gathered_if_small(self, out: Value) -> Value:
        if is_laid_out(out.spec) and self.env.is_whole(out.spec):
            return self.moved(Builder.replicated, out)
        return out

    def _called(
        self,
        name: str,
        closed: Any,
        values: Sequence[Value],
        wanted: Sequence[Layout | None],
        scope: str,
    ) -> Sequence[Value]:
        """The results of a called function, under its name where it has one."""
        if not name:
            return self.closed(closed, values, wanted, scope)
        self._calls += 1
        outside, self._within = self._within, (*self._within, (name, self._calls))
        try:
            return self.closed(closed, values, wanted, scope)
        finally:
            self._within = outside

    def _apart(self, values: Sequence[Value]) -> list[Value]:
        settled = [self.moved(Builder.settled, value) for value in values]
        builder = Builder(self.env, [value.spec for value in settled])
        inside = [Value(value.spec, k) for k, value in enumerate(settled)]

        def barrier(*arrays: Any) -> list[Any]:
            return list(lax.optimization_barrier(tuple(arrays)))

        outs = builder.run(barrier, inside, [value.spec for value in settled])
        op = Op(_RELAYOUT, {}, (), ())
        decision = builder.decision(op, [value.spec for value in settled], outs)
        return self.made.append(decision, settled, listed=False)


def as_spec(b: Builder, value: Value, spec: Spec) -> Value:
    """The value as another one is: where it lies, or on every device."""
    if isinstance(spec, Sharded):
        out = b.brought(value, spec.layout)
        if isinstance(out.spec, Sharded) and out.spec.placement != spec.placement:
            out = b.relayout(out, spec.layout, spec.placement)
        # What is said of the padding must be true of this program's results too.
        return out.seen(spec) if spec.layout.oob is None else b.filled(out, spec.layout.oob)
    out = b.replicated(value)
    if out.dtype == spec.dtype and isinstance(out.at, int):
        return out
    assert isinstance(spec, Replicated)
    made, dtype = Replicated(spec.shape, spec.dtype), spec.dtype
    return b.run(lambda x: [lax.convert_element_type(x, dtype)], [out], [made])[0]


def _is_array(spec: Spec) -> bool:
    """Whether a device computes more than one number for it."""
    source = spec.source if isinstance(spec, Deferred) else spec
    return prod(spec.shape) > 1 and prod(source.shape) > 1


def _constant(value: Any, aval: Any = None) -> Value:
    """A literal, or a constant of an inner jaxpr."""
    dtype = value.dtype if aval is None else aval.dtype
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return Value(Replicated(value.shape, dtype), value)
    weak = bool(getattr(aval, "weak_type", False))
    array = np.asarray(value, dtype)
    if array.ndim == 0:
        return Value(known_number(array, dtype, weak), array)
    return Value(Replicated(array.shape, dtype, weak), array)
