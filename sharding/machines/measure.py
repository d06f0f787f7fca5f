"""Measurements of JAX's devices: times of collectives, products and passes over memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import prod
from statistics import median
from time import perf_counter
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.arguments import Shape
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
    shard_mapped,
)
from gridlayout.sharding.machines.chips import LINKS, Figure, Rates

# The bytes per device in a small and in a large collective; the collectives per program; the runs
# of a program.
SMALL, LARGE, TIMES, ROUNDS = 1 << 10, 1 << 20, 8, 7
# The rows and columns of a product that takes time to multiply, and of one that takes only the time
# to start; the elements of a pass over memory. Where the first does not take `LONGER` times as long
# as the second, its rows and columns are doubled, up to `LARGEST`.
PRODUCT, TINY, PASS, LARGEST, LONGER = 512, 32, 1 << 21, 8192, 100
# The least share of the time of collectives that products hide where both work at the same time.
HIDDEN = 0.5
# The most repetitions of a program, and the share of its time that they are to take.
REPEATED, SHARE = 256, 0.3
_RATES = ("flops", "memory", "elementwise", "start", "transposed")
Run = Callable[[jax.Array, Axes, int], jax.Array]
Crosses = Callable[[Axes], bool]


class MeasuredDevices(Protocol):
    """The interface of a device grid that its measurement needs; `gl.DeviceGrid` has it."""

    @property
    def mesh(self) -> Any:
        """The mesh; its `axis_names` are used."""

    @property
    def fine(self) -> Any:
        """The mesh of the same devices, with each axis in its prime factors."""

    @property
    def shape(self) -> Shape:
        """The number of devices along each axis of `mesh`."""

    def check_has_devices(self, what: str) -> None:
        """Raise `LayoutError` if there are no devices; `what` needs them."""


def measured(
    mesh: Mesh, crosses: Crosses = lambda _: False
) -> tuple[list[Figure], Rates, tuple[str, ...]]:
    """Return the figures of collectives, the rates of one device, and what works beside all else.

    mesh: its axes are prime factors. crosses: whether devices along some axes have several hosts.
    Figures are by kind and group size. All processes get the values that the first one measured.
    """
    figures = []
    for axes, between in _groups(mesh, crosses):
        n, wait = _count(mesh, axes), _wait(mesh, axes)
        for kind, (run, received) in _COLLECTIVES.items():
            small, large = (_seconds(mesh, run, axes, size) for size in (SMALL, LARGE))
            more = received(LARGE, n) - received(SMALL, n)
            per_byte = max(large - small, 1e-9) / more
            latency = max(small - received(SMALL, n) * per_byte, 0.0)
            longer = max(wait - latency, 0.0)
            figures.append(Figure(kind, n, latency, 1 / per_byte, longer, between))
    figures, rates, hidden = _of_first_process(mesh, figures, _rates(mesh), _hidden(mesh))
    return figures, rates, (LINKS,) if hidden > HIDDEN else ()


def _groups(mesh: Mesh, crosses: Crosses) -> list[tuple[Axes, bool]]:
    """Return the axes of a mesh to measure, and for each whether they cross hosts.

    There is one entry per group size, within hosts and across; the last axes are preferred.
    """
    names: Axes = tuple(map(str, mesh.axis_names))
    found: dict[tuple[int, bool], Axes] = {}
    for count in range(1, len(names) + 1):
        for some in combinations(names[::-1], count):
            axes = tuple(n for n in names if n in some)
            found.setdefault((_count(mesh, axes), crosses(axes)), axes)
    return [(axes, between) for (n, between), axes in sorted(found.items()) if n > 1]


def _of_first_process(
    mesh: Mesh, figures: list[Figure], rates: Rates, hidden: float
) -> tuple[list[Figure], Rates, float]:
    """Return what the process of the first device measured, so that all make the same choices."""
    if len({device.process_index for device in mesh.devices.flat}) == 1:
        return figures, rates, hidden
    own = [x for each in figures for x in (each.latency, each.bandwidth, each.wait)]
    own += [*(getattr(rates, name) for name in _RATES), hidden]
    spec = PartitionSpec(mesh.axis_names)
    rows = jax.make_array_from_callback(
        (mesh.size, len(own)),
        NamedSharding(mesh, spec),
        lambda _: np.array([own], np.float32),
    )
    first = jax.jit(lambda x: x[0], out_shardings=NamedSharding(mesh, PartitionSpec()))(rows)
    values = [float(x) for x in np.asarray(first.addressable_data(0))]
    rest: dict[str, Any] = dict(zip(_RATES, values[3 * len(figures) : -1], strict=True))
    return (
        [
            replace(
                each, latency=values[3 * k], bandwidth=values[3 * k + 1], wait=values[3 * k + 2]
            )
            for k, each in enumerate(figures)
        ],
        replace(rates, **rest),
        values[-1],
    )


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


# For each kind, the function to run, and the bytes that a device receives, given the bytes per
# device and the group size.
_COLLECTIVES: dict[str, tuple[Run, Callable[[int, int], float]]] = {
    ALL_GATHER: (_gather, lambda size, n: size * (n - 1)),
    ALL_REDUCE: (lambda x, axes, n: lax.psum(x, axes), lambda size, n: 2 * size * (n - 1) / n),
    REDUCE_SCATTER: (_scatter, lambda size, n: size * (n - 1) / n),
    ALL_TO_ALL: (_exchange, lambda size, n: size * (n - 1) / n),
    PERMUTE: (_rotate, lambda size, n: float(size)),
}


def _seconds(mesh: Mesh, run: Run, axes: Axes, size: int) -> float:
    """Return the seconds per collective: the difference of programs with several and with one."""
    n, words = _count(mesh, axes), max(size // 4, mesh.size) // mesh.size * mesh.size

    def repeated(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            for _ in range(times):
                x = run(x, axes, n) * 0.5 + 1
            return x

        return body

    few, many = (_timed(mesh, repeated(times), words) for times in (1, 1 + TIMES))
    return max(many - few, 1e-9) / TIMES


def _wait(mesh: Mesh, axes: Axes) -> float:
    """Return the seconds of a small all-reduce between products.

    It waits for the last device, as devices do not finish a product at the same time.
    """

    def repeated(sends: bool) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            a = x.reshape(PRODUCT, PRODUCT)
            b = a[:TINY]
            for _ in range(TIMES):
                b = b @ a * (1 / PRODUCT)
                if sends:
                    b = b + lax.psum(b[:1], axes) * 0.5
            return jnp.resize(b, (PRODUCT**2,))

        return body

    alone, both = (_timed(mesh, repeated(sends), PRODUCT**2) for sends in (False, True))
    return max(both - alone, 0.0) / TIMES


def _hidden(mesh: Mesh) -> float:
    """Return the share of the time of all-reduces that products hide; 0 on one device."""
    axes: Axes = tuple(map(str, mesh.axis_names))

    def program(sends: int, products: int) -> Callable[[], float]:
        def body(x: jax.Array) -> jax.Array:
            a, b = x.reshape(PRODUCT, PRODUCT), x
            c = a
            for _ in range(sends):
                b = lax.psum(b, axes) * 0.5
            for _ in range(products):
                c = c @ a * (1 / PRODUCT)
            return b + c.reshape(-1)

        return _ready(mesh, body, PRODUCT**2)

    return _hidden_in(program) if mesh.size > 1 else 0.0


def _hidden_in(program: Callable[[int, int], Callable[[], float]]) -> float:
    """Return the share of the time of transfers, or of products, that is hidden beside the others.

    program: returns a function that runs so many transfers, and so many products that do not need
    them, and returns the seconds. Both take about equally long. Of several rounds, three quarters
    hide more than this share, which is between 0 and 1.
    """
    nothing, sent, one = (
        median(once() for _ in range(ROUNDS))
        for once in (program(0, 0), program(TIMES, 0), program(0, TIMES))
    )
    per_product = max(one - nothing, 1e-9) / TIMES
    products = min(max(round((sent - nothing) / per_product), 1), REPEATED)
    counts = (0, 0), (TIMES, 0), (0, products), (TIMES, products)
    programs = [program(*each) for each in counts]
    shares = []
    for _ in range(ROUNDS):
        least, *rest = (once() for once in programs)
        alone, multiplied, both = (max(each - least, 1e-9) for each in rest)
        shares.append((alone + multiplied - both) / min(alone, multiplied))
    return min(max(sorted(shares)[len(shares) // 4], 0.0), 1.0)


def _timed(mesh: Mesh, body: Callable[..., Any], *words: int) -> float:
    """Return the median seconds of a program. words: float32 elements per device and operand."""
    once = _ready(mesh, body, *words)
    return median(once() for _ in range(ROUNDS))


def _ready(mesh: Mesh, body: Callable[..., Any], *words: int) -> Callable[[], float]:
    """Return a function that runs a compiled program and returns its seconds."""
    spec = PartitionSpec(mesh.axis_names)
    fn = jax.jit(shard_mapped(body, mesh, (spec,) * len(words), spec))
    sharding = NamedSharding(mesh, spec)
    arrays = [jax.jit(partial(jnp.ones, n * mesh.size), out_shardings=sharding)() for n in words]
    jax.block_until_ready(fn(*arrays))

    def once() -> float:
        start = perf_counter()
        jax.block_until_ready(fn(*arrays))
        return perf_counter() - start

    return once


def _rates(mesh: Mesh) -> Rates:
    """Return the rates of one device, while all devices run the same."""

    def each(make: Callable[[int], Any], words: int, more: int = 4) -> float:
        return _per_repetition(lambda times: _timed(mesh, make(times), words), more)

    passed, start = each(_passes, PASS), each(_products(TINY), TINY**2, 64)
    memory, side = 2 * 4 * PASS / passed, PRODUCT
    while (took := each(_products(side), side**2)) < LONGER * start and side < LARGEST:
        side *= 2
    multiplied = took - start - 3 * 4 * side**2 / memory
    skinny, turned = (each(_products(side, TINY, yes), side**2) for yes in (False, True))
    return Rates(
        flops=2 * side**3 / max(multiplied, 1e-9),
        memory=memory,
        elementwise=PASS / passed,
        start=start,
        packs=mesh.devices.flat[0].platform == "cpu",
        transposed=4 * side**2 / max(turned - skinny, 1e-9),
        sources=dict.fromkeys(_RATES, "measured"),
    )


def _per_repetition(seconds: Callable[[int], float], more: int) -> float:
    """Return the seconds of one repetition. seconds: of a program with so many repetitions.

    It is the difference of programs with `more` repetitions and without. On a fast device, these
    take no longer than the time of a call varies, so there are more of them then.
    """
    few = seconds(2)
    while (many := seconds(2 + more)) * (1 - SHARE) < few and more < REPEATED:
        more *= 4
    return max(many - few, 1e-9) / more


def _products(
    side: int, rows: int = 0, turned: bool = False
) -> Callable[[int], Callable[[jax.Array], jax.Array]]:
    """Return a function of a number that gives a program of so many products.

    side: the rows and columns of the right operand. rows: of the left one, if fewer. turned:
    whether the right operand is transposed.
    """

    def repeated(times: int) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            a = x.reshape(side, side)
            b = a[: rows or side]
            for _ in range(times):
                b = b @ (a.T if turned else a) * (1 / side)
            return jnp.resize(b, (side * side,))

        return body

    return repeated


def _passes(times: int) -> Callable[[jax.Array], jax.Array]:
    """Return a program of so many passes over memory."""

    def once(_: Any, x: jax.Array) -> jax.Array:
        return x * 0.5 + 1

    def body(x: jax.Array) -> jax.Array:
        # A loop, so that XLA does not fuse the passes.
        found: jax.Array = lax.fori_loop(0, times, once, x)
        return found

    return body
