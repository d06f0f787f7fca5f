"""`joined`: arrays side by side on one device, for use inside of `shard_map`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes

# The most arrays that are joined in one kernel: each is tested at every position of the result.
FEW = 2


def joined(parts: Sequence[jax.Array], dim: int, stored: bool = True) -> jax.Array:
    """Return arrays joined along a dim.

    XLA compiles joins behind other dims for CPUs to copies with which it fuses nothing. There the
    bits of two arrays, with zeros around them, are joined in one kernel with what makes them.
    stored: whether the result is stored then, and not made again in each kernel that reads it.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if len(parts) > FEW or prod(first.shape[:dim]) == 1 or not is_on_cpus():
        return lax.concatenate(parts, dim)
    if (kind := _bits(first.dtype)) is None:
        return lax.concatenate(parts, dim)
    length, before, found = sum(part.shape[dim] for part in parts), 0, None
    for part in parts:
        after = length - before - part.shape[dim]
        around = [(before, after, 0) if d == dim else (0, 0, 0) for d in range(part.ndim)]
        bits = part if part.dtype == kind else lax.bitcast_convert_type(part, kind)
        wide = lax.pad(bits, np.zeros((), kind), around)
        found = wide if found is None else lax.bitwise_or(found, wide)
        before += part.shape[dim]
    assert found is not None
    if found.dtype != first.dtype:
        found = lax.bitcast_convert_type(found, first.dtype)
    # Else XLA writes arrays with the zeros around them where several kernels read what is joined.
    return lax.optimization_barrier(found) if stored else found


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the type of an element's bits; None if they are no one number of whole bytes."""
    if dtype == np.dtype(bool) or jnp.issubdtype(dtype, jnp.integer):
        return dtype
    if not jnp.issubdtype(dtype, jnp.floating) or dtypes.bits(dtype) != 8 * dtype.itemsize:
        return None
    return np.dtype(f"uint{8 * dtype.itemsize}")


def is_on_cpus() -> bool:
    """Whether the function that is traced runs on CPUs; false of a mesh without devices."""
    on = getattr(jax.sharding.get_abstract_mesh(), "abstract_device", None)
    return on is not None and on.device_kind == "cpu"
