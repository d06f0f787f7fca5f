"""Meshes of JAX's devices, the first ones, numbered or given ones; copies of arrays on all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding

from gridlayout.arguments import Shape, as_shape
from gridlayout.errors import LayoutError

MAX_DEVICES = 1 << 20


def auto_mesh(
    devices: Any, sizes: Shape, names: tuple[str, ...], order: Sequence[int] | None = None
) -> Mesh | AbstractMesh:
    """Return a mesh with Auto axes.

    devices: an array of devices of any shape; None for an `AbstractMesh`. order: the indices of the
    devices, row-major, in the order of the mesh; by default ascending.
    """
    auto = (AxisType.Auto,) * len(names)
    if devices is None:
        return AbstractMesh(sizes, names, axis_types=auto)
    flat = devices.ravel() if order is None else devices.ravel()[list(order)]
    return Mesh(flat.reshape(sizes), names, axis_types=auto)


def mesh_sizes(mesh: Mesh | AbstractMesh) -> Shape:
    """Return the number of devices along each axis of the mesh of a device grid.

    Raises `LayoutError` for a mesh without devices, or with more than `MAX_DEVICES`.
    """
    sizes = tuple(mesh.shape.values())
    if not sizes or 0 in sizes:
        raise LayoutError(f"a device grid's mesh must have axes with devices, not {sizes}")
    if prod(sizes) > MAX_DEVICES:
        raise LayoutError(f"a mesh of {sizes} has more than 2**20 devices: give a smaller one")
    return sizes


def first_devices(shape: Any, names: tuple[str, ...] | None = None) -> Mesh:
    """Return a mesh of JAX's first devices; raise `LayoutError` if there are too few.

    names: of the axes; by default those of `gl.DeviceGrid`.
    """
    sizes = as_shape(shape, "device grid")
    if not sizes or 0 in sizes:
        raise LayoutError(f"device grid {sizes} must have at least one number, all >= 1")
    devices = jax.devices()
    if prod(sizes) > len(devices):
        raise LayoutError(
            f"device grid {sizes} needs {prod(sizes)} devices, but JAX has {len(devices)}; "
            f"gl.emulate_devices({prod(sizes)}) at the start of the program emulates them on a CPU"
        )
    if names is None:
        short = tuple("xyzw"[: len(sizes)])
        names = short if len(sizes) <= 4 else tuple(f"a{i}" for i in range(len(sizes)))
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(sizes, names, axis_types=auto, devices=devices[: prod(sizes)])


def numbered_devices(ids: Sequence[int], sizes: Shape, names: tuple[str, ...]) -> Mesh:
    """Return a mesh of the devices with these numbers; of the first ones if any is missing."""
    known = {device.id: device for device in jax.devices()}
    if not ids or not set(ids) <= set(known):
        return first_devices(sizes, names)
    return Mesh(np.array([known[each] for each in ids]).reshape(sizes), names)


def memory_kinds(device: Any) -> set[str]:
    """Return JAX's kinds of the memories that a device can access."""
    return {memory.kind for memory in device.addressable_memories()}


def copied(x: Any, replicated: NamedSharding, is_local: bool) -> Any:
    """Return an array in a replicated sharding; objects that are no arrays as they are.

    is_local: whether all devices are of one process. If not, each process copies its own array,
    which must be the same in all: `jax.device_put` would compare them, in a program of its own, in
    which NaNs differ, and refuses random keys.
    """
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return x
    is_traced = isinstance(x, jax.core.Tracer)
    if isinstance(x, jax.Array) and not is_traced and x.sharding == replicated:
        return x
    if is_traced or is_local or not getattr(x, "is_fully_addressable", True):
        return jax.device_put(x, replicated)
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = copied(jax.random.key_data(x), replicated, is_local)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    copies = [jax.device_put(x, each) for each in replicated.addressable_devices]
    return jax.make_array_from_single_device_arrays(x.shape, replicated, copies, dtype=dtype)
