"""Sliding windows: the range of a dim that each device needs, and the halo exchange for it.

An operand is in untiled blocks, with one grid dim per dim. A device that computes a block of the
result, or has a block of the window, needs a range of positions that exceeds its own block. The
rest, the halo, is received from other devices (`exchanges/borders.py`). Positions outside of the
array are filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import block_shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.bordered import cut, fill_outside, receive
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import Collectives, index_of, own_row, slice_at
from gridlayout.sharding.exchanges.borders import OUTSIDE, Border
from gridlayout.sharding.exchanges.slabs import cheapest
from gridlayout.sharding.limits import LIMITS


@dataclass(frozen=True)
class Window:
    """A window along one dim, with the parameters of `lax.conv_general_dilated` for that dim.

    low, high: padding before and after. base, dilation: dilation of the operand and of the window.
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def is_trivial(self) -> bool:
        """Whether the window covers exactly the element at its position."""
        return self == Window(1)

    def positions(self, extent: int) -> int:
        """Return the number of window positions over `extent` elements.

        >>> Window(3, stride=2, low=1, high=1).positions(8)
        4
        """
        dilated = (extent - 1) * self.base + 1 if extent else 0
        span = dilated + self.low + self.high - (self.size - 1) * self.dilation - 1
        return max(span // self.stride + 1, 0)

    def near(self, extent: int, results: int) -> tuple[int, int] | None:
        """Return how far blocks of results read before and after those of the operand.

        None if that is far. extent: of the operand, which as many devices divide as the results.
        """
        return self._near(extent, results, self.stride, (self.size - 1) * self.dilation)

    def near_window(self, extent: int, results: int) -> tuple[int, int] | None:
        """Return the same of blocks of the window, which are for all results."""
        return self._near(extent, self.size, self.dilation, (results - 1) * self.stride)

    def _near(self, extent: int, count: int, step: int, more: int) -> tuple[int, int] | None:
        off = count * step - extent * self.base  # of the last block
        before, after = self.low + max(-off, 0), more - self.low - step + 1 + max(off, 0)
        found = max(-(-before // self.base), 0), max(-(-after // self.base), 0)
        return found if sum(found) * LIMITS.near <= extent else None


@dataclass(frozen=True)
class Reach:
    """The range that device `d` needs along a dim: `length` positions from `d * step + offset`.

    Positions include the `base - 1` holes after each element that base dilation makes.
    """

    step: int
    offset: int
    length: int
    base: int

    def holes(self, n: int) -> tuple[int, int] | None:
        """Return how many holes each range begins and ends with; None if `n` devices' differ.

        >>> Reach(step=4, offset=-1, length=7, base=2).holes(8)
        (1, 1)
        """
        before = {-(d * self.step + self.offset) % self.base for d in range(n)}
        first = before.pop()
        if before or self.length <= first:
            return None
        return first, (self.length - 1 - first) % self.base

    def starts(self, n: int) -> list[int]:
        """Return the first element that each of `n` devices needs; negative in the padding."""
        first, _ = self.holes(n) or (0, 0)
        return [(d * self.step + self.offset + first) // self.base for d in range(n)]

    def count(self, n: int) -> int:
        """Return the most elements that one of `n` devices needs."""
        if (holes := self.holes(n)) is not None:
            return (self.length - 1 - sum(holes)) // self.base + 1
        return (self.length + self.base - 2) // self.base + 1


def for_results(window: Window, block: int) -> Reach:
    """Return the range that a device needs for `block` elements of the result."""
    length = (block - 1) * window.stride + (window.size - 1) * window.dilation + 1
    return Reach(block * window.stride, -window.low, length, window.base)


def for_window(window: Window, block: int, results: int) -> Reach:
    """Return the range that a device with `block` elements of the window needs for all results."""
    length = (block - 1) * window.dilation + (results - 1) * window.stride + 1
    return Reach(block * window.dilation, -window.low, length, window.base)


@dataclass(frozen=True)
class Halo:
    """How `n` devices along mesh axes get the range that they need of a dim."""

    reach: Reach
    border: Border

    @property
    def padding(self) -> tuple[int, int]:
        """The holes before and after the elements that `run` returns."""
        return self.reach.holes(self.border.n) or (0, 0)

    @property
    def dilation(self) -> int:
        """The dilation of the elements that `run` returns."""
        return 1 if self.reach.holes(self.border.n) is None else self.reach.base

    def run(self, x: jax.Array, dim: int, fill: Any) -> jax.Array:
        """Return the range that a device needs along `dim`, with `fill` outside of the array.

        If the holes of base dilation are where they are on other devices, it is without them.
        """
        border, reach = self.border, self.reach
        fill = jnp.asarray(fill, x.dtype)
        x = receive(x, border, dim, fill)
        x, masks = cut(x, {dim: border}, 0, fill)
        for d, mask in masks.items():
            x = fill_outside(x, mask, d, fill)
        if reach.holes(border.n) is not None:
            return x
        config = [
            (0, reach.base - 1, reach.base - 1) if d == dim else (0, 0, 0) for d in range(x.ndim)
        ]
        x = lax.pad(x, fill, config)
        starts = np.array(reach.starts(border.n))
        firsts = np.arange(border.n) * reach.step + reach.offset - starts * reach.base
        return slice_at(x, own_row(firsts.astype(np.int32), border.axes), reach.length, dim)


def zero_tail(x: jax.Array, dim: int, axes: Axes, extent: int) -> jax.Array:
    """Return a device's block with zeros beyond the extent of the dim."""
    at = index_of(axes) * x.shape[dim] + jnp.arange(x.shape[dim])
    inside = lax.expand_dims(at < extent, [d for d in range(x.ndim) if d != dim])
    return jnp.where(inside, x, 0)


def halos_of(
    b: Builder,
    sent: Collectives,
    spec: Sharded,
    reaches: Mapping[int, Reach],
    kinds: Sequence[np.dtype[Any]],
    is_filled: bool = False,
) -> list[tuple[int, Halo]]:
    """Return pairs (dim, halo) for the dims of `reaches`, for arrays in blocks by `spec`.

    Collectives are added to `sent`. kinds: the element type of each array. A later halo
    includes the positions that the earlier ones have added to the block. is_filled: see `in_slabs`.
    """
    block, found = list(block_shape(spec)), []
    for k, reach in reaches.items():
        axes, extent = spec.placement.axes[k], spec.shape[k]
        n = b.device.count(axes)
        rest = prod(m for d, m in enumerate(block) if d != k)
        widths = [dtypes.nbytes(rest, kind) for kind in kinds]
        at = np.array(reach.starts(n))[:, None] + np.arange(reach.count(n))
        reads = [np.where((at >= 0) & (at < extent), at, OUTSIDE)]
        is_inner = prod(block[:k]) > 1
        border = cheapest(
            *(b.env.machine, b.device, axes, block[k], extent, reads, widths[0], is_inner),
            is_filled=is_filled,
        )
        for width in widths:
            border.collectives(sent, width)
        block[k] = reach.length if reach.holes(n) is None else reach.count(n)
        found.append((k, Halo(reach, border)))
    return found


def blocks(
    layout: Layout | None, shape: Shape, extents: Mapping[int, int], dtype: Any
) -> GridLayout:
    """Return an untiled layout with one grid dim per dim and about the grid of `layout`.

    extents: dim -> the most cores that may divide it, preferred dims first. The cores of a grid dim
    of `layout` divide one of its dims, or else the dim with the largest quotient extent / cores.
    """
    grid = dict.fromkeys(range(len(shape)), 1)
    for group, cores in _cores_by_group(layout):
        own = [d for d in extents if d in group and extents[d] >= cores * grid[d]]
        if cores == 1:
            continue
        most = max(extents, key=lambda d: extents[d] / grid[d], default=None)
        chosen = own[0] if own else most
        if chosen is not None:
            grid[chosen] = min(grid[chosen] * cores, max(extents[chosen], 1))
    return GridLayout(shape, dtype, tuple(grid.values()), collapse=[])


def block_matrix(b: Builder, value: Value, dim: int, like: Value) -> tuple[Value, Axes, int]:
    """Return a matrix relaid out to blocks along `dim`.

    Also return the mesh axes along that dim, and the rows or columns per device.
    """
    extent = value.shape[dim]
    cores = blocks(like.layout, like.shape, {0: extent}, value.dtype).num_cores
    grid = tuple(cores if d == dim else 1 for d in range(2))
    layout = GridLayout(value.shape, value.dtype, grid, collapse=[])
    placed = b.placement(layout)
    block = placed.per_device[dim] * int(layout.shard_shape[dim])
    return b.as_sharded(value, layout), placed.axes[dim], block


def _cores_by_group(layout: Layout | None) -> list[tuple[Sequence[int], int]]:
    if layout is None:
        return []
    if (own := grouped(layout)) is None:
        return [((), layout.num_cores)]
    return list(zip(own.groups, own.grid, strict=True))


def local_blocks(x: jax.Array) -> jax.Array:
    """Return a device's part of a `blocks` layout, (cores ..., shard ...), as one block."""
    rank = x.ndim // 2
    view = LazyView.of(x).transpose([d + k * rank for d in range(rank) for k in range(2)])
    return view.reshape(*(x.shape[d] * x.shape[d + rank] for d in range(rank))).materialize()


def as_storage(x: jax.Array, cores: Shape) -> jax.Array:
    """Return the inverse of `local_blocks`: a block as (cores ..., shard ...)."""
    pairs = zip(cores, x.shape, strict=True)
    view = LazyView.of(x).reshape(*(n for c, size in pairs for n in (c, size // c)))
    return view.transpose([*range(0, 2 * x.ndim, 2), *range(1, 2 * x.ndim, 2)]).materialize()
