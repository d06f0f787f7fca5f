"""`GridArray`: a logical tensor that lives, laid out, on a device grid.

A registered pytree of one leaf, the placed array; layout and device grid are static. It goes
through jit, grad, vmap, scan and `jax.tree_util` unchanged. Under vmap the leaf has batch dims in
front, which the layout does not speak of.

What the layout says of the padding (`oob`) is true of the leaf it was said of. Wherever JAX puts
another array in its place (`jax.tree.map(jnp.exp, x)`, a gradient, the inside of a jit), the layout
comes back with an undef `oob`, so that nothing is ever computed on a claim that may not hold. Calls
of this library's own functions hand claims on.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import unpack_host
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.padding import fill_padding
from gridlayout.ops.moves.relayout import replicate
from gridlayout.ops.moves.spaces import brought_back, fetched
from gridlayout.sharding.agreement import agree_on, check_has_part
from gridlayout.sharding.device_grid import DeviceGrid

if TYPE_CHECKING:
    from jax.sharding import Sharding


class _Named(type):
    """JAX's errors name the type of what they can't take: this name says what takes it."""

    def __repr__(cls) -> str:
        return "<class 'gridlayout.GridArray', which gl.on_grid(fn), gl.numpy and gl.nn take>"


@dataclass(frozen=True, eq=False, repr=False)
class GridArray(metaclass=_Named):
    """A logical tensor in a layout on a device grid. Made by `gl.put` and by every operation.

    storage: the one placed `jax.Array`, of the layout's physical shape with the grid dims rounded
    up by idle slots where the mesh needs it. No validation happens here, since JAX rebuilds pytrees
    with leaves of its own.
    """

    storage: jax.Array
    layout: Layout
    device: DeviceGrid

    # -- what it is ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
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
    def size(self) -> int:
        """Logical elements."""
        return self.layout.size

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.layout.nbytes

    @property
    def sharding(self) -> Sharding:
        """The sharding of `storage`."""
        return self.storage.sharding

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        grid = "x".join(map(str, self.layout.core_shape))
        tile = self.layout.tile
        tiles = f", tile {'x'.join(map(str, tile))}" if tile else ""
        mesh = "x".join(map(str, self.device.shape))
        return f"GridArray({self.dtype.name}[{dims}], grid {grid}{tiles}, on {mesh} devices)"

    def _repr_html_(self) -> str:
        return self.layout.draw("fold", device=self.device).svg

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d GridArray")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.to_logical())

    def __int__(self) -> int:
        return int(self.to_logical())

    def __float__(self) -> float:
        return float(self.to_logical())

    def __complex__(self) -> complex:
        return complex(self.to_logical())

    def __index__(self) -> int:
        return operator.index(self.to_logical())

    # -- out of the grid -----------------------------------------------------------------------

    @property
    def physical(self) -> jax.Array:
        """The storage without the idle slots: exactly `layout.physical_shape` (batch dims kept).

        Where there are idle slots to leave out, every device gets the whole.
        """
        self.check_rank()
        shape = self.layout.physical_shape
        if self.storage.shape[self.storage.ndim - len(shape) :] == shape:
            return self.storage
        agree_on("GridArray.physical", self.device, self.layout, self.storage)
        with self.device.active():
            return _without_idle(self._fetched, shape, self.device)

    @property
    def _fetched(self) -> jax.Array:
        found: jax.Array = fetched(self.storage, self.layout, self.device)
        return found

    def check_rank(self) -> None:
        """`LayoutError` where a transformation of JAX took a dim of the storage away."""
        if np.ndim(self.storage) < len(self.layout.physical_shape):
            raise LayoutError(
                f"{self!r} lacks a dim of its core grid: jax.vmap, or lax.scan over it, took the "
                "storage's first dim for a dim of the array. Map the logical array inside instead: "
                "gl.on_grid(jax.vmap(fn))(x); or write fn with gl.numpy for all of it"
            )

    def to_logical(self) -> jax.Array:
        """The logical array, a `jax.Array` that every device holds whole; in multi-process too."""
        self.check_rank()
        agree_on("GridArray.to_logical", self.device, self.layout, self.storage)
        with self.device.active():
            return to_logical(self._fetched, self.layout, self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a GridArray has no logical array to share: copy=False can't be met")
        is_here = isinstance(self.storage, np.ndarray) or self.storage.is_fully_addressable
        if is_here and self.storage.ndim == len(self.layout.physical_shape):
            storage = np.asarray(self.storage)
            array = unpack_host(storage[tuple(map(slice, self.layout.physical_shape))], self.layout)
        else:
            check_has_part(self.device, repr(self))
            array = np.asarray(self.to_logical())
        return array if dtype is None else array.astype(dtype)

    def with_oob(self, oob: Any) -> GridArray:
        """The same data with its padding written to `oob`, or with nothing known of it (None)."""
        self.check_rank()
        layout = self.layout.with_oob(oob)
        if layout.oob is None:
            return GridArray(self.storage, layout, self.device)
        with self.device.active():
            storage = padded(self._fetched, layout, self.device)
            return GridArray(brought_back(storage, layout, self.device), layout, self.device)

    def block_until_ready(self) -> GridArray:
        """Wait until the data is there."""
        self.storage.block_until_ready()
        return self

    def __deepcopy__(self, memo: Any) -> GridArray:
        return GridArray(jnp.copy(self.storage), self.layout, self.device)

    # Operators, `.T` and jnp's methods are lifted, and set, by `gridlayout.ops.user.operators`.
    if TYPE_CHECKING:
        T: ClassVar[Any]
        mT: ClassVar[Any]

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __getattr__(self, name: str) -> Any: ...


class _Meta:
    """The static part of the pytree, and which leaf its claim about padding is true of."""

    def __init__(self, x: GridArray) -> None:
        self.layout, self.device = x.layout, x.device
        self.leaf: weakref.ref[Any] | None = None
        with suppress(TypeError):  # of leaves of JAX's own, such as None
            self.leaf = weakref.ref(x.storage)

    # Without the claim: a loop's carry, or a compiled program, is for any padding.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Meta) or self.device != other.device:
            return False
        return self.layout.with_oob(None) == other.layout.with_oob(None)

    def __hash__(self) -> int:
        return hash((self.layout.with_oob(None), self.device))

    def __repr__(self) -> str:
        return f"{self.layout.with_oob(None)!r} on {self.device!r}"

    def rebuild(self, children: Any) -> GridArray:
        """The `GridArray` of a leaf; its padding is undef unless the leaf is the same."""
        (storage,) = children
        same = self.leaf is not None and self.leaf() is storage
        return GridArray(storage, self.layout if same else self.layout.with_oob(None), self.device)


jax.tree_util.register_pytree_with_keys(
    GridArray,
    lambda x: (((jax.tree_util.GetAttrKey("storage"), x.storage),), _Meta(x)),
    _Meta.rebuild,
    lambda x: ((x.storage,), _Meta(x)),
)


@partial(jax.jit, static_argnums=(1, 2))
def _without_idle(storage: jax.Array, shape: tuple[int, ...], device: DeviceGrid) -> jax.Array:
    def moved(storage: jax.Array, _: jax.Array) -> jax.Array:
        # Its cores do not divide by the mesh any more, so every device has it whole.
        storage = lax.with_sharding_constraint(storage, device.replicated)
        return storage[(..., *map(slice, shape))]

    return packing.bitwise(moved, storage, jnp.zeros((), storage.dtype))


@partial(jax.jit, static_argnums=(1, 2))
def to_logical(storage: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array:
    """The logical array of a storage in the devices' memory, on every device."""
    return (
        _replicated(layout, device, storage)
        if storage.size
        else _by_gather(layout, device, storage)
    )


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _replicated(layout: Layout, device: DeviceGrid, storage: jax.Array) -> jax.Array:
    """The logical array, on every device."""
    batch = storage.ndim - len(layout.physical_shape)
    move = replicate(layout, device, device.placement(layout.core_shape))
    return jax.shard_map(
        _batched(lambda part: move.run(LazyView.of(part)).materialize(), batch),
        mesh=device.fine,
        in_specs=device.partitioned(layout, batch).spec,
        out_specs=PartitionSpec(),
        check_vma=False,
    )(storage)


@_replicated.defjvp
def _(layout: Layout, device: DeviceGrid, primals: Any, tangents: Any) -> Any:
    # The same gather by XLA, which JAX differentiates in either mode.
    return _replicated(layout, device, *primals), _by_gather(layout, device, *tangents)


def _by_gather(layout: Layout, device: DeviceGrid, storage: jax.Array) -> jax.Array:
    def moved(storage: jax.Array, fill: jax.Array) -> jax.Array:
        # Gathered first: XLA would split the unpacking of shards into masked sums, and -0.0 + 0.0
        # is 0.0.
        storage = lax.with_sharding_constraint(storage, device.replicated)
        physical = storage[(..., *(slice(n) for n in layout.physical_shape))]
        logical = packing.moved_back(LazyView.of(physical), fill, layout).materialize()
        return lax.with_sharding_constraint(logical, device.replicated)

    return packing.bitwise(moved, storage, jnp.zeros((), layout.dtype))


def padded(storage: jax.Array, layout: Layout, device: DeviceGrid) -> jax.Array:
    """A storage in the devices' memory with its padding set to the layout's `oob`."""
    return _padded(storage, layout, device, packing.fill_value(layout))


@partial(jax.jit, static_argnums=(1, 2))
def _padded(storage: jax.Array, layout: Layout, device: DeviceGrid, fill: Any) -> jax.Array:
    placement = device.placement(layout.core_shape)
    batch = storage.ndim - len(layout.physical_shape)
    spec = device.partitioned(layout, batch).spec

    def padded(x: jax.Array, fill: jax.Array) -> jax.Array:
        return _batched(lambda part: fill_padding(part, layout, placement, fill), batch)(x)

    return jax.shard_map(
        padded,
        mesh=device.fine,
        in_specs=(spec, PartitionSpec()),
        out_specs=spec,
        check_vma=False,
    )(storage, fill)


def _batched(fn: Callable[[jax.Array], jax.Array], batch: int) -> Callable[[jax.Array], jax.Array]:
    """`fn` of an array with so many more dims in front."""
    for _ in range(batch):
        fn = jax.vmap(fn)
    return fn
