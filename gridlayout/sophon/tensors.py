"""`Tensor`: the base class of tensors in local and in system memory, given by strides of a view.

The view has the shape (groups, C, H, W). In a storage mode (4N, 2N, 2IC), `lanes` elements of the
first dim form a group, which is one element of a wider type; otherwise the groups are the first dim
itself. Strides count elements of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_index
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import check_offset
from gridlayout.layouts.layout import Layout
from gridlayout.public import public
from gridlayout.sophon import strides as rules
from gridlayout.sophon.chip import Chip

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MAX_LANES = 2**16  # the most lanes that `view_element` lists


@dataclass(frozen=True)
class ViewElement:
    """One element of a view: its type ("int8x4"), its address in bytes, and its elements.

    elements: the logical index in each lane; None for a dummy and beyond a matrix's columns.
    """

    dtype: str
    address: int
    elements: tuple[tuple[int, ...] | None, ...]


@public
class Tensor(Layout):
    """A tensor (N, C, H, W) or a matrix; created by `local`, `matrix` and `system`.

    strides: those of N, C, H, W, in elements of the view. view_shape: the 4-D shape of the view.
    lanes: elements per element of the view, 1 without a storage mode. start: the address in bytes.
    npus: the number of NPUs over which channels are scattered, starting at start_npu; 1 in system
    memory, where chip is None. offset: the byte in each memory at which the tensor starts.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike,
        view_shape: Shape,
        strides: Shape,
        lanes: int,
        start: int,
        chip: Chip | None,
        *,
        allocation: int,
        oob: Any = None,
    ) -> None:
        self.view_shape: Shape = view_shape
        self.strides: Shape = strides
        self.lanes: int = lanes
        self.start: int = start
        self.chip: Chip | None = chip
        self.start_npu, self.offset = (0, start) if chip is None else chip.split(start)
        self.npus: int = 1 if chip is None else chip.npus
        steps, order = rules.strided_steps(
            shape,
            view_shape,
            self._moving,
            lanes,
            lanes * allocation,
            None if chip is None else (self.start_npu, self.npus),
        )
        super().__init__(shape, dtype, steps, order, core_rank=0 if chip is None else 1, oob=oob)

    def check_invertible(self) -> None:
        """Raise `LayoutError` if two indices share an element; it names them."""
        self._check_no_broadcast()
        super().check_invertible()

    def _check_no_broadcast(self) -> None:
        """Raise `LayoutError` for a broadcast; it names two indices that share one element."""
        if not self.broadcast:
            return
        name = self.broadcast[0]
        if self.ndim == 2:  # a matrix: rows are N, columns are C and W
            across = self.npus * self.view_shape[3]
            axis, step = {"N": (0, 1), "C": (1, across), "W": (1, 1)}[name]
        else:
            axis, step = "NCHW".index(name), {"N": self.lanes, "C": self.npus}.get(name, 1)
        zero = (0,) * self.ndim
        other = (*zero[:axis], step, *zero[axis + 1 :])
        raise LayoutError(
            f"the {name} stride is 0, a broadcast that sends {zero} and {other} to one place: the "
            "layout is a read-only view and can only be a source; unpack can read it, but a "
            "destination needs strides > 0"
        )

    # -- strides -------------------------------------------------------------------------------

    @property
    def channels_per_npu(self) -> int:
        """The rows of channels in the allocation: ceil((start NPU + C) / NPUs).

        The offset is the same in every NPU, so a channel that wraps to an NPU before the start NPU
        is in that NPU's second row (Sophon, "Scatter Features to Different NPUs").
        """
        return rules.channels_per_npu(self.start_npu, self.view_shape[1], self.npus)

    @property
    def _extents(self) -> Shape:
        return rules.steps_over(self.view_shape, self.channels_per_npu)

    @property
    def _moving(self) -> Shape:
        """The strides, with 0 for those that have no effect; tensors are compared by these."""
        return rules.moving(self.strides, self._extents)

    @property
    def strides_without_meaning(self) -> tuple[str, ...]:
        """The dims whose stride has no effect (Sophon, "Strides in Local Memory").

        These are N, H and W of extent 1, and C with one channel per NPU (in all, in system memory).

        >>> from gridlayout import sophon
        >>> sophon.local((2, 3, 1, 10), "float32", strides=(120, None, None, 2)).strides
        (120, 0, 0, 2)
        >>> sophon.local((2, 3, 1, 10), "float32").strides_without_meaning
        ('C', 'H')
        """
        return rules.without_meaning(self._extents)

    @property
    def broadcast(self) -> tuple[str, ...]:
        """The dims that a stride of 0 repeats; such a tensor can only be a source.

        >>> from gridlayout import sophon
        >>> sophon.local((2, 3, 4, 5), "float32", strides=(0, 20, 5, 1)).broadcast
        ('N',)
        """
        return rules.broadcast(self.view_shape, self.npus, self.strides)

    @property
    def span_bytes(self) -> int:
        """Bytes from the start to the end of the last element, in the fullest NPU."""
        elements = rules.span(self.strides, self._extents)
        return -(-elements * self.lanes * dtypes.bits(self.dtype) // 8)

    # -- storage modes -------------------------------------------------------------------------

    @property
    def blocks(self) -> tuple[int, ...]:
        """The elements per group of a storage mode."""
        return (self.lanes,) if self.lanes > 1 else ()

    @property
    def storage(self) -> str | None:
        """The storage mode: "4N", "2N", "2IC" or None."""
        return rules.storage_name(self.lanes, self.dtype)

    @property
    def dummies(self) -> int:
        """The number of dummy elements in the last group of a storage mode, per (C, H, W)."""
        return self.view_shape[0] * self.lanes - self.shape[0]

    @property
    def view_dtype(self) -> str:
        """The type of the view's elements (Sophon, "Storage Modes").

        >>> from gridlayout import sophon
        >>> sophon.local((6, 5, 4, 5), "int8", storage="4N").view_dtype
        'int8x4'
        """
        return self.dtype.name if self.lanes == 1 else f"{self.dtype.name}x{self.lanes}"

    def view_element(self, index: Sequence[int]) -> ViewElement:
        """The element of the view at an index in `view_shape`.

        `LayoutError`: an index outside the view; more than 2**16 lanes.

        >>> from gridlayout import sophon
        >>> sophon.local((6, 5, 4, 5), "int8", storage="4N").view_element((1, 0, 0, 0))
        ViewElement(dtype='int8x4', address=128, elements=((4, 0, 0, 0), (5, 0, 0, 0), None, None))
        """
        group, c, h, w = as_index(index, self.view_shape, "index of the view")
        if self.lanes > MAX_LANES:
            raise LayoutError(
                f"an element of {self.view_dtype} has over {MAX_LANES} lanes, too many to list"
            )
        slot, npu = divmod(self.start_npu + c, self.npus)
        places = zip((group, slot, h, w), self._moving, strict=True)
        offset = sum(i * stride for i, stride in places) * self.lanes
        rest = (c * self.view_shape[3] + w,) if self.ndim == 2 else (c, h, w)
        held = [(group * self.lanes + lane, *rest) for lane in range(self.lanes)]
        inside = [all(i < n for i, n in zip(index, self.shape, strict=True)) for index in held]
        elements = tuple(i if found else None for i, found in zip(held, inside, strict=True))
        return ViewElement(self.view_dtype, self._address(npu, offset), elements)

    # -- addresses -----------------------------------------------------------------------------

    def address(self, index: Sequence[int]) -> int:
        """The address of an element, in bytes; in local memory, NPU * npu_bytes + byte.

        >>> from gridlayout import sophon
        >>> chip = sophon.Chip(4, 1024, 128)
        >>> sophon.local((1, 6, 1, 1), "int8", chip=chip).address((0, 5, 0, 0))
        1152
        >>> sophon.system((1, 6, 1, 1), "int8", start=4096).address((0, 5, 0, 0))
        4101
        """
        where = self.locate(index)
        return self._address(where.core[0] if where.core else 0, where.offset)

    def _address(self, npu: int, offset: int) -> int:
        memory = 0 if self.chip is None else npu * self.chip.npu_bytes
        return memory + self.byte_of(offset)

    def byte_of(self, offset: int) -> int:
        """The byte of an element, counted from the start of the NPU's or the system memory."""
        check_offset(offset)
        return self.offset + offset * dtypes.bits(self.dtype) // 8


def storage_argument(tensor: Tensor) -> dict[str, Any]:
    """The `storage` or `lanes` argument of a tensor's constructor; empty for one lane."""
    if tensor.storage is not None:
        return {"storage": tensor.storage}
    return {} if tensor.lanes == 1 else {"lanes": tensor.lanes}
