"""`DeviceGrid`: the physical mesh of JAX devices, and how a virtual core grid folds onto it.

The grid dims are the leading dims of the storage array, so a placement is a `NamedSharding` of
them: each mesh axis divides one grid dim, or none. A grid dim that its axes do not divide evenly
gets idle slots at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape, ShapeLike, as_shape, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import HOST_SPACES
from gridlayout.layouts.mesh_axes import MeshAxes
from gridlayout.other_words import DEVICES
from gridlayout.public import public
from gridlayout.sharding.collectives import check_sendable
from gridlayout.sharding.machines.default_machine import FAST, default_machine
from gridlayout.sharding.machines.machine import Machine
from gridlayout.sharding.machines.topology import hosts_of
from gridlayout.sharding.meshes.core_map import stated_map
from gridlayout.sharding.meshes.description import Description
from gridlayout.sharding.meshes.devices import (
    auto_mesh,
    copied,
    first_devices,
    memory_kinds,
    mesh_sizes,
    numbered_devices,
)
from gridlayout.sharding.meshes.mesh_in_use import programs_on
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.sharding.meshes.placements import Placements
from gridlayout.sharding.submesh import Submesh
from gridlayout.tenstorrent.core_maps import CoreMap

# The only kind of host memory that JAX's programs write to.
_HOST = "pinned_host"


@public(words=DEVICES)
class DeviceGrid:
    """A mesh of JAX devices that virtual core grids are folded onto.

    `DeviceGrid((2, 4))` takes the first 8 of `jax.devices()`, and so does `DeviceGrid(8)`, as a
    mesh of one axis. `DeviceGrid(mesh)` takes a
    `jax.sharding.Mesh` of any shape, with Auto or Explicit axes. gridlayout always states shardings
    itself, so `device.mesh` is the same mesh with Auto axes. A `jax.sharding.AbstractMesh` has
    names and sizes, but no devices: it holds no data, but grids can be placed, programs reported
    and relayouts planned on it, for any number of devices.

    Arrays are placed on `device.fine`: the mesh of the same devices in the same order, with each
    axis split into its prime factors (`y` of 4 devices into `y0` and `y1` of 2), so that a grid of
    three dims can use a mesh of two axes. Raises `LayoutError` if there are too few devices.

    >>> import jax
    >>> device = DeviceGrid((1,))
    >>> device.shape, str(device.core_map((3, 2)))
    ((1,), '(d0, d1) -> (0, d0, d1)')
    >>> DeviceGrid(jax.sharding.AbstractMesh((256, 128), ("x", "y"))).placement((512, 64)).axes[1]
    ('y1', 'y2', 'y3', 'y4', 'y5', 'y6')

    core_map: the placement of grids, instead of the rule of `placement`: a map from a virtual core
    to the coordinates of its device in the mesh, then the core inside the device (tt-mlir,
    "Multi-Core": "an additional affine map that defines how this virtual grid shape maps to a
    physical one"). It is a `gl.AffineMap` or its text, the text of a `ttcore.device`, or a
    `gl.tenstorrent.CoreMap`, whose device number is the row-major index in the mesh. It places each
    grid of its rank that it maps into the mesh without giving two cores one place; other grids are
    placed by the rule. Data is stored, and computation runs, on the devices that it names. If the
    order of these devices is that of no mesh axes (a snake, a staircase), `fine` has the devices in
    the order of the map, for all grids. Placing a grid raises `LayoutError` if the cores of a
    device are no box of consecutive cores (a cyclic map), or if the devices are in an order that no
    axes have; the library itself chooses no such grids.

    machine: the times of communication and computation (`gl.Machine`), by which algorithms are
    chosen; the default is that of the devices' kind. On emulated devices each collective has a
    latency, so that few are sent. An `AbstractMesh` is assumed to have fast links, so that the
    bytes decide. Raises `LayoutError` for a machine of another mesh, and for one without links if
    there are several devices.

    >>> folded = DeviceGrid((1,), core_map="(d0, d1) -> (0, d1 floordiv 8, d1 mod 8)")
    >>> str(folded.core_map((1, 64))), str(folded.core_map((3,)))
    ('(d0, d1) -> (0, d1 floordiv 8, d1 mod 8)', '(d0) -> (0, d0)')
    """

    def __init__(
        self,
        mesh: Mesh | AbstractMesh | ShapeLike,
        *,
        core_map: AffineMap | CoreMap | str | None = None,
        machine: Machine | None = None,
    ) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            mesh = first_devices(mesh)
        names = tuple(map(str, mesh.axis_names))
        sizes = mesh_sizes(mesh)
        self.is_abstract: bool = isinstance(mesh, AbstractMesh)
        self._devices: Any = mesh.devices if isinstance(mesh, Mesh) else None
        if machine is not None:
            if not isinstance(machine, Machine):
                raise LayoutError(f"machine {shown(machine)} must be a gl.Machine")
            machine = machine.named(names)
            machine.check_mesh(sizes)
        self._machine = machine
        self._axes: MeshAxes = MeshAxes.of(names, sizes)
        self.mesh: Any = auto_mesh(self._devices, sizes, names)
        self._given = core_map
        self._stated = None if core_map is None else stated_map(core_map, sizes, self._axes)
        self.placements = Placements(self._axes, self._stated)
        self.order: tuple[int, ...] = self.placements.order
        self._counts: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        # All shardings use this one mesh, because a program of JAX has one mesh.
        self.fine: Any = auto_mesh(self._devices, self._axes.sizes, self._axes.names, self.order)

    @cached_property
    def shape(self) -> Shape:
        """The number of devices along each mesh axis."""
        return tuple(self.mesh.shape.values())

    @cached_property
    def size(self) -> int:
        """The total number of devices."""
        return prod(self.shape)

    @property
    def platform(self) -> str:
        """The platform of the devices, as in JAX; `abstract` if there are none."""
        return "abstract" if self.is_abstract else str(self._devices.flat[0].platform)

    @cached_property
    def machine(self) -> Machine:
        """The machine that the user states; else the default machine of the devices' kind."""
        if self._machine is not None:
            return self._machine
        if self.is_abstract:
            return FAST
        hosts = hosts_of(self.fine.devices, self.shape)
        kind = self._devices.flat[0].device_kind
        return default_machine(self.platform, kind, self.shape, tuple(self.sizes), hosts)

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """The process indices of the devices, in ascending order, each once."""
        return (
            () if self.is_abstract else tuple(sorted({d.process_index for d in self._devices.flat}))
        )

    def with_machine(self, machine: Machine) -> DeviceGrid:
        """Return the grid of the same devices with another machine."""
        return DeviceGrid(self.mesh, core_map=self._given, machine=machine)

    def __getitem__(self, index: Any) -> DeviceGrid:
        """Return the device grid of some of the devices, by one slice or number per mesh axis.

        Indexing works as in NumPy: a slice retains its axis and the name of the axis, a number
        drops it, and `...` stands for full axes. A stated machine is restricted to these devices.
        An array is on one device grid; `gl.relayout(x, layout, device)` moves it to another. Raises
        `LayoutError` if the index selects no device or retains no axis, and if the device grid has
        a `core_map`, because that refers to the full mesh.

        >>> whole = DeviceGrid(AbstractMesh((4, 2), ("data", "model")))
        >>> whole[:2], whole[1], whole[..., ::-1].shape
        (DeviceGrid(data=2, model=2, abstract), DeviceGrid(model=2, abstract), (4, 2))
        """
        names = tuple(self.sizes)
        if self._stated is not None:
            raise LayoutError(
                f"{self!r} can't be indexed, because its core_map refers to the full mesh: take "
                "part = gl.DeviceGrid(device.mesh)[...], and give the part its own map, "
                "gl.DeviceGrid(part.mesh, core_map=...)"
            )
        part = Submesh.of(index, self.shape, names)
        kept = tuple(names[k] for k in part.axes)
        machine = None if self._machine is None else part.machine(self._machine, names)
        if self.is_abstract:
            return DeviceGrid(AbstractMesh(part.shape, kept), machine=machine)
        devices = self._devices[np.ix_(*part.places)].reshape(part.shape)
        return DeviceGrid(Mesh(devices, kept), machine=machine)

    __iter__ = None  # else Python would iterate by __getitem__

    def with_devices(self) -> DeviceGrid:
        """Return this device grid; if it has no devices, one of that mesh with JAX's first devices.

        Raises `LayoutError` if JAX has too few devices.
        """
        if not self.is_abstract:
            return self
        return _restored(self.shape, tuple(self.sizes), False, self._given, self._machine)

    def check_has_devices(self, what: str) -> None:
        """Raise `LayoutError` if there are no devices; `what` needs them."""
        if self.is_abstract:
            raise LayoutError(
                f"{what} needs devices, but {self!r} has none: an AbstractMesh serves to place "
                "grids, report programs and plan relayouts. Use "
                "gl.DeviceGrid(jax.sharding.Mesh(devices, names)) to hold data"
            )

    def count(self, axes: tuple[str, ...]) -> int:
        """Return the number of devices along some axes of `fine`."""
        if axes not in self._counts:
            self._counts[axes] = self._axes.count(axes)
        return self._counts[axes]

    def fine_axes(self, axis: str) -> tuple[str, ...]:
        """Return the axes of `fine` into which an axis of `mesh` is split."""
        return self._axes.factors[axis]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of devices along each axis of `mesh`, by its name."""
        return {str(name): int(size) for name, size in self.mesh.shape.items()}

    def names(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of some axes of `fine`; an axis of `mesh` for all of its factors.

        Axes of one device are omitted.
        """
        if axes not in self._names:
            self._names[axes] = self._axes.short_names(axes)
        return self._names[axes]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and (
            (self.mesh, self._stated, self._machine) == (other.mesh, other._stated, other._machine)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.mesh, self._stated, self._machine))

    def __reduce__(self) -> Any:
        # Another process may have other devices, perhaps with the same numbers.
        names = tuple(self.sizes)
        ids = () if self.is_abstract else tuple(device.id for device in self._devices.flat)
        return _restored, (self.shape, names, self.is_abstract, self._given, self._machine, ids)

    def __deepcopy__(self, memo: Any) -> DeviceGrid:
        return self

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        stated = "" if self._stated is None else f", core_map={str(self._stated.map)!r}"
        return f"DeviceGrid({axes}, {self.platform}{stated})"

    @property
    def words(self) -> str:
        """The repr and the numbers of the devices, for messages about several device grids."""
        if self.is_abstract:
            return repr(self)
        ids = [device.id for device in self.fine.devices.flat]
        shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
        return f"{self!r} of devices {shown}"

    def active(self) -> AbstractContextManager[Any]:
        """Return the context in which programs on this grid run, whatever mesh the user has set.

        Raises `LayoutError` in the body of a `jax.shard_map`, where XLA would crash, and if that
        mesh has the same devices in another order, because JAX then runs no program.
        """
        return programs_on(self.fine, self)

    def replicate(self, x: Any) -> Any:
        """Return an array replicated on all devices, as results are; other objects as they are.

        A function whose results are its next operands is then compiled once.
        """
        return copied(x, self.replicated, is_local=len(self.processes) < 2)

    def placement(self, grid: ShapeLike | Layout) -> Placement:
        """Return which mesh axes divide which dims of a virtual grid, or of a layout's.

        A layout may name them, by `mesh_axes`. Otherwise the `core_map` of the device grid decides
        if there is one that maps the grid, and else these rules do, in this order: the fewest cores
        per device; the most devices with work; for a grid of more than two dims, as many devices as
        possible along the first dims, so that each has full planes of rows and columns; full mesh
        axes rather than factors; blocks of cores that are as square as possible; mesh axes in the
        order of the grid dims. An axis that would leave its devices idle, or change nothing,
        divides no dim: the devices along it hold copies.

        Raises `PlacementError` for a layout that names axes which the mesh does not have, or of
        more devices than a dim of its grid has cores.
        """
        if isinstance(grid, Layout):
            return self.placements.of_layout(grid)
        if (known := self.placements.known(grid)) is not None:
            return known
        return self.placements.of(as_shape(grid, "grid"))

    def placed(
        self, grid: Shape, axes: Sequence[tuple[str, ...]], per_device: Shape | None = None
    ) -> Placement:
        """Return the placement in which the given axes of `fine` divide the dims of a grid."""
        return Placement.of(self._axes, grid, axes, per_device)

    def core_map(self, grid: ShapeLike | Layout) -> AffineMap:
        """Return the map: virtual core -> (coordinates in the mesh ..., core in the device ...).

        The map has one result per mesh axis, then one per grid dim. If the `core_map` of the
        device grid maps the grid, it is that map. If devices hold copies, the map gives the first.
        """
        return self.placements.core_map(self.placement(grid))

    def first_cores(self, grid: ShapeLike | Layout) -> NDArray[np.int64]:
        """Return the first core of each device, in the shape (devices, grid dims).

        The devices are in the row-major order of `mesh`. The first core may be an idle slot.

        >>> DeviceGrid(AbstractMesh((2, 2), ("x", "y"))).first_cores((3, 2)).tolist()
        [[0, 0], [0, 1], [2, 0], [2, 1]]
        """
        return self.placements.first_cores(self.placement(grid))

    def describe(self, layout: Layout) -> Description:
        """Return what each device stores of an array: cores, idle slots, elements and bytes.

        No devices are needed. Notebooks show the result with a drawing. Raises `LayoutError` if
        `layout` is no layout.

        >>> from gridlayout import GridLayout
        >>> device = DeviceGrid(AbstractMesh((2, 2), ("x", "y")))
        >>> print(device.describe(GridLayout((5, 8), "float32", grid=(3, 2))))
        float32[5,8] on grid 3x2, mesh x=2, y=2
          each of 4 devices has 2 slots, 64 B
          4 devices have cores, 2 slots are idle
          elements: 16 at most on a device, 1.60 times the mean; each is on 1 of them
          device      cores  idle  elements     bytes of them
          (0, 0)          2     0        16            64 B
          (0, 1)          2     0        16            64 B
          (1, 0)          1     1         4            16 B
          (1, 1)          1     1         4            16 B
        """
        return Description.of(layout, self)

    def sharding(self, layout: Layout, batch: int = 0) -> NamedSharding:
        """Return the sharding of the storage of a layout; `batch` leading dims are not divided.

        For a layout in host memory, the sharding has the memory kind of the host.
        """
        found = self.partitioned(layout, batch)
        kind = self.memory_kind(layout)
        return found if kind is None else found.with_memory_kind(kind)

    def partitioned(self, layout: Layout, batch: int = 0) -> NamedSharding:
        """Return the sharding of the storage of a layout in device memory, where programs run."""
        check_sendable(layout.dtype)
        spec = self.placement(layout).spec
        return NamedSharding(self.fine, PartitionSpec(*(None,) * batch, *spec))

    def memory_kind(self, layout: Layout) -> str | None:
        """Return JAX's memory kind of a layout in host memory (`system` or `mmio`).

        None for a layout in the memory of the devices, and if the backend has no host memory.
        """
        return _HOST if layout.memory in HOST_SPACES and self._has_host_memory else None

    @cached_property
    def _has_host_memory(self) -> bool:
        return not self.is_abstract and _HOST in memory_kinds(self._devices.flat[0])

    def storage_shape(self, layout: Layout) -> Shape:
        """Return the physical shape, with grid dims rounded up to the mesh by idle slots."""
        return (*self.placements.inner(layout).slots, *layout.local_shape)

    @cached_property
    def replicated(self) -> NamedSharding:
        """The sharding of a replicated value."""
        return NamedSharding(self.fine, PartitionSpec())


def _restored(
    sizes: Shape,
    names: tuple[str, ...],
    is_abstract: bool,
    core_map: Any,
    machine: Machine | None,
    ids: tuple[int, ...] = (),
) -> DeviceGrid:
    """Return an unpickled device grid: of the devices with these numbers, else the first ones."""
    mesh = AbstractMesh(sizes, names) if is_abstract else numbered_devices(ids, sizes, names)
    return DeviceGrid(mesh, core_map=core_map, machine=machine)
