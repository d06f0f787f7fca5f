"""The bytes of memory that an op passes over on a device; shared by plans, reports and dumps.

An op writes its results. A product also reads its operands. On a core, an op that reads more than
it makes counts its largest operand instead of its results, because nothing is fused with its
producer there. An op that only changes its operand's shape takes nothing, except on a core where
its tiles change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridlayout.sharding.machines.machine import Machine

Shape = tuple[int, ...]

# Ops that are priced by their multiplications, and also pass over their operands.
PRODUCTS = ("dot_general", "conv_general_dilated")
# Ops whose results are views of an operand, or fused into consumers.
VIEWS = frozenset(("broadcast_in_dim", "reshape", "squeeze", "transpose", "copy", "stop_gradient"))
# Ops that read more than they make.
_READ = frozenset(
    (
        *(f"reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or", "xor")),
        *(f"reduce_window_{name}" for name in ("sum", "max", "min")),
        *("argmax", "argmin", "reduce", "reduce_window"),
    )
)


def passed_bytes(name: str, ins: Sequence[int], outs: Sequence[int], machine: Machine) -> int:
    """Return the bytes that a device passes over for an op that is no view.

    ins, outs: the bytes of its part of each operand and result.

    >>> passed_bytes("reduce_sum", [4096], [128], Machine("n150").by_core)
    4096
    >>> passed_bytes("add", [4096, 4096], [4096], Machine("n150").by_core)
    4096
    """
    if name in PRODUCTS:
        return sum(ins) + sum(outs)
    if name == "dynamic_update_slice" and not machine.has_cores:
        return 2 * ins[1]  # XLA updates an operand in place at its last use
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
    width: int = 32,
) -> dict[str, float]:
    """Return the seconds of a device by what limits it: `products` or `memory`.

    flops: operations of a product. ins, outs: the bytes of the device's part of each operand and
    result. transposed: for each operand, as in `flops.transposed`. width: bits of an element. A
    product that uses each element once, such as one with a vector, packs no operand.
    """
    nbytes = passed_bytes(name, ins, outs, machine)
    if name not in PRODUCTS:
        return machine.computing(0, nbytes)
    packs = flops / 2 * width > 12 * max(ins, default=0)
    turned = sum(n for n, when in zip(ins, transposed, strict=False) if when > (not packs))
    return machine.computing(flops, nbytes, turned, packs)


def is_view(
    name: str, params: Mapping[str, Any], before: Shape, after: Shape, machine: Machine
) -> bool:
    """Return whether a result is its operand in another shape, which takes no pass over memory.

    >>> core = Machine("n150").by_core
    >>> is_view("reshape", {}, (2, 96, 64), (192, 64), core)
    True
    >>> is_view("reshape", {}, (2, 50, 96), (100, 96), core)
    False
    """
    if name not in VIEWS:
        return False
    if not machine.has_cores or name not in ("reshape", "transpose") or not machine.chip.tiles:
        return True
    if name == "transpose":
        rank = len(before)
        return tuple(params["permutation"])[-2:] == (*range(rank),)[-2:]
    return keeps_tiles(before, after, machine.chip.tiles[0])


def keeps_tiles(before: Shape, after: Shape, tile: Shape) -> bool:
    """Return whether an array has the same tiles in the same order in another shape.

    >>> keeps_tiles((300,), (1, 300), (32, 32)), keeps_tiles((64, 300), (2, 32, 300), (32, 32))
    (True, True)
    >>> keeps_tiles((100, 96), (2, 50, 96), (32, 32))
    False
    """
    (rows, columns), (others, wide) = ((1, 1, *shape)[-2:] for shape in (before, after))
    return columns == wide and (rows == others or rows % tile[0] == others % tile[0] == 0)
