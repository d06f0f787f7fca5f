"""`python -m benchmarks.compiling N`: what a model costs on N emulated devices before it runs.

Prints one JSON object: CPU seconds by what is done and by whom. New: the first trace and lowering
of a program whose shapes nothing has seen, in a process that has traced another one; known: of a
new function of the same shapes. Plain JAX traces and lowers the same function of unsharded arrays;
GSPMD compiles it for the same mesh.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import gridlayout as gl
from benchmarks.timing import Result, cpu_seconds

MESHES = {8: (2, 4), 64: (8, 8)}
COMPILE_TARGETS = {8: 1.5, 64: 2.0}
LAYERS, ROUNDS = 16, 5


def results() -> list[Result]:
    """Ratios, each of a process of its own: devices are counted once."""
    rows = []
    for devices in MESHES:
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.compiling", str(devices)],
            capture_output=True,
            text=True,
            check=True,
        )
        for name, (ours, theirs, against, target) in json.loads(out.stdout).items():
            rows.append(Result(name, ours, theirs, against, target))
    return rows


def run(devices: int) -> dict[str, tuple[float, float, str, float]]:
    """By row: our seconds, the other's, whose, and the ratio to reach."""
    gl.emulate_devices(devices)
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    from benchmarks import programs

    shape = MESHES[devices]
    device = gl.DeviceGrid(shape)
    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))

    def arguments(layers: int, length: int) -> tuple[Any, Any, Any]:
        """Ours, plain ones, and those divided by the mesh."""
        rows = programs.normal(programs.BATCH * length, programs.WIDTH)
        plain = ([programs.parameters() for _ in range(layers)], rows)
        laid = gl.put(plain, device, partial(gl.GridLayout, grid=shape))
        return laid, plain, jax.device_put(plain, sharding)

    def lowered(args: Any, on_grid: bool) -> Any:
        fn = programs.fresh(programs.stack_step)
        return jax.jit(programs.fresh(gl.on_grid(fn)) if on_grid else fn).lower(*args)

    def compiled(args: Any, on_grid: bool) -> Callable[[], Any]:
        if on_grid:
            return lowered(args, True).compile
        fn = programs.fresh(programs.stack_step)
        return jax.jit(fn, out_shardings=(None, sharding)).lower(*args).compile

    def timed(k: int, prepared: Callable[..., Any], ours: Any, theirs: Any) -> tuple[float, float]:
        """CPU seconds of what is prepared of both, which take turns to be first."""
        pair = [(ours, True), (theirs, False)]
        found = {yes: cpu_seconds(prepared(a, yes)) for a, yes in (pair if k % 2 else pair[::-1])}
        return found[True], found[False]

    def rows(layers: int, first: int) -> dict[str, tuple[float, float]]:
        times: dict[str, list[tuple[float, float]]] = {}
        for k in range(ROUNDS):
            ours, plain, split = arguments(layers, first + 8 * k)
            for name in ("new", "known"):
                times.setdefault(name, []).append(timed(k, partial(partial, lowered), ours, plain))
            if layers == 1:
                times.setdefault("compiled", []).append(timed(k, compiled, ours, split))
        return {
            name: (median(a for a, _ in pairs), median(b for _, b in pairs))
            for name, pairs in times.items()
        }

    for yes, args in enumerate(arguments(1, 16)[1::-1]):  # another program
        lowered(args, bool(yes)).compile()
    one = rows(1, programs.LENGTH)
    on = f"on {devices} devices"
    found = {f"step, compiled {on}": (*one["compiled"], "GSPMD", COMPILE_TARGETS[devices])}
    if devices == min(MESHES):
        many = rows(LAYERS, programs.LENGTH + 8 * ROUNDS)
        for name, made in ((f"step {on}", one), (f"step of {LAYERS} layers {on}", many)):
            for kind in ("new", "known"):
                found[f"{name}, traced and lowered, {kind}"] = (*made[kind], "plain JAX", 2.0)
    return found


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
