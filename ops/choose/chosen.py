"""`Chosen`: the placements that a program requests for each of its equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jax.extend import core

from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.choose.chains import with_chains
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.choose.mixtures import starts
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place
from gridlayout.ops.choose.ways import Ways
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.factors import SHIFTED
from gridlayout.ops.decisions.jaxprs import called, equations_of, is_call, scan_parts
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.requested import Requested, RequestedLoop
from gridlayout.ops.decisions.specs import (
    Sharded,
    Spec,
    in_space,
    is_indexed,
    is_of_keys,
    layout_of,
)
from gridlayout.ops.decisions.stated import WITH_LAYOUT
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.graph.digest import digest_of
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node, Path
from gridlayout.ops.solver.descent import descended
from gridlayout.ops.solver.terms import no_step
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS

Divided = tuple[int, tuple[int, ...]]  # the extent of a dim, and the units that divide it


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choices for a program by the paths of its equations.

    products: the number of products of the program. prefix: for the body of a loop, the path of the
    loop.
    """

    units: Units
    choices: dict[Path, Choice]
    products: float
    prefix: tuple[int, ...] = ()

    @cached_property
    def _key(self) -> Any:
        units = self.units.device, self.units.axes, self.units.idle, self.units.work
        return units, frozenset(self.choices.items()), self.products, self.prefix

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Chosen) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def on(self, device: DeviceGrid) -> Chosen:
        """Return the same choices on another device grid of the same mesh."""
        return Chosen(Units(device, self.units.axes), self.choices, self.products)

    def requested(
        self,
        path: Path,
        node: Node,
        values: Sequence[Value],
        follower: Node | None = None,
    ) -> Requested | RequestedLoop | None:
        """Return the placements requested of a node; None leaves them to its rule.

        follower: a transpose of its result that is folded into it.
        """
        if node.name in ("scan", "while"):
            return self._loop(path, node.eqn, values)
        choice = self.choices.get(path)
        if choice is None or node.name == WITH_LAYOUT:
            return None  # what has no results, such as a print, has no choice
        aval, record = (follower or node).eqn.outvars[0].aval, node.record
        avals = [aval, *(atom.aval for atom in node.eqn.invars)]
        if any(map(is_of_keys, avals)):
            return None  # keys are replicated
        if choice.summed and aval.dtype == bool:
            return None  # no collective adds up truth values
        if not aval.shape:
            return self._of_number(choice, values, record)
        units, order = self.units, range(len(choice.made))
        if follower is not None:
            order = follower.params["permutation"]
        if record.is_elementwise and not record.is_made_in_place:
            made = self._like(choice.made, values, aval)
            return Requested((), made, made)
        made = units.spec(aval.shape, aval.dtype, tuple(choice.made[d] for d in order))
        out = made
        if choice.out != choice.made:
            out = units.spec(aval.shape, aval.dtype, tuple(choice.out[d] for d in order))
        ins = self._all_needed(choice, values, record)
        if record.is_made_in_place:  # only what it is made of is placed
            return Requested(ins, made, out) if any(ins) else None
        if record.of_blocks and None in ins:  # for instance if an update is a scalar
            return None
        kinds = () if node.factors is None else node.factors.kinds
        if record.multiplies and SHIFTED in kinds and not (choice.summed or any(choice.made)):
            return None  # its rule divides the dims that windows move along
        axes = units.mesh_axes(choice.summed)
        rounds = choice.rounds, choice.apart
        return Requested(ins, made, out, axes, choice.scattered, *rounds)

    def _like(self, division: Division, values: Sequence[Value], aval: Any) -> Sharded:
        """Return the placement of an elementwise result: that of an operand that is divided so."""
        specs = (value.spec for value in values if value.shape == aval.shape)
        same = (spec for spec in specs if isinstance(spec, Sharded))
        own = next((each for each in same if self.units.division(each) == division), None)
        if own is None:
            return self.units.spec(aval.shape, aval.dtype, division)
        return Sharded(own.layout.with_dtype(aval.dtype, None), own.placement)

    def _of_number(
        self, choice: Choice, values: Sequence[Value], record: Record
    ) -> Requested | None:
        """Return the placements of what a node reads whose result is a number.

        Only what reductions read is moved: other rules place it themselves.
        """
        is_reduced = choice.summed or record.neutral is not None
        if record.of_blocks or record.is_elementwise or not is_reduced:
            return None
        ins = self._all_needed(choice, values, record)
        axes = self.units.mesh_axes(choice.summed)
        return Requested(ins, None, None, axes) if any(ins) else None

    def _loop(self, path: Path, eqn: Any, values: Sequence[Value]) -> RequestedLoop | None:
        """Return the requested placements of a loop's carries and rows, with its body's choices."""
        depth, is_scan = len(path), eqn.primitive.name == "scan"
        inside = {
            own[depth:]: choice for own, choice in self.choices.items() if own[:depth] == path
        }
        if not any(own for own in inside):
            return None
        if is_scan:
            first, second = scan_parts(eqn.params)
        else:
            first = eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
            second = len(eqn.invars)

        def spec(choice: Choice | None, aval: Any, drop: int = 0) -> Sharded | None:
            if choice is None or len(aval.shape) == drop or is_of_keys(aval):
                return None
            return self.units.spec(tuple(aval.shape[drop:]), aval.dtype, choice.out)

        avals = [atom.aval for atom in eqn.invars]
        carry = [spec(inside.get((-1 - k,)), aval) for k, aval in enumerate(avals[first:second])]
        rows = [spec(inside.get((-1 - k, -1)), aval, 1) for k, aval in enumerate(avals[second:])]
        body = {own: choice for own, choice in inside.items() if own and own[0] >= 0}
        chosen = Chosen(self.units, body, self.products, (*self.prefix, *path))
        constants = self._constants(eqn, values[:first], body)
        return RequestedLoop(tuple(carry), tuple(rows), constants, chosen)

    def _constants(
        self, eqn: Any, values: Sequence[Value], body: Mapping[Path, Choice]
    ) -> tuple[Sharded | None, ...]:
        """Return where constants of a loop are read in its body, None where it is not one place.

        None too for what is there already, in any layout, or is cut in each iteration.
        """
        is_scan = eqn.primitive.name == "scan"
        other = 0 if is_scan else eqn.params["cond_nconsts"]  # of the test come first
        jaxpr = eqn.params["jaxpr" if is_scan else "body_jaxpr"].jaxpr
        needs = [set[Division]()] * other + read_as(jaxpr, body)[: len(values) - other]
        return tuple(
            self._moved(value, min(need)) if len(need) == 1 else None
            for value, need in zip(values, needs, strict=True)
        )

    def _moved(self, value: Value, division: Division) -> Sharded | None:
        """Return where a loop's constant is relaid out before the loop; None where it is not."""
        is_free = is_indexed(value.spec)
        is_cut = not is_free and self.units.is_local(self.units.division(value.spec), division)
        return None if is_cut else self._needed(value, division, is_free)

    def _all_needed(
        self, choice: Choice, values: Sequence[Value], record: Record
    ) -> tuple[Sharded | None, ...]:
        return tuple(
            self._needed(value, division, record.of_blocks)
            for value, division in zip(values, choice.ins, strict=True)
        )

    def _needed(self, value: Value, division: Division | None, of_blocks: bool) -> Sharded | None:
        if division is None or not value.shape:
            return None
        if not of_blocks:
            stays = not isinstance(value.spec, Sharded)
            if stays or self.units.division(value.spec) == division:
                return None
        return self.units.spec(value.shape, value.dtype, division)


def read_as(jaxpr: Any, choices: Mapping[Path, Choice], path: Path = ()) -> list[set[Division]]:
    """Return the divisions in which the operands of a jaxpr are read by the choices, by path."""
    found = {var: set[Division]() for var in jaxpr.invars}
    for n, eqn in enumerate(equations_of(jaxpr)):
        here, needs = (*path, n), list[set[Division]]()
        atoms = eqn.invars
        if is_call(eqn):
            inner, own = called(eqn)
            needs, atoms = read_as(inner.jaxpr, choices, here), [atoms[k] for k in own]
        elif here in choices:
            needs = [set() if need is None else {need} for need in choices[here].ins]
        for atom, need in zip(atoms, needs, strict=False):
            if not isinstance(atom, core.Literal) and atom in found:
                found[atom] |= need
    return [*found.values()]


@dataclass(frozen=True, eq=False)
class Stated:
    """Choices that a user states for one program: those of a plan.

    device: the mesh that they are for. chosen: None for the program that `gl.on_grid` makes without
    a plan. digest: of the program. results: the layout of each result, None where its rule
    decides. trips: the assumed trip count of loops of unknown length.
    """

    device: DeviceGrid
    chosen: Chosen | None
    digest: str
    results: tuple[Layout | None, ...] = ()
    trips: int = LIMITS.trips

    def check(self, graph: Graph, device: DeviceGrid) -> None:
        """Raise `LayoutError` unless they are for this program and a mesh like `device`'s."""
        own = self.device
        if own.fine.axis_names != device.fine.axis_names or own.shape != device.shape:
            raise LayoutError(
                f"the plan is for a mesh {dict(own.mesh.shape)}, the device grid is {device!r}: "
                "make the plan for this mesh, gl.plan(..., machine=gl.Machine(..., mesh=...))"
            )
        if not self.is_of(graph):
            raise LayoutError(
                "the plan is for another program: for another function, other shapes or types of "
                "its arguments, or another version of JAX; make it again with gl.plan"
            )
        if self.chosen is not None:
            self._check_choices(self.chosen, graph, device)
        if self.results and len(self.results) != len(graph.results):
            raise LayoutError(
                f"the plan has {len(self.results)} results, but the program has "
                f"{len(graph.results)}: make the plan again with gl.plan"
            )

    def _check_choices(self, chosen: Chosen, graph: Graph, device: DeviceGrid) -> None:
        ways = Ways(graph.inlined(self.trips), replace(chosen.units, idle=device.machine.has_cores))
        for path, choice in chosen.choices.items():
            if not ways.has(path, choice):
                raise LayoutError(
                    f"the plan's choice for the equation {path} fits no equation of this program: "
                    "the file has been changed; make the plan again with gl.plan"
                )

    def requested(self, device: DeviceGrid) -> list[Spec | None]:
        """Return the requested placements of results, all in the cores' memory."""
        specs = (
            None if layout is None else Sharded(layout, device.placement(layout))
            for layout in self.results
        )
        return [None if spec is None else in_space(spec, "l1") for spec in specs]

    def is_of(self, graph: Graph) -> bool:
        """Return whether they are for this program."""
        return digest_of(graph) == self.digest


def choices_for(
    env: Env,
    graph: Graph,
    operands: Sequence[Spec],
    results: list[list[Spec]],
    free: Sequence[int],
    each_step: Callable[[], None] = no_step,
) -> tuple[Chosen, list[Spec | None]] | None:
    """Return the choices for a whole program, and the placements of its results.

    None where each equation chooses by itself. results: the placements that each result may have,
    where its rule decides the first one; none for any placement. free: the numbers of the results
    of which nothing is requested. Those that are not divided like operands stay where they are
    computed. each_step: is called now and then, and ends it by raising.
    """
    placed = [*operands, *graph.stated(env.device), *(x for some in results for x in some)]
    units = Units.of(env.device, placed, graph.exact).between(*graph.average_product)
    units = replace(units, margin=LIMITS.margin)
    if len(units.axes) > LIMITS.mesh_units:
        return None
    given = [units.division(spec) for spec in operands]
    places = [[Place(division)] for division in given]
    stated: list[dict[Division, Spec]] = []
    grids = {_axes(x) for x in operands}
    like = {each for x, own in zip(operands, given, strict=True) for each in _divided(x, own)}
    for k in free:
        if results[k] and not _is_divided_like(units, results[k][0], grids, like):
            results[k] = []
    for some in results:
        divisions = [(units.division(spec, is_result=True), spec) for spec in some]
        is_stated = bool(divisions) and divisions[0][0] is not None
        stated.append({d: s for d, s in divisions[::-1] if d is not None} if is_stated else {})
    most = LIMITS.few_choices if len(units.axes) > 2 else None
    targets = [[*divisions][::-1] for divisions in stated]
    strategies = Strategies(
        with_chains(graph), units, places, targets, most=most, each_step=each_step
    )
    found = best_of(strategies)
    made = [
        next(iter(some), None) if division is None else divisions[division]
        for some, divisions, division in zip(
            results, stated, strategies.results(found), strict=True
        )
    ]
    return Chosen(units, strategies.choices(found), graph.products), made


def _is_divided_like(
    units: Units, result: Spec, grids: set[tuple[Axes, ...]], like: set[Divided]
) -> bool:
    """Return whether a result is on the grid of an operand, or its dims are divided as operands'.

    True if it has no division, or if neither it nor any operand is divided. grids, like: those of
    operands.
    """
    if (division := units.division(result, is_result=True)) is None:
        return True
    own = _divided(result, division)
    return (_axes(result) in grids or own <= like) if own else not like


def _axes(spec: Spec) -> tuple[Axes, ...]:
    return spec.placement.axes if isinstance(spec, Sharded) else ()


def _divided(spec: Spec, division: Division | None) -> set[Divided]:
    """Return the extents of the dims that are divided, with their units."""
    pairs = zip(spec.shape, division or (), strict=False)
    return {(extent, units) for extent, units in pairs if units}


def best_of(strategies: Strategies) -> tuple[int, ...]:
    """Return good choices for a program whose operands have one place each, without a time limit.

    They are the same in every process.
    """
    problem, each_step = strategies.problem, strategies.each_step
    found = descended(problem, lambda model: starts(strategies, model), each_step)
    each_step()
    return strategies.with_exact_moves(found)[0]


def is_open(env: Env, operands: Sequence[Spec]) -> bool:
    """Return whether layouts may be chosen for a program, and whether that can save time."""
    if env.policy is not same_grid_and_tile or env.algorithm is not None or env.replicates_small:
        return False
    layouts = [layout for layout in map(layout_of, operands) if layout is not None]
    return not env.machine.bytes_decide and all(
        isinstance(x, GridLayout) and x.memory in (None, "l1") for x in layouts
    )
