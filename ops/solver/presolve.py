"""`reduce`: drops choices that no best assignment needs, and variables that follow from others.

Each step keeps at least one best assignment. It drops
  - choices that are impossible by themselves, with a neighbour, or under a limit;
  - choices that are dominated: another choice of the variable costs no more whatever the other
    variables choose (the dead-end elimination of Goldstein, 1994), and uses no more of any limit;
  - limits that cannot be exceeded;
  - variables in no limit or shared fetch that are linked to at most two others, or have one choice:
    costs or a table of the others replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import fsum
from typing import Any

import numpy as np

from gridlayout.ops.solver.classes import equal_rows
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.terms import Eliminated, Infeasible, Limit, no_step

_Known = dict[int, tuple[float, np.ndarray, np.ndarray]]

ENTRIES = 2**22  # of the arrays that compare the choices of one variable
GROWTH = 2.0  # the most entries of a new table for each entry of the two that it replaces


def reduce(model: Model, each_step: Callable[[], None] = no_step) -> None:
    """Reduce a model in place; raise Infeasible where it has no feasible assignment.

    each_step: called for each variable and limit; if it raises, the model is left unfinished.
    """
    changed = set(model.choices)
    while changed:
        reduce_limits(model, changed, each_step)
        _simplify_shared(model, changed)
        now, changed = sorted(changed & model.choices.keys()), set()
        for v in now:
            each_step()
            _reduce_variable(model, v, changed)
    model.index()


def _reduce_variable(model: Model, v: int, changed: set[int]) -> None:
    before = len(model.choices[v])
    possible = np.isfinite(model.costs[v])
    for table in model.tables[v].values():
        possible &= np.isfinite(table).any(1)
    if not possible.all():
        model.keep(v, possible)
    if len(model.choices[v]) > 1 and len(kept := _undominated(model, v)) < len(model.choices[v]):
        model.keep(v, kept)
    if len(model.choices[v]) < before:
        changed.update([v, *model.links(v)])
    if not model.limits_of[v] and not model.shared_of[v]:
        changed.update(_eliminate(model, v))


def _undominated(model: Model, v: int) -> np.ndarray:
    """Return the choices that no other one dominates; of equally good ones, the first."""
    more = _differences(model, v)
    better = more <= 0
    for usage in {id(u): u for limit in model.limits_of[v] for u in [limit.usages[v]]}.values():
        better &= usage[:, None] <= usage[None, :]
    towards = (x for limit in model.limits_of[v] for _, x in limit.towards(v))
    for both in {(x.ctypes.data, x.strides): x for x in towards}.values():
        better &= _by_rows(_is_less, both)
    np.fill_diagonal(better, False)
    remaining = np.ones(len(better), bool)
    for c in range(len(better) - 1, -1, -1):
        remaining[c] = not (better[:, c] & remaining).any()
    return np.flatnonzero(remaining)


def _is_less(usages: np.ndarray) -> np.ndarray:
    """Return [a, b]: whether row a is nowhere more than row b."""
    return np.array([(row <= usages).all(1) for row in usages])


def _differences(model: Model, v: int) -> np.ndarray:
    """Return [a, b]: the most that choosing a instead of b costs, whatever the others choose."""
    own = model.costs[v]
    more = own[:, None] - own[None, :]
    for table in model.tables[v].values():
        more += _by_rows(_most_over, table)
    for shared in model.shared_of[v]:
        if v == shared.source:
            more += _by_rows(_positive_sums, shared.prices)
        else:
            more += _by_rows(partial(_most_added, shared.prices), shared.reads[v])
    return more


def _by_rows(compare: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return a comparison of all rows with each other; equal ones are compared once."""
    first, which = equal_rows(rows)
    return compare(rows[first])[np.ix_(which, which)]


def _most_added(prices: np.ndarray, reads: np.ndarray) -> np.ndarray:
    """Return [a, b]: the most that the forms cost which row a reads and row b does not.

    reads: rows of which no two are equal.
    """
    if reads.sum(1).max(initial=0) <= 1:  # rows differ, so that b does not read the form of a
        most = np.repeat(
            np.where(reads, prices.max(0, initial=0), 0.0).sum(1)[:, None], len(reads), 1
        )
        np.fill_diagonal(most, 0.0)
        return most
    kinds, most = prices[equal_rows(prices)[0]], np.empty((len(reads), len(reads)))
    for rows in _blocks(reads):
        added = reads[rows, None] & ~reads[None, :]
        most[rows] = np.max([np.where(added, price, 0).sum(2) for price in kinds], axis=0)
    return most


def _most_over(table: np.ndarray) -> np.ndarray:
    """Return [a, b]: the most by which row a exceeds row b, where row b is finite."""
    most = np.empty((len(table), len(table)))
    is_finite = np.isfinite(table).all()
    for rows in _blocks(table):
        with np.errstate(invalid="ignore"):
            apart = table[rows, None] - table[None]
        if not is_finite:
            apart[:, ~np.isfinite(table)] = -np.inf
        most[rows] = apart.max(2)
    return most


def _positive_sums(prices: np.ndarray) -> np.ndarray:
    sums = np.empty((len(prices), len(prices)))
    for rows in _blocks(prices):
        with np.errstate(invalid="ignore"):
            apart = prices[rows, None] - prices[None]
        apart[:, ~np.isfinite(prices)] = 0
        sums[rows] = np.maximum(apart, 0).sum(2)
    return sums


def _blocks(table: np.ndarray) -> Iterator[slice]:
    """Yield blocks of rows that are compared with all rows at a time."""
    step = max(1, ENTRIES // max(table.size, 1))
    for at in range(0, len(table), step):
        yield slice(at, at + step)


def _eliminate(model: Model, v: int) -> list[int]:
    """Eliminate a variable and return its neighbours; return [] if it stays.

    It stays if it has several choices and more than two neighbours, or a table would be too large.
    """
    tables, own = model.tables[v], model.costs[v]
    others = list(tables)
    if len(own) > 1 and len(others) > 2:
        return []
    made: np.ndarray | None = None
    if len(own) > 1 and len(others) == 2:
        first, second = (tables[w] for w in others)
        if first.shape[1] * second.shape[1] > GROWTH * (first.size + second.size):
            return []
        made = _min_plus(first.T + own, second)
    neighbours = tuple((w, model.choices[w], table) for w, table in tables.items())
    model.eliminated.append(Eliminated(v, model.choices[v], own, neighbours))
    model.remove(v)
    if made is not None:
        model.add_table(others[0], others[1], made)
    elif len(own) == 1:
        model.constants.append(float(own[0]))
        for w, _, table in neighbours:
            model.costs[w] = model.costs[w] + table[0]
    elif others:
        model.costs[others[0]] = model.costs[others[0]] + (neighbours[0][2].T + own).min(1)
    else:
        model.constants.append(float(own.min()))
    return others


def _min_plus(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the min-plus product of two tables."""
    made = np.full((len(left), right.shape[1]), np.inf)
    for k in range(right.shape[0]):
        np.minimum(made, left[:, k, None] + right[k], out=made)
    return made


def _simplify_shared(model: Model, changed: set[int]) -> None:
    """Replace fetches of changed variables that have only one consumer left by tables."""
    kept = []
    for shared in model.shared:
        if changed.isdisjoint(shared.scope):
            kept.append(shared)
        elif (rest := model.simplified(shared)) is not None:
            kept.append(rest)
    model.shared = kept
    model.index()


def reduce_limits(model: Model, changed: set[int], each_step: Callable[[], None] = no_step) -> None:
    """Drop limits of changed variables that cannot be exceeded, and choices that exceed one."""
    now = changed
    while now:
        least: _Known = {}
        kept, after = [], set[int]()
        for limit in model.limits:
            each_step()
            if now.isdisjoint(limit.usages) or _subtract_least(limit, least):
                kept.append(limit)
            else:
                changed.update(limit.usages)
        model.limits = kept
        model.index()
        for limit in kept:
            each_step()
            for v, usage in limit.usages.items():
                possible = usage <= limit.limit + limit.slack
                if not possible.all():
                    model.keep(v, possible)
                    after.add(v)
                    changed.update([v, *model.links(v)])
        now = after
    _drop_weaker(model)


def _subtract_least(limit: Limit, known: _Known) -> bool:
    """Count usages from each variable's least one; return whether the limit may be exceeded.

    known: results for usages by their ids, because limits share arrays; and these arrays.
    """

    def rest(usage: np.ndarray) -> np.ndarray:
        if id(usage) not in known:
            own = float(usage.min())
            left = usage - own if own else usage
            known[id(usage)] = own, left, usage
            known[id(left)] = 0.0, left, left
        own, left, _ = known[id(usage)]
        least.append(-own)
        return left

    least: list[float] = []
    pairs = {pair: left for pair, usage in limit.pairs.items() if (left := rest(usage)).any()}
    paired = {v for pair in pairs for v in pair}
    usages = {v: rest(usage) for v, usage in limit.usages.items()}
    limit.limit = fsum([limit.limit, *least])
    if limit.limit < -limit.slack:
        raise Infeasible
    limit.limit = max(limit.limit, 0.0)
    limit.pairs = pairs
    limit.usages = {v: usage for v, usage in usages.items() if v in paired or usage.any()}
    return limit.most() > limit.limit - limit.slack


def _drop_weaker(model: Model) -> None:
    """Keep, of limits on the same usages, only the lowest."""
    least: dict[Any, Limit] = {}
    for limit in model.limits:
        every = (sorted(each.items()) for each in (limit.usages, limit.pairs))
        key = tuple((v, usage.tobytes()) for own in every for v, usage in own)
        if key not in least or limit.limit < least[key].limit:
            least[key] = limit
    model.limits = [limit for limit in least.values() if limit.usages]
    model.index()
