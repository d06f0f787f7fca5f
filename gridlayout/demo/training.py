"""The training of the demo: on the grid, and by GSPMD on the same devices, in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import gridlayout as gl
from gridlayout.demo import network

GRID, TILE = (2, 4), (8, 8)


@dataclass
class Training:
    """One training. start: its arrays before it. losses: before each step. seconds: of each step.

    The first step, which compiles, counts as the first call.
    """

    step: Callable[..., Any]
    start: network.Arrays
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the weights of the start."""
        self.weights, *self.data = self.start

    def run(self) -> None:
        """Perform one step, and wait for it."""
        began = perf_counter()
        self.weights, loss = self.step(self.weights, *self.data)
        jax.block_until_ready((self.weights, loss))
        self.seconds.append(perf_counter() - began)
        self.losses.append(float(loss))

    @property
    def first_call(self) -> float:
        """Seconds of the first step, with tracing and compiling."""
        return self.seconds[0]

    @property
    def median(self) -> float | None:
        """Seconds of a later step, in the median; None if there is none."""
        return median(self.seconds[1:]) if len(self.seconds) > 1 else None


def on_the_grid() -> Training:
    """Return the training on the grid."""
    device = gl.DeviceGrid(GRID)
    arrays = gl.put(network.arrays(), device, lambda s, dtype: gl.GridLayout(s, dtype, GRID, TILE))
    return Training(gl.on_grid(network.train_step), arrays)


def by_gspmd() -> Training:
    """Return the training in plain JAX: the same blocks on the same devices, padded by hand."""
    mesh = gl.DeviceGrid(GRID).mesh
    blocks = NamedSharding(mesh, PartitionSpec(*mesh.axis_names))
    most = max(GRID)

    def put(array: Any) -> Any:
        return jax.device_put(np.pad(array, [(0, -n % most) for n in array.shape]), blocks)

    arrays = jax.tree.map(put, network.arrays())
    results = [blocks for _ in arrays[0]], NamedSharding(mesh, PartitionSpec())
    return Training(jax.jit(network.train_step, out_shardings=results), arrays)
