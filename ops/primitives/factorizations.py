"""Cholesky and LU factorization of one matrix, panel by panel.

Every device receives each panel and factors it, then updates its own blocks. In total, each device
receives about half of a square matrix (Cholesky) or all of it (LU, by all-reduces), and computes
its share of the matrix products.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import target_layout
from gridlayout.ops.primitives.panels import Panels, as_spec, by_slots, in_panels
from gridlayout.ops.primitives.windows import as_storage, local_blocks
from gridlayout.sharding.collectives import all_gather, index_of

# -- Cholesky --------------------------------------------------------------------------------------


def cholesky(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a Cholesky factorization of one matrix.

    None if it takes less time replicated, and for batches.
    """
    if value.ndim != 2 or value.layout is None:
        return None
    whole = b.env.machine.seconds(flops=value.shape[0] ** 3 / 3)
    return by_slots(b, op, _cholesky, whole, value)


def _cholesky(b: Builder, op: Op, value: Value, slots: int) -> Any:
    if (found := in_panels(b, value, 0, slots)) is None:
        return None
    x, panels = found
    spec, n, size = as_spec(x), panels.extent, panels.width * value.dtype.itemsize
    made = panels.collectives(b.collectives(), panels.count * panels.width * size)
    flops = 0.0
    for k in range(panels.count):
        rows = (slots - k // panels.devices) * panels.width
        made.all_gather(panels.axes, rows * size)
        flops += _cholesky_flops(panels, k)
    panels.collectives(made, panels.count * panels.width * size)
    b.note, b.device_flops = _note(panels, "rows"), int(flops)
    b.computing = b.env.machine.seconds(flops=flops)

    def kernel(part: jax.Array) -> list[jax.Array]:
        rows = _padded_rows(local_blocks(part), panels)
        blocks = panels.distribute(jnp.split(rows, slots))
        is_positive = jnp.bool_(True)
        for k in range(panels.count):
            blocks, diagonal = _cholesky_step(op, blocks, panels, k)
            is_positive &= ~jnp.isnan(diagonal).any()
        made = jnp.concatenate(panels.collect(blocks))[:, :n]
        below = jnp.arange(n) <= _first(panels) + jnp.arange(len(made))[:, None]
        made = jnp.where(below, jnp.where(is_positive, made, jnp.nan), 0).astype(made.dtype)
        return [as_storage(made, spec.placement.per_device)]

    (out,) = b.run(kernel, [x], [spec.with_oob(None)], made)
    return b.relayout(out, target_layout(b, spec.layout, value, ()))


def _first(panels: Panels) -> Any:
    """Return the first row or column of this device's consecutive blocks."""
    return index_of(panels.axes) * (panels.slots * panels.width)


def _padded_rows(rows: jax.Array, panels: Panels) -> jax.Array:
    """Return a device's rows, padded to whole blocks with rows of the identity matrix."""
    n = panels.extent
    wide = jnp.pad(rows, ((0, 0), (0, panels.count * panels.width - n)))
    at = (_first(panels) + jnp.arange(len(rows)))[:, None]
    return jnp.where(at < n, wide, (at == jnp.arange(wide.shape[1])).astype(rows.dtype))


def _cholesky_step(
    op: Op, blocks: list[jax.Array], panels: Panels, k: int
) -> tuple[list[jax.Array], jax.Array]:
    """Factor panel `k`; return the updated blocks of rows and the diagonal of the factor."""
    width, devices, count = panels.width, panels.devices, panels.count
    first, here = k // devices, index_of(panels.axes)
    own = jnp.stack([block[:, k * width : (k + 1) * width] for block in blocks[first:]])
    # Sorted by block: by slot, then by device.
    column = all_gather(own[None], panels.axes, 0).swapaxes(0, 1).reshape(-1, width)
    column = column[(k - first * devices) * width :][: (count - k) * width]
    (factor,) = op.bind(column[:width])
    factor = jnp.tril(factor)
    below = lax.linalg.triangular_solve(
        factor, column[width:], lower=True, transpose_a=True, conjugate_a=True
    )
    before, behind = k - first * devices, panels.slots * devices - count
    whole = jnp.pad(jnp.concatenate([factor, below]), ((before * width, behind * width), (0, 0)))
    panel = whole.reshape(panels.slots - first, devices, width, width)
    panel = lax.dynamic_index_in_dim(panel, here, 1, keepdims=False)
    start, found = (k + 1) * width, blocks[:first]
    for slot, (block, left) in enumerate(zip(blocks[first:], panel, strict=True), first):
        end = max(min((slot + 1) * devices, count) * width, start)  # of the lower triangle
        rest = block[:, start:end] - left @ below[: end - start].conj().T
        parts = [block[:, : k * width], left, rest, block[:, end:]]
        found.append(jnp.concatenate(parts, 1))
    return found, jnp.diagonal(factor)


def _cholesky_flops(panels: Panels, k: int) -> float:
    """Return the flops per device for panel `k`: the panel itself and the update of its blocks."""
    width, devices = panels.width, panels.devices
    found = width**3 / 3 + (panels.count - k - 1) * width**3
    for slot in range(k // devices, panels.slots):
        end = min((slot + 1) * devices, panels.count)
        found += 2 * width**3 * max(end - k - 1, 0)
    return found


def _note(panels: Panels, what: str) -> str:
    return f"{panels.count} panels of {panels.width} {what}"


# -- LU --------------------------------------------------------------------------------------------


def lu(b: Builder, op: Op, value: Value) -> Any:
    """Rule for an LU factorization of one matrix with partial pivoting.

    None if it takes less time replicated, and for batches.
    """
    if value.ndim != 2 or value.layout is None:
        return None
    (m, n), r = value.shape, min(value.shape)
    whole = b.env.machine.seconds(flops=2 * m * n * r - (m + n) * r**2 + 2 * r**3 / 3)
    return by_slots(b, op, _lu, whole, value)


def _lu(b: Builder, op: Op, value: Value, slots: int) -> Any:
    if (found := in_panels(b, value, 1, slots)) is None:
        return None
    x, panels = found
    spec, (m, n), size = as_spec(x), value.shape, value.dtype.itemsize
    width, steps = panels.width, -(-min(m, n) // panels.width)
    made = panels.collectives(b.collectives(), m * width * size)
    flops = 0.0
    for k in range(steps):
        wide, tall = _panel_size(panels, m, k)
        made.all_reduce(panels.axes, tall * wide * size)
        right = (slots - k // panels.devices) * width
        flops += tall * wide**2 + right * wide * (2 * (tall - wide) + wide)
    panels.collectives(made, m * width * size)
    b.note, b.device_flops = _note(panels, "columns"), int(flops)
    b.computing = b.env.machine.seconds(flops=flops)

    def kernel(part: jax.Array) -> list[jax.Array]:
        columns = local_blocks(part)
        inside = _first(panels) + jnp.arange(columns.shape[1]) < n
        blocks = panels.distribute(jnp.split(jnp.where(inside, columns, 0), slots, axis=1))
        pivots = []
        for k in range(steps):
            blocks, own = _lu_step(op, blocks, panels, k)
            pivots.append(own)
        every = jnp.concatenate(pivots)
        order = lax.linalg.lu_pivots_to_permutation(every, m)
        made = jnp.concatenate(panels.collect(blocks), 1)
        return [as_storage(made, spec.placement.per_device), every, order]

    rest = [Replicated(aval.shape, aval.dtype) for aval in op.outs[1:]]
    out, pivots, order = b.run(kernel, [x], [spec.with_oob(None), *rest], made)
    target = target_layout(b, spec.layout, value, ())
    return [b.relayout(out, target), *(b.as_sharded(y, like=value) for y in (pivots, order))]


def _panel_size(panels: Panels, m: int, k: int) -> tuple[int, int]:
    """Return the columns of panel `k` that are factored, and the rows from its diagonal on."""
    top = k * panels.width
    return min(panels.width, min(m, panels.extent) - top), m - top


def _lu_step(
    op: Op, blocks: list[jax.Array], panels: Panels, k: int
) -> tuple[list[jax.Array], jax.Array]:
    """Factor panel `k`; return the updated blocks of columns and the panel's pivots."""
    first, owner = divmod(k, panels.devices)
    here, top = index_of(panels.axes), k * panels.width
    wide, _ = _panel_size(panels, len(blocks[0]), k)
    own = jnp.where(here == owner, blocks[first][top:, :wide], 0)
    factors, pivots, order = op.bind(lax.psum(own, panels.axes))
    found = []
    for slot, block in enumerate(blocks):
        above, rows = block[:top], block[top:][order]
        if slot >= first:
            right = lax.linalg.triangular_solve(
                factors[:wide], rows[:wide], left_side=True, lower=True, unit_diagonal=True
            )
            after = jnp.concatenate([right, rows[wide:] - factors[wide:] @ right])
            if slot == first:
                factored = jnp.concatenate([factors, after[:, wide:]], 1)
                after = jnp.where(here == owner, factored, jnp.where(here > owner, after, rows))
            rows = after
        found.append(jnp.concatenate([above, rows]))
    return found, pivots + top
