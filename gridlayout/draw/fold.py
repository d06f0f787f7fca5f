"""Draws the fold of a virtual core grid onto a device grid: tensor, virtual grid, devices.

The device of each core is that of `core_map`; the slots of each device, some of which may be idle,
are those of the placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Ints, Shape
from gridlayout.draw.cells import PADDING, Cell
from gridlayout.draw.colourings import Colouring, Field, Members, by_numbers, find_coloured, legend
from gridlayout.draw.logical import (
    BUDGET,
    Table,
    box_of,
    cell_texts,
    drawn_keys,
    in_words,
    logical_panel,
    short,
    tensor_text,
)
from gridlayout.draw.notes import NUMBERS, caveats, members_in_words
from gridlayout.draw.panels import Axis, Panel, dim_axis, figure
from gridlayout.draw.points import Points, number, tuple_text
from gridlayout.errors import LayoutError
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout


class Devices(Protocol):
    """The interface of a device grid that is used here; `gl.DeviceGrid` has it."""

    @property
    def mesh(self) -> Any:
        """The mesh, which says how many devices each axis has: `shape`."""

    @property
    def shape(self) -> Shape:
        """The number of devices along each mesh axis."""

    def core_map(self, grid: Layout) -> AffineMap:
        """Return the map: core -> (coordinates in the mesh ..., core inside the device ...)."""

    def placement(self, grid: Layout) -> Any:
        """Return the placement; `per_device` is the number of cores per device along each dim."""

    def first_cores(self, grid: Layout) -> Ints:
        """Return the first core of each device, in the shape (devices, grid dims)."""


def draw_fold(layout: Layout, *, device: Devices | None = None) -> Drawing:
    """Draw the tensor, the virtual grid and the device grid by device; idle slots are hatched.

    device: the `gl.DeviceGrid`. Raises `LayoutError` without one.
    """
    if device is None or not hasattr(device, "first_cores"):
        raise LayoutError("view 'fold' needs device=, a gl.DeviceGrid")
    to_device = device.core_map(layout)
    rank = len(device.shape)

    def device_of(core: tuple[Ints, ...]) -> Ints:
        return number(to_device(*core)[:rank], device.shape)

    def key(p: Points) -> Ints:
        return np.broadcast_to(device_of(p.physical[: layout.core_rank]), p.valid.shape)

    colours = by_numbers(key, Members("device", "devices", device.shape))
    colours = replace(colours, label=colours.name)
    table = Table(layout, (0,) * (layout.ndim - 2), layout.shape[-2:])
    virtual, physical = CoreGrid(layout, device_of), DeviceSlots.of(layout, device)
    fields = [table.field(), virtual.field(), physical.field()]
    (tensor, cores, slots), colours = find_coloured(fields, colours, BUDGET // 3)
    logical = logical_panel(table, tensor, colours, "core")
    panels = [
        replace(logical, caption=f"logical tensor {logical.caption}".strip()),
        virtual.panel(cores, colours),
        physical.panel(slots, colours),
    ]
    grid, mesh = ("x".join(map(str, sizes)) or "1" for sizes in (layout.core_shape, device.shape))
    entries = [
        (fill, "idle slot" if fill == "pad" else text)
        for fill, text in legend(colours, drawn_keys([tensor, cores, slots]))
    ]
    return figure(
        f"{tensor_text(layout)}: {grid} virtual cores on {mesh} devices",
        short(repr(layout)),
        f"{in_words(layout)} The cores are folded onto {mesh} devices.",
        panels,
        entries,
        caveats(panels),
        NUMBERS["core"],
        members_in_words(colours),
    )


@dataclass(frozen=True)
class CoreGrid:
    """The virtual grid: its last dim as columns, all others as rows."""

    layout: Layout
    device_of: Callable[[tuple[Ints, ...]], Ints]

    def cores(self, r: Ints, c: Ints) -> tuple[Ints, ...]:
        """Return the coordinates of the cores at rows and columns."""
        grid = self.layout.core_shape
        return np.unravel_index(r * grid[-1] + c, grid) if grid else ()

    def field(self) -> Field:
        """Return the table of the cores' devices, to find its cells."""
        grid = self.layout.core_shape

        def key(colours: Colouring, r: Ints, c: Ints) -> Ints:
            return colours.renumber(np.asarray(self.device_of(self.cores(r, c)), np.int64))

        return Field(prod(grid[:-1]), grid[-1] if grid else 1, key)

    def panel(self, cells: Sequence[Cell], colours: Colouring) -> Panel:
        """Return the panel of the grid, coloured by device."""
        grid, boxes = self.layout.core_shape, []
        for cell in cells:
            core = tuple_text(self.cores(np.array(cell.rows[0]), np.array(cell.columns[0])))
            label, text = cell_texts(cell, colours, f"from core {core}")
            if cell.size == 1:
                name = colours.name(cell.key)
                label, text = core, f"core {core}"
                text += "" if name == text else f" -> {name}"
            boxes.append(box_of(cell, colours, label, text))
        names = ("g0" if len(grid) == 2 else "", f"g{len(grid) - 1}" if grid else "")
        down, across = map(dim_axis, names)
        return Panel("virtual grid: cores", down, across, tuple(boxes))


@dataclass(frozen=True, eq=False)
class DeviceSlots:
    """The device grid, and the slots of each device.

    starts: the first core of each device. slots: cores per device along each grid dim.
    """

    layout: Layout
    device: Devices
    starts: Ints
    slots: Shape

    @classmethod
    def of(cls, layout: Layout, device: Devices) -> DeviceSlots:
        """Return the slots of a layout's storage on a device grid."""
        starts = device.first_cores(layout)
        return cls(layout, device, starts, device.placement(layout).per_device)

    @property
    def sides(self) -> tuple[int, int]:
        """The rows and columns of one device's slots."""
        return prod(self.slots[:-1]), (self.slots[-1] if self.slots else 1)

    def core(self, r: Ints, c: Ints) -> tuple[Ints, Ints]:
        """Return the device at a row and a column, and the core in the slot there."""
        high, wide = self.sides
        (down, i), (across, j) = np.divmod(r, high), np.divmod(c, wide)
        which = down * self.device.shape[-1] + across
        if not self.slots:
            return which, self.starts[which]
        inside = np.broadcast_arrays(*np.unravel_index(i * wide + j, self.slots))
        return which, self.starts[which] + np.stack(inside, axis=-1)

    def field(self) -> Field:
        """Return the table of devices, idle slots as padding, to find its cells."""
        mesh, (high, wide) = self.device.shape, self.sides
        grid = np.array(self.layout.core_shape, int)

        def key(colours: Colouring, r: Ints, c: Ints) -> Ints:
            which, cores = self.core(r, c)
            return np.where((cores < grid).all(axis=-1), colours.renumber(which), PADDING)

        return Field(prod(mesh[:-1]) * high, mesh[-1] * wide, key)

    def panel(self, cells: Sequence[Cell], colours: Colouring) -> Panel:
        """Return the panel of the devices and their slots."""
        boxes = []
        for cell in cells:
            which, cores = self.core(np.array([cell.rows[0]]), np.array([cell.columns[0]]))
            name = f"device {tuple_text(np.unravel_index(int(which[0]), self.device.shape))}"
            label, text = cell_texts(cell, colours, name)
            if cell.size == 1:
                idle = cell.key == PADDING
                label = "" if idle else tuple_text(cores[0])
                text = f"{name}: {'an idle slot' if idle else f'core {label}'}"
            boxes.append(box_of(cell, colours, label, text))
        *leading, last = map(str, self.device.mesh.axis_names)
        high, wide = self.sides
        axes = (_device_axis(",".join(leading), high), _device_axis(last, wide))
        return Panel("device grid: cores on each device", *axes, tuple(boxes))


def _device_axis(name: str, n: int) -> Axis:
    """Return an axis whose ticks count devices of `n` slots each."""
    return Axis(name, lambda edge: str(edge // n), (n,), each=n)
