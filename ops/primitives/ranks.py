"""Integer sort keys of numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.sharding.extremes import ordered_bits


def descending(x: jax.Array) -> jax.Array:
    """Return integer keys whose ascending order is the order of `lax.top_k`: greatest first.

    Floating-point numbers are ordered by their bits, so NaNs by their sign.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        wide = x.astype(jnp.uint8) if x.dtype == bool else x
        return ~wide
    return ~ordered_bits(x)


def least(dtype: np.dtype[Any]) -> Any:
    """Return the number that is last in the order of `lax.top_k`: of floats, the last negative NaN.

    >>> least(np.dtype("int8")), least(np.dtype("float32"))
    (np.int8(-128), np.float32(nan))
    """
    if jnp.issubdtype(dtype, jnp.floating):
        return np.full((), -1, f"i{dtype.itemsize}").view(dtype)[()]
    return dtype.type(False if dtype.kind == "b" else jnp.iinfo(dtype).min)
