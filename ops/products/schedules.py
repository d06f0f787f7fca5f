"""The kernels of products by a plan: the steps of each algorithm, and what the devices send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.dtypes import sum_dtype
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.workspace import Chain, Workspace
from gridlayout.ops.products.algorithms import Plan
from gridlayout.sharding.collectives import (
    Collectives,
    all_gather,
    broadcast,
    index_of,
    permute,
    rotate,
    slice_at,
)


def multiplied(b: Builder, op: Op, plan: Plan, x: Value, y: Value, target: Layout) -> Value:
    """Return the product in the layout `target`, or the scalar that it is."""
    if plan.matrices.is_swapped:
        x, y = y, x
    (left, left_at), (right, right_at) = plan.left(), plan.right()
    spec: Sharded | Replicated = Replicated((), plan.matrices.dtype)
    if plan.matrices.shape:
        spec = b.sharded(plan.result())
    operands = [b.relayout(x, left, left_at), b.relayout(y, right, right_at)]
    dtype, wide = plan.matrices.dtype, sum_dtype(plan.matrices.dtype)
    dot = partial(_dot, dtype=wide, precision=op.params["precision"])
    shapes = plan.parts
    batch = shapes[0][0]

    def kernel(*views: LazyView) -> list[LazyView]:
        pairs = zip(views, shapes, strict=True)
        a, c = (view.transpose(_PANELLED).reshape(*shape) for view, shape in pairs)
        a = _without_tail(plan, a, plan.left_k, 2)
        c = _without_tail(plan, c, plan.right_k, 1)
        out = SCHEDULES[plan.name].run(plan, dot, a, c)
        if plan.layers and plan.scattered:
            out = lax.psum_scatter(out, plan.layers, scatter_dimension=out.ndim - 1, tiled=True)
        elif plan.layers:
            out = lax.psum(out, plan.layers)
        out = out.astype(dtype)
        if isinstance(spec, Replicated):
            return [LazyView.of(out).reshape()]
        view = LazyView.of(out).reshape(batch, -1, out.shape[-1])
        view = view.transpose((0, 2, 1)) if plan.mirrored else view
        pairs_ = zip(spec.placement.per_device, view.shape, strict=True)
        view = view.reshape(*(n for cores, size in pairs_ for n in (cores, size // cores)))
        return [view.transpose((0, 2, 4, 1, 3, 5))]

    sent, _ = sends(plan)
    masks = sum(
        _has_tail(plan, shape[2:] if k == 0 else shape[1:]) for k, shape in enumerate(shapes)
    )
    workspace = cache(partial(_workspace, plan, tuple(x.spec for x in operands)))
    (out,) = b.run(kernel, operands, [spec], sent, workspace=workspace, masks=masks, is_lazy=True)
    return out if isinstance(spec, Replicated) else b.relayout(out, target)


def _workspace(plan: Plan, specs: tuple[Any, ...]) -> Workspace:
    """Return the workspace: both parts as multiplied, what the steps hold, and the sums."""
    chains: list[Chain] = []
    for spec, shape in zip(specs, plan.parts, strict=True):
        part = jax.ShapeDtypeStruct(spec.local_shape, spec.dtype)
        chain = Chain(spec.device_bytes)
        view = LazyView.of(part).transpose(_PANELLED)  # type: ignore[arg-type]
        inner = shape[1:] if chains else shape[2:]
        if not view.is_in_order or _has_tail(plan, inner):
            chain.view()
        chains.append(chain.materialize())
    (batch, rows, *_), (*_, columns) = plan.parts
    out = dtypes.nbytes((batch, rows, columns), sum_dtype(plan.matrices.dtype))
    moved = sends(plan)[1] - out - sum(chain.nbytes for chain in chains)
    together = [out + max(moved, 0)]
    if plan.layers and plan.scattered:
        # XLA scatters along the major dim, so the columns are transposed to it first.
        together += [out] if batch * rows > 1 else []
        together.append(out // plan.count(plan.layers))
    elif plan.layers:
        together.append(out)
    return Workspace(tuple(chains), tuple(together), is_view=True)


# A part has the cores of its three dims first, then the shards of each.
_PANELLED = (0, 3, 1, 4, 2, 5)


def sends(plan: Plan) -> tuple[Collectives, int]:
    """Return what the devices send in the kernel, and the bytes that a device holds there."""
    made = Collectives(plan.device)
    a, c = plan.parts
    left, right = plan.matrices.left.layout.dtype, plan.matrices.right.layout.dtype
    sizes = dtypes.nbytes(a, left), dtypes.nbytes(c, right)
    held = SCHEDULES[plan.name].sends(plan, made, *sizes)
    if made.found and (copied := _transposed_bytes(plan)):
        first = made.found[0]
        made.found[0] = replace(first, copied_bytes=-(-copied // first.count))
    out = dtypes.nbytes((a[0], a[1], c[3]), sum_dtype(plan.matrices.dtype))
    if plan.layers and plan.scattered:
        # The columns are the last dim; they are the major one if all others have extent 1.
        made.reduce_scatter(plan.layers, out, dim=int(a[0] * a[1] > 1))
    elif plan.layers:
        made.all_reduce(plan.layers, out)
    return made, held + out


def _transposed_bytes(plan: Plan) -> int:
    """Return the bytes that a device transposes: of operands other than (rows, K), (K, columns)."""
    m, (batch, rows, *_), (*_, columns) = plan.matrices, *plan.parts
    pairs = (m.left.free, m.left.contract), (m.right.contract, m.right.free)
    sizes = zip((m.left, m.right), pairs, (rows, columns), strict=True)
    return sum(
        dtypes.nbytes(batch * n * m.k, x.layout.dtype)
        for x, (first, last), n in sizes
        if first and last and max(first) > min(last)
    )


def _has_tail(plan: Plan, inner: Sequence[int]) -> bool:
    """Return whether the panels extend beyond the end of K; inner: (panels, width, ...) here."""
    return plan.panels * inner[1] != plan.matrices.k


def _without_tail(plan: Plan, a: LazyView, axes: Axes, at: int) -> LazyView:
    """Return a part with zeros beyond the end of K; dims `at` and `at + 1` are panels, width."""
    panels, width = a.shape[at], a.shape[at + 1]
    if not _has_tail(plan, (panels, width)):
        return a
    first = index_of(axes) * panels
    position = (first + jnp.arange(panels))[:, None] * width + jnp.arange(width)[None, :]
    inside = position < plan.matrices.k
    others = tuple(d for d in range(4) if d not in (at, at + 1))
    zero = jnp.zeros((), a.array.dtype)
    return LazyView.of(jnp.where(jnp.expand_dims(inside, others), a.materialize(), zero))


def _dot(a: LazyView, b: LazyView, dtype: Any, precision: Any) -> jax.Array:
    """Return (batch, rows, K) times (batch, K, columns), where K is one dim or (panels, width).

    For one batch the result has no batch dim, and XLA uses its fast product.
    """
    batch, rows, columns = *a.shape[:2], b.shape[-1]
    lead = () if batch == 1 else (batch,)
    left, right = a.reshape(*lead, rows, -1), b.reshape(*lead, -1, columns)
    at, names = len(lead), tuple(range(len(lead)))
    return lax.dot_general(
        *(left.materialize(), right.materialize()),
        (((at + 1,), (at,)), (names, names)),
        precision=precision,
        preferred_element_type=dtype,
    )


Dot = Callable[[LazyView, LazyView], jax.Array]
Dims = tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """An algorithm: its kernel, and a function that records what the devices send.

    sends: takes the plan, the collectives and the bytes of both parts; returns the bytes held.
    """

    run: Callable[[Plan, Dot, LazyView, LazyView], jax.Array]
    sends: Callable[[Plan, Collectives, int, int], int]


def _ring(plan: Plan, dot: Dot, left: LazyView, right: LazyView) -> jax.Array:
    across, down = _crossed(plan)
    a, b = left.materialize(), all_gather(right.materialize(), down, 1)
    n, own = plan.count(across), a.shape[2]
    here, out = index_of(across), None
    for step in range(n):
        # The chunk of K that has arrived in this step.
        k = lax.rem(here + np.int32(step), np.int32(n)) if step else here
        part = dot(LazyView.of(a), LazyView.of(slice_at(b, k * own if own > 1 else k, own, 1)))
        out = part if out is None else out + part
        a = rotate(a, across, n) if step < n - 1 else a
    assert out is not None
    return out


def _crossed(plan: Plan) -> tuple[Axes, Axes]:
    """Return the axes of K in each operand, except for layers, which have different parts of K."""
    layers = len(plan.layers)
    return plan.left_k[layers:], plan.right_k[layers:]


def _ring_sends(plan: Plan, made: Collectives, left: int, right: int) -> int:
    across, down = _crossed(plan)
    with made.of(1):
        made.all_gather(down, right)
    made.compute()
    with made.repeated(plan.count(across) - 1), made.of(0):
        made.rotate(across, left).compute()
    return 2 * left + right * plan.count(down)


def _summa(plan: Plan, dot: Dot, left_part: LazyView, right_part: LazyView) -> jax.Array:
    across, down = plan.left_k, plan.right_k
    a, b = left_part.materialize(), right_part.materialize()
    left, right = a.shape[2], b.shape[1]
    out = None
    for panel in range(left * plan.count(across)):
        row, column = (
            lax.index_in_dim(x, panel % n, at, keepdims=False)
            for x, n, at in ((a, left, 2), (b, right, 1))
        )
        row = broadcast(row, across, plan.count(across), panel // left)
        column = broadcast(column, down, plan.count(down), panel // right)
        part = dot(LazyView.of(row), LazyView.of(column))
        out = part if out is None else out + part
    assert out is not None
    return out


def _summa_sends(plan: Plan, made: Collectives, left: int, right: int) -> int:
    across, down = plan.left_k, plan.right_k
    (_, _, own, _), (_, panel, *_) = plan.parts
    row, column = -(-left // own), -(-right // panel)
    with made.repeated(own * plan.count(across)):
        with made.of(0):
            made.broadcast(across, row)
        with made.of(1):
            made.broadcast(down, column)
        made.compute()
    return left + right + row + column


def _cannon(plan: Plan, dot: Dot, left: LazyView, right: LazyView) -> jax.Array:
    n, both, skews = _skews(plan)
    parts = left.materialize(), right.materialize()
    a, b = (permute(x, both, pairs) for x, pairs in zip(parts, skews, strict=True))
    out = dot(LazyView.of(a), LazyView.of(b))
    for _ in range(n - 1):
        a, b = rotate(a, plan.left_k, n), rotate(b, plan.right_k, n)
        out = out + dot(LazyView.of(a), LazyView.of(b))
    return out


def _cannon_sends(plan: Plan, made: Collectives, left: int, right: int) -> int:
    n, nbytes = plan.count(plan.left_k), (left, right)
    for k, held in enumerate(nbytes):
        with made.of(k):
            made.permute(_both(plan), held, n * (n - 1))  # the first row, or column, stays in place
    made.compute()
    with made.repeated(n - 1):
        for k, (held, axes) in enumerate(zip(nbytes, (plan.left_k, plan.right_k), strict=True)):
            with made.of(k):
                made.rotate(axes, held)
        made.compute()
    return 2 * sum(nbytes)


def _both(plan: Plan) -> Axes:
    return tuple(a for a in plan.device.fine.axis_names if a in (*plan.right_k, *plan.left_k))


def _skews(plan: Plan) -> tuple[int, Axes, list[list[tuple[int, int]]]]:
    """Return the devices along either dim, all their axes, and each operand's skew as pairs."""
    down, across = plan.right_k, plan.left_k  # the mesh axes of rows, and of columns
    n = plan.count(across)
    both = _both(plan)
    sizes = [plan.device.fine.shape[axis] for axis in both]

    def number(i: int, j: int) -> int:
        """Return the number of the device in row i and column j, in mesh order, for `ppermute`."""
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


def _at_once(plan: Plan, dot: Dot, left: LazyView, right: LazyView) -> jax.Array:
    return dot(left, right)


def _nothing(plan: Plan, made: Collectives, left: int, right: int) -> int:
    made.compute()
    return left + right


SCHEDULES: dict[str, Schedule] = {
    "ring": Schedule(_ring, _ring_sends),
    "summa": Schedule(_summa, _summa_sends),
    "cannon": Schedule(_cannon, _cannon_sends),
    "k_split": Schedule(_at_once, _nothing),
    "3d": Schedule(_at_once, _nothing),
    "2.5d": Schedule(_ring, _ring_sends),
}
