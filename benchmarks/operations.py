"""`python -m benchmarks.operations [name ...]`: single operations against GSPMD's.

Each function runs on arrays that are divided by blocks, by rows, by columns and in mixtures, on 8
emulated devices. GSPMD gets the same placement, and leaves its results where it likes. A row states
medians of the time, the bytes that a device receives (in a loop, of one iteration) and the
temporary bytes that it holds.

`--uneven` compares arrays of sizes that divide by nothing with the even ones beside them, `--tile`
arrays in 32x32 tiles with those without; both are ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import gridlayout as gl

MESH = (2, 4)
ROUNDS = 15
# What counts as equal: the bytes of a latency, and the noise of a clock.
FEW_BYTES, SHORT = 4096, 0.3e-3
# What sizes become that divide by nothing.
UNEVEN = {512: 509, 514: 515, 64: 61, 32: 31, 16: 17, 4096: 4093, 1024: 1021, 262144: 262139}

Grid = tuple[int, ...] | None
BLOCKS, ROWS, COLUMNS, FEW_ROWS, FEW_COLUMNS = (2, 4), (8, 1), (1, 8), (2, 1), (1, 4)
MATRIX = (BLOCKS, ROWS, COLUMNS, FEW_ROWS, FEW_COLUMNS)


@dataclass(frozen=True)
class Array:
    """An argument: its shape, and for indices the number that they are below."""

    shape: tuple[int, ...]
    below: int = 0

    def drawn(self, random: np.random.Generator) -> np.ndarray:
        if self.below:
            return random.integers(0, self.below, self.shape).astype(np.int32)
        return random.standard_normal(self.shape, np.float32)

    def uneven(self) -> Array:
        return Array(
            tuple(UNEVEN.get(n, n) for n in self.shape), UNEVEN.get(self.below, self.below)
        )


@dataclass(frozen=True)
class Operation:
    """A function, its arguments, and the grids of all arguments for each placement.

    is_even: whether it takes no sizes but these.
    """

    name: str
    fn: Callable[..., Any]
    arrays: tuple[Array, ...]
    placements: tuple[tuple[Grid, ...], ...]
    is_even: bool = False


@dataclass(frozen=True)
class Cost:
    """Of one compiled program, on one device: seconds, and bytes."""

    seconds: float
    received: int
    temporary: int


def operations() -> list[Operation]:
    """All operations."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    found: list[Operation] = []

    def add(
        name: str, fn: Callable[..., Any], *arrays: Any, grids: Any = MATRIX, even: bool = False
    ) -> None:
        """grids: of the only argument, or of all arguments, for each placement."""
        made = tuple(x if isinstance(x, Array) else Array(x) for x in arrays)
        places = tuple(g if len(made) > 1 else (g,) for g in grids)
        found.append(Operation(name, fn, made, places, even))

    def gradient(fn: Callable[..., Any], *which: int) -> Callable[..., Any]:
        return jax.grad(lambda *xs: jnp.sum(jnp.sin(fn(*xs))), which or 0)

    square = (512, 512)
    same = tuple((g, g) for g in MATRIX)
    mixed = ((BLOCKS, ROWS), (ROWS, COLUMNS), (BLOCKS, None), (ROWS, FEW_ROWS))

    # Elementwise functions and reductions.
    add("gelu", jax.nn.gelu, square)
    add("x + y", lambda x, y: x + y, square, square, grids=(*same[:2], *mixed))
    add("where", lambda x, y: jnp.where(x > y, x, 0), square, square, grids=same[:3] + mixed[:2])
    add("add a row", lambda x, r: x + r, square, (512,), grids=((BLOCKS, (4,)), (ROWS, (8,))))
    add("sum", jnp.sum, square)
    add("sum of rows", lambda x: x.sum(1), square)
    add("sum of columns", lambda x: x.sum(0), square)
    add("max of rows", lambda x: x.max(1), square)
    add("argmax of rows", lambda x: jnp.argmax(x, 1), square)
    add("argmax with its value", lambda x: (jnp.argmax(x, 0), x.max(0)), square)
    add("variance", lambda x: jnp.var(x, 0), square)
    add("norm", jnp.linalg.norm, square)
    add("any", lambda x: jnp.any(x > 3, 1), square)
    add("softmax", lambda x: jax.nn.softmax(x, 1), square)
    add("logsumexp of columns", lambda x: jax.nn.logsumexp(x, 0), square)
    add("layer norm", lambda x: jax.nn.standardize(x, -1), square)
    add("softmax, gradient", gradient(lambda x: jax.nn.softmax(x, 1)), square)

    # Views.
    add("rows 100 to 300", lambda x: x[100:300], square)
    add("columns 10 to 500", lambda x: x[:, 10:500], square)
    add("every third row", lambda x: x[::3], square)
    add("one row", lambda x: x[77], square)
    add("one column", lambda x: x[:, 77], square)
    add("x[1:] - x[:-1]", lambda x: x[1:] - x[:-1], square)
    add("x[1:] - x[:-1], gradient", gradient(lambda x: x[1:] - x[:-1]), square)
    add("halves of columns", lambda x: x[:, : len(x) // 2] * x[:, -(len(x) // 2) :], square)
    add("pad by one", lambda x: jnp.pad(x, 1), square)
    add("pad by edges", lambda x: jnp.pad(x, 1, mode="edge"), square)
    add("pad, wrapped", lambda x: jnp.pad(x, 2, mode="wrap"), square)
    add("pad inside", lambda x: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))), square)
    add("cut by negative pads", lambda x: lax.pad(x, 0.0, ((-3, 5, 0), (4, -7, 0))), square)
    add("flip rows", lambda x: x[::-1], square)
    add("flip columns", lambda x: x[:, ::-1], square)
    add("roll by a row", lambda x: jnp.roll(x, 1, 0), square)
    add("roll by 100 columns", lambda x: jnp.roll(x, 100, 1), square)
    add("concatenate rows", lambda x, y: jnp.concatenate([x, y]), square, square, grids=same)
    add("concatenate columns", lambda x, y: jnp.concatenate([x, y], 1), square, square, grids=same)
    add("stack", lambda x, y: jnp.stack([x, y]), square, square, grids=same)
    add("stack last", lambda x, y: jnp.stack([x, y], -1), square, square, grids=same)
    add(
        "interleave",
        lambda x, y: jnp.stack([x, y], 1).reshape(-1, len(x)),
        square,
        square,
        grids=same,
    )
    add("repeat rows", lambda x: jnp.repeat(x, 3, 0), square)
    add("repeat columns", lambda x: jnp.repeat(x, 3, 1), square)
    add("tile", lambda x: jnp.tile(x, (2, 3)), square)
    add("transpose", lambda x: x.T, square)
    add("transpose and add", lambda x: x + x.T, square)
    add("reshape(-1)", lambda x: x.reshape(-1), square)
    add("to heads", lambda x: x.reshape(8, 64, 8, 64).transpose(0, 2, 1, 3), square, even=True)
    add("pairs of rows", lambda x: x.reshape(256, 2, 512).sum(1), square, even=True)
    add("blocks of 2x2", lambda x: x.reshape(256, 2, 256, 2).mean((1, 3)), square, even=True)
    add("broadcast", lambda x: jnp.broadcast_to(x[:, None], (len(x), 4, len(x))), square)
    add("triangle", jnp.tril, square)
    add("diagonal", jnp.diagonal, square)
    add("outer", jnp.outer, (512,), (512,), grids=(((8,), (8,)), ((2,), (4,)), ((8,), None)))

    # Stencils, windows and scans.
    def laplacian(x: Any) -> Any:
        p = jnp.pad(x, 1)
        return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x

    def around(x: Any) -> Any:
        return sum(jnp.roll(x, s, a) for a in (0, 1) for s in (1, -1)) - 4 * x

    add("laplacian", laplacian, square)
    add("laplacian, gradient", gradient(laplacian), square)
    add("laplacian on a torus", around, square)
    kernel = np.ones((1, 1, 3, 3), np.float32) / 9
    add("blur", lambda x: lax.conv(x[None, None], kernel, (1, 1), "SAME")[0, 0], square)
    images, whole = (16, 64, 64, 16), Array((3, 3, 16, 32))
    four = ((8, 1, 1, 1), (2, 4, 1, 1), (1, 2, 4, 1), (2, 1, 1, 4))

    def convolved(x: Any, w: Any, stride: int = 1) -> Any:
        dims = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=dims)

    add("convolution", convolved, images, whole, grids=[(g, None) for g in four])
    add(
        "convolution, strided, gradient",
        gradient(lambda x, w: convolved(x, w, 2), 0, 1),
        images,
        whole,
        grids=[(g, None) for g in four],
    )
    window, by = (1, 2, 2, 1), (1, 2, 2, 1)
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, by, "SAME")  # noqa: E731
    add("max pooling", pool, images, grids=four)
    add("max pooling, gradient", gradient(pool), images, grids=four)
    mean = lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME")  # noqa: E731
    add("mean of windows", mean, square)
    add("cumsum of rows", lambda x: jnp.cumsum(x, 1), square)
    add("cumsum of columns", lambda x: jnp.cumsum(x, 0), square)
    add("cummax", lambda x: lax.cummax(x, 0), square)
    add("difference in time", lambda x: jnp.diff(x, axis=1), square)

    # Sorts and transforms.
    add("sort rows", lambda x: jnp.sort(x, 1), square)
    add("sort columns", lambda x: jnp.sort(x, 0), square)
    add("argsort", lambda x: jnp.argsort(x, 1), square)
    add("sort a vector", jnp.sort, (262144,), grids=((8,), (2,)))
    add("median", lambda x: jnp.median(x, 0), square)
    add("top 5", lambda x: lax.top_k(x, 5), square)
    add("fft", jnp.fft.fft, square)
    add("fft2", jnp.fft.fft2, square)

    # Indices.
    ids = Array((1024,), 512)
    placed = ((BLOCKS, (8,)), (ROWS, (8,)), (COLUMNS, None), (FEW_COLUMNS, (2,)), (ROWS, None))
    add("rows by index", lambda t, i: t[i], square, ids, grids=placed)
    add("rows by index, gradient", gradient(lambda t, i: t[i]), square, ids, grids=placed)
    add("columns by index", lambda t, i: t[:, i], square, ids, grids=placed)
    table, tokens = (4096, 64), Array((16, 64), 4096)
    tables = ((ROWS, (8, 1)), ((4, 1), (2, 1)), ((1, 4), (2, 1)), (None, (8, 1)), (ROWS, None))
    embed = lambda t, i: t[i].mean(1)  # noqa: E731
    add("mean of embeddings", embed, table, tokens, grids=tables)
    add("mean of embeddings, gradient", gradient(embed), table, tokens, grids=tables)
    label = Array((512,), 512)
    labelled = ((BLOCKS, (2,)), (ROWS, (8,)), (COLUMNS, None), (FEW_ROWS, (2,)))

    def entropy(x: Any, i: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], 1).mean()

    add("take_along_axis", lambda x, i: jnp.take_along_axis(x, i[:, None], 1), square, label,
        grids=labelled)  # fmt: skip
    add("cross entropy", entropy, square, label, grids=labelled)
    add("cross entropy, gradient", jax.grad(entropy), square, label, grids=labelled)
    add("one-hot product", lambda i, w: jax.nn.one_hot(i, len(w)) @ w, label, square,
        grids=[g[::-1] for g in labelled])  # fmt: skip
    segments = lambda x, i: jax.ops.segment_sum(x, i, 16)  # noqa: E731
    add("segment_sum", segments, square, Array((512,), 16), grids=labelled)
    add("scatter-add", lambda x, i: x.at[i].add(1.0), square, label, grids=labelled)
    add("scatter-max", lambda x, i, v: x.at[i].max(v), square, label, square,
        grids=[(*g, g[0]) for g in labelled])  # fmt: skip
    add("bincount", lambda i: jnp.bincount(i, length=16), Array((4096,), 16), grids=((8,), (4,)))
    at = Array((), 300)
    alone = [(g, None) for g in MATRIX]
    add("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (8, len(x))), square, at,
        grids=alone)  # fmt: skip
    add("dynamic row", lambda x, i: x[i], square, at, grids=alone)
    add("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), square,
        (8, 512), at, grids=[(g, None, None) for g in MATRIX])  # fmt: skip
    add("x.at[7].set", lambda x, r: x.at[7].set(r), square, (512,), grids=alone)

    # Products.
    add("x @ y", jnp.matmul, square, square, grids=(*same[:3], *mixed))
    add("x @ v", jnp.matmul, square, (512,), grids=((BLOCKS, (4,)), (ROWS, (8,)), (COLUMNS, (8,))))
    add("X^T X", lambda x: x.T @ x, (4096, 64))
    add("batched product", jnp.matmul, (16, 64, 512), (16, 512, 64),
        grids=(((8, 1, 1), (8, 1, 1)), ((2, 4, 1), (2, 1, 1)), ((2, 1, 4), (2, 4, 1))))  # fmt: skip

    # Loops.
    add("scan over rows", lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x)[1], square,
        grids=(COLUMNS, FEW_COLUMNS, ROWS))  # fmt: skip
    add("fori_loop of sines", lambda x: lax.fori_loop(0, 5, lambda _, x: jnp.sin(x) + x, x), square)
    return found


def measure(
    fn: Callable[..., Any], both: Sequence[tuple[bool, Sequence[Any]]], rounds: int = ROUNDS
) -> list[Cost]:
    """The costs of one function on several arguments, which run in turns.

    both: for each candidate whether it is ours, and its arguments.
    """
    import jax

    runs, compiled = [], []
    for is_ours, args in both:
        run = gl.on_grid(lambda *xs: fn(*xs)) if is_ours else jax.jit(lambda *xs: fn(*xs))
        jax.block_until_ready(run(*args))
        # As a function of storages alone: what an entry of `jax.jit` holds beside it is not ours.
        compiled.append(run.lower(*args).compile())
        runs.append((run, args))
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for (run, args), into in zip(runs, times, strict=True):
            begin = perf_counter()
            jax.block_until_ready(jax.tree.leaves(run(*args)))
            into.append(perf_counter() - begin)
    found = []
    for program, seconds in zip(compiled, times, strict=True):
        moves = gl.explain(program.as_text(), limit=1000).collectives
        received = sum(each.received_bytes * each.count for each in moves)
        temporary = program.memory_analysis().temp_size_in_bytes
        found.append(Cost(median(seconds), received, temporary))
    return found


def placed(array: np.ndarray, grid: Grid, device: Any, tile: bool = False) -> Any:
    """An array of ours."""
    if not array.ndim:
        return array
    edge = (32, 32) if tile and array.ndim > 1 else None
    grid = grid or (1,) * array.ndim
    layout = gl.GridLayout(array.shape, array.dtype, grid=grid, collapse=[], tile=edge)
    return gl.put(array, layout, device)


def sharded(array: np.ndarray, grid: Grid, device: Any) -> Any:
    """An array of JAX's, on the devices where ours would be."""
    import jax
    from jax.sharding import NamedSharding

    spec = device.placement(grid or (1,) * array.ndim).spec
    return jax.device_put(array, NamedSharding(device.fine, spec)) if array.ndim else array


def row(name: str, a: Cost, b: Cost) -> str:
    ratio, mark = a.seconds / b.seconds, ""
    if a.received > b.received + FEW_BYTES:
        mark += " receives"
    if ratio > 1.15 and a.seconds - b.seconds > SHORT:
        mark += " time"
    if a.temporary > 1.5 * b.temporary + FEW_BYTES:
        mark += " memory"
    return (
        f"{name:<52} {a.seconds * 1e3:8.2f} {b.seconds * 1e3:8.2f} ms {ratio:6.2f}x"
        f" {a.received:9d} : {b.received:<9d} {a.temporary:9d} : {b.temporary:<9d}{mark}"
    )


def report(names: Sequence[str], uneven: bool = False, tile: bool = False) -> None:
    """Measure the operations whose names hold one of these, all without any; then the sums."""
    from benchmarks.steps import geometric_mean

    device = gl.DeviceGrid(MESH)
    random = np.random.default_rng(0)
    ratios, marked = [], dict.fromkeys(("receives", "time", "memory"), 0)
    for operation in operations():
        if names and not any(name in operation.name for name in names):
            continue
        if uneven and operation.is_even:
            continue
        even = [x.drawn(random) for x in operation.arrays]
        odd = [x.uneven().drawn(random) for x in operation.arrays]
        for grids in operation.placements:
            ours = [placed(x, g, device) for x, g in zip(even, grids, strict=True)]
            if uneven or tile:
                some = odd if uneven else even
                other = [placed(x, g, device, tile) for x, g in zip(some, grids, strict=True)]
                both = [(True, other), (True, ours)]
            else:
                theirs = [sharded(x, g, device) for x, g in zip(even, grids, strict=True)]
                both = [(True, ours), (False, theirs)]
            a, b = measure(operation.fn, both)
            where = " ".join("x".join(map(str, g)) if g else "-" for g in grids)
            line = row(f"{operation.name}, {where}", a, b)
            print(line, flush=True)
            ratios.append(a.seconds / b.seconds)
            for mark in marked:
                marked[mark] += line.endswith(mark) or f" {mark} " in line
    found = ", ".join(f"{mark} {n}" for mark, n in marked.items())
    print(f"{len(ratios)} operations: geometric mean {geometric_mean(ratios):.2f}x; more: {found}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("--tile", action="store_true")
    options = parser.parse_args()
    gl.emulate_devices(8)
    report(options.names, options.uneven, options.tile)
