"""`gl.plan` and `gl.simulate`: a function is traced, its layouts are chosen, and all is priced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from math import isfinite
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh

from gridlayout.arguments import positive
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import fill_devices, same_grid_and_tile
from gridlayout.ops.decisions.env import Env, trace_context
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, layout_of
from gridlayout.ops.interpret.function import Signature, function_of
from gridlayout.ops.interpret.grid_call import spec_of, with_constants_as_operands
from gridlayout.ops.interpret.names import function_name, positional_names, result_names
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.plan.chosen import Chosen, Stated, digest_of
from gridlayout.ops.plan.division import Division, Units
from gridlayout.ops.plan.graph import Graph
from gridlayout.ops.plan.strategies import Place, Strategies
from gridlayout.ops.planning.plan import Alternative, Plan
from gridlayout.ops.planning.simulation import Simulation, equation_names
from gridlayout.ops.planning.spaces import Spaces, room_in_l1
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.report import Report
from gridlayout.ops.rules.table import rules_version
from gridlayout.ops.solver.solve import Solution, solve
from gridlayout.ops.trees.layouts import asked
from gridlayout.ops.trees.leaves import Leaf, is_grid, leaves_of
from gridlayout.sharding.chips import check_figure
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machine import LIMITS, Machine

_MOST_WAYS = 8  # alternatives of an equation that are kept
_MOST_ALIVE = 12  # values that an error names
_MOST_TRIES = 6  # with less room for what copies take
_MOST_ROUNDS = 4  # of plans, and what then is in DRAM
_MOST_DOUBLED = 12  # times that a mesh is doubled to find one that would do


def plan(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    fixed: Any = None,
    trips: int | None = None,
    seconds: float = 60.0,
    progress: Callable[[float, float, float], None] | None = None,
) -> Plan:
    """The layouts of a program's arguments, values and results that take the least time.

    fn: a JAX function; gradients and optimizers are part of it. args: arrays, `GridArray`s or
    `jax.ShapeDtypeStruct`s, of which shapes and types count. machine: a `gl.Machine`, or the name
    of a ready one; chips of several cores are planned core by core. By default the devices of the
    `GridArray`s, or all that JAX has. fixed: layouts that arguments are to have, in the forms of
    `gl.put`: `{"params/w1": layout}` by paths, which start with the argument's name. `gl.with_layout`
    in `fn` fixes other values. trips: how often loops of unknown length are taken to run. seconds: how long the search may go on; it ends sooner where the
    plan is proven to be the best. progress: called with the time of the best plan, the bound, and
    the seconds that have gone. An interrupt ends the search with the best plan so far.

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
    if trips is not None:
        positive((trips,), "trips")
    check_figure(seconds, "seconds", above=False)
    traced = _traced(fn, args, machine, fixed)
    if traced.device.machine.has_cores:
        found = _on_cores(traced, trips, seconds, progress)
    else:
        found = _on_devices(traced, trips, seconds, progress)
    if found is None:
        raise LayoutError(_too_large(traced, fn, args, fixed, trips))
    return found


def _on_devices(
    traced: _Traced, trips: int | None, seconds: float, progress: Any
) -> Plan | None:
    """A plan that a device's memory has room for, copies on the way to readers included."""
    capacity = room = traced.device.machine.device_capacity
    for _ in range(_MOST_TRIES):
        strategies = traced.strategies(trips, capacity)
        solution = solve(strategies.problem, seconds=seconds, progress=progress)
        if solution is None:
            return None
        made = _made(traced, strategies, solution)
        if room is None or capacity is None or made.peak_bytes <= room:
            return made
        capacity = min(int(capacity * room / made.peak_bytes), capacity - 1)
    return None


def _on_cores(traced: _Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """The best plan whose values have room in L1, or are read from DRAM.

    Without a limit to L1 no plan takes less: the bound. Where all but arguments are to be in L1,
    the solver says which arguments are not; else values go to DRAM that a plan has no room for.
    """
    room = room_in_l1(traced.device.machine)
    free = traced.strategies(trips, None)
    first = solve(free.problem, seconds=seconds, progress=progress)
    assert first is not None
    limited = traced.strategies(trips, room)
    if limited.problem.excess(first.choices) <= 0:
        return _made(traced, limited, first)
    found = []
    solution = solve(limited.problem, seconds=seconds, progress=progress)
    if solution is not None:
        found.append(_made(traced, limited, replace(solution, bound=first.bound)))
    spilled = frozenset[int]()
    for _ in range(_MOST_ROUNDS):
        places, choices = free.places(first.choices), free.choices(first.choices)
        spaces = Spaces.of(free, places, choices, fixed=False)
        made = {v for v in spaces.dram if v >= len(traced.specs)}
        if spilled.issuperset(made):
            break
        spilled |= made
        limited = traced.strategies(trips, room, spilled)
        solution = solve(limited.problem, seconds=seconds, progress=progress)
        if solution is not None:
            found.append(_made(traced, limited, replace(solution, bound=first.bound)))
            break
    return min(found, key=lambda each: each.time, default=None)


def simulate(
    fn: Callable[..., Any],
    *args: Any,
    machine: Machine | str | None = None,
    plan: Plan | None = None,
) -> Simulation:
    """What a machine takes for a program: seconds, bytes by link, and what a device holds.

    fn, args, machine: as of `gl.plan`. plan: whose layouts and choices are taken; without one, the
    choices that `gl.on_grid` makes, for `GridArray`s in their layouts and for others in those of
    `gl.fill_devices`. No devices are needed.

    >>> import jax, gridlayout as gl
    >>> x = jax.ShapeDtypeStruct((1024, 1024), "bfloat16")
    >>> simulation = gl.simulate(lambda x: x @ x, x, machine="wormhole 4x8")
    >>> simulation.mesh, simulation.time > 0
    ({'x': 4, 'y': 8, 'r': 8, 'c': 8}, True)
    """
    if plan is not None and machine is None:
        machine = plan.device.machine
    traced = _traced(fn, args, machine, None)
    if plan is not None:
        return _as_planned(traced, plan)
    specs = list(traced.specs)
    for k in range(len(specs)):
        if (layout := traced.default(k)) is not None:
            specs[k] = traced.placed(layout)
    program = traced.program(specs, None)
    return Simulation.of(program, traced.report(program))


def _as_planned(traced: _Traced, plan: Plan) -> Simulation:
    """What a program takes with the layouts and choices of a plan."""
    plan.stated.check(traced.closed, traced.device)
    chosen = plan.stated.chosen.on(traced.device)
    specs, layouts = list(traced.specs), list(plan.layouts.values())
    for k, layout in enumerate(layouts, len(specs) - len(layouts)):
        if layout is not None:
            specs[k] = traced.placed(layout)
    graph = Graph.of(traced.closed, LIMITS.trips)
    strategies = Strategies(graph, chosen.units, [[]] * len(specs), [[]] * len(graph.outs))
    program = traced.program(specs, plan.stated)
    spaces = None
    if traced.device.machine.has_cores:
        places = []
        for spec in specs:
            division, layout = chosen.units.division(spec), layout_of(spec)
            assert division is not None
            places.append(Place(division, layout is not None and layout.memory == "dram"))
        spaces = Spaces.of(strategies, places, chosen.choices)
    return Simulation.of(program, traced.report(program), spaces)


@dataclass(frozen=True, eq=False)
class _Traced:
    """A function as a jaxpr on a device grid, its constants operands.

    leaves: its arguments' arrays. asks: the layouts that are fixed. next_of: of results the operand
    whose next value each is, as in a training step.
    """

    fn: Callable[..., Any]
    machine: Machine
    device: DeviceGrid
    closed: Any
    specs: tuple[Spec, ...]
    consts: int
    leaves: tuple[Leaf, ...]
    asks: tuple[Layout | None, ...]
    result_names: tuple[str, ...]
    next_of: Mapping[int, int]

    @property
    def fixed(self) -> list[Spec]:
        """Where operands that users fix are placed."""
        return [
            Sharded(layout, self.device.placement(layout.core_shape))
            for layout in self.asks
            if layout is not None
        ]

    def strategies(
        self, trips: int | None, capacity: float | None, dram: frozenset[int] = frozenset()
    ) -> Strategies:
        """What can be chosen, where a device has room for so many bytes; dram: values there."""
        graph = Graph.of(self.closed, LIMITS.trips if trips is None else trips)
        stated = [*self.fixed, *map(self.placed, graph.stated)]
        products = sum(bool(node.flops) for node in graph.nodes)
        units = Units.apart(self.device, stated, 3 if products <= LIMITS.parted else 2)
        return Strategies(
            graph,
            units,
            [self.places(units, k) for k in range(len(self.specs))],
            [
                self.next_of[k] if k in self.next_of else self.stated(units, aval)
                for k, aval in enumerate(self.closed.out_avals)
            ],
            capacity,
            dram,
        )

    @property
    def names(self) -> list[str]:
        """The path of each argument that is an array."""
        return [leaf.path for leaf in self.leaves]

    def ask(self, operand: int) -> Layout | None:
        """The layout that an operand is fixed to."""
        return self.asks[operand - self.consts] if operand >= self.consts else None

    def default(self, operand: int) -> Layout | None:
        """The layout of an operand that no plan chooses."""
        if operand < self.consts:
            return None
        leaf = self.leaves[operand - self.consts]
        if leaf.is_laid_out:
            return leaf.value.layout  # type: ignore[no-any-return]
        if not leaf.has_layout:
            return None
        return self.tiled(fill_devices(leaf.shape, leaf.dtype, None, self.device))

    def placed(self, layout: Layout) -> Sharded:
        """An operand in a layout; on cores, also where it is in DRAM."""
        return Sharded(layout, self.device.placement(layout.core_shape))

    def layout(self, units: Units, operand: int, place: Place) -> GridLayout:
        """The layout of an operand that is there."""
        spec = self.specs[operand]
        made = units.spec(tuple(spec.shape), spec.dtype, place.division)
        layout = self.tiled(made.layout)
        return layout.replace(memory_space="dram") if place.in_dram else layout

    def report(self, program: Program) -> Report:
        """The report of a program, with the names of arguments and results."""
        names = (*["constant"] * self.consts, *self.names)
        return Report.of(program).named(names, self.result_names, function_name(self.fn))

    def tiled(self, layout: GridLayout) -> GridLayout:
        """A layout in the tiles that the chip computes with, where it has such."""
        tiles = self.device.machine.chip.tiles
        return layout.replace(tile=tiles[0]) if tiles and layout.ndim > 1 else layout

    def places(self, units: Units, operand: int) -> list[Place]:
        """Where an operand may be: in divisions that a layout on this mesh states.

        In DRAM, where cores have such, it is divided among chips.
        """
        found, ask = self.divisions(units, operand), self.ask(operand)
        if not self.device.machine.has_cores:
            return list(map(Place, found))
        space = None if ask is None else ask.memory
        cores = set(self.device.machine.core_axes)
        chips = [
            u
            for u, axes in enumerate(units.axes)
            if not cores.intersection(map(self.device.machine.whole_axis, axes))
        ]
        far = dict.fromkeys(
            tuple(tuple(u for u in us if u in chips) for us in division) for division in found
        )
        places = [Place(x) for x in found if space != "dram"]
        return places + [Place(x, True) for x in far if space != "l1" and len(x)]

    def divisions(self, units: Units, operand: int) -> list[Division]:
        """The divisions that an operand may have: those that a layout on this mesh states."""
        spec = self.specs[operand]
        whole: Division = ((),) * len(spec.shape)
        if (layout := self.ask(operand)) is not None:
            found = units.division(Sharded(layout, self.device.placement(layout.core_shape)))
            if found is None:
                raise LayoutError(
                    f"fixed: {layout!r} of {self.names[operand - self.consts]!r} divides no dim "
                    "evenly among mesh axes, which plans need: give a grid whose dims are products "
                    f"of axes of the mesh {self.device.shape}"
                )
            return [found]
        free = operand >= self.consts and self.leaves[operand - self.consts].has_layout
        return self.stated(units, spec) if free else [whole]

    def stated(self, units: Units, spec: Any) -> list[Division]:
        """The divisions of an array that a layout on this mesh states."""
        shape = tuple(spec.shape)
        rank = len(shape)
        if 0 in shape or not rank or jax.numpy.issubdtype(spec.dtype, jax.dtypes.extended):
            return [((),) * rank]
        found = []
        for given in product((None, *range(rank)), repeat=len(units.axes)):
            division = tuple(
                tuple(u for u, d in enumerate(given) if d == dim) for dim in range(rank)
            )
            fits = all(n >= units.count(us) for n, us in zip(shape, division, strict=True) if us)
            if fits and units.is_stated(shape, division):
                found.append(division)
        return found

    def program(self, specs: Sequence[Spec], stated: Stated | None) -> Program:
        """The decisions for operands that are placed so."""
        layouts = [layout for spec in specs if (layout := layout_of(spec)) is not None]
        templates = {layout.shape: layout for layout in reversed(layouts)}
        env = Env(
            self.device,
            same_grid_and_tile,
            tuple(templates.values()),
            context=trace_context(),
            stated=stated,
        )
        return planned(env, self.closed, specs)


def _traced(fn: Callable[..., Any], args: Any, machine: Any, fixed: Any) -> _Traced:
    if not callable(fn):
        raise LayoutError(f"a plan is of a function, not of {type(fn).__name__} {fn!r}")
    names = positional_names(fn, len(args))
    leaves = [
        Leaf((name, *leaf.keys), leaf.value)
        for name, arg in zip(names, args, strict=True)
        for leaf in leaves_of(arg)[0]
    ]
    chips, device = _device(machine, leaves)
    every = [x for arg in args for x in jax.tree.leaves(arg, is_leaf=is_grid)]
    arrays = [leaf for leaf in leaves if leaf.is_array or _is_number(leaf.value)]
    static = tuple((i, x.value) for i, x in enumerate(leaves) if x not in arrays)
    assert len(every) == len(leaves)
    kinds = tuple(_kind(leaf.value) for leaf in arrays)
    structure = jax.tree.structure((args, {}), is_leaf=is_grid)
    signature = Signature(structure, static, kinds, device, None, rules_version())
    function = function_of(fn, same_grid_and_tile)
    try:
        closed, shapes, _ = function.jaxpr(signature)
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(
            f"{function_name(fn)} can't be traced on these arguments: {type(error).__name__}: "
            f"{error}"
        ) from error
    jaxpr, consts = with_constants_as_operands(closed)
    specs = (*(spec_of(jax.typeof(x)) for x in consts), *kinds)
    asks = asked(fixed, None, arrays) if fixed is not None else [None] * len(arrays)
    for leaf, ask in zip(arrays, asks, strict=True):
        if ask is not None and (ask.shape != leaf.shape or ask.dtype != leaf.dtype):
            raise LayoutError(f"fixed: {ask!r} is no layout of {leaf}")
    results = tuple(result_names(jax.tree.structure(shapes)))
    next_of = _next_values(args, shapes, arrays, len(consts))
    given = tuple(arrays), tuple(asks)
    return _Traced(fn, chips, device, jaxpr, specs, len(consts), *given, results, next_of)


def _next_values(
    args: Any, shapes: Any, arrays: Sequence[Leaf], consts: int
) -> dict[int, int]:
    """Of results the operands whose next values they are.

    A result, or a part of a tuple of results, that is a tree as an argument is: of the same
    structure, shapes and types, as new parameters and a new optimizer's state are.
    """
    parts = [(0, shapes)]
    if isinstance(shapes, (tuple, list)):
        ends = [0, *accumulate(len(jax.tree.leaves(part)) for part in shapes)]
        parts += [(start, part) for start, part in zip(ends, shapes, strict=False)]
    numbers = {id(leaf.value): k for k, leaf in enumerate(arrays, consts)}
    found: dict[int, int] = {}
    taken: set[int] = set()
    for arg in args:
        leaves, structure = jax.tree.flatten(arg, is_leaf=is_grid)
        if not leaves or jax.tree_util.all_leaves([arg], is_leaf=is_grid):
            continue
        described = [_described(x) for x in leaves]
        for start, part in parts:
            others, same = jax.tree.flatten(part)
            if same == structure and [*map(_described, others)] == described and start not in taken:
                taken.add(start)
                operands = (numbers.get(id(x)) for x in leaves)
                found |= {start + k: n for k, n in enumerate(operands) if n is not None}
                break
    return found


def _described(x: Any) -> tuple[Any, Any]:
    return getattr(x, "shape", None), getattr(x, "dtype", None)


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex))


def _kind(x: Any) -> Spec:
    if isinstance(x, (GridArray, jax.ShapeDtypeStruct)):
        return Replicated(tuple(x.shape), np.dtype(x.dtype))
    return spec_of(jax.typeof(x))


def _device(machine: Any, leaves: Sequence[Leaf]) -> tuple[Machine, DeviceGrid]:
    """The machine, of chips, and the mesh that is planned for: its own, or that of the arrays."""
    grids = {leaf.value.device: None for leaf in leaves if leaf.is_laid_out}
    if len(grids) > 1:
        raise LayoutError(f"the arrays are on different device grids: {', '.join(map(repr, grids))}")
    own = next(iter(grids), None)
    if isinstance(machine, str):
        machine = Machine(machine)
    if machine is None:
        device = own or DeviceGrid((len(jax.devices()),))
        return device.machine, device
    if not isinstance(machine, Machine):
        raise LayoutError(
            f"machine {machine!r} must be a gl.Machine, or the name of a ready one: "
            f"{', '.join(Machine.names())}"
        )
    if own is not None:
        machine.check_mesh(own.shape)
        return machine, own.with_machine(machine)
    cores = machine.by_core
    if cores.mesh is None:
        return machine, DeviceGrid((len(jax.devices()),), machine=cores)
    names = cores.axis_names[: len(cores.mesh)]
    return machine, DeviceGrid(AbstractMesh(cores.mesh, names), machine=cores)


def _made(traced: _Traced, strategies: Strategies, found: Solution) -> Plan:
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
    stated = Stated(Chosen(units, choices, products), digest_of(traced.closed), results)
    places = strategies.places(found.choices)
    spaces = Spaces.of(strategies, places, choices) if traced.device.machine.has_cores else None
    specs = list(traced.specs)
    layouts: dict[str, Layout | None] = {}
    for k, leaf in enumerate(traced.leaves, traced.consts):
        layouts[leaf.path] = None
        if leaf.has_layout:
            layout = traced.ask(k) or traced.layout(units, k, places[k])
            layouts[leaf.path] = layout
            specs[k] = traced.placed(layout)
    program = traced.program(specs, stated)
    report = traced.report(program)
    simulation = Simulation.of(program, report, spaces)
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
            ways = []
            for k, choice in enumerate(choices):
                others = (*found.choices[:at], k, *found.choices[at + 1 :])
                words = units.words(choice.ins, choice.out, choice.summed, choice.scattered)
                ways.append(Alternative(words, problem.cost(others), k == found.choices[at]))
            ways = [way for way in ways if isfinite(way.time)]
            ways.sort(key=lambda way: (way.time, not way.is_chosen))
            by_variable[at] = tuple(ways[:_MOST_WAYS])
        made[by_path[node.path]] = by_variable[at]
    return made


def _too_large(traced: _Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """What holds too much, and how many devices would do."""
    device, room = traced.device, traced.device.machine.device_capacity
    strategies = traced.strategies(trips, room)
    row, alive = strategies.fullest
    names = [*["a constant"] * traced.consts, *traced.names]
    listed = [
        f"{names[v] if v < len(names) else strategies.described(v)}: {nbytes:,} B"
        for v, nbytes in alive[:_MOST_ALIVE]
    ]
    more = f" and {len(alive) - _MOST_ALIVE} more" if len(alive) > _MOST_ALIVE else ""
    return (
        f"{function_name(fn)} does not fit: at {row} a device of {device.machine.chip.name} holds at "
        f"least {sum(n for _, n in alive):,} B, however they are divided over the mesh "
        f"{device.shape}, and has {room:,} B. Alive then: {'; '.join(listed)}{more}. "
        f"{_larger(traced, fn, args, fixed, trips)}"
    )


def _larger(traced: _Traced, fn: Any, args: Any, fixed: Any, trips: int | None) -> str:
    """How many devices of the same kind would do."""
    machine, mesh = traced.machine, traced.machine.mesh or traced.device.shape
    if fixed is None and not any(leaf.is_laid_out for leaf in traced.leaves):
        for _ in range(_MOST_DOUBLED):
            mesh = (2 * mesh[0], *mesh[1:])
            larger = _traced(fn, args, machine.on(mesh), None)
            room = larger.device.machine.device_capacity
            strategies = larger.strategies(trips, room)
            if strategies.fits and solve(strategies.problem, seconds=5) is not None:
                return f"A mesh of {mesh} would do"
    return "Plan for more devices, or for ones with more memory"
