"""`gl.plan`: planned programs equal JAX's, are what was planned, and cost what the plan says."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import pairwise, permutations, product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo import OURS, compiled_collectives
from laid_out import assert_same
from tiers import few

import gridlayout as gl
from gridlayout.errors import LayoutError
from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.chosen import Chosen
from gridlayout.ops.choose.division import Units
from gridlayout.ops.choose.strategies import Strategies
from gridlayout.ops.choose.variables import Place
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import RequestedLoop
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.planning.priced import default_plan
from gridlayout.ops.planning.traced import traced_for
from gridlayout.ops.products.bound import least_words
from gridlayout.ops.solver.solve import solve
from gridlayout.ops.trees.leaves import is_grid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.chips import KINDS, Figure
from gridlayout.tables.words import bound_words

COUNT = len(jax.devices())
needs_8 = pytest.mark.skipif(COUNT < 8, reason="the plans are run on 8 devices")


def shaped(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def array(shape, seed):
    made = np.random.default_rng(seed).standard_normal(shape)
    return (made / np.sqrt(shape[-1] if len(shape) > 1 else 1)).astype(np.float32)


def mlp(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def step(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads)


def attention(x, qkv, out):
    q, k, v = (part.reshape(2, -1, 4, x.shape[1] // 4) for part in jnp.split(x @ qkv, 3, -1))
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ out


def scanned(x, stack):
    return jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(0)), x, stack)


def power(a, v):
    return jax.lax.fori_loop(0, 5, lambda _, v: (a @ v) / jnp.linalg.norm(a @ v), v)


def embedding(table, ids, head):
    return jax.nn.log_softmax(table[ids] @ head)


def branches(x, w):
    return jax.lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: -x @ w, x)


PARAMS = {"w1": (30, 64), "b1": (64,), "w2": (64, 10)}
# A function, and the shapes of its arguments.
PROGRAMS = {
    "product": (lambda x, w: x @ w, [(24, 20), (20, 36)]),
    "mlp": (mlp, [(100, 30), (30, 64), (64, 10)]),
    "tall mlp": (mlp, [(3, 64), (64, 256), (256, 64)]),
    "training step": (step, [PARAMS, (100, 30), (100, 10)]),
    "attention": (attention, [(64, 32), (32, 96), (32, 32)]),
    "gradient of attention": (
        lambda *a: jax.grad(lambda *a: jnp.sum(attention(*a) ** 2), argnums=(0, 1, 2))(*a),
        [(64, 32), (32, 96), (32, 32)],
    ),
    "scan": (scanned, [(64, 32), (4, 32, 32)]),
    "gradient of a scan": (
        jax.grad(lambda x, stack: jnp.sum(scanned(x, stack)[0] ** 2), argnums=(0, 1)),
        [(64, 32), (4, 32, 32)],
    ),
    "power iteration": (power, [(64, 64), (64,)]),
    "gather": (lambda t, h: embedding(t, jnp.arange(12) % 7, h), [(40, 16), (16, 24)]),
    "branches": (branches, [(24, 16), (16, 8)]),
    "sort": (lambda x, w: jnp.sort(x @ w, -1), [(24, 16), (16, 40)]),
    "convolution": (
        lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"),
        [(8, 3, 8, 8), (16, 3, 3, 3)],
    ),
}
MESHES = {"8": (8,), "2x4": (2, 4), "2x2x2": (2, 2, 2)}


def arguments(shapes):
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x, tuple))
    return jax.tree.unflatten(structure, [array(s, k) for k, s in enumerate(leaves)])


def emulated(mesh):
    """A machine of emulated devices in a mesh."""
    return gl.DeviceGrid(mesh).machine.on(mesh)


@needs_8
@pytest.mark.parametrize(
    ("name", "mesh"),
    few(product(PROGRAMS, MESHES), 5, heavy=[*product(["gradient of attention"], MESHES)]),
)
def test_planned_programs_are_jaxs(name, mesh):
    fn, shapes = PROGRAMS[name]
    args = arguments(shapes)
    plan = gl.plan(fn, *args, machine=emulated(MESHES[mesh]))
    assert 0 < plan.bound <= plan.time
    assert plan.time == pytest.approx(sum(e.seconds for e in plan.simulation.equations))
    made = plan.run(*args)
    assert_same(made, jax.jit(fn)(*args), rtol=1e-3, atol=1e-4)
    # Every layout is the one that was planned.
    placed = jax.tree.leaves(plan.put(args), is_leaf=lambda x: isinstance(x, gl.GridArray))
    for x, layout in zip(placed, plan.layouts.values(), strict=True):
        assert x.layout == layout
    outs = jax.tree.leaves(made, is_leaf=lambda x: isinstance(x, gl.GridArray))
    for x, layout in zip(outs, plan.results.values(), strict=True):
        assert layout is None or x.layout.with_oob(None) == layout.with_oob(None)
    # On the grid by the plan as a policy, plain arrays as they are.
    by_policy = gl.on_grid(fn, device=plan.devices, policy=plan)(*args)
    assert_same(by_policy, jax.jit(fn)(*args), rtol=1e-3, atol=1e-4)


@needs_8
# A compiled branch is not visited; a loop's is.
@pytest.mark.parametrize("name", few([name for name in PROGRAMS if name != "branches"], 3))
def test_collectives_of_plans_are_those_of_the_compiled_program(name):
    fn, shapes = PROGRAMS[name]
    args = arguments(shapes)
    plan = gl.plan(fn, *args, machine=emulated((2, 4)))
    told, made = Counter(), Counter()
    for each in (c for e in plan.simulation.equations for c in e.collectives):
        told[each.kind] += each.total_bytes
    lowered = gl.on_grid(fn, policy=plan).lower(*plan.put(args))
    for kind, _, nbytes in compiled_collectives(lowered.compile().as_text(), 8):
        made[OURS[kind]] += nbytes
    for kind in told | made:
        assert told[kind] == pytest.approx(made[kind], rel=0.02), kind


# -- what textbooks say ----------------------------------------------------------------------------

FAST = gl.Links(90e9, latency=1e-6, wrap=True)


def chips(count, room=None, links=FAST):
    """A ring of chips with so many bytes each, as fast as a v5p."""
    capacity = {} if room is None else {"dram": room}
    rates = gl.Rates(459e12, 2.8e12, 1.4e12)
    return gl.Machine(gl.Chip("toy", (1, 1), capacity), (count,), links, rates=rates)


def kinds(plan):
    """How often each kind of collective is sent."""
    found = Counter()
    for each in (c for e in plan.simulation.equations for c in e.collectives):
        found[each.kind] += each.count
    return dict(found)


def bf16(*shape):
    return shaped(*shape, dtype="bfloat16")


def test_an_mlp_whose_weights_fill_the_chips_is_megatrons():
    # A few tokens: what takes time is to read the weights, which each chip has a part of.
    x, up, down = shaped(8, 4096), shaped(4096, 16384), shaped(16384, 4096)
    whole = gl.GridLayout((8, 4096), "float32", grid=(1, 1))

    def block(x, up, down):
        return gl.with_layout(jax.nn.relu(x @ up) @ down, whole)

    machine = chips(8, room=2 * 4 * 4096 * 16384 // 8 + 2**22)
    plan = gl.plan(block, x, up, down, machine=machine, fixed={"x": whole})
    assert plan.layouts["up"].grid == (1, 8)
    assert plan.layouts["down"].grid == (8, 1)
    assert kinds(plan) == {"all_reduce": 1}


@pytest.mark.all_cases
def test_attention_whose_weights_fill_the_chips_is_megatrons():
    tokens, width = 16, 2048
    x, qkv = shaped(tokens, width), shaped(width, 3, 16, width // 16)
    out = shaped(16, width // 16, width)
    whole = gl.GridLayout((tokens, width), "float32", grid=(1, 1))

    def heads(x, qkv, out):
        q, k, v = jnp.einsum("td,dshe->sthe", x, qkv)
        scores = jax.nn.softmax(jnp.einsum("qhe,khe->hqk", q, k))
        found = jnp.einsum("hqk,khe->qhe", scores, v)
        return gl.with_layout(jnp.einsum("qhe,hed->qd", found, out), whole)

    machine = chips(8, room=4 * 4 * width * width // 8 + 2**22)
    plan = gl.plan(heads, x, qkv, out, machine=machine, fixed={"x": whole})
    assert plan.layouts["qkv"].grid == (1, 1, 8, 1)
    assert plan.layouts["out"].grid == (8, 1, 1)
    assert kinds(plan) == {"all_reduce": 1}


@pytest.mark.parametrize("rows", [8192, 65536])
def test_many_rows_are_divided_as_data(rows):
    # What takes time is to multiply; nothing is sent, as every chip has room for the weights.
    plan = gl.plan(mlp, bf16(rows, 512), bf16(512, 2048), bf16(2048, 512), machine=chips(8))
    assert plan.layouts["x"].grid == (8, 1)
    assert kinds(plan) == {}


def test_a_training_step_of_many_rows_is_data_parallel():
    params = {"w1": bf16(512, 2048), "b1": bf16(2048), "w2": bf16(2048, 512)}
    plan = gl.plan(step, params, bf16(65536, 512), bf16(65536, 512), machine=chips(8))
    assert plan.layouts["x"].grid == plan.layouts["y"].grid == (8, 1)
    assert set(kinds(plan)) <= {"all_reduce", "reduce_scatter", "all_gather"}
    # New parameters are where the old ones are.
    for name in params:
        assert plan.results[f"result['{name}']"] == plan.layouts[f"params/{name}"]


# -- laws ------------------------------------------------------------------------------------------

LAWS = ["mlp", "tall mlp", "training step", "attention", "scan"]


def planned(name, machine, **given):
    """The plan of a program, made once if nothing else is given."""
    return made_of(name, machine, **given) if given else once_made_of(name, machine)


def made_of(name, machine, **given):
    fn, shapes = PROGRAMS[name]
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x, tuple))
    args = jax.tree.unflatten(structure, [shaped(*s) for s in leaves])
    return gl.plan(fn, *args, machine=machine, **given)


once_made_of = cache(made_of)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LAWS)
def test_a_better_machine_is_never_slower(name):
    def bound(bandwidth=1e9, latency=1e-5, room=10**6):
        return planned(name, chips(4, room, gl.Links(bandwidth, latency))).bound

    assert bound(bandwidth=2e9) <= bound() * (1 + 1e-6)
    assert bound(latency=1e-6) <= bound() * (1 + 1e-6)
    assert bound(room=10**7) <= bound() * (1 + 1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_what_a_plan_is_told_to_keep_costs_at_least_as_much(name):
    free = planned(name, chips(4))
    path = next(path for path, layout in free.layouts.items() if len(layout.shape) == 2)
    layout = free.layouts[path].replace(grid=(1, 4))
    held = planned(name, chips(4), fixed={path: layout})
    assert held.layouts[path] == layout
    assert held.bound >= free.bound * (1 - 1e-6)
    # Of what it chose by itself nothing changes.
    same = planned(name, chips(4), fixed=dict(free.layouts))
    assert same.time == pytest.approx(free.time, rel=1e-2)


def test_names_and_the_order_of_independent_equations_change_nothing():
    def first(x, a, b):
        left = jnp.tanh(x @ a)
        right = jnp.sin(x @ b)
        return left @ right.T

    def second(y, b, c):
        other = jnp.sin(y @ c)
        one = jnp.tanh(y @ b)
        return one @ other.T

    args = [bf16(4096, 512), bf16(512, 1024), bf16(512, 1024)]
    plans = [gl.plan(fn, *args, machine="v5e 4x4") for fn in (first, second)]
    assert plans[0].time == pytest.approx(plans[1].time, rel=1e-9)
    assert list(plans[0].layouts.values()) == list(plans[1].layouts.values())
    assert list(plans[0].results.values()) == list(plans[1].results.values())


@pytest.mark.parametrize("mesh", few([(2, 2), (4, 4)], 1))
def test_another_process_makes_the_same_plan(mesh):
    text = (
        "import jax, gridlayout as gl\n"
        f"machine = gl.Machine('v5e 4x4').on({mesh})\n"
        "x, w = (jax.ShapeDtypeStruct(s, 'float32') for s in ((512, 256), (256, 256)))\n"
        "fn = jax.grad(lambda w, x: (jax.nn.relu(x @ w) @ w).sum())\n"
        "print(gl.plan(fn, w, x, machine=machine))"
    )
    x, w = shaped(512, 256), shaped(256, 256)
    fn = jax.grad(lambda w, x: (jax.nn.relu(x @ w) @ w).sum())
    here = gl.plan(fn, w, x, machine=gl.Machine("v5e 4x4").on(mesh))
    there = subprocess.run(
        [sys.executable, "-c", text],
        env={
            **os.environ,
            "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
        },
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert there == f"{here}\n"
    assert "dot_general:0" in there


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(["tall mlp", "training step"], 1))
def test_with_less_memory_a_plan_changes_until_it_is_refused(name):
    plan = planned(name, chips(4))
    peaks = [plan.peak_bytes]
    refused = None
    while refused is None:
        try:
            plan = planned(name, chips(4, room=plan.peak_bytes - 1))
        except LayoutError as error:
            refused = str(error)
        else:
            assert plan.peak_bytes < peaks[-1]
            peaks.append(plan.peak_bytes)
    assert len(peaks) > 2
    assert "does not fit" in refused
    assert "Live values: " in refused
    # The smallest mesh of the kind that has enough memory.
    mesh = ast.literal_eval(re.search(r"A mesh of (\(.*?\)) has enough", refused)[1])
    room = peaks[-1] - 1
    assert planned(name, chips(mesh[0], room=room), seconds=600).peak_bytes <= room


@pytest.mark.parametrize("room", few([18_000, 10_000], 1))
def test_a_refusal_names_what_is_alive(room):
    with pytest.raises(LayoutError, match=r"w1|float32\[100,64\]"):
        planned("mlp", chips(2, room=room))


@pytest.mark.parametrize("rows", [64, 2048, 65536])
def test_values_that_do_not_fit_in_l1_are_in_dram(rows):
    args = [bf16(rows, 512), bf16(512, 2048), bf16(2048, 512)]
    plan = gl.plan(mlp, *args, machine="n150")
    room = gl.Machine("n150").chip.capacity["l1"]
    assert plan.peak_bytes <= room
    assert 0 < plan.bound <= plan.time
    for name, layout in plan.layouts.items():
        held = layout.bytes_per_core
        assert layout.memory == "dram" or held <= room, name
        assert layout.tile == (32, 32)


# -- by hand ---------------------------------------------------------------------------------------


@needs_8
def test_layouts_by_hand_hold():
    x, w = array((64, 32), 0), array((32, 48), 1)
    rows = gl.GridLayout((64, 32), "float32", grid=(8, 1))
    blocks = gl.GridLayout((64, 48), "float32", grid=(2, 4))

    def fn(x, w):
        return jnp.tanh(gl.with_layout(x @ w, blocks))

    plan = gl.plan(fn, x, w, machine=emulated((2, 4)), fixed={"x": rows})
    assert plan.layouts["x"] == rows
    (row,) = [e for e in plan.simulation.equations if e.name == "with_layout:0"]
    assert row.outs == "float32[64,48]@2x4"
    assert_same(plan.run(x, w), jnp.tanh(x @ w), rtol=1e-4, atol=1e-5)


@needs_8
def test_trees_are_put_by_a_plan():
    fn, shapes = PROGRAMS["training step"]
    params, *rest = arguments(shapes)
    plan = gl.plan(fn, params, *rest, machine=emulated((2, 4)))
    put = gl.put(params, plan.devices, plan)
    assert {f"params/{k}": x.layout for k, x in put.items()} == {
        path: layout for path, layout in plan.layouts.items() if path.startswith("params")
    }
    with pytest.raises(LayoutError, match="no argument of the plan"):
        gl.put({"other": rest[0]}, plan.devices, plan)
    with pytest.raises(LayoutError, match=r"plan\.put\(args\) takes all arguments"):
        gl.put((params, *rest), plan.devices, plan)
    placed = plan.put((params, *rest))[0]
    assert {k: x.layout for k, x in placed.items()} == {k: x.layout for k, x in put.items()}


# -- files -----------------------------------------------------------------------------------------


@needs_8
@pytest.mark.parametrize("name", few(list(PROGRAMS), 2))
def test_plans_are_saved_and_loaded(name, tmp_path):
    fn, shapes = PROGRAMS[name]
    args = arguments(shapes)
    plan = gl.plan(fn, *args, machine=emulated((2, 4)))
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = gl.load_plan(path, fn)
    assert str(loaded) == str(plan)
    assert loaded.simulation.equations == plan.simulation.equations
    assert loaded.diff(plan) == ""
    assert loaded.why(next(iter(plan.alternatives))) == plan.why(next(iter(plan.alternatives)))
    assert_same(loaded.run(*args), plan.run(*args), rtol=1e-4, atol=1e-5)
    assert json.loads(path.read_text())["layouts"] == {
        key: None if layout is None else str(layout) for key, layout in plan.layouts.items()
    }
    with pytest.raises(LayoutError, match="without its function"):
        gl.load_plan(path).run(*args)
    with pytest.raises(LayoutError, match="another program"):
        gl.on_grid(lambda *a: jax.tree.map(jnp.cos, a), policy=plan)(*plan.put(args))


def test_files_that_are_no_plans_are_refused(tmp_path):
    plan = planned("training step", chips(4))
    path = tmp_path / "plan.json"
    plan.save(path)
    record = json.loads(path.read_text())
    with pytest.raises(LayoutError, match="no plan"):
        gl.load_plan(tmp_path / "missing.json")
    for text in ("", "{", "[]", "null", "{}", '{"format": "gridlayout plan"}', "[" * 10**5):
        path.write_text(text)
        with pytest.raises(LayoutError, match="no plan"):
            gl.load_plan(path)
    path.write_text(json.dumps({**record, "jax": "0.0.1"}))
    with pytest.raises(LayoutError, match=r"planned with JAX 0\.0\.1"):
        gl.load_plan(path)
    path.write_text(json.dumps({**record, "version": 2}))
    with pytest.raises(LayoutError, match="version 2, and this gridlayout reads 4: make the plan"):
        gl.load_plan(path)

    # Whatever is put in the place of any value: refused, or a plan that says something else.
    random = np.random.default_rng(0)
    places = list(_places(record))
    for k in range(400):
        at = places[int(random.integers(len(places)))]
        bad = [None, -1, 1e30, "x", [], {}, True, 10**18, float("nan"), [[0, 0]], "\0"][k % 11]
        path.write_text(json.dumps(_changed(record, at, bad)))
        with suppress(LayoutError):
            str(gl.load_plan(path))


def _places(value, at=()):
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*at, key))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from _places(inner, (*at, k))


def _changed(value, at, bad):
    if not at:
        return bad
    made = dict(value) if isinstance(value, dict) else list(value)
    made[at[0]] = _changed(value[at[0]], at[1:], bad)
    return made


@needs_8
def test_a_plan_whose_choices_are_not_the_programs_is_refused(tmp_path):
    fn, shapes = PROGRAMS["mlp"]
    args = arguments(shapes)
    path = tmp_path / "plan.json"
    gl.plan(fn, *args, machine=emulated((2, 4))).save(path)
    record = json.loads(path.read_text())
    for change in (
        {"made": [[0]]},
        {"out": [[0], [1], [0]]},
        {"ins": []},
        {"path": [99]},
        {"summed": [0, 1], "scattered": True},
    ):
        choices = [{**record["choices"][0], **change}, *record["choices"][1:]]
        path.write_text(json.dumps({**record, "choices": choices}))
        with pytest.raises(LayoutError):
            gl.load_plan(path, fn).run(*args)


# -- shown -----------------------------------------------------------------------------------------


def test_plans_are_shown(tmp_path):
    plan = planned("training step", chips(4))
    text = str(plan)
    for words in ("bound", "gap", "peak", "dot_general:3", "params/w1", "a device receives"):
        assert words in text
    why = plan.why("dot_general:3")
    assert "* " in why
    assert len(why.splitlines()) > 3
    with pytest.raises(LayoutError, match="'nothing' is no equation"):
        plan.why("nothing")
    assert "held" in plan.memory().title or plan.memory().svg.startswith("<svg")
    assert plan.timeline().svg.startswith("<svg")
    other = planned(
        "training step", chips(4), fixed={"x": gl.GridLayout((100, 30), "float32", grid=(4, 1))}
    )
    assert "x: " in plan.diff(other)
    assert plan.diff(plan) == ""


def test_what_goes_over_two_axes_has_a_track_of_its_own():
    x = jax.ShapeDtypeStruct((1024, 1024), "bfloat16")
    simulation = gl.simulate(lambda x: x.sum(), x, machine="v5e 4x4")
    assert [c.axes for e in simulation.equations for c in e.collectives] == [("x", "y")]
    assert "links x*y" in simulation.timeline().svg


def test_traces_are_what_browsers_read(tmp_path):
    plan = planned("attention", chips(4, links=gl.Links(1e9, 1e-6)))
    plan.trace(tmp_path / "p.json")
    trace = json.loads((tmp_path / "p.json").read_text())
    events = trace["traceEvents"]
    assert {e["ph"] for e in events} <= {"X", "M", "C"}
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len(names) == 4
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
    end = max(e["ts"] + e["dur"] for e in spans)
    assert end == pytest.approx(plan.time * 1e6)
    assert sum(e["dur"] for e in spans) == pytest.approx(plan.time * 1e6)
    # On one track nothing runs at the same time.
    for thread in {e["tid"] for e in spans}:
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == thread)
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(mine))


# -- products against the lower bound of communication ---------------------------------------------


# The regime, the mesh, and (m, k, n): the bound supposes that each word is on one device before and
# after, and that the devices make a grid of the shape that suits the product.
PRODUCTS = [
    (1, (8,), (16384, 256, 256)),
    (1, (8, 8), (16384, 256, 256)),
    (1, (8, 8, 8), (2**17, 256, 128)),
    (1, (8,), (256, 8192, 512)),
    (2, (2, 4), (4096, 256, 8192)),
    (2, (8, 8), (4096, 256, 4096)),
    (2, (16, 32), (8192, 64, 16384)),
    (2, (8, 8), (512, 4096, 4096)),
    (3, (2, 2, 2), (1024, 1024, 1024)),
    (3, (4, 4, 4), (512, 512, 512)),
    (3, (8, 8, 8), (1024, 1024, 1024)),
    (3, (2, 4, 8), (512, 1024, 2048)),
]


@pytest.mark.parametrize(("regime", "mesh", "dims"), PRODUCTS)
def test_products_receive_what_the_lower_bound_says(regime, mesh, dims):
    m, k, n = dims
    devices = int(np.prod(mesh))
    # Only received bytes take time.
    figures = [Figure(kind, 2, 0.0, 1e9) for kind in KINDS]
    rates = gl.Rates(1e30, 1e30)
    chip = gl.Chip("toy", (1, 1))
    machine = gl.Machine(chip, mesh, gl.Links(1e9), rates=rates, figures=figures)
    traced = traced_for(jnp.matmul, (shaped(m, k), shaped(k, n)), machine, None)
    units = Units.apart(traced.device, least=len(mesh))

    def spread(shape):
        """All divisions in which every element is on one device, the units in any order."""
        ordered = permutations(range(len(units.axes)))
        for order, where in product(ordered, product(range(len(shape)), repeat=len(units.axes))):
            yield tuple(tuple(u for u in order if where[u] == k) for k in range(len(shape)))

    graph = Graph.of(traced.closed)
    given = [list(map(Place, dict.fromkeys(spread(s)))) for s in ((m, k), (k, n))]
    found = solve(Strategies(graph, units, given, [list(dict.fromkeys(spread((m, n))))]).problem)
    words = found.cost * 1e9 / 4
    bound, expected = least_words(*dims, devices)
    assert expected == regime
    assert found.bound == pytest.approx(found.cost)
    assert bound * (1 - 1e-3) <= words <= 1.1 * bound


@pytest.mark.parametrize("seed", few(range(500), 8))
def test_plans_of_random_chains_cost_what_brute_force_finds(seed):
    # Products with functions between; all ways to divide everything.
    random = np.random.default_rng(seed)
    sizes = [int(n) for n in random.choice([2, 3, 4, 8], size=3)]

    def fn(x, *weights):
        for w in weights:
            x = (jnp.tanh, lambda x: x, lambda x: x + 1)[w.shape[0] % 3](x @ w)
        return x

    shapes = [(4, sizes[0]), *pairwise(sizes)]
    machine = chips(2, links=gl.Links(10.0 ** random.uniform(3, 9), 10.0 ** random.uniform(-8, -5)))
    traced = traced_for(fn, tuple(shaped(*s) for s in shapes), machine, None)
    problem = traced.strategies(None).problem
    counts = [len(costs) for costs in problem.costs]
    assert np.prod([float(n) for n in counts]) < 2e5
    best = min(problem.cost(choices) for choices in product(*map(range, counts)))
    plan = gl.plan(fn, *(shaped(*s) for s in shapes), machine=machine)
    assert solve(problem).cost == pytest.approx(best, rel=1e-9)
    assert plan.bound <= best * (1 + 1e-9)
    assert plan.time == pytest.approx(best, rel=1e-3)


# A step planned for a mesh of so many emulated devices, compiled for them, and its collectives.
COMPILED = """
import gridlayout as gl
count, mesh = {count}, {mesh}
gl.emulate_devices(count)
import sys
sys.path.insert(0, {tests!r})
import jax
import jax.numpy as jnp
from collections import Counter
from hlo import OURS, compiled_collectives

def step(params, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"] - y) ** 2)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

S = lambda *s: jax.ShapeDtypeStruct(s, "float32")
params = {{"up": S(1024, 4096), "down": S(4096, 1024)}}
chip, links = gl.Chip("toy", (1, 1), {{"dram": {room}}}), gl.Links(45e9, latency=1e-6, wrap=True)
machine = gl.Machine(chip, mesh, links, rates=gl.Rates(2e14, 8e11))
args = params, S(16384, 1024), S(16384, 1024)
plan = gl.plan(step, *args, machine=machine)
told, made = Counter(), Counter()
for each in (c for e in plan.simulation.equations for c in e.collectives):
    told[each.kind] += each.total_bytes
placed = gl.put(args, plan.devices, plan.rules(args))
text = gl.on_grid(step, policy=plan).lower(*placed).compile().as_text()
for kind, _, nbytes in compiled_collectives(text, count):
    made[OURS[kind]] += nbytes
print(dict(told), dict(made), sep="\\n")
"""


@pytest.mark.parametrize(
    ("count", "mesh", "room"),
    few([(64, (8, 8), 2**30), (64, (8, 8), 28 * 2**20), (2048, (32, 64), 2**30)], 1),
)
def test_collectives_of_plans_for_many_devices_are_those_compiled(count, mesh, room):
    tests = str(Path(__file__).parent)
    text = COMPILED.format(count=count, mesh=mesh, room=room, tests=tests)
    # The emulated devices are this process's own.
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stderr
    told, made = map(ast.literal_eval, ran.stdout.splitlines())
    assert told
    for kind in {*told, *made}:
        assert told.get(kind, 0) == pytest.approx(made.get(kind, 0), rel=0.02), kind


# -- what a first user tried -----------------------------------------------------------------------

X = np.ones((32, 16), np.float32)


def of_a_loop(x):
    return jax.lax.while_loop(lambda c: c.sum() < 10, lambda c: c + jnp.abs(c @ c), x)


ODD = {
    "where": (lambda x: jnp.where(x > 0, x, 0.0), [X]),
    "defaults": (lambda a, b=2: a * b, [X]),
    "a static argument": (lambda d, x: x * 2 if d == "a" else x, ["a", X]),
    "keys": (lambda k, x: (jax.random.split(k)[0], x * 2), [jax.random.key(0), X]),
    "dropout": (
        lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0),
        [jax.random.key(0), X],
    ),
    "numbers": (lambda x, a, b: x * a + b, [X, 2, 0.5]),
    "the same twice": (lambda x: (x, x, x[:3]), [X]),
    "no argument of an array": (lambda a: jnp.full((8,), a), [3.0]),
    "a constant": (lambda x: x @ np.arange(48, dtype="f4").reshape(16, 3), [X]),
    "empty": (lambda x: x * 2, [np.zeros((0, 4), np.float32)]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3))), [X]),
    "flip": (lambda x: jnp.flip(x, 0), [X]),
    "update": (lambda x, v: x.at[jnp.array([1, 5])].set(v), [X, X[:2]]),
    "stack": (lambda x, y: jnp.stack([x, y]).sum(0).T.reshape(-1), [X, X + 1]),
    "a product with a number": (jax.grad(lambda v: v @ v), [X[0]]),
    "a number times a matrix": (lambda x, s: jnp.einsum(",ij->ji", s, x), [X, np.float32(2)]),
    "a literal as an operand": (
        lambda x: jax.lax.dot_general(2.0, x, (((), ()), ((), ()))),
        [X],
    ),
    "two numbers": (lambda a, b: jnp.einsum(",->", a, b), [np.float32(2), np.float32(3)]),
    "an outer product": (lambda v, w: jnp.outer(v, w), [X[0], X[:, 0]]),
    "a sum over nothing": (lambda x: x.T @ x, [np.zeros((0, 4), np.float32)]),
    "operands of two shapes": (
        lambda x, v: (jnp.cumsum(v)[::-1], jnp.tensordot(v, x[0, :2], 0)),
        [X, X[0, :2]],
    ),
}


@pytest.mark.few(6)
@needs_8
@pytest.mark.parametrize("name", few(ODD, 12))
def test_odd_programs_are_planned_and_run(name):
    fn, args = ODD[name]
    plan = gl.plan(fn, *args, machine=emulated((2, 4)))
    assert 0 <= plan.bound <= plan.time
    if name == "keys":
        key, doubled = plan.run(*args)
        assert (jax.random.key_data(key) == jax.random.key_data(fn(*args)[0])).all()
        assert_same(doubled, 2 * X)
    elif name != "a static argument":
        expected = jax.jit(fn)(*args)
        assert_same(plan.run(*args), expected, rtol=1e-4, atol=1e-5)
        assert_same(gl.on_grid(fn, policy=plan)(*args), expected, rtol=1e-4, atol=1e-5)
    else:
        assert_same(plan.run(*args), fn(*args), rtol=1e-4, atol=1e-5)
    assert gl.simulate(fn, *args, plan=plan) == plan.simulation


@pytest.mark.few(7)
@pytest.mark.parametrize("name", ODD)
def test_no_plan_takes_longer_than_no_plan(name):
    fn, args = ODD[name]
    plan = gl.plan(fn, *args, machine="v5e 4x4")
    assert plan.time <= gl.simulate(fn, *args, machine="v5e 4x4").time * (1 + 1e-9)


@pytest.mark.few(4)
@pytest.mark.parametrize("machine", ["n150", "wormhole 2x4"])
@pytest.mark.parametrize("name", [name for name in ODD if "number" in name or "operand" in name])
def test_odd_programs_are_planned_for_cores(name, machine):
    fn, args = ODD[name]
    plan = gl.plan(fn, *args, machine=machine)
    assert 0 <= plan.bound <= plan.time
    assert gl.simulate(fn, *args, machine=machine).time >= 0


def test_a_program_of_numbers_alone_scales():
    fn = jax.grad(lambda a: jnp.einsum("i,->", jnp.stack([a, a]), a))
    assert gl.scaling(fn, shaped(), machine="v5e 4x4").devices == (1, 2, 4, 8, 16)


def test_paths_with_brackets_name_what_is_fixed():
    rows, square = gl.GridLayout((32, 16), grid=(16, 1)), gl.GridLayout((32, 16), grid=(4, 4))
    plan = gl.plan(
        jax.jit(lambda *args: args[0] + args[1]),
        *(shaped(32, 16), shaped(32, 16)),
        machine="v5e 4x4",
        fixed={"args[0]": rows, "args[[]1]": square},
    )
    assert plan.layouts == {"args[0]": rows, "args[1]": square}


def padded_conv(x):
    kernel = jnp.ones((1, 1, 2, 3))
    return jax.lax.conv_general_dilated(jnp.pad(x, 1)[None, None], kernel, (1, 1), "SAME")


@pytest.mark.parametrize("name", ["a convolution", "operands of two shapes"])
@pytest.mark.parametrize("grid", [(4, 1), (1, 4)])
def test_the_default_is_on_grids_own_program(name, grid, tmp_path):
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((4,), ("x",)), machine=emulated((4,)))
    fn, shapes = (padded_conv, [(64, 48)])
    if name != "a convolution":
        fn, shapes = ODD[name][0], [(32, 16), (2,)]
    grids = [grid, (2,)]
    layouts = [gl.GridLayout(s, grid=g) for s, g in zip(shapes, grids, strict=False)]
    laid = [gl.put(shaped(*each.shape), each, device) for each in layouts]
    own = gl.on_grid(fn).report(*laid)
    assert gl.simulate(fn, *laid).time == pytest.approx(own.seconds)
    plan = default_plan(traced_for(fn, tuple(laid), None, None), None, True)
    assert str(gl.on_grid(fn, policy=plan).report(*laid)) == str(own)
    # Searched, stated as layouts, fixed, and saved: never slower than that.
    shapes = [shaped(*each.shape) for each in layouts]
    names = [*plan.layouts]
    for args, fixed in (
        (laid, None),
        (layouts, None),
        (shapes, dict(zip(names, layouts, strict=True))),
    ):
        found = gl.plan(fn, *args, machine=device.machine, fixed=fixed)
        assert found.time <= own.seconds * (1 + 1e-9)
        found.save(tmp_path / "plan.json")
        loaded = gl.load_plan(tmp_path / "plan.json", fn)
        assert gl.simulate(fn, *args, machine=device.machine, plan=loaded).time == found.time


@pytest.mark.parametrize("seconds", [0, 2])
@pytest.mark.parametrize("machine", ["v5e 4x4", "n150"])
def test_every_equation_of_a_plan_can_be_asked_about(machine, seconds):
    plan = gl.plan(
        lambda x: jnp.sort(x.T @ x, -1), shaped(64, 64), machine=machine, seconds=seconds
    )
    names = [each.name for each in plan.simulation.equations]
    assert "sort:0" in names
    for name in names:
        text = plan.why(name)
        assert text.startswith(name)
        assert f"{name} takes" in text or "* " in text
    with pytest.raises(
        LayoutError, match="'sort:1' is no equation of this plan: names are such as"
    ):
        plan.why("sort:1")


@pytest.mark.parametrize(
    ("seconds", "bound", "words"),
    [
        (2e-4, 0.0, "no bound known, gap unknown"),
        (2e-4, 1e-9, "bound 1.00 ns, far below that"),
        (2e-4, 1e-4, "bound 100.00 us, gap 100.0%"),
        (2e-4, 2e-4, "bound 200.00 us, gap 0.0%"),
        (0.0, 0.0, "bound 0.00 ns, gap 0.0%"),
    ],
)
def test_gaps_that_say_nothing_are_no_numbers(seconds, bound, words):
    assert bound_words(seconds, bound) == words


def test_without_a_search_the_bound_is_not_known():
    traced = traced_for(lambda x: x @ x, (shaped(64, 64),), "v5e 4x4", None)
    plan = default_plan(traced, None)
    assert str(plan).splitlines()[0].endswith("us, no bound known, gap unknown (as by default)")
    why = plan.why("dot_general:0").splitlines()[1]
    assert why.startswith("The plan is the program of gl.on_grid")


@pytest.mark.parametrize("trips", [1, 10, 1000])
def test_loops_take_as_long_as_their_trips(trips):
    plan = gl.plan(of_a_loop, shaped(64, 64), machine="v5e 4x4", trips=trips)
    once = gl.plan(of_a_loop, shaped(64, 64), machine="v5e 4x4", trips=1)
    assert plan.time == pytest.approx(trips * once.time)
    with pytest.raises(LayoutError, match="trips"):
        gl.plan(of_a_loop, shaped(64, 64), trips=0)


@needs_8
def test_arrays_that_are_laid_out_otherwise_are_laid_out_as_planned():
    def fn(x):
        return jnp.tanh(x @ x.T)

    device = gl.DeviceGrid((2, 4))
    laid = gl.put(X, gl.GridLayout((32, 16), "float32", grid=(1, 2)), device)
    for plan in (gl.plan(fn, X, machine=emulated((2, 4))), gl.plan(fn, laid)):
        assert_same(plan.run(laid), fn(X), rtol=1e-4, atol=1e-5)


GRIDS = [
    [(8, 1), (1, 1), (1, 1)],
    [(2, 1), (1, 4), (4, 1)],
    [(3, 2), (5, 1), (1, 3)],
]


@pytest.mark.few(1)
@needs_8
@pytest.mark.parametrize(("grids", "name"), few(product(GRIDS, ["training", "mlp"]), 2))
def test_arrays_are_laid_out_otherwise_only_where_that_saves_much(name, grids, tmp_path):
    x, *weights = (array(shape, k) for k, shape in enumerate([(64, 40), (40, 96), (96, 24)]))
    device = gl.DeviceGrid((2, 4))
    laid = [
        gl.put(each, gl.GridLayout(each.shape, "float32", grid=grid, collapse=[]), device)
        for each, grid in zip((x, *weights), grids, strict=True)
    ]

    def train(x, weights):
        grads = jax.grad(lambda ws: jnp.mean(mlp(x, *ws) ** 2))(weights)
        return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)]

    fn, args = (mlp, laid) if name == "mlp" else (train, (laid[0], laid[1:]))
    plan = gl.plan(fn, *args)
    seconds = gl.on_grid(fn).report(*args).seconds
    stays = [*plan.layouts.values()] == [each.layout for each in laid]
    assert plan.bound <= plan.time <= seconds * ((1 if stays else 1 - LIMITS.relayout_gain) + 1e-9)
    plan.save(tmp_path / "plan.json")
    loaded = gl.load_plan(tmp_path / "plan.json", fn)
    expected = jax.jit(fn)(*jax.tree.map(np.asarray, args, is_leaf=is_grid))
    for each in (plan, loaded):
        assert_same(each.run(*args), expected, 1e-4, 1e-5)


@pytest.mark.parametrize("hidden", few([1024, 2048], 1))
def test_results_that_are_next_values_are_where_their_arguments_are(hidden):
    params = {"w1": bf16(512, hidden), "b1": bf16(hidden), "w2": bf16(hidden, 512)}
    plan = gl.plan(step, params, bf16(8192, 512), bf16(8192, 512), machine="n150")
    spaces = {layout.memory for layout in plan.layouts.values()}
    assert spaces == {"dram", "l1"}
    for name in params:
        assert plan.results[f"result['{name}']"] == plan.layouts[f"params/{name}"]


def test_a_sum_is_not_joined_with_one_that_depends_on_it():
    def fn(a, b, c):
        scaled = 2 * (a @ b)
        return scaled, scaled @ c

    found = traced_for(fn, [shaped(64, 64)] * 3, "v5e 4x4", None).strategies(None)
    problem = found.problem
    assert all(each.source < len(found.variables) for each in problem.fetches)  # none is joined
    twice = traced_for(lambda a, b, c: (a @ b, a @ c), [shaped(64, 64)] * 3, "v5e 4x4", None)
    found = twice.strategies(None)
    joined = [each for each in found.problem.fetches if each.source == len(found.variables)]
    assert joined
    for each in joined:
        assert {at for at, _ in each.consumers} <= set(map(found.variable, range(2)))


def test_products_of_operands_of_other_types_have_their_own_prices():
    def fn(a, b, c, d):
        return a @ b, jnp.matmul(c, d, preferred_element_type="float32")

    args = [*[shaped(64, 64)] * 2, *[bf16(64, 64)] * 2]
    found = traced_for(fn, args, "v5e 4x4", None).strategies(None)
    (choices, seconds), (same, fewer) = map(found.ways.of, found.graph.nodes)
    assert choices == same
    assert (fewer < seconds).all()


def test_a_mask_is_computed_where_a_loop_reads_it():
    # No device computes rows of the mask that it does not read: nothing of it is sent.
    def fn(x, w):
        mask = jnp.tril(jnp.ones((64, 64), bool))

        def body(x, w):
            scores = jnp.where(mask, jnp.einsum("bqd,bkd->bqk", x, x), -1e9)
            return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), x) @ w, None

        return jax.lax.scan(body, x, w)[0]

    shapes = (64, 64, 256), (4, 256, 256)
    plan = gl.plan(fn, *[shaped(*shape) for shape in shapes], machine="v5e 4x4")
    assert plan.gap < 0.2
    found = [each for each in plan.simulation.equations if each.ins.startswith("bool")]
    assert found
    assert not any(each.collectives for each in found)


def test_loops_of_other_choices_are_other_ops():
    # What is decided for one plan is remembered: another plan of the function is not the same.
    closed = jax.make_jaxpr(scanned)(*arguments([(64, 32), (4, 32, 32)]))
    (eqn,) = (eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "scan")
    units = Units.apart(traced_for(mlp, [shaped(8, 8)] * 3, "v5e 4x4", None).device)
    choices = [Choice((((k,), ()),), ((k,), ()), ((k,), ())) for k in (0, 1, 0)]
    first, second, same = (
        Op.of(eqn).placed(
            requested=RequestedLoop((None,), (None,), (), Chosen(units, {(0,): choice}, 1))
        )
        for choice in choices
    )
    assert first != second
    assert first == same
    assert hash(first) == hash(same)


@pytest.mark.parametrize(
    "corner", [lambda y: y[3, 5], lambda y: y[:3, :3] @ y[:3, :3], lambda y: y[0:0].sum()]
)
def test_a_corner_of_a_value_leaves_it_divided(corner):
    shapes = [jax.ShapeDtypeStruct(s, "bfloat16") for s in ((4096, 1024), (1024, 4096))]

    def hidden(x, w):
        return jax.nn.relu(x @ w)

    def both(x, w):
        y = hidden(x, w)
        return y, corner(y)

    alone, found = (gl.plan(fn, *shapes, machine="v5e 4x4").time for fn in (hidden, both))
    assert found < 3 * alone  # and not ten times: small messages have a latency
