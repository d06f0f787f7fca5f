"""`Input`: a program to compare. `compare_inputs` checks the inputs and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from gridlayout.costs import Costs
from gridlayout.dump.comparing.comparison import Comparison, Program
from gridlayout.dump.comparing.matching import Match, Value, matched
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip
from gridlayout.tables.names import check_count, checked_names, names_of
from gridlayout.tables.words import dims

REPORT = "report"  # the kind of a report of `gl.on_grid`, which has costs but no values
# The kinds whose costs are of DRAM and L1.
_OF_CORES = frozenset(("ttnn", "d2m", REPORT))


class Input(NamedTuple):
    """One program to compare. source: its name. kind: the kind of its text, or `REPORT`.

    chip: None if it states none. note: why no layout was found; empty if some were. left_out: the
    number of values that are not in `values`.
    """

    source: str
    kind: str
    costs: Costs
    chip: Chip | None = None
    values: tuple[Value, ...] = ()
    note: str = ""
    left_out: int = 0


def compare_inputs(inputs: Sequence[Input], names: Any = None) -> Comparison:
    """Return the comparison of two or more programs.

    Raises `LayoutError` for programs that can't be compared: of kinds that count memory
    differently, for different chips, or without a common value; and for invalid names.
    """
    check_count(len(inputs))
    found = _names(inputs) if names is None else checked_names(names, len(inputs))
    for name, each in zip(found, inputs, strict=True):
        if each.note:
            raise LayoutError(f"{name}: {each.note}")
    _check_kinds(found, inputs)
    _check_chips(found, inputs)
    dumps = tuple(k for k, each in enumerate(inputs) if each.kind != REPORT)
    values = matched([inputs[k].values for k in dumps])
    _check_alike([found[k] for k in dumps], values)
    return Comparison(
        tuple(
            Program(name, each.costs, each.chip) for name, each in zip(found, inputs, strict=True)
        ),
        tuple(values),
        dumps,
        sum(each.left_out for each in inputs),
    )


def _names(inputs: Sequence[Input]) -> list[str]:
    """Return default names: the differing parts of the paths of dumps; "on_grid" of reports."""
    of_dumps = iter(names_of([each.source for each in inputs if each.kind != REPORT]))
    reports = [each for each in inputs if each.kind == REPORT]
    of_reports = iter(reports[0].source + f" {k}" * (len(reports) > 1) for k in count(1))
    return [next(of_reports if each.kind == REPORT else of_dumps) for each in inputs]


def _check_kinds(names: Sequence[str], inputs: Sequence[Input]) -> None:
    first = inputs[0].kind
    for name, each in zip(names, inputs, strict=True):
        if each.kind != first and not {first, each.kind} <= _OF_CORES:
            raise LayoutError(
                f"{names[0]} is {first} and {name} is {each.kind}, which count memory differently: "
                "compare dumps of one compiler"
            )


def _check_chips(names: Sequence[str], inputs: Sequence[Input]) -> None:
    known = [(n, s.chip) for n, s in zip(names, inputs, strict=True) if s.chip is not None]
    for name, chip in known:
        if chip != known[0][1]:
            a, b = (f"{n} is for {_chip(c)}" for n, c in (known[0], (name, chip)))
            raise LayoutError(
                f"{a}, {b}: compare programs for one chip, or state the chip of all with chip=..."
            )


def _chip(chip: Chip) -> str:
    room = (f"{n:,} B of {memory}" for memory, n in chip.capacity.items())
    return f"{chip.name} ({', '.join([f'{dims(chip.grid)} cores', *room])})"


def _check_alike(names: Sequence[str], values: Sequence[Match]) -> None:
    for k, name in enumerate(names):
        if k and not any(match.values[0] and match.values[k] for match in values):
            raise LayoutError(
                f"{names[0]} and {name} have no common value, that is, one of the same op and "
                "shape: compare dumps of one function"
            )
