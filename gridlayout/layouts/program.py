"""The array program of a layout: its steps as a short list of moves, "pad-reshape-transpose".

`pack` runs the moves forward, and `unpack` runs them backward. This module runs them with NumPy,
and `gridlayout.ops.moves.packing` with JAX. Steps that are ready at the same time become one move,
so that an even tiling is one reshape and one transpose (XLA, "Tiling as pad-reshape-transpose").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.steps import (
    Flip,
    Join,
    Pad,
    Scatter,
    Split,
    Step,
    StepBuilder,
    Unit,
    renamed,
)


@dataclass(frozen=True)
class PadMove:
    """Adds `low` positions before and `high` after each dim; negative numbers remove padding."""

    low: Shape
    high: Shape


@dataclass(frozen=True)
class ReshapeMove:
    """Reshapes from one shape to another of the same size, in row-major order."""

    before: Shape
    after: Shape


@dataclass(frozen=True)
class TransposeMove:
    """Transposes: dim `k` of the result is dim `order[k]` of the operand."""

    order: Shape

    @property
    def inverse(self) -> Shape:
        """The order of the inverse transpose."""
        return tuple(int(k) for k in np.argsort(self.order))


@dataclass(frozen=True)
class ReverseMove:
    """Reverses the given dims."""

    dims: Shape


@dataclass(frozen=True)
class ScatterMove:
    """Moves every element to `map` of its index, from shape `before` to shape `after`."""

    map: AffineMap
    before: Shape
    after: Shape


Move = PadMove | ReshapeMove | TransposeMove | ReverseMove | ScatterMove


@cached
def moves(layout: Layout) -> tuple[Move, ...]:
    """The moves from a layout's logical array to its physical one.

    >>> from gridlayout import GridLayout
    >>> for move in moves(GridLayout((5, 8), "f4", grid=(2, 4))):
    ...     print(move)
    PadMove(low=(0, 0), high=(1, 0))
    ReshapeMove(before=(6, 8), after=(2, 3, 4, 2))
    TransposeMove(order=(0, 2, 1, 3))
    """
    return moves_of(layout.shape, layout.steps, layout.order)


def moves_of(shape: Shape, steps: Sequence[Step], order: Sequence[int]) -> tuple[Move, ...]:
    """The moves that apply steps to an array of `shape`, with the final axes in the given order.

    >>> moves_of((2, 3), [], (1, 0))
    (TransposeMove(order=(1, 0)),)
    """
    state = _State(shape)
    pending: Sequence[Numbered] = numbered(shape, tuple(steps))
    while pending:
        for kinds in ((Scatter,), (Pad,), (Flip,), (Unit, Join, Split)):
            ready = [p for p in pending if isinstance(p.step, kinds) and state.has(p.reads)]
            if ready:
                break
        pending = [p for p in pending if p not in ready]
        state.apply(ready, [] if pending else order)
    state.transpose([state.axes.index(axis) for axis in order])
    return tuple(state.moves)


@dataclass(frozen=True)
class Numbered:
    """A step, the axes that it reads, and the axes that it makes with their extents."""

    step: Step
    reads: Shape
    makes: Shape
    sizes: Shape

    def repeat(self, builder: StepBuilder, at: dict[int, int]) -> None:
        """Append the step to another builder.

        at: for each live axis of this numbering, its axis in the builder; updated in place.
        """
        first = builder.next_axis
        builder.run([renamed(self.step, [at.pop(axis) for axis in self.reads])])
        at.update(zip(self.makes, range(first, builder.next_axis), strict=True))


@cached
def numbered(shape: Shape, steps: tuple[Step, ...]) -> tuple[Numbered, ...]:
    """Each step on an array of `shape`, with the axes that it reads and makes.

    >>> from gridlayout.layouts.steps import Split
    >>> numbered((6,), (Split(0, (2, 3)),))
    (Numbered(step=Split(axis=0, sizes=(2, 3)), reads=(0,), makes=(1, 2), sizes=(2, 3)),)
    """
    builder, found = StepBuilder(shape), []
    for step in steps:
        match step:
            case Join(axes):
                reads = axes
            case Unit():
                reads = ()
            case Scatter():
                reads = tuple(sorted(builder.extent))
            case _:
                reads = (step.axis,)
        first = builder.next_axis
        builder.run([step])
        makes = tuple(range(first, builder.next_axis))
        found.append(Numbered(step, reads, makes, tuple(builder.extent[a] for a in makes)))
    return tuple(found)


class _State:
    """The array after the moves so far: the axis and the extent of each dim."""

    def __init__(self, shape: Shape) -> None:
        self.axes = list(range(len(shape)))
        self.shape = list(shape)
        self.moves: list[Move] = []

    def has(self, axes: Shape) -> bool:
        return all(axis in self.axes for axis in axes)

    def apply(self, ready: list[Numbered], order: Sequence[int]) -> None:
        """Apply all ready steps of one kind as one move.

        order: the final order of the axes if these are the last steps, otherwise empty.
        """
        match ready[0].step:
            case Scatter(map, sizes):
                self.moves.append(ScatterMove(map, tuple(self.shape), sizes))
                self.axes, self.shape = list(ready[0].makes), list(sizes)
            case Pad():
                self._pad(ready)
            case Flip():
                self.moves.append(ReverseMove(tuple(self.axes.index(p.reads[0]) for p in ready)))
                for p in ready:
                    self.axes[self.axes.index(p.reads[0])] = p.makes[0]
            case _:
                self._reshape(ready, order)

    def _pad(self, ready: list[Numbered]) -> None:
        low, high = [0] * len(self.axes), [0] * len(self.axes)
        for p in ready:
            assert isinstance(p.step, Pad)
            k = self.axes.index(p.step.axis)
            low[k], high[k] = p.step.low, p.step.high
            self.axes[k], self.shape[k] = p.makes[0], p.sizes[0]
        self.moves.append(PadMove(tuple(low), tuple(high)))

    def _reshape(self, ready: list[Numbered], order: Sequence[int]) -> None:
        blocks = [[axis] for axis in self.axes]
        for p in ready:
            if isinstance(p.step, Join):
                # Join at the first axis of more than one position; units move without a copy.
                wide = [a for a in p.reads if self.shape[self.axes.index(a)] != 1]
                place = (wide or p.reads)[0]
                blocks = [b for b in blocks if b[0] not in p.reads or b[0] == place]
                blocks[[b[0] for b in blocks].index(place)] = list(p.reads)
        by_first = {p.reads[0]: p for p in ready if p.reads}
        if order and any(len(block) > 1 for block in blocks):
            # A join transposes anyway, so use it to put the axes in the final order.
            makes = {b[0]: by_first[b[0]].makes if b[0] in by_first else b for b in blocks}
            blocks.sort(key=lambda b: min(list(order).index(axis) for axis in makes[b[0]]))
        self.transpose([self.axes.index(axis) for block in blocks for axis in block])
        axes, shape = [], []
        for block in blocks:
            found = by_first.get(block[0])
            axes += list(found.makes) if found else block
            shape += list(found.sizes) if found else [self.shape[self.axes.index(block[0])]]
        for p in ready:
            if isinstance(p.step, Unit):
                axes += p.makes
                shape += p.sizes
        self._reshaped(shape)
        self.axes = axes

    def _reshaped(self, shape: list[int]) -> None:
        """Append a reshape, or merge it into the last move if that is a reshape."""
        before, last = tuple(self.shape), self.moves[-1] if self.moves else None
        if isinstance(last, ReshapeMove):
            self.moves.pop()
            before = last.before
        if before != tuple(shape):
            self.moves.append(ReshapeMove(before, tuple(shape)))
        self.shape = shape

    def transpose(self, order: list[int]) -> None:
        if order == sorted(order):
            return
        self.axes = [self.axes[k] for k in order]
        wide = [k for k in order if self.shape[k] != 1]
        shape = [self.shape[k] for k in order]
        if wide == sorted(wide):  # only dims of extent 1 change their order
            self._reshaped(shape)
        else:
            self.moves.append(TransposeMove(tuple(order)))
            self.shape = shape


def pack_host(array: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Pack a logical NumPy array on the host; undef padding is filled with 0.

    array: of the layout's shape and dtype. Returns an array of `layout.physical_shape`, possibly
    a view of `array`.
    """
    return run_host(array, moves(layout), host_fill(layout))


def run_host(array: NDArray[Any], program: Sequence[Move], fill: NDArray[Any]) -> NDArray[Any]:
    """Run the moves on a NumPy array; padding is filled with `fill`.

    >>> run_host(np.arange(3), [PadMove((0,), (1,)), ReshapeMove((4,), (2, 2))], np.array(9))
    array([[0, 1],
           [2, 9]])
    """
    for move in program:
        match move:
            case PadMove(low, high):
                array = _pad_host(array, low, high, fill)
            case ReshapeMove(_, after):
                array = array.reshape(after)
            case TransposeMove(order):
                array = array.transpose(order)
            case ReverseMove(dims):
                array = np.flip(array, dims)
            case ScatterMove(map, before, after):
                out = np.full(after, fill, array.dtype)
                out[_indices(map, before)] = array
                array = out
    return array


def host_fill(layout: Layout) -> NDArray[Any]:
    """The value that packing writes into the padding: the layout's oob, or 0 for undef."""
    return np.asarray(0 if layout.oob is None else layout.oob).astype(layout.dtype)


def unpack_host(physical: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Unpack a physical NumPy array on the host; padding is never read."""
    for move in reversed(moves(layout)):
        match move:
            case PadMove(low, high):
                less_low, less_high = tuple(-n for n in low), tuple(-n for n in high)
                physical = _pad_host(physical, less_low, less_high, np.zeros((), physical.dtype))
            case ReshapeMove(before, _):
                physical = physical.reshape(before)
            case TransposeMove():
                physical = physical.transpose(move.inverse)
            case ReverseMove(dims):
                physical = np.flip(physical, dims)
            case ScatterMove(map, before, _):
                physical = physical[_indices(map, before)]
    return np.asarray(physical, order="C")


def _indices(map: AffineMap, shape: Shape) -> tuple[Any, ...]:
    index = np.indices(shape, sparse=True) if shape else ()
    return tuple(np.broadcast_to(r, shape) for r in map(*index))


def _pad_host(array: NDArray[Any], low: Shape, high: Shape, fill: NDArray[Any]) -> NDArray[Any]:
    shape = tuple(n + a + b for n, a, b in zip(array.shape, low, high, strict=True))
    inner = tuple(
        slice(max(-a, 0), n + min(b, 0)) for n, a, b in zip(array.shape, low, high, strict=True)
    )
    if all(a <= 0 for a in low) and all(b <= 0 for b in high):
        return array[inner]
    out = np.full(shape, fill, array.dtype)
    place = tuple(slice(max(a, 0), n - max(b, 0)) for n, a, b in zip(shape, low, high, strict=True))
    out[place] = array[inner]
    return out
