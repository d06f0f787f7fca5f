"""MegEngine: data formats of feature maps, and strided views ("format").

    NCHW4:  (n, c, h, w) -> (n, c floordiv 4, h, w, c mod 4)
    CHWN4:  (n, c, h, w) -> (c floordiv 4, h, w, n, c mod 4)

A format is a table entry that lists the physical dims. Each is a logical dim, the number of its
block (`C//4`), or the index in its block (`C%4`). Blocks that the channels do not fill are padded.
Blocked formats are intended for the element types in `MADE_FOR` and warn about others. MegEngine's
document counts strides in bytes, its source code in elements. This module counts elements;
`strides_bytes` gives bytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Self

from gridlayout import dtypes
from gridlayout.arguments import Shape, ShapeLike, as_count, as_flag, as_shape, one_of
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.steps import Step, StepBuilder
from gridlayout.layouts.strides import elements_per_byte, row_major
from gridlayout.public import public
from gridlayout.strided import StridedLayout, as_dims, contiguous

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["FORMATS", "MADE_FOR", "FormatLayout", "StridedLayout", "contiguous", "format"]
__all__ += ["image2d", "padded_channels", "strided"]

_DATA = {
    "NCHW": "N C H W",
    "NHWC": "N H W C",
    "NCHW4": "N C//4 H W C%4",
    "NCHW8": "N C//8 H W C%8",
    "NCHW32": "N C//32 H W C%32",
    "NCHW64": "N C//64 H W C%64",
    "NCHW44": "N C//4 H W C%4",
    "NCHW88": "N C//8 H W C%8",
    "CHWN4": "C//4 H W N C%4",
    "NHWCD4": "N H C//4 W C%4",
}
# In weights, N counts output channels and C input channels. For grouped convolutions, G is the
# first of 5 dims. `N^4` is N rounded up to a multiple of 4.
_WEIGHTS = {
    "NCHW4_WEIGHT": "N^4 C//4 H W C%4",
    "NCHW88_CONV_DENSE_WEIGHT": "N//8 C//8 H W C%8 N%8",
}
FORMATS: dict[str, tuple[str, ...]] = {
    name: tuple(dims.split()) for name, dims in {**_DATA, **_WEIGHTS}.items()
}
# MegEngine, "NCHWX" and "CHWN4": dp4a multiplies four 8-bit integers at once, and a tensor core
# takes 32 of them, or 64 of 4 bits. A format that is not listed here is for any type.
MADE_FOR: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("NCHW4", "NCHW32", "CHWN4"), ("int8", "uint8")),
    "NCHW64": ("int4", "uint4"),
}


# MegEngine's document describes strided tensors too; they are defined in `gl.strided`.
strided = StridedLayout


@public
def image2d(
    shape: ShapeLike, dtype: DTypeLike, axis: int, align: int, *, oob: Any = None
) -> StridedLayout:
    """A tensor stored as a 2-D image of pixels of 4 elements (the Image2DPack4 formats).

    The dims before `axis` index rows. The other dims form one row, which is padded to a multiple
    of `align` elements. MegEngine states alignments in bytes, or in pixels on MALI.

    `LayoutError`: an axis outside [1, rank - 1]; a last dim that is not a multiple of 4.

    >>> image2d((3, 5, 8), "float32", axis=2, align=256).strides
    (1280, 256, 1)
    """
    dims, axis, align = as_dims(shape), as_count(axis, "axis"), as_count(align, "align")
    if not 1 <= axis < len(dims):
        raise LayoutError(f"axis {axis} must be in [1, {len(dims) - 1}] for the shape {dims}")
    if align < 1:
        raise LayoutError(f"align {align} must be >= 1")
    if dims[-1] % 4:
        raise LayoutError(f"shape {dims}: the last dim must be a multiple of 4, a pixel")
    row = -(-prod(dims[axis:]) // align) * align
    rows = tuple(prod(dims[k + 1 : axis]) * row for k in range(axis))
    strides = (*rows, *row_major(dims[axis:]))
    return StridedLayout(dims, strides, dtype, size=prod(dims[:axis]) * row, oob=oob)


@public
def padded_channels(channels: int, dtype: DTypeLike, *, conv: bool = True) -> int:
    """The number of channels to which MegEngine's NCHW64 transform pads `channels`.

    4-bit types are padded to a multiple of 8 for up to 32 channels, and otherwise of 64. int8 and
    uint8 are padded to a multiple of 4, and of 32 in convolutions (`conv`) with more than 16
    channels. `LayoutError` for other types.

    >>> padded_channels(9, "int4"), padded_channels(17, "int8")
    (16, 32)
    >>> padded_channels(17, "int8", conv=False)
    20
    """
    channels, kind = as_count(channels, "channels"), dtypes.as_dtype(dtype)
    if kind.name in ("int4", "uint4"):
        unit = 8 if channels <= 32 else 64
    elif kind.name in ("int8", "uint8"):
        unit = 32 if as_flag(conv, "conv") and channels > 16 else 4
    else:
        raise LayoutError(f"dtype {kind.name}: channels are padded for int4, uint4, int8 and uint8")
    return -(-channels // unit) * unit


@public
class FormatLayout(Layout):
    """A tensor of logical shape (N, C, H, W) in a data format (MegEngine, "format").

    name: one of `megengine.FORMATS`. NCHW44 and NCHW88 are the feature maps of these formats.
    `NCHW4_WEIGHT` and `NCHW88_CONV_DENSE_WEIGHT` are for weights (out channels, in channels, H, W);
    the former also takes (groups, out, in, H, W). groups: the number of groups of a grouped
    convolution; the channels of each group fill separate blocks. align: the last dim is padded to a
    multiple of this many elements; None means the smallest number that fills whole bytes (2 for
    4-bit types). oob: the padding's value. MegEngine writes 0, the zero point of asymmetric
    quantised types, or 128 if uint8 is converted to a signed type.

    `LayoutError`: a name that is not a format, another rank, channels that the groups do not
    divide. `LayoutWarning`: an element type that the format is not intended for (`made_for`).

    >>> x = format((1, 6, 1, 2), "NCHW4", "int8", groups=2, oob=0)
    >>> x.physical_shape, x.locate((0, 3, 0, 1)).offset
    ((1, 2, 1, 2, 4), 12)
    """

    def __init__(
        self,
        shape: ShapeLike,
        name: str,
        dtype: DTypeLike,
        *,
        groups: int = 1,
        align: int | None = None,
        oob: Any = None,
    ) -> None:
        kind = dtypes.as_dtype(dtype)
        one_of(name, FORMATS, "format")
        shape = _as_format_shape(shape, name)
        self.format: str = name
        self.channel_groups: int = _as_groups(groups, shape, name)
        unit = elements_per_byte(kind)
        self.align: int = unit if align is None else as_count(align, "align")
        if self.align < 1:
            raise LayoutError(f"align {self.align} must be >= 1")
        steps, order = _format_steps(shape, name, self.channel_groups, self.align)
        super().__init__(shape, kind, steps, order, oob=oob)
        _check_whole_bytes(self)
        if self.made_for and kind.name not in self.made_for:
            _warn_of_type(name, kind.name)

    def _key(self) -> tuple[Any, ...]:
        # NCHW4 and NCHW44 store feature maps in the same way, but print differently.
        return (self.format, self.channel_groups, *super()._key())

    @property
    def canonical(self) -> FormatLayout:
        """The same layout with the default `align`, if that pads as much."""
        unit = elements_per_byte(self.dtype)
        steps, order = _format_steps(self.shape, self.format, self.channel_groups, unit)
        is_same = (tuple(steps), tuple(order)) == (self.steps, self.order)
        return self._changed(align=unit) if is_same else self

    def with_dtype(self, dtype: DTypeLike, oob: Any = None) -> Self:
        """The same format with another type; `LayoutError` if 4-bit rows would share a byte.

        The padding of rows does not change: rows of a 4-bit type have an even extent in any type.
        """
        new = super().with_dtype(dtype, oob)
        _check_whole_bytes(new)
        return new

    @property
    def made_for(self) -> tuple[str, ...]:
        """The element types that the format is intended for; empty if it is for any type.

        >>> format((1, 64, 3, 3), "NCHW64", "int4").made_for
        ('int4', 'uint4')
        """
        return MADE_FOR.get(self.format, ())

    @property
    def blocks(self) -> tuple[int, ...]:
        """The extent of the innermost block of channels or images, in elements."""
        return (self.physical_shape[-1],) if "%" in FORMATS[self.format][-1] else ()

    _constructor = "megengine.format", 3

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        named: dict[str, Any] = {"shape": self.shape, "name": self.format, "dtype": self.dtype}
        named |= {"groups": self.channel_groups} if self.channel_groups != 1 else {}
        named |= {"align": self.align} if self.align != elements_per_byte(self.dtype) else {}
        return FormatLayout, {**named, "oob": self.oob}


format = FormatLayout


def _warn_of_type(name: str, kind: str) -> None:
    others = [other for other, kinds in MADE_FOR.items() if kind in kinds] or ["NCHW", "NHWC"]
    warnings.warn(
        f"format {name} is made for {' and '.join(MADE_FOR[name])}, not {kind}: its blocks "
        f"feed units that multiply small integers; use {' or '.join(others)}",
        LayoutWarning,
        stacklevel=4,
    )


def _as_format_shape(shape: Any, name: str) -> Shape:
    dims = as_shape(shape, "shape")
    grouped = name == "NCHW4_WEIGHT"
    if len(dims) != 4 and not (grouped and len(dims) == 5):
        ranks = "(N, C, H, W) or (G, N, C, H, W)" if grouped else "(N, C, H, W)"
        raise LayoutError(f"shape {dims} has rank {len(dims)}; format {name} takes {ranks}")
    if name == "NCHW88_CONV_DENSE_WEIGHT" and dims[0] % 8:
        raise LayoutError(f"shape {dims}: format {name} needs N, {dims[0]}, to be a multiple of 8")
    return dims


def _as_groups(groups: Any, shape: Shape, name: str) -> int:
    count = as_count(groups, "groups")
    if count == 1:
        return 1
    if name not in _DATA or "C//" not in _DATA[name]:
        raise LayoutError(
            f"groups {count}: only formats of feature maps in blocks of channels take groups, "
            f"not {name}"
        )
    if count < 1 or shape[1] % count:
        raise LayoutError(f"groups {count} must divide the {shape[1]} channels of {shape}")
    return count


def _format_steps(
    shape: Shape, name: str, groups: int, align: int
) -> tuple[list[Step], tuple[int, ...]]:
    """The steps of a format, and the order of the axes that remain after them."""
    builder, dims = StepBuilder(shape), FORMATS[name]
    letters = "GNCHW"[-len(shape) :]
    axes = dict(zip(letters, range(len(shape)), strict=True))
    for letter in letters:
        block = next((int(d[3:]) for d in dims if d.startswith(f"{letter}//")), None)
        if block is not None:
            count = groups if letter == "C" else 1
            axes[f"{letter}//{block}"], axes[f"{letter}%{block}"] = _blocks(
                builder, axes[letter], count, block
            )
        multiple = next((int(d[2:]) for d in dims if d.startswith(f"{letter}^")), None)
        if multiple is not None:
            extent = -(-builder.extent[axes[letter]] // multiple) * multiple
            axes[f"{letter}^{multiple}"] = builder.resize(axes[letter], extent)
    order = [axes[d] for d in (*letters[:-4], *dims)]
    last = builder.extent[order[-1]]
    order[-1] = builder.resize(order[-1], -(-last // align) * align)
    return builder.steps, tuple(order)


def _blocks(builder: StepBuilder, axis: int, groups: int, block: int) -> tuple[int, int]:
    """Split an axis into blocks; the last block of each group is padded."""
    outer = []
    if groups > 1:
        group, axis = builder.split(axis, (groups, builder.extent[axis] // groups))
        outer = [group]
    count = -(-builder.extent[axis] // block)
    major, minor = builder.split(builder.resize(axis, count * block), (count, block))
    return builder.join([*outer, major]), minor


def _check_whole_bytes(layout: FormatLayout) -> None:
    unit, last = elements_per_byte(layout.dtype), layout.physical_shape[-1]
    if last % unit:
        raise LayoutError(
            f"the last dim of {layout.format} has {last} elements of {layout.dtype.name}, which "
            f"do not fill whole bytes: give align={unit} or None"
        )
