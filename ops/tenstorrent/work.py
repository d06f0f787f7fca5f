"""`Work`: the work of a compiled op, counted in the jaxpr of its function as for a plan."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from gridlayout import dtypes
from gridlayout.ops.decisions.flops import of_blocks
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node
from gridlayout.ops.programs.passes import keeps_tiles, passed_bytes
from gridlayout.ops.tenstorrent.report import Operation
from gridlayout.sharding.machines.machine import Machine
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

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
