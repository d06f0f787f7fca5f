"""`python -m benchmarks.planning [names]`: planned programs against the default and GSPMD.

Of each step of `benchmarks.steps` three programs on 8 emulated devices, in turns: by `gl.plan`,
with layouts of operands free; by `gl.on_grid`, with the operands as the case places them; and
GSPMD's on these. Medians, and what the machine predicted of the first two: the one that
`gl.Machine.measure` finds at the start, or with `--default` the one that emulated devices have.

`--models` plans large models on machines that need not be there instead, each freely and as experts
divide it (`benchmarks.experts`): the plan's time and its gap to the bound, the seconds and the
memory that planning takes, and the best expert. `--layers` and `--seconds`, of these.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import fsum, nan
from statistics import median
from time import perf_counter
from typing import Any

import gridlayout as gl
from benchmarks.experts import table
from benchmarks.published import correlation
from benchmarks.steps import Case, cases, geometric_mean
from gridlayout.tables.words import bound_words

ROUNDS, SECONDS = 15, 3.0  # of one step, at least; short steps are run more often


@dataclass(frozen=True)
class Planned:
    """Seconds of a step: planned, by default, by GSPMD; and what was predicted of the first two.

    ratios: of the first to each of the others, medians over rounds.
    """

    name: str
    times: tuple[float, float, float]
    ratios: tuple[float, float]
    predicted: tuple[float, float]
    seconds: float
    bound: str

    def row(self) -> str:
        return (
            f"{self.name:44} {self.times[0] * 1e3:8.2f} ms {self.ratios[0]:6.2f}x of the default "
            f"{self.ratios[1]:6.2f}x of GSPMD's   predicted "
            f"{self.predicted[0] * 1e3:8.2f} ms {self.predicted[0] / self.predicted[1]:6.2f}x   "
            f"planned in {self.seconds:5.2f} s, {self.bound}"
        )


def measure(case: Case, device: gl.DeviceGrid) -> Planned:
    """One step on a device grid, in three ways in turns."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding

    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal(shape, np.float32) / np.sqrt(shape[-2] if len(shape) > 1 else 1)
        for shape in case.shapes
    ]
    laid, plain = [], []
    for array, grid in zip(arrays, case.grids, strict=True):
        layout = gl.GridLayout(array.shape, "float32", grid=grid or (1,) * array.ndim, collapse=[])
        laid.append(gl.put(array, layout, device))
        sharding = NamedSharding(device.fine, device.placement(layout.grid).spec)
        plain.append(jax.device_put(array, sharding))

    def fn(*xs: Any) -> Any:
        return case.fn(*xs)

    start = perf_counter()
    plan = gl.plan(fn, *laid)
    taken = perf_counter() - start
    by_plan, by_default = gl.on_grid(fn, policy=plan), gl.on_grid(fn)
    placed = plan.put(tuple(arrays))
    gspmd = jax.jit(fn)
    runs = [lambda: by_plan(*placed), lambda: by_default(*laid), lambda: gspmd(*plain)]
    outs = [jax.block_until_ready(run()) for run in runs]
    is_grid = lambda x: isinstance(x, gl.GridArray)  # noqa: E731
    for ours, theirs in zip(
        jax.tree.leaves(outs[0], is_leaf=is_grid), jax.tree.leaves(outs[2]), strict=True
    ):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-2, atol=2e-2)
    times: list[list[float]] = []
    begin = perf_counter()
    while len(times) < ROUNDS or perf_counter() - begin < SECONDS:
        # In turns, the other way round every other time.
        order = (0, 1, 2) if len(times) % 2 else (2, 1, 0)
        times.append([0.0] * len(runs))
        for k in order:
            start = perf_counter()
            jax.block_until_ready(runs[k]())
            times[-1][k] = perf_counter() - start
    default = by_default.report(*laid).seconds
    planned, own, gspmd = (median(each) for each in zip(*times, strict=True))
    ratios = median(x[0] / x[1] for x in times), median(x[0] / x[2] for x in times)
    return Planned(
        case.name,
        (planned, own, gspmd),
        ratios,
        (plan.time, default),
        taken,
        bound_words(plan.time, plan.bound),
    )


def report(names: list[str], default: bool = False) -> None:
    """Measure the steps whose names hold one of these, all without any, and print a row of each."""
    device = gl.DeviceGrid((2, 4))
    if not default:
        device = device.with_machine(gl.Machine.measure(device))
    found = []
    for case in cases(8):
        if not names or any(name in case.name for name in names):
            found.append(measure(case, device))
            print(found[-1].row(), flush=True)
    ratios = [x.ratios for x in found]
    print(
        f"geometric mean: {geometric_mean([a for a, _ in ratios]):.2f}x of the default, "
        f"{geometric_mean([b for _, b in ratios]):.2f}x of GSPMD's; "
        f"faster than the default in {sum(a < 1 for a, _ in ratios)} of {len(found)}, "
        f"at most {max(a for a, _ in ratios):.2f}x"
    )
    pairs = [pair for x in found for pair in zip(x.predicted, x.times, strict=False)]
    overall = correlation(*zip(*pairs, strict=True))
    print(
        f"rank correlation of predicted and measured times: {overall:.3f}, "
        f"of one function with its operands placed in several ways: {by_function(found):.3f}"
    )


def by_function(found: list[Planned]) -> float:
    """The mean over functions of the rank correlations of their placements and of their plan."""
    functions: dict[str, list[Planned]] = {}
    for each in found:
        functions.setdefault(each.name.rpartition(", ")[0], []).append(each)
    ranks = []
    for name, some in functions.items():
        plan = some[0].predicted[0], median(each.times[0] for each in some)
        ways = [plan, *((each.predicted[1], each.times[1]) for each in some)]
        ranks += [correlation(*zip(*ways, strict=True))] if name and len(ways) > 2 else []
    return fsum(ranks) / len(ranks) if ranks else nan


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--default", action="store_true")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.models:
        table(given.names, given.layers, given.seconds)
    else:
        gl.emulate_devices(8)
        report(given.names, given.default)
