"""Blocks: arrays of which every device has one block of the logical dims, in their order.

On such a part a primitive runs as JAX has it, with no transpose before or after.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


def block_spec(shape: Shape, dtype: Any, placement: Placement, memory_space: str = "l1") -> Sharded:
    """An untiled array, each logical dim of which is divided as that grid dim of the placement."""
    layout = GridLayout(shape, dtype, placement.grid, collapse=[], memory_space=memory_space)
    return Sharded(layout, placement)


def block_shape(spec: Sharded) -> Shape:
    """The block that a device has of an array of `block_spec`."""
    local, rank = spec.local_shape, len(spec.placement.grid)
    return tuple(a * b for a, b in zip(local[:rank], local[rank:], strict=True))


@lru_cache(maxsize=4096)
def as_blocks(spec: Spec, device: DeviceGrid) -> Sharded | None:
    """The same array as one of `block_spec`, its parts the same in memory; None where it is not so.

    Dims may be joined where devices divide only the first of those that are.

    >>> import gridlayout as gl
    >>> device = gl.DeviceGrid((1,))
    >>> joined = gl.GridLayout((16, 8, 64), grid=(1, 1))
    >>> found = as_blocks(Sharded(joined, device.placement((1, 1))), device)
    >>> found.layout.grid, block_shape(found)
    ((1, 1, 1), (16, 8, 64))
    """
    if not isinstance(spec, Sharded) or 0 in spec.shape:
        return None
    own, placed, shape = spec.layout.as_grid, spec.placement, spec.shape
    if own is None or not own.groups or own.tile or set(placed.per_device) != {1}:
        return None
    ones = (1,) * len(shape)
    grid, slots, axes = list(ones), list(ones), [()] * len(shape)
    for k, group in enumerate(own.groups):
        if placed.slots[k] > 1:
            first = next((d for d in group if shape[d] > 1), None)
            if first is None:
                return None
            grid[first], slots[first] = placed.grid[k], placed.slots[k]
            axes[first] = placed.axes[k]  # type: ignore[call-overload]
    there = Placement(tuple(grid), tuple(axes), tuple(slots), ones)
    found = block_spec(shape, own.dtype, there, own.memory_space)
    move = find_move(own, found.layout, device, placed, there)
    return found if move is None or (not move.collectives and move.is_view) else None
