"""`Traced`: a function traced to a jaxpr for a machine's mesh, with its arguments' choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh

from gridlayout.arguments import in_short, one_of, shown
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import ON_CHIP
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import Policy, fill_devices, same_grid_and_tile
from gridlayout.ops.choose.chains import with_chains
from gridlayout.ops.choose.chosen import Stated
from gridlayout.ops.choose.counts import number_of_ways
from gridlayout.ops.choose.division import Division, Units
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place
from gridlayout.ops.decisions.env import Env, templates_of, trace_context
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec, in_space, layout_of
from gridlayout.ops.graph.digest import digest_of
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret.function import Signature, function_of
from gridlayout.ops.interpret.grid_call import spec_of, with_constants_as_operands
from gridlayout.ops.interpret.names import function_name, positional_names
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.interpret.static import Results, StaticLeaf
from gridlayout.ops.moves.packing import as_operand
from gridlayout.ops.moves.spaces import as_stored
from gridlayout.ops.planning.divisions import divisions
from gridlayout.ops.planning.trees import Trees
from gridlayout.ops.primitives.table import rules_version
from gridlayout.ops.programs.report import Report
from gridlayout.ops.solver.terms import no_step
from gridlayout.ops.trees.layouts import requested_layouts
from gridlayout.ops.trees.leaves import Leaf, is_grid, leaves_of
from gridlayout.sharding.device_argument import default_device
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.machine import Machine


@dataclass(frozen=True, eq=False)
class Traced:
    """A function as a jaxpr on a device grid, with its constants as operands.

    constants: these constants. leaves: the arrays of its arguments. trees: the structures of its
    arguments and results. fixed_layouts: the layouts of arrays that are fixed, or None.
    next_of: for results, the operands whose next values they are, as in a training step. space: on
    cores, the memory space of arguments and results; None for either one. overlap: whether plans
    are compared by the time with overlap. lifted: the function as `gl.on_grid` lifts it, or as the
    user did, with his choices.
    """

    lifted: OnGrid
    machine: Machine
    device: DeviceGrid
    closed: Any
    specs: tuple[Spec, ...]
    constants: tuple[Any, ...]
    leaves: tuple[Leaf, ...]
    fixed_layouts: tuple[Layout | None, ...]
    trees: Trees
    next_of: Mapping[int, int]
    space: str | None = None
    overlap: bool = False

    @property
    def fn(self) -> Callable[..., Any]:
        """The function itself; lifted if it has static arguments."""
        return self.lifted if any(self.lifted.static) else self.lifted.fn

    @property
    def consts(self) -> int:
        """The number of its constants."""
        return len(self.constants)

    @property
    def result_names(self) -> tuple[str, ...]:
        """The name of each result that is an array."""
        return tuple(self.trees.results.names)

    @cached_property
    def graph(self) -> Graph:
        """The program, with loops as they are."""
        return Graph.of(self.closed)

    def inlined(self, trips: int | None) -> Graph:
        """Return the program with the bodies of loops inlined."""
        return self.graph.inlined(LIMITS.trips if trips is None else trips)

    def units(self, graph: Graph, idle: bool = False) -> Units:
        """Return the units of the mesh that divide its values; idle: as in `strategies`."""
        fixed = [layout for layout in self.fixed_layouts if layout is not None]
        stated = [*map(self.placed, fixed), *graph.stated(self.device)]
        units = Units.apart(self.device, stated, 2)
        if number_of_ways(graph, units) > LIMITS.ways and not self.device.machine.has_cores:
            units = Units.apart(self.device, stated, 2, together=True)
        while len(units.axes) < 3 or max(units.sizes) > LIMITS.devices_of_unit:
            finer = Units.apart(self.device, stated, len(units.axes) + 1)
            if len(finer.axes) == len(units.axes) or number_of_ways(graph, finer) > LIMITS.ways:
                break
            if number_of_ways(graph, finer, all_ways=True) > LIMITS.all_ways:
                break
            units = finer
        units = units.between(*graph.average_product)
        if idle and len(units.axes) > 2 and not graph.is_large:
            units = replace(units, idle=True)
        return units

    def strategies(
        self,
        trips: int | None,
        idle: bool = False,
        each_step: Callable[[], None] = no_step,
    ) -> Strategies:
        """Return the choices; idle: whether a dim may have fewer elements than cores.

        That applies only to small programs, because it adds choices. each_step: called on the way.
        """
        graph = self.inlined(trips)
        units = self.units(graph, idle)
        return Strategies(
            graph if self.device.machine.has_cores else with_chains(graph),
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
        """A digest of the graph, by which a plan recognises its program."""
        return digest_of(self.graph)

    def specs_in(self, layouts: Sequence[Layout | None]) -> list[Spec]:
        """Return the operands' specs, the last ones with these layouts, if they are not None."""
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
        """The name of each operand, constants included."""
        return [*["a constant"] * self.consts, *self.names]

    def fixed_layout(self, operand: int) -> Layout | None:
        """Return the layout that an operand is fixed to, or None."""
        return self.fixed_layouts[operand - self.consts] if operand >= self.consts else None

    def default(self, operand: int, keep: bool = True) -> Layout | None:
        """Return an operand's layout without a plan; keep: whether `GridArray`s keep theirs."""
        if operand < self.consts:
            return None
        leaf = self.leaves[operand - self.consts]
        if (fixed_layout := self.fixed_layout(operand)) is not None:
            return fixed_layout
        if keep and leaf.is_laid_out:
            return leaf.value.layout
        if not leaf.has_layout:
            return None
        return self.tiled(fill_devices(leaf.shape, leaf.dtype, None, self.device))

    def placed(self, layout: Layout) -> Sharded:
        """Return the spec of an operand in a layout; on cores, also for one in DRAM."""
        return Sharded(layout, self.device.placement(layout))

    def layout(self, units: Units, operand: int, place: Place) -> Layout:
        """Return the layout of an operand at a place."""
        spec = self.specs[operand]
        assert place.division is not None
        space = "dram" if place.in_dram else "l1"
        made = units.spec(tuple(spec.shape), spec.dtype, place.division, space)
        return self.tiled(made.named(self.device))

    def tiled(self, layout: Layout) -> Layout:
        """Return a layout in the tiles of the chip's compute units, if it has tiles."""
        tiles = self.device.machine.chip.tiles
        if not tiles or layout.ndim < 2 or not isinstance(layout, GridLayout):
            return layout
        return layout.replace(tile=tiles[0])

    def places(self, units: Units, operand: int) -> list[Place]:
        """Return the places that an operand may have.

        On chips with cores these include DRAM, where it is divided over chips.
        """
        found, fixed_layout = self.divisions(units, operand), self.fixed_layout(operand)
        if not self.device.machine.has_cores:
            return list(map(Place, found))
        space = self.space if operand >= self.consts else None
        space = space if fixed_layout is None else fixed_layout.memory
        far = dict.fromkeys(map(units.among_chips, found))
        places = [Place(x) for x in found if space != "dram" or not x]
        return places + [Place(x, True) for x in far if space != "l1" and len(x)]

    def divisions(self, units: Units, operand: int) -> list[Division]:
        """Return an operand's possible divisions."""
        spec = self.specs[operand]
        whole: Division = ((),) * len(spec.shape)
        if (layout := self.fixed_layout(operand)) is not None:
            name = self.names[operand - self.consts]
            return [units.stated(self.placed(layout), f"fixed: {layout!r} of {name!r}")]
        free = operand >= self.consts and self.leaves[operand - self.consts].has_layout
        return divisions(units, tuple(spec.shape)) if free else [whole]

    def _results(self, units: Units, aval: Any) -> list[Division]:
        """Return the divisions that a result may have; none for random keys, without layouts."""
        is_key = jax.numpy.issubdtype(aval.dtype, jax.dtypes.extended)
        return [] if is_key else divisions(units, tuple(aval.shape))

    def report(
        self,
        layouts: Sequence[Layout | None],
        stated: Stated | None = None,
        algorithm: str | None = None,
        policy: Policy = same_grid_and_tile,
        each_step: Callable[[], None] = no_step,
    ) -> Report:
        """Return the report of the program for arguments in these layouts, with their names.

        stated: that of a plan; without one, the program is that of `gl.on_grid`. algorithm: of all
        products, by name. policy: that of `gl.on_grid`. each_step: is called now and then, and ends
        it by raising.
        """
        specs = self.specs_in(layouts)
        # Values that a plan has in DRAM are read during computation: the program treats them as
        # values in L1.
        is_chosen = stated is not None and stated.chosen is not None
        near = [in_space(spec, "l1") for spec in specs] if is_chosen else specs
        env = Env(
            self.device,
            policy,
            templates_of(map(layout_of, near)),
            algorithm,
            context=trace_context(),
            stated=stated,
            nexts=tuple(self.next_of.items()),
        )
        names = (*["constant"] * self.consts, *self.names)
        found = Report.of(planned(env, self.graph, specs, each_step=each_step))
        return found.named(names, self.result_names, function_name(self.lifted.fn))


def traced_for(
    fn: Callable[..., Any], args: Any, machine: Any, fixed: Any, space: str | None = None
) -> Traced:
    """Return a function traced for a machine; `LayoutError` for invalid arguments."""
    if not callable(fn):
        raise LayoutError(f"fn must be a function, not {in_short(fn)}")
    lifted = on_grid(fn)
    args, _ = lifted.held(lifted.first + tuple(args), {})
    args, leaves, stated = _arguments(lifted.fn, args)
    chips, device = _device(machine, leaves, lifted.device)
    if space is not None:
        space = one_of(device.machine.chip.space_of(space), ON_CHIP, "memory_space")
        if not device.machine.has_cores:
            raise LayoutError(
                f"memory_space {space!r} is for machines whose chips have cores, such as 'n150': "
                f"devices of {device.machine.chip.name} have one memory, leave it out"
            )
    numbers = [k for k, x in enumerate(leaves) if x.is_operand]
    arrays = [leaves[k] for k in numbers]
    static = tuple(StaticLeaf(k, x.value) for k, x in enumerate(leaves) if k not in set(numbers))
    kinds = tuple(_kind(leaf.value) for leaf in arrays)
    structure = jax.tree.structure((args, {}), is_leaf=is_grid)
    signature = Signature(structure, static, kinds, device, None, rules_version())
    closed, results, nexts = _jaxpr(lifted.fn, signature)
    jaxpr, consts = with_constants_as_operands(closed)
    given = (
        requested_layouts(fixed, None, arrays, device)
        if fixed is not None
        else [None] * len(arrays)
    )
    layouts = [stated[k] or layout for k, layout in zip(numbers, given, strict=True)]
    for leaf, layout in zip(arrays, layouts, strict=True):
        if layout is not None and (layout.shape != leaf.shape or layout.dtype != leaf.dtype):
            raise LayoutError(f"fixed: {layout!r} is no layout of {leaf}")
    return Traced(
        *(lifted, chips, device, jaxpr),
        (*(spec_of(jax.typeof(x)) for x in consts), *kinds),
        tuple(consts),
        tuple(arrays),
        tuple(None if layout is None else as_stored(layout, device) for layout in layouts),
        Trees(jax.tree.structure(args, is_leaf=is_grid), tuple(numbers), results),
        nexts,
        space,
    )


def _arguments(fn: Callable[..., Any], args: Any) -> tuple[Any, list[Leaf], list[Layout | None]]:
    """Return the arguments with shapes in place of layouts, their leaves, and the layouts."""

    def is_leaf(x: Any) -> bool:
        return isinstance(x, (Layout, GridArray))

    def shape(x: Any) -> Any:
        return jax.ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, Layout) else x

    given = jax.tree.leaves(args, is_leaf=is_leaf)
    args = jax.tree.map(shape, args, is_leaf=is_leaf)
    names = positional_names(fn, len(args))[: len(args)]
    leaves = [
        Leaf((jax.tree_util.DictKey(name), *leaf.at), leaf.value)
        for name, arg in zip(names, args, strict=True)
        for leaf in leaves_of(arg)[0]
    ]
    return args, leaves, [x if isinstance(x, Layout) else None for x in given]


def _jaxpr(fn: Callable[..., Any], signature: Signature) -> tuple[Any, Results, dict[int, int]]:
    """Return the function's jaxpr, its results, and `Traced.next_of`."""
    try:
        closed, results, env = function_of(fn, same_grid_and_tile).jaxpr(signature)
    except LayoutError:
        raise
    except Exception as error:
        raise LayoutError(
            f"{function_name(fn)} can't be traced on these arguments: {type(error).__name__}: "
            f"{error}"
        ) from error
    return closed, results, dict(env.nexts)


def _kind(x: Any) -> Spec:
    if isinstance(x, (GridArray, jax.ShapeDtypeStruct)):
        return Replicated(tuple(x.shape), np.dtype(x.dtype))
    return spec_of(jax.typeof(as_operand(x, "gl.plan")))


def as_machine(machine: Any) -> Machine:
    """Return a machine, or the ready one of a name; `LayoutError` for anything else."""
    made = Machine(machine) if isinstance(machine, str) else machine
    if not isinstance(made, Machine):
        raise LayoutError(
            f"machine {shown(machine)} must be a gl.Machine, or the name of a ready one: "
            f"{', '.join(Machine.names())}"
        )
    return made


def _device(
    machine: Any, leaves: Sequence[Leaf], lifted: DeviceGrid | None
) -> tuple[Machine, DeviceGrid]:
    """Return the machine of chips and the mesh to plan for: its own, or that of the arrays.

    lifted: the device grid of the lifted function, which holds where neither says otherwise.
    """
    grids = {leaf.value.device: None for leaf in leaves if leaf.is_laid_out}
    if len(grids) > 1:
        raise LayoutError(
            f"the arrays are on different device grids: {', '.join(each.words for each in grids)}"
        )
    own = next(iter(grids), None)
    if machine is None:
        device = own or lifted or default_device()
        return device.machine, device
    machine = as_machine(machine)
    if own is not None:
        machine.check_mesh(own.shape)
        return machine, own.with_machine(machine)
    cores = machine.by_core
    if lifted is not None and cores.mesh in (None, lifted.shape):
        return machine, lifted.with_machine(cores)
    if cores.mesh is None:
        return machine, DeviceGrid((len(jax.devices()),), machine=cores)
    names = cores.axis_names[: len(cores.mesh)]
    return machine, DeviceGrid(AbstractMesh(cores.mesh, names), machine=cores)
