"""`Kept`: keys counted, of which the few of the highest rank are kept."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any


class Kept:
    """Keys counted; of all that were seen, the `limit` of the highest rank are kept.

    One that was let go never comes back, as the lowest rank kept only rises: so counts are exact.

    >>> kept = Kept(1)
    >>> for key, rank in (("a", 1), ("b", 5), ("a", 1), ("b", 5)):
    ...     _ = kept.add(key, rank, key.upper())
    >>> list(kept.worst_first()), kept.total
    ([('b', 2, 'B')], 4)
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.seen: dict[Any, list[Any]] = {}  # count, rank, and what was given with the first
        self.heap: list[tuple[Any, int, Any]] = []

    def passes_over(self, rank: Any) -> bool:
        """Count a key of too low a rank to be kept; False, and not counted, where it may be.

        What is kept has such a rank, so this key was not kept before.
        """
        low = len(self.heap) == self.limit and rank < self.heap[0][0]
        self.total += low
        return low

    def add(self, key: Any, rank: Any, first: Any, times: int = 1) -> bool:
        """Count `key`; `first` is kept when it is new. Whether it is kept."""
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
        """Each key kept, its count, and what was given with the first."""
        for _, _, key in sorted(self.heap, reverse=True):
            yield key, self.seen[key][0], self.seen[key][2]

    def take(self, other: Kept) -> None:
        """Count what another one has kept, and all that it has seen."""
        held = 0
        for _, _, key in sorted(other.heap, reverse=True):
            times, rank, first = other.seen[key]
            self.add(key, rank, first, times)
            held += times
        self.total += other.total - held
