"""`Decision`: what an op communicates and computes, step by step, before anything runs.

The steps are a straight-line program over registers, one array per register. A `Program` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import PLAIN, Decide, Record
from gridlayout.ops.decisions.specs import Held, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.moves.padding import Padding
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.sharding.collectives import Collective, Turn, total_bytes
from gridlayout.sharding.limits import LIMITS

if TYPE_CHECKING:
    from gridlayout.ops.decisions.place import Place


Array = Any
# How a primitive runs: by its rule; as a view that touches no data; or replicated on every device.
RULE, VIEW, FALLBACK = "rule", "view", "fallback"


@dataclass(frozen=True, eq=False)
class Step:
    """One step: the registers it reads and writes, its function of arrays, and its costs.

    collectives: what devices send each other.
    workspace: the bytes that it holds on a device besides operands and results.
    masks: the number of selects that set padding.
    sets_padding: set if all that it does is to set the padding of the value that it reads.
    unset: for padding of its only operand that another step sets, returns `run` on the operand as
    it is, with less to store, or None.
    exact: for a function of one array, elementwise: numbers, each with its exact result.
    is_lazy: `run` takes and returns `LazyView`s.
    is_global: `run` takes whole storages instead of one device's parts, outside of `shard_map`.
    is_elementwise: `run` takes either: all arrays among operands and results have one sharding.
    bodies: the inner programs (loop bodies, the costliest branch) whose cost counts.
    others: the inner programs (other branches) whose cost does not count.
    is_fused: XLA fuses the step into the consumers of its results.
    takes_fused: XLA fuses operands into this step whose producers are `is_fused`.
    is_kept: the results are stored, not recomputed, if they have several consumers.
    is_view: the results are the operands' bytes in another shape.
    does: a key that is equal for steps that do the same; one of them runs for all.
    kernel: a key of `run`, or of `makes`: equal for steps whose function is the same. None for a
    step with a function of its own.
    phases: `run` as a generator that yields each collective, so that it can be combined with
    those of other steps. None if it can't.
    sends: the mesh axes of each yielded collective, in the order in which it numbers devices.
    makes: set if the step only defines a deferred value and runs nothing: the function that
    returns the decision which computes the value in a `Place`.
    place: set if the step stands for that decision: where the deferred operand is computed.
    turns: the order in which it sends and computes, where it computes; () if that is not known.
    """

    reads: tuple[Any, ...]
    writes: tuple[int, ...]
    run: Callable[..., Sequence[Array]] = field(repr=False)
    collectives: tuple[Collective, ...] = ()
    workspace: Callable[[], Workspace] = field(default=Workspace, repr=False)
    masks: int = 0
    sets_padding: Padding | None = None
    unset: Callable[[Padding], Callable[..., Sequence[Array]] | None] | None = None
    exact: tuple[tuple[Scalar, Scalar], ...] = ()
    is_lazy: bool = False
    is_global: bool = False
    is_elementwise: bool = False
    bodies: tuple[Body, ...] = ()
    is_fused: bool = False
    takes_fused: bool = False
    is_view: bool = False
    is_kept: bool = False
    does: Hashable = None
    kernel: Hashable = None
    others: tuple[Body, ...] = ()
    phases: Callable[[Any], Any] | None = field(default=None, repr=False)
    sends: tuple[Axes, ...] = ()
    makes: Callable[[Place], Decision] | None = field(default=None, repr=False)
    place: Place | None = None
    turns: tuple[Turn, ...] = ()

    def on(self, reads: tuple[Any, ...], writes: tuple[int, ...]) -> Step:
        """Return this step on other registers."""
        return self._with(reads=reads, writes=writes)

    def of_kernel(self, kernel: Hashable) -> Step:
        """Return this step with a `kernel`."""
        return self._with(kernel=kernel)

    def of_padding(self, padding: Padding) -> Step:
        """Return this step, which sets padding, for other padding."""
        changes = {"sets_padding": padding, "does": padding, "kernel": padding}
        return self._with(run=lambda part: [padding.fill(part)], **changes)

    def _with(self, **changes: Any) -> Step:
        """Return this step with other fields. Faster than `replace`: programs call it per step."""
        made = object.__new__(Step)
        vars(made).update(vars(self), **changes)
        return made

    def setting(self, padding: Padding, run: Callable[..., Sequence[Array]], read: int) -> Step:
        """Return this step on an operand whose padding it sets itself, by `run`."""
        kernel = None if self.kernel is None else (self.kernel, padding)
        return self._with(
            run=run, reads=(read,), kernel=kernel, unset=None, masks=self.masks + 1, does=None
        )

    @property
    def is_local_move(self) -> bool:
        """Whether each device only reorders its part."""
        return isinstance(self.does, LocalMove) and not self.collectives

    @property
    def all_collectives(self) -> tuple[Collective, ...]:
        """The step's collectives, then those of its bodies, repeated once per iteration."""
        inner = (c.times(body.times) for body in self.bodies for c in body.program.collectives)
        return (*self.collectives, *inner)


class Inner(Protocol):
    """A program that a step runs, as a decision knows it; `ops.programs.program.Program` is one."""

    @property
    def operands(self) -> tuple[Spec, ...]:
        """The operands' specs."""

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of all steps, in order."""

    @property
    def seconds(self) -> float:
        """The seconds of one device to send and compute."""

    @property
    def is_local(self) -> bool:
        """Whether every step works on one device's parts."""

    @property
    def results(self) -> tuple[Spec, ...]:
        """The results' specs."""

    def run_inside(self, arrays: Sequence[Any]) -> list[Any]:
        """Run it on one device's parts, inside of `shard_map`."""


# The note of bodies that count once, since the number of iterations is not known.
PER_TRIP = "per trip"


@dataclass(frozen=True, eq=False)
class Body:
    """A program that a step runs `times` times, such as the body of a loop.

    note: what of it is counted, for reports. title: which part of the step it is, such as "body".
    roles: what each of its operands is, such as "carry". copied: the bytes of rows of scanned
    arrays that a device copies for it (`Kernels.is_copied`).
    """

    program: Inner
    times: int
    note: str = ""
    title: str = "body"
    roles: tuple[str, ...] = ()
    copied: int = 0

    @property
    def trips(self) -> int:
        """How often it runs; `LIMITS.trips` times if the number of iterations is not known."""
        return self.times * (LIMITS.trips if self.note == PER_TRIP else 1)


@dataclass(frozen=True, eq=False)
class Decision:
    """The steps of one op, and the specs of its operands and results.

    registers: the spec of each register, the operands' first. how: `rule`, `view` or `fallback`.
    note: the algorithm, if there are several. flops: on logical elements, over all devices.
    device_flops: per device, padding included. stated: the cost that the user's rule states.
    record: of the op's primitive.
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
    record: Record = field(default=PLAIN, repr=False)

    def made_of(self, source: Hashable) -> Decision:
        """Return this decision with a `kernel` for each step that has none.

        source: all that the decision depends on. A step of another decision keeps its own.
        """
        steps = tuple(
            step.of_kernel((source, n)) if step.kernel is None else step
            for n, step in enumerate(self.steps)
        )
        return replace(self, steps=steps)

    @property
    def results(self) -> tuple[Spec, ...]:
        """The results' specs."""
        return tuple(out.spec for out in self.outs)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of all steps, in order."""
        return tuple(each for step in self.steps for each in step.all_collectives)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The inner programs of all steps."""
        return tuple(body for step in self.steps for body in step.bodies)

    @property
    def bytes_moved(self) -> int:
        """Bytes received over all devices."""
        return total_bytes(self.collectives)

    @property
    def workspace_bytes(self) -> int:
        """Peak bytes per device that a step holds besides operands and results."""
        return max((step.workspace().most for step in self.steps), default=0)


@dataclass(frozen=True, eq=False)
class Choice:
    """Several alternative rules for one op on the same operands.

    best: the cheapest on the machine. others: returns the others, on request. again: does the same
    as the best one, in less time if it was tried already.
    """

    best: Decide
    others: Callable[[], Sequence[Decide]]
    again: Decide | None = None


class Renumbering:
    """Maps a decision's registers to those of a longer program, and appends the new ones to it."""

    def __init__(self, decision: Decision, values: Sequence[Value], registers: list[Held]) -> None:
        self.decision = decision
        self.at: list[Any] = [value.at for value in values]
        for spec in decision.registers[len(values) :]:
            self.at.append(len(registers))
            registers.append(spec)

    def here(self, registers: Sequence[Any]) -> tuple[Any, ...]:
        """Return the program's registers. Known numbers, which have no register, stay."""
        return tuple([self.at[k] if isinstance(k, int) else k for k in registers])

    def step(self, step: Step) -> Step:
        """Return a step of the decision on the program's registers."""
        return step.on(self.here(step.reads), self.here(step.writes))

    def outs(self) -> list[Value]:
        """Return the decision's results on the program's registers."""
        outs = self.decision.outs
        places = self.here([out.at for out in outs])
        return [Value(out.spec, at) for out, at in zip(outs, places, strict=True)]


class BodyPlanner(Protocol):
    """A program that is being planned, on operands of given specs."""

    @property
    def operands(self) -> list[Value]:
        """The program's operands."""

    def apply(self, fn: Callable[..., Value], value: Value, *args: Any) -> Value:
        """Append the steps of `fn(builder, value, *args)`, a relayout, and return its result."""

    def evaluate(
        self,
        closed: Any,
        values: Sequence[Value],
        result_layouts: Sequence[Layout | None] = (),
        has_choices: bool = True,
    ) -> list[Value]:
        """Append a closed jaxpr applied to values, and return its results.

        result_layouts: the layouts that the caller requests of the results later, if known.
        has_choices: whether the choices of the body are for this jaxpr.
        """

    def program(self, outs: Sequence[Value], result_specs: Sequence[Spec | None] = ()) -> Inner:
        """Return the program that returns these values, in `result_specs` where not None."""


class PlanBody(Protocol):
    """The class of planners, as rules know it."""

    def __call__(self, env: Any, operands: Sequence[Spec], chosen: Any = None, /) -> BodyPlanner:
        """Start the program of a body; chosen: its choices, None to make them."""

    def graph(self, closed: Any, /) -> Any:
        """Return the graph of a closed jaxpr."""
