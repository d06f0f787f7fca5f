"""`Part`: a part of a model that nothing links to the others, with the best that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum, inf

from gridlayout.ops.solver.model import Model

ELIMINATION = "exact elimination"
TOLERANCE = 1e-9  # relative difference below which costs and bounds count as equal


@dataclass(eq=False)
class Part:
    """A part of the model that nothing links to the other parts.

    chosen: the best feasible choices known, by the problem's numbers; cost: their cost. gap, spare:
    the search of this part ends when the cost exceeds the bound by at most `gap` of the bound plus
    `spare`.
    """

    model: Model
    chosen: dict[int, int] | None = None
    cost: float = inf
    bound: float = 0.0
    how: str = ELIMINATION
    gap: float = TOLERANCE
    spare: float = 0.0
    starts: list[dict[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Tables and prices are at least 0, so each variable's least cost is a lower bound.
        self.bound = fsum([float(own.min()) for own in self.model.costs.values()])

    @property
    def is_solved(self) -> bool:
        """Whether nothing better is possible, or only by less than the gap."""
        return self.is_within(self.gap)

    def is_within(self, gap: float) -> bool:
        """Return whether the cost exceeds the bound by at most this share of it, and `spare`."""
        return self.chosen is not None and self.cost <= self.bound * (1 + gap) + self.spare

    def offer(self, chosen: dict[int, int]) -> bool:
        """Keep choices if they are feasible and better than the best known; return whether."""
        state = self.model.state(chosen)
        cost = self.model.cost(state)
        is_better = cost < self.cost and self.model.is_within(state)
        if is_better:
            self.chosen, self.cost = chosen, cost
        return is_better

    def raise_bound(self, bound: float) -> None:
        """Keep a bound if it is better than the present one."""
        self.bound = min(max(bound, self.bound), self.cost)
