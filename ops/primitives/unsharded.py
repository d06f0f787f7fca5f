"""Arrays with some dims unsharded.

If dims `axes` of an array are unsharded, a device holds their full extents. Its part has them in
front of the storage of a smaller layout, which describes the other dims.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp

from gridlayout.affine.map import AffineMap, dim, embedding
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid, grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.relayout import moved_bytes, sent_between
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement

Shape = tuple[int, ...]


@cached
def stacked(rest: GridLayout, axes: Shape, extents: Shape) -> GridLayout:
    """Return the layout in which dims `axes` are unsharded; rest: the layout of the other dims.

    >>> stacked(GridLayout((4, 6), grid=(2, 3)), (0,), (5,)).physical_shape
    (1, 2, 3, 5, 2, 2)
    """
    rank = rest.ndim + len(axes)
    kept = [d for d in range(rank) if d not in axes]
    rows = rest.linear.compose(AffineMap(rank, [dim(d) for d in kept])).results
    sizes = dict(zip(axes, extents, strict=True)) | dict(zip(kept, rest.shape, strict=True))
    return rest.replace(
        shape=tuple(sizes[d] for d in range(rank)),
        grid=(*(1 for _ in axes), *rest.grid),
        linear=AffineMap(rank, (*(dim(a) for a in axes), *rows)),
        shard_shape=(*(None for _ in axes), *rest.stated_shard),
        oob=None,
    )


@cached
def layout_without(layout: Layout, axes: Shape) -> GridLayout | None:
    """Return the layout of the other dims, if each of `axes` has an untiled grid dim of its own.

    >>> layout_without(GridLayout((5, 4, 6), grid=(1, 2, 3), collapse=[]), (0,))
    GridLayout((4, 6), 'float32', grid=(2, 3))
    """
    if (own := grouped(layout)) is None:
        return None
    untiled = len(own.grid) - len(own.tile or ())
    gone = [k for k, group in enumerate(own.groups) if set(group) & set(axes)]
    alone = sorted(own.groups[k] for k in gone) == [(a,) for a in sorted(axes)]
    if not alone or len(gone) == len(own.grid) or any(k >= untiled for k in gone):
        return None
    return kept_groups(own, axes, gone)


def kept_groups(own: GridLayout, axes: Shape, gone: Sequence[int]) -> GridLayout:
    """Return a grouped layout without its groups `gone`, which consist of dims `axes`."""
    kept = [d for d in range(own.ndim) if d not in axes]
    rows = own.linear.compose(embedding(own.ndim, kept)).results
    rank = len(own.grid)
    stay = [k for k in range(rank) if k not in gone]

    def inner(sizes: Shape | None) -> Shape | None:
        first = rank - len(sizes or ())
        return tuple(sizes[k - first] for k in stay if k >= first) or None if sizes else None

    return own.replace(
        row_alignment=None if rank - 1 in gone else own.row_alignment,
        shape=tuple(own.shape[d] for d in kept),
        grid=tuple(own.grid[k] for k in stay),
        mesh_axes=None if own.mesh_axes is None else tuple(own.mesh_axes[k] for k in stay),
        tile=inner(own.tile),
        face=inner(own.face),
        linear=AffineMap(len(kept), tuple(rows[k] for k in stay)),
        shard_shape=tuple(own.stated_shard[k] for k in stay),
        oob=None,
    )


def rest_layout(b: Builder, value: Value, axes: Shape) -> GridLayout | None:
    """Return the layout of the dims other than `axes`: the value's or the policy's; or None."""
    shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
    if not shape or 0 in value.shape:
        return None
    if (
        isinstance(value.spec, Sharded)
        and (own := layout_without(value.spec.layout, axes)) is not None
    ):
        extents = tuple(value.shape[a] for a in axes)
        work = b.record.work(prod(extents)) if b.record.work else 0.0
        return _spread_out(value.spec, own, axes, extents, b.device, work)
    times = prod(value.shape[a] for a in axes)
    found = as_grid(b.env.choose_slice(shape, value.dtype, value.layout, times))
    if found is None:
        return None
    if (extra := len(found.grid) - len(shape)) > 0:  # fewer dims, on as many cores
        grid = (prod(found.grid[: extra + 1]), *found.grid[extra + 1 :])
        tile = found.tile and found.tile[-len(grid) :]
        found = GridLayout(shape, value.dtype, grid, tile, [], memory_space=found.memory_space)
    return found


def rest_placement(b: Builder, value: Value, axes: Shape, rest: GridLayout) -> Placement:
    """Return where the other dims are placed; rest: `rest_layout`.

    If the layout of a dim is the value's with the cores along `axes` added, so is its placement.
    """
    spec = value.spec
    own = layout_without(spec.layout, axes) if isinstance(spec, Sharded) else None
    if own is None or not isinstance(spec, Sharded) or len(own.grid) != len(rest.grid):
        return b.placement(rest)
    return _spread_placement(spec, axes, own, rest, b.device) or b.placement(rest)


def _spread_placement(
    spec: Sharded, axes: Shape, own: GridLayout, rest: GridLayout, device: DeviceGrid
) -> Placement | None:
    """Return the placement of `rest`, which has the cores along `axes` added to a dim of `own`.

    None if it has not, or if some devices have several cores.
    """
    placed, groups = spec.placement, grouped(spec.layout)
    assert groups is not None
    gone = [k for k, group in enumerate(groups.groups) if set(group) & set(axes)]
    stays = [k for k in range(len(placed.axes)) if k not in gone]
    free = tuple(axis for k in gone for axis in placed.axes[k])
    pairs = list(zip(stays, own.grid, rest.grid, strict=True))
    found = [placed.axes[k] + (free if a != b else ()) for k, a, b in pairs]
    counts = tuple(map(device.count, found))
    if counts == own.grid or counts != rest.grid or set(placed.per_device) != {1}:
        return None
    return device.placed(rest.grid, found)


@cached
def _spread_out(
    spec: Sharded,
    own: GridLayout,
    axes: Shape,
    extents: Shape,
    device: DeviceGrid,
    work: float = 0.0,
) -> GridLayout:
    """Return the layout of the other dims, with the cores along `axes` added to the longest one.

    It is `own` unless this saves half of the bytes, as moving the result back costs the same again;
    or unless it saves time, if each element takes `work` operations.
    """
    layout = spec.layout
    k = max(range(len(own.grid)), key=lambda k: own.shard_shape[k])
    cores = prod(layout.core_shape) // prod(own.grid)
    grid = tuple(g * cores if i == k else g for i, g in enumerate(own.grid))
    wide = own.replace(grid=grid, shard_shape=None)
    ways = [stacked(rest, axes, extents) for rest in (wide, own)]
    if work and device.machine.has_latency and device.placements.has(wide.grid):
        before, seconds = spec.placement, []
        spread = _spread_placement(spec, axes, own, wide, device)
        for way, times, found in zip(ways, (2, 1), (spread, None), strict=True):
            lead = len(axes)
            there = device.placements.inner(way)
            there = there if found is None else found.with_leading_dims(lead)
            moved = sent_between(layout, way, device, before, there)
            sent = device.machine.price(moved, device.size)
            cores = prod(there.per_device) * prod(way.local_shape)
            seconds.append(times * sent + device.machine.seconds(elements=work * cores))
        return wide if seconds[0] < seconds[1] else own
    few, many = (moved_bytes(layout, way, device) for way in ways)
    return wide if few < LIMITS.move_share * many else own


def stacked_spec(
    b: Builder,
    rest: GridLayout,
    axes: Shape,
    shape: Shape,
    dtype: Any,
    placement: Placement | None = None,
) -> Sharded:
    """Return the spec of `stacked`, with each core on the same device as in `rest`.

    The device grid might place the larger grid differently, as a core map may exist for one only.
    placement: of `rest`, if it is not the default one.
    """
    layout = stacked(rest.with_dtype(dtype), axes, tuple(shape[a] for a in axes))
    return Sharded(layout, (placement or b.placement(rest)).with_leading_dims(len(axes)))


def unstack(
    b: Builder, value: Value, axes: Shape, rest: GridLayout, placement: Placement | None = None
) -> Value:
    """Return the value with dims `axes` unsharded; rest: the layout of the other dims.

    placement: of `rest`, if it is not the default one.
    """
    there = stacked_spec(b, rest, axes, value.shape, value.dtype, placement)
    return b.as_spec(value, there)


def in_front(part: Any, count: int, cores: int) -> Any:
    """Return a part of `stacked` as its `count` unsharded dims, then the part of `rest`."""
    return jnp.moveaxis(part[(0,) * count], range(cores, cores + count), range(count))


def from_front(array: Any, count: int, cores: int) -> Any:
    """Return the inverse of `in_front`."""
    return jnp.moveaxis(array, range(count), range(cores, cores + count))[(None,) * count]
