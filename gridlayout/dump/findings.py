"""`Finding`: one layout of a dump and what it costs. Sizes are in bytes.

`data_bytes` is what the logical elements alone take, in the layout's own element size; what a
layout holds beyond it is waste.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, Chip, Fit
from gridlayout.layouts.padding import padding_share

if TYPE_CHECKING:
    from gridlayout.dump.plan import Proposal


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
        return self.layout.data_bytes

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all cores' buffers beyond the data."""
        return self.layout.wasted_bytes

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
        return self.layout.expansion_factor


def fit_of(layout: Layout, chip: Chip) -> Fit | None:
    """Whether the layout fits its memory space on `chip`; None where it names none of the four.

    >>> from gridlayout import tenstorrent
    >>> toy = Chip("toy", (2, 2), {"l1": 8192})
    >>> print(fit_of(tenstorrent.ttnn((96, 64), "float32", tile=(32, 32)), toy))
    fits: 8192 B of 8192 B l1 on each core, 0 B free
    """
    return layout.fits(chip) if layout.memory in MEMORY_SPACES else None
