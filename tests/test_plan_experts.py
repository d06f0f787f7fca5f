"""Plans take no longer than the divisions that experts state, by `fixed=`."""

import pytest
import tiers

import gridlayout as gl
from benchmarks.experts import convolutions, decoding, experts, prefill, training
from gridlayout.sharding.limits import LIMITS

# Links and memory are as slow, beside latencies, as they are for large models on a v5e.
SLOW = 1e-4
SIZES = 8, 30, 16, 48, 80, 56, 1  # batch, rows, width of a head, model, hidden, vocabulary, layers
MODELS = {
    "training": training("training", *SIZES),
    "decoding": decoding("decoding", *SIZES),
    "prefill": prefill("prefill", *SIZES),
    "experts": training("experts", *SIZES, experts=8),
    "convolutions": convolutions("convolutions", 8, 14, 24, 1, 10),
    "scan": training("scan", *SIZES[:-1], 3, scan=True),
}
MESHES = {"training": (2, 3), "convolutions": (2, 3)}
QUICK = {"prefill": 1}  # how many experts, without --all-cases


@pytest.mark.parametrize("name", MODELS if tiers.ALL else QUICK)
def test_no_expert_states_a_faster_plan(name):
    mesh = MESHES.get(name, (2, 4))
    links = gl.Links(4.5e10 * SLOW, latency=1e-6, wrap=True)
    rates = gl.Rates(flops=2e14 * SLOW, memory=8e11 * SLOW)
    chip = gl.Chip("slow", (1, 1), {"dram": 2**40})
    machine = gl.Machine(chip, mesh=mesh, links=links, rates=rates)
    model = MODELS[name]
    free = gl.plan(model.fn, *model.args, machine=machine)
    stated = experts(model, mesh)
    assert len(stated) >= 7
    for expert in stated if tiers.ALL else tiers.few(stated, QUICK[name]):
        fixed = model.fixed(stated[expert])
        own = gl.plan(model.fn, *model.args, machine=machine, fixed=fixed)
        assert free.time <= own.time * (1 + 1e-9), expert


@pytest.mark.all_cases
def test_images_and_their_rows_are_divided_as_well_as_an_expert_does():
    """The bound is within five percent of the first plan, but other plans are faster."""
    chip = gl.Chip("large", (1, 1), {"dram": 2**40})
    links, rates = gl.Links(9e10, latency=1e-6, wrap=True), gl.Rates(flops=4.5e14, memory=2.8e12)
    machine = gl.Machine(chip, mesh=(3, 4), links=links, rates=rates)
    model = convolutions("convolutions", 8, 512, 64, 2, 1000)
    free = gl.plan(model.fn, *model.args, machine=machine)
    fixed = model.fixed({"b": 4, "s": 3})
    own = gl.plan(model.fn, *model.args, machine=machine, fixed=fixed)
    assert free.time <= own.time * (1 + LIMITS.close)
