"""Products that go at once to the layout in which they are read, and what training then sends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from jax import lax
from machines import FAST
from tiers import few

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 4), machine=FAST)
ROWS, WIDTH, HIDDEN = 30, 47, 190


def layout(shape, grid, **more):
    return gl.GridLayout(shape, "float32", grid, **more)


def laid(shape, grid, seed):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return gl.put(values, layout(shape, grid), DEVICE)


X = laid((ROWS, WIDTH), (2, 1), 0)
W = laid((WIDTH, HIDDEN), (1, 4), 1)
B = laid((HIDDEN,), (4,), 2)
H = laid((ROWS, HIDDEN), (2, 4), 3)
SPREAD, POLICYS = H.layout, layout((ROWS, HIDDEN), (2, 1))


def at_home(value):
    return gl.with_layout(value, SPREAD)


def product_rows(fn, *args, **options):
    rows = gl.on_grid(fn, **options).report(*args).rows
    return [row for row in rows if row.primitive == "dot_general"]


# By what reads the product, whose rows and columns lie as its operands do, on 2x4 cores.
READ = {
    "with_layout": lambda x, w, b, h: at_home(x @ w),
    "with_layout of a bias added": lambda x, w, b, h: at_home(jax.nn.relu(x @ w + b)),
    "a bias before it": lambda x, w, b, h: at_home(jax.nn.gelu(b + x @ w)),
    "with_layout of a dtype": lambda x, w, b, h: gl.with_layout(
        (x @ w).astype(jnp.bfloat16), SPREAD.with_dtype("bfloat16")
    ),
    "a sum": lambda x, w, b, h: h + x @ w,
    "a sum of two products": lambda x, w, b, h: h * 2 + (x @ w) * jnp.sin(x @ w),
    "where": lambda x, w, b, h: jnp.where(h > 0, x @ w, 0),
    "a call": lambda x, w, b, h: h + jax.jit(lambda y: jax.nn.silu(y) + 1)(x @ w),
    "in a call": lambda x, w, b, h: h + jax.checkpoint(lambda x, w: jnp.sin(x @ w))(x, w),
    "a transpose": lambda x, w, b, h: h + (w.T @ x.T).T,
    "a reduction too": lambda x, w, b, h: (lambda y: (h + y).sum() + y.max())(x @ w),
    "a product too": lambda x, w, b, h: (lambda y: ((h + y) @ w.T) @ w + y)(x @ w).mean(),
    "scan": lambda x, w, b, h: lax.scan(lambda c, _: (c + x @ w, None), h, None, length=2)[0],
    "a loop's next value": lambda x, w, b, h: lax.fori_loop(0, 2, lambda i, c: x @ w + i, h),
    "an operand's next value": lambda x, w, b, h: x @ w + h,
    "printing": lambda x, w, b, h: (jax.debug.callback(lambda: None), h + x @ w)[1],
}


@pytest.mark.parametrize("name", READ)
def test_a_product_goes_at_once_to_where_it_is_read(name):
    rows = gl.on_grid(READ[name]).report(X, W, B, H).rows
    first = next(row for row in rows if row.primitive == "dot_general")
    assert [out.grid for out in first.outputs] == [(2, 4)]
    assert not first.bytes_moved
    assert not any(row.bytes_moved for row in rows if row.primitive in ("add", "with_layout"))


@pytest.mark.parametrize("name", few(READ, 5))
def test_values_are_those_of_plain_jax(name):
    args = (X, W, B, H)
    grids = [x.layout.grid for x in args]
    device = mapped((2, 4), list(READ).index(name) + 1, *grids, machine=FAST)
    got = gl.on_grid(READ[name])(*(gl.put(np.asarray(x), x.layout, device) for x in args))
    expected = READ[name](*map(np.asarray, args))
    np.testing.assert_allclose(
        np.asarray(got, np.float32), np.asarray(expected, np.float32), rtol=2e-2, atol=1e-3
    )


# By what reads it elsewhere, or nowhere.
KEPT = {
    "nothing": lambda x, w, h: x @ w,
    "two layouts": lambda x, w, h: (lambda y: (h + y, gl.with_layout(y, POLICYS)))(x @ w),
    "a copy aside": lambda x, w, h: (
        lambda y: (gl.with_layout(y, layout(y.shape, (1, 1))), y @ w.T)
    )(x @ w),
}


@pytest.mark.parametrize("name", KEPT)
def test_else_it_lies_by_the_policy(name):
    first = product_rows(KEPT[name], X, W, H)[0]
    assert [out.grid for out in first.outputs] == [(2, 1)]


def test_a_policy_is_obeyed():
    def policy(shape, dtype, like, device):
        return gl.GridLayout(shape, dtype, (4, 1)) if len(shape) == 2 else like

    (row,) = product_rows(lambda x, w: at_home(x @ w), X, W, policy=policy)
    assert [out.grid for out in row.outputs] == [(4, 1)]


def test_a_memory_space_is_entered_where_it_is_asked_for():
    far = SPREAD.replace(memory_space="dram")
    fn = gl.on_grid(lambda x, w: gl.with_layout(x @ w, far))
    assert [row.outputs[0].memory for row in fn.report(X, W).rows] == ["l1", "dram"]
    assert fn(X, W).layout == far


def test_a_convolution_goes_there_too():
    images, kernel = laid((8, 3, 10, 9), (8, 1), 0), laid((4, 3, 3, 3), (1, 1), 1)

    def fn(images, kernel):
        out = lax.conv(images, kernel, (1, 1), "SAME")
        return gl.with_layout(out, layout(out.shape, (1, 1)))

    rows = gl.on_grid(fn).report(images, kernel).rows
    assert [row.primitive for row in rows if row.bytes_moved] == ["conv_general_dilated"]
    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(images, kernel)),
        lax.conv(np.asarray(images), np.asarray(kernel), (1, 1), "SAME"),
        atol=1e-4,
    )


def test_keys_that_a_call_makes_are_on_no_core():
    mask = laid((8,), (8,), 0)

    def fn(mask):
        a, b = (jax.jit(lambda k: jax.random.split(k, 8))(jax.random.key(seed)) for seed in (0, 1))
        return jax.vmap(jax.random.uniform)(lax.select(mask > 0, a, b))

    got = gl.on_grid(fn)(mask)
    np.testing.assert_array_equal(np.asarray(got), fn(np.asarray(mask)))


# -- what training sends ---------------------------------------------------------------------------


def step(params, x, hidden=None):
    def loss(p):
        y = jax.nn.relu(x @ p["up"] + p["bias"])
        if hidden is not None:
            y = gl.with_layout(y, layout(y.shape, hidden))
        return jnp.mean((x + y @ p["down"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


SIZES = {"x": (1003, 48), "up": (48, HIDDEN), "bias": (HIDDEN,), "down": (HIDDEN, 48)}
# Grids of the arrays and of the hidden layer, and kinds and groups of what sends over 1 KiB.
WAYS = {
    "data parallel": (
        ((8, 1), (1, 1), (1,), (1, 1), None),
        ["all_reduce 8", "all_reduce 8", "all_reduce 8"],
    ),
    "data and tensor parallel": (
        ((2, 1), (1, 4), (4,), (4, 1), (2, 4)),
        ["all_reduce 4", "all_reduce 2", "all_reduce 2"],
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_training_sends_what_its_way_of_dividing_needs(way):
    grids, expected = WAYS[way]
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=s).astype(np.float32) / 8 for name, s in SIZES.items()}
    layouts = {name: layout(s, grid) for (name, s), grid in zip(SIZES.items(), grids, strict=False)}
    params = gl.put(arrays, DEVICE, layouts)
    x = params.pop("x")
    fn = gl.on_grid(lambda p, x: step(p, x, grids[-1]))
    sent = [each for row in fn.report(params, x).rows for each in row.collectives]
    large = [f"{one.kind} {one.group_size}" for one in sent if one.received_bytes >= 1024]
    assert large == expected
    new, value = fn(params, x)
    plain = arrays.pop("x")
    expected, loss = step(arrays, plain)
    assert {name: new[name].layout.grid for name in new} == {
        name: layouts[name].grid for name in new
    }
    np.testing.assert_allclose(value, loss, rtol=1e-5)
    for name in new:
        np.testing.assert_allclose(np.asarray(new[name]), expected[name], atol=1e-5)


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_gradients_land_where_an_optimizer_reads_them(optimizer):
    """A gradient that several moments read goes to where these lie, the parameter's grid."""
    w, m, v = (laid((WIDTH, 48), (4, 1), k) for k in range(3))

    def update(w, m, v, x):
        g = jax.grad(lambda w: ((x @ w) ** 2).sum())(w)
        m = 0.9 * m + 0.1 * g
        if optimizer == "momentum":
            return w - m, m
        v = 0.99 * v + 0.01 * g**2
        return w - m / (jnp.sqrt(jnp.abs(v)) + 1e-3), m, v

    rows = gl.on_grid(update).report(w, m, v, laid((256, WIDTH), (8, 1), 4)).rows
    assert [row.outputs[0].grid for row in rows if row.primitive == "dot_general"][-1] == (4, 1)
    assert not any(row.bytes_moved for row in rows if row.primitive in ("add", "sub", "mul", "div"))


def test_long_chains_of_calls_are_planned():
    # jnp.where is a call, which reads the value before it three times.
    def clipped(x):
        for _ in range(400):
            x = jnp.where(x > 0, x, 0.1 * x)
        return x

    report = gl.on_grid(clipped, DEVICE).report(SPREAD)
    assert [row.primitive for row in report.rows] == ["gt", "mul", "select_n"] * 400
    assert not any(row.collectives for row in report.rows)
