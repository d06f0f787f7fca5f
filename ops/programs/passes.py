"""The price of an op on a device: the seconds of what it reads, writes and computes.

This is the one price of plans, reports and dumps. An op takes as long as its FLOPs at the peak of
the machine, or as its bytes at the bandwidth of the memory, whichever is longer. Its bytes are its
operands and its results, without those that stay inside of the kernel into which it is fused
(`Traffic`). On a core nothing is fused: its operands stream in while its results stream out, so the
larger of both counts. An op that only changes its operand's shape takes nothing, except on a core
where its tiles change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.sharding.machines.machine import Machine

LANES = 16  # the last dim of what a CPU reduces as fast as it reads memory, in elements
NARROW = 3.0  # elementwise functions that an operation takes where it has fewer; measured


@dataclass(frozen=True)
class Traffic:
    """What an op that is fused with others has in memory.

    reads: for each operand, how many kernels read it from memory for this op; 0 if it is computed
    in the same kernel, or if another op of the kernel has read it. writes: for each result, whether
    it is stored.
    """

    reads: tuple[int, ...]
    writes: tuple[bool, ...]


def passed_bytes(
    record: Record,
    ins: Sequence[int],
    outs: Sequence[int],
    machine: Machine,
    traffic: Traffic | None = None,
) -> int:
    """Return the bytes that a device reads and writes for an op that is no view.

    ins, outs: the bytes of its part of each operand and result. traffic: what of them is in memory;
    None for all of it.

    >>> passed_bytes(Record(), [4096, 4096], [4096], Machine("v5e 4x4"))
    12288
    >>> passed_bytes(Record(), [4096, 4096], [4096], Machine("v5e 4x4"), Traffic((1, 0), (False,)))
    4096
    >>> passed_bytes(Record(), [4096, 4096], [128], Machine("n150").by_core)
    4096
    """
    if record.multiplies:
        return sum(ins) + sum(outs)
    if record.writes_part and not machine.has_cores:
        return 2 * ins[1]  # XLA updates an operand in place at its last use
    if record.reads_part and ins:
        ins = [min(ins[0], sum(outs)), *ins[1:]]
    if machine.has_cores:
        return max(max(ins, default=0), sum(outs))
    if traffic is None:
        return sum(ins) + sum(outs)
    read = sum(n * times for n, times in zip(ins, traffic.reads, strict=False))
    return read + sum(n for n, stored in zip(outs, traffic.writes, strict=False) if stored)


def computing(
    record: Record,
    flops: float,
    ins: Sequence[int],
    outs: Sequence[int],
    machine: Machine,
    transposed: Sequence[int] = (),
    dtype: Any = None,
    traffic: Traffic | None = None,
    pieces: int = 0,
    functions: float = 0.0,
) -> dict[str, float]:
    """Return the seconds of a device by what limits it: `products`, which is FLOPs, or `memory`.

    flops: the device's operations. ins, outs: the bytes of its part of each operand and result.
    transposed: for each operand, as in `flops.transposed`. dtype: of the first operand; None for 32
    bits. traffic: as in `passed_bytes`. pieces: as in `flops.windows`. functions: as from
    `cpu_functions`. A product that uses each element once, such as one with a vector, packs no
    operand.

    >>> machine = Machine("v5e 4x4")
    >>> computing(Record(), 0, [8100], [8100], machine)["memory"]
    2e-08
    >>> computing(Record(), 197e6, [8100], [8100], machine)["products"]
    1e-06
    """
    nbytes = passed_bytes(record, ins, outs, machine, traffic)
    is_cpu = machine.rates is not None and machine.rates.packs
    functions = max(record.functions, functions if is_cpu else 0.0)
    if functions and flops:
        applied = machine.work_seconds(elements=functions * flops)
        if applied > machine.work_seconds(nbytes=nbytes):
            return {"products": applied, "memory": 0.0}
    if not record.multiplies:
        flops = 0 if record.is_elementwise else flops  # done while the kernel reads and writes
        return machine.computing(flops, nbytes, packs=False, dtype=dtype)
    width = 32 if dtype is None else dtypes.bits(dtype)
    packs = flops / 2 * width > 12 * max(ins, default=0)
    turned = sum(n for n, when in zip(ins, transposed, strict=False) if when > (not packs))
    return machine.computing(flops, nbytes, turned, packs, dtype, pieces)


def cpu_functions(record: Record, op: Op, part: Shape) -> float:
    """Return how many elementwise functions take as long as one of an op's operations on a CPU.

    part: the shape of a device's part of the first operand. A reduction takes longer where the last
    dim has few elements: it is not vectorized.
    """
    own = record.cpu_functions
    last = next((n for n in reversed(part) if n > 1), LANES)
    if record.is_reduction and last < LANES:
        return NARROW
    return own(op) if callable(own) else own


def is_view(
    record: Record, params: Mapping[str, Any], before: Shape, after: Shape, machine: Machine
) -> bool:
    """Return whether a result is its operand in another shape, which takes no pass over memory.

    A broadcast has more elements than its operand, so it is a view on cores only, where the kernels
    that read it repeat its tiles.

    >>> core, same = Machine("n150").by_core, lambda params, *shapes: keeps_tiles(*shapes)
    >>> reshape = Record(is_view=True, keeps_tiles=same)
    >>> is_view(reshape, {}, (2, 96, 64), (192, 64), core)
    True
    >>> is_view(reshape, {}, (2, 50, 96), (100, 96), core)
    False
    """
    if not record.is_view or not (machine.has_cores or prod(before) == prod(after)):
        return False
    if record.keeps_tiles is None or not machine.has_cores or not machine.chip.tiles:
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
