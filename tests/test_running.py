"""Steps, and programs, that come again are traced once, and give what they give one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl
from gridlayout.ops.programs import alike, running
from gridlayout.ops.programs.program import Program

LAYERS = 6


def layer(w, x):
    h = x @ w
    h = (h - h.mean(-1, keepdims=True)) * jax.lax.rsqrt(h.var(-1, keepdims=True) + 1e-3)
    return x + jnp.tanh(h) * 0.5 - jnp.exp(-jnp.abs(h))


def stack(ws, x):
    for w in ws:
        x = layer(w, x)
    return x


def step(ws, x):
    return jax.value_and_grad(lambda ws: jnp.mean(stack(ws, x) ** 2))(ws)


def operands(tile=None):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((13, 13), np.float32) / 4 for _ in range(LAYERS + 1)]
    device = gl.DeviceGrid((2, 4))
    laid = [gl.put(a, gl.GridLayout(a.shape, grid=(2, 4), tile=tile), device) for a in arrays]
    return arrays, laid


def repeated(fn, *args):
    """How often each function of repeated steps is called."""
    calls = {}

    def count(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.params.get("name") == "repeated":
                key = id(eqn.params["jaxpr"])
                calls[key] = calls.get(key, 0) + 1
            for value in eqn.params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    count(inner)

    count(jax.make_jaxpr(lambda: gl.on_grid(fn)(*args))().jaxpr)
    return sorted(calls.values())


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
@pytest.mark.parametrize("tile", [None, (4, 4)])
@pytest.mark.parametrize("fn", [stack, step])
def test_layers_of_a_stack_are_traced_once(fn, tile):
    (*arrays, x), (*laid, y) = operands(tile)
    counts = repeated(fn, laid, y)
    assert counts
    assert max(counts) >= LAYERS - 2
    found = jax.tree.leaves(
        gl.on_grid(fn)(laid, y), is_leaf=lambda leaf: isinstance(leaf, gl.GridArray)
    )
    for a, b in zip(found, jax.tree.leaves(fn(arrays, x)), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=2e-5)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_runs_that_use_their_values_unlike_or_other_numbers_are_told_apart():
    def fn(ws, x):
        for k, w in enumerate(ws):
            # Every other layer adds to what came before the last one, and by another number.
            x, before = layer(w, x) * (1.0 if k % 2 else 2.0), x
            x = x + before if k % 2 else x - before
        return x

    (*arrays, x), (*laid, y) = operands()
    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(laid, y)), fn(arrays, x), rtol=2e-4, atol=2e-5
    )


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_named_scopes_stay_apart(monkeypatch):
    monkeypatch.setattr(running, "_SPARED", 1)

    def fn(ws, x):
        for k, w in enumerate(ws):
            with jax.named_scope(f"layer{k}"):
                x = layer(w, x)
        return x

    (*arrays, x), (*laid, y) = operands()
    assert repeated(fn, laid, y) == []
    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(laid, y)), fn(arrays, x), rtol=2e-4, atol=2e-5
    )


# -- programs of new functions that do what others did ---------------------------------------------


def traces(monkeypatch, *calls):
    """How many programs are traced, and the results of the calls."""
    ran, run = [], Program.run
    monkeypatch.setattr(Program, "run", lambda self, arrays: ran.append(1) or run(self, arrays))
    alike._remembered.cache_clear()
    found = [np.asarray(jax.jit(gl.on_grid(fn))(*args)) for fn, *args in calls]
    return len(ran), found


def centred(scale):
    """A new function each time, on lines of its own."""
    return lambda x: (x - x.mean(0)) * scale


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_new_functions_that_do_the_same_are_traced_once(monkeypatch):
    (a, b, *_), (x, y, *_) = operands((4, 4))
    count, found = traces(monkeypatch, *((centred(2.0), z) for z in (x, y, x)))
    assert count == 1
    for got, z in zip(found, (a, b, a), strict=True):
        np.testing.assert_allclose(got, centred(2.0)(z), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_those_that_differ_in_a_bit_are_traced_apart(monkeypatch):
    (a, *_), (x, *_) = operands()
    table, other = np.arange(13.0, dtype="f4"), np.arange(13.0, dtype="f4") + 1
    functions = [
        centred(0.0),
        centred(-0.0),
        centred(np.float32(3)),
        lambda x: x - x.mean(1),
        lambda x: x + table,
        lambda x: x + other,
        lambda x: (x + 1) - x,
        lambda x: x - (x + 1),
    ]
    _, laid = operands((4, 4))
    calls = [*((fn, x) for fn in functions), (functions[0], laid[0])]
    count, found = traces(monkeypatch, *calls)
    assert count == len(calls)
    for got, fn in zip(found, functions, strict=False):
        wanted = np.asarray(fn(jnp.asarray(a)))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        assert (np.signbit(got) == np.signbit(wanted)).all() or fn not in functions[:2]
