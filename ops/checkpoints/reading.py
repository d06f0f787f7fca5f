"""Arrays of a checkpoint onto devices, of which each gets what it is to hold and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Sharding
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import Part, slices_of, volume_of
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import box_of, filled_parts
from gridlayout.ops.checkpoints.record import Recorded
from gridlayout.ops.checkpoints.stored import Stored
from gridlayout.sharding.device_grid import DeviceGrid

Add = Callable[[int], object]


def restored(
    stored: Stored | None,
    layout: Layout,
    device: DeviceGrid,
    record: Recorded | None,
    add: Add = lambda size: None,
) -> GridArray:
    """A `GridArray` of a saved array in any layout of its shape and dtype, on any devices.

    stored: None of an array without elements. add: is told of the bytes of each part.
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
            part.fill(packed, stored.read)
        add(sum(map(volume_of, part.boxes)) * layout.dtype.itemsize)

    with device.active():
        return placed(filled_parts(fill, layout, device), layout, device)


def _check_same(stored: Stored | None, saved: Layout | None, layout: Layout) -> None:
    found = saved if stored is None else stored
    assert found is not None
    if found.shape != layout.shape:
        raise LayoutError(
            f"{layout!r} is for shape {layout.shape}, and the checkpoint has {found.shape}"
        )
    if found.dtype != layout.dtype:
        raise LayoutError(
            f"{layout!r} is for {layout.dtype.name}, and the checkpoint has {found.dtype.name}: "
            "restore it so, layout.with_dtype(dtype), and convert it on the grid"
        )


def _copy(stored: Stored, part: Part, packed: NDArray[Any]) -> None:
    """A part of a storage in the layout that it was saved in; idle slots stay as they are."""
    layout = part.layout
    whole = layout.physical_shape[: layout.core_rank]
    spans = tuple(
        (first, min(first + count, n))
        for first, count, n in zip(part.first, part.count, whole, strict=True)
    )
    if all(low < high for low, high in spans):
        packed[tuple(slice(0, high - low) for low, high in spans)] = stored.region(slices_of(spans))


def sharded(stored: Stored, sharding: Sharding, dtype: Any = None) -> jax.Array:
    """A logical `jax.Array` of a saved array, each device reading its shard."""
    known: dict[Any, NDArray[Any]] = {}

    def read(index: Any) -> NDArray[Any]:
        box = box_of(index or (), stored.shape)
        if box not in known:
            known[box] = np.asarray(stored.read(box), dtype)
        return known[box]

    return jax.make_array_from_callback(stored.shape, sharding, read)
