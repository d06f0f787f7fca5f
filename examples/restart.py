"""A training that is killed, and goes on from its last checkpoint as if nothing had happened.

    python examples/restart.py FOLDER --kill-at 17    # ends without a word after step 17
    python examples/restart.py FOLDER                 # goes on from the checkpoint after step 9
    python examples/supervisor.py --processes 4 3 -- examples/restart.py FOLDER

The losses are those of a training that was never killed: the parameters and Adam's moments come
back to the layouts that they had, and the batch of a step depends on its number alone. On as many
processes they are the same bit for bit, on others up to rounding, as sums go in another order.
"""

import argparse
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import gridlayout as gl

# The supervisor says who this process is; alone, it has all devices.
COUNT = int(os.environ.get("PROCESS_COUNT", "1"))
gl.emulate_devices(4 if COUNT == 1 else 1)  # leave it out where there are real devices

import jax
import jax.numpy as jnp
import numpy as np
import optax

if COUNT > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        os.environ["COORDINATOR_ADDRESS"],
        COUNT,
        int(os.environ["PROCESS_ID"]),
        initialization_timeout=60,  # a process that has not started by then ends the others
        heartbeat_timeout_seconds=10,  # one that is killed ends the others after so long
    )

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


# -- checkpoints: a folder of each, named by its step, which is there when it is complete ----------


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def save(folder: Path, step: int, state: Any) -> None:
    """Save the state of a step, and delete all older ones but the last."""
    gl.save(folder / str(step), state)
    if jax.process_index() == 0:
        for old in saved_steps(folder)[:-2]:
            shutil.rmtree(folder / str(old))


# -- the program -----------------------------------------------------------------------------------


def main(folder: Path, steps: int, every: int, kill_at: int | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    device = gl.DeviceGrid((len(jax.devices()),))
    state, first = initial(device), 0
    if saved := saved_steps(folder):
        state = gl.restore(folder / str(saved[-1]), state)
        first = saved[-1] + 1
    is_first = jax.process_index() == 0
    if saved and is_first:
        print(f"restarted after step {saved[-1]}", flush=True)
    for step in range(first, steps):
        state, loss = train_step(state, *batch(step, device))
        if is_first:
            print(f"step {step}  loss {float(loss)!r}", flush=True)
        if step % every == every - 1:
            save(folder, step, state)
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where checkpoints are kept")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--kill-at", type=int, help="the step after which to kill this process")
    given = parser.parse_args()
    main(given.folder, given.steps, given.every, given.kill_at)
