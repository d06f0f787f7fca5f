"""`Graph`: a jaxpr with its calls inlined, as nodes on numbered values.

It is made once from a jaxpr. The planner, choices, reports and keys read it; none of them goes
through equations. Bodies of loops can be inlined too. Then a `carry` node holds each loop-carried
value, a `slice of a scan` node takes a row of a scanned array, and a `stack of a scan` node stacks
rows of a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from jax.extend import core

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.ops.decisions.factors import Factors
from gridlayout.ops.decisions.jaxprs import called, equations, is_call, keeps_apart, scan_parts
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.stated import (
    is_of_types,
    stated_by,
    stating_operands,
    stating_results,
)
from gridlayout.ops.graph.kernels import Kernels
from gridlayout.ops.graph.node import BARRIER, CARRY, SLICE, STACK, Atom, Call, Node, Path
from gridlayout.ops.graph.once import once
from gridlayout.ops.graph.shared_views import Views
from gridlayout.ops.graph.simplified import Simplified
from gridlayout.ops.primitives.user_rules import is_user_rule
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS


@dataclass(eq=False)
class Graph:
    """The values by number, operands first; the nodes in order; the results.

    closed: the jaxpr. constants: the values of its constants, and of those of called functions.
    calls: the number of named calls. trips: the assumed trip count of loops of unknown length; None
    where bodies of loops are not inlined. loops: how often the bodies of inlined loops run, by the
    loop's path, outer loops first. kept: results of functions of this graph (`once`).
    """

    closed: Any = field(repr=False)
    trips: int | None = None
    operands: int = 0
    shapes: list[Shape] = field(default_factory=list)
    dtypes: list[Any] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[int, Any] = field(default_factory=dict)
    results: list[Atom] = field(default_factory=list)
    calls: int = 0
    loops: dict[Path, float] = field(default_factory=dict)
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, closed: Any, trips: int | None = None) -> Graph:
        """Return the graph of a closed jaxpr; trips: as in the class."""
        made = cls(closed, trips, len(closed.jaxpr.invars))
        operands = [made._new(var) for var in closed.jaxpr.invars]
        made.results = made._inline(closed, operands, (), Call())
        simple = Simplified(made.nodes, made.results, made.body)
        made.results = simple.results
        made.nodes = Views(simple.nodes, made.results, made.shapes, made.dtypes).replaced(made.body)
        if trips is not None:
            made.nodes = made._live()
        return made

    @once
    def inlined(self, trips: int) -> Graph:
        """Return the graph of what runs, with bodies of loops inlined; trips: as in the class."""
        if any(node.label == BARRIER or node.name in ("scan", "while") for node in self.nodes):
            return Graph.of(self.closed, trips)
        return replace(self, trips=trips, nodes=self._live())

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
    def is_large(self) -> bool:
        """Whether equal nodes share one choice, of which fewer are considered."""
        return len(self.nodes) > LIMITS.separate_equations

    @property
    def equations(self) -> Iterator[Any]:
        """The equations, those in the bodies of loops and in branches too."""
        return (each for node in self.nodes if node.eqn is not None for each in equations(node.eqn))

    # -- values ------------------------------------------------------------------------------------

    @cached_property
    def outs(self) -> list[int | None]:
        """The results by their numbers, None for literals."""
        return [atom if isinstance(atom, int) else None for atom in self.results]

    @cached_property
    def makers(self) -> dict[int, Node]:
        """The node that makes each value; operands and constants have none."""
        return {v: node for node in self.nodes for v in node.outs}

    @cached_property
    def readers(self) -> list[list[Node]]:
        """For each value the nodes that read it, in order, each once."""
        found: list[list[Node]] = [[] for _ in self.shapes]
        for node in self.nodes:
            for v in {*node.ins}:
                if v is not None:
                    found[v].append(node)
        return found

    def body(self, path: Path) -> Path:
        """Return the path of the innermost inlined loop around a node; () if there is none."""
        inside = (path[:n] for n in range(len(path) - 1, 0, -1)) if self.loops else ()
        return next((each for each in inside if each in self.loops), ())

    @cached_property
    def free(self) -> dict[int, Node]:
        """The values that depend on positions and single numbers alone, with their nodes.

        A device computes its part of them without operands, wherever they are read.
        """
        found: dict[int, Node] = {}
        for node in self.nodes:
            can = node.members or node.record.is_elementwise or node.record.is_made_in_place
            if not can or node.factors is None or len(node.outs) != 1:
                continue
            if all(v is None or v in found or not self.shapes[v] for v in node.ins):
                found[node.outs[0]] = node
        return found

    def width(self, value: int) -> int:
        """Return the bits of an element of a value."""
        return dtypes.bits(self.dtypes[value])

    def first_dtype(self, node: Node) -> Any:
        """Return the element type of a node's first operand; None if that is no array."""
        return self.dtypes[node.ins[0]] if node.ins and node.ins[0] is not None else None

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels of the nodes that run, or of the members of chains."""
        nodes = [each for node in self._live() for each in node.members or (node,)]
        return Kernels(nodes, self.outs, self.shapes, self.followers, self.body)

    def nbytes(self, value: int, shape: Shape | None = None) -> int:
        """Return the bytes of a value, or of a part of it of another shape."""
        return dtypes.nbytes(self.shapes[value] if shape is None else shape, self.dtypes[value])

    # -- products and requests ---------------------------------------------------------------------

    def has_choice(self, device: DeviceGrid) -> bool:
        """Return whether there is a product for whose result the program states no placement."""
        products = [node for node in self.nodes if node.flops]
        readers = (self.readers[node.outs[0]] for node in products)
        return any(all(each.placed(device) is None for each in some) for some in readers)

    @property
    def products(self) -> float:
        """The number of products that run; those of loops, once per iteration."""
        return sum(node.times for node in self.nodes if node.flops)

    @cached_property
    def folded(self) -> dict[int, Node]:
        """The products whose only consumer is a transpose: that node, by the product's value.

        The backward pass of every product has these; the product is then made transposed.
        """
        found = {}
        for node in self.nodes:
            if node.name != "dot_general" or node.outs[0] in self.outs:
                continue
            readers = self.readers[node.outs[0]]
            is_users = any(map(is_user_rule, node.record.rules))
            if [each.name for each in readers] == ["transpose"] and not is_users:
                found[node.outs[0]] = readers[0]
        return found

    @cached_property
    def followers(self) -> frozenset[int]:
        """The results of the transposes that products are made with."""
        return frozenset(node.outs[0] for node in self.folded.values())

    def permutation(self, value: int) -> tuple[int, ...] | None:
        """Return the order of the dims in which a product is made; None for its own order."""
        follower = self.folded.get(value)
        return None if follower is None else tuple(follower.params["permutation"])

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

    def stated(self, device: DeviceGrid) -> list[Sharded]:
        """Return the specs that the program states for values, in bodies and branches too."""
        found = (stated_by(eqn, device) for eqn in self.equations)
        return [spec for spec in found if spec is not None]

    @property
    def exact(self) -> set[int]:
        """The extents of factors that can be divided only evenly."""
        factors = [node.factors for node in self.nodes if node.factors is not None]
        return {each.sizes[f] for each in factors for f in each.exact if each.sizes[f] > 1}

    # -- making it ---------------------------------------------------------------------------------

    def _new(self, var: Any) -> int:
        # Jaxprs that are parameters, such as those of kernels of Pallas, may have references.
        self.shapes.append(tuple(var.aval.shape))
        self.dtypes.append(var.aval.dtype)
        return len(self.shapes) - 1

    def _inline(
        self, closed: Any, values: Sequence[Atom], path: Path, call: Call, times: float = 1
    ) -> list[Atom]:
        jaxpr = closed.jaxpr
        at: dict[Any, Atom] = dict(zip(jaxpr.invars, values, strict=True))
        for var, constant in zip(jaxpr.constvars, closed.consts, strict=True):
            number = at[var] = self._new(var)
            self.constants[number] = constant

        def read(atom: Any) -> Atom:
            return atom if isinstance(atom, core.Literal) else at[atom]

        for number, eqn in enumerate(jaxpr.eqns):
            here, ins = (*path, number), [read(atom) for atom in eqn.invars]
            name = eqn.primitive.name
            outs: Sequence[Atom]
            if is_of_types(eqn):
                outs = ins
            elif is_call(eqn):
                inner, own = called(eqn)
                ins = self._stated(ins, stating_operands(eqn), (*here, -2), call, times)
                outs = self._called(eqn, inner, [ins[k] for k in own], here, call, times)
            elif self.trips is not None and name == "scan":
                outs = self._scan(eqn, ins, here, call, times)
            elif self.trips is not None and name == "while":
                first = eqn.params["cond_nconsts"]
                count = first + eqn.params["body_nconsts"]
                loop = _Loop(eqn, here, call, times, self.trips)
                outs = self._loop(loop, eqn.params["body_jaxpr"], ins[first:count], ins[count:], [])
            else:
                made = [self._new(var) for var in eqn.outvars]
                self.nodes.append(Node(eqn, here, tuple(ins), tuple(made), call, times))
                outs = made
            outs = self._stated(outs, stating_results(eqn), (*here, -1), call, times)
            at.update(zip(eqn.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _stated(
        self, atoms: Sequence[Atom], stating: Sequence[Any], path: Path, call: Call, times: float
    ) -> list[Atom]:
        """Return values in the shardings that are stated for them, by equations or None."""
        found = list(atoms)
        for k, (atom, eqn) in enumerate(zip(atoms, stating, strict=False)):
            if eqn is not None and isinstance(atom, int):
                found[k] = made = self._new(eqn.outvars[0])
                self.nodes.append(Node(eqn, (*path, k), (atom,), (made,), call, times))
        return found

    def _called(
        self, eqn: Any, inner: Any, ins: list[Atom], path: Path, call: Call, times: float
    ) -> list[Atom]:
        if self.trips is None and keeps_apart(eqn):
            ins = self._behind_barrier(eqn, ins, path, call)
        name = str(eqn.params.get("name", ""))
        self.calls += bool(name)
        return self._inline(inner, ins, path, call.around(eqn, name, self.calls), times)

    def _behind_barrier(self, eqn: Any, ins: list[Atom], path: Path, call: Call) -> list[Atom]:
        """Return a rematerialized function's operands, as other values than the forward pass's."""
        own = [k for k, atom in enumerate(ins) if isinstance(atom, int)]
        made = {k: self._new(eqn.invars[k]) for k in own}
        atoms, outs = tuple(ins[k] for k in own), tuple(made.values())
        self.nodes.append(Node(None, path, atoms, outs, call, label=BARRIER))
        return [made.get(k, atom) for k, atom in enumerate(ins)]

    # -- loops -------------------------------------------------------------------------------------

    def _scan(
        self, eqn: Any, ins: Sequence[Atom], path: Path, call: Call, times: float
    ) -> list[Atom]:
        first, second = scan_parts(eqn.params)
        body = eqn.params["jaxpr"]
        loop = _Loop(eqn, path, call, times, eqn.params["length"])
        slices: list[Atom] = []
        for k, atom in enumerate(ins[second:]):
            var = body.jaxpr.invars[second + k]
            slices.append(self._row(atom, var, loop, k) if isinstance(atom, int) else atom)
        return self._loop(loop, body, ins[:first], ins[first:second], slices)

    def _loop(
        self,
        loop: _Loop,
        body: Any,
        consts: Sequence[Atom],
        carry: Sequence[Atom],
        slices: Sequence[Atom],
    ) -> list[Atom]:
        """Inline a loop's body and its carries; for a scan, also its stacked results."""
        rounds, carries, at = loop.times * loop.length, [], {}
        self.loops[loop.path] = rounds
        for k, atom in enumerate(carry):
            var = body.jaxpr.invars[len(consts) + k]
            carries.append(self._new(var))
            own = tuple(d if n > 1 else None for d, n in enumerate(self.shapes[carries[-1]]))
            factors = Factors((own, own), (own,), self.shapes[carries[-1]])
            at[k] = len(self.nodes)
            node = loop.node(-1 - k, (atom, atom), carries[-1], CARRY, factors, rounds)
            self.nodes.append(replace(node, length=loop.length))
        inside = loop.call.around(loop.eqn)
        found = self._inline(body, [*consts, *carries, *slices], loop.path, inside, rounds)
        for k, place in at.items():
            node = self.nodes[place]
            self.nodes[place] = replace(node, atoms=(node.atoms[0], found[k]))
        outs: list[Atom] = list(carries)
        for k, atom in enumerate(found[len(carry) :]):
            made = self._new(loop.eqn.outvars[len(carry) + k])
            own = tuple(d if n > 1 else None for d, n in enumerate(self.shapes[made][1:]))
            factors = Factors((own,), ((None, *own),), self.shapes[made][1:])
            number = -1 - len(carry) - len(slices) - k
            if isinstance(atom, int):
                self.nodes.append(loop.node(number, (atom,), made, STACK, factors, rounds))
            outs.append(made)
        return outs

    def _row(self, value: int, var: Any, loop: _Loop, k: int) -> int:
        """Return a row of a scanned array, whose first dim is not divided."""
        made = self._new(var)
        shape = self.shapes[made]
        own = tuple(d if n > 1 else None for d, n in enumerate(shape))
        factors = Factors(((None, *own),), (own,), shape)
        node = loop.node(-1 - k, (value,), made, SLICE, factors, loop.times)
        self.nodes.append(replace(node, path=(*node.path, -1)))
        return made


@dataclass(frozen=True)
class _Loop:
    """A loop that is inlined: its equation, and how often it starts and repeats."""

    eqn: Any
    path: Path
    call: Call
    times: float
    length: int

    def node(
        self,
        number: int,
        atoms: tuple[Atom, ...],
        made: int,
        label: str,
        factors: Factors,
        times: float,
    ) -> Node:
        """Return a node of the loop that is no equation; number: the last one of its path."""
        path = (*self.path, number)
        return Node(None, path, atoms, (made,), self.call, times, label, stated=factors)
