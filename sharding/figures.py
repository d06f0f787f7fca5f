"""`Figures`: what collectives were measured to take, looked up between the sizes that were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from gridlayout.sharding.chips import Figure
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.limits import LIMITS


class Figures:
    """Measured figures of collectives, by kind, size of the group, and whether it crosses hosts."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = tuple(figures)

    @cached_property
    def _by_kind(self) -> dict[tuple[str, bool], list[Figure]]:
        found: dict[tuple[str, bool], list[Figure]] = {}
        for figure in sorted(self.figures, key=lambda each: each.group_size):
            found.setdefault((figure.kind, figure.between_hosts), []).append(figure)
        return found

    def of(self, each: Collective, crosses: bool) -> Figure | None:
        """That of a collective; of groups over several hosts where those were measured apart."""
        known = self._by_kind.get((each.kind, crosses)) or self._by_kind.get((each.kind, False))
        return None if known is None else _between(known, each.kind, each.group_size)

    def after(self, work: float) -> tuple[Figure, ...]:
        """The same for a program that computes for so many seconds before each collective."""
        return tuple(
            replace(each, latency=each.latency + min(LIMITS.apart * work, each.wait), wait=0.0)
            for each in self.figures
        )


def _between(known: Sequence[Figure], kind: str, size: int) -> Figure:
    """The figure of a group size, between those of its neighbours."""
    above = next((each for each in known if each.group_size >= size), None)
    below = next((each for each in reversed(known) if each.group_size <= size), None)
    if above is None or below is None or above is below:
        nearest = above or below
        assert nearest is not None
        return nearest
    part = (size - below.group_size) / (above.group_size - below.group_size)
    latency, bandwidth, wait = (
        low + part * (high - low)
        for low, high in (
            (below.latency, above.latency),
            (below.bandwidth, above.bandwidth),
            (below.wait, above.wait),
        )
    )
    return Figure(kind, size, latency, bandwidth, wait, below.between_hosts)
