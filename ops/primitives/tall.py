"""QR and SVD of one tall matrix whose rows are sharded (TSQR).

Each device decomposes its own rows and sends its R to all devices, and every device decomposes the
stacked Rs (Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and
LU factorizations"). This needs more rows per device than the matrix has columns. Other matrices
are replicated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import target_layout
from gridlayout.ops.primitives.windows import as_storage, block_matrix, local_blocks, zero_tail
from gridlayout.sharding.collectives import all_gather, index_of

# A function of R that returns the matrices to multiply Q by, and the replicated results.
PartsOf = Callable[[jax.Array], tuple[list[jax.Array], list[jax.Array]]]


def qr(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a QR decomposition: Q has the layout of the matrix, R is replicated."""
    if op.params["full_matrices"] or op.params.get("pivoting"):
        return None

    def parts(r: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
        return [jnp.eye(len(r), dtype=r.dtype)], [r]

    return _decompose(b, value, 0, op.outs[:1], parts)


def svd(b: Builder, op: Op, value: Value) -> Any:
    """Rule for an SVD: singular vectors of the long side have the layout of the matrix."""
    is_full = op.params["full_matrices"] and op.params["compute_uv"]
    if is_full or op.params.get("subset_by_index") is not None:
        return None
    dim = int(value.ndim == 2 and value.shape[0] < value.shape[1])

    def parts(r: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
        s, *vectors = op.bind(r.T if dim else r)
        if not vectors:
            return [], [s]
        left, right = vectors
        return ([right.T], [s, left]) if dim else ([left], [s, right])

    found = _decompose(b, value, dim, op.outs[1 + dim : 2 + dim], parts)
    if found is None or not op.params["compute_uv"]:
        return found
    long, s, short = found
    return [s, short, long] if dim else [s, long, short]


def _decompose(
    b: Builder, value: Value, dim: int, long: Sequence[Aval], parts: PartsOf
) -> list[Value] | None:
    """Return the results that `parts` computes from the QR decomposition of a matrix.

    dim: the long dim; if it is 1, Q and R are those of the transpose. long: the types of the
    results that are products with Q, which come first. None if a device has too few rows.
    """
    if value.ndim != 2 or value.layout is None:
        return None
    columns = value.shape[1 - dim]
    x, axes, block = block_matrix(b, value, dim, value)
    if block <= columns:
        return None
    assert isinstance(x.spec, Sharded)
    extent, out = value.shape[dim], x.spec
    r = jax.ShapeDtypeStruct((columns, columns), value.dtype)
    short = [Replicated(aval.shape, aval.dtype) for aval in jax.eval_shape(parts, r)[1]]

    def kernel(part: jax.Array) -> list[jax.Array]:
        a = zero_tail(local_blocks(part), dim, axes, extent)
        q, r = _qr_of_blocks(a.T if dim else a, axes)
        factors, rest = parts(r)
        made = [q @ factor for factor in factors]
        return [*(as_storage(y.T if dim else y, out.placement.per_device) for y in made), *rest]

    size = dtypes.nbytes(columns**2, value.dtype)
    sent = b.collectives().all_gather(axes, size).all_reduce(axes, size)
    specs = [out.with_oob(None) for _ in long]
    made = b.run(kernel, [x], [*specs, *short], sent)
    target = target_layout(b, out.layout, value, ())
    return [b.relayout(y, target) for y in made[: len(long)]] + [
        b.as_sharded(y, like=value) for y in made[len(long) :]
    ]


def _qr_of_blocks(a: jax.Array, axes: Axes) -> tuple[jax.Array, jax.Array]:
    """Return a device's rows of Q, and R, with the signs of Householder's method."""
    columns = a.shape[1]
    own, r = jnp.linalg.qr(a)
    among, r = jnp.linalg.qr(all_gather(r, axes, 0))
    here = index_of(axes)
    q = own @ lax.dynamic_slice_in_dim(among, here * columns, columns)
    at = here * len(a) + jnp.arange(len(a))
    first = jnp.zeros((columns, columns), q.dtype).at[at].add(q, mode="drop")
    signs = _signs(lax.psum(first, axes) if axes else first)
    return q * signs, r * signs[:, None]


def _signs(q: jax.Array) -> jax.Array:
    """Return the signs of Q's columns that Householder's method would give, from its first rows.

    Each diagonal element is made negative while Q minus the signs is eliminated (Ballard, Demmel,
    Grigori, Jacquelin, Nguyen, Solomonik, "Reconstructing Householder vectors from tall-skinny
    QR").
    """

    def eliminate(k: Any, carried: Any) -> Any:
        q, signs = carried
        sign = jnp.where(q[k, k].real < 0, 1, -1).astype(q.dtype)
        below = jnp.where(jnp.arange(len(q)) > k, q[:, k] / (q[k, k] - sign), 0)
        return q - jnp.outer(below, q[k]), signs.at[k].set(sign)

    return lax.fori_loop(0, len(q), eliminate, (q, jnp.ones(len(q), q.dtype)))[1]
