"""Live ranges: the bytes that are held over time, and which values share memory.

A value is live at every time from a first to a last one, both included. Times are whole numbers
from 0 on, such as the numbers of a program's steps. `peak` and `held_over_time` add up the values
that are live at one time. Values that are never live at once may be in the same place: `first_fit`
gives addresses; `in_turn` and `in_results` share places as XLA's buffer assignment does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from math import inf
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Interval(NamedTuple):
    """The first and the last time at which a value is live, and its bytes.

    A value whose last time precedes its first is never live.
    """

    first: int
    last: int
    nbytes: int


def held_over_time(intervals: Iterable[Interval], times: int) -> list[int]:
    """Return the bytes that are live at each of the first `times` times.

    >>> held_over_time([Interval(0, 1, 8), Interval(1, 2, 4)], 4)
    [8, 12, 4, 0]
    """
    changes = [0] * (times + 1)
    for first, last, nbytes in intervals:
        if first <= last and first < times:
            changes[first] += nbytes
            changes[min(last + 1, times)] -= nbytes
    return list(accumulate(changes[:times]))


def peak(intervals: Iterable[Interval]) -> tuple[int, int]:
    """Return the most bytes that are live at one time, and the first such time; (0, 0) for none.

    intervals: in order of their first times.

    >>> peak([Interval(0, 2, 8), Interval(2, 3, 4), Interval(3, 3, 5)])
    (12, 2)
    """
    most = at = held = 0
    live: list[tuple[int, int]] = []  # a heap of (last, bytes)
    for first, last, nbytes in intervals:
        if last < first:
            continue
        while live and live[0][0] < first:
            held -= heappop(live)[1]
        heappush(live, (last, nbytes))
        held += nbytes
        if held > most:
            most, at = held, first
    return most, at


def highest_over_time(intervals: Iterable[Interval], times: int) -> list[int]:
    """Return the largest number of the intervals that are live at each of the first `times` times.

    With the ends of blocks instead of bytes: how far memory is used. 0 where nothing is live.

    >>> highest_over_time([Interval(0, 1, 8), Interval(1, 2, 12)], 4)
    [8, 12, 12, 0]
    """
    ordered = iter(sorted(intervals, key=lambda each: each.first))
    following = next(ordered, None)
    live: list[tuple[int, int]] = []  # a heap of (-number, last)
    found = []
    for time in range(times):
        while following is not None and following.first <= time:
            heappush(live, (-following.nbytes, following.last))
            following = next(ordered, None)
        while live and live[0][1] < time:
            heappop(live)
        found.append(max(-live[0][0], 0) if live else 0)
    return found


# -- live values -----------------------------------------------------------------------------------


def changes(
    ranges: Mapping[K, tuple[int, int]], times: int, always: bool = False
) -> Iterator[tuple[int, list[K], list[K]]]:
    """Yield each time that ends a live range: the values that began, and those that end there.

    ranges: the first and the last time of each value. A value is among those that began once, at
    the first yielded time at which it is live. The last time is yielded too; always: so is every
    other one.

    >>> list(changes({"a": (0, 1), "b": (1, 2)}, 3))
    [(1, ['a', 'b'], ['a']), (2, [], ['b'])]
    """
    begin: dict[int, list[K]] = {}
    end: dict[int, list[K]] = {times - 1: []}
    for value, (first, last) in ranges.items():
        begin.setdefault(first, []).append(value)
        end.setdefault(last, []).append(value)
    began: list[K] = []
    for time in range(times):
        began += begin.get(time, ())
        if always or time in end:
            yield time, began, end.get(time, [])
            began = []


def live_values(
    ranges: Mapping[K, tuple[int, int]], known: Mapping[K, V], times: int
) -> Iterator[tuple[int, dict[K, V]]]:
    """Yield each time that ends a live range, with the live values and what is `known` about them.

    At any other time the live values are among those of the next time that is yielded. Values of
    which nothing is known are left out. The yielded dict is the same object each time.

    >>> [(n, [*live]) for n, live in live_values({"a": (0, 1), "b": (1, 2)}, {"a": 1, "b": 2}, 3)]
    [(1, ['a', 'b']), (2, ['b'])]
    """
    live: dict[K, V] = {}
    ranges = {value: ends for value, ends in ranges.items() if value in known}
    for time, began, ended in changes(ranges, times):
        live |= {value: known[value] for value in began}
        yield time, live
        for value in ended:
            del live[value]


# -- addresses -------------------------------------------------------------------------------------


def first_fit(intervals: Sequence[Interval]) -> list[int]:
    """Return the address of each value: the lowest at which it overlaps no value live with it.

    Of values with the same first time, earlier ones are placed first.

    >>> first_fit([Interval(0, 1, 64), Interval(0, 3, 32), Interval(2, 3, 32), Interval(2, 3, 64)])
    [0, 64, 0, 96]
    """
    addresses = [0] * len(intervals)
    gaps = _Gaps(each.nbytes for each in intervals)
    live: list[tuple[int, int]] = []  # a heap of (last, number)
    for n in sorted(range(len(intervals)), key=lambda n: intervals[n].first):
        first, last, nbytes = intervals[n]
        while live and live[0][0] < first:
            k = heappop(live)[1]
            gaps.give(addresses[k], addresses[k] + intervals[k].nbytes)
        if nbytes:
            addresses[n] = gaps.take(nbytes)
            heappush(live, (last, n))
    return addresses


class _Gaps:
    """The free ranges of addresses, by the largest of the `sizes` that each has room for.

    starts: of the gaps of each size, as heaps. Gaps that are gone are dropped when they are on top.
    lowest: a binary tree over the sizes; the first gap of each, and of each half, quarter, etc.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = sorted({*sizes} - {0})
        self.starts: list[list[int]] = [[] for _ in self.sizes]
        self.leaves = 1 << len(self.sizes).bit_length()
        self.lowest: list[float] = [inf] * (2 * self.leaves)
        self.end_of: dict[int, float] = {}
        self.start_of: dict[float, int] = {}
        self._add(0, inf)

    def take(self, nbytes: int) -> int:
        """Take `nbytes` of the lowest gap that has them; return their address."""
        low, high = self.leaves + bisect_left(self.sizes, nbytes), 2 * self.leaves
        found = inf
        while low < high:
            if low & 1:
                found = min(found, self.lowest[low])
                low += 1
            low, high = low >> 1, high >> 1
        start = int(found)
        end = self._remove(start)
        if start + nbytes < end:
            self._add(start + nbytes, end)
        return start

    def give(self, start: int, end: float) -> None:
        """Free the addresses from `start` to `end`, and join them with the gaps beside them."""
        if start in self.start_of:
            start = self.start_of[start]
            self._remove(start)
        if end in self.end_of:
            end = self._remove(int(end))
        self._add(start, end)

    def _size(self, start: int, end: float) -> int:
        return bisect_right(self.sizes, end - start) - 1

    def _add(self, start: int, end: float) -> None:
        self.end_of[start], self.start_of[end] = end, start
        if (size := self._size(start, end)) >= 0:
            heappush(self.starts[size], start)
            self._update(size)

    def _remove(self, start: int) -> float:
        end = self.end_of.pop(start)
        del self.start_of[end]
        if (size := self._size(start, end)) >= 0:
            self._update(size)
        return end

    def _update(self, size: int) -> None:
        """Set the first gap of a size."""
        heap, end_of = self.starts[size], self.end_of
        while heap and (heap[0] not in end_of or self._size(heap[0], end_of[heap[0]]) != size):
            heappop(heap)
        at = self.leaves + size
        self.lowest[at] = heap[0] if heap else inf
        while at > 1:
            at >>= 1
            self.lowest[at] = min(self.lowest[2 * at], self.lowest[2 * at + 1])


# -- shared places ---------------------------------------------------------------------------------


def in_turn(
    first: Sequence[int],
    last: Sequence[int],
    turns: Iterable[tuple[int, int]],
    may: Callable[[int, int], bool] | None = None,
) -> tuple[list[int], list[int]]:
    """Return for each buffer the first one whose place it uses, and the last use of each place.

    turns: pairs (new, old) of buffers of which `new` may use the place of `old`, in order of the
    time at which `new` is made. It does so if that is the last use of `old`, and of what is in its
    place since. may: whether a buffer may use the place of another one, besides.

    >>> in_turn([0, 1, 2], [1, 2, 2], [(1, 0), (2, 1)])
    ([0, 0, 0], [2, 2, 2])
    """
    place, end = list(range(len(first))), list(last)
    for new, old in turns:
        k = place[old]
        if place[new] == new != k and end[k] == first[new] and (may is None or may(new, k)):
            place[new], end[k] = k, end[new]
    return place, end


def in_results(
    results: Sequence[Interval], others: Sequence[Interval], counts: Sequence[int] | None = None
) -> list[list[int]]:
    """Return for each of the other values the number of the result in whose place it is, or none.

    The largest values are placed first, of equal ones the first in the sequence; each in the first
    result that is large enough and free throughout. counts: how often there is each of the others;
    once, by default. The results of all of these are returned.

    >>> in_results([Interval(4, 9, 8), Interval(2, 9, 8)], [Interval(0, 1, 8), Interval(1, 3, 4)])
    [[0], []]
    """
    found: list[list[int]] = [[] for _ in others]
    times = sorted({t for each in (*results, *others) for t in (each.first, each.last + 1)})
    at = {time: k for k, time in enumerate(times)}
    taken = _Taken(len(times))
    for n, each in enumerate(results):
        taken.add(at[each.first], at[each.last + 1], 1 << n)
    larger = sorted(range(len(results)), key=lambda n: results[n].nbytes)
    large = 0  # the results that are large enough, as a set of bits
    for k in sorted(range(len(others)), key=lambda k: -others[k].nbytes):
        first, last, nbytes = others[k]
        while larger and results[larger[-1]].nbytes >= nbytes:
            large |= 1 << larger.pop()
        free, places = large and large & ~taken.between(at[first], at[last + 1]), 0
        for _ in range(1 if counts is None else counts[k]):
            if not free:
                break
            lowest = free & -free
            found[k].append(lowest.bit_length() - 1)
            free, places = free ^ lowest, places | lowest
        if places:
            taken.add(at[first], at[last + 1], places)
    return found


class _Taken:
    """Which places are in use at which times: sets of places as bits, in a binary tree over times.

    whole: the places in use at all times of a part of the tree. some: at any time of it.
    """

    def __init__(self, times: int) -> None:
        self.times = times
        self.whole, self.some = [0] * (2 * times), [0] * (2 * times)

    def add(self, start: int, stop: int, places: int) -> None:
        """Add places from `start` to before `stop`."""
        for part in self._parts(start, stop):
            self.whole[part] |= places
            while part and places & ~self.some[part]:
                self.some[part] |= places
                part >>= 1

    def between(self, start: int, stop: int) -> int:
        """Return the places in use at any time from `start` to before `stop`."""
        found = 0
        for part in self._parts(start, stop):
            found |= self.some[part]
        for part in (start + self.times, stop - 1 + self.times):
            while part:  # larger parts around those above have either end in them
                found |= self.whole[part]
                part >>= 1
        return found

    def _parts(self, start: int, stop: int) -> Iterator[int]:
        """Yield the parts of the tree that make up the times from `start` to before `stop`."""
        low, high = start + self.times, stop + self.times
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low, high = low >> 1, high >> 1
