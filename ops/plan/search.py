"""The search for the best assignment: seeds first, then single changes that reduce the time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from gridlayout.ops.plan.classes import Assignment
from gridlayout.ops.plan.estimate import Estimate, Estimator
from gridlayout.sharding.limits import LIMITS


def best(estimator: Estimator) -> Estimate:
    """Return the estimate of the best assignment that is found, the same in every process.

    The machine's figures are not exact: among estimates that take about as long, the one with fewer
    collectives wins.
    """
    count = len(estimator.units.axes)
    budget = max(LIMITS.nodes // max(len(estimator.graph.nodes), 1), 4)
    tried: dict[Assignment, Estimate] = {}
    fastest: Assignment | None = None

    def attempt(assignment: Assignment) -> None:
        nonlocal fastest
        if assignment in tried or len(tried) >= budget:
            return
        most = float("inf") if fastest is None else (1 + LIMITS.margin) * tried[fastest].seconds
        made = tried[assignment] = estimator.estimate(assignment, most)
        if fastest is None or made.seconds < tried[fastest].seconds:
            fastest = assignment

    for assignment in _seeds(estimator, count):
        attempt(assignment)
    while len(tried) < budget:
        assert fastest is not None
        before = fastest
        for u, c in product(range(count), _classes(estimator)):
            changed = list(before)
            changed[u] = changed[u] ^ {c}
            attempt(tuple(changed))
        if fastest is before:
            break
    assert fastest is not None
    most = (1 + LIMITS.margin) * tried[fastest].seconds
    found = list(tried.values())
    for assignment, made in tried.items():
        scatters = any(each.summed and each.scattered for each in made.choices.values())
        if scatters and made.seconds <= most:  # joining them takes longer
            found.append(estimator.estimate(assignment, most, joined=True))
        if len(set(assignment)) == 1:
            found.append(estimator.estimate(assignment, most, joined=True, is_bound=True))
    first = min(found, key=lambda each: each.seconds)

    def cost(made: Estimate) -> tuple[float, float]:
        sent = LIMITS.margin * made.count / max(first.count, 1)
        return made.seconds / max(first.seconds, 1e-12) + sent, made.seconds

    # Estimates that take longer than `most` are incomplete.
    return min((each for each in found if each.seconds <= most), key=cost)


def _classes(estimator: Estimator) -> list[int]:
    """Return the classes with the most work, largest first."""
    weights = estimator.classes.weights
    known = [c for c in weights if weights[c]] or list(weights)
    return sorted(known, key=lambda c: (-weights[c], c))[: LIMITS.classes]


def _seeds(estimator: Estimator, count: int) -> Iterator[Assignment]:
    """Yield the operands' own assignment, then single classes on one or all units, then none."""
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
