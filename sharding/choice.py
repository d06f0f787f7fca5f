"""`cheapest`: chooses the fastest of several ways to perform one operation.

It is used for single relayouts, slices and products; `ops/choose/` chooses for complete programs.
Rules and moves list the ways, a `Machine` estimates the time of each, and `LIMITS` bounds the
search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from gridlayout.sharding.limits import LIMITS

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Offer(Generic[T]):
    """A way to perform an operation, and its time in seconds.

    price: a function that returns the time. Its argument is the least time known so far: for a way
    that takes longer, it may return any larger number. bound: a lower bound of the time, which is
    quicker to compute.
    """

    way: T
    price: Callable[[float], float]
    bound: float = 0.0


def cheapest(
    offers: Iterable[Offer[T]], best: T | None = None, least: float = inf, most: float = inf
) -> tuple[T | None, float]:
    """Return the way of least time and its seconds; among equal ones, the first.

    offers: sorted by their bounds, the smallest first. best, least: a known way and its seconds.
    most: the search ends after this number of consecutive offers that are no better.

    >>> cheapest([Offer("a", lambda _: 2.0), Offer("b", lambda _: 1.0), Offer("c", lambda _: 1.0)])
    ('b', 1.0)
    """
    tried = 0
    for offer in offers:
        if offer.bound >= least or tried == most:
            break
        tried += 1
        if (seconds := offer.price(least)) < least:
            best, least, tried = offer.way, seconds, 0
    return best, least


def fastest_of(
    seconds: Sequence[float], received: Sequence[float], similar: float, equal: float = 0.0
) -> int:
    """Return the number of the way of least time; of ways that take about as long, of fewer bytes.

    A way that receives more than another one has to be faster by `similar`, a factor
    (`Machine.similar`). received: the bytes that a device receives on average. equal: the share by
    which equal times differ, of which it is the first.

    >>> fastest_of([1.0, 1.1, 1.5], [80_000, 10_000, 9_000], 1.25)
    1
    >>> fastest_of([1.0, 1.1, 1.5], [80_000, 10_000, 9_000], 1)
    0
    >>> fastest_of([1.0001, 1.0], [10_000, 10_000], 1.25, equal=0.001)
    0
    """
    few = similar * min(received) + LIMITS.page_bytes
    pairs = zip(seconds, received, strict=True)
    counted = [each * (similar if more > few else 1) for each, more in pairs]
    most = min(counted) * (1 + equal)
    return next(k for k, each in enumerate(counted) if each <= most)
