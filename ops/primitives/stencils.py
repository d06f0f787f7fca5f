"""Loops around stencils: borders for several iterations are received at once.

A stencil computes arrays of one shape from each other, element by element and from near their
positions. A device that receives a border `steps` times as wide computes that many iterations
without further exchange, each on fewer positions around its block. It computes some positions that
its neighbours compute too; in return there are fewer collectives, whose latency counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, block_spec, equal_blocks
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.jaxprs import scan_parts, traced_equation
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.shifted import Row, Shifted
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.ops.primitives.overlapping import Reads, overlapping
from gridlayout.ops.primitives.views import borders, cut_view
from gridlayout.sharding.exchanges.borders import UNREAD, Border
from gridlayout.sharding.meshes.placement import Placement

# How many iterations may be computed between two exchanges.
STEPS = (2, 4, 8)
# How far a number extends, along one dim.
_EVERYWHERE = ((1 << 30, 1 << 30),)
# By how many positions an array extends before and after a device's block, along each dim.
Ends = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Stencil:
    """One iteration of a loop around a stencil.

    graph: of its jaxpr. shape: of all arrays. reach: how far it reads along each dim, before and
    after a position. wraps: the dims along which it reads around the arrays.
    """

    graph: Any
    shape: Shape
    reach: Ends
    wraps: tuple[bool, ...]

    @classmethod
    def of(cls, graph: Any) -> Stencil | None:
        """Return the stencil of a loop's body; None if the body is none."""
        shape = next((graph.shapes[v] for v in range(graph.operands) if graph.shapes[v]), ())
        if not shape or 0 in shape or any(graph.shapes[v] for v in graph.constants):
            return None
        used = {*range(graph.operands), *(v for node in graph.nodes for v in node.outs)}
        if any(graph.shapes[v] not in ((), shape) for v in used):
            return None
        none = ((0, 0),) * len(shape)
        reaches: dict[int, Ends] = dict.fromkeys(range(len(graph.shapes)), none)
        wraps, flat = [False] * len(shape), set[int]()
        for node in graph.nodes:
            if not _is_local(node, graph, shape):
                return None
            arrays = [v for v in node.ins if v is not None and graph.shapes[v]]
            ends = _most([none, *(reaches[v] for v in arrays)])
            if flat.issuperset(arrays):  # all its elements are equal
                flat.update(node.outs)
            if node.name == "views":
                if flat.issuperset(arrays):
                    return None
                near = borders(node.params["views"], shape)
                ends = _plus(ends, [each or (0, 0) for each in near])
                wraps = [
                    a or any(_wraps(view.rows[d], n) for view in node.params["views"])
                    for d, (a, n) in enumerate(zip(wraps, shape, strict=True))
                ]
            reaches.update(dict.fromkeys(node.outs, ends))
        reach = _most([none, *(reaches[v] for v in graph.outs if v is not None)])
        return None if reach == none else cls(graph, shape, reach, tuple(wraps))


def _is_local(node: Any, graph: Any, shape: Shape) -> bool:
    """Whether a node computes arrays from elements at or near the same positions, or numbers."""
    if node.label or node.eqn is None or node.eqn.effects:
        return False
    if node.name == "views":
        shown = node.params["views"]
        own = tuple(range(len(shape)))
        same = all(v.shape == shape and tuple(r.dim for r in v.rows) == own for v in shown)
        return same and None not in borders(shown, shape)
    shapes = [graph.shapes[v] for v in (*node.ins, *node.outs) if v is not None]
    if node.name == "broadcast_in_dim":
        return not any(graph.shapes[v] for v in node.ins if v is not None)
    return node.record.is_elementwise or not any(shapes)


def _wraps(row: Row, n: int) -> bool:
    """Whether positions along a dim are read from around the array."""
    at = row.positions()
    return bool((abs(at - np.arange(len(at)))[at >= 0] > n // 2).any())


def _most(some: Sequence[Ends]) -> Ends:
    return tuple((max(a for a, _ in d), max(b for _, b in d)) for d in zip(*some, strict=True))


def _least(some: Sequence[Ends]) -> Ends:
    return tuple((min(a for a, _ in d), min(b for _, b in d)) for d in zip(*some, strict=True))


def _plus(ends: Ends, more: Sequence[tuple[int, int]], times: int = 1) -> Ends:
    pairs = zip(ends, more, strict=True)
    return tuple((a + times * c, b + times * d) for (a, b), (c, d) in pairs)


def _held(found: Stencil | None) -> int:
    """Return about how many bytes a stencil takes: those of its nodes."""
    return 1024 if found is None else 4096 * len(found.graph.nodes)


@cached(size=_held)
def _stencil_of(closed: Any, plan: Any) -> Stencil | None:
    """Return the stencil of a loop's body; plan: the class of planners."""
    return Stencil.of(plan.graph(closed))


# -- the primitive ---------------------------------------------------------------------------------


# Some iterations of a loop's body, on constants and carry. It is made only where its rule applies.
# jaxpr: the body. consts: the number of constants, which come first. border: the number of
# iterations for which they have a border already. steps: the number of iterations.
iterations_p = core.Primitive("iterations")
iterations_p.multiple_results = True
iterations_p.def_abstract_eval(lambda *_, jaxpr, **__: list(jaxpr.out_avals))


def in_rounds(
    b: Builder, op: Op, *values: Value, steps: int
) -> tuple[Op, list[Value], Op, list[Value]] | None:
    """Return a `lax.scan` as one of rounds of several iterations, its operands, and the rest.

    The rest is an op for the iterations that are left, and its constants, which the carry follows.
    None if the loop's body is no stencil, or if it scans or stacks arrays, or runs too few
    iterations.
    """
    p, (first, second) = op.params, scan_parts(op.params)
    closed, length = p["jaxpr"], p["length"]
    is_plain = len(values) == second and len(op.outs) == second - first
    if not is_plain or length < 2 * steps or not any(x.layout for x in values):
        return None
    stencil, blocks = _stencil_of(closed, b.plan), _blocks(b, values[first:])
    if stencil is None or blocks is None or not _fits(stencil, blocks, steps):
        return None
    # Borders of constants are received once.
    consts = [_bordered(b, x, stencil, blocks, steps) for x in values[:first]]
    ins = [*(Aval(x.shape, x.dtype) for x in consts), *op.ins[first:]]
    params = {"jaxpr": closed, "consts": first, "border": steps}

    def rounds(*arrays: Any) -> Any:
        def several(carry: Any, _: None) -> Any:
            return iterations_p.bind(*arrays[:first], *carry, steps=steps, **params), None

        return lax.scan(several, list(arrays[first:]), length=length // steps)[0]

    eqn, order = traced_equation(rounds, ins)
    b.computing += length // steps * _repeated(b, stencil, blocks, steps)
    rest = Op(iterations_p, {**params, "steps": length % steps}, tuple(ins), op.outs)
    given = [*consts, *values[first:]]
    return Op.of(eqn), [given[k] for k in order], rest, consts


def _blocks(b: Builder, carry: Sequence[Value]) -> Sharded | None:
    """Return the blocks of the first array that is carried; None if it is in no blocks."""
    spec = next((x.spec for x in carry if x.ndim and x.layout is not None), None)
    found = None if spec is None else as_blocks(spec, b.device)
    is_whole = found is not None and found.placement.slots == found.placement.grid
    return equal_blocks(found) if found is not None and is_whole else None


def _reach(stencil: Stencil, blocks: Sharded) -> Ends:
    """Return how far an iteration reads beyond a device's block."""
    rows = zip(stencil.reach, blocks.placement.grid, strict=True)
    return tuple(each if n > 1 else (0, 0) for each, n in rows)


def _fits(stencil: Stencil, blocks: Sharded, steps: int) -> bool:
    """Whether something is received, and borders are no wider than blocks."""
    reach = _reach(stencil, blocks)
    rows = zip(reach, block_shape(blocks), strict=True)
    return any(a + c for a, c in reach) and all(steps * (a + c) <= n for (a, c), n in rows)


def _extended(block: Shape, ends: Ends) -> Shape:
    return tuple(a + n + c for n, (a, c) in zip(block, ends, strict=True))


def _bordered(b: Builder, x: Value, stencil: Stencil, blocks: Sharded, steps: int) -> Value:
    """Return an array with the borders that some iterations read; a number as it is."""
    if not x.ndim:
        return b.replicated(x)
    block, rows = block_shape(blocks), zip(_reach(stencil, blocks), stencil.wraps, strict=True)
    reads = {
        d: Reads(-steps * a, block[d], steps * (a + c) + block[d], wraps)
        for d, ((a, c), wraps) in enumerate(rows)
        if a or c
    }
    return overlapping(b, x, blocks.placement, reads, 0)


def _repeated(b: Builder, stencil: Stencil, blocks: Sharded, steps: int) -> float:
    """Return the seconds in which a device computes positions that its neighbours compute too."""
    block, reach, more = block_shape(blocks), _reach(stencil, blocks), 0
    for left in range(steps):
        rows = zip(block, reach, strict=True)
        more += prod(n + left * (a + c) for n, (a, c) in rows) - prod(block)
    graph = stencil.graph
    read = sum(dtypes.nbytes(more, graph.dtypes[v]) for v in graph.outs if v is not None)
    return b.env.machine.work_seconds(nbytes=(1 + len(graph.nodes)) * read)


# -- the rule --------------------------------------------------------------------------------------


def iterations(b: Builder, op: Op, *values: Value) -> list[Value] | None:
    """Rule for some iterations of a stencil, whose blocks are as `in_rounds` finds them."""
    first, steps = op.params["consts"], op.params["steps"]
    stencil = _stencil_of(op.params["jaxpr"], b.plan)
    spec = _blocks(b, values[first:])
    if stencil is None or spec is None:
        return None
    placed, block, shape = spec.placement, block_shape(spec), stencil.shape
    reach = _reach(stencil, spec)
    given = [
        x if k < first and x.ndim else _bordered(b, x, stencil, spec, steps)
        for k, x in enumerate(values)
    ]
    specs: list[Sharded | Replicated] = [
        block_spec(out.shape, out.dtype, placed) if out.shape else Replicated((), out.dtype)
        for out in op.outs
    ]
    ends = _plus(((0, 0),) * len(shape), reach, steps)
    of_consts = _plus(((0, 0),) * len(shape), reach, op.params["border"])
    here, wide = _Here(stencil, placed, block), _extended(block, ends)

    def kernel(*parts: Any) -> list[Any]:
        every = _EVERYWHERE * len(block)
        consts = [
            (x.reshape(_extended(block, of_consts)), of_consts) if x.ndim else (x, every)
            for x in parts[:first]
        ]
        carry = [x.reshape(wide) if x.ndim else x for x in parts[first:]]
        for step in range(steps):
            around = _plus(ends, reach, -step)
            own = [(x, around if x.ndim else every) for x in carry]
            held = here.iteration([*consts, *own])
            after = _plus(around, reach, -1)
            # XLA would compute an element again for each one that is computed from it.
            carry = lax.optimization_barrier([here.cut_to(x, own, after) for x, own in held])
        return [
            x.reshape(spec.local_shape) if isinstance(spec, Sharded) else x
            for x, spec in zip(carry, specs, strict=True)
        ]

    b.note = f"{steps} iterations per halo exchange"
    # The arrays of one iteration, while those of the next one are made.
    held = sum(dtypes.nbytes(wide, out.dtype) for out in op.outs if out.shape)
    return b.run(kernel, given, specs, workspace=partial(Workspace, (), (held,)))


@dataclass(frozen=True)
class _Here:
    """An iteration on one device, on arrays that extend beyond its block."""

    stencil: Stencil
    placed: Placement
    block: Shape

    def iteration(self, values: Sequence[tuple[Any, Ends]]) -> list[tuple[Any, Ends]]:
        """Return the results of the body for its operands, with how far each array extends."""
        graph = self.stencil.graph
        every = _EVERYWHERE * len(self.block)
        held: dict[int, tuple[Any, Ends]] = dict(enumerate(values))
        held.update((v, (constant, every)) for v, constant in graph.constants.items())

        def read(atom: Any) -> tuple[Any, Ends]:
            if isinstance(atom, int):
                return held[atom]
            return jnp.asarray(atom.val, atom.aval.dtype), every

        for node in graph.nodes:
            given = [read(atom) for atom in node.atoms]
            if node.name == "views":
                outs = self._views(node.params["views"], *given[0])
            else:
                ends = _least([every, *(own for _, own in given)])
                outs = [(x, ends) for x in self._applied(node, given, ends)]
            held.update(zip(node.outs, outs, strict=True))
        return [read(atom) for atom in graph.results]

    def _applied(self, node: Any, given: Sequence[tuple[Any, Ends]], ends: Ends) -> list[Any]:
        """Return the results of an elementwise op on arrays that extend that far at least."""
        if node.name == "broadcast_in_dim":
            return [jnp.reshape(given[0][0], (1,) * len(self.block))]
        found: list[Any] = node.op.bind(*(self.cut_to(x, own, ends) for x, own in given))
        return found

    def cut_to(self, x: Any, own: Ends, ends: Ends) -> Any:
        """Return an array that extends as far as `own`, cut to `ends`; numbers as they are."""
        if jnp.ndim(x) and own == _EVERYWHERE * len(own) != ends:
            return jnp.broadcast_to(x, _extended(self.block, ends))
        for d, ((a, c), (e, f)) in enumerate(zip(own, ends, strict=True)):
            if jnp.ndim(x) and (a, c) != (e, f):
                x = lax.slice_in_dim(x, a - e, x.shape[d] - (c - f), axis=d)
        return x

    def _views(self, shown: Sequence[Shifted], x: Any, own: Ends) -> list[tuple[Any, Ends]]:
        near = borders(shown, self.stencil.shape)
        sides = [each if n > 1 else (0, 0) for each, n in zip(near, self.placed.grid, strict=True)]
        ends = _plus(own, [each or (0, 0) for each in sides], -1)
        return [(self._view(view, x, own, ends), ends) for view in shown]

    def _view(self, view: Shifted, x: Any, own: Ends, ends: Ends) -> Any:
        tables = [self._table(view, d, *pair) for d, pair in enumerate(zip(own, ends, strict=True))]
        axes, grid = self.placed.axes, self.placed.grid
        held = [
            Border.local(axes[d], grid[d], self.block[d], x.shape[d], [table])
            for d, table in enumerate(tables)
        ]
        return cut_view(x, view, _extended(self.block, ends), 0, held)

    def _table(self, view: Shifted, d: int, own: tuple[int, int], ends: tuple[int, int]) -> Any:
        """Return where each device finds a view's positions along a dim of an array.

        own, ends: how far the array and the view extend.
        """
        extent, block = self.stencil.shape[d], self.block[d]
        wraps = self.stencil.wraps[d] and self.placed.grid[d] > 1
        starts = np.arange(self.placed.grid[d])[:, None] * block
        p = starts - ends[0] + np.arange(ends[0] + block + ends[1])
        g = p % extent if wraps else p
        inside = (g >= 0) & (g < extent)
        read = view.rows[d].positions()[np.clip(g, 0, extent - 1)]
        turns = np.stack([read + t * extent for t in (-1, 0, 1)]) + p // extent * extent * wraps
        nearest = np.take_along_axis(turns, abs(turns - p).argmin(0)[None], 0)[0]
        found = (nearest if wraps else read) - (starts - own[0])
        return np.where(inside, np.where(read < 0, read, found), UNREAD)


STENCILS: dict[str, Record] = {"iterations": Record((iterations,))}
