"""Joins: `d0 <> d1` joins dims into one, the major dim first, without gaps (tt-mlir).

tt-mlir: "Instead of multiplying out real shapes, we will use `<>` to represent a dimension join
operator". A join is parsed and printed only together with a shape; it becomes an ordinary sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridlayout.affine.expressions import AffineExpr, constant, dim


def linearized(shape: Sequence[int], dims: Sequence[int]) -> AffineExpr:
    """The row-major index of the given dims joined into one, the major dim first.

    >>> print(linearized((2, 3, 4), (0, 1)))
    d0 * 3 + d1
    """
    expr = constant(0)
    for k, d in enumerate(dims):
        expr = expr + dim(d) * prod(shape[e] for e in dims[k + 1 :])
    return expr


def joined_dims(
    coefficients: Sequence[int], offset: int, shape: Sequence[int]
) -> tuple[int, ...] | None:
    """The dims that a linear result joins, the major dim first; None if it is not a join.

    >>> joined_dims((12, 4, 1), 0, (2, 3, 4)), joined_dims((32, 4, 1), 0, (2, 3, 4))
    ((0, 1, 2), None)
    """
    dims = [d for d, c in enumerate(coefficients) if c]
    order = tuple(sorted(dims, key=lambda d: (-coefficients[d], d)))
    steps = [prod(shape[e] for e in order[k + 1 :]) for k in range(len(order))]
    is_join = offset == 0 and [coefficients[d] for d in order] == steps
    return order if is_join and len(order) > 1 else None
