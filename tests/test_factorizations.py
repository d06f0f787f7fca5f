"""Factors and triangular systems of one matrix, in panels on all devices, and their price."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from jax import lax
from laid_out import assert_same, poisoned
from machines import FAST, with_latency
from tiers import few

import gridlayout as gl
from gridlayout.ops.primitives import factorizations, panels

COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH, machine=FAST)
SLOW = gl.DeviceGrid(MESH, machine=with_latency(1.0))
RNG = np.random.default_rng(0)
pytestmark = pytest.mark.skipif(COUNT == 1, reason="one device has all")


def positive(n, dtype="f4"):
    root = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype == "c8" else 0)
    return (root @ root.conj().T + n * np.eye(n)).astype(dtype)


def laid(a, grid=(3, 2), tile=(8, 4), device=DEVICE):
    return poisoned(a, gl.GridLayout(a.shape, a.dtype, grid, tile), device)


def row_of(report, name):
    return next(row for row in report.rows if row.primitive == name)


def lower(a):
    return jnp.tril(lax.linalg.cholesky(a, symmetrize_input=False))


def force_slots(monkeypatch, count):
    """Each device has so many blocks, whatever that takes."""
    force = lambda b, op, rule, whole, *values: rule(b, op, *values, slots=count)  # noqa: E731
    monkeypatch.setattr(factorizations, "by_slots", force)
    return count


@pytest.fixture(params=few([1, 0], 1))
def slots(request, monkeypatch):
    return force_slots(monkeypatch, panels.slots_of(COUNT)[request.param])


def test_blocks_are_dealt_in_turn():
    for devices in (2, 3, 6, 8, 16):
        for count in panels.slots_of(devices):
            dealt = panels.Panels(("x",), devices, count, 1, devices * count, 0)
            seen = {}
            for slot in range(count):
                pairs = dealt._pairs(slot)
                assert sorted(to for _, to in pairs) == list(range(devices))
                seen |= {d * count + slot: to for d, to in pairs}
            assert seen == {block: block % devices for block in range(devices * count)}


@pytest.mark.parametrize("dtype", few(["f4", "c8"], 1))
def test_cholesky_s_factor_of_one_matrix_in_panels(slots, dtype):
    a = positive(4 * COUNT + 5 + slots, dtype)
    fn, x = gl.on_grid(lower), laid(a)
    row = row_of(fn.report(x), "cholesky")
    assert (row.how, row.outputs[0].grid) == ("rule", x.layout.grid)
    assert "panels of" in row.note
    assert row.device_flops < row.flops
    assert_same(fn(x), jnp.linalg.cholesky(a), rtol=1e-4, atol=1e-4)


def test_what_is_not_positive_has_no_factor_anywhere(slots):
    a = positive(3 * COUNT + slots)
    a[-1, -1] = -1
    found = np.asarray(
        gl.on_grid(lambda a: lax.linalg.cholesky(a, symmetrize_input=False))(laid(a))
    )
    assert np.isnan(found[np.tril_indices(len(a))]).all()


SHAPES = {"tall": (9, -4), "square": (0, 0), "wide": (-5, 7)}


@pytest.mark.parametrize("kind", few(SHAPES, 1))
def test_lu_factors_of_one_matrix_in_panels(slots, kind):
    more, columns = SHAPES[kind]
    a = RNG.normal(size=(3 * COUNT + 4 + more + slots, 3 * COUNT + 4 + columns)).astype("f4")
    fn = gl.on_grid(lambda a: tuple(lax.linalg.lu(a)))
    row = row_of(fn.report(laid(a)), "lu")
    assert (row.how, "panels of" in row.note) == ("rule", True)
    (found, pivots, order), expected = fn(laid(a)), lax.linalg.lu(a)
    np.testing.assert_array_equal(np.asarray(pivots), expected[1])
    np.testing.assert_array_equal(np.asarray(order), expected[2])
    assert_same(found, expected[0], rtol=1e-3, atol=1e-4)


def test_a_column_of_zeros_is_factored_as_jax_does():
    a = RNG.normal(size=(2 * COUNT + 3,) * 2).astype("f4")
    a[:, 3] = 0
    assert_same(gl.on_grid(lambda a: lax.linalg.lu(a)[0])(laid(a)), lax.linalg.lu(a)[0], 1e-3, 1e-4)


def test_systems_and_gradients_of_one_matrix_are_jaxs(monkeypatch):
    # Panels are compiled one by one: those of fewer devices are fewer.
    if not tiers.ALL:
        force_slots(monkeypatch, 1)
    device = DEVICE if tiers.ALL or COUNT < 4 else gl.DeviceGrid((2, 2), machine=FAST)
    n = 40 * device.size + 3  # of which products are most
    a, y = positive(n), RNG.normal(size=n).astype("f4")

    def fn(a, y):
        factor = jnp.linalg.cholesky(a)
        x = jax.scipy.linalg.cho_solve((factor, True), y)
        return x.sum() + jnp.sin(jnp.linalg.solve(a, y)).sum() + jnp.linalg.slogdet(a)[1]

    given = laid(a, device=device), poisoned(y, gl.GridLayout(y.shape, grid=(3,)), device)
    report = gl.on_grid(fn).report(*given)
    assert not {"cholesky", "lu", "triangular_solve"} & {row.primitive for row in report.fallbacks}
    grad = jax.jit(jax.grad(gl.on_grid(fn), (0, 1)))
    assert_same(grad(*given), jax.jit(jax.grad(fn, (0, 1)))(a, y), rtol=1e-3, atol=1e-4)


SYSTEMS = [
    {"left_side": left, "lower": low, "transpose_a": turned > 0, "conjugate_a": turned == 2}
    for left in (True, False)
    for low in (True, False)
    for turned in (0, 1, 2)
]


@pytest.mark.few(1)
@pytest.mark.parametrize("k", few(range(len(SYSTEMS)), 2))
def test_few_right_sides_are_solved_by_the_rows_of_the_matrix(k):
    options = {**SYSTEMS[k], "unit_diagonal": k % 3 == 0}
    n, columns = 3 * COUNT + 5, 1 + k % 2
    a = positive(n, "c8" if k % 4 == 1 else "f4")
    a = a / np.diagonal(a).real if options["unit_diagonal"] else a
    y = RNG.normal(size=(n, columns) if options["left_side"] else (columns, n)).astype(a.dtype)
    fn = lambda a, y: lax.linalg.triangular_solve(a, y, **options)  # noqa: E731
    given = laid(a), laid(y, (2, 2), None)
    row = row_of(gl.on_grid(fn).report(*given), "triangular_solve")
    assert "blocks of" in row.note
    assert row.collectives
    assert max(c.received_bytes for c in row.collectives) < a.nbytes / 2
    assert_same(gl.on_grid(fn)(*given), fn(a, y), rtol=1e-3, atol=1e-4)


def test_a_right_side_that_is_broadcast_is_solved():
    a, v = np.tril(positive(24)), RNG.normal(size=24).astype("f4")
    right = gl.put(v, gl.GridLayout(v.shape, "float32", (3,), collapse=[]), DEVICE)

    def fn(a, v):
        y = lax.broadcast_in_dim(v, (24, 2), (0,))
        return lax.linalg.triangular_solve(a, y, left_side=True, lower=True)

    assert_same(gl.on_grid(fn)(laid(a), right), fn(a, v), rtol=1e-3, atol=1e-4)


def test_many_right_sides_are_solved_column_by_column():
    a, y = positive(24), np.ones((24, 40 * COUNT), "f4")
    fn = gl.on_grid(lambda a, y: lax.linalg.triangular_solve(a, y, left_side=True, lower=True))
    assert row_of(fn.report(laid(a), laid(y)), "triangular_solve").note == ""


@pytest.mark.skipif(COUNT < 8, reason="needs 8 devices")
def test_right_sides_that_a_product_makes_by_columns_stay_there():
    """A step of alternating least squares: only the small sums are sent."""

    def step(ratings, v):
        inner = v.T @ v + 0.1 * jnp.eye(32)
        u = jnp.linalg.solve(inner, (ratings @ v).T).T
        return u, u.T @ u

    device = gl.DeviceGrid((2, COUNT // 2))
    ratings, v = (RNG.normal(size=shape).astype("f4") for shape in ((128 * COUNT, 512), (512, 32)))
    given = (
        gl.put(ratings, gl.GridLayout(ratings.shape, grid=(COUNT, 1)), device),
        gl.put(v, gl.GridLayout(v.shape, grid=(1, 2)), device),
    )
    report = gl.on_grid(step).report(*given)
    sent = [each for row in report.rows for each in row.collectives]
    assert max(each.received_bytes for each in sent) <= v.nbytes / 2
    assert_same(gl.on_grid(step)(*given), step(ratings, v), rtol=1e-3, atol=1e-3)


# -- the price -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "fn"), [("cholesky", lower), ("lu", lax.linalg.lu)])
def test_where_a_collective_takes_long_every_device_factors_all_and_the_report_says_why(name, fn):
    a = positive(4 * COUNT)
    row = row_of(gl.on_grid(fn).report(laid(a, device=SLOW)), name)
    assert (row.how, row.note) == ("fallback", "one matrix; panels would take longer")
    assert row.bytes_moved >= (COUNT - 1) * a.nbytes / COUNT


def test_a_mesh_of_more_devices_than_panels_are_compiled_for_falls_back():
    mesh = gl.DeviceGrid(jax.sharding.AbstractMesh((32, 32), ("x", "y")))
    layout = gl.GridLayout((4096, 4096), grid=(32, 32))
    assert row_of(gl.on_grid(lower, mesh).report(layout), "cholesky").how == "fallback"
    few_devices = gl.DeviceGrid(jax.sharding.AbstractMesh((4, 4), ("x", "y")))
    assert row_of(gl.on_grid(lower, few_devices).report(layout), "cholesky").how == "rule"
