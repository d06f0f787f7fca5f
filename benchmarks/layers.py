"""`python -m benchmarks.layers`: how long programs of many equal layers take to plan.

A forward pass of 1 and of 24 transformer blocks, and the training step of 12 with momentum, for
machines of several kinds. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp

import gridlayout as gl
from benchmarks.steps import block
from gridlayout.tables.words import bound_words

MACHINES = ("v5e 4x4", "v5p 4x4x4", "h100")
WIDTH, ROWS = 1024, 8 * 256
LAYER = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]


def forward(x: Any, layers: Any) -> Any:
    """Blocks, one after another."""
    for weights in layers:
        x = block(x, *weights)
    return x


def step(x: Any, layers: Any, momentum: Any) -> Any:
    """A training step of the blocks."""
    grads = jax.grad(lambda layers: jnp.mean(forward(x, layers) ** 2))(layers)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda w, m: w - 0.01 * m, layers, momentum), momentum


def planned(fn: Callable[..., Any], layers: int, machine: str) -> tuple[float, gl.results.Plan]:
    """Seconds to plan a function of so many blocks, and the plan."""
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), "bfloat16")
    weights = [[jax.ShapeDtypeStruct(shape, "bfloat16") for shape in LAYER]] * layers
    args = (x, weights, weights) if fn is step else (x, weights)
    start = perf_counter()
    plan = gl.plan(fn, *args, machine=machine)
    return perf_counter() - start, plan


def report() -> None:
    """Print a row for each machine."""
    print("machine         1 block   24 blocks           step of 12    bound")
    for machine in MACHINES:
        planned(forward, 1, machine)  # what is done once in a process
        one, _ = planned(forward, 1, machine)
        many, _ = planned(forward, 24, machine)
        training, plan = planned(step, 12, machine)
        print(
            f"{machine:14} {one:6.2f} s   {many:6.2f} s, {many / one:5.2f}x   "
            f"{training:6.2f} s   {bound_words(plan.time, plan.bound)}",
            flush=True,
        )


if __name__ == "__main__":
    report()
