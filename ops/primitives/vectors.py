"""Scans, top_k and sorts of vectors: each device has a block of the vector.

A scan is combined with the totals of the preceding blocks. For top_k each device sends its best
elements. A sort merges blocks (`sorting.py`). Arrays with other dims to shard run the same
primitives with this dim unsharded (`along.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import SCANNED, SORTED, along, dim_of
from gridlayout.ops.decisions.flops import of_sort, per_operand
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import mapped, target_layout
from gridlayout.ops.primitives.indices import is_too_large_to_replicate
from gridlayout.ops.primitives.reductions import NEUTRAL
from gridlayout.ops.primitives.sorting import COMPARISON, descending, least, sort
from gridlayout.ops.primitives.windows import as_storage, blocks, local_blocks
from gridlayout.sharding.collectives import all_gather, index_of

# -- scans ---------------------------------------------------------------------------------------

# The function that combines two scans, and a reduction with the same neutral element.
COMBINE: dict[str, tuple[Callable[..., Any], str]] = {
    "cumsum": (lax.add, "reduce_sum"),
    "cumprod": (lax.mul, "reduce_prod"),
    "cummax": (lax.max, "reduce_max"),
    "cummin": (lax.min, "reduce_min"),
    "cumlogsumexp": (jnp.logaddexp, "reduce_max"),
}


def cumulative(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a cumulative sum, product, extreme or log-sum of a vector, also in reverse."""
    backward = op.params["reverse"]
    combine, reduction = COMBINE[op.name]
    neutral = NEUTRAL[reduction](value.dtype)
    # Padding is behind all elements, so only a reverse scan reads it before elements.
    x = _block_vector(b, value, neutral if backward else None)
    placed = x.spec.placement  # type: ignore[union-attr]
    (axes,) = placed.axes
    count = b.device.count(axes)
    made = b.collectives().all_gather(axes, dtypes.nbytes(1, value.dtype))

    def scan(part: jax.Array) -> list[jax.Array]:
        (own,) = op.bind(local_blocks(part))
        end = 0 if backward else own.size - 1
        if count > 1:
            totals = all_gather(own[end : end + 1], axes, 0)
            at, here = jnp.arange(count), index_of(axes)
            preceding = jnp.where(at > here if backward else at < here, totals, neutral)
            (carried,) = op.bind(preceding.astype(own.dtype))
            own = combine(carried[0 if backward else -1], own)
        return [as_storage(own, placed.per_device)]

    (found,) = b.run(scan, [x], [x.spec.with_oob(None)], made)  # type: ignore[union-attr]
    return b.relayout(found, target_layout(b, found.layout, value, ()))  # type: ignore[arg-type]


def top_k(b: Builder, op: Op, value: Value) -> Any:
    """Rule for the `k` greatest elements of a vector and their indices."""
    if not op.params.get("aggregate_to_topk", True):
        return None
    is_max = op.params.get("is_max_k", True)
    x = _block_vector(b, value, None)
    assert isinstance(x.spec, Sharded)
    (axes,) = x.spec.placement.axes
    block, extent, k = x.spec.layout.physical_shape[-1], value.shape[0], op.params["k"]
    block *= x.spec.placement.per_device[0]
    best = min(k, block)
    made = b.collectives().all_gather(axes, dtypes.nbytes(best, value.dtype))
    made = made.all_gather(axes, best * 4)

    def first(x: jax.Array, at: jax.Array, count: int) -> jax.Array:
        keys = x if is_max else descending(x)
        # Padding is behind all elements, also behind those that equal it: it has later positions.
        return lax.top_k(jnp.where(at < extent, keys, least(keys.dtype)), count)[1]

    def kernel(part: jax.Array) -> list[jax.Array]:
        a = local_blocks(part)
        at = index_of(axes) * block + jnp.arange(block)
        order = first(a, at, best)
        values, at = (all_gather(y[order], axes, 0) for y in (a, at))
        order = first(values, at, k)
        return [values[order], at[order].astype(op.outs[1].dtype)]

    outs = b.run(kernel, [x], [Replicated(aval.shape, aval.dtype) for aval in op.outs], made)
    return [b.as_sharded(out, like=value) for out in outs]


def _block_vector(b: Builder, value: Value, fill: Any) -> Value:
    """Return a vector relaid out to untiled blocks, with `fill` in the padding unless None."""
    layout = blocks(value.layout, value.shape, {0: value.shape[0]}, value.dtype)
    x = b.as_sharded(value, layout)
    return x if fill is None else b.with_padding(x, fill)


def _for_vectors(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that applies to vectors only."""

    def alone(b: Builder, op: Op, *values: Value) -> Any:
        return rule(b, op, *values) if op.out.ndim == 1 else None

    return alone


# What a comparison of `top_k` takes, of which there are fewer than in a sort, in functions.
_SELECTION = 0.5
_MERGED = "one vector; merging blocks would take longer"


# What a step of a cumulative function takes on CPUs, in functions; measured.
_ON_CPUS = {"cumlogsumexp": 690.0, "cummax": 15.0, "cummin": 15.0}


def _scan(name: str) -> Record:
    rules, functions = (_for_vectors(cumulative), mapped), _ON_CPUS.get(name, 8.0)
    return Record(rules, per_operand, along(dim_of("axis", SCANNED)), cpu_functions=functions)


def _sort_large(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for sorting vectors that are too large for every device to compute all of them."""
    if op.out.ndim != 1 or not any(is_too_large_to_replicate(b, value) for value in values):
        return None
    return sort(b, op, *values)


def _sort(rule: Callable[..., Any], name: str, functions: float) -> Record:
    """Return the record of a primitive that sorts along the dim of its parameter `name`."""
    rules, factors = (_for_vectors(rule), mapped), along(dim_of(name, SORTED))
    return Record(rules, of_sort, factors, reason=_MERGED, functions=functions)


VECTORS: dict[str, Record] = {
    **{name: _scan(name) for name in COMBINE},
    "sort": replace(_sort(sort, "dimension", COMPARISON), of_logical=_sort_large),
    "top_k": _sort(top_k, "axis", _SELECTION),
    "approx_top_k": _sort(top_k, "reduction_dimension", _SELECTION),
}
