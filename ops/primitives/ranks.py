"""Integer sort keys of numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from gridlayout.sharding.extremes import ordered_bits


def descending(x: jax.Array) -> jax.Array:
    """Return integer keys whose ascending order is the order of `lax.top_k`: greatest first.

    Floating-point numbers are ordered by their bits, so NaNs by their sign.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        wide = x.astype(jnp.uint8) if x.dtype == bool else x
        return ~wide
    return ~ordered_bits(x)
