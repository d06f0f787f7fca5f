"""`Multipliers`: prices of limits, with which the best cost without these limits is a bound."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.usage import Usage

SHORTER = 0.9  # factor of the step size after a step that did not raise the bound


class Multipliers:
    """A multiplier for each limit of a model, of at least 0; they follow a subgradient.

    now: the present ones. best: the highest bound so far, and its multipliers.
    """

    def __init__(self, model: Model) -> None:
        self.usage = Usage(model)
        self.now = np.zeros(len(self.usage.limits))
        self.best = -inf, self.now
        self.step = 1.0

    @property
    def paid(self) -> list[float]:
        """What usages up to the limits cost, which a bound does not contain, of each limit."""
        return (self.now * self.usage.limits / self.usage.scale).tolist()

    def charges(self, multipliers: np.ndarray) -> dict[int, np.ndarray]:
        """Return what the usages of each choice cost, for each variable with limits."""
        found = {}
        for v, groups in self.usage.groups.items():
            paid = [(multipliers[rows] / self.usage.scale[rows]).sum() for rows, _ in groups]
            terms = [each * usage for each, (_, usage) in zip(paid, groups, strict=True)]
            found[v] = np.sum(terms, axis=0)
        return found

    def update(self, state: Mapping[int, int], bound: float, gap: float) -> None:
        """Raise the multipliers of limits that an assignment exceeds, and lower the others.

        bound: that with the present ones. gap: to the cost that the bound may reach. The step
        starts from the multipliers with the best bound so far. Whenever the bound did not improve,
        steps become shorter.
        """
        if bound > self.best[0]:
            self.best = bound, self.now
        else:
            self.step *= SHORTER
            self.now = self.best[1]
        over = self.usage.used(state) / self.usage.scale - self.usage.limits / self.usage.scale
        over[(over < 0) & (self.now == 0)] = 0
        norm = float(over @ over)
        if norm > 0:
            self.now = np.maximum(self.now + self.step * gap / norm * over, 0)
