"""`planned`: plan a jaxpr, equation by equation, into one program. Nothing runs or is traced."""

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
from gridlayout.ops.interpret.result_placement import ResultPlacement
from gridlayout.ops.plan.chosen import Chosen, choices_for, is_open
from gridlayout.ops.plan.consumers import Consumers
from gridlayout.ops.plan.graph import Graph
from gridlayout.ops.primitives.composed import composition
from gridlayout.ops.primitives.table import record_of
from gridlayout.ops.programs.program import RELAYOUT, Program
from gridlayout.sharding.limits import LIMITS

_RELAYOUT = core.Primitive(RELAYOUT)


def planned(
    env: Env, closed: Any, operands: Sequence[Spec], result_specs: Sequence[Spec | None] = ()
) -> Program:
    """Return the program of a whole call, whose array operands and results are laid out.

    If the environment states a plan for this jaxpr, its choices are taken. result_specs: the
    requested specs of the first results, None for no request.
    """
    stated, nexts = env.stated, dict(env.nexts)
    env = replace(env, stated=None, nexts=())
    if stated is not None and stated.chosen is not None and stated.is_of(closed):
        operands, chosen = [in_space(spec, "l1") for spec in operands], stated.chosen.on(env.device)
        placement = ResultPlacement.of(
            env, closed.jaxpr, operands, result_specs or stated.requested(env.device)
        )
        made = _plan_with(env, closed, operands, placement, chosen)
        spaces = ["l1" if layout is None else layout.memory for layout in stated.results]
        if not result_specs and set(spaces) != {"l1"}:  # some results are in the chip's DRAM
            pairs = zip(made.outs, spaces, strict=True)
            made.outs = tuple(out.with_spec(in_space(out.spec, space)) for out, space in pairs)
        return made

    placement = ResultPlacement.of(env, closed.jaxpr, operands, result_specs, nexts)
    graph = Graph.of(closed, LIMITS.trips) if is_open(env, operands) else None
    if graph is None or not graph.has_choice:
        return _plan_with(env, closed, operands, placement)
    return _cheapest(env, closed, graph, operands, placement)


def _cheapest(
    env: Env, closed: Any, graph: Graph, operands: Sequence[Spec], placement: ResultPlacement
) -> Program:
    """Return the cheaper of two programs: chosen as a whole, or equation by equation.

    The second one is made if there are few products, because it considers more algorithms for each
    of them; and if the layouts of results follow from it.
    """
    alone = None
    is_small = graph.products <= LIMITS.products
    results = _known_results(env, graph, placement)
    if is_small or results is None:
        # The placement of results does not depend on the algorithms of products.
        algorithm = None if is_small else "gathered"
        alone = _plan_with(replace(env, algorithm=algorithm), closed, operands, placement)
        placement, results = placement.matching(alone.results), alone.results
        if graph.products < 2 and sum(x.count for x in alone.collectives) < LIMITS.collectives:
            return alone
    chosen = choices_for(env, graph, operands, results)
    together = None
    if chosen is not None:
        together = _plan_with(env, closed, operands, placement, chosen)
    if together is None or not together.is_local:
        return alone if is_small and alone else _plan_with(env, closed, operands, placement)
    together.chosen = chosen
    if alone is None:
        return together
    if not is_small and alone.seconds < together.seconds:
        alone = _plan_with(env, closed, operands, placement)
    if alone.seconds < LIMITS.cheaper_share * together.seconds:
        alone.against = together.seconds
        return alone
    together.against = alone.seconds
    return together


def _known_results(
    env: Env, graph: Graph, placement: ResultPlacement
) -> Sequence[Spec | None] | None:
    """Return the placements of results that are stated, or are those of operands; None if some are
    not. The result of a number is None.
    """
    found: list[Spec | None] = []
    rows = zip(graph.outs, placement.specs, placement.operand_layouts, strict=True)
    for v, spec, own in rows:
        if spec is None and own is not None:
            spec = Sharded(own, env.device.placement(own.core_shape))
        if spec is None and v is not None and graph.shapes[v]:
            return None
        found.append(spec)
    return found


def _plan_with(
    env: Env,
    closed: Any,
    operands: Sequence[Spec],
    placement: ResultPlacement,
    chosen: Chosen | None = None,
) -> Program:
    planner = Planner(env, operands, chosen)
    inputs = [planner.apply(_lay_out_operand, value) for value in planner.operands]
    outs = planner.evaluate(closed, inputs, placement.layouts)
    outs = [planner.apply(placement.place, out, number) for number, out in enumerate(outs)]
    return planner.program(outs, placement.specs)


def _lay_out_operand(b: Builder, x: Value) -> Value:
    """Return an operand as rules take it: arrays laid out, single numbers and keys replicated."""
    if x.ndim == 0 or is_of_keys(x.spec):
        return b.replicated(x)
    return b.as_sharded(x)


class Planner:
    """Appends decisions to a program, equation by equation."""

    def __init__(self, env: Env, operands: Sequence[Spec], chosen: Chosen | None = None) -> None:
        self.env, self.made = env, Program(env.device, tuple(operands))
        self.made.offers = partial(offers, env=env, plan=Planner)
        self.chosen = chosen
        self._path: tuple[int, ...] = ()  # equation numbers: of enclosing calls, then its own
        self._call_stack: tuple[tuple[str, int], ...] = ()  # (name, number) of enclosing calls
        self._calls = 0

    @property
    def operands(self) -> list[Value]:
        """The program's operands."""
        return [Value(spec, k) for k, spec in enumerate(self.made.operands)]

    def program(self, outs: Sequence[Value], result_specs: Sequence[Spec | None] = ()) -> Program:
        """Return the program that returns these values, in `result_specs` where not None."""
        found = []
        for k, out in enumerate(outs):
            spec = result_specs[k] if k < len(result_specs) else None
            if spec is not None:
                out = self.apply(relay_out_to_spec, out, spec)
            else:
                out = self.apply(Builder.materialize, out)
            found.append(out)
        return self.made.finish(found)

    def apply(self, fn: Callable[..., Value], value: Value, *args: Any) -> Value:
        """Append the steps of `fn(builder, value, *args)`, a relayout, and return its result."""
        builder = Builder(self.env, [value.spec])
        out = fn(builder, value if not isinstance(value.at, int) else Value(value.spec, 0), *args)
        op = Op(_RELAYOUT, {}, (), ())
        decision = builder.decision(op, [value.spec], [out])
        listed = bool(decision.collectives)
        return self.made.append(decision, [value], listed=listed, within=self._call_stack)[0]

    def evaluate(
        self,
        closed: Any,
        values: Sequence[Value],
        result_layouts: Sequence[Layout | None] = (),
        scope: str = "",
    ) -> list[Value]:
        """Append a closed jaxpr applied to values, and return its results.

        result_layouts: the layouts that the caller requests of the results later, if known.
        """
        jaxpr = closed.jaxpr
        env: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = _constant_value(const)
        env.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Value:
            return (
                _constant_value(atom.val, atom.aval)
                if isinstance(atom, core.Literal)
                else env[atom]
            )

        consumers = Consumers(jaxpr, env, result_layouts)
        folded = consumers.folded_transposes()
        outside = self._path
        for number, eqn in enumerate(jaxpr.eqns):
            if number in folded.values():
                continue
            self._path = (*outside, number)
            follower = jaxpr.eqns[folded[number]] if number in folded else None
            given = [read(atom) for atom in eqn.invars]
            outs = self.equation(eqn, given, follower, consumers, scope)
            env.update(zip((follower or eqn).outvars, outs, strict=True))
        self._path = outside
        return [read(atom) for atom in jaxpr.outvars]

    def equation(
        self, eqn: Any, values: Sequence[Value], follower: Any, consumers: Consumers, scope: str
    ) -> Sequence[Value]:
        """Append one equation, or the equations of the function that it calls.

        follower: the equation of a transpose that is fused with it, or None.
        """
        names = str(eqn.source_info.name_stack)
        scope = f"{scope}/{names}" if scope and names else scope or names
        name = eqn.primitive.name
        if name == "custom_linear_solve":
            # The matrix and its transpose are for derivatives, which have been taken by then.
            counts, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
            first = counts.matvec + counts.vecmat
            consts = values[first : first + counts.solve]
            return self.evaluate(jaxprs.solve, [*consts, *values[sum(counts) :]], scope=scope)
        if name in CALLS:
            if eqn.params.get("differentiated") and eqn.params.get("prevent_cse"):
                # Rematerialization: keep XLA from reusing the result of the forward pass.
                values = self._behind_barrier(values)
            result_layouts = [consumers.layout(out, 0) for out in eqn.outvars]
            return self._called(
                str(eqn.params.get("name", "")), called(eqn), values, result_layouts, scope
            )
        layout, requested, record = None, None, record_of(name)
        if self.chosen is not None:
            requested = self.chosen.requested(self._path, eqn, values, follower)
        if requested is None and record.multiplies and self.env.policy is same_grid_and_tile:
            layouts = (layout_of(value.spec) for value in values)
            cores = max((layout.num_cores for layout in layouts if layout is not None), default=1)
            layout = consumers.layout((follower or eqn).outvars[0], cores)
        op = Op.of(eqn, follower, layout, requested)
        specs = tuple(value.spec for value in values)
        is_array = self.env.replicates_small and any(aval.shape for aval in (*op.ins, *op.outs))
        listed = is_array or any(map(is_laid_out, specs))
        is_unknown = listed and not record.rules and not has_effects(op)
        if is_unknown and (made_of := composition(op)) is not None:
            return self.evaluate(made_of, values, scope=scope)
        decision = decide(op, specs, self.env, Planner)
        prefix = () if self.chosen is None else self.chosen.prefix
        path = (*prefix, *self._path)
        listed = listed or any(map(_is_array, (*specs, *decision.results)))
        outs = self.made.append(decision, values, scope, listed, self._call_stack, path)
        return (
            [self._replicate_if_small(out) for out in outs] if self.env.replicates_small else outs
        )

    def _replicate_if_small(self, out: Value) -> Value:
        if is_laid_out(out.spec) and self.env.replicates(out.spec):
            return self.apply(Builder.replicated, out)
        return out

    def _called(
        self,
        name: str,
        closed: Any,
        values: Sequence[Value],
        result_layouts: Sequence[Layout | None],
        scope: str,
    ) -> Sequence[Value]:
        """Append a called function, grouped under its name if it has one."""
        if not name:
            return self.evaluate(closed, values, result_layouts, scope)
        self._calls += 1
        outside, self._call_stack = self._call_stack, (*self._call_stack, (name, self._calls))
        try:
            return self.evaluate(closed, values, result_layouts, scope)
        finally:
            self._call_stack = outside

    def _behind_barrier(self, values: Sequence[Value]) -> list[Value]:
        materialized = [self.apply(Builder.materialize, value) for value in values]
        builder = Builder(self.env, [value.spec for value in materialized])
        inside = [Value(value.spec, k) for k, value in enumerate(materialized)]

        def barrier(*arrays: Any) -> list[Any]:
            return list(lax.optimization_barrier(tuple(arrays)))

        outs = builder.run(barrier, inside, [value.spec for value in materialized])
        op = Op(_RELAYOUT, {}, (), ())
        decision = builder.decision(op, [value.spec for value in materialized], outs)
        return self.made.append(decision, materialized, listed=False)


def relay_out_to_spec(b: Builder, value: Value, spec: Spec) -> Value:
    """Return the value with the spec of another one: in its layout, or replicated."""
    if isinstance(spec, Sharded):
        out = b.to_layout(value, spec.layout)
        if isinstance(out.spec, Sharded) and out.spec.placement != spec.placement:
            out = b.relayout(out, spec.layout, spec.placement)
        # The padding value that the spec states must be true of this value too.
        return (
            out.with_spec(spec) if spec.layout.oob is None else b.with_padding(out, spec.layout.oob)
        )
    out = b.replicated(value)
    if out.dtype == spec.dtype and isinstance(out.at, int):
        return out
    assert isinstance(spec, Replicated)
    made, dtype = Replicated(spec.shape, spec.dtype), spec.dtype
    return b.run(lambda x: [lax.convert_element_type(x, dtype)], [out], [made])[0]


def _is_array(spec: Spec) -> bool:
    """Whether a device computes more than one number for a value."""
    source = spec.source if isinstance(spec, Deferred) else spec
    return prod(spec.shape) > 1 and prod(source.shape) > 1


def _constant_value(value: Any, aval: Any = None) -> Value:
    """Return the value of a literal, or of a constant of an inner jaxpr."""
    dtype = value.dtype if aval is None else aval.dtype
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return Value(Replicated(value.shape, dtype), value)
    weak = bool(getattr(aval, "weak_type", False))
    array = np.asarray(value, dtype)
    if array.ndim == 0:
        return Value(known_number(array, dtype, weak), array)
    return Value(Replicated(array.shape, dtype, weak), array)
