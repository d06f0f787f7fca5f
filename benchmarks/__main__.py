"""`python -m benchmarks`: gridlayout against the best alternative, in one run, as ratios."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import gridlayout as gl

gl.emulate_devices(8)

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from benchmarks import (
    algorithms,
    calling,
    compiling,
    deciding,
    loops,
    memory,
    programs,
    ranks,
    reading,
    steps,
    together,
)
from benchmarks.timing import Result, medians, table

RNG = np.random.default_rng(0)


def pack_even() -> Result:
    layout = gl.GridLayout((4096, 4096), "float32", grid=(8, 8), tile=(32, 32))
    x = jnp.asarray(RNG.random((4096, 4096), np.float32))

    @jax.jit
    def by_hand(x):
        return x.reshape(8, 16, 32, 8, 16, 32).transpose(0, 3, 1, 4, 2, 5)

    assert (by_hand(x) == gl.pack(x, layout)).all()
    found = medians({"ours": lambda: gl.pack(x, layout), "hand": lambda: by_hand(x)})
    return Result("pack 4096x4096", found["ours"], found["hand"], "jitted reshape/transpose", 1.1)


def pack_uneven() -> Result:
    layout = gl.GridLayout((4069, 4091), "float32", grid=(1, 1), tile=(32, 32))
    x = jnp.asarray(RNG.random((4069, 4091), np.float32))

    @jax.jit
    def by_hand(x):
        x = jnp.pad(x, ((0, 27), (0, 5)))
        return x.reshape(1, 128, 32, 1, 128, 32).transpose(0, 3, 1, 4, 2, 5)

    assert (by_hand(x) == gl.pack(x, layout)).all()
    found = medians({"ours": lambda: gl.pack(x, layout), "hand": lambda: by_hand(x)})
    return Result(
        "pack 4069x4091", found["ours"], found["hand"], "jitted pad/reshape/transpose", 1.0
    )


def index_map() -> Result:
    layout = gl.GridLayout((4069, 4091), "float32", grid=(8, 8), tile=(32, 32))
    rows, columns = RNG.integers(0, 4069, 1_000_000), RNG.integers(0, 4091, 1_000_000)
    found = medians({"ours": lambda: layout.index_map(rows, columns)})
    each = found["ours"] / len(rows)
    return Result("index_map of 10^6 indices, each", each, 60e-9, "the bound, 60 ns", 1.0)


def matmul(size: int, tile: tuple[int, int] | None, mesh_shape: tuple[int, int]) -> list[Result]:
    """A product on the mesh against one device and against GSPMD's on the same mesh."""
    device = gl.DeviceGrid(mesh_shape)
    a, b = (RNG.standard_normal((size, size), np.float32) for _ in range(2))
    layout = gl.GridLayout((size, size), "float32", grid=mesh_shape, tile=tile)
    x, y = (gl.put(array, layout, device) for array in (a, b))
    on_grid = gl.on_grid(jnp.matmul)
    one = [jax.device_put(array, jax.devices()[0]) for array in (a, b)]
    single = jax.jit(jnp.matmul)
    mesh = jax.make_mesh(mesh_shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))
    split = [jax.device_put(array, sharding) for array in (a, b)]
    gspmd = jax.jit(jnp.matmul, in_shardings=(sharding, sharding), out_shardings=sharding)
    expected = np.asarray(single(*one))
    scale = np.abs(expected).max()
    assert np.abs(np.asarray(on_grid(x, y)) - expected).max() < 1e-5 * scale * 10
    found = medians(
        {
            "ours": lambda: on_grid(x, y).storage,
            "one": lambda: single(*one),
            "gspmd": lambda: gspmd(*split),
        },
        rounds=9,
    )
    dims = "x".join(map(str, mesh_shape))
    tiles = f", {tile[0]}x{tile[1]} tiles" if tile else ""
    name = f"matmul {size}^3 on {dims}{tiles}"
    return [
        Result(name, found["ours"], found["one"], "one device", 1.15),
        Result(name, found["ours"], found["gspmd"], "GSPMD, same mesh", 0.75),
    ]


def import_time() -> Result:
    def start(module: str) -> float:
        # The bare interpreter's start is in both.
        program = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        )
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        return float(out.stdout)

    times = {module: sorted(start(module) for _ in range(7))[3] for module in ("gridlayout", "jax")}
    return Result("import gridlayout", times["gridlayout"], times["jax"], "import jax", 0.4)


def put_time() -> Result:
    """The same parts of a NumPy array, by `gl.put` and by `jax.device_put`."""
    device, side = gl.DeviceGrid((2, 4)), memory.SIDE
    layout = gl.GridLayout((side, side), "float32", grid=(2, 4))
    sharding = NamedSharding(device.mesh, PartitionSpec("x", "y"))
    x = RNG.random((side, side), np.float32)
    found = medians(
        {
            "ours": lambda: gl.put(x, layout, device).storage,
            "jax": lambda: jax.device_put(x, sharding),
        },
        rounds=7,
    )
    return Result(f"put {side}x{side}", found["ours"], found["jax"], "jax.device_put", 1.3)


def put_leaves() -> Result:
    """A tree of 200 small arrays of several shapes, by `gl.put` and by `jax.device_put`."""
    device, grid = gl.DeviceGrid((2, 4)), (2, 4)
    shapes = [((16, 32, 64, 128)[k % 4], (64, 128, 256)[k % 3]) for k in range(200)]
    tree = [RNG.random(shape, np.float32) for shape in shapes]
    layouts = [gl.GridLayout(shape, "float32", grid=grid) for shape in shapes]
    shardings = [NamedSharding(device.fine, device.placement(grid).spec)] * len(tree)
    found = medians(
        {
            "ours": lambda: gl.put(tree, device, layouts),
            "jax": lambda: jax.device_put(tree, shardings),
        }
    )
    return Result("put of 200 leaves", found["ours"], found["jax"], "jax.device_put", 1.2)


def main() -> int:
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"JAX {jax.__version__}, {len(jax.devices())} emulated devices\n"
    )
    results = [pack_even(), pack_uneven(), index_map()]
    results += matmul(2048, None, (2, 4)) + matmul(2048, (32, 32), (2, 4))
    results += [programs.chain(), *calling.results()]
    results += [programs.relayout(*grids) for grids in programs.RELAYOUTS]
    alike = (programs.softmax, programs.layer_norm, programs.heat_step)
    results += [programs.norm(fn.__name__, fn) for fn in alike]
    results.append(programs.rows_of_a_table())
    results += programs.transformer() + loops.results() + compiling.results()
    results += algorithms.results() + deciding.results() + reading.results()
    results.append(import_time())
    results += [put_time(), put_leaves()]
    print(table([result.row() for result in results]))
    print("\nwhole steps: gridlayout's time, GSPMD's, collectives of both, first calls")
    steps.report()
    print("\nmemory: ", end="")
    memory.report()
    print("\ncalls: ", end="")
    together.report()
    ways = ranks.results()
    print(f"\nmachine: {len(ways)} ways, rank correlation {ranks.correlation(ways):.3f}, >= 0.9")
    return 0


if __name__ == "__main__":
    sys.exit(main())
