"""`Cost` and `CostModel`: what a decision takes, and what that costs in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gridlayout.sharding.collectives import Collective


@dataclass(frozen=True)
class Cost:
    """Bytes received over all devices, floating-point operations in all, peak bytes on one core.

    >>> Cost(bytes_moved=64).flops
    0
    """

    bytes_moved: int = 0
    flops: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True)
class CostModel:
    """A machine in three numbers, CPU emulation by default.

    bandwidth: bytes a device receives in a second. latency: seconds before a collective's first
    byte. flops: operations of one device in a second.

    >>> gather = Collective("all_gather", ("x",), 2, 10**9, 2)
    >>> CostModel(bandwidth=1e9, latency=0.0).seconds([gather])
    1.0
    """

    bandwidth: float = 4e9
    latency: float = 0.0
    flops: float = 3e10

    def seconds(self, collectives: Iterable[Collective], flops: float = 0) -> float:
        """The time of collectives one after another, and of operations on one device."""
        moved = sum(
            each.count * (self.latency + each.received_bytes / self.bandwidth)
            for each in collectives
        )
        return moved + flops / self.flops
