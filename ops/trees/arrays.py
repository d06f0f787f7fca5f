"""`put`, `relayout` and `zeros_like`, for one array or for a pytree of arrays.

In a tree, the layouts of all leaves are found and checked before the first leaf is placed or moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, Mesh

from gridlayout.arguments import shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array import placing
from gridlayout.ops.array import relayout as moving
from gridlayout.ops.array.across import check_move, relayout_to
from gridlayout.ops.array.grid_array import GridArray, check_has_data, check_no_stack
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import is_small
from gridlayout.ops.array.policy import fill_devices
from gridlayout.ops.trees.layouts import (
    ByPath,
    device_of_specs,
    has_specs,
    is_spec,
    requested_layouts,
    warn_of_idle_cores,
)
from gridlayout.ops.trees.leaves import Leaf, is_grid, leaves_of
from gridlayout.other_words import KEYWORDS
from gridlayout.public import public
from gridlayout.sharding.collectives import check_sendable
from gridlayout.sharding.device_argument import as_device, of_mesh
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS


@public(words=KEYWORDS)
def put(
    array: Any,
    layout: Any = None,
    device: Any = None,
    layouts: Any = None,
    *,
    check: bool | None = None,
) -> Any:
    """Lay out and place one array, `put(array, layout, device)`, or a tree, `put(tree, device)`.

    A `gl.Layout` as second argument means one array, which has the layout's shape and dtype: a
    NumPy array or a `jax.Array`; nested lists take the layout's dtype. Each device gets the shards
    of its own cores only. Padding holds the layout's `oob`, or 0 where that is undef.

    >>> import numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout
    >>> device = DeviceGrid((1,))
    >>> x = put([[1, 2, 3], [4, 5, 6]], GridLayout((2, 3), "int32", grid=(1, 2)), device)
    >>> x, x.physical.shape
    (GridArray(int32[2,3], grid 1x2, on 1 devices), (1, 2, 2, 2))

    A `gl.DeviceGrid`, or a mesh of JAX, as second argument means a pytree: `put(tree, device,
    layouts=None)`. Arrays
    of rank 1 and more become `GridArray`s. Scalar arrays, such as an optimizer's count, and random
    keys become replicated `jax.Array`s. Leaves that are no arrays stay as they are: Python's
    numbers, functions, None. `GridArray`s on this device grid stay too. layouts:

    * None: `gl.fill_devices`, which chooses grids that fill the devices and waste little.
    * A rule `(shape, dtype) -> layout`, or a sharding of JAX, or None for the default; not called
      for scalars and keys.
    * "replicated": every device has all of every array.
    * A `jax.sharding.NamedSharding`, or a `PartitionSpec` on the device grid's mesh: the layout of
      `gl.GridLayout.of`, whose parts need not be equal. Scalars and keys are replicated.
    * A dict of path patterns, `{"*/kernel": layout or rule or "replicated" or None}`. A path is its
      keys joined by slashes. `*` matches any characters, slashes too; a leading `*/` also matches
      nothing. A pattern also covers everything below what it matches. The first match wins; a leaf
      without a match gets the default. A pattern that is never used is an error.
    * A tree of layouts, rules, specs, "replicated" and None, or a prefix of one (`jax.tree.map`).
    * A tree of `GridArray`s: each leaf takes the layout of the one whose path is a suffix of the
      leaf's path and whose shape is the leaf's. So an optimizer's state is laid out as its
      parameters are: `put(optimizer.init(weights), device, layouts=params)`.
    * A plan of `gl.plan`: the tree is an argument of the planned function, or holds several. Each
      leaf takes the planned layout of the argument whose path ends with the leaf's path.

    >>> tree = {"dense": {"kernel": np.ones((5, 7), "f4"), "bias": np.ones(7, "f4")}, "count": 0}
    >>> put(tree, device, {"*/bias": GridLayout((7,), grid=(2,))})["dense"]["bias"]
    GridArray(float32[7], grid 2, on 1 devices)

    All of these may also be the second argument, before the devices, as for `jax.device_put`:
    `put(tree, spec, mesh)`, `put(tree, layouts, device)`. Shardings have devices of their own:
    `put(x, NamedSharding(mesh, spec))`. Under `jax.set_mesh(mesh)` no devices need be given:
    `put(x, spec)`, `put(x, layout)`, `put(tree)`.

    >>> put(tree, jax.sharding.PartitionSpec("x"), device.mesh)["dense"]["kernel"]
    GridArray(float32[5,7], grid 1x1, on 1 devices)

    A sharded `jax.Array` is sent from device to device, as in a relayout. Where its shards are
    those of the layout, they are used without a copy.

    check: with several processes, whether to compare the data that each of them passes, which must
    be the same. By default, an array of up to 16 MiB is compared by a digest, one of up to 1 GiB by
    CRCs of all its bytes, and a larger one by CRCs of 1 GiB, evenly spread. True compares a digest
    of all bytes of any array, False compares nothing. Layouts are always compared. A process that
    has none of the devices gets a `GridArray` without a part. `put_local` takes from each process
    its part alone.

    Arrays whose storage takes more than 1 MiB are read and placed one after the other, so that
    `np.memmap`s need not be in memory at once; smaller ones are sent in groups of about 16 MiB. A
    `jax.ShapeDtypeStruct` makes a `GridArray` without data, for `gl.on_grid(fn).report` and
    `gl.summary`, which needs no devices. A `LayoutWarning` where a grid has more cores along a dim
    than the tensor has elements, so that some cores are idle. `LayoutError` for another shape or
    dtype, and for layouts that put two elements in one place; for a tree it names the path, and is
    raised before anything is placed.
    """
    layout, device = of_mesh(layout), of_mesh(device)
    if isinstance(array, (Layout, DeviceGrid, Mesh, AbstractMesh)) or is_spec(array):
        raise LayoutError(
            f"put: the first argument {array!r} is no array, and the array comes first: "
            "gl.put(array, layout, device), or gl.put(tree, device, layouts)"
        )
    if layout is None and layouts is None and has_specs(device):  # jax.device_put calls it device
        layout, device = device, None
    if device is None and has_specs(layout):
        device = device_of_specs(layout)
    if device is None and layout is None:
        device = as_device(None)
    is_for_arrays = layout is None or isinstance(layout, (Layout, DeviceGrid))
    if isinstance(device, DeviceGrid) and layouts is None and not is_for_arrays:
        layout, layouts = None, layout
    if isinstance(layout, DeviceGrid):
        if device is not None and layouts is not None:
            raise LayoutError("put(tree, device, layouts) takes layouts once, not twice")
        return _put_tree(array, layout, device if layouts is None else layouts, check)
    if layout is None and isinstance(device, DeviceGrid):
        return _put_tree(array, device, layouts, check)
    if not isinstance(layout, Layout):
        if isinstance(layout, ByPath):
            raise LayoutError(
                "put: the second argument is a plan, which has the devices and the layouts: "
                "plan.put(args) takes all arguments of the planned function, as a tuple"
            )
        raise LayoutError(
            f"put: the second argument {shown(layout)} is neither a gl.Layout, as in gl.put(array, "
            "layout, device), nor a gl.DeviceGrid or a mesh, as in gl.put(tree, device, layouts), "
            "nor a sharding of JAX, as in gl.put(tree, PartitionSpec('x'), mesh)"
        )
    if layouts is not None:
        raise LayoutError("layouts are for trees, gl.put(tree, device, layouts): leave layout out")
    warn_of_idle_cores(layout, 3)
    return placing.put(array, layout, device, check=check)


def _put_tree(tree: Any, device: DeviceGrid, layouts: Any, check: bool | None) -> Any:
    leaves, structure = leaves_of(tree)
    if isinstance(tree, (list, tuple)) and leaves and all(x.is_number for x in leaves):
        raise LayoutError(
            "a list of numbers is a tree of numbers, which stay as they are: give np.asarray(list),"
            " or a layout, gl.put(list, layout, device)"
        )
    requested = requested_layouts(layouts, tree, leaves, device)
    stated = jax.tree.leaves(layouts, is_leaf=lambda x: isinstance(x, Layout))
    for one in dict.fromkeys(x for x in stated if isinstance(x, Layout)):  # rules are for any shape
        warn_of_idle_cores(one, 4)
    planned = [
        _planned(leaf, request, device) for leaf, request in zip(leaves, requested, strict=True)
    ]
    made: dict[int, Any] = {}
    small = {
        number: layout
        for number, (leaf, layout) in enumerate(zip(leaves, planned, strict=True))
        if layout is not None and is_small(leaf.value, layout, device)
    }
    for numbers in _groups(small):
        arrays, chosen = [leaves[n].value for n in numbers], [small[n] for n in numbers]
        made.update(zip(numbers, placing.put_small(arrays, chosen, device), strict=True))
    last = None
    for number, (leaf, layout) in enumerate(zip(leaves, planned, strict=True)):
        if number not in small:
            _wait(last)
            last = made[number] = _placed(leaf, layout, device, check)
    return jax.tree.unflatten(structure, [made[number] for number in range(len(leaves))])


def _groups(layouts: dict[int, Layout]) -> Iterator[list[int]]:
    """Yield groups of arrays, by number, that are packed and sent together.

    A group is complete once its storages take at least `LIMITS.host_bytes`.
    """
    numbers, size = list[int](), 0
    for number, layout in layouts.items():
        numbers.append(number)
        size += layout.nbytes
        if size >= LIMITS.host_bytes:
            yield numbers
            numbers, size = [], 0
    if numbers:
        yield numbers


def _planned(leaf: Leaf, requested: Layout | None, device: DeviceGrid) -> Layout | None:
    """Return the checked layout to put a leaf in; None if it stays as it is or gets no layout."""
    with leaf.named():
        if leaf.is_laid_out:
            _check_placed(leaf.value, requested, device)
            return None
        if not leaf.is_array or leaf.is_key:
            if requested is not None:
                raise LayoutError(f"it is no array of numbers, so {requested!r} can't lay it out")
            return None
        _check_not_truncated(leaf)
        if not isinstance(leaf.value, jax.ShapeDtypeStruct):
            device.check_has_devices("gl.put")
        if requested is None and not leaf.has_layout:
            return None
        layout = requested or fill_devices(leaf.shape, leaf.dtype, None, device)
        _check_laid(leaf, layout, device)
        return layout


def _check_placed(x: GridArray, requested: Layout | None, device: DeviceGrid) -> None:
    """Raise `LayoutError` for a `GridArray` that put would have to move."""
    if x.device != device:
        raise LayoutError(
            f"it is on {x.device.words}; gl.relayout(x, x.layout, device) moves it to "
            f"{device.words}"
        )
    if requested is not None and requested.with_oob(None) != x.layout.with_oob(None):
        raise LayoutError(
            f"it is laid out already, as {x.layout!r}; gl.relayout(tree, layouts) moves it to "
            f"{requested!r}"
        )


def _check_not_truncated(leaf: Leaf) -> None:
    """Raise `LayoutError` for integers that JAX would truncate to 32 bits."""
    held, x = leaf.dtype, leaf.value
    if held.kind in "iu" and isinstance(x, (np.ndarray, np.generic)) and x.size:
        low, high = np.min(x), np.max(x)
        if low < jnp.iinfo(held).min or high > jnp.iinfo(held).max:
            raise LayoutError(
                f"it holds numbers that {held.name} can't represent, from {low} to {high}, and "
                "jax_enable_x64 is off; turn it on or give smaller numbers"
            )


def _check_laid(leaf: Leaf, layout: Layout, device: DeviceGrid) -> None:
    """Raise `LayoutError` where the leaf can't be placed in the layout."""
    if leaf.shape != layout.shape:
        raise LayoutError(
            f"{layout!r} is for shape {layout.shape}: give one for {leaf.shape}, or a rule "
            "(shape, dtype) -> layout"
        )
    if leaf.dtype != layout.dtype:
        wide = leaf.value.dtype == layout.dtype
        fix = "jax.config.update('jax_enable_x64', True)" if wide else "layout.with_dtype(dtype)"
        raise LayoutError(
            f"JAX holds it as {leaf.dtype.name}, but {layout!r} has another dtype: use {fix}"
        )
    layout.check_invertible()
    check_sendable(layout.dtype)
    device.placement(layout)


def _placed(leaf: Leaf, layout: Layout | None, device: DeviceGrid, check: bool | None) -> Any:
    with leaf.named():
        if layout is not None:
            return placing.put(leaf.value, layout, device, check=check)
        if not leaf.is_array or isinstance(leaf.value, (GridArray, jax.ShapeDtypeStruct)):
            return leaf.value
        return placing.put_replicated(leaf.value, device, "gl.put")


def _wait(x: Any) -> None:
    """Wait until the data is on the devices, so that the host's packed copy can be freed."""
    data = x.storage if is_grid(x) else x
    if isinstance(data, jax.Array) and not isinstance(data, jax.core.Tracer):
        data.block_until_ready()


@public
def relayout(x: Any, layout: Any = None, device: DeviceGrid | None = None) -> Any:
    """Return `x`, or every `GridArray` of a pytree, in another layout or on another device grid.

    For one array, `layout` has the same logical shape and dtype. Nothing moves when both layouts
    put every element at the same physical index. A known `oob` is written to the padding.

    device: a `gl.DeviceGrid` that the arrays are moved to, such as another part of a mesh,
    `device[2:]`; by default the one that they are on. Without a layout each keeps its own. In a
    tree, scalars and random keys are moved too. JAX runs a program over one mesh, so this is called
    outside of `jax.jit`. Where both device grids have parts of equal shapes, they go from device to
    device, also from process to process; else through the host, part by part. `LayoutError` where
    several processes have devices whose parts are not equal.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put([1, 2, 3], GridLayout((3,), "int32", grid=(3,)), DeviceGrid((1,)))
    >>> relayout(x, GridLayout((3,), "int32", grid=(1,))).physical.tolist()
    [[1, 2, 3]]

    For a tree, `layout` is a rule, "replicated", path patterns, or a tree of layouts or of
    `GridArray`s, as `gl.put` takes them. `GridArray`s for which no layout is given stay as they
    are, and so do scalars, random keys and leaves that are no arrays. `LayoutError` for another
    shape or dtype, and for an array that is not laid out; for a tree it names the path, and is
    raised before anything is moved.

    >>> relayout({"w": x, "count": 3}, {"w": lambda shape, dtype: GridLayout(shape, dtype, (2,))})
    {'count': 3, 'w': GridArray(int32[3], grid 2, on 1 devices)}
    """
    if device is not None:
        device = as_device(device)
    if is_grid(x) and isinstance(layout, Layout):
        return _moved(x, layout, device)
    leaves, structure = leaves_of(x)
    if not any(leaf.is_laid_out for leaf in leaves):
        raise LayoutError(
            f"relayout takes a GridArray or a tree of them, not {type(x).__name__}; gl.put makes "
            "them"
        )
    if layout is None and device is None:
        raise LayoutError("relayout to None: give a gl.Layout, or layouts as gl.put takes them")
    requested = (
        [None] * len(leaves) if layout is None else requested_layouts(layout, x, leaves, device)
    )
    for leaf, new in zip(leaves, requested, strict=True):
        with leaf.named():
            _check_move(leaf, new, device)
    moved = [_leaf_moved(leaf, new, device) for leaf, new in zip(leaves, requested, strict=True)]
    return jax.tree.unflatten(structure, moved)


def _moved(x: GridArray, layout: Layout, device: DeviceGrid | None) -> GridArray:
    return moving.relayout(x, layout) if device is None else relayout_to(x, layout, device)


def _leaf_moved(leaf: Leaf, new: Layout | None, device: DeviceGrid | None) -> Any:
    x = leaf.value
    if leaf.is_laid_out:
        if new is None and device is None:
            return x
        return _moved(x, x.layout if new is None else new, device)
    if device is not None and isinstance(x, jax.Array):
        return placing.put_replicated(x, device, "gl.relayout")
    return x


def _check_move(leaf: Leaf, new: Layout | None, device: DeviceGrid | None) -> None:
    if leaf.is_laid_out and device is not None:
        check_move(leaf.value, leaf.value.layout if new is None else new, device)
    if not leaf.is_laid_out:
        if leaf.has_layout or new is not None:
            raise LayoutError("it is no GridArray; gl.put(tree, device, layouts) lays it out")
    elif new is not None:
        moving.check_relayout(leaf.value.layout, new)
        leaf.value.device.check_has_devices("gl.relayout")
        check_has_data(leaf.value, "gl.relayout")
        check_no_stack(leaf.value)
        new.check_invertible()
        leaf.value.device.sharding(new)


@public
def zeros_like(x: Any) -> Any:
    """Return zeros in the layout of `x`, or of every array of a pytree, with padding known to be 0.

    A `GridArray` without data gives one without data; other arrays give `jnp.zeros_like`. Random
    keys, Python's numbers and leaves that are no arrays stay as they are.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> x = put([1, 2, 3], GridLayout((3,), "int32", grid=(2,)), DeviceGrid((1,)))
    >>> zeros_like({"w": x})["w"].layout
    GridLayout((3,), 'int32', grid=(2,), oob='zero')
    """
    leaves, structure = leaves_of(x)
    return jax.tree.unflatten(structure, [_zeros(leaf) for leaf in leaves])


def _zeros_like(storage: jax.Array) -> jax.Array:
    if isinstance(storage, jax.core.Tracer):
        return jnp.zeros_like(storage)
    # `jnp.zeros_like` alone fails for an array in the host's memory that is on one device.
    return jax.jit(jnp.zeros_like, out_shardings=storage.sharding)(storage)


def _zeros(leaf: Leaf) -> Any:
    x = leaf.value
    if isinstance(x, GridArray):
        layout = x.layout.with_oob(0)
        if isinstance(x.storage, jax.ShapeDtypeStruct):
            return placing.described(layout, x.device)
        with x.device.active():
            return placed(_zeros_like(x.storage), layout, x.device)
    if not leaf.is_array or leaf.is_key or isinstance(x, jax.ShapeDtypeStruct):
        return x
    with leaf.named():
        _check_not_truncated(leaf)  # raises for element types that JAX does not hold, too
        return jnp.zeros_like(x)
