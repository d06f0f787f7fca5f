"""`Finding`: one layout of a dump and what it costs. Sizes are in bytes.

`data_bytes` is what the logical elements alone take, in the layout's own element size; what a
layout holds beyond it is waste.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from gridlayout import dtypes
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, Chip, Fit
from gridlayout.tenstorrent.alignment import align
from gridlayout.tenstorrent.allocation import Allocation
from gridlayout.tenstorrent.metal_layout import MetalLayout
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

if TYPE_CHECKING:
    from gridlayout.dump.plan import Proposal

Described = Layout | Allocation

# Elements of the pages in which tt-mlir allocates L1 for its metal_layout.
_PAGE = 32 * 32
# Positions up to which a scatter's padding is counted one by one.
_MAX_COUNTED = 1 << 22


@dataclass(frozen=True)
class Finding:
    """A value with a layout: where it stands, how often it is named, and whether it fits.

    line: the one that makes it. count: how often it is named, there and where it is used. last: the
    last line that names it. op: what makes it. name: the value; nothing for a type alone.
    function: the one that it is in. address: where it lies, in bytes, if the dump says. fit: None
    where the chip has no such memory. proposal: a layout that wastes less, if one was asked for and
    found. values: how many values the row stands for: one, if it has a name.
    """

    line: int
    count: int
    op: str
    name: str
    layout: Described
    fit: Fit | None
    proposal: Proposal | None = None
    last: int = 0
    function: str = ""
    address: int | None = None
    values: int = 1

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffer, in whole pages where they are allocated so.

        Of pages dealt to all cores' L1, those of the fullest.
        """
        if self.fit is not None and self.fit.space == "l1" and self.layout.is_interleaved:
            return self.fit.needed
        return held_per_core(self.layout)

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers."""
        return held_bytes(self.layout)

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements alone."""
        return data_bytes(self.layout)

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all cores' buffers beyond the data."""
        return wasted_bytes(self.layout)

    @property
    def padding_share(self) -> float:
        """The share of physical elements that are padding, 0 to 1.

        Where a dim is in two results of the map and there are over 2**22 positions, they are not
        counted one by one: then it is the share of the positions beyond the elements.
        """
        return padding_share(self.layout)

    @property
    def expansion_factor(self) -> float:
        """Bytes held by bytes of data; 1.0 for a tensor without elements."""
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0


def held_per_core(layout: Described) -> int:
    """Bytes that one core's buffer takes: of today's metal_layout in L1, whole pages of 32x32.

    >>> from gridlayout import tenstorrent
    >>> held_per_core(tenstorrent.metal((1, 1), "uint32", dim_alignments=(1, 1)))
    4096
    """
    found = layout.bytes_per_core
    if isinstance(layout, MetalLayout) and layout.memory == "l1" and layout.tile is None:
        return align(found, _PAGE * layout.stored_bits // 8)
    return found


def held_bytes(layout: Described) -> int:
    """Bytes that all cores' buffers take."""
    return layout.num_cores * held_per_core(layout)


def data_bytes(layout: Described) -> int:
    """Bytes that the logical elements alone take, in the layout's own element size.

    >>> from gridlayout import GridLayout
    >>> data_bytes(GridLayout((53, 63), "bfloat16", (3, 2), tile=(32, 32), tile_format="bfp_bf8"))
    3548
    """
    if layout.tile_format is not None:
        return -(-layout.size * dtypes.BLOCK_FORMATS[layout.tile_format] // (32 * 32))
    return -(-layout.size * layout.stored_bits // 8)


def wasted_bytes(layout: Described) -> int:
    """Bytes of all buffers beyond the data; none for a view that holds elements once for many.

    >>> from gridlayout import GridLayout
    >>> wasted_bytes(GridLayout((53, 63), "float32", (3, 2), tile=(32, 32)))
    11220
    """
    return max(held_bytes(layout) - data_bytes(layout), 0)


def padding_share(layout: Described) -> float:
    """The share of physical elements that are padding; see `Finding.padding_share`.

    >>> from gridlayout import GridLayout
    >>> padding_share(GridLayout((4, 48), grid=(1, 1), tile=(4, 64)))
    0.25
    """
    if isinstance(layout, Allocation):
        return layout.padding_share
    total = prod(layout.physical_shape)
    if layout.is_scatter and total > _MAX_COUNTED:
        return max(total - layout.size, 0) / total
    return layout.padding_share


def fit_of(layout: Described, chip: Chip) -> Fit | None:
    """Whether the layout fits its memory space on `chip`; None where it names none of the four.

    The chip must have a place for its cores too. Pages of an interleaved layout (tiles, or
    elements) are dealt to all cores of the chip, or banks of DRAM, so `needed` counts the fullest
    one's share; a shard in DRAM lies in one bank.

    >>> from gridlayout import tenstorrent
    >>> toy = Chip("toy", (2, 2), {"l1": 8192})
    >>> print(fit_of(tenstorrent.ttnn((96, 64), "float32", tile=(32, 32)), toy))
    fits: 8192 B of 8192 B l1 on each core, 0 B free
    >>> print(fit_of(tenstorrent.ttnn((320, 16), grid=(320, 1)), toy))
    does not fit: grid 320x1 has no place on 2x2 cores; 64 B of 8192 B l1 on each core, 8128 B free
    """
    space = layout.memory
    if space is None or space not in MEMORY_SPACES:
        return None
    needed = held_of(layout).share(chip) * (chip.banks if space == "dram" else 1)
    grid = None if is_placed(layout, chip) else layout.core_shape
    return chip.fit(space, held_per_core(layout), needed, layout.tile, grid)


class Held(NamedTuple):
    """What a layout holds: so many equal buffers in a memory, or pages dealt to its parts. Bytes.

    pages: how many there are, 0 where they are not dealt; workers: to how many cores, 0 for all.
    even: whether a whole in DRAM is spread over all banks, whatever its buffers.
    """

    memory: str
    cores: int
    per_core: int
    pages: int = 0
    workers: int = 0
    even: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self.cores * self.per_core

    def share(self, chip: Chip) -> int:
        """Bytes in the fullest core of L1 or bank of DRAM; all of them in another memory."""
        if self.memory not in ("l1", "dram"):
            return self.nbytes
        parts = prod(chip.grid) if self.memory == "l1" else chip.banks
        if self.pages:
            dealt = -(-self.pages // (self.workers or parts))
            return -(-self.per_core * dealt // self.pages)
        if self.memory == "l1":
            return self.per_core
        return -(-self.nbytes // parts) if self.even else self.per_core * -(-self.cores // parts)


def held_of(layout: Described) -> Held:
    """What a layout holds.

    >>> from gridlayout import tenstorrent
    >>> found = held_of(tenstorrent.ttnn((96, 64), tile=(32, 32), buffer_type="dram"))
    >>> found, found.share(Chip("toy", (2, 2), {"dram": 1 << 20}, banks=4))
    (Held(memory='dram', cores=1, per_core=24576, pages=6, workers=0, even=False), 8192)
    """
    pages = workers = 0
    if layout.is_interleaved:
        pages = max(prod(layout.physical_shape) // prod(layout.tile or (1,)), 1)
        workers = prod(getattr(layout, "workers", None) or (0,))
    # The document knows no banks.
    even = not isinstance(layout, TtnnLayout | MetalLayout | Allocation)
    memory, per_core = layout.memory or "", held_per_core(layout)
    return Held(memory, layout.num_cores, per_core, pages, workers, even)


def is_placed(layout: Described, chip: Chip) -> bool:
    """Whether the chip has cores for the layout's grid, where the system lays them.

    >>> from gridlayout import tenstorrent
    >>> wormhole = tenstorrent.WORMHOLE
    >>> [is_placed(tenstorrent.ttnn((512, 64), grid=grid), wormhole) for grid in ((13, 1), (16, 2))]
    [True, False]
    """
    space, grid = layout.memory, layout.core_shape
    if layout.is_interleaved or space not in ("l1", "dram"):
        return True
    if isinstance(layout, TtnnLayout):
        rows, columns = chip.grid[-2:] if space == "l1" else (1, chip.banks)
        if space == "dram" and chip.banks == 1:
            return True
        return _has_cores(layout, rows, columns)
    return space == "dram" or chip.places(grid)


def _has_cores(layout: TtnnLayout, rows: int, columns: int) -> bool:
    """Stated ranges lie on the cores; others are dealt to as many as there are."""
    if layout.memory_layout == "block_sharded" or layout.has_stated_ranges:
        return all(c < columns and d < rows for _, (c, d) in layout.core_ranges)
    return layout.num_cores <= rows * columns
