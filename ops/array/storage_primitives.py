"""The primitives that convert between a `GridArray` and its storage, in traced programs.

`storage_of` and `grid_array_of` are primitives of `jax.experimental.hijax`. They are linear, and
each is the inverse of the other. Below them: the specs of the dims that `jax.vmap` and `lax.scan`
map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
from jax.experimental import hijax

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.storage import pack_and_place, to_logical
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.sharding.device_grid import DeviceGrid

Primitive: Any = getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive  # type: ignore[attr-defined]


class Type(Protocol):
    """The part of `gridlayout.ops.array.grid_type.GridType` that these primitives use."""

    of_storage: ClassVar[Callable[[Any, Layout, DeviceGrid], Any]]

    @property
    def layout(self) -> Layout:
        """The layout of the GridArrays of this type."""

    @property
    def device(self) -> DeviceGrid:
        """The device grid of the GridArrays of this type."""

    def lo_ty(self) -> list[Any]:
        """Return the type of the storage, as a list of one."""

    def inc_rank(self, size: int | None, spec: Any) -> Type:
        """Return the type of `size` such GridArrays along a new dim."""


def storage_of(x: Any) -> Any:
    """Return the storage of a `GridArray`, which may be traced."""
    return _StorageOf(jax.typeof(x))(x)


def grid_array_of(of: Type, storage: Any) -> Any:
    """Return the `GridArray` of a storage, as a value of JAX's current transformation."""
    return _GridArrayOf(of)(storage)


def zeros_of(of: Type) -> Any:
    """Return the GridArray of a type whose storage is zero; under `jax.vmap` one per element."""
    return _Zeros(of)()


class _Zeros(Primitive):  # type: ignore[misc]
    """Zeros as a primitive, as JAX does not broadcast GridArrays that are not mapped."""

    def __init__(self, of: Type) -> None:
        self.in_avals, self.out_aval = (), of
        self.params = {"of": of}
        super().__init__()

    def expand(self) -> Any:
        of, layout, device = self.of, self.of.layout, self.of.device
        shape = of.lo_ty()[0].shape
        with device.active():
            zeros = jnp.zeros(shape, layout.dtype)
        if not isinstance(zeros, jax.core.Tracer):
            batch = len(shape) - len(layout.physical_shape)
            zeros = jnp.zeros(shape, layout.dtype, device=device.partitioned(layout, batch))
        return type(of).of_storage(in_layout_memory(zeros, layout, device), layout, device)

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        made = zeros_of(self.of.inc_rank(axis.size, 0))
        return made, along(0, made, self.of.layout)


class _Conversion(Primitive):  # type: ignore[misc]
    """A conversion between a GridArray and its storage: one operand, one result, linear."""

    skip_linearization_on_zero_tangents = True

    def __init__(self, of: Type) -> None:
        self.of = of
        self.params = {"layout": of.layout}
        super().__init__()

    def back(self, x: Any) -> Any:
        """Apply the inverse conversion."""
        raise NotImplementedError

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        if isinstance(t, hijax.Zero):
            return self(x), hijax.Zero(self.out_aval.to_tangent_aval())
        return self(x), self(t)

    def lin(self, nonzero: Any, x: Any) -> Any:
        return self(x), ()

    def linearized(self, residuals: Any, t: Any) -> Any:
        return self(t)

    def vjp_fwd(self, nonzero: Any, x: Any) -> Any:
        return self(x), ()

    def vjp_bwd_retval(self, residuals: Any, ct: Any) -> Any:
        return (self.back(hijax.instantiate_zeros(ct)),)

    def transpose(self, ct: Any, accum: Any) -> None:
        accum.accum(self.back(hijax.instantiate_zeros(ct)))


class _StorageOf(_Conversion):
    """The conversion of a GridArray to its storage."""

    def __init__(self, of: Type) -> None:
        self.in_avals, self.out_aval = (of,), of.lo_ty()[0]
        super().__init__(of)

    def expand(self, x: Any) -> Any:
        return x.storage

    def back(self, x: Any) -> Any:
        return grid_array_of(self.of, x)

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        # One mapped array has another layout than the batch, so all storages are packed anew.
        (x,), (dim,) = operands, dims
        if dim is None:
            return self(x), None
        whole, device = jax.typeof(x), self.of.device
        one = whole.dec_rank(axis.size, dim).layout
        storage = in_device_memory(storage_of(x), whole.layout, device)
        with device.active():
            logical = jnp.moveaxis(to_logical(storage, whole.layout, device), int(dim), 0)
            made = jax.vmap(lambda a: pack_and_place(a, one, device))(logical)
        return in_layout_memory(made, one, device), 0


class _GridArrayOf(_Conversion):
    """The conversion of a storage to its GridArray."""

    def __init__(self, of: Type) -> None:
        self.in_avals, self.out_aval = (of.lo_ty()[0],), of
        super().__init__(of)

    def expand(self, storage: Any) -> Any:
        return type(self.of).of_storage(storage, self.of.layout, self.of.device)

    def back(self, x: Any) -> Any:
        return storage_of(x)

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        (storage,), (dim,) = operands, dims
        if dim is None:
            return self(storage), None
        one, device = self.of.layout, self.of.device
        whole = self.of.inc_rank(axis.size, 0)
        with device.active():
            storage = in_device_memory(jnp.moveaxis(storage, dim, 0), one, device)
            logical = to_logical(storage, one, device)
            made = pack_and_place(logical, whole.layout, device)
        made = grid_array_of(whole, in_layout_memory(made, whole.layout, device))
        return made, along(0, made, one)


# -- mapped dims -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stacked(getattr(hijax, "MappingSpec", object)):  # type: ignore[misc]
    """How `lax.scan` splits GridArrays: along the first dim of a stack of storages."""


class Along(int):
    """The logical dim that `jax.vmap` maps, with the layout of one mapped element."""

    layout: Layout

    def __new__(cls, dim: int, layout: Layout) -> Along:
        """Return the dim with the layout of one element."""
        made = super().__new__(cls, dim)
        made.layout = layout.with_oob(None)
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Along) and other.layout != self.layout:
            return False
        return int(self) == other

    __hash__ = int.__hash__


def along(dim: int, whole: Any, one: Layout) -> int:
    """Return a mapped dim: an int, if `one` has the layout that follows from it, else `Along`."""
    found = jax.typeof(whole).dec_rank(None, dim)
    return dim if found.layout == one.with_oob(None) else Along(dim, one)
