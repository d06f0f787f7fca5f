"""`Ends`: converts a device's part to the array of atoms that pieces are cut from, and back.

Atoms are the dims that two layouts have in common (`gridlayout.sharding.exchanges.windows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Ints, Shape
from gridlayout.layouts.program import ReshapeMove
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import own_row
from gridlayout.sharding.exchanges.pieces import Pieces
from gridlayout.sharding.exchanges.windows import Window

# XLA before JAX 0.12 merges a slice of a slice into one slice, and forgets that the start of the
# inner one was clamped: dynamic_slice(dynamic_slice(arange(9), [8], [2]), [0], [1]) gives 8.
FORGETS_BOUNDS = jax.__version_info__ < (0, 12)


class Ends:
    """Both ends of a move in pieces: from the old part to atoms, and from atoms to the new part."""

    def __init__(self, pieces: Pieces, fill: Any) -> None:
        self.pieces, self.fill = pieces, fill

    @property
    def is_atoms(self) -> bool:
        """Whether the old part in memory is already the array of atoms."""
        side = self.pieces.source
        moves = side.blocks.moves_to_flat(side.placement.per_device)
        names = [atom for window in side.windows for atom in window.atoms]
        extents = [n for window in side.windows for n in window.extents]
        wide = [atom for atom, n in zip(names, extents, strict=True) if n > 1]
        cores = (*side.placement.per_device, *side.blocks.flat.local_shape)
        dims = [d for d in side.blocks.joined_order if cores[d] > 1]
        return (
            all(isinstance(move, ReshapeMove) for move in moves)
            and not any(w.is_flipped or w.is_wide or w.step > 1 for w in side.windows)
            and wide == [atom for atom in side.atoms if atom in wide]
            and dims == sorted(dims)
        )

    def to_atoms(self, x: LazyView) -> jax.Array:
        """Return the old part untiled, one dim per atom, with atoms in the target's order."""
        side = self.pieces.source
        x = packing.run_moves(x, side.blocks.moves_to_flat(side.placement.per_device), self.fill)
        x = x.transpose(side.blocks.joined_order).reshape(*(w.length for w in side.windows))
        for k, window in enumerate(side.windows):
            x = self._aligned(x, k, window)
        names = [atom for window in side.windows for atom in window.atoms]
        x = x.reshape(*(n for window in side.windows for n in window.extents))
        return x.transpose([names.index(atom) for atom in side.atoms]).materialize()

    def _aligned(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Return dim `k`, an interval of positions, extended to whole rows of joined atoms."""
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

    def from_atoms(self, x: LazyView) -> LazyView:
        """Return the target's part of an array of atoms."""
        side = self.pieces.target
        x = x.reshape(*(prod(window.extents) for window in side.windows))
        for k, window in enumerate(side.windows):
            x = self._interval(x, k, window)
        per_device = side.placement.per_device
        shape = (*per_device, *side.blocks.flat.local_shape)
        order = side.blocks.joined_order
        x = x.reshape(*(shape[d] for d in order))
        x = x.transpose([order.index(d) for d in range(len(order))])
        return packing.run_moves(x, side.blocks.moves_from_flat(per_device), self.fill)

    def _interval(self, x: LazyView, k: int, window: Window) -> LazyView:
        """Return this device's interval of positions of dim `k`, which has whole rows of atoms."""
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
        """Return where this device's interval begins along dim `k` of the rows."""
        start: list[Any] = [np.uint32(0)] * rank
        if any(window.shifts):
            start[k] = own_row(np.array(window.shifts, np.uint32), window.axes)
        return start

    def grown(self, held: jax.Array, shape: Shape) -> jax.Array:
        """Return the array padded at its ends to `shape`, so that no box reaches beyond it."""
        grow = [(0, n - m, 0) for n, m in zip(shape, held.shape, strict=True)]
        fill = jnp.asarray(self.fill, held.dtype)
        return held if shape == held.shape else lax.pad(held, fill, grow)


def cut_box(held: jax.Array, start: Sequence[Any], size: Shape) -> jax.Array:
    """Return the box of extents `size` that begins at `start`."""
    if all(isinstance(n, int) for n in start):
        if held.shape == size:
            return held
        return lax.slice(held, start, [a + n for a, n in zip(start, size, strict=True)])
    return lax.dynamic_slice(held, unsigned(start), size)


def put_box(
    out: jax.Array, piece: jax.Array, start: Sequence[Any], counts: Sequence[Any] | None
) -> jax.Array:
    """Return `out` with the piece written at `start`.

    counts: how many positions of the piece are written along each dim; None for all of them.
    """
    start = unsigned(start)
    if counts is not None:
        old = lax.dynamic_slice(out, start, piece.shape)
        # Not `jax.numpy`, of whose functions JAX retains a trace for each shape.
        is_counted = lax.full(piece.shape, True)
        for d, count in enumerate(counts):
            if not (isinstance(count, int) and count == piece.shape[d]):
                at = lax.broadcasted_iota(jnp.uint32, piece.shape, d)
                end = lax.broadcast(lax.convert_element_type(count, jnp.uint32), piece.shape)
                is_counted = lax.bitwise_and(is_counted, lax.lt(at, end))
        piece = lax.select(is_counted, piece, old)
    return lax.dynamic_update_slice(out, piece, start)


def unsigned(start: Sequence[Any]) -> list[Any]:
    """Return the start of a box as unsigned integers, for which XLA adds no test for negatives."""
    return [np.uint32(n) if isinstance(n, int) else n for n in start]


def reach(extents: Shape, boxes: Sequence[tuple[Ints, Shape]]) -> Shape:
    """Return the extents of the smallest array that holds boxes of these corners and sizes."""
    ends = [corners.reshape(-1, len(size)).max(axis=0) + size for corners, size in boxes]
    return tuple(np.max([extents, *ends], axis=0).tolist())
