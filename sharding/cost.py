"""`Cost`: what a user states that an operation takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Bytes received over all devices, floating-point operations in all, peak bytes on one core.

    >>> Cost(bytes_moved=64).flops
    0
    """

    bytes_moved: int = 0
    flops: int = 0
    peak_bytes: int = 0
