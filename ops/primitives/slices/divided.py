"""How indices and slices are divided among devices, along the dims of the indices and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, block_spec, with_shards
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import has_padding, valid_mask
from gridlayout.ops.primitives.slices.slice_dims import SliceDims

# How a dim is divided: its cores, their mesh axes, and how many positions each has, if stated.
Divided = tuple[int, Axes, int | None]


def divided_spec(b: Builder, shape: Shape, dtype: Any, cores: dict[int, Divided]) -> Sharded:
    """Return the blocks of an array. cores: how each divided dim is divided."""
    dims = [cores.get(d, (1, (), None)) for d in range(len(shape))]
    placed = b.device.placed(tuple(n for n, *_ in dims), [axes for _, axes, _ in dims])
    return with_shards(block_spec(shape, dtype, placed), [shard for *_, shard in dims])


def cores_of(spec: Sharded, dims: Sequence[int]) -> dict[int, Divided]:
    """Return how those of some dims of blocks are divided that are."""
    placed, own = spec.placement, spec.layout
    assert isinstance(own, GridLayout)
    rows = list(zip(placed.grid, placed.axes, own.stated_shard, strict=True))
    return {d: rows[d] for d in dims if placed.axes[d]}


def cores_of_slices(spec: Sharded, s: SliceDims) -> dict[int, Divided]:
    """Return how slices are divided along the dims that they keep of an array."""
    kept = [d for d in s.dim_map if d not in s.axes]
    return {s.dim_map[d]: each for d, each in cores_of(spec, kept).items()}


def like_rows(
    b: Builder, indices: Value, cores: dict[int, Divided], rows: Sequence[int]
) -> Sharded:
    """Return the blocks of indices that are divided as slices are along their dims `rows`."""
    there = {j: cores[k] for j, k in enumerate(rows) if k in cores}
    return divided_spec(b, indices.shape, indices.dtype, there)


def padded_rows(
    b: Builder, indices: Value, updates: Value, cores: dict[int, Divided], rows: Sequence[int]
) -> tuple[Sharded, Sharded] | None:
    """Return the specs of all indices and updates in the blocks of devices, with their padding.

    To drop it takes a pass over the updates. None if there is none, or if it would not come last.
    """
    starts, slices = as_blocks(indices.spec, b.device), as_blocks(updates.spec, b.device)
    if starts is None or slices is None:
        return None
    of_indices, of_updates = cores_of(starts, range(len(rows))), cores_of(slices, rows)
    if [*of_updates] != rows[:1] or {rows[j]: one for j, one in of_indices.items()} != of_updates:
        return None
    if rows[0] != 0 or not has_padding(starts.layout, starts.placement):
        return None

    n, _, shard = of_updates[0]
    all_here: dict[int, Divided] = {0: (n, (), shard)}
    at = divided_spec(b, indices.shape, indices.dtype, all_here)
    return at, divided_spec(b, updates.shape, updates.dtype, {**cores, **all_here})


def is_update(indices: Sharded) -> jax.Array:
    """Return a mask of a device's indices that is false where they are padding."""
    mask = valid_mask(indices.layout, indices.placement)
    whole = jnp.broadcast_to(mask, indices.local_shape).reshape(block_shape(indices))
    return whole[..., 0]
