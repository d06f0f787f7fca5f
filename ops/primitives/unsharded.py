"""Arrays with some dims unsharded.

If dims `axes` of an array are unsharded, a device holds their full extents. Its part has them in
front of the storage of a smaller layout, which describes the other dims.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

from gridlayout.affine.map import AffineMap, dim, embedding
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid, grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import moved_bytes, sent_between
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement


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


def rest_spec(b: Builder, value: Value, axes: Shape) -> Sharded | None:
    """Return the spec of the dims other than `axes`, as in the value or by the policy; or None.

    If it is by the value's layout, each dim is divided on the same devices as in the value.
    """
    shape = tuple(n for d, n in enumerate(value.shape) if d not in axes)
    if not shape or 0 in value.shape:
        return None
    spec = value.spec
    if isinstance(spec, Sharded) and layout_without(spec.layout, axes) is not None:
        extents = tuple(value.shape[a] for a in axes)
        work = b.record.functions * log2(max(prod(extents), 2))  # of a sort
        return _spread_out(spec, axes, extents, b.device, work)
    times = prod(value.shape[a] for a in axes)
    found = as_grid(b.env.choose_slice(shape, value.dtype, value.layout, times))
    if found is None:
        return None
    if (extra := len(found.grid) - len(shape)) > 0:  # fewer dims, on as many cores
        grid = (prod(found.grid[: extra + 1]), *found.grid[extra + 1 :])
        tile = found.tile and found.tile[-len(grid) :]
        found = GridLayout(shape, value.dtype, grid, tile, [], memory_space=found.memory_space)
    return Sharded(found, b.placement(found))


@cached
def _spread_out(
    spec: Sharded, axes: Shape, extents: Shape, device: DeviceGrid, work: float = 0.0
) -> Sharded:
    """Return the spec of the other dims, with the cores along `axes` added to the longest one.

    They are divided as now unless this saves half of the bytes, as moving the result back costs the
    same again; or unless it saves time, if each element takes `work` operations.
    """
    own, now, layout = layout_without(spec.layout, axes), grouped(spec.layout), spec.layout
    assert own is not None
    assert now is not None
    placed = spec.placement
    stays = [k for k, group in enumerate(now.groups) if not set(group) & set(axes)]
    parts = (placed.grid, placed.axes, placed.slots, placed.per_device)
    here = Sharded(own, Placement(*(tuple(part[k] for k in stays) for part in parts)))  # type: ignore[arg-type]
    longest = max(range(len(own.grid)), key=lambda k: own.shard_shape[k])
    cores = prod(layout.core_shape) // prod(own.grid)
    grid = tuple(g * cores if k == longest else g for k, g in enumerate(own.grid))
    wide = own.replace(grid=grid, shard_shape=None)
    free = tuple(axis for k, own in enumerate(placed.axes) if k not in stays for axis in own)
    along = [a + free if k == longest else a for k, a in enumerate(here.placement.axes)]
    is_told = tuple(map(device.count, along)) == grid and set(placed.per_device) == {1}
    there = Sharded(wide, device.placed(grid, along) if is_told else device.placements.inner(wide))
    ways = [stacked_spec(rest, axes, extents, layout.dtype) for rest in (there, here)]
    if work and device.machine.has_latency and device.placements.has(grid):
        seconds = []
        for way, times in zip(ways, (2, 1), strict=True):
            moved = sent_between(layout, way.layout, device, placed, way.placement)
            sent = device.machine.price(moved, device.size)
            elements = prod(way.placement.per_device) * prod(way.layout.local_shape)
            seconds.append(times * sent + device.machine.seconds(elements=work * elements))
        return there if seconds[0] < seconds[1] else here
    few, many = (moved_bytes(layout, x.layout, device, placed, x.placement) for x in ways)
    return there if few < LIMITS.move_share * many else here


def stacked_spec(rest: Sharded, axes: Shape, extents: Shape, dtype: Any) -> Sharded:
    """Return the spec of `stacked`, with each core on the same device as in `rest`."""
    own = as_grid(rest.layout)
    assert own is not None
    layout = stacked(own.with_dtype(dtype), axes, extents)
    return Sharded(layout, rest.placement.with_leading_dims(len(axes)))


def unstack(b: Builder, value: Value, axes: Shape, rest: Sharded) -> Value:
    """Return the value with dims `axes` unsharded; rest: the spec of the other dims."""
    extents = tuple(value.shape[a] for a in axes)
    return b.as_spec(value, stacked_spec(rest, axes, extents, value.dtype))


def in_front(part: Any, count: int, cores: int) -> Any:
    """Return a part of `stacked` as its `count` unsharded dims, then the part of `rest`."""
    view = LazyView.of(part).reshape(*part.shape[count:])
    return view.transpose(_exchanged(cores, count, len(view.shape))).materialize()


def from_front(array: Any, count: int, cores: int) -> Any:
    """Return the inverse of `in_front`."""
    view = LazyView.of(array).transpose(_exchanged(count, cores, array.ndim))
    return view.reshape(*(1,) * count, *view.shape).materialize()


def _exchanged(first: int, second: int, rank: int) -> list[int]:
    """Return the permutation that moves `second` dims before `first` dims; others stay."""
    both = first + second
    return [*range(first, both), *range(first), *range(both, rank)]
