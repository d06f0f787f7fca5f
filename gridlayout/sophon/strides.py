"""Strides of Sophon tensors: named layouts, storage modes, and strides that have no effect.

Strides apply to the *view* of a tensor, of shape (groups, channels, height, columns). In a storage
mode, `lanes` elements of the first dim form a group; otherwise a group is one element. Strides are
in elements of the view, which take `bits` bits. `slots` is the number of channels in an NPU
("channels per NPU"); in system memory it is the number of all channels. `extents` are the extents
that the strides apply to: groups, slots, height, columns.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import MAX_ELEMENTS, Shape, as_count, as_items, as_shape, one_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.steps import Step, StepBuilder, nest
from gridlayout.sophon.chip import Chip

if TYPE_CHECKING:
    import numpy as np

LAYOUTS = ("aligned", "compact", "line_aligned")
# Sophon, "Storage Modes": lanes, and the element types that a mode is for.
STORAGE: dict[str, tuple[int, tuple[str, ...]]] = {
    "4N": (4, ("int8", "uint8")),
    "2N": (2, ("int16", "uint16")),
    "2IC": (2, ("float32",)),
}


def as_nchw(shape: Any) -> Shape:
    """Return `shape` as four extents >= 1: N, C, H, W."""
    dims = as_shape(shape, "shape")
    if len(dims) != 4:
        raise LayoutError(f"shape {dims} has rank {len(dims)}; Sophon tensors are (N, C, H, W)")
    if 0 in dims:
        raise LayoutError(f"shape {dims}: N, C, H and W must be >= 1")
    return dims


def as_strides(strides: Any, extents: Shape) -> Shape:
    """Return `strides` as four ints >= 0, in elements: N, C, H, W.

    A stride that has no effect, because its extent is 1, may be None, and becomes 0.

    >>> as_strides((120, None, None, 2), extents=(2, 1, 1, 10))
    (120, 0, 0, 2)
    """
    given = as_items(strides, "strides", "whole numbers")
    if len(given) != 4:
        raise LayoutError(f"strides {given} must be four: of N, C, H and W")
    for name, stride, extent in zip("NCHW", given, extents, strict=True):
        if stride is None and extent > 1:
            raise LayoutError(
                f"strides {given}: the {name} stride can't be None, because it applies to "
                f"{extent} {'channels of an NPU' if name == 'C' else 'indices'}"
            )
    return as_shape([0 if stride is None else stride for stride in given], "strides")


def as_lanes(storage: Any, lanes: Any, dtype: np.dtype[Any]) -> int:
    """Return the lanes of a storage mode, which must be for `dtype`, or `lanes` if given.

    >>> import numpy as np
    >>> as_lanes("4N", None, np.dtype("int8"))
    4
    """
    if storage is None:
        return 1 if lanes is None else as_count(lanes, "lanes", least=1)
    if lanes is not None:
        raise LayoutError(f"give either storage {storage!r} or lanes {lanes!r}, not both")
    if not isinstance(storage, str) or storage not in STORAGE:
        raise LayoutError(f"storage {storage!r} is not one of {', '.join(STORAGE)}, or None")
    count, names = STORAGE[storage]
    if dtype.name not in names:
        raise LayoutError(
            f"storage {storage!r} is for {' and '.join(names)}, not {dtype.name}: give one of "
            f"these dtypes, or lanes={count}"
        )
    return count


def storage_name(lanes: int, dtype: np.dtype[Any]) -> str | None:
    """The storage mode with `lanes` lanes for `dtype`, or None."""
    for name, (count, names) in STORAGE.items():
        if count == lanes and dtype.name in names:
            return name
    return None


def channels_per_npu(start_npu: int, channels: int, npus: int) -> int:
    """ceil((start NPU + channels) / NPUs) (Sophon, "Scatter Features to Different NPUs").

    >>> channels_per_npu(3, 6, 4)
    3
    """
    return -(-(start_npu + channels) // npus)


def unit(alignment: int, bits: int) -> int:
    """The smallest number of elements whose bytes are a multiple of `alignment` bytes.

    >>> unit(128, 32), unit(128, 64), unit(64, 4)
    (32, 16, 128)
    """
    return alignment * 8 // gcd(alignment * 8, bits)


def named_strides(name: Any, view: Shape, slots: int, alignment: int, bits: int) -> Shape:
    """The strides of an `aligned`, `compact` or `line_aligned` layout (Sophon, "Layouts").

    The line-aligned layout, which rounds up every row instead of every feature, is from Sophon's
    kernel library.

    >>> named_strides("aligned", (2, 3, 4, 5), slots=2, alignment=128, bits=32)
    (64, 32, 5, 1)
    """
    one_of(name, LAYOUTS, "layout")
    _, _, height, columns = view
    multiple = unit(alignment, bits)
    row = -(-columns // multiple) * multiple if name == "line_aligned" else columns
    feature = height * row
    if name == "aligned":
        feature = -(-feature // multiple) * multiple
    return (slots * feature, feature, row, 1)


def agreed(name: Any, strides: Any, view: Shape, start_npu: int, chip: Chip, bits: int) -> Shape:
    """The strides of a named layout on a chip; LayoutError if `strides` are given and differ."""
    slots = channels_per_npu(start_npu, view[1], chip.npus)
    found, extents = named_strides(name, view, slots, chip.alignment, bits), steps_over(view, slots)
    given = found if strides is None else as_strides(strides, extents)
    if moving(given, extents) != moving(found, extents):
        raise LayoutError(
            f"strides {given} are not those of the {name} layout, {found}: give one of "
            "layout and strides"
        )
    return found


def check_start(start: int, name: str | None, chip: Chip, bits: int) -> None:
    """Raise `LayoutError` if a tensor of this layout can't start at this address.

    Addresses of aligned layouts are divisible by the chip's alignment, those of compact layouts by
    4 (Sophon, "Layouts"). With user strides they are divisible by the element's bytes, or by 4 for
    wider elements.
    """
    if name is None:
        rule, divisor = f"an element of {bits} bits with user strides", min(max(bits // 8, 1), 4)
    else:
        rule, divisor = f"the {name} layout", 4 if name == "compact" else chip.alignment
    if start % divisor:
        raise LayoutError(
            f"start {start} must be divisible by {divisor} for {rule}: "
            f"use {start // divisor * divisor} or {-(-start // divisor) * divisor}"
        )


def steps_over(view: Shape, slots: int) -> Shape:
    """The extents that the strides apply to: groups, slots, height, columns."""
    groups, _, height, columns = view
    return (groups, slots, height, columns)


def moving(strides: Shape, extents: Shape) -> Shape:
    """The strides, with 0 for those that have no effect because their extent is 1.

    >>> moving((10**6, 20, 5, 1), extents=(1, 1, 4, 5))
    (0, 0, 5, 1)
    """
    return tuple(stride if n > 1 else 0 for stride, n in zip(strides, extents, strict=True))


def span(strides: Shape, extents: Shape) -> int:
    """Elements of the view from the first to the last, inclusive, in the fullest NPU."""
    return 1 + sum((n - 1) * stride for n, stride in zip(extents, strides, strict=True))


def as_allocation(given: Any, name: str | None, strides: Shape, extents: Shape) -> int:
    """Return the elements of the view that a tensor takes in each NPU; `given` if not None.

    The default is N * N stride, as in Sophon's kernels. If the N stride has no effect and no named
    layout sets it, it is channels per NPU * C stride, as in all layouts of the document. The result
    is at least the span of the elements. `LayoutError` if `given` is less than this span.

    >>> as_allocation(None, None, (10**6, 20, 5, 1), extents=(1, 1, 4, 5))
    20
    """
    groups, slots, *_ = extents
    least = span(strides, extents)
    if given is None:
        if name is not None or groups > 1:
            return max(groups * strides[0], least)
        return max(slots * strides[1], least) if slots > 1 else least
    found = as_count(given, "allocation")
    if found < least:
        raise LayoutError(
            f"allocation {found} ends before the last element: strides {strides} span {least} "
            "elements of the view; give that many, or None"
        )
    return found


def without_meaning(extents: Shape) -> tuple[str, ...]:
    """The dims whose stride has no effect: N, H or W of extent 1, C with one channel per NPU."""
    return tuple(d for d, n in zip("NCHW", extents, strict=True) if n == 1)


def broadcast(view: Shape, npus: int, strides: Shape) -> tuple[str, ...]:
    """The dims along which a stride of 0 repeats one element.

    Along C only channels of the same NPU can share an element, so this needs more channels than
    NPUs.
    """
    groups, channels, height, columns = view
    extents = (groups, -(-channels // npus), height, columns)
    return tuple(d for d, n, s in zip("NCHW", extents, strides, strict=True) if s == 0 and n > 1)


def strided_steps(
    shape: Shape, view: Shape, strides: Shape, lanes: int, extent: int, npus: tuple[int, int] | None
) -> tuple[list[Step], tuple[int, ...]]:
    """The steps of a strided tensor, and the physical order of their axes.

    shape: (N, C, H, W), or (rows, columns) of a matrix. extent: elements of the buffer. npus: the
    start NPU and the number of NPUs over which channels are scattered; None in system memory.
    """
    if extent > MAX_ELEMENTS:
        raise LayoutError(f"shape {shape} with strides {strides} takes more than 2**62 elements")
    groups, channels, height, columns = view
    start, count = npus or (0, 1)
    slots = channels_per_npu(start, channels, count)
    n_stride, c_stride, h_stride, w_stride = (stride * lanes for stride in strides)
    extents = dict(enumerate((groups, slots, height, columns, lanes)))
    terms = enumerate((n_stride, c_stride, h_stride, w_stride, 1))
    builder = StepBuilder(shape)
    if nest([(stride, axis) for axis, stride in terms], extents) is None:
        map = _scatter_map(len(shape), columns, strides, lanes, npus)
        return builder.steps, builder.scatter(map, (extent,) if npus is None else (count, extent))
    if len(shape) == 2:
        slot, w = builder.split(builder.resize(1, channels * columns), (channels, columns))
        inner = [(w_stride, w)]
    else:
        slot, inner = 1, [(h_stride, 2), (w_stride, 3)]
    order: tuple[int, ...] = ()
    if npus is not None:
        padded = builder.resize(builder.pad(slot, start, 0), slots * count)
        slot, npu = builder.split(padded, (slots, count))
        order = (npu,)
    group = 0
    if lanes > 1:
        group, lane = builder.split(builder.resize(0, groups * lanes), (groups, lanes))
        inner.append((1, lane))
    offset = builder.strided([(n_stride, group), (c_stride, slot), *inner], 0, extent)
    return builder.steps, (*order, offset)


def _scatter_map(
    rank: int, columns: int, strides: Shape, lanes: int, npus: tuple[int, int] | None
) -> AffineMap:
    """The complete index map, for strides that don't nest: broadcasts, interleaved features."""
    n_stride, c_stride, h_stride, w_stride = (stride * lanes for stride in strides)
    if rank == 2:
        channel, h, w = dim(1) // columns, constant(0), dim(1) % columns
    else:
        channel, h, w = dim(1), dim(2), dim(3)
    start, count = npus or (0, 1)
    slot = (channel + start) // count
    group, lane = dim(0) // lanes, dim(0) % lanes
    offset = group * n_stride + slot * c_stride + h * h_stride + w * w_stride + lane
    results = (offset,) if npus is None else ((channel + start) % count, offset)
    return AffineMap(rank, results)
