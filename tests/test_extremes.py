"""Maxima and minima over devices: NaN is never lost, and 0 is above -0."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec
from laid_out import poisoned
from tiers import few

import gridlayout as gl
from gridlayout.sharding.extremes import pmax, pmin

DEVICES = len(jax.devices())
DEVICE = gl.DeviceGrid((2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,))
SHAPE = (6, 8)
ROWS = np.array([0, 2, 2, 1, 0, 2])
FUNCTIONS = {
    "max": jnp.max,
    "min": jnp.min,
    "max of rows": lambda x: x.max(1),
    "min of columns": lambda x: x.min(0),
    "infinite norm": lambda x: jnp.linalg.norm(x.ravel(), jnp.inf),
    "range": jnp.ptp,
    "max that is no NaN": jnp.nanmax,
    "argmax": lambda x: jnp.argmax(x, 0),
    "argmin": jnp.argmin,
    "cummax": lambda x: lax.cummax(x, axis=0),
    "sort": lambda x: jnp.sort(x, 0),
    "top_k": lambda x: lax.top_k(x.ravel(), 5)[0],
    "softmax": lambda x: jax.nn.softmax(x, axis=0),
    "logsumexp": jax.nn.logsumexp,
    "scatter-max": lambda x: jnp.zeros((3, 8), x.dtype).at[ROWS].max(x),
    "segment_min": lambda x: jax.ops.segment_min(x, ROWS, 3),
    "max_pool": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "reduce": lambda x: lax.reduce(x, np.array(-np.inf, x.dtype), lax.max, (0,)),
    "scan": lambda x: lax.scan(lambda c, row: (jnp.maximum(c, row), row.max()), x[0], x),
    "loop": lambda x: lax.fori_loop(0, 2, lambda i, a: a - a.max(0), x),
    "vmap": jax.vmap(jnp.max),
    "pmax": jax.vmap(lambda row: lax.pmax(row, "i"), axis_name="i"),
    "gradient": jax.grad(lambda x: x.max(0).sum()),
}
# XLA orders zeros of both signs in these; in others it depends on what it fuses.
SIGNED = ("max", "min", "max of rows", "min of columns")
LAYOUTS = {
    "even": gl.GridLayout(SHAPE, grid=(2, 4)),
    "uneven": gl.GridLayout(SHAPE, grid=(4, 3)),
    "one dim": gl.GridLayout(SHAPE, grid=(8,), collapse=[(0, 2)]),
    "tiles": gl.GridLayout(SHAPE, grid=(3, 2), tile=(2, 4)),
}


def every(x):
    return {name: fn(x) for name, fn in FUNCTIONS.items()}


def arrays():
    """NaNs of both signs in several places, zeros of both signs, infinities."""
    rng = np.random.default_rng(0)
    for value in (np.nan, -np.nan, np.inf, -np.inf):
        for _ in range(2):
            x = rng.integers(-3, 4, SHAPE).astype("f4")
            x[rng.integers(6), rng.integers(8)] = value
            yield x
    for share in (0.1, 0.5, 0.9):
        yield np.where(rng.random(SHAPE) < share, 0.0, -0.0).astype("f4")


def places(arrays):
    """Where the extremes of matrices are: along rows, along columns, and of all."""
    return [(x.argmax(1), x.argmin(1), x.T.argmax(0), x.ravel().argmin()) for x in arrays]


@pytest.mark.parametrize("grid", [(2, 1), (1, 2), (1, 1)])
def test_places_of_extremes_are_jaxs_for_every_length(grid):
    plain, lifted, rng = jax.jit(places), gl.on_grid(places), np.random.default_rng(0)
    for numbers in ("ties", "NaNs", "one NaN"):
        arrays = [rng.integers(-3, 4, (5, n)).astype("f4") for n in (1, 7, 16, 17, 130, 1001)]
        for x in arrays if numbers != "ties" else ():
            x[rng.integers(5), rng.integers(x.shape[1])] = np.nan
        for x in arrays if numbers == "NaNs" else ():
            x[rng.random(x.shape) < 0.3] = np.nan
        laid = [
            gl.put(x, gl.GridLayout(x.shape, "float32", grid, collapse=[]), DEVICE) for x in arrays
        ]
        for found, wanted in zip(
            jax.tree.leaves(lifted(laid)), jax.tree.leaves(plain(arrays)), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=numbers)


def test_the_first_nan_is_found_in_tiles():
    """Though runs of rows put the first NaN of another column before it."""
    x = np.zeros(200, np.float32)
    x[[1, 8, 150]] = np.nan
    laid = gl.put(x, gl.GridLayout(x.shape, "float32", 1, tile=(8,), collapse=[]), DEVICE)
    assert [int(k) for k in gl.on_grid(lambda x: (x.argmax(), x.argmin()))(laid)] == [1, 1]


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "dtype"), few([(n, d) for n in LAYOUTS for d in "fe"], 3))
def test_every_function_is_jaxs(name, dtype):
    lifted, plain = gl.on_grid(every), jax.jit(every)
    layout = LAYOUTS[name].with_dtype(np.dtype(dtype))
    for x in arrays():
        x = x.astype(dtype)
        found, wanted = lifted(gl.put(x, layout, DEVICE)), plain(x)
        # In one program with the others, XLA may lose NaN in the maximum of a gradient.
        has_nan = np.isnan(x).any(0)
        for some in (found, wanted):
            some["gradient"] = np.asarray(some["gradient"])[:, ~has_nan]
        for key in FUNCTIONS:
            for f, w in zip(jax.tree.leaves(found[key]), jax.tree.leaves(wanted[key]), strict=True):
                f, w = np.asarray(f), np.asarray(w)
                np.testing.assert_allclose(f, w, 4e-3, 4e-3, equal_nan=True, err_msg=key)
                if key in SIGNED and not x.any():
                    np.testing.assert_array_equal(np.signbit(f), np.signbit(w), err_msg=key)


@pytest.mark.parametrize(
    "dtype",
    [
        *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz"),
        *("float8_e4m3b11fnuz", "int16", "uint8"),
    ],
)
def test_the_all_reduce_orders_all_numbers_of_a_type(dtype):
    """By NumPy's order of the numbers as float64, NaN beyond all, and 0 above -0."""
    if DEVICES == 1:
        pytest.skip("an all-reduce takes several devices")
    bits = np.random.default_rng(0).integers(0, 256, (DEVICES, 300 * np.dtype(dtype).itemsize))
    x = bits.astype(np.uint8).view(dtype)
    device = gl.DeviceGrid((DEVICES,))
    (axis,) = device.mesh.axis_names

    @jax.jit
    @partial(
        jax.shard_map,
        mesh=device.mesh,
        in_specs=PartitionSpec(axis),
        out_specs=PartitionSpec(),
        check_vma=False,
    )
    def both(x):
        return pmax(x, (axis,)), pmin(x, (axis,))

    with np.errstate(invalid="ignore"):  # some of the NaNs are signaling
        wide = x.astype(np.float64)
    order = np.lexsort((-1 * np.signbit(wide), wide), axis=0)
    for found, row in zip(both(x), (-1, 0), strict=True):
        found = np.asarray(found)[0].astype(np.float64)
        wanted = np.take_along_axis(wide, order[[row]], 0)[0]
        wanted = np.where(np.isnan(wide).any(0), np.nan, wanted)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[found == 0]))


def test_users_kernels_have_it_too():
    """And raise, as `lax.pmax` does, where a derivative of it is taken: it has none."""
    layout = gl.GridLayout((4, 8), grid=(2, 4))
    a = np.ones((4, 8), np.float32)
    a[3, 1] = np.nan

    def scaled(x):
        return gl.map_shards(lambda part: part * gl.cores.pmax(part.max(), (0, 1)), x, out=layout)

    x = gl.put(a, layout, DEVICE)
    assert np.isnan(np.asarray(scaled(x))).all()
    with pytest.raises(NotImplementedError, match=r"rule for 'pmax' not implemented"):
        jax.grad(lambda x: gl.numpy.sum(scaled(x)))(x)


def test_idle_slots_of_types_without_infinity_do_not_count():
    layout = gl.GridLayout((3, 4), "float8_e4m3fn", grid=(3, 1))
    x = gl.put(np.full((3, 4), -2, np.float32).astype(layout.dtype), layout, DEVICE)
    found = gl.map_shards(lambda part: gl.cores.pmax(part, 0), x, out=layout)
    np.testing.assert_array_equal(np.asarray(found).astype(float), -2)


@pytest.mark.few(1)
@pytest.mark.skipif(DEVICES != 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("name", ["max", "set"])
def test_updates_of_a_scatter_keep_their_padding(name):
    """To drop it takes a pass over the updates of all devices."""
    random = np.random.default_rng(0)
    x, new = (random.standard_normal((509, 512), np.float32) for _ in range(2))
    at = random.permutation(509).astype(np.int32)
    rows = gl.GridLayout(x.shape, grid=(2, 4), collapse=[])
    given = (
        poisoned(x, rows, DEVICE),
        poisoned(at, gl.GridLayout(at.shape, "int32", grid=(2,)), DEVICE),
        poisoned(new, rows, DEVICE),
    )
    run = gl.on_grid(lambda x, at, new: getattr(x.at[at], name)(new))
    found = np.asarray(run(*given))
    np.testing.assert_allclose(found, getattr(jnp.asarray(x).at[at], name)(new), rtol=1e-6)
    held = run.lower(*given).compile().memory_analysis().temp_size_in_bytes
    assert held <= 1.1 * 4 * 512 * 128
