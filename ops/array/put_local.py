"""`gl.put_local`: each process gives only the boxes that its own cores hold."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.layouts.intervals import Box
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.layouts.parts import Part, Read, sizes_of, slices_of, volume_of
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import (
    JoinedBoxes,
    as_box,
    box_text,
    boxes_here,
    local_parts,
    stored_parts,
)
from gridlayout.ops.array.placing import host_array
from gridlayout.ops.array.progress import ReportProgress, check_progress, is_function, reporting
from gridlayout.public import public
from gridlayout.sharding.device_argument import as_device
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.processes.agreement import joint_call, layout_lines


@public
def put_local(
    pieces: Any,
    layout: Layout,
    device: DeviceGrid,
    *,
    progress: ReportProgress | bool | None = None,
) -> GridArray:
    """Lay out and place an array of which each process gives only what its own cores hold.

    No process holds the full array: each part is packed, placed and freed before the next one is
    read. pieces is one of

    * a function `box -> array`, as for `jax.make_array_from_callback`; a box is a tuple of slices;
    * an array of the full shape that is read piece by piece: a `np.memmap`, the result of
      `gl.open_safetensors`, or anything with `shape`, `dtype` and slices;
    * the arrays of `x.local_boxes()`, in order; or (box, array) pairs or a mapping from boxes to
      arrays, of any boxes that together contain those of this process.

    `gl.put(jax.ShapeDtypeStruct(shape, dtype), layout, device).local_boxes()` lists the boxes of a
    process beforehand. Each box is read once, however many devices hold it. It contains exactly
    what cores own; a device whose cores divide joined dims has several boxes. Where a layout's
    cores divide no linear axes, the box is the bounding box, of which only what cores own is used.

    progress: a function that is called with the bytes placed, of how many, and the elapsed seconds.
    By default, on a terminal and with tqdm installed, a bar is shown for work that takes longer
    than 2 seconds; False for none.

    `LayoutError`, in every process: another shape or dtype, missing boxes, different layouts,
    different data for a box of which several processes hold a copy, and an error in one of the
    processes, which raises its own. Each process may take any time.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((4, 6), "int32", grid=(2, 1), collapse=[])
    >>> x = put_local(lambda box: np.arange(24).reshape(4, 6)[box], layout, DeviceGrid((1,)))
    >>> x, x.local((slice(1, 2), slice(0, 3))).tolist()
    (GridArray(int32[4,6], grid 2x1, on 1 devices), [[6, 7, 8]])
    """
    device = as_device(device)
    check_layout(layout)
    check_progress(progress)
    device.check_has_devices("gl.put_local")
    with device.active():
        lines = partial(layout_lines, ("layout", layout))
        with joint_call("gl.put_local", device) as call:
            layout.check_invertible()
            source = _Source(pieces, layout, device)
            call.agree(layout, lines)
        shown = reporting("gl.put_local", source.total, progress)
        with joint_call("gl.put_local", device, patient=True) as call, shown as source.add:
            storage = stored_parts(source.reader, layout, device)
            call.agree(layout, lines)
            if source.shared:
                call.compare_copies(*source.copies)
        return placed(storage, layout, device)


class _Source:
    """The source that the pieces of a process are read from, one part at a time."""

    def __init__(self, pieces: Any, layout: Layout, device: DeviceGrid) -> None:
        self.layout, self.device = layout, device
        boxes = [box for part, _ in local_parts(layout, device) for box in part.boxes]
        self.total = sum(map(volume_of, boxes)) * layout.dtype.itemsize
        self.add: Callable[[int], object] = lambda size: None
        self.digests: dict[tuple[int, ...], int] = {}
        self.shared = _shared(layout, device)
        self.give = self._giver(pieces)

    def _giver(self, pieces: Any) -> Read:
        """Return the function that returns the array of a box."""
        if is_function(pieces):
            return lambda box: self._checked(pieces(slices_of(box)), box)
        if all(hasattr(pieces, name) for name in ("shape", "dtype", "__getitem__")):
            if isinstance(pieces, GridArray) or tuple(pieces.shape) != self.layout.shape:
                raise LayoutError(
                    f"pieces of shape {tuple(pieces.shape)} are no array of {self.layout!r}: give "
                    f"one of shape {self.layout.shape}, or the arrays of x.local_boxes()"
                )
            return lambda box: self._checked(pieces[slices_of(box)], box)
        return JoinedBoxes(
            (box, self._checked(array, box)) for box, array in self._pairs(pieces)
        ).read

    def _pairs(self, pieces: Any) -> Iterator[tuple[Box, Any]]:
        if isinstance(pieces, Mapping):
            pieces = list(pieces.items())
        if not isinstance(pieces, Sequence) or isinstance(pieces, (str, bytes)):
            raise LayoutError(
                f"pieces {type(pieces).__name__} must be a function box -> array, an array of the "
                "whole shape, arrays in the order of x.local_boxes(), or (box, array) pairs"
            )
        if all(map(_is_pair, pieces)):
            for box, array in pieces:
                yield as_box(box, self.layout.shape), array
            return
        boxes = boxes_here(self.layout, self.device)
        if len(pieces) != len(boxes):
            raise LayoutError(
                f"{len(pieces)} pieces for the {len(boxes)} boxes of process "
                f"{jax.process_index()}: give one array per box of x.local_boxes(), in their order"
            )
        yield from zip(boxes, pieces, strict=True)

    def _checked(self, found: Any, box: Box) -> NDArray[Any]:
        try:
            array = host_array(found, self.layout.dtype)
        except LayoutError as error:
            raise LayoutError(f"the piece of the box {box_text(box)}: {error}") from None
        if array.shape != sizes_of(box):
            raise LayoutError(
                f"the piece of the box {box_text(box)} has shape {array.shape}, not "
                f"{sizes_of(box)}, that of the box"
            )
        return array

    def reader(self, part: Part) -> Read:
        """Return the read of a part's boxes, each of which is read from the source once."""
        found = [(box, self.give(box)) for box in part.boxes]
        if part.first in self.shared:
            digest = 0
            for _, array in found:
                digest = zlib.crc32(np.ascontiguousarray(array).view(np.uint8), digest)
            self.digests[part.first] = digest or 1
        self.add(sum(array.nbytes for _, array in found))
        return JoinedBoxes(found).read

    @property
    def copies(self) -> tuple[list[str], NDArray[np.uint32]]:
        """The parts of which several processes have copies, and digests of those that are here."""
        names = [f"the cores from {list(first)} on" for first in self.shared]
        return names, np.array([self.digests.get(first, 0) for first in self.shared], np.uint32)


def _is_pair(piece: Any) -> bool:
    return (
        isinstance(piece, tuple)
        and len(piece) == 2
        and isinstance(piece[0], tuple)
        and all(isinstance(each, slice) for each in piece[0])
    )


def _shared(layout: Layout, device: DeviceGrid) -> tuple[tuple[int, ...], ...]:
    """Return the first cores of the parts of which several processes have copies."""
    holders: dict[tuple[int, ...], set[int]] = {}
    firsts = device.first_cores(layout).tolist()
    for each, first in zip(device.mesh.devices.flat, firsts, strict=True):
        holders.setdefault(tuple(first), set()).add(each.process_index)
    return tuple(first for first, who in holders.items() if len(who) > 1)
