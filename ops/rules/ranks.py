"""Integer sort keys of numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def descending(x: jax.Array) -> jax.Array:
    """Return integer keys whose ascending order is the order of `lax.top_k`: greatest first.

    Floating-point numbers are ordered by their bits, so NaNs by their sign.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        wide = x.astype(jnp.uint8) if x.dtype == bool else x
        return ~wide
    kind = f"int{8 * x.dtype.itemsize}"
    bits = lax.bitcast_convert_type(x, kind)
    # Negative numbers descend as their bits grow.
    return ~jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)
