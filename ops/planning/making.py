"""`gl.plan` and `gl.simulate`: trace a function, choose its layouts, and price the program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gridlayout.arguments import as_flag, check_progress, one_of, shown
from gridlayout.errors import LayoutError
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place
from gridlayout.ops.decisions.specs import layout_of
from gridlayout.ops.interpret.names import function_name
from gridlayout.ops.interpret.on_grid import OnGrid
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.searching import best_plan
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.planning.spaces import MOST_LISTED, End, Spaces
from gridlayout.ops.planning.traced import Traced, traced_for
from gridlayout.ops.products.algorithms import ALGORITHMS
from gridlayout.ops.solver.solve import Unsolved
from gridlayout.other_words import PLANNING
from gridlayout.public import public
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.chips import check_figure
from gridlayout.sharding.machines.machine import Machine

_QUICKLY = 5.0  # seconds to search for whether a larger mesh has enough memory
_MOST_DOUBLED = 12  # how often a mesh is doubled to find one with enough memory


@public(words=PLANNING)
def plan(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    fixed: Any = None,
    trips: int | None = None,
    seconds: float = 60.0,
    progress: Callable[[float, float, float], None] | None = None,
    memory_space: str | None = None,
    overlap: bool = False,
) -> Plan:
    """Return the fastest plan: the layouts of a program's arguments, values and results.

    fn: a JAX function; it may contain gradients and optimizers. It may be lifted, which changes
    nothing: a plan makes all choices. The arrays of a lifted model or method are the first
    arguments, also of `plan.run`. args: arrays, `GridArray`s or
    `jax.ShapeDtypeStruct`s, of which only shapes and dtypes are used; or a `gl.Layout`, which is
    then kept. machine: a `gl.Machine` or the name of a ready one; chips of several cores are
    planned core by core. The default is the devices of the `GridArray`s, or of the lifted function,
    or all devices of JAX.
    fixed: layouts that arguments must have, in the forms of `gl.put`: `{"params/w1": layout}` by
    paths, which start with the argument's name; `with_layout` in `fn` fixes other values. trips:
    the assumed trip count of loops of unknown length. seconds: the time limit, by the clock on the
    wall, from the end of tracing. It includes the pricing of the default plan, and about what it
    takes to price the plan that is found. It is exceeded where it is too short for the best plan
    that needs no search: to list the choices, to find a mixture of data and tensor parallelism,
    and to price that. The search ends sooner if the plan is proven to be the best.
    progress: called with the time of the best plan, the bound, and the elapsed seconds.
    memory_space: for chips of several cores, the space of arguments and results: "dram", as in
    compiled programs, or "l1", or the chip's own name of one; by default whichever takes the least
    time. overlap: whether the plan is the one of a few that takes the least time with overlap
    (`Plan.overlapped`), by what the machine does at the same time, with products in rounds.
    Otherwise it takes the least time in sequence (`Plan.time`), which `bound` is of.

    When the time runs out, or at an interrupt, the result is the best plan so far, with the bound
    known so far, which may be 0. It is at least the fastest mixture of data, tensor, sequence and
    expert parallelism that was found. Where none fits the memory, nor the default, the first
    interrupt is raised, and a `LayoutError` states that the time was too short. A second interrupt
    is raised, and so is one during tracing.

    The default plan is what `gl.on_grid` does. Except on chips of several cores, which have none,
    and where the time runs out before it is made, for which it has two fifths of all, no plan takes
    longer (with `overlap`, by the time with overlap), both with arguments as
    `gl.put` lays them out and with `GridArray`s as they are. On a measured machine, `GridArray`s
    keep their layouts unless other layouts save a tenth of the time, which is about the accuracy of
    the figures.

    Everything is chosen together: the division of each argument over the mesh, the division of each
    equation, and whether partial sums are all-reduced or scattered. A result that is a tree with an
    argument's structure, shapes and dtypes, such as new parameters, gets that argument's layouts,
    so that the next step can take it as it is. A plan states a bound: by the machine's figures, no
    choice of these takes less time.

    `LayoutError` for a function that can't be traced, a machine with another mesh than the arrays',
    unknown paths and impossible layouts in `fixed`; for a program that does not fit the machine's
    memory, with the live values where the most is held; and where no plan that fits was found in
    time.

    >>> import jax, jax.numpy as jnp, gridlayout as gl
    >>> x, w = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((4096, 512), (512, 512)))
    >>> plan = gl.plan(lambda x, w: jnp.tanh(x @ w), x, w, machine="v5e 4x4")
    >>> plan.layouts["x"].grid, plan.layouts["w"].grid, plan.bound <= plan.time
    ((16, 1), (1, 1), True)
    """
    if trips is not None and (not isinstance(trips, int) or isinstance(trips, bool) or trips < 1):
        raise LayoutError(f"trips {shown(trips)} must be a whole number of at least 1")
    check_search(seconds, progress, "time, bound, seconds")
    traced = traced_for(fn, args, machine, fixed, memory_space)
    traced = replace(traced, overlap=as_flag(overlap, "overlap"))
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
    """Return the plan of a traced function; `LayoutError` where it does not fit the memory."""
    found = best_plan(traced, trips, seconds, progress)
    if found is None:
        raise LayoutError(_too_large(traced, fn, args, fixed, trips))
    return found


def check_search(seconds: Any, progress: Any, takes: str) -> None:
    """Raise `LayoutError` unless `seconds` is a time limit and `progress` a function or None."""
    check_figure(seconds, "seconds", above=False)
    check_progress(progress, f"({takes})")


@public(words=PLANNING)
def simulate(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    plan: Plan | None = None,
    algorithm: str | None = None,
) -> Simulation:
    """Return the simulation of a program on a machine: seconds, bytes by link, and bytes held.

    fn, args, machine: as in `gl.plan`; a lifted function runs by its own policy, plan and
    algorithm. plan: its layouts and choices are used. Without one, the choices are those of
    `gl.on_grid`, with layouts and `GridArray`s as they are and other arrays in
    the layouts of `gl.fill_devices`. algorithm: the algorithm of all products, a name in
    `gl.ALGORITHMS`; `LayoutError` where the mesh does not fit it. No devices are needed. A program
    of `gl.tenstorrent.load` takes no args: every op is priced in the layouts that the compiler
    chose. For example, the price of one relayout:

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
        raise LayoutError(f"plan {shown(plan)} must be a plan of gl.plan, or None")
    if algorithm is not None:
        one_of(algorithm, ALGORITHMS, "algorithm")
    if not args and callable(compiled := getattr(fn, "simulated", None)):
        if algorithm is not None:
            raise LayoutError(
                f"a compiled program states how products run: leave out algorithm={algorithm!r}"
            )
        return compiled(machine)
    if plan is None and isinstance(fn, OnGrid):
        plan = fn.plan
    if algorithm is not None and plan is not None:
        raise LayoutError(
            f"a plan states how products run: leave out plan=, or algorithm={algorithm!r}"
        )
    if plan is not None and machine is None:
        machine = plan.device.machine
    traced = traced_for(fn, args, machine, None)
    return by_default(traced, algorithm) if plan is None else _as_planned(traced, plan)


def by_default(traced: Traced, algorithm: str | None) -> Simulation:
    """Return the simulation with the choices of `gl.on_grid`; algorithm: of all products."""
    layouts = [traced.default(k) for k in range(len(traced.specs))]
    lifted = traced.lifted
    policy = lifted.policy if lifted.plan is None and lifted.policy else same_grid_and_tile
    report = traced.report(layouts, None, algorithm or lifted.algorithm, policy)
    return Simulation.of(report, None, LIMITS.trips)


def _as_planned(traced: Traced, plan: Plan) -> Simulation:
    """Return the simulation of a program with the layouts and choices of a plan."""
    plan.stated.check(traced.graph, traced.device)
    layouts, trips = [*plan.layouts.values()], plan.stated.trips
    report = traced.report(layouts, plan.stated)
    if plan.stated.chosen is None or not traced.device.machine.has_cores:
        return Simulation.of(report, None, trips)
    chosen = plan.stated.chosen.on(traced.device)
    graph, specs = traced.inlined(trips), traced.specs_in(layouts)
    strategies = Strategies(
        graph, chosen.units, [[]] * len(specs), [[]] * len(graph.outs), traced.operand_names
    )
    places = []
    for spec in specs:
        division, layout = chosen.units.division(spec), layout_of(spec)
        division = ((),) * len(spec.shape) if division is None else division
        places.append(Place(division, layout is not None and layout.memory == "dram"))
    ends = [
        End()
        if layout is None
        else End(chosen.units.division(traced.placed(layout)), layout.memory == "dram")
        for layout in plan.stated.results
    ]
    spaces = Spaces.given(strategies, places, chosen.choices, ends, plan.simulation.dram)
    return Simulation.of(report, spaces, trips)


def _too_large(traced: Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """Return the error text for a program that does not fit: what is held, and a mesh that fits."""
    device, room = traced.device, traced.device.machine.device_capacity or 0
    strategies = traced.strategies(trips).limited(room)
    row, live = strategies.room.fullest
    listed = [f"{strategies.described(v)}: {nbytes:,} B" for v, nbytes in live[:MOST_LISTED]]
    more = f" and {len(live) - MOST_LISTED} more" if len(live) > MOST_LISTED else ""
    least = sum(nbytes for _, nbytes in live)
    found = "" if least > room else ", and no plan was found whose program fits"
    return (
        f"{function_name(fn)} does not fit: at {row}, a device of {device.machine.chip.name} holds "
        f"at least {least:,} B for any division over the mesh {device.shape}{found}; it has "
        f"{room:,} B. Live values: {'; '.join(listed)}{more}. "
        f"{_larger(traced, fn, args, fixed, trips)}"
    )


def _larger(traced: Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """Return a sentence about how many devices of the same kind have enough memory."""
    machine, mesh = traced.machine, traced.machine.mesh or traced.device.shape
    is_quick = not traced.inlined(trips).is_large  # for others each mesh takes a minute
    if is_quick and fixed is None and not any(leaf.is_laid_out for leaf in traced.leaves):
        for _ in range(_MOST_DOUBLED):
            mesh = (2 * mesh[0], *mesh[1:])
            larger = traced_for(fn, args, machine.on(mesh), None)
            more = larger.strategies(trips)
            fits = more.limited(larger.device.machine.device_capacity).fits
            with suppress(Unsolved):
                if fits and best_plan(larger, trips, _QUICKLY, None) is not None:
                    return f"A mesh of {mesh} has enough memory"
    return "Plan for more devices, or for ones with more memory"
