"""Shardings of JAX that a function on the grid states: by names of the user's mesh."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from laid_out import is_grid, poisoned, read

import gridlayout as gl
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.stated import axes_of_dims
from gridlayout.sharding.stated_axes import stated_axes

COUNT = len(jax.devices())
pytestmark = pytest.mark.skipif(COUNT < 8, reason="the meshes have 8 devices")

U = P.UNCONSTRAINED
constrain = lax.with_sharding_constraint
# The axis of 4 devices is two axes, data0 and data1, in which arrays are placed.
NAMES = "data", "model"
DEVICE = gl.DeviceGrid(AbstractMesh((4, 2), NAMES))
if COUNT >= 8:
    MESH = jax.make_mesh((4, 2), NAMES, axis_types=(AxisType.Auto,) * 2)
    DEVICE = gl.DeviceGrid(MESH)


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X, W = values(10, 12), values(12, 7, seed=1)  # 4 devices divide no dim of the product evenly
EVEN = values(8, 12), values(12, 6, seed=1)


def laid(x, grid, device=DEVICE):
    return poisoned(x, gl.GridLayout(x.shape, x.dtype, grid), device)


def plain(fn, *args, kind=AxisType.Auto):
    """What JAX computes on one device, where a mesh of the same names divides nothing."""
    with jax.set_mesh(Mesh(DEVICE.mesh.devices[:1, :1], NAMES, axis_types=(kind,) * 2)):
        return jax.tree.map(np.asarray, jax.jit(fn)(*args))


def assert_same(found, expected):
    for a, b in zip(
        jax.tree.leaves(found, is_leaf=is_grid), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(read(a), b, rtol=2e-4, atol=1e-4)


@jax.custom_vjp
def doubled(x):
    return constrain(x * 2, P("data"))


doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (constrain(g * 2, P(None, "model")),))


def stepped(x, w):
    def step(h, _):
        return constrain(jnp.tanh(h @ w @ w.T), P("data", "model")), h.sum()

    return lax.scan(step, x, None, length=3)


def repeated(x, w):
    return lax.fori_loop(0, 3, lambda _, h: constrain(jnp.sin(h @ w @ w.T), P(None, "data")), x)


def chosen(x, w):
    first, second = (
        (lambda: constrain(x @ w, P("data"))),
        (lambda: constrain(x @ w, P(None, "model"))),
    )
    return lax.cond(x.sum() > 0, first, second)


def loss(w, x, fn=lambda y: constrain(y, P("data", "model"))):
    return (jnp.tanh(fn(x @ w)) ** 2).sum()


# What each function states for its constraints, in order: the grids of their results.
CASES = {
    "rows": (lambda x, w: constrain(x @ w, P("data")), [(4, 1)]),
    "columns": (lambda x, w: constrain(x @ w, P(None, "model")), [(1, 2)]),
    "both": (lambda x, w: constrain(x @ w, P("data", "model")), [(4, 2)]),
    "a tuple": (lambda x, w: constrain(x @ w, P(("data", "model"))), [(8, 1)]),
    "a tuple, turned": (lambda x, w: constrain(x @ w, P(("model", "data"))), [(8, 1)]),
    "replicated": (
        lambda x, w: constrain(constrain(x @ w, P("data")) * 2, P()), [(4, 1), (1, 1)]
    ),
    "one dim open": (
        lambda x, w: constrain(constrain(x @ w, P("data")) * 2, P(U, "model")), [(4, 1), (4, 2)]
    ),
    "another dim open": (lambda x, w: constrain(x, P("model", U)) @ w, [(2, 1)]),
    "a tree": (
        lambda x, w: constrain((x, [w]), (P("data"), [P(None, "model")]))[0], [(4, 1), (1, 2)]
    ),
    "a value inside": (lambda x, w: jnp.exp(constrain(x @ w, P("data"))).sum(0), [(4, 1)]),
    "operands": (
        lambda x, w: constrain(x, P(None, "data")) @ constrain(w, P("data")), [(1, 4), (4, 1)]
    ),
    "positions": (lambda x, w: x + constrain(jnp.arange(12.0), P("data")), [(4,)]),
    "vmap": (lambda x, w: jax.vmap(lambda r: constrain(r @ w, P("model")))(x), [(1, 2)]),
    "vmap, with a mesh axis": (
        lambda x, w: jax.vmap(lambda r: constrain(r @ w, P("model")), spmd_axis_name="data")(x),
        [(4, 2)],
    ),
    "scan": (stepped, [(4, 2)]),
    "fori_loop": (repeated, [(1, 4)]),
    "cond": (chosen, [(4, 1)]),
    "jit": (lambda x, w: jax.jit(lambda y: constrain(y, P("data")))(x @ w), [(4, 1)]),
    "grad": (lambda x, w: jax.grad(loss)(w, x), [(4, 2), (4, 2)]),
    "remat": (
        lambda x, w: jax.grad(jax.checkpoint(loss))(w, x), [(4, 2), (4, 2), (4, 2)]
    ),
    "custom_vjp": (lambda x, w: jax.grad(lambda w: loss(w, x, doubled))(w), [(4, 1), (1, 2)]),
}  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CASES)
def test_values_are_right_and_placed_as_stated(name):
    fn, grids = CASES[name]
    on = gl.on_grid(fn)
    arrays = laid(X, (2, 2)), laid(W, (3, 1))
    assert_same(on(*arrays), plain(fn, X, W))
    rows = [row for row in on.report(*arrays).rows if row.primitive == "sharding_constraint"]
    found = [row.outputs[0].grid for row in rows]
    assert [each for each in found if each in grids][: len(grids)] == grids or found == grids


@pytest.mark.parametrize(
    "spec", [P("data"), P(None, "model"), P("model", "data"), P(("data", "model")), P()]
)
def test_a_result_has_the_layout_that_is_stated(spec):
    found = gl.on_grid(lambda x, w: constrain(x @ w, spec))(laid(X, (2, 2)), laid(W, (3, 1)))
    there = NamedSharding(DEVICE.mesh, spec)
    assert found.layout.with_oob(None) == gl.GridLayout.of(found.shape, there, "float32")


def test_derivatives_around_a_call_state_the_same():
    arrays = laid(W, (3, 1)), laid(X, (2, 2))
    for fn in (loss, lambda w, x: loss(w, x, doubled)):
        on = gl.on_grid(fn)
        assert_same(jax.grad(on)(*arrays), plain(jax.grad(fn), W, X))
        assert_same(jax.jit(jax.grad(on, 1))(*arrays), plain(jax.grad(fn, 1), W, X))
    on = gl.on_grid(lambda x, w: constrain(x @ w, P("data")))
    tangents = jax.jvp(on, arrays[::-1], arrays[::-1])
    assert_same(tangents, plain(lambda x, w: (x @ w, 2 * x @ w), X, W))


SQUARE = gl.DeviceGrid(AbstractMesh((2, 2), NAMES))


def sent(fn, *args, device=SQUARE):
    rows = gl.on_grid(fn, device).report(*args).rows
    return [each for row in rows for each in row.collectives]


def test_of_equal_axes_the_named_one_divides():
    x = gl.GridLayout((8, 6), grid=(1, 1))
    for axis in NAMES:
        found = sent(lambda x: jnp.sin(constrain(x, P(axis))).sum(), x)  # noqa: B023
        assert [each.axes for each in found] == [(axis,)]
    both = sent(lambda x: constrain(jnp.sin(constrain(x, P("model"))), P("data")).sum(), x)
    assert [each.kind for each in both] == ["permute", "all_reduce"]


def test_an_array_that_is_placed_so_stays_as_it_is():
    x = gl.GridLayout((32,), grid=(16,))  # 2 cores on each device
    (row,) = gl.on_grid(lambda x: constrain(x, P(NAMES)), DEVICE).report(x).rows
    assert (row.outputs[0].grid, row.bytes_moved) == ((16,), 0)


def test_plans_and_simulations_follow_it():
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((64, 32), (32, 48), (48, 32))]

    def fn(x, up, down):
        return constrain(jax.nn.relu(x @ up), P(None, "model")) @ down

    on = gl.on_grid(fn, DEVICE)
    for simulation in (gl.plan(on, *shapes).simulation, gl.simulate(on, *shapes)):
        (found,) = [e for e in simulation.equations if e.name.startswith("sharding_constraint")]
        assert found.outs == "float32[64,48]@1x2"
    plan = gl.plan(gl.on_grid(fn, DEVICE), *shapes)
    with pytest.raises(gl.LayoutError, match="the plan is for another program"):
        gl.on_grid(lambda *xs: constrain(fn(*xs), P()), DEVICE, policy=plan).report(*shapes)
    other = lambda x, up, down: constrain(jax.nn.relu(x @ up), P("data")) @ down  # noqa: E731
    with pytest.raises(gl.LayoutError, match="the plan is for another program"):
        gl.on_grid(other, DEVICE, policy=plan).report(*shapes)


def test_a_function_sees_the_mesh_of_its_device_grid():
    seen = []

    def fn(x):
        seen.append(dict(jax.sharding.get_abstract_mesh().shape))
        return constrain(x, NamedSharding(jax.sharding.get_abstract_mesh(), P("model")))

    x = laid(X, (1, 1))
    assert gl.on_grid(fn)(x).layout.grid == (2, 1)
    with jax.set_mesh(MESH):
        assert gl.on_grid(lambda x: constrain(x, P("data")))(x).layout.grid == (4, 1)
    with jax.set_mesh(jax.make_mesh((4, 2), NAMES, axis_types=(AxisType.Explicit,) * 2)):
        assert gl.on_grid(lambda x: constrain(x, P("data")))(x).layout.grid == (4, 1)
    assert seen == [{"data": 4, "model": 2}]


def test_another_mesh_of_the_same_devices():
    other = Mesh(MESH.devices.reshape(2, 4), ("a", "b"))
    turned = Mesh(MESH.devices.T, ("a", "b"))
    assert_same(
        gl.on_grid(lambda x: constrain(x, NamedSharding(MESH, P("model"))))(laid(X, (1, 1))), X
    )
    for mesh, spec in ((other, P("b", "a")), (turned, P("a", "b")), (other, P(("a", "b")))):
        there = NamedSharding(mesh, spec)
        assert_same(gl.on_grid(lambda x: constrain(x, there) * 2)(laid(X, (3, 1))), X * 2)  # noqa: B023
    # What was the 2 devices of axis a is every other one of data now.
    spec = NamedSharding(turned, P("a", "b"))
    assert stated_axes(spec, 2, DEVICE) == (("model",), ("data0", "data1"))
    snake = Mesh(MESH.devices.ravel()[[0, 1, 3, 2, 4, 5, 7, 6]], ("a",))
    with pytest.raises(gl.LayoutError, match=r"in an order of devices that no axes of .* have"):
        gl.on_grid(lambda x: constrain(x, NamedSharding(snake, P("a"))))(laid(X, (1, 1)))
    few = Mesh(MESH.devices[:2, 0], ("a",))
    with pytest.raises(gl.LayoutError, match=r"is of other devices than DeviceGrid\(data=4"):
        gl.on_grid(lambda x: constrain(x, NamedSharding(few, P("a"))))(laid(X, (1, 1)))


# -- names of no mesh ------------------------------------------------------------------------------


def test_names_of_no_mesh_state_nothing():
    def fn(x):
        x = constrain(x, P("embed", ("mlp", "heads")))
        return constrain(constrain(x, P(None, "seq")), P("data")) + constrain(x, P("batch"))

    found = gl.on_grid(fn)(laid(X, (2, 2)))
    assert_same(found, 2 * X)
    rows = gl.on_grid(fn).report(laid(X, (2, 2))).rows
    grids = [row.outputs[0].grid for row in rows if row.primitive == "sharding_constraint"]
    assert grids == [(2, 2), (2, 2), (4, 1), (2, 2)]
    assert [row.note for row in rows][:2] == ["names axes of no mesh"] * 2


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (P("modle"), r"names an axis 'modle', which DeviceGrid\(data=4.*has an axis 'model'"),
        (P("data", "mlp"), r"names an axis 'mlp'.*name axes of the device grid's mesh alone"),
        (P(("data", "fsdp")), r"names an axis 'fsdp'"),
    ],
)
def test_misspelled_names_and_names_of_two_meshes_are_refused(spec, text):
    with pytest.raises(gl.LayoutError, match=text):
        gl.on_grid(lambda x: constrain(x, spec), DEVICE)(X)


def test_jax_refuses_what_fits_no_array():
    for spec, text in ((P(None, None, "data"), "rank|dimension"), (P("data", "data"), "duplicate")):
        with pytest.raises(Exception, match=text):
            gl.on_grid(lambda x: constrain(x, spec))(laid(X, (1, 1)))  # noqa: B023


def test_flax_annotations_need_no_mesh():
    dense = nn.Dense(
        7, kernel_init=nn.with_partitioning(nn.initializers.normal(), ("embed", "mlp"))
    )
    params = dense.init(jax.random.key(0), X)
    for device in (DEVICE, gl.DeviceGrid((2, 4))):
        on = gl.on_grid(dense.apply, device)
        assert_same(on(params, X), dense.apply(params, X))
        made = gl.on_grid(dense.init, device)(jax.random.key(0), X)
        assert_same(nn.unbox(made)["params"]["kernel"], nn.unbox(params)["params"]["kernel"])


def test_flax_rules_map_logical_names():
    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            init = nn.with_logical_partitioning(nn.initializers.normal(), ("embed", "mlp"))
            return nn.with_logical_constraint(nn.Dense(7, kernel_init=init)(x), ("batch", "mlp"))

    params = Layer().init(jax.random.key(0), X)
    on = gl.on_grid(lambda params, x: Layer().apply(params, x), DEVICE)
    with nn.logical_axis_rules([("batch", "data"), ("mlp", "model"), ("embed", None)]):
        found = on(params, laid(X, (1, 1)))
        rows = on.report(params, laid(X, (1, 1))).rows
    assert found.layout.grid == (4, 2)
    grids = [row.outputs[0].grid for row in rows if row.primitive == "sharding_constraint"]
    assert grids == [(1, 2), (4, 2)]
    assert_same(found, Layer().apply(params, X))


def test_nnx_states_the_sharding_of_what_it_makes():
    def fn(key, x):
        init = nnx.with_partitioning(nnx.initializers.normal(), (None, "model"))
        return nnx.Linear(12, 7, kernel_init=init, rngs=nnx.Rngs(key))(x)

    rows = gl.on_grid(fn, DEVICE).report(jax.random.key(0), laid(X, (1, 1))).rows
    assert (1, 2) in [row.outputs[0].grid for row in rows if row.primitive == "sharding_constraint"]


# -- Explicit axes ---------------------------------------------------------------------------------


def einsum(x, w, spec=P(*NAMES)):  # noqa: B008
    return jnp.einsum("ij,jk->ik", x, w, out_sharding=spec)


def scanned(x, w):
    def step(h, _):
        return einsum(jnp.tanh(einsum(h, w, P("data"))), w.T, P("data")), None

    return lax.scan(step, jax.sharding.reshard(x, P("data")), None, length=3)[0]


EXPLICIT = {
    "einsum": (einsum, (4, 2)),
    "reshard": (lambda x, w: jax.sharding.reshard(x @ w, P(None, "model")), (1, 2)),
    "zeros": (lambda x, w: x @ w + jnp.zeros((8, 6), out_sharding=P("data")), (4, 1)),
    "reshape": (lambda x, w: jnp.reshape(x @ w, (4, 12), out_sharding=P("data")), (4, 1)),
    "scan": (scanned, (4, 1)),
    "grad": (lambda x, w: jax.grad(lambda w: (einsum(x, w) ** 2).sum())(w), (4, 2)),
    "vmap": (
        lambda x, w: jax.vmap(lambda r: jnp.matmul(r, w, out_sharding=P("model")))(x), (1, 2)
    ),
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("name", EXPLICIT)
def test_shardings_of_explicit_axes_are_requests_too(name):
    fn, grid = EXPLICIT[name]
    expected = plain(fn, *EVEN, kind=AxisType.Explicit)
    x, w = EVEN
    found = gl.on_grid(fn)(laid(x, (2, 2)), laid(w, (3, 1)))
    assert_same(found, expected)
    rows = gl.on_grid(fn).report(laid(x, (2, 2)), laid(w, (3, 1))).rows
    stated = [row for row in rows if row.primitive in ("sharding_constraint", "reshard")]
    assert grid in [row.outputs[0].grid for row in stated]


@pytest.mark.few(1)
@pytest.mark.parametrize("fn", [einsum, scanned, jax.checkpoint(scanned)])
def test_transformations_around_functions_of_explicit_axes(fn):
    x, w = EVEN[0] / 8, EVEN[1] / 8
    arrays = laid(x, (2, 2)), laid(w, (3, 1))
    squared = lambda x, w: (fn(x, w) ** 2).sum()  # noqa: E731
    on = gl.on_grid(squared)
    slopes = plain(jax.grad(squared, (0, 1)), x, w, kind=AxisType.Explicit)
    assert_same(jax.grad(on, (0, 1))(*arrays), slopes)
    assert_same(jax.jit(jax.grad(on, (0, 1)))(*arrays), slopes)
    tangents = plain(lambda x, w: jax.jvp(fn, (x, w), (x, w)), x, w, kind=AxisType.Explicit)
    assert_same(jax.jvp(gl.on_grid(fn), arrays, arrays), tangents)
    batch = np.stack([x, 2 * x, -x])
    mapped = plain(jax.vmap(fn, (0, None)), batch, w, kind=AxisType.Explicit)
    layout = gl.GridLayout(batch.shape, "float32", (1, 2, 3), collapse=[])
    assert_same(
        jax.vmap(gl.on_grid(fn), (0, None))(poisoned(batch, layout, DEVICE), arrays[1]), mapped
    )


def at(*spec):
    return NamedSharding(DEVICE.mesh, P(*spec))


def put(x, *spec):
    return jax.device_put(x, at(*spec))


def jitted(fn, **shardings):
    return lambda *args: jax.jit(fn, **shardings)(*args)


def product(x, w):
    return x @ w


def put_in_steps(x, w):
    def step(h, _):
        return put(jnp.tanh(h @ w @ w.T), "data", "model"), None

    return lax.scan(step, x, None, length=3)[0]


# As for `CASES`, by `jax.device_put` and `jax.jit`, which JAX allows only for dims that divide.
if COUNT >= 8:
    PUTS = {
        "put": (lambda x, w: put(x @ w, "data") * 2, [(4, 1)]),
        "put replicated": (lambda x, w: put(put(x @ w, "data"), None, None), [(4, 1), (1, 1)]),
        "put in a scan": (put_in_steps, [(4, 2)]),
        "grad of put": (
            lambda x, w: jax.grad(lambda w: (put(x @ w, "data", "model") ** 2).sum())(w),
            [(4, 2)],
        ),
        "results": (jitted(product, out_shardings=at("data")), [(4, 1)]),
        "operands": (
            jitted(product, in_shardings=(at(None, "model"), at("model"))), [(1, 2), (2, 1)]
        ),
        "both": (
            jitted(product, in_shardings=(at("data"), None), out_shardings=at(None, "model")),
            [(4, 1), (1, 2)],
        ),
        "a tree": (
            lambda x, w: jax.jit(
                lambda d: {"a": d["x"] @ w, "b": d["x"].sum(0)},
                out_shardings={"a": at("model"), "b": at("data")},
            )({"x": x}),
            [(2, 1), (1, 4)],
        ),
        "vmap of results": (
            lambda x, w: jax.vmap(jitted(lambda r: r @ w, out_shardings=at("model")))(x), [(1, 2)]
        ),
        "grad of results": (
            lambda x, w: jax.grad(
                lambda w: (jax.jit(product, out_shardings=at("data"))(x, w) ** 2).sum()
            )(w),
            [(4, 1), (4, 1)],
        ),
    }  # fmt: skip
else:
    PUTS = {}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", PUTS)
def test_shardings_of_device_put_and_jit_are_requests(name):
    fn, grids = PUTS[name]
    x, w = EVEN
    on, arrays = gl.on_grid(fn), (laid(x, (2, 2)), laid(w, (3, 1)))
    assert_same(on(*arrays), jax.tree.map(np.asarray, jax.jit(fn)(x, w)))
    rows = [row for row in on.report(*arrays).rows if row.primitive == "sharding_constraint"]
    assert [row.outputs[0].grid for row in rows] == grids


def test_what_jax_refuses_says_what_takes_all_dims():
    arrays = laid(X, (1, 1)), laid(W, (1, 1))
    uneven = (einsum, lambda x, w: put(x, "data"), jitted(product, out_shardings=at("data")))
    for fn in uneven:
        with pytest.raises(ValueError, match=r"evenly divide") as error:
            gl.on_grid(fn)(*arrays)
        assert any("with_sharding_constraint" in note for note in error.value.__notes__)


def test_derivatives_state_nothing():
    # JAX reshards a cotangent to the type of its argument, which divides no Auto axis.
    first = lambda s: jax.nn.log_softmax(s)[:, :1].sum() + s.sum()  # noqa: E731
    x, slope = laid(X, (4, 2)), gl.on_grid(jax.grad(first))
    assert_same(slope(x), plain(slope.fn, X))
    rows = slope.report(x).rows
    assert not [row for row in rows if row.primitive == "reshard" and row.collectives]
    assert slope(x).layout.core_shape == (4, 2)


# -- stated axes -----------------------------------------------------------------------------------


def test_stated_axes_by_name():
    mesh = DEVICE.mesh.abstract_mesh
    at = lambda *spec: stated_axes(NamedSharding(mesh, P(*spec)), 2, DEVICE)  # noqa: E731
    assert at("data") == (("data0", "data1"), ())
    assert at(U, ("model", "data")) == (None, ("model", "data0", "data1"))
    assert at(U, U) is None
    assert at() == ((), ())
    other = AbstractMesh((2, 4), NAMES)
    with pytest.raises(gl.LayoutError, match="make the device grid from that mesh"):
        stated_axes(NamedSharding(other, P("data")), 2, DEVICE)


def test_axes_of_dims_are_of_equal_blocks_alone():
    def axes(shape, grid, **more):
        layout = gl.GridLayout(shape, "float32", grid, **more)
        return axes_of_dims(Sharded(layout, DEVICE.placement(grid)))

    assert axes((10, 7), (4, 2)) == (("data0", "data1"), ("model",))
    assert axes((16, 7), (8, 1)) == (("model", "data0", "data1"), ()) or axes((16, 7), (8, 1))
    assert axes((12, 7), (3, 1)) is None  # the last device has an idle slot: 4, 4, 4, 0 rows
    assert axes((3, 4, 6), (4, 1), collapse=[(0, 2)]) is None


# -- specs in calls of the library -----------------------------------------------------------------

SPECS = [P("model"), P("data", "model"), P(("model", "data")), NamedSharding(MESH, P("model")), P()]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_with_layout_takes_a_spec(spec):
    x = laid(X, (4, 1))
    sharding = spec if isinstance(spec, NamedSharding) else NamedSharding(MESH, spec)
    expected = gl.GridLayout.of(X.shape, sharding)
    inside = gl.on_grid(lambda x: gl.with_layout(x + 1, spec))(x)
    for found, value in ((inside, X + 1), (gl.with_layout(x, spec), X)):
        assert found.layout.with_oob(None) == expected
        assert_same(found, value)
    slope = jax.grad(gl.on_grid(lambda x: (gl.with_layout(x, spec) ** 2).sum()))(x)
    assert_same(slope, 2 * X)
    assert gl.with_layout(X, spec) is X or (gl.with_layout(X, spec) == X).all()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (P("rows"), "names axis 'rows', but the mesh has data, model"),
        (P(None, None, "data"), "has 3 entries, but shape"),
        (P(U), "leaves a dim open"),
        (NamedSharding(AbstractMesh((2, 4), NAMES), P("data")), "is of another mesh than"),
    ],
)
def test_with_layout_refuses_specs_that_do_not_fit(spec, words):
    x = laid(X, (4, 1))
    with pytest.raises(gl.LayoutError, match=words):
        gl.with_layout(x, spec)
    with pytest.raises(gl.LayoutError, match=words):
        gl.on_grid(lambda x: gl.with_layout(x, spec))(x)


def test_calls_without_devices_use_the_mesh_that_is_set():
    with jax.set_mesh(MESH):
        by_spec = gl.put(X, P("data"))
        tree = gl.put({"x": X, "count": 3})
        in_layout = gl.put(X, gl.GridLayout(X.shape, grid=(4, 1)))
        lifted = gl.on_grid(lambda x: x + 1)(X)
        simulation = gl.simulate(jnp.exp, jax.ShapeDtypeStruct(X.shape, X.dtype))
    for found in (by_spec, tree["x"], in_layout, lifted):
        assert found.device == DEVICE
    assert by_spec.layout == in_layout.layout == gl.GridLayout(X.shape, grid=(4, 1))
    assert_same(lifted, X + 1)
    assert simulation.mesh == DEVICE.sizes
    for call in (lambda: gl.put(X, P("data")), lambda: gl.put(X), lambda: gl.on_grid(jnp.exp)(X)):
        with pytest.raises(gl.LayoutError, match=r"jax.set_mesh\(mesh\)"):
            call()


def test_what_runs_without_arguments_is_not_kept_for_the_next_mesh():
    ones = gl.on_grid(lambda: jnp.ones((8, 8)))
    for mesh in (MESH, jax.make_mesh((8,), ("all",), axis_types=(AxisType.Auto,))):
        with jax.set_mesh(mesh):
            assert ones().device == gl.DeviceGrid(mesh)
