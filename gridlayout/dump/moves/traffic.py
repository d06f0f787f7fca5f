"""`Traffic`: bytes that ops read and write, by memory, and the layouts of their results.

An op is counted as reading each operand once, in full, and writing its result once. Any further
traffic of a kernel is not stated in a dump.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from math import prod

from gridlayout.dump.text.statements import Statement
from gridlayout.dump.values.type_texts import Sizes
from gridlayout.tenstorrent.program_config import Blocks, blocks_of

MAX_RESULTS = 1 << 12  # most different types of results
_TILES = re.compile(r"memref<([0-9]{1,9})x([0-9]{1,9})x!ttcore\.tile<")


class Traffic:
    """The TTNN ops of one pass.

    ops: the number of ops that define values. relayouts: the number of those that only copy a value
    to another type. touched: bytes read and written, by memory. results: the number of the other
    ops by type of result and product config.

    Other dialects are not counted: some of their ops neither read nor write, or write to operands.
    """

    def __init__(self) -> None:
        self.ops = self.relayouts = 0
        self.touched: Counter[str] = Counter()
        self.results: Counter[tuple[str, Blocks | None]] = Counter()

    def add(self, statement: Statement, sizes: Mapping[str, Sizes]) -> None:
        """Count an op that defines values; views and allocations neither read nor write.

        sizes: the sizes of each type of the line.
        """
        if (
            not statement.results
            or statement.is_view
            or statement.is_empty
            or not statement.op.startswith("ttnn.")
        ):
            return
        self.ops += 1
        for _, each in statement.mentions:
            if not (stated := sizes[each]).reason:
                self.touched[stated.buffers[0]] += stated.nbytes
        if statement.transfer is not None:
            self.relayouts += statement.transfer.before != statement.transfer.after.text
            return
        blocks = blocks_of(statement.text)
        key = (statement.results[0].text, blocks)
        if key in self.results or len(self.results) < MAX_RESULTS:
            self.results[key] += 1


def cores_by_config(text: str, blocks: Blocks) -> int | None:
    """Return the number of cores to which a product's program config deals the result's tiles.

    None if the type has no tiled memref, or a block of the config is empty.

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
