"""`Usage`: the limits of a model as arrays, to sum the usages of an assignment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gridlayout.ops.solver.model import Model


class Usage:
    """The limits of a model; for each variable, the limits grouped by its array of usages.

    scale: the largest usage in each limit.
    """

    def __init__(self, model: Model) -> None:
        self.limits = np.array([limit.limit for limit in model.limits])
        self.allowed = np.array([limit.limit + limit.slack for limit in model.limits])
        found: dict[int, dict[int, tuple[list[int], np.ndarray]]] = {}
        for row, limit in enumerate(model.limits):
            for v, usage in limit.usages.items():
                groups = found.setdefault(v, {})
                groups.setdefault(id(usage), ([], usage))[0].append(row)
        self.groups = {
            v: [(np.array(rows), usage) for rows, usage in groups.values()]
            for v, groups in found.items()
        }
        largest = [max(u.max() for u in limit.usages.values()) for limit in model.limits]
        self.scale = np.maximum(np.array(largest, np.float64), 1e-300)

    def used(self, state: Mapping[int, int]) -> np.ndarray:
        """Return the sum of usages for each limit."""
        total = np.zeros(len(self.limits))
        for v, groups in self.groups.items():
            for rows, usage in groups:
                total[rows] += usage[state[v]]
        return total
