"""`TopKeys`: a counter that stores only the keys of highest rank."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any


class TopKeys:
    """A counter of keys that stores the `limit` keys of highest rank.

    The counts of stored keys are exact: the lowest stored rank only rises, so a key that was
    removed is never stored again. A key must always have the same rank.

    >>> top = TopKeys(1)
    >>> for key, rank in (("a", 1), ("b", 5), ("a", 1), ("b", 5)):
    ...     _ = top.add(key, rank, key.upper())
    >>> list(top.worst_first()), top.total
    ([('b', 2, 'B')], 4)
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.seen: dict[Any, list[Any]] = {}  # count, rank, and the data of the first occurrence
        self.heap: list[tuple[Any, int, Any]] = []

    def rejects(self, rank: Any) -> bool:
        """Return whether a key of this rank can't be stored; if so, count the key.

        Otherwise nothing is counted, and `add` must be called.
        """
        low = len(self.heap) == self.limit and rank < self.heap[0][0]
        self.total += low
        return low

    def add(self, key: Any, rank: Any, first: Any, times: int = 1) -> bool:
        """Count `key` and return whether it is stored. first: the data stored with a new key."""
        self.total += times
        if entry := self.seen.get(key):
            entry[0] += times
            return True
        item = (rank, -self.total, key)
        if len(self.heap) < self.limit:
            heapq.heappush(self.heap, item)
        elif item < self.heap[0]:
            return False
        else:
            del self.seen[heapq.heapreplace(self.heap, item)[2]]
        self.seen[key] = [times, rank, first]
        return True

    def worst_first(self) -> Iterator[tuple[Any, int, Any]]:
        """Yield each stored key, its count and its data, from the highest rank to the lowest."""
        for _, _, key in sorted(self.heap, reverse=True):
            yield key, self.seen[key][0], self.seen[key][2]

    def merge(self, other: TopKeys) -> None:
        """Add the counts of another counter."""
        held = 0
        for _, _, key in sorted(other.heap, reverse=True):
            times, rank, first = other.seen[key]
            self.add(key, rank, first, times)
            held += times
        self.total += other.total - held
