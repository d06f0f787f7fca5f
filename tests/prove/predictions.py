"""Random programs are planned, for machines without devices and for devices, where they run.

A plan is predicted to be no slower than the default on the same operands, answers for each of its
equations, and computes what JAX computes.
"""

import traceback
import warnings

import jax
import numpy as np

from prove.outcome import Outcome
from prove.programs import compare, drawn_weights, floats_of, placed, weighted_sum
from prove.programs_random import drawn

MACHINES = ("v5e 4x4", "n150", "wormhole 2x4")
SECONDS = 1.0  # for the search of a plan


def run(part, start, count):
    """The programs of the seeds from `start` on, for the machines or the devices of the part."""
    outcome = Outcome()
    for seed in range(start, start + count):
        rng = np.random.default_rng([seed, part.devices, 7])
        program = drawn(rng)
        fn = program.function
        if seed % 2:
            fn = jax.grad(weighted_sum(fn, drawn_weights(program, rng)), floats_of(program))
        try:
            if part.devices > 1:
                assert_runs(program, fn, rng, part.devices)
            else:
                assert_described(program, fn, str(rng.choice(MACHINES)))
        except Exception:
            what = f"{program.source}\n{'gradient' if seed % 2 else 'value'}\n"
            repeat = f"python -m tests.prove predictions --part {part.name} --seed {seed}"
            what += traceback.format_exc()[-1500:]
            outcome.failures.append({"what": what, "repeat": repeat})
        else:
            outcome.cases += 1
            outcome.judged["JAX, on one device" if part.devices > 1 else "the default"] += 1
    return outcome


def assert_described(program, fn, machine):
    """The plan of operands without data, for a machine by name."""
    import gridlayout as gl

    operands = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in program.operands]
    plan = gl.plan(fn, *operands, machine=machine, seconds=SECONDS)
    if not gl.Machine(machine).by_core.has_cores:  # whose default has no tiles, and plans do
        default = gl.simulate(fn, *operands, machine=machine)
        assert plan.time <= default.time * (1 + 1e-9), f"{plan.time} for {default.time}"
    assert_answers(plan)


def assert_runs(program, fn, rng, devices):
    """The plan of laid out operands, run on them."""
    import gridlayout as gl

    warnings.simplefilter("ignore", gl.LayoutWarning)  # of grids with idle cores
    (arrays, layouts), device = placed(program, rng, devices)
    pairs = list(zip(arrays, layouts, strict=True))[: len(program.operands)]
    laid = [gl.put(x, layout, device) for x, layout in pairs]
    plan = gl.plan(fn, *laid, seconds=SECONDS)
    default = gl.simulate(fn, *laid)
    assert plan.time <= default.time * (1 + 1e-9), f"{device}: {plan.time} for {default.time}"
    assert_answers(plan)
    moved = plan.put(tuple(x for x, _ in pairs))
    compare("plan", gl.on_grid(fn, policy=plan)(*moved), jax.jit(fn)(*(x for x, _ in pairs)))


def assert_answers(plan):
    """A plan prints itself, and knows every equation that it lists."""
    assert str(plan)
    for each in plan.simulation.equations:
        assert plan.why(each.name)
