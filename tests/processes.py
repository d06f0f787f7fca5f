"""Programs in processes of their own: one alone, or several that JAX joins over the loopback."""

import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

# What every program begins with: RANK, COUNT and the modules' short names.
START = """
import os
import sys

import jax

import gridlayout as gl

jax.config.update("jax_cpu_collectives_implementation", "gloo")
ADDRESS, COUNT, RANK, DEVICES = sys.argv[1], *map(int, sys.argv[2:])
emulated = gl.emulate_devices(DEVICES)
# A process that died is held for dead soon.
jax.distributed.initialize(ADDRESS, COUNT, RANK, heartbeat_timeout_seconds=20)

import jax.numpy as jnp
import numpy as np
"""


@dataclass
class Ended:
    """A process that ended by itself."""

    code: int
    out: str
    err: str


# A process that has imported JAX, and started nothing of it, from which others are forked.
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["jax.numpy", "gridlayout.ops"])


def run_alone(program, seconds=300):
    """Run a program as a script of its own, warnings errors; it need not import JAX again."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("out", "err")]
        process = FORK.Process(target=_run, args=(program, *map(str, files)))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        return Ended(process.exitcode, *(path.read_text() for path in files))


def _run(program, *files):
    for number, path in enumerate(files, 1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
    os.chdir(ROOT)
    warnings.simplefilter("error")
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()


def run_together(program, count, devices, seconds=240, **environment):
    """Run a program in `count` processes of so many devices; fails where one is still running then.

    Whatever happens, none is left behind.
    """
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "NPROC": "16", **environment}
    command = [sys.executable, "-c", START + program, address, str(count)]
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(count):
                out, err = Path(folder, f"out{rank}"), Path(folder, f"err{rank}")
                arguments = [*command, str(rank), str(devices)]
                with out.open("w") as o, err.open("w") as e:
                    process = subprocess.Popen(
                        arguments, stdout=o, stderr=e, env=settings, cwd=ROOT
                    )
                processes.append((process, out, err))
            end = time.monotonic() + seconds
            while any(p.poll() is None for p, *_ in processes) and time.monotonic() < end:
                time.sleep(0.05)
            found = [Ended(p.poll(), *(f.read_text() for f in files)) for p, *files in processes]
            late = "\n".join(each.out[-500:] + each.err[-2000:] for each in found)
            codes = [each.code for each in found]
            assert None not in codes, f"exit codes {codes} after {seconds} seconds\n{late}"
            return found
        finally:
            for process, *_ in processes:
                process.kill()
                process.wait()
