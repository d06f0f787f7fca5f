"""`held_bytes`: the memory that live values of a compiled program take during each of its ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gridlayout.live_ranges import Interval, held_over_time
from gridlayout.ops.tenstorrent.linking import Call, Case, Linked, Step, called_by
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


@dataclass(eq=False)
class _Value:
    """A value with the numbers of the op that makes it and of the last one that needs it."""

    layout: TtnnLayout | None
    first: int
    last: int


class _LiveRanges:
    """The values of a program. Called functions take and return the caller's values."""

    def __init__(self, linked: Linked) -> None:
        self.values: list[_Value] = []
        self.count = 0  # of the ops so far, in the order of `operations_of`
        arguments = [self.value(kind.layout, 0, -1) for _, kind in linked.arguments]
        self.keep(self.run(linked, arguments), self.count)

    def value(self, layout: TtnnLayout | None, first: int, last: int) -> _Value:
        self.values.append(_Value(layout, first, last))
        return self.values[-1]

    def keep(self, values: Sequence[_Value], number: int) -> None:
        """Keep values at least to the op of this number."""
        for value in values:
            value.last = max(value.last, number)

    def run(self, linked: Linked, arguments: Sequence[_Value]) -> list[_Value]:
        """Return a function's results."""
        names = [name for name, _ in linked.arguments]
        known = dict(zip(names, arguments, strict=True))
        for step in linked.steps:
            made = self.made(step, [known[name] for name in step.operands])
            known |= zip(step.results, made, strict=True)
        return [known[name] for name in linked.returned]

    def made(self, step: Step, operands: list[_Value]) -> list[_Value]:
        """Return the results of an op: of several functions that it calls, those of the last."""
        made: list[_Value] = []
        given = operands[1:] if isinstance(step.control, Case) else operands
        for callee in called_by(step):
            made = self.run(callee, given)
            self.keep(made, self.count - 1)
        if step.control is None:
            made = [self.value(kind.layout, self.count, self.count) for kind in step.outputs]
        if not isinstance(step.control, Call):
            self.keep(operands, self.count)
        self.count += 1
        return made


def held_bytes(linked: Linked, cores: int) -> dict[str, list[int]]:
    """Return the bytes of live values in a core's `l1`, and in `dram`, during each op.

    A value is live from the op that makes it to the last one that needs it. Arguments are live from
    the start, the program's results to the end. A function's arguments and results are values of
    its caller. Of functions of which one is selected, or that are repeated, all operands are live
    to the end.
    """
    ranges = _LiveRanges(linked)
    found: dict[str, list[Interval]] = {"l1": [], "dram": []}
    for value in ranges.values:
        layout = value.layout
        if layout is not None and layout.memory in found:
            nbytes = _bytes(layout, cores)
            found[layout.memory].append(Interval(value.first, value.last, nbytes))
    return {memory: held_over_time(some, ranges.count) for memory, some in found.items()}


def _bytes(layout: TtnnLayout, cores: int) -> int:
    """Return the bytes of a value: all of it in DRAM; in L1 those of one core, or its share."""
    held = layout.held
    if layout.memory == "dram":
        return held.nbytes
    return -(-held.nbytes // cores) if layout.is_interleaved else held.per_core
