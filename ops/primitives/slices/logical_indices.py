"""The logical indices of slices: start indices, clipped to the bounds or masked out of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.op import Op


def slice_indices(
    shape: Shape,
    sizes: Sequence[int],
    dim_map: Mapping[int, int],
    rank: int,
    dims: Sequence[int],
    starts: jax.Array,
    mode: Any,
) -> tuple[list[jax.Array], jax.Array]:
    """Return the logical indices of slices along each dim, and a mask of slices in bounds.

    shape: of the sliced array. sizes: of the slices. starts: the start indices, whose last dim has
    one column per dim of `dims`; they are clipped. dim_map: dim of the array -> dim of the result,
    which has `rank` dims; the other dims of the result are those of `starts` but the last. The mask
    is all True if `mode` is CLIP. All arrays broadcast to the result.
    """
    behind = sorted(dim_map.values())
    inside = jnp.ones((1,) * rank, bool)
    index = [jnp.zeros((1,) * rank, jnp.int32)] * len(shape)
    for column, d in enumerate(dims):
        start = lax.expand_dims(starts[..., column], behind)
        last = shape[d] - sizes[d]
        # In the starts' own type, which may be too narrow for `last`, or unsigned.
        most = min(last, jnp.iinfo(starts.dtype).max)
        if mode != lax.GatherScatterMode.CLIP:
            inside &= (start >= 0) & (start <= most)
        index[d] = jnp.clip(start, 0, most).astype(jnp.int32 if last < 2**31 else jnp.int64)
    for d, k in dim_map.items():
        along = tuple(sizes[d] if axis == k else 1 for axis in range(rank))
        index[d] = index[d] + lax.broadcasted_iota(index[d].dtype, along, k)
    return index, inside


def window_indices(shape: Shape, sizes: Shape, *starts: Any) -> tuple[list[jax.Array], Any]:
    """Return the logical indices of one slice with clipped starts; they broadcast to the slice."""
    every, mode = range(len(shape)), lax.GatherScatterMode.CLIP
    columns = jnp.stack([jnp.asarray(start) for start in starts])
    return slice_indices(shape, sizes, {d: d for d in every}, len(shape), every, columns, mode)[
        0
    ], True


def fill_value(given: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return the element that a gather returns out of bounds (JAX, `GatherScatterMode`)."""
    if given is None:
        if jnp.issubdtype(dtype, jnp.inexact):
            given = np.nan
        elif dtype == np.bool_:
            given = True
        else:
            info = jnp.iinfo(dtype)
            given = info.min if jnp.issubdtype(dtype, jnp.signedinteger) else info.max
    return np.asarray(given, dtype)


def computed_once(x: jax.Array, reads: int) -> jax.Array:
    """Return an array of which a gather reads so many elements.

    XLA would compute an element, such as one of joined pieces, again for each time that it is read.
    """
    return lax.optimization_barrier(x) if reads >= x.size else x


def in_shape(new: jax.Array, shape: Shape, is_number: bool = False) -> jax.Array:
    """Return updates of a scatter in another shape of the same elements.

    XLA on CPUs would copy updates that are reshaped where they are read, unless all of them are one
    number (is_number).
    """
    found = new.reshape(shape)
    return found if new.shape == shape or is_number else lax.optimization_barrier(found)


def columns_of(op: Op, dims: Shape, shape: Shape, sizes: Sequence[int]) -> list[int]:
    """Return which columns of the indices have an effect. dims: the dim of each column.

    A slice as long as its dim always starts at 0, unless out-of-bounds slices are dropped.
    `jax.vmap` of a dynamic slice makes such columns. If users promise that all are in bounds, XLA
    still clips what `gather` reads, and drops what `scatter` would write out of bounds.
    """
    mode = lax.GatherScatterMode
    clipped = (mode.CLIP, mode.PROMISE_IN_BOUNDS) if op.name == "gather" else (mode.CLIP,)
    is_clipped = op.params["mode"] in clipped
    return [k for k, d in enumerate(dims) if not is_clipped or sizes[d] != shape[d]]


def at_columns(indices: Any, columns: list[int]) -> Any:
    """Return the given columns of the indices."""
    whole = len(columns) == indices.shape[-1]
    return indices if whole else indices[..., np.array(columns, int)]
