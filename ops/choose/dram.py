"""`Dram`: the costs of values in the DRAM behind a chip's cores.

A node reads and writes them while it computes, so only what takes longer than computing counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division
from gridlayout.ops.choose.variables import Variable, Variables
from gridlayout.ops.choose.ways import Ways
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
                    seconds = streaming(self.variables.ways, node, choice, self.always)
                    more[k] += max(seconds - self._computed(node, choice), 0.0)
        return more

    def transfers(self) -> list[Fetch]:
        """Return the seconds by which transfers of what may be there take longer than computing.

        These are operands, and their next values, which are where the operands are.
        """
        own, found = self.variables, list[Fetch]()
        of = {v: v for v, places in enumerate(own.given) if any(p.in_dram for p in places)}
        for out, operand in zip(own.graph.outs, own.targets, strict=True):
            if out is not None and isinstance(operand, int) and operand in of:
                of.setdefault(out, operand)
        for n, node in enumerate(own.graph.nodes):
            own.each_step()
            at, values = own.variable(n), (*node.ins, *node.outs)
            for position, v in enumerate(values) if node.factors is not None else ():
                if v is None or v not in of or v in self.always or not own.graph.shapes[v]:
                    continue
                if position < len(node.ins):
                    needs = [
                        None if x is None else x.ins[position] for x in own.variables[at].choices
                    ]
                    moved = [0.0 if x is None else _reading(own.ways, v, x) for x in needs]
                else:
                    held = own.held(at, position - len(node.ins))
                    moved = [_writing(own.ways, v, x) for x in held]
                found += self._transfer(node, at, own.operand(of[v]), moved)
        return found

    def _transfer(
        self, node: Node, at: int, operand: int, seconds: Sequence[float]
    ) -> Iterator[Fetch]:
        """Yield what transfers of one run, by choice of the node, add if the operand is there."""
        own = self.variables.variables
        in_dram = np.array([place.in_dram for place in own[operand].choices])
        if any(seconds):
            more = []
            for choice, each in zip(own[at].choices, seconds, strict=True):
                others = streaming(self.variables.ways, node, choice, self.always)
                rest = others - self._computed(node, choice)
                more.append(max(rest + each * node.times, 0.0) - max(rest, 0.0) if each else 0.0)
            prices = np.where(in_dram[:, None], np.array(more)[None], 0.0)
            yield Fetch(operand, prices, ((at, np.arange(len(more))),))

    def _computed(self, node: Node, choice: Choice | None) -> float:
        """Return the seconds that all runs of a node compute, while DRAM is being read."""
        if choice is None or node.name == WITH_LAYOUT:
            return 0.0
        key = node.path, choice
        if key not in self._computing:
            self._computing[key] = self.variables.ways.computing(node, choice) * node.times
        return self._computing[key]


def streaming(ways: Ways, node: Node, choice: Choice | None, dram: Collection[int]) -> float:
    """Return the seconds that a node reads values from DRAM and writes them, over all its runs.

    choice: None where its rule has all of its operands on every core.
    """
    total = 0.0
    needs = [None] * len(node.ins) if choice is None else choice.ins
    for v, need in zip(node.ins, needs, strict=True):
        if v is not None and v in dram and (need is not None or choice is None):
            total += _reading(ways, v, need or ((),) * len(ways.graph.shapes[v]))
    for v in node.outs:
        rank = len(ways.graph.shapes[v])
        if v in dram and (choice is None or len(choice.out) == rank):
            total += _writing(ways, v, ((),) * rank if choice is None else choice.out)
    return total * node.times


def _reading(ways: Ways, value: int, need: Division) -> float:
    """Return the seconds to read a value from DRAM.

    Kernels read a block once, and multicast it to all cores that need it.
    """
    local = ways.nbytes(value, need)
    return ways.units.machine.streaming(local * _parts(ways, need), local)


def _writing(ways: Ways, value: int, held: Division) -> float:
    """Return the seconds to write a value to DRAM; cores with copies write a share each."""
    local, parts = ways.nbytes(value, held), _parts(ways, held)
    return ways.units.machine.writing(local * parts, local, parts)


def _parts(ways: Ways, division: Division) -> int:
    """Return the number of different parts on the cores of one chip."""
    cores = [u for u in range(len(ways.units.axes)) if u not in ways.units.chips]
    return ways.units.count(u for units in division for u in units if u in cores)
