"""`Requested`: the placements that the plan of a whole program requests of one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.specs import Sharded


@dataclass(frozen=True)
class Requested:
    """The requested specs of the operands and the result of an op.

    ins: of each operand; None leaves it in its layout. made: of the result's partial sums. out: of
    the result after they are summed. Both are `Sharded`, or None for a number. summed: the mesh
    axes that hold partial sums. scattered: whether the sums are reduce-scattered along these axes,
    else they are all-reduced.
    rounds: the most rounds of a product, whose messages run beside multiplications. apart: the
    operands that nothing else reads in these specs: a product gathers them in these rounds, and a
    transpose turns their parts before they are moved.
    """

    ins: tuple[Sharded | None, ...]
    made: Any
    out: Any
    summed: Axes = ()
    scattered: bool = False
    rounds: int = 1
    apart: tuple[int, ...] = ()

    @property
    def note(self) -> str:
        """The name in reports of a product that is computed this way."""
        if not self.summed:
            return "divided"
        return "divided, reduce-scattered" if self.scattered else "divided, all-reduced"


@dataclass(frozen=True)
class RequestedLoop:
    """The requested specs of a loop's values, and the choices for its body.

    carry: of the carried values. slices: of one iteration's slices of the scanned operands.
    constants: of values that do not change in the loop, as its body reads them. None leaves the
    placement to the rule. chosen: the choices for the body's equations.
    """

    carry: tuple[Sharded | None, ...]
    slices: tuple[Sharded | None, ...]
    constants: tuple[Sharded | None, ...]
    chosen: Any
