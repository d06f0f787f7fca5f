"""Prices of a compiled program on a machine, op by op, in the layouts that its types state.

The work of an op is counted and priced as that of a plan's equation, on the cores of its result. An
op reads and writes DRAM while it computes. Before that, it receives data in other cores' L1 over
the network on the chip. Ops on the host, and transfers to and from it, are listed without a price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isqrt, prod
from typing import NamedTuple

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.ops.decisions.flops import of_blocks
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node
from gridlayout.ops.planning.equation import Equation
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.programs.passes import keeps_tiles, passed_bytes
from gridlayout.ops.tenstorrent.held import held_bytes
from gridlayout.ops.tenstorrent.linking import Linked
from gridlayout.ops.tenstorrent.report import Operation
from gridlayout.sharding.machines.machine import Machine
from gridlayout.tables.cells import tensors
from gridlayout.tenstorrent.program_config import blocks_of
from gridlayout.tenstorrent.tensor_type import ttnn_place
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


# Of primitives that are no views, those that cost nothing inside a kernel.
_WITHIN = ("convert_element_type", "copy")
_FREE = ("full", "empty", "zeros", "ones", "arange", "constant")


class Work(NamedTuple):
    """The work of all cores for an op: FLOPs of products, and L1 bytes of all other primitives.

    is_free: whether there is no work: results are constants, or views of operands.
    """

    flops: int = 0
    nbytes: int = 0
    is_free: bool = False


def work_of(op: Operation, machine: Machine, chips: int = 1) -> Work:
    """Return the work of one op on one of several chips; machine: one whose devices are cores."""
    if op.traced is None or op.name in _FREE or is_view(op):
        return Work(is_free=True)
    graph, flops, nbytes = Graph.of(op.traced()), 0, 0
    types = (x.dtype for x in (*op.inputs, *op.outputs) if x is not None)
    wide = max(map(dtypes.bits, types), default=32)
    for node in graph.nodes:
        if node.record.multiplies:
            flops += of_blocks(node.op, *_shapes(graph, node), machine)
        elif not node.record.is_view and node.name not in _WITHIN:
            ins = [_held(graph, v, machine, wide) for v in node.ins if v is not None]
            outs = [_held(graph, v, machine, wide) for v in node.outs]
            nbytes += passed_bytes(node.record, ins, outs, machine)
    if not flops and not nbytes:
        nbytes = chips * sum(x.held.nbytes for x in op.outputs if x is not None)
    return Work(flops // chips, nbytes // chips)


def _shapes(graph: Graph, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of a product's left operand and of its result."""
    return node.op.ins[0].shape, graph.shapes[node.outs[0]]


def _held(graph: Graph, value: int, machine: Machine, wide: int) -> int:
    """Return the bytes of a value in whole tiles; elements have at most `wide` bits.

    `wide` is the widest element of the op's tensors: inside an op's function 16-bit floats are
    float32, as in a core's registers.
    """
    count = prod(machine.padded(graph.shapes[value]))
    return -(-count * min(graph.width(value), wide) // 8)


def is_view(op: Operation) -> bool:
    """Return whether a result is its operand's buffer: a reshape that keeps the tiles."""
    if op.name not in ("reshape", "squeeze", "unsqueeze") or len(op.inputs) != 1:
        return False
    (before,), (after,) = op.inputs, op.outputs
    if before is None or after is None or _place(before) != _place(after):
        return False
    return before.tile is not None and keeps_tiles(before.shape, after.shape, before.tile)


def _place(layout: TtnnLayout) -> tuple[object, ...]:
    grid = None if layout.is_interleaved else layout.grid
    return layout.buffer_type, layout.memory_layout, layout.tile, layout.dtype, grid


_HOST = ("system", "mmio")
_FIDELITY = re.compile(r"math_fidelity = (\w+)")


def simulated(
    linked: Linked, operations: Sequence[Operation], machine: Machine, chips: int = 1
) -> Simulation:
    """Return the simulation of a program on one chip, with its ops in sequence.

    operations: those of `linked`. chips: the number of chips that the program is for. `LayoutError`
    for a machine whose chips have one core, or whose rates are not known.
    """
    if not machine.by_core.has_cores:
        raise LayoutError(
            f"machine {machine!r} has no cores that a compiled program runs on: give one of "
            "Tenstorrent's, such as gl.Machine('n150')"
        )
    core = machine.by_core
    grid = (core.mesh or ())[-len(core.chip.grid) :]
    cores = prod(grid)
    seen: dict[str, int] = {}
    equations, received = [], 0
    for op in operations:
        number = seen[op.name] = seen.get(op.name, -1) + 1
        made, nbytes = _equation(op, f"{op.name}:{number}", core, cores, chips)
        equations.append(made)
        received += nbytes
    names = [each.name for each in equations]
    over_time = held_bytes(linked, cores)
    held, dram = (tuple(zip(names, over_time[memory], strict=True)) for memory in ("l1", "dram"))
    peak = max((nbytes for _, nbytes in held), default=0)
    mesh = dict(zip(core.core_axes, grid, strict=True))
    sent = {"network on the chip": received} if received else {}
    return Simulation(linked.name, core, mesh, tuple(equations), held, peak, sent, in_dram=dram)


def _equation(
    op: Operation, name: str, core: Machine, cores: int, chips: int
) -> tuple[Equation, int]:
    """Return an op as an equation, and the bytes that a core receives from other cores' L1."""
    ins, outs = (tuple(x for x in some if x is not None) for some in (op.inputs, op.outputs))
    made = Equation(name, tensors(ins), tensors(outs), 0.0, 0.0)
    if outs:
        made = replace(made, shape=outs[0].shape, place=ttnn_place(outs[0]))
    if any(x.memory in _HOST for x in (*ins, *outs)):
        return replace(made, how="host, not priced"), 0
    work = Work(is_free=True) if not outs else work_of(op, core, chips)
    if work.is_free:
        return made, 0
    assert core.rates is not None
    share = share_of(op, outs, cores)
    streamed, received, passed = _traffic(op, share, core)
    passed = passed if op.name in PRODUCTS else 0
    flops = work.flops * share.part * _passes(op, core)
    limits = core.computing(flops, passed + work.nbytes * share.part)
    limits["dram"], movement = streamed, received / core.rates.noc
    compute = max(limits.values())
    limits["links"] = movement
    limit = max(limits, key=limits.__getitem__)
    on = f"{share.cores} of {cores} cores"
    limit = limit if limits[limit] else ""
    return replace(made, compute=compute, movement=movement, limit=limit, how=on), received


def _passes(op: Operation, core: Machine) -> float:
    """Return how much longer products take in the op's fidelity than at the machine's rate.

    1 where the op states no fidelity, or the machine no cycles.
    """
    rates, stated = core.rates, _FIDELITY.search(op.hints.get("compute_config", ""))
    if rates is None or not rates.clock or stated is None:
        return 1.0
    by_name = {name.lower(): cycles for name, cycles in rates.tile_cycles.items()}
    cycles = by_name.get(stated[1].lower(), 0)
    return cycles / rates.clock / core.seconds(flops=2 * SIDE**3) if cycles else 1.0


def _traffic(op: Operation, share: Share, core: Machine) -> tuple[float, int, int]:
    """Return seconds of DRAM, bytes that a core receives from other L1s, and bytes that it uses."""
    streamed, received, own = 0.0, 0, 0
    for k, x in enumerate(op.inputs):
        if x is None:
            continue
        needed = needed_bytes(op, k, share)
        own += needed
        if x.memory == "dram":
            streamed += core.streaming(x.held.nbytes, needed)
        elif x.is_interleaved:
            received += needed
        else:
            received += _resharded(op, x, needed)
    for x in (x for x in op.outputs if x is not None):
        made = int(x.held.nbytes * share.part)
        own += made
        if x.memory == "dram":
            streamed += core.streaming(x.held.nbytes, made)
        elif x.is_interleaved:
            received += made
    return streamed, received, own


def _resharded(op: Operation, x: TtnnLayout, needed: int) -> int:
    """Return the bytes of a sharded operand that a core receives; 0 if it holds all it needs."""
    out = next(each for each in op.outputs if each is not None)
    is_there = (x.memory_layout, x.grid) == (out.memory_layout, out.grid)
    if op.name in PRODUCTS or is_there:
        return max(needed - x.held.per_core, 0)
    return needed if out.memory == "l1" else 0
