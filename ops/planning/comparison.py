"""`TimeComparison`: the times of plans and compiled programs on one machine, side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from textwrap import fill
from typing import Any, NamedTuple

from gridlayout.draw.bars import Measure, bars
from gridlayout.layouts.memory import ON_CHIP, number, size
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.planning.equation import Equation
from gridlayout.ops.planning.kinds import KINDS, kind_of
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.public import public
from gridlayout.svg import Drawing
from gridlayout.tables.html import framed, heading, html_page, paragraph, plain_table
from gridlayout.tables.table import WIDTH, tables_of
from gridlayout.tables.words import duration, plain, taken

_COLUMN = 34  # the widest column of a program
_SHOWN = 40  # the most equations in the text

Cells = tuple[str, ...]


class Timed(NamedTuple):
    """One program with its name and its simulation, and whether a compiler made it.

    carried: seconds to copy its arguments from the chip's DRAM to where the program takes them, and
    its results back to DRAM. Compiled programs do so themselves.
    """

    name: str
    simulation: Simulation
    is_compiled: bool = False
    carried: float = 0.0

    @property
    def whole(self) -> float:
        """Seconds from arguments in DRAM to results in DRAM."""
        return self.simulation.time + self.carried


@dataclass(frozen=True)
class Counterparts:
    """One equation in several programs; None for a program without it.

    kind, word: as in `Kind`. shape: of its first result, in the first program that has the
    equation.
    """

    kind: str
    word: str
    shape: tuple[int, ...]
    equations: tuple[Equation | None, ...]

    @property
    def seconds(self) -> tuple[float, ...]:
        """The seconds of each program for it; 0 for a program without it."""
        return tuple(0.0 if each is None else each.seconds for each in self.equations)

    @property
    def difference(self) -> float:
        """The largest difference in seconds between two programs."""
        return max(self.seconds) - min(self.seconds)

    @property
    def is_in_all(self) -> bool:
        """Whether every program has it."""
        return None not in self.equations


@public
@dataclass(frozen=True)
class TimeComparison:
    """The times of several programs on one machine; made by `gl.compare` of a plan and dumps.

    programs: their names and simulations. `print` shows for each program the totals and sums by
    kind; then equation by equation where it runs and how long it takes, the biggest difference
    first; then equations that only some programs have. Notebooks and `to_html` show a page,
    `draw()` bars. Times are seconds, sizes bytes.
    """

    programs: tuple[Timed, ...]
    equations: tuple[Counterparts, ...] = field(repr=False)

    @cached_property
    def rows(self) -> tuple[Counterparts, ...]:
        """The equations that take time in any program, the biggest difference first."""
        taken = (each for each in self.equations if any(each.seconds))
        return tuple(sorted(taken, key=lambda each: -each.difference))

    @property
    def saved(self) -> float:
        """The seconds by which the first program is faster than the last, from DRAM to DRAM."""
        return self.programs[-1].whole - self.programs[0].whole

    @property
    def by_kind(self) -> dict[str, tuple[float, ...]]:
        """The seconds of each program by kind of equation, without kinds that take no time."""
        found = {}
        for kind in KINDS:
            mine = [each.seconds for each in self.equations if each.kind == kind]
            sums = tuple(sum(column) for column in zip(*mine, strict=True))
            if any(sums):
                found[kind] = sums
        return found

    @property
    def measures(self) -> list[tuple[str, list[float | None], list[str]]]:
        """Each measure: its name, its numbers, and their texts."""
        made = [each.simulation for each in self.programs]
        l1, dram = map(made[0].machine.chip.titled, ON_CHIP)
        peaks = [max((n for _, n in each.in_dram), default=0) for each in made]
        times: list[tuple[str, Sequence[float | None]]] = [
            ("time", [each.time for each in made]),
            (f"from {dram} to {dram}", [each.whole for each in self.programs]),
            *((f"  {kind}", sums) for kind, sums in self.by_kind.items()),
            ("  of it between cores", [sum(e.movement for e in s.equations) for s in made]),
        ]
        sizes: list[tuple[str, Sequence[float | None]]] = [
            ("to a core from others", [each.received for each in made]),
            (f"{l1} peak of one core", [each.peak_bytes for each in made]),
            (f"{dram} peak", [n or None for n in peaks]),
        ]
        counts = [sum(1 for e in each.equations if e.seconds) for each in made]
        return [
            *((what, [*n], [*map(taken, n)]) for what, n in times if any(n)),
            *((what, [*n], [*map(_size, n)]) for what, n in sizes if any(n)),
            ("equations that take time", [*counts], [f"{n:,}" for n in counts]),
        ]

    @property
    def title(self) -> str:
        """The names of the programs and the machine."""
        simulation = self.programs[0].simulation
        mesh = dims_text(tuple(simulation.mesh.values()))
        return f"{', '.join(self._names)} on {mesh} {plain(simulation.machine.chip.name)}"

    # -- output ------------------------------------------------------------------------------------

    @property
    def _names(self) -> list[str]:
        return [plain(each.name, _COLUMN) for each in self.programs]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    @property
    def lines(self) -> list[str]:
        """The lines of the text: title, totals, equations in all programs, equations in some."""
        parts = [fill(self.title, WIDTH, subsequent_indent="  ")]
        parts += tables_of(self._sums(), 1, False)
        for name, rows in self._groups():
            parts += [name, *tables_of([self._head(), *map(_row, rows[:_SHOWN])], 2, True)]
            if len(rows) > _SHOWN:
                parts.append(_hidden(rows))
        return "\n\n".join(parts).split("\n")

    def _groups(self) -> list[tuple[str, list[Counterparts]]]:
        """The equations that all programs have, and the rest, each list with its heading."""
        found = [
            ("in all, the biggest difference first", [x for x in self.rows if x.is_in_all]),
            ("only in some", [x for x in self.rows if not x.is_in_all]),
        ]
        return [(name, rows) for name, rows in found if rows]

    def _sums(self) -> list[Cells]:
        count = range(len(self.programs))
        return [
            ("", *self._names),
            *((what, *(_against(n, words, k) for k in count)) for what, n, words in self.measures),
        ]

    def _head(self) -> Cells:
        return ("equation", "result", *self._names)

    def to_json(self) -> str:
        """Return it as JSON: the `programs`, and the `equations`, the biggest difference first."""
        programs = [
            {
                **{"name": each.name, "time": each.simulation.time, "whole": each.whole},
                **{"peak_bytes": each.simulation.peak_bytes, "links": each.simulation.links},
            }
            for each in self.programs
        ]
        rows = [
            {
                **{"kind": row.kind, "word": row.word, "shape": row.shape},
                "in": [each and _record(each) for each in row.equations],
            }
            for row in self.rows
        ]
        found = {"programs": programs, "by_kind": self.by_kind, "equations": rows}
        return json.dumps(found, indent=1)

    def to_html(self) -> str:
        """Return it as one self-contained page of HTML, with the drawing."""
        return html_page(f"Times of {self.title}", self._repr_html_())

    def _repr_html_(self) -> str:
        head, *sums = self._sums()
        parts = [self.draw().svg, plain_table(head, sums)]
        for name, rows in self._groups():
            parts += [heading(name), plain_table(self._head(), list(map(_row, rows[:_SHOWN])))]
            if len(rows) > _SHOWN:
                parts.append(paragraph(_hidden(rows)))
        return framed(parts)

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()

    def draw(self) -> Drawing:
        """Return the measures as bars: one panel per measure, with one bar per program."""
        measures = [Measure(what.strip(), n, words) for what, n, words in self.measures]
        return bars("What the programs take", self.title, self._names, measures)


def compare_times(programs: Sequence[Timed]) -> TimeComparison:
    """Return the comparison of programs that were simulated on one machine.

    Equations of two programs correspond if they do the same and have equally many elements in the
    result; among several of these, the first corresponds to the first, and so on.
    """
    found: dict[Any, list[Equation | None]] = {}
    for k, program in enumerate(programs):
        seen: Counter[Any] = Counter()
        for each in program.simulation.equations:
            kind = kind_of(each.name, program.is_compiled)
            key = *kind, prod(each.shape)
            found.setdefault((*key, seen[key]), [None] * len(programs))[k] = each
            seen[key] += 1
    return TimeComparison(
        tuple(programs),
        tuple(
            Counterparts(kind, word, next(e.shape for e in row if e is not None), tuple(row))
            for (kind, word, *_), row in found.items()
        ),
    )


def _hidden(rows: Sequence[Counterparts]) -> str:
    return f"and {number(len(rows) - _SHOWN, 'more equation')} with smaller differences"


def _row(row: Counterparts) -> Cells:
    """Return the cells of an equation: name, result, and for each program place, time and limit."""
    return (
        plain(row.word, 24),
        dims_text(row.shape) or "-",
        *("-" if each is None else plain(_cell_text(each), _COLUMN) for each in row.equations),
    )


def _cell_text(each: Equation) -> str:
    return ", ".join(filter(None, (each.place, duration(each.seconds), each.limit)))


def _record(each: Equation) -> dict[str, Any]:
    return {
        **{"name": each.name, "place": each.place, "limit": each.limit},
        **{"compute": each.compute, "movement": each.movement},
    }


def _size(nbytes: float | None) -> str:
    return "-" if nbytes is None else size(int(nbytes))


def _against(numbers: Sequence[float | None], words: Sequence[str], k: int) -> str:
    """Return the text of a number, with its ratio to the first one."""
    first, now = numbers[0], numbers[k]
    if not k or not first or not now or first == now:
        return words[k]
    return f"{words[k]} x{now / first:,.2f}"
