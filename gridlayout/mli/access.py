"""Access to an MLI tensor by hardware: vector lanes, and the linear series of a DMA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from gridlayout.arguments import Shape
from gridlayout.strided import StridedLayout


@dataclass(frozen=True)
class Lanes:
    """The use of vector lanes by a kernel that is vectorized along one dim.

    dim: the letter of that dim. extent: its number of elements. vector: elements per vector.
    mem_stride: elements of memory from one lane to the next; 1 is a contiguous load.

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
        """The number of vectors that cover the dim."""
        return -(-self.extent // self.vector)

    @property
    def last(self) -> int:
        """The number of lanes that the last vector uses."""
        return self.extent - (self.vectors - 1) * self.vector

    @property
    def share(self) -> float:
        """The fraction of lanes that are used, above 0 and up to 1."""
        return self.extent / (self.vectors * self.vector)

    @property
    def is_multiple(self) -> bool:
        """Whether every lane is used, because the extent is a multiple of the vector."""
        return self.extent % self.vector == 0


@dataclass(frozen=True)
class Transfers:
    """The linear series in which a DMA transfers a tensor.

    count: the number of series. run: elements per series. jumps: elements from the end of a series
    to the start of the next, one number per kind of jump, innermost dims first. run_bytes: bytes
    per series.
    """

    count: int
    run: int
    jumps: Shape
    run_bytes: int


def transfers_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Transfers:
    """The series of a tensor with elements of `itemsize` bytes and decreasing, nested strides.

    >>> transfers_of((3, 16, 8), (512, 16, 1), 2)
    Transfers(count=48, run=8, jumps=(8, 264), run_bytes=16)
    """
    # Which dims are contiguous does not depend on the element size.
    view = StridedLayout(shape or (1,), strides or (1,), "int8").collapse_contiguous()
    outer = list(zip(view.shape, view.strides, strict=True))
    run = outer.pop()[0] if outer[-1][1] == 1 else 1
    jumps, inside = [], run
    for n, stride in reversed(outer):
        jumps.append(stride - inside)
        inside += stride * (n - 1)
    return Transfers(prod(n for n, _ in outer), run, tuple(jumps), run * itemsize)
