"""`Work`: what a compiled op computes, counted in the jaxpr of its function as a plan counts it."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from gridlayout.ops.decisions.flops import of_blocks
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.plan.graph import Graph, Node
from gridlayout.ops.programs.passes import PRODUCTS, SEEN, keeps_tiles, passed_bytes
from gridlayout.ops.tenstorrent.report import Operation
from gridlayout.sharding.machine import Machine
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

# What only brings values elsewhere, or to another type.
MOVES = ("to_layout", "to_memory_config", "to_device", "from_device", "typecast")
_FREE = ("full", "empty", "zeros", "ones", "arange", "constant", "get_device")
# Nothing of itself inside a kernel, which reads its operands as it needs them.
_WITHIN = SEEN | {"convert_element_type"}


class Work(NamedTuple):
    """What all cores do for an op: operations of products, and bytes of L1 that others go through.

    is_free: whether nothing is done at all: results are constants, or operands as they are.
    """

    flops: int = 0
    nbytes: int = 0
    is_free: bool = False


def work_of(op: Operation, machine: Machine, chips: int = 1) -> Work:
    """The work of one op on one of some chips, that of a machine whose devices are its cores."""
    if op.traced is None or op.name in _FREE or is_view(op):
        return Work(is_free=True)
    graph, flops, nbytes = Graph.of(op.traced()), 0, 0
    types = (x.dtype for x in (*op.inputs, *op.outputs) if x is not None)
    wide = max((int(dtype.itemsize) for dtype in types), default=4)
    for node in graph.nodes:
        if node.name in PRODUCTS:
            flops += of_blocks(Op.of(node.eqn), *_shapes(graph, node), machine)
        elif node.name not in _WITHIN:
            ins = [_held(graph, v, machine, wide) for v in node.ins if v is not None]
            outs = [_held(graph, v, machine, wide) for v in node.outs]
            nbytes += passed_bytes(node.name, ins, outs, machine)
    if not flops and not nbytes:
        nbytes = chips * sum(x.held.nbytes for x in op.outputs if x is not None)
    return Work(flops // chips, nbytes // chips)


def _shapes(graph: Graph, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of a product's left operand and its result."""
    aval = node.eqn.invars[0].aval
    return tuple(aval.shape), graph.shapes[node.outs[0]]


def _held(graph: Graph, value: int, machine: Machine, wide: int) -> int:
    """Bytes of a value in whole tiles, of elements that are no wider than the op's tensors'.

    Floats of 16 bits are those of 32 inside an op's function, as they are in a core's registers.
    """
    return prod(machine.padded(graph.shapes[value])) * min(graph.itemsizes[value], wide)


def is_view(op: Operation) -> bool:
    """Whether a result is its operand's buffer: a reshape whose tiles stay as they are."""
    if op.name not in ("reshape", "squeeze", "unsqueeze") or len(op.inputs) != 1:
        return False
    (before,), (after,) = op.inputs, op.outputs
    if before is None or after is None or _place(before) != _place(after):
        return False
    return before.tile is not None and keeps_tiles(before.shape, after.shape, before.tile)


def _place(layout: TtnnLayout) -> tuple[object, ...]:
    grid = None if layout.is_interleaved else layout.grid
    return layout.buffer_type, layout.memory_layout, layout.tile, layout.dtype, grid
