"""`StatedMap`: the placement of a core grid by a map that a user states.

    (d0, d1, ...) -> (coordinates in the mesh ..., core inside the device ...)

The cores of one device must form a box of consecutive cores, because the parts of a sharded array
do. If the boxes follow the axes of the mesh in any order (transposed, folded), the mesh is used as
it is. For other maps (a snake, a staircase) the devices of the mesh are reordered to follow the
boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gridlayout.affine.map import AffineExpr, AffineMap, constant
from gridlayout.arguments import Ints, Shape
from gridlayout.errors import LayoutError, PlacementError
from gridlayout.layouts.mesh_axes import Axes, MeshAxes
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.tenstorrent.core_maps import CoreMap

# The most cores for which the map is evaluated; the most positions along a dim to find a box.
_MOST_CORES, _FAR = 1 << 22, 1 << 16
# The most arrays that NumPy broadcasts.
_MOST_DIMS = 32


class _Order(NamedTuple):
    """A grid of boxes that covers the mesh: its placement, and the device of each box."""

    placement: Placement
    devices: Ints


@dataclass(frozen=True)
class StatedMap:
    """A map from virtual cores to the devices of a mesh, and to cores inside a device.

    sizes: the extents of the mesh; the first results of the map are coordinates in it. chip: the
    number of cores per device along each of the other results, if known.
    """

    map: AffineMap
    sizes: Shape
    axes: MeshAxes
    chip: Shape = ()

    def places(self, grid: Shape) -> Ints | None:
        """Return the row-major index in the mesh of each core's device.

        None if the grid's rank is not the map's, if it has no cores, if a core is outside the mesh
        or the chip, or if two cores have one place. Raises `PlacementError` for a grid of too many
        cores.
        """
        if len(grid) != self.map.num_dims or 0 in grid:
            return None
        if prod(grid) > _MOST_CORES:
            raise PlacementError(
                f"grid {grid} has {prod(grid)} cores, but a core_map is evaluated for each core "
                f"and supports at most {_MOST_CORES}: use a smaller grid"
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
        """Return the placement of a grid; None if the map does not place all of its cores.

        Raises `PlacementError` if the cores of a device are no box, or if the order of the boxes is
        that of no mesh axes.
        """
        devices = self.places(grid)
        if devices is None:
            return None
        if prod(grid) == 1:  # every device has a copy, also the one that the map names
            return Placement.of(self.axes, grid, [()] * len(grid), grid)
        box = tuple(_run(devices[_line(k, len(grid))]) for k in range(len(grid)))
        blocks = devices[tuple(slice(None, None, n) for n in box)]
        spread = blocks
        for k, n in enumerate(box):
            spread = spread.repeat(n, axis=k)
        same = np.array_equal(spread[tuple(map(slice, grid))], devices)
        if not same or len(np.unique(blocks)) < blocks.size:
            raise PlacementError(
                f"core_map {self.map} assigns to a device cores of grid {grid} that form no box of "
                f"consecutive cores, so the device's part would be no array: assign consecutive "
                f"cores along each grid dim, as in (d0) -> (d0 floordiv 2, d0 mod 2)"
            )
        axes = self._axes_along(blocks if self.order is None else np.argsort(self.order)[blocks])
        if axes is None:
            raise PlacementError(
                f"core_map {self.map} places the parts of grid {grid} on devices "
                f"{blocks.ravel()[:8].tolist()}{'...' if blocks.size > 8 else ''} of {self.sizes}, "
                "an order that no axes of the mesh have, even with its devices reordered: use "
                "another grid, or a mesh of only these devices"
            )
        return Placement.of(self.axes, grid, axes, box)

    def _axes_along(self, positions: Ints) -> list[Axes] | None:
        """Return the mesh axes that divide each dim, given the mesh position of each box.

        None if no axes have that order.
        """
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
        """For each dim, the devices of the cores along it, until a core is outside the mesh."""
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
        """The number of cores per device along each dim."""
        return tuple(map(_run, self._lines))

    @cached_property
    def _found(self) -> _Order | None:
        """The largest grid of boxes on different devices, if their order is not the mesh's."""
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
            placement = Placement.by_rule(self.axes, count)
            if self._axes_along(devices) is not None:
                in_order = n
            elif prod(placement.per_device) == 1:
                return _Order(placement, devices)
        return None

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """The mesh indices of the devices, in the order that placements use.

        None if that is the order of the mesh.
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
        # Devices without a box follow in the free positions, in the mesh's order.
        size = prod(self.sizes)
        order = np.full(size, -1)
        order[positions] = devices
        order[order < 0] = np.setdiff1d(np.arange(size), devices)
        return tuple(order.tolist())

    def coordinates(self, rank: int, digits: Mapping[str, AffineExpr]) -> list[AffineExpr]:
        """Return the mesh coordinates of a device from its index along each factor.

        digits: expressions of `rank` dims.
        """
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
    """Return the `StatedMap` of what a user passes: a map, its text, or a Tenstorrent `CoreMap`.

    The device number of a `CoreMap` is the row-major index of a device in the mesh. Raises
    `LayoutError` for other types, and for a map that does not place core 0 in the mesh.
    """
    chip: Shape = ()
    if isinstance(core_map, str):
        is_device = "ttcore.device" in core_map
        core_map = CoreMap.parse(core_map) if is_device else AffineMap.parse(core_map)
    if isinstance(core_map, CoreMap):
        if core_map.devices > prod(sizes):
            raise LayoutError(
                f"core_map is for {core_map.devices} devices, but the mesh {sizes} has only "
                f"{prod(sizes)}: use a mesh of {core_map.devices} devices or more"
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
        raise LayoutError(f"core_map takes {rank} grid dims; up to {_MOST_DIMS} are supported")
    if not rank or results < len(sizes):
        raise LayoutError(
            f"core_map {core_map} must map the dims of a grid to a coordinate on each of the "
            f"{len(sizes)} mesh axes {sizes}, followed by the coordinates of the core inside the "
            "device"
        )
    found = StatedMap(core_map, sizes, axes, chip)
    if found.places((1,) * rank) is None:
        first = core_map(*(0,) * rank)
        raise LayoutError(
            f"core_map {core_map} places core 0 at {first}, but it must be inside the mesh {sizes}"
        )
    return found


def _line(k: int, rank: int) -> tuple[Any, ...]:
    """Return the index of the first line along dim `k`."""
    return tuple(slice(None) if d == k else 0 for d in range(rank))


def _run(line: Ints) -> int:
    """Return how many numbers at the beginning of a line are equal."""
    return int(np.argmax([*(line != line[0]), True])) if len(line) else 1


def _joined(results: Sequence[Ints]) -> Ints:
    """Return one number per position, equal where all results are equal."""
    numbers = np.zeros(results[0].size, np.int64)
    for x in results:
        _, found = np.unique(x, return_inverse=True)
        both = numbers * (found.max(initial=0) + 1) + found.ravel()
        _, numbers = np.unique(both, return_inverse=True)
    return numbers


def _in_steps(values: Sequence[int], index: AffineExpr) -> AffineExpr:
    """Return `values[index]` as an affine expression: the first value plus later changes."""
    found = constant(values[0])
    for k, (before, after) in enumerate(pairwise(values), 1):
        if before != after:
            found = found + ((index + len(values) - k) // len(values)) * (after - before)
    return found


def _factored(size: int, reach: Sequence[int]) -> Iterator[Shape]:
    """Yield every shape of this size, at most `reach` along each dim, in descending order."""
    if not reach:
        yield from [()] if size == 1 else []
        return
    for n in range(min(size, reach[0]), 0, -1):
        if size % n == 0:
            yield from ((n, *rest) for rest in _factored(size // n, reach[1:]))
