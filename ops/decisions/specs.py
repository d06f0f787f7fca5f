"""Specs: how one array per device represents a logical array, known before anything runs.

* `Sharded`: each device holds its part of a layout's storage.
* `Replicated`: every device holds the full logical array.
* `Deferred`: the array is a broadcast, or a function of logical indices. It is computed when an
  operation requests it in a layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.collectives import check_sendable
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.exchange import local_bytes
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class Sharded:
    """A device's part of an array in a canonical layout, whose cores are placed by `placement`."""

    layout: Layout
    placement: Placement

    def __post_init__(self) -> None:
        check_sendable(self.layout.dtype)
        object.__setattr__(self, "layout", self.layout.canonical)

    @property
    def shape(self) -> Shape:
        """The logical shape."""
        return self.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.layout.dtype

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return self.layout.ndim

    @property
    def local_shape(self) -> Shape:
        """The shape of one device's part: its cores, then the buffer of a core."""
        return (*self.placement.per_device, *self.layout.local_shape)

    @property
    def partition(self) -> PartitionSpec:
        """The `PartitionSpec` of the storage."""
        return self.placement.spec

    def named(self, device: DeviceGrid) -> Layout:
        """Return the layout, with its mesh axes named where the device grid would choose others."""
        if not isinstance(self.layout, GridLayout):
            return self.layout
        return self.layout.on_mesh_axes(device.placements.named(self.placement))

    @property
    def device_bytes(self) -> int:
        """Bytes on one device."""
        return local_bytes(self.layout, self.placement)

    @property
    def core_bytes(self) -> int:
        """Bytes on one core."""
        return self.layout.bytes_per_core

    def with_oob(self, oob: Any) -> Sharded:
        """Return this spec with `oob` as the known value of the padding."""
        return Sharded(self.layout.with_oob(oob), self.placement)


@dataclass(frozen=True)
class _Plain:
    """An array on a device without a layout."""

    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def local_shape(self) -> Shape:
        """The shape that a device has: all of it."""
        return self.shape

    @property
    def device_bytes(self) -> int:
        """Bytes on one device."""
        return dtypes.nbytes(self.shape, self.dtype)

    @property
    def core_bytes(self) -> int:
        """Zero: no core holds it."""
        return 0


@dataclass(frozen=True)
class Replicated(_Plain):
    """An array that every device holds in full. bits: the bytes of its elements, if known."""

    weak_type: bool = False
    bits: bytes | None = None

    @cached_property
    def number(self) -> Any:
        """The value of a known number as a NumPy scalar, else None."""
        known = None if self.shape else known_values(self)
        return None if known is None else known[()]

    @property
    def partition(self) -> PartitionSpec:
        """The `PartitionSpec` of a replicated array."""
        return PartitionSpec()


class Local(_Plain):
    """An intermediate array that differs by device and that no layout describes."""

    @property
    def partition(self) -> PartitionSpec:
        """Raises: the array exists inside `shard_map` only."""
        raise AssertionError("a device's own array does not leave shard_map")


class Indexed(_Plain):
    """An array that is not computed yet: each device will compute the elements that it needs.

    They depend on logical indices, random keys and replicated arrays only, as iotas, masks and
    random numbers do.
    """

    @property
    def device_bytes(self) -> int:
        """Zero: no device holds it."""
        return 0

    @property
    def partition(self) -> PartitionSpec:
        """Raises: no device holds it."""
        raise AssertionError("an array that is not computed yet does not leave shard_map")


@dataclass(frozen=True)
class Deferred:
    """`source` broadcast to `shape`, its dim `i` becoming dim `dims[i]`; not computed yet.

    An `Indexed` source is not computed yet either.

    target_layout: the final layout of the source, if that is on fewer cores now. Along the grid
    dims that the source does not vary along, it is now on one core, and devices hold copies.
    """

    source: Sharded | Replicated | Indexed
    dims: Shape
    shape: Shape
    target_layout: GridLayout | None = None

    @property
    def is_unbroadcast(self) -> bool:
        """Whether nothing is broadcast: the source has this shape, and a target layout."""
        return self.target_layout is not None and self.target_layout.shape == self.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.source.dtype

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return len(self.shape)

    @property
    def local_shape(self) -> Shape:
        """The shape of a device's part of the source."""
        return self.source.local_shape

    @property
    def partition(self) -> PartitionSpec:
        """The `PartitionSpec` of the source."""
        return self.source.partition

    @property
    def device_bytes(self) -> int:
        """Bytes of the source on one device."""
        return self.source.device_bytes

    @property
    def core_bytes(self) -> int:
        """Bytes of the source on one core."""
        return self.source.core_bytes


Spec = Sharded | Replicated | Indexed | Deferred
Held = Spec | Local  # what a register holds


def indexed(shape: Shape, dtype: Any) -> Deferred:
    """Return the spec of an array that is computed from logical indices on request."""
    return Deferred(Indexed(shape, dtype), tuple(range(len(shape))), shape)


def is_indexed(spec: Spec) -> bool:
    """Whether an array is computed from logical indices on request."""
    return isinstance(spec, Deferred) and isinstance(spec.source, Indexed)


def is_of_keys(x: Any) -> bool:
    """Whether a value holds random keys or another extended dtype, which no layout can hold."""
    return not isinstance(x.dtype, np.dtype) and jnp.issubdtype(x.dtype, jax.dtypes.extended)


def is_array_deferred(spec: Spec) -> bool:
    """Whether a value is deferred, its source has rank 1 or more, and no core holds that."""
    return isinstance(spec, Deferred) and spec.source.ndim > 0 and not is_laid_out(spec)


def known_number(value: Any, dtype: Any, weak_type: bool = False) -> Replicated:
    """Return the spec of one or a few numbers that are known before anything runs."""
    array = np.asarray(value, dtype)
    return Replicated(array.shape, np.dtype(dtype), weak_type, array.tobytes())


def known_values(spec: Spec) -> NDArray[Any] | None:
    """Return the elements of a value if they are known before anything runs, else None."""
    if 0 in spec.shape and not jnp.issubdtype(spec.dtype, jax.dtypes.extended):
        return np.zeros(spec.shape, spec.dtype)
    if isinstance(spec, Deferred):
        known = None if spec.source.ndim else known_values(spec.source)
        return None if known is None else np.broadcast_to(known, spec.shape)
    if not isinstance(spec, Replicated) or spec.bits is None:
        return None
    return np.frombuffer(spec.bits, spec.dtype).reshape(spec.shape)


def is_laid_out(spec: Spec) -> bool:
    """Whether a value has a layout: its own, or that of its source."""
    return isinstance(spec.source if isinstance(spec, Deferred) else spec, Sharded)


def layout_of(spec: Spec | None) -> Layout | None:
    """Return the layout of a value, or that of the source which it broadcasts; else None."""
    if isinstance(spec, Deferred):
        if spec.target_layout is not None and isinstance(spec.source, Sharded):
            return spec.target_layout.with_oob(spec.source.layout.oob)
        spec = spec.source
    return spec.layout if isinstance(spec, Sharded) else None


def parts_of(spec: Spec) -> int:
    """Return among how many devices a value, or the source that it broadcasts, is divided."""
    source = spec.source if isinstance(spec, Deferred) else spec
    if not isinstance(source, Sharded):
        return 1
    return prod(source.placement.slots) // prod(source.placement.per_device)


def unmasked(spec: Spec) -> Spec | None:
    """Return a sharded spec without a known padding value; None for any other spec."""
    return spec.with_oob(None) if isinstance(spec, Sharded) else None


def in_space(spec: Spec, space: str) -> Spec:
    """Return the spec with its `GridLayout`s in another memory space; others stay."""
    if isinstance(spec, Deferred):
        source = in_space(spec.source, space)
        target = spec.target_layout and spec.target_layout.replace(memory_space=space)
        assert not isinstance(source, Deferred)
        return replace(spec, source=source, target_layout=target)
    if not isinstance(spec, Sharded) or not isinstance(spec.layout, GridLayout):
        return spec
    if spec.layout.memory == space:
        return spec
    return Sharded(spec.layout.replace(memory_space=space), spec.placement)


def fact(spec: Spec) -> Scalar | None:
    """Return the known value of the padding, or of a known number itself; else None."""
    if isinstance(spec, Sharded):
        return spec.layout.oob
    if isinstance(spec, Deferred):
        return fact(spec.source) if spec.source.ndim == 0 or spec.is_unbroadcast else None
    number = spec.number if isinstance(spec, Replicated) else None
    return None if number is None else number.item()
