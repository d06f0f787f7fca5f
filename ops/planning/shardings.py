"""`Shardings`: a plan's layouts as JAX's shardings, on a mesh of the user.

Parts of a `NamedSharding` are equal boxes, and it names whole axes of a mesh. A plan may divide a
dim by some of the prime factors of an axis: then the sharding is on a mesh of the same devices with
these axes. It may also divide a dim unevenly, which no sharding expresses.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.arguments import shown
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.choose.division import Units
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.logical_sharding import named_sharding


class Shardings(NamedTuple):
    """The shardings of a function's arguments and results, in trees of their structure.

    A leaf that is no array has None.
    """

    arguments: Any
    results: Any


@dataclass(frozen=True, eq=False)
class NamedMesh:
    """A user's mesh in place of a plan's: which of its axes are which axes of `device.fine`.

    parts: for each axis of the user's mesh, the axes of `device.fine`; none for one of one device.
    """

    device: DeviceGrid
    mesh: Mesh
    parts: Mapping[str, Axes]

    @classmethod
    def of(cls, device: DeviceGrid, mesh: Any) -> NamedMesh:
        """Return a mesh in place of `device`; `LayoutError` for one of another shape."""
        if not isinstance(mesh, Mesh):
            raise LayoutError(f"mesh {shown(mesh)} must be a jax.sharding.Mesh")
        if device.machine.has_cores:
            raise LayoutError(
                f"the plan is for cores of {device.machine.chip.name}, and the devices of JAX are "
                "chips: JAX has no sharding over cores. Plan for a machine without cores"
            )
        if device.order != tuple(range(device.size)):
            raise LayoutError(
                f"the plan is for {device!r}, whose core_map states an order of devices that no "
                "mesh has: plan for a device grid without core_map"
            )
        parts = _parts(device, mesh)
        if parts is None:
            sizes = ", ".join(f"{name}={n}" for name, n in mesh.shape.items())
            raise LayoutError(
                f"the plan is for a mesh of {device.shape} devices, and this one has {sizes}: give "
                f"a mesh of the shape {device.shape}, or {device.fine.axis_sizes}, with names of "
                "your own"
            )
        return cls(device, mesh, parts)

    def entry(self, axes: Axes) -> Axes | None:
        """Return the user's axes that are these axes of `device.fine`; None where none are."""
        found = []
        while axes:
            own = next(
                (n for n, part in self.parts.items() if part and axes[: len(part)] == part), None
            )
            if own is None:
                return None
            found.append(own)
            axes = axes[len(self.parts[own]) :]
        return tuple(found)

    @cached_property
    def finer(self) -> NamedMesh:
        """The mesh of the same devices whose axes are those of `device.fine`."""
        names, sizes = self.device.fine.axis_names, self.device.fine.axis_sizes
        mesh = Mesh(self.mesh.devices.reshape(sizes), names)
        return NamedMesh(self.device, mesh, {name: (name,) for name in names})

    def sharding(self, dims: Sequence[Axes | Any]) -> NamedSharding:
        """Return a sharding by the user's axes along each dim."""
        entries = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in dims]
        return NamedSharding(self.mesh, PartitionSpec(*(None if x == () else x for x in entries)))

    def of_axes(self, dims: Sequence[Axes | None]) -> NamedSharding:
        """Return the sharding by axes of `device.fine` along each dim; None leaves a dim open.

        It is on the finer mesh if the user's has no such axes.
        """
        entries = [PartitionSpec.UNCONSTRAINED if x is None else self.entry(x) for x in dims]
        return self.finer.of_axes(dims) if None in entries else self.sharding(entries)

    def of_layout(self, layout: Layout | None) -> tuple[NamedSharding, list[str]]:
        """Return the sharding of a layout, and why its dims that are not divided are not.

        Without a layout, an array is replicated.
        """
        if layout is None:
            return self.sharding([]), []
        spec = Sharded(layout, self.device.placement(layout))
        units = Units.apart(self.device, [spec])
        division = units.division(spec)
        if division is None:
            return self.sharding([]), ["its parts are no boxes of whole dims"]
        dims, reasons = list[Axes](), list[str]()
        for d, (n, some) in enumerate(zip(layout.shape, division, strict=True)):
            axes = units.mesh_axes(some)
            if n % (count := self.device.count(axes)):
                reasons.append(f"dim {d} of {n} elements is not a multiple of {count} devices")
            dims.append(() if n % count else axes)
        if not reasons:
            try:
                named_sharding(layout, self.device)
            except LayoutError:
                reasons.append("its parts are not of one size, or some devices have none")
        kind = self._own.memory_kind(layout)
        found = self.of_axes(dims)
        return found if kind is None else found.with_memory_kind(kind), reasons

    @cached_property
    def _own(self) -> DeviceGrid:
        return DeviceGrid(self.mesh)

    def of_layouts(
        self, layouts: Iterable[tuple[str, Layout | None]], strict: bool
    ) -> list[NamedSharding]:
        """Return the shardings of layouts by their names.

        strict: whether a layout that no sharding expresses is a `LayoutError`, which names all such
        layouts. Otherwise its dims that can't be expressed are not divided, with a warning.
        """
        found, reasons = list[NamedSharding](), list[str]()
        for name, layout in layouts:
            sharding, why = self.of_layout(layout)
            found.append(sharding)
            reasons += [f"{name}: {'; '.join(why)}"] if why else []
        self._report(reasons, strict)
        return found

    def _report(self, reasons: Sequence[str], strict: bool) -> None:
        """Raise a `LayoutError` or warn of layouts that no sharding on this mesh expresses."""
        if not reasons:
            return
        text = f"layouts of the plan are no NamedShardings on this mesh: {', '.join(reasons)}"
        if strict:
            raise LayoutError(
                f"{text}. gl.on_grid(fn, policy=plan) runs every plan; strict=False replicates "
                "these dims"
            )
        warnings.warn(f"{text}. These dims are replicated", LayoutWarning, stacklevel=6)


def _parts(device: DeviceGrid, mesh: Mesh) -> dict[str, Axes] | None:
    """Return `NamedMesh.parts`; None where an axis is no part of one axis of the plan's mesh."""
    axes = [device.fine_axes(name) for name, size in device.sizes.items() if size > 1]
    found: dict[str, Axes] = {}
    for name, size in mesh.shape.items():
        found[name] = ()
        if size == 1:
            continue
        first = axes[0] if axes else ()
        count = next((k for k in range(1, len(first) + 1) if device.count(first[:k]) == size), None)
        if count is None:
            return None
        found[name] = first[:count]
        axes[:1] = [first[count:]] if first[count:] else []
    return None if axes else found
