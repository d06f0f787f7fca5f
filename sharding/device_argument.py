"""The device grid that a user passes: a `gl.DeviceGrid`, or a mesh of JAX that stands for one."""

from __future__ import annotations

from typing import Any

from jax.sharding import AbstractMesh, Mesh

from gridlayout.arguments import shown
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.sharding.device_grid import DeviceGrid


def as_device(device: Any) -> DeviceGrid:
    """Return a device grid, also for a mesh of JAX; `LayoutError` for anything else.

    >>> as_device(AbstractMesh((2, 4), ("x", "y")))
    DeviceGrid(x=2, y=4, abstract)
    """
    found = of_mesh(device)
    if not isinstance(found, DeviceGrid):
        raise LayoutError(
            f"device {shown(device)} must be a gl.DeviceGrid, such as gl.DeviceGrid((2, 4)), or "
            "a jax.sharding.Mesh"
        )
    return found


def of_mesh(x: Any) -> Any:
    """Return the device grid of a mesh of JAX; other objects as they are.

    >>> of_mesh(3)
    3
    """
    return _of_mesh(x) if isinstance(x, (Mesh, AbstractMesh)) else x


@cached
def _of_mesh(mesh: Mesh | AbstractMesh) -> DeviceGrid:
    return DeviceGrid(mesh)
