"""Layouts that name the axes of the mesh which divide their grids."""

import pickle
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from laid_out import poisoned, read
from tiers import examples, few

import gridlayout as gl
from gridlayout.errors import PlacementError
from gridlayout.layouts.mesh_axes import MeshAxes, as_mesh_axes
from gridlayout.sharding.meshes.placement import Placement

COUNT = len(jax.devices())
NAMES = "x", "y", "z"
eight = pytest.mark.skipif(COUNT < 8, reason="the mesh has 8 devices")
CUBE = gl.DeviceGrid(AbstractMesh((2, 2, 2), NAMES))
if COUNT >= 8:
    MESH = jax.make_mesh((2, 2, 2), NAMES, axis_types=(AxisType.Auto,) * 3)
    CUBE = gl.DeviceGrid(MESH)
SQUARE = gl.DeviceGrid(AbstractMesh((4, 4), NAMES[:2]))


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layout_on(shape, entries, device=CUBE):
    """The layout that divides each dim by some axes."""
    entries = (*entries, *(None for _ in range(len(shape) - len(entries))))
    names = [() if x is None else (x,) if isinstance(x, str) else x for x in entries]
    grid = [int(np.prod([device.sizes[a] for a in own], dtype=int)) for own in names]
    return gl.GridLayout(shape, "float32", grid, collapse=[], mesh_axes=entries)


# -- the layout ------------------------------------------------------------------------------------


NAMED = gl.GridLayout((6, 8), grid=(2, 4), tile=(2, 2), mesh_axes=(None, ("y", "data b")))


def test_names_are_a_part_of_the_layout_and_of_its_texts():
    assert NAMED.mesh_axes == ((), ("y", "data b"))
    assert NAMED != NAMED.replace(mesh_axes=None) != NAMED.replace(mesh_axes=("y",))
    assert "mesh_axes=(None, ('y', 'data b'))" in repr(NAMED)
    assert gl.parse(repr(NAMED)) == gl.parse(str(NAMED)) == NAMED
    assert pickle.loads(pickle.dumps(NAMED)) == NAMED
    assert NAMED.physical_shape == NAMED.replace(mesh_axes=None).physical_shape
    assert gl.GridLayout((6,), grid=(2,), mesh_axes=P("y")).mesh_axes == (("y",),)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=2, unique=True))
def test_any_names_are_read_as_they_are_printed(names):
    layout = gl.GridLayout((6, 8), grid=(2, 4), mesh_axes=[(names[0],), (names[1],)])
    assert gl.parse(str(layout)) == gl.parse(repr(layout)) == layout


def test_a_change_that_leaves_the_grid_leaves_the_names():
    for kept in (NAMED.with_oob(0), NAMED.with_dtype("int8"), NAMED.replace(tile=None)):
        assert kept.mesh_axes == NAMED.mesh_axes
    assert NAMED.replace(grid=(2, 2)).mesh_axes is None
    assert NAMED.replace(grid=(2, 2), mesh_axes=("y",)).mesh_axes == (("y",), ())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x", "must hold|must be"),
        ((1, None), "must hold for each dim of the grid an axis of the mesh"),
        (("",), "must hold"),
        (("x", "y", "z"), "has 3 entries, but the grid has 2 dims"),
        (("x", ("y", "x")), "names axis 'x' twice"),
        ((["x"],), "must hold"),
    ],
)
def test_what_names_no_axes_is_refused(given, said):
    with pytest.raises(gl.LayoutError, match=said):
        gl.GridLayout((6, 8), grid=(2, 2), mesh_axes=given)


@pytest.mark.parametrize(
    "text", ['[{"x"}', "[{x}]", '[{"x",}]', '[{"x"}, {"x"}]', '[{"\\q"}]', "{}"]
)
def test_what_no_layout_prints_is_refused(text):
    head, tail = str(gl.GridLayout((6, 8), grid=(2, 2))).rsplit(">>", 1)
    assert gl.parse(f'{head}, mesh_axes = [{{"x"}}, {{}}]>>{tail}').mesh_axes == (("x",), ())
    with pytest.raises(gl.LayoutError):
        gl.parse(f"{head}, mesh_axes = {text}>>{tail}")


# -- where it is placed ----------------------------------------------------------------------------


def test_axes_that_the_mesh_does_not_have_are_refused():
    for entries, said in (
        (("w",), r"no axis 'w': its axes are x=4, y=4"),
        ((("x", "x0"),), "overlap"),
        (("x0", "x"), "overlap"),
    ):
        layout = gl.GridLayout((64, 64), grid=(8, 8), mesh_axes=entries)
        with pytest.raises(PlacementError, match=said):
            SQUARE.placement(layout)
    few_cores = gl.GridLayout((64, 64), grid=(2, 1), mesh_axes=("x",))
    with pytest.raises(PlacementError, match="2 cores along a dim can't be divided by 4 devices"):
        gl.on_grid(jnp.exp, SQUARE).report(few_cores)


def test_a_part_of_an_axis_and_several_cores_on_a_device():
    placed = SQUARE.placement(gl.GridLayout((64, 64), grid=(7, 2), mesh_axes=("y", "x1")))
    assert placed.axes == (("y0", "y1"), ("x1",))
    assert (placed.per_device, placed.slots) == ((2, 1), (8, 2))


def test_names_that_change_nothing_are_left_out():
    rule = gl.GridLayout((64, 64), grid=(4, 4))
    assert SQUARE.placements.normalized(rule.replace(mesh_axes=("x", "y"))) == rule
    assert SQUARE.placements.normalized(rule.replace(mesh_axes=(("x0", "x1"), "y"))) == rule
    swapped = rule.replace(mesh_axes=(("y0", "y1"), "x"))
    assert SQUARE.placements.normalized(swapped) == rule.replace(mesh_axes=("y", "x"))


ENTRIES = [
    entries
    for order in permutations(NAMES)
    for entries in (order[:1], (None, order[0]), order[:2], (order[:2],), (order[0], order[1:]))
]


@eight
@pytest.mark.parametrize("entries", few(ENTRIES, 8), ids=str)
@pytest.mark.parametrize("shape", [(8, 12), (7, 9)])
def test_elements_are_where_jax_puts_them(entries, shape):
    a = values(*shape)
    layout = layout_on(shape, entries)
    x = poisoned(a, layout, CUBE)
    np.testing.assert_array_equal(read(x), a)
    padded = np.pad(a, [(0, -n % k) for n, k in zip(shape, layout.grid, strict=True)])
    theirs = jax.device_put(padded, NamedSharding(MESH, P(*entries)))
    where = dict(zip(*_parts(theirs), strict=True))
    for device, part in zip(*_parts(x.storage), strict=True):
        np.testing.assert_array_equal(
            np.nan_to_num(part.reshape(where[device].shape)), where[device]
        )
    if shape == (8, 12):
        sharding = NamedSharding(MESH, P(*entries))
        assert layout.named_sharding(CUBE).is_equivalent_to(sharding, 2)
        assert gl.put(a, sharding).layout == gl.GridLayout.of(shape, sharding) == x.layout
        assert x.to_logical(sharding).sharding == sharding


def _parts(x):
    shards = sorted(x.addressable_shards, key=lambda s: s.device.id)
    return [s.device.id for s in shards], [np.asarray(s.data) for s in shards]


@eight
@pytest.mark.parametrize("entries", few(ENTRIES, 6), ids=str)
def test_relayouts_between_axes(entries):
    a = values(7, 9)
    x, there = poisoned(a, layout_on(a.shape, entries), CUBE), layout_on(a.shape, ("y", "x"))
    plan = gl.relayout_plan(x, there)
    moved = gl.relayout(x, there)
    np.testing.assert_array_equal(read(moved), a)
    assert moved.layout == CUBE.placements.normalized(there)
    np.testing.assert_array_equal(read(gl.relayout(moved, x.layout)), a)
    if CUBE.placement(x.layout) == CUBE.placement(there):
        assert (plan.how, plan.received) == ("nothing", 0)


# -- functions -------------------------------------------------------------------------------------


def chain(x):
    return jnp.tanh(x) * 2 + 1


def euler(x):
    def flux(q):
        r, m, e = q
        p = 0.4 * (e - 0.5 * m * m / r)
        return jnp.stack([m, m * m / r + p, (e + p) * m / r])

    q = jnp.stack([x * x + 1, x, x * x + 2], -1).T
    for _ in range(2):
        left, right = jnp.roll(q, 1, 1), jnp.roll(q, -1, 1)
        q = 0.5 * (left + right) - 0.1 * (flux(right) - flux(left))
    return q


FUNCTIONS = {
    "chain": chain,
    "softmax": jax.nn.softmax,
    "transpose": lambda x: x.T,
    "rows": lambda x: x[1:],
    "sum": lambda x: x.sum(0),
    "gram": lambda x: x @ x.T,
    "flat": lambda x: x.reshape(-1),
    "sort": lambda x: jnp.sort(x, 0),
    "roll": lambda x: jnp.roll(x, 1, 0),
    "twice": lambda x: jnp.concatenate([x, x]),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "stack": lambda x: jnp.stack([x, 2 * x]),
    "unstack": lambda x: sum(jnp.stack([x, 2 * x], -1).reshape(-1, 2).T),
    "broadcast": lambda x: jnp.broadcast_to(x, (3, *x.shape)),
    "repeat": lambda x: jnp.repeat(x, 2, 0),
    "flip": lambda x: x[::-1],
    "Euler": euler,
    "gradient": jax.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).sum()),
}


@pytest.mark.few(4)
@eight
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_jaxs_and_equal_axes_are_equal(name):
    """Other axes of the same size give the same values, for as many bytes."""
    fn, a = FUNCTIONS[name], values(16, 24)
    expected = np.asarray(fn(jnp.asarray(a)))
    received = set()
    for first, second in permutations(NAMES, 2):
        x = poisoned(a, layout_on(a.shape, (first, second)), CUBE)
        out = gl.on_grid(fn)(x)
        np.testing.assert_allclose(read(out), expected, rtol=1e-4, atol=1e-5)
        received.add(gl.on_grid(fn).report(x).bytes_moved)
    assert max(received) <= 1.5 * min(received), received


@pytest.mark.few(6)
@eight
@pytest.mark.parametrize("name", ["flip", "roll", "stack", "twice", "Euler", "rows", "gradient"])
@pytest.mark.parametrize("dim", [0, 1])
def test_axes_of_a_dim_in_any_order_are_equal(name, dim):
    fn, a = FUNCTIONS[name], values(16, 24)
    expected, received = np.asarray(fn(jnp.asarray(a))), []
    for axes in [("x", "y", "z"), ("z", "x", "y"), ("y", "x"), ("x", "z")]:
        x = poisoned(a, layout_on(a.shape, (*(None,) * dim, axes)), CUBE)
        out = gl.on_grid(fn)(x)
        np.testing.assert_allclose(read(out), expected, rtol=1e-4, atol=1e-5)
        received.append(gl.on_grid(fn).report(x).bytes_moved)
    assert received[1] <= 1.5 * received[0], received
    assert received[2] <= 1.5 * received[3], received


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("entries", [("y", None), ("z", "y"), (None, ("z", "x"))], ids=str)
def test_a_step_leaves_its_parameters_where_they_are(entries):
    w, x = values(16, 24), values(8, 16, seed=1)

    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    laid = (
        poisoned(w, layout_on(w.shape, entries), CUBE),
        poisoned(x, layout_on(x.shape, ("x", None)), CUBE),
    )
    out = gl.on_grid(step)(*laid)
    assert out.layout == laid[0].layout
    np.testing.assert_allclose(read(out), step(w, x), rtol=1e-4, atol=1e-5)
    again = jax.jit(gl.on_grid(step))(out, laid[1])
    np.testing.assert_allclose(read(again), step(step(w, x), x), rtol=1e-4, atol=1e-4)
    assert (laid[0] * 2 + 1).layout == laid[0].layout
    assert not gl.on_grid(chain).report(laid[0]).bytes_moved


@eight
def test_a_stated_sharding_is_the_results():
    x = poisoned(values(8, 12), layout_on((8, 12), ("x", None)), CUBE)
    for spec in (P("y"), P("z", "y"), P(None, ("y", "x"))):
        out = gl.on_grid(lambda x, s=spec: lax.with_sharding_constraint(x * 2, s))(x)
        assert out.layout == gl.GridLayout.of((8, 12), NamedSharding(MESH, spec))
        np.testing.assert_array_equal(read(out), 2 * read(x))
    there = layout_on((8, 12), ("z", None))
    assert gl.on_grid(lambda x: gl.with_layout(x * 2, there))(x).layout == there


@eight
def test_arrays_in_a_loop_and_in_a_file(tmp_path):
    layout = layout_on((8, 12), ("z", "y"))
    x = poisoned(values(8, 12), layout, CUBE)
    out, _ = lax.scan(lambda c, _: (c * 2, None), x, None, length=3)
    assert out.layout == layout
    np.testing.assert_array_equal(read(out), 8 * read(x))
    gl.save(tmp_path / "x", {"x": x})
    back = gl.restore(tmp_path / "x", CUBE)["x"]
    assert back.layout == layout
    np.testing.assert_array_equal(read(back), read(x))


# -- plans -----------------------------------------------------------------------------------------


def test_a_plan_divides_by_any_axis():
    """Rows of the batch over one axis, columns of a weight over an equal one: nothing is sent."""
    machine = gl.Machine("v5e 4x4")
    x, w = (jax.ShapeDtypeStruct(s, "bfloat16") for s in ((4096, 8192), (8192, 4096)))
    stated = {"x": P("x"), "w": P(None, "y")}
    plan = gl.plan(lambda x, w: x @ w, x, w, machine=machine, fixed=stated)
    assert plan.layouts["w"].grid == (1, 4)
    assert not sum(plan.simulation.links.values())
    free = gl.plan(lambda x, w: x @ w, x, w, machine=machine)
    assert free.time <= plan.time
    other = gl.plan(
        lambda x, w: x @ w, x, w, machine=machine, fixed={"x": P("x"), "w": P(None, "x")}
    )
    assert other.time > plan.time


def test_axes_by_their_names():
    axes = MeshAxes.of(("x", "y"), (4, 6))
    assert axes.in_factors(("y", "x")) == ("y0", "y1", "x0", "x1")
    assert axes.in_mesh_axes(("y1", "x0", "x1", "y0")) == ("y1", "x", "y0")
    assert axes.in_mesh_axes(axes.in_factors(("x1", "y"))) == ("x1", "y")
    assert as_mesh_axes([None, ("a", "b")], 3) == ((), ("a", "b"), ())


def test_the_order_of_axes_is_taken_from_a_placement_that_no_layout_states():
    # Of four devices along an axis, two may have a core each: no layout names the axis for them.
    there = Placement((1, 2, 4), ((), ("y0", "y1"), ("x0", "x1")), (1, 4, 4), (1, 1, 1))
    near = SQUARE.placements.near
    assert near(gl.GridLayout((16, 2, 128), grid=(1, 2, 4)), there).mesh_axes is None
    there = Placement((1, 4, 4), ((), ("y0", "y1"), ("x0", "x1")), (1, 4, 4), (1, 1, 1))
    found = near(gl.GridLayout((16, 2, 128), grid=(1, 2, 4)), there)
    assert found.mesh_axes == ((), ("y0",), ("x",))


@eight
def test_a_program_divides_its_values_by_any_of_equal_axes():
    a, received = values(3, 4096), set()

    def flux(q):
        r, m, e = q
        return jnp.stack([m, m * m / (r * r + 1), (e + r) * m])

    def step(q):
        return q - 0.1 * (flux(jnp.roll(q, -1, 1)) - flux(jnp.roll(q, 1, 1)))

    for axis in NAMES:
        x = gl.put(a, layout_on(a.shape, (None, axis)), CUBE)
        received.add(gl.on_grid(step).report(x).bytes_moved)
        np.testing.assert_allclose(
            read(gl.on_grid(step)(x)), jax.jit(step)(a), rtol=1e-4, atol=1e-5
        )
    assert len(received) == 1
    assert received.pop() <= 8 * 6 * 4 * 2
