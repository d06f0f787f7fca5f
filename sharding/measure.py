"""Measuring the machine at hand: what its collectives, products and passes over memory take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import prod
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.sharding.chips import Figure, Rates
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
    Axes,
)

# Bytes of a device's part in a small and in a large collective; how often a program does one, and
# how often it is run.
SMALL, LARGE, TIMES, ROUNDS = 1 << 10, 1 << 20, 8, 7
# Rows and columns of a product on one device, and elements of a pass over memory.
PRODUCT, PASS = 512, 1 << 21
Run = Callable[[jax.Array, Axes, int], jax.Array]


def measured(mesh: Mesh) -> tuple[list[Figure], Rates]:
    """What collectives take by kind and size of group, and what a device does by itself.

    mesh: of axes in prime factors.
    """
    figures = []
    for axes in _groups(mesh):
        n = _count(mesh, axes)
        for kind, (run, received) in _COLLECTIVES.items():
            small, large = (_seconds(mesh, run, axes, size) for size in (SMALL, LARGE))
            more = received(LARGE, n) - received(SMALL, n)
            per_byte = max(large - small, 1e-9) / more
            latency = max(small - received(SMALL, n) * per_byte, 0.0)
            figures.append(Figure(kind, n, latency, 1 / per_byte))
    return figures, _rates(mesh)


def _groups(mesh: Mesh) -> list[Axes]:
    """Axes of a mesh, one choice for each size of a group, the last ones first."""
    names: Axes = tuple(map(str, mesh.axis_names))
    found: dict[int, Axes] = {}
    for count in range(1, len(names) + 1):
        for axes in combinations(names[::-1], count):
            found.setdefault(_count(mesh, axes), tuple(n for n in names if n in axes))
    return [axes for n, axes in sorted(found.items()) if n > 1]


def _count(mesh: Mesh, axes: Axes) -> int:
    return prod(mesh.shape[axis] for axis in axes)


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


def _seconds(mesh: Mesh, run: Run, axes: Axes, size: int) -> float:
    """Seconds of one collective: of a program of several, less those of a program of one."""
    n, words = _count(mesh, axes), max(size // 4, mesh.size) // mesh.size * mesh.size

    def repeated(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            for _ in range(times):
                x = run(x, axes, n) * 0.5 + 1
            return x

        return body

    few, many = (_timed(mesh, repeated(times), words) for times in (1, 1 + TIMES))
    return max(many - few, 1e-9) / TIMES


def _timed(mesh: Mesh, body: Callable[..., Any], *words: int) -> float:
    """Median seconds of a program on every device's part of so many words."""
    spec = PartitionSpec(mesh.axis_names)
    fn = jax.jit(
        jax.shard_map(
            body,
            mesh=mesh,
            in_specs=(spec,) * len(words),
            out_specs=spec,
            check_vma=False,
        )
    )
    sharding = NamedSharding(mesh, spec)
    arrays = [jax.jit(partial(jnp.ones, n * mesh.size), out_shardings=sharding)() for n in words]
    jax.block_until_ready(fn(*arrays))
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        jax.block_until_ready(fn(*arrays))
        times.append(perf_counter() - start)
    return median(times)


def _rates(mesh: Mesh) -> Rates:
    """Products and passes of every device at once."""

    def product(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            a = x.reshape(PRODUCT, PRODUCT)
            for _ in range(times):
                a = a @ a * (1 / PRODUCT)
            return a.reshape(-1)

        return body

    def once(_: Any, x: jax.Array) -> jax.Array:
        return x * 0.5 + 1

    def passes(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            # A loop, each of whose steps XLA does by itself.
            found: jax.Array = lax.fori_loop(0, times, once, x)
            return found

        return body

    def each(make: Callable[[int], Any], words: int) -> float:
        few, many = (_timed(mesh, make(times), words) for times in (2, 6))
        return max(many - few, 1e-9) / 4

    multiplied, passed = each(product, PRODUCT**2), each(passes, PASS)
    return Rates(
        flops=2 * PRODUCT**3 / multiplied,
        memory=2 * 4 * PASS / passed,
        elementwise=PASS / passed,
        sources=dict.fromkeys(("flops", "memory", "elementwise"), "measured"),
    )
