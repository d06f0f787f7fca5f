"""Linear algebra over batches: what lies spread stays, and gradients are JAX's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo import collectives
from jax import lax
from laid_out import assert_same, equations, poisoned

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
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

    wanted = jax.jit(jax.grad(loss, (0, 1)))(POSITIVE, SIDES)
    layout = gl.GridLayout((BATCH, 4, 4), grid=(4, 1, 2), tile=(2, 2), collapse=[])
    grad = jax.jit(jax.grad(gl.on_grid(loss), (0, 1)))
    assert_same(grad(*laid(layout)), wanted, rtol=1e-3, atol=1e-4)


def test_one_matrix_falls_back():
    s = gl.put(POSITIVE[0], gl.GridLayout((4, 4), grid=(2, 2)), DEVICE)
    fn = gl.on_grid(lambda s: lax.linalg.cholesky(s, symmetrize_input=False))
    assert [row.primitive for row in fn.report(s).fallbacks] == ["cholesky"]
    np.testing.assert_allclose(np.asarray(fn(s)), np.linalg.cholesky(POSITIVE[0]), rtol=1e-4)
