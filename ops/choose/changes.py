"""What devices send to change the division of a value: an estimate from the two divisions alone.

The exact collectives depend on the layouts too: on extents that the mesh does not divide, and on
tiles. `Strategies.refined` finds them for the moves of a solution.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from gridlayout.caching import cached
from gridlayout.sharding.collectives import ALL_GATHER, ALL_TO_ALL, PERMUTE
from gridlayout.sharding.limits import LIMITS

Division = tuple[tuple[int, ...], ...]
Count = Callable[[Sequence[int]], int]


class Share(NamedTuple):
    """A collective over units of the mesh, by its shares of the bytes of the whole value.

    received, copied: what a device receives, and what it copies.
    """

    kind: str
    units: tuple[int, ...]
    received: float
    copied: float = 0.0


class Sent(NamedTuple):
    """The cost of a move: seconds, and the number of collectives that run unjoined."""

    seconds: float = 0.0
    alone: int = 0


class Summed(NamedTuple):
    """The cost of a sum: seconds, and the latency that it shares with sums that it joins, or 0."""

    seconds: float
    shared: float


class Joined(NamedTuple):
    """What a move sends, if it joins others that send the same, and the latency that they share."""

    kind: Hashable
    latency: float


class Way(NamedTuple):
    """A way to change a division: seconds of latency and per byte, and its collectives.

    copied: seconds per byte to copy what is received: joined collectives send copies, so they are
    joined only where that takes less than their latency.
    kinds: of the collectives, with the mesh axes that they are over.
    """

    latency: float
    per_byte: float
    copied: float
    kinds: tuple[tuple[str, tuple[str, ...]], ...]

    def alone(self, nbytes: int) -> Sent:
        """Return the cost for a value of `nbytes`."""
        return Sent(self.latency + self.per_byte * nbytes, len(self.kinds))


def without_order(before: Division | None, after: Division) -> tuple[Division | None, Division]:
    """Return two divisions of the dims that either divides, the same for any order of the dims.

    >>> without_order(((), (), (1,)), ((2,), (), ()))
    (((), (1,)), ((2,), ()))
    """
    if before is None:
        return None, after
    pairs = sorted(pair for pair in zip(before, after, strict=True) if any(pair))
    return tuple(old for old, _ in pairs), tuple(new for _, new in pairs)


@cached
def ways_to_change(
    before: Division, after: Division, sizes: tuple[int, ...]
) -> tuple[tuple[Share, ...], ...]:
    """Return the collectives of each way to change a division.

    sizes: the number of devices along each unit.
    """

    def count(units: Sequence[int]) -> int:
        return prod([sizes[u] for u in units])

    along = tuple(_along_units(before, after, count))
    found = [along]
    every = tuple(u for own in before for u in own)
    if len(along) > 1:
        n = count(every)
        found.append((Share(ALL_GATHER, every, (n - 1) / n),))
    if along:
        pieces = _in_pieces(before, after, count)
        received, least = (sum(each.received for each in way) for way in (along, pieces))
        if len(along) > 1 or received > LIMITS.slack * least:
            found.append(pieces)
    return tuple(found)


def _along_units(before: Division, after: Division, count: Count) -> Iterator[Share]:
    """Yield the collectives on whole units: slices first, then all-to-alls, then all-gathers.

    Along each dim, the units that stay are the first ones that both divisions have. A unit comes to
    a dim once those before it are there, and leaves it once those after it have left.
    """
    now = [list(own) for own in before]
    local = 1 / count([u for own in before for u in own])
    while (step := _next_step(now, after, count)) is not None:
        source, target, moved = step
        n = count(moved)
        if source is None and target is not None:
            local /= n
            now[target] += moved
        elif source is not None:
            del now[source][-len(moved) :]
            if target is None:
                yield Share(ALL_GATHER, tuple(moved), local * (n - 1))
                local *= n
            else:
                yield Share(ALL_TO_ALL, tuple(moved), local * (n - 1) / n)
                now[target] += moved


def _next_step(
    now: Sequence[list[int]], after: Division, count: Count
) -> tuple[int | None, int | None, list[int]] | None:
    """Return (source, target, units): a slice without source, a gather without target; or None."""
    wanted = {
        d: own[len(now[d]) :] for d, own in enumerate(after) if tuple(now[d]) == own[: len(now[d])]
    }
    used = {u for own in now for u in own}
    for d, more in wanted.items():
        if more and more[0] not in used:
            return None, d, [more[0]]
    for d, more in wanted.items():
        for k in range(len(more), 0, -1):
            for source, own in enumerate(now):
                if source != d and source not in wanted and tuple(own[-k:]) == more[:k]:
                    return source, d, list(more[:k])
    coming = {u for own in after for u in own}
    # Those that no dim of the result has are gathered first, and of these the fewest.
    leaving = []
    for d, own in enumerate(now):
        rest = own[_kept(own, after[d]) :]
        if rest:
            comes = not coming.isdisjoint(rest)
            leaving.append((comes, count(rest), d, own[-1:] if comes else rest))
    if not leaving:
        return None
    _, _, d, moved = min(leaving)
    return d, None, moved


def _kept(own: Sequence[int], after: Sequence[int]) -> int:
    same = 0
    while same < min(len(own), len(after)) and own[same] == after[same]:
        same += 1
    return same


def _in_pieces(before: Division, after: Division, count: Count) -> tuple[Share, ...]:
    """Return the permutes that bring a device the boxes that it lacks, one for each that sends.

    If there are many, they are one all-to-all. They are along the units that leave their place:
    along others, a device's own copy serves.
    """
    part = 1 / count([u for own in after for u in own])
    had, sources = 1.0, 1
    along: list[int] = []
    for old, new in zip(before, after, strict=True):
        same = _kept(old, new)
        along += old[same:]
        n, m = count(old[same:]), count(new[same:])
        sources *= -(-n // m)
        # The share of the new part that every device has already.
        had *= 0.0 if n > 1 and m > 1 else 1 / n
    rounds = sources - (had > 0)
    if not rounds or had == 1:
        return ()
    units = tuple(sorted(along))
    if rounds > LIMITS.few_rounds:
        return (Share(ALL_TO_ALL, units, part * (1 - had), 2 * part),)
    piece, put = part * (1 - had) / rounds, part if sources > 1 else 0.0
    return (Share(PERMUTE, units, piece, piece + put / rounds),) * rounds
