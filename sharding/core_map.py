"""`StatedMap`: where a core grid lies, as a user states it: a map from virtual cores to the mesh.

    (d0, d1, ...) -> (coordinates in the mesh ..., core inside the device ...)

The cores of one device must be a box of consecutive ones, as the parts of a sharded array are.
Boxes along the mesh's own axes, whichever (transposed, folded), need no more than that; others (a
snake, a staircase) need the mesh's devices in the order in which the boxes come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.map import AffineExpr, AffineMap, constant
from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.sharding.placement import Axes, MeshAxes, Placement, default_placement
from gridlayout.tenstorrent.core_maps import CoreMap

Ints = NDArray[np.int64]
# Larger grids are not looked at core by core, and a device's box is looked for so far along a dim.
_MOST_CORES, _FAR = 1 << 22, 1 << 16
# NumPy broadcasts so many arrays.
_MOST_DIMS = 32


class _Order(NamedTuple):
    """A grid of boxes that covers the mesh: how it is placed, and the device of each box."""

    placement: Placement
    devices: Ints


@dataclass(frozen=True)
class StatedMap:
    """A map from virtual cores to the devices of a mesh with these sizes, and cores inside them.

    chip: how many cores a device has along each of the results after those, where that is known.
    """

    map: AffineMap
    sizes: Shape
    axes: MeshAxes
    chip: Shape = ()

    def places(self, grid: Shape) -> Ints | None:
        """The number of each core's device in the mesh, row-major.

        None where the map leads out of the mesh, or two cores to one place.
        """
        if len(grid) != self.map.num_dims:
            return None
        if prod(grid) > _MOST_CORES:
            raise LayoutError(
                f"grid {grid} has {prod(grid)} cores; a core_map is followed core by core, for up "
                f"to {_MOST_CORES}"
            )
        return self._places([np.arange(n) for n in grid])

    def _places(self, cores: Sequence[Ints]) -> Ints | None:
        shape = tuple(map(len, cores))
        results = [np.broadcast_to(x, shape) for x in self.map(*np.ix_(*cores))]
        bounds = zip(results, (*self.sizes, *self.chip), strict=False)
        if any(((x < 0) | (x >= n)).any() for x, n in bounds):
            return None
        if len(np.unique(_joined(results))) < prod(shape):
            return None
        return np.ravel_multi_index(tuple(results[: len(self.sizes)]), self.sizes)

    def placement(self, grid: Shape) -> Placement | None:
        """Where a grid lies; None where the map says nothing of it.

        `LayoutError` where it deals a device cores that are no box, or boxes in an order that no
        axes have.
        """
        devices = self.places(grid)
        if devices is None:
            return None
        box = tuple(_run(devices[_line(k, len(grid))]) for k in range(len(grid)))
        blocks = devices[tuple(slice(None, None, n) for n in box)]
        spread = blocks
        for k, n in enumerate(box):
            spread = spread.repeat(n, axis=k)
        same = np.array_equal(spread[tuple(map(slice, grid))], devices)
        if not same or len(np.unique(blocks)) < blocks.size:
            raise LayoutError(
                f"core_map {self.map} deals the devices cores of grid {grid} that are no box of "
                f"consecutive ones, so that no device's part is one array: let a device's cores "
                f"follow each other along every grid dim, as in (d0) -> (d0 floordiv 2, d0 mod 2)"
            )
        axes = self._axes_along(blocks if self.order is None else np.argsort(self.order)[blocks])
        if axes is None:
            raise LayoutError(
                f"core_map {self.map} puts the parts of grid {grid} on devices "
                f"{blocks.ravel()[:8].tolist()}{'...' if blocks.size > 8 else ''} of {self.sizes}, "
                "which no axes of the mesh count, in whatever order its devices are: take another "
                "grid, or make the mesh of the devices that it uses"
            )
        return self.axes.placement(grid, axes, box)

    def _axes_along(self, positions: Ints) -> list[Axes] | None:
        """The axes by which positions in the mesh count along each dim; None where none do."""
        found: list[Axes] = []
        free = {self.axes.strides[n]: n for n, size in self.axes.size_of.items() if size > 1}
        expected = np.zeros(positions.shape, np.int64)
        for k, count in enumerate(positions.shape):
            line, steps = positions[_line(k, positions.ndim)], np.zeros(1, np.int64)
            axes: Axes = ()
            while len(steps) < count:
                stride = int(line[len(steps)])
                if stride not in free:
                    return None
                axes = (name := free.pop(stride), *axes)
                more = stride * np.arange(self.axes.size_of[name])
                steps = (more[:, None] + steps).ravel()
            found.append(axes)
            expected += steps[:count].reshape(-1, *(1,) * (positions.ndim - 1 - k))
        return found if np.array_equal(expected, positions) else None

    # -- another order of the mesh's devices -------------------------------------------------------

    @cached_property
    def _lines(self) -> list[Ints]:
        """The devices of the cores along each dim, from core 0 to the first outside the mesh."""
        lines = []
        for k in range(self.map.num_dims):
            cores = [np.arange(_FAR) if d == k else np.zeros(_FAR, np.int64) for d in self._dims]
            at = [np.broadcast_to(x, (_FAR,)) for x in self.map(*cores)[: len(self.sizes)]]
            out = [(x < 0) | (x >= n) for x, n in zip(at, self.sizes, strict=True)]
            end = int(np.argmax([*np.logical_or.reduce(out), True]))
            lines.append(np.ravel_multi_index(tuple(x[:end] for x in at), self.sizes))
        return lines

    @property
    def _dims(self) -> range:
        return range(self.map.num_dims)

    @cached_property
    def _box(self) -> Shape:
        """The cores of a device along each dim."""
        return tuple(map(_run, self._lines))

    @cached_property
    def _found(self) -> _Order | None:
        """The most boxes on different devices, if these are in another order than the mesh's."""
        lines = [line[::n] for line, n in zip(self._lines, self._box, strict=True)]
        reach = [min(len(np.unique(line)), len(line)) for line in lines]
        size, in_order = prod(self.sizes), 0
        counts = ((n, count) for n in range(size, 1, -1) for count in _factored(n, reach))
        for n, count in islice(counts, max(_MOST_CORES // size, 1)):
            if n < in_order:
                break
            cores = [n * np.arange(c) for n, c in zip(self._box, count, strict=True)]
            devices = self._places(cores)
            if devices is None or len(np.unique(devices)) < devices.size:
                continue
            placement = default_placement(self.axes, count)
            if self._axes_along(devices) is not None:
                in_order = n
            elif prod(placement.per_device) == 1:
                return _Order(placement, devices)
        return None

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """The devices' numbers in the mesh in the order in which placements count them.

        None where that is the mesh's own.
        """
        if self._found is None:
            return None
        placement, devices = self._found
        positions = np.zeros(devices.shape, np.int64)
        for k, axes in enumerate(placement.axes):
            strides = [self.axes.strides[axis] for axis in axes]
            sizes = [self.axes.size_of[axis] for axis in axes]
            digits = np.indices(sizes).reshape(len(axes), prod(sizes))
            along = np.tensordot(np.array(strides, np.int64), digits, 1)
            along = along[: devices.shape[k]]
            positions += along.reshape(-1, *(1,) * (devices.ndim - 1 - k))
        # Devices without a box take the places that are left, in their order.
        size = prod(self.sizes)
        order = np.full(size, -1)
        order[positions] = devices
        order[order < 0] = np.setdiff1d(np.arange(size), devices)
        return tuple(order.tolist())

    def coordinates(self, rank: int, digits: Mapping[str, AffineExpr]) -> list[AffineExpr]:
        """The mesh coordinates of the device at these numbers along the axes, of `rank` dims."""
        if self._found is None:
            return self.axes.coordinates(digits)
        if self._found.devices.size < prod(self.sizes):
            assert self.order is not None
            places = np.unravel_index(self.order, self.sizes)
            position = self.axes.number(self.axes.names, digits)
            return [_in_steps(place.tolist(), position) for place in places]
        boxes = zip(self._box, self._found.placement.axes, strict=True)
        cores = [self.axes.number(axes, digits) * n for n, axes in boxes]
        return list(self.map.compose(AffineMap(rank, cores)).results[: len(self.sizes)])


def stated_map(core_map: AffineMap | CoreMap | str, sizes: Shape, axes: MeshAxes) -> StatedMap:
    """The map that a user gives: itself, its text, or that of a Tenstorrent device.

    The device number of a `CoreMap` counts the devices of the mesh row-major. `LayoutError`: what
    is neither, or a map that puts core 0 outside the mesh.
    """
    chip: Shape = ()
    if isinstance(core_map, str):
        is_device = "ttcore.device" in core_map
        core_map = CoreMap.parse(core_map) if is_device else AffineMap.parse(core_map)
    if isinstance(core_map, CoreMap):
        if core_map.devices > prod(sizes):
            raise LayoutError(
                f"core_map is of {core_map.devices} devices, the mesh of {sizes} has {prod(sizes)}"
            )
        chip, (device, *inside) = core_map.rectangle, core_map.forward.results
        digits = [device // prod(sizes[k + 1 :]) % n for k, n in enumerate(sizes)]
        core_map = AffineMap(core_map.forward.num_dims, (*digits, *inside))
    if not isinstance(core_map, AffineMap):
        raise LayoutError(
            f"core_map must be a gl.AffineMap, its text, a ttcore.device text or a "
            f"gl.tenstorrent.CoreMap, not {type(core_map).__name__}"
        )
    rank, results = core_map.num_dims, len(core_map.results)
    if rank > _MOST_DIMS:
        raise LayoutError(f"core_map takes {rank} grid dims; up to {_MOST_DIMS} are followed")
    if not rank or results < len(sizes):
        raise LayoutError(
            f"core_map {core_map} must take the dims of a grid and give a number for each of the "
            f"{len(sizes)} mesh axes {sizes}, then those of the core inside the device"
        )
    found = StatedMap(core_map, sizes, axes, chip)
    if found.places((1,) * rank) is None:
        first = core_map(*(0,) * rank)
        raise LayoutError(f"core_map {core_map} puts core 0 at {first}, outside the mesh {sizes}")
    return found


def _line(k: int, rank: int) -> tuple[Any, ...]:
    """What picks the first line along dim `k`."""
    return tuple(slice(None) if d == k else 0 for d in range(rank))


def _run(line: Ints) -> int:
    """How many numbers at the beginning of a line are the same."""
    return int(np.argmax([*(line != line[0]), True])) if len(line) else 1


def _joined(results: Sequence[Ints]) -> Ints:
    """One number for each different row of the results."""
    numbers = np.zeros(results[0].size, np.int64)
    for x in results:
        _, found = np.unique(x, return_inverse=True)
        both = numbers * (found.max(initial=0) + 1) + found.ravel()
        _, numbers = np.unique(both, return_inverse=True)
    return numbers


def _in_steps(values: Sequence[int], index: AffineExpr) -> AffineExpr:
    """The value at an index, as the first one and what each later one adds."""
    found = constant(values[0])
    for k, (before, after) in enumerate(pairwise(values), 1):
        if before != after:
            found = found + ((index + len(values) - k) // len(values)) * (after - before)
    return found


def _factored(size: int, reach: Sequence[int]) -> Iterator[Shape]:
    """Every shape of this size, up to `reach` along each dim; the largest first dims first."""
    if not reach:
        yield from [()] if size == 1 else []
        return
    for n in range(min(size, reach[0]), 0, -1):
        if size % n == 0:
            yield from ((n, *rest) for rest in _factored(size // n, reach[1:]))
