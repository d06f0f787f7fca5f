"""Linear algebra over batches, and of one tall matrix: what lies spread stays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from hlo import collectives
from jax import lax
from laid_out import assert_same, equations, poisoned
from machines import FAST
from tiers import few

import gridlayout as gl

COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH, machine=FAST)
BATCH = COUNT + 3
ROOTS = np.random.default_rng(0).normal(size=(BATCH, 4, 4)).astype("f4")
POSITIVE = ROOTS @ ROOTS.transpose(0, 2, 1) + 4 * np.eye(4, dtype="f4")
SIDES = np.random.default_rng(1).normal(size=(BATCH, 4, 2)).astype("f4")
SPREAD = gl.GridLayout((BATCH, 4, 4), grid=(COUNT, 1, 1), collapse=[])

FUNCTIONS = {
    "cholesky": lambda s, b: jnp.linalg.cholesky(s),
    "eigh": lambda s, b: jnp.linalg.eigh(s),
    "qr": lambda s, b: jnp.linalg.qr(s),
    "svd": lambda s, b: jnp.linalg.svd(s),
    "eig": lambda s, b: jnp.linalg.eig(s),
    "schur": lambda s, b: lax.linalg.schur(s),
    "solve": lambda s, b: jnp.linalg.solve(s, b),
    "cho_solve": lambda s, b: jax.vmap(jax.scipy.linalg.cho_solve, ((0, None), 0))((s, True), b),
    "inv": lambda s, b: jnp.linalg.inv(s),
    "det": lambda s, b: jax.vmap(jnp.linalg.det)(s),
    "slogdet": lambda s, b: jnp.linalg.slogdet(s),
    "pinv": lambda s, b: jnp.linalg.pinv(s),
}


def laid(layout=SPREAD):
    sides = gl.GridLayout(SIDES.shape, grid=(COUNT, 1, 1), collapse=[])
    return poisoned(POSITIVE, layout, DEVICE), poisoned(SIDES, sides, DEVICE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_run_by_rules_and_a_batch_that_lies_spread_stays(name):
    report = gl.on_grid(FUNCTIONS[name]).report(*laid())
    assert report.fallbacks == ()
    assert report.bytes_moved == 0


def test_their_programs_communicate_nothing():
    def fn(s, b):
        q, r = jnp.linalg.qr(s)
        return jnp.linalg.cholesky(s), jnp.linalg.solve(s, b), q @ r

    on_grid = jax.jit(gl.on_grid(fn))
    text = on_grid.lower(*laid()).compile().as_text()
    assert not list(collectives(text, COUNT))
    assert_same(on_grid(*laid()), fn(POSITIVE, SIDES), rtol=1e-4, atol=1e-5)


def test_each_device_decomposes_its_own_matrices_and_no_padding_of_tiles():
    tiled = gl.GridLayout((BATCH, 4, 4), grid=(2, 2), tile=(32, 32))
    closed = jax.make_jaxpr(lambda: gl.on_grid(jnp.linalg.eigh)(laid(tiled)[0]))()
    (shape,) = [
        eqn.invars[0].aval.shape for eqn in equations(closed.jaxpr) if eqn.primitive.name == "eigh"
    ]
    assert np.prod(shape) == -(-BATCH // 4) * 4 * 4


def test_gradients_are_jaxs():
    def loss(s, b):
        values, vectors = jnp.linalg.eigh(s)
        q, r = jnp.linalg.qr(s)
        x = jnp.linalg.solve(s, b) + jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(s), True), b)
        made = (values, abs(vectors), abs(q), r, x, jnp.linalg.svd(s, compute_uv=False))
        return sum(jnp.sum(jnp.sin(y)) for y in made) + jnp.linalg.slogdet(s)[1].sum()

    expected = jax.jit(jax.grad(loss, (0, 1)))(POSITIVE, SIDES)
    layout = gl.GridLayout((BATCH, 4, 4), grid=(4, 1, 2), tile=(2, 2), collapse=[])
    grad = jax.jit(jax.grad(gl.on_grid(loss), (0, 1)))
    assert_same(grad(*laid(layout)), expected, rtol=1e-3, atol=1e-4)


def test_one_matrix_falls_back():
    s = gl.put(POSITIVE[0], gl.GridLayout((4, 4), grid=(2, 2)), DEVICE)
    fn = gl.on_grid(lambda s: lax.linalg.eigh(s, symmetrize_input=False))
    (row,) = fn.report(s).fallbacks
    reason = "one matrix; each column of its reduction reads the rest of the matrix"
    assert (row.primitive, row.note) == ("eigh", reason)
    assert row.bytes_moved > 0 or COUNT == 1
    found = np.asarray(fn(s)[1])
    np.testing.assert_allclose(found, np.linalg.eigvalsh(POSITIVE[0]), rtol=1e-4)


# -- one tall matrix -------------------------------------------------------------------------------

TALL = np.random.default_rng(2).normal(size=(13 * COUNT + 5, 5)).astype("f4")
RIGHT = np.random.default_rng(3).normal(size=len(TALL)).astype("f4")


def tall(a, grid=(3, 2), tile=(8, 4), device=DEVICE):
    return poisoned(a, gl.GridLayout(a.shape, a.dtype, grid, tile), device)


def several(a, y):
    """All that is made of one tall matrix: decompositions, solutions, with their signs."""
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    wide = jnp.linalg.svd(2 * a.T, full_matrices=False)
    values = jnp.linalg.svd(a + 1, compute_uv=False)
    return jnp.linalg.qr(a), u * s @ vt, abs(u), s, wide[0] * wide[1] @ wide[2], wide[1], values


def test_one_tall_matrix_is_decomposed_by_its_rows():
    given = tall(TALL), poisoned(RIGHT, gl.GridLayout(RIGHT.shape, grid=(3,)), DEVICE)
    on_grid = gl.on_grid(several)
    report = on_grid.report(*given)
    assert report.fallbacks == ()
    rows = [row for row in report.rows if row.primitive in ("qr", "svd")]
    assert len(rows) == 4
    for row in rows:
        assert row.device_flops < row.flops / COUNT + 1
        kinds = {each.kind: each.received_bytes for each in row.collectives}
        assert COUNT == 1 or kinds["all_gather"] < TALL.nbytes / 2
    assert_same(on_grid(*given), jax.jit(several)(TALL, RIGHT), rtol=1e-4, atol=1e-4)


@pytest.mark.all_cases  # derivatives are of products and systems, which others divide
def test_gradients_of_one_tall_matrix_are_jaxs():
    def loss(a):
        q, r = jnp.linalg.qr(a)
        s = jnp.linalg.svd(a, compute_uv=False)
        return jnp.sin(q).sum() + jnp.cos(r).sum() + jnp.sin(s).sum()

    fn = jax.grad(gl.on_grid(loss))
    assert_same(fn(tall(TALL, (2, 2))), jax.jit(jax.grad(loss))(TALL), rtol=1e-3, atol=1e-4)


KINDS = ["no rank", "one column", "zero", "complex"]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", few(KINDS, 2))
def test_decompositions_multiply_to_the_matrix_whatever_it_is(kind):
    a = {
        "no rank": TALL * np.float32([1, 0, 1, 0, 1]),
        "one column": TALL[:, :1],
        "complex": TALL + 1j * TALL[::-1],
        "zero": 0 * TALL,
    }[kind]

    def fn(a):
        (q, r), (u, s, vt) = jnp.linalg.qr(a), jnp.linalg.svd(a, full_matrices=False)
        return q.conj().T @ q, q @ r, u.conj().T @ u, u * s @ vt

    device = mapped(MESH, KINDS.index(kind), (3, 2), machine=FAST)
    on_grid, x = gl.on_grid(fn), tall(a, device=device)
    assert on_grid.report(x).fallbacks == ()
    one = np.eye(a.shape[1])
    for found, expected in zip(on_grid(x), (one, a, one, a), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-4)


@pytest.mark.skipif(COUNT < 2, reason="one device has all")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("qr", "one matrix; sharded only if tall, and not full_matrices"),
        ("eigh", "one matrix; each column of its reduction reads the rest of the matrix"),
    ],
)
def test_the_report_prints_why_one_matrix_falls_back_and_what_each_device_receives(name, reason):
    n, size = 16 * COUNT, DEVICE.size
    fn = {"qr": jnp.linalg.qr, "eigh": lambda a: lax.linalg.eigh(a, symmetrize_input=False)}[name]
    report = gl.on_grid(fn, DEVICE).report(gl.GridLayout((n, n), grid=DEVICE.shape))
    (row,) = report.fallbacks
    # All but its own part, (P - 1) / P of the matrix on P devices.
    assert sum(each.received_bytes for each in row.collectives) == 4 * n * n * (size - 1) // size
    (line,) = [line for line in str(report).splitlines() if line.startswith(name)]
    assert f"fallback: {reason}" in line
    assert all(each.words in line for each in row.collectives)
    assert f"{row.bytes_moved:,}" in line


@pytest.mark.parametrize("full", [True, False])
def test_what_is_not_tall_falls_back_for_that_reason(full):
    a = TALL if full else TALL[:5]
    mode = "complete" if full else "reduced"
    fn = gl.on_grid(lambda a: (jnp.linalg.svd(a, full), jnp.linalg.qr(a, mode)))
    rows = fn.report(tall(a)).fallbacks
    assert {row.primitive for row in rows} == {"qr", "svd"}
    assert {row.note for row in rows} == {"one matrix; sharded only if tall, and not full_matrices"}
