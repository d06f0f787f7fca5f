"""`set_once`: padding that one step sets is set for all steps that read the value.

Of the steps that read a value, some need a number in its padding, and the others know nothing of
it. So the padding is set once, right after the value is made, and all of them read what comes out.
XLA then sets it while it computes the value, and holds one array instead of two. It still holds two
of a function that it computes once, such as `exp`; so there the operand's padding is set, to the
number for which the function gives the one that is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.decisions.specs import Held, Sharded
from gridlayout.ops.decisions.value import Value


def set_once(
    steps: Sequence[Step], registers: list[Held], outs: Sequence[Value]
) -> tuple[list[int], list[Step], list[Value]]:
    """Return the numbers of the steps in their new order; the steps in it; and the results.

    A value that XLA stores whatever reads it, such as a product, is read as it is by steps into
    which XLA fuses no operand, unless it has to store the value with its padding set for others.
    """
    writers = {k: n for n, step in enumerate(steps) for k in step.writes}
    count = Counter(k for step in steps for k in step.reads if isinstance(k, int))
    count.update(out.at for out in outs if isinstance(out.at, int))
    setters: dict[int, int] = {}  # by register: the first step that sets its padding
    for n, step in enumerate(steps):
        held = registers[step.reads[0]] if step.sets_padding else None
        is_known = not isinstance(held, Sharded) or held.layout.oob is not None
        if is_known or step.reads[0] not in writers or count[step.reads[0]] < 2:
            continue
        if not _is_truth(steps[writers[step.reads[0]]], registers):
            setters.setdefault(step.reads[0], n)
    if not setters:
        order, made = list(range(len(steps))), list(steps)
        _leave_unset(made, order, outs)
        return order, made, list(outs)

    reads = [step.reads for step in steps if not step.takes_fused]
    apart = {k for some in reads for k in some if isinstance(k, int)}

    def read(k: Any, n: int | None) -> Any:
        """Return what a step reads for a register; n: its number, None for the results."""
        if not isinstance(k, int) or setters.get(k, n) == n:
            return k
        takes_fused = n is not None and steps[n].takes_fused
        (new,) = steps[setters[k]].writes
        return new if takes_fused or new in apart or steps[writers[k]].is_fused else k

    places: list[tuple[int, ...]] = []
    first = {n: k for k, n in setters.items()}
    for n in range(len(steps)):
        places.append((*places[writers[first[n]]], n) if n in first else (n,))
    order = sorted(range(len(steps)), key=places.__getitem__)
    made = [
        steps[n].on(tuple([read(k, n) for k in steps[n].reads]), steps[n].writes) for n in order
    ]
    _set_before(made, order, registers)
    results = [Value(out.spec, read(out.at, None)) for out in outs]
    _leave_unset(made, order, results)
    return order, made, results


def _is_truth(step: Step, registers: Sequence[Held]) -> bool:
    """Return whether a step makes numbers of truth values.

    XLA makes a selection of a product with them, so that infinity times false is 0, as long as it
    sees nothing in between.
    """
    read = [registers[k] for k in step.reads if isinstance(k, int)]
    return len(read) == 1 and isinstance(read[0], Sharded) and read[0].dtype == bool


def _set_before(steps: list[Step], order: list[int], registers: Sequence[Held]) -> None:
    """Set the padding of operands instead of results, where one number gives the result's.

    The two steps change places. Nothing else reads what was between them.
    """
    for n in range(len(steps) - 1):
        step, setter = steps[n : n + 2]
        padding = setter.sets_padding
        if padding is None or not step.exact or setter.reads != step.writes:
            continue
        values = [at for at, result in step.exact if repr(result) == padding.text]
        before = registers[step.reads[0]] if isinstance(step.reads[0], int) else None
        if not values or not isinstance(before, Sharded) or before.dtype != padding.layout.dtype:
            continue
        first = setter.of_padding(replace(padding, value=values[0])).on(step.reads, step.writes)
        steps[n : n + 2] = [first, step.on(setter.reads, setter.writes)]
        order[n : n + 2] = order[n : n + 2][::-1]


def _leave_unset(steps: list[Step], order: list[int], outs: Sequence[Value]) -> None:
    """Let steps that can do with less read a stored value as it is, instead of with padding set.

    Not where others need it stored with its padding set.
    """
    writers = {k: step for step in steps for k in step.writes}
    readers: dict[Any, list[int]] = {}
    for n, step in enumerate(steps):
        for k in filter(lambda k: isinstance(k, int), step.reads):
            readers.setdefault(k, []).append(n)
    results, done = {out.at for out in outs if isinstance(out.at, int)}, list[int]()
    for at, setter in enumerate(steps):
        padding, (k, *_) = setter.sets_padding, setter.reads or (None,)
        if padding is None or not isinstance(k, int) or not _is_stored(writers.get(k)):
            continue
        (made,) = setter.writes
        mine, able = readers.get(made, []), dict[int, Any]()
        for n in mine:
            if (unset := steps[n].unset) is not None and (run := unset(padding)) is not None:
                able[n] = run
        others = [n for n in mine if n not in able]
        if made in results or not all(steps[n].takes_fused for n in others):
            continue
        for n, run in able.items():
            steps[n] = steps[n].setting(padding, run, k)
        done += [] if others else [at]
    for at in reversed(done):
        del steps[at], order[at]


def _is_stored(writer: Step | None) -> bool:
    """Whether a value is stored whatever reads it; writer: the step that makes it, if any."""
    return writer is None or not (writer.is_fused or writer.is_view or writer.is_local_move)
