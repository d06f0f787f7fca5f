"""Reading saved arrays onto devices: each process reads only the parts that its devices hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Sharding
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import Part, slices_of, volume_of
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import box_of, filled_parts
from gridlayout.ops.checkpoints.record import LayoutRecord
from gridlayout.ops.checkpoints.stored import StoredArray
from gridlayout.sharding.device_grid import DeviceGrid

Add = Callable[[int], object]


def restore_array(
    stored: StoredArray | None,
    layout: Layout,
    device: DeviceGrid,
    record: LayoutRecord | None,
    add: Add = lambda size: None,
) -> GridArray:
    """Read a saved array as a `GridArray` in any layout of its shape and dtype, on any devices.

    stored: None for an array without elements. record: the layout that it was saved in, if any.
    add: a function called with the bytes of each part that was read.
    """
    device.check_has_devices("restoring")
    layout.check_invertible()
    saved = None if record is None else record.layout
    _check_same(stored, saved, layout)
    is_same = saved is not None and saved.with_oob(None) == layout.with_oob(None)
    is_same = is_same and (layout.oob is None or repr(saved.oob) == repr(layout.oob))  # type: ignore[union-attr]

    def fill(part: Part, packed: NDArray[Any]) -> None:
        if stored is None:
            return
        if is_same:
            _copy(stored, part, packed)
        else:
            part.fill(packed, stored.read, stored.copy)
        add(sum(map(volume_of, part.boxes)) * layout.dtype.itemsize)

    with device.active():
        return placed(filled_parts(fill, layout, device), layout, device)


def _check_same(stored: StoredArray | None, saved: Layout | None, layout: Layout) -> None:
    found = saved if stored is None else stored
    if found is None:  # an array without elements or layout, which `gl.restore` has checked
        return
    if found.shape != layout.shape:
        raise LayoutError(
            f"{layout!r} is for shape {layout.shape}, but the saved array has shape {found.shape}: "
            "give a layout of that shape"
        )
    if found.dtype != layout.dtype:
        raise LayoutError(
            f"{layout!r} is for {layout.dtype.name}, but the saved array is {found.dtype.name}: "
            "restore that, layout.with_dtype(dtype), and convert it on the grid"
        )


def _copy(stored: StoredArray, part: Part, packed: NDArray[Any]) -> None:
    """Copy a part of a storage from the same layout to `packed`; idle slots stay unchanged."""
    layout = part.layout
    whole = layout.physical_shape[: layout.core_rank]
    spans = tuple(
        (first, min(first + count, n))
        for first, count, n in zip(part.first, part.count, whole, strict=True)
    )
    if all(low < high for low, high in spans):
        packed[tuple(slice(0, high - low) for low, high in spans)] = stored.region(slices_of(spans))


def restore_sharded(stored: StoredArray, sharding: Sharding) -> jax.Array:
    """Read a saved array as a logical `jax.Array`; each shard is read separately."""
    known: dict[Any, NDArray[Any]] = {}

    def read(index: Any) -> NDArray[Any]:
        box = box_of(index or (), stored.shape)
        if box not in known:
            known[box] = stored.read(box)
        return known[box]

    return jax.make_array_from_callback(stored.shape, sharding, read)
