"""Storages as JAX's checks of numbers may see them: padding holds no number that JAX reports.

A function that JAX traces itself returns storages by `GridType.lower_val`, which changes their
padding too. The lowered type states the checks that are on, because JAX's caches do not.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.storage import batched
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.padding import fill_padding, has_padding
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.number_checks import NumberChecks, number_checks

# What padding gets instead of NaN or infinity: a number that every type has.
_INSTEAD = 1


def checked(storage: Any, layout: Layout, device: DeviceGrid, what: str) -> Any:
    """Return the storage of a result of `what`, with padding that JAX's checks do not report.

    FloatingPointError if an element is a number that JAX reports. A traced storage is returned as
    it is: JAX checks what its program returns (`GridType.lower_val`).
    """
    checks = number_checks()
    if checks is None or isinstance(storage, jax.core.Tracer):
        return storage
    storage = numbered(storage, layout, device, checks)
    if name := checks.name_in(storage):
        raise FloatingPointError(f"invalid value ({name}) encountered in {what}")
    return storage


def with_numbered_cotangent(
    storage: Any, layout: Layout, device: DeviceGrid, checks: NumberChecks
) -> Any:
    """Return the storage, whose cotangent gets another number in padding that JAX would report.

    JAX checks cotangents in the backward pass, in a program of its own.
    """
    return jax.custom_derivatives.linear_call(
        lambda _, x: x, lambda _, x: numbered(x, layout, device, checks), (), storage
    )


def numbered(storage: Any, layout: Layout, device: DeviceGrid, checks: NumberChecks) -> Any:
    """Return a storage with another number in padding that JAX would report."""
    placement = device.placement(layout)
    if (
        not (storage.size and jnp.issubdtype(layout.dtype, np.inexact))
        or (layout.oob is not None and numbered_layout(layout, checks) is layout)
        or not has_padding(layout, placement)
    ):
        return storage
    with device.active():
        found = _numbered(in_device_memory(storage, layout, device), layout, device, checks)
        return in_layout_memory(found, layout, device)


def numbered_layout(layout: Layout, checks: NumberChecks) -> Layout:
    """Return the layout of a storage that `numbered` returns, with its known padding value."""
    if layout.oob is None or checks.name_in(np.asarray(layout.oob)) is None:
        return layout
    return layout.with_oob(_INSTEAD)


@jitted(1, 2, 3)
def _numbered(storage: jax.Array, layout: Layout, device: DeviceGrid, checks: NumberChecks) -> Any:
    placement = device.placement(layout)
    batch = storage.ndim - len(layout.physical_shape)

    def filled(part: jax.Array) -> jax.Array:
        numbers = lax.select(checks.reports(part), lax.full_like(part, _INSTEAD), part)
        return fill_padding(part, layout, placement, numbers)

    spec = device.partitioned(layout, batch).spec
    return shard_mapped(batched(filled, batch), device.fine, spec, spec)(storage)
