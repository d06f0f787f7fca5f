"""Chains: elementwise operations that a plan divides together, as one node.

A value of a chain is divided like its result. Moving a value inside of a chain takes as many bytes
as moving the chain's operand or its result, so that nothing is lost if all of it is divided alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gridlayout.ops.choose.choice import Choice
from gridlayout.ops.choose.division import Division
from gridlayout.ops.decisions.factors import Dims
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Node
from gridlayout.ops.graph.once import once

_BROADCAST = "broadcast_in_dim"  # can be the first operation of a chain


@once
def with_chains(graph: Graph) -> Graph:
    """Return a graph of the same values, with each chain as one node in place of its last one.

    A value joins the operation that is its only consumer with the one that makes it, if either of
    the two reads no other array of its size.
    """
    made_by = {node.outs[0]: n for n, node in enumerate(graph.nodes) if _can_join(node)}
    reads = Counter(v for node in graph.nodes for v in {*node.ins} if v is not None)
    reads.update(v for v in graph.outs if v is not None)
    into: dict[int, list[int]] = {}  # node: members of the chain that ends there, in order
    wide: dict[int, int] = {}  # the arrays of full size that this chain reads
    joined: set[int] = set()
    for n, node in enumerate(graph.nodes):
        if not node.outs or made_by.get(node.outs[0]) != n:
            continue
        into[n] = [n]
        wide[n] = len({v for v in node.ins if _is_wide(graph, v, node)})
        if node.name == _BROADCAST:
            continue
        for v in dict.fromkeys(node.ins):
            maker = made_by.get(v) if v is not None and reads[v] == 1 else None
            if maker is None or not _is_same(graph, graph.nodes[maker], node):
                continue
            if wide[maker] <= 1 or wide[n] <= 1:
                into[n] = into[maker] + into[n]
                wide[n] += wide[maker] - 1 if _is_wide(graph, v, node) else wide[maker]
                joined.add(maker)
    ends = {n: members for n, members in into.items() if n not in joined and len(members) > 1}
    inside = {m for n, members in ends.items() for m in members if m != n}
    nodes = [
        _chain([graph.nodes[m] for m in ends[n]]) if n in ends else node
        for n, node in enumerate(graph.nodes)
        if n not in inside
    ]
    return replace(graph, nodes=nodes)


def _can_join(node: Node) -> bool:
    can = node.record.is_elementwise or node.name == _BROADCAST
    return can and node.eqn is not None and node.factors is not None and len(node.outs) == 1


def _is_wide(graph: Graph, value: int | None, node: Node) -> bool:
    """Return whether an operand has about as many bytes as the node's result."""
    return value is not None and 2 * graph.nbytes(value) > graph.nbytes(node.outs[0])


def _is_same(graph: Graph, maker: Node, node: Node) -> bool:
    """Return whether two nodes have results of one shape and width, and run equally often."""
    (a,), (b,) = maker.outs, node.outs
    return (
        graph.shapes[a] == graph.shapes[b]
        and graph.width(a) == graph.width(b)
        and maker.times == node.times
        and maker.path[:-1] == node.path[:-1]
    )


def _chain(members: list[Node]) -> Node:
    """Return the node of a chain; its factors are the dims of its result."""
    inner = {v for node in members[:-1] for v in node.outs}
    last = members[-1]
    assert last.factors is not None
    outs = last.factors.outs[0]
    ins: dict[tuple[int, Dims], None] = {}
    for node in members:
        for v, dims in zip(node.ins, node.result_dims, strict=True):
            if v is not None and v not in inner:
                ins[v, tuple(None if d is None else outs[d] for d in dims)] = None
    factors = replace(last.factors, ins=tuple(dims for _, dims in ins))
    label = " ".join(("chain", *(node.name for node in members)))
    own = tuple(v for v, _ in ins)
    return replace(last, atoms=own, stated=factors, label=label, members=tuple(members))


def of_member(node: Node, choice: Choice) -> Choice:
    """Return how a member of a chain runs, where the chain runs as `choice`."""
    ins = tuple(
        None if v is None or not dims else divided(dims, choice.out)
        for v, dims in zip(node.ins, node.result_dims, strict=True)
    )
    return Choice(ins, choice.out, choice.out)


def divided(dims: Dims, along: Division) -> Division:
    """Return the division of dims that are given by their numbers, of factors or of a result.

    along: the units along each of these.
    """
    return tuple(() if d is None else along[d] for d in dims)
