"""`gl.on_grid` and `gl.plan` solve one problem, and its prices are those of the programs."""

import numpy as np
import pytest
from random_networks import divided, network
from tiers import few

import gridlayout as gl
from gridlayout.ops.choose import chosen
from gridlayout.ops.interpret import planner

MACHINE = gl.Machine("v5e 4x4")


def cases(grid=MACHINE.mesh, count=24):
    """Networks, with layouts of their arguments."""
    for seed in few(range(100), count):
        fn, args, _ = network(seed)
        yield seed, fn, divided(args, grid)


def test_the_default_is_about_as_fast_as_the_plan_of_its_operands():
    # The results of a plan are free; those of the default keep the grids of operands.
    ratios = {}
    for seed, fn, layouts in cases(count=12):
        default = gl.simulate(fn, *layouts, machine=MACHINE).time
        plan = gl.plan(fn, *layouts, machine=MACHINE, seconds=5)
        assert plan.time <= default * (1 + 1e-9)
        ratios[seed] = default / plan.time
    found = np.array([*ratios.values()])
    assert np.median(found) <= 1.02, ratios
    assert np.exp(np.log(found).mean()) <= 1.1, ratios


# Of programs on the machine: the share whose price is exact to 1 %, and the worst ratio.
@pytest.mark.parametrize(
    ("machine", "grid", "count", "share", "worst"),
    [
        ("v5e 4x4", (4, 4), 24, 0.9, 1.06),
        ("n150", (8, 8), 16, 0.5, 1.12),
        ("wormhole 2x4", (2, 4), 16, 0.3, 1.15),
    ],
)
def test_a_program_takes_what_its_choice_was_priced_at(
    machine, grid, count, share, worst, monkeypatch
):
    known = {}

    def best_of(strategies):
        found = chosen.descended(strategies.problem, lambda model: chosen.starts(strategies, model))
        found, known["price"] = strategies.with_exact_moves(found)
        return found

    def plan_with(*args):
        made = original(*args)
        if args[-1] is not None and len(args) == 5:
            known["time"] = made.seconds
        return made

    original = planner._plan_with
    monkeypatch.setattr(chosen, "best_of", best_of)
    monkeypatch.setattr(planner, "_plan_with", plan_with)
    ratios = {}
    for seed, fn, layouts in cases(grid, count):
        known.clear()
        gl.simulate(fn, *layouts, machine=machine)
        if "time" in known:
            ratios[seed] = known["time"] / known["price"]
    found = np.array([*ratios.values()])
    assert len(found) >= count // 2
    assert np.mean(abs(found - 1) <= 0.01) >= share, ratios
    assert abs(np.log(found)).max() <= np.log(worst), ratios
