"""Functions whose programs are drawn, by name, with the layouts that they are called with."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import gridlayout as gl

# Reports need no devices.
DEVICE = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))


def on(shape, grid, **more):
    return gl.GridLayout(shape, "float32", grid=grid, **more)


def mlp(x, w1, b1, w2, b2):
    hidden = jax.nn.relu(x @ w1 + b1)
    return jax.nn.softmax(hidden @ w2 + b2)


def step(x, *weights):
    return jax.grad(lambda w: mlp(x, *w)[:, 0].mean())(weights)


def attention(x, wq, wk, wv, wo):
    q, k, v = x @ wq, x @ wk, x @ wv
    return x + (jax.nn.softmax(q @ k.T / 8.0) @ v) @ wo


def scanned(x, ws):
    def body(carry, w):
        carry = jnp.tanh(carry @ w)
        return carry, carry.sum()

    return lax.scan(body, x, ws)


def branches(x, n):
    def body(state):
        i, x = state
        ways = (lambda x: x * 2, lambda x: jnp.sort(x, axis=0) + 1, lambda x: x)
        return i + 1, lax.switch(i % 3, ways, x)

    return lax.while_loop(lambda state: state[0] < n, body, (0, x))[1]


def normal(x):
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def layer(x, p):
    h = normal(x)
    q, k, v = h @ p["q"], h @ p["k"], h @ p["v"]
    x = x + (jax.nn.softmax(q @ k.T) @ v) @ p["o"]
    return x + jax.nn.gelu(normal(x) @ p["up"]) @ p["down"]


def transformer(x, layers):
    for p in layers:
        x = layer(x, p)
    return x


@jax.jit
def inner(x, y):
    z = jnp.exp(x) * y
    return z + x.sum(axis=1, keepdims=True), jnp.abs(z)


def nested(x, y):
    a, b = inner(x, y)
    return {"<a>": jnp.sin(a) + b, "b & c": x - y}


def uneven(x, y):
    return x + y, jnp.sort(x.ravel()), x[0, 0], jnp.ones(3)


def chain(x):
    for k in range(30):
        x = (jnp.sin, jnp.cos, jnp.tanh, jnp.exp)[k * k % 7 % 4](x)
    return x


D = 64
WEIGHTS = (
    on((63, 40), (2, 2)),
    on((40,), (2,)),
    on((40, 10), (2, 4)),
    on((10,), (1,)),
)
SIZES = {"q": (D, D), "k": (D, D), "v": (D, D), "o": (D, D), "up": (D, 4 * D), "down": (4 * D, D)}
LAYER = {name: on(shape, (2, 4)) for name, shape in SIZES.items()}
TILED = on((53, 63), (3, 2), tile=(32, 32))
PROGRAMS = {
    "mlp": (mlp, (TILED, *WEIGHTS)),
    "training": (step, (TILED, *WEIGHTS)),
    "attention": (attention, (on((128, D), (2, 4)), *(on((D, D), (2, 4)) for _ in range(4)))),
    "scan": (scanned, (on((512, D), (2, 2)), on((8, D, D), (2, 4)))),
    "while and cond": (branches, (on((512, D), (2, 4)), jax.ShapeDtypeStruct((), np.int32))),
    "transformer": (transformer, (on((128, D), (2, 4)), [LAYER] * 16)),
    "one": (jnp.exp, (on((53, 63), (3, 2)),)),
    "nested": (nested, (TILED, on((53, 63), (2, 2)))),
    "uneven": (uneven, (TILED, on((53, 63), (5, 3), tile=(8, 8)))),
    "nothing": (lambda x: x, (on((53, 63), (3, 2)),)),
    "chain": (chain, (on((53, 63), (3, 2), memory_space="dram"),)),
    "empty": (lambda x: x * 2, (on((0, 3), (2, 2)),)),
}


@cache
def report_of(name):
    fn, given = PROGRAMS[name]
    return gl.on_grid(fn, DEVICE).report(*given)
