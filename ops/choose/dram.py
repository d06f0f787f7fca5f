"""`Dram`: the costs of values in the DRAM behind a chip's cores.

A node reads and writes them while it computes, so only what takes longer than computing counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.variables import Variable, Variables
from gridlayout.ops.decisions.stated import WITH_LAYOUT
from gridlayout.ops.graph.node import Node
from gridlayout.ops.solver.problem import Fetch


@dataclass(eq=False)
class Dram:
    """The costs of DRAM for some variables; made: the values that nodes leave there."""

    variables: Variables
    made: frozenset[int]
    _computing: dict[Any, float] = field(default_factory=dict)

    @cached_property
    def always(self) -> frozenset[int]:
        """The values that are in DRAM for every choice: those of `made`, and some operands.

        The times of their transfers add up.
        """
        given = enumerate(self.variables.given)
        only = (k for k, places in given if places and all(p.in_dram for p in places))
        return self.made | frozenset(only)

    def seconds(self, variable: Variable) -> NDArray[np.float64]:
        """Return the seconds that reading and writing DRAM adds to each choice of a variable."""
        more = np.zeros(len(variable.choices))
        for n in variable.members:
            node = self.variables.graph.nodes[n]
            if not self.always.intersection((*(v for v in node.ins if v is not None), *node.outs)):
                continue
            for k, choice in enumerate(variable.choices):
                if choice is not None:
                    seconds = self.variables.ways.streaming(node, choice, self.always)
                    more[k] += max(seconds - self._computed(node, choice), 0.0)
        return more

    def reads(self) -> list[Fetch]:
        """Return the seconds by which reading operands from DRAM takes longer than computing."""
        own, found = self.variables, []
        for n, node in enumerate(own.graph.nodes):
            own.each_step()
            for position, v in enumerate(node.ins):
                if v is None or v >= len(own.given) or node.factors is None or v in self.always:
                    continue
                at, consumer = own.operand(v), own.variable(n)
                in_dram = np.array([place.in_dram for place in own.variables[at].choices])
                if not in_dram.any() or not own.graph.shapes[v]:
                    continue
                more = []
                for choice in own.variables[consumer].choices:
                    need = None if choice is None else choice.ins[position]
                    read = 0.0 if need is None else own.ways.reading(v, need) * node.times
                    more.append(max(read - self._computed(node, choice), 0.0) if read else 0.0)
                prices = np.where(in_dram[:, None], np.array(more)[None], 0.0)
                found.append(Fetch(at, prices, ((consumer, np.arange(len(more))),)))
        return found

    def _computed(self, node: Node, choice: Choice | None) -> float:
        """Return the seconds that all runs of a node compute, while DRAM is being read."""
        if choice is None or node.name == WITH_LAYOUT:
            return 0.0
        key = node.path, choice
        if key not in self._computing:
            self._computing[key] = self.variables.ways.computing(node, choice) * node.times
        return self._computing[key]
