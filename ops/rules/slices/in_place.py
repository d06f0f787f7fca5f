"""Slices of an array that stays where it is: a device takes, or writes, those that lie with it.

Of the dims that indices name, the layout's map says which device has a place, and where. Slices
along all other dims stay spread. What is taken is a sum in which one device has each slice: every
device gets it, or each its piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import Shape
from gridlayout.ops.rules.unsharded import from_front, in_front, kept_groups, stacked
from gridlayout.sharding.collectives import index_of
from gridlayout.sharding.placement import Axes

# Logical indices along the dims that are named, and whether slices count, of values that say where
# they start; all broadcast to the dims of the result in front of a slice's.
Named = Callable[..., tuple[list[jax.Array], Any]]


@dataclass(frozen=True)
class Split:
    """An array as places, which indices name, and the slices there.

    layout, axes: its layout, and the dims that are named. named: the physical dims of these. over:
    the mesh axes that divide them. rest: the layout of a slice, None where it is one element;
    inner: the mesh axes of its grid dims.
    """

    spec: Sharded
    layout: Layout
    axes: Shape
    named: Shape
    over: Axes
    rest: GridLayout | None = None
    inner: tuple[Axes, ...] = ()

    @classmethod
    def of(cls, b: Builder, x: Value, axes: Shape) -> Split | None:
        """An array as slices of all dims but `axes`; None where its layout joins one of each."""
        assert isinstance(x.spec, Sharded)
        return None if not axes else _split(x.spec, axes, b.device.fine.axis_names)

    def ways(self, lead: Shape) -> list[int | None]:
        """Dims of places that may be divided when slices are taken there; None for none."""
        return [None, *(k for k, n in enumerate(lead) if n > 1 and self.over)]

    @property
    def cores(self) -> Shape:
        """Cores of a slice on one device."""
        grid = range(self.layout.core_rank)
        return tuple(self.spec.placement.per_device[k] for k in grid if k not in self.named)

    @property
    def busy(self) -> Axes:
        """The mesh axes that divide the array."""
        return (*self.over, *(axis for axes in self.inner for axis in axes))

    def beside(
        self,
        b: Builder,
        dims: Shape,
        lead: Shape,
        dtype: Any,
        cores: Shape | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Sharded:
        """Slices, as they lie, at places of extents `lead`, which are dims `dims` of the array.

        cores, axes: what divides the places, by default nothing.
        """
        cores = cores or (1,) * len(lead)
        layout = _spread(self.rest, dims, lead, cores, dtype)
        per_device = (*(1 for _ in lead), *self.cores)
        divided = (*(axes or ((),) * len(lead)), *self.inner)
        return Sharded(layout, b.device.placed(layout.grid, divided, per_device))

    def here(self, index: Sequence[Any], lead: Shape) -> tuple[list[jax.Array], Any]:
        """Where places are in this device's part, along the named dims, and whether they are."""
        logical: list[Any] = [0] * self.layout.ndim
        for axis, along in zip(self.axes, index, strict=True):
            logical[axis] = along
        physical, placed = self.layout.index_map(*logical), self.spec.placement
        found, here = [], jnp.ones((1,) * len(lead), bool)
        for d in self.named:
            at = physical[d]
            if d < self.layout.core_rank:
                if placed.axes[d]:
                    here &= at // placed.per_device[d] == index_of(placed.axes[d])
                at = at % placed.per_device[d]
            found.append(jnp.broadcast_to(at, lead))
        return found, jnp.broadcast_to(here, lead)

    def slices(self, part: jax.Array, at: Sequence[jax.Array], count: int) -> jax.Array:
        """A part's slices at places of `count` dims, which come first."""
        steps = [k for k, d in enumerate(self.named) if part.shape[d] > 1] or [0]
        sizes = [1 if d in self.named else n for d, n in enumerate(part.shape)]
        numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(range(count, count + part.ndim - len(self.named))),
            collapsed_slice_dims=self.named,
            start_index_map=tuple(self.named[k] for k in steps),
        )
        starts = jnp.stack([at[k] for k in steps], -1)
        mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        return lax.gather(part, starts, numbers, sizes, mode=mode)


@lru_cache(maxsize=4096)
def _split(spec: Sharded, axes: Shape, order: Axes) -> Split | None:
    """`Split.of`; order: the mesh's axes."""
    placed, layout = spec.placement, spec.layout
    every = tuple(range(len(layout.physical_shape)))
    if len(axes) == layout.ndim:
        used = {axis for axes in placed.axes for axis in axes}
        return Split(spec, layout, axes, every, tuple(filter(used.__contains__, order)))
    if (own := grouped(layout)) is None or own.physical_shape != layout.physical_shape:
        return None
    gone = [k for k, group in enumerate(own.groups) if set(group) & set(axes)]
    if any(not set(own.groups[k]) <= set(axes) for k in gone) or len(gone) in (0, len(own.grid)):
        return None
    rest = kept_groups(own, axes, gone)
    named = tuple(sorted(d for k in gone for d in own.axis_dims(k)))
    kept = tuple(own.physical_shape[d] for d in every if d not in named)
    if rest.physical_shape != kept:
        return None
    used = {axis for k in gone for axis in placed.axes[k]}
    inner = tuple(axes for k, axes in enumerate(placed.axes) if k not in gone)
    return Split(spec, own, axes, named, tuple(filter(used.__contains__, order)), rest, inner)


@dataclass(frozen=True)
class Pieces:
    """Who gets what of the slices that are taken: every device all, or each a piece of a dim.

    lead: the dims of the places. along: the one that is divided, None for none; over: by these
    mesh axes, `count` devices, once slices are summed; own: by these before, `parts` devices.
    """

    lead: Shape
    along: int | None
    over: Axes
    count: int
    own: Axes = ()
    parts: int = 1

    @classmethod
    def of(cls, b: Builder, held: Split, lead: Shape, along: int | None) -> Pieces:
        """Pieces for the devices that have places."""
        return cls(lead, along, held.over, b.device.count(held.over))

    @property
    def cores(self) -> Shape:
        """A core for each piece."""
        many = self.count * self.parts
        return tuple(many if k == self.along else 1 for k in range(len(self.lead)))

    @property
    def axes(self) -> tuple[Axes, ...]:
        """The mesh axes of each dim."""
        every = (*self.own, *self.over)
        return tuple(every if k == self.along else () for k in range(len(self.lead)))

    @property
    def summed(self) -> Shape:
        """The dims of what a device has for the sum: a piece for each that it is summed with."""
        pairs = zip(self.lead, self.cores, strict=True)
        return tuple(
            self.count * -(-n // many) if k == self.along else n
            for k, (n, many) in enumerate(pairs)
        )

    def spread_out(self, b: Builder, starts: Value, d: int, busy: Axes) -> tuple[Value, Pieces]:
        """What says where slices start, and pieces: dim `d` of it divided as it is now.

        By those of its axes that are not busy with the array; on all devices without any.
        """
        spec, mine = starts.spec, self
        own = grouped(spec.layout) if isinstance(spec, Sharded) else None
        if isinstance(spec, Sharded) and own is not None and (d,) in own.groups:
            axes = spec.placement.axes[own.groups.index((d,))]
            free = tuple(axis for axis in axes if axis not in busy)
            mine = replace(self, own=free, parts=b.device.count(free))
        if mine.parts == 1:
            return b.replicated(starts), self
        assert self.along is not None
        ones = [1] * starts.ndim
        cores = (*ones[:d], mine.parts, *ones[d + 1 :])
        sizes = (*starts.shape[:d], mine.summed[self.along], *starts.shape[d + 1 :])
        layout = GridLayout(starts.shape, starts.dtype, cores, collapse=[], shard_shape=sizes)
        divided = [mine.own if k == d else () for k in range(starts.ndim)]
        return b.relayout(starts, layout, b.device.placed(cores, divided)), mine


def taken(
    b: Builder,
    held: Split,
    x: Value,
    named: Named,
    starts: Sequence[Value],
    pieces: Pieces,
    out: Aval,
    out_axes: Shape,
    fill: np.ndarray[Any, Any] | None = None,
) -> Value:
    """Slices at places, dims `out_axes` of the result, divided in pieces.

    starts: what `named` reads. out: the result's shape and dtype. fill: of slices that do not
    count, where they are not moved in bounds.
    """
    dtype, along, rank = out.dtype, pieces.along, len(pieces.lead)
    spec: Sharded | Replicated = Replicated(out.shape, dtype)
    if along is not None or held.rest is not None:
        spec = held.beside(b, out_axes, pieces.lead, dtype, pieces.cores, pieces.axes)

    def kernel(part: jax.Array, *starts: jax.Array) -> list[jax.Array]:
        index, inside = named(*starts)
        lead = pieces.summed if pieces.own else pieces.lead
        at, mine = held.here(index, lead)
        found = held.slices(part, at, rank)
        behind = range(rank, found.ndim)
        if fill is not None:
            inside = lax.expand_dims(jnp.broadcast_to(inside, lead), behind)
            found = jnp.where(inside, found, fill)
        if held.over:
            mine = lax.expand_dims(mine, behind)
            found = _from_bits([summed(jnp.where(mine, x, 0)) for x in _as_bits(found)], dtype)
        if held.rest is not None:
            return [from_front(found, rank, len(held.rest.grid))]
        return [found if along is None else found[(None,) * rank]]

    def summed(bits: jax.Array) -> jax.Array:
        if along is None:
            return lax.psum(bits, held.over)
        more = pieces.summed[along] - bits.shape[along]
        widths = [(0, more if k == along else 0, 0) for k in range(bits.ndim)]
        bits = lax.pad(bits, jnp.zeros((), bits.dtype), widths)
        return lax.psum_scatter(bits, held.over, scatter_dimension=along, tiled=True)

    made = b.collectives()
    local = (n for d, n in enumerate(held.spec.local_shape) if d not in held.named)
    numbers = 2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1
    for _ in range(numbers):
        send = made.all_reduce if along is None else made.reduce_scatter
        send(held.over, prod(pieces.summed) * prod(local) * dtype.itemsize // numbers)
    return b.run(kernel, [x, *starts], [spec], made)[0]


def written(
    b: Builder,
    held: Split,
    x: Value,
    named: Named,
    starts: Sequence[Value],
    new: Value,
    new_axes: Shape,
    scatter: Callable[..., jax.Array],
) -> Value:
    """Slices put at places: every device gets them all, and takes those for places of its own.

    starts: what `named` reads. new_axes: the dims of `new` that are those of the places. scatter:
    of a part, starts along its last dim, slices, and dimension numbers; places out of bounds are
    another device's.
    """
    spec, lead = held.spec, tuple(new.shape[k] for k in new_axes)
    if held.rest is None:
        entered = b.replicated(new)
    else:
        there = held.beside(b, new_axes, lead, new.dtype)
        entered = b.on_cores(new, there.layout, placement=there.placement)
        spec = spec.with_oob(None)

    def kernel(part: jax.Array, new: jax.Array, *starts: Any) -> list[jax.Array]:
        index, inside = named(*starts)
        at, mine = held.here(index, lead)
        mine = mine & jnp.broadcast_to(inside, lead)
        at[0] = jnp.where(mine, at[0], part.shape[held.named[0]])
        new = jnp.asarray(new)
        if held.rest is not None:
            new = in_front(new, len(lead), len(held.rest.grid))
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(len(lead), len(lead) + part.ndim - len(held.named))),
            inserted_window_dims=held.named,
            scatter_dims_to_operand_dims=held.named,
        )
        return [scatter(part, jnp.stack(at, -1), new, numbers)]

    return b.run(kernel, [x, entered, *starts], [spec])[0]


@lru_cache(maxsize=4096)
def _spread(
    rest: GridLayout | None, axes: Shape, extents: Shape, cores: Shape, dtype: np.dtype[Any]
) -> GridLayout:
    """The layout of slices at places: those divided among `cores`, slices as `rest`."""
    if rest is None:
        return GridLayout(extents, dtype, cores, collapse=[])
    whole = stacked(rest.with_dtype(dtype), axes, extents)
    stated = (*(None for _ in axes), *rest.stated_shard)
    return whole.replace(grid=(*cores, *rest.grid), shard_shape=stated)


def _as_bits(x: jax.Array) -> list[jax.Array]:
    """Integers that say which number it is: their sum with zeros keeps it, be it -0.0 or NaN."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return [*_as_bits(x.real), *_as_bits(x.imag)]
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return [x.astype(jnp.uint8) if x.dtype.itemsize == 1 else x]
    return [lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")]


def _from_bits(bits: Sequence[jax.Array], dtype: Any) -> jax.Array:
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = np.zeros((), dtype).real.dtype
        return lax.complex(*(_from_bits([b], part) for b in bits))
    (found,) = bits
    if jnp.issubdtype(dtype, jnp.floating):
        return lax.bitcast_convert_type(found, dtype)
    return found.astype(dtype)
