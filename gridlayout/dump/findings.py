"""`Finding`: one layout of a dump and its costs. Sizes are in bytes.

`data_bytes` is the size of the logical elements, in the layout's element size. All bytes that the
layout allocates beyond them are wasted.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridlayout.costs import Described
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Fit
from gridlayout.layouts.padding import bounded_share


@dataclass(frozen=True)
class Finding:
    """A value of a dump and its layout.

    line, op: its definition. count: the number of its definitions and uses. name: empty for a type
    without a value. layout: its layout. fit: whether the layout fits on the chip; None if the chip
    has no such memory. proposal: a layout that wastes less, if one was requested and found. last:
    the last line that uses it. function: the function that it is in. address: in bytes; None if the
    dump does not state it. values: the number of values that the row describes: 1 for a named one.
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
        """Bytes of one core's buffer, in whole pages where the memory is allocated in pages.

        For a layout interleaved over the L1 of all cores, the bytes of the fullest core.
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
        """Bytes of the logical elements."""
        return self.layout.data_bytes

    @property
    def wasted_bytes(self) -> int:
        """Bytes of all cores' buffers minus those of the data."""
        return max(self.nbytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The share of physical elements that are padding, 0 to 1.

        If two results of the map use one dim and there are over 2**22 positions, the padding is
        not counted exactly: then the share is 1 - elements / positions.
        """
        if isinstance(self.layout, Layout):
            return bounded_share(self.layout)
        return self.layout.padding_share

    @property
    def expansion_factor(self) -> float:
        """Bytes held divided by bytes of data; 1.0 for a tensor without elements."""
        return self.nbytes / self.data_bytes if self.data_bytes else 1.0
