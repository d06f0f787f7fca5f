"""The search for the best assignment: seeds first, then single changes that reduce the time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from gridlayout.ops.plan.classes import Assignment
from gridlayout.ops.plan.estimate import Estimate, Estimator
from gridlayout.sharding.limits import LIMITS


def best(estimator: Estimator) -> Estimate:
    """Return the estimate that costs least, the same in every process."""
    count = len(estimator.units.axes)
    budget = max(LIMITS.nodes // max(len(estimator.graph.nodes), 1), 4)
    tried: dict[Assignment, Estimate | None] = {}
    start, fastest = (frozenset[int](),) * count, None

    def attempt(assignment: Assignment) -> None:
        nonlocal start, fastest
        if assignment in tried or len(tried) >= budget:
            return
        made = tried[assignment] = estimator.estimate(assignment, fastest)
        if made is not None and (fastest is None or made.seconds < fastest.seconds):
            start, fastest = assignment, made

    for assignment in _seeds(estimator, count):
        attempt(assignment)
    while len(tried) < budget:
        before = start
        for u, c in product(range(count), _classes(estimator)):
            changed = list(before)
            changed[u] = changed[u] ^ {c}
            attempt(tuple(changed))
        if start is before:
            break
    found = list(tried.values())
    for assignment, made in tried.items():
        if made is not None and any(x.summed and x.scattered for x in made.choices.values()):
            # With its sums joined it takes longer, but has fewer collectives.
            found.append(estimator.estimate(assignment, fastest, joined=True))
        if len(set(assignment)) == 1:
            found.append(estimator.estimate(assignment, fastest, joined=True, is_by_class=True))
    complete = [made for made in found if made is not None]
    first = min(complete, key=lambda each: each.seconds)
    return min(complete, key=lambda each: (each.cost(first), each.seconds))


def _classes(estimator: Estimator) -> list[int]:
    """Return the classes with the most work, largest first."""
    weights = estimator.classes.weights
    known = [c for c in weights if weights[c]] or list(weights)
    return sorted(known, key=lambda c: (-weights[c], c))[: LIMITS.classes]


def _seeds(estimator: Estimator, count: int) -> Iterator[Assignment]:
    """Yield the operands' own assignment, none, one class on all units, and each mix of these."""
    own: list[set[int]] = [set() for _ in range(count)]
    for value, division in enumerate(estimator.given):
        for d, units in enumerate(division or ()):
            for u in units:
                own[u].add(estimator.classes.of_value[value][d])
    yield tuple(map(frozenset, own))
    classes = [frozenset[int](), *(frozenset({c}) for c in _classes(estimator)[:4])]
    for each in classes:
        yield (each,) * count
    yield from product(classes, repeat=count)
