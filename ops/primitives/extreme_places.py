"""The places of extremes, for `argmax` and `argmin`: on a device's part, then over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.ops.primitives.reduced_dims import ReducedDims
from gridlayout.sharding.collectives import Collectives, index_of

# XLA for CPUs unrolls a reduction of so many elements.
_RUN = 8


def places_of(
    b: Builder, op: Op, reduced: ReducedDims
) -> tuple[Callable[[jax.Array], jax.Array], Collectives]:
    """Return the function of argmax or argmin over devices, and its collectives."""
    layout, placement, (k, *_) = reduced.layout, reduced.placement, reduced.collapsed
    own = layout.axis_dims(k)
    gone = [d for d in reduced.along if d not in own]
    made = b.collectives().all_gather(reduced.mesh, dtypes.nbytes(reduced.part, layout.dtype))
    made = made.all_gather(reduced.mesh, reduced.part * 4)

    def combine(x: jax.Array) -> jax.Array:
        # Positions along the dim, which include padding: the op's index type may be too small.
        core = index_of(placement.axes[k]) * placement.per_device[k]
        at = jnp.full(x.shape, core * layout.shard_shape[k], np.int32)
        step = 1
        for d in own[:0:-1]:
            at += lax.broadcasted_iota(np.int32, x.shape, d) * step
            step *= x.shape[d]
        at += lax.broadcasted_iota(np.int32, x.shape, own[0]) * layout.shard_shape[k]
        for d in gone:
            x, at = (lax.slice_in_dim(each, 0, 1, axis=d) for each in (x, at))
        wide = [d for d in own if x.shape[d] > 1]
        while b.device.platform == "cpu" and wide:  # inner dims first: a NaN stays
            d = wide.pop()
            x, at = _along(b, op, x, at, d)
        best, found = _first_extreme(b, op, x, at, wide)
        if reduced.mesh:
            some = lax.all_gather(best, reduced.mesh), lax.all_gather(found, reduced.mesh)
            _, found = _first_extreme(b, op, *some, [0])
        return cast(jax.Array, found.astype(op.params["index_dtype"]))

    return combine, made


def places_workspace(b: Builder, reduced: ReducedDims, spec: Sharded) -> Workspace:
    """Return the workspace of `places_of`: on CPUs, the extremes of runs and their places."""
    shape, (k, *_) = spec.local_shape, reduced.collapsed
    wide = [d for d in reduced.layout.axis_dims(k) if shape[d] > 1]
    if b.device.platform != "cpu" or not wide or shape[wide[-1]] <= 2 * _RUN:
        return Workspace()
    runs = prod(shape) // shape[wide[-1]] * (shape[wide[-1]] // _RUN)
    return Workspace(together=(runs * (dtypes.nbytes((1,), spec.dtype) + 4),))


def _along(b: Builder, op: Op, x: jax.Array, at: jax.Array, d: int) -> Any:
    """Return `_first_extreme` along a dim: of runs of `_RUN` elements, and so on, until few remain.

    XLA on CPUs compares many numbers at once where a reduction is so short that it is unrolled.
    """
    n = x.shape[d]
    if n <= 2 * _RUN:
        return _first_extreme(b, op, x, at, [d])
    whole = n - n % _RUN
    runs = (*x.shape[:d], whole // _RUN, _RUN, *x.shape[d + 1 :])
    first, places = (lax.slice_in_dim(each, 0, whole, axis=d) for each in (x, at))
    best, found = _first_extreme(b, op, first.reshape(runs), places.reshape(runs), [d + 1])
    best, found = _along(b, op, best, found, d)
    if whole == n:
        return best, found
    x, at = (lax.slice_in_dim(each, whole, n, axis=d) for each in (x, at))
    return _better(op)((best, found), _first_extreme(b, op, x, at, [d]))


def _first_extreme(b: Builder, op: Op, x: jax.Array, at: jax.Array, dims: Sequence[int]) -> Any:
    """Return the extremes along dims, NaN before all numbers, and the least of their positions."""
    assert b.record.neutral is not None
    neutral = b.record.neutral(x.dtype)
    none = np.asarray(neutral, x.dtype), np.int32(np.iinfo(np.int32).max)
    return lax.reduce((x, at), none, _better(op), tuple(dims))


def _better(op: Op) -> Callable[[Any, Any], tuple[jax.Array, jax.Array]]:
    """Return the function that chooses between two pairs of a number and its position."""
    more = lax.gt if op.name == "argmax" else lax.lt

    def better(a: Any, b: Any) -> tuple[jax.Array, jax.Array]:
        (x, i), (y, j) = a, b
        wins = more(x, y) | (x != x)  # a NaN stays
        is_first = wins | ((x == y) & (i < j))
        return lax.select(wins, x, y), lax.select(is_first, i, j)

    return better
