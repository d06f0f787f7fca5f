"""Meshes of the devices that JAX has: the first ones, or those of given numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from gridlayout.arguments import Shape, as_shape
from gridlayout.errors import LayoutError


def first_devices(shape: Any, names: tuple[str, ...] | None = None) -> Mesh:
    """A mesh of the first devices; `LayoutError` where they are too few."""
    sizes = as_shape(shape, "device grid")
    if not sizes or 0 in sizes:
        raise LayoutError(f"device grid {sizes} must hold at least one number, all >= 1")
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
    """A mesh of the devices of these numbers; of the first ones where JAX has not all of them."""
    known = {device.id: device for device in jax.devices()}
    if not ids or not set(ids) <= set(known):
        return first_devices(sizes, names)
    return Mesh(np.array([known[each] for each in ids]).reshape(sizes), names)
