"""Runs a program in several processes, and starts all of them again when one fails.

    python examples/supervisor.py --processes 4 -- examples/restart.py FOLDER
    python examples/supervisor.py --processes 4 3 -- examples/restart.py FOLDER  # then 3

The program finds in its environment COORDINATOR_ADDRESS, PROCESS_COUNT and PROCESS_ID, which it
gives to `jax.distributed.initialize`, and begins from its last checkpoint, as `restart.py` does.
Processes that lost one of them can't go on: they end by themselves, at the latest after JAX's
heartbeat, and are killed here before. It needs the standard library alone: copy it, and start
processes on other machines where this one has Popen.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

_LOOK = 0.1  # seconds between two looks at the processes


def started(count: int, command: Sequence[str]) -> list[subprocess.Popen[bytes]]:
    """So many processes of the program, which find each other at a port of their own."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    workers = []
    for number in range(count):
        names = {"COORDINATOR_ADDRESS": address, "PROCESS_COUNT": count, "PROCESS_ID": number}
        environment = {**os.environ, **{name: str(value) for name, value in names.items()}}
        workers.append(subprocess.Popen([sys.executable, *command], env=environment))
        say(f"process {number} of {count} is pid {workers[-1].pid}")
    return workers


def failed(workers: Sequence[subprocess.Popen[bytes]]) -> list[str]:
    """How processes ended, as soon as one fails; nothing when all have ended well."""
    while any(worker.poll() is None for worker in workers):
        if any(worker.poll() for worker in workers):
            break
        time.sleep(_LOOK)
    return [f"process {k}: {how(w.returncode)}" for k, w in enumerate(workers) if w.returncode]


def how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end(workers: Sequence[subprocess.Popen[bytes]], grace: float) -> None:
    """Let the processes say for so many seconds what they miss, then kill those that are left."""
    until = time.monotonic() + grace
    while any(worker.poll() is None for worker in workers) and time.monotonic() < until:
        time.sleep(_LOOK)
    for worker in workers:
        worker.kill()  # JAX takes SIGTERM for a notice that the machine goes away soon
        worker.wait()


def say(words: str) -> None:
    print(f"supervisor: {words}", flush=True)


def main(processes: Sequence[int], restarts: int, grace: float, command: Sequence[str]) -> int:
    """0 when a start of all processes has ended well, 1 after too many that have not."""
    for number in range(restarts + 1):
        workers: list[subprocess.Popen[bytes]] = []
        try:
            workers = started(processes[min(number, len(processes) - 1)], command)
            if not (lost := failed(workers)):
                return 0
            say("; ".join(lost))
            end(workers, grace)
        finally:  # also where this one is interrupted
            end(workers, 0)
    say(f"gave up after {restarts} restarts")
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--processes", type=int, nargs="+", default=[4], help="of each start; the last of the rest"
    )
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--grace", type=float, default=1, help="seconds until the rest is killed")
    parser.add_argument("command", nargs="+", help="-- SCRIPT ARGUMENTS")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(given.processes, given.restarts, given.grace, given.command))
