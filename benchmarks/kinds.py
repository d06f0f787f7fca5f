"""`python -m benchmarks.kinds [name ...]`: first calls of twelve steps of different kinds.

Stencils, embeddings, caches, solvers, experts, recurrences and others, each a whole step on 8
emulated devices: of new functions on new shapes, against GSPMD's on the same placement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import gridlayout as gl

gl.emulate_devices(8)

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.compiling import First, first_times
from benchmarks.steps import geometric_mean


def heat(u: Any) -> Any:
    """Four steps of the heat equation on a torus."""

    def step(_: int, u: Any) -> Any:
        around = sum(jnp.roll(u, shift, axis) for axis in (0, 1) for shift in (1, -1))
        return u + 0.1 * (around - 4 * u)

    return lax.fori_loop(0, 4, step, u)


def wave(u: Any, before: Any, speed: Any) -> Any:
    """A step of the wave equation between walls, and its energy."""
    inside = (slice(1, -1),) * 3
    around = -6.0 * u[inside]
    for axis in range(3):
        for part in (slice(2, None), slice(None, -2)):
            around = around + u[tuple(part if k == axis else s for k, s in enumerate(inside))]
    after = jnp.pad(2 * u[inside] - before[inside] + speed[inside] * around, 1)
    return after, u, jnp.sum((after - u) ** 2)


def words(table: Any, head: Any, tokens: Any) -> Any:
    """A step of gradient descent on the next tokens by an embedding of each."""

    def loss(table: Any, head: Any) -> Any:
        scores = jax.nn.log_softmax(jnp.tanh(table[tokens[:, :-1]]) @ head)
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    value, (a, b) = jax.value_and_grad(loss, (0, 1))(table, head)
    return table - 0.1 * a, head - 0.1 * b, value


def attend(x: Any, wq: Any, wkv: Any, wo: Any, keys: Any, values: Any, at: Any) -> Any:
    """One token of attention, in which heads share keys and values, with a cyclic cache."""
    batch, length, shared, width = keys.shape
    q = (x @ wq).reshape(batch, shared, -1, width)
    k, v = jnp.split((x @ wkv).reshape(batch, 1, shared, 2 * width), 2, axis=-1)
    start = (0, at % length, 0, 0)
    keys, values = (
        lax.dynamic_update_slice(keys, k, start),
        lax.dynamic_update_slice(values, v, start),
    )
    scores = jnp.einsum("bgqw,blgw->bgql", q, keys) / width**0.5
    scores = jnp.where(jnp.arange(length) <= at, scores, -1e9)
    found = jnp.einsum("bgql,blgw->bgqw", jax.nn.softmax(scores), values)
    return x + found.reshape(batch, -1) @ wo, keys, values


def conjugate_gradients(a: Any, b: Any) -> Any:
    """Solve (A^T A + 1) x = b until the residual is small."""

    def step(state: Any) -> Any:
        x, r, p, square, count = state
        q = a.T @ (a @ p) + p
        alpha = square / jnp.vdot(p, q)
        r = r - alpha * q
        after = jnp.vdot(r, r)
        return x + alpha * p, r, r + after / square * p, after, count + 1

    start = jnp.zeros_like(b), b, b, jnp.vdot(b, b), 0
    going = lambda state: (state[3] > 1e-6) & (state[4] < 20)  # noqa: E731
    return lax.while_loop(going, step, start)


def transport(x: Any, y: Any) -> Any:
    """Distances of points, and ten steps of Sinkhorn's iteration."""
    cost = jnp.sum((x[:, None] - y[None]) ** 2, -1)

    def step(carry: Any, _: None) -> Any:
        f, g = carry
        f = -jax.nn.logsumexp(g[None] - cost, axis=1)
        return (f, -jax.nn.logsumexp(f[:, None] - cost, axis=0)), None

    (f, g), _ = lax.scan(step, (jnp.zeros(len(x)), jnp.zeros(len(y))), length=10)
    return jnp.sum(jnp.exp(f[:, None] + g[None] - cost) * cost)


def experts(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """Send each row to its two best experts of eight, and take the gradient of all weights."""

    def loss(gate: Any, up: Any, down: Any) -> Any:
        weights, which = lax.top_k(jax.nn.softmax(x @ gate), 2)
        chosen = jnp.sum(jax.nn.one_hot(which, gate.shape[1]) * weights[..., None], 1)
        hidden = jax.nn.gelu(jnp.einsum("nd,edh->enh", x, up))
        return jnp.mean(jnp.einsum("ne,enh,ehd->nd", chosen, hidden, down) ** 2)

    return jax.grad(loss, (0, 1, 2))(gate, up, down)


def lstm(x: Any, into: Any, back: Any) -> Any:
    """The gradient of an LSTM along sequences (length, batch, width)."""

    def loss(into: Any, back: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ into + h @ back, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[1], back.shape[0]))
        return jnp.mean(lax.scan(step, (start, start), x)[1] ** 2)

    return jax.value_and_grad(loss, (0, 1))(into, back)


def state_space(x: Any, into: Any, decay: Any, out: Any) -> Any:
    """A linear recurrence along the length, by an associative scan."""

    def joined(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    held = jnp.broadcast_to(jax.nn.sigmoid(decay), (*x.shape[:2], decay.shape[0]))
    _, states = lax.associative_scan(joined, (held, x @ into), axis=1)
    return x + jax.nn.silu(states) @ out


def k_means(x: Any, centers: Any) -> Any:
    """Assign points to the nearest centers, and move these to the points' means."""
    distance = jnp.sum(x * x, 1)[:, None] - 2 * x @ centers.T + jnp.sum(centers * centers, 1)
    nearest = jnp.argmin(distance, 1)
    sums = jax.ops.segment_sum(x, nearest, len(centers))
    count = jax.ops.segment_sum(jnp.ones(len(x)), nearest, len(centers))
    return sums / jnp.maximum(count, 1)[:, None], nearest, jnp.min(distance, 1).sum()


def graph(nodes: Any, source: Any, target: Any, own: Any, other: Any) -> Any:
    """Messages along the edges of a graph, in two layers."""
    for _ in range(2):
        sent = jax.nn.relu(nodes[source] @ other)
        nodes = jnp.tanh(nodes @ own + jax.ops.segment_sum(sent, target, len(nodes)))
    return nodes


def bodies(x: Any, v: Any, mass: Any) -> Any:
    """A leapfrog step of bodies that attract each other."""

    def pull(x: Any) -> Any:
        apart = x[None] - x[:, None]
        return jnp.einsum("ijd,ij,j->id", apart, (jnp.sum(apart**2, -1) + 0.1) ** -1.5, mass)

    v = v + 0.005 * pull(x)
    x = x + 0.01 * v
    return x, v + 0.005 * pull(x)


def drawn(shapes: Sequence[Any], long: Sequence[tuple[int, int]], more: int) -> list[Any]:
    """Arrays of random numbers; of indices below n where a shape ends with "i", n.

    long: (array, dim) of the dims that are 64 longer for each `more`.
    """
    random, found = np.random.default_rng(0), []
    for k, shape in enumerate(shapes):
        own, below = (shape[:-2], shape[-1]) if "i" in shape else (shape, None)
        size = tuple(n + 64 * more * ((k, d) in long) for d, n in enumerate(own))
        if below is None:
            found.append(random.standard_normal(size, np.float32) / np.float32(8))
        else:
            found.append(random.integers(0, below, size).astype(np.int32))
    return found


def calls() -> list[First]:
    """The twelve steps."""
    made = []

    def add(fn: Callable[..., Any], shapes: Any, grids: Any, *long: tuple[int, int]) -> None:
        name = fn.__name__.replace("_", " ")
        made.append(First(name, fn, partial(drawn, shapes, long), grids))

    field, cube, rows = (256, 256), (64, 32, 16), (8, 1)
    add(heat, [field], [(2, 4)], (0, 0))
    add(wave, [cube] * 3, [(2, 4, 1)] * 3, *((k, 0) for k in range(3)))
    add(words, [(512, 64), (64, 512), (64, 17, "i", 512)], [rows, (1, 8), rows], (2, 0))
    cache = (16, 128, 4, 16)
    add(
        attend,
        [(16, 128), (128, 128), (128, 128), (128, 128), cache, cache, ("i", 100)],
        [None, (1, 8), (1, 8), (8, 1), *[(1, 2, 4, 1)] * 2, None],
        *((4, 1), (5, 1)),
    )
    add(conjugate_gradients, [(512, 256), (256,)], [(2, 4), (8,)], (0, 0))
    add(transport, [(256, 4), (128, 4)], [rows, rows], (0, 0))
    add(
        experts,
        [(256, 64), (64, 8), (8, 64, 128), (8, 128, 64)],
        [rows, None, (8, 1, 1), (8, 1, 1)],
        (0, 0),
    )
    add(lstm, [(16, 64, 32), (32, 256), (64, 256)], [(1, 8, 1), None, None], (0, 1))
    add(
        state_space,
        [(16, 128, 64), (64, 128), (128,), (128, 64)],
        [(2, 1, 1), (1, 4), (4,), (4, 1)],
        (0, 1),
    )
    add(k_means, [(1024, 32), (16, 32)], [rows, None], (0, 0))
    edges = (1024, "i", 256)
    add(
        graph,
        [(256, 64), edges, edges, (64, 64), (64, 64)],
        [rows, (8,), (8,), None, None],
        (1, 0),
        (2, 0),
    )
    add(bodies, [(256, 3), (256, 3), (256,)], [rows, rows, (8,)], *((k, 0) for k in range(3)))
    return made


def report(names: Sequence[str] = ()) -> None:
    """Print a row of each step whose name is given, of all without any; then mean and worst."""
    ratios = {}
    chosen = [call for call in calls() if not names or call.name in names]
    print(f"{'first calls, median seconds':<28} {'ours':>8} {'GSPMD':>8} {'ratio':>8} {'CPU':>8}")
    for name, times in first_times(chosen).items():
        wall, cpu = ([median(pair[who][k] for pair in times) for who in (0, 1)] for k in (0, 1))
        ratios[name] = wall[0] / wall[1]
        print(
            f"{name:<28} {wall[0]:8.3f} {wall[1]:8.3f} {ratios[name]:7.2f}x {cpu[0] / cpu[1]:7.2f}x"
        )
    worst = max(ratios, key=lambda name: ratios[name])
    mean = geometric_mean(list(ratios.values()))
    print(f"geometric mean {mean:.2f}x, worst {ratios[worst]:.2f}x ({worst})")


if __name__ == "__main__":
    report(sys.argv[1:])
