"""Measuring the machine at hand: what its collectives, products and passes over memory take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from gridlayout.layouts.memory import Chip
from gridlayout.sharding.chips import Links, Rates
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
    Axes,
)
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machine import Figure, Machine

# Bytes of a device's part in a small and in a large collective; how often a program does one, and
# how often it is run.
SMALL, LARGE, TIMES, ROUNDS = 1 << 10, 1 << 20, 8, 7
# Rows and columns of a product on one device, and elements of a pass over memory.
PRODUCT, PASS = 512, 1 << 21
Run = Callable[[jax.Array, Axes, int], jax.Array]


def measured(device: DeviceGrid) -> Machine:
    """`Machine.measure`: medians of a few runs of each, all groups of devices at the same time."""
    device.check_has_devices("gl.Machine.measure")
    figures = []
    for axes in _groups(device):
        n = device.count(axes)
        for kind, (run, received) in _COLLECTIVES.items():
            small, large = (_seconds(device, run, axes, size) for size in (SMALL, LARGE))
            more = received(LARGE, n) - received(SMALL, n)
            per_byte = max(large - small, 1e-9) / more
            latency = max(small - received(SMALL, n) * per_byte, 0.0)
            figures.append(Figure(kind, n, latency, 1 / per_byte))
    chip = Chip(device.platform, (1, 1))
    links = Links(min((f.bandwidth for f in figures), default=1e9))
    return Machine(chip, device.shape, links, rates=_rates(device), figures=figures)


def _groups(device: DeviceGrid) -> list[Axes]:
    """Axes of the mesh's factors, one choice for each size of a group, the last ones first."""
    names, found = tuple(device.fine.axis_names), {}
    for count in range(1, len(names) + 1):
        for axes in combinations(names[::-1], count):
            found.setdefault(device.count(axes), tuple(n for n in names if n in axes))
    return [axes for n, axes in sorted(found.items()) if n > 1]


def _gather(x: jax.Array, axes: Axes, n: int) -> jax.Array:
    return lax.slice_in_dim(lax.all_gather(x, axes, tiled=True), 0, x.shape[0])


def _scatter(x: jax.Array, axes: Axes, n: int) -> jax.Array:
    return jnp.tile(lax.psum_scatter(x, axes, tiled=True), n)


def _exchange(x: jax.Array, axes: Axes, n: int) -> jax.Array:
    return lax.all_to_all(x.reshape(n, -1), axes, 0, 0, tiled=True).reshape(-1)


def _rotate(x: jax.Array, axes: Axes, n: int) -> jax.Array:
    return lax.ppermute(x, axes, [(k, (k + 1) % n) for k in range(n)])


# What is run, and the bytes that a device then receives of parts of so many.
_COLLECTIVES: dict[str, tuple[Run, Callable[[int, int], float]]] = {
    ALL_GATHER: (_gather, lambda size, n: size * (n - 1)),
    ALL_REDUCE: (lambda x, axes, n: lax.psum(x, axes), lambda size, n: 2 * size * (n - 1) / n),
    REDUCE_SCATTER: (_scatter, lambda size, n: size * (n - 1) / n),
    ALL_TO_ALL: (_exchange, lambda size, n: size * (n - 1) / n),
    PERMUTE: (_rotate, lambda size, n: float(size)),
}


def _seconds(device: DeviceGrid, run: Run, axes: Axes, size: int) -> float:
    """Seconds of one collective: of a program of several, less those of a program of one."""
    n, words = device.count(axes), max(size // 4, device.size) // device.size * device.size

    def repeated(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            for _ in range(times):
                x = run(x, axes, n) * 0.5 + 1
            return x

        return body

    few, many = (_timed(device, repeated(times), words) for times in (1, 1 + TIMES))
    return max(many - few, 1e-9) / TIMES


def _timed(device: DeviceGrid, body: Callable[..., Any], *words: int) -> float:
    """Median seconds of a program on every device's part of so many words."""
    spec = PartitionSpec(device.fine.axis_names)
    fn = jax.jit(
        jax.shard_map(
            body,
            mesh=device.fine,
            in_specs=(spec,) * len(words),
            out_specs=spec,
            check_vma=False,
        )
    )
    sharding = NamedSharding(device.fine, spec)
    arrays = [
        jax.make_array_from_callback((n * device.size,), sharding, lambda at, n=n: np.ones(n, "f4"))
        for n in words
    ]
    jax.block_until_ready(fn(*arrays))
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        jax.block_until_ready(fn(*arrays))
        times.append(perf_counter() - start)
    return median(times)


def _rates(device: DeviceGrid) -> Rates:
    """Products and passes of every device at once."""

    def product(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            a = x.reshape(PRODUCT, PRODUCT)
            for _ in range(times):
                a = a @ a * (1 / PRODUCT)
            return a.reshape(-1)

        return body

    def passes(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            # A loop, each of whose steps XLA does by itself.
            return lax.fori_loop(0, times, lambda _, x: x * 0.5 + 1, x)

        return body

    def each(make: Callable[[int], Any], words: int) -> float:
        few, many = (_timed(device, make(times), words) for times in (2, 6))
        return max(many - few, 1e-9) / 4

    multiplied, passed = each(product, PRODUCT**2), each(passes, PASS)
    return Rates(
        flops=2 * PRODUCT**3 / multiplied,
        memory=2 * 4 * PASS / passed,
        elementwise=PASS / passed,
        sources=dict.fromkeys(("flops", "memory", "elementwise"), "measured"),
    )
