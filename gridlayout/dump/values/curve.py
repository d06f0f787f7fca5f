"""`Curve`: bytes over time, with a bounded number of points."""

from __future__ import annotations

from operator import itemgetter

MOST = 48  # points; twice as many are merged in pairs
_BARS = "▁▂▃▄▅▆▇█"


class Curve:
    """Points (time, bytes). Where there are many, each is the highest of several in a row.

    >>> curve = Curve()
    >>> for at, nbytes in enumerate((0, 5, 10, 20, 2)):
    ...     curve.add(at, nbytes)
    >>> curve.points[-2:], bars(curve.points)
    (((3, 20), (4, 2)), '▁▂▄█▁')
    """

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []
        self._each, self._count = 1, 0  # values that one point stands for; those so far

    def add(self, at: int, nbytes: int) -> None:
        """Add the bytes at a time, which is not before the last one."""
        points = self._points
        if self._count % self._each == 0:
            points.append((at, nbytes))
        elif nbytes > points[-1][1]:
            points[-1] = (at, nbytes)
        self._count += 1
        if len(points) == 2 * MOST:
            pairs = (points[k : k + 2] for k in range(0, 2 * MOST, 2))
            self._points = [max(pair, key=itemgetter(1)) for pair in pairs]
            self._each *= 2

    @property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The points so far."""
        return tuple(self._points)


def bars(points: tuple[tuple[int, int], ...]) -> str:
    """Return the bytes of each point as a bar; the highest is full."""
    most = max((nbytes for _, nbytes in points), default=0) or 1
    return "".join(_BARS[(len(_BARS) - 1) * nbytes // most] for _, nbytes in points)
