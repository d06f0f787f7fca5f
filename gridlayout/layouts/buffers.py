"""`Buffers`: what every layout says of its cores' buffers; systems override what is theirs.

Who draws, lists or counts layouts asks these questions and no layout for its class.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_int
from gridlayout.layouts.folding import per_device
from gridlayout.layouts.memory import Chip, Fit, Held, as_chip
from gridlayout.layouts.reader import dims_text


class Buffers:
    """The buffers of a layout's cores: sizes in elements and bytes, and what they are made of.

    tile, face: the innermost blocks, in elements; None where the system has none. tile_format: a
    block format in which a core stores 32x32 tiles; it changes bytes only. memory_layout: how a
    Tenstorrent system deals shards or pages to cores. workers: the grid to whose cores pages are
    dealt, where it is not all of the chip's. one_bank_per_shard: whether a buffer in DRAM is in one bank
    of it; else the whole is spread over all.
    """

    dtype: np.dtype[Any]
    shape: Shape
    physical_shape: Shape
    core_rank: int
    tile: Shape | None = None
    face: Shape | None = None
    tile_format: str | None = None
    memory_layout: str | None = None
    workers: Shape | None = None
    one_bank_per_shard: bool = False

    # -- elements ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Logical elements."""
        return prod(self.shape)

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

    @property
    def page_elements(self) -> int:
        """Elements of a core's buffer that lie side by side; after them bytes may hold none.

        >>> from gridlayout import GridLayout, tenstorrent
        >>> GridLayout((4, 6), grid=(2, 1)).page_elements
        12
        >>> tenstorrent.tensor_layout((4, 6), page="row_major", page_alignment=64).page_elements
        6
        """
        return prod(self.local_shape)

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
    def allocated_per_core(self) -> int:
        """Bytes that one core's buffer takes, in whole pages where L1 has such."""
        return self.bytes_per_core

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.num_cores * self.bytes_per_core

    @property
    def data_bytes(self) -> int:
        """Bytes that the logical elements alone take, in the layout's own element size.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), "bfloat16", tile=(32, 32), tile_format="bfp_bf8").data_bytes
        3548
        """
        if self.tile_format is not None:
            return -(-self.size * dtypes.BLOCK_FORMATS[self.tile_format] // (32 * 32))
        return -(-self.size * self.stored_bits // 8)

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all buffers beyond the data; 0 for a view that holds elements once for many.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).wasted_bytes
        11220
        """
        return max(self.nbytes - self.data_bytes, 0)

    @property
    def expansion_factor(self) -> float:
        """Bytes of all buffers by bytes of the data; 1.0 for a tensor without elements.

        >>> from gridlayout import xla
        >>> xla.layout((3, 5), "bfloat16", tiles=[(8, 128), (2, 1)]).expansion_factor
        68.26666666666667
        """
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0

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
    def held(self) -> Held:
        """What the layout holds of its memory: buffers as they are allocated, or pages. Bytes.

        >>> from gridlayout import tenstorrent
        >>> tenstorrent.ttnn((96, 64), tile=(32, 32)).held
        Held(memory='l1', cores=1, per_core=24576, pages=6, workers=0, even=False)
        """
        pages = workers = 0
        if self.is_interleaved:
            pages = max(prod(self.physical_shape) // prod(self.tile or (1,)), 1)
            workers = prod(self.workers or (0,))
        allocated = self.allocated_per_core
        return Held(
            self.memory or "", self.num_cores, allocated, pages, workers, not self.one_bank_per_shard
        )

    def is_placed(self, chip: Chip | str) -> bool:
        """Whether the chip has cores for the grid, where the system lays them.

        chip: a `gl.Chip`, or the name of one: wormhole, blackhole. Only L1 is of one core each, and
        pages are dealt to whatever cores there are.

        >>> from gridlayout import GridLayout, tenstorrent
        >>> [GridLayout((512, 64), grid=grid).is_placed("wormhole") for grid in ((8, 8), (16, 8))]
        [True, False]
        >>> [tenstorrent.ttnn((512, 64), grid=(n, 1)).is_placed("wormhole") for n in (13, 65)]
        [True, False]
        """
        chip = as_chip(chip)
        return self.memory != "l1" or self.is_interleaved or chip.places(self.core_shape)

    def fits(self, chip: Chip | str) -> Fit:
        """Whether the layout fits its memory space on `chip`: bytes needed, capacity and free.

        chip: a `gl.Chip`, or the name of one: wormhole, blackhole. The chip must have a place for
        the grid (`is_placed`). It also says where no op of the chip computes with the tile. Pages
        of an interleaved layout (tiles, or elements) are dealt to all cores of the chip, or banks
        of DRAM, so what is needed is the fullest one's share; a TTNN shard in DRAM lies in one
        bank. A memory that the chip does not state a capacity of has no limit (`free` is None).

        >>> from gridlayout import GridLayout, tenstorrent, xla
        >>> print(GridLayout((4096, 4096), grid=(2, 2), tile=(32, 32)).fits("wormhole"))
        does not fit: 16777216 B of 1395296 B l1 on each core, -15381920 B free
        >>> print(xla.layout((3, 5)).fits("wormhole"))
        60 B of memory 0 in all, no stated capacity
        >>> toy = Chip("toy", (2, 2), {"l1": 8192})
        >>> print(tenstorrent.ttnn((96, 64), tile=(32, 32)).fits(toy))
        fits: 8192 B of 8192 B l1 on each core, 0 B free
        >>> print(GridLayout((9,), grid=(9,)).fits(toy))
        does not fit: grid 9 has no place on 2x2 cores; 4 B of 8192 B l1 on each core, 8188 B free
        """
        chip, held = as_chip(chip), self.held
        grid = None if self.is_placed(chip) else self.core_shape
        space = held.memory or "memory"
        return chip.fit(space, held.per_core, held.needed(chip), self.tile, grid)

    def can_be_on(self, chip: Chip | str) -> bool:
        """Whether a program can have it on a chip: it fits, and no core's L1 has two shards of it.

        To `gl.Machine` the cores are a mesh, whose rows and columns divide a grid as those of a
        `gl.DeviceGrid` do: that there are as many cores in a rectangle is not enough.

        >>> from gridlayout import GridLayout, Chip
        >>> toy = Chip("toy", (10, 11), {"l1": 8192})
        >>> tall = GridLayout((33, 3), grid=(33, 3))
        >>> bool(tall.fits(toy)), tall.can_be_on(toy), tall.replace(grid=(11, 3)).can_be_on(toy)
        (True, False, True)
        """
        chip = as_chip(chip)
        if not self.fits(chip) or self.memory != "l1" or self.is_interleaved:
            return bool(self.fits(chip))
        return prod(per_device(self.core_shape, chip.grid)) == 1

    @property
    def own_fit(self) -> str:
        """Whether it fits a memory of its own chip, in words; nothing where it has no such chip.

        >>> from gridlayout import sophon
        >>> sophon.local((4, 3, 32, 32), "float32").own_fit
        '496.0 KiB left in each NPU'
        """
        return ""

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
