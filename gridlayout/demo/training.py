"""The training of the demo: on the grid, in plain JAX and with planned layouts, each timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

import gridlayout as gl
from gridlayout.demo import network
from gridlayout.demo.progress import Progress

GRID, TILE, MESH = (4, 4), (32, 32), (2, 4)
_COMPILING = {"on the grid": 4, "in plain JAX": 1, "as planned": 2}  # relative compile times
_LOOK = 20  # steps between reads of the loss: each read waits for the devices
_REPEATS = 50


@dataclass(frozen=True)
class Trained:
    """The result of a training: weights, last loss, and seconds per compiled step."""

    params: Any
    loss: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """The results of the demo.

    device, params, data, state, report: of the training on the grid. grid, plain, planned: the
    training on the grid, in plain JAX and with the layouts of `plan`. accuracy: on `images` test
    images. exchange: seconds of an all-reduce of one number.
    """

    device: Any
    params: Any
    data: tuple[Any, Any]
    state: Any
    report: Any
    grid: Trained
    plain: Trained
    plan: gl.Plan
    planned: Trained
    accuracy: float
    images: int
    exchange: float


def tiled(shape: tuple[int, ...], dtype: Any) -> gl.GridLayout:
    """Return the layout of every array: the demo's grid and tile."""
    return gl.GridLayout(shape, dtype, GRID, TILE)


def measure(steps: int, progress: Progress) -> Result:
    """Run the demo: `steps` training steps on the grid, in plain JAX and with planned layouts."""
    with progress.phase("laying out the data"):
        gl.emulate_devices(8)
        device = gl.DeviceGrid(MESH)
        train_set, test_set = network.digits()
        weights = network.initial(np.random.default_rng(1))
        params = gl.put(weights, device, tiled)
        data = gl.put((train_set["images"], train_set["labels"]), device, tiled)
        state = gl.on_grid(network.optimizer.init)(params)
    step = gl.on_grid(network.train_step)
    with progress.phase("planning the step"):
        report = step.report(params, state, *data)
    trained = train(step, (params, state), data, steps, progress, "on the grid")
    plain_data = jax.device_put((train_set["images"], train_set["labels"]))
    start = (weights, network.optimizer.init(weights))
    plain = train(network.train_step, start, plain_data, steps, progress, "in plain JAX")
    with progress.phase("choosing layouts"):
        plan = gl.plan(network.train_step, params, state, *data)
        given = (*start, train_set["images"], train_set["labels"])
        chosen, first, *rest = plan.put(given)
    by_plan = gl.on_grid(network.train_step, policy=plan)
    planned = train(by_plan, (chosen, first), rest, steps, progress, "as planned")
    with progress.phase("testing"):
        test = gl.put((test_set["images"], test_set["labels"]), device, tiled)
        reached = float(gl.on_grid(network.accuracy)(trained.params, *test))
        exchange = exchange_seconds(device)
    return Result(
        *(device, params, data, state, report, trained, plain, plan, planned),
        *(reached, len(test_set["labels"]), exchange),
    )


def train(
    step: Callable[..., Any], start: Any, data: Any, steps: int, progress: Progress, where: str
) -> Trained:
    """Compile the step and run it `steps` times; the first run is not timed.

    The seconds are 0 if there is no other one.

    where: the name of the training in the progress bar.
    """
    compiled = jax.jit(step)
    with progress.phase(f"compiling {where}", _COMPILING[where]):
        params, state, loss = compiled(*start, *data)
        jax.block_until_ready(loss)
    progress.bar.set_description_str(f"training {where}")
    progress.step(float(loss))
    began = perf_counter()
    for number in range(1, steps):
        params, state, loss = compiled(params, state, *data)
        seen = number % _LOOK == 0 or number == steps - 1
        progress.step(float(loss) if seen else None)
    seconds = (perf_counter() - began) / (steps - 1) if steps > 1 else 0.0
    return Trained(params, float(loss), seconds)


def exchange_seconds(device: Any) -> float:
    """Return the seconds of an all-reduce of one number: a lower bound of any collective."""
    axes = device.mesh.axis_names

    def chain(x: Any) -> Any:
        return lax.fori_loop(0, _REPEATS, lambda _, y: lax.psum(y, axes) / device.size, x)

    spec = PartitionSpec(axes)
    mapped = jax.shard_map(chain, mesh=device.mesh, in_specs=spec, out_specs=spec, check_vma=False)
    run = jax.jit(mapped)
    x = jnp.ones(device.size)
    run(x).block_until_ready()
    found = []
    for _ in range(3):
        began = perf_counter()
        run(x).block_until_ready()
        found.append((perf_counter() - began) / _REPEATS)
    return sorted(found)[1]
