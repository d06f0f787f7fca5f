"""Tensors and matrices in the local memory of NPUs.

    (n, c, h, w) -> (NPU, n * Ns + slot * Cs + h * Hs + w * Ws)
    where slot, NPU = divmod(start NPU + c, NPUs)

Strides count elements of the view (`gridlayout.sophon.tensors`). The physical shape is (NPUs,
elements of the allocation per NPU). Bytes count from the start of the NPU's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_count
from gridlayout.errors import LayoutError
from gridlayout.layouts.call_text import call_text
from gridlayout.layouts.memory import Chip as GridChip
from gridlayout.layouts.memory import Fit, size
from gridlayout.public import public
from gridlayout.sophon import strides as rules
from gridlayout.sophon.chip import BM1684, Chip, LocalFit, as_chip
from gridlayout.sophon.tensors import Tensor, storage_argument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@public
def local(
    shape: Sequence[int],
    dtype: DTypeLike,
    layout: str | None = None,
    strides: Sequence[int | None] | None = None,
    start: int = 0,
    storage: str | None = None,
    chip: Chip = BM1684,
    *,
    lanes: int | None = None,
    allocation: int | None = None,
    oob: Any = None,
) -> LocalLayout:
    """Return a tensor (N, C, H, W) in local memory, with its channels scattered over the NPUs.

    layout: "aligned" (the default), "compact" or "line_aligned". strides: instead of a layout, the
    strides of N, C, H and W in elements; C is the stride between channels of the same NPU. 0
    broadcasts, and a stride that has no effect may be None. start: the linear address in bytes, NPU
    * npu_bytes + offset. storage: None, "4N", "2N" or "2IC"; strides then count groups of 4 or 2
    elements. lanes: the size of such a group, for any dtype. allocation: elements of the view that
    the tensor takes in each NPU, if different from what layout or strides imply. oob: the padding's
    value.

    `LayoutError`: extents < 1; an address outside the chip or not allowed for the layout; a storage
    mode for another dtype; layout and strides that contradict each other; None for a stride that
    has an effect; an allocation that ends before the last element. `LocalLayout.fits` tells whether
    the tensor fits in memory.

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
    place = (view, strides, start, chip)
    return LocalLayout(
        shape, kind, *place, lanes=count, name=layout, allocation=allocation, oob=oob
    )


@public
def matrix(
    rows: int,
    cols: int,
    width: int,
    dtype: DTypeLike,
    start: int = 0,
    chip: Chip = BM1684,
    *,
    strides: Sequence[int | None] | None = None,
    allocation: int | None = None,
    oob: Any = None,
) -> LocalLayout:
    """Return a matrix in local memory with `width` columns per channel (Sophon, "Matrix Layout").

    The logical shape is (rows, cols). Row r, column m is the element (r, m // width, 0, m % width)
    of a tensor (rows, ceil(cols / width), 1, width), whose last channel may be partly padding.
    strides: those of this tensor, in elements; None means aligned. start: the linear address in
    bytes. allocation: as in `local`.

    `LayoutError`: a width outside [1, cols] (`best_width` returns the best width); a bad address.

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
            "sophon.best_width(rows, cols, dtype, chip) returns the best width"
        )
    view = (rows, -(-cols // width), 1, width)
    name = "aligned" if strides is None else None
    if name is not None:
        strides = rules.agreed(name, None, view, start_npu, chip, dtypes.bits(kind))
    place = (view, strides, start, chip)
    return LocalLayout((rows, cols), kind, *place, name=name, allocation=allocation, oob=oob)


@public
class LocalLayout(Tensor):
    """A tensor or a matrix in local memory; created by `local` and `matrix`.

    layout: the name of its strides, or None for user strides. start: the linear address in bytes;
    start_npu and offset are its parts. allocation: elements of the view that it takes in each NPU.
    This is N * N stride, as in Sophon's kernels, or the span of the elements if that is larger. A
    user stride that has no effect is not counted.
    """

    chip: Chip

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
        allocation: int | None = None,
        oob: Any = None,
    ) -> None:
        kind, start = dtypes.as_dtype(dtype), as_count(start, "start")
        rules.check_start(start, name, chip, lanes * dtypes.bits(kind))
        start_npu, _ = chip.split(start)
        slots = rules.channels_per_npu(start_npu, view_shape[1], chip.npus)
        extents = rules.steps_over(view_shape, slots)
        strides = rules.as_strides(strides, extents)
        self.layout: str | None = name
        self.allocation: int = rules.as_allocation(allocation, name, strides, extents)
        place = (view_shape, strides, lanes, start, chip)
        super().__init__(shape, kind, *place, allocation=self.allocation, oob=oob)

    def _key(self) -> tuple[Any, ...]:
        return (
            *(self.shape, self.dtype, self.view_shape, self._moving, self.lanes),
            *(self.start, self.chip, self.allocation, repr(self.oob)),
        )

    @property
    def canonical(self) -> LocalLayout:
        """The same layout by the name of its strides; without a name, 0 for those of no effect."""
        bits, alignment = self.lanes * dtypes.bits(self.dtype), self.chip.alignment
        place = self.view_shape, self.channels_per_npu, alignment, bits
        for name in rules.LAYOUTS if self.ndim == 4 else ("aligned",):
            strides = rules.named_strides(name, *place)
            if rules.moving(strides, self._extents) == self._moving:
                with suppress(LayoutError):
                    rules.check_start(self.start, name, self.chip, bits)
                    return self._changed(layout=name, strides=strides)
        return self._changed(layout=None, strides=self._moving)

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same strides, in elements, with another type; `layout` may become None.

        `LayoutError` if the start is not a valid address for elements of that type.
        """
        new = super().with_dtype(dtype, oob)
        name, bits = self.layout, self.lanes * dtypes.bits(new.dtype)
        if name is not None and self.strides != rules.named_strides(
            name, self.view_shape, self.channels_per_npu, self.chip.alignment, bits
        ):
            name = None
        rules.check_start(self.start, name, self.chip, bits)
        return new._changed(layout=name)

    _either = (("layout", "strides"), ("storage", "lanes"))

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        strides: dict[str, Any] = {} if self.layout else {"strides": self.strides}
        own = {} if self.own_allocation is None else {"allocation": self.own_allocation}
        rest = {**storage_argument(self), "chip": self.chip, **own, "oob": self.oob}
        if self.ndim == 2:
            rows, cols = self.shape
            sizes = {"rows": rows, "cols": cols, "width": self.view_shape[3], "dtype": self.dtype}
            return matrix, {**sizes, "start": self.start, **strides, **rest}
        named = strides or {"layout": self.layout}
        return local, {
            **{"shape": self.shape, "dtype": self.dtype},
            **named,
            "start": self.start,
            **rest,
        }

    def __repr__(self) -> str:
        made, named = self._call()
        return call_text(f"sophon.{made.__name__}", named, 4 if self.ndim == 2 else 2)

    @property
    def own_allocation(self) -> int | None:
        """The allocation if layout or strides do not imply it, otherwise None."""
        usual = rules.as_allocation(None, self.layout, self.strides, self._extents)
        return None if self.allocation == usual else self.allocation

    @property
    def slot_size(self) -> int | None:
        """Elements from a feature to the next one of the same NPU.

        For a single feature this is the allocation. For a stride of 0 it is the number of lanes, or
        None without lanes.
        """
        groups, slots, *_ = self._extents
        n_stride, c_stride, *_ = self._moving
        step = c_stride if slots > 1 else n_stride if groups > 1 else self.allocation
        return step * self.lanes if step else super().slot_size

    @property
    def slot_dim(self) -> int | None:
        """The channels of a tensor."""
        return 1 if self.ndim == 4 else None

    @property
    def last_channel_width(self) -> int:
        """Columns in the last channel; in a matrix, this may be less than the width."""
        _, channels, _, width = self.view_shape
        return self.shape[1] - (channels - 1) * width if self.ndim == 2 else width

    def scatter(self, channel: int) -> tuple[int, int]:
        """The NPU of a channel, and the channel's row there.

        These are (start NPU + channel) mod NPUs and (start NPU + channel) floordiv NPUs.

        >>> local((1, 6, 1, 1), "int8", start=3 * 1024, chip=Chip(4, 1024, 128)).scatter(5)
        (0, 2)
        """
        if as_count(channel, "channel") >= self.view_shape[1]:
            raise LayoutError(f"channel {channel} is outside the {self.view_shape[1]} channels")
        slot, npu = divmod(self.start_npu + channel, self.chip.npus)
        return npu, slot

    def fits(self, chip: GridChip | str | None = None) -> LocalFit | Fit:  # type: ignore[override]
        """Whether the allocation ends inside the NPUs' memory: offset + size <= npu_bytes.

        chip: a `gl.Chip` or its name, as for other layouts. Such a chip states no NPU's memory, so
        the result is then a `Fit` without a capacity.

        >>> print(local((4, 3, 227, 227), "float32", start=97280).fits())
        does not fit: 824832 B from byte 97280 of the 524288 B of each NPU, -397824 B free
        """
        if chip is not None:
            return super().fits(chip)
        return LocalFit(self.offset, self.bytes_per_core, self.chip.npu_bytes)

    @property
    def own_fit(self) -> str:
        """Whether the tensor fits the NPUs of its own chip, as text."""
        free = self.chip.npu_bytes - self.offset - self.bytes_per_core
        if free < 0:
            return f"NO, lacks {size(-free)} per NPU"
        return f"{size(free)} left in each NPU"

    def bank_range(self) -> tuple[int, int]:
        """The first and the last memory bank of the allocation, in each NPU.

        >>> local((4, 64, 64, 64), "float32", start=65536).bank_range()
        (1, 1)
        """
        return self.chip.bank_range(self.start, self.bytes_per_core)
