"""Whole steps against GSPMD's with the same shardings: time, collectives, first call.

`python -m benchmarks.steps [--devices N] [--tile] [--uneven] [name ...]` prints a row for each step
and placement: on 8, 16 or 64 devices; our arrays in 32x32 tiles; in sizes that divide by no mesh,
which GSPMD's arrays are padded for by hand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import median
from time import perf_counter
from typing import Any

import gridlayout as gl

MESHES = {8: (2, 4), 16: (4, 4), 64: (8, 8)}
ROUNDS = 15
# What sizes become that divide by no mesh.
UNEVEN = {120: 119, 768: 761, 64: 61, 128: 125, 512: 509, 1024: 1019, 16: 15}
SENDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


@dataclass(frozen=True)
class Case:
    """A function, the shapes of its arguments, and the grid of each of them (None: replicated).

    padded: the shapes that GSPMD's arguments are padded to.
    """

    name: str
    fn: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    grids: Sequence[tuple[int, ...] | None]
    tile: tuple[int, ...] | None = None
    padded: Sequence[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Measured:
    """Medians in seconds, and collectives in the compiled programs, ours and GSPMD's."""

    name: str
    times: tuple[float, float]
    collectives: tuple[int, int]
    first: tuple[float, float]

    def row(self) -> str:
        (a, b), (c, d), (e, f) = self.times, self.collectives, self.first
        return (
            f"{self.name:<48} {a * 1e3:8.2f} {b * 1e3:8.2f} ms {a / b:6.2f}x"
            f"   {c:4d} : {d:<4d} {e:6.2f} {f:6.2f} s {e / f:5.2f}x"
        )


def collectives_of(text: str) -> int:
    """Collectives in an optimized HLO text, each once however often a loop does it."""
    kinds = "|".join(SENDS)
    plain = re.sub(r"/\*.*?\*/", "", text)  # numbers of a tuple's elements
    return len(re.findall(rf"= [^=]*? (?:{kinds})(?:-start)?\(", plain))


def residual(x: Any, *weights: Any) -> Any:
    import jax.numpy as jnp

    for w in weights:
        x = x + jnp.tanh(x @ w)
    return x


def grad_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The step of plain gradient descent on the mean square of a function's result."""
    import jax
    import jax.numpy as jnp

    def step(x: Any, *weights: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.mean(fn(x, *weights) ** 2)

        grads = jax.grad(loss)(weights)
        return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)]

    return step


def mlp(x: Any, *weights: Any) -> Any:
    import jax

    *hidden, last = weights
    for w in hidden:
        x = jax.nn.relu(x @ w)
    return x @ last


def block(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    """A transformer block on rows (batch of 8 joined with length), 8 heads."""
    import jax
    import jax.numpy as jnp

    def normal(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    width = x.shape[1]
    parts = jnp.split(normal(x) @ qkv, 3, axis=-1)
    q, k, v = (part.reshape(8, -1, 8, width // 8) for part in parts)
    x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ out
    return x + jax.nn.gelu(normal(x) @ up) @ down


def scanned(x: Any, stack: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), x, stack)[0]


def power(a: Any, v: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(_: Any, v: Any) -> Any:
        v = a @ v
        return v / jnp.linalg.norm(v)

    return jax.lax.fori_loop(0, 10, step, v)


def convolutional(x: Any, *weights: Any) -> Any:
    """Convolutions, each with a maximum over 2x2, and a product."""
    import jax
    import jax.numpy as jnp

    *kernels, head = weights
    numbers = ("NHWC", "HWIO", "NHWC")
    for kernel in kernels:
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        window = (1, 2, 2, 1)
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, window, window, "VALID")
    return x.reshape(len(x), -1) @ head


def adam(x: Any, *state: Any) -> Any:
    """A step of Adam for the MLP; state: weights, first and second moments."""
    import jax
    import jax.numpy as jnp

    n = len(state) // 3
    weights, first, second = state[:n], state[n : 2 * n], state[2 * n :]
    grads = jax.grad(lambda weights: jnp.mean(mlp(x, *weights) ** 2))(weights)
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.99 * v + 0.01 * g * g for v, g in zip(second, grads, strict=True)]
    rows = zip(weights, first, second, strict=True)
    return [w - 0.01 * m / (jnp.sqrt(v) + 1e-8) for w, m, v in rows], first, second


def decode(x: Any, qkv: Any, out: Any, keys: Any, values: Any) -> Any:
    """Eight tokens of attention with a cache of (batch, length, heads, width)."""
    import jax
    import jax.numpy as jnp

    batch, length, heads, width = keys.shape

    def step(carry: Any, i: Any) -> Any:
        x, keys, values = carry
        q, k, v = (part.reshape(batch, heads, width) for part in jnp.split(x @ qkv, 3, -1))
        keys = jax.lax.dynamic_update_slice(keys, k[:, None], (0, i, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v[:, None], (0, i, 0, 0))
        scores = jnp.einsum("bhk,blhk->bhl", q, keys) / 8
        scores = jnp.where(jnp.arange(length) <= i, scores, -1e9)
        found = jnp.einsum("bhl,blhk->bhk", jax.nn.softmax(scores, -1), values)
        x = x + found.reshape(x.shape) @ out
        return (x, keys, values), x

    return jax.lax.scan(step, (x, keys, values), jnp.arange(8))


def cases(devices: int = 8) -> list[Case]:
    """The steps, each with its placements."""
    found = []
    sizes = {2: MESHES[devices][0], 4: MESHES[devices][1], 8: devices}

    def add(name: str, fn: Any, shapes: Any, grids: Any) -> None:
        given = [grid and tuple(sizes.get(n, n) for n in grid) for grid in grids]
        found.append(Case(name, fn, shapes, given))

    layers = 8
    for width in (120, 768):
        shapes = [(256, width), *[(width, width)] * layers]
        ways = {
            "2x4": [(2, 4)] * (layers + 1),
            "data parallel": [(8, 1), *[None] * layers],
            "fully sharded": [(8, 1)] * (layers + 1),
            "tensor parallel": [None, *[(1, 8), (8, 1)] * (layers // 2)],
        }
        for way, grids in ways.items():
            add(f"{layers} layers {width} wide, {way}", grad_of(residual), shapes, grids)
    for a, b in ((64, 128), (512, 1024)):
        shapes = [(256, a), (a, b), (b, b), (b, 16)]
        ways = {
            "2x4": [(2, 4)] * 4,
            "data parallel": [(8, 1), None, None, None],
            "fully sharded": [(8, 1)] * 4,
            "2-D": [(2, 1), (1, 4), (4, 1), (1, 4)],
        }
        for way, grids in ways.items():
            add(f"MLP {a}-{b}-{b}-16, {way}", grad_of(mlp), shapes, grids)
    for width in (64, 256):
        shapes = [(1024, width), (width, 3 * width), (width, width)]
        shapes += [(width, 4 * width), (4 * width, width)]
        ways = {
            "2x4": [(2, 4)] * 5,
            "data parallel": [(8, 1), *[None] * 4],
            "fully sharded": [(8, 1)] * 5,
            "2-D": [(2, 1), (1, 4), (4, 1), (1, 4), (4, 1)],
        }
        for way, grids in ways.items():
            add(f"block {width}, {way}", grad_of(block), shapes, grids)
    for width, size in ((16, 16), (64, 32)):
        shapes = [(64, size, size, 3), (3, 3, 3, width), *[(3, 3, width, width)] * 2]
        shapes += [((size // 8) ** 2 * width, 10)]
        ways = {
            "data parallel": [(8, 1, 1, 1), None, None, None, None],
            "head by rows": [(8, 1, 1, 1), None, None, (1, 1, 1, 8), (8, 1)],
            "images in blocks": [(1, 2, 4, 1), None, None, None, None],
        }
        for way, grids in ways.items():
            add(f"convolutions {width}, {way}", grad_of(convolutional), shapes, grids)
    for a, b in ((64, 128), (512, 1024)):
        weights = [(a, b), (b, b), (b, 16)]
        ways = {
            "2x4": [(2, 4)] * 4,
            "data parallel": [(8, 1), None, None, None],
            "fully sharded": [(8, 1)] * 4,
            "2-D": [(2, 1), (1, 4), (4, 1), (1, 4)],
        }
        for way, (rows, *grids) in ways.items():
            add(f"Adam {a}-{b}-{b}-16, {way}", adam, [(256, a), *weights * 3], [rows, *grids * 3])
    for width in (64, 512) if devices == 8 else ():
        cache = (16, 128, 8, width // 8)
        shapes = [(16, width), (width, 3 * width), (width, width), cache, cache]
        ways = {
            "by batch": [(8, 1), None, None, *[(8, 1, 1, 1)] * 2],
            "by heads": [None, (1, 8), (8, 1), *[(1, 1, 8, 1)] * 2],
            "2-D": [(2, 1), (1, 4), (4, 1), *[(2, 1, 4, 1)] * 2],
            "by length": [None, None, None, *[(1, 8, 1, 1)] * 2],
        }
        for way, grids in ways.items():
            add(f"decoding {width}, {way}", decode, shapes, grids)
    add(
        "scan of 8 layers, 256 wide",
        grad_of(scanned),
        [(256, 256), (8, 256, 256)],
        [(2, 4), (1, 2, 4)],
    )
    add("power iteration, 1024", power, [(1024, 1024), (1024,)], [(2, 4), (8,)])
    add("X^T X, 4096x256", lambda x: x.T @ x, [(4096, 256)], [(2, 4)])
    add("A B C D, 512", lambda a, b, c, d: a @ b @ c @ d, [(512, 512)] * 4, [(2, 4)] * 4)
    return found


def measure(case: Case, devices: int = 8, rounds: int = ROUNDS) -> Measured:
    """One step, ours and GSPMD's in turns."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding

    device = gl.DeviceGrid(MESHES[devices])
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal(shape, np.float32) / np.sqrt(shape[-2] if len(shape) > 1 else 1)
        for shape in case.shapes
    ]
    laid, plain = [], []
    shapes = case.padded or case.shapes
    for array, grid, shape in zip(arrays, case.grids, shapes, strict=True):
        ones = (1,) * array.ndim
        layout = gl.GridLayout(
            array.shape, "float32", grid=grid or ones, collapse=[], tile=case.tile
        )
        laid.append(gl.put(array, layout, device))
        sharding = NamedSharding(device.fine, device.placement(layout.grid).spec)
        more = [(0, n - m) for n, m in zip(shape, array.shape, strict=True)]
        plain.append(jax.device_put(np.pad(array, more), sharding))
    on_grid = gl.on_grid(lambda *xs: case.fn(*xs))
    start = perf_counter()
    made = jax.block_until_ready(on_grid(*laid))
    middle = perf_counter()
    # Results where ours are, as far as GSPMD can divide them.
    outs = jax.tree.map(lambda y: _sharding(y, device), made, is_leaf=_is_grid)
    outs = None if case.padded else outs
    between = perf_counter()
    gspmd = jax.jit(lambda *xs: case.fn(*xs), out_shardings=outs)
    theirs = jax.block_until_ready(gspmd(*plain))
    end = perf_counter()
    pairs = zip(jax.tree.leaves(made, is_leaf=_is_grid), jax.tree.leaves(theirs), strict=True)
    for a, b in () if case.padded else pairs:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-4)
    counts = [fn.lower(*xs).compile().as_text() for fn, xs in ((on_grid, laid), (gspmd, plain))]
    times: tuple[list[float], list[float]] = [], []
    runs = (lambda: on_grid(*laid), lambda: gspmd(*plain))
    for _ in range(rounds):
        for run, into in zip(runs, times, strict=True):
            begin = perf_counter()
            jax.block_until_ready(jax.tree.leaves(run()))
            into.append(perf_counter() - begin)
    return Measured(
        case.name,
        (median(times[0]), median(times[1])),
        (collectives_of(counts[0]), collectives_of(counts[1])),
        (middle - start, end - between),
    )


def _is_grid(x: Any) -> bool:
    return isinstance(x, gl.GridArray)


def _sharding(y: Any, device: Any) -> Any:
    from jax.sharding import NamedSharding, PartitionSpec

    if not _is_grid(y):
        return NamedSharding(device.fine, PartitionSpec())
    spec = device.placement(y.layout.core_shape).spec
    return NamedSharding(device.fine, spec)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Of ratios."""
    return exp(sum(map(log, ratios)) / len(ratios))


def report(
    names: Sequence[str] = (), devices: int = 8, tile: bool = False, uneven: bool = False
) -> None:
    """Measure the steps whose names hold one of these, all without any, and print a row of each."""
    found = []
    for case in cases(devices):
        if names and not any(name in case.name for name in names):
            continue
        if uneven and not case.name.startswith(("8 layers", "MLP", "Adam")):
            continue
        if uneven:
            shapes = [tuple(UNEVEN.get(n, n) for n in shape) for shape in case.shapes]
            case = replace(case, shapes=shapes, padded=case.shapes)
        ranked = all(len(shape) > 1 for shape in case.shapes)
        found.append(measure(replace(case, tile=(32, 32) if tile and ranked else None), devices))
        print(found[-1].row(), flush=True)
    times = geometric_mean([m.times[0] / m.times[1] for m in found])
    first = geometric_mean([m.first[0] / m.first[1] for m in found])
    more = [m.name for m in found if m.collectives[0] > m.collectives[1]]
    print(f"geometric mean: time {times:.2f}x, first call {first:.2f}x")
    print(f"more collectives than GSPMD's: {'; '.join(more) or 'none'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, choices=MESHES, default=8)
    parser.add_argument("--tile", action="store_true")
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    gl.emulate_devices(given.devices)
    report(given.names, given.devices, given.tile, given.uneven)
