"""`Comparison`: what several programs' layouts cost, side by side, and which values lie otherwise.

In text, as HTML, as JSON and drawn; all have the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import fill
from typing import Any, NamedTuple

from gridlayout.costs import Costs, Described
from gridlayout.draw.bars import Measure, bars
from gridlayout.dump.comparing.matching import Match, Value
from gridlayout.dump.pages.table import place
from gridlayout.layouts.memory import Chip, number, size
from gridlayout.svg import Drawing
from gridlayout.tables.cells import shard, tensor, ttnn_place
from gridlayout.tables.columns import WIDTH, tables_of
from gridlayout.tables.html import framed, heading, html_page, paragraph, plain_table
from gridlayout.tables.words import dims, plain
from gridlayout.tenstorrent.ttnn_layout import Ranges, TtnnLayout

_COLUMN = 18  # of one program, at most
_REST = 14  # more of it, where more has to be said
_SHOWN = 50  # values of the text and the page

Cells = tuple[str, ...]

# Measures by the name of a field of `Costs`: what each is, and whether it is in bytes.
_MEASURES = (
    ("ops", "ops that make values", False),
    ("relayouts", "of these only relayouts", False),
    ("dram_bytes", "DRAM read and written", True),
    ("l1_bytes", "L1 read and written", True),
    ("relayout_bytes", "to other cores, by relayouts", True),
    ("core_bytes", "to other cores, by all ops", True),
    ("chip_bytes", "from other chips", True),
    ("held_bytes", "all values together", True),
    ("padding_bytes", "padding in them", True),
    ("dram_peak", "most of DRAM at a time", True),
    ("l1_peak", "most of one core's L1", True),
    ("memory_peak", "most of a device's memory", True),
    ("cores", "cores busy (of results)", False),
)


class Program(NamedTuple):
    """One side: what it is called, its costs, and the chip that it is for, if it says."""

    name: str
    costs: Costs
    chip: Chip | None = None


@dataclass(frozen=True)
class Comparison:
    """Programs side by side; made by `gl.compare` and by `Explanation.diff`.

    programs: their names and costs. values: those that the dumps have, each with what it is in
    every dump; dumps: which of the programs those are, by number. `str` has two tables of at most
    100 columns, notebooks and `to_html` a page, `draw()` bars.
    """

    programs: tuple[Program, ...]
    values: tuple[Match, ...] = field(repr=False)
    dumps: tuple[int, ...] = ()
    left_out: int = 0

    @cached_property
    def rows(self) -> tuple[Match, ...]:
        """The values that lie otherwise in another dump, or are not in all."""
        return tuple(match for match in self.values if match.is_changed)

    @property
    def saved(self) -> dict[str, float]:
        """What the last program saves of the first one's costs, by field of `Costs`.

        Bytes and counts; less than 0 where it takes more. Fields that both know.
        """
        first, last = self.programs[0].costs, self.programs[-1].costs
        pairs = {name: (getattr(first, name), getattr(last, name)) for name, _, _ in _MEASURES}
        return {name: a - b for name, (a, b) in pairs.items() if a is not None and b is not None}

    @property
    def measures(self) -> list[tuple[str, list[float | None], list[str]]]:
        """What each measure is, its numbers, and these in words; those that any program has."""
        found = []
        for name, what, is_bytes in _MEASURES:
            numbers = [getattr(program.costs, name) for program in self.programs]
            if any(numbers):
                words = [_words(n, is_bytes) for n in numbers]
                if name == "cores":
                    words = [_cores(program) for program in self.programs]
                if name == "padding_bytes":
                    words = [_padding(program.costs) for program in self.programs]
                found.append((what, numbers, words))
        return found

    @property
    def title(self) -> str:
        """Which programs, for which chip, and how many values lie alike, in words."""
        names = ", ".join(plain(program.name, _COLUMN) for program in self.programs)
        chips = [program.chip for program in self.programs if program.chip is not None]
        chip = f", on {plain(chips[0].name)} ({dims(chips[0].grid)} cores)" if chips else ""
        if len(self.dumps) < 2:
            return f"{names}{chip}"
        same, others = len(self.values) - len(self.rows), len(self.rows)
        verbs = "lies" if same == 1 else "lie", "does" if others == 1 else "do"
        return f"{names}{chip}: {number(same, 'value')} {verbs[0]} alike, {others:,} {verbs[1]} not"

    # -- output ------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [fill(self.title, WIDTH, subsequent_indent="  ")]
        parts += tables_of(self._cost_rows(_COLUMN), 1, False)
        if self.rows:
            parts += tables_of(self._value_rows(_COLUMN), 2, True)
        return "\n\n".join([*parts, *self._notes()])

    def to_json(self) -> str:
        """The same as JSON: the `programs` and their costs, and the `values` that differ."""
        programs = [
            {"name": each.name, "chip": each.chip and each.chip.name, **vars(each.costs)}
            for each in self.programs
        ]
        dumps = [self.programs[k].name for k in self.dumps]
        values = [
            {"op": match.op, "shape": match.shape, "in": list(map(_record, match.values))}
            for match in self.rows
        ]
        found = {"programs": programs, "saved": self.saved, "dumps": dumps, "values": values}
        return json.dumps({**found, "left_out": self.left_out}, indent=1)

    def to_html(self) -> str:
        """Return it as one self-contained page of HTML, with the drawing."""
        return html_page(f"Comparison of {self.title}", self._repr_html_())

    def _repr_html_(self) -> str:
        head, *costs = self._cost_rows(1 << 10)
        parts = [self.draw().svg, plain_table(head, costs)]
        if self.rows:
            head, *rows = self._value_rows(1 << 10)
            parts += [heading("Values that lie otherwise"), plain_table(head, rows)]
        return framed([*parts, *map(paragraph, self._notes())])

    def draw(self) -> Drawing:
        """The costs as bars: a panel a measure, in each a bar a program."""
        names = [plain(program.name, _COLUMN) for program in self.programs]
        measures = [Measure(*each) for each in self.measures]
        return bars("What the layouts cost", self.title, names, measures)

    def _cost_rows(self, width: int) -> list[Cells]:
        """The head, and a row a measure."""
        count = range(len(self.programs))
        return [
            ("", *(plain(program.name, width) for program in self.programs)),
            *(
                (what, *(_with_change(numbers, words, k) for k in count))
                for what, numbers, words in self.measures
            ),
        ]

    def _value_rows(self, width: int) -> list[Cells]:
        """The head, and a row a value that lies otherwise."""
        names = (plain(self.programs[k].name, width) for k in self.dumps)
        return [("op", "tensor", *names), *(_row(m, width) for m in self.rows[:_SHOWN])]

    def _notes(self) -> list[str]:
        hidden = len(self.rows) - _SHOWN
        notes = [f"and {hidden:,} more that lie otherwise"] if hidden > 0 else []
        if self.left_out:
            notes.append(
                f"{number(self.left_out, 'value')} of less waste are not compared: compare what "
                "gl.explain(..., limit=65536) gives"
            )
        return notes


def _words(n: float | None, is_bytes: bool) -> str:
    if n is None:
        return "-"
    return size(int(n)) if is_bytes else f"{n:,.0f}"


def _cores(program: Program) -> str:
    """Cores on average, and of how many of the results that is known."""
    costs = program.costs
    if costs.cores is None:
        return "-"
    return f"{costs.cores:,.0f} ({costs.results_known} of {costs.results})"


def _padding(costs: Costs) -> str:
    return f"{size(costs.padding_bytes)} ({costs.padding_share:.0%})"


def _with_change(numbers: Sequence[float | None], words: Sequence[str], k: int) -> str:
    """A number in words, and by how much it is more or less than the first."""
    first, now = numbers[0], numbers[k]
    if not k or not first or now is None or first == now or "(" in words[k]:
        return words[k]
    factor = now / first
    return f"{words[k]} {f'x{factor:,.1f}' if factor >= 2 else f'{factor - 1:+.0%}'}"


def _row(match: Match, width: int) -> Cells:
    """One value: its op, its tensor, and how it lies in each dump."""
    words = [None if value is None else words_of(value.layout) for value in match.values]
    if len(set(words)) == 1:  # what differs is in none of these words
        width += _REST
        words = [None if v is None else f"{words_of(v.layout)} {_rest(v)}" for v in match.values]
    elements = [None if value is None else _element(value) for value in match.values]
    if len({*elements} - {None}) > 1:
        words = [e and f"{e} {word}" for e, word in zip(elements, words, strict=True)]
    first = next(value for value in match.values if value is not None)
    return (
        plain(match.op, width + 6),
        plain(tensor(first.layout), width),
        *(plain(word or "-", width) for word in words),
    )


def words_of(layout: Described) -> str:
    """How a value is laid out, in a few words: memory, how it is divided, and the cores."""
    return ttnn_place(layout) if isinstance(layout, TtnnLayout) else place(layout)


def _rest(value: Value) -> str:
    """What tells layouts apart of which all else is the same: the cores, or the shard."""
    corners: Ranges = getattr(value.layout, "core_ranges", ())
    ranges = (f"({x},{y})-({right},{low})" for (x, y), (right, low) in corners)
    return " ".join(ranges) or shard(value.layout)


def _element(value: Value) -> str:
    return tensor(value.layout).partition("[")[0]


def _record(value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    held = value.layout.held
    return {
        **{"name": value.name, "line": value.line, "function": value.function},
        **{"layout": str(value.layout), "memory": held.memory, "bytes": held.nbytes},
    }
