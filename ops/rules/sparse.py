"""Products of sparse arrays in JAX's `BCOO` format, as gathers, products and scatters of others."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def bcoo_dot_general(
    data: jax.Array,
    indices: jax.Array,
    right: jax.Array,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    lhs_spinfo: Any,
) -> jax.Array:
    """A sparse array times an array: each element that is stored times the slice that it meets.

    data: (batch dims, stored, dense dims); indices: (batch dims, stored, sparse dims), outside of
    the array for what is stored and does not count. Batch dims may be 1 for all.
    """
    (left_along, right_along), (left_batch, right_batch) = dimension_numbers
    shape, stored = lhs_spinfo.shape, indices.shape[-2]
    batch, named = shape[: indices.ndim - 2], (*shape[: indices.ndim - 2], stored)
    count, dense = prod(named), data.shape[indices.ndim - 1 :]
    # Where each is, along all dims but the dense ones.
    along_batch = [lax.broadcasted_iota(indices.dtype, named, d) for d in range(len(batch))]
    along_sparse = jnp.moveaxis(jnp.broadcast_to(indices, (*named, indices.shape[-1])), -1, 0)
    places = [each.reshape(count) for each in (*along_batch, *along_sparse)]
    data = jnp.broadcast_to(data, (*named, *dense)).reshape(count, *dense)

    met = (*right_batch, *right_along)
    free = tuple(d for d in range(right.ndim) if d not in met)
    at = tuple(places[d] for d in (*left_batch, *left_along))
    right = right.transpose(*met, *free)
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
