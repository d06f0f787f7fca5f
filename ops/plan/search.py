"""The search for an assignment: seeds first, then single changes that reduce the time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from gridlayout.ops.plan.estimate import Assignment, Estimate, Estimator

# Classes that are looked at, and how many nodes are estimated in all.
_CLASSES, _NODES = 6, 20_000


def best(estimator: Estimator) -> Estimate:
    """The estimate of the best assignment that is found: the same in every process."""
    count = len(estimator.units.axes)
    budget = max(_NODES // max(len(estimator.graph.nodes), 1), 4)
    tried: dict[Assignment, float] = {}
    found: tuple[float, Assignment, Estimate] | None = None

    def attempt(assignment: Assignment) -> None:
        nonlocal found
        if assignment in tried or len(tried) >= budget:
            return
        most = float("inf") if found is None else found[0]
        made = estimator.estimate(assignment, most)
        tried[assignment] = made.seconds
        if made.seconds < most:
            found = made.seconds, assignment, made

    for assignment in _seeds(estimator, count):
        attempt(assignment)
    while found is not None and len(tried) < budget:
        before = found
        for u, c in product(range(count), _classes(estimator)):
            changed = list(before[1])
            changed[u] = changed[u] ^ {c}
            attempt(tuple(changed))
        if found is before:
            break
    assert found is not None
    return found[2]


def _classes(estimator: Estimator) -> list[int]:
    """The classes with the most work, first."""
    weights = estimator.weights
    known = [c for c in weights if weights[c]] or list(weights)
    return sorted(known, key=lambda c: (-weights[c], c))[:_CLASSES]


def _seeds(estimator: Estimator, count: int) -> Iterator[Assignment]:
    """As the operands are; each unit, or all, along one class; nothing divided."""
    own: list[set[int]] = [set() for _ in range(count)]
    for value, division in enumerate(estimator.given):
        for d, units in enumerate(division or ()):
            for u in units:
                own[u].add(estimator.of_value[value][d])
    yield tuple(map(frozenset, own))
    classes = [frozenset[int](), *(frozenset({c}) for c in _classes(estimator)[:4])]
    for each in classes:
        yield (each,) * count
    yield from product(classes, repeat=count)
