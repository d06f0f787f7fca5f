"""`Decision`: what an op moves and computes, step by step, before anything runs.

The steps are a straight-line program on one array a value, which a `Program` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Held, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.sharding.collectives import Axes, Collective, total_bytes

if TYPE_CHECKING:
    from gridlayout.ops.decisions.place import Place

Array = Any
# How a primitive ran: its rule; as a view, with no data touched; or whole on every device.
RULE, VIEW, FALLBACK = "rule", "view", "fallback"


@dataclass(frozen=True, eq=False)
class Step:
    """One step: the registers it reads and writes, its function of arrays, and what it takes.

    is_lazy: the function takes and returns `LazyView`s. is_global: it takes whole storages rather
    than one device's parts, and runs outside of `shard_map`. workspace: what it holds on a device
    besides operands and results, where it does. is_fused: XLA makes the results where they are
    read. takes_fused: it makes such operands as it reads them. is_kept: it keeps the
    results where several read them. is_view: what it makes is what it
    reads, seen in another shape. does: what is equal in steps that do the same. bodies: the
    programs that it runs inside and that are counted; others: branches that are not. phases: the
    same function of one view as a generator of its collectives, where these can go with others;
    sends: the mesh axes of each, in the order in which it numbers devices; is_joined: they are to
    go with others, also where it takes longer. makes: of a step whose result is deferred, which
    runs nothing: gives the decision that makes it in a place. place: of a step that stands for such
    a decision, of the deferred value that it reads: where.
    """

    reads: tuple[Any, ...]
    writes: tuple[int, ...]
    run: Callable[..., Sequence[Array]] = field(repr=False)
    collectives: tuple[Collective, ...] = ()
    workspace: Callable[[], Workspace] = field(default=Workspace, repr=False)
    masks: int = 0
    is_lazy: bool = False
    is_global: bool = False
    bodies: tuple[Body, ...] = ()
    is_fused: bool = False
    takes_fused: bool = False
    is_view: bool = False
    is_kept: bool = False
    does: Any = None
    others: tuple[Body, ...] = ()
    phases: Callable[[Any], Any] | None = field(default=None, repr=False)
    sends: tuple[Axes, ...] = ()
    is_joined: bool = False
    makes: Callable[[Place], Decision] | None = field(default=None, repr=False)
    place: Place | None = None

    def on(self, reads: tuple[Any, ...], writes: tuple[int, ...]) -> Step:
        """The same on other registers; `replace`, which is asked for every step of a program."""
        made = object.__new__(Step)
        vars(made).update(vars(self), reads=reads, writes=writes)
        return made

    @property
    def all_collectives(self) -> tuple[Collective, ...]:
        """Its own, and those of its bodies, every time."""
        inner = (c.times(body.times) for body in self.bodies for c in body.program.collectives)
        return (*self.collectives, *inner)


class Inner(Protocol):
    """A program that a step runs, as a decision knows it; `ops.programs.program.Program` is one."""

    @property
    def operands(self) -> tuple[Spec, ...]:
        """The operands' specs."""

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the devices send each other, in order."""

    @property
    def is_local(self) -> bool:
        """Whether every step works on one device's parts."""


@dataclass(frozen=True, eq=False)
class Body:
    """A program that a step runs inside: so many times; `note` says what of it is counted.

    title: what it is of the step. roles: what each of its operands is there.
    """

    program: Inner
    times: int
    note: str = ""
    title: str = "body"
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Decision:
    """What is done for one op: the steps, and where its results are.

    operands, results: specs in and out. registers: the spec of each register, the operands' first.
    how: `rule`, `view` or `fallback`. note: the algorithm, where there are several. flops: in all,
    on logical elements. device_flops: of one device, on padding too. stated: what the user says it
    costs.
    """

    op: Op
    operands: tuple[Spec, ...]
    outs: tuple[Value, ...]
    steps: tuple[Step, ...]
    registers: tuple[Held, ...]
    how: str
    note: str = ""
    flops: int = 0
    device_flops: int = 0
    stated: Any = None

    @property
    def results(self) -> tuple[Spec, ...]:
        """The results' specs."""
        return tuple(out.spec for out in self.outs)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the devices send each other, in order."""
        return tuple(each for step in self.steps for each in step.all_collectives)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The programs that its steps run inside."""
        return tuple(body for step in self.steps for body in step.bodies)

    @property
    def received_bytes(self) -> int:
        """Bytes that a device receives."""
        return sum(each.received_bytes * each.count for each in self.collectives)

    @property
    def bytes_moved(self) -> int:
        """Bytes received over all devices."""
        return total_bytes(self.collectives)

    @property
    def masks(self) -> int:
        """The number of selects that set padding."""
        return sum(step.masks for step in self.steps)

    @property
    def workspace_bytes(self) -> int:
        """The most bytes that a step holds on a device besides operands and results."""
        return max((step.workspace().most for step in self.steps), default=0)


# A function `(builder, op, *values)` that writes a decision down.
Decide = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Choice:
    """Several good ways to do one op: rules of the same operands.

    best: the cheapest on the machine. others: gives the others, when they are asked for.
    """

    best: Decide
    others: Callable[[], Sequence[Decide]]


class Renumbering:
    """A decision's registers among those of a longer program, which its new ones are added to."""

    def __init__(self, decision: Decision, values: Sequence[Value], registers: list[Held]) -> None:
        self.decision = decision
        self.at: list[Any] = [value.at for value in values]
        for spec in decision.registers[len(values) :]:
            self.at.append(len(registers))
            registers.append(spec)

    def here(self, registers: Sequence[Any]) -> tuple[Any, ...]:
        """Registers, or known numbers, as the program has them."""
        return tuple([self.at[k] if isinstance(k, int) else k for k in registers])

    def step(self, step: Step) -> Step:
        """A step of the decision as one of the program."""
        return step.on(self.here(step.reads), self.here(step.writes))

    def outs(self) -> list[Value]:
        """The decision's results."""
        outs = self.decision.outs
        places = self.here([out.at for out in outs])
        return [Value(out.spec, at) for out, at in zip(outs, places, strict=True)]
