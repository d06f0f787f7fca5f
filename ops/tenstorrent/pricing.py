"""What a machine takes for a compiled program, op by op, in the layouts that its types state.

An op computes on the cores that its result is on, while it reads from DRAM and writes there what is
in that memory; what is dealt to the banks of L1 comes over the network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from gridlayout.errors import LayoutError
from gridlayout.ops.planning.simulation import Equation, Simulation, in_short
from gridlayout.ops.tenstorrent.report import Operation
from gridlayout.sharding.chips import Rates
from gridlayout.sharding.machine import Machine
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

# Ops that multiply matrices; those that only bring values elsewhere, or into another shape.
_PRODUCTS = ("matmul", "linear")
_MOVES = (
    *("to_layout", "to_memory_config", "to_device", "from_device", "reshape", "permute"),
    *("transpose", "typecast", "slice", "slice_static", "concat", "pad", "repeat"),
)
_FREE = ("full", "empty", "ttcore.load_cached", "get_device", "zeros", "ones")
_SIDE = 32  # of a tile


def simulated(name: str, operations: Sequence[Operation], machine: Machine) -> Simulation:
    """What one chip takes for the ops of a program, as they run one after another.

    `LayoutError` for a machine whose chips have one core, or do nothing in a second that is known.
    """
    rates, cores = machine.rates, prod(machine.chip.grid)
    if rates is None or not rates.noc:
        raise LayoutError(
            f"machine {machine!r} has no cores that a compiled program runs on: give one of "
            "Tenstorrent's, such as gl.Machine('n150')"
        )
    seen: dict[str, int] = {}
    equations = []
    for op in operations:
        number = seen[op.name] = seen.get(op.name, -1) + 1
        equations.append(_equation(op, f"{op.name}:{number}", rates, cores))
    held = _held(operations, cores)
    peak = max((nbytes for _, nbytes in held), default=0)
    links = "network on the chip"
    moved = sum(_dealt(x) for op in operations for x in op.inputs if x is not None)
    mesh = dict(zip(("r", "c"), machine.chip.grid, strict=False))
    named = zip((each.name for each in equations), (n for _, n in held), strict=True)
    sent = {links: moved // cores} if moved else {}
    return Simulation(name, machine.by_core, mesh, tuple(equations), tuple(named), peak, sent)


def _equation(op: Operation, name: str, rates: Rates, cores: int) -> Equation:
    ins = [x for x in op.inputs if x is not None]
    outs = [x for x in op.outputs if x is not None]
    used = max((_cores_of(x, cores) for x in outs), default=cores)
    far = sum(x.held.nbytes for x in (*ins, *outs) if x.memory == "dram")
    compute = read = movement = 0.0
    if op.name not in _FREE:
        compute = _computed(op, ins, outs, rates, used, cores)
        read, movement = far / rates.memory, sum(map(_dealt, ins)) / (cores * rates.noc)
    computing = "products" if op.name in _PRODUCTS else "l1"
    limits = {"dram": read, "links": movement, computing: compute}
    limit = max(limits, key=limits.__getitem__)
    before, after = (", ".join(map(in_short, some)) for some in (ins, outs))
    on, seconds = f"{used} of {cores} cores", max(compute, read)
    return Equation(name, before, after, seconds, movement, limit if limits[limit] else "", on)


def _computed(
    op: Operation,
    ins: Sequence[TtnnLayout],
    outs: Sequence[TtnnLayout],
    rates: Rates,
    used: int,
    cores: int,
) -> float:
    """Seconds of the cores that compute."""
    if op.name in _PRODUCTS and ins and outs:
        made, contracted = outs[0].shape, ins[0].shape[-1]
        tiles = prod(made[:-2]) * prod(-(-n // _SIDE) for n in (*made[-2:], contracted))
        if cycles := _cycles(op, rates):
            return tiles * cycles / (rates.clock * used)
        return 2 * _SIDE**3 * tiles / (rates.flops * used / cores)
    elements = sum(prod(x.physical_shape) for x in outs)
    return elements / (rates.elementwise * used / cores) if op.name not in _MOVES else 0.0


def _cycles(op: Operation, rates: Rates) -> int:
    """What a product of two tiles takes in the op's math fidelity; 0 where it states none."""
    stated = re.search(r"math_fidelity = (\w+)", op.hints.get("compute_config", ""))
    by_name = {name.lower(): cycles for name, cycles in rates.tile_cycles.items()}
    return by_name.get(stated[1].lower(), 0) if stated and rates.clock else 0


def _cores_of(layout: TtnnLayout, cores: int) -> int:
    """The cores that compute a value: those that have its shards, else as it has tiles."""
    if layout.memory == "l1" and not layout.is_interleaved:
        return min(prod(layout.core_shape), cores)
    tiles = prod(layout.shape[:-2]) * prod(-(-n // _SIDE) for n in layout.shape[-2:])
    return max(min(tiles, cores), 1)


def _dealt(layout: TtnnLayout | None) -> int:
    """Bytes of a value whose pages are dealt to the cores' L1."""
    if layout is None or layout.memory != "l1" or not layout.is_interleaved:
        return 0
    return layout.held.nbytes


def _held(operations: Sequence[Operation], cores: int) -> list[tuple[str, int]]:
    """Bytes in a core's L1 as each op runs: of values that a later op reads, and its own."""
    last = {name: n for n, op in enumerate(operations) for name in (op.function, *op.operands)}
    alive: dict[tuple[str, str], int] = {}
    found = []
    for n, op in enumerate(operations):
        for value, layout in zip(op.results, op.outputs, strict=True):
            if layout is not None and layout.memory == "l1":
                own = -(-layout.held.nbytes // cores) if layout.is_interleaved else None
                alive[op.function, value] = layout.held.per_core if own is None else own
        found.append((op.name, sum(alive.values())))
        for key in [key for key in alive if last.get(key[1], -1) <= n]:
            del alive[key]
    return found
