"""`Figures`: measured times of collectives, interpolated between the measured group sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.chips import Figure


class Figures:
    """Measured figures of collectives, by kind, group size, and whether a group crosses hosts."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = tuple(figures)

    @cached_property
    def _by_kind(self) -> dict[tuple[str, bool], list[Figure]]:
        found: dict[tuple[str, bool], list[Figure]] = {}
        for figure in sorted(self.figures, key=lambda each: each.group_size):
            found.setdefault((figure.kind, figure.between_hosts), []).append(figure)
        return found

    def of(self, each: Collective, crosses: bool) -> Figure | None:
        """Return the figure of a collective; None if its kind was not measured.

        crosses: whether the group has several hosts. If such groups were not measured, the figure
        is that of groups within a host.
        """
        known = self._by_kind.get((each.kind, crosses)) or self._by_kind.get((each.kind, False))
        return None if known is None else _between(known, each.kind, each.group_size)

    def after(self, work: float) -> tuple[Figure, ...]:
        """Return the figures for a program that computes before each collective.

        work: the seconds of computation.
        """
        return tuple(
            replace(each, latency=each.latency + min(LIMITS.skew * work, each.wait), wait=0.0)
            for each in self.figures
        )


def _between(known: Sequence[Figure], kind: str, size: int) -> Figure:
    """Return the figure of a group size, interpolated between the nearest sizes."""
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
