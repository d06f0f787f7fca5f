"""`DeviceGrid`: the physical mesh of JAX devices, and how a virtual core grid folds onto it.

Grid dims are the leading dims of the physical array, so a placement is a `NamedSharding` over them:
every mesh axis goes to one grid dim, or to none. A grid dim that its axes do not divide gets idle
slots at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from gridlayout.affine import AffineExpr, AffineMap, constant, dim
from gridlayout.errors import LayoutError
from gridlayout.layout import Layout, as_shape

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
    so `device.mesh` is the same mesh with Auto axes). Arrays lie on `device.fine`: the same devices
    in the same order, each axis in its prime factors (`y` of 4 devices is `y0` and `y1` of 2), so
    that a grid of three dims can use a mesh of two. `LayoutError` when there are too few devices.

    >>> import jax
    >>> device = DeviceGrid((1,))
    >>> device.shape, str(device.core_map((3, 2)))
    ((1,), '(d0, d1) -> (0, d0, d1)')
    """

    def __init__(self, mesh: Mesh | Sequence[int]) -> None:
        if not isinstance(mesh, Mesh):
            mesh = _first_devices(mesh)
        auto = (AxisType.Auto,) * len(mesh.axis_names)
        self.mesh: Mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=auto)
        # Every axis in its prime factors, the major first: how finely placement can choose. All
        # shardings are on this one mesh, since JAX takes one mesh a program.
        factors = [
            (f"{name}{i}" if len(primes) > 1 else str(name), str(name), prime)
            for name, size in self.mesh.shape.items()
            for primes in [_primes(size)]
            for i, prime in enumerate(primes)
        ]
        self._whole: tuple[str, ...] = tuple(whole for _, whole, _ in factors)
        names = tuple(name for name, _, _ in factors)
        sizes = tuple(size for _, _, size in factors)
        types = (AxisType.Auto,) * len(names)
        self.fine: Mesh = Mesh(mesh.devices.reshape(sizes), names, axis_types=types)

    @property
    def shape(self) -> Shape:
        """Devices along each mesh axis."""
        return tuple(self.mesh.devices.shape)

    @property
    def size(self) -> int:
        """Devices in all."""
        return prod(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash(self.mesh)

    def __repr__(self) -> str:
        axes = ", ".join(f"{n}={s}" for n, s in zip(self.mesh.axis_names, self.shape, strict=True))
        return f"DeviceGrid({axes}, {self.mesh.devices.flat[0].platform})"

    def active(self) -> AbstractContextManager[Any]:
        """The context in which programs on this grid run, whatever mesh the user has set."""
        return jax.sharding.use_abstract_mesh(self.fine.abstract_mesh)

    def placement(self, grid: Sequence[int]) -> Placement:
        """Which mesh axes divide which dim of a virtual grid.

        The fewest cores on a device first, then the most devices with work, then whole mesh axes,
        then blocks of cores as square as can be, then mesh axes in the order of the grid dims. An
        axis that would leave its devices idle or change nothing divides no dim: the devices along
        it hold copies.
        """
        return _placement(self, as_shape(grid, "grid"))

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
    sizes = tuple(device.fine.devices.shape)
    # Only grid dims with more than one core can use an axis, and only axes with several devices.
    wide = [k for k, g in enumerate(grid) if g > 1]
    if (len(wide) + 1) ** len(sizes) > 1 << 14:
        # Many axes or dims: the dims with the most cores are enough to choose from.
        keep = max(int((1 << 14) ** (1 / len(sizes))) - 1, 1)
        wide = sorted(sorted(wide, key=lambda k: -grid[k])[:keep])
    choices = [[*wide, None] if size > 1 else [None] for size in sizes]
    best = min(product(*choices), key=lambda chosen: _cost(device, grid, chosen))
    names = device.fine.axis_names
    axes = tuple(
        tuple(name for name, d in zip(names, best, strict=True) if d == k) for k in range(len(grid))
    )
    along = [prod(s for s, d in zip(sizes, best, strict=True) if d == k) for k in range(len(grid))]
    per_device = tuple(-(-g // a) for g, a in zip(grid, along, strict=True))
    slots = tuple(p * a for p, a in zip(per_device, along, strict=True))
    return Placement(grid, axes, slots, per_device)


def _cost(device: DeviceGrid, grid: Shape, chosen: tuple[int | None, ...]) -> tuple[Any, ...]:
    along = [1] * len(grid)
    for size, d in zip(device.fine.devices.shape, chosen, strict=True):
        if d is not None:
            along[d] *= size
    local = [-(-g // a) for g, a in zip(grid, along, strict=True)]
    busy = prod(-(-g // n) for g, n in zip(grid, local, strict=True))
    used = prod(along)
    dims: dict[str, set[int | None]] = {}
    for whole, d in zip(device._whole, chosen, strict=True):
        dims.setdefault(whole, set()).add(d)
    split = sum(len(found) > 1 for found in dims.values())
    order = tuple(len(grid) if d is None else d for d in chosen)
    return (prod(local), -busy, used - busy, split, used, sum(local), order)
