"""Divides a table of positions into cells: rectangles that are drawn in one colour.

A small table has one cell per position. A large table is cut where its content changes. Changes are
found by bisection along a few lines; if there are too many, every second or third is used. Equal
neighbours are then merged. The positions are never listed: the content of a large cell is found
from samples, including its corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import numpy as np

from gridlayout.arguments import Ints

# Maps positions (rows, columns) to keys of their content; it broadcasts like a NumPy function.
Key = Callable[[Ints, Ints], Ints]
Span = tuple[int, int]

# Special keys: padding, several different keys, and positions outside the buffer.
PADDING, MIXED, NOTHING = -1, -2, -3
_PROBES, _LINES, _SAMPLES = 4096, 9, 8
_CHANGES = 16  # changes along one axis at which lines along the other axis are sampled
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are aligned with no period
_WIDEST = 96  # most positions along an axis that are drawn one by one


@dataclass(frozen=True)
class Cell:
    """A rectangle of a table: half-open spans of rows and columns, and the key of its content.

    found: the distinct keys of the samples. sampled: the number of samples. share: the share of
    padding among those inside the buffer, if all others of them have one key.
    """

    rows: Span
    columns: Span
    key: int
    found: tuple[int, ...]
    sampled: int
    share: float = 0.0

    @property
    def size(self) -> int:
        """The number of positions in the rectangle."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])


def one_by_one(rows: int, columns: int, budget: int) -> bool:
    """Return whether a table is small enough for one cell per position.

    >>> one_by_one(3, 5, 1024), one_by_one(1, 1000, 1024)
    (True, False)
    """
    return rows * columns <= budget and max(rows, columns) <= _WIDEST


def find_cells(rows: int, columns: int, key: Key, budget: int) -> list[Cell]:
    """Return the cells of a table: at most `budget`, which cover each position once.

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
    # Changes along a few lines of one axis select the lines to sample along the other axis.
    down, across = _points(rows, _LINES), _points(columns, _LINES)
    along_rows = _SampledAxis(rows, lambda at: _table(key, at, across))
    down = np.union1d(down, along_rows.some())
    along_columns = _SampledAxis(columns, lambda at: _table(key, down, at).T)
    across = np.union1d(across, along_columns.some())
    axes = (_SampledAxis(rows, lambda at: _table(key, at, across)), along_columns)
    # Each axis may have sqrt(budget) spans; an axis that needs fewer leaves more to the other.
    limit = max(isqrt(budget), 1)
    needs = [len(axis.changed) + 1 for axis in axes]
    most = [
        limit if other > limit else max(limit, min(budget // other, _WIDEST))
        for other in reversed(needs)
    ]
    row_edges, column_edges = (axis.edges(n) for axis, n in zip(axes, most, strict=True))
    return _merged(_sampled(row_edges, column_edges, key))


def _table(key: Key, rows: Ints, columns: Ints) -> Ints:
    found = np.asarray(key(rows[:, None], columns[None, :]), np.int64)
    return np.broadcast_to(found, (len(rows), len(columns)))


def _points(n: int, count: int) -> Ints:
    """Return at most `count` indices below n, including the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64).clip(0, n - 1))


class _SampledAxis:
    """An axis of n indices, and the sampled indices between which its content changes.

    along: maps indices to rows of keys.
    """

    def __init__(self, n: int, along: Callable[[Ints], Ints]) -> None:
        self.n, self.along = n, along
        self.at = _points(n, _PROBES)
        self.values = along(self.at)
        self.changed = np.flatnonzero((self.values[1:] != self.values[:-1]).any(axis=1))

    def some(self) -> Ints:
        """Return a few of the indices before which the content changes."""
        return self.at[self.changed[:: max(len(self.changed) // _CHANGES, 1)] + 1]

    def edges(self, limit: int) -> list[int]:
        """Return the edges of at most `limit` spans, at all changes or at a part of them."""
        every = -(-(len(self.changed) + 1) // limit)
        changed = self.changed[every - 1 :: every]
        low, high, before = self.at[changed], self.at[changed + 1], self.values[changed]
        while (high - low > 1).any():
            middle = (low + high) // 2
            same = (self.along(middle) == before).all(axis=1)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return [0, *high.tolist(), self.n]


def _sampled(row_edges: list[int], column_edges: list[int], key: Key) -> list[list[Cell]]:
    """Return the cells between the edges, row by row."""
    rows, columns = (list(pairwise(edges)) for edges in (row_edges, column_edges))
    down, across = (
        np.concatenate([_inside(low, high) for low, high in runs]) for runs in (rows, columns)
    )
    keys = _table(key, down, across).reshape(len(rows), _SAMPLES, len(columns), _SAMPLES)
    table = []
    for span, row in zip(rows, keys.transpose(0, 2, 1, 3), strict=True):
        cells = []
        for column, block in zip(columns, row, strict=True):
            found = tuple(np.unique(block).tolist())
            at = [np.unique(_inside(*ends), return_index=True)[1] for ends in (span, column)]
            once = block[np.ix_(*at)]
            held = _content(found)
            there = max(int((once != NOTHING).sum()), 1)
            share = float((once == PADDING).sum() / there) if held >= 0 else 0.0
            cells.append(Cell(span, column, held, found, once.size, share))
        table.append(cells)
    return table


def _content(found: tuple[int, ...]) -> int:
    """Return the key of a cell with these keys: that of its data, `MIXED` if there are several."""
    data = [key for key in found if key >= 0]
    if data:
        return data[0] if len(data) == 1 else MIXED
    return PADDING if PADDING in found else NOTHING


def _inside(low: int, high: int) -> Ints:
    """Return `_SAMPLES` indices of a span: all of a short one, else its ends and irregular ones."""
    steps = np.arange(_SAMPLES)
    if high - low > _SAMPLES:
        parts = (steps + steps * _GOLDEN % 1 - 0.5) / (_SAMPLES - 1)
        steps = (parts * (high - 1 - low)).astype(np.int64)
        steps[0], steps[-1] = 0, high - 1 - low
    return (low + steps).clip(low, high - 1)


def _merged(table: list[list[Cell]]) -> list[Cell]:
    """Merge equal neighbours: along each row, then downwards if their columns are equal."""
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
    """Return one cell from the beginning of `a` to the end of `b`."""
    share = (a.share * a.size + b.share * b.size) / (a.size + b.size)
    rows, columns = (a.rows[0], b.rows[1]), (a.columns[0], b.columns[1])
    return Cell(rows, columns, a.key, a.found, a.sampled + b.sampled, share)
