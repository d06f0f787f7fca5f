"""How hardware gets at an MLI tensor: the lanes of a vector, and the linear series of a DMA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from gridlayout.arguments import Shape
from gridlayout.strided import StridedLayout


@dataclass(frozen=True)
class Lanes:
    """The lanes of a kernel that works on `vector` neighbours along one dim at once.

    dim: the letter of that dim; extent: its elements. vector: elements of a vector. mem_stride:
    elements of memory from one lane to the next; 1 is a plain load.

    >>> use = Lanes(dim="C", extent=24, vector=16, mem_stride=1)
    >>> use.vectors, use.last, use.share, use.is_multiple
    (2, 8, 0.75, False)
    """

    dim: str
    extent: int
    vector: int
    mem_stride: int

    @property
    def vectors(self) -> int:
        """Vectors that take the dim once."""
        return -(-self.extent // self.vector)

    @property
    def last(self) -> int:
        """Lanes that the last of these vectors uses."""
        return self.extent - (self.vectors - 1) * self.vector

    @property
    def share(self) -> float:
        """The share of all lanes that are used, above 0 and up to 1."""
        return self.extent / (self.vectors * self.vector)

    @property
    def is_multiple(self) -> bool:
        """Whether every lane is used: the extent is a multiple of the vector."""
        return self.extent % self.vector == 0


@dataclass(frozen=True)
class Transfers:
    """The linear series in which a DMA moves a tensor: `count` of them, `run` elements each.

    jumps: elements from the end of a series to the start of the next one, a number for each type
    of jump, those within the inner dims first. run_bytes: bytes of a series.
    """

    count: int
    run: int
    jumps: Shape
    run_bytes: int


def transfers_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Transfers:
    """The series of elements of `itemsize` bytes with nested strides, the last one the smallest.

    >>> transfers_of((3, 16, 8), (512, 16, 1), 2)
    Transfers(count=48, run=8, jumps=(8, 264), run_bytes=16)
    """
    # Which dims lie side by side is the same for elements of any size.
    view = StridedLayout(shape or (1,), strides or (1,), "int8").collapse_contiguous()
    outer = list(zip(view.shape, view.strides, strict=True))
    run = outer.pop()[0] if outer[-1][1] == 1 else 1
    jumps, inside = [], run
    for n, stride in reversed(outer):
        jumps.append(stride - inside)
        inside += stride * (n - 1)
    return Transfers(prod(n for n, _ in outer), run, tuple(jumps), run * itemsize)
