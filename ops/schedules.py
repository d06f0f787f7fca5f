"""Running a product by a plan: the steps of each algorithm, inside `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.layout import Layout
from gridlayout.ops.algorithms import Axes, Plan, sum_dtype
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.ports import entering, through
from gridlayout.ops.product import Params
from gridlayout.ops.seen import Seen
from gridlayout.ops.values import Context
from gridlayout.ops.wires import Wires, index_of


def multiplied(
    ctx: Context, params: Params, plan: Plan, x: GridArray, y: GridArray, wanted: Layout
) -> Any:
    """The product in the layout that is wanted, or the scalar that it is."""
    if plan.matrices.is_swapped:
        x, y = y, x
    (left, left_at), (right, right_at) = plan.left(), plan.right()
    result = plan.result() if plan.matrices.shape else None
    placed = plan.placed() if result is None else ctx.device.placement(result.grid)
    entered = [entering(ctx, x, left, left_at), entering(ctx, y, right, right_at)]
    wires = Wires(ctx)
    dtype = sum_dtype(plan.matrices.dtype)
    dot = partial(_dot, dtype=dtype, precision=dict(params)["precision"])

    def kernel(left: Seen, right: Seen) -> Seen:
        a, b = _panelled(left, False), _panelled(right, True)
        # An exchange adds idle slots only where it divides; scattering needs them all.
        if idle := right_at.per_device[2] * right.shape[5] - b.shape[3]:
            b = lax.pad(b, jnp.zeros((), b.dtype), [(0, 0, 0)] * 3 + [(0, idle, 0)])
        a = _without_tail(ctx, plan, a, plan.left_k, 2)
        b = _without_tail(ctx, plan, b, plan.right_k, 1)
        ctx.held += a.nbytes + b.nbytes
        out = _SCHEDULES[plan.name](plan, wires, dot, a, b)
        ctx.held += out.nbytes
        if plan.layers and plan.scattered:
            out = wires.scatter(out, plan.layers, 2)
        elif plan.layers:
            out = wires.sum(out, plan.layers)
        out = out.astype(plan.matrices.dtype)
        if result is None:
            return Seen.of(out).reshape()
        seen = Seen.of(out)
        seen = seen.transpose((0, 2, 1)) if plan.mirrored else seen
        pairs = zip(placed.per_device, seen.shape, strict=True)
        seen = seen.reshape(*(n for cores, size in pairs for n in (cores, size // cores)))
        return seen.transpose((0, 2, 4, 1, 3, 5))

    return through(ctx, kernel, entered, result, wanted)


def _panelled(x: Seen, is_right: bool) -> jax.Array:
    """A part as (batch, rows, panels, K in each), or as (batch, panels, K in each, columns).

    It comes as the cores of each of three dims, then the shards of each.
    """
    x = x.transpose((0, 3, 1, 4, 2, 5))
    batch, inner = x.shape[0] * x.shape[1], x.shape[2:]
    if is_right:
        return x.reshape(batch, *inner[:2], inner[2] * inner[3]).now()
    return x.reshape(batch, inner[0] * inner[1], *inner[2:]).now()


def _without_tail(ctx: Context, plan: Plan, a: jax.Array, axes: Axes, at: int) -> jax.Array:
    """Zeros after the end of K; its dims are `at`, the panels here, and the next."""
    panels, width = a.shape[at], a.shape[at + 1]
    if plan.panels * width == plan.matrices.k:
        return a
    ctx.masks += 1
    first = index_of(axes) * panels
    position = (first + jnp.arange(panels))[:, None] * width + jnp.arange(width)
    inside = position < plan.matrices.k
    return jnp.where(
        jnp.expand_dims(inside, tuple(d for d in range(4) if d not in (at, at + 1))), a, 0
    )


def _dot(a: jax.Array, b: jax.Array, dtype: Any, precision: Any) -> jax.Array:
    """(batch, rows, K) times (batch, K, columns), K being one dim or (panels, width)."""
    options = {"precision": precision, "preferred_element_type": dtype}
    batch, rows, columns = *a.shape[:2], b.shape[-1]
    if batch == 1:  # one batch is no batch: XLA's fast product
        a, b = a.reshape(rows, -1), b.reshape(-1, columns)
        out = lax.dot_general(a, b, (((1,), (0,)), ((), ())), **options)
        return out.reshape(1, rows, columns)
    a, b = a.reshape(batch, rows, -1), b.reshape(batch, -1, columns)
    return lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), **options)


Dot = Callable[[jax.Array, jax.Array], jax.Array]


def _ring(plan: Plan, wires: Wires, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    b = wires.gather(b, plan.right_k, 1)
    n, own = plan.count(plan.left_k), a.shape[2]
    out = None
    for step in range(n):
        first = (index_of(plan.left_k) + step) % n * own
        part = dot(a, lax.dynamic_slice_in_dim(b, first, own, 1))
        out = part if out is None else out + part
        a = wires.turn(a, plan.left_k) if step < n - 1 else a
    assert out is not None
    return out


def _summa(plan: Plan, wires: Wires, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    # Layers have a part of K each, so panels are counted within one.
    layers = len(plan.layers)
    across, down = plan.left_k[layers:], plan.right_k[layers:]
    left, right = a.shape[2], b.shape[1]
    out = None
    for panel in range(left * plan.count(across)):
        row = wires.spread(a[:, :, panel % left], across, panel // left)
        column = wires.spread(b[:, panel % right], down, panel // right)
        part = dot(row, column)
        out = part if out is None else out + part
    assert out is not None
    return out


def _cannon(plan: Plan, wires: Wires, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    down, across = plan.right_k, plan.left_k  # the mesh axes of rows, and of columns
    n = plan.count(across)
    both = tuple(axis for axis in plan.device.fine.axis_names if axis in (*down, *across))
    sizes = [plan.device.fine.shape[axis] for axis in both]

    def number(i: int, j: int) -> int:
        """The device in row i and column j, as `ppermute` counts: in the mesh's order."""
        digits = {**_digits(plan, down, i), **_digits(plan, across, j)}
        return int(np.ravel_multi_index([digits[axis] for axis in both], sizes))

    cells = [(i, j) for i in range(n) for j in range(n)]
    a = wires.send(a, both, [(number(i, (i + j) % n), number(i, j)) for i, j in cells])
    b = wires.send(b, both, [(number((i + j) % n, j), number(i, j)) for i, j in cells])
    out = dot(a, b)
    for _ in range(n - 1):
        a, b = wires.turn(a, across), wires.turn(b, down)
        out = out + dot(a, b)
    return out


def _digits(plan: Plan, axes: Axes, index: int) -> dict[str, int]:
    sizes = [plan.device.fine.shape[axis] for axis in axes]
    return dict(zip(axes, map(int, np.unravel_index(index, sizes)), strict=True))


def _at_once(plan: Plan, wires: Wires, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    return dot(a, b)


_SCHEDULES: dict[str, Callable[[Plan, Wires, Dot, jax.Array, jax.Array], jax.Array]] = {
    "ring": _ring,
    "summa": _summa,
    "cannon": _cannon,
    "k_split": _at_once,
    "3d": _at_once,
    "2.5d": _summa,
}
