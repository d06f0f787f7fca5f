"""A long training in which every step has new shapes: memory, time per step, the same result twice.

`python -m benchmarks.long [--minutes 60] [--limit MIB]` trains a classifier of digits on 8
emulated devices. Each step draws a batch of another size, relays it and a weight out to layouts
that it draws, runs a compiled step of a constant shape too, and saves a checkpoint; each tenth step
restores it. At the end, the same weights are saved many times, to find what a checkpoint leaves in
memory. A second process repeats the first steps, in a third of the time. The result is written to
`benchmarks/long.json`, from which `docs/pictures.py` draws.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np

import gridlayout as gl

OUT = Path(__file__).with_name("long.json")
GRIDS, TILES = ((2, 4), (4, 2), (8, 1), (1, 8), (4, 4)), (None, (4, 4), (8, 8), (16, 16))
RESTORED, RATE = 10, 0.3  # steps between restored checkpoints; of gradient descent
SAVES = 300  # of the same weights, after the last step
# Machine code that runs once is not worth optimizing, and more steps fit into the time.
FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
# What the second half of a run may add: of the memory at its begin, and of a step's time.
MORE_MEMORY, MORE_TIME = 0.05, 0.25


class Step(NamedTuple):
    """One step. at: minutes since the first one. rss, cached: bytes of the process, of caches.

    seconds: CPU time of the step with its compilations. known: of a step whose shapes are known.
    arrays: live arrays on devices. loss: as the text of its bits.
    """

    at: float
    seconds: float
    known: float
    rss: int
    cached: int
    arrays: int
    loss: str


def resident_bytes() -> int:
    """Return the resident memory of this process, as Linux reports it."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in x)
    return int(line.split()[1]) << 10


class Training:
    """The training. folder: for checkpoints."""

    def __init__(self, folder: str) -> None:
        import jax

        from benchmarks import digits

        self.rng, self.path = np.random.default_rng(0), f"{folder}/step"
        self.device = gl.DeviceGrid((2, 4))
        self.data, _ = digits.digits()
        weights = digits.initial(np.random.default_rng(1))
        self.params = gl.put(weights, self.device, self.layout_of((2, 4), (8, 8)))

        def step(params: Any, images: Any, labels: Any) -> Any:
            loss, slopes = jax.value_and_grad(digits.loss_fn)(params, images, labels)
            return {name: w - RATE * slopes[name] for name, w in params.items()}, loss

        self.step = gl.on_grid(step)
        self.known = self.params, *self.batch(64, (2, 4), (8, 8))
        self.compiled = gl.on_grid(lambda *given: step(*given))
        self.compiled(*self.known)

    def layout_of(self, grid: Any, tile: Any) -> Any:
        """Return the rule that lays out an array of any rank on a grid, in tiles."""

        def layout(shape: tuple[int, ...], dtype: Any) -> gl.GridLayout:
            cores, own = (8,) if len(shape) == 1 else grid, tile if len(shape) > 1 else None
            fits = [min(c, n) for c, n in zip(cores, shape, strict=True)]
            return gl.GridLayout(shape, dtype, fits, own, [])

        return layout

    def batch(self, size: int, grid: Any, tile: Any) -> Any:
        """Return images and labels of a random batch, laid out."""
        chosen = self.rng.integers(0, len(self.data["labels"]), size)
        arrays = self.data["images"][chosen], self.data["labels"][chosen]
        return gl.put(arrays, self.device, self.layout_of(grid, tile))

    def drawn(self) -> tuple[Any, Any]:
        """Return a random grid and tile."""
        return GRIDS[self.rng.integers(len(GRIDS))], TILES[self.rng.integers(len(TILES))]

    def run(self, number: int) -> str:
        """Run one step, and return its loss as text."""
        size = int(self.rng.integers(16, 1024))
        moved = gl.relayout({"w1": self.params["w1"]}, self.layout_of(*self.drawn()))
        images, labels = self.batch(size, *self.drawn())
        images = gl.relayout(images, self.layout_of(*self.drawn())(images.shape, images.dtype))
        self.params, loss = self.step({**self.params, **moved}, images, labels)
        gl.save(self.path, self.params)
        if number % RESTORED == 0:
            self.params = gl.restore(self.path, self.params)
        return float(loss).hex()

    def repeated(self) -> float:
        """Run a step whose shapes are known, and return its CPU time: the median of five."""
        times = []
        for _ in range(5):
            start = process_time()
            self.compiled(*self.known)[1].block_until_ready()
            times.append(process_time() - start)
        return median(times)

    def save_bytes(self) -> float:
        """Return the bytes that a checkpoint of the same weights adds to the process."""
        gl.save(self.path, self.params)
        before = resident_bytes()
        for _ in range(SAVES):
            gl.save(self.path, self.params)
        return (resident_bytes() - before) / SAVES


def steps(seconds: float) -> Iterator[Step | float]:
    """Yield the steps of a training of so many seconds, then `Training.save_bytes()`."""
    import jax

    begin = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        training, number = Training(folder), 0
        while monotonic() - begin < seconds:
            start = process_time()
            loss = training.run(number)
            taken = process_time() - start
            known, cached, number = training.repeated(), gl.caches.nbytes(), number + 1
            arrays = len(jax.live_arrays())
            yield Step(
                *((monotonic() - begin) / 60, taken, known, resident_bytes(), cached, arrays),
                loss,
            )
        yield training.save_bytes()


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return how much the least-squares line of `y` rises from the first to the last `x`."""
    return float(np.polyfit(x, y, 1)[0]) * (x[-1] - x[0])


def summary(first: Sequence[Step], again: Sequence[Step], saved: float) -> dict[str, Any]:
    """Return what the page states about a run and its repetition.

    saved: the bytes that each checkpoint leaves in the process.
    """
    half = first[len(first) // 2 :]
    at = [step.at for step in half]
    values: dict[str, list[float]] = {
        name: [getattr(step, name) for step in half] for name in ("rss", "seconds", "known")
    }
    values["rss without saves"] = [x - k * saved for k, x in enumerate(values["rss"])]
    rises = {name: slope(at, found) / median(found) for name, found in values.items()}
    both = min(len(first), len(again))
    return {
        "steps": len(first),
        "minutes": first[-1].at,
        "rss": [half[0].rss, half[-1].rss],
        "most_rss": max(step.rss for step in first),
        "save_bytes": saved,
        "arrays": [half[0].arrays, half[-1].arrays],
        "rises": rises,
        "seconds": median(step.seconds for step in half),
        "known": median(step.known for step in half),
        "repeated": both,
        "equal": [s.loss for s in first[:both]] == [s.loss for s in again[:both]],
        "losses": [float.fromhex(first[0].loss), float.fromhex(first[-1].loss)],
        "is_met": {
            "memory is flat": rises["rss"] <= MORE_MEMORY,
            "memory without saves is flat": rises["rss without saves"] <= MORE_MEMORY,
            "steps take no longer": max(rises["seconds"], rises["known"]) <= MORE_TIME,
            "no array is left": half[-1].arrays <= half[0].arrays,
            "the same losses": both > 0
            and [s.loss for s in first[:both]] == [s.loss for s in again[:both]],
        },
    }


def process(seconds: float, limit: int) -> tuple[list[Step], float]:
    """Run a training in a process of its own; return its steps, and what a checkpoint leaves."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.long", "--only", str(seconds)]
    command += ["--limit", str(limit)]
    found, saved = list[Step](), 0.0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={"XLA_FLAGS": FLAGS, **os.environ}
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if not isinstance(made := json.loads(line), list):
                saved = made
                continue
            found.append(Step(*made))
            if len(found) % 20 == 0:
                last = found[-1]
                print(
                    f"{last.at:6.1f} min {len(found):5d} steps {last.rss >> 20:6d} MiB, "
                    f"caches {last.cached >> 20:4d} MiB, {last.seconds:5.2f} s of CPU, "
                    f"known {last.known * 1e3:.1f} ms, {last.arrays} arrays",
                    flush=True,
                )
    if child.returncode:
        raise SystemExit(f"the training ended with {child.returncode}")
    return found, saved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="of the first run")
    parser.add_argument("--limit", type=int, default=128, help="gl.caches.limit, in MiB")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--only", type=float, help=argparse.SUPPRESS)  # seconds, in this process
    given = parser.parse_args()
    if given.only is not None:
        gl.emulate_devices(8)
        gl.caches.limit(given.limit << 20)
        for step in steps(given.only):
            print(json.dumps(step), flush=True)
        return
    first, saved = process(60 * given.minutes, given.limit)
    again, _ = process(20 * given.minutes, given.limit)
    import jax

    found = summary(first, again, saved)
    where = f"Python {platform.python_version()}, JAX {jax.__version__}, 8 emulated devices"
    when = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    facts = {"when": when, "where": where, "limit": given.limit << 20, **found}
    given.out.write_text(
        json.dumps({**facts, "columns": Step._fields, "run": first}) + "\n", encoding="utf-8"
    )
    print(json.dumps(facts, indent=2))
    if not all(found["is_met"].values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
