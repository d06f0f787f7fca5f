"""Joined collectives: independent collectives of several steps, run as one.

Every collective has a latency, however little it sends. Independent collectives of the same kind,
mesh axes and element type are joined if, by the machine's figures, their latency exceeds the time
to concatenate their operands. All-reduces that XLA joins without a copy are left to XLA.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.decisions.specs import Held
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import run_together
from gridlayout.ops.moves.workspace import Chain, Workspace
from gridlayout.sharding.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL
from gridlayout.sharding.machines.machine import Machine


@dataclass(frozen=True)
class Joined:
    """The new order of steps; steps in one tuple are joined."""

    order: tuple[tuple[int, ...], ...]


def joined(steps: Sequence[Step], registers: Sequence[Held], machine: Machine) -> Joined | None:
    """Return the joined steps, and the order of all of them; None where none are joined."""
    if not machine.has_latency:
        return None
    kinds = [_kind(step, registers, machine) for step in steps]
    if sum(kind is not None for kind in kinds) < 2:
        return None
    reads = _reads(steps)
    alone = list(range(len(steps)))
    groups = _merged(alone, _candidates(kinds, reads), reads)
    if groups == alone:
        return None
    order = _in_order(groups, reads)
    assert order is not None
    return Joined(tuple(order))


def _merged(
    groups: list[int], more: Sequence[Sequence[int]], reads: Sequence[Sequence[int]]
) -> list[int]:
    """Return the groups, with each of `more` in turn that leaves them in some order.

    groups: for each step, the first one that it is joined with. If all of `more` leave an order,
    so does each of them after those before it, because they share no step.
    """
    merged = list(groups)
    for group in more:
        for n in group:
            merged[n] = group[0]
    if not more or _in_order(merged, reads) is not None:
        return merged
    if len(more) == 1:
        return groups
    half = len(more) // 2
    return _merged(_merged(groups, more[:half], reads), more[half:], reads)


def _reads(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """Return the numbers of the steps that each step reads from."""
    writer = {k: n for n, step in enumerate(steps) for k in step.writes}
    return [
        tuple({writer[k] for k in step.reads if isinstance(k, int) and k in writer})
        for step in steps
    ]


def joined_by_xla(
    steps: Sequence[Step], registers: Sequence[Held], names: Sequence[str], machine: Machine
) -> dict[int, int]:
    """Return, by the step's number, how many all-reduces XLA joins with it, itself included.

    names: the primitive of each step. XLA joins independent all-reduces with the same reduction,
    element type and device groups, without a copy.
    """
    if not machine.has_latency or not machine.combines:
        return {}
    kinds: list[Hashable | None] = []
    for step, name in zip(steps, names, strict=True):
        sent = [(each.kind, each.count) for each in step.collectives]
        is_sum = not step.is_global and sent == [(ALL_REDUCE, 1)]
        how = name if name.startswith(("reduce_m", "reduce_p", "arg")) else "sum"
        dtype = str(registers[step.writes[0]].dtype) if is_sum else ""
        kinds.append((how, dtype, step.collectives[0].axes) if is_sum else None)
    if sum(kind is not None for kind in kinds) < 2:
        return {}
    groups = _candidates(kinds, _reads(steps))
    return {n: len(group) for group in groups for n in group}


def _kind(step: Step, registers: Sequence[Held], machine: Machine) -> Hashable | None:
    """Return a key that is equal for steps that can be joined; None for one that can't."""
    if step.phases is None or not step.collectives or step.is_global:
        return None
    if machine.combines and step.collectives[0].kind == ALL_REDUCE:
        return None
    if not machine.saves_joined(step.collectives):
        return None
    (read,) = step.reads
    if not isinstance(read, int):
        return None
    if len(step.sends) != len(step.collectives):
        return None
    sent = tuple((each.kind, axes) for each, axes in zip(step.collectives, step.sends, strict=True))
    return sent, str(registers[read].dtype)


def _candidates(kinds: Sequence[Any], reads: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return groups of independent steps: of equal kind, at equal depth among that kind."""
    depth: list[dict[Any, int]] = []
    found: dict[Any, list[int]] = {}
    for n, kind in enumerate(kinds):
        mine: dict[Any, int] = {}
        for before in reads[n]:
            for each, count in depth[before].items():
                mine[each] = max(mine.get(each, 0), count)
        if kind is not None:
            found.setdefault((kind, mine.get(kind, 0)), []).append(n)
            mine[kind] = mine.get(kind, 0) + 1
        depth.append(mine)
    return [group for group in found.values() if len(group) > 1]


def _in_order(
    groups: Sequence[int], reads: Sequence[Sequence[int]]
) -> list[tuple[int, ...]] | None:
    """Return the groups in a topological order; None where there is none."""
    members: dict[int, list[int]] = {}
    for n, group in enumerate(groups):
        members.setdefault(group, []).append(n)
    waits = {
        group: {groups[k] for n in mine for k in reads[n]} - {group}
        for group, mine in members.items()
    }
    consumers: dict[int, list[int]] = {}
    for group, before in waits.items():
        for each in before:
            consumers.setdefault(each, []).append(group)
    left = {group: len(before) for group, before in waits.items()}
    ready = [group for group, count in left.items() if not count]
    heapify(ready)
    found = []
    while ready:
        group = heappop(ready)
        found.append(tuple(members[group]))
        for consumer in consumers.get(group, ()):
            left[consumer] -= 1
            if not left[consumer]:
                heappush(ready, consumer)
    return found if len(found) == len(members) else None


def as_one(steps: Sequence[Step], registers: Sequence[Held]) -> Step:
    """Return one step that runs several in lockstep."""
    every = [step.phases for step in steps]

    def run(*views: LazyView) -> list[LazyView]:
        made = [fn(view) for fn, view in zip(every, views, strict=True) if fn is not None]
        return run_together(made)

    sent = tuple(
        replace(some[0], received_bytes=sum(each.received_bytes for each in some))
        for some in zip(*(step.collectives for step in steps), strict=True)
    )
    parts = [registers[k].device_bytes for step in steps for k in step.reads]
    together = [sum(parts)]  # the concatenated operands; then the result of each collective
    for each in sent:
        if each.kind == ALL_GATHER:
            together.append(together[-1] * each.group_size)
        elif each.kind in (ALL_TO_ALL, ALL_REDUCE):
            together.append(together[-1])
        else:
            together.append(together[-1] // each.group_size)
    chains = tuple(Chain(n).view() for n in parts)
    space = Workspace(chains, tuple(together), is_view=True)
    return Step(
        tuple(k for step in steps for k in step.reads),
        tuple(k for step in steps for k in step.writes),
        run,
        sent,
        workspace=lambda: space,
        is_lazy=True,
    )
