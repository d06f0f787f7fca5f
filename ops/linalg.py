"""Linear algebra over batches: each matrix lies whole on a core, the batch where it was.

One matrix alone has no dim that could stay spread: it falls back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gridlayout.ops.along import bound, run
from gridlayout.ops.values import Context

# How many dims the first operand of each has without a batch.
RANK = dict.fromkeys(
    """
    cholesky eig eigh geqp3 geqrf hessenberg householder_product lu ormqr qr schur svd
    symmetric_product triangular_solve tridiagonal
    """.split(),  # noqa: SIM905
    2,
) | {"lu_pivots_to_permutation": 1, "tridiagonal_solve": 1}


def batched(ctx: Context, eqn: Any, *values: Any) -> Any:
    """A decomposition, a solution or a product of each matrix of a batch."""
    batch = values[0].ndim - RANK[eqn.primitive.name]
    operands = [(x, tuple(range(batch, x.ndim))) for x in values]
    out_axes = [tuple(range(batch, var.aval.ndim)) for var in eqn.outvars]
    return run(ctx, eqn, operands, bound(eqn), out_axes=out_axes)


LINALG: dict[str, Callable[..., Any]] = dict.fromkeys(RANK, batched)
