"""Memory spaces at run time: host storages are copied to the devices, and results to the host.

"A tensor must belong exclusively to only one of these memory spaces at a time" (tt-mlir, "Memory
Spaces"): `system` and `mmio` are the host's memory, where the backend tells it from the devices'.
"""

from __future__ import annotations

from typing import Any

import jax

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.sharding.device_grid import DeviceGrid


def as_stored(layout: Layout, device: DeviceGrid) -> Layout:
    """Return a layout as arrays on the device grid state it: then equal places are equal layouts.

    It names mesh axes only where the rule would choose others. The memories of each core and of all
    cores are l1 and dram, whatever the chip calls them. `LayoutError` for a memory that the chip
    does not have.
    """
    if layout.mesh_axes is not None:
        layout = device.placements.normalized(layout)
    if layout.memory is None or layout.memory in MEMORY_SPACES:
        return layout
    return layout.on_chip(device.machine.chip)


def in_device_memory(storage: Any, layout: Layout, device: DeviceGrid) -> Any:
    """Return the storage in the devices' memory."""
    if device.memory_kind(layout) is None or isinstance(storage, jax.ShapeDtypeStruct):
        return storage
    return jax.device_put(storage, jax.memory.Space.Device)


def in_layout_memory(storage: Any, layout: Layout, device: DeviceGrid) -> Any:
    """Return the storage in the memory space of its layout."""
    if device.memory_kind(layout) is None:
        return storage
    return jax.device_put(storage, jax.memory.Space.Host)
