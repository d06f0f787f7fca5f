"""Functions of arrays in tiles: JAX's results, with little more work than without tiles."""

from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from jax import lax
from laid_out import assert_same, poisoned

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))

FUNCTIONS = {
    "sums": lambda x: (x.sum(0), x.sum(1), x.sum()),
    "extremes": lambda x: (x.max(0), x.min(1), jnp.argmax(x, 1), jnp.any(x > 1, 0)),
    "softmax": lambda x: jax.nn.softmax(x, 1) + jax.nn.softmax(x, 0),
    "flips": lambda x: (x[::-1], x[:, ::-1], x[::-1, ::-1]),
    "slices": lambda x: (x[8:], x[:, :16], x[8:24, 16:], x[3:], x[:, 5:7], x[::2]),
    "pads": lambda x: (
        jnp.pad(x, ((8, 0), (0, 16))),
        lax.pad(x, 2.0, ((-8, 8, 0), (16, -16, 0))),
        jnp.pad(x, 1),
    ),
    "joins": lambda x: (
        jnp.concatenate([x, x[:8], x]),
        jnp.concatenate([x[:, :16], x], 1),
        jnp.concatenate([x, x], 1),
    ),
    "stacks": lambda x: (jnp.stack([x, x + 1]), jnp.stack([x, -x], 1), jnp.stack([x, x], -1)),
    "copies": lambda x: (jnp.tile(x, (2, 3)), jnp.tile(x, (1, 2)), jnp.repeat(x, 2, 1)),
    "parts": lambda x: (*jnp.split(x, [8, 16]), *jnp.split(x, [16], 1)),
    "groups": lambda x: (
        x.reshape(len(x), -1, x.shape[1] // (4 if x.shape[1] == 64 else 3)).sum((0, 2)),
        x.reshape(len(x), -1, x.shape[1] // (4 if x.shape[1] == 64 else 3)).max(1),
    ),
    "differences": lambda x: x[1:] - x[:-1],
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x),
    "moves": lambda x: x + x.T[: len(x)] if x.shape[0] == x.shape[1] else x,
}
# shape, grid and tile
ARRAYS = [
    ((32, 64), (1, 4), (8, 16)),
    ((32, 64), (4, 1), (8, 16)),
    ((32, 64), (1, 1), (8, 16)),
    ((29, 51), (2, 1), (8, 16)),
    ((29, 51), (1, 3), (8, 16)),
    ((33, 33), (2, 4), (4, 4)),
]


# Without --all-cases, every third function in one program for each array.
CASES = [
    (names, *array)
    for k, array in enumerate(ARRAYS)
    for names in ([[name] for name in FUNCTIONS] if tiers.ALL else [[*FUNCTIONS][k % 3 :: 3]])
]


@pytest.mark.parametrize(("names", "shape", "grid", "tile"), CASES)
def test_results(names, shape, grid, tile):
    def every(x):
        return {name: FUNCTIONS[name](x) for name in names}

    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    layout = gl.GridLayout(shape, grid=grid, tile=tile, collapse=[])
    assert_same(gl.on_grid(every)(poisoned(x, layout, DEVICE)), jax.jit(every)(x))


def laid(shape, grid, tile=None):
    layout = gl.GridLayout(shape, grid=grid, tile=tile, collapse=[])
    return gl.put(np.ones(shape, np.float32), layout, DEVICE)


WHOLE = {
    "stack": lambda x: jnp.stack([x, x]),
    "join": lambda x: jnp.concatenate([x, x], 1),
    "flip": lambda x: x[:, ::-1],
    "slice": lambda x: x[:, 16:40],
    "pad": lambda x: jnp.pad(x, ((0, 0), (16, 32))),
    "split": lambda x: jnp.split(x, [16, 48], 1),
    "tile": lambda x: jnp.tile(x, (1, 3)),
}


@pytest.mark.skipif(COUNT < 2, reason="needs 2 devices")
@pytest.mark.parametrize("name", WHOLE)
def test_whole_tiles_are_not_untiled(name):
    x = laid((64, 64), (2, 1), (8, 16))
    text = gl.on_grid(WHOLE[name]).lower(x).as_text()
    assert "transpose" not in text


@pytest.mark.skipif(COUNT < 2, reason="needs 2 devices")
def test_other_axes_stay_tiled():
    x = laid((29, 51), (2, 1), (8, 16))
    assert "transpose" not in gl.on_grid(lambda x: jnp.stack([x, x])).lower(x).as_text()


def test_a_dim_at_a_time_is_reduced():
    """XLA on CPUs computes an element after another where several dims are reduced at once."""
    x = laid((64, 64), (2, 1), (8, 16))
    text = gl.on_grid(lambda x: x.max(1)).lower(x).as_text()
    assert text.count("stablehlo.reduce(") == 2
    assert "optimization_barrier" in text[text.index("stablehlo.reduce(") :]


@pytest.mark.skipif(COUNT < 2, reason="needs 2 devices")
def test_tiled_arrays_receive_what_others_do():
    grids = (2, COUNT // 2), (COUNT, 1)
    shape = 8 * COUNT - 3, 8 * COUNT + 3
    sent = [
        gl.on_grid(lambda x, y: x + y).report(*(laid(shape, grid, tile) for grid in grids))
        for tile in (None, (4, 4))
    ]
    assert sent[1].bytes_moved <= sent[0].bytes_moved


def test_results_are_not_copied():
    """XLA on CPUs copies a result for dims of extent 1 between others."""
    x = laid((64, 64), (1, 2), (8, 16))
    scanned = lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x)[1]  # noqa: E731
    text = gl.on_grid(scanned).lower(x).compile().as_text()
    assert "copy" not in text[text.index("ENTRY") :].split("ROOT")[1]


def held_by(fn, x):
    """The temporary bytes of a device."""
    return gl.on_grid(fn).lower(x).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.skipif(COUNT < 2, reason="needs 2 devices")
def test_a_pad_between_positions_writes_only_its_result():
    x = laid((64, 64), (2, 1), (8, 16))
    assert held_by(lambda x: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))), x) == 0


@pytest.mark.skipif(DEVICE.platform != "cpu", reason="XLA's kernels for CPUs")
def test_parts_of_rows_are_joined_in_one_kernel():
    """Also from tiles, and with what is computed before; what is joined is written once."""
    grid = (2, 1) if COUNT > 1 else (1, 1)
    x, tiled = laid((64, 64), grid), laid((64, 64), grid, (8, 16))
    part = 4 * 64 * 64 // prod(grid)
    assert held_by(lambda x: jnp.roll(x, 5, 1), x) == 0
    assert held_by(lambda x: jnp.roll(x + 1, 5, 1), x) == 0
    assert held_by(lambda x: jnp.roll(x, 5, 1), tiled) == 0
    assert held_by(lambda x: (jnp.roll(x, -1, 1) + 1) * jnp.roll(x, 1, 1), x) <= 2 * part


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "int8", "bfloat16", "float8_e4m3fn", "float32", "complex64"]
)
def test_joined_parts_keep_their_bits(dtype):
    x = np.random.default_rng(0).choice([0.0, -0.0, 1.0, -2.0, np.inf, np.nan], (16, 12))
    x = x.astype("float32") if dtype not in ("bool", "int4", "int8") else x > 0
    x = jnp.asarray(x).astype(dtype)
    given = gl.put(x, gl.GridLayout(x.shape, x.dtype, grid=(2, 1) if COUNT > 1 else (1, 1)), DEVICE)
    found = np.asarray(gl.on_grid(lambda x: jnp.roll(x, 5, 1))(given))
    assert found.tobytes() == np.roll(np.asarray(x), 5, 1).tobytes()


@pytest.mark.skipif(COUNT != 8, reason="needs 8 devices")
def test_borders_are_read_from_tiles():
    x = laid((256, 512), (8, 1), (32, 32))
    assert held_by(lambda x: x[1:] - x[:-1], x) <= 3 * 512 * 4


@pytest.mark.skipif(COUNT != 8, reason="needs 8 devices")
@pytest.mark.parametrize("tile", [None, (32, 32)])
def test_dims_of_a_reshape_are_reduced_where_they_are(tile):
    def groups(x):
        y = x.reshape(16, 64, 8, 16)
        return y - y.mean((1, 3), keepdims=True)

    layout = gl.GridLayout((16, 64, 128), grid=(2, 4, 1), tile=tile, collapse=[])
    x = np.random.default_rng(0).standard_normal((16, 64, 128), np.float32)
    given = poisoned(x, layout, DEVICE)
    assert_same(gl.on_grid(groups)(given), groups(x))
    made = gl.on_grid(groups).report(given)
    assert made.bytes_moved <= 4 * 8 * 8 * 8 * 2


@pytest.mark.skipif(COUNT != 8, reason="needs 8 devices")
@pytest.mark.parametrize("tile", [None, (32, 32), (8, 16)])
def test_what_is_cut_is_padded_once(tile):
    """XLA on CPUs finds elements one by one where it pads what is cut from padded arrays."""
    run = gl.on_grid(lambda x: lax.pad(x, 2.0, ((1, 2, 0), (3, -1, 0))))
    x = np.random.default_rng(0).standard_normal((128, 256), np.float32)
    given = poisoned(x, gl.GridLayout(x.shape, grid=(2, 1), tile=tile, collapse=[]), DEVICE)
    assert_same(run(given), lax.pad(x, np.float32(2), ((1, 2, 0), (3, -1, 0))))
    assert run.lower(given).compile().as_text().count(" pad(") == 1


@pytest.mark.skipif(COUNT < 2 or DEVICE.platform != "cpu", reason="XLA's kernels for CPUs")
def test_tiles_that_are_read_often_are_untiled_once():
    def around(x):
        p = jnp.pad(x, 1)
        return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x

    x, rows = laid((64, 64), (2, 1), (8, 16)), laid((64, 64), (2, 1))
    part, row = 4 * 64 * 64 // 2, 4 * 64
    assert held_by(around, rows) <= 4 * row
    assert part <= held_by(around, x) <= part + 4 * row
    assert held_by(lambda x: x[:, :32] * x[:, 32:], x) == 0  # each is read once
