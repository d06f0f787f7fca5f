"""`Traffic`: what ops read and write, by memory, and which layouts their results have. Bytes.

An op reads each of its operands once, whole, and writes its result once: what a kernel does beyond
that no dump says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from math import prod

from gridlayout.dump.text.statements import Statement
from gridlayout.dump.values.sizes import Sizes
from gridlayout.tenstorrent.program_config import Blocks, blocks_of

MAX_RESULTS = 1 << 12  # kinds of results that are told apart
_TILES = re.compile(r"memref<([0-9]{1,9})x([0-9]{1,9})x!ttcore\.tile<")


class Traffic:
    """The ops of one pass: bytes read and written by memory, and other ops' results by type.

    relayouts: those that only bring a value to another type.

    Of TTNN: other dialects have ops that neither read nor write, or whose results are operands.
    """

    def __init__(self) -> None:
        self.ops = self.relayouts = 0
        self.touched: Counter[str] = Counter()
        self.results: Counter[tuple[str, Blocks | None]] = Counter()
        self.is_whole = True

    def add(self, said: Statement, text: str, sizes: Mapping[str, Sizes]) -> None:
        """An op that makes values; views and what only allocates neither read nor write.

        sizes: of each type's text.
        """
        if not said.made or said.is_view or said.is_empty or not said.op.startswith("ttnn."):
            return
        self.ops += 1
        for _, each in said.mentions:
            if not (stated := sizes[each]).reason:
                self.touched[stated.buffers[0]] += stated.nbytes
        if said.flow is not None:
            self.relayouts += said.flow.before != said.flow.after.text
            return
        blocks = blocks_of(text)
        key = (said.made[0].text, blocks)
        if key in self.results or len(self.results) < MAX_RESULTS:
            self.results[key] += 1
        else:
            self.is_whole = False


def cores_by_config(text: str, blocks: Blocks) -> int | None:
    """Cores to which a product's program config deals the tiles of its result.

    >>> text = "tensor<100x96xf32, #ttnn.ttnn_layout<..., memref<4x3x!ttcore.tile<32x32, f32>, ..."
    >>> cores_by_config(text, (8, 8, 1, 1)), cores_by_config(text, (8, 8, 2, 3))
    (12, 2)
    """
    columns, rows, *each = blocks
    found = _TILES.search(text)
    if found is None or 0 in each:
        return None
    parts = [-(-int(n) // m) for n, m in zip(found.groups(), each, strict=True)]
    return min(prod(parts), rows * columns)
