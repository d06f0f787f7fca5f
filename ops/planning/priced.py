"""Plans with their prices: the program of the chosen layouts is built, and its report is priced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite

from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.chosen import Chosen, Stated
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place, apart_in
from gridlayout.ops.decisions.specs import layout_of
from gridlayout.ops.graph.node import Path
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.plan import Alternative, Plan
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.planning.spaces import End, Spaces
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.report import Report
from gridlayout.ops.programs.row import named_rows
from gridlayout.ops.solver.solve import Solution
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.limits import LIMITS

_MOST_WAYS = 8  # the most alternatives per equation


def default_plan(
    traced: Traced,
    trips: int | None,
    keep_layouts: bool = False,
    each_step: Callable[[], None] = no_step,
) -> Plan:
    """Return the plan of the program that `gl.on_grid` makes, with its choices.

    keep_layouts: whether arguments keep the layouts that they have, instead of those of `gl.put`.
    The bound is 0, because none is known. each_step: is called now and then; ends it by raising.
    """
    each_step()
    numbered = enumerate(traced.leaves, traced.consts)
    layouts = {leaf.path: traced.default(k, keep_layouts) for k, leaf in numbered}
    report = traced.report([*layouts.values()], each_step=each_step)
    each_step()
    results = tuple(map(layout_of, report.program.results))
    trips = LIMITS.trips if trips is None else trips
    return Plan(
        layouts,
        dict(zip(traced.result_names, results, strict=True)),
        0.0,
        Simulation.of(report, None, trips),
        traced.device,
        Stated(traced.device, None, traced.digest, results, trips),
        {},
        "as by default",
        traced.fn,
        traced.trees,
    )


def made_plan(
    traced: Traced, strategies: Strategies, found: Solution, clock: Clock, rounds: int = 1
) -> Plan:
    """Return the plan of a solution, with its price.

    clock: for the choice between L1 and DRAM. rounds: the most rounds of a product. A plan that
    does not fit a device's memory lists no alternatives.
    """
    units, choices = strategies.units, strategies.choices(found.choices)
    if rounds > 1:
        choices |= in_rounds(strategies, choices, rounds)
    divisions = strategies.results(found.choices)
    products = sum(bool(node.flops) for node in strategies.graph.nodes)
    results = tuple(
        None
        if division is None
        else traced.tiled(units.spec(tuple(aval.shape), aval.dtype, division).named(traced.device))
        for aval, division in zip(traced.closed.out_avals, divisions, strict=True)
    )
    places, spaces = strategies.places(found.choices), None
    if traced.device.machine.has_cores:
        ends = [_end(traced, places, k, x) for k, x in enumerate(divisions)]
        spaces = Spaces.of(strategies, places, choices, ends, clock=clock)
        results = tuple(
            layout.replace(memory_space="dram")
            if isinstance(layout, GridLayout) and v in spaces.dram
            else layout
            for v, layout in zip(strategies.graph.outs, results, strict=True)
        )
    chosen = Chosen(units, choices, products)
    stated = Stated(traced.device, chosen, traced.digest, results, strategies.graph.trips or 1)
    layouts = {
        leaf.path: (traced.fixed_layout(k) or traced.layout(units, k, places[k]))
        if leaf.has_layout
        else None
        for k, leaf in enumerate(traced.leaves, traced.consts)
    }
    report = traced.report([*layouts.values()], stated)
    simulation = Simulation.of(report, spaces, stated.trips)
    machine = traced.device.machine
    most = None if machine.has_cores else machine.device_capacity
    fits = most is None or simulation.peak_bytes <= most
    return Plan(
        layouts,
        dict(zip(traced.result_names, _filled(results, report.program), strict=True)),
        min(found.bound, simulation.time),
        simulation,
        traced.device,
        stated,
        _alternatives(strategies, found, report) if fits else {},
        found.how,
        traced.fn,
        traced.trees,
    )


def in_rounds(
    strategies: Strategies, choices: Mapping[Path, Choice], rounds: int
) -> dict[Path, Choice]:
    """Return the choices of products, in at most so many rounds.

    An operand is gathered in rounds if nothing else reads it in that division: otherwise one gather
    serves all that read it.
    """
    found = apart_in(strategies.graph, choices, lambda node: node.name == "dot_general")
    return {path: choice._replace(rounds=rounds) for path, choice in found.items()}


def _filled(results: Sequence[Layout | None], program: Program) -> tuple[Layout | None, ...]:
    """Return the layouts of results, with those of the program in place of None."""
    made = map(layout_of, program.results)
    return tuple(a or b for a, b in zip(results, made, strict=True))


def _end(traced: Traced, places: Sequence[Place], result: int, division: Division | None) -> End:
    """Return where a result is placed.

    It is in DRAM if it is the next value of an argument in DRAM, or if all results are there. A
    result without a division, whose placement its rule decides, is not moved to DRAM.
    """
    operand = traced.next_of.get(result)
    if operand is not None:
        in_dram: bool | None = places[operand].in_dram
    else:
        in_dram = None if traced.space is None else traced.space == "dram"
    return End(division, None if division is None and in_dram else in_dram)


def _alternatives(
    strategies: Strategies, found: Solution, report: Report
) -> dict[str, tuple[Alternative, ...]]:
    """Return the best ways to run each equation that has a choice."""
    units, problem = strategies.units, strategies.problem
    made: dict[str, tuple[Alternative, ...]] = {}
    names = zip(named_rows(report.rows), report.rows, strict=True)
    by_path = {row.made.path: name for name, row in names}
    by_variable: dict[int, tuple[Alternative, ...]] = {}
    for n, node in enumerate(strategies.graph.nodes):
        at = strategies.variable(n)
        choices = strategies.variables[at].choices
        listed = [each.path for each in node.equations if each.path in by_path]
        if not listed or len(choices) < 2:
            continue
        if at not in by_variable:
            chosen, costs = found.choices[at], problem.costs_with(found.choices, at).tolist()
            ways = sorted((cost, k != chosen, k) for k, cost in enumerate(costs) if isfinite(cost))
            best = [(choices[k], cost, k == chosen) for cost, _, k in ways[:_MOST_WAYS]]
            by_variable[at] = tuple(
                Alternative(units.words(x.ins, x.out, x.summed, x.scattered), cost, is_chosen)
                for x, cost, is_chosen in best
            )
        made |= {by_path[path]: by_variable[at] for path in listed}
    return made
