"""`relayout`: the same logical tensor in another layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.errors import LayoutError
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops.grid_array import GridArray, place
from gridlayout.sharding.device_grid import DeviceGrid


def relayout(x: GridArray, layout: Layout) -> GridArray:
    """`x` in another layout of the same logical shape and dtype, on the same devices.

    Nothing moves when both put every element at the same physical index. Asking for a known `oob`
    writes it to the padding. `LayoutError` for another shape or dtype.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put([1, 2, 3], GridLayout((3,), "int32", grid=(3,)), DeviceGrid((1,)))
    >>> relayout(x, GridLayout((3,), "int32", grid=(1,))).physical.tolist()
    [[1, 2, 3]]
    """
    if not isinstance(x, GridArray):
        raise LayoutError(f"relayout takes a GridArray, not {type(x).__name__}; gl.put makes one")
    if not isinstance(layout, Layout):
        raise LayoutError(f"relayout to {type(layout).__name__}: give a gl.Layout")
    if layout.shape != x.shape or layout.dtype != x.dtype:
        raise LayoutError(
            f"relayout keeps shape and dtype: {x.layout!r} can't become {layout!r}; "
            "gl.numpy.reshape or astype changes those"
        )
    with x.device.active():
        return GridArray(_relayout(x.storage, x.layout, layout, x.device), layout, x.device)


@partial(jax.jit, static_argnums=(1, 2, 3))
def _relayout(storage: jax.Array, old: Layout, new: Layout, device: DeviceGrid) -> jax.Array:
    x = GridArray(storage, old, device)
    if not old.same_physical(new):
        return move(x, new).storage
    if new.oob is None or repr(new.oob) == repr(old.oob):
        return storage
    return GridArray(storage, new.with_oob(None), device).with_oob(new.oob).storage


def move(
    x: GridArray, layout: Layout, change: Callable[[jax.Array], jax.Array] | None = None
) -> GridArray:
    """`x` unpacked, changed as a logical array (a reshape, a slice), and packed in `layout`."""
    layout.check_invertible()
    logical = x.to_logical()
    return lay_out(change(logical) if change else logical, layout, x.device)


def lay_out(logical: jax.Array, layout: Layout, device: DeviceGrid) -> GridArray:
    """A logical array in a layout, inside a traced program."""
    # Whole on every device first: how XLA splits what made it is not left to propagation, which
    # gets some operations wrong (an interior pad) and warns of others.
    logical = lax.with_sharding_constraint(logical, device.replicated)
    physical = packing.pack(logical, layout)
    return GridArray(place(physical, layout, device, packing.fill_value(layout)), layout, device)


def moved_bytes(a: Layout, b: Layout, device: DeviceGrid) -> int:
    """Bytes that change device from layout `a` to `b` of one tensor: at most, over all elements.

    Exact for tensors up to 2**18 elements; above, every element not sure to stay counts as moved.
    """
    if a.same_physical(b) or device.size == 1:
        return 0
    bits = a.dtype.itemsize * 8
    if a.size > 1 << 18:
        return a.size * bits // 8
    index = np.indices(a.shape).reshape(a.ndim, a.size)
    places = [_devices(layout, index, device) for layout in (a, b)]
    return int(np.count_nonzero((places[0] != places[1]).any(axis=0))) * bits // 8


def _devices(layout: Layout, index: Any, device: DeviceGrid) -> Any:
    core = layout.index_map(*index)[: layout.core_rank]
    where = device.core_map(layout.core_shape)(*core)[: len(device.shape)]
    return np.stack([np.broadcast_to(w, index.shape[1:]) for w in where])
