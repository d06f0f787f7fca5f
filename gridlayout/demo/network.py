"""The network that the demo trains, in plain JAX, without any layouts.

It has no biases, so zeros around its arrays change neither the loss nor any other gradient: arrays
that are padded by hand give the same results.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ROWS, WIDTHS = 1009, (63, 250, 250, 10)
_RATE = 1e-4

Arrays = tuple[list[Any], Any, Any]


def loss_fn(weights: list[Any], x: Any, y: Any) -> Any:
    """Return the sum of the squared errors."""
    *hidden, last = weights
    for w in hidden:
        x = jnp.tanh(x @ w)
    return ((x @ last - y) ** 2).sum()


def train_step(weights: list[Any], x: Any, y: Any) -> tuple[list[Any], Any]:
    """Perform a step of gradient descent; return the new weights and the loss before it."""
    loss, slopes = jax.value_and_grad(loss_fn)(weights, x, y)
    return [w - _RATE * slope for w, slope in zip(weights, slopes, strict=True)], loss


def arrays() -> Arrays:
    """Return weights, inputs and the outputs to learn, a function of the inputs, as float32."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTHS[0]))
    y = np.tanh(x @ rng.normal(size=(WIDTHS[0], WIDTHS[-1])) / 4)
    weights = [rng.normal(size=dims) / np.sqrt(dims[0]) for dims in pairwise(WIDTHS)]
    return jax.tree.map(lambda a: a.astype(np.float32), (weights, x, y))


def shapes(rows: int, widths: tuple[int, ...]) -> Arrays:
    """Return the shapes of a larger network of this kind, in bfloat16."""

    def shape(*dims: int) -> Any:
        return jax.ShapeDtypeStruct(dims, "bfloat16")

    weights = [shape(*dims) for dims in pairwise(widths)]
    return weights, shape(rows, widths[0]), shape(rows, widths[-1])
