"""Random networks: functions of an array of rows and of parameters, made of a table of layers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import gridlayout as gl


def normal(h):
    return (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)


def attention(h, w):
    rows, width = h.shape
    heads = (y.reshape(rows, 8, width // 8) for y in jnp.split(h @ w, 3, 1))
    q, k, v = (y.transpose(1, 0, 2) for y in heads)
    mixed = jax.nn.softmax(q @ k.transpose(0, 2, 1) / 4, -1) @ v
    return mixed.transpose(1, 0, 2).reshape(rows, width)


def halves(h):
    a, b = jnp.split(h, 2, 1)
    return a * b


def scanned(h, ws):
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), h, ws)[0]


# name: the shapes of its parameters for rows of a width and another number, and the layer
LAYERS = {
    "linear": (lambda w, n: [(w, n)], lambda h, p: h @ p),
    "bias": (lambda w, n: [(w,)], lambda h, p: h + p),
    "gelu": (lambda w, n: [], jax.nn.gelu),
    "normal": (lambda w, n: [], normal),
    "softmax": (lambda w, n: [], jax.nn.softmax),
    "residual": (lambda w, n: [(w, n), (n, w)], lambda h, p, q: h + jax.nn.relu(h @ p) @ q),
    "attention": (lambda w, n: [(w, 3 * w)], attention),
    "gate": (lambda w, n: [(w, w), (w, w)], lambda h, p, q: jax.nn.silu(h @ p) * (h @ q)),
    "turn": (lambda w, n: [], lambda h: h.T),
    "halves": (lambda w, n: [], halves),
    "join": (lambda w, n: [(w, 64)], lambda h, p: jnp.concatenate([h, h @ p], 1)),
    "mean": (lambda w, n: [(w,)], lambda h, p: h * p - h.mean(0)),
    "scan": (lambda w, n: [(3, w, w)], scanned),
    "cumsum": (lambda w, n: [], lambda h: jnp.cumsum(h, 0)),
    "rows": (lambda w, n: [(1000, w)], lambda h, p: h + p[jnp.arange(len(h)) % 1000]),
}


def network(seed):
    """A function, its arguments as structs, and the names of its layers."""
    rng = np.random.default_rng(seed)
    x = jax.ShapeDtypeStruct(tuple(rng.choice([128, 256, 512], 2).tolist()), np.float32)
    h, layers, params = x, [], []
    while len(layers) < 2 or rng.random() < 0.6:
        name = str(rng.choice(["linear", "linear", *LAYERS]))
        shapes, layer = LAYERS[name]
        own = shapes(h.shape[1], int(rng.choice([128, 256, 512])))
        own = [jax.ShapeDtypeStruct(shape, np.float32) for shape in own]
        h = jax.eval_shape(layer, h, *own)
        layers.append((name, layer, len(own)))
        params.append(own)
    names = [name for name, *_ in layers]

    def forward(x, params):
        for (_, layer, _), own in zip(layers, params, strict=True):
            x = layer(x, *own)
        return x

    def gradient(x, params):
        return jax.grad(lambda params: (forward(x, params) ** 2).mean())(params)

    fn = gradient if any(params) and rng.random() < 0.5 else forward
    return fn, (x, params), names


def divided(args, mesh):
    """The layouts of arguments whose last dims are divided by a mesh of two axes."""

    def layout(x):
        grid = (1,) * (x.ndim - 2) + tuple(mesh) if x.ndim > 1 else (int(np.prod(mesh)),)
        return gl.GridLayout(x.shape, x.dtype, grid=grid, collapse=[])

    return jax.tree.map(layout, args)
