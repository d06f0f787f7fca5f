"""Convolutions and pooling on the grid: JAX's values, a halo and no more between devices."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deciding import Compiled, Traced, decisions, kinds_of
from devices import turn as device_of
from hlo import collectives
from jax import lax
from laid_out import assert_same, poisoned
from tiers import few

import gridlayout as gl

DEVICES = len(jax.devices())
DEVICE = gl.DeviceGrid((2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,))
CONVOLVED = "conv_general_dilated"
NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def conv(**params):
    return lambda x, w: lax.conv_general_dilated(x, w, **params)


# Name: function, shapes of images and kernel.
CASES = {
    "same": (
        conv(window_strides=(1, 1), padding="SAME", dimension_numbers=NCHW),
        [(2, 3, 11, 13), (5, 3, 3, 3)],
    ),
    "valid nhwc": (
        conv(window_strides=(1, 1), padding="VALID", dimension_numbers=NHWC),
        [(3, 9, 10, 2), (3, 2, 2, 4)],
    ),
    "stride and dilation": (
        conv(
            window_strides=(2, 3),
            padding=((3, 1), (0, 4)),
            rhs_dilation=(2, 1),
            dimension_numbers=NCHW,
        ),
        [(1, 2, 17, 14), (4, 2, 3, 5)],
    ),
    "transposed": (
        conv(
            window_strides=(1, 2),
            padding=((2, 2), (1, 0)),
            lhs_dilation=(2, 3),
            dimension_numbers=NHWC,
        ),
        [(2, 7, 5, 3), (3, 2, 3, 2)],
    ),
    "groups": (
        conv(
            window_strides=(1, 1),
            padding="SAME",
            feature_group_count=3,
            dimension_numbers=NCHW,
        ),
        [(2, 6, 7, 9), (9, 2, 3, 3)],
    ),
    "batch groups": (
        conv(window_strides=(1, 1), padding="SAME", batch_group_count=2, dimension_numbers=NCHW),
        [(4, 3, 7, 9), (6, 3, 3, 3)],
    ),
    "negative padding": (
        conv(window_strides=(1, 1), padding=((-1, 2), (1, -2)), dimension_numbers=NCHW),
        [(1, 2, 12, 11), (2, 2, 3, 3)],
    ),
    "one dim": (
        conv(window_strides=(1,), padding="SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        [(2, 23, 3), (5, 3, 4)],
    ),
    "window larger than the image": (
        conv(window_strides=(1, 1), padding=((4, 4), (5, 5)), dimension_numbers=NCHW),
        [(2, 2, 5, 7), (3, 2, 9, 11)],
    ),
}
# Grids over the last dims (the others joined) and over each dim; tiles; several cores a device.
LAYOUTS = [
    {"grid": (2, 4)},
    {"grid": (3, 5), "tile": (4, 4)},
    {"grid": (1, 16)},
]


def example(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def every(shape):
    yield from LAYOUTS
    rank = len(shape)
    yield {"grid": (1,) * (rank - 2) + (4, 2), "collapse": []}
    yield {"grid": (2, 1) + (2,) * (rank - 2), "collapse": []}


def decided(fn, arrays, compiled, name, primitive=None, count=5):
    """The operands in the layouts to compile a function in, of all that it is decided in.

    primitive: one that runs by its rule; none falls back. count: of layouts, without --all-cases.
    """
    traced = Traced(fn, arrays)
    for k, image in few(enumerate(every(arrays[0].shape)), count):
        given = [image, *[LAYOUTS[(k + 1) % 3]] * (len(arrays) - 1)]
        layouts = [
            gl.GridLayout(a.shape, **arguments) for a, arguments in zip(arrays, given, strict=True)
        ]
        device = device_of(DEVICE, k)
        program = traced.sound_program(layouts, device, name)
        assert all(made.how != "fallback" for made in decisions(program)), (name, layouts)
        if primitive is not None:
            hows = {made.how for made in decisions(program) if made.op.name == primitive}
            assert hows == {"rule"}, (name, layouts)
        if compiled.is_new(name, kinds_of(program)):
            yield [poisoned(a, x, device) for a, x in zip(arrays, layouts, strict=True)]


def test_every_convolution_and_its_gradients_on_every_layout():
    compiled, differentiated = Compiled(), few([*CASES][2:] + [*CASES][:2], 1)
    for name, (fn, shapes) in CASES.items():
        arrays = [example(shape, k) for k, shape in enumerate(shapes)]
        for laid in decided(fn, arrays, compiled, name, CONVOLVED):
            assert_same(jax.jit(gl.on_grid(fn))(*laid), jax.jit(fn)(*arrays), rtol=1e-4, atol=1e-4)

        def loss(x, w, fn=fn):
            return jnp.sum(jnp.sin(fn(x, w)))

        gradient = jax.grad(loss, (0, 1))
        count = 5 if name in differentiated else 2
        laids = list(decided(gradient, arrays, compiled, f"gradients of {name}", CONVOLVED, count))
        if name not in differentiated:
            continue
        expected = jax.jit(gradient)(*map(jnp.asarray, arrays))
        for laid in laids:
            found = jax.jit(jax.grad(gl.on_grid(loss), (0, 1)))(*laid)
            assert_same(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "complex64"])
def test_other_types(dtype):
    fn, shapes = CASES["same"]
    arrays = [jnp.asarray(example(shape, k) * 3, dtype) for k, shape in enumerate(shapes)]
    laid = [poisoned(a, gl.GridLayout(a.shape, dtype, grid=(2, 4)), DEVICE) for a in arrays]
    found, expected = jax.jit(gl.on_grid(fn))(*laid), fn(*arrays)
    assert found.dtype == expected.dtype
    assert_same(found, expected, rtol=0.02, atol=0.1)


def test_a_preferred_type_is_kept():
    arrays = [example(shape, k).astype(jnp.bfloat16) for k, shape in enumerate(CASES["same"][1])]
    fn = conv(
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=NCHW,
        preferred_element_type=jnp.float32,
    )
    laid = [poisoned(a, gl.GridLayout(a.shape, a.dtype, grid=(2, 4)), DEVICE) for a in arrays]
    assert_same(jax.jit(gl.on_grid(fn))(*laid), fn(*arrays), rtol=1e-3, atol=1e-3)


def test_a_divided_image_sends_its_edges_only():
    if DEVICES != 8:
        pytest.skip("counted for 2x4 devices")
    fn, _ = CASES["same"]
    lay = lambda shape: gl.GridLayout(shape, grid=(1, 1, 2, 4), collapse=[])  # noqa: E731
    # Links without latency, where edges are not gathered at once.
    chip, rates = gl.Chip("toy", (1, 1), {"dram": 1 << 30}), gl.Rates(flops=1e12, memory=1e11)
    machine = gl.Machine(chip, mesh=(2, 4), links=gl.Links(1e10), rates=rates)
    device = gl.DeviceGrid((2, 4), machine=machine)
    x = gl.put(example((1, 4, 32, 64)), lay((1, 4, 32, 64)), device)
    w = gl.put(example((8, 4, 3, 3)), gl.GridLayout((8, 4, 3, 3), grid=(1, 1)), device)
    on_grid = gl.on_grid(fn, policy=lambda shape, *_: lay(shape))
    text = jax.jit(lambda *a: on_grid(*a).storage).lower(x, w).compile().as_text()
    found = collectives(text, 8)
    assert {kind for kind, _ in found} == {"collective-permute"}
    # A row of 16 each way over two devices, then columns of 18 rows over four; 4 channels.
    rows, columns = 4 * 16 * 2 * 4, 4 * 18 * 2 * (3 * 2)
    assert sum(size for _, size in found) == 4 * (rows + columns)
    (row,) = on_grid.report(x, w).rows
    assert row.bytes_moved == 4 * (rows + columns)
    expected = fn(np.asarray(x), np.asarray(w))
    np.testing.assert_allclose(np.asarray(on_grid(x, w)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "base"), [(16, 2), (24, 3), (20, 2)])
def test_holes_of_a_dilation_are_neither_sent_nor_computed(rows, base):
    if DEVICES != 8:
        pytest.skip("counted for 2x4 devices")
    # As in the gradient of a strided convolution: of a window of 3, one row is of the neighbour.
    fn = conv(
        window_strides=(1, 1),
        padding=((base, 1), (1, 1)),
        lhs_dilation=(base, 1),
        dimension_numbers=NHWC,
    )
    x, w = example((2, rows, 6, 3)), example((3, 3, 3, 4))
    layout = gl.GridLayout(x.shape, "float32", grid=(1, 4, 1, 1), collapse=[])
    laid = poisoned(x, layout, DEVICE)
    on_grid = gl.on_grid(fn)
    np.testing.assert_allclose(np.asarray(on_grid(laid, w)), fn(x, w), rtol=1e-4, atol=1e-4)
    text = on_grid.lower(laid, w).compile().as_text()
    assert f"lhs_dilate={base}x1" in text
    assert not re.search(rf"\[2,{base * rows // 4}\d*,6,3\]", text)  # no block has holes


def test_a_kernel_s_gradient_is_summed_where_the_images_lie():
    if DEVICES != 8:
        pytest.skip("counted for 2x4 devices")
    fn, _ = CASES["same"]
    image = gl.GridLayout((8, 2, 16, 16), grid=(8, 1, 1, 1), collapse=[])
    x, w = gl.put(example(image.shape), image, DEVICE), jnp.asarray(example((4, 2, 3, 3)))
    grad = gl.on_grid(jax.grad(lambda w, x: jnp.sum(fn(x, w) ** 2)))
    text = jax.jit(lambda w, x: grad(w, x).storage).lower(w, x).compile().as_text()
    assert not re.search(r"f32\[8,2,16,16\]", text)  # no device ever has all images


# -- pooling -----------------------------------------------------------------------------------


def pool(init, reducer, window, strides, padding, **dilations):
    return lambda x: lax.reduce_window(x, init, reducer, window, strides, padding, **dilations)


POOLS = {
    "max": pool(-np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
    "max overlapping": pool(-np.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 1), "SAME"),
    "min": pool(np.inf, lax.min, (1, 1, 3, 2), (1, 1, 2, 2), "SAME"),
    "sum": pool(0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 2), ((0, 0), (0, 0), (2, 1), (0, 3))),
    "sum dilated": pool(
        0.0,
        lax.add,
        (1, 1, 2, 3),
        (1, 1, 1, 2),
        "VALID",
        base_dilation=(1, 1, 2, 1),
        window_dilation=(1, 1, 2, 3),
    ),
    "over batches too": pool(0.0, lax.add, (2, 1, 2, 2), (1, 1, 2, 2), "VALID"),
    "own function": pool(1.0, lambda a, b: a * b, (1, 1, 2, 3), (1, 1, 1, 2), "SAME"),
    "where the largest are": lambda x: greatest_of_windows(x)[1].astype("f4"),
    "tangent of max": lambda x: jax.jvp(POOLS["max overlapping"], (x,), (jnp.cos(x),))[1],
}
NO_GRADIENT = ("min", "own function", "where the largest are")  # in JAX


def greatest_of_windows(x):
    places = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
    return lax.reduce_window(
        *((x, places), (-np.inf, np.int32(-1)), greater, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    )


def greater(a, b):
    first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return tuple(jnp.where(first, x, y) for x, y in zip(a, b, strict=True))


# Along each of two dims: window, stride, padding before and after.
WINDOWS = {
    "apart": [(2, 2, 0, 0), (2, 2, 0, 0)],
    "overlapping": [(3, 2, 1, 0), (3, 1, 1, 1)],
    "wide": [(5, 2, 2, 3), (4, 4, 3, 1)],
    "with gaps": [(1, 2, 0, 0), (2, 4, 1, 2)],
    "with gaps and padding": [(2, 6, 5, 3), (1, 1, 0, 0)],
}


@pytest.mark.few(4)
@pytest.mark.parametrize("reducer", [lax.max, lax.min])
@pytest.mark.parametrize("grid", [(2, 4), (4, 2), (1, 8), (3, 2)])
@pytest.mark.parametrize("name", WINDOWS)
def test_extremes_of_windows_are_differentiated_on_blocks(name, grid, reducer):
    window, stride, low, high = zip(*WINDOWS[name], strict=True)
    init = -np.inf if reducer is lax.max else np.inf
    fn = pool(init, reducer, window, stride, tuple(zip(low, high, strict=True)))
    x = np.round(example((24, 47)), 1)  # some elements are equal
    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(fn(x) + x[0, 0])))
    layout = gl.GridLayout(x.shape, grid=grid, collapse=[])
    laid = poisoned(x, layout, DEVICE)
    assert_same(gl.on_grid(gradient)(laid), jax.jit(gradient)(x))
    block = -(-24 // grid[0]), -(-47 // grid[1])
    pairs = zip(block, stride, grid, window, strict=True)
    if all(b % n == 0 or m == 1 for b, n, m, _ in pairs):
        rows = gl.on_grid(gradient).report(laid).rows
        (row,) = [row for row in rows if row.primitive == "select_and_scatter_add"]
        assert row.bytes_moved <= 8 * 4 * 16 * (24 * grid[1] + 47 * grid[0]), row


@pytest.mark.parametrize("reducer", [lax.max, lax.min])
def test_the_first_extreme_of_a_window_is_selected_as_by_xla(reducer):
    """Also among equal elements, infinities and NaN. XLA itself does it for large windows only."""
    random, init = np.random.default_rng(0), -np.inf if reducer is lax.max else np.inf
    x = random.choice(np.array([-np.inf, -1, -0.0, 0, 2, np.inf, np.nan], np.float32), (23, 37))
    laid = poisoned(x, gl.GridLayout(x.shape, grid=(2, 4), collapse=[]), DEVICE)
    for window, stride in [((2, 2), (2, 2)), ((3, 4), (2, 1)), ((9, 8), (3, 4))]:
        fn = pool(init, reducer, window, stride, "SAME")
        ct = random.standard_normal(jax.eval_shape(fn, x).shape, np.float32)

        def pulled(x, fn=fn, ct=ct):
            return jax.vjp(fn, x)[1](ct)[0]

        run = jax.jit(gl.on_grid(pulled))
        assert_same(run(laid), jax.jit(pulled)(x))
        is_large = window[0] * window[1] > 49
        if DEVICE.platform == "cpu":
            assert ("select_and_scatter" in run.lower(laid).as_text()) == is_large


# Window, strides, padding and dilation of the window.
REACHES = [
    ((2, 2), (2, 2), ((0, 1), (1, 0)), (1, 1)),
    ((2, 3), (4, 3), ((7, 9), (-2, -1)), (1, 1)),
    ((3, 2), (3, 5), ((1, 2), (0, 6)), (2, 4)),
    ((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
]


@pytest.mark.parametrize("reducer", [lax.max, lax.min, lax.add])
@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_windows_are_reduced_as_by_xla(grid, reducer):
    """Also with infinities and NaN, with windows beyond the ends of the array."""
    init = {lax.max: -np.inf, lax.min: np.inf, lax.add: 0.0}[reducer]
    random = np.random.default_rng(0)
    x = random.choice(np.array([-np.inf, -1, 0, 2, np.inf, np.nan], np.float32), (22, 37))
    laid = poisoned(x, gl.GridLayout(x.shape, grid=grid, tile=(4, 8), collapse=[]), DEVICE)
    fns = [pool(init, reducer, *reach[:3], window_dilation=reach[3]) for reach in REACHES]
    assert_same(
        jax.jit(gl.on_grid(lambda x: [fn(x) for fn in fns]))(laid),
        jax.jit(lambda x: [fn(x) for fn in fns])(x),
    )


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz"])
def test_windows_at_the_ends_are_reduced_in_types_without_infinity(dtype):
    info = jnp.finfo(dtype)
    x = np.random.default_rng(0).choice([-2, -1, 0.5, 1], (16, 12)).astype(info.dtype)
    laid = gl.put(x, gl.GridLayout(x.shape, dtype, grid=(2, 1)), DEVICE)
    ends = [(info.min, lax.max), (info.max, lax.min)]
    fns = [pool(init, reducer, (3, 3), (1, 1), "SAME") for init, reducer in ends]
    every = lambda x: [fn(x) for fn in fns]  # noqa: E731
    assert_same(gl.on_grid(every)(laid), jax.jit(every)(x))


@pytest.mark.skipif(DEVICE.platform != "cpu", reason="XLA's kernels for CPUs")
@pytest.mark.parametrize(
    ("tile", "padding"), [(None, "SAME"), ((8, 16), "SAME"), ((8, 16), (0, 2))]
)
def test_windows_apart_are_read_where_they_are(tile, padding):
    """One kernel reads them, from tiles too, and nothing is written but the result."""
    x = example((33, 47))
    laid = gl.put(x, gl.GridLayout(x.shape, grid=(1, 1), tile=tile, collapse=[]), DEVICE)
    padding = padding if padding == "SAME" else (padding, padding)
    fn = gl.on_grid(pool(-np.inf, lax.max, (2, 2), (2, 2), padding))
    compiled = fn.lower(laid).compile()
    assert "reduce-window" not in compiled.as_text()
    assert compiled.memory_analysis().temp_size_in_bytes <= 4


def test_pooling_and_its_gradient():
    x, compiled = example((3, 2, 11, 13)), Compiled()
    smooth = [name for name in POOLS if name not in NO_GRADIENT]
    differentiated = few(smooth[1:] + smooth[:1], 3)
    for name, fn in POOLS.items():
        for laid in decided(fn, [x], compiled, name):
            assert_same(jax.jit(gl.on_grid(fn))(*laid), jax.jit(fn)(x))
        if name in NO_GRADIENT:
            continue

        def loss(x, fn=fn):
            return jnp.sum(jnp.sin(fn(x)))

        gradient = jax.grad(loss)
        count = 5 if name in differentiated else 2
        laids = list(decided(gradient, [x], compiled, f"gradient of {name}", count=count))
        for laid in laids if name in differentiated else ():
            found = jax.jit(jax.grad(gl.on_grid(loss)))(*laid)
            assert_same(found, jax.jit(gradient)(x))


def test_integers_have_extremes():
    x = np.random.default_rng(0).integers(-100, 100, (2, 1, 9, 9)).astype(np.int32)
    fn = pool(np.int32(-(2**31)), lax.max, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")
    laid = poisoned(x, gl.GridLayout(x.shape, "int32", grid=(2, 4)), DEVICE)
    np.testing.assert_array_equal(np.asarray(gl.on_grid(fn)(laid)), fn(x))


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize(("groups", "sends"), [(12, False), (4, False), (6, True)])
def test_groups_of_features_are_divided(groups, sends):
    """A device convolves its groups, if each device has as many."""
    device, random = gl.DeviceGrid((2, 4)), np.random.default_rng(0)
    x = random.standard_normal((3, 7, 12, 5), np.float32)
    kernel = random.standard_normal((24, 12 // groups, 3, 3), np.float32)

    def convolve(x, kernel):
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", feature_group_count=groups)

    x = x.transpose(0, 2, 1, 3)
    grids = (2, 4, 1, 1), (4, 1, 1, 1)
    laid = [
        poisoned(each, gl.GridLayout(each.shape, "float32", grid, collapse=[]), device)
        for each, grid in zip((x, kernel), grids, strict=True)
    ]
    fn = gl.on_grid(convolve)
    assert_same(fn(*laid), convolve(x, kernel))
    (row,) = [row for row in fn.report(*laid).rows if row.primitive == "conv_general_dilated"]
    assert groups % row.outputs[0].grid[1] == 0
    assert sends or not row.bytes_moved
