"""`Usage`: the limits of a model as arrays, to sum the usages of an assignment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gridlayout.ops.solver.model import Model


class Usage:
    """The limits of a model; for each variable, the limits grouped by its array of usages.

    pairs: for each variable in pairs of limits, the limit, the other variable, and the usage of
    [own choice, other's choice]. scale: the largest usage in each limit.
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
        self.pairs: dict[int, list[tuple[int, int, np.ndarray]]] = {}
        for row, limit in enumerate(model.limits):
            for v in {v for pair in limit.pairs for v in pair}:
                own = ((row, w, both) for w, both in limit.towards(v))
                self.pairs.setdefault(v, []).extend(own)
        arrays = ((*limit.usages.values(), *limit.pairs.values()) for limit in model.limits)
        largest = [max(usage.max() for usage in own) for own in arrays]
        self.scale = np.maximum(np.array(largest, np.float64), 1e-300)

    def used(self, state: Mapping[int, int]) -> np.ndarray:
        """Return the sum of usages for each limit."""
        total = np.zeros(len(self.limits))
        for v, groups in self.groups.items():
            for rows, usage in groups:
                total[rows] += usage[state[v]]
        for v, pairs in self.pairs.items():
            for row, w, both in pairs:
                total[row] += both[state[v], state[w]] if v < w else 0.0
        return total
