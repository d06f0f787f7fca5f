"""Random programs of slices, pads, rolls, joins and functions between them."""

import jax.numpy as jnp
import numpy as np
from jax import lax

GRIDS = [(2, 4), (8, 1), (1, 8), (3, 2), (1, 4), (2, 1)]
FEW = 1500  # elements that may still be doubled


def program(seed):
    """A function of a matrix, the matrix's shape, and a grid for it."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([5, 8, 13, 16, 24], 2))
    steps = [tuple(rng.integers(0, 1000, 4)) for _ in range(rng.integers(3, 9))]

    def fn(x):
        values = [x]
        for kind, which, d, how in steps:
            x, d, how = values[which % len(values)], int(d) % 2, int(how)
            found = _OPERATIONS[kind % len(_OPERATIONS)](x, d, how, values)
            values += [] if found is None else [found]
        return values[-1], sum(jnp.sum(x) for x in values)

    return fn, shape, GRIDS[rng.integers(len(GRIDS))]


def _cut(x, d, start, stop, stride=1):
    return lax.slice_in_dim(x, start, stop, stride, d)


def _padded(x, d, how, _):
    widths = [(how % 3, how // 3 % 2) if k == d else (0, 0) for k in range(2)]
    return jnp.pad(x, widths, constant_values=how % 2 * 1.5)


def _added(x, d, how, values):
    other = values[how % len(values)]
    rows, columns = (min(pair) for pair in zip(x.shape, other.shape, strict=True))
    return x[:rows, :columns] + other[:rows, :columns]


_OPERATIONS = [
    lambda x, d, how, _: jnp.roll(x, how % x.shape[d], d),
    lambda x, d, how, _: _cut(x, d, how % 3, x.shape[d] - how % 2) if x.shape[d] > 4 else None,
    _padded,
    lambda x, d, how, _: jnp.flip(x, d),
    lambda x, d, how, _: jnp.concatenate([x, jnp.zeros_like(_cut(x, d, 0, 1))], d),
    lambda x, d, how, _: x.T,
    lambda x, d, how, _: jnp.tanh(x) * 1.5,
    _added,
    lambda x, d, how, _: _cut(x, d, how % 2, x.shape[d], 2) if x.shape[d] > 4 else None,
    lambda x, d, how, _: (
        jnp.concatenate([_cut(x, d, x.shape[d] // 2, x.shape[d]), x], d) if x.size < FEW else None
    ),
    lambda x, d, how, _: jnp.tile(x, (1, 2) if d else (2, 1)) if x.size < FEW else None,
    lambda x, d, how, _: jnp.repeat(x, 2, d) if x.size < FEW else None,
]
