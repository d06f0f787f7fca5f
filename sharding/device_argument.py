"""The device grid that a user passes: a `gl.DeviceGrid`, or a mesh of JAX that stands for one.

Where none is passed, it is that of the mesh that the user has set with `jax.set_mesh`.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh

from gridlayout.arguments import shown
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.mesh_in_use import mesh_in_use


def as_device(device: Any) -> DeviceGrid:
    """Return a device grid, also for a mesh of JAX, and for None that of the mesh in use.

    `LayoutError` for anything else, and for None if no mesh is set.

    >>> as_device(AbstractMesh((2, 4), ("x", "y")))
    DeviceGrid(x=2, y=4, abstract)
    """
    found = device_in_use() if device is None else of_mesh(device)
    if found is None:
        raise LayoutError(
            "no devices are given and no mesh is set: give a gl.DeviceGrid, such as "
            "gl.DeviceGrid((2, 4)), or a jax.sharding.Mesh, or set one with jax.set_mesh(mesh)"
        )
    if not isinstance(found, DeviceGrid):
        raise LayoutError(
            f"device {shown(device)} must be a gl.DeviceGrid, such as gl.DeviceGrid((2, 4)), or "
            "a jax.sharding.Mesh"
        )
    return found


def device_in_use() -> DeviceGrid | None:
    """Return the device grid of the mesh that `jax.set_mesh` has set, if there is one.

    >>> import jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("data",))):
    ...     device_in_use()
    DeviceGrid(data=1, cpu)
    """
    return None if (mesh := mesh_in_use()) is None else _of_mesh(mesh)


def default_device() -> DeviceGrid:
    """Return the device grid where none is given: that in use, or all devices of JAX in a row.

    >>> import jax
    >>> default_device().shape == (len(jax.devices()),)
    True
    """
    return device_in_use() or DeviceGrid((len(jax.devices()),))


def of_mesh(x: Any) -> Any:
    """Return the device grid of a mesh of JAX; other objects as they are.

    >>> of_mesh(3)
    3
    """
    return _of_mesh(x) if isinstance(x, (Mesh, AbstractMesh)) else x


@cached
def _of_mesh(mesh: Mesh | AbstractMesh) -> DeviceGrid:
    return DeviceGrid(mesh)
