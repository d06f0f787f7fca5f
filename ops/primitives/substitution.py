"""Triangular systems of one matrix, divided by columns of the right-hand side or by matrix rows.

By columns, the matrix is replicated, which dominates the communication if there are few columns.
By rows, the matrix stays sharded, and the unknowns of one block of rows after another are sent to
all devices.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.reshapes import transposed
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import run
from gridlayout.ops.primitives.panels import Panels, as_spec, in_panels
from gridlayout.ops.primitives.windows import as_storage, local_blocks, zero_tail
from gridlayout.sharding.collectives import index_of


def triangular_solve(b: Builder, op: Op, matrix: Value, right: Value) -> Any:
    """Rule for a triangular system of one matrix, the cheapest way; None for batches."""
    if matrix.ndim != 2:
        return None
    return cheapest_way(b, op, [_by_columns, _by_rows], matrix, right)


def _by_columns(b: Builder, op: Op, matrix: Value, right: Value) -> Any:
    """Rule with a replicated matrix: each device solves for its own columns.

    If the unknowns are left of the matrix, each device solves for its own rows.
    """
    is_left = op.params["left_side"]

    def solve(x: jax.Array, matrix: jax.Array) -> list[Any]:
        (out,) = op.bind(matrix, x if is_left else x.T)
        return [out if is_left else out.T]

    whole = (0,) if is_left else (1,)
    n, columns = matrix.shape[0], right.shape[int(is_left)]
    own = -(-columns // b.device.size)
    b.computing = b.env.machine.seconds(flops=n * n * own)
    others = b.replicated(matrix)
    return run(b, op, [(right, whole)], solve, others, out_axes=[whole], native=True)


def _by_rows(b: Builder, op: Op, matrix: Value, right: Value) -> Any:
    """Rule with the matrix in blocks of rows; each block's unknowns are sent to all devices."""
    if matrix.layout is None:
        return None
    is_left, right_of = op.params["left_side"], b.as_sharded(right, like=matrix)
    if not is_left:  # X op(A) = B is op(A)^T X^T = B^T
        right_of = transposed(b, right_of, (1, 0))
    found, other = in_panels(b, matrix, 0, 1), in_panels(b, right_of, 0, 1)
    if found is None or other is None:
        return None
    (a, panels), (y, _) = found, other
    is_transposed = bool(op.params["transpose_a"]) == bool(is_left)
    columns, size = right_of.shape[1], right.dtype.itemsize
    made = b.collectives()
    for _ in range(panels.count - 1):
        made.all_reduce(panels.axes, panels.width * columns * size)
    n, width = panels.extent, panels.width
    flops = panels.count * width**2 * columns * 3 if not is_transposed else n * n * columns
    b.note, b.device_flops = f"{panels.count} blocks of {width} rows", flops
    b.computing = b.env.machine.seconds(flops=flops)
    spec = as_spec(y)
    kernel = partial(_substituted, op, panels, is_transposed, spec.placement.per_device)
    (out,) = b.run(kernel, [a, y], [spec.with_oob(None)], made)
    if not is_left:
        out = transposed(b, out, (1, 0))
    return b.as_sharded(out, right.own_layout or b.choose(right.shape, right.dtype, matrix))


def _substituted(
    op: Op, panels: Panels, is_transposed: bool, cores: Any, part: jax.Array, right: jax.Array
) -> list[jax.Array]:
    """Return a device's rows of the unknowns.

    is_transposed: whether to solve with the transposed matrix. cores: cores per device, by dim.
    """
    width, count, here = panels.width, panels.count, index_of(panels.axes)
    a, n = local_blocks(part), panels.extent
    a = a.conj() if op.params["conjugate_a"] else a
    rows = (here * width + jnp.arange(width))[:, None]
    a = jnp.pad(a, ((0, 0), (0, count * width - n)))
    a = jnp.where(rows < n, a, (rows == jnp.arange(a.shape[1])).astype(a.dtype))
    left = zero_tail(local_blocks(right), 0, panels.axes, n)
    own, contributions = jnp.zeros_like(left), jnp.zeros((count * width, left.shape[1]), left.dtype)
    upward = bool(op.params["lower"]) == is_transposed
    order = list(reversed(range(count)) if upward else range(count))
    for k in order:
        block = a[:, k * width : (k + 1) * width]
        if is_transposed and k != order[0]:  # subtract the contributions of all solved rows
            known = left - lax.psum(contributions[k * width : (k + 1) * width], panels.axes)
        else:
            known = left
        solved = lax.linalg.triangular_solve(
            block,
            known,
            left_side=True,
            lower=op.params["lower"],
            transpose_a=is_transposed,
            unit_diagonal=op.params["unit_diagonal"],
        )
        mine = jnp.where(here == k, solved, 0)
        own = own + mine
        if is_transposed:
            contributions = contributions + a.T @ mine
        elif k != order[-1]:
            left = left - block @ lax.psum(mine, panels.axes)
    return [as_storage(own, cores)]
