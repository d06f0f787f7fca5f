"""A table of embeddings that no device holds, trained by its rows.

    python examples/embeddings.py

The rows of a table for 5,003 words are divided over 4 of 8 emulated devices, and sentences over the
2 others. Devices serve the indices in their rows: neither the table nor its gradient is sent.
"""

import gridlayout as gl

gl.emulate_devices(8)  # leave it out where there are real devices

import jax
import jax.numpy as jnp
import numpy as np

WORDS, WIDTH, SENTENCES, LENGTH = 5003, 32, 30, 12

rng = np.random.default_rng(0)
table = rng.normal(size=(WORDS, WIDTH)).astype(np.float32)
tokens = rng.integers(0, WORDS, (SENTENCES, LENGTH)).astype(np.int32)
wanted = rng.normal(size=(SENTENCES, WIDTH)).astype(np.float32)


def loss(table: jax.Array, tokens: jax.Array, wanted: jax.Array) -> jax.Array:
    """How far the means of sentences are from what is wanted."""
    return jnp.mean((table[tokens].mean(1) - wanted) ** 2)


def step(table: jax.Array, tokens: jax.Array, wanted: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step of gradient descent."""
    value, slope = jax.value_and_grad(loss)(table, tokens, wanted)
    return table - 500 * slope, value


device = gl.DeviceGrid((2, 4))
arguments = (
    gl.put(table, gl.GridLayout(table.shape, "float32", grid=(4, 1)), device),
    gl.put(tokens, gl.GridLayout(tokens.shape, "int32", grid=(2, 1)), device),
    gl.put(wanted, gl.GridLayout(wanted.shape, "float32", grid=(2, 1)), device),
)
train, plain = gl.on_grid(step), jax.jit(step)
report = train.report(*arguments)
print(report)
print(f"a table of {table.nbytes:,} B; a device receives {report.bytes_moved // 8:,} B a step")

held, rest = arguments[0], arguments[1:]
for number in range(5):
    held, value = train(held, *rest)
    table, expected = plain(table, tokens, wanted)
    print(f"step {number}  loss {float(value):.4f}")
    np.testing.assert_allclose(value, expected, rtol=1e-4)
np.testing.assert_allclose(np.asarray(held), table, rtol=1e-4, atol=1e-4)
print("equal to plain JAX: losses and the table")
