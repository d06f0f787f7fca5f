"""The fold of a virtual core grid onto a device grid, drawn: tensor, virtual grid, devices.

What is drawn is what the placement says: `core_map` names the device of each core, and the sharding
of the storage the slots of each device, of which some may be idle.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.draw.cells import PADDING, find_cells
from gridlayout.draw.colourings import Colouring, by_numbers, fill
from gridlayout.draw.logical import (
    BUDGET,
    Table,
    caveats,
    cell_texts,
    in_words,
    legend,
    logical_panel,
    short,
    tensor_text,
)
from gridlayout.draw.panels import Axis, Box, Panel, dim_axis, figure
from gridlayout.draw.points import Ints, number, tuple_text
from gridlayout.draw.svg import Drawing
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout


class Devices(Protocol):
    """What a device grid tells here: `gl.DeviceGrid` is one."""

    mesh: Any

    @property
    def shape(self) -> Shape:
        """Devices along each mesh axis."""

    def core_map(self, grid: Shape) -> AffineMap:
        """Virtual core -> (coordinates in the mesh ..., core inside the device ...)."""

    def sharding(self, layout: Layout) -> Any:
        """The sharding of a layout's storage."""

    def storage_shape(self, layout: Layout) -> Shape:
        """The physical shape with the grid dims rounded up."""


def draw_fold(layout: Layout, *, device: Devices | None = None) -> Drawing:
    """The tensor, the virtual grid and the device grid, by device; idle slots are hatched.

    device: the `gl.DeviceGrid`. `LayoutError` without one.
    """
    if device is None or not hasattr(device, "core_map"):
        raise LayoutError("view 'fold' needs device=, a gl.DeviceGrid")
    to_device = device.core_map(layout.core_shape)
    rank = len(device.shape)

    def device_of(core: tuple[Ints, ...]) -> Ints:
        return number(to_device(*core)[:rank], device.shape)

    colours = by_numbers(
        lambda p: np.broadcast_to(device_of(p.physical[: layout.core_rank]), p.valid.shape),
        "device",
        device.shape,
    )
    colours = replace(colours, label=colours.name)
    leading = (0,) * (layout.ndim - 2)
    tensor, seen = logical_panel(
        Table(layout, leading, layout.shape[-2:]), colours, "core", BUDGET // 3
    )
    caption = f"logical tensor {tensor.caption}".strip()
    tensor = Panel(caption, tensor.rows, tensor.columns, tensor.boxes)
    virtual, used = _virtual(layout, device_of, colours)
    panels = [tensor, virtual, _physical(layout, device, colours)]
    idle = {PADDING} if any(box.fill == "pad" for box in panels[2].boxes) else set()
    grid, mesh = ("x".join(map(str, sizes)) or "1" for sizes in (layout.core_shape, device.shape))
    entries = [
        (fill_, "idle slot" if fill_ == "pad" else text)
        for fill_, text in legend(colours, seen | used | idle)
    ]
    return figure(
        f"{tensor_text(layout)}: {grid} virtual cores on {mesh} devices",
        short(repr(layout)),
        f"{in_words(layout)} The cores are folded onto {mesh} devices.",
        panels,
        entries,
        caveats(panels),
    )


def _virtual(layout: Layout, device_of: Any, colours: Colouring) -> tuple[Panel, set[int]]:
    """The virtual grid, the last dim as columns, all others as rows; and the devices it names."""
    grid = layout.core_shape
    columns = grid[-1] if grid else 1

    def cores(r: Ints, c: Ints) -> tuple[Ints, ...]:
        return np.unravel_index(r * columns + c, grid) if grid else ()

    def key(r: Ints, c: Ints) -> Ints:
        return np.asarray(device_of(cores(r, c)), np.int64)

    boxes = []
    cells = find_cells(prod(grid[:-1]), columns, key, BUDGET // 3)
    for cell in cells:
        core = tuple_text(cores(np.array(cell.rows[0]), np.array(cell.columns[0])))
        label, text = cell_texts(cell, colours, f"from core {core}")
        if cell.size == 1:
            label, text = core, f"core {core} -> {colours.name(cell.key)}"
        boxes.append(Box(cell.rows, cell.columns, fill(colours, cell.key), label, text))
    names = ("g0" if len(grid) == 2 else "", f"g{len(grid) - 1}" if grid else "")
    down, across = map(dim_axis, names)
    panel = Panel("virtual grid: cores", down, across, tuple(boxes))
    return panel, {found for cell in cells for found in cell.found}


def _physical(layout: Layout, device: Devices, colours: Colouring) -> Panel:
    """The device grid, and in each device the slots that its part of the storage has."""
    grid, mesh = layout.core_shape, device.shape
    storage = device.storage_shape(layout)[: len(grid)]
    parts = device.sharding(layout).devices_indices_map(device.storage_shape(layout))
    bounds = [
        [s.indices(n) for s, n in zip(parts[d], storage, strict=False)]
        for d in device.mesh.devices.flat
    ]
    starts = np.array([[low for low, _, _ in dims] for dims in bounds], int)
    slots = tuple(high - low for low, high, _ in bounds[0])
    wide, high = (slots[-1] if slots else 1), prod(slots[:-1])

    def core(r: Ints, c: Ints) -> tuple[Ints, Ints]:
        (down, i), (across, j) = np.divmod(r, high), np.divmod(c, wide)
        which = down * mesh[-1] + across
        inside = np.broadcast_arrays(*np.unravel_index(i * wide + j, slots)) if slots else []
        return which, starts[which] + (np.stack(inside, axis=-1) if slots else 0)

    def key(r: Ints, c: Ints) -> Ints:
        which, cores = core(r, c)
        return np.where((cores < np.array(grid, int)).all(axis=-1), which, PADDING)

    boxes = []
    for cell in find_cells(prod(mesh[:-1]) * high, mesh[-1] * wide, key, BUDGET // 3):
        which, cores = core(np.array([cell.rows[0]]), np.array([cell.columns[0]]))
        name = f"device {tuple_text(np.unravel_index(int(which[0]), mesh))}"
        label, text = cell_texts(cell, colours, name)
        if cell.size == 1:
            idle = cell.key == PADDING
            label = "" if idle else tuple_text(cores[0])
            text = f"{name}: {'an idle slot' if idle else f'core {label}'}"
        boxes.append(Box(cell.rows, cell.columns, fill(colours, cell.key), label, text))
    *leading, last = map(str, device.mesh.axis_names)
    axes = (_device_axis(",".join(leading), high), _device_axis(last, wide))
    return Panel("device grid: cores on each device", *axes, tuple(boxes))


def _device_axis(name: str, n: int) -> Axis:
    """An axis whose ticks count devices of `n` slots each."""
    return Axis(name, lambda edge: "" if edge % n else str(edge // n), (n,))
