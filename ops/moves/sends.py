"""`Send`: one collective of a move, which its runner executes alone or joined with others.

A move is a generator: it yields a `Send` for each of its collectives and receives its result. Moves
with the same sequence of collectives can run in lockstep, with one joined collective for each step.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.moves.joined import is_on_cpus
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.sharding.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER


@dataclass(frozen=True, eq=False)
class Send:
    """A collective over the `size` devices along mesh axes; `part` is this device's operand.

    all_gather: the parts are concatenated along dim `at`. all_to_all: dim `to` is cut into one
    piece per device, and received pieces are concatenated along `at`. reduce_scatter: dim 0 has
    extent `size`, a piece per device, and each device gets the sum of its pieces, with extent 1
    there. all_reduce: the sum of the parts.
    """

    kind: str
    axes: Axes
    size: int
    part: LazyView
    at: int = 0
    to: int = 0


Phases = Generator[Send, LazyView, LazyView]


def run_alone(phases: Phases) -> LazyView:
    """Run one move alone."""
    try:
        send = next(phases)
        while True:
            send = phases.send(_alone(send))
    except StopIteration as stopped:
        found: LazyView = stopped.value
        return found


def _alone(send: Send) -> LazyView:
    if send.kind == ALL_GATHER:
        return send.part.all_gather(send.axes, send.at)
    part = send.part.materialize()
    if send.kind == ALL_REDUCE:
        return LazyView.of(lax.psum(part, send.axes))
    if send.kind == ALL_TO_ALL:
        return LazyView.of(all_to_all(part, send.axes, send.to, send.at))
    return LazyView.of(lax.psum_scatter(part, send.axes, scatter_dimension=0, tiled=True))


def all_to_all(x: jax.Array, axes: Axes, to: int = 0, at: int = 0) -> jax.Array:
    """Return the pieces along dim `to` that the devices send each other, joined along dim `at`.

    XLA compiles it for CPUs to slices of `x`, each a kernel of its own. There `x` is joined from
    slices at positions that are operands of one kernel; XLA sends these as they are.
    """
    if is_on_cpus():
        mesh = jax.sharding.get_abstract_mesh()
        size, zero = prod(mesh.shape[name] for name in axes), np.uint32(0)
        shape = (*x.shape[:to], x.shape[to] // size, *x.shape[to + 1 :])
        starts = lax.optimization_barrier([np.uint32(k * shape[to]) for k in range(size)])
        places = ([start if d == to else zero for d in range(x.ndim)] for start in starts)
        x = lax.concatenate([lax.dynamic_slice(x, place, shape) for place in places], to)
    return lax.all_to_all(x, axes, to, at, tiled=True)


def run_together(moves: Sequence[Phases]) -> list[LazyView]:
    """Run moves with the same sequence of collectives in lockstep, one joined collective each."""
    sends = [next(move) for move in moves]
    results: list[Any] = [None] * len(moves)
    while sends:
        came, sends = _together(sends), []
        for n, (move, array) in enumerate(zip(moves, came, strict=True)):
            try:
                sends.append(move.send(array))
            except StopIteration as stopped:
                results[n] = stopped.value
    return results


def _together(sends: Sequence[Send]) -> list[LazyView]:
    """Return the results of collectives of one kind over the same axes, run as one collective.

    XLA compiles equal kernels once, and compiling a kernel takes longer than all else here. So
    nothing is fused into the concatenation, which is a copy, and the results are cut out at
    positions that are operands of the kernels: with constant positions, each cut would be another
    kernel.
    """
    first = sends[0]
    flat = [lax.optimization_barrier(_flat(send)) for send in sends]
    starts = [0, *accumulate(each.shape[-1] for each in flat)]
    joined = lax.concatenate(flat, flat[0].ndim - 1)
    if first.kind == ALL_GATHER:
        joined = lax.all_gather(joined, first.axes, axis=0, tiled=True)
    elif first.kind == ALL_TO_ALL:
        joined = all_to_all(joined, first.axes)
    elif first.kind == ALL_REDUCE:
        joined = lax.psum(joined, first.axes)
    else:
        joined = lax.psum_scatter(joined, first.axes, scatter_dimension=0, tiled=False)
    if starts[-1] <= np.iinfo(np.uint32).max:
        positions = lax.optimization_barrier([np.uint32(start) for start in starts[:-1]])
        cuts = [
            lax.dynamic_slice_in_dim(joined, start, part.shape[-1], axis=-1)
            for start, part in zip(positions, flat, strict=True)
        ]
    else:
        cuts = [lax.slice_in_dim(joined, *ends, axis=-1) for ends in pairwise(starts)]
    return list(map(_apart, sends, cuts))


def _flat(send: Send) -> jax.Array:
    """Return a part as one row, or as one row per device that a piece is sent to."""
    view = send.part
    if send.kind == ALL_REDUCE:
        return view.reshape(-1).materialize()
    if send.kind == ALL_GATHER:
        return view.reshape(1, -1).materialize()
    if send.kind == REDUCE_SCATTER:
        return view.reshape(send.size, -1).materialize()
    shape, to = view.shape, send.to
    view = view.reshape(*shape[:to], send.size, shape[to] // send.size, *shape[to + 1 :])
    return view.moved(to, 0).reshape(send.size, -1).materialize()


def _apart(send: Send, line: jax.Array) -> LazyView:
    """Return the result of one collective, cut from the joined result."""
    shape, at, view = send.part.shape, send.at, LazyView.of(line)
    if send.kind == ALL_REDUCE:
        return view.reshape(*shape)
    if send.kind == REDUCE_SCATTER:
        return view.reshape(1, *shape[1:])
    if send.kind == ALL_TO_ALL:
        to = send.to
        shape = (*shape[:to], shape[to] // send.size, *shape[to + 1 :])
    view = view.reshape(send.size, *shape).moved(0, at)
    return view.reshape(*shape[:at], send.size * shape[at], *shape[at + 1 :])
