"""`Ends`: a device's part as an array of atoms, of which pieces are cut, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from gridlayout.layouts.program import ReshapeMove
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import index_of, slice_at
from gridlayout.sharding.pieces import Pieces, PlacedBlocks
from gridlayout.sharding.windows import Window

Shape = tuple[int, ...]
Ints = NDArray[np.int64]
# XLA before JAX 0.12 makes one slice of a slice that it cuts out of another, and forgets that the
# inner one was moved into bounds: dynamic_slice(dynamic_slice(arange(9), [8], [2]), [0], [1]) is 8.
FORGETS_BOUNDS = jax.__version_info__ < (0, 12)


class Ends:
    """Both ends of a move in pieces: from the old part, and to the new one."""

    def __init__(self, pieces: Pieces, fill: Any) -> None:
        self.pieces, self.fill = pieces, fill

    @property
    def is_seen(self) -> bool:
        """Whether the old part is the array of atoms already, as it is in memory."""
        side = self.pieces.source
        moves = side.blocks.moves_in(side.placement.per_device)
        names = [atom for window in side.windows for atom in window.atoms]
        extents = [n for window in side.windows for n in window.extents]
        wide = [atom for atom, n in zip(names, extents, strict=True) if n > 1]
        cores = (*side.placement.per_device, *side.blocks.flat.local_shape)
        dims = [d for d in joined_order(side) if cores[d] > 1]
        return (
            all(isinstance(move, ReshapeMove) for move in moves)
            and not any(w.is_flipped or w.is_wide or w.step > 1 for w in side.windows)
            and wide == [atom for atom in side.atoms if atom in wide]
            and dims == sorted(dims)
        )

    def spread(self, x: LazyView) -> jax.Array:
        """The part without its tiles, a dim an atom, in the target's order."""
        side = self.pieces.source
        x = packing.run_moves(x, side.blocks.moves_in(side.placement.per_device), self.fill)
        x = x.transpose(joined_order(side)).reshape(*(w.length for w in side.windows))
        for k, window in enumerate(side.windows):
            x = self._aligned(x, k, window)
        names = [atom for window in side.windows for atom in window.atoms]
        x = x.reshape(*(n for window in side.windows for n in window.extents))
        return x.transpose([names.index(atom) for atom in side.atoms]).materialize()

    def _aligned(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Dim `k`, an interval of positions, as whole rows of atoms, joined."""
        if window.is_flipped:
            x = LazyView.of(lax.rev(x.materialize(), [k]))
        if window.is_wide:
            part = x.materialize()
            shape = (*part.shape[:k], window.width, *part.shape[k + 1 :])
            start = self._shift(k, window, part.ndim)
            wide = jnp.full(shape, self.fill, part.dtype)
            x = LazyView.of(lax.dynamic_update_slice(wide, part, start))
        if window.step > 1:
            shape = (*x.shape[:k], window.width // window.step, window.step, *x.shape[k + 1 :])
            part = lax.index_in_dim(x.reshape(*shape).materialize(), 0, k + 1, keepdims=False)
            x = LazyView.of(part)
        return x

    def gathered(self, x: LazyView) -> LazyView:
        """The target's part of an array of atoms."""
        side = self.pieces.target
        x = x.reshape(*(prod(window.extents) for window in side.windows))
        for k, window in enumerate(side.windows):
            x = self._interval(x, k, window)
        per_device = side.placement.per_device
        shape = (*per_device, *side.blocks.flat.local_shape)
        order = joined_order(side)
        x = x.reshape(*(shape[d] for d in order))
        x = x.transpose([order.index(d) for d in range(len(order))])
        return packing.run_moves(x, side.blocks.moves_out(per_device), self.fill)

    def _interval(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Dim `k` of whole rows of atoms as an interval of positions."""
        if window.step > 1:
            part = x.reshape(*x.shape[: k + 1], 1, *x.shape[k + 1 :]).materialize()
            grow = [(0, window.step - 1 if d == k + 1 else 0, 0) for d in range(part.ndim)]
            count = part.shape[k] * window.step
            x = LazyView.of(lax.pad(part, jnp.asarray(self.fill, part.dtype), grow))
            x = x.reshape(*part.shape[:k], count, *part.shape[k + 2 :])
        if x.shape[k] != window.length or any(window.shifts):
            part = x.materialize()
            size = (*part.shape[:k], window.length, *part.shape[k + 1 :])
            x = LazyView.of(lax.dynamic_slice(part, self._shift(k, window, part.ndim), size))
        if window.is_flipped:
            x = LazyView.of(lax.rev(x.materialize(), [k]))
        return x

    def _shift(self, k: int, window: Window, rank: int) -> list[Any]:
        """Where this device's interval begins along dim `k` of the rows."""
        start: list[Any] = [np.uint32(0)] * rank
        if any(window.shifts):
            shifts = jnp.asarray(window.shifts, jnp.uint32)
            start[k] = row_of(shifts, index_of(window.axes))
        return start

    def grown(self, held: jax.Array, shape: Shape) -> jax.Array:
        """The array with so much more at its ends that no box reaches beyond."""
        grow = [(0, n - m, 0) for n, m in zip(shape, held.shape, strict=True)]
        fill = jnp.asarray(self.fill, held.dtype)
        return held if shape == held.shape else lax.pad(held, fill, grow)


def row_of(table: Any, place: Any) -> jax.Array:
    """A row of a table."""
    return lax.squeeze(slice_at(table, place, 1, 0), [0])


def cut_box(held: jax.Array, start: Sequence[Any], size: Shape) -> jax.Array:
    """The box of a size that begins there."""
    if all(isinstance(n, int) for n in start):
        if held.shape == size:
            return held
        return lax.slice(held, start, [a + n for a, n in zip(start, size, strict=True)])
    return lax.dynamic_slice(held, unsigned(start), size)


def put_box(
    out: jax.Array, piece: jax.Array, start: Sequence[Any], counts: Sequence[Any] | None
) -> jax.Array:
    """The piece at its place; only so much of it along each dim as is counted."""
    start = unsigned(start)
    if counts is not None:
        old = lax.dynamic_slice(out, start, piece.shape)
        wanted: Any = True
        for d, count in enumerate(counts):
            if not (isinstance(count, int) and count == piece.shape[d]):
                wanted &= lax.broadcasted_iota(jnp.uint32, piece.shape, d) < count
        piece = jnp.where(wanted, piece, old)
    return lax.dynamic_update_slice(out, piece, start)


def unsigned(start: Sequence[Any]) -> list[Any]:
    """Where a box begins, in numbers of which none is asked for its sign."""
    return [np.uint32(n) if isinstance(n, int) else n for n in start]


def reach(extents: Shape, boxes: Sequence[tuple[Ints, Shape]]) -> Shape:
    """The extents that an array must have for boxes of these sizes to begin at these corners."""
    ends = [corners.reshape(-1, len(size)).max(axis=0) + size for corners, size in boxes]
    return tuple(np.max([extents, *ends], axis=0).tolist())


def joined_order(side: PlacedBlocks) -> list[int]:
    """The dims of a part of the untiled layout, each block's cores before its positions."""
    rank = side.blocks.flat.core_rank
    order: list[int] = []
    for k, block in enumerate(side.blocks.blocks):
        order += [rank + k] if block.core is None else [block.core, rank + k]
    return order
