"""The demo: a classifier written in plain JAX, trained on a virtual 4x4 grid of 32x32 tiles.

Handwritten digits (1797 images of 8x8 pixels, from scikit-learn) go through a 64-128-10 network
and an optax optimizer. None of it knows of layouts; `gl.on_grid` puts the whole training step on
the grid, over 2x4 emulated devices. The same training in plain JAX is the judge.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from tqdm import tqdm

import gridlayout as gl

GRID, TILE, MESH = (4, 4), (32, 32), (2, 4)
ACCURACY, LOSS_TOLERANCE = 0.95, 1e-3

Arrays = dict[str, Any]
optimizer = optax.adam(5e-3)


def initial(rng: np.random.Generator) -> Arrays:
    """The network's weights, as logical NumPy arrays."""
    return {
        "w1": (rng.normal(size=(64, 128)) / 8).astype(np.float32),
        "b1": np.zeros(128, np.float32),
        "w2": (rng.normal(size=(128, 10)) / 11).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def forward(params: Arrays, images: Any) -> tuple[Any, Any]:
    """The hidden activations and the logits."""
    hidden = jax.nn.relu(images @ params["w1"] + params["b1"])
    return hidden, hidden @ params["w2"] + params["b2"]


def loss_fn(params: Arrays, images: Any, labels: Any) -> Any:
    """Mean cross-entropy."""
    _, logits = forward(params, images)
    return optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 10)).mean()


def train_step(params: Arrays, state: Any, images: Any, labels: Any) -> tuple[Arrays, Any, Any]:
    """One optimizer step on all the training images."""
    loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def accuracy(params: Arrays, images: Any, labels: Any) -> Any:
    """The share of images whose largest logit is at their label."""
    return jnp.mean(jnp.argmax(forward(params, images)[1], axis=1) == labels)


def digits() -> tuple[Arrays, Arrays]:
    """Training and test images (float32 in 0..1) and labels (int32), four parts to one."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = (data.data / 16).astype(np.float32)[order], data.target.astype(np.int32)[order]
    cut = len(order) * 4 // 5
    return {"images": images[:cut], "labels": labels[:cut]}, {
        "images": images[cut:],
        "labels": labels[cut:],
    }


def train(step: Any, params: Any, state: Any, data: Any, steps: int, name: str) -> tuple[Any, ...]:
    """Run `step` `steps` times behind a progress bar; gives weights, state and the last loss."""
    loss = 0.0
    for number in (bar := tqdm(range(steps), desc=name, unit="step")):
        params, state, loss = step(params, state, *data)
        if number % 20 == 0 or number == steps - 1:
            bar.set_postfix(loss=f"{float(loss):.4f}")
    return params, state, float(loss)


def describe(name: str, x: Any, device: Any) -> str:
    """A tensor's layout: its text, then shard, padding, bytes and devices."""
    layout = x.layout
    shard = "x".join(map(str, layout.shard_shape))
    return (
        f"{name}\n  {layout}\n"
        f"  shard {shard} elements, {layout.padding_share:.1%} padding, "
        f"{layout.bytes_per_core:,} bytes a core, cores on devices by "
        f"{device.core_map(layout.grid)}"
    )


def show(params: Any, data: tuple[Any, Any], state: Any, device: Any) -> None:
    """Print the layout of everything that training holds, activations and gradients included."""

    def on_cores(params: Arrays, images: Any, labels: Any) -> dict[str, Any]:
        hidden, logits = forward(params, images)
        return {
            "hidden": hidden,
            "logits": logits,
            "gradient": jax.grad(loss_fn)(params, images, labels),
        }

    shown = {
        "data": {"images": data[0], "labels": data[1]},
        "weights": params,
        "activations": gl.on_grid(on_cores)(params, *data),
        "optimizer": state,
    }
    leaves = jax.tree_util.tree_leaves_with_path(
        shown, is_leaf=lambda x: isinstance(x, gl.GridArray)
    )
    for path, x in leaves:
        if isinstance(x, gl.GridArray):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            print(describe(name, x, device))


def run(steps: int) -> int:
    """Train on the grid and in plain JAX, print what happened; 0 if they agree and it learned."""
    start = perf_counter()
    gl.emulate_devices(8)
    device = gl.DeviceGrid(MESH)

    def tiled(shape: tuple[int, ...], dtype: Any) -> gl.GridLayout:
        return gl.GridLayout(shape, dtype, GRID, TILE)

    train_set, test_set = digits()
    weights = initial(np.random.default_rng(1))
    params = gl.put(weights, device, tiled)
    data = gl.put((train_set["images"], train_set["labels"]), device, tiled)
    state = gl.on_grid(optimizer.init)(params)

    print(f"{device}, virtual grid {GRID} of {TILE} tiles\n")
    show(params, data, state, device)
    step = gl.on_grid(train_step)
    print(f"\nThe training step, primitive by primitive\n{step.report(params, state, *data)}\n")

    params, state, loss = train(jax.jit(step), params, state, data, steps, "on the grid")
    plain = jax.device_put((train_set["images"], train_set["labels"]))
    expected = train(
        jax.jit(train_step), weights, optimizer.init(weights), plain, steps, "plain JAX  "
    )[2]
    test = gl.put((test_set["images"], test_set["labels"]), device, tiled)
    reached = float(gl.on_grid(accuracy)(params, *test))

    difference = abs(loss - expected)
    print(f"\ntest accuracy {reached:.1%} on {len(test_set['labels'])} images")
    print(f"final loss {loss:.6f} on the grid, {expected:.6f} in plain JAX: {difference:.1e} apart")
    print(f"{perf_counter() - start:.0f} s in all")
    if reached < ACCURACY or difference > LOSS_TOLERANCE:
        print(f"FAILED: wanted accuracy >= {ACCURACY:.0%} and losses within {LOSS_TOLERANCE}")
        return 1
    return 0
