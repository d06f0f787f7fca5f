"""Groups boxes that devices send each other into rounds.

In a round, each device sends at most one box and receives at most one. The buffer of a round has
the size of its largest box, so boxes of similar sizes are grouped into classes. Within a class an
edge colouring gives the fewest rounds. Rounds of different classes are then merged if no device is
in both and the bytes allow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Ints
from gridlayout.sharding.limits import LIMITS


@dataclass(frozen=True, eq=False)
class Messages:
    """Boxes to send, one per row: the sending device, the receiving device, and the extents."""

    source: Ints
    target: Ints
    sizes: Ints

    @property
    def volume(self) -> int:
        """The number of elements in all boxes."""
        return int(self.sizes.prod(axis=1).sum())

    def in_rounds(self, limit: float) -> list[Ints]:
        """Return the rows of each round, in as few rounds as found within `limit` elements.

        limit: the most elements of all rounds' buffers; at least `volume`.

        >>> ends = np.array([1, 2, 3]), np.array([0, 1, 2])
        >>> Messages(*ends, np.array([[9], [8], [1]])).in_rounds(20)
        [array([0, 1]), array([2])]
        """
        good = [c for c in self._classes() if sum(map(self._taken, c)) <= limit]
        # Without merging, a class takes as many rounds as the most boxes of one device.
        good.sort(key=lambda c: sum(most_at_one(self.source[k], self.target[k]) for k in c))
        found = []
        for classes in good[: LIMITS.tried_rounds]:
            rounds = [r for own in classes for r in self._coloured(own)]
            found.append(self._merged(rounds, limit) if len(classes) > 1 else rounds)
        return min(found, key=len)

    def _taken(self, rows: Ints) -> int:
        return len(rows) * int(self.sizes[rows].max(axis=0).prod())

    def _classes(self) -> Iterator[list[Ints]]:
        """Yield several divisions of the rows into classes of similar sizes."""
        known = set()
        for ratio in LIMITS.ratios:
            numbers = np.zeros(len(self.sizes), np.int64)
            for column in self.sizes.T:
                extents, which = np.unique(column, return_inverse=True)
                levels, level, top = [0] * len(extents), 0, 0
                for k, n in reversed([*enumerate(extents.tolist())]):
                    if not top or top > ratio * n:
                        level, top = level + 1, n
                    levels[k] = level
                numbers = numbers * (level + 1) + np.array(levels)[which]
            if numbers.tobytes() not in known:
                known.add(numbers.tobytes())
                yield [np.flatnonzero(numbers == k) for k in np.unique(numbers)]

    def _coloured(self, rows: Ints) -> list[Ints]:
        colours = coloured(self.source[rows], self.target[rows])
        return [rows[colours == k] for k in range(int(colours.max()) + 1)]

    def _merged(self, rounds: list[Ints], limit: float) -> list[Ints]:
        """Merge rounds of disjoint devices, those that add the fewest elements first, up to the
        limit.
        """
        count = 1 + int(max(self.source.max(), self.target.max()))
        ends = np.zeros((len(rounds), 2 * count), np.int64)
        for k, rows in enumerate(rounds):
            ends[k, self.source[rows]] = ends[k, count + self.target[rows]] = 1
        boxes = np.array([self.sizes[rows].max(axis=0) for rows in rounds])
        lengths = np.array([len(rows) for rows in rounds])
        taken = boxes.prod(axis=1) * lengths
        rest, merged = limit - int(taken.sum()), dict(enumerate(rounds))

        def added(k: int) -> NDArray[np.float64]:
            more = np.maximum(boxes, boxes[k]).prod(axis=1) * (lengths + lengths[k])
            able = ends @ ends[k] == 0
            able[k] = False
            return np.where(able, more - taken - taken[k], np.inf)

        table = np.stack([added(k) for k in range(len(rounds))])
        while True:
            i, j = (int(k) for k in np.unravel_index(table.argmin(), table.shape))
            if not table[i, j] <= rest:
                return list(merged.values())
            rest -= table[i, j]
            merged[i] = np.sort(np.concatenate([merged[i], merged.pop(j)]))
            boxes[i] = np.maximum(boxes[i], boxes[j])
            lengths[i] += lengths[j]
            taken[i] = boxes[i].prod() * lengths[i]
            ends[i] += ends[j]
            ends[j] = 1  # round j no longer exists
            table[j] = table[:, j] = np.inf
            table[i] = table[:, i] = added(i)


def most_at_one(source: Ints, target: Ints) -> int:
    """Return the most messages that one device sends or receives: a lower bound of the rounds.

    >>> most_at_one(np.array([0, 0, 1]), np.array([1, 2, 2]))
    2
    """
    return max(int(np.bincount(ends).max()) for ends in (source, target))


def coloured(source: Ints, target: Ints) -> Ints:
    """Return the round of each message, in the fewest rounds, by alternating paths.

    This is an edge colouring of a bipartite graph (Kőnig's theorem).

    >>> coloured(np.array([0, 0, 1]), np.array([1, 2, 2])).tolist()
    [0, 1, 0]
    """
    count = most_at_one(source, target)
    ends = (source.tolist(), target.tolist())
    # For each sender and receiver: its free rounds as bits, and its message in each round.
    free = [[(1 << count) - 1] * (max(side) + 1) for side in ends]
    at: list[list[dict[int, int]]] = [[{} for _ in side] for side in free]
    found = [0] * len(source)
    # Messages in order of the distance between their devices: those of one distance fill a round.
    for n in np.lexsort((source, (target - source) % (1 + max(map(max, ends))))).tolist():
        s, t = ends[0][n], ends[1][n]
        both = free[0][s] & free[1][t]
        if both:
            a = (both & -both).bit_length() - 1
        else:
            a, b = ((rounds & -rounds).bit_length() - 1 for rounds in (free[0][s], free[1][t]))
            _swap(at, free, ends, found, at[1][t][a], a, b)
        found[n] = a
        at[0][s][a] = at[1][t][a] = n
        free[0][s] &= ~(1 << a)
        free[1][t] &= ~(1 << a)
    return np.array(found, np.int64)


def _swap(
    at: list[list[dict[int, int]]],
    free: list[list[int]],
    ends: tuple[list[int], list[int]],
    found: list[int],
    first: int,
    a: int,
    b: int,
) -> None:
    """Exchange rounds `a` and `b` along the path that begins with message `first` of round `a`."""
    path, side, colour = [first], 0, b
    while (message := at[side][ends[side][path[-1]]].get(colour)) is not None:
        path.append(message)
        side, colour = 1 - side, a + b - colour
    for message in path:
        for k in (0, 1):
            del at[k][ends[k][message]][found[message]]
            free[k][ends[k][message]] |= 1 << found[message]
        found[message] = a + b - found[message]
    for message in path:
        for k in (0, 1):
            at[k][ends[k][message]][found[message]] = message
            free[k][ends[k][message]] &= ~(1 << found[message])
