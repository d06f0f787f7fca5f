"""Rounding of arrays to the values that bfp8, bfp4 and bfp2 tiles can hold."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_BITS = {"bfp_bf8": 7, "bfp_bf4": 3, "bfp_bf2": 1}
_GROUP = 16


def rounded(x: jax.Array, tile_format: str) -> jax.Array:
    """Return the values that tiles of a block format hold, as `gl.tenstorrent.bfp` encodes them.

    x: float32, float16 or bfloat16. Groups of 16 elements of the last dim share an exponent; each
    group begins at a multiple of 16. Padding of tiles is 0 and does not change the exponent. Values
    that `bfp` refuses are kept: infinities and NaN; finite elements in their group become 0.

    >>> rounded(jnp.asarray([1.0, -0.75, 0.3]), "bfp_bf8").tolist()
    [1.0, -0.75, 0.296875]
    """
    bits = _BITS[tile_format]
    row = x if x.ndim else x[None]
    width = row.shape[-1]
    pads = [(0, 0)] * (row.ndim - 1) + [(0, -width % _GROUP)]
    whole = jnp.pad(row.astype(jnp.float32), pads)
    groups = whole.reshape(*whole.shape[:-1], -1, _GROUP)
    pattern = lax.bitcast_convert_type(groups, jnp.uint32)
    exponent = (pattern >> 23) & 0xFF
    shared = jnp.max(exponent, axis=-1, keepdims=True)
    significand = jnp.where(exponent > 0, (pattern & 0x7FFFFF) | 0x800000, 0)
    aligned = significand >> jnp.minimum(shared - exponent, 31)
    magnitude = jnp.minimum(_nearest_even(aligned, 24 - bits), (1 << bits) - 1)
    # The step 2**(shared - 127 - (bits - 1)) as two factors, each of which is a normal number.
    half = shared.astype(jnp.int32) // 2
    steps = [half - 63, shared.astype(jnp.int32) - half - 63 - bits]
    value = magnitude.astype(jnp.float32)
    for step in steps:
        value = value * _power_of_two(step)
    value = jnp.where((pattern >> 31 > 0) & (magnitude > 0), -value, value)
    value = jnp.where(exponent == 0xFF, groups, jnp.where(shared == 0xFF, 0, value))
    made = value.reshape(whole.shape)[..., :width].astype(x.dtype)
    return made if x.ndim else made[0]


def _nearest_even(values: Any, dropped: int) -> Any:
    odd = (values >> dropped) & 1
    return (values + ((1 << (dropped - 1)) - 1) + odd) >> dropped


def _power_of_two(exponent: Any) -> Any:
    return lax.bitcast_convert_type((exponent + 127) << 23, jnp.float32)
