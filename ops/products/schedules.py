"""Running a product by a plan: the steps of each algorithm, and what the devices send in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.dtypes import sum_dtype
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.products.algorithms import Axes, Plan
from gridlayout.sharding.collectives import (
    Collectives,
    all_gather,
    broadcast,
    index_of,
    permute,
    rotate,
    slice_at,
)


def multiplied(b: Builder, op: Op, plan: Plan, x: Value, y: Value, wanted: Layout) -> Value:
    """The product in the layout that is wanted, or the scalar that it is."""
    if plan.matrices.is_swapped:
        x, y = y, x
    (left, left_at), (right, right_at) = plan.left(), plan.right()
    spec: Sharded | Replicated = Replicated((), plan.matrices.dtype)
    if plan.matrices.shape:
        spec = b.sharded(plan.result())
    entered = [b.relayout(x, left, left_at), b.relayout(y, right, right_at)]
    dtype, wide = plan.matrices.dtype, sum_dtype(plan.matrices.dtype)
    dot = partial(_dot, dtype=wide, precision=op.params["precision"])
    shapes = plan.parts

    def kernel(*views: LazyView) -> list[LazyView]:
        pairs = zip(views, shapes, strict=True)
        a, c = (view.transpose(_PANELLED).reshape(*shape).materialize() for view, shape in pairs)
        a = _without_tail(plan, a, plan.left_k, 2)
        c = _without_tail(plan, c, plan.right_k, 1)
        out = SCHEDULES[plan.name].run(plan, dot, a, c)
        if plan.layers and plan.scattered:
            out = lax.psum_scatter(out, plan.layers, scatter_dimension=2, tiled=True)
        elif plan.layers:
            out = lax.psum(out, plan.layers)
        out = out.astype(dtype)
        if isinstance(spec, Replicated):
            return [LazyView.of(out).reshape()]
        view = LazyView.of(out)
        view = view.transpose((0, 2, 1)) if plan.mirrored else view
        pairs_ = zip(spec.placement.per_device, view.shape, strict=True)
        view = view.reshape(*(n for cores, size in pairs_ for n in (cores, size // cores)))
        return [view.transpose((0, 2, 4, 1, 3, 5))]

    sent, held = sends(plan)
    masks = sum(
        _has_tail(plan, shape[2:] if k == 0 else shape[1:]) for k, shape in enumerate(shapes)
    )
    (out,) = b.run(kernel, entered, [spec], sent, workspace_bytes=held, masks=masks, is_lazy=True)
    return out if isinstance(spec, Replicated) else b.relayout(out, wanted)


# A part comes as the cores of each of three dims, then the shards of each.
_PANELLED = (0, 3, 1, 4, 2, 5)


def sends(plan: Plan) -> tuple[Collectives, int]:
    """What the devices send each other in the kernel, and the bytes that one holds there."""
    made = Collectives(plan.device)
    a, c = plan.parts
    size = (plan.matrices.left.layout.dtype.itemsize, plan.matrices.right.layout.dtype.itemsize)
    held = SCHEDULES[plan.name].sends(plan, made, a, c, size)
    out = a[0] * a[1] * c[3] * sum_dtype(plan.matrices.dtype).itemsize
    if plan.layers and plan.scattered:
        made.reduce_scatter(plan.layers, out)
    elif plan.layers:
        made.all_reduce(plan.layers, out)
    return made, held + out


def _has_tail(plan: Plan, inner: Sequence[int]) -> bool:
    """Whether panels go on after the end of K; inner: panels here, positions in each, ..."""
    return plan.panels * inner[1] != plan.matrices.k


def _without_tail(plan: Plan, a: jax.Array, axes: Axes, at: int) -> jax.Array:
    """Zeros after the end of K; its dims are `at`, the panels here, and the next."""
    panels, width = a.shape[at], a.shape[at + 1]
    if not _has_tail(plan, (panels, width)):
        return a
    first = index_of(axes) * panels
    position = (first + jnp.arange(panels))[:, None] * width + jnp.arange(width)[None, :]
    inside = position < plan.matrices.k
    others = tuple(d for d in range(4) if d not in (at, at + 1))
    return jnp.where(jnp.expand_dims(inside, others), a, jnp.zeros((), a.dtype))


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
Dims = tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """An algorithm: its steps, and what the devices send in them.

    sends: of a plan, the shapes of both parts and their item sizes; it gives the bytes held.
    """

    run: Callable[[Plan, Dot, jax.Array, jax.Array], jax.Array]
    sends: Callable[[Plan, Collectives, Dims, Dims, tuple[int, int]], int]


def _nbytes(a: Dims, b: Dims, size: tuple[int, int]) -> tuple[int, int]:
    left, right = (
        int(np.prod(shape, dtype=object)) * n for shape, n in zip((a, b), size, strict=True)
    )
    return left, right


def _ring(plan: Plan, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    across, down = _crossed(plan)
    b = all_gather(b, down, 1)
    n, own = plan.count(across), a.shape[2]
    here, out = index_of(across), None
    for step in range(n):
        first = lax.rem(here + np.int32(step), np.int32(n)) * np.int32(own) if n > 1 else 0
        part = dot(a, slice_at(b, first, own, 1))
        out = part if out is None else out + part
        a = rotate(a, across, n) if step < n - 1 else a
    assert out is not None
    return out


def _crossed(plan: Plan) -> tuple[Axes, Axes]:
    """The axes of K in each factor; layers, of which each has a part of K, are not among them."""
    layers = len(plan.layers)
    return plan.left_k[layers:], plan.right_k[layers:]


def _ring_sends(plan: Plan, made: Collectives, a: Dims, b: Dims, size: tuple[int, int]) -> int:
    left, right = _nbytes(a, b, size)
    across, down = _crossed(plan)
    made.all_gather(down, right)
    made.rotate(across, left, plan.count(across) - 1)
    return 2 * left + right * plan.count(down)


def _summa(plan: Plan, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    across, down = plan.left_k, plan.right_k
    left, right = a.shape[2], b.shape[1]
    out = None
    for panel in range(left * plan.count(across)):
        row, column = (
            lax.index_in_dim(x, panel % n, at, keepdims=False)
            for x, n, at in ((a, left, 2), (b, right, 1))
        )
        row = broadcast(row, across, plan.count(across), panel // left)
        column = broadcast(column, down, plan.count(down), panel // right)
        part = dot(row, column)
        out = part if out is None else out + part
    assert out is not None
    return out


def _summa_sends(plan: Plan, made: Collectives, a: Dims, b: Dims, size: tuple[int, int]) -> int:
    left, right = _nbytes(a, b, size)
    across, down = plan.left_k, plan.right_k
    panels = a[2] * plan.count(across)
    made.broadcast(across, left // a[2], panels)
    made.broadcast(down, right // b[1], panels)
    return left + right + left // a[2] + right // b[1]


def _cannon(plan: Plan, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    n, both, skews = _skews(plan)
    a, b = (permute(x, both, pairs) for x, pairs in zip((a, b), skews, strict=True))
    out = dot(a, b)
    for _ in range(n - 1):
        a, b = rotate(a, plan.left_k, n), rotate(b, plan.right_k, n)
        out = out + dot(a, b)
    return out


def _cannon_sends(plan: Plan, made: Collectives, a: Dims, b: Dims, size: tuple[int, int]) -> int:
    n, nbytes = plan.count(plan.left_k), _nbytes(a, b, size)
    for held, axes in zip(nbytes, (plan.left_k, plan.right_k), strict=True):
        made.permute(_both(plan), held, n * (n - 1))  # the first row, or column, is where it is
        made.rotate(axes, held, n - 1)
    return 2 * sum(nbytes)


def _both(plan: Plan) -> Axes:
    return tuple(a for a in plan.device.fine.axis_names if a in (*plan.right_k, *plan.left_k))


def _skews(plan: Plan) -> tuple[int, Axes, list[list[tuple[int, int]]]]:
    """Devices along either side, all their axes, and the pairs that each operand is skewed by."""
    down, across = plan.right_k, plan.left_k  # the mesh axes of rows, and of columns
    n = plan.count(across)
    both = _both(plan)
    sizes = [plan.device.fine.shape[axis] for axis in both]

    def number(i: int, j: int) -> int:
        """The device in row i and column j, as `ppermute` counts: in the mesh's order."""
        digits = {**_digits(plan, down, i), **_digits(plan, across, j)}
        return int(np.ravel_multi_index([digits[axis] for axis in both], sizes)) if both else 0

    cells = [(i, j) for i in range(n) for j in range(n)]
    left = [(number(i, (i + j) % n), number(i, j)) for i, j in cells]
    return n, both, [left, [(number((i + j) % n, j), number(i, j)) for i, j in cells]]


def _digits(plan: Plan, axes: Axes, index: int) -> dict[str, int]:
    sizes = [plan.device.fine.shape[axis] for axis in axes]
    if not axes:
        return {}
    return dict(zip(axes, map(int, np.unravel_index(index, sizes)), strict=True))


def _at_once(plan: Plan, dot: Dot, a: jax.Array, b: jax.Array) -> jax.Array:
    return dot(a, b)


def _nothing(plan: Plan, made: Collectives, a: Dims, b: Dims, size: tuple[int, int]) -> int:
    return sum(_nbytes(a, b, size))


SCHEDULES: dict[str, Schedule] = {
    "ring": Schedule(_ring, _ring_sends),
    "summa": Schedule(_summa, _summa_sends),
    "cannon": Schedule(_cannon, _cannon_sends),
    "k_split": Schedule(_at_once, _nothing),
    "3d": Schedule(_at_once, _nothing),
    "2.5d": Schedule(_ring, _ring_sends),
}
