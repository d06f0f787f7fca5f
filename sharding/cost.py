"""`Cost`: the cost of an operation as a user states it."""

from __future__ import annotations

from dataclasses import dataclass

from gridlayout.public import public


@public
@dataclass(frozen=True)
class Cost:
    """The cost of an operation.

    bytes_moved: bytes received, summed over all devices. flops: floating-point operations of all
    devices. peak_bytes: the peak memory of one core.

    >>> Cost(bytes_moved=64).flops
    0
    """

    bytes_moved: int = 0
    flops: int = 0
    peak_bytes: int = 0
