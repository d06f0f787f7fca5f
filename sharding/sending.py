"""`Sending`: what the links of a machine take for collectives: seconds, and bytes along each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from gridlayout.sharding.chips import Figure, Links
from gridlayout.sharding.collectives import COPY, Collective
from gridlayout.sharding.computing import Computing
from gridlayout.sharding.figures import Figures
from gridlayout.sharding.timing import Way, ways_of
from gridlayout.sharding.topology import Topology


class Sending(Computing):
    """What a machine's devices send each other: as its links say, or as was measured."""

    links: tuple[Links, ...]
    figures: tuple[Figure, ...]
    axis_names: tuple[str, ...]
    hosts: tuple[int, ...]
    host_links: Links | None

    def once(self, each: Collective) -> float:
        """Seconds of a collective, done once; of one that goes with others, its share.

        Over several axes in the cheapest way: all at once, which share the bytes, or one after
        another, so that few go over slow links (`sharding/timing.py`).
        """
        if each.kind == COPY:
            return self.work_seconds(nbytes=each.received_bytes)
        figure = self._figures.of(each, self.crosses(each.axes)) if self.figures else None
        if figure is not None:
            copied = self.work_seconds(nbytes=2 * each.copied_bytes)
            return figure.latency / each.together + each.received_bytes / figure.bandwidth + copied
        ways = self._ways(each)
        if len(ways) == 1:
            return ways[0].seconds(each.received_bytes, each.together)
        times = (way.seconds(each.received_bytes, each.together) for way in ways)
        return min(times, default=0.0)

    def received_along(self, each: Collective) -> dict[str, int]:
        """The bytes of a collective by the links over which a device receives them, done once.

        By mesh axes, and `x between hosts` where a part of an axis is between hosts. A byte that
        goes along several is counted once, at the slowest.

        >>> import gridlayout as gl
        >>> links = {"host": gl.Links(1e9), "device": gl.Links(10e9)}
        >>> machine = gl.Machine("n150", mesh=(2, 4), links=links)
        >>> machine.received_along(Collective("all_gather", ("host", "device"), 8, 7 * 2**20, 8))
        {'host': 1048576, 'device': 6291456}
        """
        ways = self._ways(each)
        if not ways:
            axes = dict.fromkeys(map(self.whole_axis, each.axes))
            return {axis: each.received_bytes // len(axes) for axis in axes}
        best = min(ways, key=lambda way: way.seconds(each.received_bytes, each.together))
        return best.along(each.received_bytes)

    def _ways(self, each: Collective) -> tuple[Way, ...]:
        key = each.kind, each.axes, each.group_size
        if key not in self._known:
            self._known[key] = ways_of(each.kind, self.topology.paths(each.axes, each.group_size))
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, tuple[Way, ...]]:
        """The ways of collectives by their kinds and axes."""
        return {}

    @cached_property
    def _figures(self) -> Figures:
        return Figures(self.figures)

    @cached_property
    def topology(self) -> Topology:
        """Which links join the devices along which axis."""
        return Topology(self.mesh, self.axis_names, self.links, self.hosts, self.host_links)

    def whole_axis(self, axis: str) -> str:
        """The mesh axis that a factor is of: `y` of `y0`."""
        return self.topology.whole(axis)

    def crosses(self, axes: Sequence[str]) -> bool:
        """Whether devices along some axes of the mesh, or their factors, are of several hosts."""
        return bool(self.hosts) and self.topology.crosses(axes)

    @property
    def bytes_decide(self) -> bool:
        """Whether no collective takes time of its own, and all links are alike.

        What receives the fewest bytes is then the fastest.
        """
        return not self.has_latency and self.topology.is_uniform

    def bytes_seconds(self, received: float) -> float:
        """What a device takes at least to receive so many bytes, by whichever collective."""
        rates = [figure.bandwidth for figure in self.figures]
        rates = rates or [each.bandwidth for each in self._every_link]
        return received / max(rates) if rates else 0.0

    def least_seconds(self, received: float) -> float:
        """Seconds in which no collectives bring a device more bytes than so many.

        Over the links of all axes at once, both ways round rings; of a machine with a mesh.

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
        """Whether a collective takes time of its own, however little it sends."""
        return bool(self.figures) or any(
            each.latency or each.start or each.reduce_latency for each in self._every_link
        )

    @property
    def _every_link(self) -> tuple[Links, ...]:
        return self.links if self.host_links is None else (*self.links, self.host_links)
