"""Masks: which storage positions hold a logical element. Computed on the device from the inverse.

The mask is "physical -> logical is in bounds", part by part; idle slots are padding too. Small
masks are combined late, so an elementwise select broadcasts them and nothing big is built.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine import AffineMap
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.padding import Part, parts
from gridlayout.sharding.device_grid import DeviceGrid


def padded_parts(
    layout: Layout, device: DeviceGrid, along: Collection[int] | None
) -> tuple[Part, ...]:
    """The parts of a layout that have padding or idle slots.

    along: only parts that touch one of these physical dims; None is all of them.
    """
    return _padded_parts(layout.with_oob(None), device, None if along is None else tuple(along))


@lru_cache(maxsize=4096)
def _padded_parts(
    layout: Layout, device: DeviceGrid, along: tuple[int, ...] | None
) -> tuple[Part, ...]:
    storage = device.storage_shape(layout)
    found = []
    for part in parts(layout):
        if along is not None and not set(part.physical) & set(along):
            continue
        logical = prod(layout.shape[d] for d in part.logical)
        if logical != prod(storage[k] for k in part.physical):
            found.append(part)
    return tuple(found)


def has_padding(layout: Layout, device: DeviceGrid, along: Collection[int] | None = None) -> bool:
    """Whether any storage position is padding; see `padded_parts`."""
    return bool(padded_parts(layout, device, along))


def valid_mask(layout: Layout, device: DeviceGrid, along: Collection[int] | None = None) -> Any:
    """A bool array that broadcasts to the storage shape: True where there is a logical element.

    along: look only at padding in parts that touch these physical dims.
    """
    storage = device.storage_shape(layout)
    padded = padded_parts(layout, device, along)
    mask = jnp.ones((1,) * len(storage), bool)
    if not padded:
        return mask
    if layout.is_scatter or layout.size == 0:
        return _scattered(layout, device)
    index = [
        lax.broadcasted_iota(jnp.int32, tuple(n if k == d else 1 for k, n in enumerate(storage)), d)
        for d in range(len(storage))
    ]
    wanted = {k for part in padded for k in part.physical}
    for k in range(layout.core_rank):
        if k in wanted and storage[k] != layout.physical_shape[k]:
            mask = mask & (index[k] < layout.physical_shape[k])
    # A physical dim that no logical dim feeds is valid at one position only; the bounds of the
    # inverse cover these as well.
    constraints = layout.inverse.domain.constraints
    exprs = AffineMap(len(storage), tuple(expr for expr, _ in constraints))
    needed = [k for k, dims in enumerate(exprs.used_dims()) if dims & wanted]
    values = AffineMap(len(storage), tuple(exprs.results[k] for k in needed))(*index)
    for k, value in zip(needed, values, strict=True):
        mask = mask & ((value == 0) if constraints[k][1] else (value >= 0))
    return mask


def _scattered(layout: Layout, device: DeviceGrid) -> jax.Array:
    """The whole mask, for maps without a closed inverse: scatter True to every image."""
    hit = packing.run_pack(jnp.ones(layout.shape, bool), layout.with_dtype(bool), "program")
    storage = device.storage_shape(layout)
    grow = [(0, n - p, 0) for n, p in zip(storage, layout.physical_shape, strict=True)]
    return lax.pad(hit, jnp.zeros((), bool), grow)


def fill_padding(
    storage: jax.Array,
    layout: Layout,
    device: DeviceGrid,
    value: Any,
    along: Collection[int] | None = None,
) -> jax.Array:
    """The storage with its padding set to `value`: no operation at all where there is none."""
    if not has_padding(layout, device, along):
        return storage
    mask = valid_mask(layout, device, along)
    return jnp.where(mask, storage, jnp.asarray(value, storage.dtype))
