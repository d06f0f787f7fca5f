"""`gl.ring_attention` against `jax.nn.dot_product_attention`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from hlo import collectives
from laid_out import poisoned
from tiers import few

import gridlayout as gl

DEVICES = len(jax.devices())
MESH = (2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,)
DEVICE = gl.DeviceGrid(MESH)


def attention_case(b, t, s, n, k, h, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(b, t, n, h), (b, s, k, h), (b, s, k, h)]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


CASES = [
    ((2, 13, 13, 4, 2, 5), True, (2, 4)),
    ((1, 3, 2, 1, 1, 2), False, (8, 8)),
    ((1, 7, 29, 2, 2, 3), False, (3, 5)),
    ((2, 20, 5, 2, 1, 3), True, (1, 1)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("sizes", "causal", "grid"), few(CASES, 2))
def test_ring_attention_is_attention(sizes, causal, grid):
    device, arrays = mapped(MESH, CASES.index((sizes, causal, grid)), grid), attention_case(*sizes)
    laid = [poisoned(a, gl.GridLayout(a.shape, grid=grid, tile=(2, 2)), device) for a in arrays]
    weights = np.random.default_rng(3).normal(size=arrays[0].shape).astype(np.float32)
    on_grid_weights = gl.put(weights, laid[0].layout, device)

    def plain(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    def ring(q, k, v):
        return gl.ring_attention(q, k, v, is_causal=causal)

    pull = jax.grad(lambda *x: gl.numpy.sum(ring(*x) * on_grid_weights), (0, 1, 2))
    found, gradients = jax.jit(lambda *x: (ring(*x), pull(*x)))(*laid)
    assert found.layout == laid[0].layout
    np.testing.assert_allclose(np.asarray(found), jax.jit(plain)(*arrays), rtol=1e-5, atol=1e-6)
    expected = jax.jit(jax.grad(lambda *x: jnp.sum(plain(*x) * weights), (0, 1, 2)))(*arrays)
    for each, value in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(np.asarray(each), value, rtol=1e-4, atol=1e-5)


def test_ring_attention_of_one_batch_narrow_types_and_a_scale():
    arrays = [a[0] for a in attention_case(1, 12, 12, 2, 2, 4)]
    narrow = [jnp.asarray(a, jnp.bfloat16) for a in arrays]
    layout = gl.GridLayout((12, 2, 4), "bfloat16", grid=(4, 1, 1), collapse=[])
    found = gl.ring_attention(gl.put(narrow[0], layout, DEVICE), *narrow[1:], scale=0.3)
    expected = jax.nn.dot_product_attention(*narrow, scale=0.3)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=0.02
    )


def test_no_core_ever_holds_all_scores():
    q, k, v = attention_case(1, 64, 64, 1, 1, 2)
    layout = gl.GridLayout(q.shape, grid=(1, 8, 1, 1), collapse=[])
    laid = [gl.put(a, layout, DEVICE) for a in (q, k, v)]
    grad = jax.grad(lambda *x: gl.numpy.sum(gl.ring_attention(*x)), (0, 1, 2))
    text = jax.jit(grad).lower(*laid).compile().as_text()
    # In what each device runs: blocks of 8x8 scores for its cores, never 64 in two dims.
    assert "64,64" not in text
    cores = 8 // min(8, DEVICE.size)
    assert "8,8]" in text or cores > 1


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(4, 2), (4, 2), (4, 2)], "batch, length, heads"),
        ([(4, 3, 2), (4, 2, 2), (4, 2, 2)], "divides query's"),
        ([(4, 2, 2), (4, 2, 3), (4, 2, 3)], "width"),
        ([(4, 2, 2), (4, 2, 2), (5, 2, 2)], "must have the same shape"),
        ([(0, 2, 2), (4, 2, 2), (4, 2, 2)], "not empty"),
    ],
)
def test_ring_attention_says_what_does_not_fit(shapes, words):
    q, k, v = (np.ones(shape, np.float32) for shape in shapes)
    layout = gl.GridLayout(q.shape, grid=(1,) * q.ndim, collapse=[])
    with pytest.raises(gl.LayoutError, match=words):
        gl.ring_attention(gl.put(q, layout, DEVICE), k, v)


def test_ring_attention_takes_one_floating_type():
    q = gl.put(np.ones((4, 2, 2), np.float32), gl.GridLayout((4, 2, 2), grid=(1, 1)), DEVICE)
    with pytest.raises(gl.LayoutError, match="one floating dtype"):
        gl.ring_attention(q, np.ones((4, 2, 2), np.int32), np.ones((4, 2, 2), np.int32))
    with pytest.raises(gl.LayoutError, match="must be a GridArray"):
        gl.ring_attention(np.ones((4, 2, 2)), q, q)


def test_attention_by_its_rules_stays_where_batch_and_heads_are():
    """No core waits for another between the projections, forward and backward."""
    batch, length, heads, width = 4, 6, 8, 4
    device = gl.DeviceGrid((2, 4))
    shape = (batch * length, heads * width)
    arrays = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(4)]
    laid = [gl.put(a, gl.GridLayout(shape, grid=(2, 4)), device) for a in arrays]

    def attend(q, k, v):
        parts = [x.reshape(batch, length, heads, width) for x in (q, k, v)]
        return jax.nn.dot_product_attention(*parts).reshape(shape)

    def pulled(q, k, v, g):
        out, pull = jax.vjp(attend, q, k, v)
        return out, *pull(g)

    on_grid = gl.on_grid(pulled)
    for found, expected in zip(on_grid(*laid), jax.jit(pulled)(*arrays), strict=True):
        assert found.layout.grid == (2, 4)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)
    rows = on_grid.report(*laid).rows
    products = [row for row in rows if row.primitive == "dot_general"]
    assert len(products) == 6
    assert {row.bytes_moved for row in rows if row.primitive in ("dot_general", "reshape")} == {0}
    compiled = jax.jit(on_grid).lower(*laid).compile().as_text()
    assert collectives(compiled, device.size) == []


def test_few_batches_do_not_leave_devices_idle():
    """3 batches: over 2 x 4 cores rather than 3, and then the products are gathered."""
    device = gl.DeviceGrid((2, 4))
    a, b = np.ones((3, 64, 16), np.float32), np.ones((3, 16, 64), np.float32)
    layout = gl.GridLayout(a.shape, grid=(2, 4))
    x, y = gl.put(a, layout, device), gl.put(b, gl.GridLayout(b.shape, grid=(2, 4)), device)
    found = gl.on_grid(jnp.matmul)(x, y)
    np.testing.assert_array_equal(np.asarray(found), a @ b)
    (row,) = gl.on_grid(jnp.matmul).report(x, y).rows
    local = device.placement(found.layout.grid).per_device
    assert np.prod(local) * np.prod(found.layout.local_shape) <= found.size / 8 * 4 / 3
    assert row.bytes_moved > 0
