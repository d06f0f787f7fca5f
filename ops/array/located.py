"""`DeviceLocation`: where one element of a `GridArray` is stored, and on which devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridlayout.arguments import Shape
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.location import Location
from gridlayout.sharding.device_grid import DeviceGrid


@dataclass(frozen=True, repr=False)
class DeviceLocation(Location):
    """The location of one element: in its core's buffer, as for `layout.locate`, and its device.

    device: coordinates in the device grid, `x.device.mesh`; for a replicated element, of the first
    copy. devices: the `jax.Device`s that hold it, several if it is replicated; none where the mesh
    has no devices.
    """

    device: Shape = ()
    devices: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        own = super().__repr__().removeprefix("Location(").removesuffix(")")
        copies = f", on {len(self.devices)} devices" if len(self.devices) > 1 else ""
        return f"DeviceLocation(device={self.device}, {own}{copies})"


def located(index: Sequence[int], layout: Layout, device: DeviceGrid) -> DeviceLocation:
    """Return where an element of an array in a layout is stored on a device grid.

    >>> from gridlayout import GridLayout
    >>> located((4,), GridLayout((6,), grid=(3,)), DeviceGrid((1,)))
    DeviceLocation(device=(0,), core=(2,), local=(0,), offset=0, byte=0)
    """
    found = layout.locate(index)
    first = device.first_cores(layout)
    past = np.asarray(found.core) - first
    counts = device.placement(layout).per_device
    holders = np.flatnonzero(((past >= 0) & (past < counts)).all(axis=1))
    at = tuple(map(int, np.unravel_index(holders[0], device.shape)))
    devices = () if device.is_abstract else tuple(device.mesh.devices.flat[holders])
    parts = (found.core, found.local, found.offset, found.byte, found.bit)
    return DeviceLocation(*parts, device=at, devices=devices)
