"""`Buffers`: what every layout says of its cores' buffers; systems override what is theirs.

Who draws, lists or counts layouts asks these questions and no layout for its class.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_int
from gridlayout.layouts.reader import dims_text


class Buffers:
    """The buffers of a layout's cores: sizes in elements and bytes, and what they are made of.

    tile, face: the innermost blocks, in elements; None where the system has none. tile_format: a
    block format in which a core stores 32x32 tiles; it changes bytes only. memory_layout: how a
    Tenstorrent system deals shards or pages to cores.
    """

    dtype: np.dtype[Any]
    physical_shape: Shape
    core_rank: int
    tile: Shape | None = None
    face: Shape | None = None
    tile_format: str | None = None
    memory_layout: str | None = None

    # -- elements ------------------------------------------------------------------------------

    @property
    def core_shape(self) -> Shape:
        """The grid of cores: the leading physical dims."""
        return self.physical_shape[: self.core_rank]

    @property
    def local_shape(self) -> Shape:
        """One core's buffer, in elements: the trailing physical dims."""
        return self.physical_shape[self.core_rank :]

    @property
    def num_cores(self) -> int:
        """Cores in the virtual grid."""
        return prod(self.core_shape)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The nested blocks of a core's buffer, the outer first, in elements: tiles, faces, lanes.

        >>> from gridlayout import parse, GridLayout
        >>> parse("f32[4,8]{1,0:T(2,4)(2,1)}").blocks
        (8, 2)
        >>> GridLayout((64, 64), tile=(32, 32), face=(16, 16)).blocks
        (1024, 256)
        """
        return tuple(prod(sizes) for sizes in (self.tile, self.face) if sizes)

    @property
    def tile_counts(self) -> Shape | None:
        """The tiles of one core's buffer, along each dim; None where there are none."""
        return None

    @property
    def shard_text(self) -> str:
        """What one core's buffer is made of, in short: its tiles, or its extents.

        >>> from gridlayout import GridLayout, xla
        >>> GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).shard_text
        '1x1 of 32x32'
        >>> xla.layout((3, 5), tiles=[(2, 2)]).shard_text
        '{1,0:T(2,2)}'
        """
        if self.tile is None or self.tile_counts is None:
            return dims_text(self.local_shape)
        return f"{dims_text(self.tile_counts)} of {dims_text(self.tile)}"

    @property
    def slot_size(self) -> int | None:
        """Elements of the slots that a core's buffer is seen as; None where it has none.

        A tile; in an NPU's local memory, where one channel lies.
        """
        return self.blocks[0] if self.blocks else None

    @property
    def slot_dim(self) -> int | None:
        """The logical dim of which a slot holds one index: the channels of local memory."""
        return None

    # -- bytes ---------------------------------------------------------------------------------

    @property
    def stored_bits(self) -> int:
        """Bits that one element takes, outside of block formats."""
        return dtypes.bits(self.dtype)

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffer, padding included; tiles count in their own format."""
        if self.tile_format is not None:
            return prod(self.local_shape) // (32 * 32) * dtypes.BLOCK_FORMATS[self.tile_format]
        return -(-prod(self.local_shape) * self.stored_bits // 8)

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.num_cores * self.bytes_per_core

    def byte_of(self, offset: int) -> int | None:
        """The byte of an element of a core's buffer; None in a block format."""
        check_offset(offset)
        return None if self.tile_format else offset * self.stored_bits // 8

    def bit_of(self, offset: int) -> int | None:
        """The lowest bit of that byte that is the element's; None in a block format."""
        check_offset(offset)
        return None if self.tile_format else offset * self.stored_bits % 8

    # -- memory --------------------------------------------------------------------------------

    @property
    def memory(self) -> str | None:
        """The memory that the buffers lie in, in the words of `gl.Chip`'s capacities or others.

        None where the layout does not say.
        """
        return None

    @property
    def is_interleaved(self) -> bool:
        """Whether pages are dealt to all banks, so that the layout says of no element where it is.

        >>> from gridlayout import tenstorrent
        >>> tenstorrent.ttnn((64, 64)).is_interleaved
        True
        """
        return self.memory_layout == "interleaved"


def check_offset(offset: Any) -> None:
    """`LayoutError` unless it is a whole number, or an array of them: drawings ask for many.

    >>> check_offset(3)
    """
    if type(offset) is not int and getattr(getattr(offset, "dtype", None), "kind", "O") not in "iu":
        as_int(offset, "offset")
