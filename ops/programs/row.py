"""`Row`: one row of a report, about one primitive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import prod
from typing import Any

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.dtypes import sum_dtype
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.blocks import block_shape, untiled
from gridlayout.ops.decisions.decision import VIEW, Decision, Step
from gridlayout.ops.decisions.flops import transposed, windows
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Deferred, Sharded, Spec, layout_of, parts_of
from gridlayout.ops.programs.passes import Traffic, computing, cpu_functions, is_view
from gridlayout.sharding.collectives import REDUCE_SCATTER, Collective, total_bytes
from gridlayout.sharding.cost import Cost
from gridlayout.sharding.machines.chips import COMPUTE, MEMORY
from gridlayout.sharding.machines.machine import Machine


@dataclass(frozen=True)
class Row:
    """One primitive: how it ran, the layouts of operands and results, and its cost.

    `bytes_moved` are received bytes, summed over all devices. `masks` counts selects that set
    padding. `flops` counts operations on logical elements. `peak_bytes` are the bytes on a core of
    operands and results, and the core's share of the rule's workspace on a device. `held_bytes` are
    the bytes of a device's results, live together or not; `padding_bytes` are the part of them that
    is padding, on average over devices. A layout is None for a value without one: a scalar, a
    constant. `note` names the algorithm, where a rule has several, or the part of a loop or branch
    that is counted. `collectives` are what the devices send each other. `device_flops` counts one
    device's operations, on padding too. times: how often it runs, in a loop; bytes, masks and flops
    are over all runs. seconds: of one device, on the device grid's machine. limit: what takes the
    most of that, `links`, `products` or `memory`; empty where nothing does. movement: the part of
    the seconds in which it waits for what the devices send. decision: the decision; made: the same
    as part of its program. units, memory: the seconds of its computation in which the units that
    compute, and the memory, are busy.
    """

    primitive: str
    how: str
    inputs: tuple[Layout | None, ...]
    outputs: tuple[Layout | None, ...]
    bytes_moved: int = 0
    masks: int = 0
    flops: int = 0
    peak_bytes: int = 0
    note: str = ""
    collectives: tuple[Collective, ...] = ()
    device_flops: int = 0
    times: int = 1
    seconds: float = 0.0
    limit: str = ""
    decision: Any = field(default=None, repr=False, compare=False)
    made: Any = field(default=None, repr=False, compare=False)
    held_bytes: int = 0
    padding_bytes: int = 0
    units: float = 0.0
    memory: float = 0.0
    movement: float = 0.0

    @property
    def compute(self) -> float:
        """The seconds of computation."""
        return max(self.seconds - self.movement, 0.0)


def named_rows(rows: Sequence[Row]) -> list[str]:
    """Return the name of each row: its primitive and its number among equal ones, from 0."""
    seen: Counter[str] = Counter()
    names = []
    for row in rows:
        names.append(f"{row.primitive}:{seen[row.primitive]}")
        seen[row.primitive] += 1
    return names


def priced(
    decision: Decision,
    collectives: Sequence[Collective],
    machine: Machine,
    traffic: Traffic | None = None,
) -> dict[str, float]:
    """Return the seconds of one device by limit; a joined collective counts its share.

    traffic: as in `passes.passed_bytes`.
    """
    return {"links": machine.seconds(collectives), **_computing(decision, machine, traffic)}


def _computing(
    decision: Decision, machine: Machine, traffic: Traffic | None = None
) -> dict[str, float]:
    """Return the seconds of a device's computation, by limit."""
    op, record, nothing = decision.op, decision.record, {"products": 0.0, "memory": 0.0}
    if decision.bodies:
        seconds = (machine.slicing(body.copied) * body.times for body in decision.bodies)
        return {"products": 0.0, "memory": sum(seconds)}
    if not op.outs and (decision.how == VIEW or decision.collectives):
        return nothing  # what a relayout copies is part of its collectives
    is_local = record.is_elementwise or isinstance(op.requested, Requested)
    if decision.how == VIEW or (record.is_view and is_local):
        shapes = [aval.shape for aval in (*op.ins[:1], *op.outs[:1])]
        before, after = shapes[0], shapes[-1]
        if not record.is_view or is_view(record, op.params, before, after, machine):
            return nothing
    asked = op.requested.ins if isinstance(op.requested, Requested) else ()
    either = zip_longest(asked, decision.operands)  # None: the operand is not relaid out
    specs = [operand if spec is None else spec for spec, operand in either]
    ins = [_passed(spec, machine) for spec in specs]
    if not op.outs:  # a relayout cuts its operand while it writes
        ins = []
    elif record.is_elementwise:  # operands are read as the result is made
        own = decision.outs[0].spec
        ins = [
            nbytes if aval.shape != op.outs[0].shape else _passed(own, machine, aval.dtype)
            for nbytes, aval in zip(ins, op.ins, strict=True)
        ]
    outs = [_passed(out.spec, machine) for out in decision.outs]
    if record.multiplies:
        outs.append(max(_partial_bytes(decision, machine) - sum(outs), 0))
    dtype = op.ins[0].dtype if op.ins else None
    pieces = windows(op, _part(decision.outs[0].spec)) if record.multiplies else 0
    functions = cpu_functions(record, op, _part(specs[0]) if specs else ())
    given = ins, outs, machine, transposed(op), dtype, traffic, pieces, functions
    found = computing(record, decision.device_flops, *given)
    pairs = zip(asked, decision.operands, strict=False)
    # Slices that devices take of the parts of operands that they have.
    parts = [
        spec.device_bytes
        for spec, operand in pairs
        if spec is not None and spec.device_bytes < operand.device_bytes
    ]
    found["memory"] += sum(map(machine.slicing, parts))
    return found


def _busy(
    decision: Decision, found: Mapping[str, float], machine: Machine, traffic: Traffic | None
) -> tuple[float, float]:
    """Return the seconds in which a computation keeps the units busy, and those for the memory.

    found: its seconds by limit. Both are as long as it where the machine does not tell them apart.
    """
    total = found["products"] + found["memory"]
    if not total or machine.lanes[MEMORY] == machine.lanes[COMPUTE]:
        return total, total
    if found["products"]:
        passed = _computing(replace(decision, device_flops=0), machine, traffic)
        return total, min(passed["memory"], total)
    multiplies = decision.record.multiplies and bool(decision.op.ins)
    dtype = decision.op.ins[0].dtype if multiplies else None
    flops = decision.device_flops if multiplies else 0
    return min(machine.work_seconds(flops, dtype=dtype), total), total


def _partial_bytes(decision: Decision, machine: Machine) -> int:
    """Return the bytes of a product that the devices add up, as each makes it; 0 if they do not."""
    asked = decision.op.requested
    if isinstance(asked, Requested) and asked.made is not None:
        return _passed(asked.made, machine, sum_dtype(asked.made.dtype)) if asked.summed else 0
    sums = [each for each in decision.collectives if each.kind == REDUCE_SCATTER]
    return max(
        (
            each.received_bytes * each.count * each.group_size // (each.group_size - 1)
            for each in sums
        ),
        default=0,
    )


def _passed(spec: Any, machine: Machine, dtype: Any = None) -> int:
    """Return the bytes of a device's part of a value, in whole tiles on chips with tiles.

    dtype: of another value of the same shape in the same place, instead of this one.
    """
    if dtype is not None and dtype != spec.dtype:
        return -(-_passed(spec, machine) * dtypes.bits(dtype) // dtypes.bits(spec.dtype))
    own = as_grid(spec.layout) if isinstance(spec, Sharded) else None
    if not machine.chip.tiles or own is None:
        return 0 if spec is None else int(spec.device_bytes)
    if own.tile:
        return spec.device_bytes
    rank = len(spec.placement.grid)
    block = block_shape(spec)
    if len(spec.shape) < 2:
        return dtypes.nbytes(block, spec.dtype)  # `Machine.padded` pads no vector
    order = [group[0] for group in own.groups or () if len(group) == 1]
    if sorted(order) == [*range(rank)]:  # a transposed view is written in the order of its dims
        block = tuple(block[order.index(d)] for d in range(rank))
    return dtypes.nbytes(machine.padded(block), spec.dtype)


def _part(spec: Spec) -> Shape:
    """Return the shape of a device's part of a value; of all of it, if that is in no blocks."""
    if isinstance(spec, Sharded):
        own = untiled(spec)
        if len(own.placement.grid) == own.ndim and len(own.local_shape) == 2 * own.ndim:
            return block_shape(own)
    return tuple(spec.shape)


def _padding(spec: Spec) -> int:
    """Return the bytes of padding of a value on one device, on average over devices."""
    if isinstance(spec, Deferred):
        return _padding(spec.source)
    if not isinstance(spec, Sharded):
        return 0
    return max(spec.device_bytes - -(-spec.layout.data_bytes // parts_of(spec)), 0)


def _cores(spec: Spec) -> int:
    """Return the number of cores of a value's layout that are on one device."""
    source = spec.source if isinstance(spec, Deferred) else spec
    return prod(source.placement.per_device) if isinstance(source, Sharded) else 1


def row_of(
    decision: Decision,
    steps: Sequence[Step],
    times: int,
    note: str,
    machine: Machine,
    traffic: Traffic | None = None,
) -> Row:
    """Return the row of a decision, with its steps that run, `times` times; traffic: its own."""
    own = tuple(c.times(times) for step in steps for c in step.collectives)
    before, after = (
        tuple(map(layout_of, specs)) for specs in (decision.operands, decision.results)
    )
    specs = (*decision.operands, *decision.results)
    held = sum(spec.core_bytes for spec in specs)
    peak = held + -(-decision.workspace_bytes // max(map(_cores, specs), default=1))
    seconds = dict.fromkeys(("links", "products", "memory"), 0.0)
    if steps or not decision.steps:  # else its results are unused, or another decision made them
        sent = [c for step in steps for c in step.collectives]
        seconds = priced(decision, sent, machine, traffic)
    units, memory = _busy(decision, seconds, machine, traffic)
    limit = max(seconds, key=seconds.__getitem__)
    cost = decision.stated or Cost(total_bytes(own), decision.flops * times, peak)
    return Row(
        decision.op.title,
        decision.how,
        before,
        after,
        cost.bytes_moved,
        sum(step.masks for step in steps) * times,
        cost.flops,
        cost.peak_bytes,
        ", ".join(filter(None, (decision.note, note))),
        own,
        decision.device_flops * times,
        times,
        sum(seconds.values()) * times,
        limit if seconds[limit] else "",
        decision,
        held_bytes=sum(spec.device_bytes for spec in decision.results),
        padding_bytes=sum(map(_padding, decision.results)),
        units=units * times,
        memory=memory * times,
        movement=seconds["links"] * times,
    )
