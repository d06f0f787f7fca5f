"""The places that indices name: logical indices of slices, moved to where they fit, or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.ops.decisions.op import Op

Shape = tuple[int, ...]


def places(
    shape: Shape,
    sizes: Sequence[int],
    place: Mapping[int, int],
    rank: int,
    dims: Sequence[int],
    named: jax.Array,
    mode: Any,
) -> tuple[list[jax.Array], jax.Array]:
    """The logical indices of slices, whose starts columns of `named` say, moved to where they fit.

    sizes: of the slices. place: where dims of slices are in the result, of `rank` dims; the others
    are those of `named`. dims: what its columns name. Also whether the slices count: by `mode`,
    those that did fit, or all. All broadcast to the result.
    """
    named = named.astype(jnp.int64 if named.dtype.itemsize > 4 else jnp.int32)
    behind = sorted(place.values())
    inside = jnp.ones((1,) * rank, bool)
    index = [jnp.zeros((1,) * rank, jnp.int32)] * len(shape)
    for column, d in enumerate(dims):
        start = lax.expand_dims(named[..., column], behind)
        last = shape[d] - sizes[d]
        if mode != lax.GatherScatterMode.CLIP:
            inside &= (start >= 0) & (start <= last)
        index[d] = jnp.clip(start, 0, last).astype(jnp.int32 if last < 2**31 else jnp.int64)
    for d, k in place.items():
        along = tuple(sizes[d] if axis == k else 1 for axis in range(rank))
        index[d] = index[d] + lax.broadcasted_iota(index[d].dtype, along, k)
    return index, inside


def window(shape: Shape, sizes: Shape, *starts: Any) -> tuple[list[jax.Array], Any]:
    """The logical indices of one slice, which broadcast to it; it starts where it fits."""
    every, mode = range(len(shape)), lax.GatherScatterMode.CLIP
    columns = jnp.stack([jnp.asarray(start) for start in starts])
    return places(shape, sizes, {d: d for d in every}, len(shape), every, columns, mode)[0], True


def fill(given: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """What a gather gives for an index that is out of bounds (JAX, `GatherScatterMode`)."""
    if given is None:
        if jnp.issubdtype(dtype, jnp.inexact):
            given = np.nan
        elif dtype == np.bool_:
            given = True
        else:
            info = jnp.iinfo(dtype)
            given = info.min if jnp.issubdtype(dtype, jnp.signedinteger) else info.max
    return np.asarray(given, dtype)


def columns_of(op: Op, named: Shape, shape: Shape, sizes: Sequence[int]) -> list[int]:
    """Which columns of the indices say something, of those for dims `named`.

    A slice as long as its dim starts at 0, unless it is dropped where its index says another place.
    `jax.vmap` of a dynamic slice makes such columns.
    """
    mode = lax.GatherScatterMode
    stays = op.params["mode"] in (mode.CLIP, mode.PROMISE_IN_BOUNDS)
    return [k for k, d in enumerate(named) if not stays or sizes[d] != shape[d]]


def at_columns(indices: Any, columns: list[int]) -> Any:
    """Those columns of the indices."""
    whole = len(columns) == indices.shape[-1]
    return indices if whole else indices[..., np.array(columns, int)]
