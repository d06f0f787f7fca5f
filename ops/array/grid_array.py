"""`GridArray`: a logical tensor in a layout on a device grid.

To JAX it is one value, a leaf of any pytree (its type is in `gridlayout.ops.array.grid_type`). It
passes through jit, grad, vmap, scan and `jax.tree_util`. Functions that are not lifted to the grid
can't access its storage. A traced GridArray is JAX's tracer of that type, with the same attributes.

The known padding value of a layout (`oob`) holds for the storage of this array only. Inside a jit,
in a gradient and in a loop's carry, layouts have an undef `oob`, as the value might not hold there.
Functions of this library pass known padding values on.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import slices_of
from gridlayout.layouts.program import unpack_host
from gridlayout.ops.array.grid_type import GridType, give, grid_type, placed, represent
from gridlayout.ops.array.in_parts import Held, as_box, boxes_here, is_host_memory
from gridlayout.ops.array.logical import check_sharding, logical_as, sharding_text
from gridlayout.ops.array.shown import DeviceLocation, Shown, located, printed
from gridlayout.ops.array.storage import StorageSharding, padded, to_logical, without_idle
from gridlayout.ops.array.storage_primitives import storage_of
from gridlayout.ops.moves.spaces import as_stored, in_device_memory, in_layout_memory
from gridlayout.other_words import ARRAY
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.processes.agreement import check_has_part, joint_call, layout_lines

if TYPE_CHECKING:
    from jax.sharding import Sharding


class _Meta(type):
    """The metaclass of `GridArray`: tracers of GridArrays count as instances.

    JAX's errors print its repr, which says which functions take a GridArray.
    """

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, jax.core.Tracer) and isinstance(x.aval, GridType)

    def __repr__(cls) -> str:
        return "<class 'gridlayout.GridArray', which gl.on_grid(fn), gl.numpy and gl.nn take>"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GridArray(Shown, metaclass=_Meta):
    """A logical tensor in a layout on a device grid; `gl.put` and every operation return one.

    storage: one sharded `jax.Array` of the layout's physical shape. Its grid dims are rounded up by
    idle slots where the mesh requires it. In front of them are the dims that `lax.scan` stacked.
    """

    storage: jax.Array
    layout: Layout
    device: DeviceGrid

    def __init__(self, storage: jax.Array, layout: Layout, device: DeviceGrid) -> None:
        # The generated `__init__` takes twice as long, for each result of each call.
        held = self.__dict__
        layout = as_stored(layout, device)
        held["storage"], held["layout"], held["device"] = storage, layout, device

    # -- attributes ----------------------------------------------------------------------------

    @cached_property
    def type(self) -> GridType:
        """Its type, as JAX knows it."""
        stack = self.storage.shape[: len(self.storage.shape) - len(self.layout.physical_shape)]
        return grid_type(self.layout, self.device, stack)

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.layout.dtype

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return self.type.ndim

    @property
    def size(self) -> int:
        """The number of logical elements."""
        return self.type.size

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.layout.nbytes

    @property
    def sharding(self) -> Sharding:
        """The sharding of `storage`."""
        found = self.storage.sharding
        return (
            StorageSharding.of(found, self.storage.shape, repr(self))
            if isinstance(found, NamedSharding)
            else found
        )

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        grid = "x".join(map(str, self.layout.core_shape))
        tile = self.layout.tile
        tiles = f", tile {'x'.join(map(str, tile))}" if tile else ""
        mesh = "x".join(map(str, self.device.shape))
        placed = self.device.placement(self.layout)
        on = "on" if any(placed.axes) or self.device.size == 1 else "replicated on"
        data = ", no data" if has_no_data(self) else ""
        return (
            f"GridArray({self.dtype.name}[{dims}], grid {grid}{tiles}, {on} {mesh} devices{data})"
        )

    def __str__(self) -> str:
        return printed(self)

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

    @public
    def locate(self, index: Sequence[int]) -> DeviceLocation:
        """Return the location of an element: device, core and position in the core's buffer.

        index: the logical index, one number per dim. `LayoutError` if it is outside the shape.

        >>> from gridlayout import GridLayout, put
        >>> layout = GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))
        >>> put(jnp.zeros((53, 63), "bfloat16"), layout, DeviceGrid((1,))).locate((20, 40))
        DeviceLocation(device=(0,), core=(1, 1), local=(0, 0, 2, 8), offset=72, byte=144)
        """
        check_no_stack(self)
        return located(index, self.type.layout, self.type.device)

    # -- reading data --------------------------------------------------------------------------

    @property
    def physical(self) -> jax.Array:
        """The storage without idle slots, of shape `layout.physical_shape` after stacked dims.

        If there are idle slots to remove, the result is replicated.
        """
        shape = self.layout.physical_shape
        check_has_data(self, "GridArray.physical")
        if self.storage.shape[self.storage.ndim - len(shape) :] == shape:
            return self.storage
        with joint_call("GridArray.physical", self.device, self) as call, self.device.active():
            call.agree(self.layout, lambda: layout_lines(("array", self.layout)))
            return call.ran(without_idle(_in_device_memory(self), shape, self.device))

    @public
    def to_logical(self, sharding: Sharding | None = None) -> jax.Array:
        """Return the logical array, a `jax.Array`; also with several processes.

        sharding: a `jax.sharding.NamedSharding` on any mesh; by default the result is replicated.
        Devices send each other the shards as in a relayout. If the array is traced, or the mesh has
        other devices, the array is replicated before it is sharded. `LayoutError` if a dim is not a
        multiple of the number of its devices, as JAX's arrays have equal shards.

        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> device = DeviceGrid((1,))
        >>> x = put([1, 2, 3, 4], GridLayout((4,), "int32", grid=(3,)), device)
        >>> rows = NamedSharding(device.mesh, jax.sharding.PartitionSpec("x"))
        >>> x.to_logical(rows).sharding == rows
        True
        """
        check_has_data(self, "GridArray.to_logical")
        with joint_call("GridArray.to_logical", self.device, self) as call:
            if sharding is not None:
                check_no_stack(self)
                check_sharding(sharding, self.shape)
            asked = "every device" if sharding is None else sharding_text(sharding, self.shape)
            lines = layout_lines(("array", self.layout))
            call.agree((self.layout, asked), lambda: [f"to: {asked}", *lines])
            with self.device.active():
                storage = _in_device_memory(self)
                if sharding is None and not _is_large(self):
                    return call.ran(to_logical(storage, self.layout, self.device))
                target = self.device.replicated if sharding is None else sharding
                found = logical_as(storage, self.layout, self.device, target)
                return call.ran(found if found is not None else _placed_as(self, storage, target))

    @public
    def local_boxes(self) -> list[tuple[slice, ...]]:
        """Return the boxes of the logical array that this process's devices hold, each once.

        They are tuples of slices, disjoint, in order of their first corners, and are known without
        data too. A device whose cores divide joined dims holds several: at most `2 k - 1` for `k`
        joined dims. If cores do not divide linear axes (maps that use a dim twice, Sophon's lanes),
        a box bounds the elements of a device, and may overlap others.

        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> x = put([1, 2, 3, 4], GridLayout((4,), "int32", grid=(3,)), DeviceGrid((1,)))
        >>> x.local_boxes()
        [(slice(0, 4, None),)]
        """
        check_no_stack(self)
        self.device.check_has_devices("GridArray.local_boxes")
        return [slices_of(box) for box in boxes_here(self.layout, self.device)]

    @public
    def local(self, box: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        """Return a box of the logical array as a new NumPy array, read from this process's devices.

        box: one of `local_boxes()`, or another box that this process holds in full. Nothing is
        sent, and other processes need not call it. `LayoutError` if the process lacks a part of it.

        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> x = put([1, 2, 3, 4], GridLayout((4,), "int32", grid=(3,)), DeviceGrid((1,)))
        >>> x.local((slice(1, 3),)).tolist()
        [2, 3]
        """
        check_has_data(self, "GridArray.local")
        check_no_stack(self)
        check_has_part(self.device, repr(self))
        requested = as_box(box, self.shape)
        return Held(self.storage, self.layout, self.device).read(requested)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a GridArray has no logical array to share: copy=False can't be met")
        check_has_data(self, "np.asarray")
        is_whole = self.storage.ndim == len(self.layout.physical_shape)
        if is_whole and isinstance(self.storage, np.ndarray):
            physical = self.storage[tuple(map(slice, self.layout.physical_shape))]
            array = unpack_host(physical, self.layout)
        elif is_whole and self.storage.is_fully_addressable:
            whole = tuple((0, n) for n in self.shape)
            array = Held(self.storage, self.layout, self.device).read(whole)
        else:
            check_has_part(self.device, repr(self))
            array = np.asarray(self.to_logical())
        return array if dtype is None else array.astype(dtype)

    @public
    def with_oob(self, oob: Any) -> GridArray:
        """Return the same data with its padding set to `oob`; None: with unknown padding."""
        layout = self.layout.with_oob(oob)
        if layout.oob is None:
            return placed(self.storage, layout, self.device)
        check_has_data(self, "GridArray.with_oob")
        with self.device.active():
            storage = padded(_in_device_memory(self), layout, self.device)
            return placed(in_layout_memory(storage, layout, self.device), layout, self.device)

    @public
    def block_until_ready(self) -> GridArray:
        """Wait until the data is computed, and return this array."""
        check_has_data(self, "GridArray.block_until_ready")
        self.storage.block_until_ready()
        return self

    def __copy__(self) -> GridArray:
        return GridArray(self.storage, self.layout, self.device)

    def __deepcopy__(self, memo: Any) -> GridArray:
        if has_no_data(self):
            return self
        with self.device.active():
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

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'GridArray' object has no attribute {name!r}: {self._instead(name)}")

    def _instead(self, name: str) -> str:
        lifted = "gl.on_grid(fn), gl.numpy and gl.nn take a GridArray, and x.to_logical() is its"
        lifted += " logical array"
        if name.startswith("_"):  # JAX requests such names very often
            return lifted
        if name in ARRAY:
            return ARRAY[name]
        if hasattr(np.ndarray, name):
            return f"np.asarray(x).{name} is that of its elements, on the host; {lifted}"
        for part in ("layout", "storage", "device"):
            if name in dir(vars(self).get(part)):
                return f"x.{part}.{name} is that of its {part}; {lifted}"
        return lifted


def check_no_stack(x: GridArray) -> None:
    """Raise `LayoutError` for a stack from `lax.scan`, whose layout lacks the first dim."""
    if stack := x.type.stack:
        raise LayoutError(
            f"{x!r} is a stack of {stack} that lax.scan made: give gl.on_grid the whole "
            "loop, or take x.to_logical()"
        )


def check_same_devices(x: GridArray, device: DeviceGrid, what: str) -> None:
    """Raise `LayoutError` if an array is not on the device grid `device` of the others."""
    if x.device is not device and x.device != device:
        raise LayoutError(
            f"{what}: the arrays are on different device grids, {device.words} and "
            f"{x.device.words}; an operation runs on one. gl.relayout(y, y.layout, x.device) "
            f"moves y, here {x!r}, to the device grid of x"
        )


def has_no_data(x: Any) -> bool:
    """Whether it is a `jax.ShapeDtypeStruct`, or the result of `gl.put` of one."""
    return isinstance(x.storage if type(x) is GridArray else x, jax.ShapeDtypeStruct)


def check_has_data(x: Any, what: str) -> None:
    """Raise `LayoutError` if `x` has a shape but no data, which `what` needs."""
    if has_no_data(x):
        raise LayoutError(
            f"{what} needs data, and {x!r} has only a shape: gl.on_grid(fn).report and "
            "gl.relayout_plan accept it"
        )


def _is_large(x: GridArray) -> bool:
    """Whether an array in host memory is so large that the host reads it from there."""
    return (
        x.storage.ndim == len(x.layout.physical_shape)
        and x.layout.nbytes >= LIMITS.host_bytes
        and is_host_memory(x.storage, x.device)
    )


def _placed_as(x: GridArray, storage: jax.Array, sharding: Sharding) -> jax.Array:
    """Return the logical array in a sharding; it is replicated first."""
    found = to_logical(storage, x.layout, x.device)
    if isinstance(found, jax.core.Tracer):
        return jax.lax.with_sharding_constraint(found, sharding)
    return jax.device_put(found, sharding)


def _in_device_memory(x: GridArray) -> jax.Array:
    found: jax.Array = in_device_memory(x.storage, x.layout, x.device)
    return found


# -- registration with JAX -------------------------------------------------------------------------

represent(GridArray)
for _name in ("to_logical", "with_oob", "physical", "locate", "draw", "summary"):
    give(_name, inspect.getattr_static(GridArray, _name))
give("storage", property(storage_of))
