"""Reductions of stored parts of which only the end can be padding."""

import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import assert_same, poisoned

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 4))
FUNCTIONS = {
    "sum": jnp.sum,
    "sum of rows": lambda x: x.sum(1),
    "max of columns": lambda x: x.max(0),
    "min": jnp.min,
    "product of columns": lambda x: (1 + x / 1000).prod(0),
    "any": lambda x: jnp.any(x > 0, 0),
    "all": lambda x: jnp.all(x > 0),
    "integers": lambda x: jnp.sum(x.astype(jnp.int32), 0),
    "extremes and their places": lambda x: (x.max(0), x.argmax(0), x.min(1)),
    "both ways": lambda x: (x.sum(0), x.sum(1), x.max()),
    "of a function": lambda x: (jnp.exp(x).sum(0), x.sum(0)),
    "of three dims": lambda x: jnp.stack([x, 2 * x]).sum((0, 1)),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("grid", [(2, 4), (2, 1), (1, 4), (8, 1)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_elements_count(name, grid):
    # A part has more than 32 positions along a dim, also where the last one has fewer elements.
    array = np.random.default_rng(0).standard_normal((301, 299)).astype(np.float32)
    layout = gl.GridLayout(array.shape, grid=grid, collapse=[])
    x = poisoned(array, layout, DEVICE)
    assert_same(gl.on_grid(FUNCTIONS[name])(x), FUNCTIONS[name](jnp.asarray(array)), 2e-4, 1e-4)


@pytest.mark.parametrize("rows", [257, 263, 33, 5])
def test_devices_without_elements_count_nothing(rows):
    array = np.random.default_rng(0).standard_normal((rows, 40)).astype(np.float32)
    layout = gl.GridLayout(array.shape, grid=(8, 1), collapse=[], shard_shape=(40, None))
    x = poisoned(array, layout, DEVICE)
    assert_same(gl.on_grid(lambda x: x.sum(0))(x), array.sum(0), 1e-4, 1e-4)


@pytest.mark.parametrize("axis", [None, 0])
def test_a_part_is_not_stored_again(axis):
    array = np.ones((509, 510), np.float32)
    x = gl.put(array, gl.GridLayout(array.shape, grid=(2, 1), collapse=[]), DEVICE)
    compiled = gl.on_grid(lambda x: x.sum(axis)).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < array.nbytes / 2 / 8
