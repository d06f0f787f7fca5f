"""`python -m benchmarks.compiling N`: what a model costs on N emulated devices before it runs.

Prints one JSON object: CPU seconds by what is done and by whom. New: the first trace and lowering
of a program whose shapes nothing has seen, in a process that has traced another one; known: of a
new function of the same shapes. Plain JAX traces and lowers the same function of unsharded arrays;
GSPMD compiles it for the same mesh.

`python -m benchmarks.compiling first` prints the first calls of ten steps, of new functions on new
shapes: in wall time and CPU time, and apart what XLA compiles and all else. `... gradient` prints a
gradient outside of jit for new shapes; `... start` a second process with JAX's compilation cache.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import gridlayout as gl
from benchmarks.timing import Result, cpu_seconds

MESHES = {8: (2, 4), 64: (8, 8)}
COMPILE_TARGETS = {8: 1.5, 64: 2.0}
LAYERS, ROUNDS = 16, 5
# Ten of the steps of `benchmarks/steps.py`, and how many rows more a new shape has.
FIRST = (
    "8 layers 120 wide, 2x4",
    "8 layers 120 wide, data parallel",
    "8 layers 120 wide, fully sharded",
    "MLP 64-128-128-16, 2x4",
    "MLP 64-128-128-16, fully sharded",
    "MLP 512-1024-1024-16, 2-D",
    "block 64, fully sharded",
    "convolutions 16, data parallel",
    "Adam 64-128-128-16, 2x4",
    "decoding 64, by batch",
)
MORE, SHAPES = 64, 3
_COMPILING = "/jax/core/compile/backend_compile_duration"


def results() -> list[Result]:
    """Ratios, each of a process of its own: devices are counted once."""
    rows = []
    for devices in (*MESHES, "first", "gradient", "start"):
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


Times = tuple[float, float, float, float]


class _Clock:
    """Times calls: seconds in all, of the CPU, of XLA's compiler, and of all else."""

    def __init__(self) -> None:
        import jax

        self.compiling = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, seconds: float, **_: Any) -> None:
        self.compiling += seconds * (event == _COMPILING)

    def __call__(self, fn: Callable[[], Any]) -> tuple[Any, Times]:
        """Return the result of `fn`, and the four times."""
        import jax

        gc.collect()
        self.compiling, cpu, start = 0.0, process_time(), perf_counter()
        found = jax.block_until_ready(fn())
        took, cpu = perf_counter() - start, process_time() - cpu
        return found, (took, cpu, self.compiling, took - self.compiling)


@dataclass(frozen=True)
class First:
    """A step whose first calls are timed.

    arrays: a function that returns the arguments; each number gives other shapes. grids: those of
    the arguments; None: replicated.
    """

    name: str
    fn: Callable[..., Any]
    arrays: Callable[[int], Sequence[Any]]
    grids: Sequence[tuple[int, ...] | None]


def first_times(calls: Sequence[First]) -> dict[str, list[tuple[Times, Times]]]:
    """By name, the times of the first calls on some new shapes: ours, and GSPMD's."""
    import jax
    from jax.sharding import NamedSharding

    from benchmarks import steps

    device, clock = gl.DeviceGrid(MESHES[8]), _Clock()

    def arguments(call: First, number: int, is_ours: bool) -> list[Any]:
        found = []
        for x, grid in zip(call.arrays(number), call.grids, strict=True):
            if x.ndim:  # a scalar is on every device
                layout = gl.GridLayout(x.shape, x.dtype, grid=grid or (1,) * x.ndim, collapse=[])
                sharding = NamedSharding(device.fine, device.placement(layout.grid).spec)
                x = gl.put(x, layout, device) if is_ours else jax.device_put(x, sharding)
            found.append(x)
        return found

    times: dict[str, list[tuple[Times, Times]]] = {}
    for k in range(SHAPES + 1):
        for call in calls:
            # JAX remembers what it has traced: each has shapes of its own, the larger ones in turn.
            own, other = (2 * k, 2 * k + 1) if k % 2 else (2 * k + 1, 2 * k)
            laid, plain = arguments(call, own, True), arguments(call, other, False)
            on_grid = gl.on_grid(lambda *xs, fn=call.fn: fn(*xs))
            made, ours = clock(partial(on_grid, *laid))
            outs = jax.tree.map(lambda y: steps._sharding(y, device), made, is_leaf=steps._is_grid)
            gspmd = jax.jit(lambda *xs, fn=call.fn: fn(*xs), out_shardings=outs)
            _, theirs = clock(partial(gspmd, *plain))
            if k:  # the first round warms JAX up
                times.setdefault(call.name, []).append((ours, theirs))
    return times


def first_calls() -> dict[str, tuple[float, float, str, float]]:
    """Rows of the first calls of ten steps against GSPMD's: geometric means of medians."""
    gl.emulate_devices(8)
    from benchmarks import steps

    def arrays(case: Any, more: int) -> list[Any]:
        return [np.full(x, 0.1, np.float32) for x in _longer(case.name, case.shapes, more)]

    known = {case.name: case for case in steps.cases()}
    chosen = [known[name] for name in FIRST]
    times = first_times([First(x.name, x.fn, partial(arrays, x), x.grids) for x in chosen])
    found = {}
    for k, what in enumerate(("", ", CPU time", ", compiling", ", all but compiling")):
        pair = [
            steps.geometric_mean([median(each[who][k] for each in rows) for rows in times.values()])
            for who in (0, 1)
        ]
        found[f"first calls of ten steps{what}"] = (*pair, "GSPMD", 1.3)
    return found


def _longer(name: str, shapes: Any, more: int) -> list[tuple[int, ...]]:
    """Return the shapes with more rows of the batch, or a longer cache."""
    if name.startswith("decoding"):
        return [(n, k + 8 * more, *rest) if rest else (n, k) for n, k, *rest in shapes]
    (n, *rest), *weights = shapes
    return [(n + MORE * more, *rest), *weights]


def new_gradients() -> dict[str, tuple[float, float, str, float]]:
    """Rows of a gradient outside of jit for shapes that nothing has seen."""
    gl.emulate_devices(8)
    import jax
    import jax.numpy as jnp

    def fn(x: Any) -> Any:
        return jnp.tanh(x @ x.T).sum()

    device, clock, random = gl.DeviceGrid(MESHES[8]), _Clock(), np.random.default_rng(0)
    times: list[list[float]] = []
    for shape in [tuple(map(int, random.integers(1, 400, 2))) for _ in range(8)]:
        array = random.standard_normal(shape, np.float32)
        layout = gl.GridLayout(shape, "float32", grid=MESHES[8], tile=(8, 8))
        x, plain = gl.put(array, layout, device), jnp.asarray(array)
        calls = (
            partial(jax.grad(gl.on_grid(fn)), x),
            partial(jax.grad(fn), plain),
            partial(jax.jit(jax.grad(lambda x: fn(x))), plain),
        )
        times.append([clock(call)[1][1] for call in calls])
    ours, eager, jitted = (median(row[k] for row in times[1:]) for k in range(3))
    what = "a gradient outside of jit, new shape"
    return {
        what: (ours, eager, "plain JAX, outside of jit", 4.0),
        f"{what}, the same": (ours, jitted, "plain JAX in jit", 4.0),
    }


_START = """
import sys, time
import gridlayout as gl
gl.emulate_devices(8)
import jax, numpy as np
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
from benchmarks import digits
device = gl.DeviceGrid((2, 4))
weights, (data, _) = digits.initial(np.random.default_rng(1)), digits.digits()
tree = (weights, data["images"], data["labels"])
params, *data = gl.put(tree, device, digits.tiled)
state = jax.block_until_ready(gl.on_grid(digits.optimizer.init)(params))
start = time.perf_counter()
jax.block_until_ready(gl.on_grid(digits.train_step)(params, state, *data))
print(time.perf_counter() - start)
"""


def warm_start() -> dict[str, tuple[float, float, str, float]]:
    """The first call of the classifier's step in processes that have JAX's compilation cache.

    Modules are compiled to bytecode before, as pip compiles those that it installs.
    """
    with tempfile.TemporaryDirectory() as cache:
        times, env = [], {**os.environ, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(4):
            line = [sys.executable, "-c", _START, cache]
            out = subprocess.run(line, capture_output=True, text=True, check=True, env=env)
            times.append(float(out.stdout))
    return {"the classifier's step, compilation cache": (median(times[1:]), 1.0, "the bound", 1.0)}


_ROWS = {"first": first_calls, "gradient": new_gradients, "start": warm_start}

if __name__ == "__main__":
    what = sys.argv[1]
    print(json.dumps(_ROWS[what]() if what in _ROWS else run(int(what))))
