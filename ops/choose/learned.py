"""What choices take beyond the problem that they are the best of: what its prices miss.

Prices of a problem are those of single choices and pairs. What a solution really takes also depends
on all others: which collectives are joined, and what its program copies. The difference is counted
for the choices at the nodes where it is, so that the next solution is the best with what is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.graph.node import Path
from gridlayout.ops.solver.problem import Problem


def missing(
    choices: Sequence[int], problem: Problem, taken: Mapping[int, float]
) -> dict[tuple[int, int], float]:
    """Return the seconds that some choices of variables take and a problem does not state.

    taken: the seconds of each variable in a program of the choices. Their sum with the result is
    what all take, so where a variable takes less than stated, others get less of the rest.
    """
    stated = by_variable(choices, problem)
    more = {(at, choices[at]): seconds - stated[at] for at, seconds in taken.items()}
    above = sum(max(each, 0.0) for each in more.values())
    rest = sum(taken.values()) - sum(stated)
    if rest <= 0 or not above:
        return {}
    return {key: each * rest / above for key, each in more.items() if each > 0}


def by_variable(choices: Sequence[int], problem: Problem) -> list[float]:
    """Return the seconds of each variable in a problem; readers share what they move together."""
    own = [float(costs[k]) for costs, k in zip(problem.costs, choices, strict=True)]
    for fetch in problem.fetches:
        readers: dict[int, list[int]] = {}
        for v, forms in fetch.consumers:
            readers.setdefault(int(forms[choices[v]]), []).append(v)
        for form, some in readers.items():
            for v in some if form >= 0 else ():
                own[v] += float(fetch.prices[choices[fetch.source], form]) / len(some)
    return own


def by_equation(strategies: Strategies, seconds: Mapping[Path, float]) -> dict[int, float]:
    """Return the seconds of each variable; seconds: of equations, by their paths."""
    found: dict[int, float] = {}
    rest = dict(seconds)
    for n, node in enumerate(strategies.graph.nodes):
        at = strategies.variable(n)
        own = (rest.pop(each.path, 0.0) for each in node.equations)
        found[at] = found.get(at, 0.0) + sum(own)
    return found
