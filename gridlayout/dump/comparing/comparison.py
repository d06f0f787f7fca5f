"""`Comparison`: the costs of several programs side by side, and the values whose layouts differ.

It prints as text, HTML, JSON and a drawing, all with the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from textwrap import fill
from typing import Any, NamedTuple

from gridlayout.costs import Costs, Described
from gridlayout.draw.bars import Measure, bars
from gridlayout.dump.comparing.matching import Match, Value, matched
from gridlayout.dump.pages.sections import place
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip, number, size
from gridlayout.public import public
from gridlayout.svg import Drawing
from gridlayout.tables.cells import shard, tensor
from gridlayout.tables.html import framed, heading, html_page, paragraph, plain_table
from gridlayout.tables.names import check_count, checked_names, names_of
from gridlayout.tables.table import WIDTH, tables_of
from gridlayout.tables.words import dims, plain
from gridlayout.tenstorrent.tensor_type import ttnn_place
from gridlayout.tenstorrent.ttnn_layout import Ranges, TtnnLayout

_COLUMN = 18  # most characters of a program's column
_REST = 14  # more characters of it, where layouts differ only in their cores or shard
_SHOWN = 50  # most values in the text and the page

Cells = tuple[str, ...]

REPORT = "report"  # the kind of a report of `gl.on_grid`, which has costs but no values
# The kinds whose costs are of DRAM and L1.
_OF_CORES = frozenset(("ttnn", "d2m", REPORT))
_MEASURES = {  # fields of `Costs`; l1 and dram are memories, which chips may call otherwise
    "ops": "ops that make values",
    "relayouts": "of these only relayouts",
    "dram_bytes": "{dram} read and written",
    "l1_bytes": "{l1} read and written",
    "relayout_bytes": "to other cores, by relayouts",
    "core_bytes": "to other cores, by all ops",
    "chip_bytes": "from other chips",
    "held_bytes": "all values",
    "padding_bytes": "padding of all values",
    "dram_peak": "{dram} peak",
    "l1_peak": "{l1} peak of one core",
    "memory_peak": "memory peak of a device",
    "cores": "cores busy (of results)",
}


class Program(NamedTuple):
    """One program of a comparison. chip: None if it states none."""

    name: str
    costs: Costs
    chip: Chip | None = None


@public
@dataclass(frozen=True)
class Comparison:
    """The result of `gl.compare` and `Explanation.diff`: several programs side by side.

    programs: their names and costs. values: the values of the dumps, each as it is in every dump.
    dumps: indices of the programs that are dumps; reports have no values. left_out: the number of
    values that are not compared. `str` gives two tables of at most 100 columns, `to_html` and
    notebooks a page, and `draw()` bars.
    """

    programs: tuple[Program, ...]
    values: tuple[Match, ...] = field(repr=False)
    dumps: tuple[int, ...] = ()
    left_out: int = 0

    @cached_property
    def rows(self) -> tuple[Match, ...]:
        """The values whose layouts differ between dumps, or that a dump lacks."""
        return tuple(match for match in self.values if match.is_changed)

    @property
    def saved(self) -> dict[str, float]:
        """The costs of the first program minus those of the last, by field of `Costs`.

        Bytes and counts; negative where the last program costs more. Only fields that both have.
        """
        first, last = self.programs[0].costs, self.programs[-1].costs
        pairs = {name: (getattr(first, name), getattr(last, name)) for name in _MEASURES}
        return {name: a - b for name, (a, b) in pairs.items() if a is not None and b is not None}

    @property
    def measures(self) -> list[tuple[str, list[float | None], list[str]]]:
        """The label of each measure, its number per program, and these as text.

        Measures that are 0 or unknown in all programs are left out.
        """
        found = []
        for name, what in _MEASURES.items():
            numbers = [getattr(program.costs, name) for program in self.programs]
            if any(numbers):
                label = what.format(l1=self._memory("l1"), dram=self._memory("dram"))
                words = [_words(name, each.costs) for each in self.programs]
                found.append((label, numbers, words))
        return found

    def _memory(self, space: str) -> str:
        """Return the chips' own name of a memory, where all have the same."""
        names = {each.chip.titled(space) for each in self.programs if each.chip is not None}
        return names.pop() if len(names) == 1 else space.upper()

    @property
    def title(self) -> str:
        """The programs, the chip, and how many values have equal layouts, in one sentence."""
        names = ", ".join(plain(program.name, _COLUMN) for program in self.programs)
        chips = [program.chip for program in self.programs if program.chip is not None]
        chip = f", on {plain(chips[0].name)} ({dims(chips[0].grid)} cores)" if chips else ""
        if len(self.dumps) < 2:
            return f"{names}{chip}"
        same, others = len(self.values) - len(self.rows), len(self.rows)
        equal = f"{number(same, 'value')} with equal layouts"
        return f"{names}{chip}: {equal}, {others:,} with different ones"

    # -- output ------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [fill(self.title, WIDTH, subsequent_indent="  ")]
        parts += tables_of(self._cost_rows(_COLUMN), 1, False)
        if self.rows:
            parts += tables_of(self._value_rows(_COLUMN), 2, True)
        return "\n\n".join([*parts, *self._notes()])

    __repr__ = __str__

    def to_json(self) -> str:
        """Return the comparison as JSON: `programs` with costs, and the `values` that differ."""
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
        """Return the comparison as a self-contained HTML page, with the drawing."""
        return html_page(f"Comparison of {self.title}", self._repr_html_())

    def _repr_html_(self) -> str:
        head, *costs = self._cost_rows(1 << 10)
        parts = [self.draw().svg, plain_table(head, costs)]
        if self.rows:
            head, *rows = self._value_rows(1 << 10)
            parts += [heading("Values whose layouts differ"), plain_table(head, rows)]
        return framed([*parts, *map(paragraph, self._notes())])

    def draw(self) -> Drawing:
        """Draw the costs as bars: one panel per measure, with one bar per program."""
        names = [plain(program.name, _COLUMN) for program in self.programs]
        measures = [Measure(*each) for each in self.measures]
        return bars("What the layouts cost", self.title, names, measures)

    def _cost_rows(self, width: int) -> list[Cells]:
        """Return the head and one row per measure."""
        count = range(len(self.programs))
        return [
            ("", *(plain(program.name, width) for program in self.programs)),
            *(
                (what, *(_with_change(numbers, words, k) for k in count))
                for what, numbers, words in self.measures
            ),
        ]

    def _value_rows(self, width: int) -> list[Cells]:
        """Return the head and one row per value whose layouts differ."""
        names = (plain(self.programs[k].name, width) for k in self.dumps)
        return [("op", "tensor", *names), *(_row(m, width) for m in self.rows[:_SHOWN])]

    def _notes(self) -> list[str]:
        hidden = len(self.rows) - _SHOWN
        notes = [f"and {hidden:,} more whose layouts differ"] if hidden > 0 else []
        if self.left_out:
            notes.append(
                f"{number(self.left_out, 'value')} with less waste are not compared; "
                "to compare them, pass gl.explain(..., limit=65536)"
            )
        return notes


def _words(name: str, costs: Costs) -> str:
    """Return a measure as text."""
    n = getattr(costs, name)
    if n is None:
        return "-"
    if name == "cores":  # on average, and of how many results they are known
        return f"{n:,.0f} ({costs.results_known} of {costs.results})"
    if name == "padding_bytes":
        return f"{size(n)} ({costs.padding_share:.0%})"
    return size(int(n)) if name.endswith(("bytes", "peak")) else f"{n:,.0f}"


def _with_change(numbers: Sequence[float | None], words: Sequence[str], k: int) -> str:
    """Return a number as text, with its change relative to the first."""
    first, now = numbers[0], numbers[k]
    if not k or not first or now is None or first == now or "(" in words[k]:
        return words[k]
    factor = now / first
    return f"{words[k]} {f'x{factor:,.1f}' if factor >= 2 else f'{factor - 1:+.0%}'}"


def _row(match: Match, width: int) -> Cells:
    """Return the row of one value: its op, its tensor, and its layout in each dump."""
    words = [None if value is None else words_of(value.layout) for value in match.values]
    if len(set(words)) == 1:  # the layouts differ in something that these words do not show
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
    """Return a layout in a few words: memory, sharding and cores."""
    return ttnn_place(layout) if isinstance(layout, TtnnLayout) else place(layout)


def _rest(value: Value) -> str:
    """Return the cores or the shard, which `words_of` does not show."""
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


# -- the programs ----------------------------------------------------------------------------------


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
    named = zip(found, inputs, strict=True)
    programs = tuple(Program(name, each.costs, each.chip) for name, each in named)
    return Comparison(programs, tuple(values), dumps, sum(each.left_out for each in inputs))


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
