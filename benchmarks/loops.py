"""Loops of tiny steps, and what a first call takes, on 8 emulated devices."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import gridlayout as gl
from benchmarks.programs import MESH, fresh, normal
from benchmarks.timing import Result, cpu_seconds, medians

FEATURES, HIDDEN, OUTS, STEPS = 16, 32, 8, 10
# Rows of data: all of it small, and more than is worth having whole on every device.
ROWS = (256, 8192)


def fit(p: Any, x: Any, y: Any) -> Any:
    """Steps of L-BFGS with its line search."""

    def loss(p: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ p["in"] + p["bias"]) @ p["out"] - y) ** 2)

    solver = optax.lbfgs(memory_size=5)

    def step(carry: Any, _: Any) -> Any:
        p, state = carry
        value, grad = optax.value_and_grad_from_state(loss)(p, state=state)
        moved, state = solver.update(grad, state, p, value=value, grad=grad, value_fn=loss)
        return (optax.apply_updates(p, moved), state), value

    (p, _), values = jax.lax.scan(step, (p, solver.init(p)), length=STEPS)
    return p, values


def lbfgs(rows: int) -> Result:
    """The same loop by GSPMD, its arrays divided over the same mesh."""
    p = {"in": normal(FEATURES, HIDDEN) / 5, "out": normal(HIDDEN, OUTS) / 5}
    p["bias"] = np.zeros(HIDDEN, np.float32)
    x = normal(rows, FEATURES)
    arrays = p, x, np.tanh(x @ normal(FEATURES, OUTS))
    laid = gl.put(arrays, gl.DeviceGrid(MESH))
    mesh = jax.make_mesh(MESH, ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def divided(a: Any) -> Any:
        spec = PartitionSpec("x", "y") if a.ndim == 2 else PartitionSpec(("x", "y"))
        return jax.device_put(a, NamedSharding(mesh, spec))

    split = jax.tree.map(divided, arrays)
    on_grid, gspmd = gl.on_grid(fit), jax.jit(fit)
    np.testing.assert_allclose(on_grid(*laid)[1], gspmd(*split)[1], rtol=1e-3)
    found = medians({"ours": lambda: on_grid(*laid), "gspmd": lambda: gspmd(*split)})
    name = f"{STEPS} steps of L-BFGS on {rows}x{FEATURES}"
    return Result(name, found["ours"], found["gspmd"], "GSPMD, same mesh", 2.0)


def first_rfftn(side: int) -> list[Result]:
    """The first call of a Fourier transform of all dims: CPU seconds.

    Plain JAX compiles no kernel for it, and one that moves data between 8 devices takes longer.
    """
    device, ours, plain, gspmd = gl.DeviceGrid(MESH), [], [], []
    mesh = jax.make_mesh(MESH, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))
    for k in range(5):  # a shape that nothing has seen, each time
        array = normal(side, side + 8 * k)
        x = gl.put(array, gl.GridLayout(array.shape, grid=MESH), device)
        y = jax.device_put(array, jax.devices()[0])
        ours.append(first(gl.on_grid(fresh(jnp.fft.rfftn)), x))
        plain.append(first(jax.jit(fresh(jnp.fft.rfftn)), y))
        gspmd.append(first(jax.jit(fresh(jnp.fft.rfftn)), jax.device_put(array, sharding)))
    name = f"first rfftn of {side}x{side}"
    return [
        Result(name, median(ours), median(plain), "plain JAX", 5.0),
        Result(f"{name}, the same", median(ours), median(gspmd), "GSPMD, same mesh", 1.0),
    ]


def first(fn: Callable[..., Any], x: Any) -> float:
    """CPU seconds of a call, to its end."""
    return cpu_seconds(lambda: jax.block_until_ready(fn(x)))


def results() -> list[Result]:
    return [*map(lbfgs, ROWS), *first_rfftn(64), *first_rfftn(512)]
