"""Uneven arrays pass over about as much memory as the even ones beside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 4))


def laplacian(x):
    p = jnp.pad(x, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x


# Functions, grids, and how many times as many bytes are read and written at most.
FUNCTIONS = {
    "laplacian, 8x1": (laplacian, (8, 1), 1.1),
    "sum, 2x1": (jnp.sum, (2, 1), 1.1),
    "argmax of rows, 2x1": (lambda x: jnp.argmax(x, 1), (2, 1), 1.1),
    # Devices copy what they gather into parts that begin with another row.
    "softmax, 2x1": (lambda x: jax.nn.softmax(x, 1), (2, 1), 1.6),
    "cumsum of columns, 2x1": (lambda x: jnp.cumsum(x, 0), (2, 1), 1.2),
    "transpose and add, 2x1": (lambda x: x + x.T, (2, 1), 1.4),
}


def accessed(fn, size, grid):
    """The bytes that a device's compiled program reads and writes."""
    layout = gl.GridLayout((size, size), grid=grid, collapse=[])
    x = gl.put(np.ones((size, size), np.float32), layout, DEVICE)
    found = gl.on_grid(fn).lower(x).compile().cost_analysis()
    return (found[0] if isinstance(found, list) else found)["bytes accessed"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_much_memory_is_read_and_written(name):
    fn, grid, most = FUNCTIONS[name]
    ratio = accessed(fn, 509, grid) / accessed(fn, 512, grid)
    assert ratio <= most


def test_what_is_outside_of_a_block_is_set_once_for_all_positions_of_windows():
    layout = gl.GridLayout((2, 61, 61, 8), grid=(1, 2, 4, 1), collapse=[])
    x = gl.put(np.ones(layout.shape, np.float32), layout, DEVICE)
    window = (1, 2, 2, 1)
    pool = gl.on_grid(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, window, "SAME"))
    kernels = pool.lower(x).compile().as_text().split("\n}\n")
    reading = [kernel for kernel in kernels if kernel.count(" maximum(") == 3]
    assert len(reading) == 1
    assert " select(" not in reading[0]
