"""The times of collectives along links: formulas, and routes over several axes.

The formulas for rings and lines are those of the scaling book's chapter on sharding
(jax-ml/scaling-book). A gather or a sum over several axes uses them at once, so that they share the
bytes, as on a torus; or one after another; or in a combination of both. One after another is
suitable for slow links between hosts, which then transfer few bytes: a gather uses them first, a
reduce-scatter last. The cheapest route is used. The pieces of an all-to-all or a permute are sent
along each axis along which their devices differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import NamedTuple

from gridlayout.sharding.collectives import ALL_REDUCE, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER
from gridlayout.sharding.machines.topology import Path

# The most paths whose orders are all tried; among more paths, those with the same links are used at
# once. The most such groups.
_EACH, _MOST = 3, 4


class Leg(NamedTuple):
    """One kind of links in a stage.

    latency: seconds independent of the bytes. per_byte: seconds per byte that the collective
    receives. share: the share of these bytes that is received along the links.
    """

    label: str
    latency: float
    per_byte: float
    share: float


class Stage(NamedTuple):
    """The use of several kinds of links at the same time. start: seconds before the first hop."""

    start: float
    legs: tuple[Leg, ...]


@dataclass(frozen=True)
class Route:
    """The stages of one collective, one after another."""

    stages: tuple[Stage, ...]

    def seconds(self, received: float, together: int = 1) -> float:
        """Return the seconds to receive this number of bytes.

        together: the number of collectives that XLA combines; the result is the share of one.
        """
        return sum(
            stage.start / together
            + max(leg.latency / together + received * leg.per_byte for leg in stage.legs)
            for stage in self.stages
        )

    def along(self, received: int) -> dict[str, int]:
        """Return the bytes received along each kind of links; their sum is `received`."""
        found: dict[str, int] = {}
        share, before = 0.0, 0
        for leg in (leg for stage in self.stages for leg in stage.legs):
            share += leg.share
            found[leg.label] = found.get(leg.label, 0) + round(received * share) - before
            before = round(received * share)
        return {label: nbytes for label, nbytes in found.items() if nbytes}


def routes_of(kind: str, paths: Sequence[Path]) -> tuple[Route, ...]:
    """Return the routes of a collective along some paths that may be the fastest."""
    if not paths:
        return ()
    if kind in (ALL_TO_ALL, PERMUTE):
        return (Route((_through(kind, paths),)),)
    found = []
    total = prod(path.n for path in paths)
    for order in _orders(_grouped(paths)):
        stages, before = [], 1
        for stage in order:
            n = prod(path.n for path in stage)
            share = before * (n - 1) / max(total - 1, 1)
            stages.append(_shared(kind, stage, share))
            before *= n
        found.append(Route(tuple(stages)))
    return _best(found)


def _best(routes: Sequence[Route]) -> tuple[Route, ...]:
    """Return the routes that no other route beats for all numbers of bytes.

    The seconds are piecewise linear in the bytes: a piece ends where another leg of a stage becomes
    the slowest. Routes are compared at these points, and by their slope after the last one.
    """
    turns = {0.0}
    for legs in (stage.legs for route in routes for stage in route.stages):
        for a, b in combinations(legs, 2):
            if a.per_byte != b.per_byte:
                turns.add(max((b.latency - a.latency) / (a.per_byte - b.per_byte), 0.0))
    found: dict[tuple[float, ...], Route] = {}
    for route in routes:
        steepest = sum(max(leg.per_byte for leg in stage.legs) for stage in route.stages)
        own = (*(route.seconds(at) for at in sorted(turns)), steepest)
        if any(all(a <= b for a, b in zip(other, own, strict=True)) for other in found):
            continue
        worse = [x for x in found if all(a >= b for a, b in zip(x, own, strict=True))]
        for each in worse:
            del found[each]
        found[own] = route
    return tuple(found.values())


def _grouped(paths: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Return one group per path; if there are many paths, one group per kind of links."""
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
    """Yield all sequences of stages, each of one or more groups; first the one with all at once."""
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
    """Return a stage of a gather or a sum, in which the paths share the bytes.

    share: the share of all bytes that is received in this stage. The k-th stage of a gather equals
    the k-th last stage of a reduce-scatter.
    """
    passes = 2 if kind == ALL_REDUCE else 1
    each = share / len(paths)
    legs = []
    for path in paths:
        added = path.links.reduce_latency if kind in (ALL_REDUCE, REDUCE_SCATTER) else 0
        latency = path.hops * (passes * path.links.latency + added)
        legs.append(Leg(path.label, latency, each / path.directions / path.bandwidth, each))
    return Stage(max(path.links.start for path in paths), tuple(legs))


def _through(kind: str, paths: Sequence[Path]) -> Stage:
    """Return the stage of an all-to-all or a permute, whose bytes may use several paths in turn.

    In an all-to-all, half of the bytes of each device cross the middle of each axis, in a ring over
    two links. The pairs of a permute are unknown, so all its bytes are assumed to be sent along
    each path. Each byte is counted once, along the slowest links that it uses.
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
        load = held * path.n / 4 / path.directions if kind == ALL_TO_ALL else 1.0
        legs.append(Leg(path.label, latency, load / path.bandwidth, shares[path.label]))
    return Stage(max(path.links.start for path in paths), tuple(legs))
