"""`Finding`: one layout of a dump and what it costs. Sizes are in bytes.

`data_bytes` is what the logical elements alone take, in the layout's own element size; what a
layout holds beyond it is waste.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridlayout.costs import Described
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Fit
from gridlayout.layouts.padding import padding_share


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
        return self.layout.held.per_core

    @property
    def nbytes(self) -> int:
        """Bytes of all cores' buffers."""
        return self.layout.held.nbytes

    @property
    def data_bytes(self) -> int:
        """Bytes of the logical elements alone."""
        return self.layout.data_bytes

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all cores' buffers beyond the data."""
        return max(self.nbytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The share of physical elements that are padding, 0 to 1.

        Where a dim is in two results of the map and there are over 2**22 positions, they are not
        counted one by one: then it is the share of the positions beyond the elements.
        """
        if isinstance(self.layout, Layout):
            return padding_share(self.layout)
        return self.layout.padding_share

    @property
    def expansion_factor(self) -> float:
        """Bytes held by bytes of data; 1.0 for a tensor without elements."""
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0
