"""`Table`: rows of values under named columns, as aligned text, as HTML and as records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gridlayout.tables.columns import aligned
from gridlayout.tables.html import html_table


class Column(NamedTuple):
    """A column of a table.

    text: of a value that is not None. is_number: whether cells are aligned right, and sorted by
    value on a page.
    """

    name: str
    text: Callable[[Any], str] = str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of values, one per column; `print` shows them as aligned text, with `-` for None.

    >>> table = Table((Column("op"), Column("bytes", "{:,}".format, True)), [("exp", 1024)])
    >>> print(table)
    op   bytes
    exp  1,024
    >>> table.records
    [{'op': 'exp', 'bytes': 1024}]
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict per row, of values by column: what `pandas.DataFrame` and JSON take."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The names of the columns, and then the text of each row."""
        return [
            tuple(column.name for column in self.columns),
            *(
                tuple(
                    "-" if value is None else column.text(value)
                    for column, value in zip(self.columns, row, strict=True)
                )
                for row in self.rows
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
        """The table as HTML, with the values by which numbers are sorted."""
        head, *rows = self.cells
        data = [{head[k]: row[k] or 0 for k in self.numbers} for row in self.rows]
        words = [column.name for column in self.columns if not column.is_number]
        return html_table(head, rows, data, words)
