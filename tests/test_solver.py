"""The solver against all assignments, dynamic programmes, and its own promises."""

import gzip
import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from itertools import pairwise, product
from math import inf, isclose
from pathlib import Path

import numpy as np
import pytest
import tiers

from benchmarks import sharding
from gridlayout.errors import LayoutError
from gridlayout.ops.solver import (
    classes,
    elimination,
    forests,
    integer,
    messages,
    model,
    presolve,
    search,
    solve,
)
from gridlayout.ops.solver.descent import Descent
from gridlayout.ops.solver.model import Model
from gridlayout.ops.solver.presolve import reduce
from gridlayout.ops.solver.problem import Fetch, Problem, Row
from gridlayout.ops.solver.quick import quick
from gridlayout.ops.solver.search import ELIMINATION, INTEGER, LOCAL, METHODS
from gridlayout.ops.solver.shares import Shares
from gridlayout.ops.solver.solve import Unsolved
from gridlayout.ops.solver.terms import Infeasible

CLOSE = 1e-9


def numbers(rng, shape, scale):
    found = rng.integers(0, 8, shape) if rng.random() < 0.5 else rng.random(shape) * 10
    return np.where(rng.random(shape) < 0.08, inf, found * scale)


def random_problem(rng, limited):
    """Up to 6 variables, fetches with up to 3 readers, the same one twice or the source too."""
    count = rng.integers(1, 7)
    choices = rng.integers(1, 6, count)
    scale = 10.0 ** rng.integers(-6, 9)
    fetches, rows = [], []
    for _ in range(rng.integers(0, count + 3)):
        source, forms = rng.integers(count), rng.integers(1, 5)
        readers = rng.integers(count, size=rng.integers(0, 4))
        read = tuple((int(r), rng.integers(-1, forms, choices[r])) for r in readers)
        fetches.append(Fetch(int(source), numbers(rng, (choices[source], forms), scale), read))
    for _ in range(rng.integers(1, 4) if limited else 0):
        members = np.flatnonzero(rng.random(count) < 0.7)
        usages = {int(v): rng.integers(0, 9, choices[v]) for v in members}
        pairs = {}
        for v, w in rng.integers(count, size=(rng.integers(0, 3), 2)):
            if v != w:
                pairs[int(v), int(w)] = rng.integers(0, 5, (choices[v], choices[w]))
        most = sum(int(usage.max()) for usage in (*usages.values(), *pairs.values()))
        rows.append(Row(float(rng.integers(0, most + 1)), usages, pairs))
    costs = tuple(numbers(rng, n, scale) for n in choices)
    return Problem(costs, tuple(fetches), tuple(rows))


def least(problem):
    """The least cost of all assignments; inf where none is feasible."""
    counts = [len(own) for own in problem.costs]
    every = np.indices(counts).reshape(len(counts), -1)
    total = sum(own[every[v]] for v, own in enumerate(problem.costs))
    for fetch in problem.fetches:
        for form in range(fetch.prices.shape[1]):
            reads = [forms[every[r]] == form for r, forms in fetch.consumers]
            read = np.any(reads, axis=0) if reads else False
            total = total + np.where(read, fetch.prices[every[fetch.source], form], 0)
    for row in problem.rows:
        used = sum((usage[every[v]] for v, usage in row.usages.items()), np.zeros(1))
        used = sum((both[every[v], every[w]] for (v, w), both in row.pairs.items()), used)
        total = np.where(used > row.limit, inf, total)
    return total.min()


def assert_sound(problem, found, best, is_exact):
    if found is None:
        assert best == inf
        return
    assert found.cost == problem.cost(found.choices)
    assert problem.excess(found.choices) <= 0
    assert found.bound <= min(best * (1 + CLOSE), found.cost)
    if is_exact:
        assert isclose(found.cost, best, rel_tol=CLOSE)
        assert found.gap < 1e-8


@pytest.mark.few(4)
@pytest.mark.parametrize("block", range(6))
@pytest.mark.parametrize("methods", [METHODS, (INTEGER,), (LOCAL,)], ids="+".join)
def test_least_of_all_assignments(methods, block):
    for seed in tiers.few(range(100 * block, 100 * block + 100), 51):
        problem = random_problem(np.random.default_rng(seed), limited=seed % 2 == 1)
        best = least(problem)
        try:
            found = solve.solve(problem, 20, methods=methods)
        except Unsolved:
            assert methods == (LOCAL,)
        else:
            assert_sound(problem, found, best, is_exact=methods != (LOCAL,))
            assert found is None or isclose(found.cost, best, rel_tol=CLOSE)


def test_each_method_without_the_reductions():
    for seed in range(200):
        problem = random_problem(np.random.default_rng(seed), limited=seed % 2 == 1)
        best = least(problem)
        try:
            made = model.Model.of(problem)
            state, bound = integer.integer_program(made, inf, inf)
        except Infeasible:
            assert best == inf
            continue
        assert isclose(made.cost(state), best, rel_tol=CLOSE)
        assert isclose(bound, best, rel_tol=1e-7, abs_tol=1e-300)
        free = Problem(problem.costs, problem.fetches)
        made = model.Model.of(free)
        state, cost = elimination.eliminated(made)
        assert isclose(cost, least(free), rel_tol=CLOSE)
        assert isclose(made.cost(state), cost, rel_tol=CLOSE)


def repeated(problem, rng):
    """The problem with up to five choices in place of each, of other costs, in another order."""
    at = [rng.permutation(np.repeat(np.arange(len(c)), rng.integers(1, 6))) for c in problem.costs]
    costs = [
        own[which] + rng.integers(0, 9, len(which))
        for own, which in zip(problem.costs, at, strict=True)
    ]
    fetches = [
        Fetch(f.source, f.prices[at[f.source]], tuple((v, own[at[v]]) for v, own in f.consumers))
        for f in problem.fetches
    ]
    return Problem(tuple(costs), tuple(fetches))


def test_elimination_over_classes_of_choices(monkeypatch):
    counts = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        problem = repeated(random_problem(rng, limited=False), rng)
        try:
            made = model.Model.of(problem)
        except Infeasible:
            continue
        monkeypatch.setattr(classes, "SEVERAL", 1000)
        _, cost = elimination.eliminated(made)
        monkeypatch.setattr(classes, "SEVERAL", 2)
        state, found = elimination.eliminated(made)
        counts.append(len(classes.Terms.from_model(made).of))
        assert isclose(found, cost, rel_tol=CLOSE)
        assert isclose(made.cost(state), cost, rel_tol=CLOSE) or cost == inf
    assert np.mean(counts) > 1


def test_shares_of_prices_prove_the_best_assignment():
    """Where tables over all readers of a fetch are too large; a proof is never wrong."""
    proved, split = 0, 0
    for seed in range(300):
        problem = random_problem(np.random.default_rng(seed), limited=False)
        best = least(problem)
        try:
            made = model.Model.of(problem)
        except Infeasible:
            continue
        if elimination.eliminated(made, largest=30) is not None or best == inf:
            continue
        found = Shares(made, (30, 10_000))
        if found.found is None:
            continue
        split += 1
        cost = problem.cost([found.found[v] for v in range(len(problem.costs))])
        assert cost >= best * (1 - CLOSE)
        assert isclose(cost, best, rel_tol=CLOSE) or not found.is_best
        proved += found.is_best
    assert proved > 0.5 * split > 5, (proved, split)


def test_reductions_keep_the_least_cost():
    for seed in range(200):
        problem = random_problem(np.random.default_rng(seed), limited=seed % 2 == 1)
        best = least(problem)
        try:
            made = model.Model.of(problem)
            presolve.reduce(made)
        except Infeasible:
            assert best == inf
            continue
        states = product(*(range(len(own)) for own in made.costs.values()))
        possible = [dict(zip(made.costs, state, strict=True)) for state in states]
        costs = [made.cost(state) for state in possible if made.is_within(state)]
        assert isclose(min(costs, default=inf) + sum(made.constants), best, rel_tol=CLOSE)


@pytest.mark.parametrize("seed", range(8))
def test_models_share_the_parts_of_fetches_and_do_not_change_them(seed):
    problem = random_problem(np.random.default_rng(seed), False)
    with suppress(Infeasible):
        reduce(Model.of(problem))
    others = [(each.source, 2 * each.prices + 1, each.consumers) for each in problem.fetches]
    changed = [each.with_prices(2 * each.prices + 1) for each in problem.fetches]
    found = problem, problem.with_terms(problem.costs, changed)
    fresh = problem, Problem(problem.costs, tuple(Fetch(*each) for each in others))
    for own, expected in zip(map(Model.of, found), fresh, strict=True):
        for state in product(*(range(len(costs)) for costs in problem.costs)):
            assert isclose(own.cost(dict(enumerate(state))), expected.cost(state), rel_tol=1e-9)


def test_a_forest_with_consumers_of_one_fetch_is_solved_exactly():
    # Both read a form of price 15. A change of one alone makes the cost 26, of both 12.
    fetch = Fetch(0, [[10, 15]], ((1, np.arange(2)), (2, np.arange(2))))
    made = model.Model.of(Problem(([0], [1, 0], [1, 0]), (fetch,)))
    start = {0: 0, 1: 1, 2: 1}
    found = forests.along_forests(made, start, {}, inf, lambda state: made.cost(state) < 15)
    assert made.cost(found) == 12


def test_choices_are_compared_in_blocks(monkeypatch):
    rng = np.random.default_rng(5)
    reads = tuple((v, rng.integers(0, 100, 60)) for v in (1, 2))
    fetch = Fetch(0, np.where(rng.random((60, 100)) < 0.1, inf, rng.random((60, 100))), reads)
    made = model.Model.of(Problem((np.zeros(60),) * 3, (fetch,)))
    assert made.shared
    for v in range(3):
        whole = presolve._differences(made, v)
        with monkeypatch.context() as patch:
            patch.setattr(presolve, "ENTRIES", 2**14)
            tracemalloc.start()
            found = presolve._differences(made, v)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        np.testing.assert_allclose(found, whole)
        assert peak < 2**20


def test_bounds_of_messages_are_bounds():
    for seed in range(120):
        problem = random_problem(np.random.default_rng(seed), limited=seed % 2 == 1)
        best = least(problem)
        try:
            made = model.Model.of(problem)
        except Infeasible:
            continue
        passed = messages.Relaxation(made, inf)
        for _ in range(6):
            passed.sweep(True)
            state = passed.sweep(False)
            passed.share()
            bound, more = passed.bound()
            assert bound <= best * (1 + CLOSE)
            if best < inf:
                every = passed.possible(bound, more, best)
                kept = tuple(np.where(every[v], own, inf) for v, own in enumerate(problem.costs))
                narrowed = Problem(kept, problem.fetches, problem.rows)
                assert isclose(least(narrowed), best, rel_tol=CLOSE)
            passed.update_multipliers(state, bound, 1.0)


# -- larger ones -----------------------------------------------------------------------------------


def edge(source, reader, table):
    return Fetch(source, table, ((reader, np.arange(np.shape(table)[1])),))


def chain(rng, count, choices):
    costs = tuple(rng.random(choices) for _ in range(count))
    return costs, [edge(v, v + 1, rng.random((choices, choices))) for v in range(count - 1)]


@pytest.mark.parametrize("methods", [METHODS, (LOCAL,)], ids="+".join)
def test_chain(methods):
    costs, edges = chain(np.random.default_rng(0), 200, 7)
    ahead = np.zeros(7)
    for v in range(199, 0, -1):
        ahead = (edges[v - 1].prices + costs[v] + ahead).min(1)
    found = solve.solve(Problem(costs, tuple(edges)), methods=methods)
    assert isclose(found.cost, (costs[0] + ahead).min())
    assert found.gap == 0
    assert found.how == ELIMINATION


def test_tree():
    rng = np.random.default_rng(1)
    parents = [int(rng.integers(max(0, v - 4), v)) for v in range(1, 200)]
    costs = [rng.random(6) for _ in range(200)]
    edges = [edge(p, v, rng.random((6, 6))) for v, p in enumerate(parents, 1)]
    problem = Problem(tuple(costs), tuple(edges))
    below = list(costs)
    for v in range(199, 0, -1):
        below[parents[v - 1]] = below[parents[v - 1]] + (edges[v - 1].prices + below[v]).min(1)
    assert isclose(solve.solve(problem).cost, below[0].min())


def grid(rng, width, length, choices):
    """A problem on a grid of variables, and its least cost, column by column."""
    count = width * length
    costs = tuple(rng.random(choices) for _ in range(count))
    edges = []
    for v in range(count):
        if (v + 1) % width:
            edges.append(edge(v, v + 1, rng.random((choices, choices))))
        if v + width < count:
            edges.append(edge(v, v + width, rng.random((choices, choices))))
    tables = {(e.source, e.consumers[0][0]): e.prices for e in edges}
    columns = list(product(range(choices), repeat=width))
    reached = np.zeros(len(columns))
    for column in range(length):
        at = [column * width + k for k in range(width)]
        own = np.array(
            [sum(costs[v][c] for v, c in zip(at, each, strict=True)) for each in columns]
        )
        for v, w in pairwise(at):
            own += [tables[v, w][each[v - at[0]], each[w - at[0]]] for each in columns]
        if column:
            each = np.array(columns)
            steps = [
                tables[v - width, v][each[:, k][:, None], each[:, k]] for k, v in enumerate(at)
            ]
            reached = (reached[:, None] + sum(steps)).min(0)
        reached = reached + own
    return Problem(costs, tuple(edges)), reached.min()


def test_grid():
    problem, best = grid(np.random.default_rng(2), 4, 50, 4)
    found = solve.solve(problem)
    assert isclose(found.cost, best)
    assert found.how == ELIMINATION
    searched = solve.solve(problem, 10, methods=(LOCAL,))
    assert searched.bound <= best * (1 + CLOSE)
    assert best * (1 - CLOSE) <= searched.cost <= 1.02 * best


def test_shared_values_are_paid_for_once():
    # Two readers of one form share its price of 5; apart, each would rather read its own at 3.
    forms = np.array([0, 1]), np.array([0, 2])
    fetch = Fetch(0, [[5, 3, 3]], ((1, forms[0]), (2, forms[1])))
    found = solve.solve(Problem(([0], [0, 0], [0, 0]), (fetch,)))
    assert (found.choices, found.cost, found.bound) == ((0, 0, 0), 5, 5)


def test_a_limit_that_holds_anyway_costs_nothing():
    costs, edges = chain(np.random.default_rng(3), 30, 5)
    free = solve.solve(Problem(costs, tuple(edges)))
    usage = [np.where(np.arange(5) == free.choices[v], 1, 2) for v in range(30)]
    row = Row(30, dict(enumerate(usage)))
    found = solve.solve(Problem(costs, tuple(edges), (row,)))
    assert (found.choices, found.gap) == (free.choices, 0)


def test_higher_limits_are_never_worse():
    rng = np.random.default_rng(4)
    costs, edges = chain(rng, 12, 5)
    usages = {v: rng.integers(0, 10, 5) for v in range(12)}
    limits = range(0, 70, 5)
    problems = [Problem(costs, tuple(edges), (Row(limit, usages),)) for limit in limits]
    found = [solve.solve(problem) for problem in problems]
    values = [inf if each is None else each.cost for each in found]
    assert all(b <= a * (1 + CLOSE) for a, b in pairwise(values))
    assert values[0] > values[-1]


# -- promises --------------------------------------------------------------------------------------


def limited_problem(seed, count=10):
    rng = np.random.default_rng(seed)
    costs, edges = chain(rng, count, 6)
    for _ in range(2 * count):
        v, w = sorted(rng.choice(count, 2, replace=False).tolist())
        edges.append(edge(v, w, rng.random((6, 6))))
    usages = {v: rng.integers(0, 10, 6) for v in range(count)}
    return Problem(costs, tuple(edges), (Row(2.5 * count, usages),))


@pytest.mark.few(1)
@pytest.mark.parametrize("methods", [METHODS, (LOCAL,)], ids="+".join)
def test_no_time(methods):
    for seed in range(3):
        problem = limited_problem(seed)
        best = solve.solve(problem).cost
        worst = np.argmin(list(problem.rows[0].usages.values()), axis=1)
        found = solve.solve(problem, 0, starts=[worst], methods=methods)
        assert found.bound <= best * (1 + CLOSE) <= found.cost * (1 + 2 * CLOSE)
        assert found.cost <= problem.cost(worst)


def exact_sum():
    """The weights of the choices 1 are to sum to exactly 60,000: a descent does not find that."""
    weights = np.random.default_rng(6).integers(1000, 9000, 24)
    taken = Row(60_000, {v: [0, w] for v, w in enumerate(weights)})
    left = Row(weights.sum() - 60_000, {v: [w, 0] for v, w in enumerate(weights)})
    return Problem(([0, 0],) * 24, (), (taken, left))


def test_the_others_of_a_solution_fit_and_the_last_is_the_best():
    seen = 0
    for seed in range(4):
        problem = limited_problem(seed)
        worst = np.argmin(list(problem.rows[0].usages.values()), axis=1)
        found = solve.solve(problem, starts=[worst])
        costs = [problem.cost(each) for each in found.others]
        assert all(problem.excess(each) <= 0 for each in found.others)
        assert costs == sorted(costs, reverse=True)
        assert found.choices not in found.others
        assert found.cost < min(costs, default=inf)
        assert tuple(worst) in found.others
        seen += len(costs)
    assert seen > 4


def test_unsolved():
    with pytest.raises(Unsolved, match="give more time or a start"):
        solve.solve(exact_sum(), 0)


@pytest.mark.parametrize("seconds", [0, 2])
def test_further_starts_are_asked_for_once_and_also_after_the_time(seconds):
    problem, asked = exact_sum(), []
    known = solve.solve(problem, 60, methods=(INTEGER,))

    def more():
        asked.append(None)
        return [known.choices]

    assert solve.solve(problem, seconds, methods=(LOCAL,), more=more).choices == known.choices
    assert len(asked) == 1


def test_messages_go_on_while_no_assignment_is_known(monkeypatch):
    """Until they stall: only then do the multipliers of limits rise."""
    charged = []

    class Relaxation(messages.Relaxation):
        def update_multipliers(self, state, bound, gap):
            super().update_multipliers(state, bound, gap)
            charged.append(self.multipliers.now.max())

    monkeypatch.setattr(search, "Relaxation", Relaxation)
    monkeypatch.setattr(search, "STALL_SWEEPS", 5)
    with pytest.raises(Unsolved):
        solve.solve(exact_sum(), 600, methods=(LOCAL,))
    assert len(charged) >= 5
    assert max(charged) > 0


def test_the_gap_of_an_integer_program_is_the_searchs(monkeypatch):
    """HiGHS counts a gap as a fraction of the cost, and the search as one of the bound."""

    def at_its_gap(model, most, deadline, gap, **_):
        state, _ = integer.integer_program(model, most, inf)
        return state, model.cost(state) * (1 - gap)

    monkeypatch.setattr(search, "integer_program", at_its_gap)
    found = solve.solve(limited_problem(1, 6), 600, methods=(INTEGER,), gap=0.05)
    assert 0.04 < found.gap <= 0.05 * (1 + CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_messages_go_on_to_a_closer_gap(seed):
    rng = np.random.default_rng(seed)
    every = [(v, int(w)) for v in range(60) for w in rng.choice(60, 4, replace=False) if v != w]
    fetches = [Fetch(v, rng.random((8, 4)) * 0.3, ((w, rng.integers(0, 4, 8)),)) for v, w in every]
    problem = Problem(tuple(rng.random(8) for _ in range(60)), tuple(fetches))
    rough = solve.solve(problem, 60, methods=(LOCAL,), gap=0.05)
    found = solve.solve(problem, 60, methods=(LOCAL,), gap=0.05, close=0.01)
    assert found.cost <= rough.cost
    assert found.gap < 0.95 * rough.gap < 0.05


def test_messages_are_passed_once(monkeypatch):
    made = []

    class Relaxation(messages.Relaxation):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(search, "Relaxation", Relaxation)
    monkeypatch.setattr(search, "MOST_SWEEPS", 3)
    solve.solve(limited_problem(1, 6), 10, methods=(LOCAL,), gap=1e-6)
    assert len(made) == 1


def test_interrupt_returns_what_is_known():
    problem = limited_problem(1)
    best = solve.solve(problem).cost

    def interrupt(cost, bound, seconds):
        told.append((cost, bound))
        raise KeyboardInterrupt

    told = []
    found = solve.solve(problem, progress=interrupt)
    assert told[0][0] == found.cost
    assert found.bound <= best * (1 + CLOSE) <= found.cost * (1 + 2 * CLOSE)


def least_own(problem):
    return sum(own.min() for own in problem.costs)


def test_interrupt_before_anything_is_known(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    problem = limited_problem(1)
    best = solve.solve(problem).cost
    monkeypatch.setattr(search.Model, "part", interrupt)
    calls = []
    found = solve.solve(problem, on_interrupt=lambda: calls.append(None))
    assert problem.excess(found.choices) <= 0
    assert found.cost == problem.cost(found.choices) >= best * (1 - CLOSE)
    assert found.bound == pytest.approx(least_own(problem))
    assert len(calls) == 1
    start = least_used(problem)
    found = solve.solve(problem, starts=[start])
    assert (found.choices, found.bound) == (start, pytest.approx(least_own(problem)))
    # A second one while the choices are made.
    monkeypatch.setattr(search, "quick", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve.solve(problem)


def least_used(problem):
    """The choices that use least of a problem's one row."""
    return tuple(np.argmin(list(problem.rows[0].usages.values()), axis=1).tolist())


def test_time_that_is_over_at_any_step_gives_something_true(monkeypatch):
    problem = limited_problem(3)
    best = solve.solve(problem).cost
    costs = []
    for steps in (*tiers.few((0, 1, 2, 3, 10, 30, 100, 300), 4), 10**6):
        ticks = iter(range(10**7))
        with monkeypatch.context() as patch:
            for module in (search, solve, integer):
                patch.setattr(module, "monotonic", lambda: next(ticks))  # noqa: B023
            found = solve.solve(problem, steps, methods=(ELIMINATION, LOCAL))
        assert problem.excess(found.choices) <= 0
        assert found.bound <= best * (1 + CLOSE) <= found.cost * (1 + 2 * CLOSE)
        costs.append(found.cost)
    assert costs[-1] == min(costs) < costs[0]


def test_choices_made_at_once_are_possible_where_that_is_easy():
    """Without rows, and fetches that are possible; and with one row that the least usages meet."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        problem = limited_problem(seed) if seed % 2 else Problem(*chain(rng, 12, 5))
        made = [*quick(model.Model.of(problem))]
        feasible = [each for each in made if problem.excess(tuple(each.values())) <= 0]
        assert feasible
        assert all(problem.cost(tuple(each.values())) < inf for each in made)
    # The first choice of the reader is impossible with that of the source.
    problem = Problem(([0, 9], [0, 1]), (edge(0, 1, [[inf, 0], [0, 0]]),))
    (state,) = quick(model.Model.of(problem))
    assert problem.cost(tuple(state.values())) == 1


def test_nothing_left_to_choose_is_a_program_too():
    assert integer.integer_program(model.Model({}, {}, {}), 1.0, inf) == ({}, 0.0)


def test_a_start_is_never_made_worse():
    problem = limited_problem(2)
    best = solve.solve(problem)
    for methods in ((LOCAL,), METHODS):
        found = solve.solve(problem, 0, starts=[best.choices], methods=methods)
        assert found.cost <= best.cost * (1 + CLOSE)


PROGRAM = """
from test_solver import limited_problem, random_problem
from gridlayout.ops.solver.terms import Infeasible
from gridlayout.ops.solver.search import LOCAL, METHODS
from gridlayout.ops.solver.solve import solve
import numpy as np
for methods in (METHODS, (LOCAL,)):
    print(solve(limited_problem(5), methods=methods))
    print(solve(random_problem(np.random.default_rng(8), False), methods=methods))
"""


@pytest.mark.skipif(not tiers.ALL, reason="other processes; with --all-cases")
def test_same_answer_in_every_process():
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    answers = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        command = [sys.executable, "-c", PROGRAM]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answers.add(made.stdout)
    assert len(answers) == 1


def test_costs_with_a_possible_choice_instead_of_an_impossible_one():
    problem = Problem(([inf, 1], [2, 3]), (edge(0, 1, [[inf, 0], [5, inf]]),))
    assert problem.costs_with((0, 0), 0).tolist() == [inf, 8]
    assert problem.costs_with((0, 0), 1).tolist() == [inf, inf]


# -- input -----------------------------------------------------------------------------------------

ONE = np.zeros((2, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem(([0, np.nan],)), "costs of variable 0 include NaN"),
        (lambda: Problem(([0, -1],)), r"costs of variable 0 include -1\.0"),
        (lambda: Problem(([[0]],)), "have 2 dims; give a vector"),
        (lambda: Fetch(0, [1, 2], ()), "have 1 dims; give a price for each choice"),
        (lambda: Fetch(0, [[np.nan]], ()), "prices of a fetch from variable 0 include NaN"),
        (lambda: Fetch(0, ONE, ((1, np.array([-2])),)), r"forms \[-2\] .* from -1, which is none"),
        (lambda: Fetch(0, ONE, ((1, np.array([1])),)), r"forms \[1\] .* to 0"),
        (lambda: Fetch(0, ONE, ((1, np.array([0.5])),)), "one integer for each of its choices"),
        (lambda: Problem(([0],), (Fetch(0, ONE, ()),)), "2 choices of variable 0, which has 1"),
        (
            lambda: Problem(([0, 0],), (Fetch(0, ONE, ((1, np.array([0])),)),)),
            "there is no variable 1, which the forms of a fetch name",
        ),
        (
            lambda: Problem(([0, 0],), (Fetch(0, ONE, ((0, np.array([0])),)),)),
            "forms of a fetch are for 1 choices of variable 0, which has 2",
        ),
        (lambda: Row(np.nan, {}), "limit of a row is NaN"),
        (lambda: Row(1, {0: [inf]}), "usages of variable 0 are not all finite"),
        (lambda: Row(1, {0: [-1]}), r"usages of variable 0 include -1\.0"),
        (lambda: Problem(([0],), (), (Row(1, {0: [1, 1]}),)), "usages of a row are for 2 choices"),
        (lambda: Row(1, {}, {(0, 1): [[-1]]}), r"usages of variable \(0, 1\) include -1\.0"),
        (lambda: Problem(([0],), (), (Row(1, {}, {(0, 0): [[0]]}),)), "need two variables"),
        (lambda: Problem(([0], [0]), (), (Row(1, {}, {(0, 1): ONE}),)), "a row are for 2 choices"),
        (lambda: Problem(([0],)).cost((0, 0)), "2 choices for 1 variables"),
        (lambda: Problem(([0],)).cost((1,)), "choice 1 of variable 0, which has 1 choices"),
        (lambda: solve.solve(Problem(([0],)), methods=("guess",)), r"methods \['guess'\]"),
        (lambda: solve.solve(Problem(([0],)), starts=[(3,)]), "choice 3 of variable 0"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(LayoutError, match=message):
        make()


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem(()), ()),
        (Problem(([3],)), (0,)),
        (Problem(([],)), None),
        (Problem(([inf, inf],)), None),
        (Problem(([0, 0],), (), (Row(-1, {}),)), None),
        (Problem(([0, 1],), (), (Row(inf, {0: [9, 0]}),)), (0,)),
        (Problem(([0, 1],), (), (Row(5, {0: [9, 5]}),)), (1,)),
        (Problem(([0, 1], [0, 1]), (), (Row(0.3, {0: [0.1, 0], 1: [0.2, 0]}),)), (0, 0)),
    ],
)
def test_smallest_problems(problem, expected):
    found = solve.solve(problem)
    assert (found and found.choices) == expected


# -- the contest's files ---------------------------------------------------------------------------

CONTEST = {
    "name": "three nodes",
    "nodes": {
        "intervals": [[0, 10], [5, 20], [10, 20], [3, 3]],
        "costs": [[1, 2], [3, 0, 10**18], [4, 4], [0]],
        "usages": [[6, 1], [5, 5, 0], [7, 5], [99]],
    },
    "edges": {"nodes": [[0, 1], [1, 2]], "costs": [[0, 9, 0, 5, 1, 0], [1, 2, 3, 4, 5, 6]]},
    "usage_limit": 10,
}


def test_contest_file(tmp_path, capsys):
    path = tmp_path / "small.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"problem": CONTEST}).encode()))
    problem = sharding.read(path)
    # Live at once: 0 and 1 from 5 to 10, 1 and 2 from 10; the fourth is never live.
    assert [sorted(row.usages) for row in problem.rows] == [[0, 1], [1, 2]]
    assert problem.cost((1, 1, 1, 0)) == 2 + 0 + 4 + 1 + 4
    assert problem.cost((0, 2, 0, 0)) == inf
    assert problem.excess((0, 0, 0, 0)) == 2
    found = solve.solve(problem)
    assert (found.choices, found.cost) == ((1, 1, 1, 0), 11)
    assert sharding.main([str(path)]) == 0
    assert "small.json.gz  4  2  8  11  11  0.00%" in capsys.readouterr().out


def test_descents_end_where_costs_differ_by_rounding_only():
    # Terms of very different sizes cancel: an assignment seems to cost less than an equal one.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        pairs = [(v, w) for v in range(8) for w in range(v + 1, 8)]
        own = [1e-9 * rng.choice([0, 0.1, 0.3], 4) for _ in range(8)]
        edges = [
            edge(v, w, rng.choice([0, 0, 0.1, 0.3, 0.7], (4, 4)))
            for v, w in pairs
            if rng.random() < 0.5
        ]
        steps = itertools.count()

        def each_step(steps=steps, seed=seed):
            assert next(steps) < 20_000, seed

        model = Model.of(Problem(tuple(own), tuple(edges)))
        Descent(model, each_step).run(dict.fromkeys(range(8), 0))
