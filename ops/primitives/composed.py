"""Primitives that are composed of others: the planner plans their implementation instead.

Most primitives of libraries are of this kind. They exist for their derivative and `vmap` rules,
which have been applied before planning, and their implementation is a JAX function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.caching import cached
from gridlayout.ops.decisions.env import trace_context
from gridlayout.ops.decisions.jaxprs import equations_of, jaxprs_in
from gridlayout.ops.decisions.op import Op


def bcoo_dot_general(
    data: jax.Array,
    indices: jax.Array,
    right: jax.Array,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    lhs_spinfo: Any,
) -> jax.Array:
    """Return the product of a sparse and a dense array.

    Each stored element is multiplied by the slice of `right` that its indices select.
    data: (batch dims, stored elements, dense dims). indices: (batch dims, stored elements, sparse
    dims); out-of-bounds indices mark unused entries. Batch dims of extent 1 are broadcast.
    """
    (left_along, right_along), (left_batch, right_batch) = dimension_numbers
    shape, stored = lhs_spinfo.shape, indices.shape[-2]
    batch, entries = shape[: indices.ndim - 2], (*shape[: indices.ndim - 2], stored)
    count, dense = prod(entries), data.shape[indices.ndim - 1 :]
    # The index of each stored element along the batch and sparse dims.
    along_batch = [lax.broadcasted_iota(indices.dtype, entries, d) for d in range(len(batch))]
    along_sparse = jnp.moveaxis(jnp.broadcast_to(indices, (*entries, indices.shape[-1])), -1, 0)
    places = [each.reshape(count) for each in (*along_batch, *along_sparse)]
    data = jnp.broadcast_to(data, (*entries, *dense)).reshape(count, *dense)

    selected = (*right_batch, *right_along)
    free = tuple(d for d in range(right.ndim) if d not in selected)
    at = tuple(places[d] for d in (*left_batch, *left_along))
    right = right.transpose(*selected, *free)
    if at:
        right = right.at[at].get(mode="fill", fill_value=0)
    else:
        right = jnp.broadcast_to(right, (count, *right.shape))
    each = lax.dot_general(
        *(data, right, (((), ()), ((0,), (0,)))), preferred_element_type=preferred_element_type
    )
    kept = (*left_batch, *(d for d in range(len(places)) if d not in (*left_batch, *left_along)))
    if not kept:
        return each.sum(0, dtype=each.dtype)
    out = jnp.zeros((*(shape[d] for d in kept), *each.shape[1:]), each.dtype)
    return out.at[tuple(places[d] for d in kept)].add(each, mode="drop")


# Implementations of primitives whose own `impl` JAX compiles, so that it can't be traced.
_COMPOSITIONS: dict[str, Callable[..., Any]] = {"bcoo_dot_general": bcoo_dot_general}


def composition(op: Op) -> Any:
    """Return the closed jaxpr of an op's implementation; None if JAX can't trace that."""
    try:
        return _cached(op, trace_context())
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _trace(op)


@cached
def _cached(op: Op, context: Hashable) -> Any:
    return _trace(op)


def _trace(op: Op) -> Any:
    run = _implementation(op)
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in op.ins]
    try:
        closed = jax.make_jaxpr(run)(*given)
    except Exception:
        return None  # it needs concrete arrays, such as buffers or the host
    if [(x.shape, x.dtype) for x in closed.out_avals] != [(x.shape, x.dtype) for x in op.outs]:
        return None
    return None if _is_only(closed, op.primitive) else closed


def _implementation(op: Op) -> Callable[..., Any]:
    """Return the implementation of an op as a function of its operands."""
    if (hi := op.params.get("_prim")) is not None:  # a hijax primitive, which takes trees
        return lambda *arrays: jax.tree.leaves(hi.expand(*jax.tree.unflatten(hi.in_tree, arrays)))
    return partial(_COMPOSITIONS.get(op.name) or op.primitive.impl, **op.params)


def _is_only(jaxpr: Any, primitive: Any) -> bool:
    """Whether a jaxpr only applies this primitive, as for those that JAX compiles directly."""
    found = equations_of(jaxpr)
    if len(found) != 1:
        return False
    inner = jaxprs_in(found[0].params)
    return found[0].primitive is primitive or any(_is_only(each, primitive) for each in inner)
