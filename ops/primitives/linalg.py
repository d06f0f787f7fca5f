"""Linear algebra on batches: matrices are unsharded, batch dims keep their sharding.

A single matrix has no batch dim, so it falls back, except for tall matrices (`tall.py`), Cholesky
and LU (`factorizations.py`) and triangular systems (`substitution.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.factors import THROUGH, Factors, FactorsOf, Numbering, batch
from gridlayout.ops.decisions.flops import Flops, nothing, of_last, of_matrix, of_solve, per_result
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.primitives import factorizations, tall
from gridlayout.ops.primitives.along import mapped
from gridlayout.ops.primitives.substitution import triangular_solve

# The rank of the first operand without batch dims, where it is not 2.
RANK = {"lu_pivots_to_permutation": 1, "tridiagonal_solve": 1}


# Leading terms of the flops of m x n matrices, in units of m n min(m, n).
_LEADING = {
    **{"cholesky": 1 / 3, "lu": 2 / 3, "qr": 4 / 3, "geqrf": 4 / 3, "geqp3": 4 / 3},
    **{"householder_product": 4 / 3, "ormqr": 4, "hessenberg": 10 / 3, "tridiagonal": 4 / 3},
    **{"eigh": 9, "eig": 25, "schur": 25, "svd": 22, "symmetric_product": 2},
}
_EACH_COLUMN = "one matrix; each column of its reduction reads the rest of the matrix"
_PANELS = "one matrix; panels would take longer"
_TALL = "one matrix; sharded only if tall, and not full_matrices"
_WHOLE = "one matrix; no dim can stay sharded"
# Rules for a single matrix that stays sharded, and why others fall back.
_SINGLE: dict[str, tuple[tuple[Decide, ...], str]] = {
    "qr": ((tall.qr,), _TALL),
    "svd": ((tall.svd,), _TALL),
    "cholesky": ((factorizations.cholesky,), _PANELS),
    "lu": ((factorizations.lu,), _PANELS),
    "triangular_solve": ((triangular_solve,), _WHOLE),
    **dict.fromkeys(("eig", "eigh"), ((), _EACH_COLUMN)),
}


def _of_triangular(
    params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]
) -> Factors:
    """Return the factors of triangular systems: a batch, or else the right-hand sides of one."""
    if len(ins[0]) > 2:
        return batch(2)(params, ins, outs)
    made, columns = Numbering(ins, outs), int(params["left_side"])
    made.add(THROUGH, (1, columns), (2, columns))
    return made.factors()


def _record(name: str, flops: Flops, factors: FactorsOf | None = None) -> Record:
    rules, reason = _SINGLE.get(name, ((), _WHOLE))
    factors = factors or batch(RANK.get(name, 2))
    return Record((*rules, mapped), flops, factors, reason=reason)


LINALG: dict[str, Record] = {
    **{name: _record(name, of_matrix(leading)) for name, leading in _LEADING.items()},
    "triangular_solve": _record("triangular_solve", of_solve, _of_triangular),
    "tridiagonal_solve": _record("tridiagonal_solve", lambda op: 8 * per_result(op)),
    "lu_pivots_to_permutation": _record("lu_pivots_to_permutation", nothing),
    "cholesky_update": Record((), of_last(4)),
}
