"""Storages written and read part by part on the host, without an array of the full size.

Devices whose memory is the host's (CPU devices) use the arrays that are packed here without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding
from numpy.typing import NDArray

from gridlayout.arguments import as_int, shown
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.intervals import Box
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import Part, Read, intersection, sizes_of, slices_of, volume_of
from gridlayout.layouts.program import host_fill, pack_host
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.processes.agreement import is_local

# The alignment for which XLA's CPU devices use an array without a copy.
_ALIGNMENT = 64


@cached(size=5 << 10)
def local_parts(layout: Layout, device: DeviceGrid) -> tuple[tuple[Part, tuple[Any, ...]], ...]:
    """Return the parts of this process, each once, with the devices that hold it."""
    count = device.placement(layout).per_device
    firsts = device.first_cores(layout).tolist()
    found: dict[Part, list[Any]] = {}
    for each, first in zip(device.mesh.devices.flat, firsts, strict=True):
        if each.process_index == jax.process_index():
            found.setdefault(Part(layout, tuple(first), count), []).append(each)
    return tuple((part, tuple(devices)) for part, devices in found.items())


def boxes_here(layout: Layout, device: DeviceGrid) -> list[Box]:
    """Return the boxes that the parts of this process hold, each once, ordered by corner."""
    return sorted({box for part, _ in local_parts(layout, device) for box in part.boxes})


def aligned(shape: Sequence[int], fill: NDArray[Any]) -> NDArray[Any]:
    """Return an array filled with a value, which CPU devices can use without a copy."""
    size = prod(shape) * fill.dtype.itemsize
    raw = np.zeros(size + _ALIGNMENT, np.uint8)  # pages that are never written take no memory
    start = -raw.ctypes.data % _ALIGNMENT
    found = raw[start : start + size].view(fill.dtype).reshape(shape)
    if fill.tobytes().strip(b"\0"):
        found[...] = fill
    return found


def stored(read: Read, layout: Layout, device: DeviceGrid) -> jax.Array:
    """Return the storage of a logical array whose boxes `read` returns."""
    return stored_parts(lambda part: read, layout, device)


def is_small(array: Any, layout: Layout, device: DeviceGrid) -> bool:
    """Return whether `stored_small` takes an array: a small one in the host's memory."""
    if not is_local(device) or prod(device.storage_shape(layout)) > _most_elements(layout.dtype):
        return False
    if isinstance(array, np.ndarray):
        return True
    # On one device, the shards of an array may be those of the layout, which need no copy.
    return device.size > 1 and is_host_memory(array, device) and len(array.devices()) == 1


@cached
def _most_elements(dtype: np.dtype[Any]) -> int:
    return LIMITS.small_array_bytes // max(dtype.itemsize, 1)


def stored_small(
    arrays: Sequence[Any], layouts: Sequence[Layout], device: DeviceGrid
) -> list[jax.Array]:
    """Return the storages of small logical arrays; those with one sharding are sent together."""
    groups: dict[Any, dict[int, NDArray[Any]]] = {}
    for number, (array, layout) in enumerate(zip(arrays, layouts, strict=True)):
        packed = groups.setdefault((layout.core_shape, layout.memory), {})
        packed[number] = _packed(np.asarray(array), layout, device)
    found: dict[int, jax.Array] = {}
    for packed in groups.values():
        sharding = device.sharding(layouts[next(iter(packed))])
        found.update(zip(packed, jax.device_put(list(packed.values()), sharding), strict=True))
    return [found[number] for number in range(len(arrays))]


def _packed(array: NDArray[Any], layout: Layout, device: DeviceGrid) -> NDArray[Any]:
    """Return the storage of an array in memory of its own, as JAX may keep the memory."""
    found = aligned(device.storage_shape(layout), host_fill(layout))
    found[tuple(map(slice, layout.physical_shape))] = pack_host(array, layout)
    return found


def stored_parts(reader: Callable[[Part], Read], layout: Layout, device: DeviceGrid) -> jax.Array:
    """Return the storage of a logical array, read part by part; reader: the read of a part."""
    return filled_parts(lambda part, packed: part.fill(packed, reader(part)), layout, device)


def filled_parts(
    fill_part: Callable[[Part, NDArray[Any]], object], layout: Layout, device: DeviceGrid
) -> jax.Array:
    """Return the storage of parts that `fill_part` writes into arrays of the padding's value."""
    kind, fill = device.memory_kind(layout), host_fill(layout)
    placed, idle = [], None
    for part, devices in local_parts(layout, device):
        if part.boxes or idle is None:
            packed = aligned((*part.count, *layout.local_shape), fill)
            fill_part(part, packed)
            idle = idle if part.boxes else packed
        else:
            packed = idle
        for each in devices:
            found = jax.device_put(packed, SingleDeviceSharding(each, memory_kind=kind))
            placed.append(found if device.platform == "cpu" else found.block_until_ready())
    # Processes without a part need the dtype.
    return jax.make_array_from_single_device_arrays(
        device.storage_shape(layout), device.sharding(layout), placed, dtype=layout.dtype
    )


class Held:
    """The parts of a laid-out array that this process holds, read box by box."""

    def __init__(self, storage: jax.Array, layout: Layout, device: DeviceGrid) -> None:
        at = {shard.device: shard.data for shard in storage.addressable_shards}
        self.layout = layout
        self.parts = [(part, at[devices[0]]) for part, devices in local_parts(layout, device)]

    def read(self, box: Box) -> NDArray[Any]:
        """Return a box as a NumPy array; `LayoutError` where this process lacks some of it."""
        out = aligned(sizes_of(box), np.zeros((), self.layout.dtype))
        found = sum(
            part.copy(np.asarray(data), box, out)
            for part, data in self.parts
            if any(intersection(own, box) is not None for own in part.boxes)
        )
        if found != volume_of(box):
            raise LayoutError(
                f"process {jax.process_index()} holds {found} of the {volume_of(box)} elements of "
                f"the box {box_text(box)}: x.local_boxes() lists the boxes that are here; "
                "x.to_logical() gives the full array to every device"
            )
        return out


class JoinedBoxes:
    """Arrays of boxes, read as one array; a box across several of them is joined."""

    def __init__(self, pieces: Iterable[tuple[Box, Any]]) -> None:
        self.pieces = list(pieces)

    def read(self, box: Box) -> NDArray[Any]:
        """Return a box as an array; `LayoutError` where the pieces do not cover it."""
        out: Any = None
        seen: Any = None
        for own, array in self.pieces:
            shared = intersection(own, box)
            if shared == box:
                return np.asarray(array[slices_of(box, own)])
            if shared is not None:
                if out is None:
                    out, seen = np.empty(sizes_of(box), array.dtype), np.zeros(sizes_of(box), bool)
                where = slices_of(shared, box)
                out[where], seen[where] = array[slices_of(shared, own)], True
        if out is None or not seen.all():
            missing = volume_of(box) - (0 if seen is None else int(seen.sum()))
            raise LayoutError(
                f"the pieces lack {missing} of the {volume_of(box)} elements of the box "
                f"{box_text(box)}, which cores of process {jax.process_index()} own: "
                "x.local_boxes() lists the boxes to give"
            )
        return out


def shards_of(array: jax.Array) -> JoinedBoxes:
    """Return the part of a logical array that this process holds, read without a copy."""
    found: dict[Box, Any] = {}
    for shard in array.addressable_shards:
        found.setdefault(box_of(shard.index, array.shape), shard.data)
    return JoinedBoxes((box, np.asarray(data)) for box, data in found.items())


def box_of(index: Sequence[slice], shape: Sequence[int]) -> Box:
    """Return a tuple of slices of an array of a shape as a box."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def as_box(box: Any, shape: Sequence[int]) -> Box:
    """Return a tuple of slices that a user gives as a box; `LayoutError` for any other value.

    >>> as_box((slice(0, 4), slice(None)), (6, 8))
    ((0, 4), (0, 8))
    """
    if not isinstance(box, tuple) or len(box) != len(shape):
        raise LayoutError(
            f"the box {shown(box)} must be a tuple of {len(shape)} slices, one per dim"
        )
    found = []
    for each, n in zip(box, shape, strict=True):
        if not isinstance(each, slice) or each.step not in (None, 1):
            raise LayoutError(f"{each!r} in the box must be a slice(start, stop) without a step")
        low = 0 if each.start is None else as_int(each.start, "a box's start,")
        high = n if each.stop is None else as_int(each.stop, "a box's stop,")
        if not 0 <= low <= high <= n:
            raise LayoutError(f"{each!r} in the box is not inside a dim of {n} elements")
        found.append((low, high))
    return tuple(found)


def box_text(box: Box) -> str:
    """Return a box as text for messages.

    >>> box_text(((0, 4), (6, 8)))
    '[0:4, 6:8]'
    """
    return f"[{', '.join(f'{low}:{high}' for low, high in box)}]"


def is_host_memory(array: Any, device: DeviceGrid) -> bool:
    """Return whether the host can read and write all of an array in place."""
    return (
        isinstance(array, jax.Array)
        and not isinstance(array, jax.core.Tracer)
        and array.is_fully_addressable
        and device.platform == "cpu"
        and all(each.platform == "cpu" for each in array.devices())
    )
