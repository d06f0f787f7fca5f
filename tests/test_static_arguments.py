"""`static_argnums` and `static_argnames` of `gl.on_grid`, which are those of `jax.jit`."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import gridlayout as gl

MESH = jax.make_mesh((2, 4), ("data", "model"))
X = np.random.default_rng(0).normal(size=(12, 7)).astype("float32")


def folded(x, n, axis=0):
    return x.reshape(n, -1).sum(axis=axis)


@pytest.fixture(scope="module")
def gx():
    return gl.put(X, P("data"), MESH)


STATED = {
    "numbers": {"static_argnums": (1, 2)},
    "names": {"static_argnames": ("n", "axis")},
    "both": {"static_argnums": 1, "static_argnames": "axis"},
    "from the end": {"static_argnums": (-1, -2)},
}


@pytest.mark.parametrize("stated", STATED.values(), ids=STATED)
def test_numbers_are_static_by_place_and_by_name(gx, stated):
    lifted = gl.on_grid(folded, **stated)
    for args, named in (((6,), {}), ((6, 1), {}), ((4,), {"axis": 1}), ((), {"n": 4})):
        found = lifted(gx, *args, **named)
        np.testing.assert_allclose(found, folded(X, *args, **named), rtol=1e-4, atol=1e-5)


def test_as_a_decorator_in_reports_and_when_it_is_lowered(gx):
    lifted = functools.partial(gl.on_grid, static_argnames=("n", "axis"))(folded)
    assert [row.primitive for row in lifted.report(gx, 6).rows] == ["reshape", "reduce_sum"]
    lowered = lifted.lower(gx, 6).compile()
    np.testing.assert_allclose(lowered(gx), folded(X, 6), rtol=1e-4, atol=1e-5)
    read = pickle.loads(pickle.dumps(lifted))
    assert read.static == lifted.static == gl.on_grid(lifted, MESH).static


def test_under_transformations_and_in_another_lifted_function(gx):
    lifted = gl.on_grid(lambda x, n: (x.reshape(n, -1) ** 2).sum(), static_argnums=1)
    np.testing.assert_allclose(jax.grad(lifted)(gx, 6), 2 * X, rtol=1e-5)
    jitted = jax.jit(lifted, static_argnums=1)
    np.testing.assert_allclose(jitted(gx, 6), (X**2).sum(), rtol=1e-5)
    around = gl.on_grid(lambda x: lifted(x, 6) + 1)
    np.testing.assert_allclose(around(gx), (X**2).sum() + 1, rtol=1e-5)


def test_there_is_one_program_per_value(gx):
    traced = []

    def fn(x, n):
        traced.append(n)
        return x * n

    lifted = gl.on_grid(fn, static_argnums=1)
    for n in (2, 3, 2, 3.0, True):
        lifted(gx, n)
    assert traced == [2, 3, 3.0, True]
    assert [type(n) for n in traced] == [int, int, float, bool]


def test_a_plan_knows_them():
    machine = gl.Machine("v5e 4x4", mesh=(2, 4))
    lifted = gl.on_grid(folded, static_argnames=("n", "axis"))
    plan = gl.plan(lifted, X, 6, machine=machine, seconds=1)
    assert [*plan.layouts] == ["x"]
    np.testing.assert_allclose(plan.run(X, 6), folded(X, 6), rtol=1e-4, atol=1e-5)
    assert plan.put((X, 6))[1] == 6
    on = gl.on_grid(lifted, policy=plan)
    np.testing.assert_allclose(on(*plan.put((X, 6))), folded(X, 6), rtol=1e-4, atol=1e-5)
    assert gl.simulate(lifted, X, 6, machine=machine).time > 0


WRONG = {
    "too large": ({"static_argnums": 5}, "static_argnums 5: it takes 3 by position"),
    "unknown": ({"static_argnames": "foo"}, "static_argnames 'foo' is not one of x, n, axis"),
    "no number": ({"static_argnums": "n"}, "static_argnums 'n' must be a whole number"),
    "no names": ({"static_argnames": 3}, "static_argnames 3 must be a sequence of names"),
}


@pytest.mark.parametrize(("stated", "words"), WRONG.values(), ids=WRONG)
def test_what_no_argument_is(stated, words):
    with pytest.raises(gl.LayoutError, match=words):
        gl.on_grid(folded, **stated)


def test_a_function_without_a_signature():
    with pytest.raises(gl.LayoutError, match="has no signature"):
        gl.on_grid(5, static_argnums=1)


def test_a_value_that_cannot_be_hashed_is_named(gx):
    with pytest.raises(gl.LayoutError, match=r"n: \[6\] is stated to be static, and a list can't"):
        gl.on_grid(folded, static_argnums=1)(gx, [6])


def test_a_function_may_take_any_number(gx):
    lifted = gl.on_grid(lambda *xs: jnp.tile(xs[0], xs[3]), static_argnums=3)
    np.testing.assert_array_equal(lifted(gx, 1, 2, (2, 1)), np.tile(X, (2, 1)))
