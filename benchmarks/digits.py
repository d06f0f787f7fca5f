"""A classifier of digits that benchmarks train, in plain JAX and optax, without any layouts.

A 64-128-10 network classifies handwritten digits (1797 images of 8x8 pixels, from scikit-learn).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
from sklearn.datasets import load_digits

import gridlayout as gl

Arrays = dict[str, Any]
optimizer = optax.adam(5e-3)


def initial(rng: np.random.Generator) -> Arrays:
    """Return the network's initial weights, as logical NumPy arrays."""
    return {
        "w1": (rng.normal(size=(64, 128)) / 8).astype(np.float32),
        "b1": np.zeros(128, np.float32),
        "w2": (rng.normal(size=(128, 10)) / 11).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def tiled(shape: tuple[int, ...], dtype: Any) -> gl.GridLayout:
    """Return the layout of every array: a 4x4 grid of 32x32 tiles."""
    return gl.GridLayout(shape, dtype, (4, 4), (32, 32))


def forward(params: Arrays, images: Any) -> tuple[Any, Any]:
    """Return the hidden activations and the logits."""
    hidden = jax.nn.relu(images @ params["w1"] + params["b1"])
    return hidden, hidden @ params["w2"] + params["b2"]


def loss_fn(params: Arrays, images: Any, labels: Any) -> Any:
    """Return the mean cross-entropy."""
    _, logits = forward(params, images)
    return optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 10)).mean()


def train_step(params: Arrays, state: Any, images: Any, labels: Any) -> tuple[Arrays, Any, Any]:
    """Perform one optimizer step on all training images; return parameters, state and loss."""
    loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def digits() -> tuple[Arrays, Arrays]:
    """Return training and test images (float32 in 0..1) and labels (int32), in the ratio 4 to 1."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = (data.data / 16).astype(np.float32)[order], data.target.astype(np.int32)[order]
    cut = len(order) * 4 // 5
    return {"images": images[:cut], "labels": labels[:cut]}, {
        "images": images[cut:],
        "labels": labels[cut:],
    }
