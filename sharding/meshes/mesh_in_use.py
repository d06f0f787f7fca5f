"""Programs and arrays on a mesh, while the user has set another one with `jax.set_mesh`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.sharding.number_checks import without_number_checks


def programs_on(mesh: Mesh | AbstractMesh, owner: object) -> AbstractContextManager[Any]:
    """Return the context in which JAX runs programs on a mesh, without its checks of numbers.

    owner: the object that error messages name. Raises `LayoutError` in the body of a
    `jax.shard_map`, where XLA would crash, and if the mesh that the user has set has the same
    devices in another order, because JAX then runs no program.
    """
    if axes := jax.sharding.get_abstract_mesh().manual_axes:
        raise LayoutError(
            f"the body of a jax.shard_map over {', '.join(map(str, axes))} runs on one device, but "
            f"programs on {owner!r} run on all its devices: call gl.on_grid, gl.numpy and "
            "functions that relayout GridArrays outside of it, or write it with gl.map_shards"
        )
    if isinstance(mesh, AbstractMesh):
        return _used(mesh)
    _check_order(mesh, owner)
    return without_number_checks(_used(mesh))


def _used(mesh: Mesh | AbstractMesh) -> AbstractContextManager[Any]:
    """Return the context in which this mesh is in use, whatever size the one in use has."""
    before = jax.sharding.get_abstract_mesh()
    abstract = mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh
    if before.empty or before.size == mesh.size:
        return jax.sharding.use_abstract_mesh(abstract)
    if isinstance(mesh, Mesh) and mesh_in_use() is not None:
        return _set(mesh)
    return _after_none(abstract)


@contextmanager
def _set(mesh: Mesh) -> Iterator[None]:
    """Set a mesh: JAX runs no program on devices of another number than those of the mesh set."""
    with jax.set_mesh(mesh):
        yield


@contextmanager
def _after_none(mesh: AbstractMesh) -> Iterator[None]:
    """Use no mesh, and then this one: JAX replaces a mesh only by one of its size."""
    with jax.sharding.use_abstract_mesh(AbstractMesh((), ())), jax.sharding.use_abstract_mesh(mesh):
        yield


def _check_order(own: Mesh, owner: object) -> None:
    """Raise `LayoutError` if the mesh in use has the same devices in another order."""
    mesh = mesh_in_use()  # while JAX traces there is none: it has compared them
    if mesh is None:
        return
    devices, others = list(own.devices.flat), list(mesh.devices.flat)
    if devices != others and set(devices) == set(others):
        raise LayoutError(
            f"the mesh in use, with axes {dict(mesh.shape)}, has the devices of {owner!r} in "
            "another order, but JAX runs programs over one order only: set a mesh made of "
            "device.fine.devices, or call outside of jax.set_mesh"
        )


def mesh_in_use() -> Mesh | None:
    """Return the mesh that the user has set with `jax.set_mesh`; None while JAX traces."""
    try:
        mesh = jax.sharding.get_mesh()
    except ValueError:
        return None
    return None if mesh.empty else mesh


def on_mesh_in_use(array: Any) -> Any:
    """Return a replicated array on the mesh that the user has set, if there is one.

    The functions of JAX accept only arrays of that mesh if its axes are Explicit.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or isinstance(array, jax.core.Tracer):
        return array
    return jax.device_put(array, PartitionSpec())
