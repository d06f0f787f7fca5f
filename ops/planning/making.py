"""`gl.plan` and `gl.simulate`: a function is traced, its layouts are chosen, and all is priced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from time import monotonic
from typing import Any

from gridlayout.arguments import one_of
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import layout_of
from gridlayout.ops.interpret.names import function_name
from gridlayout.ops.plan.chosen import Chosen, Stated
from gridlayout.ops.plan.graph import Graph
from gridlayout.ops.plan.strategies import Place, Strategies
from gridlayout.ops.planning.plan import Alternative, Plan
from gridlayout.ops.planning.simulation import Simulation, equation_names
from gridlayout.ops.planning.spaces import Spaces, room_in_l1
from gridlayout.ops.planning.traced import Traced, traced_for
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.programs.report import Report
from gridlayout.ops.solver.solve import Solution, Unsolved, solve
from gridlayout.sharding.chips import check_figure
from gridlayout.sharding.machine import LIMITS, Machine

_MOST_WAYS = 8  # alternatives of an equation that are kept
_MOST_ALIVE = 12  # values that an error names
_MOST_TRIES = 12  # with less room for what copies take
_MOST_ROUNDS = 4  # of plans, and what then is in DRAM
_QUICKLY = 5.0  # seconds of a search for whether a larger mesh would do
_MOST_DOUBLED = 12  # times that a mesh is doubled to find one that would do


def plan(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    fixed: Any = None,
    trips: int | None = None,
    seconds: float = 60.0,
    progress: Callable[[float, float, float], None] | None = None,
    memory_space: str | None = None,
) -> Plan:
    """The layouts of a program's arguments, values and results that take the least time.

    fn: a JAX function; gradients and optimizers are part of it. args: arrays, `GridArray`s or
    `jax.ShapeDtypeStruct`s, of which shapes and types count; or a `gl.Layout`, which is kept.
    machine: a `gl.Machine`, or the name of a ready one; chips of several cores are planned core by
    core. By default the devices of the `GridArray`s, or all that JAX has. fixed: layouts that
    arguments are to have, in the forms of `gl.put`: `{"params/w1": layout}` by paths, which start
    with the argument's name; `with_layout` in `fn` fixes other values. trips: how often loops of
    unknown length are taken to run. seconds: how long the search may go on; it ends sooner where
    the plan is proven to be the best. progress: called with the time of the best plan, the bound,
    and the seconds that have gone. An interrupt ends the search with the best plan, once there is
    one. memory_space: of chips of several cores, where arguments and results are: "dram", as of
    compiled programs, "l1", or by default wherever it takes the least time.

    Chosen for all values at once: how an argument is divided over the mesh, how each equation is,
    and whether partial sums are all-reduced or scattered. A result that is a tree of the structure,
    shapes and types of an argument, as new parameters are, keeps that argument's layouts, so that
    the next step takes it as it is. A plan states a bound: no choice among these takes less, by the
    machine's figures.

    `LayoutError`: a function that can't be traced, a machine of another mesh than the arrays',
    unknown paths and impossible layouts in `fixed`, and a program that the machine's memory has no
    room for, with the values that are alive when the most is held.

    >>> import jax, jax.numpy as jnp, gridlayout as gl
    >>> x, w = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((4096, 512), (512, 512)))
    >>> plan = gl.plan(lambda x, w: jnp.tanh(x @ w), x, w, machine="v5e 4x4")
    >>> plan.layouts["x"].grid, plan.layouts["w"].grid, plan.bound <= plan.time
    ((16, 1), (1, 1), True)
    """
    if trips is not None and (not isinstance(trips, int) or isinstance(trips, bool) or trips < 1):
        raise LayoutError(f"trips {trips!r} must be a whole number of at least 1")
    check_search(seconds, progress, "time, bound, seconds")
    traced = traced_for(fn, args, machine, fixed, memory_space)
    return planned(traced, fn, args, fixed, trips, seconds, progress)


def planned(
    traced: Traced,
    fn: Any,
    args: Any,
    fixed: Any = None,
    trips: int | None = None,
    seconds: float = 60.0,
    progress: Any = None,
) -> Plan:
    """The plan of a function that is traced; `LayoutError` where the memory has no room for it."""
    found = _found(traced, trips, seconds, progress)
    if found is None:
        raise LayoutError(_too_large(traced, fn, args, fixed, trips))
    return found


def check_search(seconds: Any, progress: Any, told: str) -> None:
    """`LayoutError` unless a search may take so many seconds, and `progress` may be told of it."""
    check_figure(seconds, "seconds", above=False)
    if progress is not None and not callable(progress):
        raise LayoutError(f"progress {progress!r} must be a function of ({told})")


def _found(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """The best plan that is found in time; None where nothing has room."""
    search = _on_cores if traced.device.machine.has_cores else _on_devices
    return search(traced, trips, seconds, progress)


def _on_devices(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """A plan that a device's memory has room for, copies on the way to readers included."""
    capacity = room = traced.device.machine.device_capacity
    free = traced.strategies(trips)
    default = _default(traced, free)
    for k in range(_MOST_TRIES):
        strategies = free.limited(capacity, copies=k > 0)
        solution = _solved(strategies, seconds, progress)
        if solution is None:
            return None
        made = _made(traced, strategies, solution)
        if default.time < made.time and (room is None or default.peak_bytes <= room):
            return replace(default, bound=min(made.bound, default.time))
        if room is None or capacity is None or made.peak_bytes <= room:
            return made
        if k:
            used = capacity + max(strategies.problem.excess(solution.choices), -capacity)
            less = int(capacity * room / made.peak_bytes)
            capacity = min(less, int(used) - 1) if strategies.problem.rows else less
    return None


def _default(traced: Traced, strategies: Strategies) -> Plan:
    """The plan in which every equation chooses for itself, on arguments as `gl.put` lays them out.

    It may run products by algorithms that no strategy has.
    """
    numbered = enumerate(traced.leaves, traced.consts)
    layouts = {leaf.path: traced.default(k, kept=False) for k, leaf in numbered}
    wanted = [traced.next_of.get(k) for k in range(len(traced.closed.jaxpr.outvars))]
    of_operand = dict(enumerate(layouts.values(), traced.consts))
    results = tuple(None if k is None else of_operand.get(k) for k in wanted)
    chosen = Chosen(strategies.units, {}, 0)
    stated = Stated(chosen, traced.digest, results, strategies.graph.trips or 1)
    program = traced.program(traced.specs_in([*layouts.values()]), stated)
    made = map(layout_of, program.results)
    results = tuple(a or b for a, b in zip(results, made, strict=True))
    return Plan(
        layouts,
        dict(zip(traced.result_names, results, strict=True)),
        0.0,
        Simulation.of(program, traced.report(program), None, stated.trips),
        traced.device,
        stated,
        {},
        "each equation by itself",
        traced.fn,
    )


def _solved(strategies: Strategies, seconds: float, progress: Any) -> Solution | None:
    """The best choices that are found in time; None where nothing has room."""
    gap = LIMITS.gap if len(strategies.graph.nodes) > LIMITS.alike else 0.0
    return solve(strategies.problem, seconds=seconds, progress=progress, gap=gap)


def _on_cores(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """The best plan of cores that all have something of each value, and of such that may have none.

    The second have fewer tiles on one core, but relayouts of what is so divided can cost more than
    their bytes tell: both are made, and priced.
    """
    free = traced.strategies(trips)
    found = _in_spaces(traced, free, seconds, progress)
    more = traced.strategies(trips, idle=True)
    if found is None or not more.units.idle or _choices(more) == _choices(free):
        return found
    other = _in_spaces(traced, more, seconds / 2, progress)
    if other is None:
        return found
    bound = min(found.bound, other.bound)
    return replace(other if other.time < found.time else found, bound=bound)


def _choices(strategies: Strategies) -> int:
    return sum(len(variable.choices) for variable in strategies.variables)


def _in_spaces(traced: Traced, free: Strategies, seconds: float, progress: Any) -> Plan | None:
    """The best plan whose values have room in L1, or are read from DRAM.

    Without a limit to L1 no plan takes less: the bound. Where all but arguments are to be in L1,
    the solver says which arguments are not; else values go to DRAM that a plan has no room for.
    """
    room = room_in_l1(traced.device.machine)
    until = monotonic() + seconds
    spilled = frozenset[int]()
    if traced.space == "dram":
        outs = (v for v in free.graph.outs if v is not None and free.graph.shapes[v])
        spilled = frozenset(v for v in outs if v >= len(traced.specs))
        free = free.limited(None, spilled)
    first = _solved(free, seconds / 3, progress)
    assert first is not None
    limited = free.limited(room, spilled)
    if limited.problem.excess(first.choices) <= 0:
        return _made(traced, limited, first)
    found, solution = [], None
    with suppress(Unsolved):
        solution = _solved(limited, (until - monotonic()) / 2, progress)
    if solution is not None:
        found.append(_made(traced, limited, replace(solution, bound=first.bound)))
    for _ in range(_MOST_ROUNDS):
        places, choices = free.places(first.choices), free.choices(first.choices)
        spaces = Spaces.of(free, places, choices, fixed=False)
        made = {v for v in spaces.dram if v >= len(traced.specs)}
        if spilled.issuperset(made):
            break
        spilled |= made
        limited = free.limited(room, spilled)
        with suppress(Unsolved):
            solution = _solved(limited, max(until - monotonic(), 1.0), progress)
        if solution is not None:
            found.append(_made(traced, limited, replace(solution, bound=first.bound)))
            break
    return min(found, key=lambda each: each.time, default=None)


def simulate(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    plan: Plan | None = None,
    algorithm: str | None = None,
) -> Simulation:
    """What a machine takes for a program: seconds, bytes by link, and what a device holds.

    fn, args, machine: as of `gl.plan`. plan: whose layouts and choices are taken; without one, the
    choices that `gl.on_grid` makes, for layouts and `GridArray`s as they are and for others in
    those of `gl.fill_devices`. algorithm: then that of all products, a name in `gl.ALGORITHMS`;
    `LayoutError` where the mesh is not one that it needs. No devices are needed. A program of
    `gl.tenstorrent.load` takes no args: every op is priced in the layouts that the compiler chose.
    One relayout is priced so:

    >>> import jax, gridlayout as gl
    >>> rows, columns = (gl.GridLayout((4096, 4096), grid=grid) for grid in ((16, 1), (1, 16)))
    >>> moved = gl.simulate(lambda x: gl.with_layout(x, columns), rows, machine="v5e 4x4")
    >>> [str(each) for each in moved.equations[0].collectives]
    ['all_to_all x*y:16 3,932,160 B']

    >>> x = jax.ShapeDtypeStruct((1024, 1024), "bfloat16")
    >>> simulation = gl.simulate(lambda x: x @ x, x, machine="wormhole 4x8")
    >>> simulation.mesh, simulation.time > 0
    ({'x': 4, 'y': 8, 'r': 8, 'c': 8}, True)
    """
    if plan is not None and not isinstance(plan, Plan):
        raise LayoutError(f"plan {plan!r} must be a plan of gl.plan, or None")
    if algorithm is not None:
        one_of(algorithm, ALGORITHMS, "algorithm")
    if not args and callable(compiled := getattr(fn, "simulated", None)):
        if algorithm is not None:
            raise LayoutError(
                f"a compiled program says how products are done: leave out algorithm={algorithm!r}"
            )
        return compiled(machine)
    if algorithm is not None and plan is not None:
        raise LayoutError(
            f"a plan says how products are done: leave out plan=, or algorithm={algorithm!r}"
        )
    if plan is not None and machine is None:
        machine = plan.device.machine
    traced = traced_for(fn, args, machine, None)
    return by_default(traced, algorithm) if plan is None else _as_planned(traced, plan)


def by_default(traced: Traced, algorithm: str | None) -> Simulation:
    """What a program takes as `gl.on_grid` chooses; algorithm: of all products, by name."""
    layouts = [traced.default(k) for k in range(len(traced.specs))]
    program = traced.program(traced.specs_in(layouts), None, algorithm)
    return Simulation.of(program, traced.report(program), None, LIMITS.trips)


def _as_planned(traced: Traced, plan: Plan) -> Simulation:
    """What a program takes with the layouts and choices of a plan."""
    plan.stated.check(traced.closed, traced.device)
    chosen = plan.stated.chosen.on(traced.device)
    specs = traced.specs_in([*plan.layouts.values()])
    graph = Graph.of(traced.closed, plan.stated.trips)
    strategies = Strategies(graph, chosen.units, [[]] * len(specs), [[]] * len(graph.outs))
    program = traced.program(specs, plan.stated)
    spaces = None
    if traced.device.machine.has_cores:
        places = []
        for spec in specs:
            division, layout = chosen.units.division(spec), layout_of(spec)
            division = ((),) * len(spec.shape) if division is None else division
            places.append(Place(division, layout is not None and layout.memory == "dram"))
        far = _far(strategies, plan.stated.results)
        spaces = Spaces.of(strategies, places, chosen.choices, far=far)
    return Simulation.of(program, traced.report(program), spaces, plan.stated.trips)


def _far(strategies: Strategies, results: Sequence[Layout | None]) -> set[int]:
    """The values that become results in DRAM."""
    pairs = zip(strategies.graph.outs, results, strict=True)
    return {v for v, x in pairs if v is not None and x is not None and x.memory == "dram"}


def _made(traced: Traced, strategies: Strategies, found: Solution) -> Plan:
    units, choices = strategies.units, strategies.choices(found.choices)
    products = sum(bool(node.flops) for node in strategies.graph.nodes)
    results = tuple(
        None
        if division is None
        else traced.tiled(units.spec(tuple(aval.shape), aval.dtype, division).layout)
        for aval, division in zip(
            traced.closed.out_avals, strategies.results(found.choices), strict=True
        )
    )
    places, spaces = strategies.places(found.choices), None
    if traced.device.machine.has_cores:
        results = tuple(
            layout.replace(memory_space="dram")
            if isinstance(layout, GridLayout) and _is_far(traced, places, k)
            else layout
            for k, layout in enumerate(results)
        )
        spaces = Spaces.of(strategies, places, choices, far=_far(strategies, results))
    chosen = Chosen(units, choices, products)
    stated = Stated(chosen, traced.digest, results, strategies.graph.trips or 1)
    layouts = {
        leaf.path: (traced.ask(k) or traced.layout(units, k, places[k]))
        if leaf.has_layout
        else None
        for k, leaf in enumerate(traced.leaves, traced.consts)
    }
    program = traced.program(traced.specs_in([*layouts.values()]), stated)
    report = traced.report(program)
    simulation = Simulation.of(program, report, spaces, stated.trips)
    made = map(layout_of, program.results)
    results = tuple(a or b for a, b in zip(results, made, strict=True))
    return Plan(
        layouts,
        dict(zip(traced.result_names, results, strict=True)),
        min(found.bound, simulation.time),
        simulation,
        traced.device,
        stated,
        _alternatives(strategies, found, report),
        found.how,
        traced.fn,
    )


def _is_far(traced: Traced, places: Sequence[Place], result: int) -> bool:
    """Whether a result is in DRAM: as the argument whose next value it is, or as all are."""
    operand = traced.next_of.get(result)
    return traced.space == "dram" if operand is None else places[operand].in_dram


def _alternatives(
    strategies: Strategies, found: Solution, report: Report
) -> dict[str, tuple[Alternative, ...]]:
    """Of each equation that has a choice, the best ways to run it."""
    units, problem, made = strategies.units, strategies.problem, {}
    names = zip(equation_names(report.rows), report.rows, strict=True)
    by_path = {row.made.path: name for name, row in names}
    by_variable: dict[int, tuple[Alternative, ...]] = {}
    for n, node in enumerate(strategies.graph.nodes):
        at = strategies.variable(n)
        choices = strategies.variables[at].choices
        if node.path not in by_path or len(choices) < 2:
            continue
        if at not in by_variable:
            costs = problem.costs_with(found.choices, at).tolist()
            ways = []
            for k, (choice, cost) in enumerate(zip(choices, costs, strict=True)):
                if isfinite(cost):
                    words = units.words(choice.ins, choice.out, choice.summed, choice.scattered)
                    ways.append(Alternative(words, cost, k == found.choices[at]))
            ways.sort(key=lambda way: (way.time, not way.is_chosen))
            by_variable[at] = tuple(ways[:_MOST_WAYS])
        made[by_path[node.path]] = by_variable[at]
    return made


def _too_large(traced: Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """What holds too much, and how many devices would do."""
    device, room = traced.device, traced.device.machine.device_capacity or 0
    strategies = traced.strategies(trips).limited(room)
    row, alive = strategies.fullest
    names = [*["a constant"] * traced.consts, *traced.names]
    listed = [
        f"{names[v] if v < len(names) else strategies.described(v)}: {nbytes:,} B"
        for v, nbytes in alive[:_MOST_ALIVE]
    ]
    more = f" and {len(alive) - _MOST_ALIVE} more" if len(alive) > _MOST_ALIVE else ""
    least = sum(nbytes for _, nbytes in alive)
    copies = ", and more for copies on the way to where these are read," if least <= room else ""
    return (
        f"{function_name(fn)} does not fit: at {row} a device of {device.machine.chip.name} holds "
        f"at least {least:,} B{copies} however they are divided over the mesh {device.shape}, and "
        f"has {room:,} B. Alive then: {'; '.join(listed)}{more}. "
        f"{_larger(traced, fn, args, fixed, trips)}"
    )


def _larger(traced: Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """How many devices of the same kind would do."""
    machine, mesh = traced.machine, traced.machine.mesh or traced.device.shape
    if fixed is None and not any(leaf.is_laid_out for leaf in traced.leaves):
        for _ in range(_MOST_DOUBLED):
            mesh = (2 * mesh[0], *mesh[1:])
            larger = traced_for(fn, args, machine.on(mesh), None)
            fits = larger.strategies(trips).limited(larger.device.machine.device_capacity).fits
            with suppress(Unsolved):
                if fits and _found(larger, trips, _QUICKLY, None) is not None:
                    return f"A mesh of {mesh} would do"
    return "Plan for more devices, or for ones with more memory"
