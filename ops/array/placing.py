"""`put` and `from_physical`: make a `GridArray` from data, of which each device gets its part."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import jax
import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import as_flag
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.layouts.parts import slices_of
from gridlayout.ops.array.grid_array import GridArray, has_no_data
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import is_small, stored, stored_small
from gridlayout.ops.array.logical import laid_out
from gridlayout.ops.array.storage import pack_and_place, place
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.spaces import in_layout_memory
from gridlayout.public import public
from gridlayout.sharding.device_argument import as_device
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.agreement import joint_call, layout_lines, local_data
from gridlayout.sharding.processes.elements import Elements
from gridlayout.sharding.processes.joint import JointCall
from gridlayout.text import parse


def put(array: Any, layout: Layout, device: DeviceGrid, *, check: bool | None = None) -> GridArray:
    """Return `gl.put` of one array: each device gets the shards of its own cores only."""
    device = as_device(device)
    check_layout(layout)
    check = check if check is None else as_flag(check, "check")
    if isinstance(array, jax.ShapeDtypeStruct):
        layout.check_invertible()
        if (array.shape, array.dtype) != (layout.shape, layout.dtype):
            raise LayoutError(f"{array} has another shape or dtype than {layout!r}")
        return described(layout, device)
    device.check_has_devices("gl.put")
    with device.active(), joint_call("gl.put", device, array) as call:
        layout.check_invertible()
        array = _source(array, layout)
        _agree(call, array, layout, check)
        return call.ran(placed(_put(array, layout, device), layout, device))


def put_small(
    arrays: Sequence[Any], layouts: Sequence[Layout], device: DeviceGrid
) -> list[GridArray]:
    """Return `gl.put` of checked arrays for which `is_small` is true, sent together."""
    with device.active():
        sources = [_source(x, layout) for x, layout in zip(arrays, layouts, strict=True)]
        storages = stored_small(sources, layouts, device)
        return list(map(placed, storages, layouts, repeat(device)))


def put_replicated(x: Any, device: DeviceGrid, what: str) -> Any:
    """Return an array that is not laid out on every device. what: the call, as messages name it."""
    with device.active(), joint_call(what, device, x) as call:
        x = packing.with_auto_axes(x, device)
        kind = f"array: {x.dtype.name}[{','.join(map(str, x.shape))}], not laid out"
        call.agree(kind, lambda: [kind], data=lambda: local_data([x]))
        return call.ran(device.replicate(x))


def described(layout: Layout, device: DeviceGrid) -> GridArray:
    """Return a `GridArray` without data: its storage is a `jax.ShapeDtypeStruct`."""
    sharding = device.sharding(layout)
    storage: Any = jax.ShapeDtypeStruct(
        device.storage_shape(layout), layout.dtype, sharding=sharding
    )
    return GridArray(storage, layout, device)


def _source(array: Any, layout: Layout) -> Any:
    """Return the checked operand of `put`: a `jax.Array`, or else a NumPy array."""
    if not isinstance(array, np.ndarray):
        if isinstance(array, GridArray):
            raise LayoutError(
                "put takes a logical array; gl.relayout moves a GridArray to a layout"
            )
        _check_no_tree(array)
        if isinstance(array, jax.Array):
            return packing.as_logical(array, layout, drops_explicit=False)
    array = host_array(array, layout.dtype)
    if array.shape != layout.shape:
        raise LayoutError(f"the array has shape {array.shape}, but {layout!r} has {layout.shape}")
    return array


def host_array(array: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a user's data as a NumPy array of `dtype`; data with a dtype must have that one."""
    if not hasattr(array, "dtype"):
        array = dtypes.untyped(array, dtype)
    array = np.asarray(array)
    if array.dtype != dtype:
        # NumPy defaults to 64 bits; JAX reads those as 32 where x64 is off, and so does put.
        return np.asarray(packing.as_array(array, dtype))
    if dtype != jax.dtypes.canonicalize_dtype(dtype):
        packing.as_array(array[:0] if array.ndim else array, dtype)  # raises: needs jax_enable_x64
    return array


def _agree(call: JointCall, array: Any, layout: Layout, check: bool | None) -> None:
    """Check that all processes put the same: one jax.Array over all, or equal data in each."""
    if isinstance(array, jax.core.Tracer):
        return
    is_whole = isinstance(array, jax.Array) and not array.is_fully_addressable
    source = "a jax.Array over processes" if is_whole else "data that each process has"
    compared = check is not False and not is_whole
    call.agree(
        (layout, source),
        lambda: [f"source: {source}", *layout_lines(("layout", layout))],
        data=(lambda: Elements(array, exact=check is True)) if compared else None,
    )


def _put(array: Any, layout: Layout, device: DeviceGrid) -> jax.Array:
    if is_small(array, layout, device):
        return stored_small([array], [layout], device)[0]
    if not isinstance(array, jax.Array):
        return stored(lambda box: array[slices_of(box)], layout, device)
    if not isinstance(array, jax.core.Tracer):
        if (found := laid_out(array, layout, device)) is not None:
            return found
        # It may be committed to other devices: copy it to this mesh first.
        array = device.replicate(array)
    return in_layout_memory(_pack_and_place(array, layout, device), layout, device)


_pack_and_place = jitted(1, 2)(pack_and_place)


@public
def from_physical(physical: Any, layout: Layout, device: DeviceGrid) -> GridArray:
    """Return data that was laid out elsewhere as a `GridArray`; its padding may hold anything.

    physical: an array of `layout.physical_shape` and `layout.dtype`. The result's layout is
    `layout` with an undef `oob`, because nothing is known about the padding.
    """
    device = as_device(device)
    check_layout(layout)
    device.check_has_devices("gl.from_physical")
    with device.active(), joint_call("gl.from_physical", device, physical) as call:
        physical = packing.as_array(physical, layout.dtype)
        if physical.shape != layout.physical_shape:
            raise LayoutError(
                f"the physical array has shape {physical.shape}, but {layout!r} has physical "
                f"shape {layout.physical_shape}"
            )
        _agree(call, physical, layout, None)
        layout = layout.with_oob(None)
        if not isinstance(physical, jax.core.Tracer):
            physical = device.replicate(physical)
        storage = in_layout_memory(_place(physical, layout, device), layout, device)
        return call.ran(placed(storage, layout, device))


_place = jitted(1, 2)(place)


def _check_no_tree(array: Any) -> None:
    """Raise `LayoutError` for dicts and other containers of arrays; nested lists are data."""
    if not isinstance(array, (list, tuple)) and not jax.tree_util.all_leaves([array]):
        raise LayoutError(
            f"put lays out one array, and a {type(array).__name__} holds several, or none: "
            "gl.put(tree, device, layouts) lays out each leaf of a tree"
        )


def _pickled(x: GridArray) -> Any:
    """Return a pickle's content: the layout's text, the device grid, and the logical array."""
    if has_no_data(x):
        return described, (x.layout, x.device)
    if x.storage.ndim != len(x.layout.physical_shape):
        raise LayoutError(f"{x!r} has batch dims, which a layout's text does not include")
    return _unpickled, (str(x.layout), x.device, np.asarray(x))


def _unpickled(text: str, device: DeviceGrid, array: Any) -> GridArray:
    return put(array, parse(text), device)


copyreg.pickle(GridArray, _pickled)
