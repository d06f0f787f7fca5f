"""Slices of an array that keeps its layout: each device reads or writes the slices that it holds.

A position is an index along the indexed dims. The layout's index map says which device holds a
position, and where. Along all other dims, slices stay sharded. Slices are read by a sum over the
devices that divide the indexed dims, in which one device has the slice and all others have zeros:
an all-reduce, or a reduce-scatter that divides the slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval
from gridlayout.ops.decisions.specs import Deferred, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.slices.logical_indices import computed_once
from gridlayout.ops.primitives.unsharded import from_front, in_front, kept_groups, stacked
from gridlayout.sharding.collectives import index_of

# A function of the start values. It returns the logical indices along the indexed dims, and a mask
# of the slices in bounds. All of these broadcast to the positions.
IndexFn = Callable[..., tuple[list[jax.Array], Any]]


@dataclass(frozen=True)
class SlicedArray:
    """A sharded array as positions along the indexed dims, and a slice at each position.

    axes: the indexed logical dims. indexed: their physical dims. indexed_axes: the mesh axes that
    divide them. slice_layout: the layout of one slice, None if it is one element. slice_axes: the
    mesh axes of each of its grid dims.
    """

    spec: Sharded
    layout: Layout
    axes: Shape
    indexed: Shape
    indexed_axes: Axes
    slice_layout: GridLayout | None = None
    slice_axes: tuple[Axes, ...] = ()

    @classmethod
    def of(cls, b: Builder, x: Value, axes: Shape) -> SlicedArray | None:
        """Return `x` with the dims `axes` indexed; None if its layout joins them with others."""
        assert isinstance(x.spec, Sharded)
        return None if not axes else _split(x.spec, axes, b.device.fine.axis_names)

    def divisible_dims(self, extents: Shape) -> list[int | None]:
        """Return the dims of the positions that a read may divide, and None for an undivided one.

        extents: the numbers of positions along each of their dims.
        """
        return [None, *(k for k, n in enumerate(extents) if n > 1 and self.indexed_axes)]

    @property
    def cores(self) -> Shape:
        """Cores of a slice per device."""
        grid = range(self.layout.core_rank)
        return tuple(self.spec.placement.per_device[k] for k in grid if k not in self.indexed)

    @property
    def mesh_axes(self) -> Axes:
        """All mesh axes that divide the array."""
        return (*self.indexed_axes, *(axis for axes in self.slice_axes for axis in axes))

    def slices_spec(
        self,
        b: Builder,
        dims: Shape,
        extents: Shape,
        dtype: Any,
        cores: Shape | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Sharded:
        """Return the spec of slices at positions of these extents, which are its dims `dims`.

        Slices are placed as in the array. cores, axes: the grid and the mesh axes that divide the
        positions; by default they are undivided.
        """
        cores = cores or (1,) * len(extents)
        layout = _slices_layout(self.slice_layout, dims, extents, cores, dtype)
        per_device = (*(1 for _ in extents), *self.cores)
        divided = (*(axes or ((),) * len(extents)), *self.slice_axes)
        return Sharded(layout, b.device.placed(layout.grid, divided, per_device))

    def local_indices(self, index: Sequence[Any], extents: Shape) -> tuple[list[jax.Array], Any]:
        """Return the indices of positions in this device's part, and a mask of those it holds.

        index: the logical indices along the indexed dims. extents: of the positions.
        """
        logical: list[Any] = [0] * self.layout.ndim
        for axis, along in zip(self.axes, index, strict=True):
            logical[axis] = along
        physical, placed = self.layout.index_map(*logical), self.spec.placement
        found, here = [], jnp.ones((1,) * len(extents), bool)
        for d in self.indexed:
            at = physical[d]
            if d < self.layout.core_rank:
                if placed.axes[d]:
                    here &= at // placed.per_device[d] == index_of(placed.axes[d])
                at = at % placed.per_device[d]
            found.append(jnp.broadcast_to(at, extents))
        return found, jnp.broadcast_to(here, extents)

    def gather(self, part: jax.Array, at: Sequence[jax.Array], count: int) -> jax.Array:
        """Return a part's slices at the local indices `at` of positions with `count` dims.

        These dims come first in the result.
        """
        steps = [k for k, d in enumerate(self.indexed) if part.shape[d] > 1] or [0]
        sizes = [1 if d in self.indexed else n for d, n in enumerate(part.shape)]
        numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(range(count, count + part.ndim - len(self.indexed))),
            collapsed_slice_dims=self.indexed,
            start_index_map=tuple(self.indexed[k] for k in steps),
        )
        starts = jnp.stack([at[k] for k in steps], -1)
        mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        part = computed_once(part, prod(starts.shape[:-1]) * prod(sizes))
        return lax.gather(part, starts, numbers, sizes, mode=mode)


@cached
def _split(spec: Sharded, axes: Shape, order: Axes) -> SlicedArray | None:
    """Return `SlicedArray.of`. order: all axes of the mesh."""
    placed, layout = spec.placement, spec.layout
    every = tuple(range(len(layout.physical_shape)))
    if len(axes) == layout.ndim:
        used = {axis for axes in placed.axes for axis in axes}
        return SlicedArray(spec, layout, axes, every, tuple(filter(used.__contains__, order)))
    if (own := grouped(layout)) is None or own.physical_shape != layout.physical_shape:
        return None
    removed = [k for k, group in enumerate(own.groups) if set(group) & set(axes)]
    if any(not set(own.groups[k]) <= set(axes) for k in removed) or len(removed) in (
        0,
        len(own.grid),
    ):
        return None
    rest = kept_groups(own, axes, removed)
    indexed = tuple(sorted(d for k in removed for d in own.axis_dims(k)))
    kept = tuple(own.physical_shape[d] for d in every if d not in indexed)
    if rest.physical_shape != kept:
        return None
    used = {axis for k in removed for axis in placed.axes[k]}
    inner = tuple(axes for k, axes in enumerate(placed.axes) if k not in removed)
    return SlicedArray(
        spec, own, axes, indexed, tuple(filter(used.__contains__, order)), rest, inner
    )


@dataclass(frozen=True)
class SliceDivision:
    """How the slices that are read are divided: not at all, or along one dim of the positions.

    extents: of the positions. along: the divided dim, or None. over: the mesh axes whose `count`
    devices sum the slices, then divide the dim. start_axes: the mesh axes whose `start_parts`
    devices divide the dim, and the start indices, already before the sum.
    """

    extents: Shape
    along: int | None
    over: Axes
    count: int
    start_axes: Axes = ()
    start_parts: int = 1

    @classmethod
    def of(
        cls, b: Builder, sliced: SlicedArray, extents: Shape, along: int | None
    ) -> SliceDivision:
        """Return the division of slices of `sliced` along a dim of the positions, or none."""
        return cls(extents, along, sliced.indexed_axes, b.device.count(sliced.indexed_axes))

    @property
    def cores(self) -> Shape:
        """The grid of the positions: one core per piece."""
        many = self.count * self.start_parts
        return tuple(many if k == self.along else 1 for k in range(len(self.extents)))

    @property
    def axes(self) -> tuple[Axes, ...]:
        """The mesh axes of each dim of the positions."""
        every = (*self.start_axes, *self.over)
        return tuple(every if k == self.along else () for k in range(len(self.extents)))

    @property
    def local_extents(self) -> Shape:
        """The extents of the positions that a device sums: `count` pieces, one per device."""
        pairs = zip(self.extents, self.cores, strict=True)
        return tuple(
            self.count * -(-n // many) if k == self.along else n
            for k, (n, many) in enumerate(pairs)
        )

    def divide_starts(
        self, b: Builder, starts: Value, d: int, used: Axes
    ) -> tuple[Value, SliceDivision]:
        """Return the start indices with dim `d` divided as it is now, and the division for that.

        Mesh axes that the array uses don't divide it. Without other axes, the start indices are
        replicated, and the division is unchanged.
        """
        spec, mine = starts.spec, self
        own = grouped(spec.layout) if isinstance(spec, Sharded) else None
        if isinstance(spec, Sharded) and own is not None and (d,) in own.groups:
            axes = spec.placement.axes[own.groups.index((d,))]
            free = tuple(axis for axis in axes if axis not in used)
            mine = replace(self, start_axes=free, start_parts=b.device.count(free))
        if mine.start_parts == 1:
            return b.replicated(starts), self
        assert self.along is not None
        ones = [1] * starts.ndim
        cores = (*ones[:d], mine.start_parts, *ones[d + 1 :])
        sizes = (*starts.shape[:d], mine.local_extents[self.along], *starts.shape[d + 1 :])
        layout = GridLayout(starts.shape, starts.dtype, cores, collapse=[], shard_shape=sizes)
        divided = [mine.start_axes if k == d else () for k in range(starts.ndim)]
        return b.relayout(starts, layout, b.device.placed(cores, divided)), mine


def take_slices(
    b: Builder,
    sliced: SlicedArray,
    x: Value,
    index_fn: IndexFn,
    starts: Sequence[Value],
    division: SliceDivision,
    out: Aval,
    out_axes: Shape,
    fill: np.ndarray[Any, Any] | None = None,
) -> Value:
    """Read slices at positions, which become the dims `out_axes` of the result.

    starts: the operands of `index_fn`. division: how the result is divided. out: its shape and
    dtype. fill: the element of slices out of bounds; None if the starts are clipped.
    """
    dtype, along, rank = out.dtype, division.along, len(division.extents)
    spec: Sharded | Replicated = Replicated(out.shape, dtype)
    if along is not None or sliced.slice_layout is not None:
        divided = division.cores, division.axes
        spec = sliced.slices_spec(b, out_axes, division.extents, dtype, *divided)

    def kernel(part: jax.Array, *starts: jax.Array) -> list[jax.Array]:
        index, inside = index_fn(*starts)
        extents = division.local_extents if division.start_axes else division.extents
        at, mine = sliced.local_indices(index, extents)
        found = sliced.gather(part, at, rank)
        behind = range(rank, found.ndim)
        if fill is not None:
            inside = lax.expand_dims(jnp.broadcast_to(inside, extents), behind)
            found = jnp.where(inside, found, fill)
        if sliced.indexed_axes:
            mine = lax.expand_dims(mine, behind)
            found = from_bits([summed(jnp.where(mine, x, 0)) for x in as_bits(found)], dtype)
        if sliced.slice_layout is not None:
            return [from_front(found, rank, len(sliced.slice_layout.grid))]
        return [found if along is None else found[(None,) * rank]]

    def summed(bits: jax.Array) -> jax.Array:
        if along is None:
            return lax.psum(bits, sliced.indexed_axes)
        more = division.local_extents[along] - bits.shape[along]
        widths = [(0, more if k == along else 0, 0) for k in range(bits.ndim)]
        bits = lax.pad(bits, jnp.zeros((), bits.dtype), widths)
        return lax.psum_scatter(bits, sliced.indexed_axes, scatter_dimension=along, tiled=True)

    made = b.collectives()
    local = (n for d, n in enumerate(sliced.spec.local_shape) if d not in sliced.indexed)
    numbers = 2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1
    nbytes = dtypes.nbytes(prod(division.local_extents) * prod(local), dtype) // numbers
    for _ in range(numbers):
        send = made.all_reduce if along is None else made.reduce_scatter
        send(sliced.indexed_axes, nbytes)
    return b.run(kernel, [x, *starts], [spec], made)[0]


def write_slices(
    b: Builder,
    x: Value,
    axes: Shape,
    index_fn: IndexFn,
    starts: Sequence[Value],
    new: Value,
    new_axes: Shape,
    scatter: Callable[..., jax.Array],
) -> Value | None:
    """Write slices at positions: every device gets all slices, and writes those that it holds.

    axes: the indexed dims; None if the layout joins them with others. starts: the operands of
    `index_fn`. new_axes: the dims of `new` that are the positions. scatter: a function of a
    device's part, local start indices, slices and dimension numbers. It must drop start indices out
    of bounds, which are those of positions on other devices.
    """
    if (sliced := SlicedArray.of(b, x, axes)) is None:
        return None
    starts = [b.replicated(start) for start in starts]
    spec, extents = sliced.spec, tuple(new.shape[k] for k in new_axes)
    is_broadcast = isinstance(new.spec, Deferred)
    if sliced.slice_layout is None:
        slices = b.replicated(new)
    else:
        target = sliced.slices_spec(b, new_axes, extents, new.dtype)
        slices = b.as_spec(new, target)
        spec = spec.with_oob(None)

    def kernel(part: jax.Array, new: jax.Array, *starts: Any) -> list[jax.Array]:
        index, inside = index_fn(*starts)
        at, mine = sliced.local_indices(index, extents)
        mine = mine & jnp.broadcast_to(inside, extents)
        at[0] = jnp.where(mine, at[0], part.shape[sliced.indexed[0]])
        new = jnp.asarray(new)
        if sliced.slice_layout is not None:
            new = in_front(new, len(extents), len(sliced.slice_layout.grid))
            # XLA on CPUs would copy updates that are reshaped where they are read.
            new = new if is_broadcast else lax.optimization_barrier(new)
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(
                range(len(extents), len(extents) + part.ndim - len(sliced.indexed))
            ),
            inserted_window_dims=sliced.indexed,
            scatter_dims_to_operand_dims=sliced.indexed,
        )
        return [scatter(part, jnp.stack(at, -1), new, numbers)]

    return b.run(kernel, [x, slices, *starts], [spec])[0]


@cached
def _slices_layout(
    rest: GridLayout | None, axes: Shape, extents: Shape, cores: Shape, dtype: np.dtype[Any]
) -> GridLayout:
    """Return the layout of slices: positions divided among `cores`, slices in layout `rest`."""
    if rest is None:
        return GridLayout(extents, dtype, cores, collapse=[])
    whole = stacked(rest.with_dtype(dtype), axes, extents)
    stated = (*(None for _ in axes), *rest.stated_shard)
    return whole.replace(grid=(*cores, *rest.grid), shard_shape=stated)


def as_bits(x: jax.Array) -> list[jax.Array]:
    """Return the bits of numbers as integers, so that a sum with zeros keeps -0.0 and NaN."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return [*as_bits(x.real), *as_bits(x.imag)]
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return [_whole_bytes(x)]
    return [_whole_bytes(lax.bitcast_convert_type(x, f"uint{dtypes.bits(x.dtype)}"))]


def _whole_bytes(x: jax.Array) -> jax.Array:
    """Return integers of one byte or less as uint8: collectives send whole bytes."""
    return x.astype(jnp.uint8) if x.dtype.itemsize == 1 else x


def from_bits(bits: Sequence[jax.Array], dtype: Any) -> jax.Array:
    """Return the inverse of `as_bits`."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = np.zeros((), dtype).real.dtype
        return lax.complex(*(from_bits([b], part) for b in bits))
    (found,) = bits
    if jnp.issubdtype(dtype, jnp.floating):
        return lax.bitcast_convert_type(found.astype(f"uint{dtypes.bits(dtype)}"), dtype)
    return found.astype(dtype)
