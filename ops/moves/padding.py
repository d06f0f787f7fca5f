"""Masks of the padding in a device's part, and functions that set the padding to a value.

A position is padding where "physical -> logical is in bounds" is false. Idle slots are padding too.
Masks are computed for one group of dims at a time and combined late. They broadcast in a
select, so that no array of the full shape is built.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.affine.map import AffineMap
from gridlayout.caching import cached
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.padding import DimGroup, dim_groups
from gridlayout.ops.moves import packing
from gridlayout.sharding.collectives import index_of, slice_at
from gridlayout.sharding.meshes.placement import Placement

Dims = tuple[int, ...]


def has_padding(layout: Layout, placement: Placement, along: Collection[int] | None = None) -> bool:
    """Return whether any position is padding, idle slots included.

    along: look only at groups that have one of these physical dims; None is all.
    """
    return bool(padded_groups(layout, placement, along))


def padded_groups(
    layout: Layout, placement: Placement, along: Collection[int] | None = None
) -> tuple[DimGroup, ...]:
    """Return the groups of a layout's dims that have padding or idle slots; see `has_padding`."""
    chosen = None if along is None else tuple(along)
    return _padded_groups(layout.with_oob(None), placement.slots, chosen)


@cached
def _padded_groups(layout: Layout, slots: Dims, along: Dims | None) -> tuple[DimGroup, ...]:
    storage = (*slots, *layout.local_shape)
    found = []
    for group in dim_groups(layout):
        if along is not None and not set(group.physical) & set(along):
            continue
        logical = prod(layout.shape[d] for d in group.logical)
        if logical != prod(storage[k] for k in group.physical):
            found.append(group)
    return tuple(found)


def valid_mask(layout: Layout, placement: Placement, along: Collection[int] | None = None) -> Any:
    """Return a mask of this device's part that is False at padding; it broadcasts to the part.

    For use in `shard_map`. along: look only at padding in groups that have one of these physical
    dims.
    """
    local = (*placement.per_device, *layout.local_shape)
    padded = padded_groups(layout, placement, along)
    mask = jnp.ones((1,) * len(local), bool)
    if not padded:
        return mask
    if layout.is_scatter or layout.size == 0:
        return _scattered(layout, placement)
    index = positions(layout, placement)
    padded_dims = {k for group in padded for k in group.physical}
    for k in range(layout.core_rank):
        if k in padded_dims and placement.slots[k] != layout.physical_shape[k]:
            mask = _both(mask, lax.lt(index[k], lax.full_like(index[k], layout.physical_shape[k])))
    # A physical dim that no logical dim feeds is valid at one position only; the bounds of the
    # inverse cover these as well.
    constraints = layout.inverse_in_bounds.domain.constraints
    exprs = AffineMap(len(local), tuple(expr for expr, _ in constraints))
    none = lax.full((1,) * len(local), 0, np.int32)
    for (expr, is_equation), dims in zip(constraints, exprs.used_dims(), strict=True):
        if dims & padded_dims:  # a map's results have the common shape of what it is given
            given = (x if d in dims else none for d, x in enumerate(index))
            (value,) = AffineMap(len(local), (expr,))(*given)
            mask = _both(mask, (lax.eq if is_equation else lax.ge)(value, lax.full_like(value, 0)))
    return mask


# JAX retains a trace of each function of `jax.numpy` for each shape, as long as the process lives.
# So these use `lax`.
def _both(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return where both masks are true; they have one rank, and broadcast to each other."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    return lax.bitwise_and(*(_broadcast(x, shape) for x in (a, b)))


def _broadcast(x: jax.Array, shape: Dims) -> jax.Array:
    return x if x.shape == shape else lax.broadcast_in_dim(x, shape, range(x.ndim))


def positions(layout: Layout, placement: Placement, dtype: Any = jnp.int32) -> list[jax.Array]:
    """Return the physical index of each position of this device's part: one array per dim.

    The arrays broadcast to the part. For use in `shard_map`. The indices of idle slots are out of
    bounds.
    """
    local = (*placement.per_device, *layout.local_shape)
    index: list[Any] = []
    for d, n in enumerate(local):
        shape = tuple(n if k == d else 1 for k in range(len(local)))
        position: Any = lax.broadcasted_iota(dtype, shape, d)
        if d < layout.core_rank and placement.axes[d]:
            position += (index_of(placement.axes[d]) * placement.per_device[d]).astype(dtype)
        index.append(position)
    return index


def _scattered(layout: Layout, placement: Placement) -> jax.Array:
    """Return the full mask by scattering True to every image, for maps without a closed inverse."""
    hit = packing.run_pack(jnp.ones(layout.shape, bool), layout.with_dtype(bool), "program")
    for k, axes in enumerate(placement.axes):
        grow = [(0, placement.slots[k] - n if d == k else 0, 0) for d, n in enumerate(hit.shape)]
        hit = lax.pad(hit, jnp.zeros((), bool), grow)
        count = placement.per_device[k]
        hit = slice_at(hit, index_of(axes) * count, count, k)
    return hit


def fill_padding(
    part: jax.Array,
    layout: Layout,
    placement: Placement,
    value: Any,
    along: Collection[int] | None = None,
) -> jax.Array:
    """Return a device's part with its padding set to `value`; no operation where there is none.

    value: a number, or an array of the part's shape. along: see `has_padding`.
    """
    if not has_padding(layout, placement, along):
        return part
    mask = _broadcast(valid_mask(layout, placement, along), part.shape)
    filling = jnp.asarray(value, part.dtype)
    if filling.ndim == 0:
        filling = lax.broadcast(filling, part.shape)
    return lax.select(mask, part, filling)


@dataclass(frozen=True)
class Padding:
    """The padding of an array in a layout, with the number that it is set to.

    along: the physical dims along which it is set; None for all. Numbers are equal if they print
    the same, as 0.0 and -0.0 do not.
    """

    layout: Layout
    placement: Placement
    value: Any = field(compare=False)
    along: Dims | None = None
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.value))

    def fill(self, part: jax.Array) -> jax.Array:
        """Return a device's part with its padding set."""
        return fill_padding(part, self.layout, self.placement, self.value, self.along)
