"""Loops around stencils: JAX's values, with one halo exchange for several iterations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import assert_same, poisoned

import gridlayout as gl

DEVICES = len(jax.devices())
DEVICE = gl.DeviceGrid((2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,))


def shifted(u, d, by, fill=0.0):
    """The array shifted along a dim, with a number where nothing comes from."""
    before, after = max(by, 0), max(-by, 0)
    widths = [(before, after) if k == d else (0, 0) for k in range(u.ndim)]
    wide = jnp.pad(u, widths, constant_values=fill)
    return lax.slice_in_dim(wide, after, after + u.shape[d], axis=d)


def torus(u, length):
    """The heat equation around a torus."""

    def step(u, _):
        around = sum(jnp.roll(u, s, d) for d in range(u.ndim) for s in (1, -1))
        return u + 0.1 * (around - 2 * u.ndim * u), None

    return lax.scan(step, u, length=length)[0]


def walls(u, length):
    """The heat equation between walls of temperature 0.5."""

    def step(u, _):
        around = sum(shifted(u, d, s, 0.5) for d in range(u.ndim) for s in (1, -1))
        return u + 0.1 * (around - 2 * u.ndim * u), None

    return lax.scan(step, u, length=length)[0]


def insulated(u, length):
    """Diffusion with edges that nothing passes."""

    def step(_, u):
        p = jnp.pad(u, 1, mode="edge")
        inside = (slice(1, -1),) * u.ndim
        total = -2.0 * u.ndim * u
        for d in range(u.ndim):
            for part in (slice(2, None), slice(None, -2)):
                total = total + p[(*inside[:d], part, *inside[d + 1 :])]
        return u + 0.1 * total

    return lax.fori_loop(0, length, step, u)


def upwind(u, length):
    """A step to one side, of two positions along one dim and none along the others."""

    def step(u, _):
        return 0.7 * u + 0.3 * jnp.roll(u, 2, 0), None

    return lax.scan(step, u, length=length)[0]


def life(u, length):
    """Conway's game of life on a torus."""

    def step(u, _):
        rows = u + jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0)
        near = rows + jnp.roll(rows, 1, 1) + jnp.roll(rows, -1, 1)
        return jnp.where((near == 3) | ((near == 4) & (u == 1)), 1.0, 0.0), None

    return lax.scan(step, jnp.where(u > 0, 1.0, 0.0), length=length)[0]


def wave(u, length):
    """Two carried arrays, a constant one, and a number that changes."""
    speed = 0.1 * (1 + jnp.cos(u) ** 2)

    def step(_, state):
        u, before, t = state
        around = sum(shifted(u, d, s) for d in range(u.ndim) for s in (1, -1))
        after = 2 * u - before + speed * (around - 2 * u.ndim * u)
        return after + 0.01 * jnp.sin(t), u, t + 0.1

    return lax.fori_loop(0, length, step, (u, 0.9 * u, jnp.float32(0)))[0]


BODIES = [torus, walls, insulated, upwind, life, wave]
PLACES = [
    ((64, 64), (2, 4)),
    ((61, 67), (2, 4)),
    ((61, 70), (8, 1)),
    ((64, 90), (1, 8)),
    ((70, 61), (3, 2)),
    ((33, 18, 10), (4, 1, 2)),
]


def example(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.few(6)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("shape", "grid"), PLACES)
def test_iterations_of_a_stencil_are_jaxs(body, shape, grid):
    if len(shape) > 2 and body is life:
        return
    layout = gl.GridLayout(shape, grid=grid, collapse=[])
    for length in (11, 2):
        x = example(shape)
        laid = poisoned(x, layout, DEVICE)
        found = gl.on_grid(lambda u, length=length: body(u, length))(laid)
        assert_same(found, jax.jit(lambda u, length=length: body(u, length))(x), rtol=2e-5)


@pytest.mark.parametrize("body", BODIES)
def test_several_iterations_need_one_exchange(body):
    layout = gl.GridLayout((256, 256), grid=(2, 4), collapse=[])
    laid = gl.put(example((256, 256)), layout, DEVICE)
    report = gl.on_grid(lambda u: body(u, 16)).report(laid)
    (row,) = [row for row in report.rows if "halo exchange" in row.note]
    steps = int(row.note.split()[0])
    assert steps > 1
    assert 16 // steps <= max(each.count for each in row.collectives) < 16


def test_a_body_that_is_no_stencil_is_planned_as_before():
    layout = gl.GridLayout((64, 64), grid=(2, 4), collapse=[])
    laid = gl.put(example((64, 64)), layout, DEVICE)

    def with_a_mean(u):
        step = lambda u, _: (u + 0.1 * jnp.roll(u, 1, 0) - u.mean(), None)  # noqa: E731
        return lax.scan(step, u, length=8)[0]

    def with_a_transpose(u):
        step = lambda u, _: (0.5 * u.T + 0.5 * jnp.roll(u, 1, 0), None)  # noqa: E731
        return lax.scan(step, u, length=8)[0]

    def far(u):
        step = lambda u, _: (0.5 * u + 0.5 * jnp.roll(u, 30, 1), None)  # noqa: E731
        return lax.scan(step, u, length=8)[0]

    def stacked(u):
        step = lambda u, _: ((v := 0.5 * u + 0.5 * jnp.roll(u, 1, 1)), v[3, 5])  # noqa: E731
        return lax.scan(step, u, length=8)

    for fn in (with_a_mean, with_a_transpose, far, stacked):
        report = gl.on_grid(fn).report(laid)
        assert not any("halo exchange" in row.note for row in report.rows)
        for a, b in zip(
            jax.tree.leaves(gl.on_grid(fn)(laid)),
            jax.tree.leaves(fn(laid.to_logical())),
            strict=True,
        ):
            assert_same(a, b, rtol=1e-5)


def test_the_gradient_of_a_loop_around_a_stencil():
    x = example((61, 67))
    layout = gl.GridLayout(x.shape, grid=(2, 4), collapse=[])
    gradient = jax.grad(lambda u: jnp.mean(torus(u, 9) ** 2 * walls(u, 8)))
    assert_same(gl.on_grid(gradient)(poisoned(x, layout, DEVICE)), gradient(x), rtol=1e-4)
