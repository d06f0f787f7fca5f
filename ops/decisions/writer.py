"""`Writer`: records the steps of a decision, one after another.

Nothing is executed or traced: a value has a spec, and a register that a step writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any, cast

import numpy as np
from jax import lax
from jax.extend import core

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.decision import RULE, VIEW, Decision, PlanBody, Renumbering, Step
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.record import PLAIN, Record
from gridlayout.ops.decisions.specs import Deferred, Held, Sharded, Spec, indexed, known_number
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.moves.sends import Phases, Send
from gridlayout.sharding.collectives import ALL_REDUCE, Collective, Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement

# Records how a device computes its part of a deferred value: `(builder, place, *operands)`.
Make = Callable[..., Value]
_DEFERRED = Op(core.Primitive("deferred"), {}, (), ())


class Writer:
    """Records the steps of a decision.

    ask: returns the decision for another op. plan: starts the program of a loop's or a branch's
    body. record: of the op's primitive.
    """

    def __init__(
        self,
        env: Env,
        specs: Sequence[Spec],
        ask: Callable[[Op, tuple[Spec, ...]], Decision] | None = None,
        plan: PlanBody | None = None,
        record: Record = PLAIN,
    ) -> None:
        self.env, self.ask, self.plan, self.record = env, ask, plan, record
        self.registers: list[Held] = list(specs)
        self.steps: list[Step] = []
        self.note = ""
        self.how = ""
        self.stated: Any = None
        self.device_flops: int | None = None
        self.computing = 0.0  # seconds on a device, where ways to run an op compute differently
        self.most = inf  # seconds: a way that takes longer is of no use

    @property
    def device(self) -> DeviceGrid:
        """The device grid."""
        return self.env.device

    def placement(self, layout: Layout) -> Placement:
        """Return the placement of a layout's cores on the device grid."""
        return self.env.placement(layout)

    def sharded(self, layout: Layout, placement: Placement | None = None) -> Sharded:
        """Return the spec of an array in a layout; placement: by default the device grid's."""
        return Sharded(layout, placement or self.placement(layout))

    def collectives(self) -> Collectives:
        """Return an empty list of collectives on these devices."""
        return Collectives(self.device)

    # -- steps ---------------------------------------------------------------------------------

    def run(
        self,
        fn: Callable[..., Any],
        operands: Sequence[Value],
        specs: Sequence[Held],
        collectives: Collectives | Iterable[Collective] = (),
        **fields: Any,
    ) -> list[Value]:
        """Record a kernel and return its results.

        fields: other fields of its `Step`. fn: maps one device's parts of the operands to a list
        of its parts of the results.
        """
        if isinstance(collectives, Collectives):
            fields.setdefault("turns", tuple(collectives.turns))
            collectives = collectives.found
        writes = tuple(range(len(self.registers), len(self.registers) + len(specs)))
        # A deferred broadcast's register holds its source.
        self.registers += [spec.source if isinstance(spec, Deferred) else spec for spec in specs]
        reads = tuple(value.at for value in operands)
        self.steps.append(Step(reads, writes, fn, tuple(collectives), **fields))
        # Only a later kernel of the same rule reads a `Local`, and knows what it is.
        return [Value(cast(Spec, spec), at) for spec, at in zip(specs, writes, strict=True)]

    def fused(self, fn: Any, operands: Any, specs: Any, **fields: Any) -> list[Value]:
        """Record a kernel that XLA fuses with its consumers and its operands' producers."""
        return self.run(fn, operands, specs, is_fused=True, takes_fused=True, **fields)

    def deferred(self, make: Make, operands: Sequence[Value], shape: Shape, dtype: Any) -> Value:
        """Return a value that is computed from logical indices, in each place that requests it.

        make: `make(builder, place, *operands)` records how a device computes its part of the value
        in a place.
        """
        specs = tuple(value.spec for value in operands)

        @lru_cache(maxsize=64)
        def makes(place: Place) -> Decision:
            builder = type(self)(self.env, specs)
            made = make(builder, place, *(Value(spec, k) for k, spec in enumerate(specs)))
            return builder.decision(_DEFERRED, specs, [made])

        (value,) = self.run(_not_run, operands, [indexed(shape, dtype)])
        self.steps[-1] = replace(self.steps[-1], makes=makes)
        return value

    def compute_in(self, value: Value, place: Place) -> Value:
        """Return a value of logical indices as computed in a place."""
        (out,) = self.run(_not_run, [value], [place.spec(value.dtype)], place=place)
        return out

    def all_reduced(self, part: Value, axes: Axes, spec: Spec, dtype: Any) -> Value:
        """Return the sum of devices' parts along mesh axes, with spec `spec` and type `dtype`."""
        nbytes = dtypes.nbytes(part.shape, part.dtype)
        shape = spec.local_shape

        def phases(view: LazyView) -> Phases:
            view = yield Send(ALL_REDUCE, axes, self.device.count(axes), view)
            return LazyView.of(view.materialize().astype(dtype)).reshape(*shape)

        (out,) = self.run(
            lambda x: [lax.psum(x, axes).astype(dtype).reshape(shape)],
            [part],
            [spec],
            self.collectives().all_reduce(axes, nbytes),
            phases=phases,
            sends=(axes,),
        )
        return out

    def constant(self, number: Any, dtype: Any, weak_type: bool = False) -> Value:
        """Return the value of one or a few numbers that are known before anything runs."""
        return Value(known_number(number, dtype, weak_type), np.asarray(number, dtype))

    def run_move(self, value: Value, move: LocalMove | None, spec: Spec) -> Value:
        """Return the result of a move, with the spec `spec`; move: None if no data moves."""
        if move is None:
            return value.with_spec(spec)
        machine = self.device.machine
        if move.pieces is not None and machine.has_latency:  # they are cut and put one by one
            received = total_bytes(move.collectives) / self.device.size
            self.computing += machine.work_seconds(nbytes=2 * received)
        (out,) = self.run(
            lambda x: [move.run(x)],
            [value],
            [spec],
            move.collectives,
            workspace=move.workspace,
            is_lazy=True,
            is_view=move.is_view,
            is_kept=move.is_gathered,
            does=move,
            phases=move.phases,
            sends=move.sends,
        )
        return out

    @property
    def is_too_long(self) -> bool:
        """Whether the collectives so far, if all of them are needed, take at least `most`."""
        if self.most == inf:
            return False
        sent = [each for step in self.steps for each in step.collectives]
        return self.env.machine.price(sent, self.device.size) >= self.most

    # -- other ops -------------------------------------------------------------------------------

    def call(self, op: Op, *values: Value) -> list[Value]:
        """Record the decision of another op, and return its results."""
        assert self.ask is not None
        return self.inlined(self.ask(op, tuple(value.spec for value in values)), values)

    def inlined(self, decision: Decision, values: Sequence[Value]) -> list[Value]:
        """Record the steps of a decision on these values, and return its results."""
        at = Renumbering(decision, values, self.registers)
        self.steps += [at.step(step) for step in decision.steps]
        return at.outs()

    def has_only(self, values: Sequence[Value]) -> bool:
        """Whether these values are all that it has: its first registers, and no steps."""
        if self.steps or len(values) != len(self.registers):
            return False
        rows = enumerate(zip(values, self.registers, strict=True))
        return all(isinstance(x.at, int) and (x.at, x.spec) == (k, spec) for k, (x, spec) in rows)

    def take(self, other: Writer) -> None:
        """Record all that another writer recorded, which began with the same registers."""
        self.registers, self.steps = [*other.registers], [*other.steps]
        self.note, self.how, self.stated = other.note, other.how, other.stated
        self.device_flops, self.computing = other.device_flops, other.computing

    def decision(self, op: Op, operands: Sequence[Spec], outs: Sequence[Value]) -> Decision:
        """Return the decision with the steps recorded so far that its results need."""
        # A rule may have tried another way first.
        steps = tuple(self.steps[n] for n in needed(self.steps, outs))
        how = self.how or (RULE if steps else VIEW)
        return Decision(
            *(op, tuple(operands), tuple(outs), steps, tuple(self.registers)),
            *(how, self.note, 0, self.device_flops or 0, self.stated),
            record=self.record,
        )


def _not_run(*_: Any) -> Any:
    raise AssertionError(
        "a deferred step ran: a program replaces it by the steps that compute its value"
    )


def needed(steps: Sequence[Step], outs: Sequence[Value]) -> list[int]:
    """Return the numbers of the steps that results depend on."""
    read = {out.at for out in outs if isinstance(out.at, int)}
    found = []
    for n in reversed(range(len(steps))):
        step = steps[n]
        if step.is_global or read.intersection(step.writes):
            read.update(k for k in step.reads if isinstance(k, int))
            found.append(n)
    return found[::-1]
