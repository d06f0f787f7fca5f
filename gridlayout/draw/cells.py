"""Cells: which rectangles of a table of positions are drawn, and what each of them holds.

A small table has a cell for every position. A large one is cut where what it holds changes, found
by halving intervals along a few lines; where that makes too many cells, at every second such place,
or every third. Equal neighbours then become one rectangle. The positions themselves are never
listed: what a cell of many positions holds is told from samples, its corners among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
# What the positions (rows, columns) hold, as numbers; it broadcasts like a NumPy function.
Key = Callable[[Ints, Ints], Ints]
Span = tuple[int, int]

# Keys of cells of padding, of several things, and of no positions of the buffer at all.
PADDING, MIXED, NOTHING = -1, -2, -3
_PROBES, _LINES, _SAMPLES = 4096, 9, 8
_CHANGES = 16  # of one side that say along which lines the other one is looked at
_GOLDEN = (5**0.5 - 1) / 2  # its multiples keep step with no period
_WIDEST = 96  # positions along an axis that are drawn one by one


@dataclass(frozen=True)
class Cell:
    """A rectangle of a table: half-open spans of rows and columns, and the key of what it holds.

    found: the distinct keys of the samples. sampled: how many positions were looked at. share: of
    padding among them, where the cell holds one thing beside.
    """

    rows: Span
    columns: Span
    key: int
    found: tuple[int, ...]
    sampled: int
    share: float = 0.0

    @property
    def size(self) -> int:
        """Positions in the rectangle."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])


def one_by_one(rows: int, columns: int, budget: int) -> bool:
    """Whether a table is small enough for a cell at every position.

    >>> one_by_one(3, 5, 1024), one_by_one(1, 1000, 1024)
    (True, False)
    """
    return rows * columns <= budget and max(rows, columns) <= _WIDEST


def find_cells(rows: int, columns: int, key: Key, budget: int) -> list[Cell]:
    """The cells of a table, at most `budget` of them, which cover each position once.

    >>> left = find_cells(1000, 1000, lambda r, c: (c >= 300) + 0 * r, 64)
    >>> [(cell.rows, cell.columns, cell.key) for cell in left]
    [((0, 1000), (0, 300), 0), ((0, 1000), (300, 1000), 1)]
    """
    if not rows * columns:
        return []
    if one_by_one(rows, columns, budget):
        keys = _table(key, np.arange(rows), np.arange(columns)).tolist()
        return [
            Cell((r, r + 1), (c, c + 1), keys[r][c], (keys[r][c],), 1)
            for r in range(rows)
            for c in range(columns)
        ]
    # What is seen along few lines of one side says which lines of the other one to look along.
    down, across = _points(rows, _LINES), _points(columns, _LINES)
    along_rows = _Side(rows, lambda at: _table(key, at, across))
    down = np.union1d(down, along_rows.some())
    along_columns = _Side(columns, lambda at: _table(key, down, at).T)
    across = np.union1d(across, along_columns.some())
    sides = (_Side(rows, lambda at: _table(key, at, across)), along_columns)
    # Each side may have the square root; one that needs less leaves the rest to the other.
    limit = max(isqrt(budget), 1)
    needs = [len(side.changed) + 1 for side in sides]
    most = [
        limit if other > limit else max(limit, min(budget // other, _WIDEST))
        for other in reversed(needs)
    ]
    row_edges, column_edges = (side.edges(n) for side, n in zip(sides, most, strict=True))
    return _merged(_sampled(row_edges, column_edges, key))


def _table(key: Key, rows: Ints, columns: Ints) -> Ints:
    found = np.asarray(key(rows[:, None], columns[None, :]), np.int64)
    return np.broadcast_to(found, (len(rows), len(columns)))


def _points(n: int, count: int) -> Ints:
    """At most `count` indices below n, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64).clip(0, n - 1))


class _Side:
    """An axis of n indices, and between which ones the rows that `along` gives for them change."""

    def __init__(self, n: int, along: Callable[[Ints], Ints]) -> None:
        self.n, self.along = n, along
        self.at = _points(n, _PROBES)
        self.values = along(self.at)
        self.changed = np.flatnonzero((self.values[1:] != self.values[:-1]).any(axis=1))

    def some(self) -> Ints:
        """A few of the indices before which it changes."""
        return self.at[self.changed[:: max(len(self.changed) // _CHANGES, 1)] + 1]

    def edges(self, limit: int) -> list[int]:
        """Where to cut the axis into at most `limit` spans: where it changes, or at some places."""
        every = -(-(len(self.changed) + 1) // limit)
        changed = self.changed[every - 1 :: every]
        low, high, before = self.at[changed], self.at[changed + 1], self.values[changed]
        while (high - low > 1).any():
            middle = (low + high) // 2
            same = (self.along(middle) == before).all(axis=1)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return [0, *high.tolist(), self.n]


def _sampled(row_edges: list[int], column_edges: list[int], key: Key) -> list[list[Cell]]:
    """The cells between the edges, row by row."""
    spans, sides = (list(pairwise(edges)) for edges in (row_edges, column_edges))
    down, across = (
        np.concatenate([_inside(low, high) for low, high in runs]) for runs in (spans, sides)
    )
    keys = _table(key, down, across).reshape(len(spans), _SAMPLES, len(sides), _SAMPLES)
    table = []
    for span, row in zip(spans, keys.transpose(0, 2, 1, 3), strict=True):
        cells = []
        for side, block in zip(sides, row, strict=True):
            found = tuple(np.unique(block).tolist())
            at = [np.unique(_inside(*ends), return_index=True)[1] for ends in (span, side)]
            once = block[np.ix_(*at)]
            padding = float((once == PADDING).mean())
            beside = [k for k in found if k != PADDING]
            held = beside[0] if len(beside) == 1 else MIXED if beside else PADDING
            share = padding if held >= 0 else 0.0
            cells.append(Cell(span, side, held, found, once.size, share))
        table.append(cells)
    return table


def _inside(low: int, high: int) -> Ints:
    """`_SAMPLES` indices of a span: all, if they are so few, else its ends and irregular others."""
    steps = np.arange(_SAMPLES)
    if high - low > _SAMPLES:
        parts = (steps + steps * _GOLDEN % 1 - 0.5) / (_SAMPLES - 1)
        steps = (parts * (high - 1 - low)).astype(np.int64)
        steps[0], steps[-1] = 0, high - 1 - low
    return (low + steps).clip(low, high - 1)


def _merged(table: list[list[Cell]]) -> list[Cell]:
    """Equal neighbours as one cell: along each row, then downwards where the columns agree."""
    done: list[Cell] = []
    open_: dict[Span, Cell] = {}
    for row in table:
        runs: list[Cell] = []
        for cell in row:
            last = runs[-1] if runs else None
            if last is not None and last.found == cell.found:
                runs[-1] = _joined(last, cell)
            else:
                runs.append(cell)
        still: dict[Span, Cell] = {}
        for run in runs:
            above = open_.pop(run.columns, None)
            if above is not None and above.found == run.found:
                still[run.columns] = _joined(above, run)
            else:
                done += [above] if above is not None else []
                still[run.columns] = run
        done += open_.values()
        open_ = still
    return sorted([*done, *open_.values()], key=lambda cell: (cell.rows, cell.columns))


def _joined(a: Cell, b: Cell) -> Cell:
    """Two cells as one, from the beginning of the first to the end of the second."""
    share = (a.share * a.size + b.share * b.size) / (a.size + b.size)
    rows, columns = (a.rows[0], b.rows[1]), (a.columns[0], b.columns[1])
    return Cell(rows, columns, a.key, a.found, a.sampled + b.sampled, share)
