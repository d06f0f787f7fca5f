"""`Graph`: a jaxpr with its calls inlined, as equations on numbered values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jax.extend import core

from gridlayout.ops.decisions.jaxprs import CALLS, called
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.plan.factors import Factors, factors_of
from gridlayout.ops.programs.row import PRODUCTS
from gridlayout.ops.rules.elementwise import ELEMENTWISE
from gridlayout.ops.rules.reductions import NEUTRAL
from gridlayout.ops.rules.table import flops

Shape = tuple[int, ...]
# What XLA makes where it is read, and what makes its operands as it reads them.
_FUSED = ELEMENTWISE | {"broadcast_in_dim", "reshape", "squeeze", "transpose", "slice", "copy"}
_TAKES_FUSED = _FUSED | NEUTRAL.keys()
# How many times as long as a cheap elementwise operation functions take, of each result, and
# reductions, of each operand: what JAX 0.12 takes on CPUs.
_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "erf", "erfc", "erf_inv"),
    *("pow", "sin", "cos", "tan", "atan2", "sinh", "cosh", "cbrt", "lgamma", "digamma"),
)
SLOW = dict.fromkeys((*_FUNCTIONS, *NEUTRAL), 2) | dict.fromkeys(("reduce_max", "reduce_min"), 4)
Path = tuple[int, ...]  # the number of an equation in its jaxpr, behind those of the calls it is in


@dataclass(frozen=True, eq=False)
class Node:
    """An equation: the values that it reads (None for numbers), and those that it makes."""

    eqn: Any
    path: Path
    ins: tuple[int | None, ...]
    outs: tuple[int, ...]
    factors: Factors | None
    flops: int

    @property
    def name(self) -> str:
        """The primitive's name."""
        return str(self.eqn.primitive.name)


@dataclass(eq=False)
class Graph:
    """Values by number, the operands' first; the nodes in order; the results."""

    shapes: list[Shape] = field(default_factory=list)
    itemsizes: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: set[int] = field(default_factory=set)
    outs: list[int | None] = field(default_factory=list)

    @classmethod
    def of(cls, closed: Any) -> Graph:
        """The graph of a closed jaxpr."""
        made = cls()
        operands = [made._new(var) for var in closed.jaxpr.invars]
        made.outs = made._inline(closed, operands, ())
        made.nodes = made._live()
        return made

    def _live(self) -> list[Node]:
        """The nodes that results depend on: no others are run."""
        read = {value for value in self.outs if value is not None}
        found = []
        for node in reversed(self.nodes):
            if read.intersection(node.outs) or node.eqn.effects:
                read |= {value for value in node.ins if value is not None}
                found.append(node)
        return found[::-1]

    @cached_property
    def kept(self) -> frozenset[int]:
        """The values that are written to memory: results, and what is not fused with its readers.

        Operands and constants are there already.
        """
        found = {value for value in self.outs if value is not None}
        for node in self.nodes:
            if node.name not in _TAKES_FUSED:
                found |= {value for value in node.ins if value is not None}
            if node.name not in _FUSED:
                found |= set(node.outs)
        made = {value for node in self.nodes for value in node.outs}
        return frozenset(found | set(range(len(self.shapes))) - made)

    @property
    def exact(self) -> set[int]:
        """Extents of factors that can be divided only evenly."""
        factors = [node.factors for node in self.nodes if node.factors is not None]
        return {each.sizes[f] for each in factors for f in each.exact if each.sizes[f] > 1}

    def _new(self, var: Any) -> int:
        aval = Aval.of(var.aval)
        self.shapes.append(aval.shape)
        self.itemsizes.append(int(getattr(aval.dtype, "itemsize", 8)))
        return len(self.shapes) - 1

    def _inline(self, closed: Any, values: Sequence[int | None], path: Path) -> list[int | None]:
        jaxpr, at = closed.jaxpr, dict(zip(closed.jaxpr.invars, values, strict=True))
        for var in jaxpr.constvars:
            at[var] = self._new(var)
            self.constants.add(at[var])

        def read(atom: Any) -> int | None:
            return None if isinstance(atom, core.Literal) else at[atom]

        for number, eqn in enumerate(jaxpr.eqns):
            here, ins = (*path, number), [read(atom) for atom in eqn.invars]
            if eqn.primitive.name in CALLS:
                outs: Sequence[int | None] = self._inline(called(eqn), ins, here)
            else:
                made = [self._new(var) for var in eqn.outvars]
                work = flops(Op.of(eqn)) if eqn.primitive.name in PRODUCTS else 0
                node = Node(eqn, here, tuple(ins), tuple(made), factors_of(eqn), work)
                self.nodes.append(node)
                outs = made
            at.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]
