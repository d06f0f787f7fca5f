"""`Share`: one core's part of a compiled op, as the tiles of the result that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod
from typing import NamedTuple

from gridlayout.ops.tenstorrent.report import Operation
from gridlayout.tenstorrent.program_config import blocks_of
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

SIDE = 32  # rows and columns of a tile
PRODUCTS = ("matmul", "linear")


class Share(NamedTuple):
    """The part of the core that makes the most of a result: a block of its rows and columns.

    cores: the number of cores that have a part. tiles: of this part. whole: of the result. rows,
    columns: of the block, in tiles. Of an interleaved result, the block is as square as possible,
    because it then needs the least of a product's operands.
    """

    cores: int
    tiles: int
    whole: int
    rows: int
    columns: int

    @property
    def part(self) -> float:
        """The fraction of the result that it makes."""
        return self.tiles / self.whole


def tiles_of(layout: TtnnLayout, is_flipped: bool = False) -> tuple[int, int]:
    """Return the rows and columns of tiles of an array, with its matrices stacked vertically.

    is_flipped: whether the matrices are transposed before.

    >>> from gridlayout import tenstorrent
    >>> tiles_of(tenstorrent.ttnn((2, 50, 96), tile=(32, 32)))
    (4, 3)
    >>> tiles_of(tenstorrent.ttnn((2, 50, 96), tile=(32, 32)), is_flipped=True)
    (6, 2)
    """
    *outer, rows, columns = (1, 1, *layout.shape)
    rows, columns = (columns, rows) if is_flipped else (rows, columns)
    return max(prod(outer) * -(-rows // SIDE), 1), max(-(-columns // SIDE), 1)


def share_of(op: Operation, outs: Sequence[TtnnLayout], cores: int) -> Share:
    """Return how an op's largest result is divided: by shards, a program config, or evenly."""
    out = max(outs, key=lambda x: prod(tiles_of(x)))
    tall, wide = tiles_of(out)
    blocks = blocks_of(op.hints.get("matmul_program_config", ""))
    if out.memory == "l1" and not out.is_interleaved:
        grid = (*out.grid, 1, 1)[:2]
        rows, columns = -(-tall // max(grid[0], 1)), -(-wide // max(grid[1], 1))
    elif blocks is not None and op.name in PRODUCTS and 0 not in blocks:
        rows, columns = min(blocks[2], tall), min(blocks[3], wide)
    else:
        tiles = -(-tall * wide // min(tall * wide, cores))
        columns = min(max(isqrt(tiles), 1), wide)
        rows = min(-(-tiles // columns), tall)
        columns = -(-tiles // rows)
        return Share(min(tall * wide, cores), tiles, tall * wide, rows, columns)
    used = min(-(-tall // rows) * -(-wide // columns), cores)
    return Share(used, rows * columns, tall * wide, rows, columns)


def needed_bytes(op: Operation, number: int, share: Share) -> int:
    """Return the bytes of an operand that the core reads; for a product, full rows or columns."""
    layout, out = op.inputs[number], op.outputs[0]
    assert layout is not None
    total = layout.held.nbytes
    if op.name in PRODUCTS and number == 0:
        tall, _ = tiles_of(layout, op.facts["flips"][0])
        return int(total * min(share.rows / tall, 1.0))
    if op.name in PRODUCTS and number == 1 and out is not None:
        # Of a batch, the core reads the matrices that its rows belong to.
        batches = max(prod(layout.shape[:-2]), 1)
        each = max(tiles_of(out)[0] // batches, 1)
        columns = min(share.columns / tiles_of(out)[1], 1.0)
        return int(total * min(-(-share.rows // each), batches) / batches * columns)
    each = total // prod(tiles_of(layout))
    return max(int(total * share.part), min(total, share.tiles * each))
