"""`load`: a compiled TTNN program, executed on emulated cores in the layouts the compiler chose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.mlir.program import Module, read_module
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.placing import check_device, put
from gridlayout.ops.array.relayout import relayout
from gridlayout.ops.decisions.policy import same_grid_and_tile
from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
from gridlayout.ops.interpret.with_layout import with_layout
from gridlayout.ops.programs.report import Report
from gridlayout.ops.tenstorrent.linking import Linked, Linker, Step
from gridlayout.ops.tenstorrent.shapes import SAME
from gridlayout.ops.tenstorrent.table import stored
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.tenstorrent.tensor_type import TensorType
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


@dataclass(frozen=True)
class ProgramReport(Report):
    """A `gl.Report` of a compiled program; `operations` are its ops, a row each.

    The rows of `Report` are the primitives that run; those of `operations` say what the compiler
    wrote: the line, the op, the layouts, and its hints to the chip (program configs) as text.
    """

    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.operations), "", super().__str__()])


@dataclass(frozen=True)
class Operation:
    """One op of a compiled program: its line, operands and results by name, layouts, hints.

    function: the one it stands in. A layout is None where the type states none.
    """

    function: str
    line: int
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[TtnnLayout | None, ...]
    outputs: tuple[TtnnLayout | None, ...]
    hints: dict[str, str]

    def __str__(self) -> str:
        made = ", ".join(map(_described, self.results, self.outputs))
        hints = f"  {', '.join(self.hints)}" if self.hints else ""
        return f"{self.line:>5}  {made} = {self.name}({', '.join(self.operands)}){hints}"


def _described(name: str, layout: TtnnLayout | None) -> str:
    if layout is None:
        return name
    dims, cores = ("x".join(map(str, n)) for n in (layout.shape, layout.grid))
    return f"{name}: {dims} {layout.buffer_type} {layout.memory_layout} {cores}"


def load(
    text: str,
    device: DeviceGrid | None = None,
    *,
    function: str | None = None,
    oob: float | None = None,
) -> TtnnProgram:
    """A compiled program as a function: TTNN IR, run with the layouts that its types state.

    text: the TTNN dialect as tt-mlir prints it. device: the device grid whose emulated cores hold
    the values; by default one device holds them all. function: which one is run, where the text has
    several that nobody calls. oob: what the padding of all floats is set to wherever a value is
    made: `math.nan` shows that nothing reads it.

    `LayoutError`, with the line, for what can't be read, for ops that are not known, for a value
    that is used after its `deallocate`, and for types that do not follow from the operands.

    >>> program = load('''
    ... #dram = #ttnn.buffer_type<dram>
    ... #rows = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3xf32, #dram>, <interleaved>>
    ... func.func @main(%arg0: tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows> {
    ...   %0 = "ttnn.neg"(%arg0) : (tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows>
    ...   return %0 : tensor<2x3xf32, #rows>
    ... }''')
    >>> np.asarray(program(np.ones((2, 3), np.float32))).tolist()
    [[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]
    """
    if device is not None:
        check_device(device)
    module = read_module(text)
    return TtnnProgram(Linker(module).link(_entry(module, function)), device, oob)


def _entry(module: Module, name: str | None) -> str:
    """The function to run: the one of that name, or that nobody calls."""
    if name is not None:
        if name not in module.functions:
            raise LayoutError(f"function {name!r} is not one of {', '.join(module.functions)}")
        return name
    functions = module.functions.values()
    called = {name for each in functions for op in each.operations for name in op.callees}
    free = [each.name for each in functions if each.name not in called and each.operations]
    if len(free) != 1:
        raise LayoutError(
            f"{len(free)} functions are called by nobody ({', '.join(free)[:200]}): give the one to "
            "run, function='...'"
        )
    return free[0]


class TtnnProgram:
    """A compiled program; `load` makes it. Call it with the logical arrays of its arguments.

    arguments, results: their types, in order. Results are `GridArray`s in the layouts that the
    program states, and `jax.Array`s where they have rank 0; one alone, or a list.
    """

    def __init__(self, linked: Linked, device: DeviceGrid | None, oob: float | None) -> None:
        self._linked, self._device, self._oob = linked, device, oob

    def __repr__(self) -> str:
        return f"TtnnProgram({self._linked.name}, {len(self.operations)} operations)"

    @cached_property
    def device(self) -> DeviceGrid:
        """The device grid that holds the values."""
        return self._device if self._device is not None else DeviceGrid((1,))

    @property
    def arguments(self) -> tuple[TensorType, ...]:
        """Shape, dtype and layout of each argument."""
        return tuple(kind for _, kind in self._linked.arguments)

    @property
    def results(self) -> tuple[TensorType, ...]:
        """Shape, dtype and layout of each result."""
        return self._linked.results

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The ops that make values, in the order in which they run, those of called functions too.

        """
        return tuple(_operations(self._linked))

    @cached_property
    def layouts(self) -> dict[str, TtnnLayout | None]:
        """The layout of each value by name, `"%3"`; of called functions `"name/%3"`."""
        entry = self._linked.name
        found = {name: kind.layout for name, kind in self._linked.arguments}
        for op in self.operations:
            prefix = "" if op.function == entry else f"{op.function}/"
            found |= {f"{prefix}{n}": x for n, x in zip(op.results, op.outputs, strict=True)}
        return found

    @cached_property
    def _on_grid(self) -> OnGrid:
        linked, oob = self._linked, self._oob
        run = lambda *arrays: _run(linked, list(arrays), oob)  # noqa: E731
        return on_grid(run, self.device, _on_cores)

    def __call__(self, *arrays: Any) -> Any:
        """The results for logical arrays, or `GridArray`s, of the arguments' shapes and dtypes.

        `LayoutError` for another number of them, shape or dtype; truth values are taken as numbers.
        """
        made = self._on_grid(*self._placed(arrays))
        return made[0] if len(made) == 1 else made

    def report(self, *arrays: Any) -> ProgramReport:
        """What a call does, without running it; arrays may be left out, since types are known."""
        given = self._placed(arrays) if arrays else [_stand_in(kind) for kind in self.arguments]
        found = self._on_grid.report(*given)
        return ProgramReport(found.rows, found.peak_bytes, found.core_peak_bytes, self.operations)

    def _placed(self, arrays: tuple[Any, ...]) -> list[Any]:
        wanted = self._linked.arguments
        if len(arrays) != len(wanted):
            raise LayoutError(f"{self!r} takes {len(wanted)} arrays, not {len(arrays)}")
        return [
            _placed(array, kind, name, self.device)
            for array, (name, kind) in zip(arrays, wanted, strict=True)
        ]


def _operations(linked: Linked) -> list[Operation]:
    found = []
    for step in linked.steps:
        if step.callee is not None:
            found += _operations(step.callee)
        layouts = ((kind.layout for kind in kinds) for kinds in (step.inputs, step.outputs))
        found.append(
            Operation(
                *(linked.name, step.line, step.name, step.operands, step.results),
                *map(tuple, layouts),
                step.hints,
            )
        )
    return found


def _stand_in(kind: TensorType) -> Any:
    return kind.layout if kind.shape and kind.layout else jax.ShapeDtypeStruct(kind.shape, kind.dtype)


def _placed(array: Any, kind: TensorType, name: str, device: DeviceGrid) -> Any:
    """An argument in the layout of its type."""
    if isinstance(array, GridArray):
        return array if kind.layout is None else relayout(array, kind.layout)
    if isinstance(array, jax.ShapeDtypeStruct):
        array = jax.ShapeDtypeStruct(array.shape, array.dtype)
    else:
        array = array if isinstance(array, jax.Array) else jnp.asarray(array)
    if array.shape != kind.shape:
        raise LayoutError(f"argument {name} has shape {array.shape}, not {kind.shape}")
    if array.dtype == bool and not isinstance(array, jax.ShapeDtypeStruct):
        array = array.astype(kind.dtype)
    if array.dtype != kind.dtype:
        raise LayoutError(
            f"argument {name} has dtype {array.dtype.name}, but the program was compiled for "
            f"{np.dtype(kind.dtype).name}: give it in that dtype"
        )
    return put(array, kind.layout, device) if kind.layout and kind.shape else array


# -- inside the traced function --------------------------------------------------------------------


def _on_cores(shape: Shape, dtype: Any, like: Layout | None, device: DeviceGrid) -> Layout:
    """Where values lie inside an op: in the cores' memory, on the operand's grid."""
    return same_grid_and_tile(shape, dtype, like, device).replace(memory_space="l1")


def _run(linked: Linked, arrays: list[Any], oob: float | None) -> list[Any]:
    """The function's results, each value in the layout of its type on the way."""
    names = [name for name, _ in linked.arguments]
    kinds = [kind for _, kind in linked.arguments]
    values = dict(zip(names, map(stored, arrays, kinds), strict=True))
    for step in linked.steps:
        operands = [values[name] for name in step.operands]
        if step.callee is not None:
            made = _called(step, operands, oob)
        else:
            assert step.run is not None
            if step.name not in SAME:
                operands = list(map(_read, operands, step.inputs))
            made = step.run(*operands)
            made = [_laid_out(x, kind, oob) for x, kind in zip(made, step.outputs, strict=True)]
        values |= zip(step.results, made, strict=True)
    return [values[name] for name in linked.returned]


def _called(step: Step, operands: list[Any], oob: float | None) -> list[Any]:
    """A function's results; in a loop, what the last of several calls made of its state."""
    callee, loop = step.callee, step.loop
    assert callee is not None
    if loop is None:
        return _run(callee, operands, oob)

    def again(_: Any, state: list[Any]) -> list[Any]:
        made = _run(callee, [*state, *operands[loop.state :]], oob)
        state = list(state)
        for place, value in zip(loop.places, made, strict=True):
            state[place] = value
        return state

    state = lax.fori_loop(0, loop.count, again, operands[: loop.state])
    return [state[place] for place in loop.places]


def _read(x: Any, kind: TensorType) -> Any:
    """An operand where cores can read it: kernels stream what is in DRAM through L1."""
    layout = kind.layout
    if layout is None or layout.buffer_type == "l1" or not kind.shape:
        return x
    return with_layout(x, in_l1(layout))


def in_l1(layout: TtnnLayout) -> TtnnLayout:
    """The same places, in the cores' memory."""
    return TtnnLayout(
        *(layout.shape, layout.dtype, layout.grid, layout.tile, layout.memory_layout, "l1"),
        tile_format=layout.tile_format,
    )


def _laid_out(x: Any, kind: TensorType, oob: float | None) -> Any:
    if kind.layout is None or not kind.shape:
        return x
    layout: Layout = kind.layout
    if oob is not None and jnp.issubdtype(layout.dtype, jnp.floating):
        layout = layout.with_oob(oob)
    return with_layout(x, layout)
