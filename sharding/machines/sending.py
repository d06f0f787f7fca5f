"""`Sending`: the seconds of collectives on a machine, and the bytes along each kind of links.

`Figures`: measured times of collectives, interpolated between the measured group sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COPY,
    PERMUTE,
    REDUCE_SCATTER,
    Collective,
)
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.chips import Figure, Links
from gridlayout.sharding.machines.computing import Computing
from gridlayout.sharding.machines.timing import Route, routes_of
from gridlayout.sharding.machines.topology import Topology

_SENDING = {ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER}


class Sending(Computing):
    """The communication of a machine, by its links, or by measured figures if there are any."""

    links: tuple[Links, ...]
    figures: tuple[Figure, ...]
    axis_names: tuple[str, ...]
    hosts: tuple[int, ...]
    host_links: Links | None

    def once(self, each: Collective) -> float:
        """Return the seconds of one run of a collective; if XLA combines several, the share of one.

        A collective over several axes uses the cheapest route: all axes at once, which share the
        bytes, or one after another, so that slow links transfer few bytes (`timing.py`).
        """
        _check(each)
        if each.kind == COPY:
            return self.work_seconds(nbytes=each.received_bytes)
        figure = self._figures.of(each, self.crosses(each.axes)) if self.figures else None
        if figure is not None:
            copied = self.work_seconds(nbytes=2 * each.copied_bytes)
            return figure.latency / each.together + each.received_bytes / figure.bandwidth + copied
        routes = self._routes(each)
        if len(routes) == 1:
            return routes[0].seconds(each.received_bytes, each.together)
        times = (route.seconds(each.received_bytes, each.together) for route in routes)
        return min(times, default=0.0)

    def latency_alone(self, sent: Sequence[Collective]) -> float:
        """Return the latency of collectives that join no others."""
        return sum(self.once(each.latency_only) for each in sent)

    def saves_joined(self, sent: Sequence[Collective]) -> bool:
        """Return whether their latency is at least the time to copy their operands side by side."""
        copied = 2 * sum(each.received_bytes for each in sent)
        return self.work_seconds(nbytes=copied) <= self.latency_alone(sent)

    def received_along(self, each: Collective) -> dict[str, int]:
        """Return the bytes that a device receives in one run of a collective, by links.

        The keys are mesh axes, and `x between hosts` for that part of an axis x that has both
        parts. A byte that uses several links is counted once, for the slowest.

        >>> import gridlayout as gl
        >>> links = {"host": gl.Links(1e9), "device": gl.Links(10e9)}
        >>> machine = gl.Machine("n150", mesh=(2, 4), links=links)
        >>> machine.received_along(Collective("all_gather", ("host", "device"), 8, 7 * 2**20, 8))
        {'host': 1048576, 'device': 6291456}
        """
        _check(each)
        routes = self._routes(each)
        if not routes:
            axes = dict.fromkeys(map(self.mesh_axis_of, each.axes))
            return {axis: each.received_bytes // len(axes) for axis in axes}
        best = min(routes, key=lambda route: route.seconds(each.received_bytes, each.together))
        return best.along(each.received_bytes)

    def _routes(self, each: Collective) -> tuple[Route, ...]:
        key = each.kind, each.axes, each.group_size
        if key not in self._known:
            self._known[key] = routes_of(each.kind, self.topology.paths(each.axes, each.group_size))
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, tuple[Route, ...]]:
        """The routes of collectives, by kind, axes and group size."""
        return {}

    @cached_property
    def _figures(self) -> Figures:
        return Figures(self.figures)

    @cached_property
    def topology(self) -> Topology:
        """The mesh and the links of its axes."""
        return Topology(self.mesh, self.axis_names, self.links, self.hosts, self.host_links)

    def mesh_axis_of(self, axis: str) -> str:
        """Return the mesh axis of a factor: `y` for `y0`."""
        return self.topology.mesh_axis_of(axis)

    def crosses(self, axes: Sequence[str]) -> bool:
        """Return whether devices along some mesh axes, or their factors, have several hosts."""
        return bool(self.hosts) and self.topology.crosses(axes)

    @property
    def bytes_decide(self) -> bool:
        """Whether collectives have no latency and all links are equal.

        The algorithm that receives the fewest bytes is then the fastest.
        """
        return not self.has_latency and self.topology.is_uniform

    @property
    def similar(self) -> float:
        """The factor within which the times of two ways are about equal.

        It is over 1 for measured figures, which have an error.
        """
        return LIMITS.similar if self.figures else 1.0

    def price(self, collectives: Sequence[Collective], devices: int) -> float:
        """Return the seconds of collectives, to compare ways to do the same.

        If `bytes_decide`, these are the seconds of the bytes that a device receives on average.
        devices: the number over which the bytes that all devices receive are averaged.
        """
        seconds, received = 0.0, 0
        for each in collectives:
            if self.bytes_decide and each.kind != COPY:
                received += each.total_bytes
            else:
                seconds += self.once(each) * each.count
        return seconds + self.bytes_seconds(received / devices)

    def bytes_seconds(self, received: float) -> float:
        """Return the least seconds in which a device receives bytes, by any collective."""
        rates = [figure.bandwidth for figure in self.figures]
        rates = rates or [each.bandwidth for each in self._every_link]
        return received / max(rates) if rates else 0.0

    def any_seconds(self, received: float) -> float:
        """Return the least seconds of one or more collectives that receive bytes; 0 for no bytes.

        >>> import gridlayout as gl
        >>> gl.Machine("n150", (2,), gl.Links(1e9, latency=1e-6)).any_seconds(1000)
        2e-06
        """
        return self._least_latency + self.bytes_seconds(received) if received else 0.0

    @cached_property
    def _least_latency(self) -> float:
        """The least latency of a collective that sends anything."""
        found = [figure.latency for figure in self.figures]
        if not {figure.kind for figure in self.figures} >= _SENDING:  # others follow the links
            found += [each.start + each.latency for each in self._every_link]
        return min(found, default=0.0)

    def least_seconds(self, received: float) -> float:
        """Return a lower bound of the seconds in which a device receives bytes.

        All axes of the machine's mesh are used at once, rings in both directions.

        >>> import gridlayout as gl
        >>> machine = gl.Machine("v5e 16x16")
        >>> gather = Collective("all_gather", ("x", "y"), 256, 255 * 2**20, 256)
        >>> machine.least_seconds(255 * 2**20) < machine.once(gather)
        True
        """
        if self.figures:
            return self.bytes_seconds(received)
        links = self.links * len(self.mesh or ()) if len(self.links) == 1 else self.links
        rate = sum(
            each.bandwidth * (2 if each.wrap and n > 2 else 1)
            for each, n in zip(links, self.mesh or (), strict=False)
            if n > 1
        )
        rate += sum(self.host_links.bandwidth for n in self.hosts if n > 1 and self.host_links)
        return received / rate if rate else 0.0

    @property
    def has_latency(self) -> bool:
        """Whether a collective takes time in addition to that of its bytes."""
        return bool(self.figures) or any(
            each.latency or each.start or each.reduce_latency for each in self._every_link
        )

    @property
    def _every_link(self) -> tuple[Links, ...]:
        return self.links if self.host_links is None else (*self.links, self.host_links)


def _check(each: Collective) -> None:
    """Raise `LayoutError` unless `each` is a `Collective`."""
    if not isinstance(each, Collective):
        raise LayoutError(
            f"{each!r} is no collective: give those of a report, such as "
            "gl.on_grid(fn).report(*args).collectives"
        )


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
