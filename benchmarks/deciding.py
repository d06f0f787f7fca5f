"""What is known before anything runs, against the seconds it may take: reports, placements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from jax.sharding import AbstractMesh

import gridlayout as gl
from benchmarks import programs
from benchmarks.timing import Result, cpu_seconds

MESH = (256, 128)
ROUNDS = 5


def results() -> list[Result]:
    """Of a block on 32,768 devices, new and known, and of a grid that 256 devices never had."""
    device = gl.DeviceGrid(AbstractMesh(MESH, ("x", "y")))
    wide = partial(gl.GridLayout, grid=MESH)
    on_grid = gl.on_grid(programs.block, device)
    # Rows that no report has seen, so that nothing is remembered; the first one warms JAX up.
    new = [
        cpu_seconds(lambda k=k: str(on_grid.report(*arguments(wide, 64 + 8 * k))))
        for k in range(ROUNDS + 1)
    ]
    known = [cpu_seconds(lambda: str(on_grid.report(*arguments(wide, 64)))) for _ in range(ROUNDS)]
    placed = []
    for k in range(ROUNDS):
        few = gl.DeviceGrid(AbstractMesh((16, 16), ("x", "y")))
        placed.append(cpu_seconds(lambda few=few, k=k: few.placement((53 + k, 61 + k))))
    return [
        Result("report of a block on 32768 devices", median(new[1:]), 0.5, "the bound", 1.0),
        Result("the same report again", median(known), 0.01, "the bound", 1.0),
        Result("placing a grid on 256 devices", median(placed), 0.01, "the bound", 1.0),
    ]


def arguments(layout: Callable[..., Any], length: int) -> tuple[Any, Any]:
    """Layouts of a block's parameters and of its rows."""
    p = {name: layout(shape) for name, shape in programs.SHAPES.items()}
    return p, layout((programs.BATCH * length, programs.WIDTH))
