"""Aligned text columns, split into tables that are no wider than a page."""

from __future__ import annotations

from collections.abc import Container, Sequence

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
