"""Products of sparse arrays in JAX's `BCOO` format, by gathers, dense products and scatters."""

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
