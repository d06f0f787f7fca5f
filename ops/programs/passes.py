"""What an op goes through of a device's memory, in bytes, whoever asks: plans, reports, dumps.

An op writes its results. A product reads its operands besides, and on a core so does what reads
more than it makes, as nothing there is fused with what comes before. What is an operand in another
shape takes nothing, unless a core has it in tiles that change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridlayout.sharding.machine import Machine

Shape = tuple[int, ...]

# What is priced by its multiplications, and goes through its operands too.
PRODUCTS = ("dot_general", "conv_general_dilated")
# What is seen in another shape, or made where it is read.
SEEN = frozenset(("broadcast_in_dim", "reshape", "squeeze", "transpose", "copy", "stop_gradient"))
# What reads more than it makes.
_READ = frozenset(
    (
        *(f"reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or", "xor")),
        *(f"reduce_window_{name}" for name in ("sum", "max", "min")),
        *("argmax", "argmin", "reduce", "reduce_window"),
    )
)


def passed_bytes(name: str, ins: Sequence[int], outs: Sequence[int], machine: Machine) -> int:
    """Bytes that a device goes through for an op that is no view.

    ins, outs: bytes of its part of each operand and result.

    >>> passed_bytes("reduce_sum", [4096], [128], Machine("n150").by_core)
    4096
    >>> passed_bytes("add", [4096, 4096], [4096], Machine("n150").by_core)
    4096
    """
    if name in PRODUCTS:
        return sum(ins) + sum(outs)
    if name == "dynamic_update_slice" and not machine.has_cores:
        return 2 * ins[1]  # XLA updates what is read no more where it is
    if name in _READ and machine.has_cores:
        return max(max(ins, default=0), sum(outs))
    return sum(outs)


def computing(
    name: str,
    flops: float,
    ins: Sequence[int],
    outs: Sequence[int],
    machine: Machine,
    transposed: Sequence[int] = (),
    itemsize: int = 4,
) -> dict[str, float]:
    """Seconds of a device by what limits it: `products` or `memory`.

    flops: operations of a product. ins, outs: bytes of the device's part of each operand and
    result. transposed: of operands, as `flops.transposed` says. itemsize: bytes of an element. A
    product that uses each element of an operand once, as one with a vector does, packs nothing.
    """
    nbytes = passed_bytes(name, ins, outs, machine)
    if name not in PRODUCTS:
        return machine.computing(0, nbytes)
    packs = flops / 2 * itemsize > 1.5 * max(ins, default=0)
    turned = sum(n for n, when in zip(ins, transposed, strict=False) if when > (not packs))
    return machine.computing(flops, nbytes, turned, packs)


def is_seen(
    name: str, params: Mapping[str, Any], before: Shape, after: Shape, machine: Machine
) -> bool:
    """Whether a result is its operand in another shape, which takes no pass over memory.

    >>> core = Machine("n150").by_core
    >>> is_seen("reshape", {}, (2, 96, 64), (192, 64), core)
    True
    >>> is_seen("reshape", {}, (2, 50, 96), (100, 96), core)
    False
    """
    if name not in SEEN:
        return False
    if not machine.has_cores or name not in ("reshape", "transpose") or not machine.chip.tiles:
        return True
    if name == "transpose":
        rank = len(before)
        return tuple(params["permutation"])[-2:] == (*range(rank),)[-2:]
    return keeps_tiles(before, after, machine.chip.tiles[0])


def keeps_tiles(before: Shape, after: Shape, tile: Shape) -> bool:
    """Whether an array has the same tiles, in the same order, in another shape.

    >>> keeps_tiles((300,), (1, 300), (32, 32)), keeps_tiles((64, 300), (2, 32, 300), (32, 32))
    (True, True)
    >>> keeps_tiles((100, 96), (2, 50, 96), (32, 32))
    False
    """
    (rows, columns), (others, wide) = ((1, 1, *shape)[-2:] for shape in (before, after))
    return columns == wide and (rows == others or rows % tile[0] == others % tile[0] == 0)
