"""What arrays take to go in and out: peaks of resident memory, as multiples of the array.

`python -m benchmarks.memory` measures each case in a process of its own, and then four processes
together. The peak is what is resident at most during one call beyond what was before it, the result
included, when calls on a small array have imported and compiled what they need.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import gridlayout as gl

SIDE, SMALL = 8192, 256
COUNT, DEVICES = 4, 2  # processes, and devices of each
ROOT = Path(__file__).parent.parent
BLOCK = 32 << 20  # bytes that a process may hold beyond twice its own part

# A case: the bound of its peak, as a multiple of the array.
PEAKS = {
    "jax.device_put(numpy)": 1.1,
    "gl.put(numpy, 2x4)": 1.1,
    "gl.put(numpy, 3x2 tiled)": 1.3,
    "gl.put(sharded, 2x4)": 0.02,
    "gl.put(sharded, 3x2 tiled)": 1.3,
    "gl.put_local(callback, 2x4)": 1.3,
    "gl.relayout(2x4 -> 3x2 tiled)": 2.2,
    "x.to_logical()": 9.0,
    "x.to_logical(sharding)": 1.3,
    "np.asarray(x)": 1.3,
}
TOGETHER = (
    *("gl.put_local", "x.local", "gl.relayout", "x.to_logical(sharding)", "gl.save"),
    "gl.restore(3x2 tiled)",
)
FOLDER = "GRIDLAYOUT_BENCHMARK_FOLDER"  # the variable with the folder of checkpoints


class Case:
    """The arrays and calls of one side: `calls` by the names of `PEAKS` and `TOGETHER`."""

    def __init__(self, side: int) -> None:
        import jax
        import numpy as np
        from jax.sharding import NamedSharding, PartitionSpec

        self.device = gl.DeviceGrid((2, 4))
        self.plain = gl.GridLayout((side, side), "float32", grid=(2, 4))
        self.tiled = gl.GridLayout((side, side), "float32", grid=(3, 2), tile=(32, 32))
        sharding = NamedSharding(self.device.mesh, PartitionSpec("x", "y"))
        plain, tiled, device = self.plain, self.tiled, self.device

        def whole() -> Any:
            return np.arange(side * side, dtype=np.float32).reshape(side, side)

        def piece(box: tuple[slice, ...]) -> Any:
            rows, columns = (np.arange(s.start, s.stop, dtype=np.float32) for s in box)
            return rows[:, None] * side + columns

        def laid(layout: gl.Layout) -> Any:
            return gl.put_local(piece, layout, device)

        def sharded() -> Any:
            index = sharding.devices_indices_map((side, side))
            parts = [jax.device_put(piece(index[d]), d) for d in sharding.addressable_devices]
            return jax.make_array_from_single_device_arrays((side, side), sharding, parts)

        def read(x: Any) -> Any:
            return [x.local(box) for box in x.local_boxes()]

        def path() -> str:
            return f"{os.environ[FOLDER]}/{side}"

        def saved() -> str:
            gl.save(path(), laid(plain))
            return path()

        # Of each call what it is given, and the call.
        self.calls: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
            "jax.device_put(numpy)": (whole, lambda a: jax.device_put(a, sharding)),
            "gl.put(numpy, 2x4)": (whole, lambda a: gl.put(a, plain, device)),
            "gl.put(numpy, 3x2 tiled)": (whole, lambda a: gl.put(a, tiled, device)),
            "gl.put(sharded, 2x4)": (sharded, lambda a: gl.put(a, plain, device)),
            "gl.put(sharded, 3x2 tiled)": (sharded, lambda a: gl.put(a, tiled, device)),
            "gl.put_local(callback, 2x4)": (lambda: plain, laid),
            "gl.relayout(2x4 -> 3x2 tiled)": (lambda: laid(plain), lambda x: gl.relayout(x, tiled)),
            "x.to_logical()": (lambda: laid(tiled), lambda x: x.to_logical()),
            "x.to_logical(sharding)": (lambda: laid(tiled), lambda x: x.to_logical(sharding)),
            "np.asarray(x)": (lambda: laid(tiled), np.asarray),
            "gl.put_local": (lambda: plain, laid),
            "x.local": (lambda: laid(plain), read),
            "gl.relayout": (lambda: laid(plain), lambda x: gl.relayout(x, tiled)),
            "gl.save": (lambda: laid(plain), lambda x: gl.save(path(), x).path),
            "gl.restore(3x2 tiled)": (
                saved,
                lambda path: gl.restore(
                    path, gl.put(jax.ShapeDtypeStruct((side, side), "float32"), tiled, device)
                ),
            ),
        }


def resident(field: str) -> int:
    """Bytes of this process's memory: `VmRSS` now, `VmHWM` at most since it was last cleared."""
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def measured(name: str) -> tuple[int, float]:
    """The peak of a call in bytes, and its seconds."""
    import jax

    def run(side: int) -> tuple[int, float]:
        make, call = Case(side).calls[name]
        given = jax.block_until_ready(make())
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free is not to be taken for what is used
        Path("/proc/self/clear_refs").write_text("5")
        before, start = resident("VmRSS"), perf_counter()
        found = jax.block_until_ready(call(given))
        seconds = perf_counter() - start
        del found
        return resident("VmHWM") - before, seconds

    run(SMALL)
    if jax.process_count() > 1:  # programs, which are compiled for each shape
        run(SIDE)
    return run(SIDE)


def _one(name: str) -> None:
    """In a process of its own: measure a case, and print it."""
    gl.emulate_devices(8)
    print("MEASURED", json.dumps(measured(name)))


def _one_of_several(name: str, address: str, rank: int) -> None:
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    gl.emulate_devices(DEVICES)
    jax.distributed.initialize(address, COUNT, rank)
    print("MEASURED", json.dumps(measured(name)))


def _started(*args: str, folder: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", *args]
    # Devices that wait for each other each need a thread, more than there may be cores.
    environment = {**os.environ, "NPROC": "16", FOLDER: folder}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)


def _ended(process: subprocess.Popen[str]) -> tuple[int, float]:
    out, _ = process.communicate(timeout=600)
    found = re.search(r"MEASURED (.*)", out)
    assert found, out
    peak, seconds = json.loads(found[1])
    return peak, seconds


def alone() -> list[tuple[str, ...]]:
    """A row of each case in one process of 8 devices."""
    rows = []
    for name, bound in PEAKS.items():
        peak, seconds = _ended(_started(name))
        times = peak / (SIDE * SIDE * 4)
        rows.append(
            (name, f"{times:.2f}", f"<= {bound:g}", _verdict(times <= bound), f"{seconds:.2f} s")
        )
    return rows


def together() -> list[tuple[str, ...]]:
    """A row of each case in four processes: the largest of their peaks, by a process's part.

    That is the larger of its part before and after, idle slots included: 3x2 cores leave two of
    eight devices idle, and storages have equal parts.
    """
    rows = []
    for name in TOGETHER:
        tiled = name in ("gl.relayout", "x.to_logical(sharding)", "gl.restore(3x2 tiled)")
        own = (8 * 86 * 128 * 32 * 32 if tiled else SIDE * SIDE) * 4 // COUNT
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            address = f"localhost:{probe.getsockname()[1]}"
        with TemporaryDirectory() as folder:
            running = [_started(name, address, str(rank), folder=folder) for rank in range(COUNT)]
            found = [_ended(process) for process in running]
        peak, seconds = max(p for p, _ in found), max(s for _, s in found)
        fits = peak <= 2 * own + BLOCK
        rows.append(
            (
                *(f"{name}, {COUNT} processes", f"{peak / own:.2f}"),
                *(f"<= 2 + {BLOCK / own:.2f}", _verdict(fits), f"{seconds:.2f} s"),
            )
        )
    return rows


def _verdict(good: bool) -> str:
    return "yes" if good else "NO"


def report() -> None:
    """Print both tables."""
    from benchmarks.timing import table

    head = ("what", "peak", "bound", "reached", "first call")
    size = SIDE * SIDE * 4 >> 20
    print(f"float32[{SIDE}, {SIDE}], {size} MiB; peaks as multiples of it, and of a process's part")
    print(table([*alone(), *together()], head))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        _one(sys.argv[1])
    elif len(sys.argv) == 4:
        _one_of_several(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        report()
