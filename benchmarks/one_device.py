"""`python -m benchmarks.one_device`: one device of JAX's default backend, such as a GPU.

Packing, products and steps of arrays on grids of cores, which one device holds, against plain JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gridlayout as gl
from benchmarks.steps import block, grad_of, mlp, residual
from benchmarks.timing import Result, medians

SIDE = 8192
# Sizes that no tile divides.
UNEVEN = (SIDE - 11, SIDE - 19)
GRID, TILE = (8, 8), (32, 32)
STEPS: dict[str, tuple[Callable[..., Any], Sequence[tuple[int, int]]]] = {
    "a step of 3 layers 4096 wide": (grad_of(mlp), [(4096, 4096)] * 4),
    "4 layers 2048 wide": (residual, [(4096, 2048)] + [(2048, 2048)] * 4),
    "a block's step, 1024 wide": (
        grad_of(block),
        [(4096, 1024), (1024, 3072), (1024, 1024), (1024, 4096), (4096, 1024)],
    ),
}


def normal(shape: Sequence[int], dtype: Any = jnp.float32) -> jax.Array:
    return jax.random.normal(jax.random.key(len(shape)), tuple(shape), dtype)


def compared(name: str, ours: Callable[[], Any], plain: Callable[[], Any], hand: str) -> Result:
    found = medians({"ours": ours, "plain": plain})
    return Result(name, found["ours"], found["plain"], hand, 1.1)


def packing() -> list[Result]:
    """`gl.pack` and `gl.unpack` against the same pads, reshapes and transposes by hand."""
    results = []
    for shape in [(SIDE, SIDE), UNEVEN]:
        layout = gl.GridLayout(shape, "float32", grid=GRID, tile=TILE)
        pack, unpack = (jax.jit(fn) for fn in by_hand(shape))
        x = normal(shape)
        physical = gl.pack(x, layout)
        np.testing.assert_array_equal(physical, pack(x))
        np.testing.assert_array_equal(unpack(physical), x)
        size = "x".join(map(str, shape))
        for name, ours, plain, operand in [
            (f"pack {size}", gl.pack, pack, x),
            (f"unpack {size}", gl.unpack, unpack, physical),
        ]:
            results.append(
                compared(
                    name,
                    lambda ours=ours, a=operand, layout=layout: ours(a, layout),
                    lambda plain=plain, a=operand: plain(a),
                    "jitted by hand",
                )
            )
    return results


def by_hand(shape: tuple[int, int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Pack and unpack: the grid divides, and each core's part is padded to tiles."""
    (a, b), (m, n), (g, h) = TILE, shape, GRID
    rows, columns = -(-m // g), -(-n // h)
    up, left = -(-rows // a), -(-columns // b)

    def pack(x: jax.Array) -> jax.Array:
        x = jnp.pad(x, [(0, g * rows - m), (0, h * columns - n)]).reshape(g, rows, h, columns)
        x = jnp.pad(x, [(0, 0), (0, up * a - rows), (0, 0), (0, left * b - columns)])
        return x.reshape(g, up, a, h, left, b).transpose(0, 3, 1, 4, 2, 5)

    def unpack(p: jax.Array) -> jax.Array:
        x = p.transpose(0, 2, 4, 1, 3, 5).reshape(g, up * a, h, left * b)
        return x[:, :rows, :, :columns].reshape(g * rows, h * columns)[:m, :n]

    return pack, unpack


def products(device: gl.DeviceGrid) -> list[Result]:
    """A bfloat16 product of arrays in tiles, on one core and on 4x4 cores."""
    a, b = (normal((SIDE, SIDE), jnp.bfloat16) for _ in range(2))
    plain, on_grid, results = jax.jit(jnp.matmul), gl.on_grid(jnp.matmul), []
    for grid in [(1, 1), (4, 4)]:
        layout = gl.GridLayout((SIDE, SIDE), "bfloat16", grid=grid, tile=TILE)
        x, y = (gl.put(each, layout, device) for each in (a, b))
        name = f"matmul {SIDE}^3 bfloat16, {grid[0]}x{grid[1]} cores"
        results.append(
            compared(
                name,
                lambda x=x, y=y: on_grid(x, y).storage,
                lambda: plain(a, b),
                "jitted jnp.matmul",
            )
        )
    return results


def steps(device: gl.DeviceGrid) -> list[Result]:
    """Steps on 2x2 cores in tiles."""
    results = []
    for name, (fn, shapes) in STEPS.items():
        args = [normal(shape) * 0.02 for shape in shapes]
        layouts = [gl.GridLayout(shape, "float32", grid=(2, 2), tile=TILE) for shape in shapes]
        laid = [gl.put(x, layout, device) for x, layout in zip(args, layouts, strict=True)]
        on_grid, plain = gl.on_grid(fn), jax.jit(fn)
        results.append(
            compared(
                name,
                lambda on_grid=on_grid, laid=laid: on_grid(*laid),
                lambda plain=plain, args=args: plain(*args),
                "jitted",
            )
        )
    return results


def main() -> None:
    device = gl.DeviceGrid((1, 1))
    print(f"{device!r}, {jax.devices()[0].device_kind}, JAX {jax.__version__}")
    for row in [*packing(), *products(device), *steps(device)]:
        name, ours, theirs, against, ratio, *_ = row.row()
        print(f"{name:<40} {ours:>9}  {against} {theirs:>9}  {ratio}", flush=True)


if __name__ == "__main__":
    main()
