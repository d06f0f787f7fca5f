"""`Shifted`: a view of an array by slices, strides, padding, reversals, joins and repetitions.

Along each dim, an index of the view is a piecewise affine function of one index of the array. A
view of a view is one too, so that a chain of such operations is one view of its first operand, and
an interior that nothing is read from need not be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape

# The most runs along one dim: an interleaving of elements is no view.
_MOST = 16


@dataclass(frozen=True)
class Run:
    """`count` positions first, first + step, ...

    first: negative where they are outside of the array.
    """

    count: int
    first: int
    step: int = 1

    @property
    def is_fill(self) -> bool:
        """Whether the positions are outside of the array."""
        return self.first < 0

    @property
    def last(self) -> int:
        """The last position."""
        return self.first + (self.count - 1) * self.step

    def cut(self, start: int, count: int, stride: int) -> Run:
        """Return every `stride`-th of its positions from `start` on."""
        if self.is_fill:
            return Run(count, -1, 0)
        return Run(count, self.first + start * self.step, self.step * stride)

    @property
    def reversed(self) -> Run:
        """The positions from the last one to the first."""
        if self.is_fill or self.count == 1:
            return self
        return replace(self, first=self.last, step=-self.step)

    def joined(self, other: Run) -> Run | None:
        """Return the run of both; None if that is no run."""
        if self.is_fill and other.is_fill:
            return Run(self.count + other.count, -1, 0)
        if self.is_fill or other.is_fill:
            return None
        steps = {run.step for run in (self, other) if run.count > 1}
        step = steps.pop() if len(steps) == 1 else None
        if step is None and not steps and self.count == other.count == 1:
            step = other.first - self.first
        if step is None or other.first != self.first + self.count * step or not step:
            return None
        return Run(self.count + other.count, self.first, step)

    def positions(self) -> NDArray[np.int64]:
        """Return the positions, -1 where they are outside of the array."""
        if self.is_fill:
            return np.full(self.count, -1)
        return self.first + np.arange(self.count) * self.step


Runs = tuple[Run, ...]


@dataclass(frozen=True)
class Row:
    """How one dim of the array is read: along `dim` of the view, or at one position (None)."""

    dim: int | None
    runs: Runs

    @property
    def has_fill(self) -> bool:
        """Whether some positions are outside of the array."""
        return any(run.is_fill for run in self.runs)

    def positions(self) -> NDArray[np.int64]:
        """Return the positions in the array, in the order of the view."""
        return np.concatenate([run.positions() for run in self.runs])


@dataclass(frozen=True)
class Shifted:
    """A view of an array: its shape, and for each dim of the array how it is read.

    Dims of the view along which no dim is read have extent 1. fill: the bytes of the value outside
    of the array; None if nothing is outside.

    >>> x = Shifted.of((8, 4))
    >>> rolled = Shifted.joined([x.cut(0, 6, 8), x.cut(0, 0, 6)], 0)
    >>> rolled.rows[0].positions().tolist()
    [6, 7, 0, 1, 2, 3, 4, 5]
    >>> rolled.cut(0, 1, 8, 3).rows[0].positions().tolist()
    [7, 2, 5]
    """

    shape: Shape
    rows: tuple[Row, ...]
    fill: bytes | None = None

    @classmethod
    def of(cls, shape: Shape) -> Shifted:
        """Return an array of a shape as a view of itself."""
        return cls(shape, tuple(Row(d, (Run(n, 0),)) for d, n in enumerate(shape)))

    @classmethod
    def filled(cls, shape: Shape, fill: bytes) -> Shifted:
        """Return an array of one value as a view, which reads no dim of any array."""
        return cls(shape, (), fill)

    @cached_property
    def along(self) -> dict[int, int]:
        """For each dim of the view along which one of the array is read, that dim."""
        return {row.dim: s for s, row in enumerate(self.rows) if row.dim is not None}

    @cached_property
    def boxes(self) -> list[tuple[int, int]]:
        """Along each dim of the array, the first and the last position read; (0, -1) for none.

        >>> Shifted.of((8,)).cut(0, 2, 8, 3).boxes
        [(2, 5)]
        """
        found = []
        for row in self.rows:
            ends = [(run.first, run.last) for run in row.runs if not run.is_fill]
            found.append((min(map(min, ends), default=0), max(map(max, ends), default=-1)))
        return found

    def cut(self, d: int, start: int, limit: int, stride: int = 1) -> Shifted | None:
        """Return the positions start, start + stride, ... before `limit` along a dim."""
        if (start, limit, stride) == (0, self.shape[d], 1):
            return self
        count = max(-(-(limit - start) // stride), 0)
        if d not in self.along:
            return self if count == 1 else None
        found: list[Run] = []
        ends = accumulate((run.count for run in self.rows[self.along[d]].runs), initial=0)
        for run, at in zip(self.rows[self.along[d]].runs, ends, strict=False):
            first = max(-(-(at - start) // stride), 0)  # of the new positions, the first in the run
            last = min(-(-(at + run.count - start) // stride), count)
            if first < last:
                found.append(run.cut(start + first * stride - at, last - first, stride))
        return self._with(d, found)

    def padded(self, d: int, low: int, high: int, inside: int, fill: bytes) -> Shifted | None:
        """Return the view with positions outside of the array added, or removed, along a dim."""
        if (low, high, inside) == (0, 0, 0):
            return self
        if self.fill not in (None, fill) or inside or d not in self.along:
            return None
        x: Shifted | None = self
        if low < 0 or high < 0:
            x = self.cut(d, max(-low, 0), self.shape[d] - max(-high, 0))
        if x is None:
            return None
        before, after = ([Run(n, -1, 0)] if n > 0 else [] for n in (low, high))
        found = x._with(d, [*before, *x.rows[x.along[d]].runs, *after])
        return found and replace(found, fill=fill if low > 0 or high > 0 else self.fill)

    def reversed(self, d: int) -> Shifted | None:
        """Return the view with a dim reversed."""
        if d not in self.along:
            return self
        return self._with(d, [run.reversed for run in self.rows[self.along[d]].runs[::-1]])

    def moved(self, by: Sequence[int]) -> Shifted:
        """Return the view of an array whose positions are so many later along each dim.

        >>> Shifted.of((8,)).cut(0, 5, 8).moved([-5]).rows[0].positions().tolist()
        [0, 1, 2]
        """
        rows = tuple(
            Row(row.dim, tuple(r if r.is_fill else replace(r, first=r.first + n) for r in row.runs))
            for row, n in zip(self.rows, by, strict=True)
        )
        return replace(self, rows=rows)

    def repeated(self, d: int, times: int) -> Shifted | None:
        """Return the view, `times` times one after another along a dim."""
        if d not in self.along:
            return None
        return self._with(d, [*self.rows[self.along[d]].runs] * min(times, _MOST + 1))

    def on_dims(self, dims: Sequence[int | None]) -> Shifted:
        """Return the view with other dims. dims: of each new dim, the old one; None: extent 1.

        Old dims that are left out have extent 1.
        """
        shape = tuple(1 if d is None else self.shape[d] for d in dims)
        new = {d: k for k, d in enumerate(dims) if d is not None}
        rows = tuple(
            row if row.dim is None else Row(new.get(row.dim), row.runs) for row in self.rows
        )
        return replace(self, shape=shape, rows=rows)

    @staticmethod
    def joined(views: Sequence[Shifted], d: int) -> Shifted | None:
        """Return views of the same array, one after another along a dim; some may be `filled`."""
        fills = {each.fill for each in views} - {None}
        first = next((each for each in views if d in each.along), None)
        if first is None or len(fills) > 1:
            return None
        s = first.along[d]
        runs: list[Run] = []
        for each in (each._along(d, s) for each in views):
            if not each.rows:
                runs.append(Run(each.shape[d], -1, 0))
                continue
            others = [row for k, row in enumerate(each.rows) if k != s]
            if others != [row for k, row in enumerate(first.rows) if k != s]:
                return None
            if each.along != first.along:
                return None
            runs += each.rows[s].runs
        found = first._with(d, runs)
        return found and replace(found, fill=fills.pop() if fills else None)

    def _along(self, d: int, s: int) -> Shifted:
        """Return the view with dim `s` of the array, read at one position, as its dim `d`."""
        if not self.rows or d in self.along or self.rows[s].dim is not None:
            return self
        rows = tuple(Row(d, row.runs) if k == s else row for k, row in enumerate(self.rows))
        return replace(self, rows=rows)

    def _with(self, d: int, runs: Sequence[Run]) -> Shifted | None:
        """Return the view with other runs along a dim; None if they are none, or too many."""
        found: list[Run] = []
        for run in runs:
            if len(found) > _MOST:
                return None
            run = Run(1, run.first) if run.count == 1 and not run.is_fill else run
            both = found[-1].joined(run) if found else None
            found[-1:] = [both] if both else [*found[-1:], run]
        extent = sum(run.count for run in found)
        if not extent or len(found) > _MOST:
            return None
        shape = tuple(extent if k == d else n for k, n in enumerate(self.shape))
        s = self.along[d]
        rows = tuple(Row(d, tuple(found)) if k == s else row for k, row in enumerate(self.rows))
        return replace(self, shape=shape, rows=rows)
