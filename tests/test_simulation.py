"""`gl.simulate`: what machines take for programs, relayouts, and what compilers made."""

import json
from dataclasses import dataclass
from functools import wraps
from math import prod
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl
from gridlayout.errors import LayoutError

DUMPS = sorted((Path(__file__).parent / "dumps").rglob("*.ttnn.mlir"))


def shaped(*shape, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype)


def step(params, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"] - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


PARAMS = {"up": shaped(1024, 4096), "down": shaped(4096, 1024)}
ARGS = (PARAMS, shaped(2**16, 1024), shaped(2**16, 1024))
MACHINES = {
    "v5e 16x16": (gl.Machine("v5e 16x16"), 256),
    "32 chips of 8x8 cores": (gl.Machine("wormhole 4x8"), 2048),
    "4,096 chips": (gl.Machine("v5e 16x16", mesh=(64, 64)), 4096),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MACHINES)
def test_many_devices_are_simulated_in_seconds(name):
    machine, devices = MACHINES[name]
    began = perf_counter()
    found = gl.simulate(step, *ARGS, machine=machine)
    assert perf_counter() - began < 60  # a second or two where nothing else runs
    assert prod(found.mesh.values()) == devices
    assert found.time == pytest.approx(sum(e.seconds for e in found.equations))
    # What is computed is divided among all.
    flops = 2 * 2**16 * 1024 * 4096 * 5 / devices
    products = sum(e.compute for e in found.equations if e.name.startswith("dot_general"))
    assert products >= flops / machine.by_core.rates.flops * 0.99


def test_a_plan_is_simulated_as_it_was_planned():
    plan = gl.plan(step, *ARGS, machine="v5e 4x4")
    again = gl.simulate(step, *ARGS, plan=plan)
    assert again == plan.simulation
    assert plan.time <= gl.simulate(step, *ARGS, machine="v5e 4x4").time
    with pytest.raises(LayoutError, match="another program"):
        gl.simulate(lambda *a: step(*a)["up"], *ARGS, plan=plan)
    with pytest.raises(LayoutError, match="must be a plan"):
        gl.simulate(step, *ARGS, plan="plan.json")


# -- what runs when --------------------------------------------------------------------------------


def spans(fn, *args, **how):
    """What one device does, as the names of the trace."""
    return [each.name for each in gl.simulate(fn, *args, **how).events]


def on(device, **grids):
    """Layouts of (64, 64) arrays, by their grids, on a device grid: the arrays of a call."""
    layout = gl.GridLayout((64, 64), grid=(1, 1))
    return [
        gl.put(shaped(64, 64, dtype="float32"), layout.replace(grid=grid), device)
        for grid in grids.values()
    ]


MESH = gl.DeviceGrid(
    jax.sharding.AbstractMesh((2, 4), ("x", "y")), machine=gl.Machine("v5e 4x4").on((2, 4))
)
SQUARE = gl.DeviceGrid(
    jax.sharding.AbstractMesh((2, 2), ("x", "y")), machine=gl.Machine("v5e 4x4").on((2, 2))
)
GATHERS = [
    "dot_general:0: all-gather of a, 6,144 B",
    "dot_general:0: all-gather of b, 2,048 B",
]


def product(a, b):
    return a @ b


def test_a_gathered_product_gathers_before_it_multiplies():
    a, b = on(MESH, a=(2, 4), b=(2, 4))
    assert spans(product, a, b, algorithm="gathered") == [*GATHERS, "dot_general:0"]


def test_sums_of_partial_results_come_after_them():
    a, b = on(MESH, a=(1, 8), b=(8, 1))
    names = spans(product, a, b, algorithm="k_split")
    at = names.index("dot_general:0")
    assert [name.split(" of ")[1][:15] for name in names[at + 1 :]] == ["partial results"]
    a = gl.put(shaped(4096, 4096, dtype="float32"), gl.GridLayout((4096, 4096), grid=(2, 4)), MESH)
    assert spans(lambda a: a.sum(1), a) == [
        "reduce_sum:0",
        "reduce_sum:0: all-reduce of partial results, 12,288 B",
    ]


def test_a_ring_sends_between_multiplications():
    a, b = on(SQUARE, a=(2, 2), b=(2, 2))
    assert spans(product, a, b, algorithm="ring")[-3:] == [
        "dot_general:0",
        "dot_general:0: permute of a, 4,096 B",
        "dot_general:0",
    ]
    both = [f"dot_general:0: permute of {operand}, 4,096 B" for operand in "ab"]
    found = spans(product, a, b, algorithm="cannon")
    assert found == [*both, "dot_general:0", *both, "dot_general:0"]
    panels = spans(product, a, b, algorithm="summa")
    assert [name == "dot_general:0" for name in panels] == [False, False, True] * (len(panels) // 3)


def test_halos_are_exchanged_before_a_convolution_and_loops_gather_before_they_run():
    (a,) = on(MESH, a=(2, 4))

    def convolved(a):
        kernel = jnp.ones((1, 1, 3, 3))
        return jax.lax.conv_general_dilated(a[None, None], kernel, (1, 1), "SAME")

    # The kernel is made. The edges along 2 devices are exchanged at once, those along 4 from each
    # neighbour.
    names = [name.split(",")[0] for name in spans(convolved, a)]
    sent = ["conv_general_dilated:0: permute of a"] * 3
    assert names == ["conv_general_dilated:0", *sent, "conv_general_dilated:0"]
    names = spans(lambda a: jax.lax.scan(lambda c, y: (c + y.sum(), y * c), 0.0, a), a)
    # Once to every device: a sum in each iteration would take longer.
    assert names[0] == "scan:0: all-gather of a, 14,336 B"
    assert not any("all-reduce" in name for name in names)


def test_relayouts_name_what_they_move():
    (a,) = on(MESH, a=(2, 4))
    there = a.layout.replace(grid=(8, 1))
    names = spans(lambda a: gl.with_layout(a * 2, there), a)
    assert [name.split(",")[0] for name in names[:2]] == [
        "mul:0",
        "with_layout:0: all-to-all of mul:0",
    ]


def test_events_add_up_to_the_time_and_traces_say_what_they_are(tmp_path):
    a, b = on(MESH, a=(2, 4), b=(2, 4))
    found = gl.simulate(lambda a, b: jnp.tanh(a @ b) @ b, a, b, algorithm="gathered")
    at = 0.0
    for each in found.events:
        assert each.start == pytest.approx(at)
        at += each.seconds
    assert at == pytest.approx(found.time)
    received = sum(each.nbytes for each in found.events)
    assert received == sum(found.links.values())
    found.trace(tmp_path / "t.json")
    written = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    first = next(each for each in written if each["ph"] == "X")
    assert first["name"] == GATHERS[0]
    assert first["args"] == {
        "equation": "dot_general:0",
        "collective": "all-gather",
        "of": "a",
        "bytes received": 6144,
    }
    # The bytes held are sampled over the whole time.
    samples = [(e["ts"], e["args"]["bytes"]) for e in written if e["ph"] == "C" and e["pid"] == 0]
    times = [ts * 1e-6 for ts, _ in samples]
    assert [n for _, n in samples] == [n for _, n in found.held]
    assert times == sorted(times)
    assert times[0] == 0
    assert found.time / 2 < times[-1] <= found.time
    assert len({*times}) > 4


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: jax.lax.sort((a, b), dimension=1),
        lambda a, b: (jnp.linalg.qr(a[:, :4]), b.sum(), a.sum()),
        lambda a, b: jax.lax.scan(lambda c, v: (c @ b, v.sum()), a, b),
        jax.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b) @ a)),
    ],
    ids=["joined sends", "several equations' joined sends", "a loop", "a gradient"],
)
def test_every_part_of_an_equation_is_drawn_once(fn):
    found = gl.simulate(fn, *on(MESH, a=(2, 4), b=(2, 4)))
    assert sum(each.seconds for each in found.events) == pytest.approx(found.time)
    starts = [each.start for each in found.events]
    assert starts == sorted(starts)


def test_equal_loops_are_each_drawn():
    @jax.jit
    def loop(x):
        return jax.lax.scan(lambda c, v: (c + v.sum(), v * c), 0.0, x)[1]

    def twice(a):
        return loop(a * 2), loop(a * 3)

    found = gl.simulate(twice, *on(MESH, a=(2, 4)))
    computed = [each.equation for each in found.events if each.kind == "compute"]
    assert computed == ["mul:0", "reduce_sum:0", "mul:1", "mul:2", "reduce_sum:1", "mul:3"]


def test_timelines_say_what_is_sent():
    a, b = on(MESH, a=(2, 4), b=(2, 4))
    drawn = gl.simulate(product, a, b, algorithm="gathered").timeline().svg
    for words in (*GATHERS, "all-gather", "links x", "links y", "compute"):
        assert words in drawn


def test_one_relayout_is_simulated():
    rows = gl.GridLayout((4096, 4096), "bfloat16", grid=(16, 1))
    columns = rows.replace(grid=(1, 16))
    machine = gl.Machine("v5e 4x4")
    found = gl.simulate(lambda x: gl.with_layout(x, columns), rows, machine=machine)
    (sent,) = found.equations[0].collectives
    assert sent.kind == "all_to_all"
    assert sent.received_bytes == 2 * 4096 * 4096 // 16 // 16 * 15
    assert found.equations[0].movement == pytest.approx(machine.seconds([sent]))


def test_half_the_bandwidth_takes_twice_the_time():
    rows = gl.GridLayout((8192, 8192), grid=(16, 1))
    columns = rows.replace(grid=(1, 16))

    def moved(bandwidth):
        machine = gl.Machine("v5e 4x4", links=gl.Links(bandwidth))
        found = gl.simulate(lambda x: gl.with_layout(x, columns), rows, machine=machine)
        return found.equations[0].movement

    assert moved(1e9) == pytest.approx(2 * moved(2e9))


RATES = gl.Machine("n150").rates
SLOW = gl.Rates(
    flops=RATES.flops / 10,
    memory=RATES.memory / 10,
    elementwise=RATES.elementwise / 10,
    clock=RATES.clock,
    noc=RATES.noc / 10,
    hop=RATES.hop,
)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
def test_compiled_programs_are_simulated(path):
    program = gl.tenstorrent.load(path.read_text())
    found = gl.simulate(program, machine="n150")
    assert 0 < found.time < 1
    assert gl.simulate(program, machine=gl.Machine("n150", rates=SLOW)).time > found.time
    for each, op in zip(found.equations, program.operations, strict=True):
        assert each.name.rpartition(":")[0] == op.name
    assert "cores" in str(found)


def test_a_compiled_product_takes_what_its_tiles_take():
    (path,) = [path for path in DUMPS if path.name.startswith("matmul_square.p150")]
    program = gl.tenstorrent.load(path.read_text())
    machine = gl.Machine("p150")
    found = gl.simulate(program, machine=machine)
    (op,) = [op for op in program.operations if op.name == "matmul"]
    (m, k), n = op.inputs[0].shape, op.outputs[0].shape[1]
    least = 2 * m * k * n / machine.rates.flops
    assert next(e for e in found.equations if e.name == "matmul:0").compute >= least * 0.99


def test_compiled_programs_need_cores():
    program = gl.tenstorrent.load(DUMPS[0].read_text())
    with pytest.raises(LayoutError, match="no cores"):
        gl.simulate(program, machine="v5e 4x4")


def test_a_move_that_copies_before_it_sends_is_priced():
    # The rows' tiles are split where neither divides the other.
    args = shaped(1000, 20000, dtype="float32"), shaped(20000, 256, dtype="float32")
    cores = gl.Machine("n150").by_core.on((1, 2))
    simulation = gl.simulate(jnp.matmul, *args, machine=cores, algorithm="k_split")
    assert simulation.peak_bytes > 0


# -- lifted functions ------------------------------------------------------------------------------

GRID = gl.DeviceGrid((2, 4))
LAYOUTS = (gl.GridLayout((53, 63), grid=(3, 2)), gl.GridLayout((63, 21), grid=(2, 4)))
KINDS = {
    "plain": lambda fn: fn,
    "jitted": jax.jit,
    "lifted": gl.on_grid,
    "with a device grid": lambda fn: gl.on_grid(fn, GRID),
    "jitted, with a device grid": lambda fn: jax.jit(gl.on_grid(fn, GRID)),
    "twice": lambda fn: gl.on_grid(gl.on_grid(fn, GRID)),
    "inside": lambda fn: wraps(fn)(lambda *args: gl.on_grid(fn, GRID)(*args)),
}


def layer(x, w):
    return jax.nn.relu(x @ w)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_lifted_functions_are_planned_and_simulated_as_the_plain_ones(kind):
    fn = KINDS[kind](layer)
    arrays = tuple(gl.put(jnp.ones(each.shape), each, GRID) for each in LAYOUTS)
    structs = tuple(gl.put(shaped(*x.shape, dtype="float32"), x, GRID) for x in LAYOUTS)
    expected = gl.simulate(layer, *arrays)
    assert gl.simulate(fn, *arrays) == gl.simulate(fn, *structs) == expected
    assert gl.plan(fn, *arrays).diff(gl.plan(layer, *arrays)) == ""
    ways = ("cannon", "default")
    made = gl.scaling(fn, *LAYOUTS, machine="v5e 4x4", ways=ways, devices=(1, 4))
    assert (
        made.times
        == gl.scaling(layer, *LAYOUTS, machine="v5e 4x4", ways=ways, devices=(1, 4)).times
    )


def test_a_lifted_function_says_where_it_runs():
    lifted = gl.on_grid(layer, GRID)
    found = gl.simulate(lifted, *LAYOUTS)
    assert found.mesh == gl.plan(lifted, *LAYOUTS).simulation.mesh == {"x": 2, "y": 4}
    arrays = tuple(gl.put(jnp.ones(each.shape), each, GRID) for each in LAYOUTS)
    assert found == gl.simulate(layer, *arrays)
    plain = tuple(jnp.ones(each.shape) for each in LAYOUTS)
    assert gl.simulate(lifted, *plain).mesh == {"x": 2, "y": 4}
    # A machine of its own mesh is simulated, whatever devices there are.
    assert gl.simulate(lifted, *LAYOUTS, machine="v5e 4x4").mesh == {"x": 4, "y": 4}


def test_a_lifted_function_says_how_it_runs():
    arrays = tuple(gl.put(jnp.ones(each.shape), each, GRID) for each in LAYOUTS)
    for name in ("gathered", "summa"):
        expected = gl.simulate(layer, *arrays, algorithm=name)
        assert gl.simulate(gl.on_grid(layer, algorithm=name), *arrays) == expected
    assert gl.simulate(gl.on_grid(layer, algorithm="summa"), *arrays, algorithm="gathered") == (
        gl.simulate(layer, *arrays, algorithm="gathered")
    )
    plan = gl.plan(layer, *arrays)
    assert gl.simulate(gl.on_grid(layer, policy=plan), *arrays) == plan.simulation


def test_the_arrays_of_a_lifted_model_are_the_first_arguments():
    x, w = (gl.put(jnp.ones(each.shape), each, GRID) for each in LAYOUTS)

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class Model:
        w: object

        def __call__(self, x):
            return layer(x, self.w)

    found = gl.simulate(gl.on_grid(Model(w)), x)
    assert found.time == gl.simulate(layer, x, w).time
    plan = gl.plan(gl.on_grid(Model(w)), x)
    assert set(plan.layouts) == {"self/w", "x"}
    expected = np.full((53, 21), 63, np.float32)
    np.testing.assert_allclose(np.asarray(plan.run(Model(w), x)), expected)
