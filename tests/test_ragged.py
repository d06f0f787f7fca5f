"""Products by groups of rows: whatever stays spread, they are JAX's, and so are gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from jax import lax
from laid_out import assert_same, poisoned
from machines import FAST

import gridlayout as gl

COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH, machine=FAST)
SIZES = np.int32([3, 0, 7, 4])  # of 17 rows: the last ones are in no group


def example(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def loss(left, right, sizes):
    return jnp.sin(lax.ragged_dot(left, right, sizes)).sum()


# Which operand is larger decides what stays spread: many rows, or large matrices.
SHAPES = {"many rows": ((67, 3), (4, 3, 2)), "large matrices": ((17, 9), (4, 9, 13))}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SHAPES)
def test_products_and_their_gradients_are_jaxs(name):
    left, right = (example(*shape, seed=k) for k, shape in enumerate(SHAPES[name]))

    def fn(left, right, sizes):
        return lax.ragged_dot(left, right, sizes), jax.grad(loss, (0, 1))(left, right, sizes)

    device = mapped(MESH, list(SHAPES).index(name) + 1, (3, 2), machine=FAST)
    given = (
        poisoned(left, gl.GridLayout(left.shape, "float32", (3, 2), (4, 2)), device),
        poisoned(right, gl.GridLayout(right.shape, "float32", (2, 2, 2), collapse=[]), device),
        poisoned(SIZES, gl.GridLayout((4,), "int32", (3,)), device),
    )
    on_grid = gl.on_grid(fn)
    assert on_grid.report(*given).fallbacks == ()
    assert_same(on_grid(*given), jax.jit(fn)(left, right, SIZES), rtol=1e-4, atol=1e-5)


def test_the_smaller_operand_is_sent():
    def sent(name):
        shapes = SHAPES[name]
        layouts = [
            gl.GridLayout(shape, grid=(COUNT,), collapse=[(0, len(shape))]) for shape in shapes
        ]
        given = [gl.put(jax.ShapeDtypeStruct(x.shape, "float32"), x, DEVICE) for x in layouts]
        return gl.on_grid(lambda *xs: lax.ragged_dot(*xs, SIZES)).report(*given).bytes_moved

    for name, (left, right) in SHAPES.items():
        smaller = 4 * min(np.prod(left), np.prod(right))
        assert sent(name) < 3 * COUNT * smaller


def test_a_batch_of_them_falls_back():
    fn = gl.on_grid(jax.vmap(lax.ragged_dot))
    left, right = example(2, 5, 3), example(2, 4, 3, 2)
    given = [gl.put(x, gl.GridLayout(x.shape, grid=(2, 2)), DEVICE) for x in (left, right)]
    rows = fn.report(*given, np.int32([[1, 0, 2, 1]] * 2)).fallbacks
    assert [row.primitive for row in rows] == ["ragged_dot_general"]
