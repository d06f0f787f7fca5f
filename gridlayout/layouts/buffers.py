"""`Buffers`: the properties of a layout's buffers; each system overrides those that differ.

Code that draws, lists or counts layouts uses these properties instead of testing layout classes.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape, as_int
from gridlayout.layouts.folding import per_device
from gridlayout.layouts.memory import Chip, Fit, Held, as_chip
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.layouts.reader import dims_text


class Buffers:
    """The buffers of a layout's cores: their sizes in elements and bytes, tiles and memory.

    tile, face: the shapes of the innermost blocks, in elements; None if the system has none.
    tile_format: the block format in which a core stores 32x32 tiles; it affects only bytes.
    memory_layout: how a Tenstorrent system distributes shards or pages over cores. workers: the
    grid whose cores hold pages, if not the chip's whole grid. one_bank_per_shard: whether each
    buffer in DRAM is in a single bank; otherwise all buffers together are spread over all banks.
    """

    dtype: np.dtype[Any]
    shape: Shape
    physical_shape: Shape
    core_rank: int
    tile: Shape | None = None
    face: Shape | None = None
    tile_format: str | None = None
    # Rows of a core's buffer are padded to a multiple of this many elements.
    row_multiple: int = 1
    memory_layout: str | None = None
    workers: Shape | None = None
    one_bank_per_shard: bool = False

    # -- elements ------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The rank of the logical shape."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of logical elements."""
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
    def element_name(self) -> str:
        """The element type in the words of the layout's system: a block format, or MLIR's name.

        >>> from gridlayout import GridLayout, xla
        >>> GridLayout((4,), "int32", (2,)).element_name, xla.layout((4,), "int32").element_name
        ('i32', 's32')
        """
        return self.tile_format or dtypes.MLIR_NAMES[self.dtype.name]

    @property
    def num_cores(self) -> int:
        """The number of cores in the virtual grid."""
        return prod(self.core_shape)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The sizes in elements of the nested blocks of a buffer (tiles, faces), outermost first.

        >>> from gridlayout import parse, GridLayout
        >>> parse("f32[4,8]{1,0:T(2,4)(2,1)}").blocks
        (8, 2)
        >>> GridLayout((64, 64), tile=(32, 32), face=(16, 16)).blocks
        (1024, 256)
        """
        return tuple(prod(sizes) for sizes in (self.tile, self.face) if sizes)

    @property
    def tile_counts(self) -> Shape | None:
        """The number of tiles of one core's buffer along each dim; None without tiles."""
        return None

    @property
    def shard_text(self) -> str:
        """One core's buffer as a short text: its tiles, or its extents.

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
        """The elements per slot of a core's buffer, or None if it has no slots.

        A slot is a tile or, in an NPU's local memory, the space of one channel.
        """
        return self.blocks[0] if self.blocks else None

    @property
    def slot_dim(self) -> int | None:
        """The logical dim that slots divide, one index per slot: channels in local memory."""
        return None

    @property
    def page_elements(self) -> int:
        """The elements per page of a core's buffer; pages may be padded with bytes.

        Elements within a page are contiguous.

        >>> from gridlayout import GridLayout, tenstorrent
        >>> GridLayout((4, 6), grid=(2, 1)).page_elements
        12
        >>> tenstorrent.tensor_layout((4, 6), page="row_major", page_alignment=64).page_elements
        6
        """
        return prod(self.local_shape)

    # -- bytes ---------------------------------------------------------------------------------

    @property
    def row_alignment(self) -> int | None:
        """The alignment of each row of a core's buffer, in bytes; None if none is required.

        >>> from gridlayout import GridLayout
        >>> layout = GridLayout((3, 5), "bfloat16", row_alignment=16)
        >>> layout.row_alignment, layout.tile_counts, layout.bytes_per_core
        (16, (3, 8), 48)
        """
        return row_bytes(self.row_multiple, self.dtype)

    @property
    def stored_bits(self) -> int:
        """Bits per element; not used for block formats."""
        return dtypes.bits(self.dtype)

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffer, padding included; block formats count their own bytes."""
        if self.tile_format is not None:
            return prod(self.local_shape) // (32 * 32) * dtypes.BLOCK_FORMATS[self.tile_format]
        return -(-prod(self.local_shape) * self.stored_bits // 8)

    @property
    def allocated_per_core(self) -> int:
        """Bytes allocated for one core's buffer, rounded up to whole pages if L1 has pages."""
        return self.bytes_per_core

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers, padding included."""
        return self.num_cores * self.bytes_per_core

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements without padding, in the layout's own element format.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), "bfloat16", tile=(32, 32), tile_format="bfp_bf8").data_bytes
        3548
        """
        if self.tile_format is not None:
            return -(-self.size * dtypes.BLOCK_FORMATS[self.tile_format] // (32 * 32))
        return -(-self.size * self.stored_bits // 8)

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all buffers beyond `data_bytes`; 0 for a view that shares elements.

        >>> from gridlayout import GridLayout
        >>> GridLayout((53, 63), grid=(3, 2), tile=(32, 32)).wasted_bytes
        11220
        """
        return max(self.nbytes - self.data_bytes, 0)

    @property
    def expansion_factor(self) -> float:
        """The ratio of `nbytes` to `data_bytes`; 1.0 for a tensor without elements.

        >>> from gridlayout import xla
        >>> xla.layout((3, 5), "bfloat16", tiles=[(8, 128), (2, 1)]).expansion_factor
        68.26666666666667
        """
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0

    def byte_of(self, offset: int) -> int | None:
        """The byte at which an element of a core's buffer starts; None in a block format."""
        check_offset(offset)
        return None if self.tile_format else offset * self.stored_bits // 8

    def bit_of(self, offset: int) -> int | None:
        """The bit, in the byte `byte_of`, at which the element starts; None in a block format."""
        check_offset(offset)
        return None if self.tile_format else offset * self.stored_bits % 8

    # The mesh axes that divide each core dim; None where the device grid chooses them.
    mesh_axes: tuple[Axes, ...] | None = None

    # -- memory --------------------------------------------------------------------------------

    @property
    def memory(self) -> str | None:
        """The memory space of the buffers, or None if the layout does not state one.

        Names are those of `gl.Chip`'s capacities, or a system's own.
        """
        return None

    @property
    def held(self) -> Held:
        """The bytes that the layout allocates in its memory, as buffers or pages.

        >>> from gridlayout import tenstorrent
        >>> tenstorrent.ttnn((96, 64), tile=(32, 32)).held
        Held(memory='l1', cores=1, per_core=24576, pages=6, workers=0, even=False)
        """
        pages = workers = 0
        if self.is_interleaved:
            pages = max(prod(self.physical_shape) // prod(self.tile or (1,)), 1)
            workers = prod(self.workers or (0,))
        allocated = self.allocated_per_core
        even = not self.one_bank_per_shard
        return Held(self.memory or "", self.num_cores, allocated, pages, workers, even)

    def is_placed(self, chip: Chip | str) -> bool:
        """Whether the chip has cores for the grid, as the system places it.

        chip: a `gl.Chip`, or the name of one: wormhole, blackhole. Only shards in L1 need a core
        each; pages are distributed over the available cores.

        >>> from gridlayout import GridLayout, tenstorrent
        >>> [GridLayout((512, 64), grid=grid).is_placed("wormhole") for grid in ((8, 8), (16, 8))]
        [True, False]
        >>> [tenstorrent.ttnn((512, 64), grid=(n, 1)).is_placed("wormhole") for n in (13, 65)]
        [True, False]
        """
        chip = as_chip(chip)
        return (
            chip.space_of(self.memory) != "l1"
            or self.is_interleaved
            or chip.places(self.core_shape)
        )

    def fits(self, chip: Chip | str) -> Fit:
        """Whether the layout fits its memory space on `chip`: bytes needed, capacity and free.

        chip: a `gl.Chip`, or the name of one: wormhole, blackhole. The grid must fit the chip's
        cores (`is_placed`). The result also names the tile if no op of the chip supports it. Pages
        of an interleaved layout (tiles or elements) are distributed over all cores of the chip, or
        over all banks of DRAM. The bytes needed are then those of the fullest core, or those of
        the fullest bank times the number of banks. A TTNN shard in DRAM is in one bank. A memory
        without a stated capacity has no limit (`free` is None).

        >>> from gridlayout import GridLayout, tenstorrent, xla
        >>> print(GridLayout((4096, 4096), grid=(2, 2), tile=(32, 32)).fits("wormhole"))
        does not fit: 16777216 B of 1395296 B l1 on each core, -15381920 B free
        >>> print(xla.layout((3, 5)).fits("wormhole"))
        60 B of memory 0 in total, no stated capacity
        >>> toy = Chip("toy", (2, 2), {"l1": 8192})
        >>> print(tenstorrent.ttnn((96, 64), tile=(32, 32)).fits(toy))
        fits: 8192 B of 8192 B l1 on each core, 0 B free
        >>> print(GridLayout((9,), grid=(9,)).fits(toy))
        does not fit: grid 9 does not fit 2x2 cores; 4 B of 8192 B l1 on each core, 8188 B free
        """
        chip, held = as_chip(chip), self.held
        grid = None if self.is_placed(chip) else self.core_shape
        space = chip.space_of(held.memory or "memory 0")
        return chip.fit(space, held.per_core, held.needed(chip), self.tile, grid)

    def can_be_on(self, chip: Chip | str) -> bool:
        """Whether a program can use the layout on a chip.

        It must fit, and each core's L1 may hold at most one of its shards.

        `gl.Machine` treats the cores as a mesh, whose rows and columns divide the grid as those of
        a `gl.DeviceGrid` do. A rectangle with enough cores is therefore not sufficient.

        >>> from gridlayout import GridLayout, Chip
        >>> toy = Chip("toy", (10, 11), {"l1": 8192})
        >>> tall = GridLayout((33, 3), grid=(33, 3))
        >>> bool(tall.fits(toy)), tall.can_be_on(toy), tall.replace(grid=(11, 3)).can_be_on(toy)
        (True, False, True)
        """
        chip = as_chip(chip)
        is_shared = chip.space_of(self.memory) != "l1"
        if not self.fits(chip) or is_shared or self.is_interleaved:
            return bool(self.fits(chip))
        return prod(per_device(self.core_shape, chip.grid)) == 1

    @property
    def own_fit(self) -> str:
        """Whether the layout fits its own chip, as text; empty if it belongs to no chip.

        >>> from gridlayout import sophon
        >>> sophon.local((4, 3, 32, 32), "float32").own_fit
        '496.0 KiB left in each NPU'
        """
        return ""

    @property
    def is_interleaved(self) -> bool:
        """Whether pages are interleaved over all banks; then no element has a known bank.

        >>> from gridlayout import tenstorrent
        >>> tenstorrent.ttnn((64, 64)).is_interleaved
        True
        """
        return self.memory_layout == "interleaved"


def row_bytes(multiple: int, dtype: np.dtype[Any]) -> int | None:
    """The alignment in bytes for an alignment in elements; None for 1 element.

    >>> row_bytes(8, dtypes.as_dtype("bfloat16"))
    16
    """
    return None if multiple == 1 else multiple * dtypes.bits(dtype) // 8


def check_offset(offset: Any) -> None:
    """Raise `LayoutError` unless `offset` is an integer or an array of integers.

    >>> check_offset(3)
    """
    if type(offset) is not int and getattr(getattr(offset, "dtype", None), "kind", "O") not in "iu":
        as_int(offset, "offset")
