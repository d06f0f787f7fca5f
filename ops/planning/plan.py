"""`Plan`: the layouts of a whole program on a machine, with its cost and the alternatives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from gridlayout import dtypes
from gridlayout.arguments import as_flag
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
from gridlayout.ops.interpret.static import bare
from gridlayout.ops.planning.constrained import constrained, mesh_for
from gridlayout.ops.planning.shardings import NamedMesh, Shardings
from gridlayout.ops.planning.simulation import LiveRange, Simulation
from gridlayout.ops.planning.traced import traced_for
from gridlayout.ops.planning.trees import Trees
from gridlayout.ops.trees.arrays import put
from gridlayout.ops.trees.layouts import ByPath
from gridlayout.ops.trees.leaves import is_grid, leaves_of
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import parts_in_words
from gridlayout.svg import Drawing
from gridlayout.tables.words import bound_words, duration

FORMAT, VERSION = "gridlayout plan", 4  # of files


@dataclass(frozen=True)
class Alternative:
    """A way to run one equation: its text, and the seconds of the whole program with it.

    The layouts of operands and all other equations stay as planned. is_chosen: whether the plan
    uses this way.
    """

    words: str
    time: float
    is_chosen: bool = False

    def __str__(self) -> str:
        return f"{'*' if self.is_chosen else ' '} {duration(self.time):>12}  {self.words}"


@public
@dataclass(frozen=True, eq=False)
class Plan(ByPath):
    """The layouts of a program's arguments, results and equations for a machine; see `gl.plan`.

    layouts: of each argument by its path, such as `params/w1`; None for arguments without a layout,
    such as scalars. results: of each result. bound: by the same figures, no plan of the same
    strategies takes fewer seconds, one operation after another. simulation: the program's cost.
    device: the mesh. how: the method that found it. trees: structures of arguments and results.
    """

    layouts: Mapping[str, Layout | None]
    results: Mapping[str, Layout | None]
    bound: float
    simulation: Simulation
    device: DeviceGrid
    stated: Any = field(repr=False)  # the part that `gl.on_grid` uses
    alternatives: Mapping[str, tuple[Alternative, ...]] = field(repr=False)
    how: str = ""
    fn: Callable[..., Any] | None = field(default=None, repr=False)
    trees: Trees | None = field(default=None, repr=False)

    @property
    def time(self) -> float:
        """The seconds of one device for the whole program, one operation after another."""
        return self.simulation.time

    @property
    def overlapped(self) -> float:
        """The seconds where a device does at the same time what its machine's `overlap` states."""
        return self.simulation.overlapped

    @property
    def carried(self) -> float:
        """The seconds to copy arguments from a chip's DRAM to cores, and results back.

        Only those that the plan places in L1 count: a program reads what is in DRAM while it
        computes. 0 on devices without cores.
        """
        machine, found = self.device.machine, 0.0
        for k, layout in enumerate((*self.layouts.values(), *self.results.values())):
            if layout is None or layout.memory == "dram":
                continue
            nbytes = dtypes.nbytes(machine.padded(layout.shape), layout.dtype)
            if k < len(self.layouts):
                found += machine.streaming(nbytes, layout.held.per_core)
            else:
                found += machine.writing(nbytes, layout.held.per_core, layout.num_cores)
        return found

    @property
    def gap(self) -> float:
        """The excess of the time over the bound: 0.02 for 2 %, inf for a bound of 0."""
        if self.time <= self.bound:
            return 0.0
        return self.time / self.bound - 1 if self.bound else inf

    @property
    def peak_bytes(self) -> int:
        """The most bytes that a device holds at one time."""
        return self.simulation.peak_bytes

    @property
    def live_ranges(self) -> tuple[LiveRange, ...]:
        """The live ranges of values in a device's memory (a core's L1), in order of their start.

        Values that are live together never take more than `peak_bytes`. On cores, each value has
        the lowest address at which it overlaps no other live value: the address that a first-fit
        allocator gives it.

        >>> import jax, jax.numpy as jnp, gridlayout as gl
        >>> x = jax.ShapeDtypeStruct((1024, 1024), "bfloat16")
        >>> plan = gl.plan(lambda x: jnp.exp(x) * jnp.tanh(x), x, machine="n150")
        >>> for each in plan.live_ranges:
        ...     steps = [name for name, _ in plan.simulation.held[each.first : each.last + 1]]
        ...     print(each.name, each.address, each.nbytes, *steps)
        x 0 32768 exp:0 tanh:0 mul:0
        exp:0 32768 32768 exp:0 tanh:0 mul:0
        tanh:0 65536 32768 tanh:0 mul:0
        mul:0 98304 32768 mul:0
        """
        return self.simulation.live_ranges

    def why(self, equation: str) -> str:
        """Return the ways to run an equation, best first, with the time of the whole program.

        equation: its name in `print(plan)`, such as `dot_general:3`. `LayoutError` for other names.
        Where no other ways were compared, the text says how the equation runs, and why so.
        """
        known = {each.name: each for each in self.simulation.equations}
        if not isinstance(equation, str) or equation not in known:
            raise LayoutError(
                f"{equation!r} is no equation of this plan: names are such as "
                f"{', '.join(map(repr, [*known][:4])) or 'none, because it has no equations'}"
            )
        if ways := self.alternatives.get(equation):
            lines = [f"{equation}, with everything else as planned, the program takes:"]
            lines += map(str, ways)
        else:
            lines = [known[equation].words, self._why_no_others]
        names = re.findall(r"\w+", "\n".join(lines))
        return "\n".join([*lines, *parts_in_words(names, self.simulation.mesh)])

    @property
    def _why_no_others(self) -> str:
        """A sentence about an equation without alternatives."""
        if self.stated.chosen is None:
            return (
                "The plan is the program of gl.on_grid, in which each equation takes its own "
                "cheapest way: no other plan was found to be faster in the time of the search "
                "(seconds=)."
            )
        return "No other way to divide it was compared: its rule decides how it runs."

    def memory(self) -> Drawing:
        """Return a drawing of the bytes that a device holds, equation by equation."""
        return self.simulation.memory()

    def timeline(self) -> Drawing:
        """Return a drawing of what a device computes and sends over time."""
        return self.simulation.timeline()

    def trace(self, path: str | Path) -> None:
        """Write a trace for Perfetto and chrome://tracing: one track per device and per link."""
        self.simulation.trace(path)

    def save(self, path: str | Path) -> None:
        """Write the plan to a file as readable JSON; `gl.load_plan` reads it."""
        Path(path).write_text(json.dumps(record_of(self), indent=1) + "\n", encoding="utf-8")

    def diff(self, other: Plan) -> str:
        """Return the differences to another plan in lines: times, layouts, and how equations run.

        Empty where there are none.
        """
        if not isinstance(other, Plan):
            raise LayoutError(f"diff: {other!r} must be a plan")
        lines = []
        if (self.time, self.peak_bytes) != (other.time, other.peak_bytes):
            lines.append(f"time: {duration(self.time)} -> {duration(other.time)}")
            lines.append(f"peak: {self.peak_bytes:,} B -> {other.peak_bytes:,} B")
        pairs = [
            (_reprs(self.layouts), _reprs(other.layouts)),
            (_reprs(self.results), _reprs(other.results)),
            (self._ways, other._ways),
        ]
        for mine, others in pairs:
            for name in dict.fromkeys((*mine, *others)):
                a, b = (x.get(name, "not there") for x in (mine, others))
                lines += [f"{name}: {a} -> {b}"] if a != b else []
        return "\n".join(lines)

    @property
    def _ways(self) -> dict[str, str]:
        """A text for each equation of how it runs."""
        return {
            each.name: f"{each.how or 'as is'}, {each.ins} to {each.outs}"
            for each in self.simulation.equations
        }

    # -- running -----------------------------------------------------------------------------------

    @cached_property
    def devices(self) -> DeviceGrid:
        """A device grid of the plan's mesh, on JAX's first devices; `LayoutError` for too few."""
        return self.device.with_devices()

    def run(self, *args: Any) -> Any:
        """Run the function as planned, and return its result; plain arrays are laid out first.

        `LayoutError` for too few devices, other shapes, and a plan loaded without its function.
        """
        return on_grid(self._function, self.devices, self)(*self.put(args))

    @property
    def _function(self) -> Callable[..., Any]:
        if self.fn is None:
            raise LayoutError(
                "this plan was loaded without its function: gl.load_plan(path, fn) gives it one, "
                "or call gl.on_grid(fn, policy=plan)"
            )
        return self.fn

    def put(self, args: Any) -> Any:
        """Return the function's arguments, a tuple, placed as planned."""
        args = jax.tree.map(lambda x: x.to_logical() if is_grid(x) else x, args, is_leaf=is_grid)
        if not any(self.layouts.values()):
            return args
        found = put(self._held(args), self.devices, layouts=self.rules(args))
        return tuple(map(bare, found)) if isinstance(self.fn, OnGrid) else found

    def _held(self, args: Any) -> Any:
        return self.fn.static.held(args, {})[0] if isinstance(self.fn, OnGrid) else args

    def rules(self, args: Any) -> list[Any]:
        """Return the layouts of the arguments' leaves, as a tree of the arguments' structure."""
        leaves, structure = leaves_of(self._held(args))
        arrays = [leaf.is_operand for leaf in leaves]
        if sum(arrays) != len(self.layouts):
            raise LayoutError(
                f"the plan is for {len(self.layouts)} arrays, {', '.join(self.layouts)}, not "
                f"{sum(arrays)}"
            )
        layouts = iter(self.layouts.values())
        found: list[Any] = jax.tree.unflatten(
            structure, [next(layouts) if is_array else None for is_array in arrays]
        )
        return found

    # -- for jax.jit -------------------------------------------------------------------------------

    def shardings(self, mesh: Mesh, *args: Any, strict: bool = True) -> Shardings:
        """Return the plan's layouts of arguments and results as `NamedSharding`s on `mesh`.

        They are trees in the structure of the function's arguments, a tuple, and of its results,
        for `jax.jit(fn, in_shardings=..., out_shardings=...)`. Scalars are replicated; leaves that
        are no arrays have None. mesh: a `jax.sharding.Mesh` of the plan's shape with any names; its
        axes may also be the factors of the plan's axes, such as (2, 2, 4) for (4, 4). args: as in
        `gl.plan`; a plan that was loaded needs them, because its file has no structures.

        A layout that is divided by a part of a mesh axis has a sharding on a mesh of the same
        devices with more axes, which JAX takes in the same program. JAX divides dims evenly.
        strict: whether a layout that is divided otherwise is an error; if not, its dims that no
        sharding expresses are replicated, with a `LayoutWarning`. Tiles are not expressed: XLA
        chooses the order of elements on a device.

        `LayoutError` for such layouts, with the names of all of them; for a mesh of another shape;
        and for plans of cores, which are no devices of JAX.

        >>> import jax, jax.numpy as jnp, gridlayout as gl
        >>> x, w = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((4096, 512), (512, 512)))
        >>> one = gl.Machine("v5e 4x4", mesh=(1,))
        >>> plan = gl.plan(lambda p, x: x @ p["w"], {"w": w}, x, machine=one)
        >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
        >>> ins, outs = plan.shardings(mesh)
        >>> [*ins[0]], ins[1].shard_shape(x.shape), outs.mesh == mesh
        (['w'], (4096, 512), True)
        """
        trees = self.trees
        if args or trees is None:
            if not args:
                raise LayoutError(
                    "this plan was loaded, and its file has no structures of arguments: pass the "
                    "arguments too, plan.shardings(mesh, *args)"
                )
            traced = traced_for(self._function, args, self.device.machine, None)
            self.stated.check(traced.graph, traced.device)
            trees = traced.trees
        ins, outs = self._ends(NamedMesh.of(self.device, mesh), strict)
        return Shardings(trees.arguments_of(ins), trees.results_of(outs))

    def _ends(self, mesh: NamedMesh, strict: bool) -> tuple[list[Any], list[Any]]:
        """Return the shardings of arguments and of results."""
        every = (*self.layouts.items(), *self.results.items())
        found = mesh.of_layouts(every, as_flag(strict, "strict"))
        return found[: len(self.layouts)], found[len(self.layouts) :]

    def constrained(self, mesh: Mesh, *, strict: bool = True) -> Callable[..., Any]:
        """Return the function with sharding constraints of JAX where the plan divides values.

        It takes and returns JAX's arrays, and has the values of the function itself: XLA makes the
        program, which is divided as planned. Constrained are arguments and results, operands and
        results of each equation for which the plan has chosen a division, and what loops carry. XLA
        may still choose other collectives than the plan. A plan that is the program of `gl.on_grid`
        (`plan.how` is "as by default") constrains arguments, results and `gl.with_layout` alone.
        Its derivative is that of the function, without constraints inside: plan the gradient.

        mesh, strict: as in `shardings`; the mesh has Auto axes. Where the plan divides by a part of
        a mesh axis, the constraints are on a mesh of the same devices with more axes. `LayoutError`
        in the same cases, for arguments of other shapes than planned, and for
        `GridArray`s.

        >>> import jax, jax.numpy as jnp, gridlayout as gl
        >>> x = jnp.ones((8, 8))
        >>> plan = gl.plan(lambda x: jnp.tanh(x @ x), x, machine=gl.Machine("v5e 4x4", mesh=(1,)))
        >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
        >>> jax.jit(plan.constrained(mesh))(x).sharding.shard_shape(x.shape)
        (8, 8)
        """
        every = (*self.layouts.values(), *self.results.values())
        named = mesh_for(NamedMesh.of(self.device, mesh), self.stated, every)
        return constrained(self._function, named, self.stated, self._ends(named, strict), strict)

    # -- texts -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        laid = [f"  {name}: {layout!r}" for name, layout in self.layouts.items() if layout]
        made = [f"  {name}: {layout!r}" for name, layout in self.results.items() if layout]
        return "\n".join(
            [
                f"plan of {self.simulation.title}: {self.simulation.times}, "
                f"{bound_words(self.time, self.bound)} ({self.how})",
                "arguments",
                *laid,
                "results",
                *made,
                *self.simulation.lines,
            ]
        )

    def __repr__(self) -> str:
        return repr(self.simulation).replace("Simulation", "Plan", 1)


def _reprs(layouts: Mapping[str, Layout | None]) -> dict[str, str]:
    return {name: repr(layout) for name, layout in layouts.items()}


def record_of(plan: Plan) -> dict[str, Any]:
    """Return a plan as values that JSON can represent."""
    simulation, chosen = plan.simulation, plan.stated.chosen
    return {
        **{"format": FORMAT, "version": VERSION, "jax": jax.__version__},
        "program": {"title": simulation.title, "digest": plan.stated.digest},
        "machine": simulation.machine.record,
        "mesh": simulation.mesh,
        **{"layouts": _texts(plan.layouts), "results": _texts(plan.results)},
        **{"time": plan.time, "bound": plan.bound, "how": plan.how},
        "peak_bytes": plan.peak_bytes,
        "links": simulation.links,
        "equations": [
            {**vars(each), "collectives": [asdict(c) for c in each.collectives]}
            for each in simulation.equations
        ],
        "held": simulation.held,
        "staged": [(n, *stage) for n, stage in simulation.staged],
        "held_at": simulation.held_at,
        "live_ranges": [vars(each) for each in simulation.live_ranges],
        "dram": sorted(simulation.dram),
        "trips": plan.stated.trips,
        # None: the choices of `gl.on_grid`.
        "units": None if chosen is None else chosen.units.axes,
        "products": 0 if chosen is None else chosen.products,
        "choices": [
            {"path": path, **choice._asdict()}
            for path, choice in ({} if chosen is None else chosen.choices).items()
        ],
        "alternatives": {
            name: [vars(way) for way in ways] for name, ways in plan.alternatives.items()
        },
    }


def _texts(layouts: Mapping[str, Layout | None]) -> dict[str, str | None]:
    return {name: None if layout is None else str(layout) for name, layout in layouts.items()}
