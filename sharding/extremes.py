"""Maxima and minima along mesh axes, and integers in the order of floating-point numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.dtypes import has_zero
from gridlayout.layouts.mesh_axes import Axes


def pmax(x: jax.Array, axes: Axes) -> jax.Array:
    """Return the maximum of all devices' `x` along mesh axes: NaN if one is NaN, and 0 above -0.

    The all-reduces of CPUs and of NCCL lose NaN and return either zero, so floating-point numbers
    are reduced as integers in their order. For use inside `shard_map`.
    """
    return _reduced(lax.pmax, x, axes, 1)


def pmin(x: jax.Array, axes: Axes) -> jax.Array:
    """Return the minimum of all devices' `x` along mesh axes: NaN if one is NaN, and -0 below 0."""
    return _reduced(lax.pmin, x, axes, -1)


def sent_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the type in which devices send extremes of a type.

    >>> [sent_dtype(np.dtype(name)).name for name in ("float32", "float16", "int16")]
    ['int32', 'int32', 'int16']
    """
    if not jnp.issubdtype(dtype, jnp.floating) or not has_zero(dtype):  # JAX's are NaN without 0
        return np.dtype(dtype)
    # NCCL reduces no integers of 16 bits.
    size = 4 if _has_no_end(dtype) else np.dtype(dtype).itemsize
    return np.dtype(f"int{8 * (4 if size == 2 else size)}")


def ordered_bits(x: jax.Array) -> jax.Array:
    """Return the bits of floating-point numbers as integers that have the order of the numbers.

    -0 is below 0; NaNs are beyond the infinities, on the side of their sign.
    """
    return _turned(lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}"))


def _has_no_end(dtype: Any) -> bool:
    """Return whether NaN has the bits of -0, so that none are beyond those of all numbers.

    >>> _has_no_end(np.dtype("float8_e4m3fnuz")), _has_no_end(np.dtype("float8_e4m3fn"))
    (True, False)
    """
    return not np.signbit(-np.zeros((), dtype))


def _turned(bits: jax.Array) -> jax.Array:
    """Return bits as ordered integers, or ordered integers as bits: it is its own inverse."""
    # Negative numbers descend as their bits grow.
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)


def _reduced(reduce: Any, x: jax.Array, axes: Axes, sign: int) -> jax.Array:
    if sent_dtype(x.dtype) == x.dtype:
        return reduce(x, axes)
    if _has_no_end(x.dtype):
        return _reduced(reduce, x.astype(np.float32), axes, sign).astype(x.dtype)
    keys = ordered_bits(x)
    info = jnp.iinfo(keys.dtype)
    keys = jnp.where(jnp.isnan(x), info.max if sign > 0 else info.min, keys)  # both are NaNs
    best = reduce(keys.astype(sent_dtype(x.dtype)), axes).astype(keys.dtype)
    return lax.bitcast_convert_type(_turned(best), x.dtype)
