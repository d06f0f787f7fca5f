"""`Finding`: one layout of a dump and what it costs. Sizes are in bytes.

`data_bytes` is what the logical elements alone take, in the layout's own element size; what a
layout holds beyond it is waste.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from gridlayout import dtypes
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, Chip, Fit

if TYPE_CHECKING:
    from gridlayout.dump.plan import Proposal

# Positions up to which a scatter's padding is counted one by one.
_MAX_COUNTED = 1 << 22


@dataclass(frozen=True)
class Finding:
    """A layout, where it stands, how often, and whether it fits.

    line: the first one that mentions it. count: mentions by the same op. name: the first value that
    has it, or nothing. fit: None where the chip has no such memory. proposal: a layout that wastes
    less, if one was asked for and found.
    """

    line: int
    count: int
    op: str
    name: str
    layout: Layout
    fit: Fit | None
    proposal: Proposal | None = None

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
        return self.layout.nbytes / self.data_bytes if self.data_bytes else 1.0


def data_bytes(layout: Layout) -> int:
    """Bytes that the logical elements alone take, in the layout's own element size.

    >>> from gridlayout import GridLayout
    >>> data_bytes(GridLayout((53, 63), "bfloat16", (3, 2), tile=(32, 32), tile_format="bfp_bf8"))
    3548
    """
    if layout.tile_format is not None:
        return -(-layout.size * dtypes.BLOCK_FORMATS[layout.tile_format] // (32 * 32))
    return -(-layout.size * layout.stored_bits // 8)


def wasted_bytes(layout: Layout) -> int:
    """Bytes of all buffers beyond the data; none for a view that holds elements once for many.

    >>> from gridlayout import GridLayout
    >>> wasted_bytes(GridLayout((53, 63), "float32", (3, 2), tile=(32, 32)))
    11220
    """
    return max(layout.nbytes - data_bytes(layout), 0)


def padding_share(layout: Layout) -> float:
    """The share of physical elements that are padding; see `Finding.padding_share`.

    >>> from gridlayout import GridLayout
    >>> padding_share(GridLayout((4, 48), grid=(1, 1), tile=(4, 64)))
    0.25
    """
    total = prod(layout.physical_shape)
    if layout.is_scatter and total > _MAX_COUNTED:
        return max(total - layout.size, 0) / total
    return layout.padding_share


def fit_of(layout: Layout, chip: Chip) -> Fit | None:
    """Whether the layout fits its memory space on `chip`; None where it names none of the four.

    An interleaved layout in l1 is a grid of one core by its type; its pages (tiles, or elements)
    are dealt to all cores of the chip, so `needed` is one core's share.

    >>> from gridlayout import tenstorrent
    >>> toy = Chip("toy", (2, 2), {"l1": 8192})
    >>> print(fit_of(tenstorrent.ttnn((96, 64), "float32", tile=(32, 32)), toy))
    fits: 8192 B of 8192 B l1 on each core, 0 B free
    """
    space = layout.memory
    if space is None or space not in MEMORY_SPACES:
        return None
    needed = per_core = layout.bytes_per_core
    if space != "l1":
        needed = layout.nbytes
    elif layout.is_interleaved and per_core:
        pages = prod(layout.physical_shape) // prod(layout.tile or (1,))
        needed = -(-per_core * -(-pages // prod(chip.grid)) // pages)
    return chip.fit(space, per_core, needed, layout.tile)
