"""`ring_attention`: attention over long sequences that are split over all cores of a ring."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.arguments import as_flag
from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import sum_dtype
from gridlayout.errors import LayoutError
from gridlayout.ops.array.cores import core_index, shift
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.map_shards import map_shards
from gridlayout.ops.array.placing import put
from gridlayout.ops.array.relayout import relayout
from gridlayout.public import public

# Lower than any score, and still a number: exp(NEVER - NEVER) is 1, not NaN.
NEVER = -1e30


@public
def ring_attention(
    query: GridArray, key: Any, value: Any, *, scale: float | None = None, is_causal: bool = False
) -> GridArray:
    """Return `jax.nn.dot_product_attention` with sequences split over all cores of `query`'s grid.

    query: (B, T, N, H) or (T, N, H); key and value: (B, S, K, H) or (S, K, H), where K divides N
    (N/K query heads share a key head). scale: of the scores, by default 1/sqrt(H). is_causal: query
    t sees keys 0..t. Every core keeps its T/cores queries, while the blocks of S/cores keys and
    values are passed around the ring. So a core holds scores of T/cores x S/cores per head at a
    time; the derivative recomputes them. Scores and sums are float32 or wider. The result has the
    layout of `query`. `LayoutError` where shapes or dtypes do not fit. Masks, biases and windows
    are not supported: `gl.nn.dot_product_attention` has them.

    >>> import numpy as np
    >>> from gridlayout import DeviceGrid
    >>> layout = GridLayout((3, 1, 2), grid=(2, 1, 1), collapse=[])
    >>> x = put(np.ones((3, 1, 2)), layout, DeviceGrid((1,)))
    >>> ring_attention(x, x, x, is_causal=True).to_logical().tolist()
    [[[1.0, 1.0]], [[1.0, 1.0]], [[1.0, 1.0]]]
    """
    if not isinstance(query, GridArray):
        raise LayoutError(f"ring_attention: query must be a GridArray, not {type(query).__name__}")
    _check(query, key, value)
    cores = query.layout.num_cores
    on_ring = [_on_ring(x, cores, query) for x in (query, key, value)]
    length, (_, heads, width) = query.shape[-3], key.shape[-3:]
    scale = 1 / sqrt(width) if scale is None else _as_scale(scale)
    kernel = _kernel(length, key.shape[-3], cores, heads, scale, as_flag(is_causal, "is_causal"))
    return relayout(
        map_shards(kernel, *on_ring, out=on_ring[0].layout), query.layout.with_oob(None)
    )


def _as_scale(scale: Any) -> float:
    try:
        return float("" if isinstance(scale, (str, bytes)) else scale)
    except (TypeError, ValueError, OverflowError):
        raise LayoutError(f"ring_attention: scale {scale!r} must be a number, or None") from None


def _check(query: Any, key: Any, value: Any) -> None:
    shapes = [tuple(jnp.shape(x)) for x in (query, key, value)]
    q, k, v = shapes
    if len(q) not in (3, 4) or any(len(shape) != len(q) for shape in shapes) or 0 in (*q, *k):
        raise LayoutError(
            f"ring_attention: query {q}, key {k} and value {v} must all be (batch, length, heads, "
            "width) or all (length, heads, width), and not empty"
        )
    if k != v or q[:-3] != k[:-3] or q[-1] != k[-1] or q[-2] % k[-2]:
        raise LayoutError(
            f"ring_attention: key {k} and value {v} must have the same shape, with the batch and "
            f"width of query {q} and a number of heads that divides query's"
        )
    dtypes = {jnp.result_type(x) for x in (query, key, value)}
    if len(dtypes) > 1 or not jnp.issubdtype(query.dtype, jnp.floating):
        names = ", ".join(sorted(str(dtype) for dtype in dtypes))
        raise LayoutError(f"ring_attention takes arrays of one floating dtype, not of {names}")


def _on_ring(x: Any, cores: int, query: GridArray) -> GridArray:
    """Return `x` with its sequence split over `cores`, and all other dims unsharded."""
    rank = jnp.ndim(x)
    grid = tuple(cores if d == rank - 3 else 1 for d in range(rank))
    layout = GridLayout(jnp.shape(x), query.dtype, grid, collapse=[])
    if isinstance(x, GridArray):
        return relayout(x, layout)
    return put(jnp.asarray(x), layout, query.device)


@cached
def _kernel(
    length: int, keys: int, cores: int, heads: int, scale: float, is_causal: bool
) -> Callable[..., jax.Array]:
    """Return one core's kernel: its queries against all keys, which arrive block by block."""

    def within(x: jax.Array, ring: Any, extent: int) -> tuple[jax.Array, jax.Array]:
        """Return positions in the sequence, and the shard with rows beyond its end set to 0."""
        at = ring * x.shape[-3] + jnp.arange(x.shape[-3])
        return at, jnp.where((at < extent)[:, None, None], x, 0)

    def kernel(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        dim = q.ndim - 3
        me = core_index(dim)
        wide = sum_dtype(q.dtype)
        own, q = within(q, me, length)
        grouped = q.reshape(*q.shape[:-2], heads, q.shape[-2] // heads, q.shape[-1])
        visit = partial(_visit, grouped, own, keys, scale, is_causal)

        @partial(jax.checkpoint, prevent_cse=False)
        def step(carry: Any, turn: jax.Array) -> tuple[Any, None]:
            k, v, *sums = carry
            at, _ = within(k, (me - turn) % cores, keys)
            sums = visit(at, k, v, *sums)
            return (shift(k, 1, dim), shift(v, 1, dim), *sums), None

        (_, k), (_, v) = (within(x, me, keys) for x in (k, v))
        rows = (*q.shape[:-3], heads, q.shape[-2] // heads, q.shape[-3])
        sums: Any = (
            jnp.full(rows, NEVER, wide),
            jnp.zeros(rows, wide),
            jnp.zeros((*rows, q.shape[-1]), wide),
        )
        start: Any = (k, v, *sums)
        (k, v, *sums), _ = lax.scan(step, start, jnp.arange(cores - 1))
        at, _ = within(k, (me - cores + 1) % cores, keys)
        _, total, out = visit(at, k, v, *sums)
        out = jnp.moveaxis(out / total[..., None], -2, -4)
        return out.reshape(q.shape).astype(q.dtype)

    return kernel


def _visit(
    q: jax.Array,
    own: jax.Array,
    keys: int,
    scale: float,
    is_causal: bool,
    at: jax.Array,
    k: jax.Array,
    v: jax.Array,
    highest: jax.Array,
    total: jax.Array,
    out: jax.Array,
) -> list[jax.Array]:
    """Return the running maximum, weights and values, updated with one more block of keys.

    q: (..., t, K, N/K, H); k and v: (..., s, K, H); highest and total: (..., K, N/K, t);
    out: (..., K, N/K, t, H).
    """
    scores = scale * jnp.einsum("...tkgh,...skh->...kgts", q, k, preferred_element_type=out.dtype)
    seen = at[None, :] < keys
    if is_causal:
        seen = seen & (at[None, :] <= own[:, None])
    scores = jnp.where(seen, scores, NEVER)
    higher = jnp.maximum(highest, scores.max(-1))
    weights = jnp.where(seen, jnp.exp(scores - higher[..., None]), 0)
    decay = jnp.exp(highest - higher)
    gained = jnp.einsum("...kgts,...skh->...kgth", weights, v, preferred_element_type=out.dtype)
    return [higher, total * decay + weights.sum(-1), out * decay[..., None] + gained]
