"""Copies between system and local memory or within local memory, as commands of the DMA engine.

One command moves a tensor (N, C, H, W) of words of 8, 16 or 32 bits. Source and destination are
given by an address and strides. Their W strides are 1, and channels in local memory are scattered
over the NPUs. A copy between any two tensors is one or more moves (`gridlayout.sophon.boxes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.sophon import strides as rules
from gridlayout.sophon.boxes import NONE, Box, is_unit, matrix_boxes, packed, tensor_boxes
from gridlayout.sophon.local_memory import LocalLayout, local
from gridlayout.sophon.occupancy import overlap
from gridlayout.sophon.system_memory import system
from gridlayout.sophon.tensors import Tensor

MAX_MOVES = 2**12
_SHOWN = 16  # moves listed in the text of a copy


@dataclass(frozen=True)
class Move:
    """One command of the DMA engine: a copy of a tensor (N, C, H, W) of unsigned words.

    source, destination: tensors of the same shape, in system or local memory. `start` is the
    address for the engine; `strides` are in words, and that of W is 1 if W is more than 1.
    """

    source: Tensor
    destination: Tensor

    @property
    def direction(self) -> str:
        """The memories of source and destination: "S2L", "L2S" or "L2L"."""
        return "2".join("L" if side.chip else "S" for side in (self.source, self.destination))

    @property
    def bits(self) -> int:
        """Bits per word: 8, 16 or 32."""
        return dtypes.bits(self.source.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes moved."""
        return self.source.size * self.bits // 8

    @property
    def call(self) -> str:
        """The function of Sophon's kernel library for the move: "okk_gdma_32bit_cpy_S2L"."""
        return f"okk_gdma_{self.bits}bit_cpy_{self.direction}"

    def __str__(self) -> str:
        sides = " -> ".join(f"{x.start:,} {x.strides}" for x in (self.source, self.destination))
        return f"{self.call} {self.source.shape}: {sides}, {self.nbytes:,} B"


@dataclass(frozen=True)
class Copy:
    """The moves that copy one tensor to another; created by `copy`."""

    source: Tensor
    destination: Tensor
    moves: tuple[Move, ...]

    @property
    def nbytes(self) -> int:
        """Bytes moved by all moves, including dummy elements that both tensors have."""
        return sum(move.nbytes for move in self.moves)

    def __str__(self) -> str:
        count = f"{len(self.moves)} move{'s' * (len(self.moves) > 1)}"
        lines = [f"{count} of {self.nbytes:,} B; address (strides) -> address (strides)"]
        lines += map(str, self.moves[:_SHOWN])
        more = len(self.moves) - _SHOWN
        return "\n".join([*lines, f"... and {more:,} more"] if more > 0 else lines)

    __repr__ = __str__


@public
def copy(source: Tensor, destination: Tensor) -> Copy:
    """Return the moves that copy a tensor, possibly to other strides and another storage mode.

    source, destination: tensors of the same shape and dtype, at least one of them in local memory.
    A matrix (rows, cols) can be copied to and from a tensor (rows, 1, 1, cols) in system memory,
    and to a matrix of another width. A copy only describes the commands for a chip; to move data
    here, use `gl.relayout`, or `gl.pack` of `gl.unpack`.

    `LayoutError`: two tensors in system memory; different shapes or dtypes; a tensor that does not
    fit; tensors that overlap or are on different chips; a destination that repeats an element;
    elements smaller than a byte; more than 2**12 moves.

    >>> from gridlayout import sophon
    >>> chip = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
    >>> x = sophon.system((2, 3, 4, 5), "float32", start=4096)
    >>> print(copy(x, sophon.local((2, 3, 4, 5), "float32", start=2048, chip=chip)))
    1 move of 480 B; address (strides) -> address (strides)
    okk_gdma_32bit_cpy_S2L (2, 3, 4, 5): 4,096 (60, 20, 5, 1) -> 2,048 (64, 32, 5, 1), 480 B
    """
    _check(source, destination)
    sides, shape = (source, destination), _plain(source, destination)
    boxes = matrix_boxes(sides, *shape) if len(shape) == 2 else tensor_boxes(sides)
    pieces = list(islice((piece for box in boxes for piece in packed(box)), MAX_MOVES + 1))
    if len(pieces) > MAX_MOVES:
        raise LayoutError(
            f"a copy of {source} to {destination} takes more than {MAX_MOVES} moves: make their "
            "strides more similar"
        )
    return Copy(source, destination, tuple(_move(piece, *sides) for piece in pieces))


def _check(source: Tensor, destination: Tensor) -> None:
    """Raise `LayoutError` for tensors that no moves can copy."""
    for side in (source, destination):
        if not isinstance(side, Tensor):
            raise LayoutError(
                f"{side!r} is not a Sophon tensor: use sophon.local, sophon.matrix or sophon.system"
            )
        if isinstance(side, LocalLayout) and not (fit := side.fits()):
            raise LayoutError(f"{side} {fit}")
    if source.chip is None and destination.chip is None:
        raise LayoutError(f"{source} and {destination} are in system memory: one must be local")
    if source.dtype != destination.dtype:
        raise LayoutError(
            f"a copy moves bits: dtype {source.dtype.name} can't become {destination.dtype.name}"
        )
    if _plain(source, destination) != _plain(destination, source):
        raise LayoutError(
            f"shapes {source.shape} and {destination.shape} differ; a matrix (rows, cols) copies "
            "to and from (rows, 1, 1, cols) in system memory, and to a matrix"
        )
    destination.check_invertible()
    if isinstance(source, LocalLayout) and isinstance(destination, LocalLayout):
        shared = overlap(source, destination)
        if shared is not None:
            raise LayoutError(
                f"source and destination share byte {shared.byte} of NPU {shared.npu}, which may "
                "be written before it is read: move one of them"
            )


def _plain(tensor: Tensor, other: Tensor) -> tuple[int, ...]:
    """The shape of a tensor; (rows, cols) for (rows, 1, 1, cols) if `other` is a matrix."""
    if other.ndim == 2 and tensor.chip is None and (tensor.shape[1:3], tensor.lanes) == ((1, 1), 1):
        return (tensor.shape[0], tensor.shape[3])
    return tensor.shape


def _move(box: Box, source: Tensor, destination: Tensor) -> Move:
    """The move of a box that fits one move."""
    columns = next(filter(is_unit, box.axes), (1, 1, 1))
    others = [axis for axis in box.axes if axis[0] > 1 and not is_unit(axis)]
    # A single axis becomes N if it is the outermost one, otherwise H.
    lone_row = len(others) == 1 and others[0] != box.axes[0]
    n, h = [*([NONE] * lone_row), *others, NONE, NONE][:2]
    shape, sources, destinations = zip(n, box.channels, h, columns, strict=True)
    return Move(
        _place(source, shape, box.bits, box.source, sources),
        _place(destination, shape, box.bits, box.destination, destinations),
    )


def _place(side: Tensor, shape: Shape, bits: int, start: int, strides: Shape) -> Tensor:
    """The tensor of words of a move, at an address in the memory of `side`."""
    if side.chip is None:
        return system(shape, f"uint{bits}", strides, start=start)
    first, _ = side.chip.split(start)
    slots = rules.channels_per_npu(first, shape[1], side.npus)
    allocation = rules.span(strides, rules.steps_over(shape, slots))
    return local(
        shape, f"uint{bits}", strides=strides, start=start, chip=side.chip, allocation=allocation
    )
