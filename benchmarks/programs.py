"""Programs on 8 emulated devices against plain JAX's: chains, calls, norms, a model's step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import gridlayout as gl
from benchmarks.timing import Result, medians

RNG = np.random.default_rng(0)
MESH = (2, 4)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def chain() -> Result:
    """A fused elementwise chain on uneven, tiled arrays, against the same on the padded ones."""
    device = gl.DeviceGrid(MESH)
    layout = gl.GridLayout((2000, 3000), "float32", grid=MESH, tile=(32, 32))
    x, y = (gl.put(normal(2000, 3000), layout, device) for _ in range(2))

    def fn(x: Any, y: Any) -> Any:
        return jnp.tanh(x * y + 1) * jnp.exp(-x) - y / 2

    on_grid, plain = gl.on_grid(fn), jax.jit(fn)
    found = medians(
        {"ours": lambda: on_grid(x, y).storage, "plain": lambda: plain(x.storage, y.storage)}
    )
    return Result(
        "fused chain, 2000x3000", found["ours"], found["plain"], "padded jnp arrays", 1.05
    )


# Blocks to other blocks, where mesh axes wait for each other, rows, and columns.
RELAYOUTS = tuple(permutations([(2, 4), (4, 2), (8, 1), (1, 8)], 2))


def relayout(before: tuple[int, ...], after: tuple[int, ...]) -> Result:
    """A relayout against GSPMD's resharding of a plain array, from and to the same parts.

    Each as it is called: `gl.relayout`, and a jitted identity with shardings. With `jax.jit` around
    it takes some 0.1 ms more: JAX calls in Python what takes a GridArray.
    """
    device, array = gl.DeviceGrid(MESH), normal(2048, 2048)
    old, new = (gl.GridLayout(array.shape, grid=grid) for grid in (before, after))
    source, target = (
        NamedSharding(device.fine, device.placement(layout.grid).spec) for layout in (old, new)
    )
    x, plain = gl.put(array, old, device), jax.device_put(array, source)
    gspmd = jax.jit(lambda x: x, in_shardings=source, out_shardings=target)
    np.testing.assert_array_equal(np.asarray(gl.relayout(x, new)), array)
    found = medians(
        {"ours": lambda: gl.relayout(x, new).storage, "gspmd": lambda: gspmd(plain)}, rounds=101
    )
    name = " to ".join("x".join(map(str, grid)) for grid in (before, after))
    return Result(
        f"relayout 2048x2048, {name}", found["ours"], found["gspmd"], "GSPMD, same parts", 1.1
    )


def split(*arrays: Any) -> tuple[list[Any], Any]:
    """The arrays, dims divided by the mesh where they can be, for GSPMD."""
    mesh = jax.make_mesh(MESH, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))
    return [jax.device_put(array, sharding) for array in arrays], sharding


def norm(name: str, fn: Callable[[Any], Any]) -> Result:
    """A function along rows that the mesh divides, on the same mesh."""
    device = gl.DeviceGrid(MESH)
    array = normal(2048, 2048)
    x = gl.put(array, gl.GridLayout(array.shape, grid=MESH), device)
    (plain,), sharding = split(array)
    on_grid = gl.on_grid(fn)
    gspmd = jax.jit(fn, in_shardings=sharding, out_shardings=sharding)
    np.testing.assert_allclose(np.asarray(on_grid(x)), fn(plain), rtol=1e-3, atol=1e-4)
    found = medians({"ours": lambda: on_grid(x).storage, "gspmd": lambda: gspmd(plain)})
    return Result(f"{name}, 2048x2048", found["ours"], found["gspmd"], "GSPMD, same mesh", 1.2)


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


def layer_norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def heat_step(x: Any) -> Any:
    """A stencil inside of the edges: each element and its four neighbours."""
    around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    return x.at[1:-1, 1:-1].add(0.1 * (around - 4 * x[1:-1, 1:-1]))


def rows_of_a_table() -> Result:
    """512 rows of a table that is split by rows, each device having a part of the indices."""
    device, count = gl.DeviceGrid((8,)), 512
    table, at = normal(32_000, 256), RNG.integers(0, 32_000, count).astype(np.int32)
    x = gl.put(table, gl.GridLayout(table.shape, grid=(8, 1)), device)
    i = gl.put(at, gl.GridLayout(at.shape, "int32", grid=(8,)), device)
    by_rows = NamedSharding(device.mesh, PartitionSpec("x"))
    plain = [jax.device_put(array, by_rows) for array in (table, at)]

    def rows(table: Any, at: Any) -> Any:
        return jnp.take(table, at, axis=0)

    on_grid, gspmd = gl.on_grid(rows), jax.jit(rows, out_shardings=by_rows)
    np.testing.assert_array_equal(np.asarray(on_grid(x, i)), table[at])
    found = medians({"ours": lambda: on_grid(x, i).storage, "gspmd": lambda: gspmd(*plain)})
    name = f"{count} rows of a table, split by rows"
    return Result(name, found["ours"], found["gspmd"], "GSPMD, same mesh", 1.2)


HEADS, WIDTH, LENGTH, BATCH = 8, 256, 128, 8


SHAPES = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
SHAPES |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def parameters() -> dict[str, np.ndarray]:
    return {name: normal(*shape) / np.sqrt(shape[0]) for name, shape in SHAPES.items()}


def block(p: Any, x: Any) -> Any:
    """A transformer block on (batch, length, width), rows joined."""
    h = layer_norm(x) @ p["qkv"]
    q, k, v = (part.reshape(BATCH, -1, HEADS, WIDTH // HEADS) for part in jnp.split(h, 3, axis=-1))
    x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(layer_norm(x) @ p["up"]) @ p["down"]


def stack_step(layers: Any, x: Any) -> Any:
    """A step of blocks one after another."""

    def loss(layers: Any) -> Any:
        y = x
        for p in layers:
            y = block(p, y)
        return jnp.mean((y - 1) ** 2)

    value, grads = jax.value_and_grad(loss)(layers)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, layers, grads)


def step(p: Any, x: Any) -> Any:
    value, (p,) = stack_step([p], x)
    return value, p


def transformer() -> list[Result]:
    device = gl.DeviceGrid(MESH)
    p, x = parameters(), normal(BATCH * LENGTH, WIDTH)
    laid = gl.put((p, x), device, partial(gl.GridLayout, grid=MESH))
    mesh = jax.make_mesh(MESH, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, PartitionSpec("x", "y"))
    plain = jax.device_put((p, x), sharding)
    on_grid = gl.on_grid(step)
    gspmd = jax.jit(step, out_shardings=(None, sharding))
    value, _ = on_grid(*laid)
    np.testing.assert_allclose(float(value), float(gspmd(*plain)[0]), rtol=1e-4)
    found = medians(
        {"ours": lambda: jax.tree.leaves(on_grid(*laid)), "gspmd": lambda: gspmd(*plain)}
    )
    name = f"transformer block's step, {BATCH}x{LENGTH}x{WIDTH}"
    return [Result(name, found["ours"], found["gspmd"], "GSPMD, same mesh", 1.2)]


def fresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that no cache knows."""
    return lambda *args: fn(*args)
