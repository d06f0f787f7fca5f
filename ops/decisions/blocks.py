"""Block layouts: each device has one contiguous block of the logical array, dims in order.

A primitive runs on such a block directly, without a transpose before or after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document import grid_form
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement


@cached
def block_spec(shape: Shape, dtype: Any, placement: Placement, memory_space: str = "l1") -> Sharded:
    """Return the spec of an untiled array whose dim `d` is divided by grid dim `d`."""
    layout = GridLayout(shape, dtype, placement.grid, collapse=[], memory_space=memory_space)
    return Sharded(layout, placement)


def blocks_like(
    spec: Sharded, shape: Shape, dtype: Any, placement: Placement | None = None
) -> Sharded:
    """Return the blocks of an array whose dims are divided as those of `spec`, by `as_blocks`.

    Dims of the same extent are divided at the same positions. placement: of the result, if some
    dims are undivided in it; by default that of `spec`.

    >>> import gridlayout as gl
    >>> placed = gl.DeviceGrid((1,)).placement((1, 1))
    >>> blocks_like(block_spec((8, 4), "float32", placed), (8, 6), "int32").layout
    GridLayout((8, 6), 'int32', grid=(1, 1))
    """
    placement = placement or spec.placement
    found, own = block_spec(shape, dtype, placement, spec.layout.memory or "l1"), spec.layout
    assert isinstance(own, GridLayout)
    rows = zip(own.stated_shard, own.shape, shape, placement.slots, strict=True)
    return with_shards(found, [n if a == b and count > 1 else None for n, a, b, count in rows])


def with_shards(spec: Sharded, shards: Sequence[int | None]) -> Sharded:
    """Return blocks with stated extents along some dims."""
    if not any(shards):
        return spec
    assert isinstance(spec.layout, GridLayout)
    return replace(spec, layout=spec.layout.replace(shard_shape=tuple(shards)))


def equal_blocks(spec: Sharded) -> Sharded:
    """Return the `block_spec` of an array in blocks by `as_blocks`, without stated extents."""
    return block_spec(spec.shape, spec.dtype, spec.placement, spec.layout.memory or "l1")


def block_shape(spec: Sharded) -> Shape:
    """Return the shape of the logical block that one device holds of a `block_spec` array."""
    local, rank = spec.local_shape, len(spec.placement.grid)
    return tuple(a * b for a, b in zip(local[:rank], local[rank:], strict=True))


def untiled(spec: Sharded) -> Sharded:
    """Return the spec of the same parts on the same devices, without tiles."""
    layout = grid_form.untiled(spec.layout)
    return spec if layout is spec.layout else Sharded(layout, spec.placement)


@cached
def as_blocks(spec: Spec, device: DeviceGrid) -> Sharded | None:
    """Return the `block_spec` that describes the same bytes on each device, or None.

    Blocks are as long as the layout states. A collapsed dim may join several logical dims if
    devices divide only the first of them.

    >>> import gridlayout as gl
    >>> device = gl.DeviceGrid((1,))
    >>> joined = gl.GridLayout((16, 8, 64), grid=(1, 1))
    >>> found = as_blocks(Sharded(joined, device.placement((1, 1))), device)
    >>> found.layout.grid, block_shape(found)
    ((1, 1, 1), (16, 8, 64))
    """
    if not isinstance(spec, Sharded) or 0 in spec.shape:
        return None
    own, placed, shape = as_grid(spec.layout), spec.placement, spec.shape
    if own is None or not own.groups or own.tile or set(placed.per_device) != {1}:
        return None
    ones = (1,) * len(shape)
    grid, slots = list(ones), list(ones)
    axes: list[Axes] = [()] * len(shape)
    shards: list[int | None] = [None] * len(shape)
    for k, group in enumerate(own.groups):
        if placed.slots[k] > 1:
            first = next((d for d in group if shape[d] > 1), None)
            if first is None:
                return None
            grid[first], slots[first] = placed.grid[k], placed.slots[k]
            axes[first] = placed.axes[k]
            rest = prod(shape[d] for d in group if d != first)
            stated = own.stated_shard[k]
            shards[first] = None if stated is None or stated % rest else stated // rest
    placement = Placement(tuple(grid), tuple(axes), tuple(slots), ones)
    found = with_shards(block_spec(shape, own.dtype, placement, own.memory_space), shards)
    move = find_move(own, found.layout, device, placed, placement)
    return found if move is None or (not move.collectives and move.is_view) else None


@cached
def reshaped_blocks(spec: Sharded, shape: Shape, near: bool = False) -> Sharded | None:
    """Return the block spec of the same data reshaped to `shape`, or None.

    It exists if devices divide only the first of the dims that the reshape merges or splits. near:
    whether blocks may begin and end elsewhere than those of the data.

    >>> import gridlayout as gl
    >>> placed = gl.DeviceGrid((1,)).placement((1, 1, 1))
    >>> reshaped_blocks(block_spec((8, 4, 6), "float32", placed), (32, 6)).layout.shape
    (32, 6)
    """
    placed, own = spec.placement, as_grid(spec.layout)
    if own is None or not own.groups or set(placed.per_device) != {1} or 0 in spec.shape:
        return None
    parts: dict[int, int] = {}  # logical dim that devices divide -> grid dim
    for k, group in enumerate(own.groups):
        wide = [d for d in group if spec.shape[d] > 1]
        if placed.slots[k] > 1 and (
            len(wide) != 1
            or not (near or own.shard_shape[k] == -(-spec.shape[wide[0]] // placed.slots[k]))
        ):
            return None
        if placed.slots[k] > 1:
            parts[wide[0]] = k
    ones = (1,) * len(shape)
    grid = list(ones)
    axes: list[Axes] = [()] * len(shape)
    for before, after in dim_groups(spec.shape, shape):
        old = [d for d in before if spec.shape[d] > 1]
        new = [d for d in after if shape[d] > 1]
        for d in parts.keys() & set(before):
            k = parts[d]
            is_same = len(old) == len(new) == 1
            if d != old[0] or new == [] or min(shape[new[0]], spec.shape[d]) < placed.slots[k]:
                return None
            even = not (shape[new[0]] % placed.slots[k] or spec.shape[d] % placed.slots[k])
            if not (is_same or even or near):
                return None
            grid[new[0]], axes[new[0]] = placed.slots[k], placed.axes[k]
    placement = Placement(tuple(grid), tuple(axes), tuple(grid), ones)
    return block_spec(shape, own.dtype, placement, own.memory_space)


@cached
def same_blocks(target: Sharded, source: Sharded) -> tuple[Sharded, Sharded] | None:
    """Return two specs of the same blocks, of arrays of both specs' shapes, or None.

    The second one divides the array as `target`, a `block_spec`, but in blocks of whole elements of
    the dim that the first one divides, or vice versa: blocks of one are a few positions off the
    other's. They are those of `source` where that is divided so.

    >>> import gridlayout as gl
    >>> import jax
    >>> device = gl.DeviceGrid(jax.sharding.AbstractMesh((8,), ("x",)))
    >>> target = block_spec((1527,), "float32", device.placement((8,)))
    >>> source = block_spec((509, 3), "float32", device.placement((8, 1)))
    >>> before, after = same_blocks(target, source)
    >>> before.layout.shard_shape, after.layout.shard_shape, target.layout.shard_shape
    ((64, 3), (192,), (191,))
    """
    shape = source.shape
    placed, own = target.placement, as_grid(target.layout)
    if own is None or 0 in shape:
        return None
    grid, slots, axes = [1] * len(shape), [1] * len(shape), list[Axes](() for _ in shape)
    stated: tuple[list[int | None], ...] = ([None] * len(shape), [None] * len(target.shape))
    for before, after in dim_groups(shape, target.shape):
        old = [d for d in before if shape[d] > 1]
        new = [d for d in after if target.shape[d] > 1]
        for d in after:
            if placed.slots[d] == 1:
                continue
            if d != new[0] or (len(old) > 1 and len(new) > 1):
                return None
            grid[old[0]], axes[old[0]], slots[old[0]] = (
                placed.grid[d],
                placed.axes[d],
                placed.slots[d],
            )
            rest = prod(target.shape[k] for k in new[1:])
            rows = _rows(source, old[0], placed.axes[d]) or -(-shape[old[0]] // placed.grid[d])
            if len(new) > 1:
                rows = own.shard_shape[d] * rest if rows % rest else rows
            stated[0][old[0]], stated[1][d] = rows, rows * prod(shape[k] for k in old[1:]) // rest
    there = Placement(tuple(grid), tuple(axes), tuple(slots), (1,) * len(shape))
    places, shapes, made = (there, placed), (shape, target.shape), list[Sharded]()
    for place, each, shard in zip(places, shapes, stated, strict=True):
        made.append(with_shards(block_spec(each, own.dtype, place, own.memory_space), shard))
    return made[0], made[1]


def _rows(spec: Sharded, d: int, axes: Axes) -> int | None:
    """Return the positions of a dim that a device has, if mesh axes divide it in whole blocks."""
    own, placed = as_grid(spec.layout), spec.placement
    if own is None or own.tile or set(placed.per_device) != {1}:
        return None
    for k, group in enumerate(own.groups):
        wide = [j for j in group if spec.shape[j] > 1]
        if wide and wide[0] == d and placed.axes[k] == axes:
            rest = prod(spec.shape[j] for j in wide[1:])
            return own.shard_shape[k] // rest if own.shard_shape[k] % rest == 0 else None
    return None


def dim_groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """Return the smallest groups of dims, one of each shape, that hold the same elements.

    A reshape from `before` to `after` maps each group of dims to its partner.

    >>> dim_groups((8, 4, 6), (32, 2, 3))
    [([0, 1], [0]), ([2], [1, 2])]
    """
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        some, others = [], []
        a = b = 1
        while True:
            if i < len(before) and (a <= b or j >= len(after)):
                a *= before[i]
                some.append(i)
                i += 1
            elif j < len(after):
                b *= after[j]
                others.append(j)
                j += 1
            if a == b or (i >= len(before) and j >= len(after)):
                break
        found.append((some, others))
    return found
