"""`gl.on_grid` and `gl.plan` solve one problem, and its prices are those of the programs."""

import numpy as np
from random_networks import divided, network
from tiers import few

import gridlayout as gl
from gridlayout.ops.choose import chosen
from gridlayout.ops.interpret import planner

MACHINE = gl.Machine("v5e 4x4")


def cases():
    """Networks, with layouts of their arguments."""
    for seed in few(range(100), 24):
        fn, args, _ = network(seed)
        yield seed, fn, divided(args, MACHINE.mesh)


def test_the_default_is_about_as_fast_as_the_plan_of_its_operands():
    # The results of a plan are free; those of the default keep the grids of operands.
    ratios = {}
    for seed, fn, layouts in cases():
        default = gl.simulate(fn, *layouts, machine=MACHINE).time
        plan = gl.plan(fn, *layouts, machine=MACHINE, seconds=5)
        assert plan.time <= default * (1 + 1e-9)
        ratios[seed] = default / plan.time
    found = np.array([*ratios.values()])
    assert np.median(found) <= 1.02, ratios
    assert np.exp(np.log(found).mean()) <= 1.1, ratios


def test_a_program_takes_what_its_choice_was_priced_at(monkeypatch):
    known = {}

    def best_choices(strategies):
        found = chosen.descended(
            strategies.problem, lambda: chosen.starts(strategies, strategies.problem)
        )
        found, problem = strategies.with_exact_moves(found)
        known["price"] = problem.cost(found)
        return strategies.choices(found)

    def plan_with(*args):
        made = original(*args)
        if args[-1] is not None and len(args) == 5:
            known["time"] = made.seconds
        return made

    original = planner._plan_with
    monkeypatch.setattr(chosen, "best_choices", best_choices)
    monkeypatch.setattr(planner, "_plan_with", plan_with)
    ratios = {}
    for seed, fn, layouts in cases():
        known.clear()
        gl.simulate(fn, *layouts, machine=MACHINE)
        if "time" in known:
            ratios[seed] = known["time"] / known["price"]
    found = np.array([*ratios.values()])
    assert len(found) >= 8
    assert np.median(abs(found - 1)) <= 0.01, ratios
    assert abs(np.log(found)).max() <= 0.25, ratios
