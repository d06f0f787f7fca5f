"""`python -m benchmarks.ranks`: whether the machine puts products and relayouts in the right order.

Twelve cases on each of five meshes of 8 emulated devices; of a product every algorithm that there
is. Spearman's rank correlation of the predicted seconds and the measured medians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import gridlayout as gl
from benchmarks import published

MESHES = ((2, 4), (8,), (4, 2), (2, 2, 2), (1, 8))
PRODUCTS = ((64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (64, 4096, 64), (2048, 64, 2048))
SIDES = (64, 512, 2048)
ROUNDS = 7


@dataclass(frozen=True)
class Pair:
    """What was predicted of a way to do something, and what it took: seconds."""

    name: str
    predicted: float
    measured: float


def grids_of(mesh: tuple[int, ...]) -> list[tuple[int, int]]:
    """Two grids of the devices as a matrix's."""
    if len(mesh) == 1 or 1 in mesh:
        return [(8, 1), (1, 8)]
    return [(mesh[0], 8 // mesh[0]), (8, 1)]


def pairs(device: gl.DeviceGrid) -> Iterator[Pair]:
    """Every way of every case on a device grid."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def laid(shape: tuple[int, int], grid: tuple[int, int]) -> Any:
        return gl.put(np.ones(shape, np.float32), gl.GridLayout(shape, grid=grid), device)

    def seconds(run: Any) -> float:
        jax.block_until_ready(run())
        times = []
        for _ in range(ROUNDS):
            start = perf_counter()
            jax.block_until_ready(run())
            times.append(perf_counter() - start)
        return median(times)

    first, second = grids_of(device.shape)
    for m, k, n in PRODUCTS:
        x, y = laid((m, k), first), laid((k, n), first)
        for name in gl.ALGORITHMS:
            fn = gl.on_grid(jnp.matmul, algorithm=name)
            try:
                predicted = fn.report(x, y).seconds
            except gl.LayoutError:  # the devices are not placed as it needs them
                continue
            took = seconds(lambda fn=fn, x=x, y=y: fn(x, y).storage)
            yield Pair(f"{m}x{k}x{n} {name} on {device.shape}", predicted, took)
    for side in SIDES:
        for before, after in ((first, second), (second, first)):
            x = laid((side, side), before)
            layout = gl.GridLayout((side, side), grid=after)
            plan = gl.relayout_plan(x.layout, layout, device)
            took = seconds(lambda x=x, layout=layout: gl.relayout(x, layout).storage)
            name = f"{side}x{side} {before} to {after} on {device.shape}"
            yield Pair(name, device.machine.seconds(plan.collectives), took)


def correlation(found: list[Pair]) -> float:
    """Spearman's: of the ranks."""
    return published.correlation(
        [pair.predicted for pair in found], [pair.measured for pair in found]
    )


def results() -> list[Pair]:
    """All pairs, on all meshes."""
    return [pair for mesh in MESHES for pair in pairs(gl.DeviceGrid(mesh))]


def main() -> None:
    gl.emulate_devices(8)
    found = results()
    for pair in found:
        print(f"{pair.name:<48} {pair.predicted * 1e3:9.3f} {pair.measured * 1e3:9.3f} ms")
    print(f"{len(found)} ways, rank correlation {correlation(found):.3f}")


if __name__ == "__main__":
    main()
