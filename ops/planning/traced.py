"""`Traced`: a function as a jaxpr on the mesh of a machine, and where its arguments may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh

from gridlayout.arguments import one_of
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import fill_devices, same_grid_and_tile
from gridlayout.ops.decisions.env import Env, trace_context
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, in_space, layout_of
from gridlayout.ops.interpret.function import Signature, function_of
from gridlayout.ops.interpret.grid_call import spec_of, with_constants_as_operands
from gridlayout.ops.interpret.names import function_name, positional_names, result_names
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.moves.packing import as_operand
from gridlayout.ops.plan.chosen import Stated, digest_of
from gridlayout.ops.plan.division import Division, Units
from gridlayout.ops.plan.factors import fits
from gridlayout.ops.plan.graph import Graph
from gridlayout.ops.plan.strategies import Place, Strategies
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.report import Report
from gridlayout.ops.rules.table import rules_version
from gridlayout.ops.solver.terms import no_step
from gridlayout.ops.trees.layouts import asked
from gridlayout.ops.trees.leaves import Leaf, is_grid, leaves_of
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machine import Machine


@dataclass(frozen=True, eq=False)
class Traced:
    """A function as a jaxpr on a device grid, its constants operands.

    leaves: its arguments' arrays. asks: the layouts that are fixed. next_of: of results the operand
    whose next value each is, as in a training step. space: of cores, the memory in which arguments
    and results are, None for either.
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
    space: str | None = None

    def graph(self, trips: int | None) -> Graph:
        """The graph of the program."""
        return Graph.of(self.closed, LIMITS.trips if trips is None else trips)

    def units(self, graph: Graph, idle: bool = False) -> Units:
        """The units of the mesh that divide its values; idle: as of `strategies`."""
        fixed = [layout for layout in self.asks if layout is not None]
        stated = [self.placed(layout) for layout in (*fixed, *graph.stated)]
        products = sum(bool(node.flops) for node in graph.nodes)
        most = LIMITS.parted_cores if self.device.machine.has_cores else LIMITS.parted
        units = Units.apart(self.device, stated, 3 if products <= most else 2)
        units = units.between(*graph.average_product)
        if idle and products <= most and len(graph.nodes) <= LIMITS.alike:
            units = replace(units, idle=True)
        return units

    def strategies(
        self,
        trips: int | None,
        idle: bool = False,
        each_step: Callable[[], None] = no_step,
    ) -> Strategies:
        """What can be chosen; idle: whether up to half of the cores along a dim may have nothing.

        Of small programs alone: there are more choices. each_step: called while it is made.
        """
        graph = self.graph(trips)
        units = self.units(graph, idle)
        return Strategies(
            graph,
            units,
            [self.places(units, k) for k in range(len(self.specs))],
            [
                self.next_of[k] if k in self.next_of else self._results(units, aval)
                for k, aval in enumerate(self.closed.out_avals)
            ],
            self.operand_names,
            each_step=each_step,
        )

    @cached_property
    def digest(self) -> str:
        """What is equal of jaxprs that a plan is for."""
        return digest_of(self.closed)

    def specs_in(self, layouts: Sequence[Layout | None]) -> list[Spec]:
        """The operands' specs, the last ones in these layouts; None for those in none."""
        first = len(self.specs) - len(layouts)
        laid = zip(self.specs[first:], layouts, strict=True)
        placed = (spec if layout is None else self.placed(layout) for spec, layout in laid)
        return [*self.specs[:first], *placed]

    @property
    def names(self) -> list[str]:
        """The path of each argument that is an array."""
        return [leaf.path for leaf in self.leaves]

    @property
    def operand_names(self) -> list[str]:
        """What each operand is called, constants too."""
        return [*["a constant"] * self.consts, *self.names]

    def ask(self, operand: int) -> Layout | None:
        """The layout that an operand is fixed to."""
        return self.asks[operand - self.consts] if operand >= self.consts else None

    def default(self, operand: int, kept: bool = True) -> Layout | None:
        """The layout of an operand that no plan chooses; kept: whether `GridArray`s keep theirs."""
        if operand < self.consts:
            return None
        leaf = self.leaves[operand - self.consts]
        if (ask := self.ask(operand)) is not None:
            return ask
        if kept and leaf.is_laid_out:
            return leaf.value.layout
        if not leaf.has_layout:
            return None
        return self.tiled(fill_devices(leaf.shape, leaf.dtype, None, self.device))

    def placed(self, layout: Layout) -> Sharded:
        """An operand in a layout; on cores, also where it is in DRAM."""
        return Sharded(layout, self.device.placement(layout.core_shape))

    def layout(self, units: Units, operand: int, place: Place) -> Layout:
        """The layout of an operand that is there."""
        spec = self.specs[operand]
        space = "dram" if place.in_dram else "l1"
        made = units.spec(tuple(spec.shape), spec.dtype, place.division, space)
        return self.tiled(made.layout)

    def report(self, program: Program) -> Report:
        """The report of a program, with the names of arguments and results."""
        names = (*["constant"] * self.consts, *self.names)
        return Report.of(program).named(names, self.result_names, function_name(self.fn))

    def tiled(self, layout: Layout) -> Layout:
        """A layout in the tiles that the chip computes with, where it has such."""
        tiles = self.device.machine.chip.tiles
        if not tiles or layout.ndim < 2 or not isinstance(layout, GridLayout):
            return layout
        return layout.replace(tile=tiles[0])

    def places(self, units: Units, operand: int) -> list[Place]:
        """Where an operand may be: in divisions that a layout on this mesh states.

        In DRAM, where cores have such, it is divided among chips.
        """
        found, ask = self.divisions(units, operand), self.ask(operand)
        if not self.device.machine.has_cores:
            return list(map(Place, found))
        space = self.space if operand >= self.consts else None
        space = space if ask is None else ask.memory
        far = dict.fromkeys(map(units.among_chips, found))
        places = [Place(x) for x in found if space != "dram" or not x]
        return places + [Place(x, True) for x in far if space != "l1" and len(x)]

    def divisions(self, units: Units, operand: int) -> list[Division]:
        """The divisions that an operand may have: those that a layout on this mesh states."""
        spec = self.specs[operand]
        whole: Division = ((),) * len(spec.shape)
        if (layout := self.ask(operand)) is not None:
            name = self.names[operand - self.consts]
            return [units.stated(layout, f"fixed: {layout!r} of {name!r}")]
        free = operand >= self.consts and self.leaves[operand - self.consts].has_layout
        return self.stated(units, spec) if free else [whole]

    def _results(self, units: Units, aval: Any) -> list[Division]:
        """The divisions that a result may have; none of random keys, which no layout lays out."""
        is_key = jax.numpy.issubdtype(aval.dtype, jax.dtypes.extended)
        return [] if is_key else self.stated(units, aval)

    def stated(self, units: Units, spec: Any) -> list[Division]:
        """The divisions of an array that a layout on this mesh states."""
        shape = tuple(spec.shape)
        rank = len(shape)
        if 0 in shape or not rank:
            return [((),) * rank]
        found = []
        for given in product((None, *range(rank)), repeat=len(units.axes)):
            division = tuple(
                tuple(u for u, d in enumerate(given) if d == dim) for dim in range(rank)
            )
            pairs = zip(shape, division, strict=True)
            is_held = all(fits(n, units.count(us), units.idle) for n, us in pairs if us)
            if is_held and units.is_stated(shape, division):
                found.append(division)
        return found

    def program(
        self,
        specs: Sequence[Spec],
        stated: Stated | None,
        algorithm: str | None = None,
        requested: Sequence[Spec | None] = (),
    ) -> Program:
        """The decisions for operands that are placed so.

        algorithm: of all products, by name. requested: the specs of results, None for any.
        """
        # What a plan has in DRAM is read from there while it is computed with: nothing else is.
        near = specs if stated is None else [in_space(spec, "l1") for spec in specs]
        layouts = [layout for spec in near if (layout := layout_of(spec)) is not None]
        templates = {layout.shape: layout for layout in reversed(layouts)}
        env = Env(
            self.device,
            same_grid_and_tile,
            tuple(templates.values()),
            algorithm,
            context=trace_context(),
            stated=stated,
        )
        return planned(env, self.closed, specs, requested)


def traced_for(
    fn: Callable[..., Any], args: Any, machine: Any, fixed: Any, space: str | None = None
) -> Traced:
    """A function traced for a machine; `LayoutError` where one of these is impossible."""
    if not callable(fn):
        raise LayoutError(f"a plan is of a function, not of {type(fn).__name__} {fn!r}")
    args, leaves, stated = _arguments(fn, args)
    chips, device = _device(machine, leaves)
    if space is not None:
        one_of(space, ("l1", "dram"), "memory_space")
        if not device.machine.has_cores:
            raise LayoutError(
                f"memory_space {space!r} is of machines whose chips have cores, such as 'n150': "
                f"devices of {device.machine.chip.name} have one memory, leave it out"
            )
    numbers = [k for k, x in enumerate(leaves) if x.is_array or x.is_number]
    arrays = [leaves[k] for k in numbers]
    static = tuple((k, x.value) for k, x in enumerate(leaves) if k not in set(numbers))
    kinds = tuple(_kind(leaf.value) for leaf in arrays)
    structure = jax.tree.structure((args, {}), is_leaf=is_grid)
    signature = Signature(structure, static, kinds, device, None, rules_version())
    closed, shapes, nexts = _jaxpr(fn, signature)
    jaxpr, consts = with_constants_as_operands(closed)
    asks = asked(fixed, None, arrays) if fixed is not None else [None] * len(arrays)
    asks = [stated[k] or ask for k, ask in zip(numbers, asks, strict=True)]
    for leaf, ask in zip(arrays, asks, strict=True):
        if ask is not None and (ask.shape != leaf.shape or ask.dtype != leaf.dtype):
            raise LayoutError(f"fixed: {ask!r} is no layout of {leaf}")
    return Traced(
        *(fn, chips, device, jaxpr),
        (*(spec_of(jax.typeof(x)) for x in consts), *kinds),
        len(consts),
        tuple(arrays),
        tuple(asks),
        tuple(result_names(jax.tree.structure(shapes))),
        nexts,
        space,
    )


def _arguments(fn: Callable[..., Any], args: Any) -> tuple[Any, list[Leaf], list[Layout | None]]:
    """The arguments, layouts among them shapes; their leaves; and those layouts."""

    def is_leaf(x: Any) -> bool:
        return isinstance(x, (Layout, GridArray))

    def shape(x: Any) -> Any:
        return jax.ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, Layout) else x

    given = jax.tree.leaves(args, is_leaf=is_leaf)
    args = jax.tree.map(shape, args, is_leaf=is_leaf)
    names = positional_names(fn, len(args))[: len(args)]
    leaves = [
        Leaf((name, *leaf.keys), leaf.value)
        for name, arg in zip(names, args, strict=True)
        for leaf in leaves_of(arg)[0]
    ]
    return args, leaves, [x if isinstance(x, Layout) else None for x in given]


def _jaxpr(fn: Callable[..., Any], signature: Signature) -> tuple[Any, Any, dict[int, int]]:
    """The function's jaxpr, the shapes of its results, and whose next values these are."""
    try:
        closed, shapes, env = function_of(fn, same_grid_and_tile).jaxpr(signature)
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(
            f"{function_name(fn)} can't be traced on these arguments: {type(error).__name__}: "
            f"{error}"
        ) from error
    return closed, shapes, dict(env.nexts)


def _kind(x: Any) -> Spec:
    if isinstance(x, (GridArray, jax.ShapeDtypeStruct)):
        return Replicated(tuple(x.shape), np.dtype(x.dtype))
    return spec_of(jax.typeof(as_operand(x, "gl.plan")))


def as_machine(machine: Any) -> Machine:
    """A machine, or the ready one of a name; `LayoutError` for anything else."""
    made = Machine(machine) if isinstance(machine, str) else machine
    if not isinstance(made, Machine):
        raise LayoutError(
            f"machine {machine!r} must be a gl.Machine, or the name of a ready one: "
            f"{', '.join(Machine.names())}"
        )
    return made


def _device(machine: Any, leaves: Sequence[Leaf]) -> tuple[Machine, DeviceGrid]:
    """The machine, of chips, and the mesh that is planned for: its own, or that of the arrays."""
    grids = {leaf.value.device: None for leaf in leaves if leaf.is_laid_out}
    if len(grids) > 1:
        raise LayoutError(
            f"the arrays are on different device grids: {', '.join(each.words for each in grids)}"
        )
    own = next(iter(grids), None)
    if machine is None:
        device = own or DeviceGrid((len(jax.devices()),))
        return device.machine, device
    machine = as_machine(machine)
    if own is not None:
        machine.check_mesh(own.shape)
        return machine, own.with_machine(machine)
    cores = machine.by_core
    if cores.mesh is None:
        return machine, DeviceGrid((len(jax.devices()),), machine=cores)
    names = cores.axis_names[: len(cores.mesh)]
    return machine, DeviceGrid(AbstractMesh(cores.mesh, names), machine=cores)
