"""`slices`: the pieces of a tensor for streaming it through a memory space that is too small.

"In order to stream tensor data from DeviceDRAM to DeviceL1 you would need to either manually slice
the tensor into smaller tensors that do fit in L1 ..." (tt-mlir, "Memory Spaces").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.arguments import Shape, as_shape, positive
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip, Fit, as_chip
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.interpret.on_grid import on_grid
from gridlayout.ops.interpret.with_layout import in_layout
from gridlayout.public import public

Piece = tuple[slice, ...]
_MOST_PIECES = 1 << 20


@public
@dataclass(frozen=True)
class Slices:
    """The pieces of a tensor that fit a memory space one at a time. Made by `gl.slices`.

    layout: of the whole tensor. size: the shape of the largest piece, in elements. fit: how that
    piece fits; its sizes are for one buffer, which has 1/`buffers` of the capacity.
    """

    layout: GridLayout
    size: Shape
    fit: Fit
    buffers: int = 1

    @cached_property
    def counts(self) -> Shape:
        """How many pieces there are along each dim."""
        pairs = zip(self.layout.shape, self.size, strict=True)
        return tuple(-(-n // step) if step else 1 for n, step in pairs)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What each piece holds: one slice per dim; the last dim changes fastest.

        `LayoutError` for more than 1,048,576.
        """
        if (count := prod(self.counts)) > _MOST_PIECES:
            raise LayoutError(f"{count} pieces are too many to list: at most {_MOST_PIECES} are")
        starts = (
            [k * step for k in range(n)] for n, step in zip(self.counts, self.size, strict=True)
        )
        return tuple(
            tuple(
                slice(at, min(at + step, n))
                for at, step, n in zip(corner, self.size, self.layout.shape, strict=True)
            )
            for corner in product(*starts)
        )

    def layout_of(self, piece: Piece) -> GridLayout:
        """Return the layout of one piece: that of the tensor, with the piece's shape."""
        is_piece = isinstance(piece, tuple) and len(piece) == self.layout.ndim
        if not is_piece or not all(isinstance(s, slice) for s in piece):
            raise LayoutError(
                f"piece {piece!r} must be a tuple of {self.layout.ndim} slices, as `pieces` has"
            )
        return self.layout.replace(shape=tuple(s.stop - s.start for s in piece))

    def __len__(self) -> int:
        return prod(self.counts)

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def __str__(self) -> str:
        dims, size = (",".join(map(str, n)) for n in (self.layout.shape, self.size))
        count = prod(self.counts)
        many = "1 piece" if count == 1 else f"{count} pieces"
        return f"{self.layout.dtype.name}[{dims}] in {many} of up to [{size}]; each {self.fit}"

    __repr__ = __str__

    def __call__(self, fn: Callable[..., Any], x: GridArray, *others: Any) -> Any:
        """Return `fn(x, *others)`, computed one piece of `x` at a time, with the results joined.

        x: of the tensor's shape and dtype, in any layout. Every piece of it is relaid out to its
        own layout in the memory space, and the results of `fn` are moved back to the space of `x`.
        `fn` must be independent between pieces: along the dims that are cut, its results have the
        piece's extent. `others` are passed to every call as they are; arrays among them must be in
        the space of the pieces. Each piece is a program of its own. `LayoutError` for another
        tensor, and where a result does not have the extents.
        """
        if not callable(fn):
            raise LayoutError(f"slices take a function of pieces, not {fn!r}")
        if not isinstance(x, GridArray):
            raise LayoutError(f"slices take a GridArray, not {type(x).__name__}; gl.put makes one")
        if (x.shape, x.dtype) != (self.layout.shape, self.layout.dtype):
            raise LayoutError(f"{x!r} is not the tensor that was cut, {self.layout!r}")
        made = [self._one(fn, piece, x, others) for piece in self.pieces]
        return jax.tree.map(lambda *parts: self._joined(parts), *made, is_leaf=_is_grid)

    @property
    def _cut(self) -> list[int]:
        """The dims that are cut."""
        return [d for d, count in enumerate(self.counts) if count > 1]

    def _one(self, fn: Callable[..., Any], piece: Piece, x: GridArray, others: Any) -> Any:
        layout, home, device = self.layout_of(piece), x.layout, x.device

        def back(y: Any) -> Any:
            y = jnp.asarray(y)
            if any(d >= y.ndim or y.shape[d] != layout.shape[d] for d in self._cut):
                raise LayoutError(
                    f"a piece {list(layout.shape)} gave {list(y.shape)}: along the dims that are "
                    f"cut, {self._cut}, a result must have the piece's extents"
                )
            return in_layout(y, same_grid_and_tile(y.shape, y.dtype, home, device))

        def run(x: Any, *others: Any) -> Any:
            return jax.tree.map(back, fn(in_layout(x[piece], layout), *others))

        return on_grid(run)(x, *others)

    def _joined(self, parts: Sequence[Any]) -> Any:
        """Return the results of all pieces joined into one, dim by dim from the last."""
        found = list(parts)
        for d in reversed(self._cut):
            count = self.counts[d]
            rows = [found[k : k + count] for k in range(0, len(found), count)]
            found = [on_grid(lambda *row, d=d: jnp.concatenate(row, axis=d))(*row) for row in rows]
        return found[0]


@public
def slices(
    layout: GridLayout, chip: Chip | str, *, dims: Sequence[int] | None = None, buffers: int = 1
) -> Slices:
    """Return the pieces of a tensor for streaming it through a memory space that is too small.

    layout: of the whole tensor, in that memory space. chip: a `gl.Chip` or a name such as
    "wormhole"; it says what the space holds. dims: the dims that may be cut, in this order; by
    default all, the first one first. buffers: how many pieces must fit at a time; 2 for double
    buffering. No dim can be cut into fewer pieces, and pieces are of nearly equal size.
    `LayoutError` where no piece fits.

    >>> from gridlayout import GridLayout, tenstorrent
    >>> large = GridLayout((4096, 4096), "bfloat16", grid=(2, 2), tile=(32, 32))
    >>> found = slices(large, tenstorrent.WORMHOLE)
    >>> len(found), found.size, found.pieces[1]
    (7, (586, 4096), (slice(586, 1172, None), slice(0, 4096, None)))
    """
    if not isinstance(layout, GridLayout):
        raise LayoutError(f"slices take a gl.GridLayout, not {type(layout).__name__}")
    chip = as_chip(chip)
    (buffers,) = positive((buffers,), "buffers")
    order = range(layout.ndim) if dims is None else as_shape(dims, "dims")
    if len({*order}) < len(order) or any(d >= layout.ndim for d in order):
        raise LayoutError(f"dims {tuple(order)} must be different dims of {layout.shape}")

    def fit(size: Sequence[int]) -> Fit:
        found = layout.replace(shape=tuple(size)).fits(chip)
        room = found.capacity
        return found if room is None else replace(found, capacity=room // buffers)

    size, done = list(layout.shape), []

    def cut(d: int) -> None:
        size[d] = _extent(layout.shape[d], lambda n: bool(fit([*size[:d], n, *size[d + 1 :]])))

    for d in order:
        if fit(size):
            break
        cut(d)
        done.append(d)
    for d in reversed(done[:-1]):  # more may fit now, such as the other rows of a tile
        cut(d)
    if not (found := fit(size)):
        other = "another grid" if found.grid else "more cores, a smaller tile, or fewer buffers"
        raise LayoutError(
            f"no piece fits: one of {size}, cut along dims {tuple(order)}, {found}; use {other}"
        )
    return Slices(layout, tuple(size), found, buffers)


def _extent(n: int, fits: Callable[[int], bool]) -> int:
    """Return the extent of as few pieces of a dim as fit, nearly equal ones; 1 where none fits."""
    low, high = 1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return -(-n // max(-(-n // low), 1))


def _is_grid(x: Any) -> bool:
    return isinstance(x, GridArray)
