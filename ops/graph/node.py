"""`Node`: an equation of a program, or a step of a loop, on numbered values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jax.extend import core

from gridlayout.ops.decisions.factors import Dims, Factors
from gridlayout.ops.decisions.flops import transposed
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import PLAIN, Record
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.stated import WITH_LAYOUT, constraint, stated_by
from gridlayout.ops.primitives.table import factors_of, flops, record_of
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.stated_axes import StatedAxes

Path = tuple[int, ...]  # an equation's number in its jaxpr, after the numbers of enclosing calls
Atom = int | core.Literal  # a value by its number, or a literal


CARRY, SLICE, STACK = "carry", "slice of a scan", "stack of a scan"
BARRIER = "barrier"  # what rematerialization reads, kept apart from the forward pass's values


@dataclass(frozen=True)
class Call:
    """A call that encloses equations.

    scope: the names of its `jax.named_scope`s. functions: the names and numbers of the functions
    that are called, outer ones first.
    """

    scope: str = ""
    functions: tuple[tuple[str, int], ...] = ()

    def around(self, eqn: Any, name: str = "", number: int = 0) -> Call:
        """Return this call with an equation's own scopes; name, number: of what that calls."""
        functions = (*self.functions, (name, number)) if name else self.functions
        return Call(_joined(self.scope, str(eqn.source_info.name_stack)), functions)

    def inside(self, outer: Call, first: int) -> Call:
        """Return this call inside of another one, its functions numbered from `first` on."""
        own = ((name, first + number) for name, number in self.functions)
        return Call(_joined(outer.scope, self.scope), (*outer.functions, *own))


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


@dataclass(frozen=True, eq=False)
class Node:
    """An equation, with the atoms that it reads and the values that it makes.

    times: how often it runs, in loops. A `carry` reads its second operand that often, and its first
    one only when the loop starts. length: the loop's trip count, for a `carry`. eqn: None for nodes
    that are no equation. stated: the factors of a loop's node or a chain. members: the nodes of a
    chain (`chains.py`).
    """

    eqn: Any
    path: Path
    atoms: tuple[Atom, ...]
    outs: tuple[int, ...]
    call: Call = Call()
    times: float = 1
    label: str = ""
    length: float = 1
    stated: Factors | None = None
    members: tuple[Node, ...] = ()

    @cached_property
    def ins(self) -> tuple[int | None, ...]:
        """The values that it reads, None for literals."""
        return tuple(atom if isinstance(atom, int) else None for atom in self.atoms)

    @property
    def equations(self) -> tuple[Node, ...]:
        """The members of a chain; any other node itself."""
        return self.members or (self,)

    @property
    def starts(self) -> float:
        """How often it reads its first operand."""
        return self.times / self.length

    @property
    def name(self) -> str:
        """The primitive's name, or the label of a node that is no equation."""
        return self.label or str(self.eqn.primitive.name)

    @property
    def params(self) -> Any:
        """The parameters of its equation."""
        return {} if self.eqn is None else self.eqn.params

    @cached_property
    def op(self) -> Op:
        """Its equation as an op."""
        return Op.of(self.eqn)

    @cached_property
    def record(self) -> Record:
        """The record of its primitive."""
        return PLAIN if self.label else record_of(self.name)

    @cached_property
    def factors(self) -> Factors | None:
        """Its factors; None where its rule decides how to run it, whatever the operands."""
        if self.label:
            return self.stated
        found = factors_of(self.eqn)
        if found is None or self.name == WITH_LAYOUT:
            return found
        return found if found.divisible and found.has_equal_results else None

    @cached_property
    def result_dims(self) -> list[Dims]:
        """For each dim of each operand, the dim of the result that has its factor, or None."""
        assert self.factors is not None
        place = {f: d for d, f in enumerate(self.factors.outs[0]) if f is not None}
        ins = self.factors.ins
        return [tuple(None if f is None else place.get(f) for f in dims) for dims in ins]

    def placed(self, device: DeviceGrid) -> Sharded | None:
        """The spec that it states for its result; None if it states none."""
        return None if self.eqn is None else stated_by(self.eqn, device)

    def constraint(self, device: DeviceGrid) -> StatedAxes | None:
        """The axes that a sharding of JAX states for the dims of its result; None if none does."""
        if self.eqn is None:
            return None
        return constraint(self.name, self.params, self.eqn.outvars[0].aval, device)

    @cached_property
    def flops(self) -> int:
        """The FLOPs of a product; 0 for any other node."""
        return flops(self.op) if self.record.multiplies else 0

    @cached_property
    def work(self) -> int:
        """The FLOPs of an equation on all devices; 0 for a node that is none."""
        return 0 if self.eqn is None else flops(self.op)

    @cached_property
    def near(self) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
        """How far it reads around its blocks; see `Record.borders`."""
        if self.members or not self.record.borders:
            return ()
        shapes = ([x.shape for x in avals] for avals in (self.op.ins, self.op.outs))
        return tuple(map(tuple, self.record.borders(self.op.params, *shapes)))

    @cached_property
    def transposed(self) -> tuple[int, ...]:
        """When a kernel transposes each operand of a product first; see `flops.transposed`."""
        if self.eqn is None or self.name != "dot_general":
            return (0,) * len(self.atoms)
        return transposed(self.op)
