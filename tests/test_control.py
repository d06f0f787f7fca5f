"""Loops and branches on the grid, against JAX's on plain arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import turn as device_of
from jax import lax
from laid_out import assert_same, choices, poisoned
from tiers import few

import gridlayout as gl
from gridlayout.ops.decisions.decision import FALLBACK

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))


def example(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def recurrent(x, w, xs):
    def cell(h, t):
        h = jnp.tanh(h @ w + t)
        return h, (h.sum(), h * 2, h[0, 0])

    return lax.scan(cell, x, xs)


def counted(x):
    def body(carry, k):
        return {"a": carry["a"] * 0.5 + k, "n": carry["n"] + 1}, None

    return lax.scan(body, {"a": x, "n": 0}, jnp.arange(4.0), reverse=True)


def no_carry(xs):
    return lax.map(lambda t: (t**2).sum(axis=0), xs)


def while_small(x, w):
    def test(carry):
        return (carry[1] < 5) & (jnp.abs(carry[0]).max() < 1e6)

    return lax.while_loop(test, lambda carry: (jnp.sin(carry[0] @ w), carry[1] + 1), (x, 0))


def while_each(x):
    def double(carry):
        return carry[0] * 2, carry[1] + 1, carry[2]

    def row(r, key):
        start = (jnp.abs(r) + 0.1, 0, key)
        total, count, key = lax.while_loop(lambda carry: carry[0].sum() < 9, double, start)
        return total, count, jax.random.uniform(key)

    return jax.vmap(row)(x, jax.random.split(jax.random.key(1), len(x)))


def fori(x, w):
    return lax.fori_loop(0, 4, lambda k, h: h @ w * 0.1 + k, x)


def branches(x, w):
    one = lax.cond(x.sum() > 0, lambda x: (x @ w, x.T), lambda x: (x * 2, x.T + 1), x)
    two = lax.switch(jnp.int32(2), [lambda a: a, lambda a: -a, lambda a: a + 1], x)
    return one, two


def nested(x, xs):
    def outer(h, t):
        h = lax.fori_loop(0, 2, lambda k, v: v * 0.5 + t, h)
        return lax.cond(h.max() > 0, lambda v: v, lambda v: -v, h), h

    return lax.scan(outer, x, xs)


CASES = {
    "scan": (recurrent, [(5, 7), (7, 7), (6, 5, 7)]),
    "scan of a tree": (counted, [(5, 7)]),
    "map": (no_carry, [(6, 5, 7)]),
    "while": (while_small, [(5, 7), (7, 7)]),
    "while under vmap": (while_each, [(5, 7)]),
    "fori": (fori, [(5, 7), (7, 7)]),
    "cond and switch": (branches, [(5, 7), (7, 7)]),
    "nested": (nested, [(5, 7), (3, 5, 7)]),
}


def assert_case_is_jaxs(name, count):
    """A case in so many choices of layouts, its padding poisoned, is what JAX makes of it."""
    fn, shapes = CASES[name]
    arrays = [example(shape, k) / 3 for k, shape in enumerate(shapes)]
    expected = jax.jit(fn)(*map(jnp.asarray, arrays))
    for n, layouts in enumerate(few(choices(shapes, count, len(name)), 1)):
        device = device_of(DEVICE, list(CASES).index(name) + n)
        laid = [poisoned(a, layout, device) for a, layout in zip(arrays, layouts, strict=True)]
        found = jax.jit(gl.on_grid(fn))(*laid)
        assert_same(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_loops_and_branches_are_jaxs(name):
    assert_case_is_jaxs(name, 3)


@pytest.mark.parametrize("name", CASES)
def test_their_bodies_run_by_rules(name):
    fn, shapes = CASES[name]
    laid = [gl.put(example(s), gl.GridLayout(s, grid=(2, 4), tile=(2, 2)), DEVICE) for s in shapes]
    hows = {(row.primitive, row.how) for row in gl.on_grid(fn).report(*laid).rows}
    assert not {name for name, how in hows if how == FALLBACK} & {"scan", "while", "cond"}
    assert "rule" in {how for _, how in hows}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["scan", "map", "cond and switch", "nested"])
def test_their_gradients_are_jaxs(name):
    fn, shapes = CASES[name]
    arrays = [example(shape, k) / 3 for k, shape in enumerate(shapes)]

    def loss(*arrays):
        return sum(jnp.sum(jnp.sin(out)) for out in jax.tree.leaves(fn(*arrays)))

    every = tuple(range(len(shapes)))
    expected = jax.jit(jax.grad(loss, argnums=every))(*map(jnp.asarray, arrays))
    for n, layouts in enumerate(few(choices(shapes, 2, len(name)), 1)):
        device = device_of(DEVICE, 2 * n + 2 if name in ("map", "nested") else 0)
        laid = [poisoned(a, layout, device) for a, layout in zip(arrays, layouts, strict=True)]
        found = jax.jit(jax.grad(gl.on_grid(loss), argnums=every))(*laid)
        for f, w in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(f), w, rtol=1e-4, atol=1e-4)


def test_a_scan_moves_no_slice_between_devices():
    # What is scanned lies with its first dim whole on each core; only the product moves.
    xs = gl.put(example((6, 8, 8)), gl.GridLayout((6, 8, 8), grid=(1, 2, 4), collapse=[]), DEVICE)
    x = gl.put(example((8, 8)), gl.GridLayout((8, 8), grid=(2, 4)), DEVICE)
    fn = gl.on_grid(lambda x, xs: lax.scan(lambda h, t: (h * 0.5 + t, h - t), x, xs))
    text = jax.jit(fn).lower(x, xs).compile().as_text()
    assert not any(kind in text for kind in ("all-gather", "all-to-all", "all-reduce", "permute("))
    assert fn.report(x, xs).bytes_moved == 0


def test_bytes_of_a_body_count_every_time():
    w = gl.put(example((8, 8)), gl.GridLayout((8, 8), grid=(2, 4)), DEVICE)
    # With a stated algorithm, layouts are not chosen for the loop as a whole.
    once = gl.on_grid(lambda w: w @ w, algorithm="gathered").report(w).bytes_moved
    repeated = lambda w: lax.fori_loop(0, 5, lambda _, h: h @ w, w)  # noqa: E731
    many = gl.on_grid(repeated, algorithm="gathered").report(w)
    assert many.bytes_moved == 5 * once


def test_an_empty_scan_and_one_of_keys():
    x = gl.put(example((5, 7)), gl.GridLayout((5, 7), grid=(2, 4)), DEVICE)

    def noisy(x, keys):
        return lax.scan(lambda h, k: (h + jax.random.normal(k, h.shape), None), x, keys)[0]

    keys = jax.random.split(jax.random.key(0), 3)
    assert_same(gl.on_grid(noisy)(x, keys), noisy(jnp.asarray(np.asarray(x)), keys))
    assert_same(gl.on_grid(noisy)(x, keys[:0]), jnp.asarray(np.asarray(x)))
