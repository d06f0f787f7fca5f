"""What a call costs, against jitted functions of plain arrays: eager operators, many arguments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import gridlayout as gl
from benchmarks.programs import MESH, normal
from benchmarks.timing import Result, medians

LEAVES = 512


def eager(side: int, mesh: tuple[int, ...], target: float) -> Result:
    """x + y on small arrays."""
    device = gl.DeviceGrid(mesh)
    layout = gl.GridLayout((side, side), "float32", grid=MESH)
    x, y = (gl.put(normal(side, side), layout, device) for _ in range(2))
    add = jax.jit(jnp.add)
    found = medians(
        {"ours": lambda: (x + y).storage, "plain": lambda: add(x.storage, y.storage)}, rounds=1001
    )
    name = f"eager x + y, {side}x{side} on {device.size} devices"
    return Result(name, found["ours"], found["plain"], "jitted jnp.add", target)


def many_leaves() -> list[Result]:
    """A call of many arrays on one device, also with `jax.jit` around it."""
    layout, device = gl.GridLayout((8, 8), "float32", grid=(1, 1)), gl.DeviceGrid((1,))
    laid = [gl.put(normal(8, 8), layout, device) for _ in range(LEAVES)]
    plain = [x.storage for x in laid]

    def twice(leaves: Any) -> Any:
        return [x * 2 for x in leaves]

    on_grid, jitted = gl.on_grid(twice), jax.jit(twice)
    both = jax.jit(on_grid)
    found = medians(
        {"ours": lambda: on_grid(laid), "both": lambda: both(laid), "jit": lambda: jitted(plain)},
        rounds=51,
    )
    name = f"a call of {LEAVES} leaves"
    return [
        Result(name, found["ours"], found["jit"], "jax.jit", 2.0),
        Result(f"{name}, jax.jit around it", found["both"], found["jit"], "jax.jit", 1.0),
    ]


def results() -> list[Result]:
    return [eager(8, (1,), 1.5), eager(64, MESH, 4.0), *many_leaves()]
