"""Primitives that are made of others are planned as those, and so are operands without elements."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import sparse
from jax.extend import core
from laid_out import assert_same, poisoned
from tiers import few

import gridlayout as gl
from gridlayout.ops.primitives.composed import bcoo_dot_general
from gridlayout.ops.primitives.table import RECORDS

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))


def example(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def laid(a):
    """An array in tiles that do not divide it."""
    return poisoned(a, gl.GridLayout(a.shape, a.dtype, (2, 2), (4, 4)), DEVICE)


def check(fn, *arrays, plain=None):
    """The rows of a function that falls back nowhere and is JAX's, or that of `plain`."""
    on_grid, given = gl.on_grid(fn), [laid(a) for a in arrays]
    report = on_grid.report(*given)
    assert report.fallbacks == ()
    assert_same(on_grid(*given), jax.jit(plain or fn)(*arrays))
    return [row.primitive for row in report.rows]


def primitive(name, impl, many=False):
    """A primitive as libraries make them: a function, which JAX also evaluates types by."""
    made = core.Primitive(name)
    made.multiple_results = many
    made.def_impl(impl)
    made.def_abstract_eval(
        lambda *xs, **params: jax.tree.map(
            lambda out: jax.core.ShapedArray(out.shape, out.dtype),
            jax.eval_shape(
                lambda *xs: impl(*xs, **params),
                *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in xs),
            ),
        )
    )
    return made


def test_a_primitive_of_a_library_runs_as_what_it_is_made_of():
    inner = primitive("composed_inner", lambda x: jnp.exp(x) - 1)
    outer = primitive(
        "composed_outer", lambda x, y, *, power: [inner.bind(x) ** power @ y, y.T], many=True
    )
    rows = check(
        lambda x, y: outer.bind(x, y, power=3),
        *(example(5, 7), example(7, 3)),
        plain=lambda x, y: [(jnp.exp(x) - 1) ** 3 @ y, y.T],
    )
    assert rows == ["exp", "sub", "integer_pow", "dot_general", "transpose"]


def test_inside_loops_and_branches_too():
    def plain(x):
        return jnp.tanh(x) + 1

    def loop(step):
        def body(_, x):
            return lax.cond(x[0, 0] > 0, step, jnp.sin, step(x))

        return lambda x: lax.fori_loop(0, 3, body, x)

    step = primitive("composed_step", plain)
    rows = check(loop(step.bind), example(5, 7), plain=loop(plain))
    assert "tanh" in rows
    assert "composed_step" not in rows


def test_one_that_is_made_of_itself_for_less_ends():
    def halves(x, *, times):
        return halved.bind(x, times=times - 1) / 2 if times else x + 0

    halved = primitive("composed_halves", halves)
    rows = check(lambda x: halved.bind(x, times=3), example(5, 7), plain=lambda x: x / 8)
    assert rows == ["add", "div", "div", "div"]


def test_one_of_the_host_falls_back():
    made = core.Primitive("composed_of_host")
    made.def_impl(lambda x: np.asarray(x) + 1)
    made.def_abstract_eval(lambda x: x)
    report = gl.on_grid(made.bind).report(laid(example(5, 7)))
    assert [row.primitive for row in report.fallbacks] == ["composed_of_host"]


def test_a_rule_of_ones_own_comes_first():
    made = primitive("composed_with_rule", lambda x: x + 1)
    x = example(5, 7)
    try:
        gl.def_rule(made)(lambda eqn, x: gl.map_shards(lambda part: part + 2, x, out=x.layout))
        np.testing.assert_allclose(np.asarray(gl.on_grid(made.bind)(laid(x))), x + 2)
    finally:
        del RECORDS["composed_with_rule"]


def test_where_the_elements_are_that_are_not_zero():
    def fn(x):
        return jnp.nonzero(x > 0.3, size=9, fill_value=-1), jnp.argwhere(x > 0, size=6)

    check(fn, example(5, 7))


# -- sparse arrays ---------------------------------------------------------------------------------


def stored(seed, batch, shape, dense=0):
    """An array with few elements, and its parts in the format of coordinates."""
    a = example(*shape, seed=seed)
    kept = np.random.default_rng(seed).random(shape[: len(shape) - dense]) < 0.4
    a *= kept.reshape(kept.shape + (1,) * dense)
    made = sparse.BCOO.fromdense(a, n_batch=batch, n_dense=dense)
    return a, np.asarray(made.data), np.asarray(made.indices)


PRODUCTS = {
    "matrices": (0, (9, 7), 0, (7, 5), (((1,), (0,)), ((), ()))),
    "of the other dim": (0, (9, 7), 0, (9, 5), (((0,), (0,)), ((), ()))),
    "with a vector": (0, (9, 7), 0, (7,), (((1,), (0,)), ((), ()))),
    "to a number": (0, (9, 7), 0, (9, 7), (((0, 1), (0, 1)), ((), ()))),
    "outer": (0, (9, 7), 0, (3,), (((), ()), ((), ()))),
    "rows by themselves": (1, (9, 7), 0, (7, 5), (((1,), (0,)), ((), ()))),
    "a batch": (1, (3, 9, 7), 0, (3, 7, 5), (((2,), (1,)), ((0,), (0,)))),
    "over the batch": (1, (3, 9, 7), 0, (5, 3), (((0,), (1,)), ((), ()))),
    "dense dims": (0, (9, 7, 4), 1, (7, 5), (((1,), (0,)), ((), ()))),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", few(PRODUCTS, 4))
def test_products_of_sparse_arrays_are_those_of_arrays(name):
    batch, shape, dense, right, dims = PRODUCTS[name]
    a, data, indices = stored(1, batch, shape, dense)
    y, of = example(*right, seed=2), sparse.BCOO((data, indices), shape=shape)
    params = {"dimension_numbers": dims, "preferred_element_type": None, "lhs_spinfo": of._info}
    found = jax.jit(partial(bcoo_dot_general, **params))(data, indices, y)
    np.testing.assert_allclose(found, lax.dot_general(a, y, dims), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, sparse.bcoo_dot_general(of, y, dimension_numbers=dims), 1e-4)


def test_and_on_the_grid_they_are_gathers_and_scatters():
    _, data, indices = stored(1, 1, (3, 9, 7))

    def fn(data, indices, y):
        x = sparse.BCOO((data, indices), shape=(3, 9, 7))
        return sparse.bcoo_dot_general(x, y, dimension_numbers=(((2,), (1,)), ((0,), (0,))))

    rows = check(fn, data, indices, example(3, 7, 5))
    assert {"gather", "scatter-add"} < set(rows)


def test_what_is_stored_outside_of_a_sparse_array_does_not_count():
    data, indices = np.float32([1, 2, np.nan]), np.int32([[0, 1], [2, 0], [3, 2]])

    def fn(data, indices, y):
        return sparse.BCOO((data, indices), shape=(3, 2)) @ y

    check(fn, data, indices, example(2, 5))


def test_gradients_are_taken_of_sparse_arrays():
    a, data, indices = stored(3, 0, (9, 7))

    def grads(data, indices, y):
        def loss(data, y):
            return jnp.sin(sparse.BCOO((data, indices), shape=a.shape) @ y).sum()

        return jax.grad(loss, (0, 1))(data, y)

    check(grads, data, indices, example(7, 5))


# -- no elements -----------------------------------------------------------------------------------

WITHOUT = {
    "concatenate": lambda x: jnp.concatenate([x[:, :0], x, x[:, 3:3]], 1),
    "concatenate several": lambda x: jnp.concatenate([x[:0], x, x[2:2], x], 0),
    "split": lambda x: lax.split(x, (0, 5, 0, 2), 1),
    "split one": lambda x: lax.split(x, (0, 7), 1),
    "pad": lambda x: lax.pad(x[:, :0], jnp.float32(2), ((0, 0, 0), (2, 1, 0))),
    "sums": lambda x: (x[:0].sum(0), x[:, :0].max(1, initial=-1), x[:0].prod()),
    "product": lambda x: x[:, :0] @ x[:0],
    "set": lambda x: x.at[jnp.zeros(0, int)].set(1.0),
    "add": lambda x: x.at[jnp.zeros(0, int), 2].add(1.0),
    "update": lambda x: lax.dynamic_update_slice(x, x[:0], (1, 0)),
    "scan": lambda x: lax.associative_scan(jnp.add, x[:, :1], axis=1),
}


def test_what_has_no_elements_is_left_out():
    check(lambda x: {name: fn(x) for name, fn in WITHOUT.items()}, example(5, 7))
