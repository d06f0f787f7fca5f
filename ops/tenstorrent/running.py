"""`Runner`: runs a linked program in a traced function, with every value in its type's layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.interpret.with_layout import in_layout
from gridlayout.ops.tenstorrent.linking import Bound, Call, Case, Count, Linked, Loop, Step
from gridlayout.ops.tenstorrent.shapes import SAME
from gridlayout.ops.tenstorrent.table import stored
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.tenstorrent.chip_layout import ChipLayout
from gridlayout.tenstorrent.tensor_type import TensorType
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


def on_cores(shape: Shape, dtype: Any, like: Layout | None, device: DeviceGrid) -> Layout:
    """Return the layout of values inside an op: in the cores' memory, on the operand's grid."""
    found = same_grid_and_tile(shape, dtype, like, device)
    assert isinstance(found, GridLayout)
    return found.replace(memory_space="l1")


def placed_as(kind: TensorType, mesh: Shape) -> Layout | None:
    """Return the layout of a type; None for one without, and for rank 0, which is replicated."""
    if kind.layout is None or not (kind.shape or mesh):
        return None
    return ChipLayout(mesh, kind.layout) if mesh else kind.layout


@dataclass(frozen=True)
class Runner:
    """Runs functions of a program. mesh: as in `function_of`; oob: the value of padding."""

    mesh: Shape = ()
    oob: Scalar | None = None

    def layout_of(self, kind: TensorType) -> Layout | None:
        """Return the layout of a value of this type, with the value of its padding."""
        layout = placed_as(kind, self.mesh)
        if layout is None or self.oob is None or not jnp.issubdtype(layout.dtype, jnp.floating):
            return layout
        return layout.with_oob(self.oob)

    def run(self, linked: Linked, arrays: list[Any]) -> list[Any]:
        """Return the function's results; every value on the way is in the layout of its type."""
        names = [name for name, _ in linked.arguments]
        kinds = [kind for _, kind in linked.arguments]
        values = dict(zip(names, map(stored, arrays, kinds), strict=True))
        for step in linked.steps:
            operands = [values[name] for name in step.operands]
            made = self._made(step, operands)
            values |= zip(step.results, made, strict=True)
        return [values[name] for name in linked.returned]

    def run_entry(self, linked: Linked, arrays: list[Any]) -> list[Any]:
        """Return the results as the host reads them: 0 or 1 where they are truth values."""
        found = zip(self.run(linked, arrays), linked.results, linked.truths, strict=True)
        return [
            self._laid_out((x != 0).astype(x.dtype), kind) if is_truth else x
            for x, kind, is_truth in found
        ]

    def _made(self, step: Step, operands: list[Any]) -> list[Any]:
        match step.control:
            case Call(callee):
                return self.run(callee, operands)
            case Case(branches):
                which, *others = operands
                ways = [partial(self._branch, branch) for branch in branches]
                return lax.switch(self._number(which).astype(jnp.int32), ways, *others)
            case Loop():
                return self._looped(step.control, operands)
        assert step.run is not None
        if step.name not in SAME:
            operands = list(map(self._read, operands, step.inputs))
        made = map(stored, step.run(*operands), step.outputs)
        return list(map(self._laid_out, made, step.outputs))

    def _branch(self, branch: Linked, *operands: Any) -> list[Any]:
        return self.run(branch, list(operands))

    def _number(self, x: Any) -> Any:
        """Return a scalar that is the same on all chips."""
        return x[(0,) * len(self.mesh)]

    def _looped(self, loop: Loop, operands: list[Any]) -> list[Any]:
        """Return the parts of the state that a loop's body replaces, after its last call."""
        others = operands[loop.state :]

        def again(state: list[Any]) -> list[Any]:
            made = self.run(loop.body, [*state, *others])
            state = list(state)
            for place, value in zip(loop.places, made, strict=True):
                state[place] = value
            return state

        def goes_on(state: list[Any]) -> Any:
            assert isinstance(loop.times, Linked)
            return self._number(self.run(loop.times, [*state, *others])[0]) != 0

        first = operands[: loop.state]
        if isinstance(loop.times, Linked):
            last = lax.while_loop(goes_on, again, first)
        else:
            times = self._count(loop.times, operands)
            last = lax.fori_loop(0, times, lambda _, state: again(state), first)
        return [last[place] for place in loop.places]

    def _count(self, count: Count, operands: list[Any]) -> Any:
        """Return the trip count of a counted loop."""
        first, end, by = (self._bound(bound, operands) for bound in count)
        if isinstance(first, int) and isinstance(end, int):
            return len(range(first, end, by))
        return jnp.maximum(0, -((first - end) // by))

    def _bound(self, bound: Bound, operands: list[Any]) -> Any:
        if bound.operand is None:
            return bound.number
        return self._number(operands[bound.operand]).astype(jnp.int32)

    def _read(self, x: Any, kind: TensorType) -> Any:
        """Return an operand in L1: kernels stream data in DRAM through L1."""
        if kind.layout is None or kind.layout.buffer_type == "l1":
            return x
        layout = placed_as(kind_in_l1(kind), self.mesh)
        return x if layout is None else in_layout(x, layout)

    def _laid_out(self, x: Any, kind: TensorType) -> Any:
        layout = self.layout_of(kind)
        return x if layout is None else in_layout(x, layout)


def kind_in_l1(kind: TensorType) -> TensorType:
    """Return the same type in the cores' memory."""
    layout = kind.layout
    assert layout is not None
    there = TtnnLayout(
        *(layout.shape, layout.dtype, layout.grid, layout.tile, layout.memory_layout, "l1"),
        tile_format=layout.tile_format,
    )
    return TensorType(kind.shape, kind.dtype, there, kind.tile_format)
