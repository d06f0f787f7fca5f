"""A training that is killed, and goes on from its last checkpoint as if nothing had happened.

    python examples/restart.py FOLDER --kill-at 17    # ends without a word after step 17
    python examples/restart.py FOLDER                 # goes on from the checkpoint after step 9

The losses are those of a training that was never killed, bit for bit: the parameters and Adam's
moments come back to the layouts that they had, and the batch of a step depends on its number alone.
"""

import argparse
import os
import signal
from pathlib import Path
from typing import Any

import gridlayout as gl

gl.emulate_devices(4)  # leave it out where there are real devices

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-2)


def loss_of(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    hidden = jnp.tanh(x @ params["up"] + params["bias"])
    return jnp.mean((hidden @ params["down"] - y) ** 2)


@gl.on_grid
def train_step(state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
    params, moments = state
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, moments = optimizer.update(gradients, moments, params)
    return (optax.apply_updates(params, updates), moments), loss


def initial(device: gl.DeviceGrid) -> Any:
    """Parameters and Adam's moments, of sizes that the mesh does not divide."""
    rng = np.random.default_rng(0)
    sizes = {"up": (7, 13), "bias": (13,), "down": (13, 5)}
    params = {name: rng.normal(size=s).astype(np.float32) / 4 for name, s in sizes.items()}
    return gl.put((params, optimizer.init(params)), device)


def batch(step: int, device: gl.DeviceGrid) -> Any:
    rng = np.random.default_rng([1, step])
    x = rng.normal(size=(101, 7)).astype(np.float32)
    return gl.put((x, np.sin(x[:, :5])), device)


# -- checkpoints: these two functions are all that knows how they are kept -------------------------


def save(path: Path, step: int, state: Any) -> None:
    """Write the logical values; a process that is killed meanwhile leaves the old file."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    unfinished = path.with_suffix(".unfinished.npz")
    np.savez(unfinished, *leaves, step=step)
    unfinished.replace(path)


def restore(path: Path, like: Any, device: gl.DeviceGrid) -> tuple[int, Any]:
    """The step that was saved, and its state, laid out as `like` is."""
    with np.load(path) as file:
        leaves = [file[f"arr_{k}"] for k in range(len(file.files) - 1)]
        step = int(file["step"])
    return step, gl.put(jax.tree.unflatten(jax.tree.structure(like), leaves), device, like)


# -- the program -----------------------------------------------------------------------------------


def main(folder: Path, steps: int, every: int, kill_at: int | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, first = folder / "state.npz", 0
    device = gl.DeviceGrid((2, 2))
    state = initial(device)
    if checkpoint.exists():
        done, state = restore(checkpoint, state, device)
        print(f"restarted after step {done}")
        first = done + 1
    for step in range(first, steps):
        state, loss = train_step(state, *batch(step, device))
        print(f"step {step}  loss {float(loss)!r}", flush=True)
        if step % every == every - 1:
            save(checkpoint, step, state)
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the checkpoint is kept")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--kill-at", type=int, help="the step after which to kill this process")
    given = parser.parse_args()
    main(given.folder, given.steps, given.every, given.kill_at)
