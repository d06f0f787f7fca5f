"""Sides: programs to be compared; whether they can be, what they are called, and the comparison."""

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

REPORT = "report"  # the kind of what `gl.on_grid` says, which has costs and no values
# The kinds whose costs are of DRAM and L1.
_OF_CORES = frozenset(("ttnn", "d2m", REPORT))


class Side(NamedTuple):
    """One program: where it is from, what kind of text it is, its costs and its values.

    chip: None where it says none. note: why nothing was found, if so. left_out: values that were
    not kept.
    """

    source: str
    kind: str
    costs: Costs
    chip: Chip | None = None
    values: tuple[Value, ...] = ()
    note: str = ""
    left_out: int = 0


def side_by_side(sides: Sequence[Side], names: Any = None) -> Comparison:
    """The comparison of two programs or more.

    Raises `LayoutError` for programs that have nothing in common to compare: of kinds that count
    memory otherwise, for other chips, or without one value alike; and for names that don't fit.
    """
    check_count(len(sides))
    found = _names(sides) if names is None else checked_names(names, len(sides))
    for name, side in zip(found, sides, strict=True):
        if side.note:
            raise LayoutError(f"{name}: {side.note}")
    _check_kinds(found, sides)
    _check_chips(found, sides)
    dumps = tuple(k for k, side in enumerate(sides) if side.kind != REPORT)
    values = matched([sides[k].values for k in dumps])
    _check_alike([found[k] for k in dumps], values)
    return Comparison(
        tuple(
            Program(name, side.costs, side.chip) for name, side in zip(found, sides, strict=True)
        ),
        tuple(values),
        dumps,
        sum(side.left_out for side in sides),
    )


def _names(sides: Sequence[Side]) -> list[str]:
    """Those of dumps without regard to reports, which are called what makes them."""
    of_dumps = iter(names_of([side.source for side in sides if side.kind != REPORT]))
    reports = [side for side in sides if side.kind == REPORT]
    of_reports = iter(reports[0].source + f" {k}" * (len(reports) > 1) for k in count(1))
    return [next(of_reports if side.kind == REPORT else of_dumps) for side in sides]


def _check_kinds(names: Sequence[str], sides: Sequence[Side]) -> None:
    first = sides[0].kind
    for name, side in zip(names, sides, strict=True):
        if side.kind != first and not {first, side.kind} <= _OF_CORES:
            raise LayoutError(
                f"{names[0]} is {first} and {name} is {side.kind}, which count memory otherwise: "
                "compare dumps of one compiler"
            )


def _check_chips(names: Sequence[str], sides: Sequence[Side]) -> None:
    known = [(n, s.chip) for n, s in zip(names, sides, strict=True) if s.chip is not None]
    for name, chip in known:
        if chip != known[0][1]:
            a, b = (f"{n} is for {_chip(c)}" for n, c in (known[0], (name, chip)))
            raise LayoutError(
                f"{a}, {b}: compare programs for one chip, or say whose memory is meant, chip=..."
            )


def _chip(chip: Chip) -> str:
    room = (f"{n:,} B of {memory}" for memory, n in chip.capacity.items())
    return f"{chip.name} ({', '.join([f'{dims(chip.grid)} cores', *room])})"


def _check_alike(names: Sequence[str], values: Sequence[Match]) -> None:
    for k, name in enumerate(names):
        if k and not any(match.values[0] and match.values[k] for match in values):
            raise LayoutError(
                f"{names[0]} and {name} have no value alike, of one op and shape: compare dumps "
                "of one function"
            )
