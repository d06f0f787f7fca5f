"""Strides of Sophon tensors: named layouts, storage modes, strides without meaning.

A tensor is read as its *view* (groups, channels, height, columns): groups of `lanes` elements of
the first dim in a storage mode, else the first dim itself. Strides are in elements of the view,
which take `bits` bits; `slots` is how many channels an NPU holds ("channels per NPU"), in system
memory all of them. `extents` are what the strides step over: groups, slots, height, columns.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import MAX_ELEMENTS, Shape, as_shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.steps import Step, StepBuilder, nest
from gridlayout.sophon.chip import Chip, as_count

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
    """`shape` as four extents >= 1: N, C, H, W."""
    dims = as_shape(shape, "shape")
    if len(dims) != 4:
        raise LayoutError(f"shape {dims} has rank {len(dims)}; Sophon tensors are (N, C, H, W)")
    if 0 in dims:
        raise LayoutError(f"shape {dims}: N, C, H and W must be >= 1")
    return dims


def as_strides(strides: Any, extents: Shape) -> Shape:
    """`strides` as four whole numbers >= 0, in elements: N, C, H, W.

    One that makes no sense, as its extent is 1, may be None, and is then 0.

    >>> as_strides((120, None, None, 2), extents=(2, 1, 1, 10))
    (120, 0, 0, 2)
    """
    try:
        given = tuple(strides)
    except TypeError:
        raise LayoutError(f"strides {strides!r} must be a sequence of whole numbers") from None
    if len(given) != 4:
        raise LayoutError(f"strides {given} must be four: of N, C, H and W")
    for name, stride, extent in zip("NCHW", given, extents, strict=True):
        if stride is None and extent > 1:
            raise LayoutError(
                f"strides {given}: the {name} stride can't be None, as it makes sense: it steps "
                f"over {extent} {'channels of an NPU' if name == 'C' else 'indices'}"
            )
    return as_shape([0 if stride is None else stride for stride in given], "strides")


def as_lanes(storage: Any, lanes: Any, dtype: np.dtype[Any]) -> int:
    """The lanes of a storage mode, which must be one for `dtype`; or `lanes` where that is given.

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
    """The storage mode that lays `lanes` elements of `dtype` side by side, if one does."""
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
    """How many elements of `bits` bits fill whole alignments of that many bytes.

    >>> unit(128, 32), unit(128, 64), unit(64, 4)
    (32, 16, 128)
    """
    return alignment * 8 // gcd(alignment * 8, bits)


def named_strides(name: Any, view: Shape, slots: int, alignment: int, bits: int) -> Shape:
    """The strides of an `aligned`, `compact` or `line_aligned` layout (Sophon, "Layouts").

    Line-aligned, which rounds up every row instead of every feature, is the kernel library's.

    >>> named_strides("aligned", (2, 3, 4, 5), slots=2, alignment=128, bits=32)
    (64, 32, 5, 1)
    """
    if not isinstance(name, str) or name not in LAYOUTS:
        raise LayoutError(f"layout {name!r} is not one of {', '.join(LAYOUTS)}")
    _, _, height, columns = view
    whole = unit(alignment, bits)
    row = -(-columns // whole) * whole if name == "line_aligned" else columns
    feature = height * row
    if name == "aligned":
        feature = -(-feature // whole) * whole
    return (slots * feature, feature, row, 1)


def agreed(name: Any, strides: Any, view: Shape, start_npu: int, chip: Chip, bits: int) -> Shape:
    """The strides of a named layout on a chip, which given ones must be equal to."""
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
    """`LayoutError` where no tensor of that layout, or of those elements, starts at this address.

    Aligned layouts: divisible by the chip's alignment; compact: by 4 (Sophon, "Layouts"). User
    strides: by the element, or by 4 where that is wider.
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
    """The extents that the strides step over: groups, slots, height, columns."""
    groups, _, height, columns = view
    return (groups, slots, height, columns)


def moving(strides: Shape, extents: Shape) -> Shape:
    """The strides, 0 where they make no sense: N, H or W of extent 1, C with one channel in an NPU.

    >>> moving((10**6, 20, 5, 1), extents=(1, 1, 4, 5))
    (0, 0, 5, 1)
    """
    return tuple(stride if n > 1 else 0 for stride, n in zip(strides, extents, strict=True))


def span(strides: Shape, extents: Shape) -> int:
    """Elements of the view from the first one to the end of the last, in the fullest core."""
    return 1 + sum((n - 1) * stride for n, stride in zip(extents, strides, strict=True))


def as_allocation(given: Any, name: str | None, strides: Shape, extents: Shape) -> int:
    """Elements of the view that a tensor takes of each NPU; `given`, where that is enough of them.

    Kernels count N * N stride. Where the N stride makes no sense and no named layout sets it, that
    is channels per NPU * C stride, as in all layouts of the document; where that makes no sense
    either, or is less, what the elements span.

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
    """The dims whose stride moves nothing: N, H or W of extent 1, C with one channel in an NPU."""
    return tuple(d for d, n in zip("NCHW", extents, strict=True) if n == 1)


def broadcast(view: Shape, npus: int, strides: Shape) -> tuple[str, ...]:
    """The dims along which stride 0 reads one element again and again.

    Along C only channels of one NPU can share a place, so there must be more channels than NPUs.
    """
    groups, channels, height, columns = view
    extents = (groups, -(-channels // npus), height, columns)
    return tuple(d for d, n, s in zip("NCHW", extents, strides, strict=True) if s == 0 and n > 1)


def strided_steps(
    shape: Shape, view: Shape, strides: Shape, lanes: int, extent: int, npus: tuple[int, int] | None
) -> tuple[list[Step], tuple[int, ...]]:
    """The steps of a strided tensor, and the physical order of their axes.

    shape: (N, C, H, W), or (rows, columns) of a matrix. extent: elements of the buffer. npus: the
    start NPU and the count of NPUs over which channels are scattered, or None in system memory.
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
    """The whole map, for strides that don't nest: broadcasts, interleaved features."""
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
