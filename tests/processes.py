"""Programs in processes of their own: one alone, or several that JAX joins over the loopback."""

import atexit
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

# What every program begins with, after RANK, COUNT, DEVICES and HEARTBEAT.
START = """
import atexit
import os

import jax

import gridlayout as gl

jax.config.update("jax_cpu_collectives_implementation", "gloo")
emulated = gl.emulate_devices(DEVICES)
# A process that died is held for dead soon.
limits = {"heartbeat_timeout_seconds": HEARTBEAT, "shutdown_timeout_seconds": 60}
jax.distributed.initialize(ADDRESS, COUNT, RANK, **limits)
# As JAX does, whose own registration a forked process forgets: wait for the others.
atexit.register(jax.distributed.shutdown)

import jax.numpy as jnp
import numpy as np
"""


# For programs that try one case after another, and print at their end what each raised.
CASES = """
import json

told = {}


def case(name, fn):
    try:
        fn()
        told[name] = "nothing"
    except gl.LayoutError as error:
        told[name] = str(error)
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"
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


def alone(program, *arguments):
    """Run a program as a script that Python starts and ends itself."""
    command = [sys.executable, "-c", program, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, env=environment, timeout=240)


def run_alone(program, seconds=300, **environment):
    """Run a program as a script of its own, warnings errors; it need not import JAX again."""
    strict = "import warnings; warnings.simplefilter('error')\n"
    (ended,) = _run_all([strict + program], seconds, environment)
    return ended


def run_together(program, count, devices, seconds=240, heartbeat=20, **environment):
    """Run a program in `count` processes of so many devices; fails where one is still running then.

    Whatever happens, none is left behind.
    """
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    known = f"ADDRESS, COUNT, DEVICES = {address!r}, {count}, {devices}\nHEARTBEAT = {heartbeat}\n"
    every = [f"{known}RANK = {rank}\n{START}{program}" for rank in range(count)]
    found = _run_all(every, seconds, {"NPROC": "16", **environment})
    late = "\n".join(each.out[-500:] + each.err[-2000:] for each in found)
    codes = [each.code for each in found]
    assert None not in codes, f"exit codes {codes} after {seconds} seconds\n{late}"
    return found


def _run_all(programs, seconds, environment):
    """How programs end that start together; no code is of one that was still running then."""
    with tempfile.TemporaryDirectory() as folder:
        files = [
            [Path(folder, f"{kind}{k}") for kind in ("out", "err")] for k in range(len(programs))
        ]
        processes = [
            FORK.Process(target=_run, args=(program, environment, *map(str, own)))
            for program, own in zip(programs, files, strict=True)
        ]
        try:
            end = time.monotonic() + seconds
            for process in processes:
                process.start()
            for process in processes:
                process.join(max(end - time.monotonic(), 0))
            codes = [process.exitcode for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.join()
        return [
            Ended(code, *(path.read_text() for path in own))
            for code, own in zip(codes, files, strict=True)
        ]


def _run(program, environment, out, err):
    """Run a program; `out` is what Python prints, what C++ prints is in `err`."""
    file = os.open(err, os.O_CREAT | os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout = open(out, "w", buffering=1)  # noqa: SIM115
    # In the background of a shell, processes are started with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(ROOT)
    os.environ.update(environment)
    code = 0
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    except Exception as error:
        sys.last_exc = sys.last_value = error  # as Python does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    atexit._run_exitfuncs()  # multiprocessing does not
    sys.exit(code)
