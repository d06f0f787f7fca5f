"""`GridType`: the type of a `GridArray` in JAX's transformations, by `jax.experimental.hijax`.

To JAX a `GridArray` is one value of this type, with a logical shape and a dtype. It is not a pytree
of its storage: functions that are not lifted can't access the storage or its padding. Jit, scan,
while and cond carry the storage. Only this module, `storage_primitives` and
`gridlayout.ops.interpret.grid_call` use hijax, which has other names in JAX 0.10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import hijax
from jax.extend import core
from jax.extend.core.primitives import remat_p

from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.checked import checked, numbered
from gridlayout.ops.array.policy import of_rank
from gridlayout.ops.array.storage_primitives import (
    Along,
    Stacked,
    grid_array_of,
    storage_of,
    zeros_of,
)
from gridlayout.ops.moves.spaces import as_stored
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.number_checks import NumberChecks, number_checks


@dataclass(frozen=True, eq=False)
class GridType(hijax.HiType):
    """The type of a `GridArray`: its layout, without a known padding value, and its device grid.

    stack: dims of the storage in front of the layout's own, if `lax.scan` stacked GridArrays. JAX
    hashes and compares the type of each argument of each call, so the attributes are cached.
    """

    layout: Layout
    device: DeviceGrid
    stack: tuple[int, ...] = ()

    # Set by `represent`: the class of the values of this type.
    of_storage: ClassVar[Callable[[Any, Layout, DeviceGrid], Any]]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, GridType) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.layout, self.device, self.stack

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    # -- attributes of an array ------------------------------------------------------------------

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return (*self.stack, *self.layout.shape)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.layout.dtype

    @cached_property
    def ndim(self) -> int:
        """The logical rank."""
        return len(self.shape)

    @cached_property
    def size(self) -> int:
        """The number of logical elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def type(self) -> GridType:
        """Itself, as for a `GridArray`."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.layout.nbytes

    def str_short(self, short_dtypes: Any = False, mesh_axis_types: Any = False) -> str:
        """Return the type as JAX's errors and jaxprs print it."""
        stack = f"{list(self.stack)} of " if self.stack else ""
        return f"GridArray({stack}{self.layout!r}, {self.device!r})"

    def __str__(self) -> str:  # as JAX's errors print what they do not accept
        return (
            f"{self.str_short()}, which gl.relayout(x, layout, device) moves to a layout and "
            "x.to_logical(sharding) to a sharding of JAX, jax.vmap maps, and gl.on_grid(fn), "
            "gl.numpy and gl.nn take,"
        )

    @property
    def sharding(self) -> Any:
        """Raises `AttributeError`: functions of JAX that use it create arrays of their own."""
        raise AttributeError(
            f"{self.str_short()} has no sharding of a logical array. Functions that make arrays "
            "like it run on the grid: gl.on_grid(optimizer.init)(params), "
            "gl.zeros_like(x), gl.on_grid(jnp.zeros_like)(x), gl.on_grid(jax.jacfwd(fn))(x), "
            "gl.on_grid(jax.hessian(fn))(x). jax.device_put does not take it: "
            "gl.relayout(x, layout, device) moves it to a layout, and x.to_logical(sharding) to a "
            "sharding of JAX"
        )

    @hijax.aval_method
    def __jax_array__(self: Any) -> Any:  # of a traced GridArray
        raise LayoutError(
            f"a {self.aval.str_short()} was passed to a function of JAX that is not lifted: "
            "gl.on_grid(fn) runs a function on the grid, gl.numpy and gl.nn have lifted ones; "
            "x.to_logical() is the logical array"
        )

    # -- lowering --------------------------------------------------------------------------------

    @cached_property
    def _storage(self) -> Any:
        shape = (*self.stack, *self.device.storage_shape(self.layout))
        if self.device.memory_kind(self.layout) is None:
            return hijax.ShapedArray(shape, self.dtype)
        return hijax.ShapedArray(shape, self.dtype, memory_space=jax.memory.Space.Host)

    def lo_ty(self) -> list[Any]:
        """Return the type of the storage, in a list.

        While JAX checks numbers, the list also has the type of an empty array, whose shape states
        the checks: JAX then lowers a function again if the checks have changed.
        """
        checks = number_checks()
        if checks is None:
            return [self._storage]
        return [self._storage, _type_of_checks(checks, self.stack)]

    def lower_val(self, x: Any, /) -> list[Any]:
        """Return the storage, as in `lo_ty`. JAX calls this of all that it passes and returns."""
        storage, checks = x.storage, number_checks()
        if checks is None:
            return [storage]
        stack = storage.shape[: storage.ndim - len(self.layout.physical_shape)]
        stated = _type_of_checks(checks, stack)
        trace = storage._trace if isinstance(storage, jax.core.Tracer) else None
        # JAX calls it of results after their trace.
        with jax.core.eval_context() if trace is None else core.set_current_trace(trace):
            if trace is not None:
                storage = numbered(storage, self.layout, self.device, checks)
            return [storage, jnp.zeros(stated.shape, stated.dtype)]

    def raise_val(self, storage: Any, /, *stated_checks: Any) -> Any:
        """Return the GridArray of a storage."""
        # If a cond lacks a value, JAX creates a placeholder, outside of its lowering too. Only the
        # private trace of the storage shows that.
        if isinstance(storage, jax.core.Tracer) and not storage._trace.requires_low:
            return grid_array_of(self, storage)
        made = GridType.of_storage(storage, self.layout, self.device)
        if storage.ndim == self._storage.ndim:  # lax.scan passes a stack to the type of one
            made.__dict__["type"] = self  # the next call reads it
        return made

    @property
    def mat(self) -> Any:
        """The manual axis type of the storage, which JAX 0.12 reads of every type."""
        return self._storage.mat

    @property
    def vma(self) -> Any:
        """As `mat`, for JAX 0.10."""
        return self._storage.vma

    def strip_weak_type(self) -> GridType:
        """Return itself: a layout's dtype is never weak."""
        return self

    def update(self, **_: Any) -> GridType:
        """Return itself: JAX updates attributes that only arrays have."""
        return self

    # -- derivatives -----------------------------------------------------------------------------

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents: this type for floats, else JAX's float0."""
        if jnp.issubdtype(self.dtype, np.inexact):
            return self
        return hijax.ShapedArray(self.shape, jax.dtypes.float0)

    def vspace_zero(self) -> Any:
        """Return zeros of this type."""
        return zeros_of(self)

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two values of this type."""
        with self.device.active():
            made = storage_of(x) + storage_of(y)
        return grid_array_of(self, checked(made, self.layout, self.device, "add_any"))

    # -- batches and stacks ----------------------------------------------------------------------

    def shard(self, *_: Any) -> Any:
        """Raise `LayoutError`: the parts of a `GridArray` are those of its layout."""
        raise LayoutError(
            f"{self.str_short()} is divided by its layout, and jax.shard_map and jax.pmap divide "
            "arrays themselves: use gl.map_shards, or jax.vmap instead of jax.pmap; or give them "
            "x.to_logical(sharding), an array of JAX"
        )

    def dec_rank(self, size: int | None, spec: Any) -> GridType:
        """Return the type of a slice along a logical dim (`jax.vmap`) or a stack (`lax.scan`)."""
        if isinstance(spec, Stacked) or self.stack:
            if not (self.stack and isinstance(spec, Stacked)):
                raise LayoutError(_NO_STACK)
            return grid_type(self.layout, self.device, self.stack[1:])
        if isinstance(spec, Along):
            return grid_type(spec.layout, self.device)
        shape = list(self.shape)
        del shape[spec]
        like = of_rank(tuple(shape), self.dtype, self.layout, self.device)
        return grid_type(like, self.device)

    def inc_rank(self, size: int | None, spec: Any) -> GridType:
        """Return the type of `size` values of this type along a new dim."""
        if isinstance(spec, Stacked):
            return grid_type(self.layout, self.device, (size or 0, *self.stack))
        shape = list(self.shape)
        shape.insert(spec, size or 0)
        like = of_rank(tuple(shape), self.dtype, self.layout, self.device)
        return grid_type(like, self.device)

    def leading_axis_spec(self) -> Stacked:
        """Return the spec by which `lax.scan` slices and stacks values of this type."""
        return Stacked()


def _type_of_checks(checks: NumberChecks, stack: tuple[int, ...]) -> Any:
    """Return the type of an array without elements that states which checks are on."""
    return hijax.ShapedArray((*stack, 0, *map(int, checks)), np.dtype(np.uint8))


def represent(cls: Any) -> None:
    """Make `GridType` the type of `cls`, whose values have a storage, a layout and a device."""
    GridType.of_storage = cls
    hijax.register_hitype(cls, attrgetter("type"))
    remat_p.to_lojax = _with_stated_types(remat_p.to_lojax)  # type: ignore[method-assign]


def _with_stated_types(to_lojax: Callable[..., Any]) -> Callable[..., Any]:
    """Return JAX's rule for `jax.checkpoint`, changed to return values of the stated types.

    Up to JAX 0.12, the rule returns their storages instead. A function that is not lifted could
    then access storages, padding included. While JAX checks numbers, the function's own equations
    are run, as each call of a lifted function checks elements.
    """

    def rule(*args: Any, jaxpr: Any, **params: Any) -> list[Any]:
        arrays = (getattr(x, "storage", x) for x in args)
        if number_checks() and not any(isinstance(x, jax.core.Tracer) for x in arrays):
            return list(jax.core.eval_jaxpr(jaxpr, (), *args))
        avals = [v.aval for v in jaxpr.outvars]
        found = to_lojax(*args, jaxpr=jaxpr, **params)
        if list(map(jax.typeof, found)) == avals:
            return found
        arrays = iter(found)
        return [
            aval.raise_val(*islice(arrays, len(aval.lo_ty()))) if aval.is_high else next(arrays)
            for aval in avals
        ]

    return rule


def give(name: str, attribute: Any) -> None:
    """Give JAX's tracers of GridArrays a method, a property or an operator of `GridArray`."""
    if isinstance(attribute, property):
        setattr(GridType, name, hijax.aval_property(attribute.fget))
    elif name.startswith("__"):
        setattr(GridType, f"_{name.strip('_')}", staticmethod(attribute))
    else:
        setattr(GridType, name, hijax.aval_method(attribute))


_NO_STACK = (
    "lax.scan over GridArrays, or jax.vmap over a stack that it made, does not take a dim of the "
    "logical array: give gl.on_grid the whole loop, gl.on_grid(lambda xs: lax.scan(step, c, xs)), "
    "or use gl.numpy"
)


@cached
def grid_type(layout: Layout, device: DeviceGrid, stack: tuple[int, ...] = ()) -> GridType:
    """Return the type of GridArrays in a layout, which is the same for all padding values."""
    return GridType(as_stored(layout.canonical, device).with_oob(None), device, stack)


def placed(storage: Any, layout: Layout, device: DeviceGrid) -> Any:
    """Return the `GridArray` of a storage, which may be traced."""
    if isinstance(storage, jax.core.Tracer):
        return grid_array_of(grid_type(layout, device), storage)
    return GridType.of_storage(storage, layout, device)
