"""What results hold: grids and tiles that fit them, and how much padding there is at most."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiers
from deciding import Traced
from devices import turn as device_of
from jax.sharding import AbstractMesh
from laid_out import assert_same, is_grid
from test_primitives import DEVICE, TABLE, drawn, ways
from tiers import few

import gridlayout as gl
from gridlayout.caching import drop_all
from gridlayout.ops.array import fitting
from gridlayout.sharding.limits import LIMITS

COUNT = len(jax.devices())
MESH = gl.DeviceGrid((4, 2) if COUNT == 8 else (COUNT,))
NO_DEVICES = gl.DeviceGrid(AbstractMesh((4, 2), ("x", "y")))
X = np.random.default_rng(0).uniform(-1, 1, (530, 630)).astype("f4")
TILED = gl.GridLayout((530, 630), grid=(4, 2), tile=(32, 32))


def ratio(layout, device):
    """How many times as large as its elements the storage of an array is."""
    return np.prod(device.storage_shape(layout)) / layout.size


# -- what results hold -----------------------------------------------------------------------------


@pytest.fixture(name="strict")
def fixture_strict(monkeypatch):
    """No storage is too small to tell: small arrays are held to the bound too."""
    found = dataclasses.replace(LIMITS, page_bytes=0, core_bytes=32)
    monkeypatch.setattr(fitting, "LIMITS", found)
    drop_all()
    yield
    drop_all()


def places_of(arrays, seed, device):
    """Random layouts; of every other seed those that waste at most half of their storage."""
    rng = np.random.default_rng(seed)
    found = []
    for a in arrays:
        place = drawn(a.shape, rng)
        while seed % 2 and ratio(place, device) > 2:
            place = drawn(a.shape, rng)
        found.append(place.with_dtype(a.dtype))
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", TABLE)
def test_no_result_holds_more_than_twice_its_elements_or_than_its_operands_did(kind, strict):
    arrays, _ = TABLE[kind]
    traced = [(name, Traced(fn, arrays)) for name, fn in ways(kind)]
    for seed in range(4 if tiers.ALL else 2):
        device = device_of(DEVICE, seed)
        places = places_of(arrays, seed, device)
        most = max(2, *(ratio(place, device) for place in places))
        for name, function in traced:
            for spec in function.program(places, device).results:
                if spec.shape and 0 not in spec.shape:
                    held = ratio(spec.layout, device)
                    assert held <= most + 1e-9, (name, seed, places, spec.layout)


# Functions of one matrix: how many times the bytes of its elements a result takes at most.
SMALL = {
    "reshape": lambda x: x.reshape(-1),
    "row": lambda x: x[0],
    "column": lambda x: x[:, 0],
    "sum of rows": lambda x: x.sum(0),
    "sum of columns": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1, keepdims=True),
    "argmax": lambda x: x.argmax(1),
    "part": lambda x: x[:3, :5],
    "strides": lambda x: x[5:500:100, 3],
    "product": lambda x: x @ x[0],
    "rows": lambda x: jnp.concatenate([x[:2], x[-1:]]),
    "sorted": lambda x: jnp.sort(x[:, :7], 0),
    "one of each": lambda x: x[jnp.arange(9), jnp.arange(9)],
    "cumulative": lambda x: jnp.cumsum(x[3]),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [n for n in SMALL if tiers.ALL or n != "reshape"])
def test_results_of_a_tiled_matrix_hold_what_they_are(name):
    # So large an array is not laid out element by element.
    x = gl.from_physical(gl.put(X, TILED.with_oob(np.nan), MESH).physical, TILED, MESH)
    found = gl.on_grid(SMALL[name])(x)
    assert_same(found, jax.jit(SMALL[name])(X), rtol=1e-4, atol=1e-3)
    data = found.size * found.dtype.itemsize
    assert found.storage.nbytes <= max(1.5 * data, 1024)


def test_dims_that_leave_take_their_grid_and_tile_along():
    def layout(fn):
        (result,) = gl.on_grid(fn, NO_DEVICES).report(TILED).program.results
        return result.layout.with_oob(None)

    assert layout(lambda x: x.sum(0)) == gl.GridLayout((630,), grid=(1, 2), tile=(1, 32))
    rows = gl.GridLayout((530,), grid=(4, 1), tile=(32, 1), linear="(d0) -> (d0, 0)")
    assert layout(lambda x: x.sum(1)) == rows
    assert layout(lambda x: x.reshape(-1)) == gl.GridLayout((333900,), grid=(8,), tile=(32,))
    assert layout(lambda x: x[:3, :5]).nbytes <= 96


def test_what_fits_keeps_the_operands_grid_and_tile():
    report = gl.on_grid(lambda x: x[:265] @ x[:265].T, NO_DEVICES).report(TILED)
    outputs = [x for row in report.rows for x in row.outputs]
    assert {x.tile for x in outputs} == {(32, 32)}
    assert [x.grid for x in outputs if x.shape != (630, 265)] == [(4, 2), (4, 2)]
    assert [x.grid for x in outputs if x.shape == (630, 265)] == [(2, 4)]  # its transpose


def test_a_policy_of_ones_own_is_obeyed():
    def wasteful(shape, dtype, like, device):
        return gl.GridLayout(shape, dtype, (4, 2), (32, 32))

    (out,) = gl.on_grid(lambda x: x[:3, :5] + 1, NO_DEVICES, wasteful).report(TILED).program.results
    assert out.layout.tile == (32, 32)


def test_reductions_that_stay_on_their_cores_send_no_more_than_they_add_up():
    for fn in (lambda x: x.sum(0), lambda x: x - x.mean(1, keepdims=True)):
        report = gl.on_grid(fn, NO_DEVICES).report(TILED)
        assert {c.kind for row in report.rows for c in row.collectives} == {"all_reduce"}


# -- layouts that users ask for --------------------------------------------------------------------


def test_with_layout_is_obeyed_and_warns_of_waste():
    wasteful = gl.GridLayout((630,), grid=(4, 2), tile=(32, 32))
    with pytest.warns(gl.LayoutWarning, match=r"holds 320.0 KiB for 2.5 KiB of elements.*Give a"):
        (out,) = (
            gl.on_grid(lambda x: gl.with_layout(x.sum(0), wasteful), NO_DEVICES)
            .report(TILED)
            .program.results
        )
    assert out.layout.with_oob(None) == wasteful


@pytest.mark.filterwarnings("ignore::gridlayout.LayoutWarning")
def test_what_is_made_of_it_stays_there():
    wasteful = gl.GridLayout((630,), grid=(4, 2), tile=(32, 32))

    def fn(x):
        return gl.with_layout(x.sum(0), wasteful) + 1

    (out,) = gl.on_grid(fn, NO_DEVICES).report(TILED).program.results
    assert out.layout.with_oob(None) == wasteful


@pytest.mark.parametrize(
    "layout", [gl.GridLayout((3,), grid=(1, 1), tile=(32, 32)), gl.GridLayout((9000,), grid=(8,))]
)
def test_small_layouts_and_full_ones_do_not_warn(layout):
    gl.with_layout(jnp.zeros(layout.shape), layout)


# -- reports ---------------------------------------------------------------------------------------


def test_reports_say_what_a_device_holds_and_what_of_it_is_padding():
    report = gl.on_grid(lambda x: jnp.exp(x).sum(0), NO_DEVICES).report(TILED)
    held = {row.primitive: (row.held_bytes, row.padding_bytes) for row in report.rows}
    # A device has 160 rows and 320 columns of 133 and 315.
    assert held["exp"] == (160 * 320 * 4, 160 * 320 * 4 - -(-530 * 630 * 4 // 8))
    assert held["reduce_sum"] == (320 * 4, 320 * 4 - 315 * 4)
    assert "bytes held  padding" in str(report).splitlines()[0]
    first, last = report.by_padding().rows
    assert (first.primitive, last.primitive) == ("exp", "reduce_sum")


# -- operands in several layouts -------------------------------------------------------------------

WHOLE = gl.GridLayout((64, 128), grid=(1, 1))
SPREAD = gl.GridLayout((64, 128), grid=(4, 2))


@pytest.mark.parametrize("operands", [(WHOLE, SPREAD), (SPREAD, WHOLE)])
def test_elementwise_results_are_where_nothing_moves_to(operands):
    report = gl.on_grid(lambda x, y: x * y, NO_DEVICES).report(*operands)
    assert not report.bytes_moved
    assert report.program.results[0].layout.grid == (4, 2)


@pytest.mark.skipif(COUNT != 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(1, 1), (2, 1), (1, 4)])
def test_devices_that_hold_nothing_compute_where_that_pays_and_results_stay(grid):
    """All devices compute a long loop; what takes less than sending anything stays."""
    device = gl.DeviceGrid((2, 4))
    x = np.random.default_rng(0).uniform(-1, 1, (512, 515)).astype("f4")
    laid = gl.put(x, gl.GridLayout(x.shape, grid=grid, collapse=[]), device)

    def waves(x, count):
        return jax.lax.fori_loop(0, count, lambda _, v: jnp.sin(v) + x, x)

    found = {}
    for count in (2, 50):
        fn = gl.on_grid(lambda x, count=count: waves(x, count))
        report, out = fn.report(laid), fn(laid)
        assert out.layout.grid == grid
        np.testing.assert_allclose(np.asarray(out), waves(x, count), rtol=1e-5, atol=1e-5)
        made = [y for row in report.rows for y in row.outputs if y is not None and y.grid]
        found[count] = max(np.prod(y.grid) for y in made)
    assert found[50] == 8
    small = gl.put(x[:8, :8], gl.GridLayout((8, 8), grid=grid, collapse=[]), device)
    assert gl.on_grid(jnp.sin).report(small).bytes_moved == 0


@pytest.mark.parametrize("tile", [None, (32, 32)])
@pytest.mark.parametrize("name", ["sum", "reshape", "sort"])
def test_results_of_one_operation_keep_the_grid_and_the_tile(name, tile):
    """What is chosen inside changes no result."""
    fns = {"sum": lambda x: x.sum(0), "reshape": jnp.ravel, "sort": lambda x: jnp.sort(x, 0)}
    grids = {"sum": (1, 1), "reshape": (2,), "sort": (2, 1)}
    layout = gl.GridLayout((512, 512), grid=(2, 1), tile=tile)
    report = gl.on_grid(fns[name], device=NO_DEVICES).report(layout)
    (out,) = report.rows[-1].outputs
    assert out.grid == grids[name]
    assert (out.tile is None) == (tile is None)


def test_the_next_value_of_an_operand_is_where_that_is():
    def step(p, m, g):
        m = 0.9 * m + g
        return p - m, m

    layouts = (WHOLE, SPREAD, gl.GridLayout((64, 128), grid=(8, 1)))
    results = gl.on_grid(step, NO_DEVICES).report(*layouts).program.results
    assert [out.layout.grid for out in results] == [(1, 1), (4, 2)]


def test_a_called_function_with_a_constant_array_has_next_values():
    constant = jnp.ones((64, 128), "float32")
    inner = jax.jit(lambda p, g: p + constant * g)
    results = gl.on_grid(lambda p, g: (inner(p, g), g), NO_DEVICES).report(WHOLE, SPREAD)
    assert [out.layout.grid for out in results.program.results] == [(1, 1), (4, 2)]


# -- steps of training -----------------------------------------------------------------------------

RNG = np.random.default_rng(1)
PARAMETERS = {
    "w": RNG.normal(size=(60, 130)).astype("f4"),
    "b": np.zeros(130, "f4"),
    "v": RNG.normal(size=(130, 30)).astype("f4"),
}
REPLICATED = {
    name: gl.GridLayout(a.shape, grid=(1,) * a.ndim, collapse=[]) for name, a in PARAMETERS.items()
}
PLACES = {
    "replicated": REPLICATED,
    "sharded": None,
    "mixed": {**REPLICATED, "w": gl.GridLayout((60, 130), grid=(4, 2), tile=(32, 32))},
}
OPTIMIZERS = {
    "adam": optax.adam(1e-3),
    "adamw": optax.adamw(1e-3),
    "lion": optax.lion(1e-3),
    "lbfgs": optax.lbfgs(memory_size=3),
}


def loss(p, x):
    return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]) ** 2)


def step_of(name):
    """A step with an optimizer: parameters, its state, and a batch."""
    optimizer = OPTIMIZERS[name]

    def step(p, state, x):
        value, grads = jax.value_and_grad(loss)(p, x)
        more = {}
        if name == "lbfgs":
            more = {"value": value, "grad": grads, "value_fn": lambda p: loss(p, x)}
        updates, state = optimizer.update(grads, state, p, **more)
        return optax.apply_updates(p, updates), state, value

    return step


def layouts_of(tree):
    leaves = jax.tree.leaves(tree, is_leaf=is_grid)
    return [x.layout if is_grid(x) else None for x in leaves]


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "place"), few(itertools.product(OPTIMIZERS, PLACES), 3))
def test_three_steps_of_training_are_one_program(name, place, compilations):
    batch = RNG.normal(size=(40, 60)).astype("f4")
    x = gl.put(batch, gl.GridLayout((40, 60), grid=(8, 1)), MESH)
    p = gl.put(PARAMETERS, MESH, layouts=PLACES[place])
    state = gl.on_grid(OPTIMIZERS[name].init)(p)
    # JAX itself compiles anew where numbers were weakly typed.
    state = jax.tree.map(lambda a: a if is_grid(a) else np.asarray(a), state, is_leaf=is_grid)
    step, before, counts = step_of(name), layouts_of((p, state)), []
    fn = gl.on_grid(step)
    plain = jax.tree.map(np.asarray, (p, state), is_leaf=is_grid)
    for _ in range(3):
        first = compilations()
        p, state, value = fn(p, state, x)
        counts.append(compilations() - first)
    assert counts == [1, 0, 0]
    assert layouts_of((p, state)) == before
    for _ in range(3):
        *plain, expected = jax.jit(step)(*plain, batch)
    np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-3)
    for key in p:
        np.testing.assert_allclose(np.asarray(p[key]), plain[0][key], rtol=1e-2, atol=1e-3)


@pytest.fixture(name="compilations", scope="module")
def fixture_compilations():
    """How many programs were compiled so far."""
    seen = []

    def listen(name, *_, **__):
        if name.endswith("backend_compile_duration"):
            seen.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield lambda: len(seen)
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
def test_small_arrays_that_all_devices_have_are_not_gathered():
    device, layout = gl.DeviceGrid((2, 4)), gl.GridLayout((64, 40), grid=(2, 4), collapse=[])
    x = np.random.default_rng(0).standard_normal((64, 40), np.float32)
    order, bias = np.arange(40, dtype=np.int32)[::-1].copy(), np.ones(40, np.float32)

    def fn(x, bias):
        return (x + bias) * jnp.asarray(bias)[order].sum() + jnp.asarray(x.shape).max()

    given = gl.put(x, layout, device)
    np.testing.assert_allclose(gl.on_grid(fn)(given, bias), fn(x, bias), rtol=1e-5)
    assert gl.on_grid(fn).report(given, bias).bytes_moved == 0
    # But a large result is divided.
    outer = gl.on_grid(lambda x: x @ x.T, device=device)
    rows = np.random.default_rng(0).standard_normal((512, 4), np.float32)
    assert outer(rows).layout.num_cores == 8
    assert outer.report(rows).rows[-1].outputs[0].num_cores == 8
