"""Plans for plain `jax.jit`: `plan.shardings` and `plan.constrained` on a user's mesh."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo import compiled_collectives
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tiers import few

import gridlayout as gl
from gridlayout.ops.planning.priced import default_plan
from gridlayout.ops.planning.traced import traced_for

COUNT = len(jax.devices())
pytestmark = pytest.mark.skipif(COUNT < 8, reason="the plans are run on 8 devices")
SMALL = gl.Machine(
    gl.Chip("small", (1, 1), {"dram": 2**30}),
    mesh=(2, 4),
    links=gl.Links(45e9, latency=1e-6, wrap=True),
    rates=gl.Rates(flops=200e12, memory=800e9),
)


def mesh_of(*sizes, names=("data", "model", "more", "last")):
    return Mesh(np.array(jax.devices()[:8]).reshape(sizes), names[: len(sizes)])


def array(*shape):
    return (np.random.default_rng(len(shape)).normal(size=shape) / 8).astype("f4")


def assert_same(found, expected, rtol=1e-5, atol=1e-6):
    """JAX's arrays of the same structure, types and values."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(ours, jax.Array)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def grid(shape, *divided):
    return gl.GridLayout(shape, "float32", grid=divided, collapse=[])


def step(params, x, y):
    def loss(p):
        hidden = jax.nn.relu(x @ p["up"] + p["bias"])
        return jnp.mean((hidden @ p["down"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


def attention(x, wq, wk, wv, wo):
    b, t, d = x.shape
    q, k, v = ((x @ w).reshape(b, t, 8, d // 8).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    scores = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / (d // 8) ** 0.5, -1)
    return (scores @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ wo


def layers(weights, x):
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), x.sum(1)), x, weights)


def trained(weights, x):
    return jax.grad(lambda w: jnp.mean(layers(w, x)[0] ** 2))(weights)


def repeated(w, x):
    def body(state):
        k, x = state
        return k + 1, jnp.tanh(x @ w)

    return jax.lax.while_loop(lambda state: state[0] < 3, body, (0, x))


PARAMS = {"up": array(512, 1024), "bias": array(1024), "down": array(1024, 512)}
LAYERS = array(4, 512, 512)
SPLIT = {"weights": grid(LAYERS.shape, 1, 2, 4)}
# name: function, arguments, fixed layouts, and how many times as much is sent with the shardings
# of arguments alone, at least
CASES = {
    "mlp": (step, (PARAMS, array(4096, 512), array(4096, 512)), None, 1.1),
    "attention": (
        attention,
        (array(1, 1024, 512), *[array(512, 512)] * 4),
        {"x": grid((1, 1024, 512), 1, 8, 1)},
        3.9,
    ),
    "scan": (layers, (LAYERS, array(64, 512)), {"x": grid((64, 512), 1, 8)}, 20),
    "backward": (trained, (LAYERS, array(4096, 512)), SPLIT, 1.3),
    "while": (repeated, (array(512, 512), array(64, 512)), {"x": grid((64, 512), 1, 8)}, 1),
}


@cache
def planned(name):
    fn, args, fixed, least = CASES[name]
    return fn, args, gl.plan(fn, *args, machine=SMALL, fixed=fixed, seconds=30), least


def received(fn, args, *shardings):
    """The bytes that a device receives in the compiled program."""
    compiled = jax.jit(fn, **dict(zip(("in_shardings", "out_shardings"), shardings, strict=False)))
    text = compiled.lower(*args).compile().as_text()
    return sum(nbytes for _, _, nbytes in compiled_collectives(text, 8)) // 8


def held_shapes(fn, args, ins, outs):
    """The shapes of what a device holds of arguments and results, in the compiled program."""
    jitted = jax.jit(fn, in_shardings=ins, out_shardings=outs)
    text = jitted.lower(*args).compile().as_text()
    line = re.search(r"entry_computation_layout=\{(.*?)(, [a-z_]+=|$)", text)[1]
    return [
        [
            tuple(map(int, filter(None, dims.split(","))))
            for dims in re.findall(r"\w\[([\d,]*)\]", x)
        ]
        for x in line.split(")->")
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_a_jitted_function_takes_the_plan_along(name):
    fn, args, plan, least = planned(name)
    mesh = mesh_of(2, 4)
    ins, outs = plan.shardings(mesh)
    ours = plan.constrained(mesh)
    assert_same(jax.jit(ours)(*args), jax.jit(fn)(*args), rtol=2e-4, atol=2e-5)
    sent = [c for each in plan.simulation.equations for c in each.collectives]
    # XLA makes no reduce-scatter for CPUs: its all-reduce sends twice as much.
    stated = sum(c.received_bytes * c.count * (1 + (c.kind == "reduce_scatter")) for c in sent)
    assert sent
    found = received(ours, args, ins, outs)
    assert stated <= found <= 1.01 * stated
    assert received(fn, args, ins) >= least * found
    # What a device holds of arguments and results is what the plan says.
    layouts = [[*plan.layouts.values()], [*plan.results.values()]]
    held = [[() if x is None else x.shard_shape for x in some] for some in layouts]
    assert held_shapes(ours, args, ins, outs) == held


def test_shardings_are_trees_of_arguments_and_results(tmp_path):
    args = ((PARAMS, "a name", 2.0), array(4096, 512))

    def fn(first, x):
        params, name, scale = first
        assert name == "a name"
        return {"y": x @ params["up"] * scale}, None

    plan = gl.plan(fn, *args, machine=SMALL, fixed={"x": grid((4096, 512), 8, 1)})
    mesh = mesh_of(2, 4)
    found = plan.shardings(mesh)
    (params, name, scale), x = found.arguments
    assert (name, scale.spec, x.spec) == (None, P(), P(("data", "model"), None))
    assert params.keys() == PARAMS.keys()
    assert found.results[0]["y"].spec == P(("data", "model"), None)
    assert found.results[1] is None
    assert all(s.mesh == mesh for s in jax.tree.leaves(found))
    plan.save(tmp_path / "plan.json")
    loaded = gl.load_plan(tmp_path / "plan.json", fn)
    assert loaded.shardings(mesh, *args) == found
    with pytest.raises(gl.LayoutError, match="pass the arguments too"):
        loaded.shardings(mesh)
    with pytest.raises(gl.LayoutError, match="loaded without its function"):
        gl.load_plan(tmp_path / "plan.json").shardings(mesh, *args)
    with pytest.raises(gl.LayoutError, match="another program"):
        loaded.shardings(mesh, *args[:-1], array(2048, 512))


def test_axes_may_have_other_names_and_be_split():
    plan = planned("attention")[2]
    for sizes in ((2, 4), (2, 2, 2), (2, 1, 4)):
        mesh = mesh_of(*sizes)
        x = plan.shardings(mesh).arguments[0]
        axes = tuple(name for name, n in mesh.shape.items() if n > 1)
        assert x.spec == P(None, axes, None)
        where = [index for _, index in sorted((d.id, i) for d, i in index_map(x))]
        assert where == [(0, 128 * k, 0) for k in range(8)]


def index_map(sharding):
    for device, index in sharding.devices_indices_map((1, 1024, 512)).items():
        yield device, tuple(s.start or 0 for s in index)


@pytest.mark.parametrize("sizes", [(4, 2), (8,), (2, 2), (2, 4, 1, 1), (1, 8)])
def test_a_mesh_of_another_shape_is_refused(sizes):
    plan = planned("attention")[2]
    names = ("data", "model", "more", "last")
    mesh = Mesh(np.array(jax.devices()[: np.prod(sizes)]).reshape(sizes), names[: len(sizes)])
    if sizes == (2, 4, 1, 1):
        assert plan.shardings(mesh)
        return
    for call in (plan.shardings, plan.constrained):
        with pytest.raises(gl.LayoutError, match=r"the plan is for a mesh of \(2, 4\) devices"):
            call(mesh)
        with pytest.raises(gl.LayoutError, match=r"must be a jax.sharding.Mesh"):
            call(sizes)


def uneven(x, y, z, w):
    return x + 1, y * 2, z - 1, w


UNEVEN = {
    "x": grid((10, 12), 8, 1),  # of 10 rows, devices have 2, 2, 2, 2, 2, 0, 0, 0
    "y": grid((16, 12), 2, 4),
    "z": grid((8, 6), 1, 2),  # by a part of the axis of 4 devices, or by the other axis
    "w": grid((18, 6), 3, 1),  # blocks of 6 rows on 4 devices
}


def test_layouts_without_a_sharding_are_all_named():
    args = [array(*layout.shape) for layout in UNEVEN.values()]
    plan = gl.plan(uneven, *args, machine=SMALL, fixed=UNEVEN)
    mesh = mesh_of(2, 4)
    with pytest.raises(gl.LayoutError) as error:
        plan.shardings(mesh)
    assert "x: dim 0 of 10 elements is not a multiple of 8 devices" in str(error.value)
    assert "w: " in str(error.value)
    assert not re.search(r"\by: ", str(error.value))
    with pytest.warns(gl.LayoutWarning, match="These dims are replicated") as warned:
        found = plan.shardings(mesh, strict=False).arguments
    assert warned[0].filename == __file__
    assert found[0].spec == P(None, None)
    assert found[1].spec == P("data", "model")
    with pytest.warns(gl.LayoutWarning, match="These dims are replicated"):
        ours = plan.constrained(mesh, strict=False)
    assert_same(jax.jit(ours)(*args), jax.jit(uneven)(*args))


def test_parts_of_axes_are_on_a_mesh_that_has_them():
    tall = gl.Machine(SMALL.chip, mesh=(2, 4), links=SMALL.links, rates=SMALL.rates)
    layout = grid((8, 8, 8), 2, 2, 2)
    x = array(8, 8, 8)
    plan = gl.plan(jnp.tanh, x, machine=tall, fixed={"x": layout})
    mesh = mesh_of(2, 4)
    ins, outs = plan.shardings(mesh)
    assert ins[0].mesh.devices.ravel().tolist() == mesh.devices.ravel().tolist()
    assert ins[0].shard_shape(x.shape) == (4, 4, 4)
    mixed = ((*ins, NamedSharding(mesh, P("data"))), outs)
    both = jax.jit(lambda x, y: jnp.tanh(x) + y.sum(), in_shardings=mixed[0], out_shardings=outs)
    assert_same(both(x, np.zeros(8, np.float32)), np.tanh(x))
    assert plan.shardings(mesh_of(2, 2, 2)).arguments[0].spec == P("data", "model", "more")
    # So are constraints.
    made = jax.jit(plan.constrained(mesh_of(2, 4)))(x)
    assert made.sharding.shard_shape(x.shape) == (4, 4, 4)
    assert_same(made, np.tanh(x))


def test_what_is_no_mesh_of_devices_is_refused():
    x = jax.ShapeDtypeStruct((256, 256), "float32")
    cores = gl.plan(lambda x: x @ x, x, machine="n150", seconds=2)
    for call in (cores.shardings, cores.constrained):
        with pytest.raises(gl.LayoutError, match="JAX has no sharding over cores"):
            call(mesh_of(8))
    plan = planned("attention")[2]
    explicit = Mesh(mesh_of(2, 4).devices, ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    assert plan.shardings(explicit).arguments[0].mesh == explicit
    with pytest.raises(
        gl.LayoutError, match="Explicit, Explicit, and sharding constraints are for"
    ):
        plan.constrained(explicit)


def test_derivatives_are_those_of_the_function():
    @jax.custom_vjp
    def through(x):
        return jnp.round(x)

    through.defvjp(lambda x: (jnp.round(x), None), lambda _, ct: (3 * ct,))

    def fn(x, w):
        return (through(x @ w) * jnp.arange(8.0)[:, None]).sum()

    args = array(8, 16), array(16, 8)
    plan = gl.plan(fn, *args, machine=SMALL, fixed={"x": grid((8, 16), 2, 4)})
    ours = plan.constrained(mesh_of(2, 4))
    assert_same(jax.jit(ours)(*args), fn(*args), rtol=1e-5)
    assert_same(jax.jit(jax.grad(ours))(*args), jax.grad(fn)(*args))


def test_constants_views_and_remat_are_evaluated():
    table = array(16, 64)

    def fn(x):
        x = jax.checkpoint(lambda x: jnp.tanh(x @ table.T) @ table)(x)
        return jnp.roll(x, 3, axis=0)[2:] + jnp.pad(x, ((0, 2), (0, 0)))[4:], x.sum()

    def loss(x):
        made = fn(x)
        return (made[0] ** 2).sum(), made

    both = jax.value_and_grad(loss, has_aux=True)
    x = array(64, 64)
    layout = grid(x.shape, 2, 4)
    plan = gl.plan(both, x, machine=SMALL, fixed={"x": layout})
    ours = plan.constrained(mesh_of(2, 4))
    for run in few([jax.jit(ours), ours], 1):
        assert_same(run(x), jax.jit(both)(x), rtol=1e-4, atol=1e-5)


def test_with_layout_is_a_constraint():
    x = array(64, 64)
    columns = grid(x.shape, 1, 8)
    plan = gl.plan(lambda x: gl.with_layout(jnp.tanh(x), columns), x, machine=SMALL)
    made = jax.jit(plan.constrained(mesh_of(2, 4)))(x)
    assert made.sharding.shard_shape(x.shape) == (64, 8)


def test_values_inside_may_be_divided_unevenly():
    x, w = array(64, 60), array(60, 52)
    fixed = {"x": grid(x.shape, 8, 1), "w": grid(w.shape, 1, 1)}
    plan = gl.plan(lambda x, w: jnp.tanh((x @ w).T).sum(0), x, w, machine=SMALL, fixed=fixed)
    odd = gl.plan(lambda x: jnp.tanh(x[:61]).sum(1), x, machine=SMALL, fixed={"x": fixed["x"]})
    uneven = [str(e) for e in odd.simulation.equations if "float32[61,60]@8x1" in e.outs]
    assert uneven
    ours = plan.constrained(mesh_of(2, 4))
    for call in (ours, jax.jit(ours)):
        assert_same(call(x, w), jnp.tanh((x @ w).T).sum(0), rtol=1e-4)
    with pytest.warns(gl.LayoutWarning, match="result: dim 0 of 61 elements"):
        ours = odd.constrained(mesh_of(2, 4), strict=False)
    for call in (ours, jax.jit(ours)):
        assert_same(call(x), jnp.tanh(x[:61]).sum(1), rtol=1e-4, atol=1e-5)


def test_shardings_that_the_function_states_remain():
    x, mesh = array(64, 64), mesh_of(2, 4)
    plans = mesh_of(2, 4, names=("x", "y"))

    def fn(x, spec):
        return jax.lax.with_sharding_constraint(jnp.tanh(x), NamedSharding(plans, spec)) * 2

    for spec, part in {P("y", "x"): (16, 32), P(None, ("x", "y")): (64, 8)}.items():
        plan = gl.plan(lambda x, spec=spec: fn(x, spec), x, machine=SMALL)
        made = jax.jit(plan.constrained(mesh))(x)
        assert made.sharding.shard_shape(x.shape) == part
        assert_same(made, 2 * np.tanh(x))


def test_layouts_that_the_function_states_unevenly_are_refused():
    x, rows = array(10, 64), grid((10, 64), 8, 1)

    def fn(x):
        return gl.with_layout(x * 2, rows).sum()

    plan = gl.plan(fn, x, machine=SMALL, fixed={"x": grid(x.shape, 1, 1)})
    mesh = mesh_of(2, 4)
    with pytest.raises(gl.LayoutError, match="with_layout: dim 0 of 10 elements"):
        plan.constrained(mesh)(x)
    ours = plan.constrained(mesh, strict=False)
    with pytest.warns(gl.LayoutWarning, match="with_layout: dim 0"):
        assert_same(ours(x), (x * 2).sum())


def test_the_default_program_is_constrained_at_its_ends():
    x = array(64, 64)
    plan = default_plan(traced_for(lambda x: x @ x, (x,), SMALL, None), None)
    assert plan.how == "as by default"
    mesh = mesh_of(2, 4)
    made = jax.jit(plan.constrained(mesh))(x)
    assert made.sharding.is_equivalent_to(plan.shardings(mesh).results, 2)
    assert_same(made, x @ x, rtol=1e-5, atol=1e-6)


def test_grid_arrays_and_other_shapes_are_refused():
    x = array(64, 64)
    plan = gl.plan(lambda x: x @ x, x, machine=SMALL)
    ours = plan.constrained(mesh_of(2, 4))
    placed = gl.put(x, grid(x.shape, 2, 4), gl.DeviceGrid((2, 4)))
    with pytest.raises(gl.LayoutError, match=r"pass x.to_logical\(\)"):
        ours(placed)
    with pytest.raises(gl.LayoutError, match="the plan is for another program"):
        ours(array(32, 32))
    with pytest.raises(gl.LayoutError, match=r"not structs or layouts: jax.eval_shape"):
        ours(jax.ShapeDtypeStruct((64, 64), "float32"))
    assert jax.eval_shape(ours, x).shape == (64, 64)


def test_shardings_are_those_of_named_sharding():
    x = array(64, 64)
    layout = grid(x.shape, 4, 2)
    plan = gl.plan(jnp.tanh, x, machine=SMALL, fixed={"x": layout})
    mesh = mesh_of(2, 4)
    found = plan.shardings(mesh).arguments[0]
    same = layout.named_sharding(gl.DeviceGrid(mesh))
    assert isinstance(found, NamedSharding)
    assert found.is_equivalent_to(same, 2)
