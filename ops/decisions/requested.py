"""`Requested`: the placements that a whole program requests of one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.ops.decisions.specs import Sharded

Axes = tuple[str, ...]
# Ops whose rules take blocks, as they are requested, and place their operands so.
OF_BLOCKS = ("dot_general", "conv_general_dilated", "gather", "scatter-add")


@dataclass(frozen=True)
class Requested:
    """Where the operands and the result of an op are placed.

    ins: of each operand, None where it stays as it is. made: of the result before partial sums are
    added up, out: after that. summed: the mesh axes of partial sums; scattered: whether each device
    keeps its part of the sums, else all along these axes have them; joined: whether it is so with
    other such sums at once, also where copying them side by side takes longer.
    """

    ins: tuple[Sharded | None, ...]
    made: Sharded
    out: Sharded
    summed: Axes = ()
    scattered: bool = False
    joined: bool = False

    @property
    def note(self) -> str:
        """What a product by it is called in reports."""
        if not self.summed:
            return "divided"
        return "divided, reduce-scattered" if self.scattered else "divided, all-reduced"


@dataclass(frozen=True)
class RequestedLoop:
    """Where a program requests what goes round a loop, and how its body runs.

    carry, slices: the placements of what goes round, and of the rows of what a scan takes apart;
    None where they are left to the rule. chosen: the choices for the body's equations.
    """

    carry: tuple[Sharded | None, ...]
    slices: tuple[Sharded | None, ...]
    chosen: Any
