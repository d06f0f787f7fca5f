"""`cheapest`: of several ways to do one thing, the one that takes the least time on the machine.

Relayouts, slices and products are each chosen here; `ops/plan/` chooses for whole programs. Rules
and moves offer, a `Machine` prices, and `LIMITS` says where a search ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Offer(Generic[T]):
    """A way to do something, and what it takes.

    price: seconds; of a way that takes longer than the seconds it is given, any number above these.
    bound: seconds that it takes at least, which are quicker to know.
    """

    way: T
    price: Callable[[float], float]
    bound: float = 0.0


def cheapest(
    offers: Iterable[Offer[T]], best: T | None = None, least: float = inf, most: float = inf
) -> tuple[T | None, float]:
    """The way of the least time, and its seconds; of ways that take as long the first.

    offers: by their bounds, the least first. best, least: a way that is known already. most: how
    many offers in a row are priced that are no better.

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
