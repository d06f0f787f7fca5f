"""Calls of one, two and four processes on the same mesh, against `jax.jit` of the same function.

`python -m benchmarks.together` starts the processes of each case on the loopback interface. All
calls have been made before, so that no process asks the others whether they make the same one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import gridlayout as gl

DEVICES, MESH = 8, (2, 4)  # of all processes
COUNTS = (1, 2, 4)
SIDE, ROUNDS = 256, 301
TARGET = 1.2
ROOT = Path(__file__).parent.parent


def measured() -> dict[str, dict[str, float]]:
    """Median seconds of one call of each function: `ours` and `jit`."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    from benchmarks.timing import medians

    device = gl.DeviceGrid(MESH)
    layout = gl.GridLayout((SIDE, SIDE), "float32", grid=MESH)
    sharding = NamedSharding(device.mesh, PartitionSpec("x", "y"))

    def piece(box: tuple[slice, ...]) -> jax.Array:
        rows, columns = (jnp.arange(s.start, s.stop, dtype=jnp.float32) for s in box)
        return jnp.sin(rows[:, None] * SIDE + columns) / SIDE

    def pieces(index: tuple[slice, ...] | None) -> jax.Array:
        assert index is not None
        return piece(tuple(slice(*s.indices(SIDE)[:2]) for s in index))

    functions = {
        "x + y": lambda x, y: x + y,
        "relu(x @ y)": lambda x, y: jax.nn.relu(x @ y),
    }
    laid = [gl.put_local(piece, layout, device) for _ in range(2)]
    plain = [jax.make_array_from_callback((SIDE, SIDE), sharding, pieces) for _ in range(2)]
    found = {}
    for name, fn in functions.items():
        ours, jitted = gl.on_grid(fn), jax.jit(fn, out_shardings=sharding)
        found[name] = medians(
            {"ours": lambda f=ours: f(*laid).storage, "jit": lambda f=jitted: f(*plain)},  # type: ignore[misc]
            rounds=ROUNDS,
        )
    return found


def _one(count: int, rank: int, address: str) -> None:
    """In a process of its own: measure all cases together with the others, and print them."""
    import jax

    gl.emulate_devices(DEVICES // count)
    if count > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, count, rank)
    print("MEASURED", json.dumps(measured()), flush=True)


def of(count: int) -> list[tuple[str, ...]]:
    """A row per function, run by `count` processes; the times are those of the first process."""
    from benchmarks.timing import Result

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    # Devices that wait for each other each need a thread, more than there may be cores.
    environment = {**os.environ, "NPROC": "16"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.together", str(count)]
    running = [
        subprocess.Popen(
            [*command, str(rank), address],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        for rank in range(count)
    ]
    texts = [process.communicate(timeout=600)[0] for process in running]
    found = re.search(r"MEASURED (.*)", texts[0])
    assert found, texts[0]
    rows = []
    for name, times in json.loads(found[1]).items():
        processes = f"{count} process{'es' * (count > 1)}"
        result = Result(f"{name}, {processes}", times["ours"], times["jit"], "jax.jit", TARGET)
        calls = [f"{1 / result.ours:,.0f}/s", f"{1 / result.theirs:,.0f}/s"]
        rows.append((result.name, *calls, *result.row()[3:]))
    return rows


def report() -> None:
    """Print the table."""
    from benchmarks.timing import table

    head = ("call", "gridlayout", "other", "other is", "ratio", "target", "reached")
    print(f"float32[{SIDE}, {SIDE}] on {DEVICES} emulated devices, calls per second")
    print(table([row for count in COUNTS for row in of(count)], head))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        _one(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        report()
