"""`gl.map_shards`: a user's function on every core, and what it may ask there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import gridlayout as gl

DEVICES = len(jax.devices())
DEVICE = gl.DeviceGrid((2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,))
# Grids that the mesh divides, that it does not, one core, and many cores a device.
GRIDS = [(2, 4), (3, 5), (8, 8), (1, 1), (5, 3), (1, 11)]
SHAPE = (23, 29)


def laid(grid, tile=(2, 2), dtype="float32"):
    layout = gl.GridLayout(SHAPE, dtype, grid=grid, tile=tile)
    x = np.random.default_rng(0).integers(1, 99, SHAPE).astype(dtype)
    return gl.put(x, layout, DEVICE)


def buffers(x):
    return np.asarray(x.physical)


@pytest.mark.parametrize("grid", GRIDS)
def test_every_core_gets_its_buffer_and_its_coordinates(grid):
    x = laid(grid)

    def fn(shard):
        assert shard.shape == x.layout.local_shape
        i, j = gl.cores.core_index()
        return shard + 1000 * i + 100_000 * gl.cores.core_index(-1) + 0 * j

    found = gl.map_shards(fn, x, out=x.layout)
    i, j = np.indices(grid)[..., None, None, None, None]
    np.testing.assert_array_equal(buffers(found), buffers(x) + 1000 * i + 100_000 * j)
    assert found.sharding == x.sharding


@pytest.mark.parametrize("grid", GRIDS)
def test_shift_is_a_roll_of_cores(grid):
    x = laid(grid)
    offsets = [(1, 0), (-1, 1), (2, 1), (-3, 0), (7, 1)]
    outs = [x.layout] * len(offsets)
    found = gl.map_shards(lambda s: [gl.cores.shift(s, o, d) for o, d in offsets], x, out=outs)
    for (offset, dim), each in zip(offsets, found, strict=True):
        np.testing.assert_array_equal(buffers(each), np.roll(buffers(x), offset, dim))


@pytest.mark.parametrize("grid", GRIDS)
def test_shift_without_wrapping_fills(grid):
    x, held = laid(grid), buffers(laid(grid))
    offsets = [(1, 0), (-1, 1), (2, 1), (-9, 0)]
    outs = [x.layout] * len(offsets)
    fn = lambda s: [gl.cores.shift(s, o, d, wrap=False, fill=-1) for o, d in offsets]  # noqa: E731
    for (offset, dim), each in zip(offsets, gl.map_shards(fn, x, out=outs), strict=True):
        expected = np.full_like(held, -1)
        for core in np.ndindex(grid):
            source = [c - offset if k == dim else c for k, c in enumerate(core)]
            if 0 <= source[dim] < grid[dim]:
                expected[core] = held[tuple(source)]
        np.testing.assert_array_equal(buffers(each), expected)


@pytest.mark.few(4)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_collectives_are_over_the_cores_and_no_idle_slots(grid, dtype):
    x = laid(grid, dtype=dtype)
    held = buffers(x) - 200  # negative: an idle slot's 0 would be the maximum

    def fn(shard):
        shard = shard - 200
        gathered = gl.cores.all_gather(shard, 1)
        assert gathered.shape == (grid[1], *shard.shape)
        return (
            gl.cores.psum(shard, (0, 1)),
            gl.cores.pmax(shard, 0),
            -gl.cores.pmin(-shard, 1),
            gathered[-1],
        )

    found = [buffers(each) for each in gl.map_shards(fn, x, out=(x.layout,) * 4)]
    expected = [
        held.sum((0, 1), keepdims=True),
        held.max(0, keepdims=True),
        held.max(1, keepdims=True),
        held[:, -1:],
    ]
    for each, value in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, np.broadcast_to(value, held.shape))


def test_several_arrays_layouts_and_a_plain_one():
    x = laid((3, 5))
    rows = gl.GridLayout((23,), "float32", grid=(3, 5), linear="(d0) -> (d0, 0)")
    shard = rows.local_shape
    w = np.arange(4, dtype=np.float32)

    def fn(a, w):
        return {"scaled": a * w.sum(), "first": jnp.broadcast_to(a.reshape(-1)[:1], shard)}

    found = gl.map_shards(fn, x, w, out={"scaled": x.layout, "first": rows})
    np.testing.assert_array_equal(np.asarray(found["scaled"]), np.asarray(x) * 6)
    assert found["first"].layout == rows


def test_gradients_of_the_function_on_the_buffers():
    layout = gl.GridLayout((5, 7), grid=(3, 2))
    x = gl.put(np.random.default_rng(1).normal(size=(5, 7)), layout, DEVICE)

    def smooth(x):
        fn = lambda s: jnp.sin(s) * gl.cores.shift(s, 1, 0) + gl.cores.psum(s, 1)  # noqa: E731
        return jnp.sum(gl.map_shards(fn, x, out=layout).physical ** 2)

    def plain(p):
        return jnp.sum((jnp.sin(p) * jnp.roll(p, 1, 0) + p.sum(1, keepdims=True)) ** 2)

    found = jax.jit(jax.grad(smooth))(x)
    np.testing.assert_allclose(buffers(found), jax.grad(plain)(buffers(x)), rtol=1e-4)


def test_a_pallas_kernel():
    x = laid((3, 5))

    def double(shard, out):
        out[...] = shard[...] * 2

    def fn(shard):
        shape = jax.ShapeDtypeStruct(shard.shape, shard.dtype)
        return pl.pallas_call(double, out_shape=shape, interpret=True)(shard)

    found = gl.map_shards(fn, x, out=x.layout)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x) * 2)


def test_nothing_is_claimed_of_the_result_s_padding():
    layout = gl.GridLayout((5,), grid=(3,), oob=0)
    x = gl.put(np.ones(5), layout, DEVICE)
    found = gl.map_shards(jnp.exp, x, out=layout)
    assert found.layout.oob is None
    assert float(gl.numpy.sum(found)) == pytest.approx(5 * np.e)


def test_one_trace_per_function_and_layout():
    traces = []

    def fn(shard):
        traces.append(shard)
        return shard

    for oob in (None, 0):
        x = gl.put(np.ones(5), gl.GridLayout((5,), grid=(3,), oob=oob), DEVICE)
        gl.map_shards(fn, x, out=x.layout)
        gl.map_shards(fn, x, out=x.layout)
    assert len(traces) == 1


def test_under_vmap():
    layout = gl.GridLayout((5, 7), grid=(3, 2))
    x = np.random.default_rng(1).normal(size=(4, 5, 7)).astype(np.float32)
    stacked = jax.vmap(lambda a: gl.put(a, layout, DEVICE))(x)
    fn = lambda shard: shard + gl.cores.psum(shard, 0)  # noqa: E731
    found = jax.vmap(lambda a: gl.map_shards(fn, a, out=layout).to_logical())(stacked)
    for each, one in zip(found, x, strict=True):
        expected = gl.map_shards(fn, gl.put(one, layout, DEVICE), out=layout)
        np.testing.assert_allclose(each, np.asarray(expected), rtol=1e-6)


X = laid((2, 4))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gl.map_shards(3, X, out=X.layout), "takes a function of shards, not int"),
        (lambda: gl.map_shards(jnp.exp, np.ones(3), out=X.layout), "no argument is a GridArray"),
        (lambda: gl.map_shards(jnp.exp, X, out="float32"), "must hold gl.Layouts, not str"),
        (lambda: gl.map_shards(jnp.exp, X, laid((4, 2)), out=X.layout), "core grid \\(4, 2\\)"),
        (lambda: gl.map_shards(jnp.exp, X, out=laid((4, 2)).layout), "core grid \\(4, 2\\)"),
        (lambda: gl.map_shards(jnp.sum, X, out=X.layout), r"float32\[\] on a core"),
        (lambda: gl.map_shards(lambda s: (s, s), X, out=X.layout), "the function returns"),
        (lambda: gl.map_shards(lambda s: gl.cores.shift(s, 1, 2), X, out=X.layout), "grid dim 2"),
        (lambda: gl.map_shards(lambda s: gl.cores.shift(s, 1.0), X, out=X.layout), "offset 1.0"),
        (lambda: gl.cores.shift(1, 1), "inside gl.map_shards"),
        (lambda: gl.cores.core_index(0), "inside gl.map_shards"),
        (
            lambda: gl.map_shards(
                jnp.add, X, gl.put(np.ones(SHAPE), X.layout, gl.DeviceGrid((1,))), out=X.layout
            ),
            "different device grids",
        ),
        (lambda: gl.on_grid(lambda x: gl.map_shards(jnp.exp, x, out=X.layout))(X), "gl.def_rule"),
    ],
)
def test_what_does_not_fit_is_said(call, words):
    if DEVICES == 1 and "different device grids" in words:
        pytest.skip("one device has one grid")
    with pytest.raises(gl.LayoutError, match=words):
        call()
