"""`Graph`: a jaxpr with its calls inlined, as nodes on numbered values.

Bodies of loops can be inlined too. Then a `carry` node holds each loop-carried value, a `slice of a
scan` node takes a row of a scanned array, and a `stack of a scan` node stacks rows of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from jax.extend import core

from gridlayout import dtypes
from gridlayout.ops.decisions.factors import Factors
from gridlayout.ops.decisions.flops import transposed
from gridlayout.ops.decisions.jaxprs import CALLS, called, scan_parts
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import PLAIN, Record
from gridlayout.ops.primitives.table import factors_of, flops, record_of

Shape = tuple[int, ...]
Path = tuple[int, ...]  # an equation's number in its jaxpr, after the numbers of enclosing calls


WITH_LAYOUT = "with_layout"
CARRY, SLICE, STACK = "carry", "slice of a scan", "stack of a scan"


@dataclass(frozen=True, eq=False)
class Node:
    """An equation, with the values that it reads (None for literals) and those that it makes.

    times: how often it runs, in loops. A `carry` reads its second operand that often, and its first
    one only when the loop starts. length: the loop's trip count, for a `carry`. eqn: None for nodes
    that are no equation. members: the nodes of a chain (`chains.py`).
    """

    eqn: Any
    path: Path
    ins: tuple[int | None, ...]
    outs: tuple[int, ...]
    factors: Factors | None
    flops: int
    times: float = 1
    label: str = ""
    length: float = 1
    members: tuple[Node, ...] = ()

    @property
    def starts(self) -> float:
        """How often it reads its first operand."""
        return self.times / self.length

    @cached_property
    def transposed(self) -> tuple[int, ...]:
        """When a kernel transposes each operand of a product first; see `flops.transposed`."""
        if self.eqn is None or self.name != "dot_general":
            return (0,) * len(self.ins)
        return transposed(Op.of(self.eqn))

    def width(self, graph: Graph) -> int:
        """Return the bits of an element of its first operand."""
        return graph.width(self.ins[0]) if self.ins and self.ins[0] is not None else 32

    @property
    def name(self) -> str:
        """The primitive's name, or the label of a loop's node."""
        return self.label or str(self.eqn.primitive.name)

    @cached_property
    def record(self) -> Record:
        """The record of its primitive."""
        return PLAIN if self.label else record_of(self.name)


@dataclass(eq=False)
class Graph:
    """The values by number, operands first; the nodes in order; the results.

    trips: the assumed trip count of loops of unknown length; None where bodies of loops are not
    inlined. loops: the paths of loops whose bodies are inlined, outer loops first.
    """

    shapes: list[Shape] = field(default_factory=list)
    dtypes: list[Any] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: set[int] = field(default_factory=set)
    outs: list[int | None] = field(default_factory=list)
    trips: int | None = None
    loops: list[Path] = field(default_factory=list)

    @classmethod
    def of(cls, closed: Any, trips: int | None = None) -> Graph:
        """Return the graph of a closed jaxpr; trips: as in the class."""
        made = cls(trips=trips)
        operands = [made._new(var) for var in closed.jaxpr.invars]
        made.outs = made._inline(closed, operands, ())
        made.nodes = made._live()
        return made

    def _live(self) -> list[Node]:
        """Return the nodes that results depend on or that have effects; no others run."""
        read = {value for value in self.outs if value is not None}
        found = []
        # The next value of a carry is read when the next iteration starts.
        read |= {
            v for node in self.nodes if node.label == CARRY for v in node.ins[1:] if v is not None
        }
        for node in reversed(self.nodes):
            if read.intersection(node.outs) or (node.eqn is not None and node.eqn.effects):
                read |= {value for value in node.ins if value is not None}
                found.append(node)
        return found[::-1]

    @property
    def has_choice(self) -> bool:
        """Whether there is a product whose result is not read by a `with_layout`."""
        stated = {v for node in self.nodes if node.name == WITH_LAYOUT for v in node.ins}
        return any(node.flops and node.outs[0] not in stated for node in self.nodes)

    @property
    def products(self) -> float:
        """The number of products that run; those of loops, once per iteration."""
        return sum(node.times for node in self.nodes if node.flops)

    @cached_property
    def folded(self) -> dict[int, tuple[int, ...]]:
        """The products whose only consumer is a transpose: its permutation, by the product's value.

        The product is then made transposed.
        """
        consumers: dict[int, list[Node]] = {v: [] for v in range(len(self.shapes))}
        for node in self.nodes:
            for v in {*node.ins}:
                if v is not None:
                    consumers[v].append(node)
        return {
            v: consumers[v][0].eqn.params["permutation"]
            for v in (node.outs[0] for node in self.nodes if node.name == "dot_general")
            if [node.name for node in consumers[v]] == ["transpose"] and v not in self.outs
        }

    @property
    def average_product(self) -> tuple[float, float]:
        """The average operations, and bytes of operands and result, of the products that run."""
        products = [node for node in self.nodes if node.flops]
        count = max(sum(node.times for node in products), 1)
        flops = sum(node.times * node.flops for node in products)
        nbytes = sum(
            node.times * self.nbytes(v)
            for node in products
            for v in (*node.ins, *node.outs)
            if v is not None
        )
        return flops / count, nbytes / count

    @property
    def stated(self) -> list[Any]:
        """The layouts that the program requests by `with_layout`."""
        return [node.eqn.params["layout"] for node in self.nodes if node.name == WITH_LAYOUT]

    @property
    def exact(self) -> set[int]:
        """The extents of factors that can be divided only evenly."""
        factors = [node.factors for node in self.nodes if node.factors is not None]
        return {each.sizes[f] for each in factors for f in each.exact if each.sizes[f] > 1}

    def width(self, value: int) -> int:
        """Return the bits of an element of a value."""
        return dtypes.bits(self.dtypes[value])

    def nbytes(self, value: int, shape: Shape | None = None) -> int:
        """Return the bytes of a value, or of a part of it of another shape."""
        return dtypes.nbytes(self.shapes[value] if shape is None else shape, self.dtypes[value])

    def _new(self, var: Any) -> int:
        aval = Aval.of(var.aval)
        self.shapes.append(aval.shape)
        self.dtypes.append(aval.dtype)
        return len(self.shapes) - 1

    def _inline(
        self, closed: Any, values: Sequence[int | None], path: Path, times: float = 1
    ) -> list[int | None]:
        jaxpr, at = closed.jaxpr, dict(zip(closed.jaxpr.invars, values, strict=True))
        for var in jaxpr.constvars:
            at[var] = self._new(var)
            self.constants.add(at[var])

        def read(atom: Any) -> int | None:
            return None if isinstance(atom, core.Literal) else at[atom]

        for number, eqn in enumerate(jaxpr.eqns):
            here, ins = (*path, number), [read(atom) for atom in eqn.invars]
            name = eqn.primitive.name
            if name in CALLS:
                outs: Sequence[int | None] = self._inline(called(eqn), ins, here, times)
            elif self.trips is not None and name == "scan":
                outs = self._scan(eqn, ins, here, times)
            elif self.trips is not None and name == "while":
                first = eqn.params["cond_nconsts"]
                count = first + eqn.params["body_nconsts"]
                body, length = eqn.params["body_jaxpr"], self.trips
                self.loops.append(here)
                outs = self._loop(body, ins[first:count], ins[count:], [], here, times, length)
            else:
                made = [self._new(var) for var in eqn.outvars]
                work = flops(Op.of(eqn)) if record_of(name).multiplies else 0
                factors = factors_of(eqn)
                if not ins or (factors is not None and not _is_planned(name, factors, self.trips)):
                    factors = None  # its rule decides how to run it
                node = Node(eqn, here, tuple(ins), tuple(made), factors, work, times)
                self.nodes.append(node)
                outs = made
            at.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    # -- loops -------------------------------------------------------------------------------------

    def _scan(
        self, eqn: Any, ins: Sequence[int | None], path: Path, times: float
    ) -> list[int | None]:
        first, second = scan_parts(eqn.params)
        self.loops.append(path)
        body, length = eqn.params["jaxpr"], eqn.params["length"]
        slices: list[int | None] = []
        for k, value in enumerate(ins[second:]):
            var = body.jaxpr.invars[second + k]
            slices.append(None if value is None else self._rows(value, var, path, k, times))
        return self._loop(body, ins[:first], ins[first:second], slices, path, times, length, eqn)

    def _loop(
        self,
        body: Any,
        consts: Sequence[int | None],
        carry: Sequence[int | None],
        slices: Sequence[int | None],
        path: Path,
        times: float,
        length: int,
        eqn: Any = None,
    ) -> list[int | None]:
        """Inline a loop's body and its carries; for a scan, `eqn`, also its stacked results."""
        rounds, carries, at = times * length, [], {}
        for k, value in enumerate(carry):
            var = body.jaxpr.invars[len(consts) + k]
            carries.append(self._new(var))
            own = tuple(d if n > 1 else None for d, n in enumerate(self.shapes[carries[-1]]))
            factors = Factors((own, own), (own,), self.shapes[carries[-1]])
            at[k] = len(self.nodes)
            there = (*path, -1 - k)
            self.nodes.append(
                Node(None, there, (value, None), (carries[-1],), factors, 0, rounds, CARRY, length)
            )
        found = self._inline(body, [*consts, *carries, *slices], path, rounds)
        for k, place in at.items():
            node = self.nodes[place]
            self.nodes[place] = replace(node, ins=(node.ins[0], found[k]))
        outs: list[int | None] = list(carries)
        for k, value in enumerate(found[len(carry) :]):
            assert eqn is not None
            made = self._new(eqn.outvars[len(carry) + k])
            own = tuple(d if n > 1 else None for d, n in enumerate(self.shapes[made][1:]))
            factors = Factors((own,), ((None, *own),), self.shapes[made][1:])
            there = (*path, -1 - len(carry) - len(slices) - k)
            if value is not None:
                self.nodes.append(Node(None, there, (value,), (made,), factors, 0, rounds, STACK))
            outs.append(made)
        return outs

    def _rows(self, value: int, var: Any, path: Path, k: int, times: float) -> int:
        """Return a row of a scanned array, whose first dim is not divided."""
        made = self._new(var)
        shape = self.shapes[made]
        own = tuple(d if n > 1 else None for d, n in enumerate(shape))
        factors = Factors(((None, *own),), (own,), shape)
        there = (*path, -1 - k, -1)
        self.nodes.append(Node(None, there, (value,), (made,), factors, 0, times, SLICE))
        return made


def _is_planned(name: str, factors: Factors, trips: int | None) -> bool:
    """Return whether a plan may divide an equation, and its results alike."""
    if name == WITH_LAYOUT:
        return trips is not None
    return bool(factors.divisible) and factors.has_equal_results
