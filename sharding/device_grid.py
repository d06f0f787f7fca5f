"""`DeviceGrid`: the physical mesh of JAX devices, and how a virtual core grid folds onto it.

Grid dims are the leading dims of the physical array, so a placement is a `NamedSharding` over them:
every mesh axis goes to one grid dim, or to none. A grid dim that its axes do not divide gets idle
slots at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim
from gridlayout.arguments import as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.collectives import check_sendable

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """A virtual grid on a mesh: the mesh axes of each grid dim, and its slots (cores, rounded up).

    A device holds `per_device` cores of each grid dim, consecutive ones. The axes are those of
    `DeviceGrid.fine`.
    """

    grid: Shape
    axes: tuple[tuple[str, ...], ...]
    slots: Shape
    per_device: Shape

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of the grid dims; the dims inside a core are not split."""
        return PartitionSpec(*(axes or None for axes in self.axes))


class DeviceGrid:
    """A mesh of JAX devices that virtual core grids are folded onto.

    `DeviceGrid((2, 4))` takes the first 8 of `jax.devices()`; `DeviceGrid(mesh)` takes a
    `jax.sharding.Mesh` of any shape, with Auto or Explicit axes (placement here is always by hand,
    so `device.mesh` is the same mesh with Auto axes). A `jax.sharding.AbstractMesh` has names and
    sizes and no devices: on it grids are placed, programs reported and relayouts planned, for any
    number of devices; it holds no data. Arrays lie on `device.fine`: the same devices in the same
    order, each axis in its prime factors (`y` of 4 devices is `y0` and `y1` of 2), so that a grid
    of three dims can use a mesh of two. `LayoutError` when there are too few devices.

    >>> import jax
    >>> device = DeviceGrid((1,))
    >>> device.shape, str(device.core_map((3, 2)))
    ((1,), '(d0, d1) -> (0, d0, d1)')
    >>> DeviceGrid(jax.sharding.AbstractMesh((256, 128), ("x", "y"))).placement((512, 64)).axes[1]
    ('y1', 'y2', 'y3', 'y4', 'y5', 'y6')
    """

    def __init__(self, mesh: Mesh | AbstractMesh | Sequence[int]) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            mesh = _first_devices(mesh)
        names = tuple(map(str, mesh.axis_names))
        sizes = tuple(mesh.shape.values())
        if not sizes or 0 in sizes:
            raise LayoutError(f"a device grid's mesh must have axes with devices, not {sizes}")
        self.is_abstract: bool = isinstance(mesh, AbstractMesh)
        self._devices: Any = mesh.devices if isinstance(mesh, Mesh) else None
        self.mesh: Any = self._mesh(sizes, names)
        # Every axis in its prime factors, the major first: how finely placement can choose. All
        # shardings are on this one mesh, since JAX takes one mesh a program.
        factors = [
            (f"{name}{i}" if len(primes) > 1 else name, name, prime)
            for name, size in zip(names, sizes, strict=True)
            for primes in [_primes(size)]
            for i, prime in enumerate(primes)
        ]
        self._whole: tuple[str, ...] = tuple(whole for _, whole, _ in factors)
        self._factors: dict[str, tuple[str, ...]] = {}
        for name, whole, _ in factors:
            self._factors[whole] = (*self._factors.get(whole, ()), name)
        self._counts: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._placements: dict[Shape, Placement] = {}
        self.fine: Any = self._mesh(tuple(f[2] for f in factors), tuple(f[0] for f in factors))

    def _mesh(self, sizes: Shape, names: tuple[str, ...]) -> Mesh | AbstractMesh:
        auto = (AxisType.Auto,) * len(names)
        if self.is_abstract:
            return AbstractMesh(sizes, names, axis_types=auto)
        return Mesh(self._devices.reshape(sizes), names, axis_types=auto)

    @cached_property
    def shape(self) -> Shape:
        """Devices along each mesh axis."""
        return tuple(self.mesh.shape.values())

    @cached_property
    def size(self) -> int:
        """Devices in all."""
        return prod(self.shape)

    @property
    def platform(self) -> str:
        """The devices' platform, as JAX names it; `abstract` where there are none."""
        return "abstract" if self.is_abstract else str(self._devices.flat[0].platform)

    def check_has_devices(self, what: str) -> None:
        """`LayoutError` where there are no devices, which `what` needs."""
        if self.is_abstract:
            raise LayoutError(
                f"{what} needs devices, but {self!r} has none: it is of an AbstractMesh, on which "
                "grids are placed, programs reported and relayouts planned; "
                "gl.DeviceGrid(jax.sharding.Mesh(devices, names)) holds data"
            )

    def count(self, axes: tuple[str, ...]) -> int:
        """Devices along axes of `fine`."""
        if axes not in self._counts:
            self._counts[axes] = prod(self.fine.shape[axis] for axis in axes)
        return self._counts[axes]

    def names(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Axes of `fine` as axes of `mesh`, where all factors of one are among them."""
        if axes not in self._names:
            found: list[str] = []
            for whole, factors in self._factors.items():
                mine = tuple(axis for axis in factors if axis in axes)
                for name, group in (
                    [(whole, mine)] if mine == factors else [(a, (a,)) for a in mine]
                ):
                    found += [name] if self.count(group) > 1 else []
            self._names[axes] = tuple(found)
        return self._names[axes]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash(self.mesh)

    def __repr__(self) -> str:
        axes = ", ".join(f"{n}={s}" for n, s in zip(self.mesh.axis_names, self.shape, strict=True))
        return f"DeviceGrid({axes}, {self.platform})"

    def active(self) -> AbstractContextManager[Any]:
        """The context in which programs on this grid run, whatever mesh the user has set."""
        mesh = self.fine if self.is_abstract else self.fine.abstract_mesh
        return jax.sharding.use_abstract_mesh(mesh)

    def placement(self, grid: Sequence[int]) -> Placement:
        """Which mesh axes divide which dim of a virtual grid.

        The fewest cores on a device first, then the most devices with work, then whole mesh axes,
        then blocks of cores as square as can be, then mesh axes in the order of the grid dims. An
        axis that would leave its devices idle or change nothing divides no dim: the devices along
        it hold copies.
        """
        if type(grid) is tuple and set(map(type, grid)) <= {int} and grid in self._placements:
            return self._placements[grid]
        shape = as_shape(grid, "grid")
        return self._placements.setdefault(shape, _placement(self, shape))

    def core_map(self, grid: Sequence[int]) -> AffineMap:
        """Virtual core -> (coordinates in the mesh ..., core inside the device ...).

        The mesh coordinates come first, one a mesh axis, then one number a grid dim. Where devices
        hold copies, the map names the first.
        """
        placement = self.placement(grid)
        factor: dict[str, AffineExpr] = {}
        inside = []
        for k, axes in enumerate(placement.axes):
            index = dim(k) // placement.per_device[k]
            for axis in reversed(axes):
                size = self.fine.shape[axis]
                factor[axis] = index % size if axis != axes[0] else index
                index = index // size
            inside.append(dim(k) % placement.per_device[k])
        coordinates = {str(name): constant(0) for name in self.mesh.axis_names}
        for name, whole in zip(self.fine.axis_names, self._whole, strict=True):
            digit = factor.get(name, constant(0))
            coordinates[whole] = coordinates[whole] * self.fine.shape[name] + digit
        results = (*coordinates.values(), *inside)
        return AffineMap(len(placement.grid), results).simplify(placement.grid)

    def sharding(self, layout: Layout, batch: int = 0) -> NamedSharding:
        """The sharding of a layout's storage; `batch` leading dims are whole on every device."""
        check_sendable(layout.dtype)
        spec = self.placement(layout.core_shape).spec
        return NamedSharding(self.fine, PartitionSpec(*(None,) * batch, *spec))

    def storage_shape(self, layout: Layout) -> Shape:
        """The physical shape with the grid dims rounded up to the mesh: where idle slots are."""
        return (*self.placement(layout.core_shape).slots, *layout.local_shape)

    @property
    def replicated(self) -> NamedSharding:
        """The sharding of a value that every device holds whole."""
        return NamedSharding(self.fine, PartitionSpec())


def _first_devices(shape: Any) -> Mesh:
    sizes = as_shape(shape, "device grid")
    if not sizes or 0 in sizes:
        raise LayoutError(f"device grid {sizes} must hold at least one number, all >= 1")
    devices = jax.devices()
    if prod(sizes) > len(devices):
        raise LayoutError(
            f"device grid {sizes} needs {prod(sizes)} devices, but JAX has {len(devices)}; "
            f"gl.emulate_devices({prod(sizes)}) at the start of the program emulates them on a CPU"
        )
    names = (
        tuple("xyzw"[: len(sizes)])
        if len(sizes) <= 4
        else tuple(f"a{i}" for i in range(len(sizes)))
    )
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(sizes, names, axis_types=auto, devices=devices[: prod(sizes)])


def _primes(size: int) -> list[int]:
    primes, factor = [], 2
    while size > 1:
        while size % factor == 0:
            primes.append(factor)
            size //= factor
        factor += 1
    return primes or [1]


@lru_cache(maxsize=4096)
def _placement(device: DeviceGrid, grid: Shape) -> Placement:
    # Only grid dims with more than one core can use an axis, and only axes with several devices.
    wide = [k for k, g in enumerate(grid) if g > 1]
    names, sizes = device.fine.axis_names, tuple(device.fine.shape.values())
    # Equal factors of one mesh axis are alike: what counts is how many of them each dim gets.
    alike: dict[tuple[str, int], list[str]] = {}
    for name, whole, size in zip(names, device._whole, sizes, strict=True):
        if size > 1:
            alike.setdefault((whole, size), []).append(name)
    groups = tuple((*key, len(group)) for key, group in alike.items())
    while prod(comb(n + len(wide), n) for *_, n in groups) > 1 << 16:
        # The dims with the most cores are enough.
        wide.remove(min(wide, key=lambda k: (grid[k], -k)))
    chosen = _best(tuple(grid[k] for k in wide), groups)
    axes: list[tuple[str, ...]] = [()] * len(grid)
    for group, row in zip(alike.values(), chosen, strict=True):
        rest = list(group)
        for k, count in zip(wide, row, strict=False):
            axes[k] += tuple(rest[:count])
            rest = rest[count:]
    order = {name: i for i, name in enumerate(names)}
    placed = tuple(tuple(sorted(found, key=order.__getitem__)) for found in axes)
    along = [device.count(found) for found in placed]
    per_device = tuple(-(-g // a) for g, a in zip(grid, along, strict=True))
    slots = tuple(p * a for p, a in zip(per_device, along, strict=True))
    return Placement(grid, placed, slots, per_device)


@lru_cache(maxsize=256)
def _compositions(n: int, parts: int) -> NDArray[np.int64]:
    """Every way to deal `n` equal factors to `parts`, the first ones most first."""
    if parts == 1:
        return np.array([[n]], np.int64)
    rows = [np.insert(_compositions(n - k, parts - 1), 0, k, axis=1) for k in range(n, -1, -1)]
    return np.concatenate(rows)


# Equal prime factors of a mesh axis: the axis, the factor, how many there are.
_Group = tuple[str, int, int]


@dataclass(frozen=True)
class _Deals:
    """Every way to deal groups of factors to grid dims, one a row.

    dealt: of each group, how many factors each dim gets, and nobody. along: the devices along each
    dim. used: along all of them. split: mesh axes that several dims share.
    """

    dealt: tuple[NDArray[np.int64], ...]
    along: NDArray[np.int64]
    used: NDArray[np.int64]
    split: NDArray[np.int64]


@lru_cache(maxsize=8)
def _deals(dims: int, groups: tuple[_Group, ...]) -> _Deals:
    # Rows come with most for the first dims first, and so do ties: the order of the grid dims.
    ways = [_compositions(n, dims + 1) for *_, n in groups]
    picks = np.indices(tuple(map(len, ways))).reshape(len(ways), prod(map(len, ways)))
    dealt = tuple(way[pick] for way, pick in zip(ways, picks, strict=True))
    along = np.ones((picks.shape[1], dims), np.int64)
    split = np.zeros(picks.shape[1], np.int64)
    shares: dict[str, Any] = {}
    for (whole, size, _), row in zip(groups, dealt, strict=True):
        along *= np.power(size, row[:, :-1])
        shares[whole] = shares.get(whole, 0) + (row > 0)
    for share in shares.values():
        split += (share > 0).sum(axis=1) > 1
    return _Deals(dealt, along, along.prod(axis=1), split)


def _best(cores: Shape, groups: tuple[_Group, ...]) -> list[NDArray[np.int64]]:
    """Of each group of factors, how many each dim with so many cores gets, and nobody."""
    deals, wanted = _deals(len(cores), groups), np.array(cores, np.int64)
    local = -(-wanted // deals.along)
    most = local.prod(axis=1)
    rows = np.flatnonzero(most == most.min())
    local, used = local[rows], deals.used[rows]
    busy = (-(-wanted // local)).prod(axis=1)
    keys = (-busy, used - busy, deals.split[rows], used, local.sum(axis=1))
    best = rows[np.lexsort(keys[::-1])[0]]
    return [row[best] for row in deals.dealt]
