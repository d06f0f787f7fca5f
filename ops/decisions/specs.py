"""What is known of a value before anything runs: `Sharded`, `Replicated` or `Deferred`.

Each says how one array on every device stands for a logical array: a device's part of a layout's
storage, the whole array, or what is broadcast, or computed of logical indices, once an operation
says in which layout it is wanted.
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

from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.sharding.collectives import check_sendable
from gridlayout.sharding.exchange import local_bytes
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sharded:
    """A device's part of an array in a layout, whose cores lie where the placement says."""

    layout: Layout
    placement: Placement

    def __post_init__(self) -> None:
        check_sendable(self.layout.dtype)

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
        """The shape of one device's part: its cores, then a core's buffer."""
        return (*self.placement.per_device, *self.layout.local_shape)

    @property
    def partition(self) -> PartitionSpec:
        """How devices divide the storage."""
        return self.placement.spec

    @property
    def device_bytes(self) -> int:
        """Bytes on one device."""
        return local_bytes(self.layout, self.placement)

    @property
    def core_bytes(self) -> int:
        """Bytes on one core."""
        return self.layout.bytes_per_core

    def with_oob(self, oob: Any) -> Sharded:
        """The same with that known of its padding."""
        return Sharded(self.layout.with_oob(oob), self.placement)


@dataclass(frozen=True)
class _Plain:
    """An array on a device that is in no layout."""

    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def device_bytes(self) -> int:
        """Bytes on one device."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def core_bytes(self) -> int:
        """None: no core holds it."""
        return 0


@dataclass(frozen=True)
class Replicated(_Plain):
    """An array that every device has; `bits`: those of its elements, where they are known."""

    weak_type: bool = False
    bits: bytes | None = None

    @cached_property
    def number(self) -> Any:
        """The known number as a NumPy scalar, or None."""
        known = None if self.shape else known_values(self)
        return None if known is None else known[()]

    @property
    def partition(self) -> PartitionSpec:
        """Every device has it whole."""
        return PartitionSpec()


class Local(_Plain):
    """What each device has of its own on the way to a result, and no layout says."""

    @property
    def partition(self) -> PartitionSpec:
        """None: it does not leave the devices."""
        raise AssertionError("a device's own array does not leave it")


class Indexed(_Plain):
    """An array that is not made yet: each device computes the elements that it is to have.

    They depend on logical indices, random keys, and arrays that every device has: positions, masks,
    random numbers.
    """

    @property
    def device_bytes(self) -> int:
        """None: no device has it."""
        return 0

    @property
    def partition(self) -> PartitionSpec:
        """None: no device has it."""
        raise AssertionError("an array that is not made does not leave the devices")


@dataclass(frozen=True)
class Deferred:
    """`source` broadcast to `shape`, its dim `i` being dim `dims[i]`: not made until wanted.

    The source of what is computed of logical indices is not made either.

    target_layout: the layout that the source belongs in, where it lies on fewer cores as yet: one
    along the grid dims that it does not vary along, so that the devices there hold copies.
    """

    source: Sharded | Replicated | Indexed
    dims: Shape
    shape: Shape
    target_layout: GridLayout | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the source has the shape already, and only belongs elsewhere."""
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
    def partition(self) -> PartitionSpec:
        """How devices divide the source."""
        return self.source.partition

    @property
    def device_bytes(self) -> int:
        """Bytes on one device."""
        return self.source.device_bytes

    @property
    def core_bytes(self) -> int:
        """Bytes on one core."""
        return self.source.core_bytes


Spec = Sharded | Replicated | Indexed | Deferred
Held = Spec | Local  # what a register holds


def indexed(shape: Shape, dtype: Any) -> Deferred:
    """The spec of an array that is computed of logical indices where it is wanted."""
    return Deferred(Indexed(shape, dtype), tuple(range(len(shape))), shape)


def is_indexed(spec: Spec) -> bool:
    """Whether an array is computed of logical indices where it is wanted."""
    return isinstance(spec, Deferred) and isinstance(spec.source, Indexed)


def is_of_keys(x: Any) -> bool:
    """Whether a value is of random keys, or of another type that is no number: no layout's."""
    return bool(jnp.issubdtype(x.dtype, jax.dtypes.extended))


def is_array_deferred(spec: Spec) -> bool:
    """Whether an array that depends on logical indices is not made, and no core has its source."""
    return isinstance(spec, Deferred) and spec.source.ndim > 0 and not is_laid_out(spec)


def known_number(value: Any, dtype: Any, weak_type: bool = False) -> Replicated:
    """The spec of a number, or of a few, that are known before anything runs."""
    array = np.asarray(value, dtype)
    return Replicated(array.shape, np.dtype(dtype), weak_type, array.tobytes())


def known_values(spec: Spec) -> NDArray[Any] | None:
    """The elements of a value that are known before anything runs, or None."""
    if 0 in spec.shape and not jnp.issubdtype(spec.dtype, jax.dtypes.extended):
        return np.zeros(spec.shape, spec.dtype)
    if isinstance(spec, Deferred):
        known = None if spec.source.ndim else known_values(spec.source)
        return None if known is None else np.broadcast_to(known, spec.shape)
    if not isinstance(spec, Replicated) or spec.bits is None:
        return None
    return np.frombuffer(spec.bits, spec.dtype).reshape(spec.shape)


def is_laid_out(spec: Spec) -> bool:
    """Whether a value brings a layout along."""
    return isinstance(spec.source if isinstance(spec, Deferred) else spec, Sharded)


def layout_of(spec: Spec | None) -> Layout | None:
    """The layout a value brings along: its own, or that of what it broadcasts."""
    if isinstance(spec, Deferred):
        if spec.target_layout is not None and isinstance(spec.source, Sharded):
            return spec.target_layout.with_oob(spec.source.layout.oob)
        spec = spec.source
    return spec.layout if isinstance(spec, Sharded) else None


def unmasked(spec: Spec) -> Spec | None:
    """Where an array is, whatever is known of its padding; None for what every device has."""
    return spec.with_oob(None) if isinstance(spec, Sharded) else None


def in_space(spec: Spec, space: str) -> Spec:
    """The spec with a `GridLayout` said to be in this memory space."""
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
    """What is known of a value outside the logical tensor: its oob, or the number it is."""
    if isinstance(spec, Sharded):
        return spec.layout.oob
    if isinstance(spec, Deferred):
        return fact(spec.source) if spec.source.ndim == 0 or spec.is_whole else None
    number = spec.number if isinstance(spec, Replicated) else None
    return None if number is None else number.item()
