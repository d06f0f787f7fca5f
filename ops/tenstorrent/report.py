"""`ProgramReport`: what a compiled program does: its own ops, and the primitives that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax

from gridlayout.arguments import Shape
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.programs.report import Report
from gridlayout.ops.tenstorrent.linking import Linked, Step, called_by
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


@dataclass(frozen=True)
class Operation:
    """One op of a compiled program: its line, operands and results by name, layouts, hints.

    function: the function that contains it. hints: the attributes that change no value, such as
    program configs, as text. A layout is None where the type states none. traced: returns the
    jaxpr of its computation; None where it calls functions, whose ops precede it. facts: values of
    attributes, such as `flips`: whether a product's operands are transposed.
    """

    function: str
    line: int
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[TtnnLayout | None, ...]
    outputs: tuple[TtnnLayout | None, ...]
    hints: dict[str, str]
    traced: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        made = ", ".join(map(_described, self.results, self.outputs))
        hints = f"  hints: {', '.join(self.hints)}" if self.hints else ""
        return f"{self.line:>5}  {made} = {self.name}({', '.join(self.operands)}){hints}"


def _described(name: str, layout: TtnnLayout | None) -> str:
    if layout is None:
        return name
    dims, cores = dims_text(layout.shape), dims_text(layout.grid)
    return f"{name}[{dims}] {layout.buffer_type} {layout.memory_layout} {cores}"


def operations_of(linked: Linked, mesh: Shape = ()) -> list[Operation]:
    """Return a function's ops in order; the ops of functions it calls precede the call.

    mesh: for several chips, the leading dims of arrays of all chips' tensors.
    """
    found = []
    for step in linked.steps:
        for callee in called_by(step):
            found += operations_of(callee, mesh)
        found.append(
            Operation(
                *(linked.name, step.line, step.name, step.operands, step.results),
                tuple(kind.layout for kind in step.inputs),
                tuple(kind.layout for kind in step.outputs),
                step.hints,
                None if step.run is None else partial(_traced, step, mesh),
                step.facts,
            )
        )
    return found


def _traced(step: Step, mesh: Shape) -> Any:
    """Return the jaxpr of an op's computation, without the rounding to block formats."""
    run = step.run
    assert run is not None
    arrays = [jax.ShapeDtypeStruct((*mesh, *x.shape), x.dtype) for x in step.inputs]

    def computed(*arrays: Any) -> list[Any]:
        return [x.astype(out.dtype) for x, out in zip(run(*arrays), step.outputs, strict=True)]

    return jax.make_jaxpr(computed)(*arrays)


@dataclass(frozen=True)
class ProgramReport(Report):
    """A `gl.results.Report` of a compiled program; `operations` are its ops, one row each.

    The rows of `Report` are the primitives that run. Those of `operations` show what the compiler
    wrote: the line, the op, the layouts, and its hints to the chip.
    """

    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.operations), "", super().__str__()])
