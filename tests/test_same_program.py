"""A call is planned and lowered in one way, whatever the caches hold and whatever came before.

Processes rely on it: each plans for itself, and all have to run the same program. `make prove` asks
more calls the same (`tests/prove/plans.py`).
"""

import re
from collections import Counter
from itertools import cycle, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from jax import lax
from jax.sharding import AbstractMesh
from machines import FAST, with_latency
from prove.claims import CLAIMS
from prove.plans import LIMITS, Call, differences, digest, drawn, elsewhere

import gridlayout as gl
from benchmarks import steps
from gridlayout import megengine, sophon

COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH)
SHAPE = (13, 9)
pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture(autouse=True)
def limit():
    """Sets the limit of the caches; they have the old one afterwards, and are empty."""
    before = gl.caches.limit()
    yield gl.caches.limit
    gl.caches.limit(before)
    gl.caches.clear()


def laid_out(shape, grid, device=DEVICE, dtype="float32"):
    """An array without data."""
    layout = gl.GridLayout(shape, dtype, grid, collapse=[])
    return gl.put(jax.ShapeDtypeStruct(shape, dtype), layout, device)


# -- programs --------------------------------------------------------------------------------------


def regression(w, x):
    return w - 0.01 * (x.T @ x @ w), jnp.sum((x @ w) ** 2)


def layers(x, w):
    """Equal layers, which are lowered once, with constants of several elements and random keys."""
    key = jax.random.key(3)
    for k in range(8):
        x = jnp.tanh(x @ w) + np.arange(9, dtype="f4") * lax.broadcasted_iota("float32", x.shape, 0)
        x = jax.nn.softmax(jnp.sort(x, 0), 1) + jax.random.normal(jax.random.fold_in(key, k), SHAPE)
    return x


def loops(x, w):
    y = lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x)
    rows = lax.scan(lambda c, row: (jnp.sin(c + row), c * row), x[0], y)[1]
    return lax.cond(rows.sum() > 0, lambda a: a @ w, lambda a: -a, rows)


def step(state, x):
    """A training step with momentum, and the gradient through a checkpoint."""
    weights, moments = state

    def loss(weights):
        hidden = jax.checkpoint(lambda x, w: jax.nn.gelu(x @ w))(x, weights[0])
        return (jax.nn.log_softmax(hidden @ weights[1]) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradient)
    return (jax.tree.map(lambda w, m: w - 0.1 * m, weights, moments), moments), value


def products(x, w):
    stacked = jnp.stack([x, 2 * x])
    return jnp.einsum("bij,jk->bik", stacked, w), jnp.einsum("bij,bkj->bik", stacked, stacked)


def slices(x, w):
    return x[1:, ::2], x.at[2].set(1.0), jnp.concatenate([x, w], 0), x[jnp.array([3, 1])], x.T[::-1]


TWO = (SHAPE, (2, 4)), ((9, 9), (4, 2))
STATE = ((SHAPE[::-1], (2, 4)), ((13, 5), (3, 1))) * 2
CALLS = {
    "regression": (regression, (((9, 4), (2, 2)), (SHAPE, (3, 2)))),
    "layers": (layers, TWO),
    "loops": (loops, TWO),
    "step": (lambda *xs: step((xs[:2], xs[2:4]), xs[4]), (*STATE, ((8, 9), (4, 1)))),
    "products": (products, TWO),
    "slices": (slices, TWO),
    "gradient": (jax.grad(lambda x, w: jnp.tanh(x @ w).sum(), (0, 1)), TWO),
}
MACHINES = {"known": None, "fast": FAST, "with latency": with_latency(1e-4)}


def call_of(fn, shapes, device):
    return Call(lambda: lambda *xs: fn(*xs), [laid_out(*each, device) for each in shapes])


# With --all-cases every program on every machine; else the machines take turns.
PAIRS = (
    [*product(CALLS, MACHINES)]
    if tiers.ALL
    else tiers.few([*zip(CALLS, cycle(MACHINES), strict=False)], 4)
)
SIZES = LIMITS if tiers.ALL else (LIMITS[0], LIMITS[-1])


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_the_caches_change_nothing(name, machine):
    device = gl.DeviceGrid(MESH, machine=MACHINES[machine])
    assert not [*differences(call_of(*CALLS[name], device), SIZES)]


@pytest.mark.parametrize("name", CALLS if tiers.ALL else ["step"])
def test_a_mesh_without_devices_is_planned_for_in_one_way(name):
    device = gl.DeviceGrid(AbstractMesh((4, 4), ("x", "y")), machine=with_latency(1e-5))
    assert not [*differences(call_of(*CALLS[name], device), SIZES)]


@pytest.mark.skipif(COUNT < 4, reason="needs four devices")
@pytest.mark.all_cases
@pytest.mark.parametrize("name", CALLS)
def test_four_devices_are_planned_for_in_one_way(name):
    assert not [*differences(call_of(*CALLS[name], gl.DeviceGrid((2, 2))), SIZES)]


STEPS = {case.name: case for case in steps.cases(8)}


@pytest.mark.skipif(COUNT != 8, reason="the steps are for eight devices")
@pytest.mark.parametrize("name", tiers.few(STEPS, 1))
def test_steps_are_planned_in_one_way(name):
    case = STEPS[name]
    pairs = zip(case.shapes, case.grids, strict=True)
    call = call_of(case.fn, [(shape, grid or (1,) * len(shape)) for shape, grid in pairs], DEVICE)
    assert not [*differences(call, SIZES)]


def test_programs_that_came_before_change_nothing(limit):
    calls = {name: call_of(*each, DEVICE) for name, each in CALLS.items()}
    names = [*calls] if tiers.ALL else ["loops", "gradient"]
    first = {}
    for name in names:
        gl.caches.clear()
        first[name] = calls[name].said()
    gl.caches.clear()
    limit(2_000_000)
    for name in [*names[::-1], *names]:
        assert calls[name].said() == first[name]


@pytest.mark.parametrize("name", tiers.few(["devices_8", "devices_4", "abstract_64"], 1))
def test_another_process_plans_the_same(name):
    """It hashes texts in another way, has smaller caches, and plans other programs in between."""
    part = CLAIMS["plans"].part(name)
    if part.devices > COUNT:
        pytest.skip(f"needs {part.devices} devices")
    seeds = range(4, 7 if tiers.ALL else 5)
    found = {str(seed): digest(drawn(part, seed)[0].said()) for seed in seeds}
    assert elsewhere(part, seeds) == found


def test_a_plan_is_made_in_one_way(limit):
    x, w = (jax.ShapeDtypeStruct(shape, "float32") for shape in (SHAPE, (9, 9)))
    found = set()
    for size in SIZES:
        gl.caches.clear()
        limit(size)
        plan = gl.plan(lambda x, w: jnp.tanh(x @ w).sum(0), x, w, machine="v5e 4x4")
        found.add((str(plan), repr(plan.layouts), repr(plan.results)))
    assert len(found) == 1


UNEVEN = sophon.Chip(npus=4, npu_bytes=1024, alignment=16)
EQUAL = {
    "sophon matrix": (
        sophon.matrix(4, 3, 3, "float32", chip=UNEVEN),
        sophon.matrix(4, 3, 3, "float32", chip=UNEVEN, strides=(4, 9, 9, 1)),
        sophon.matrix(4, 3, 3, "float32", chip=UNEVEN).with_dtype("bool").with_dtype("float32"),
    ),
    "sophon local": (
        sophon.local((2, 3, 4, 5), "float32", chip=UNEVEN),
        sophon.local((2, 3, 4, 5), "float32", chip=UNEVEN, strides=(20, 20, 5, 1)),
    ),
    "sophon system": (
        sophon.system((1, 3, 4, 5), "float32"),
        sophon.system((1, 3, 4, 5), "float32", strides=(7, 20, 5, 1)),
    ),
    "strides": (
        megengine.strided((1, 5, 1), (5, 1, 1), "float32"),
        megengine.strided((1, 5, 1), (9, 1, 7), "float32"),
    ),
    "formats": (
        megengine.format((1, 4, 3, 4), "NCHW", "float32"),
        megengine.format((1, 4, 3, 4), "NCHW", "float32", align=2),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_layouts_are_planned_and_printed_in_one_way(name):
    first = EQUAL[name][0]
    texts = set()
    for layout in EQUAL[name]:
        gl.caches.clear()
        x = gl.put(jax.ShapeDtypeStruct(layout.shape, "float32"), layout, DEVICE)
        report = gl.on_grid(lambda x: -x).report(x)
        texts.add(repr((report.rows, report.arguments, jax.typeof(x))))
        assert layout.canonical == layout == first
        assert str(layout.canonical) == str(first.canonical)
    assert len(texts) == 1


@pytest.mark.filterwarnings("ignore::gridlayout.LayoutWarning")
@pytest.mark.skipif(COUNT < 4, reason="needs four devices")
def test_a_layout_is_planned_for_like_an_equal_one_that_came_before():
    """A sort in tiles, after slices: an object that the caches hold has an equal layout."""
    call, _ = drawn(CLAIMS["plans"].part("devices_4"), 4)
    assert not [*differences(call, LIMITS[:2])]


# -- what is lowered once --------------------------------------------------------------------------


def functions(text):
    """How many functions a lowered program has."""
    return text.count("func.func")


def test_equal_layers_are_lowered_once_whatever_the_caches_hold(limit):
    call = call_of(*CALLS["layers"], DEVICE)
    gl.caches.clear()
    limit(1)
    text = call.said()["program"]
    assert "@repeated" in text
    assert text.count("call @repeated") >= 7


def on_jit(fn, x):
    """What `jax.jit` lowers a function of `GridArray`s to, with caches of both sizes."""
    found = []
    for size in (1 << 30, 1):
        gl.caches.clear()
        gl.caches.limit(size)
        found.append(jax.jit(lambda x: fn(x)).lower(x).as_text())
    return found


def lifted_twice(x):
    f, g = gl.on_grid(lambda x: jnp.tanh(x) @ x.T), gl.on_grid(lambda x: jnp.sin(x).sum())
    return f(x), g(x), f(x), g(x), jax.grad(lambda x: g(x) * g(2 * x))(x), f(x)


def operators(x):
    return gl.numpy.sin(x) + gl.numpy.cos(x) + gl.numpy.sin(x) + gl.numpy.cos(x) + x @ x.T @ x


def relaid_out(x):
    layouts = [x.layout.replace(grid=grid, oob=oob) for grid, oob in [((4, 2), None), ((3, 2), 0)]]
    return [gl.relayout(x, layout) for layout in layouts * 2]


def converted(x):
    y = x.with_oob(1.0)
    logical = x.to_logical() + y.to_logical() + x.to_logical() + y.to_logical()
    layouts = [x.layout, x.layout.replace(grid=(4, 2))] * 2
    return [gl.put(logical, layout, DEVICE) for layout in layouts]


def packed(x):
    logical = x.to_logical()
    layouts = [x.layout, x.layout.replace(grid=(4, 2))] * 2
    made = [gl.pack(logical, layout) for layout in layouts]
    return [gl.unpack(*pair) for pair in zip(made, layouts, strict=True)]


def shifted(x):
    def back(shard):
        return gl.cores.shift(shard, 1, 0)

    return [gl.map_shards(back, x, out=x.layout, padding=n) for n in (0, 1, 0, 1)]


# JAX 0.10 makes an operand of each array that a traced function holds, one per object.
BY_OBJECT = (relaid_out, shifted) if jax.__version_info__ < (0, 11) else ()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("fn", "dtype"),
    [
        *((fn, "float32") for fn in (lifted_twice, operators, relaid_out, converted, packed)),
        *((fn, "bfloat16") for fn in (relaid_out, packed)),
        (shifted, "float32"),
    ],
)
def test_a_traced_call_is_lowered_in_one_way(fn, dtype):
    first, now = on_jit(fn, laid_out(SHAPE, (2, 4), dtype=dtype))
    if fn in BY_OBJECT:
        first, now = (
            re.findall(r'"stablehlo\.(?:all|collective|reduce)\w+', x) for x in (first, now)
        )
        assert first
    assert now == first


def test_a_ring_is_lowered_in_one_way():
    x = laid_out((2, 12, 4, 3), (1, 4, 1, 1))

    def rings(x):
        first = gl.ring_attention(x, x, x)
        return gl.ring_attention(gl.numpy.tanh(first), x, x, is_causal=True), first

    first, now = on_jit(rings, x)
    assert now == first


def test_a_program_that_is_called_twice_is_lowered_once():
    for text in on_jit(lifted_twice, laid_out(SHAPE, (2, 4))):
        calls = Counter(re.findall(r"call @(run\w*)\(", text)).values()
        assert sorted(calls)[-1] == 3  # three calls of the first function
        assert 2 in calls  # two of the second


# -- what runs -------------------------------------------------------------------------------------


def test_a_gradient_does_not_depend_on_earlier_cotangents():
    layout = gl.GridLayout(SHAPE, "float32", (2, 4))
    x = gl.put(np.ones(SHAPE, np.float32), layout, DEVICE)
    lifted = gl.on_grid(lambda x: jnp.tanh(x @ x.T).sum())

    def residuals():
        return [leaf.shape for leaf in jax.tree.leaves(jax.vjp(lifted, x)[1])]

    first = residuals()
    jax.vjp(lifted, x)[1](jnp.float32(3))
    assert residuals() == first
