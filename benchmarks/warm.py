"""`python -m benchmarks.warm [--devices N] [name ...]`: later calls of steps of many kinds.

Stencils, embeddings, caches, mixtures, particles and the steps of `benchmarks/kinds.py`, on 8, 16
or 64 emulated devices, against GSPMD with the same placement, which leaves its results where it
likes. A row states medians of the time, the bytes that a device receives (in a loop, of one
iteration) and the temporary bytes that it holds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridlayout as gl
from benchmarks.operations import Grid, measure, placed, row, sharded
from benchmarks.steps import MESHES, geometric_mean


@dataclass(frozen=True)
class Step:
    """A function, its arguments, and the grid of each of them on a mesh of m by n devices."""

    name: str
    fn: Callable[..., Any]
    arrays: Sequence[np.ndarray]
    grids: Callable[[int, int], Sequence[Grid]]


def steps() -> list[Step]:
    """The steps that are no `kinds`."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    random = np.random.default_rng(0)
    found: list[Step] = []

    def add(name: str, fn: Callable[..., Any], shapes: Any, **placements: Any) -> None:
        arrays = [x if isinstance(x, np.ndarray) else normal(*x) for x in shapes]
        for where, grids in placements.items():
            found.append(Step(f"{name}, {where.replace('_', ' ')}", fn, arrays, grids))

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32) / np.float32(4)

    def below(n: int, *shape: int) -> np.ndarray:
        return random.integers(0, n, shape).astype(np.int32)

    blocks, rows = lambda m, n: [(m, n)], lambda m, n: [(m * n, 1)]

    def five_points(u: Any) -> Any:
        p = jnp.pad(u, 1)
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

    def four(u: Any) -> Any:
        for _ in range(4):
            u = five_points(u)
        return u

    def around(u: Any) -> Any:
        return sum(jnp.roll(u, s, a) for a in (0, 1) for s in (1, -1))

    def heat(u: Any) -> Any:
        return lax.scan(lambda u, _: (u + 0.1 * (around(u) - 4 * u), None), u, length=20)[0]

    def life(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            rows = u + jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0)
            near = rows + jnp.roll(rows, 1, 1) + jnp.roll(rows, -1, 1)
            return jnp.where((near == 3) | ((near == 4) & (u == 1)), 1.0, 0.0)

        return lax.fori_loop(0, 5, step, jnp.where(u > 0, 1.0, 0.0))

    def fitted(u: Any, seen: Any) -> Any:
        """The gradient of how far four steps of diffusion are from what was seen."""
        return jax.value_and_grad(lambda u: jnp.mean((four(u) - seen) ** 2))(u)

    def volume(u: Any) -> Any:
        p = jnp.pad(u, 1, mode="edge")
        inside = [slice(1, -1)] * 3
        total = -6 * u
        for axis in range(3):
            for part in (slice(2, None), slice(None, -2)):
                total = total + p[(*inside[:axis], part, *inside[axis + 1 :])]
        return u + 0.1 * total

    add("stencil, 4 steps", four, [(512, 512)], blocks=blocks, rows=rows)
    add("heat equation, 20 steps", heat, [(512, 512)], blocks=blocks, rows=rows)
    add("game of life, 5 steps", life, [(512, 512)], blocks=blocks)
    add("stencil fitted", fitted, [(512, 512)] * 2, blocks=lambda m, n: [(m, n)] * 2)
    add("heat in a volume", volume, [(64, 64, 64)], blocks=lambda m, n: [(m, n, 1)])

    def embedded(table: Any, tokens: Any) -> Any:
        loss = lambda table: jnp.mean(jnp.tanh(table[tokens].mean(1)) ** 2)  # noqa: E731
        value, slope = jax.value_and_grad(loss)(table)
        return table - 0.1 * slope, value

    add("embeddings, gradient", embedded, [(4096, 128), below(4096, 256, 32)],
        rows=lambda m, n: [(n, 1), (m, 1)],
        all_rows=lambda m, n: [(m * n, 1), (m * n, 1)])  # fmt: skip

    def token(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any) -> Any:
        keys = lax.dynamic_update_slice(keys, k[:, None], (0, at, 0))
        values = lax.dynamic_update_slice(values, v[:, None], (0, at, 0))
        scores = jnp.einsum("bw,blw->bl", q, keys) / 8
        scores = jnp.where(jnp.arange(keys.shape[1]) <= at, scores, -1e9)
        return jnp.einsum("bl,blw->bw", jax.nn.softmax(scores), values), keys, values

    def cached(m: int, n: int) -> list[Grid]:
        return [(m, n)] * 3 + [(m, 1, n)] * 2 + [None]

    def by_batch(m: int, n: int) -> list[Grid]:
        return [(m * n, 1)] * 3 + [(m * n, 1, 1)] * 2 + [None]

    at = np.asarray(100, np.int32)
    add("decoding a token", token, [(64, 128)] * 3 + [(64, 256, 128)] * 2 + [at],
        blocks=cached, batch=by_batch)  # fmt: skip

    def gated(x: Any, up: Any, gate: Any, down: Any) -> Any:
        @jax.checkpoint
        def layer(x: Any, w: Any) -> Any:
            u, g, d = w
            return x + (jax.nn.silu(x @ g) * (x @ u)) @ d, None

        loss = lambda *w: jnp.mean(lax.scan(layer, x, w)[0] ** 2)  # noqa: E731
        return jax.grad(loss, (0, 1, 2))(up, gate, down)

    add("rematerialised gated layers", gated, [(256, 128)] + [(4, 128, 256)] * 2 + [(4, 256, 128)],
        sharded=lambda m, n: [(m * n, 1)] + [(1, m, n)] * 3,
        tensor=lambda m, n: [(m, 1), (1, 1, n), (1, 1, n), (1, n, 1)])  # fmt: skip

    def mixture(x: Any, gate: Any, up: Any, down: Any) -> Any:
        chosen = jax.nn.softmax(x @ gate)
        hidden = jax.nn.gelu(jnp.einsum("nd,edh->neh", x, up))
        return jnp.einsum("ne,neh,ehd->nd", chosen, hidden, down)

    add("dense mixture", mixture, [(512, 64), (64, 8), (8, 64, 128), (8, 128, 64)],
        experts=lambda m, n: [(m, 1), None, (n, 1, 1), (n, 1, 1)])  # fmt: skip

    def forces(x: Any) -> Any:
        apart = x[:, None] - x[None]
        return jnp.sum(apart / (jnp.sum(apart**2, -1, keepdims=True) + 0.1) ** 1.5, 1)

    add("pairwise forces", forces, [(1024, 3)], rows=rows, few_rows=lambda m, n: [(n, 1)])

    def nearest(x: Any, c: Any) -> Any:
        which = jnp.argmin(jnp.sum((x[:, None] - c[None]) ** 2, -1), 1)
        one = jax.nn.one_hot(which, len(c))
        return one.T @ x / jnp.maximum(one.sum(0), 1)[:, None], which

    add("k-means by products", nearest, [(4096, 32), (16, 32)],
        rows=lambda m, n: [(m * n, 1), None], blocks=lambda m, n: [(m, n), (1, n)])  # fmt: skip

    def classified(x: Any, w: Any, labels: Any) -> Any:
        def loss(w: Any) -> Any:
            scores = jax.nn.log_softmax(x @ w)
            return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

        value, slope = jax.value_and_grad(loss)(w)
        return w - 0.1 * slope, value

    add("many classes", classified, [(256, 128), (128, 8192), below(8192, 256)],
        classes=lambda m, n: [(m, 1), (1, n), (m,)],
        data=lambda m, n: [(m * n, 1), None, (m * n,)])  # fmt: skip

    def images(x: Any, a: Any, b: Any, labels: Any) -> Any:
        def convolved(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        def pooled(x: Any) -> Any:
            by = (1, 2, 2, 1)
            return lax.reduce_window(x, -jnp.inf, lax.max, by, by, "VALID")

        def loss(a: Any, b: Any) -> Any:
            x1 = pooled(jax.nn.relu(convolved(x, a)))
            scores = jax.nn.log_softmax(convolved(x1, b).mean((1, 2)))
            return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

        value, slopes = jax.value_and_grad(loss, (0, 1))(a, b)
        return a - 0.1 * slopes[0], b - 0.1 * slopes[1], value

    add("images, pooled", images, [(64, 32, 32, 4), (3, 3, 4, 16), (3, 3, 16, 16), below(16, 64)],
        batch=lambda m, n: [(m * n, 1, 1, 1), None, None, (m * n,)],
        space=lambda m, n: [(m, n, 1, 1), None, None, (m,)])  # fmt: skip

    def attention(x: Any, qkv: Any, out: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = jnp.split((x @ qkv).reshape(batch, length, 8, -1), 3, -1)
        scores = jnp.einsum("bqhw,bkhw->bhqk", q, k) / 4
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        found = jnp.einsum("bhqk,bkhw->bqhw", jax.nn.softmax(scores), v)
        return x + found.reshape(batch, length, width) @ out

    add("attention", attention, [(16, 64, 128), (128, 384), (128, 128)],
        heads=lambda m, n: [(m, 1, 1), (1, n), (n, 1)],
        length=lambda m, n: [(m, n, 1), None, None])  # fmt: skip

    def spectral(u: Any) -> Any:
        n, m = u.shape
        waves = jnp.fft.fftfreq(n)[:, None] ** 2 + jnp.fft.rfftfreq(m)[None] ** 2
        return jnp.fft.irfft2(jnp.fft.rfft2(u) * jnp.exp(-waves))

    add("spectral step", spectral, [(512, 512)], rows=rows)

    def standardized(x: Any) -> Any:
        z = (x - x.mean(0)) / (x.std(0) + 1e-6)
        lower, upper = jnp.quantile(z, 0.05, axis=0), jnp.quantile(z, 0.95, axis=0)
        return jnp.clip(z, lower, upper)

    add("columns clipped by quantiles", standardized, [(4096, 64)], rows=rows,
        columns=lambda m, n: [(1, m * n)])  # fmt: skip

    def averaged(x: Any) -> Any:
        total = jnp.cumsum(jnp.pad(x, ((0, 0), (16, 0))), 1)
        return (total[:, 16:] - total[:, :-16]) / 16

    add("moving mean", averaged, [(256, 2048)], rows=rows, columns=lambda m, n: [(1, m * n)])

    def walk(x: Any, w: Any) -> Any:
        return lax.scan(lambda h, r: ((h := jnp.tanh(r + h @ w)), h), jnp.zeros(w.shape[0]), x)[1]

    add("recurrence over divided rows", walk, [(256, 128), (128, 128)],
        rows=lambda m, n: [(m * n, 1), None])  # fmt: skip

    def ranked(users: Any, items: Any, who: Any) -> Any:
        return lax.top_k(users[who] @ items.T, 10)

    add("ten best items", ranked, [(2048, 64), (4096, 64), below(2048, 128)],
        rows=lambda m, n: [(m, 1), (n, 1), (m,)])  # fmt: skip
    return found


def report(devices: int, names: Sequence[str]) -> None:
    """Print a row of each step whose name holds one of these; then mean, and those above 1.05."""
    shape = MESHES[devices]
    device = gl.DeviceGrid(shape)
    chosen = [(s.name, s.fn, s.arrays, s.grids(*shape)) for s in steps()]
    if devices == 8:
        from benchmarks.kinds import calls

        chosen += [(c.name, c.fn, c.arrays(0), c.grids) for c in calls()]
    ratios = {}
    for name, fn, arrays, grids in chosen:
        if names and not any(one in name for one in names):
            continue
        ours = [placed(x, g, device) for x, g in zip(arrays, grids, strict=True)]
        theirs = [sharded(x, g, device) for x, g in zip(arrays, grids, strict=True)]
        a, b = measure(fn, [(True, ours), (False, theirs)])
        print(row(name, a, b), flush=True)
        ratios[name] = a.seconds / b.seconds
    slow = sum(ratio > 1.05 for ratio in ratios.values())
    mean = geometric_mean(list(ratios.values()))
    print(
        f"{len(ratios)} steps on {devices} devices: geometric mean {mean:.2f}x, {slow} above 1.05"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--devices", type=int, default=8, choices=MESHES)
    options = parser.parse_args()
    gl.emulate_devices(options.devices)
    report(options.devices, options.names)
