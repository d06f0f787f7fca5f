"""Aligned text columns, split into tables that are no wider than a page."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100  # characters per line


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
    return [_aligned(rows, [*range(fixed), *some], fixed, is_words) for some in tables]


def _aligned(
    rows: Sequence[Sequence[str]], columns: Sequence[int], fixed: int, is_words: bool
) -> str:
    widths = {k: max(len(cells[k]) for cells in rows) for k in columns}
    return "\n".join(
        "  ".join(
            cells[k].ljust(widths[k]) if is_words or k < fixed else cells[k].rjust(widths[k])
            for k in columns
        ).rstrip()
        for cells in rows
    )
