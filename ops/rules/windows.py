"""Windows that slide along a dim: what each device needs of it, and how it gets that.

An operand lies in untiled blocks, one grid dim to each dim. A device that makes a block of the
result, or that has a block of the window, needs a range of positions around its own: the rest, the
halo, comes from its neighbours, hop by hop. What lies outside of the array is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import Axes, Collectives, all_gather, index_of, permute

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """A window along one dim: its size, and how it moves. `low` positions are added in front."""

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def is_trivial(self) -> bool:
        """Whether each element of the result is of the element at its place."""
        return self == Window(1)

    def positions(self, extent: int) -> int:
        """Places of the window on `extent` elements.

        >>> Window(3, stride=2, low=1, high=1).positions(8)
        4
        """
        held = (extent - 1) * self.base + 1 if extent else 0
        span = held + self.low + self.high - (self.size - 1) * self.dilation - 1
        return max(span // self.stride + 1, 0)


@dataclass(frozen=True)
class Reach:
    """What device `d` needs along a dim: `length` positions from `d * step + offset`.

    Positions count the holes that base dilation makes, `base - 1` after each element.
    """

    step: int
    offset: int
    length: int
    base: int

    def starts(self, n: int) -> list[int]:
        """The first element that each of `n` devices needs; below 0 before the array begins."""
        return [(d * self.step + self.offset) // self.base for d in range(n)]

    @property
    def count(self) -> int:
        """How many elements a device needs at most."""
        return (self.length + self.base - 2) // self.base + 1


def of_results(window: Window, block: int) -> Reach:
    """What a device needs for `block` elements of the result."""
    length = (block - 1) * window.stride + (window.size - 1) * window.dilation + 1
    return Reach(block * window.stride, -window.low, length, window.base)


def of_window(window: Window, block: int, results: int) -> Reach:
    """What a device needs that has `block` elements of the window, for all results."""
    length = (block - 1) * window.dilation + (results - 1) * window.stride + 1
    return Reach(block * window.dilation, -window.low, length, window.base)


@dataclass(frozen=True)
class Halo:
    """How `n` devices along mesh axes get what they need along a dim: from neighbours, or gathered.

    block: positions that each has. extent: elements in all. before, after: how many positions next
    to its own block any device needs.
    """

    axes: Axes
    n: int
    block: int
    extent: int
    reach: Reach
    before: int
    after: int

    @classmethod
    def of(cls, axes: Axes, n: int, block: int, extent: int, reach: Reach) -> Halo:
        """The halo of blocks of a dim."""
        needed = [(max(start, 0), min(start + reach.count, extent)) for start in reach.starts(n)]
        before = max([d * block - a for d, (a, b) in enumerate(needed) if a < b] + [0])
        after = max([b - (d + 1) * block for d, (a, b) in enumerate(needed) if a < b] + [0])
        return cls(axes, n, block, extent, reach, before, after)

    @property
    def is_gathered(self) -> bool:
        """Whether all blocks together are fewer than what the neighbours would send."""
        return self.before + self.after >= (self.n - 1) * self.block

    @property
    def is_far(self) -> bool:
        """Whether a device needs more than its next neighbours have."""
        return max(self.before, self.after) > self.block

    def collectives(self, made: Collectives, width: int) -> Collectives:
        """What the devices send; width: bytes at one position."""
        if self.is_gathered:
            return made.all_gather(self.axes, self.block * width)
        for hop, take in self._hops():
            made.permute(self.axes, take * width, max(self.n - abs(hop), 0))
        return made

    def run(self, x: jax.Array, dim: int, fill: Any) -> jax.Array:
        """The positions that a device needs along `dim`; `fill` outside of the array."""
        if self.is_gathered:
            return self.of_whole(all_gather(x, self.axes, dim), dim, fill)
        parts: dict[int, jax.Array] = {0: x}
        for hop, take in self._hops():
            start = self.block - take if hop > 0 else 0
            part = lax.slice_in_dim(x, start, start + take, axis=dim)
            parts[hop] = permute(part, self.axes, self._pairs(hop))
        joined = [parts[hop] for hop in sorted(parts, reverse=True)]
        x = lax.concatenate(joined, dim) if len(joined) > 1 else x
        return self._needed(x, index_of(self.axes) * self.block - self.before, dim, fill)

    def of_whole(self, x: jax.Array, dim: int, fill: Any) -> jax.Array:
        """The same from all devices' blocks, which `x` is."""
        return self._needed(x, 0, dim, fill)

    def _hops(self) -> list[tuple[int, int]]:
        """Pairs (how many devices before this one, below 0 after it; positions it sends)."""
        found = []
        for sign, reach in ((1, self.before), (-1, self.after)):
            for k in range(1, -(-reach // self.block) + 1):
                found.append((sign * k, min(self.block, reach - (k - 1) * self.block)))
        return found

    def _pairs(self, hop: int) -> list[tuple[int, int]]:
        return [(d, d + hop) for d in range(self.n) if 0 <= d + hop < self.n]

    def _needed(self, x: jax.Array, first: Any, dim: int, fill: Any) -> jax.Array:
        """What this device needs, of elements from `first` on that it has."""
        reach, count, fill = self.reach, self.reach.count, jnp.asarray(fill, x.dtype)
        at = first + jnp.arange(x.shape[dim])
        inside = (at >= 0) & (at < self.extent)
        inside = lax.expand_dims(inside, [d for d in range(x.ndim) if d != dim])
        x = jnp.where(inside, x, fill)
        x = _padded(x, dim, (count, count, 0), fill)
        here = index_of(self.axes)
        start = jnp.asarray(reach.starts(self.n))[here]
        x = lax.dynamic_slice_in_dim(x, start - first + count, count, dim)
        if reach.base == 1:
            return x
        x = _padded(x, dim, (0, reach.base - 1, reach.base - 1), fill)
        hole = here * reach.step + reach.offset - start * reach.base
        return lax.dynamic_slice_in_dim(x, hole, reach.length, dim)


def _padded(x: jax.Array, dim: int, amounts: tuple[int, int, int], fill: Any) -> jax.Array:
    config = [amounts if d == dim else (0, 0, 0) for d in range(x.ndim)]
    return lax.pad(x, jnp.asarray(fill, x.dtype), config)


def without_tail(x: jax.Array, dim: int, axes: Axes, extent: int, fill: Any) -> jax.Array:
    """A block with `fill` after the end of the dim; no operation where the blocks end there."""
    at = index_of(axes) * x.shape[dim] + jnp.arange(x.shape[dim])
    inside = lax.expand_dims(at < extent, [d for d in range(x.ndim) if d != dim])
    return jnp.where(inside, x, fill)


def halos_of(
    b: Builder,
    sent: Collectives,
    layout: GridLayout,
    reaches: Mapping[int, Reach],
    itemsizes: Sequence[int],
) -> list[tuple[int, Halo]]:
    """The halo along each dim of `reaches`, for arrays in blocks as the layout has them.

    What the devices send is added to `sent`, one array after another: itemsizes, in bytes. A halo
    that is fetched later is as wide as those before it have made the block.
    """
    placed, found = b.placement(layout), []
    block = [c * n for c, n in zip(placed.per_device, layout.shard_shape, strict=True)]
    for k, reach in reaches.items():
        axes = placed.axes[k]
        halo = Halo.of(axes, b.device.count(axes), block[k], layout.shape[k], reach)
        rest = prod(n for d, n in enumerate(block) if d != k)
        for size in itemsizes:
            halo.collectives(sent, rest * size)
        block[k] = reach.length
        found.append((k, halo))
    return found


def blocks(
    layout: Layout | None, shape: Shape, extents: Mapping[int, int], dtype: Any
) -> GridLayout:
    """An untiled layout, one grid dim to each dim, that keeps cores near where a layout has them.

    extents: how far each dim that may be divided can be, those to be preferred first. A grid dim's
    cores go to a dim that it holds, or else to the one with the most left to divide.
    """
    grid = dict.fromkeys(range(len(shape)), 1)
    for group, cores in _groups(layout):
        own = [d for d in extents if d in group and extents[d] >= cores * grid[d]]
        if cores == 1:
            continue
        most = max(extents, key=lambda d: extents[d] / grid[d], default=None)
        chosen = own[0] if own else most
        if chosen is not None:
            grid[chosen] = min(grid[chosen] * cores, max(extents[chosen], 1))
    return GridLayout(shape, dtype, tuple(grid.values()), collapse=[])


def in_rows(b: Builder, value: Value, dim: int, like: Value) -> tuple[Value, Axes, int]:
    """A matrix in blocks along one dim, the mesh axes along it, and rows of a device."""
    extent = value.shape[dim]
    cores = blocks(like.layout, like.shape, {0: extent}, value.dtype).num_cores
    grid = tuple(cores if d == dim else 1 for d in range(2))
    layout = GridLayout(value.shape, value.dtype, grid, collapse=[])
    placed = b.placement(layout)
    block = placed.per_device[dim] * int(layout.shard_shape[dim])
    return b.on_cores(value, layout), placed.axes[dim], block


def _groups(layout: Layout | None) -> list[tuple[Sequence[int], int]]:
    if layout is None:
        return []
    if (own := grouped(layout)) is None:
        return [((), layout.num_cores)]
    return list(zip(own.groups, own.grid, strict=True))


def local_blocks(x: jax.Array) -> jax.Array:
    """One device's storage of such a layout, (cores ..., shard ...), as one block."""
    rank = x.ndim // 2
    view = LazyView.of(x).transpose([d + k * rank for d in range(rank) for k in range(2)])
    return view.reshape(*(x.shape[d] * x.shape[d + rank] for d in range(rank))).materialize()


def as_storage(x: jax.Array, cores: Shape) -> jax.Array:
    """The inverse: a block as (cores ..., shard ...)."""
    pairs = zip(cores, x.shape, strict=True)
    view = LazyView.of(x).reshape(*(n for c, size in pairs for n in (c, size // c)))
    return view.transpose([*range(0, 2 * x.ndim, 2), *range(1, 2 * x.ndim, 2)]).materialize()
