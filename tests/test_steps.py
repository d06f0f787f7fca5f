"""Whole steps: convolutions, Adam, decoding with a cache; no more collectives than GSPMD's."""

import itertools
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from hlo import KINDS, OURS, compiled_collectives
from jax import lax
from jax.sharding import NamedSharding
from laid_out import assert_same, poisoned
from test_plan import array, compiled, mlp, residual, step
from tiers import few

import gridlayout as gl

COUNT = len(jax.devices())
pytestmark = pytest.mark.skipif(COUNT < 8, reason="the placements are of 8 devices")
DEVICE = gl.DeviceGrid((2, 4)) if COUNT >= 8 else None


def convolutions(x, first, second, head):
    for kernel in (first, second):
        numbers = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        window = (1, 2, 2, 1)
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, window, window, "VALID")
    return x.reshape(len(x), -1) @ head


def adam(x, *state):
    weights, first, second = state[:3], state[3:6], state[6:]
    grads = jax.grad(lambda weights: jnp.mean(mlp(x, *weights) ** 2))(weights)
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.99 * v + 0.01 * g * g for v, g in zip(second, grads, strict=True)]
    rows = zip(weights, first, second, strict=True)
    return [w - 0.01 * m / (jnp.sqrt(jnp.abs(v)) + 1) for w, m, v in rows], first, second


def decode(x, qkv, out, keys, values):
    """Three tokens of attention with a cache of (batch, length, heads, width)."""
    batch, length, heads, width = keys.shape

    def token(carry, i):
        x, keys, values = carry
        q, k, v = (part.reshape(batch, heads, width) for part in jnp.split(x @ qkv, 3, -1))
        keys = lax.dynamic_update_slice(keys, k[:, None], (0, i, 0, 0))
        values = lax.dynamic_update_slice(values, v[:, None], (0, i, 0, 0))
        scores = jnp.einsum("bhk,blhk->bhl", q, keys)
        scores = jnp.where(jnp.arange(length) <= i, scores, -1e9)
        found = jnp.einsum("bhl,blhk->bhk", jax.nn.softmax(scores, -1), values)
        x = x + found.reshape(x.shape) @ out
        return (x, keys, values), x

    return lax.scan(token, (x, keys, values), jnp.arange(5, 8))


def attention(x, qkv, out):
    """Rows of 4 sequences, joined; 4 heads."""
    q, k, v = (part.reshape(4, -1, 4, x.shape[1] // 4) for part in jnp.split(x @ qkv, 3, -1))
    return x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ out


ONES = (1, 1, 1, 1)
IMAGES = [(8, 8, 8, 4), (3, 3, 4, 8), (3, 3, 8, 12), (48, 8)]
WEIGHTS = [(16, 24), (24, 24), (24, 8)]
CACHE = (8, 16, 8, 4)
DECODING = [(8, 32), (32, 96), (32, 32), CACHE, CACHE]
WAYS = {
    "2x4": [(2, 4)] * 4,
    "data parallel": [(8, 1), *[(1, 1)] * 3],
    "fully sharded": [(8, 1)] * 4,
    "2-D": [(2, 1), (1, 4), (4, 1), (1, 4)],
}
# The function, its operands' shapes, and their grids.
STEPS = {
    "convolutions by batch": (step(convolutions), IMAGES, [(8, 1, 1, 1), ONES, ONES, (8, 1)]),
    "convolutions by features": (
        *(step(convolutions), IMAGES),
        [(2, 1, 1, 1), (1, 1, 1, 4), (1, 1, 4, 1), (1, 4)],
    ),
    "convolutions by rows and columns": (
        *(step(convolutions), IMAGES),
        [(1, 2, 4, 1), ONES, ONES, (1, 1)],
    ),
    "convolutions, uneven": (
        step(convolutions),
        [(7, 8, 8, 3), (3, 3, 3, 5), (3, 3, 5, 7), (28, 5)],
        [(3, 1, 1, 1), (1, 1, 1, 4), (1, 1, 2, 2), (5, 1)],
    ),
    **{
        f"Adam, {way}": (adam, [(32, 16), *WEIGHTS * 3], [rows, *grids * 3])
        for way, (rows, *grids) in WAYS.items()
    },
    "decoding by batch": (decode, DECODING, [(8, 1), (1, 1), (1, 1), *[(8, 1, 1, 1)] * 2]),
    "decoding by heads": (decode, DECODING, [(1, 1), (1, 8), (8, 1), *[(1, 1, 8, 1)] * 2]),
    "decoding, 2-D": (decode, DECODING, [(2, 1), (1, 4), (4, 1), *[(2, 1, 4, 1)] * 2]),
    "decoding by length": (decode, DECODING, [(1, 1), (1, 1), (1, 1), *[(1, 8, 1, 1)] * 2]),
    "decoding by uneven length": (decode, DECODING, [(3, 1), (1, 5), (2, 2), *[(2, 3, 1, 1)] * 2]),
    # More devices along the rows than there are sequences.
    "attention by rows": (step(attention), [(64, 16), (16, 48), (16, 16)], [(8, 1)] * 3),
}


# XLA fetches a halo once for two convolutions.
LESS = {"convolutions by rows and columns": "all_gather"}


# Of each kind of step, in placements that send in different ways.
SOME = (
    *("convolutions by rows and columns", "convolutions, uneven", "Adam, 2x4"),
    *("Adam, fully sharded", "decoding, 2-D", "decoding by uneven length", "attention by rows"),
)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", STEPS if tiers.ALL else SOME)
def test_steps_are_jaxs_and_their_reports_are_true(name):
    fn, shapes, grids = STEPS[name]
    arrays = [array(s, k) for k, s in enumerate(shapes)]
    layouts = [gl.GridLayout(s, "float32", g, None, []) for s, g in zip(shapes, grids, strict=True)]
    operands = [poisoned(a, layout, DEVICE) for a, layout in zip(arrays, layouts, strict=True)]
    program = gl.on_grid(fn).lower(*operands).compile()
    assert_same(program(*operands), jax.jit(fn)(*arrays), rtol=1e-3, atol=1e-4)
    told, made = Counter(), Counter()
    for row in gl.on_grid(fn).report(*operands).rows:
        for each in row.collectives:
            told[each.kind] += each.total_bytes
    for kind, _, nbytes in compiled_collectives(program.as_text(), 8):
        made[OURS[kind]] += nbytes
    for kind in told | made:
        if LESS.get(name) == kind:
            assert told[kind] > made[kind]
        else:
            assert told[kind] == pytest.approx(made[kind], rel=0.02), kind


def classifier(tokens, table, weights):
    """The mean over each row of tokens of what the table has for them."""
    logits = jnp.tanh(table[tokens]).mean(1) @ weights
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, :1] % 5, axis=1)
    return -picked.mean()


# Grids of tokens, of the table and of weights; sizes that divide by them, and that do not.
EMBEDDED = {
    "by batch": [(8, 1), (1, 1), (1, 1)],
    "fully sharded": [(8, 1), (8, 1), (8, 1)],
    "table by columns": [(2, 1), (1, 4), (4, 1)],
    "table by rows": [(2, 1), (4, 1), (1, 2)],
    "rows of tokens by columns": [(2, 4), (4, 2), (2, 2)],
}


EVERY = list(itertools.product(EMBEDDED, [(16, 8, 24, 16), (13, 7, 21, 11)]))


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "sizes"), few(EVERY, 4))
def test_gradients_of_tables_are_jaxs(name, sizes):
    rows, length, words, width = sizes
    tokens = np.random.default_rng(0).integers(0, words, (rows, length), np.int32)
    arrays = [tokens, array((words, width), 1), array((width, 5), 2)]
    layouts = [
        gl.GridLayout(a.shape, a.dtype, grid, None, [])
        for a, grid in zip(arrays, EMBEDDED[name], strict=True)
    ]
    operands = [poisoned(a, layout, DEVICE) for a, layout in zip(arrays, layouts, strict=True)]
    fn = jax.value_and_grad(classifier, (1, 2))
    assert_same(gl.on_grid(fn)(*operands), jax.jit(fn)(*arrays), rtol=1e-4, atol=1e-5)


# Steps in placements of textbooks, with their sizes: what is large is added up where it is, what is
# small is gathered.
LAYERS = {
    "2x4": [(2, 4)] * 9,
    "data parallel": [(8, 1), *[(1, 1)] * 8],
    "fully sharded": [(8, 1)] * 9,
    "tensor parallel": [(1, 1), *[(1, 8), (8, 1)] * 4],
}
TEXTBOOK = {
    **{
        f"8 layers, {way}": (step(residual), [(256, 120), *[(120, 120)] * 8], grids)
        for way, grids in LAYERS.items()
    },
    **{
        f"MLP {a}-{b}, {way}": (step(mlp), [(256, a), (a, b), (b, b), (b, 16)], grids)
        for a, b in ((64, 128), (512, 1024))
        for way, grids in WAYS.items()
    },
    "X^T X": (lambda x: x.T @ x, [(4096, 256)], [(2, 4)]),
    "A B C D": (lambda a, b, c, d: a @ b @ c @ d, [(512, 512)] * 4, [(2, 4)] * 4),
    **{name: STEPS[name] for name in STEPS if "uneven" not in name and "attention" not in name},
}


def count(text):
    """Collectives in a compiled program, each once however often a loop does it."""
    return len(re.findall(rf"= .*? (?:{KINDS})(?:-start)?\(", text))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", few(TEXTBOOK, 5))
def test_no_more_collectives_than_gspmds_or_fewer_bytes(name):
    fn, shapes, grids = TEXTBOOK[name]
    layouts = [gl.GridLayout(s, "float32", g, None, []) for s, g in zip(shapes, grids, strict=True)]
    operands = [gl.put(np.zeros(x.shape, "f4"), x, DEVICE) for x in layouts]
    made = gl.on_grid(fn)(*operands)

    def sharding(layout):
        return NamedSharding(DEVICE.fine, DEVICE.placement(layout.grid).spec)

    outs = jax.tree.map(lambda y: sharding(y.layout), made)
    given = [jax.ShapeDtypeStruct(x.shape, jnp.float32, sharding=sharding(x)) for x in layouts]
    gspmd = jax.jit(lambda *xs: fn(*xs), out_shardings=outs).lower(*given).compile().as_text()
    ours = compiled(fn, operands)
    if count(ours) > count(gspmd):
        sent = [sum(n for *_, n in compiled_collectives(text, 8)) for text in (ours, gspmd)]
        assert sent[0] < 0.8 * sent[1]
