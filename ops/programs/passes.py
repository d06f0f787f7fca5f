"""The bytes of memory that an op passes over on a device; shared by plans, reports and dumps.

An op writes its results. A product also reads its operands. On a core, an op that reads more than
it makes counts its largest operand instead of its results, because nothing is fused with its
producer there. An op that only changes its operand's shape takes nothing, except on a core where
its tiles change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridlayout.ops.decisions.record import Record
from gridlayout.sharding.machines.machine import Machine

Shape = tuple[int, ...]


def passed_bytes(record: Record, ins: Sequence[int], outs: Sequence[int], machine: Machine) -> int:
    """Return the bytes that a device passes over for an op that is no view.

    ins, outs: the bytes of its part of each operand and result.

    >>> passed_bytes(Record(reads_more=True), [4096], [128], Machine("n150").by_core)
    4096
    >>> passed_bytes(Record(), [4096, 4096], [4096], Machine("n150").by_core)
    4096
    """
    if record.multiplies:
        return sum(ins) + sum(outs)
    if record.writes_part and not machine.has_cores:
        return 2 * ins[1]  # XLA updates an operand in place at its last use
    if record.reads_more and machine.has_cores:
        return max(max(ins, default=0), sum(outs))
    return sum(outs)


def counts_operands(record: Record) -> bool:
    """Return whether the bytes of operands count, on any machine."""
    return record.multiplies or record.writes_part or record.reads_more


def computing(
    record: Record,
    flops: float,
    ins: Sequence[int],
    outs: Sequence[int],
    machine: Machine,
    transposed: Sequence[int] = (),
    width: int = 32,
) -> dict[str, float]:
    """Return the seconds of a device by what limits it: `products` or `memory`.

    flops: operations of a product. ins, outs: the bytes of the device's part of each operand and
    result. transposed: for each operand, as in `flops.transposed`. width: bits of an element. A
    product that uses each element once, such as one with a vector, packs no operand.
    """
    nbytes = passed_bytes(record, ins, outs, machine)
    if not record.multiplies:
        return machine.computing(0, nbytes)
    packs = flops / 2 * width > 12 * max(ins, default=0)
    turned = sum(n for n, when in zip(ins, transposed, strict=False) if when > (not packs))
    return machine.computing(flops, nbytes, turned, packs)


def is_view(
    record: Record, params: Mapping[str, Any], before: Shape, after: Shape, machine: Machine
) -> bool:
    """Return whether a result is its operand in another shape, which takes no pass over memory.

    >>> core, same = Machine("n150").by_core, lambda params, *shapes: keeps_tiles(*shapes)
    >>> reshape = Record(is_view=True, keeps_tiles=same)
    >>> is_view(reshape, {}, (2, 96, 64), (192, 64), core)
    True
    >>> is_view(reshape, {}, (2, 50, 96), (100, 96), core)
    False
    """
    if not record.is_view or record.keeps_tiles is None:
        return record.is_view
    if not machine.has_cores or not machine.chip.tiles:
        return True
    return record.keeps_tiles(params, before, after, machine.chip.tiles[0])


def keeps_tiles(before: Shape, after: Shape, tile: Shape) -> bool:
    """Return whether an array has the same tiles in the same order in another shape.

    >>> keeps_tiles((300,), (1, 300), (32, 32)), keeps_tiles((64, 300), (2, 32, 300), (32, 32))
    (True, True)
    >>> keeps_tiles((100, 96), (2, 50, 96), (32, 32))
    False
    """
    (rows, columns), (others, wide) = ((1, 1, *shape)[-2:] for shape in (before, after))
    return columns == wide and (rows == others or rows % tile[0] == others % tile[0] == 0)
