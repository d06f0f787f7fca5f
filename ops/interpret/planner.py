"""`planned`: plan a graph, node by node, into one program. Nothing runs or is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from gridlayout.ops.choose.chosen import Chosen, choices_for, is_open
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
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
from gridlayout.ops.graph.consumers import Consumers
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import BARRIER, Atom, Call, Node
from gridlayout.ops.interpret.decide import decide, has_effects, offers
from gridlayout.ops.interpret.result_placement import ResultPlacement, allowed_results
from gridlayout.ops.primitives.composed import composition
from gridlayout.ops.programs.passes import Traffic
from gridlayout.ops.programs.program import RELAYOUT, Program
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.limits import LIMITS

_RELAYOUT = core.Primitive(RELAYOUT)
_OUTERMOST = Call()


def planned(
    env: Env,
    graph: Graph,
    operands: Sequence[Spec],
    result_specs: Sequence[Spec | None] = (),
    each_step: Callable[[], None] = no_step,
) -> Program:
    """Return the program of a whole call, whose array operands and results are laid out.

    If the environment states a plan for this program, its choices are taken. result_specs: the
    requested specs of the first results, None for no request. each_step: is called now and then,
    and ends it by raising.
    """
    stated, nexts = env.stated, dict(env.nexts)
    env = replace(env, stated=None, nexts=())
    if stated is not None and stated.chosen is not None and stated.is_of(graph):
        operands, chosen = [in_space(spec, "l1") for spec in operands], stated.chosen.on(env.device)
        placement = ResultPlacement.of(
            env, graph, operands, result_specs or stated.requested(env.device)
        )
        made = _plan_with(env, graph, operands, placement, chosen, each_step)
        spaces = ["l1" if layout is None else layout.memory for layout in stated.results]
        if not result_specs and set(spaces) != {"l1"}:  # some results are in the chip's DRAM
            pairs = zip(made.outs, spaces, strict=True)
            made.outs = tuple(out.with_spec(in_space(out.spec, space)) for out, space in pairs)
        return made

    placement = ResultPlacement.of(env, graph, operands, result_specs, nexts)
    whole = graph.inlined(LIMITS.trips) if is_open(env, operands) else None
    if whole is None:
        return _plan_with(env, graph, operands, placement, None, each_step)
    return _cheapest(env, graph, whole, operands, placement, each_step)


def _cheapest(
    env: Env,
    graph: Graph,
    whole: Graph,
    operands: Sequence[Spec],
    placement: ResultPlacement,
    each_step: Callable[[], None],
) -> Program:
    """Return the cheaper of two programs: chosen as a whole, or equation by equation.

    whole: the graph with the bodies of loops inlined. The second program is made if there are few
    products, because it considers more algorithms for each of them; and if the layouts of results
    follow from it. Without products, the first program must be clearly cheaper.
    """
    free, make = placement.free, partial(_plan_with, each_step=each_step)
    has_choice = whole.has_choice(env.device)
    alone, is_first = None, whole.products < 2 or not has_choice
    is_small = is_first or whole.products <= LIMITS.products
    results = placement.known(graph, env.device)
    if is_small or results is None:
        # The placement of results does not depend on the algorithms of products.
        algorithm = None if is_small else "gathered"
        alone = make(replace(env, algorithm=algorithm), graph, operands, placement)
        placement, results = placement.matching(alone.results), alone.results
        if is_first and not _may_be_cheaper(env, operands, alone):
            return alone
    allowed = allowed_results(env.device, operands, results, free)
    # A map of cores that the user states may have no place for other grids. Without products,
    # results have the layouts of operands.
    anywhere = free if has_choice and env.device.placements.stated is None else ()
    both = choices_for(env, whole, operands, allowed, anywhere, each_step)
    together = None
    if both is not None:
        chosen, found = both
        there = placement.with_specs({k: found[k] for k in free if found[k] != results[k]})
        together = make(env, graph, operands, there, chosen)
    if together is None or not together.is_local:
        return alone if is_small and alone else make(env, graph, operands, placement)
    together.chosen = chosen
    if alone is None:
        return together
    if not is_small and alone.seconds < together.seconds:
        alone = make(env, graph, operands, placement)
    share = LIMITS.cheaper_share if has_choice else 1 / LIMITS.cheaper_share
    if alone.seconds < share * together.seconds:
        alone.against = together.seconds if together.seconds > alone.seconds else None
        return alone
    together.against = alone.seconds if alone.seconds > together.seconds else None
    return together


def _may_be_cheaper(env: Env, operands: Sequence[Spec], alone: Program) -> bool:
    """Return whether another program may take less than this one.

    It has collectives, or more devices may compute it than the largest operand is divided over, in
    less than it takes to bring them anything.
    """
    if not alone.is_local:
        return False
    if alone.sends:
        return True
    largest = max(operands, key=_size, default=None)
    axes = largest.placement.axes if isinstance(largest, Sharded) else ()
    devices = prod(map(env.device.count, axes))
    return devices < env.device.size and alone.seconds > env.device.machine.any_seconds(1)


def _size(spec: Spec) -> int:
    return prod(spec.shape)


def _plan_with(
    env: Env,
    graph: Graph,
    operands: Sequence[Spec],
    placement: ResultPlacement,
    chosen: Chosen | None = None,
    each_step: Callable[[], None] = no_step,
) -> Program:
    planner = Planner(env, operands, chosen, each_step)
    inputs = [planner.apply(_lay_out_operand, value) for value in planner.operands]
    outs = planner.append(graph, inputs, placement.layouts)
    outs = [planner.apply(placement.place, out, number) for number, out in enumerate(outs)]
    return planner.program(outs, placement.specs)


def _lay_out_operand(b: Builder, x: Value) -> Value:
    """Return an operand as rules take it: single numbers and keys replicated, arrays laid out.

    A small array that all devices have stays there until an operation needs a part of it.
    """
    if x.ndim == 0 or is_of_keys(x.spec):
        return b.replicated(x)
    if isinstance(x.spec, Replicated) and not b.env.is_large(x.spec):
        return x
    return b.as_sharded(x)


class Planner:
    """Appends decisions to a program, node by node."""

    def __init__(
        self,
        env: Env,
        operands: Sequence[Spec],
        chosen: Chosen | None = None,
        each_step: Callable[[], None] = no_step,
    ) -> None:
        self.env, self.made, self._each_step = env, Program(env.device, tuple(operands)), each_step
        self.made.offers = partial(offers, env=env, plan=Planner)
        self.chosen = chosen
        self._path: tuple[int, ...] = ()  # equation numbers: of enclosing calls, then its own
        self._call_stack: tuple[tuple[str, int], ...] = ()  # (name, number) of enclosing calls
        self._calls = 0  # named calls so far

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
        has_choices: bool = True,
    ) -> list[Value]:
        """Append a closed jaxpr applied to values, and return its results; see `append`.

        has_choices: whether the planner's choices are for this jaxpr.
        """
        chosen, self.chosen = self.chosen, self.chosen if has_choices else None
        outs = self.append(Graph.of(closed), values, result_layouts)
        self.chosen = chosen
        return outs

    @staticmethod
    def graph(closed: Any) -> Graph:
        """Return the graph of a closed jaxpr."""
        return Graph.of(closed)

    def append(
        self,
        graph: Graph,
        values: Sequence[Value],
        result_layouts: Sequence[Layout | None] = (),
        outer: Call = _OUTERMOST,
    ) -> list[Value]:
        """Append the nodes of a graph applied to values, and return its results.

        result_layouts: the layouts that the caller requests of the results later, if known. outer:
        the call that encloses the graph.
        """
        held = dict(enumerate(values))
        held.update((v, _constant_value(const)) for v, const in graph.constants.items())
        consumers = Consumers(graph, self.env.device, held, result_layouts)
        outside, first = self._path, self._calls
        self._calls += graph.calls
        for node in graph.nodes:
            if graph.followers.intersection(node.outs):
                continue
            self._each_step()
            self._path = (*outside, *node.path)
            follower = graph.folded.get(node.outs[0]) if node.outs else None
            given = [self._read(atom, held) for atom in node.atoms]
            call = node.call.inside(outer, first)
            self._call_stack = call.functions
            if node.label == BARRIER:
                outs: Sequence[Value] = self._behind_barrier(given)
            else:
                traffic = graph.kernels.traffic.get(node.outs)
                outs = self._node(node, given, follower, consumers, call, traffic)
            held.update(zip((follower or node).outs, outs, strict=True))
        self._path, self._call_stack = outside, outer.functions
        return [self._read(atom, held) for atom in graph.results]

    @staticmethod
    def _read(atom: Atom, held: Mapping[int, Value]) -> Value:
        return held[atom] if isinstance(atom, int) else _constant_value(atom.val, atom.aval)

    def _node(
        self,
        node: Node,
        values: Sequence[Value],
        follower: Node | None,
        consumers: Consumers,
        call: Call,
        traffic: Traffic | None,
    ) -> Sequence[Value]:
        """Append an equation, or the equations of its implementation.

        follower: a transpose that is fused with it, or None. traffic: what it reads and writes.
        """
        layout, requested, record = None, None, node.record
        if self.chosen is not None:
            requested = self.chosen.requested(self._path, node, values, follower)
        if requested is None and record.multiplies and self.env.policy is same_grid_and_tile:
            layouts = (layout_of(value.spec) for value in values)
            cores = max((layout.num_cores for layout in layouts if layout is not None), default=1)
            layout = consumers.layout((follower or node).outs[0], cores)
        op = node.op.placed(None if follower is None else follower.op, layout, requested)
        specs = tuple(value.spec for value in values)
        is_array = self.env.replicates_small and any(aval.shape for aval in (*op.ins, *op.outs))
        listed = is_array or any(map(is_laid_out, specs))
        is_unknown = listed and not record.rules and not has_effects(op)
        here = call.around(node.eqn)
        if is_unknown and (made_of := composition(op)) is not None:
            return self.append(Graph.of(made_of), values, outer=here)
        decision = decide(op, specs, self.env, Planner)
        prefix = () if self.chosen is None else self.chosen.prefix
        path = (*prefix, *self._path)
        listed = listed or any(map(_is_array, (*specs, *decision.results)))
        given = here.scope, listed, call.functions, path, traffic
        outs = self.made.append(decision, values, *given)
        return (
            [self._replicate_if_small(out) for out in outs] if self.env.replicates_small else outs
        )

    def _replicate_if_small(self, out: Value) -> Value:
        if is_laid_out(out.spec) and self.env.replicates(out.spec):
            return self.apply(Builder.replicated, out)
        return out

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
        out = b.to_layout(value, spec.layout, spec.placement)
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
