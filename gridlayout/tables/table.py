"""`Table`: rows of values under named columns, as aligned text, as HTML and as records."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gridlayout.tables.html import html_table


class Column(NamedTuple):
    """A column of a table.

    text: of a value that is not None. is_number: whether cells are aligned right, and sorted by
    value on a page. of: the value of a row; without it, a row is a sequence of values. unknown: the
    text of None: "-" for no value, which sorts as 0, another one for a value that is not known.
    """

    name: str
    text: Callable[[Any], str] = str
    is_number: bool = False
    of: Callable[[Any], Any] | None = None
    unknown: str = "-"


@dataclass(frozen=True)
class Table:
    """Rows under named columns; `print` shows them as aligned text.

    >>> table = Table((Column("op"), Column("bytes", "{:,}".format, True)), [("exp", 1024)])
    >>> print(table)
    op   bytes
    exp  1,024
    >>> table.records
    [{'op': 'exp', 'bytes': 1024}]
    """

    columns: Sequence[Column]
    rows: Sequence[Any]

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def values(self) -> list[list[Any]]:
        """The values of each row."""
        return [
            [
                row[k] if column.of is None else column.of(row)
                for k, column in enumerate(self.columns)
            ]
            for row in self.rows
        ]

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict per row, of values by column: what `pandas.DataFrame` and JSON take."""
        return [dict(zip(self.head, row, strict=True)) for row in self.values]

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The names of the columns, and then the text of each row."""
        return [
            self.head,
            *(
                tuple(
                    column.unknown if value is None else column.text(value)
                    for column, value in zip(self.columns, row, strict=True)
                )
                for row in self.values
            ),
        ]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The indices of the columns of numbers."""
        return tuple(k for k, column in enumerate(self.columns) if column.is_number)

    @property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return aligned(self.cells, self.numbers)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def html(self) -> str:
        """The table as HTML, with the values by which numbers are sorted: 0 where there is none."""
        head, *rows = self.cells
        data = [
            {
                column.name: value or 0
                for column, value in zip(self.columns, row, strict=True)
                if column.is_number and (value is not None or column.unknown == "-")
            }
            for row in self.values
        ]
        words = [column.name for column in self.columns if not column.is_number]
        return html_table(head, rows, data, words)


WIDTH = 100  # characters per line


def aligned(rows: Sequence[Sequence[str]], numbers: Container[int] = ()) -> list[str]:
    """Return rows of cells as lines; numbers: the columns that are aligned to the right.

    The last cell of a row that is shorter than the first one spans the remaining columns.

    >>> aligned([("a", "10"), ("bcd", "9"), ("all",)], (1,))
    ['a    10', 'bcd   9', 'all']
    """
    count = len(rows[0])
    whole = [row if len(row) == count else row[:-1] for row in rows]
    widths = [max(len(row[k]) for row in whole if k < len(row)) for k in range(count)]
    return [
        "  ".join(
            cell.rjust(width) if k in numbers else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]


def tables_of(rows: Sequence[Sequence[str]], fixed: int, is_words: bool) -> list[str]:
    """Return rows as aligned tables, each at most `WIDTH` characters wide.

    Every table repeats the first `fixed` cells of each row; the remaining cells are spread over the
    tables. is_words: whether these are aligned left, as words are, instead of right.

    >>> tables_of([("", "a"), ("time", "1 us")], 1, False)
    ['         a\\ntime  1 us']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    tables: list[list[int]] = []
    for k in range(fixed, len(widths)):
        last = [*tables[-1], k] if tables else []
        if last and sum(widths[j] + 2 for j in (*range(fixed), *last)) - 2 <= WIDTH:
            tables[-1] = last
        else:
            tables.append([k])
    shown = [[*range(fixed), *some] for some in tables]
    numbers = () if is_words else range(fixed, len(widths))
    return ["\n".join(aligned([[row[k] for k in some] for row in rows], numbers)) for some in shown]
