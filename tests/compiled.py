"""The JAX functions that the dumps were compiled from, with their arguments' shapes.

A name of a dump is program, chip and optimization level. The dumps leave the descriptions of the
chip out.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

DUMPS = Path(__file__).parent / "dumps" / "ttnn"
NAMES = sorted(path.name.removesuffix(".mlir") for path in DUMPS.glob("*.mlir"))
TTIR = DUMPS.parent / "ttir"
TTIR_NAMES = sorted(path.name.removesuffix(".mlir") for path in TTIR.glob("*.mlir"))


def norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


def mlp(x, w1, b1, w2, b2):
    return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)


def loss(p, x, y):
    w1, b1, w2, b2 = p
    z = jax.nn.relu(x @ w1 + b1) @ w2 + b2
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(z) * y, -1))


def train_step(w1, b1, w2, b2, x, y):
    p = [w1, b1, w2, b2]
    return [a - 0.1 * g for a, g in zip(p, jax.grad(loss)(p, x, y), strict=True)]


def attention(x, wq, wk, wv, wo):
    b, t, d = x.shape

    def heads(a):
        return a.reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3)

    q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
    s = q @ k.transpose(0, 1, 3, 2) / (d // 4) ** 0.5
    o = jax.nn.softmax(s, -1) @ v
    return o.transpose(0, 2, 1, 3).reshape(b, t, d) @ wo


def block(x, g1, b1, wq, wk, wv, wo, g2, b2, w1, w2):
    x = x + attention(norm(x, g1, b1), wq, wk, wv, wo)
    return x + jax.nn.gelu(norm(x, g2, b2) @ w1) @ w2


def convolved(x, k, stride=1, padding="SAME", **rest):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, k, (stride, stride), padding, dimension_numbers=numbers, **rest
    )


def pooled(y, start, function, size=2, padding="VALID"):
    return lax.reduce_window(y, start, function, (1, size, size, 1), (1, 2, 2, 1), padding)


def conv(x, k, w, parts=1):
    y = jnp.concatenate([convolved(part, k) for part in jnp.split(x, parts, 1)], 1)
    y = pooled(jax.nn.relu(y), -jnp.inf, lax.max)
    return y.reshape(y.shape[0], -1) @ w


def convnet(x, k1, b1, k2, k3):
    y = jax.nn.relu(convolved(x, k1, 2) + b1)
    y = convolved(y, k2, 1, "VALID", feature_group_count=8)
    y = convolved(jax.nn.gelu(y), k3, rhs_dilation=(2, 2))
    largest = pooled(y, -jnp.inf, lax.max, 3, "SAME")
    return pooled(y, 0.0, lax.add) / 4, y.mean((1, 2)), largest


def convt(x, k):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=numbers)


def reductions(x):
    return jnp.max(x, 0), jnp.sum(x, 1), jnp.argmax(x, 1), jnp.mean(x)


def movement(x, y):
    joined = jnp.concatenate([x, y], 0)[3:70, ::1].T.reshape(-1, 4)
    return joined, jnp.pad(x, ((1, 2), (0, 3)))


def gathers(x, i):
    order = jnp.argsort(x, 1)
    return x[i], jnp.take(x, i, axis=1), jnp.take_along_axis(x, order, 1)


def sorts(x):
    ordered = jnp.sort(x, 1), jnp.argsort(x, 1), *lax.top_k(x, 5)
    return *ordered, jnp.cumsum(x, 1), jnp.flip(x, 1)


def updates(x, u, i):
    put, taken = lax.dynamic_update_slice(x, u, (2, 3)), lax.dynamic_slice(x, (i, 0), (4, 7))
    return put, x.at[3].set(1.0), taken, x.at[:2].add(u[:2, :1])


def scans(x, w):
    def step(c, a):
        c = jnp.tanh(c @ w + a)
        return c, c

    return lax.scan(step, jnp.zeros((5, 16)), x)


def whiles(x):
    def goes_on(c):
        return c[0].sum() < 100.0

    return lax.while_loop(goes_on, lambda c: (c[0] * 1.5 + 1, c[1] + 1), (x, 0))


def conds(x, i):
    first = lax.cond(i > 2, lambda x: x + 1, lambda x: x * 2, x)
    return first, lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.exp], x)


def llama(x, g, wq, wk, wv, wo, w1, w2, w3):
    b, t, _ = x.shape

    def rms(v):
        return v * lax.rsqrt(jnp.mean(v * v, -1, keepdims=True) + 1e-6) * g

    def heads(y, w, n):
        return (y @ w).reshape(b, t, n, -1).transpose(0, 2, 1, 3)

    a = jnp.arange(t)[:, None] * (1 / 10000 ** (jnp.arange(0, 8) / 8))
    c, s = jnp.cos(a), jnp.sin(a)

    def turned(u):
        low, high = u[..., :8], u[..., 8:]
        return jnp.concatenate([low * c - high * s, high * c + low * s], -1)

    y = rms(x)
    q, k, v = turned(heads(y, wq, 4)), turned(heads(y, wk, 2)), heads(y, wv, 2)
    k, v = jnp.repeat(k, 2, 1), jnp.repeat(v, 2, 1)
    z = jnp.where(jnp.tril(jnp.ones((t, t), bool)), q @ k.transpose(0, 1, 3, 2) / 4, -1e30)
    o = (jax.nn.softmax(z, -1) @ v).transpose(0, 2, 1, 3).reshape(b, t, -1)
    x = x + o @ wo
    y = rms(x)
    return x + (jax.nn.silu(y @ w1) * (y @ w3)) @ w2


def counts(x, a, b):
    counted = lax.fori_loop(a, a + b, lambda k, c: c * 1.5 + k, x)
    return counted, lax.fori_loop(0, b, lambda k, c: c.at[k].set(c[k] * 2 + k), x)


def bits(x, i):
    whole = jnp.bitwise_or.reduce(i, 1), jnp.bitwise_and.reduce(i, 0)
    same = lax.bitcast_convert_type(x, jnp.int32), lax.reduce_precision(x, 8, 7)
    truths = jnp.any(x > 0.5, 1), jnp.all(x > -2, 0), (x > 0) | ~(i > 2)
    return *whole, *same, *truths, lax.cummax(x, 1), lax.cumlogsumexp(x, 1)


def places(x, y, i):
    put = x.at[i, i].add(2.0), x.at[i[:3], :5].mul(2.0), y.at[i % 3, i % 5].min(-0.1)
    return *put, y[i % 3, :, i % 7], y[i[:, None] % 3, i[None] % 5]


def volumes(x, k, y, k1):
    volume = lax.conv_general_dilated(
        x, k, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    )
    line = lax.conv_general_dilated(y, k1, (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"))
    return volume, line


def poolgrad_bf16(x):
    return jax.grad(lambda x: jnp.sum(pooled(x, -jnp.inf, lax.max, 3, "SAME") * 2))(x)


def narrow(x, w1, b, w2):
    return jax.nn.relu(x @ w1 + b) @ w2


D = 96
SQUARES = [(D, D)] * 4
# What a name ends with is the arguments' dtype; indices are those of shape "i".
PROGRAMS = {
    "attention": (attention, [(2, 50, D), *SQUARES]),
    "bits": (bits, [(13, 35), ("i", 13, 35)]),
    "block": (
        block,
        [(2, 50, D), (D,), (D,), *SQUARES, (D,), (D,), (D, 4 * D), (4 * D, D)],
    ),
    "conds": (conds, [(53, 63), "i"]),
    "conv": (conv, [(2, 28, 28, 3), (3, 3, 3, 16), (14 * 14 * 16, 10)]),
    "convnet": (convnet, [(2, 29, 29, 3), (3, 3, 3, 8), (8,), (3, 3, 1, 8), (3, 3, 8, 12)]),
    "convt": (convt, [(2, 7, 9, 4), (3, 3, 4, 6)]),
    "counts": (counts, [(9, 7), "i", "i"]),
    "embed": (lambda t, i, p: t[i] * 2 + p, [(100, 48), ("i", 3, 17), (17, 48)]),
    "gathers": (gathers, [(35, 70), ("i", 9)]),
    "layer_norm": (norm, [(1000, 300), (300,), (300,)]),
    "llama": (
        llama,
        [
            (2, 37, 64),
            (64,),
            (64, 64),
            (64, 32),
            (64, 32),
            (64, 64),
            (64, 128),
            (128, 64),
            (64, 128),
        ],
    ),
    "lnorm_bf16": (norm, [(100, 70), (70,), (70,)]),
    "matmul_odd": (lambda a, b: a @ b, [(53, 63), (63, 10)]),
    "mlp": (mlp, [(359, 64), (64, 128), (128,), (128, 10), (10,)]),
    "movement": (movement, [(53, 20)] * 2),
    "narrow_bfp4": (narrow, [(45, 70), (70, 100), (100,), (100, 33)]),
    "narrow_bfp8": (narrow, [(45, 70), (70, 100), (100,), (100, 33)]),
    "places": (places, [(21, 31), (3, 5, 7), ("i", 4)]),
    "poolgrad_bf16": (poolgrad_bf16, [(2, 9, 11, 5)]),
    "reductions": (reductions, [(100, 70)]),
    "scans": (scans, [(4, 5, 16), (16, 16)]),
    "softmax": (lambda x: jax.nn.softmax(x, -1), [(7, 130, 70)]),
    "sorts": (sorts, [(35, 70)]),
    "train_step": (train_step, [(64, 128), (128,), (128, 10), (10,), (359, 64), (359, 10)]),
    "updates": (updates, [(35, 70), (4, 7), "i"]),
    "volumes": (volumes, [(2, 4, 7, 5, 40), (3, 3, 3, 40, 8), (2, 37, 12), (4, 12, 20)]),
    "whiles": (whiles, [(5, 7)]),
}
# The programs of `dumps/levels` and `dumps/chips`, each for one chip.
SINGLE = {
    "chain": (lambda x, y: jnp.tanh(x * y + 1) - jnp.exp(-x), [(2000, 300)] * 2),
    "matmul_square": (lambda a, b: a @ b, [(2048, 2048)] * 2),
    "mlp_large": (mlp, [(1797, 64), (64, 512), (512,), (512, 10), (10,)]),
    **{
        name: PROGRAMS[name]
        for name in (
            *("attention", "block", "conv", "layer_norm", "matmul_odd", "mlp", "movement"),
            *("reductions", "softmax", "train_step"),
        )
    },
}


def text_of(name, folder=DUMPS):
    return (folder / f"{name}.mlir").read_text(encoding="utf-8")


def function_of(name):
    """The JAX function of a dump."""
    return PROGRAMS[name.split(".")[0]][0]


def arrays_of(name, seed=0):
    """Arguments of a dump's program: numbers near 0, and indices from 0 to 7."""
    random = np.random.default_rng(seed)
    program = name.split(".")[0]
    dtype = jnp.bfloat16 if program.endswith("bf16") else np.float32
    found = []
    for shape in PROGRAMS[program][1]:
        if shape[:1] in ("i", ("i",)):
            found.append(random.integers(0, 8, tuple(shape[1:])).astype(np.int32))
        else:
            found.append((random.standard_normal(shape) / 2).astype(dtype))
    return found
