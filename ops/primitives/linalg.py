"""Linear algebra on batches: matrices are unsharded, batch dims keep their sharding.

A single matrix has no batch dim, so it falls back, except for tall matrices (`tall.py`), Cholesky
and LU (`factorizations.py`) and triangular systems (`substitution.py`).
"""

from __future__ import annotations

from typing import Any

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, nothing, of_matrix, of_solve, per_result
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives import factorizations, tall
from gridlayout.ops.primitives.along import run
from gridlayout.ops.primitives.substitution import triangular_solve

# The rank of the first operand without batch dims, where it is not 2.
RANK = {"lu_pivots_to_permutation": 1, "tridiagonal_solve": 1}


def batched(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for decompositions, solutions and products of each matrix of a batch."""
    batch = values[0].ndim - RANK.get(op.name, 2)
    operands = [(x, tuple(range(batch, x.ndim))) for x in values]
    out_axes = [tuple(range(batch, aval.ndim)) for aval in op.outs]
    return run(b, op, operands, op.bound(), out_axes=out_axes)


# Leading terms of the flops of m x n matrices, in units of m n min(m, n).
_LEADING = {
    **{"cholesky": 1 / 3, "lu": 2 / 3, "qr": 4 / 3, "geqrf": 4 / 3, "geqp3": 4 / 3},
    **{"householder_product": 4 / 3, "ormqr": 4, "hessenberg": 10 / 3, "tridiagonal": 4 / 3},
    **{"eigh": 9, "eig": 25, "schur": 25, "svd": 22, "symmetric_product": 2},
}
LINALG: dict[str, Rule] = {
    **{name: Rule(batched, of_matrix(leading)) for name, leading in _LEADING.items()},
    "triangular_solve": Rule(batched, of_solve),
    "tridiagonal_solve": Rule(batched, lambda op: 8 * per_result(op)),
    "lu_pivots_to_permutation": Rule(batched, nothing),
}
# Rules for a single matrix that stays sharded.
MATRICES: dict[str, Rule] = {
    "triangular_solve": Rule(triangular_solve, of_solve),
    "qr": Rule(tall.qr, of_matrix(_LEADING["qr"])),
    "svd": Rule(tall.svd, of_matrix(_LEADING["svd"])),
    "cholesky": Rule(factorizations.cholesky, of_matrix(_LEADING["cholesky"])),
    "lu": Rule(factorizations.lu, of_matrix(_LEADING["lu"])),
}
