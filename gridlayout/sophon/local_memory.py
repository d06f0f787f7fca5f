"""Tensors in the local memory of NPUs, and in system memory.

    local:   (n, c, h, w) -> (NPU, n * Ns + slot * Cs + h * Hs + w * Ws)
             where slot, NPU = divmod(start NPU + c, NPUs)
    system:  (n, c, h, w) -> n * Ns + c * Cs + h * Hs + w * Ws

Strides count elements. A storage mode (4N, 2N, 2IC) lays `lanes` elements of the first dim side by
side, as one element of a wider type, and its strides count those. The physical shape of a local
tensor is (NPUs, elements of its allocation in each); the byte of an element counts from the start
of the NPU's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.layout import Layout
from gridlayout.sophon import strides as rules
from gridlayout.sophon.chip import BM1684, Chip, LocalFit, as_chip, as_count

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def local(
    shape: Sequence[int],
    dtype: DTypeLike,
    layout: str | None = None,
    strides: Sequence[int] | None = None,
    start: int = 0,
    storage: str | None = None,
    chip: Chip = BM1684,
    *,
    lanes: int | None = None,
    oob: Any = None,
) -> LocalLayout:
    """A tensor (N, C, H, W) in local memory, its channels scattered over the NPUs.

    layout: "aligned" (the default), "compact" or "line_aligned"; or strides: those of N, C, H and
    W, in elements, C from a channel to the next one of the same NPU; 0 broadcasts. start: the
    linear address in bytes, NPU * npu_bytes + offset. storage: None, "4N", "2N" or "2IC"; strides
    then count groups of 4 or 2 elements; lanes: such a group for any dtype. oob: the padding's
    value.

    `LayoutError`: extents < 1, an address that the layout does not allow or outside the chip, a
    storage mode of another dtype, layout and strides that contradict one another. Whether the
    tensor fits is a question of its own: `LocalLayout.fits`.

    >>> x = local((2, 3, 4, 5), "float32", start=2048, chip=Chip(4, 1024, 128))
    >>> x.strides, x.channels_per_npu, x.physical_shape
    ((64, 32, 5, 1), 2, (4, 128))
    >>> x.locate((1, 2, 0, 3))
    Location(core=(0,), local=(99,), offset=99, byte=396)
    """
    shape, kind, chip = rules.as_nchw(shape), dtypes.as_dtype(dtype), as_chip(chip)
    start_npu, _ = chip.split(start)
    count = rules.as_lanes(storage, lanes, kind)
    view = (-(-shape[0] // count), *shape[1:])
    if strides is None and layout is None:
        layout = "aligned"
    if layout is not None:
        strides = rules.agreed(layout, strides, view, start_npu, chip, count * dtypes.bits(kind))
    return LocalLayout(shape, kind, view, strides, start, chip, lanes=count, name=layout, oob=oob)


def matrix(
    rows: int,
    cols: int,
    width: int,
    dtype: DTypeLike,
    start: int = 0,
    chip: Chip = BM1684,
    *,
    strides: Sequence[int] | None = None,
    oob: Any = None,
) -> LocalLayout:
    """A matrix in local memory: `width` columns a channel, aligned (Sophon, "Matrix Layout").

    The logical shape is (rows, cols); row r, column m is (r, m // width, 0, m % width) of a tensor
    (rows, ceil(cols / width), 1, width), whose last channel may be partly padding. strides: of that
    tensor, in elements, if not the aligned ones. start: the linear address in bytes.

    `LayoutError`: a width outside [1, cols] (`best_width` gives the best one), or a bad address.

    >>> matrix(2, 40, 15, "float32", chip=Chip(4, 1024, 128)).locate((1, 39))
    Location(core=(2,), local=(41,), offset=41, byte=164)
    """
    rows, cols = as_count(rows, "rows", least=1), as_count(cols, "cols", least=1)
    kind, chip = dtypes.as_dtype(dtype), as_chip(chip)
    start_npu, _ = chip.split(start)
    width = as_count(width, "width (see sophon.best_width)")
    if not 1 <= width <= cols:
        raise LayoutError(
            f"width {width} must be in [1, {cols}], the columns; "
            "sophon.best_width(rows, cols, dtype, chip) gives the best one"
        )
    view = (rows, -(-cols // width), 1, width)
    name = "aligned" if strides is None else None
    if name is not None:
        strides = rules.agreed(name, None, view, start_npu, chip, dtypes.bits(kind))
    return LocalLayout((rows, cols), kind, view, strides, start, chip, name=name, oob=oob)


def system(
    shape: Sequence[int],
    dtype: DTypeLike,
    strides: Sequence[int] | None = None,
    storage: str | None = None,
    *,
    lanes: int | None = None,
    oob: Any = None,
) -> SystemLayout:
    """A tensor (N, C, H, W) in system memory (Sophon, "Strides in System Memory").

    strides: those of N, C, H and W, in elements, or None for the continuous layout; 0 broadcasts.
    storage, lanes, oob: as in `local`; 4N data that a chip reads is stored so here too.

    >>> system((2, 3, 4, 5), "float32").strides
    (60, 20, 5, 1)
    """
    shape, kind = rules.as_nchw(shape), dtypes.as_dtype(dtype)
    count = rules.as_lanes(storage, lanes, kind)
    return SystemLayout(shape, kind, strides, count, oob=oob)


class LocalLayout(Layout):
    """A tensor or a matrix in local memory; `local` and `matrix` make it.

    layout: the name of its strides, None for user strides. strides: of N, C, H, W, in elements of
    the view. view_shape: the 4-D shape that they are of. lanes: elements side by side, 1 without a
    storage mode. start: the linear address in bytes; start_npu and offset are its parts.

    One NPU's buffer is the allocation: N * N stride elements of the view, as kernels count it, or
    what the elements span where that is more.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike,
        view_shape: Shape,
        strides: Any,
        start: int,
        chip: Chip,
        *,
        lanes: int = 1,
        name: str | None = None,
        oob: Any = None,
    ) -> None:
        kind = dtypes.as_dtype(dtype)
        self.chip: Chip = chip
        self.start: int = as_count(start, "start")
        self.start_npu, self.offset = chip.split(start)
        self.view_shape: Shape = view_shape
        self.strides: Shape = rules.as_strides(strides)
        self.lanes: int = lanes
        self.layout: str | None = name
        rules.check_start(self.start, name, chip, lanes * dtypes.bits(kind))
        span = rules.span(view_shape, self.channels_per_npu, self.strides)
        extent = lanes * max(view_shape[0] * self.strides[0], span)
        npus = (self.start_npu, chip.npus)
        steps, order = rules.strided_steps(shape, view_shape, self.strides, lanes, extent, npus)
        super().__init__(shape, kind, steps, order, core_rank=1, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.view_shape, self.strides, self.lanes),
            *(self.start, self.chip, repr(self.oob)),
        )

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, of another type: aligned ones may then be user strides.

        `LayoutError` where the start is no address for an element of that type.
        """
        new = super().with_dtype(dtype, oob)
        name, bits = self.layout, self.lanes * dtypes.bits(new.dtype)
        slots, alignment = self.channels_per_npu, self.chip.alignment
        if name is not None and self.strides != rules.named_strides(
            name, self.view_shape, slots, alignment, bits
        ):
            name = None
        rules.check_start(self.start, name, self.chip, bits)
        return new._changed(layout=name)

    def __repr__(self) -> str:
        strides: dict[str, Any] = {} if self.layout else {"strides": self.strides}
        extras = {**_storage(self), "chip": self.chip, **_oob(self)}
        if self.ndim == 2:
            sizes = (*self.shape, self.view_shape[3], self.dtype.name)
            return call_text("sophon.matrix", *sizes, start=self.start, **strides, **extras)
        named = strides or {"layout": self.layout}
        tensor = (self.shape, self.dtype.name)
        return call_text("sophon.local", *tensor, **named, start=self.start, **extras)

    def byte_of(self, offset: int) -> int:
        """The byte of an element, counted from the start of the NPU's memory."""
        return self.offset + offset * dtypes.bits(self.dtype) // 8

    def check_invertible(self) -> None:
        """`LayoutError` naming two indices that share an element, if there are any."""
        rules.check_destination(self, self.chip.npus)
        super().check_invertible()

    @property
    def channels_per_npu(self) -> int:
        """ceil((start NPU + C) / NPUs): rows of channels that the allocation has room for.

        The start's offset is that of every NPU, so a channel that wraps to an NPU before the start
        lies in its second row (Sophon, "Scatter Features to Different NPUs").
        """
        return rules.channels_per_npu(self.start_npu, self.view_shape[1], self.chip.npus)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The lanes of a storage mode, in elements."""
        return (self.lanes,) if self.lanes > 1 else ()

    @property
    def storage(self) -> str | None:
        """The storage mode: "4N", "2N", "2IC" or None."""
        return rules.storage_name(self.lanes, self.dtype)

    @property
    def slot_size(self) -> int | None:
        """Elements from a channel to the next one of the same NPU; lanes where there is no such."""
        return self.strides[1] * self.lanes if self.strides[1] else super().slot_size

    @property
    def slot_dim(self) -> int | None:
        """The channels of a tensor."""
        return 1 if self.ndim == 4 else None

    @property
    def dummies(self) -> int:
        """Dummy elements that make up the last group of a storage mode, at each position."""
        return self.view_shape[0] * self.lanes - self.shape[0]

    @property
    def last_channel_width(self) -> int:
        """Columns in the last channel: fewer than the width where a matrix's columns run out."""
        _, channels, _, width = self.view_shape
        return self.shape[1] - (channels - 1) * width if self.ndim == 2 else width

    @property
    def strides_without_meaning(self) -> tuple[str, ...]:
        """The dims whose stride moves no element (Sophon, "Strides in Local Memory").

        >>> local((2, 3, 1, 10), "float32", strides=(120, 0, 0, 2)).strides_without_meaning
        ('C', 'H')
        """
        return rules.without_meaning(self.view_shape, self.channels_per_npu)

    @property
    def broadcast(self) -> tuple[str, ...]:
        """The dims that stride 0 repeats: such a tensor can be a source, not a destination.

        >>> local((2, 3, 4, 5), "float32", strides=(0, 20, 5, 1)).broadcast
        ('N',)
        """
        return rules.broadcast(self.view_shape, self.chip.npus, self.strides)

    def scatter(self, channel: int) -> tuple[int, int]:
        """The NPU of a channel, and its row there: divmod(start NPU + channel, NPUs), swapped.

        >>> local((1, 6, 1, 1), "int8", start=3 * 1024, chip=Chip(4, 1024, 128)).scatter(5)
        (0, 2)
        """
        if as_count(channel, "channel") >= self.view_shape[1]:
            raise LayoutError(f"channel {channel} is outside the {self.view_shape[1]} channels")
        slot, npu = divmod(self.start_npu + channel, self.chip.npus)
        return npu, slot

    def address(self, index: Sequence[int]) -> int:
        """The linear local address of an element, in bytes: NPU * npu_bytes + byte.

        >>> local((1, 6, 1, 1), "int8", chip=Chip(4, 1024, 128)).address((0, 5, 0, 0))
        1152
        """
        where = self.locate(index)
        return where.core[0] * self.chip.npu_bytes + self.byte_of(where.offset)

    @property
    def span_bytes(self) -> int:
        """Bytes from the start to the end of the last element, in the fullest NPU."""
        elements = rules.span(self.view_shape, self.channels_per_npu, self.strides)
        return -(-elements * self.lanes * dtypes.bits(self.dtype) // 8)

    def fits(self) -> LocalFit:
        """Whether the allocation ends inside the NPUs' memory: offset + N * N stride <= npu_bytes.

        >>> print(local((4, 3, 227, 227), "float32", start=97280).fits())
        does not fit: 824832 B from byte 97280 of the 524288 B of each NPU, -397824 B free
        """
        return LocalFit(self.offset, self.bytes_per_core, self.chip.npu_bytes)

    def bank_range(self) -> tuple[int, int]:
        """The first and the last memory bank that the allocation touches, in each NPU.

        >>> local((4, 64, 64, 64), "float32", start=65536).bank_range()
        (1, 1)
        """
        return self.chip.bank_range(self.start, self.bytes_per_core)


class SystemLayout(Layout):
    """A tensor in system memory; `system` makes it. Bytes count from the tensor's first element.

    strides: of N, C, H, W, in elements of the view. view_shape: the shape that they are of. lanes:
    elements side by side, 1 without a storage mode.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike,
        strides: Any = None,
        lanes: int = 1,
        *,
        oob: Any = None,
    ) -> None:
        self.view_shape: Shape = (-(-shape[0] // lanes), *shape[1:])
        self.strides: Shape = self._continuous if strides is None else rules.as_strides(strides)
        self.lanes: int = lanes
        extent = lanes * rules.span(self.view_shape, shape[1], self.strides)
        steps, order = rules.strided_steps(
            shape, self.view_shape, self.strides, lanes, extent, None
        )
        super().__init__(shape, dtype, steps, order, oob=oob)

    @property
    def _continuous(self) -> Shape:
        _, channels, height, width = self.view_shape
        return (channels * height * width, height * width, width, 1)

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.strides, self.lanes, repr(self.oob))

    def __repr__(self) -> str:
        strides = {} if self.strides == self._continuous else {"strides": self.strides}
        extras = {**strides, **_storage(self), **_oob(self)}
        return call_text("sophon.system", self.shape, self.dtype.name, **extras)

    def check_invertible(self) -> None:
        """`LayoutError` naming two indices that share an element, if there are any."""
        rules.check_destination(self, 1)
        super().check_invertible()

    @property
    def blocks(self) -> tuple[int, ...]:
        """The lanes of a storage mode, in elements."""
        return (self.lanes,) if self.lanes > 1 else ()

    @property
    def storage(self) -> str | None:
        """The storage mode: "4N", "2N", "2IC" or None."""
        return rules.storage_name(self.lanes, self.dtype)

    @property
    def strides_without_meaning(self) -> tuple[str, ...]:
        """The dims of extent 1, whose stride moves no element.

        >>> system((1, 3, 4, 1), "float32").strides_without_meaning
        ('N', 'W')
        """
        return rules.without_meaning(self.view_shape, self.shape[1])

    @property
    def broadcast(self) -> tuple[str, ...]:
        """The dims that stride 0 repeats: such a tensor can be a source, not a destination."""
        return rules.broadcast(self.view_shape, 1, self.strides)


def _storage(layout: LocalLayout | SystemLayout) -> dict[str, Any]:
    if layout.storage is not None:
        return {"storage": layout.storage}
    return {} if layout.lanes == 1 else {"lanes": layout.lanes}


def _oob(layout: Layout) -> dict[str, Any]:
    if layout.oob is None:
        return {}
    word = dtypes.oob_text(layout.oob)
    return {"oob": word if word in dtypes.OOB_NAMES else layout.oob}
