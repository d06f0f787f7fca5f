"""A plan's peak: what it bounds, and what less memory changes."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from random_networks import network
from tiers import few

import gridlayout as gl
from gridlayout.ops.choose.mixtures import starts
from gridlayout.ops.graph.node import SLICE
from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.priced import made_plan
from gridlayout.ops.planning.solved import solved
from gridlayout.ops.planning.traced import traced_for
from gridlayout.ops.solver.descent import descended
from gridlayout.ops.solver.solve import Solution
from gridlayout.sharding.limits import LIMITS

newest = pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="an older XLA")


def bf16(*shape):
    return jax.ShapeDtypeStruct(shape, "bfloat16")


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


def attention(x, qkv, out):
    q, k, v = (part.reshape(2, -1, 4, x.shape[1] // 4) for part in jnp.split(x @ qkv, 3, -1))
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ out


def momentum(params, speed, x, y):
    """A training step with an optimizer that keeps a state."""

    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"] - y) ** 2)

    grads = jax.grad(loss)(params)
    speed = jax.tree.map(lambda m, g: 0.9 * m + g, speed, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, speed), speed


def scanned(x, stack):
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(0)), x, stack)


def power(a, v):
    return lax.fori_loop(0, 5, lambda _, v: (a @ v) / jnp.linalg.norm(a @ v), v)


def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def chain(x, y):
    return jnp.tanh(x * y + 1) * jnp.exp(-x) - y / 2


def summed(*arrays):
    return sum((jnp.tanh(x) * y for x, y in pairwise(arrays)), arrays[0])


def gated(x, a, b, c):
    return (jax.nn.silu(x @ a) * (x @ b)) @ c


PARAMS = {"up": bf16(256, 512), "down": bf16(512, 256)}
# A function, and the shapes of its arguments.
PROGRAMS = {
    "mlp": (mlp, bf16(8192, 512), bf16(512, 2048), bf16(2048, 512)),
    "small mlp": (mlp, bf16(256, 256), bf16(256, 512), bf16(512, 256)),
    "uneven mlp": (mlp, bf16(1000, 300), bf16(300, 700), bf16(700, 100)),
    "attention": (attention, bf16(128, 128), bf16(128, 384), bf16(128, 128)),
    "training": (momentum, PARAMS, PARAMS, bf16(1024, 256), bf16(1024, 256)),
    "scan": (scanned, bf16(256, 256), bf16(3, 256, 256)),
    "loop": (power, f32(1024, 1024), f32(1024)),
    "chain": (chain, bf16(4096, 1024), bf16(4096, 1024)),
    "uneven chain": (chain, bf16(1111, 777), bf16(1111, 777)),
    "norm": (norm, bf16(4096, 1024)),
    "softmax": (jax.nn.softmax, bf16(4096, 1024)),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.mean()), bf16(4096, 1024)),
    "gated": (gated, bf16(1024, 512), bf16(512, 1024), bf16(512, 1024), bf16(1024, 512)),
    "products": (lambda x, w: (x.T @ x) @ w, bf16(2048, 512), bf16(512, 512)),
    "many arrays": (summed, *[bf16(2048, 1024)] * 5),
    "identity": (lambda x: x, bf16(64, 64)),
}
_PLANS = {}


def planned(name, machine):
    """The plan of a program, made once, on a ready machine."""
    if (name, machine) not in _PLANS:
        fn, *args = PROGRAMS[name]
        _PLANS[name, machine] = gl.plan(fn, *args, machine=machine)
    return _PLANS[name, machine]


def with_room(machine, nbytes):
    """A ready machine whose cores have so many bytes of L1 for values."""
    made = gl.Machine(machine)
    l1 = int(nbytes / (1 - LIMITS.buffer_share))
    l1 += next(k for k in range(9) if int((l1 + k) * (1 - LIMITS.buffer_share)) >= nbytes)
    chip = replace(made.chip, capacity={**made.chip.capacity, "l1": l1})
    return gl.Machine(chip, made.mesh, made.links, rates=made.rates)


# -- an allocator ----------------------------------------------------------------------------------


class Allocator:
    """Takes the first hole, from address 0 on, that is large enough; keeps a list of holes."""

    def __init__(self, align):
        self.align, self.holes, self.most = align, [(0, 2**62)], 0

    def take(self, nbytes):
        nbytes = -(-nbytes // self.align) * self.align
        for k, (at, size) in enumerate(self.holes):
            if size >= nbytes:
                self.holes[k : k + 1] = [(at + nbytes, size - nbytes)] if size > nbytes else []
                self.most = max(self.most, at + nbytes)
                return at, nbytes
        raise AssertionError("there is always a hole at the end")

    def free(self, block):
        joined = []
        for at, size in sorted([*self.holes, block]):
            if joined and sum(joined[-1]) == at:
                joined[-1] = joined[-1][0], joined[-1][1] + size
            else:
                joined.append((at, size))
        self.holes = joined


def replayed(plan, align=32):
    """Where each value is put, and the highest byte in use: values come, are read, and go."""
    allocator, blocks = Allocator(align), {}
    for step in range(len(plan.simulation.held)):
        for n, live in enumerate(plan.live_ranges):
            if live.first == step:
                blocks[n] = allocator.take(live.nbytes)
        for n, live in enumerate(plan.live_ranges):
            if live.last == step:
                allocator.free(blocks[n])
    assert len(blocks) == len(plan.live_ranges)
    assert allocator.holes == [(0, 2**62)]  # each value went
    return [blocks[n][0] for n in range(len(blocks))], allocator.most


SLOW = ("attention", "training", "scan")  # to plan
QUICK = [name for name in PROGRAMS if name not in SLOW]
REPLAYED = [*((name, "n150") for name in PROGRAMS), *((name, "p150") for name in QUICK)]
REPLAYED += [(name, "n300") for name in ("small mlp", "chain", "products", "reductions")]
REPLAYED = few(REPLAYED, 11)


@pytest.mark.few(5)
@pytest.mark.parametrize(("name", "machine"), REPLAYED)
def test_the_peak_bounds_an_allocator_that_takes_the_first_hole(name, machine):
    plan = planned(name, machine)
    addresses, most = replayed(plan)
    assert most <= plan.peak_bytes <= plan.device.machine.chip.capacity["l1"]
    assert addresses == [live.address for live in plan.live_ranges]
    # What is said of each step is enough for what is there then.
    for step, (_, used) in enumerate(plan.simulation.held):
        there = [x for x in plan.live_ranges if x.first <= step <= x.last]
        assert sum(x.nbytes for x in there) <= used <= plan.peak_bytes
        assert max((x.address + x.nbytes for x in there), default=0) == used


@pytest.mark.few(5)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "attention"])
def test_the_peak_of_devices_bounds_it_too(name):
    plan = planned(name, "v5e 4x4")
    assert replayed(plan, align=1)[1] <= plan.peak_bytes
    for step, (_, nbytes) in enumerate(plan.simulation.held):
        assert sum(x.nbytes for x in plan.live_ranges if x.first <= step <= x.last) == nbytes


def test_gaps_between_values_count():
    # Some programs leave gaps: without them the replay above would show nothing.
    gaps = 0
    for name in ("softmax", "training", "norm"):
        plan = planned(name, "n150")
        steps = range(len(plan.simulation.held))
        live = (sum(x.nbytes for x in plan.live_ranges if x.first <= n <= x.last) for n in steps)
        gaps += max(live) < plan.peak_bytes
    assert gaps >= 2


# -- live ranges -----------------------------------------------------------------------------------


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "machine"), REPLAYED)
def test_arguments_and_results_in_l1_are_alive_as_large_as_their_layouts(name, machine):
    plan = planned(name, machine)
    end = len(plan.simulation.held) - 1
    near = {n: x.held.per_core for n, x in plan.layouts.items() if x and x.memory == "l1"}
    live_ranges = {live.name: live for live in plan.live_ranges}
    for path, nbytes in near.items():
        live = live_ranges[path]
        assert (live.first, live.last) == (0, end)
        assert nbytes <= live.nbytes < nbytes + 32
    # Those in DRAM are not there.
    assert not live_ranges.keys() & (plan.layouts.keys() - near.keys() - _numbers(plan))
    at_end = sorted(x.nbytes for x in plan.live_ranges if x.last == end and x.name not in near)
    results = sorted(x.held.per_core for x in plan.results.values() if x and x.memory == "l1")
    if name != "identity":  # whose result is its argument
        largest = at_end[len(at_end) - len(results) :]
        assert len(largest) == len(results)
        assert all(a >= b for a, b in zip(largest, results, strict=True))


def _numbers(plan):
    """The arguments that are in no layout."""
    return {name for name, layout in plan.layouts.items() if layout is None}


def test_a_value_goes_with_what_reads_it_last():
    def fn(x):
        first = jnp.exp(x)
        second = jnp.tanh(first)
        third = jnp.sin(second)
        return jnp.cos(third) * first

    plan = gl.plan(fn, bf16(1024, 1024), machine="n150")
    steps = ["exp:0", "tanh:0", "sin:0", "cos:0", "mul:0"]
    assert [name for name, _ in plan.simulation.held] == steps
    found = {x.name: (x.first, x.last, x.address // x.nbytes) for x in plan.live_ranges}
    assert found == {
        "x": (0, 4, 0),
        "exp:0": (0, 4, 1),
        "tanh:0": (1, 2, 2),
        "sin:0": (2, 3, 3),
        "cos:0": (3, 4, 2),
        "mul:0": (4, 4, 3),
    }


def test_what_a_loop_reads_in_every_round_is_there_until_it_ends():
    def fn(x, y):
        outer = jnp.exp(y)  # read first in the body alone
        return lax.fori_loop(0, 9, lambda _, c: jnp.sin(jnp.tanh(c * outer)), x)

    plan = gl.plan(fn, bf16(1024, 1024), bf16(1024, 1024), machine="n150")
    live_ranges = {x.name: x for x in plan.live_ranges}
    assert live_ranges["exp:0"].last >= live_ranges["sin:0"].last > live_ranges["tanh:0"].first
    carried = live_ranges["bfloat16[1024,1024] of carry"]
    assert carried.first < live_ranges["mul:0"].first
    assert carried.last >= live_ranges["sin:0"].last


@pytest.mark.few(1)
@pytest.mark.parametrize("machine", ["n150", "v5e 4x4"])
def test_lives_are_kept_in_files_and_by_simulations(machine, tmp_path):
    plan = planned("training", machine)
    plan.save(tmp_path / "plan.json")
    assert gl.load_plan(tmp_path / "plan.json").live_ranges == plan.live_ranges
    fn, *args = PROGRAMS["training"]
    assert gl.simulate(fn, *args, plan=plan) == plan.simulation


# -- one byte less ---------------------------------------------------------------------------------


LESS = [(name, "n150") for name in QUICK if name != "identity"]
LESS += [(name, "p150") for name in ("small mlp", "chain", "gated", "products")]


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "machine"), few(LESS, 8))
def test_one_byte_less_changes_the_plan(name, machine):
    fn, *args = PROGRAMS[name]
    plan = planned(name, machine)
    same = gl.plan(fn, *args, machine=with_room(machine, plan.peak_bytes))
    assert same.time == pytest.approx(plan.time, rel=1e-9)
    assert same.peak_bytes <= plan.peak_bytes
    less = gl.plan(fn, *args, machine=with_room(machine, plan.peak_bytes - 1))
    assert less.peak_bytes < plan.peak_bytes
    assert less.live_ranges != plan.live_ranges
    # A plan that is nearly as fast as the bound is the last that is looked for: another one may be
    # faster by that share.
    assert less.time * (1 + LIMITS.memory_gap) >= plan.time * (1 - 1e-9)
    assert replayed(less)[1] <= less.peak_bytes
    assert gl.simulate(fn, *args, plan=less) == less.simulation


def test_what_has_to_be_in_l1_is_refused_with_one_byte_less():
    def fn(x, y):
        return x * 2 + y

    args = bf16(4096, 1024), bf16(4096, 1024)
    room = gl.plan(fn, *args, machine="n150", memory_space="l1").peak_bytes
    # Arguments and the result have to be there, what is between them may go to DRAM.
    least = 3 * 2 * 4096 * 1024 // 64
    assert room > least
    made = gl.plan(fn, *args, machine=with_room("n150", least), memory_space="l1")
    assert made.peak_bytes == least
    with pytest.raises(gl.LayoutError, match="have to be there") as refused:
        gl.plan(fn, *args, machine=with_room("n150", least - 1), memory_space="l1")
    for words in (f"{least - 1:,} B of L1", "x: 131,072 B", "y: 131,072 B"):
        assert words in str(refused.value)
    fixed = {k: gl.GridLayout((4096, 1024), "bfloat16", grid=(8, 8)) for k in "xy"}
    with pytest.raises(gl.LayoutError, match="x: 131,072 B; y: 131,072 B"):
        gl.plan(fn, *args, machine=with_room("n150", 2**18 - 1), fixed=fixed)


def test_what_has_room_in_dram_is_not_refused():
    def fn(x):
        return x @ np.ones((256, 64), np.float32)

    far = gl.plan(fn, bf16(256, 256), machine="n150", memory_space="dram")
    assert {x.memory for x in (*far.layouts.values(), *far.results.values())} == {"dram"}
    assert gl.simulate(fn, bf16(256, 256), plan=far) == far.simulation
    # Nor is an uneven program on cores of nearly no L1: all is read from there, and written.
    name = "uneven mlp"
    least = gl.plan(PROGRAMS[name][0], *PROGRAMS[name][1:], machine=with_room("n150", 3000))
    assert least.peak_bytes <= 3000
    assert least.time > planned(name, "n150").time


@pytest.mark.parametrize("name", few(["small mlp", "chain", "softmax", "gated", "many arrays"], 1))
def test_more_memory_is_never_slower(name):
    fn, *args = PROGRAMS[name]
    rooms = [2**k for k in few((12, 14, 16, 17, 18, 19, 20), 3)]
    plans = [gl.plan(fn, *args, machine=with_room("n150", room)) for room in rooms]
    for room, plan in zip(rooms, plans, strict=True):
        assert plan.peak_bytes <= room
    times = [plan.time for plan in [*plans, planned(name, "n150")]]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


def chips(*mesh, room=2**40):
    """Chips of one core each, in a torus."""
    links = gl.Links(4.5e10, latency=1e-6, wrap=True)
    rates = gl.Rates(flops=2e14, memory=8e11)
    return gl.Machine(gl.Chip("t", (1, 1), {"dram": room}), mesh=mesh, links=links, rates=rates)


def one_head(q, k, v):
    return jax.nn.softmax(q @ k.T, -1) @ v


ON_CHIPS = {
    "mlp": ((8,), mlp, bf16(1024, 512), bf16(512, 2048), bf16(2048, 512)),
    "one head": ((8,), one_head, *(bf16(2048, 128),) * 3),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ON_CHIPS)
def test_the_bound_of_less_memory_is_one(name):
    mesh, fn, *args = ON_CHIPS[name]
    free = gl.plan(fn, *args, machine=chips(*mesh))
    same = gl.plan(fn, *args, machine=chips(*mesh, room=free.peak_bytes))
    assert same.time <= free.time * 1.001
    for share in few((0.9, 0.7), 1):
        room = int(share * free.peak_bytes)
        less = gl.plan(fn, *args, machine=chips(*mesh, room=room), seconds=20)
        assert less.peak_bytes <= room
        # No plan is faster than what was found without a limit, and no bound is above a plan.
        assert free.bound * 0.999 <= less.time
        assert less.bound <= less.time


@pytest.mark.parametrize("seed", few(range(100), 2))
def test_what_limits_choices_is_held_by_their_program(seed):
    # Else plans that fit would be refused, and bounds would be too high.
    fn, args, _ = network(seed)
    traced = traced_for(fn, args, chips(2, 4), None)
    strategies = traced.strategies(None)
    rng, problem = np.random.default_rng(seed), strategies.problem
    count = len(strategies.variables)
    given = []
    for _ in range(2):
        few = [rng.choice(np.flatnonzero(np.isfinite(x.seconds))) for x in strategies.variables]
        given.append(tuple(map(int, few)))
        # Good choices often leave values where they are. Of scanned arrays, copies cost as little.
        costs = [own * rng.uniform(0, 3, own.shape) for own in problem.costs]
        other = problem.with_terms(costs, problem.fetches)
        good = descended(other, lambda model: starts(strategies, model))[:count]
        given += [] if strategies.graph.loops else [good]
    for choices in given:
        rest = (0,) * (len(problem.costs) - count)
        found = Solution((*choices, *rest), 0.0, 0.0, "by chance")
        plan = made_plan(traced, strategies, found, Clock(60.0))
        assert max(strategies.room.held(choices)) <= plan.peak_bytes


def test_what_a_node_reads_in_another_division_counts():
    # A value that an elementwise kernel makes, and a product with its copy.
    traced = traced_for(
        lambda x, w: jnp.tanh(x) @ w, (f32(512, 256), f32(256, 128)), chips(8), None
    )
    strategies = traced.strategies(None).limited(1 << 40)
    (product,) = [n for n, node in enumerate(strategies.graph.nodes) if node.flops]
    x, w, own = strategies.operand(0), strategies.operand(1), strategies.variable(product)
    (tanh,) = {*range(len(strategies.variables))} - {x, w, own}
    rows, whole = (tuple(range(len(strategies.units.axes))), ()), ((), ())

    def held(stored, read):
        found = [0] * len(strategies.problem.costs)
        for at, division in ((x, rows), (w, stored)):
            divisions = [place.division for place in strategies.variables[at].choices]
            found[at] = divisions.index(division)
        for at, ins in ((tanh, (rows,)), (own, (read, whole))):
            ways = strategies.variables[at].choices
            found[at] = next(k for k, x in enumerate(ways) if x.ins == ins and not x.summed)
        return strategies.room.held(found)[product]

    base = 4 * (512 * 256 // 8 + 512 * 128 // 8 + 512 * 256 // 8)  # x, the result, tanh(x)
    assert held(whole, rows) == base + 4 * 256 * 128
    assert held(rows, rows) == base + 4 * 256 * 128 * 9 / 8
    gathered = 4 * (512 * 256 + 512 * 128 + 512 * 256 // 8 + 256 * 128)
    assert held(whole, whole) == gathered


# A function, its arguments, a mesh, and a room in which the best choices are found.
SCARCE = {
    # Of programs that take equally long, one holds more than what is counted.
    "ties": (mlp, (f32(300, 300), f32(300, 8), f32(8, 300)), (2, 4), 111_615, 1e-6),
    # What the first choices take beyond their price is counted for others too, which take less.
    "prices": (
        lambda x, w: norm(x @ w),
        (bf16(100, 256), bf16(256, 1024)),
        (6,),
        528_187,
        0.05,
    ),
}


@pytest.mark.parametrize("name", SCARCE)
def test_what_is_learned_of_some_choices_hides_no_better_ones(name):
    fn, args, mesh, room, gap = SCARCE[name]
    plan = gl.plan(fn, *args, machine=chips(*mesh, room=room))
    assert plan.peak_bytes <= room
    assert plan.gap <= gap


def test_a_search_is_no_worse_than_the_choices_that_are_known():
    fn, args, _ = network(3)
    strategies = traced_for(fn, args, chips(2, 4), None).strategies(None)
    best = solved(strategies, Clock(60.0), None)
    again = traced_for(fn, args, chips(2, 4), None).strategies(None)
    found = solved(again, Clock(0.0), None, known=[best.choices])
    assert found.cost <= best.cost * (1 + 1e-9)


# -- what XLA sets aside ---------------------------------------------------------------------------


RUN = {
    "mlp": (mlp, (512, 384), (384, 768), (768, 256)),
    "chain": (chain, (1024, 256), (1024, 256)),
    "norm": (norm, (1024, 256)),
    "products": (lambda x, w: (x.T @ x) @ w, (1024, 256), (256, 256)),
}


@newest
@pytest.mark.skipif(len(jax.devices()) < 8, reason="the plans are compiled for 8 devices")
@pytest.mark.parametrize("name", RUN)
def test_the_peak_is_what_the_compiled_program_sets_aside(name):
    fn, *shapes = RUN[name]
    args = [np.ones(shape, np.float32) for shape in shapes]
    plan = gl.plan(fn, *args, machine=gl.DeviceGrid((2, 4)).machine.on((2, 4)))
    compiled = gl.on_grid(fn, policy=plan).lower(*plan.put(tuple(args))).compile()
    found = compiled.memory_analysis()
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    assert plan.peak_bytes == pytest.approx(held - found.alias_size_in_bytes, rel=0.1)


@pytest.mark.parametrize("fn", [scanned, lambda x, w: jnp.tanh(x @ w[0] * 2 + 1)])
def test_what_is_inside_an_equation_is_found_by_its_path(fn):
    strategies = traced_for(fn, (f32(64, 256), f32(8, 256, 256)), "v5e 4x4", None).strategies(None)
    nodes = strategies.graph.nodes
    equations = [(n, each.path) for n, node in enumerate(nodes) for each in node.equations]
    for path in {own[:k] for _, own in equations for k in range(1, 1 + len(own))}:
        expected = {n for n, each in equations if each[: len(path)] == path}
        assert [*strategies.inside(path)] == sorted(expected), path
    assert not strategies.inside((len(nodes) + 1000,))


def test_a_copy_of_a_scanned_array_counts_while_its_loop_runs():
    stack = f32(8, 256, 256)
    traced = traced_for(scanned, (f32(64, 256), stack), "v5e 4x4", None)
    strategies = traced.strategies(None).limited(1 << 40)
    problem, graph = strategies.problem, strategies.graph
    (rows,) = [n for n, node in enumerate(graph.nodes) if node.name == SLICE]
    at, own = strategies.operand(1), strategies.variables[strategies.variable(rows)]
    whole = [choice.ins[0] for choice in own.choices].index(((), (), ()))
    found = [0] * len(problem.costs)
    found[at] = next(
        k for k, place in enumerate(strategies.variables[at].choices) if any(place.division)
    )
    costs, held = [], []
    for k in (whole, whole + own.stays):  # where it is; a copy
        found[strategies.variable(rows)] = k
        costs.append(problem.cost(found))
        held.append(max(strategies.room.held(found)))
    assert costs[0] == np.inf
    assert costs[1] < np.inf
    assert held[1] - held[0] == np.prod(stack.shape) * 4


def cached(cache, x, at):
    new = lax.dynamic_update_slice_in_dim(cache, x, at, 1)
    return jnp.einsum("bte,be->bt", new, x[:, 0]), new


def test_the_bound_counts_a_cache_that_has_to_be_in_dram():
    at = jax.ShapeDtypeStruct((), "int32")
    plan = gl.plan(cached, bf16(64, 4096, 1024), bf16(64, 1, 1024), at, machine="n150")
    assert plan.gap < 0.02
    assert len(plan.simulation.dram) == 2


def test_values_that_are_computed_where_they_are_read_take_no_l1():
    def masked(x, at):
        return jnp.where(jnp.arange(2048) <= at, x, -1e9).sum(-1)

    at = jax.ShapeDtypeStruct((), "int32")
    plan = gl.plan(masked, bf16(64, 32, 2048), at, machine="n150")
    assert {"iota:0", "le:0"}.isdisjoint(each.name for each in plan.live_ranges)
