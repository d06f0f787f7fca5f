"""What a collective takes along links: the formulas, and the ways over several axes.

Ring and line formulas as in the scaling book's chapter on sharding (jax-ml/scaling-book). Over
several axes a gather or a sum goes in one of two manners, or in both: axes share the bytes, which
go along all of them at once, as on a torus; or one axis after another, as between hosts and within
them, where few bytes go over the slow links: a gather first along these, a scattered sum at last.
The cheapest is taken. Pieces of an all-to-all and of a permute go along each axis that
they have to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import NamedTuple

from gridlayout.sharding.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
)
from gridlayout.sharding.topology import Path

# Up to so many axes every order is tried; of more, those with the same links go together.
_EACH, _MOST = 3, 4


class Leg(NamedTuple):
    """One kind of links in a stage: seconds besides bytes, seconds a received byte, and the share
    of all bytes that is received along it.
    """

    label: str
    latency: float
    per_byte: float
    share: float


class Stage(NamedTuple):
    """What goes along several links at the same time; start: seconds before the first hop."""

    start: float
    legs: tuple[Leg, ...]


@dataclass(frozen=True)
class Way:
    """Stages one after another, of one collective."""

    stages: tuple[Stage, ...]

    def seconds(self, received: float, together: int = 1) -> float:
        """What it takes to receive so many bytes; of one that goes with others, its share."""
        return sum(
            stage.start / together
            + max(leg.latency / together + received * leg.per_byte for leg in stage.legs)
            for stage in self.stages
        )

    def along(self, received: int) -> dict[str, int]:
        """The bytes that are received along each kind of links, all of them together."""
        found: dict[str, int] = {}
        share, before = 0.0, 0
        for leg in (leg for stage in self.stages for leg in stage.legs):
            share += leg.share
            found[leg.label] = found.get(leg.label, 0) + round(received * share) - before
            before = round(received * share)
        return {label: nbytes for label, nbytes in found.items() if nbytes}


def ways_of(kind: str, paths: Sequence[Path]) -> tuple[Way, ...]:
    """The ways of a collective of a kind along some paths."""
    if not paths:
        return ()
    if kind in (ALL_TO_ALL, PERMUTE):
        return (Way((_through(kind, paths),)),)
    found = []
    total = prod(path.n for path in paths)
    for order in _orders(_alike(paths)):
        stages, before = [], 1
        for stage in order:
            n = prod(path.n for path in stage)
            share = before * (n - 1) / max(total - 1, 1)
            stages.append(_shared(kind, stage, share))
            before *= n
        found.append(Way(tuple(stages)))
    return _best(found)


def _best(ways: Sequence[Way]) -> tuple[Way, ...]:
    """Those that are the fastest for some number of bytes.

    Seconds are linear in bytes from where one leg of a stage takes longest to where another does.
    """
    turns = {0.0}
    for legs in (stage.legs for way in ways for stage in way.stages):
        for a, b in combinations(legs, 2):
            if a.per_byte != b.per_byte:
                turns.add(max((b.latency - a.latency) / (a.per_byte - b.per_byte), 0.0))
    found: dict[tuple[float, ...], Way] = {}
    for way in ways:
        steepest = sum(max(leg.per_byte for leg in stage.legs) for stage in way.stages)
        own = (*(way.seconds(at) for at in sorted(turns)), steepest)
        if any(all(a <= b for a, b in zip(other, own, strict=True)) for other in found):
            continue
        worse = [x for x in found if all(a >= b for a, b in zip(x, own, strict=True))]
        for each in worse:
            del found[each]
        found[own] = way
    return tuple(found.values())


def _alike(paths: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Paths by themselves; of many, those with the same links as one."""
    if len(paths) <= _EACH:
        return [(path,) for path in paths]
    found: dict[object, list[Path]] = {}
    for path in paths:
        found.setdefault(path.links, []).append(path)
    groups = sorted(found.values(), key=lambda some: some[0].links.bandwidth)
    while len(groups) > _MOST:
        groups[-2:] = [groups[-2] + groups[-1]]
    return [tuple(some) for some in groups]


def _orders(groups: Sequence[tuple[Path, ...]]) -> Iterator[tuple[tuple[Path, ...], ...]]:
    """All ways to take groups in stages, of one or several each; first all at once."""
    count = len(groups)
    for chosen in range(2**count - 1, 0, -1):
        first = tuple(p for k, group in enumerate(groups) if chosen >> k & 1 for p in group)
        rest = [group for k, group in enumerate(groups) if not chosen >> k & 1]
        if not rest:
            yield (first,)
            continue
        for later in _orders(rest):
            yield (first, *later)


def _shared(kind: str, paths: Sequence[Path], share: float) -> Stage:
    """A stage of a gather or a sum, whose paths share the bytes: so much of all.

    A gather's first stage; a scattered sum's last one, in which as much is received.
    """
    passes = 2 if kind == ALL_REDUCE else 1
    each = share / len(paths)
    legs = []
    for path in paths:
        added = path.links.reduce_latency if kind in (ALL_REDUCE, REDUCE_SCATTER) else 0
        latency = path.hops * (passes * path.links.latency + added)
        legs.append(Leg(path.label, latency, each / path.ways / path.bandwidth, each))
    return Stage(max(path.links.start for path in paths), tuple(legs))


def _through(kind: str, paths: Sequence[Path]) -> Stage:
    """What goes along one path after another, each byte along all that it has to.

    Of an all-to-all, half of what every device has crosses the middle of each axis: of a ring, over
    two links. Of the pairs of a permute nothing is known, so that all may go along each axis. A
    byte is counted along the slowest links that it crosses.
    """
    total = prod(path.n for path in paths)
    held = total / max(total - 1, 1)
    shares, left = dict[str, float](), held
    for path in sorted(paths, key=lambda path: path.bandwidth):
        shares[path.label] = left * (1 - 1 / path.n)
        left /= path.n
    if kind == PERMUTE:
        least = min(path.bandwidth for path in paths)
        slow = [path.label for path in paths if path.bandwidth == least]
        shares = {path.label: (path.label in slow) / len(slow) for path in paths}
    legs = []
    latency = sum(
        (path.hops if kind == ALL_TO_ALL else path.stride) * path.links.latency for path in paths
    )
    for path in paths:
        load = held * path.n / 4 / path.ways if kind == ALL_TO_ALL else 1.0
        legs.append(Leg(path.label, latency, load / path.bandwidth, shares[path.label]))
    return Stage(max(path.links.start for path in paths), tuple(legs))
