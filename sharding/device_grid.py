"""`DeviceGrid`: the physical mesh of JAX devices, and how a virtual core grid folds onto it.

Grid dims are the leading dims of the physical array, so a placement is a `NamedSharding` over them:
every mesh axis goes to one grid dim, or to none. A grid dim that its axes do not divide gets idle
slots at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gridlayout.affine.map import AffineExpr, AffineMap, dim
from gridlayout.arguments import as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import HOST_SPACES
from gridlayout.sharding.collectives import check_sendable
from gridlayout.sharding.core_map import stated_map
from gridlayout.sharding.default_machine import FAST, default_machine
from gridlayout.sharding.description import Description
from gridlayout.sharding.machine import Machine
from gridlayout.sharding.meshes import first_devices, numbered_devices
from gridlayout.sharding.placement import MeshAxes, Placement, default_placement
from gridlayout.sharding.submesh import Submesh
from gridlayout.sharding.topology import hosts_of
from gridlayout.tenstorrent.core_maps import CoreMap

Shape = tuple[int, ...]
# The one kind of host memory that JAX's programs write to.
_HOST = "pinned_host"


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

    core_map: where grids lie, instead of the rule of `placement`: a map from a virtual core to its
    device's coordinates in the mesh, then the core inside the device (tt-mlir, "Multi-Core": "an
    additional affine map that defines how this virtual grid shape maps to a physical one"). A
    `gl.AffineMap` or its text; the text of a `ttcore.device`, or a `gl.tenstorrent.CoreMap`, whose
    device number counts the mesh row-major. It holds for every grid of its rank that it maps into
    the mesh, no two cores to one place; other grids are placed by the rule. Data lies and
    computation runs on the devices that it names. Where the mesh's axes do not count them in the
    map's order (a snake, a staircase), `fine` takes them in that order, for all grids.
    `LayoutError`, once such a grid is placed: a device whose cores are no box of consecutive ones
    (a cyclic map); devices in an order that no axes count.

    machine: what the devices take to send and to compute, by which is chosen what they do
    (`gl.Machine`); by default that of their kind. Of emulated devices a collective takes time of
    its own, so few are sent; an `AbstractMesh` is taken to have fast links, where bytes decide.
    `LayoutError`: one of another mesh.

    >>> folded = DeviceGrid((1,), core_map="(d0, d1) -> (0, d1 floordiv 8, d1 mod 8)")
    >>> str(folded.core_map((1, 64))), str(folded.core_map((3,)))
    ('(d0, d1) -> (0, d1 floordiv 8, d1 mod 8)', '(d0) -> (0, d0)')
    """

    def __init__(
        self,
        mesh: Mesh | AbstractMesh | Sequence[int],
        *,
        core_map: AffineMap | CoreMap | str | None = None,
        machine: Machine | None = None,
    ) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            mesh = first_devices(mesh)
        names = tuple(map(str, mesh.axis_names))
        sizes = tuple(mesh.shape.values())
        if not sizes or 0 in sizes:
            raise LayoutError(f"a device grid's mesh must have axes with devices, not {sizes}")
        self.is_abstract: bool = isinstance(mesh, AbstractMesh)
        self._devices: Any = mesh.devices if isinstance(mesh, Mesh) else None
        if machine is not None:
            if not isinstance(machine, Machine):
                raise LayoutError(f"machine {machine!r} must be a gl.Machine")
            machine.check_mesh(sizes)
        self._machine = None if machine is None else machine.named(names)
        self.mesh: Any = self._mesh(sizes, names)
        self._axes: MeshAxes = MeshAxes.of(names, sizes)
        self._given, self._stated = core_map, None
        self.order: tuple[int, ...] = tuple(range(prod(sizes)))
        if core_map is not None:
            self._stated = stated_map(core_map, sizes, self._axes)
            self.order = self._stated.order or self.order
        self._counts: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._placements: dict[Shape, Placement] = {}
        self._by_map: dict[Shape, Placement | None] = {}  # what the core map says, grid by grid
        # All shardings are on this one mesh, since JAX takes one mesh a program.
        self.fine: Any = self._mesh(self._axes.sizes, self._axes.names, self.order)

    def _mesh(
        self, sizes: Shape, names: tuple[str, ...], order: Sequence[int] | None = None
    ) -> Mesh | AbstractMesh:
        auto = (AxisType.Auto,) * len(names)
        if self.is_abstract:
            return AbstractMesh(sizes, names, axis_types=auto)
        devices = self._devices.ravel()
        devices = devices if order is None else devices[list(order)]
        return Mesh(devices.reshape(sizes), names, axis_types=auto)

    @cached_property
    def shape(self) -> Shape:
        """The number of devices along each mesh axis."""
        return tuple(self.mesh.shape.values())

    @cached_property
    def size(self) -> int:
        """Devices in all."""
        return prod(self.shape)

    @property
    def platform(self) -> str:
        """The devices' platform, as JAX names it; `abstract` where there are none."""
        return "abstract" if self.is_abstract else str(self._devices.flat[0].platform)

    @cached_property
    def machine(self) -> Machine:
        """What the devices take to send and to compute: as stated, else that of their kind."""
        if self._machine is not None:
            return self._machine
        if self.is_abstract:
            return FAST
        names = tuple(map(str, self.mesh.axis_names))
        hosts = hosts_of(self.fine.devices, self.shape)
        kind = self._devices.flat[0].device_kind
        return default_machine(self.platform, kind, self.shape, names, hosts)

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """The processes whose devices these are, in order, as JAX numbers them."""
        return (
            () if self.is_abstract else tuple(sorted({d.process_index for d in self._devices.flat}))
        )

    def with_machine(self, machine: Machine) -> DeviceGrid:
        """The same devices, as another machine."""
        mesh = self.mesh if self.is_abstract else Mesh(self._devices, self.mesh.axis_names)
        return DeviceGrid(mesh, core_map=self._given, machine=machine)

    def __getitem__(self, index: Any) -> DeviceGrid:
        """Some of the devices, as a device grid: slices and numbers, one an axis of the mesh.

        As of a NumPy array: a slice keeps its axis and the axis' name, a number drops it, `...`
        stands for whole axes. Of a stated machine, that of these devices. An array is on one device
        grid; `gl.relayout(x, layout, device)` moves it to another. `LayoutError` where the index
        takes no device, or no axis is left, and of a device grid with a `core_map`, which maps to
        places in the whole mesh.

        >>> whole = DeviceGrid(AbstractMesh((4, 2), ("data", "model")))
        >>> whole[:2], whole[1], whole[..., ::-1].shape
        (DeviceGrid(data=2, model=2, abstract), DeviceGrid(model=2, abstract), (4, 2))
        """
        names = tuple(map(str, self.mesh.axis_names))
        if self._stated is not None:
            raise LayoutError(
                f"a part of {self!r} has other places than its core_map names: take "
                "gl.DeviceGrid(device.mesh)[...], and give a map of its own to "
                "gl.DeviceGrid(part.mesh, core_map=)"
            )
        part = Submesh.of(index, self.shape, names)
        kept = tuple(names[k] for k in part.kept)
        machine = None if self._machine is None else part.machine(self._machine)
        if self.is_abstract:
            return DeviceGrid(AbstractMesh(part.shape, kept), machine=machine)
        devices = self._devices[np.ix_(*part.places)].reshape(part.shape)
        return DeviceGrid(Mesh(devices, kept), machine=machine)

    __iter__ = None  # a mesh is no sequence of its rows

    def with_devices(self) -> DeviceGrid:
        """The same mesh of the first devices that JAX has; `LayoutError` where they are too few."""
        if not self.is_abstract:
            return self
        names = tuple(map(str, self.mesh.axis_names))
        return _restored(self.shape, names, False, self._given, self._machine)

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
            self._counts[axes] = self._axes.count(axes)
        return self._counts[axes]

    def fine_axes(self, axis: str) -> tuple[str, ...]:
        """The axes of `fine` that an axis of `mesh` is made of."""
        return self._axes.factors[axis]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Devices along each axis of `mesh`, by its name."""
        return {str(name): int(size) for name, size in self.mesh.shape.items()}

    def names(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Axes of `fine` as axes of `mesh`, where all factors of one are among them."""
        if axes not in self._names:
            found: list[str] = []
            for whole, factors in self._axes.factors.items():
                mine = tuple(axis for axis in factors if axis in axes)
                groups = [(whole, mine)] if mine == factors else [(a, (a,)) for a in mine]
                found += [name for name, group in groups if self.count(group) > 1]
            self._names[axes] = tuple(found)
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
        # Another process has devices of its own, perhaps of the same numbers.
        names = tuple(map(str, self.mesh.axis_names))
        ids = () if self.is_abstract else tuple(device.id for device in self._devices.flat)
        return _restored, (self.shape, names, self.is_abstract, self._given, self._machine, ids)

    def __deepcopy__(self, memo: Any) -> DeviceGrid:
        return self

    def __repr__(self) -> str:
        axes = ", ".join(f"{n}={s}" for n, s in zip(self.mesh.axis_names, self.shape, strict=True))
        stated = "" if self._stated is None else f", core_map={str(self._stated.map)!r}"
        return f"DeviceGrid({axes}, {self.platform}{stated})"

    @property
    def words(self) -> str:
        """What it is, and which devices it has: for messages about several device grids."""
        if self.is_abstract:
            return repr(self)
        ids = [device.id for device in self.fine.devices.flat]
        shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
        return f"{self!r} of devices {shown}"

    def active(self) -> AbstractContextManager[Any]:
        """The context in which programs on this grid run, whatever mesh the user has set.

        `LayoutError` in the body of a `jax.shard_map`, which XLA does not survive, and where that
        mesh has the same devices in another order, which JAX runs nothing on.
        """
        if axes := jax.sharding.get_abstract_mesh().manual_axes:
            raise LayoutError(
                f"the body of a jax.shard_map over {', '.join(map(str, axes))} is one device's, "
                f"and programs on {self!r} are all its devices': call gl.on_grid, gl.numpy and "
                "what moves GridArrays outside of it, or write it with gl.map_shards"
            )
        self._check_order()
        mesh = self.fine if self.is_abstract else self.fine.abstract_mesh
        return jax.sharding.use_abstract_mesh(mesh)

    def _check_order(self) -> None:
        """`LayoutError` unless the mesh that the user has set has the devices in this order."""
        try:
            mesh = jax.sharding.get_mesh()
        except ValueError:  # JAX is tracing, and has compared them
            return
        if self.is_abstract or mesh.empty:
            return
        own, others = list(self.fine.devices.flat), list(mesh.devices.flat)
        if own != others and set(own) == set(others):
            raise LayoutError(
                f"the mesh in use, of axes {dict(mesh.shape)}, has the devices of {self!r} in "
                "another order, and JAX runs programs over one order only: set a mesh made of "
                "device.fine.devices, or call outside of jax.set_mesh"
            )

    def whole(self, x: Any) -> Any:
        """A plain array on every device, where results are: so a step is compiled once."""
        if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
            return x
        if isinstance(x, jax.Array) and x.sharding == self.replicated:
            return x
        return jax.device_put(x, self.replicated)

    def on_mesh_in_use(self, array: Any) -> Any:
        """An array that every device has, on the mesh that the user has set, if there is one.

        JAX's own functions take arrays of that mesh only, where its axes are Explicit.
        """
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.empty or isinstance(array, jax.core.Tracer):
            return array
        return jax.device_put(array, PartitionSpec())

    def placement(self, grid: Sequence[int]) -> Placement:
        """Which mesh axes divide which dim of a virtual grid.

        As the device grid's `core_map` says where it was given one and that maps the grid. Else the
        fewest cores on a device first, then the most devices with work; of a grid of more than two
        dims, the first go to as many devices as they can, so that each has whole planes of rows and
        columns; then whole mesh axes, then blocks of cores as square as can be, then mesh axes in
        the order of the grid dims. An axis that would leave its devices idle or change nothing
        divides no dim: the devices along it hold copies.
        """
        if type(grid) is tuple and set(map(type, grid)) <= {int} and grid in self._placements:
            return self._placements[grid]
        shape = as_shape(grid, "grid")
        found = self._stated_placement(shape) or default_placement(self._axes, shape)
        return self._placements.setdefault(shape, found)

    def placed(
        self, grid: Shape, axes: Sequence[tuple[str, ...]], per_device: Shape | None = None
    ) -> Placement:
        """The placement in which these axes of `fine` divide each dim of a grid."""
        return self._axes.placement(grid, axes, per_device)

    def _stated_placement(self, grid: Shape) -> Placement | None:
        if self._stated is not None and grid not in self._by_map:
            self._by_map[grid] = self._stated.placement(grid)
        return self._by_map.get(grid)

    def core_map(self, grid: Sequence[int]) -> AffineMap:
        """Virtual core -> (coordinates in the mesh ..., core inside the device ...).

        The mesh coordinates come first, one a mesh axis, then one number a grid dim; or whatever
        the map says that the device grid was given. Where devices hold copies, the map names the
        first.
        """
        placement = self.placement(grid)
        if self._stated is not None and self._stated_placement(placement.grid) is not None:
            return self._stated.map
        digits: dict[str, AffineExpr] = {}
        inside = []
        for k, axes in enumerate(placement.axes):
            index = dim(k) // placement.per_device[k]
            for axis in reversed(axes):
                size = self._axes.size_of[axis]
                digits[axis] = index % size if axis != axes[0] else index
                index = index // size
            inside.append(dim(k) % placement.per_device[k])
        rank = len(placement.grid)
        if self._stated is None:
            coordinates = self._axes.coordinates(digits)
        else:
            coordinates = self._stated.coordinates(rank, digits)
        return AffineMap(rank, (*coordinates, *inside)).simplify(placement.grid)

    def first_cores(self, grid: Sequence[int]) -> NDArray[np.int64]:
        """The first core of each device's part, which may be an idle slot: devices x grid dims.

        Devices as `mesh` counts them, row-major.

        >>> DeviceGrid(AbstractMesh((2, 2), ("x", "y"))).first_cores((3, 2)).tolist()
        [[0, 0], [0, 1], [2, 0], [2, 1]]
        """
        placement = self.placement(grid)
        places = np.unravel_index(np.arange(self.size), self._axes.sizes)
        at = dict(zip(self._axes.names, places, strict=True))
        found = np.zeros((self.size, len(placement.grid)), np.int64)
        for k, axes in enumerate(placement.axes):
            if axes:
                sizes = tuple(map(self._axes.size_of.__getitem__, axes))
                part = np.ravel_multi_index(tuple(at[axis] for axis in axes), sizes)
                found[list(self.order), k] = part * placement.per_device[k]
        return found

    def describe(self, layout: Layout) -> Description:
        """What each device holds of an array in a layout: cores, idle slots, elements and bytes.

        It needs no devices; notebooks show it beside a drawing. `LayoutError` unless it is a
        layout.

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
        """The sharding of a layout's storage; `batch` leading dims are whole on every device.

        Of a layout in host memory, its memory kind too.
        """
        found = self.partitioned(layout, batch)
        kind = self.memory_kind(layout)
        return found if kind is None else found.with_memory_kind(kind)

    def partitioned(self, layout: Layout, batch: int = 0) -> NamedSharding:
        """The same sharding in the devices' own memory, where programs run."""
        check_sendable(layout.dtype)
        spec = self.placement(layout.core_shape).spec
        return NamedSharding(self.fine, PartitionSpec(*(None,) * batch, *spec))

    def memory_kind(self, layout: Layout) -> str | None:
        """JAX's memory kind of a layout in the host's memory, `system` or `mmio`.

        None for the devices' own, and where the backend has no other.
        """
        return _HOST if layout.memory in HOST_SPACES and self._has_host_memory else None

    @cached_property
    def _has_host_memory(self) -> bool:
        if self.is_abstract:
            return False
        return any(m.kind == _HOST for m in self._devices.flat[0].addressable_memories())

    def storage_shape(self, layout: Layout) -> Shape:
        """The physical shape with the grid dims rounded up to the mesh: where idle slots are."""
        return (*self.placement(layout.core_shape).slots, *layout.local_shape)

    @cached_property
    def replicated(self) -> NamedSharding:
        """The sharding of a value that every device holds whole."""
        return NamedSharding(self.fine, PartitionSpec())


def check_device(device: Any) -> None:
    """`LayoutError` unless it is a `DeviceGrid`."""
    if not isinstance(device, DeviceGrid):
        raise LayoutError(
            f"device {device!r} must be a gl.DeviceGrid, such as gl.DeviceGrid((2, 4))"
        )


def _restored(
    sizes: Shape,
    names: tuple[str, ...],
    is_abstract: bool,
    core_map: Any,
    machine: Machine | None,
    ids: tuple[int, ...] = (),
) -> DeviceGrid:
    """An unpickled device grid: of the devices of these numbers, else of the first ones."""
    if is_abstract:
        return DeviceGrid(AbstractMesh(sizes, names), core_map=core_map, machine=machine)
    mesh = numbered_devices(ids, sizes, names)
    return DeviceGrid(mesh, core_map=core_map, machine=machine)
