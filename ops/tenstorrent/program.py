"""`load`: a compiled TTNN program, run on emulated cores in the layouts the compiler chose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_flag, one_of
from gridlayout.errors import LayoutError
from gridlayout.files import is_path, read_text
from gridlayout.layouts.layout import Layout
from gridlayout.mlir.program import MAX_TEXT, Module, read_module
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.placing import put
from gridlayout.ops.array.relayout import relayout
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.tenstorrent.chips import mesh_of
from gridlayout.ops.tenstorrent.linking import Linked, Linker
from gridlayout.ops.tenstorrent.pricing import simulated
from gridlayout.ops.tenstorrent.propagation import propagated
from gridlayout.ops.tenstorrent.report import Operation, ProgramReport, operations_of
from gridlayout.ops.tenstorrent.running import Runner, on_cores
from gridlayout.ops.tenstorrent.spread import Spread, divided, joined, read_specs, spread_of
from gridlayout.ops.tenstorrent.table import stored
from gridlayout.public import public
from gridlayout.sharding.device_argument import as_device
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine
from gridlayout.tenstorrent.tensor_type import TensorType
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


def checked(array: Any, kind: TensorType, what: str, any_shape: bool = False) -> Any:
    """Return the array as a JAX array; a `GridArray` or a `ShapeDtypeStruct` as it is.

    `LayoutError` for another dtype or shape. any_shape: whether other shapes are accepted.
    Truth values become numbers; floats of any width become values of a block format.
    """
    if not isinstance(array, (GridArray, jax.Array, jax.ShapeDtypeStruct)):
        try:
            array = jnp.asarray(array)
        except (TypeError, ValueError) as error:
            raise LayoutError(f"{what} is no array: {error}") from None
    if not any_shape and tuple(array.shape) != kind.shape:
        raise LayoutError(f"{what} has shape {tuple(array.shape)}, not {kind.shape}")
    is_number = kind.tile_format is not None and jnp.issubdtype(array.dtype, jnp.floating)
    if (is_number or array.dtype == bool) and isinstance(array, jax.Array):
        array = stored(array, kind)
    if array.dtype != kind.dtype:
        raise LayoutError(
            f"{what} has dtype {array.dtype.name}, but the program was compiled for "
            f"{np.dtype(kind.dtype).name}: give it in that dtype"
        )
    return array


def laid_out(array: Any, layout: Layout | None, device: DeviceGrid) -> Any:
    """Return a checked array in the layout; without a layout, as it is."""
    if layout is None:
        return array
    return relayout(array, layout) if isinstance(array, GridArray) else put(array, layout, device)


def placeholder(kind: TensorType, layout: Layout | None, mesh: Shape) -> Any:
    """Return what represents an argument in a report: its layout, or its shape."""
    return layout or jax.ShapeDtypeStruct((*mesh, *kind.shape), kind.dtype)


Specs = Sequence[Sequence[Sequence[int]]]


@public
def load(
    text: str | os.PathLike[str],
    device: DeviceGrid | None = None,
    *,
    function: str | None = None,
    oob: float | None = None,
    in_specs: Specs | None = None,
    out_specs: Specs | None = None,
    strict: bool = True,
) -> TtnnProgram:
    """Return a compiled program as a function: TTNN IR, run with the layouts that its types state.

    text: the TTNN dialect as tt-mlir prints it, or TTIR, whose values have no layouts; or the path
    of a file with it. device: the
    device grid whose emulated cores hold the values; by default, one device holds them all.
    function: the function to run, if the text has several that no other calls. oob: the value of
    the padding of all floats, wherever a value is made; with `math.nan`, a result without NaN shows
    that nothing reads it. strict: whether a map, a memref or core ranges that do not follow from
    the rest of their type are an error, as types written by hand may have them; if not, they are a
    warning, and the layout is that which shape, tile and grid imply. Arguments that are devices are
    left out.

    A program of several chips takes and returns full arrays. The mesh axes that divide each dim are
    inferred from the arrays' sizes, and propagated through the ops. Where that is ambiguous or
    unknown, in_specs and out_specs state them: for each argument or result, and each of its dims,
    the mesh axes that divide it, `[((0,), ())]`.

    `LayoutError` for a file that can't be read, and, with the line, for text that can't be read,
    unknown ops, a value that is used after its `deallocate`, and types that do not follow from the
    operands.

    >>> program = load('''
    ... #dram = #ttnn.buffer_type<dram>
    ... #a = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3xf32, #dram>, <interleaved>>
    ... func.func @main(%arg0: tensor<2x3xf32, #a>) -> tensor<2x3xf32, #a> {
    ...   %0 = "ttnn.neg"(%arg0) : (tensor<2x3xf32, #a>) -> tensor<2x3xf32, #a>
    ...   return %0 : tensor<2x3xf32, #a>
    ... }''')
    >>> import numpy as np
    >>> np.asarray(program(np.ones((2, 3), np.float32))).tolist()
    [[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]
    """
    if device is not None:
        device = as_device(device)
    fill = dtypes.oob_value(oob, dtypes.as_dtype("float32"))
    module = read_module(read_text(text, MAX_TEXT) if is_path(text) else text)
    mesh = mesh_of(module)
    chips = mesh if prod(mesh) > 1 else ()
    linked = Linker(module, chips, as_flag(strict, "strict")).link(_entry(module, function))
    kinds = [kind for _, kind in linked.arguments]
    specs = (
        read_specs(in_specs, kinds, mesh, "in_specs"),
        read_specs(out_specs, linked.results, mesh, "out_specs"),
    )
    return TtnnProgram(linked, device, Runner(chips, fill), *specs)


def _entry(module: Module, name: str | None) -> str:
    """Return the name of the function to run: `name`, or the only one that no other calls."""
    if name is not None:
        return one_of(name, tuple(module.functions), "function")
    functions = module.functions.values()
    called = {name for each in functions for op in each.operations for name in op.callees}
    free = [each.name for each in functions if each.name not in called and each.operations]
    if len(free) != 1:
        raise LayoutError(
            f"{len(free)} functions are called by no other ({', '.join(free)[:200]}): give the one "
            "to run, function='...'"
        )
    return free[0]


@public
class TtnnProgram:
    """A compiled program, made by `gl.tenstorrent.load`. Call it with its arguments' arrays.

    Results are `GridArray`s in the layouts that the program states; those of rank 0 are
    `jax.Array`s. A single result is returned alone, several as a list. For several chips they are
    full arrays.
    """

    def __init__(
        self,
        linked: Linked,
        device: DeviceGrid | None,
        runner: Runner,
        in_specs: tuple[Spread, ...] | None,
        out_specs: tuple[Spread, ...] | None,
    ) -> None:
        self._linked, self._device, self._runner = linked, device, runner
        self._in_specs, self._out_specs = in_specs, out_specs
        self._lifted: dict[Any, OnGrid] = {}

    def __repr__(self) -> str:
        return f"TtnnProgram({self._linked.name}, {len(self.operations)} operations)"

    @cached_property
    def device(self) -> DeviceGrid:
        """The device grid whose cores hold the values."""
        return self._device if self._device is not None else DeviceGrid((1,))

    @property
    def chips(self) -> Shape:
        """The mesh of chips that the program is for."""
        return self._runner.mesh or (1, 1)

    @property
    def arguments(self) -> tuple[TensorType, ...]:
        """The shape, dtype and layout of each argument on each chip."""
        return tuple(kind for _, kind in self._linked.arguments)

    @property
    def results(self) -> tuple[TensorType, ...]:
        """The shape, dtype and layout of each result on each chip."""
        return self._linked.results

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The ops that make values in order; those of called functions precede the call."""
        return tuple(operations_of(self._linked, self._runner.mesh))

    @cached_property
    def layouts(self) -> dict[str, TtnnLayout | None]:
        """The layout of each value on each chip, by name: `"%3"`, in called functions `"f/%3"`.

        Arguments of called functions are left out.
        """
        entry = self._linked.name
        found = {name: kind.layout for name, kind in self._linked.arguments}
        for op in self.operations:
            prefix = "" if op.function == entry else f"{op.function}/"
            names = (f"{prefix}{name}" for name in op.results)
            found |= zip(names, op.outputs, strict=True)
        return found

    def __call__(self, *arrays: Any) -> Any:
        """Return the results for arrays or `GridArray`s of the arguments' shapes and dtypes.

        `LayoutError` for a wrong number of arrays, shape or dtype; truth values become numbers.
        """
        given, spreads = self._inputs(arrays)
        made = self._on_grid(spreads)(*given)
        return made[0] if len(made) == 1 else made

    def report(self, *arrays: Any) -> ProgramReport:
        """Return the report of a call, without running it; arrays may be left out."""
        if arrays:
            given, spreads = self._inputs(arrays)
        else:
            mesh, spreads = self._runner.mesh, None
            given = [placeholder(k, self._runner.layout_of(k), mesh) for k in self.arguments]
        found = self._on_grid(spreads).report(*given)
        return ProgramReport(**vars(found), operations=self.operations)

    def simulated(self, machine: Machine | str | None = None) -> Simulation:
        """Return the simulation of the program on a chip, op by op; as `gl.simulate(program)`.

        machine: one of Tenstorrent's, or its name; by default an n150. Collectives between chips
        have no price.
        """
        found = Machine(machine or "n150") if not isinstance(machine, Machine) else machine
        return simulated(self._linked, self.operations, found, prod(self.chips))

    def _on_grid(self, spreads: tuple[Spread, ...] | None) -> OnGrid:
        """Return the program on the grid; with several chips, results are joined as `spreads`."""
        if spreads not in self._lifted:
            linked, runner = self._linked, self._runner

            def run(*arrays: Any) -> list[Any]:
                made = runner.run_entry(linked, list(arrays))
                if spreads is None:
                    return made
                pairs = zip(made, spreads, strict=True)
                return [joined(x, spread, runner.mesh) for x, spread in pairs]

            self._lifted[spreads] = on_grid(run, self.device, on_cores)
        return self._lifted[spreads]

    def _inputs(self, arrays: tuple[Any, ...]) -> tuple[list[Any], tuple[Spread, ...] | None]:
        """Return the arguments in their layouts; for several chips, also the results' division."""
        expected, runner = self._linked.arguments, self._runner
        if len(arrays) != len(expected):
            raise LayoutError(f"{self!r} takes {len(expected)} arrays, not {len(arrays)}")
        if runner.mesh:
            return self._divided(arrays)
        found = [
            checked(x, kind, f"argument {name}")
            for x, (name, kind) in zip(arrays, expected, strict=True)
        ]
        layouts = map(runner.layout_of, self.arguments)
        pairs = zip(found, layouts, strict=True)
        return [laid_out(x, layout, self.device) for x, layout in pairs], None

    def _divided(self, arrays: tuple[Any, ...]) -> tuple[list[Any], tuple[Spread, ...]]:
        mesh, given, spreads = self._runner.mesh, [], []
        for k, (x, (name, kind)) in enumerate(zip(arrays, self._linked.arguments, strict=True)):
            what = f"argument {name}"
            x = x.to_logical() if isinstance(x, GridArray) else x
            x = checked(x, kind, what, any_shape=True)
            spread = (
                self._in_specs[k] if self._in_specs else spread_of(x.shape, kind.shape, mesh, what)
            )
            parts = divided(x, spread, kind.shape, mesh, what)
            given.append(laid_out(parts, self._runner.layout_of(kind), self.device))
            spreads.append(spread)
        return given, self._out_specs or self._propagated(spreads)

    def _propagated(self, spreads: Sequence[Spread]) -> tuple[Spread, ...]:
        found = propagated(self._linked, spreads)
        if None in found:
            raise LayoutError(
                f"how the chips' parts make up result {found.index(None)} does not follow from the "
                "program: give out_specs, for each result the mesh axes that divide each dim"
            )
        return tuple(spread for spread in found if spread is not None)
