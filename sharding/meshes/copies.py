"""Arrays of which every device has a copy, from arrays of one process or of all."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding


def copied(x: Any, replicated: NamedSharding, is_local: bool) -> Any:
    """Return an array in a replicated sharding; objects that are no arrays as they are.

    is_local: whether all devices are of one process. If not, each process copies its own array,
    which must be the same in all: `jax.device_put` would compare them, in a program of its own, in
    which NaNs differ, and refuses random keys.
    """
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return x
    is_traced = isinstance(x, jax.core.Tracer)
    if isinstance(x, jax.Array) and not is_traced and x.sharding == replicated:
        return x
    if is_traced or is_local or not getattr(x, "is_fully_addressable", True):
        return jax.device_put(x, replicated)
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = copied(jax.random.key_data(x), replicated, is_local)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    copies = [jax.device_put(x, each) for each in replicated.addressable_devices]
    return jax.make_array_from_single_device_arrays(x.shape, replicated, copies, dtype=dtype)
